"""A climb ends at the mode of ℓπ with its width, within its limit, and at an edge or from a bad start with no harm."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose

from wsabi.adaptive.search.ascent import Slope, climb
from wsabi.priors import Gaussian, GaussianMixture, Measure


class Recorder:
    """A slope of log ℓ, and the points it was called at."""

    def __init__(self, log_l: Callable[[np.ndarray], float], gradient: Callable[[np.ndarray], np.ndarray]) -> None:
        self.log_l, self.gradient = log_l, gradient
        self.points: list[bytes] = []

    def __call__(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        self.points.append(u.tobytes())
        log_l = self.log_l(u)
        return log_l, np.zeros_like(u) if log_l == -math.inf else self.gradient(u)


def bell(mean: np.ndarray, cov: np.ndarray) -> Recorder:
    """N(mean, cov), not normalised."""
    precision = np.linalg.inv(cov)
    return Recorder(lambda u: -0.5 * float((u - mean) @ precision @ (u - mean)), lambda u: -precision @ (u - mean))


def a_covariance(dim: int, rng: np.random.Generator) -> np.ndarray:
    root = rng.standard_normal((dim, dim))
    return np.asarray(root @ root.T / dim + 0.05 * np.eye(dim))


def assert_within_the_prior(cov: np.ndarray, measure: Measure) -> None:
    """No direction in which it is wider: the eigenvalues of the difference are not negative, but for round-off."""
    assert np.linalg.eigvalsh(measure.cov - cov).min() > -1e-9 * np.trace(measure.cov)


@pytest.mark.parametrize("dim", [1, 3, 12])
@pytest.mark.parametrize("width", [1.0, 0.02])
def test_the_posterior_of_a_gaussian_is_found_exactly(dim: int, width: float) -> None:
    """Gradients are linear there, so their differences and the Newton step are exact whatever the steps.

    1e-6 of an sd leaves room for the round-off of steps of 1e-3; without the Newton step the mean is off by up to a
    seventh of an sd, and BFGS's own curvature by a factor.
    """
    rng = np.random.default_rng(dim)
    correlation = a_covariance(dim, rng)
    scale = np.sqrt(np.diag(correlation))
    measure = Gaussian(np.zeros(dim), correlation / np.outer(scale, scale))
    cov, mean = width**2 * a_covariance(dim, rng), 0.8 * rng.standard_normal(dim)
    precision = np.linalg.inv(cov) + np.linalg.inv(measure.cov)
    exact_cov = np.linalg.inv(precision)
    exact_mean = exact_cov @ np.linalg.solve(cov, mean)
    slope = bell(mean, cov)
    summit = climb(slope, measure, measure.sample(1, rng)[0], 15 * dim + 10)
    assert summit is not None
    root = np.linalg.cholesky(precision)
    assert_allclose(root.T @ (summit.mean - exact_mean), 0.0, atol=1e-6)
    assert_allclose(root.T @ summit.cov @ root, np.eye(dim), atol=1e-6)
    assert len(slope.points) == len(set(slope.points)) <= 5 * dim + 10


def test_a_skewed_posterior_has_its_mode_and_nearly_its_width() -> None:
    """log ℓ = n(y·u − Σ e^u_d): mode and curvature by Newton's method. A thousandth of an sd and a tenth.

    The curvature is a difference over one sd, 0.03 here, in which e^u changes by 3 %.
    """
    y = np.array([0.5, 1.0, 2.0, 4.0])
    slope = Recorder(lambda u: 1000.0 * float(y @ u - np.exp(u).sum()), lambda u: 1000.0 * (y - np.exp(u)))
    summit = climb(slope, Gaussian(np.zeros(4)), np.full(4, -1.0), 70)
    assert summit is not None
    mode = np.log(y)
    for _ in range(20):
        mode -= (1000.0 * (np.exp(mode) - y) + mode) / (1000.0 * np.exp(mode) + 1.0)
    sds = 1.0 / np.sqrt(1000.0 * np.exp(mode) + 1.0)
    assert_allclose((summit.mean - mode) / sds, 0.0, atol=1e-3)
    assert_allclose(summit.cov / np.outer(sds, sds), np.eye(4), atol=0.1)


def test_one_short_step_is_no_standstill() -> None:
    """A regression of 1,000 counts, from a start where BFGS makes one step of 0.002 nats two sds below the mode."""
    rng = np.random.default_rng(1)
    design = np.column_stack([np.ones(1000), rng.standard_normal((1000, 7))])
    design[:, 2] = 0.9 * design[:, 1] + 0.44 * design[:, 2]
    counts = rng.poisson(np.exp(design @ (0.4 * rng.standard_normal(8))))
    slope = Recorder(
        lambda u: float(counts @ (design @ u) - np.exp(design @ u).sum()),
        lambda u: design.T @ (counts - np.exp(design @ u)),
    )
    for start in (np.zeros(8), 0.3 * np.ones(8), *rng.standard_normal((8, 8))):
        summit = climb(slope, Gaussian(np.zeros(8)), start, 130)
        assert summit is not None
        steepness = slope.gradient(summit.mean) - summit.mean
        assert steepness @ summit.cov @ steepness < 0.1**2  # sds from the mode, squared


def test_axes_that_the_climb_did_not_follow_are_measured_with_short_steps() -> None:
    """From the diagonal BFGS follows the diagonal alone. A prior sd along the others, where e^u has grown threefold,
    would make the widths there too small by a third.
    """
    slope = Recorder(lambda u: 1e4 * float(np.sum(u - np.exp(u))), lambda u: 1e4 * (1.0 - np.exp(u)))
    summit = climb(slope, Gaussian(np.zeros(4)), np.full(4, -0.5), 70)
    assert summit is not None
    assert_allclose(1e4 * summit.cov, np.eye(4), atol=0.05)


@pytest.mark.parametrize("limit", [1, 2, 5, 11, 60])
def test_the_limit_is_kept_and_too_small_a_one_is_no_summit(limit: int) -> None:
    dim = 10
    slope = bell(np.linspace(-1.0, 1.0, dim), 0.01 * np.diag(np.linspace(0.1, 1.0, dim)))
    summit = climb(slope, Gaussian(np.zeros(dim)), np.zeros(dim), limit)
    assert len(slope.points) <= limit
    assert (summit is None) == (limit < 60)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_a_mode_near_an_edge_is_reached(dim: int) -> None:
    """The first steps overshoot into ℓ = 0 and turn back; the mode, half an sd before the edge, is where it is."""
    mean = np.ones(dim)
    inside = bell(mean, 0.04 * np.eye(dim))
    slope = Recorder(lambda u: inside.log_l(u) if u[0] < 1.1 else -math.inf, inside.gradient)
    summit = climb(slope, Gaussian(np.zeros(dim)), np.full(dim, -2.0), 15 * dim + 10)
    assert summit is not None
    shrunk = 0.04 / 1.04
    assert_allclose(summit.mean, mean / 1.04, atol=1e-6 * math.sqrt(shrunk))
    assert_allclose(summit.cov, shrunk * np.eye(dim), atol=1e-6 * shrunk)


@pytest.mark.parametrize("dim", [2, 5])
def test_a_mode_beyond_an_edge_ends_the_climb_at_the_edge(dim: int) -> None:
    """ℓ = 0 half of the way to the mode. The width is that of ℓπ on this side, and the mean inside.

    The line search fails there and is followed by another, which begins with the same points.
    """
    inside = bell(np.ones(dim), 0.04 * np.eye(dim))
    slope = Recorder(lambda u: inside.log_l(u) if u[0] < 0.3 else -math.inf, inside.gradient)
    summit = climb(slope, Gaussian(np.zeros(dim)), -np.ones(dim), 15 * dim + 10)
    assert summit is not None
    assert 0.2 < summit.mean[0] < 0.3
    assert len(slope.points) == len(set(slope.points))
    assert_allclose(summit.cov, 0.04 / 1.04 * np.eye(dim), atol=1e-6)


def test_an_island_in_zero_likelihood_does_no_harm() -> None:
    """ℓ > 0 in a ball much smaller than the prior, and flat: nothing can be measured, and nothing breaks."""
    slope = Recorder(lambda u: 0.0 if np.linalg.norm(u - 1.0) < 0.01 else -math.inf, np.zeros_like)
    measure = Gaussian(np.zeros(3))
    summit = climb(slope, measure, np.ones(3), 55)
    assert summit is not None
    assert np.linalg.norm(summit.mean - 1.0) < 0.02
    assert_within_the_prior(summit.cov, measure)


def test_a_climb_from_between_two_modes_ends_in_one() -> None:
    """log ℓπ is convex at the start, where a Newton step would go down to the saddle."""

    def log_l(u: np.ndarray) -> float:
        left, right = (-0.5 * float(np.sum((u - side) ** 2)) / 0.01 for side in (-1.0, 1.0))
        return float(np.logaddexp(left, right))

    def gradient(u: np.ndarray) -> np.ndarray:
        return np.asarray((np.tanh(u.sum() / 0.01) - u) / 0.01)  # ±1 in every coordinate

    measure = Gaussian(np.zeros(2))
    summit = climb(Recorder(log_l, gradient), measure, np.array([0.05, 0.02]), 40)
    assert summit is not None
    assert_allclose(summit.mean, 1.0 / 1.01, atol=1e-5)
    assert_allclose(summit.cov, 0.01 / 1.01 * np.eye(2), atol=1e-5)


@pytest.mark.parametrize(
    "measure",
    [
        Gaussian([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]]),  # its long axis is 1.4 wide
        Gaussian(np.zeros(3)),
        GaussianMixture([0.5, 0.5], [[-0.8, 0.0], [0.8, 0.0]], [0.36 * np.eye(2), 0.36 * np.eye(2)]),
    ],
    ids=["correlated", "independent", "mixture"],
)
def test_a_flat_likelihood_leaves_the_prior(measure: Measure) -> None:
    summit = climb(Recorder(lambda u: 3.0, np.zeros_like), measure, 0.5 * np.ones(measure.dim), 60)
    assert summit is not None
    assert_within_the_prior(summit.cov, measure)
    if isinstance(measure, Gaussian):
        assert_allclose(summit.mean, 0.0, atol=1e-6)
        assert_allclose(summit.cov, measure.cov, atol=1e-6)


def test_a_likelihood_that_curves_upwards_is_no_wider_than_the_prior() -> None:
    """log ℓ = 0.45 u² leaves a curvature of 0.1, a width of 3 prior sds, and ends at the prior's own."""
    measure = Gaussian(np.zeros(2))
    slope: Slope = Recorder(lambda u: 0.45 * float(u @ u), lambda u: 0.9 * u)
    summit = climb(slope, measure, np.ones(2), 60)
    assert summit is not None
    assert_allclose(summit.cov, np.eye(2), atol=1e-6)


def test_an_error_of_the_slope_is_passed_on() -> None:
    def broken(u: np.ndarray) -> tuple[float, np.ndarray]:
        raise RuntimeError("no licence for the simulator")

    with pytest.raises(RuntimeError, match="no licence"):
        climb(broken, Gaussian([0.0]), np.zeros(1), 10)
