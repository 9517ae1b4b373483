"""The explorer's coordinates are exact, and its q walks from the prior to the posterior, whatever lies between."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from wsabi.adaptive.search import anneal as explorer_module
from wsabi.adaptive.search.anneal import (
    AWAY,
    CAUTION,
    RESOLUTION,
    SPAN,
    TAIL,
    WIDER,
    Explorer,
    _log_student,
    divergence,
)
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.surrogate.interactions import AxisKernel
from wsabi.adaptive.surrogate.model import LogSurrogate
from wsabi.adaptive.surrogate.students import truncated
from wsabi.adaptive.surrogate.theta import Theta
from wsabi.adaptive.tuning import tuned
from wsabi.errors import NumericalError
from wsabi.priors import Gaussian, Measure
from wsabi.problems import correlated_gaussian, infeasible_half, narrow_gaussian
from wsabi.quadrature.design import spread_design

Function = Callable[[np.ndarray], np.ndarray]
DIMS = pytest.mark.parametrize("dim", [1, 2, 5])


def a_gaussian(dim: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A mean (D,) and a full covariance (D, D)."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((dim, dim))
    return rng.standard_normal(dim), A @ A.T + 0.1 * np.eye(dim)


def a_frame(dim: int, seed: int = 0) -> Frame:
    return Frame.of(*a_gaussian(dim, seed))


def jacobian(frame: Frame) -> np.ndarray:
    """∂u/∂y (D, D), by colouring the unit vectors."""
    return (frame.colour(np.eye(len(frame.mean))) - frame.mean).T


# -- coordinates ------------------------------------------------------------------------------------------------------


@DIMS
def test_a_frame_is_that_of_its_covariance(dim: int) -> None:
    """FFᵀ = cov for F = ∂u/∂y, on orthonormal axes; whitening by it makes the covariance I, to round-off."""
    mean, cov = a_gaussian(dim)
    frame = Frame.of(mean, cov)
    F = jacobian(frame)
    assert_allclose(frame.cov, cov, atol=1e-10)
    assert_allclose(F @ F.T, cov, atol=1e-10)
    assert_allclose(frame.axes.T @ frame.axes, np.eye(dim), atol=1e-10)
    whiten = np.linalg.inv(F)
    assert_allclose(whiten @ cov @ whiten.T, np.eye(dim), atol=1e-10)
    assert_allclose(frame.log_det, 0.5 * np.linalg.slogdet(cov)[1], atol=1e-10)


@DIMS
def test_whiten_and_colour_are_dense_linear_algebra_and_undo_each_other(dim: int) -> None:
    frame, X = a_frame(dim), np.random.default_rng(1).standard_normal((7, dim))
    F = frame.axes @ np.diag(frame.widths)
    assert_allclose(frame.whiten(X), np.linalg.solve(F, (X - frame.mean).T).T, atol=1e-10)
    assert_allclose(frame.colour(X), frame.mean + X @ F.T, atol=1e-10)
    assert_allclose(frame.colour(frame.whiten(X)), X, atol=1e-10)
    assert_allclose(frame.whiten(frame.colour(X)), X, atol=1e-10)
    assert frame.whiten(np.empty((0, dim))).shape == (0, dim)


@DIMS
def test_log_density_is_that_of_the_gaussian(dim: int) -> None:
    mean, cov = a_gaussian(dim)
    X = 3.0 * np.random.default_rng(1).standard_normal((7, dim))
    expected = np.atleast_1d(stats.multivariate_normal(mean, cov).logpdf(X))
    assert_allclose(Frame.of(mean, cov).log_density(X), expected, rtol=1e-10, atol=1e-10)


@DIMS
def test_move_is_the_pushforward_of_the_inner_gaussian(dim: int) -> None:
    """y ~ N(s, S) has, in the outer coordinates, mean m + Fs and covariance FSFᵀ."""
    frame, (shift, cov) = a_frame(dim), a_gaussian(dim, seed=5)
    F = jacobian(frame)
    moved = frame.move(shift, cov)
    assert_allclose(moved.mean, frame.mean + F @ shift, atol=1e-10)
    assert_allclose(moved.cov, F @ cov @ F.T, atol=1e-10)
    assert_allclose(moved.log_det, frame.log_det + 0.5 * np.linalg.slogdet(cov)[1], atol=1e-10)
    same = frame.move(np.zeros(dim), np.eye(dim))
    assert_allclose(same.mean, frame.mean, atol=1e-10)
    assert_allclose(same.cov, frame.cov, atol=1e-10)


@DIMS
def test_scaled_keeps_the_centre_and_scales_variances(dim: int) -> None:
    frame = a_frame(dim)
    wider = frame.scaled(2.5)
    assert_array_equal(wider.mean, frame.mean)
    assert_allclose(wider.cov, 2.5 * frame.cov, rtol=1e-10, atol=1e-10)
    assert_allclose(wider.log_det, frame.log_det + 0.5 * dim * math.log(2.5), atol=1e-10)


@DIMS
def test_lengths_in_another_frame_are_the_diagonal_of_the_metric(dim: int) -> None:
    """G = J⁻ᵀ diag(l⁻²) J⁻¹ in base coordinates, J'ᵀGJ' in the other's: 1/l'² is its diagonal, one step at a time."""
    one, other = a_frame(dim), a_frame(dim, seed=3)
    log_lengths = np.random.default_rng(2).standard_normal(dim)
    found = one.lengths_in(other, log_lengths)
    for axis, log_length in enumerate(found):
        step = other.colour(np.eye(dim)[[axis]]) - other.mean  # one unit along y'
        in_one = one.whiten(one.mean + step)[0]
        assert_allclose(math.exp(-2.0 * log_length), np.square(in_one / np.exp(log_lengths)).sum(), rtol=1e-10)
    assert_allclose(one.lengths_in(one, log_lengths), log_lengths, atol=1e-10)
    # In coordinates twice as wide, a length is half as many units.
    assert_allclose(one.lengths_in(one.scaled(4.0), log_lengths), log_lengths - math.log(2.0), atol=1e-10)


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_interactions_are_the_same_in_another_frame(dim: int) -> None:
    """Of the parameters themselves: p(x, x') with θ carried over to another q is p(x, x'), to round-off."""
    one, other = a_frame(dim, 1), a_frame(dim, 2)
    rng = np.random.default_rng(3)
    sides = 0.4 * rng.standard_normal((2, 4, dim)) + np.array([[0.3], [0.0], [0.2], [0.9]])
    theta = Theta(np.zeros(dim), sides, np.zeros(4))
    X = one.colour(rng.standard_normal((9, dim)))
    kernels = [
        [AxisKernel.of(frame.whiten(X) @ frame.turn.T, sides).p for sides in carried.sides]
        for frame, carried in ((one, theta), (other, one.theta_in(other, theta)))
    ]
    assert_allclose(kernels[1], kernels[0], rtol=1e-8)


def test_theta_is_learnt_as_the_data_grow() -> None:
    """By a tenth, or when they have become others; not at every match."""
    rng = np.random.default_rng(0)
    explorer = Explorer(Gaussian(np.zeros(2)), rng)
    X = 0.3 * rng.standard_normal((67, 2))
    log_l = -0.5 * np.square(X / 0.3).sum(axis=1)
    learnt = []
    for n in (60, 61, 64, 66, 67):
        explorer.match(X[:n], log_l[:n])
        learnt.append(explorer._learnt_n)
    assert learnt == [60, 60, 60, 66, 66]
    explorer.match(X[:40], log_l[:40])  # fewer: what it has learnt was of others
    assert explorer._learnt_n == 40


@pytest.mark.parametrize("cov", [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]], [[-1.0, 0.0], [0.0, 1.0]]])
def test_a_covariance_that_is_not_positive_definite_is_an_error(cov: list[list[float]]) -> None:
    with pytest.raises(NumericalError, match="cov must be positive definite; its least eigenvalue is"):
        Frame.of(np.zeros(2), np.array(cov))


def test_divergence_between_gaussians() -> None:
    """In one dimension ½(s² + m² − 1) − log s; in more it is what 200 000 draws of log N(m, S)/N(0, I) average to."""
    assert_allclose(
        divergence(np.array([0.7]), np.array([[0.3]])), 0.5 * (0.09 + 0.49 - 1.0) - math.log(0.3), rtol=1e-12
    )
    assert divergence(np.zeros(4), np.eye(4)) == 0.0
    mean, cov = a_gaussian(3, seed=2)
    inner, standard = Gaussian(mean, cov), Gaussian(np.zeros(3))
    X = inner.sample(200_000, 0)
    terms = inner.log_pdf(X) - standard.log_pdf(X)
    error = terms.std() / math.sqrt(len(X))
    found = divergence(mean, np.linalg.cholesky(cov))
    assert abs(found - terms.mean()) < stats.norm.isf(5e-7) * error  # false alarm 1e-6


@pytest.mark.parametrize("dim", [1, 3])
def test_density_of_the_matching_proposal(dim: int) -> None:
    noise = np.random.default_rng(0).standard_normal((6, dim))
    expected = stats.multivariate_t(np.zeros(dim), WIDER * np.eye(dim), df=TAIL).logpdf(noise)
    assert_allclose(_log_student(noise), expected, rtol=1e-12)


# -- the walk ---------------------------------------------------------------------------------------------------------


def no_points(dim: int) -> np.ndarray:
    return np.empty((0, dim))


def explore(measure: Measure, log_l: Function, n: int, seed: int = 0) -> tuple[Explorer, np.ndarray, list[float]]:
    """An explorer after n evaluations, its points and its temperatures: design, then propose and match in turn."""
    rng = np.random.default_rng(seed)
    explorer = Explorer(measure, rng)
    X = spread_design(measure, 2 * measure.dim + 2, rng)
    temperatures = []
    while len(X) < n:
        explorer.match(X, log_l(X))
        temperatures.append(explorer.temperature)
        X = np.vstack([X, explorer.propose(no_points(measure.dim))])
    explorer.match(X, log_l(X))
    return explorer, X, [*temperatures, explorer.temperature]


def assert_is_posterior(explorer: Explorer, mean: np.ndarray, cov: np.ndarray, nats: float) -> None:
    """KL(posterior ‖ q) below ``nats``: mean and covariance at once, in the posterior's own units."""
    shift = explorer.frame.whiten(mean[None, :])[0]
    whiten = np.linalg.inv(jacobian(explorer.frame))
    assert divergence(shift, np.linalg.cholesky(whiten @ cov @ whiten.T)) < nats


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
    assert explorer.uncertainty < 0.2
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


