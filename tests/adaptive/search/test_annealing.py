"""How q walks from the prior to the posterior, by proposals and matches in turn, whatever lies between."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.differentiate import hessian
from scipy.optimize import minimize

import wsabi
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.search.matching import divergence, matched
from wsabi.adaptive.search.proposing import proposed
from wsabi.adaptive.search.search import Search
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.tuning import tuned
from wsabi.priors import Gaussian, Measure
from wsabi.problems import correlated_gaussian, infeasible_half, narrow_gaussian
from wsabi.quadrature.design import spread_design

Function = Callable[[np.ndarray], np.ndarray]


@dataclass
class Walk:
    """An explorer after so many evaluations, its points X (N, D), and its temperature and log Z at every match."""

    explorer: Explorer
    X: np.ndarray
    temperatures: list[float]
    log_zs: list[float]


def walk(measure: Measure, log_l: Function, n: int, seed: int = 0) -> Walk:
    """A design, then proposals and matches in turn, until there are n evaluations."""
    rng = np.random.default_rng(seed)
    explorer = Explorer.from_prior(measure)
    X = spread_design(measure, 2 * measure.dim + 2, rng)
    temperatures, log_zs = [], []
    while True:
        explorer = matched(explorer, X, log_l(X), rng)
        temperatures.append(explorer.temperature)
        log_zs.append(explorer.log_z)
        if len(X) == n:
            return Walk(explorer, X, temperatures, log_zs)
        X = np.vstack([X, proposed(explorer, np.empty((0, measure.dim)), rng)])


@cache
def narrow_walk(dim: int) -> Walk:
    """To a Gaussian a thirtieth of the prior wide, with 20D + 20 evaluations."""
    problem = narrow_gaussian(dim)
    return walk(problem.prior, problem.log_likelihood_vectorized, 20 * dim + 20)


def assert_is_posterior(explorer: Explorer, mean: np.ndarray, cov: np.ndarray, nats: float) -> None:
    """KL(posterior ‖ q) below ``nats``: mean and covariance at once, in the posterior's own units."""
    shift = explorer.frame.whiten(mean[None, :])[0]
    whiten = np.linalg.inv(explorer.frame.axes * explorer.frame.widths)
    assert divergence(shift, np.linalg.cholesky(whiten @ cov @ whiten.T)) < nats


def test_a_correlated_gaussian_in_six_dimensions() -> None:
    """q has the posterior's mean, covariance and mass, from 110 evaluations, where log ℓ spans over a thousand nats.

    600 importance draws leave about 5 % in each of 27 moments, a tenth of a nat together, and 0.05 in the mass.
    """
    problem = correlated_gaussian(6)
    found = walk(problem.prior, problem.log_likelihood_vectorized, 110)
    cov_l = 0.15**2 * (0.1 * np.eye(6) + 0.9)
    cov = np.linalg.inv(np.linalg.inv(cov_l) + np.eye(6))
    assert_is_posterior(found.explorer, cov @ np.linalg.solve(cov_l, np.full(6, 0.5)), cov, 0.3)
    assert abs(found.explorer.log_z - problem.log_z) < 0.2
    assert found.temperatures[0] > 10.0
    assert found.temperatures[-1] == 1.0
    assert found.explorer.uncertainty < 0.2
    assert found.explorer.drift < 0.3


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_a_narrow_gaussian_under_a_wide_prior(dim: int) -> None:
    problem, found = narrow_gaussian(dim), narrow_walk(dim)
    variance = 1.0 / (900.0 + 1.0)
    assert found.temperatures[-1] == 1.0
    assert_is_posterior(found.explorer, np.full(dim, 900.0 * variance), variance * np.eye(dim), 0.3)
    assert abs(found.explorer.log_z - problem.log_z) < 0.2


