"""Comparing models: probabilities and verdicts from known evidences, what is refused, where a budget goes."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import trapezoid
from scipy.special import expit

import wsabi
from wsabi.comparison import Comparison
from wsabi.result import LogBayesFactor

PLAIN = wsabi.Settings(measure="prior")


@pytest.fixture(scope="module")
def base() -> wsabi.Result:
    prior = wsabi.Gaussian([0.0], names=["a"])
    return wsabi.integrate(lambda x: -0.5 * float(x @ x), prior, budget=20, rng=0, settings=PLAIN)


def known(base: wsabi.Result, log_z: float, std: float = 0.01, **changes: object) -> wsabi.Result:
    return dataclasses.replace(base, log_z=log_z, log_z_std=std, warnings=(), **changes)  # type: ignore[arg-type]


def test_a_difference_is_a_log_bayes_factor(base: wsabi.Result) -> None:
    factor = known(base, -3.0, 0.3) - known(base, -5.0, 0.4)
    assert factor == LogBayesFactor(2.0, 0.5)
    assert str(factor) == repr(factor) == "2.00 ± 0.5"
    with pytest.raises(TypeError):
        base - 1.0  # type: ignore[operator]


def test_probabilities_of_exact_evidences(base: wsabi.Result) -> None:
    """With no error bars they are Bayes' theorem."""
    results = {name: known(base, z, 0.0) for name, z in (("a", -1.0), ("b", -2.0), ("c", -4.0))}
    found = wsabi.compare(results, prior_odds={"a": 1.0, "b": 2.0, "c": 4.0})
    weights = np.exp([-1.0, -2.0, -4.0]) * [1.0, 2.0, 4.0]
    assert_allclose(found.probabilities, weights / weights.sum(), rtol=1e-12)
    assert_allclose(found.intervals, np.column_stack([weights, weights]) / weights.sum(), rtol=1e-12)
    assert found.best == "a"
    assert found.ahead.tolist() == [1.0, 0.0, 0.0]
    assert found.log_bayes_factor("b", "a").value == -1.0
    assert found["b"] is results["b"]
    with pytest.raises(KeyError, match="'d' is not one of the models a, b, c"):
        found["d"]


def test_error_bars_widen_the_probabilities(base: wsabi.Result) -> None:
    """p = 1/(1 + e^−d) with d ~ N(1, 0.5² + 0.5²): its quantiles are those of d, its mean by quadrature."""
    found = wsabi.compare({"a": known(base, 1.0, 0.5), "b": known(base, 0.0, 0.5)})
    d = stats.norm(1.0, math.sqrt(0.5))
    assert_allclose(found.intervals[0], expit(d.ppf([0.025, 0.975])), atol=0.01)
    x = np.linspace(-6.0, 8.0, 2001)
    assert_allclose(found.probabilities[0], trapezoid(d.pdf(x) * expit(x), x), atol=0.005)  # 4 sds of the draws
    assert_allclose(found.ahead[0], d.sf(0.0), atol=0.015)
    assert found.probabilities.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("gap", "std", "words"),
    [
        (8.0, 0.1, "decisive for b"),
        (4.0, 0.1, "strong evidence for b"),
        (1.7, 0.1, "some evidence for b"),
        (0.8, 0.1, "undecided: b is ahead of a, but the data hardly tell them apart"),
        (0.3, 0.5, "undecided: the error bars of b and a overlap"),
        (8.0, math.inf, "undecided: the error bars of b and a overlap"),
        (300.0, 0.1, r"at least 10\^13. to 1"),
    ],
)
def test_verdicts(base: wsabi.Result, gap: float, std: float, words: str) -> None:
    found = wsabi.compare({"a": known(base, 0.0, std), "b": known(base, gap, 0.01)})
    assert re.search(words, found.verdict)
    assert np.all(np.isfinite(found.probabilities))


def test_the_rival_is_the_one_that_is_least_excluded(base: wsabi.Result) -> None:
    results = {"best": known(base, 10.0), "second": known(base, 8.0), "vague": known(base, 5.0, 9.0)}
    assert "the error bars of best and vague overlap" in wsabi.compare(results).verdict


def test_it_prints_as_a_table(base: wsabi.Result) -> None:
    found = wsabi.compare({"linear": known(base, -12.0, 0.02), "quadratic": known(base, -10.0, 0.03)})
    lines = str(found).splitlines()
    assert lines[0].split() == ["model", "log", "Z", "log", "Bayes", "factor", "probability", "95", "%", "interval"]
    assert lines[1].startswith("quadratic  -10.000 ± 0.03")
    assert "-2.000 ± 0.036" in lines[2]
    assert lines[3] == f"verdict: {found.verdict}"
    assert repr(found) == str(found)