def test_points_of_zero_likelihood_are_sought_at_the_edge_only() -> None:
    """Half of the plane is infeasible: once that is known only the edge is in doubt, and q moves into the other half.

    Blind to the edge, half of the last thirty points would lie anywhere in the wrong half, 0.7 deep in the middle.
    """
    problem = infeasible_half()
    explorer, X, _ = explore(problem.prior, problem.log_likelihood_vectorized, 60)
    infeasible = np.isneginf(problem.log_likelihood_vectorized(X))
    assert infeasible[:6].any()
    late = X[30:][infeasible[30:]]
    assert np.median(np.abs(late[:, 0])) < 0.1
    assert np.max(np.abs(late[:, 0])) < 0.3
    assert abs(explorer.log_z - problem.log_z) < 0.25


def test_a_wider_span_is_a_colder_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """t is the spread of the best values over the span: twice the span, half the temperature, and never below one."""
    problem = narrow_gaussian(2)
    X = spread_design(problem.prior, 12, np.random.default_rng(0))
    temperatures = []
    for span in (SPAN, 2.0 * SPAN, 1e9):
        monkeypatch.setattr(explorer_module, "SPAN", span)
        explorer = Explorer(problem.prior, np.random.default_rng(0))
        explorer.fit(X, problem.log_likelihood_vectorized(X), learn=True)
        temperatures.append(explorer.temperature)
    assert temperatures[0] > 10.0
    assert_allclose(temperatures[1], 0.5 * temperatures[0], rtol=1e-12)
    assert temperatures[2] == 1.0


