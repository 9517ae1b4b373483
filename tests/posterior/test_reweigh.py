"""log Z under another prior from the same evaluations: right where they reach, wider and warned where they do not."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy import stats

import wsabi
from wsabi import baselines

WIDTH = 0.3
CENTRE = 1.0


def log_likelihood(x: np.ndarray) -> float:
    return -0.5 * float(np.sum((x - CENTRE) ** 2)) / WIDTH**2


def exact(mean: float, variance: float, dim: int = 2) -> float:
    """log ∫ ℓ N(mean, variance) per axis: a product of Gaussians."""
    total = variance + WIDTH**2
    return dim * (-0.5 * (CENTRE - mean) ** 2 / total - 0.5 * math.log(total / WIDTH**2))


@pytest.fixture(scope="module", params=["adaptive", "prior"])
def result(request: pytest.FixtureRequest) -> wsabi.Result:
    settings = wsabi.Settings(measure=request.param)
    return wsabi.integrate(log_likelihood, wsabi.Gaussian([0.0, 0.0]), budget=90, rng=0, settings=settings, tol=0)


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 2.0), (1.0, 1.0), (0.5, 0.5)])
def test_a_prior_near_by_needs_no_new_evaluation(result: wsabi.Result, mean: float, variance: float) -> None:
    other = result.with_prior(wsabi.Gaussian([mean, mean], variance))
    assert abs(other.log_z - exact(mean, variance)) < 4.0 * other.log_z_std  # false alarm 6e-5 each
    assert other.log_z_std < 0.1
    assert other.log_z_std >= result.log_z_std
    assert other.n_evals == result.n_evals
    posterior_variance = 1.0 / (1.0 / variance + 1.0 / WIDTH**2)
    posterior_mean = posterior_variance * (mean / variance + CENTRE / WIDTH**2)
    np.testing.assert_allclose(other.posterior.mean, posterior_mean, atol=0.15 * math.sqrt(posterior_variance))


def test_the_same_prior_changes_nothing(result: wsabi.Result) -> None:
    other = result.with_prior(wsabi.Gaussian([0.0, 0.0]))
    assert abs(other.log_z - result.log_z) < 1e-9


def test_the_error_bar_grows_where_the_evaluations_do_not_reach(result: wsabi.Result) -> None:
    bars = [result.with_prior(wsabi.Gaussian([m, m], 0.05)).log_z_std for m in (1.0, 2.0, 3.0)]
    assert bars[0] < bars[1] < bars[2] == math.inf
    far = result.with_prior(wsabi.Gaussian([3.0, 3.0], 0.05))
    assert any("run again under that prior" in text or "far from every evaluation" in text for text in far.warnings)


def test_other_kinds_of_prior_and_pickling(result: wsabi.Result) -> None:
    box = wsabi.Uniform([-4.0, -4.0], [6.0, 6.0])
    other = pickle.loads(pickle.dumps(result)).with_prior(box)
    truth = 2.0 * (math.log(WIDTH * math.sqrt(2.0 * math.pi)) - math.log(10.0))  # the box cuts off nothing
    assert abs(other.log_z - truth) < 4.0 * other.log_z_std
    named = result.with_prior([stats.norm(0.0, 1.0), stats.norm(0.0, 1.0)])
    assert abs(named.log_z - result.log_z) < 1e-9
    again = other.with_prior(wsabi.Gaussian([0.0, 0.0]))  # there and back
    assert abs(again.log_z - result.log_z) < 0.05


def test_refusals(result: wsabi.Result) -> None:
    with pytest.raises(ValueError, match="the other prior has 1 dimensions; the result has 2"):
        result.with_prior(wsabi.Gaussian([0.0]))
    with pytest.raises(ValueError, match="gives no weight to any point"):
        result.with_prior(wsabi.Uniform([50.0, 50.0], [51.0, 51.0]))
    with pytest.raises(TypeError, match="Transform"):
        result.with_prior(wsabi.Transform(lambda u: u, 2))
    monte_carlo = baselines.simple_monte_carlo(log_likelihood, wsabi.Gaussian([0.0, 0.0]), budget=100, rng=0)
    with pytest.raises(TypeError, match="keeps no model to reweigh"):
        monte_carlo.with_prior(wsabi.Gaussian([0.0, 0.0], 2.0))


# -- priors that reach where no evaluation can be ---------------------------------------------------------------------


def rising(x: np.ndarray) -> float:
    return 3.0 * float(x[0])


def run(prior: object, log_l: object = rising) -> wsabi.Result:
    return wsabi.integrate(log_l, prior, budget=60, rng=0, tol=0)


@pytest.fixture(scope="module")
def on_unit() -> wsabi.Result:
    """log ℓ = 3x under a uniform prior on (0, 1): log Z = log((e³ − 1)/3)."""
    return run(wsabi.Uniform([0.0], [1.0], names=["a"]))


@pytest.mark.parametrize(
    ("new", "share"),
    [
        (wsabi.Uniform([0.0], [10.0]), 0.9),
        (wsabi.Uniform([-0.5], [1.0]), 1.0 / 3.0),
        (wsabi.Gaussian([0.5], 0.25), 2.0 * stats.norm.sf(1.0)),
        (wsabi.GaussianMixture([0.9, 0.1], [0.5, 5.0], 0.01), 0.1),
        ([stats.halfnorm(0.0, 0.3)], 2.0 * stats.norm.sf(1.0 / 0.3)),
        (wsabi.LogDensity(lambda x: stats.norm.logpdf(x[0], 0.5, 0.5), wsabi.Gaussian([0.5], 1.0)), 0.317),
    ],
)
def test_a_wider_support_is_not_known(on_unit: wsabi.Result, new: object, share: float) -> None:
    """The uniform on (0, 10) has log Z = 25.7 where the part inside gives 0.9 − 1.4, and said ± 0.02 without a word."""
    other = on_unit.with_prior(new)
    assert other.log_z_std == math.inf
    (text,) = [text for text in other.warnings if "outside the support" in text]
    assert "along a" in text
    assert "start=result" in text or not isinstance(new, wsabi.Uniform)
    assert float(text.split()[0]) == pytest.approx(share, rel=0.1)  # 4,000 draws for the LogDensity: 2.4 % sd


def test_half_lines_and_truncations() -> None:
    half = run([stats.halfnorm(0.0, 1.0)])
    assert half.with_prior([stats.norm(0.0, 1.0)]).log_z_std == math.inf
    assert math.isfinite(half.with_prior([stats.halfnorm(0.0, 0.9)]).log_z_std)
    cut = run([stats.truncnorm(-1.0, 1.0)])
    assert cut.with_prior([stats.norm(0.0, 1.0)]).log_z_std == math.inf
    whole = run([stats.norm(0.0, 1.0)])
    narrower = whole.with_prior([stats.truncnorm(-4.0, 3.0)])  # a narrower support is no trouble
    truth = (
        4.5 + math.log(stats.norm.cdf(0.0) - stats.norm.cdf(-7.0)) - math.log(stats.norm.cdf(3) - stats.norm.cdf(-4))
    )
    assert abs(narrower.log_z - truth) < 4.0 * narrower.log_z_std < 1.0  # false alarm 6e-5


def test_a_negligible_tail_outside_is_no_trouble() -> None:
    """N(0, 1) has 1.5e-23 outside (−10, 10), and N(0.5, 2²) 2e-6: one is known, the other is not."""
    wide = run(wsabi.Uniform([-10.0], [10.0]), lambda x: -0.5 * float((x[0] - 1.0) ** 2) / WIDTH**2)
    other = wide.with_prior(wsabi.Gaussian([0.0]))
    assert abs(other.log_z - exact(0.0, 1.0, dim=1)) < 4.0 * other.log_z_std < 1.0  # false alarm 6e-5
    assert not any("support" in text or "bound" in text for text in other.warnings)
    assert wide.with_prior(wsabi.Gaussian([0.5], 4.0)).log_z_std == math.inf


def test_a_small_tail_outside_counts_where_the_posterior_lies_against_the_bound() -> None:
    """N(0.5, 0.1²) has 6e-7 outside (0, 1), and with log ℓ = 60x the posterior N(1.1, 0.1²) lies there."""
    steep = run(wsabi.Uniform([0.0], [1.0]), lambda x: 60.0 * float(x[0]))
    other = steep.with_prior(wsabi.Gaussian([0.5], 0.01))
    assert other.log_z_std == math.inf
    assert any("lies against a bound" in text or "run again" in text for text in other.warnings)


@pytest.mark.parametrize("sd", [1.2, 2.0, 10.0])
def test_a_likelihood_that_rises_outward_under_a_wider_normal(sd: float) -> None:
    """The support stays all of R; log Z' = 9 sd²/2, and draws of the old posterior reach x = 7 only."""
    other = run(wsabi.Gaussian([0.0])).with_prior(wsabi.Gaussian([0.0], sd**2))
    assert abs(other.log_z - 4.5 * sd**2) < 2.0 * other.log_z_std
    assert other.warnings


