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