def test_the_walk_does_not_see_a_constant_in_log_l() -> None:
    """log ℓ + 1024: a power of two, so that only the last bits of the sums differ."""
    problem = narrow_gaussian(2)
    one, X, _ = explore(problem.prior, problem.log_likelihood_vectorized, 30)
    other, Y, _ = explore(problem.prior, lambda P: problem.log_likelihood_vectorized(P) + 1024.0, 30)
    assert_allclose(X, Y, rtol=1e-6)
    assert_allclose(other.log_z - 1024.0, one.log_z, atol=1e-6)


# -- what the surrogate says ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def half() -> Explorer:
    """An explorer fitted to forty points of a standard bump that is cut at the axis: ℓ = 0 where x₀ < 0."""
    X = np.random.default_rng(0).standard_normal((40, 2))
    log_l = np.where(X[:, 0] > 0.0, -0.5 * np.square(X).sum(axis=1), -np.inf)
    explorer = Explorer(Gaussian([0.0, 0.0]), np.random.default_rng(1))
    explorer.fit(X, log_l, learn=True)
    return explorer


def test_chance_of_being_feasible(half: Explorer) -> None:
    """One on the feasible side and zero on the other, and across the axis it falls from one to zero."""
    way = np.column_stack([np.linspace(1.5, -1.5, 31), np.zeros(31)])
    chance = half._feasible(half.frame.whiten(way))
    assert_array_equal(chance[:12], 1.0)
    assert_array_equal(chance[-12:], 0.0)
    assert np.all(np.diff(chance) <= 0.0)
    assert 0.2 < chance[15] < 0.8