def test_the_cure_that_the_warning_names() -> None:
    """The evaluations go on under the wider prior, also in a box that some of their old base coordinates are not in."""
    half = run([stats.halfnorm(0.0, 1.0)])
    box = wsabi.Uniform([-4.0], [12.0])
    again = wsabi.integrate(rising, box, budget=60, rng=0, tol=0, start=half)
    truth = math.log((math.exp(36.0) - math.exp(-12.0)) / 48.0)
    assert again.n_evals == 120
    assert abs(again.log_z - truth) < 4.0 * again.log_z_std < 1.0  # false alarm 6e-5
    plain = wsabi.integrate(rising, box, budget=5, rng=0, start=half, settings=wsabi.Settings(measure="prior"))
    assert plain.n_evals == 65


# -- parameters by name -----------------------------------------------------------------------------------------------

A, B = stats.norm(0.5, 0.8), stats.norm(2.0, 1.5)


def unequal(p: dict[str, float]) -> float:
    return -0.5 * ((p["a"] - 1.0) / WIDTH) ** 2 - 0.5 * ((p["b"] + 0.5) / 0.6) ** 2


def of_names(p: dict[str, float]) -> float:
    return float(A.logpdf(p["a"]) + B.logpdf(p["b"]))


def of_columns(x: np.ndarray) -> float:
    return float(B.logpdf(x[0]) + A.logpdf(x[1]))