def test_log_likelihood_is_bounded_and_right_at_the_data() -> None:
    explorer, X = narrow_walk(2).explorer, narrow_walk(2).X
    truth = narrow_gaussian(2).log_likelihood_vectorized(X[-10:])
    mean, sd = explorer.log_likelihood(X[-10:])
    assert_allclose(mean, truth, atol=0.05)
    assert np.all((sd > 0.0) & (sd < 0.05))
    far = explorer.frame.colour(np.array([[40.0, 0.0], [0.0, -40.0]]))
    assert np.all(explorer.log_likelihood(far)[0] <= explorer.top)
    assert np.all(explorer.log_likelihood(far)[1] > sd.max())


def test_the_walk_does_not_see_a_constant_in_log_l() -> None:
    """log ℓ + 1024: a power of two, so that only the last bits of the sums differ."""
    problem, one = narrow_gaussian(2), narrow_walk(2)
    other = walk(problem.prior, lambda P: problem.log_likelihood_vectorized(P) + 1024.0, 30)
    assert_allclose(one.X[:30], other.X, rtol=1e-6)
    at_one = [t == 1.0 for t in other.temperatures]
    assert any(at_one)
    log_zs = np.array(other.log_zs)[at_one] - 1024.0  # while it is hot, log Z is that of ℓ^(1/t)
    assert_allclose(log_zs, np.array(one.log_zs[: len(other.log_zs)])[at_one], atol=1e-6)


def test_a_flat_likelihood_leaves_q_at_the_prior() -> None:
    measure = Gaussian([0.0, 0.0], [[1.0, 0.4], [0.4, 1.0]])
    explorer = walk(measure, lambda X: np.full(len(X), -7.0), 25).explorer
    assert explorer.temperature == 1.0
    assert_is_posterior(explorer, measure.mean, measure.cov, 0.1)
    assert abs(explorer.log_z + 7.0) < 0.1


def test_points_of_zero_likelihood_are_sought_at_the_edge_only() -> None:
    """Half of the plane is infeasible: once that is known only the edge is in doubt, and q moves into the other half.

    Blind to the edge, half of the last thirty points would lie anywhere in the wrong half, 0.7 deep in the middle.
    """
    problem = infeasible_half()
    found = walk(problem.prior, problem.log_likelihood_vectorized, 60)
    infeasible = np.isneginf(problem.log_likelihood_vectorized(found.X))
    assert infeasible[:6].any()
    late = found.X[30:][infeasible[30:]]
    assert np.median(np.abs(late[:, 0])) < 0.1
    assert np.max(np.abs(late[:, 0])) < 0.3
    assert abs(found.explorer.log_z - problem.log_z) < 0.25