def test_without_infeasible_data_all_is_feasible() -> None:
    X = np.random.default_rng(0).standard_normal((10, 2))
    explorer = Explorer(Gaussian([0.0, 0.0]), np.random.default_rng(1))
    explorer.fit(X, -0.5 * np.square(X).sum(axis=1), learn=True)
    assert_array_equal(explorer._feasible(50.0 * X), 1.0)


def test_a_border_is_forgotten_with_the_data_that_had_it() -> None:
    X = np.random.default_rng(0).standard_normal((40, 2))
    log_l = -0.5 * np.square(X).sum(axis=1)
    explorer = Explorer(Gaussian([0.0, 0.0]), np.random.default_rng(1))
    explorer.fit(X, np.where(X[:, 0] > 0.0, log_l, -np.inf), learn=True)
    assert np.isneginf(explorer.log_likelihood(np.array([[-1.5, 0.0]]))[0])
    explorer.fit(X, log_l, learn=True)
    assert explorer.border is None
    assert np.isfinite(explorer.log_likelihood(np.array([[-1.5, 0.0]]))[0])


def test_no_point_is_proposed_where_the_likelihood_is_surely_zero(half: Explorer) -> None:
    for _ in range(20):
        assert half._feasible(half.frame.whiten(half.propose(no_points(2))[None, :]))[0] > 0.0


