"""What a run returns: numbers that agree with each other, print legibly and survive pickling."""

from __future__ import annotations

import dataclasses
import itertools
import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wsabi
from wsabi.result import REASONS, ModelBelief, Result

PLAIN = wsabi.Settings(measure="prior")


def log_l(x: np.ndarray) -> float:
    return -0.5 * float(x @ x)  # under N(0, I₂): log Z = −log 2


@pytest.fixture(scope="module")
def result() -> Result:
    prior = wsabi.Gaussian([0.0, 0.0], names=["mass", "charge"])
    return wsabi.integrate(log_l, prior, budget=30, rng=0, settings=PLAIN)


def test_the_fields_agree_with_each_other(result: Result) -> None:
    assert result.method == "wsabi-l"
    assert result.settings == PLAIN
    assert result.names == ("mass", "charge")
    assert result.n_evals == 30
    assert result.points.shape == result.base_points.shape == (30, 2)
    assert result.log_likelihoods.shape == (30,)
    assert_array_equal(result.log_likelihoods, [log_l(x) for x in result.points])
    assert result.warnings == ()
    assert (result.reason, result.converged) == ("budget", False)
    assert [fit.n_evals for fit in result.fits] == sorted({fit.n_evals for fit in result.fits})
    assert 0.0 < result.jitter <= 1e-4
    assert result.seconds > 0.0


def test_the_estimate_is_the_closed_form_of_the_model(result: Result) -> None:
    assert result.log_z == result.model.log_mean
    ratio = math.exp(result.model.log_var - 2.0 * result.model.log_mean)
    assert_allclose(result.log_z_std, math.sqrt(math.log1p(ratio)), rtol=1e-9)
    assert abs(result.log_z + math.log(2.0)) < 1e-2


def test_history_is_monotone_and_ends_at_the_estimate(result: Result) -> None:
    assert result.history[0].n_evals == 1
    for before, after in itertools.pairwise(result.history):
        assert before.n_evals < after.n_evals
        assert before.seconds <= after.seconds
    last = result.history[-1]
    assert (last.n_evals, last.log_z, last.log_z_std) == (result.n_evals, result.log_z, result.log_z_std)
    assert last.seconds <= result.seconds


def test_interval(result: Result) -> None:
    low, high = result.interval(0.95)
    assert_allclose(
        [low, high], result.log_z + np.array([-1.0, 1.0]) * 1.959963984540054 * result.log_z_std, rtol=1e-12
    )
    assert result.interval() == (low, high)
    narrow = result.interval(0.5)
    assert low < narrow[0] < result.log_z < narrow[1] < high
    for wrong in (0.0, 1.0, 95.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="probability must lie between 0 and 1"):
            result.interval(wrong)


def test_no_estimate_has_no_limits_and_prints_no_nan(result: Result) -> None:
    """Bayes-Hermite quadrature can have a mean of Z below zero: log Z is then −inf ± inf, and −inf + inf is NaN."""
    nothing = dataclasses.replace(result, log_z=-math.inf, log_z_std=math.inf)
    assert nothing.interval() == (-math.inf, math.inf)
    assert "nan" not in str(nothing)


def test_a_belief_without_a_positive_mean_is_infinitely_uncertain() -> None:
    assert ModelBelief(-math.inf, 0.0).log_z_std == math.inf
    assert_allclose(ModelBelief(-1e5, -2e5 + math.log(math.e - 1.0)).log_z_std, 1.0, rtol=1e-9)  # V/E² = e − 1


# -- printing ---------------------------------------------------------------------------------------------------------


def printed(result: Result) -> dict[str, str]:
    """The printed table as name -> text."""
    return {line[:16].rstrip(): line[16:] for line in str(result).splitlines()}


def printed_numbers(result: Result) -> tuple[float, float, float, float]:
    """log Z, its sd, and both ends of the interval, as printed."""
    table = printed(result)
    log_z, std = table["log Z"].split(" ± ")
    low, high = table["95 % interval"].strip("[]").split(", ")
    return float(log_z), float(std), float(low), float(high)


def test_printing(result: Result) -> None:
    log_z, std, low, high = printed_numbers(result)
    assert abs(log_z - result.log_z) < 0.1 * result.log_z_std
    assert_allclose(std, result.log_z_std, rtol=0.05)
    assert_allclose([low, high], result.interval(), rtol=0.0, atol=0.1 * result.log_z_std)
    table = printed(result)
    assert table["evaluations"] == "30"
    assert table["method"] == "wsabi-l"
    assert table["stopped because"] == REASONS["budget"]
    assert "warning" not in table
    assert repr(result) == f"Result(wsabi-l: log Z = {table['log Z']}, 30 evaluations)"


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_has_its_words(result: Result, reason: str) -> None:
    assert REASONS[reason] in str(dataclasses.replace(result, reason=reason))  # type: ignore[arg-type]


def test_warnings_are_printed(result: Result) -> None:
    warned = dataclasses.replace(result, warnings=("the sky is falling.", "so is the ground."))
    assert str(warned).count("\nwarning         ") == 2
    assert repr(warned).endswith(", 2 warnings)")
    assert "the sky is falling." in str(warned)


@pytest.mark.parametrize("log_z", [-100000.6931, 100000.6931])
def test_a_large_log_z_is_printed_to_the_digits_that_are_known(result: Result, log_z: float) -> None:
    """Six digits of −100000.6931 ± 0.0002 would be −100001, and the interval would have no width."""
    far = dataclasses.replace(result, log_z=log_z, log_z_std=0.0002)
    assert_allclose(printed_numbers(far), (log_z, 0.0002, *far.interval()), rtol=0.0, atol=2e-5)


# -- frozen, picklable ------------------------------------------------------------------------------------------------


def test_results_are_frozen(result: Result) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.log_z = 0.0  # type: ignore[misc]


def test_pickling_keeps_everything(result: Result) -> None:
    copy = pickle.loads(pickle.dumps(result))
    assert str(copy) == str(result)
    for field in dataclasses.fields(result):
        mine, other = getattr(result, field.name), getattr(copy, field.name)
        if isinstance(mine, np.ndarray):
            assert_array_equal(mine, other)
        elif field.name not in ("posterior", "prior", "ledger"):
            assert mine == other
    assert_array_equal(copy.posterior.sample(5, rng=1), result.posterior.sample(5, rng=1))
    assert_array_equal(copy.posterior.mean, result.posterior.mean)
    assert_array_equal(copy.prior.cov, result.prior.cov)
    assert [repr(event) for event in copy.ledger.events] == [repr(event) for event in result.ledger.events]


def test_a_pickled_result_can_be_continued(result: Result) -> None:
    copy = pickle.loads(pickle.dumps(result))
    prior = wsabi.Gaussian([0.0, 0.0], names=["mass", "charge"])
    runs = [wsabi.integrate(log_l, prior, budget=5, rng=1, settings=PLAIN, start=start) for start in (result, copy)]
    assert_array_equal(runs[0].points, runs[1].points)
    assert runs[0].log_z == runs[1].log_z