@pytest.fixture(scope="module")
def named() -> wsabi.Result:
    return wsabi.integrate(unequal, {"a": stats.norm(0, 2), "b": stats.norm(0, 2)}, budget=90, rng=0, tol=0)


BA_MEAN, BA_VARIANCE = [2.0, 0.5], [1.5**2, 0.8**2]
WIDE = {"b": stats.norm(0, 2), "a": stats.norm(0, 2)}


@pytest.mark.parametrize(
    "swapped",
    [
        {"b": B, "a": A},
        wsabi.Independent(b=B, a=A),
        wsabi.Gaussian(BA_MEAN, BA_VARIANCE, names=["b", "a"]),
        wsabi.GaussianMixture([1.0, 1.0], [BA_MEAN, BA_MEAN], [np.diag(BA_VARIANCE)] * 2, names=["b", "a"]),
        wsabi.LogDensity(of_names, WIDE),
        wsabi.LogDensity(of_columns, wsabi.Gaussian([0.0, 0.0], 4.0, names=["b", "a"])),
    ],
)
def test_parameters_are_matched_by_name(named: wsabi.Result, swapped: object) -> None:
    """By position the difference would be several nats; matched, it is round-off."""
    right = named.with_prior({"a": A, "b": B})
    other = pickle.loads(pickle.dumps(named.with_prior(swapped)))
    assert other.names == ("a", "b") == other.posterior.names == other.prior.names
    assert abs(other.log_z - right.log_z) < 1e-9
    np.testing.assert_allclose(other.posterior.mean, right.posterior.mean, rtol=1e-9)
    np.testing.assert_array_equal(other.points, named.points)


def test_uniform_columns_follow_the_names(named: wsabi.Result) -> None:
    box = wsabi.Uniform([-4.0, -1.0], [3.0, 2.5], names=["b", "a"])
    truth = math.log(WIDTH * 0.6 * 2.0 * math.pi / (7.0 * 3.5))  # the box cuts off nothing
    other = named.with_prior(box)
    assert abs(other.log_z - truth) < 4.0 * other.log_z_std < 1.0  # false alarm 6e-5


def test_a_prior_without_names_is_matched_by_position(named: wsabi.Result) -> None:
    right = named.with_prior({"a": A, "b": B})
    for unnamed in ([A, B], wsabi.Gaussian([0.5, 2.0], [0.8**2, 1.5**2])):
        other = named.with_prior(unnamed)
        assert other.names == ("a", "b")
        assert abs(other.log_z - right.log_z) < 1e-9
    assert named.with_prior({"b": B, "a": A}).posterior.expect(lambda p: p["a"]) == pytest.approx(
        right.posterior.mean[0]
    )


def test_other_names_are_refused(named: wsabi.Result) -> None:
    for other in ({"x": A, "y": B}, {"x1": A, "x0": B}, wsabi.Gaussian([0.0, 0.0], names=["a", "c"])):
        with pytest.raises(ValueError, match=r"the other prior has parameters .*; the result has a, b\."):
            named.with_prior(other)


def test_vector_parameters_are_matched_by_name_too() -> None:
    def log_l(p: dict[str, np.ndarray]) -> float:
        return float(-0.5 * np.sum((p["b"] - [0.5, -0.3]) ** 2) / 0.3**2 - 0.5 * (p["s"] - 1.0) ** 2)

    first = {"b": [stats.norm(0, 1), stats.norm(0, 2)], "s": stats.norm(0, 1)}
    result = wsabi.integrate(log_l, first, budget=90, rng=0)
    other = {"s": stats.norm(0.2, 1.1), "b": [stats.norm(0, 0.9), stats.norm(0, 1.5)]}
    in_order = {"b": other["b"], "s": other["s"]}
    assert result.with_prior(other).log_z == pytest.approx(result.with_prior(in_order).log_z, abs=1e-12)
    assert result.with_prior(other).names == result.names
    assert result.with_prior(other).posterior.expect(lambda p: float(p["b"][1])) == pytest.approx(-0.29, abs=0.1)
