"""The explorer's coordinates are exact, and its q walks from the prior to the posterior, whatever lies between."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from wsabi._linalg import NumericalError
from wsabi.design import spread_design
from wsabi.engine.explorer import TAIL, WIDER, Explorer, Frame, _log_student, divergence
from wsabi.measures import Gaussian, Measure
from wsabi.problems import correlated_gaussian, infeasible_half, narrow_gaussian

Function = Callable[[np.ndarray], np.ndarray]


def a_frame(dim: int, seed: int = 0) -> Frame:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((dim, dim))
    return Frame(rng.standard_normal(dim), np.linalg.cholesky(A @ A.T + 0.1 * np.eye(dim)))


# -- coordinates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_whiten_and_colour_undo_each_other(dim: int) -> None:
    frame, X = a_frame(dim), np.random.default_rng(1).standard_normal((7, dim))
    assert_allclose(frame.colour(frame.whiten(X)), X, atol=1e-12)
    assert_allclose(frame.whiten(frame.colour(X)), X, atol=1e-10)
    assert_allclose(frame.colour(X)[3], frame.mean + frame.factor @ X[3], atol=1e-14)
    assert frame.whiten(np.empty((0, dim))).shape == (0, dim)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_log_det_is_that_of_the_factor(dim: int) -> None:
    frame = a_frame(dim)
    assert_allclose(frame.log_det, np.linalg.slogdet(frame.factor)[1], atol=1e-12)
    assert_allclose(frame.scaled(3.0).log_det, frame.log_det + 0.5 * dim * math.log(3.0), atol=1e-12)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_move_is_the_pushforward_of_the_inner_gaussian(dim: int) -> None:
    """y = shift + factor·v has, in the outer coordinates, mean m + F·shift and covariance (F·factor)(F·factor)ᵀ."""
    frame, inner = a_frame(dim), a_frame(dim, seed=5)
    moved = frame.move(inner.mean, inner.factor)
    mixed = frame.factor @ inner.factor
    assert_allclose(moved.mean, frame.colour(inner.mean[None, :])[0], atol=1e-12)
    assert_allclose(moved.factor @ moved.factor.T, mixed @ mixed.T, atol=1e-10)
    assert_allclose(np.triu(moved.factor, 1), 0.0)  # whiten solves with the lower triangle only
    assert_allclose(moved.log_det, frame.log_det + inner.log_det, atol=1e-10)
    same = frame.move(np.zeros(dim), np.eye(dim))
    assert_allclose(same.factor, frame.factor, atol=1e-10)


@pytest.mark.parametrize("dim", [1, 3])
def test_scaled_keeps_the_centre_and_scales_variances(dim: int) -> None:
    frame = a_frame(dim)
    wider = frame.scaled(2.5)
    assert_allclose(wider.mean, frame.mean)
    assert_allclose(wider.factor @ wider.factor.T, 2.5 * frame.factor @ frame.factor.T, rtol=1e-12)


def test_divergence_between_gaussians() -> None:
    """In one dimension ½(s² + m² − 1) − log s; in more it is what 200 000 draws of log N(m, S)/N(0, I) average to."""
    assert_allclose(
        divergence(np.array([0.7]), np.array([[0.3]])), 0.5 * (0.09 + 0.49 - 1.0) - math.log(0.3), rtol=1e-12
    )
    assert divergence(np.zeros(4), np.eye(4)) == 0.0
    frame = a_frame(3, seed=2)
    inner, standard = Gaussian(frame.mean, frame.factor @ frame.factor.T), Gaussian(np.zeros(3))
    X = inner.sample(200_000, 0)
    terms = inner.log_pdf(X) - standard.log_pdf(X)
    error = terms.std() / math.sqrt(len(X))
    assert abs(divergence(frame.mean, frame.factor) - terms.mean()) < stats.norm.isf(5e-7) * error  # false alarm 1e-6


@pytest.mark.parametrize("dim", [1, 3])
def test_density_of_the_matching_proposal(dim: int) -> None:
    noise = np.random.default_rng(0).standard_normal((6, dim))
    expected = stats.multivariate_t(np.zeros(dim), WIDER * np.eye(dim), df=TAIL).logpdf(noise)
    assert_allclose(_log_student(noise), expected, rtol=1e-12)


# -- the walk ---------------------------------------------------------------------------------------------------------


def explore(measure: Measure, log_l: Function, n: int, seed: int = 0) -> tuple[Explorer, np.ndarray, list[float]]:
    """An explorer after n evaluations, its points and its temperatures: design, then propose and match in turn."""
    rng = np.random.default_rng(seed)
    explorer = Explorer(measure, rng)
    X = spread_design(measure, 2 * measure.dim + 2, rng)
    temperatures = []
    while len(X) < n:
        explorer.match(X, log_l(X))
        temperatures.append(explorer.temperature)
        X = np.vstack([X, explorer.propose()])
    explorer.match(X, log_l(X))
    return explorer, X, [*temperatures, explorer.temperature]


def assert_is_posterior(explorer: Explorer, mean: np.ndarray, cov: np.ndarray, nats: float) -> None:
    """KL(posterior ‖ q) below ``nats``: mean and covariance at once, in the posterior's own units."""
    shift = explorer.frame.whiten(mean[None, :])[0]
    factor = np.linalg.solve(explorer.frame.factor, np.linalg.cholesky(cov))
    assert divergence(shift, np.linalg.cholesky(factor @ factor.T)) < nats