def test_log_likelihood_is_the_bounded_mean_with_the_chance_of_being_feasible(half: Explorer) -> None:
    X = 2.0 * np.random.default_rng(4).standard_normal((300, 2))
    Y = half.frame.whiten(X)
    assert half.surrogate is not None
    mean, v = half.surrogate.predict(Y)
    chance = half._feasible(Y)
    assert (chance == 0.0).any()
    assert ((chance > 0.0) & (chance < 1.0)).any()
    log_l, sd = half.log_likelihood(X)
    inside = (chance > 0.0) & (v < 1.0)  # where nothing is taken off for extrapolating
    expected = half.top + np.minimum(mean, 1.0) + 0.5 * v + np.log(np.maximum(chance, 1e-300))
    assert_allclose(log_l[inside], expected[inside])
    assert np.all(np.isneginf(log_l[chance == 0.0]))
    assert_allclose(sd[chance == 1.0], np.sqrt(v[chance == 1.0]))
    assert np.all(sd[chance < 1.0] > np.sqrt(v[chance < 1.0]))


def test_beyond_the_data_the_less_is_known_the_more_is_taken_off() -> None:
    """log E[e^g] = m + ½v up to v = 1, and from there on m + ½ − ½(v − 1): six data fix no quadratic in 3-D."""
    explorer = Explorer(Gaussian(np.zeros(3)), np.random.default_rng(0))
    X = np.random.default_rng(1).standard_normal((6, 3))
    explorer.fit(X, -0.5 * np.square(X).sum(axis=1), learn=True)
    assert explorer.surrogate is not None
    P = 2.0 * np.random.default_rng(2).standard_normal((200, 3))
    mean, v = explorer.surrogate.predict(explorer.frame.whiten(P))
    assert (v < 1.0).any()
    assert (v > 1.0).any()
    expected = explorer.top + np.minimum(mean, 1.0) + np.where(v < 1.0, 0.5 * v, 1.0 - 0.5 * v)
    assert_allclose(explorer.log_likelihood(P)[0], expected)


def log_target(explorer: Explorer, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """m of g = log ℓ^(1/t)π, its variance v, and the chance p of being feasible, (M,) each."""
    assert explorer.surrogate is not None
    Y = explorer.frame.whiten(X)
    mean, v = explorer.surrogate.predict(Y)
    m = mean / explorer.temperature + explorer.measure.log_pdf(X)
    return m, v / explorer.temperature**2, explorer._feasible(Y)


def near_cut(temperature: float) -> Explorer:
    """Twenty points of a narrow bump that is cut at the axis, hot because few of them come near its top, or cold."""
    scale = 0.5 * temperature
    X = np.random.default_rng(0).standard_normal((20, 2))
    log_l = np.where(X[:, 0] > -0.5, -scale * np.square(X).sum(axis=1) - scale * np.cos(3.0 * X[:, 0]), -np.inf)
    explorer = Explorer(Gaussian([0.0, 0.0]), np.random.default_rng(1))
    explorer.fit(X, log_l, learn=True)
    assert (explorer.temperature > 1.0) == (temperature > 1.0)
    return explorer


@pytest.mark.parametrize("temperature", [1.0, 30.0])
def test_log_doubt_is_the_sd_of_the_tempered_posterior(temperature: float) -> None:
    """sd of B·e^g, B ~ Bernoulli(p), g ~ N(m, v), by 60-point Gauss-Hermite, where v is below its cap of 4.

    The sd is taken relative to something between e^m, the median, and e^(m + v/2), the mean: tolerance v/2. Half of
    the points have a v of a tenth and less, so that a lost p, v or temperature is seen.
    """
    explorer = near_cut(temperature)
    X = np.random.default_rng(3).standard_normal((400, 2))
    m, v, p = log_target(explorer, X)
    kept = (v < 3.9) & (p > 0.01) & (m - explorer.measure.log_pdf(X) < 2.5)
    X, m, v, p = X[kept], m[kept], v[kept], p[kept]
    assert (v < 0.1).mean() > 0.3
    assert ((p < 1.0) & (v < 0.1)).sum() > 5
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    powers = [np.exp(k * np.sqrt(v)[:, None] * nodes) @ weights for k in (1, 2)]  # E e^(g − m), E e^(2(g − m))
    assert_allclose(powers[0], np.exp(0.5 * v), rtol=1e-10)  # the oracle has converged
    exact = m + 0.5 * np.log(p * powers[1] - np.square(p * powers[0]))
    found = explorer.log_uncertainty(X)
    # At v of 1e-6 and less, p e^2v − p² e^v is a difference of two ones, known to ε/v.
    slack = 1e-8 + 4.0 * np.finfo(float).eps / np.maximum(v, 1.0 - p)
    assert np.all(found <= exact + slack)
    assert np.all(found >= exact - 0.5 * v - slack)


@pytest.mark.parametrize("temperature", [1.0, 30.0])
def test_log_posterior_is_cautious(temperature: float) -> None:
    """m − CAUTION √v + log p; and −inf where ℓ is surely zero."""
    explorer = near_cut(temperature)
    X = np.random.default_rng(3).standard_normal((400, 2))
    m, v, p = log_target(explorer, X)
    found = explorer.log_posterior(X)
    kept = (p > 0.0) & (m - explorer.measure.log_pdf(X) < 2.5)
    assert_allclose(found[kept], (m - CAUTION * np.sqrt(v))[kept] + np.log(p[kept]), rtol=1e-10)
    assert (p == 0.0).any()
    assert np.all(np.isneginf(found[p == 0.0]))
    assert np.all(np.isneginf(explorer.log_uncertainty(X)[p == 0.0]))


class Fixed:
    """Stands for a mixture: its draws are the first of these points, uniform on a square of four."""

    def __init__(self, X: np.ndarray) -> None:
        self.X = X

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return self.X[:n]

    def log_pdf(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), -math.log(16.0))