def test_doubtful_results_are_refused(base: wsabi.Result) -> None:
    doubtful = dataclasses.replace(known(base, 1.0), warnings=("It rains.", "It pours."))
    with pytest.raises(ValueError, match=r"wet: doubtful.*It rains\..*allow_doubtful=True"):
        wsabi.compare({"dry": known(base, 0.0), "wet": doubtful})
    found = wsabi.compare({"dry": known(base, 0.0), "wet": doubtful}, allow_doubtful=True)
    assert found.notes == ("wet is doubtful: It rains.",)
    assert "note: wet is doubtful" in str(found)


def test_different_priors_of_a_shared_parameter_are_named(base: wsabi.Result) -> None:
    other = known(base, 0.0, prior=wsabi.Gaussian([0.0], 1.5, names=["a"]))
    found = wsabi.compare({"one": known(base, 0.0), "two": other})
    assert found.notes == ("the prior of a in two differs from that in one: part of the Bayes factor comes from that.",)
    same = known(base, 0.0, prior=wsabi.Independent(a=stats.norm(0, 1), b=(0.0, 1.0)), names=("a", "b"))
    assert wsabi.compare({"one": known(base, 0.0), "two": same}).notes == ()
    foreign = known(base, 0.0, prior=wsabi.Gaussian([5.0], names=["z"]), names=("z",))
    assert wsabi.compare({"one": known(base, 0.0), "two": foreign}).notes == ()
    unknown = known(base, 0.0, prior=wsabi.LogDensity(stats.norm(3.0, 1.0).logpdf, [stats.norm(0, 9)], names=["a"]))
    assert wsabi.compare({"one": known(base, 0.0), "two": unknown}).notes == ()


def test_bad_input(base: wsabi.Result) -> None:
    with pytest.raises(ValueError, match="a dict of two or more"):
        wsabi.compare({"one": base})
    with pytest.raises(ValueError, match="a dict of two or more"):
        wsabi.compare([base, base])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"model 'two' must be a Result, or a pair .*; got float"):
        wsabi.compare({"one": base, "two": 1.0})  # type: ignore[dict-item]
    pair = {"one": known(base, 0.0), "two": known(base, 1.0)}
    with pytest.raises(ValueError, match="prior_odds must name the models one, two; got one"):
        wsabi.compare(pair, prior_odds={"one": 1.0})
    with pytest.raises(ValueError, match="prior_odds must be positive numbers"):
        wsabi.compare(pair, prior_odds={"one": 1.0, "two": 0.0})
    with pytest.raises(TypeError, match=r"with budget=, model 'one' must be a pair"):
        wsabi.compare(pair, budget=10)  # type: ignore[arg-type]


# -- with a budget ----------------------------------------------------------------------------------------------------


def integrator() -> wsabi.Integrator:
    return wsabi.Integrator(wsabi.Gaussian([0.0, 0.0]), rng=0, settings=PLAIN)


def peak(height: float, width: float):
    return lambda x: height - 0.5 * float(x @ x) / width**2


def test_a_budget_goes_where_the_ranking_is_uncertain() -> None:
    """Two models nearly as good as each other, and one far worse, which gets no more than its first share."""
    pairs = {
        "a": (integrator(), peak(0.0, 0.5)),
        "b": (integrator(), peak(0.05, 0.5)),
        "hopeless": (integrator(), peak(-50.0, 0.5)),
    }
    found = wsabi.compare(pairs, budget=80, allow_doubtful=True)
    spent = {name: one.n_evals for name, (one, _) in pairs.items()}
    assert sum(spent.values()) <= 80
    assert spent["hopeless"] == 20
    assert found.best == "b"
    assert found.log_bayes_factor("b", "a").value == pytest.approx(0.05, abs=3.0 * found.log_z_std.max() + 1e-3)


def test_nothing_is_spent_once_it_is_decided() -> None:
    pairs = {"a": (integrator(), peak(0.0, 0.5)), "b": (integrator(), peak(30.0, 0.5))}
    for one, log_l in pairs.values():
        one.run(log_l, budget=25)
    wsabi.compare(pairs, budget=40, allow_doubtful=True)
    assert [one.n_evals for one, _ in pairs.values()] == [25, 25]
    assert isinstance(wsabi.compare(pairs, allow_doubtful=True), Comparison)  # without a budget: as they are


# -- the picture ------------------------------------------------------------------------------------------------------


def test_the_picture_names_the_models(base: wsabi.Result) -> None:
    found = wsabi.compare({"linear": known(base, -12.0), "vague": known(base, -10.0, math.inf)})
    figure = found.plot()
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["linear", "vague"]
    mine = Figure()
    assert found.plot(axes=mine.subplots(1, 2)) is mine
    with pytest.raises(ValueError, match="plot needs 2 axes; got 1"):
        found.plot(axes=[mine.axes[0]])