@pytest.mark.parametrize("seed", [0, 1])
def test_a_correlated_gaussian_in_six_dimensions(seed: int) -> None:
    """q has the posterior's mean, covariance and mass, from 110 evaluations, where log ℓ spans over a thousand nats.

    600 importance draws leave about 5 % in each of 27 moments, a tenth of a nat together, and 0.05 in the mass.
    """
    problem = correlated_gaussian(6)
    explorer, _, temperatures = explore(problem.prior, problem.log_likelihood_vectorized, 110, seed)
    cov_l = 0.15**2 * (0.1 * np.eye(6) + 0.9)
    cov = np.linalg.inv(np.linalg.inv(cov_l) + np.eye(6))
    assert_is_posterior(explorer, cov @ np.linalg.solve(cov_l, np.full(6, 0.5)), cov, 0.3)
    assert abs(explorer.log_z - problem.log_z) < 0.2
    assert temperatures[0] > 10.0
    assert temperatures[-1] == 1.0
    assert explorer.doubt < 0.2
    assert explorer.drift < 0.3


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_a_narrow_gaussian_under_a_wide_prior(dim: int) -> None:
    problem = narrow_gaussian(dim)
    explorer, _, temperatures = explore(problem.prior, problem.log_likelihood_vectorized, 20 * dim + 20)
    variance = 1.0 / (900.0 + 1.0)
    assert temperatures[-1] == 1.0
    assert_is_posterior(explorer, np.full(dim, 900.0 * variance), variance * np.eye(dim), 0.3)
    assert abs(explorer.log_z - problem.log_z) < 0.2


def test_a_flat_likelihood_leaves_q_at_the_prior() -> None:
    measure = Gaussian([0.0, 0.0], [[1.0, 0.4], [0.4, 1.0]])
    explorer, _, _ = explore(measure, lambda X: np.full(len(X), -7.0), 25)
    assert explorer.temperature == 1.0
    assert_is_posterior(explorer, measure.mean, measure.cov, 0.1)
    assert abs(explorer.log_z + 7.0) < 0.1


def test_points_of_zero_likelihood_are_left_alone() -> None:
    """Half of the plane is infeasible: few points go there once the edge is known, and q moves into the other half."""
    problem = infeasible_half()
    explorer, X, _ = explore(problem.prior, problem.log_likelihood_vectorized, 60)
    infeasible = np.isneginf(problem.log_likelihood_vectorized(X))
    assert infeasible[:6].any()
    # Draws of q alone would put half of the points there; blind to the edge, the last thirty would have some fifteen.
    assert infeasible[30:].sum() <= 10
    assert abs(explorer.log_z - problem.log_z) < 0.5


def test_nearest_datum_rules_out_infeasible_places() -> None:
    measure = Gaussian([0.0, 0.0])
    X = np.random.default_rng(0).standard_normal((40, 2))
    log_l = np.where(X[:, 0] > 0.0, -0.5 * np.square(X).sum(axis=1), -np.inf)
    explorer = Explorer(measure, np.random.default_rng(1))
    explorer.fit(X, log_l, learn=True)
    blocked = explorer._is_blocked(explorer.frame.whiten(np.array([[1.0, 0.0], [-1.0, 0.0]])))
    assert blocked.tolist() == [False, True]
    for _ in range(20):
        x = explorer.propose()
        nearest = np.argmin(np.square(X - x).sum(axis=1))
        assert np.isfinite(log_l[nearest])


def test_the_walk_does_not_see_a_constant_in_log_l() -> None:
    """log ℓ + 1024: a power of two, so that only the last bits of the sums differ."""
    problem = narrow_gaussian(2)
    one, X, _ = explore(problem.prior, problem.log_likelihood_vectorized, 30)
    other, Y, _ = explore(problem.prior, lambda P: problem.log_likelihood_vectorized(P) + 1024.0, 30)
    assert_allclose(X, Y, rtol=1e-6)
    assert_allclose(other.log_z - 1024.0, one.log_z, atol=1e-6)


def test_log_likelihood_is_bounded_and_cautious() -> None:
    problem = narrow_gaussian(2)
    explorer, X, _ = explore(problem.prior, problem.log_likelihood_vectorized, 40)
    truth = problem.log_likelihood_vectorized(X[-10:])
    mean, lower = explorer.log_likelihood(X[-10:])
    assert_allclose(mean, truth, atol=0.05)
    assert np.all(lower <= mean)
    far = explorer.frame.colour(np.array([[40.0, 0.0], [0.0, -40.0]]))
    assert np.all(explorer.log_likelihood(far)[0] <= explorer.top + 3.0)


def test_an_explorer_without_data_says_so() -> None:
    explorer = Explorer(Gaussian([0.0]), np.random.default_rng(0))
    with pytest.raises(NumericalError, match="no data yet"):
        explorer.propose()