@pytest.mark.parametrize("temperature", [1.0, 30.0])
def test_a_hot_search_or_one_with_a_border_evaluates_where_it_doubts_most(
    temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The point proposed is no less doubtful than any draw of the shape, and is the best of them if nothing else is."""
    monkeypatch.setattr("wsabi.adaptive.search.anneal.WITNESSES", 20_000)
    explorer = near_cut(temperature)
    draws = 1.5 * np.random.default_rng(8).standard_normal((20_000, 2))
    x = explorer.propose(no_points(2), Fixed(draws))
    assert explorer.log_uncertainty(x[None, :])[0] >= explorer.log_uncertainty(draws).max() - 1e-8
    assert np.any(np.all(draws == x, axis=1))  # 20 000 against 400: one of the draws is the best


@pytest.fixture
def cold() -> Explorer:
    """Twenty-five points of a bump with a wave on it, none of them infeasible."""
    X = np.random.default_rng(0).standard_normal((25, 2))
    log_l = -0.5 * np.square(X).sum(axis=1) - 0.5 * np.cos(3.0 * X[:, 0])
    explorer = Explorer(Gaussian([0.0, 0.0]), np.random.default_rng(1))
    explorer.match(X, log_l)
    assert explorer.is_cold
    return explorer


def relative_variance(v: np.ndarray) -> np.ndarray:
    """e^v − 1, with the first factor of e^v(1 − e^−v) held to e⁴."""
    return np.asarray(np.exp(np.minimum(v, 4.0)) * (1.0 - np.exp(-v)))


def told_of(explorer: Explorer, X: np.ndarray) -> LogSurrogate:
    """The surrogate that has been told what it expects at X (N, D) or (D,)."""
    assert explorer.surrogate is not None
    Y = explorer.frame.whiten(np.atleast_2d(X))
    return explorer.surrogate.extended(Y, explorer.surrogate.mean(Y), np.full(len(Y), RESOLUTION**2))


def doubt_with(explorer: Explorer, x: np.ndarray, side: int = 60) -> float:
    """∫ sd[ℓπ] over a square of four, by a grid, of an explorer that has been told of x (D,)."""
    grid = np.stack([part.ravel() for part in np.meshgrid(*2 * [np.linspace(-2.0, 2.0, side)])], axis=1)
    told = copy.copy(explorer)
    told.surrogate = told_of(explorer, x)
    return float(np.exp(told.log_uncertainty(grid)).sum())


def test_a_cold_search_evaluates_where_least_doubt_will_be_left(
    cold: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a grid, and by surrogates that have been told: none of 200 other points would leave 2 % less.

    Where it doubts most would leave 1.7 % more. 4,000 witnesses tell the integral to about 1 %.
    """
    monkeypatch.setattr("wsabi.adaptive.search.anneal.WITNESSES", 4000)
    rng = np.random.default_rng(8)
    shape = Fixed(rng.uniform(-2.0, 2.0, (4000, 2)))
    chosen = doubt_with(cold, cold.propose(no_points(2), shape))
    others = rng.uniform(-2.0, 2.0, (200, 2))
    assert chosen < 1.02 * min(doubt_with(cold, x) for x in others)
    assert chosen < 0.99 * doubt_with(cold, others[int(np.argmax(cold.log_uncertainty(others)))])


@tuned("surrogate", jitter=0.0)
def test_relief_is_the_doubt_that_goes(cold: Explorer) -> None:
    """By surrogates that have been told, one at a time; the last seven are the witnesses, of equal density.

    Without the jitter of what is told. Variances that cancel to a millionth are known to 1e-6 of themselves.
    """
    X = np.random.default_rng(8).uniform(-1.5, 1.5, (12, 2))
    witnesses = X[5:]
    mean, before = cold.surrogate.predict(cold.frame.whiten(witnesses))  # type: ignore[union-attr]
    weights = truncated(np.minimum(mean, 3.0) + cold.measure.log_pdf(witnesses))
    expected = []
    for x in X:
        after = told_of(cold, x).predict(cold.frame.whiten(witnesses))[1]
        gain = weights * (np.sqrt(relative_variance(before)) - np.sqrt(relative_variance(after)))
        expected.append(gain.sum())
    assert_allclose(cold._merit(X, np.zeros(7), no_points(2)), expected, rtol=1e-4)


def test_relief_is_what_is_left_once_the_points_under_way_are_told(cold: Explorer) -> None:
    X = np.random.default_rng(8).uniform(-1.5, 1.5, (12, 2))
    pending = np.array([[0.4, 0.3], [-0.8, 1.1]])
    relief = cold._merit(X, np.zeros(7), pending)
    told = copy.copy(cold)
    told.surrogate = told_of(cold, pending)
    assert_allclose(relief, told._merit(X, np.zeros(7), no_points(2)), rtol=1e-9)
    assert np.max(np.abs(relief / cold._merit(X, np.zeros(7), no_points(2)) - 1.0)) > 0.1
    same = np.concatenate([pending, pending, pending])
    assert np.all(np.isfinite(cold._merit(X, np.zeros(7), same)))


def test_a_summit_that_no_datum_is_near_is_evaluated_once() -> None:
    """Data on a shell about a quadratic's top, three nats below it and more; under way, it is not asked for again."""
    rng = np.random.default_rng(0)
    X = 0.5 * rng.standard_normal((200, 8))  # the posterior of ℓ with sd 1/√3 under a unit prior
    X = X[np.linalg.norm(X, axis=1) > 1.25]
    explorer = Explorer(Gaussian(np.zeros(8)), rng)
    explorer.match(X, -1.5 * np.square(X).sum(axis=1))
    assert explorer.is_cold
    x = explorer.propose(no_points(8))
    assert 2.0 * x @ x < 2.0 * np.min(np.square(X).sum(axis=1)) - 1.0  # −log ℓπ is 2x·x
    other = explorer.propose(x[None])
    assert 2.0 * other @ other > 2.0 * x @ x


def test_without_a_shape_doubt_is_judged_over_q(cold: Explorer) -> None:
    """150 draws of q tell it to 8 %: the point chosen leaves less than nine tenths of 100 draws of q would."""
    chosen = doubt_with(cold, cold.propose(no_points(2)))
    others = cold.frame.colour(np.random.default_rng(8).standard_normal((100, 2)))
    assert np.mean([chosen < doubt_with(cold, x) for x in others]) > 0.9


def test_points_under_way_are_kept_away_from() -> None:
    """A batch of five is spread by half an sd of q; where everything is near a pending point, one is given anyway."""
    explorer = near_cut(1.0)
    chosen = no_points(2)
    for _ in range(5):
        chosen = np.vstack([chosen, explorer.propose(chosen)])
    gaps = [np.linalg.norm(a - b) for a, b in itertools.combinations(explorer.frame.whiten(chosen), 2)]
    assert min(gaps) >= AWAY
    grid = np.stack([part.ravel() for part in np.meshgrid(*2 * [np.linspace(-60.0, 60.0, 400)])], axis=1)
    assert np.all(np.isfinite(explorer.propose(explorer.frame.colour(grid))))


def test_log_likelihood_is_bounded_and_right_at_the_data() -> None:
    problem = narrow_gaussian(2)
    explorer, X, _ = explore(problem.prior, problem.log_likelihood_vectorized, 40)
    truth = problem.log_likelihood_vectorized(X[-10:])
    mean, sd = explorer.log_likelihood(X[-10:])
    assert_allclose(mean, truth, atol=0.05)
    assert np.all((sd > 0.0) & (sd < 0.05))
    far = explorer.frame.colour(np.array([[40.0, 0.0], [0.0, -40.0]]))
    assert np.all(explorer.log_likelihood(far)[0] <= explorer.top)
    assert np.all(explorer.log_likelihood(far)[1] > sd.max())


def test_a_fit_that_fails_leaves_the_old_surrogate_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).standard_normal((20, 2))
    explorer = Explorer(Gaussian([0.0, 0.0]), np.random.default_rng(1))
    explorer.match(X, -0.5 * np.square(X).sum(axis=1))
    before = explorer.log_likelihood(X)[0]

    def fail(*arguments: object, **options: object) -> None:
        raise NumericalError("no")

    monkeypatch.setattr(explorer_module, "fit_log_surrogate", fail)
    with pytest.raises(NumericalError):
        explorer.fit(np.vstack([X, [[0.0, 0.0]]]), np.append(-0.5 * np.square(X).sum(axis=1), 5.0))
    assert_array_equal(explorer.log_likelihood(X)[0], before)


@pytest.mark.parametrize("height", [1e90, 1e200, 1e300])
def test_values_further_apart_than_any_square_do_not_overflow(height: float) -> None:
    """Squares of 1e200 are no numbers: what is that far down counts as 1e100 nats down, and the order is kept."""
    X = np.random.default_rng(0).standard_normal((20, 2))
    explorer = Explorer(Gaussian([0.0, 0.0]), np.random.default_rng(1))
    with np.errstate(over="raise", invalid="raise"):
        explorer.match(X, -height * np.square(X).sum(axis=1))
        log_l, sd = explorer.log_likelihood(X)
        x = explorer.propose(no_points(2))
    assert np.all(np.isfinite(log_l))
    assert np.all(np.isfinite(sd))
    assert np.all(np.isfinite(x))
    assert np.all(np.isfinite([explorer.log_z, explorer.temperature, *explorer.frame.mean, *explorer.frame.widths]))
    assert explorer.top == -height * np.square(X).sum(axis=1).min()


def test_an_explorer_without_data_says_so() -> None:
    explorer = Explorer(Gaussian([0.0]), np.random.default_rng(0))
    with pytest.raises(NumericalError, match="no data yet"):
        explorer.propose(no_points(1))