def narrowing_valley(dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and observations of a linear regression whose noise is unknown too."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((3 * dim, dim - 1))
    return A, A @ rng.standard_normal(dim - 1) + 0.2 * rng.standard_normal(3 * dim)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_valley_that_narrows_on_the_way_down_is_followed_to_its_end(seed: int) -> None:
    """Ten coefficients and the noise of a regression: q must shrink by tens in width, and not away from its data.

    The posterior's mode given the noise is the ridge estimate; the mean of q lies within a sd of it in every direction
    at least on average.
    """
    dim, scale = 10, 2.0
    A, y = narrowing_valley(dim, seed)
    measure = Gaussian(np.zeros(dim))
    rng = np.random.default_rng(seed)
    search = Search.over_prior(measure, 0, rng, first=True)
    X, log_l = np.empty((0, dim)), np.empty(0)

    def value(u: np.ndarray) -> float:
        log_sd = u[-1] - 0.5
        return float(-0.5 * np.square((y - scale * A @ u[:-1]) * math.exp(-log_sd)).sum() - len(y) * log_sd)

    while not search.explorer.is_cold and len(X) < 450:
        search, u = search.handed_out(X)
        if u is None:
            u = search.next_point(np.empty((0, dim)), rng)
        X, log_l = np.concatenate([X, u[None]]), np.append(log_l, value(u))
        if not search.design and len(X) >= search.n_handed:
            search = search.learnt(X, log_l, len(X), float(np.max(log_l + measure.log_pdf(X))), rng)
    assert search.explorer.is_cold
    noise = math.exp(search.explorer.frame.mean[-1] - 0.5)
    precision = np.square(scale / noise) * A.T @ A + np.eye(dim - 1)
    ridge = np.linalg.solve(precision, scale / noise**2 * A.T @ y)
    away = search.explorer.frame.mean[:-1] - ridge
    assert away @ precision @ away < dim


def robust_regression(dim: int) -> Function:
    """log ℓ (N,) of U (N, D): D − 1 coefficients and the noise of observations with heavy tails, 5D of them."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((5 * dim, dim - 1))
    y = A @ rng.standard_normal(dim - 1) + 0.3 * rng.standard_t(3, 5 * dim)

    def log_l(U: np.ndarray) -> np.ndarray:
        log_sd = U[:, -1] - 0.5
        t = (y - 2.0 * U[:, :-1] @ A.T) * np.exp(-log_sd)[:, None]
        return np.asarray(-2.5 * np.log1p(np.square(t) / 4.0).sum(axis=1) - len(y) * log_sd)

    return log_l


def laplace_frame(log_l: Function, dim: int) -> Frame:
    """At the mode of ℓ under N(0, I), with the inverse curvature there.

    That of BFGS itself may be off by a factor of nine in one direction: round-off decides.
    """

    def energy(u: np.ndarray) -> np.ndarray:  # (D, ...) to (...)
        U = np.moveaxis(u, 0, -1)
        return np.asarray(0.5 * np.square(U).sum(axis=-1) - log_l(U.reshape(-1, dim)).reshape(U.shape[:-1]))

    mode = minimize(energy, np.zeros(dim)).x
    return Frame.of(mode, np.linalg.inv(hessian(energy, mode).ddf))


@pytest.mark.sensitive
def test_walls_keep_a_surrogate_of_many_data_from_rising_again() -> None:
    """Four hundred draws of q, half of them far out, and a surrogate of a hundred; errors at draws twice as wide as q.

    From the hundred best of them alone it would be nearly three times as wrong. Logs of the ratios of errors, of 100
    seeds: −1.00 ± 0.13 for all, −0.88 ± 0.26 for the largest. The mean of four is above one of these limits for 2e-6
    of all choices of seeds.
    """
    dim, log_l = 8, robust_regression(8)
    explorer = replace(Explorer.from_prior(Gaussian(np.zeros(dim))), frame=laplace_frame(log_l, dim))
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = explorer.frame.colour(rng.standard_normal((400, dim)) * np.tile([1.0, 2.5], 200)[:, None])
        P = explorer.frame.colour(2.0 * rng.standard_normal((500, dim)))
        best = np.argsort(log_l(X) + explorer.measure.log_pdf(X))[-100:]
        with tuned("search", max_data=100):
            errors = [explorer.fitted(Z, log_l(Z), learn=True).mean_log_likelihood(P) - log_l(P) for Z in (X, X[best])]
        ratios.append([np.linalg.norm(errors[0]) / np.linalg.norm(errors[1]), np.max(errors[0]) / np.max(errors[1])])
    assert np.all(np.mean(np.log(ratios), axis=0) < np.log([0.5, 0.75]))


def test_a_surrogate_of_some_of_the_data_still_agrees_with_check_points() -> None:
    """Robust regression in 8-D, with 300 evaluations and a surrogate of at most 110 of them.

    What is left, a fifth of a nat and more claimed, is what so few evaluations can tell of eight dimensions.
    """
    prior = wsabi.Gaussian(np.zeros(8))
    with tuned("search", max_data=110):
        result = wsabi.integrate(robust_regression(8), prior, budget=300, rng=0, tol=0, vectorized=True)
    assert result.certificate is not None
    assert result.certificate.uncertainty < 0.6
    assert abs(result.certificate.difference) < 3.0
    assert result.certificate.effective_sample_size > 0.2 * result.certificate.n_points
