"""The next point: where ℓπ is most uncertain while a search is hot, and where a datum says most once it is cold."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from wsabi.adaptive.search import proposing as module
from wsabi.adaptive.search.explorer import Explorer, relative_variance
from wsabi.adaptive.search.matching import matched
from wsabi.adaptive.search.proposing import proposed, reduction
from wsabi.adaptive.surrogate.model import LogSurrogate
from wsabi.adaptive.surrogate.students import Students, truncated
from wsabi.adaptive.tuning import TUNING, tuned
from wsabi.errors import NumericalError
from wsabi.priors import Gaussian

NONE = np.empty((0, 2))  # no points under way
PLANE = Gaussian([0.0, 0.0])


def seeded(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


class Fixed(Students):
    """Stands for a mixture: its draws are the first of these points, uniform on a square of four."""

    def __init__(self, X: np.ndarray) -> None:
        object.__setattr__(self, "X", X)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return self.X[:n]  # type: ignore[attr-defined, no-any-return]

    def log_pdf(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), -math.log(16.0))


# -- what a datum takes from the uncertainty --------------------------------------------------------------------------


def test_the_relative_variance_is_that_of_a_lognormal_up_to_four() -> None:
    """e^v − 1; beyond, e⁴ in place of e^v in what ignorance would multiply by."""
    v = np.array([1e-9, 0.3, 4.0])
    assert_allclose(relative_variance(v), np.expm1(v), rtol=1e-12)
    assert_allclose(relative_variance(np.array([50.0])), np.exp(4.0), rtol=1e-12)


@pytest.mark.parametrize("last", [1, 4, 7])
def test_the_reduction_is_what_conditioning_takes(last: int) -> None:
    """By the Schur complement of a covariance of seven points, one datum at a time."""
    rng = seeded(last)
    A = rng.standard_normal((7, 9))
    C, noise, weights = A @ A.T / 9.0, rng.uniform(0.1, 0.5, 7), rng.uniform(0.1, 1.0, last)
    expected = []
    for x in range(7):
        left = np.diag(C - np.outer(C[:, x], C[x]) / (C[x, x] + noise[x]))[7 - last :]
        uncertainty = [np.sqrt(relative_variance(v)) for v in (np.diag(C)[7 - last :], left)]
        expected.append(weights @ (uncertainty[0] - uncertainty[1]))
    found = reduction(np.diag(C), C[:, 7 - last :], noise, weights)
    assert_allclose(found, expected, rtol=1e-12)
    assert np.all(found >= 0.0)


# -- a hot search, and one with a border ------------------------------------------------------------------------------


@cache
def near_cut(temperature: float) -> Explorer:
    """Twenty points of a narrow bump that is cut near the axis, hot because few come near its top, or cold."""
    scale, X = 0.5 * temperature, seeded().standard_normal((20, 2))
    log_l = np.where(X[:, 0] > -0.5, -scale * np.square(X).sum(axis=1) - scale * np.cos(3.0 * X[:, 0]), -np.inf)
    explorer = Explorer.from_prior(PLANE).fitted(X, log_l, learn=True)
    assert (explorer.temperature > 1.0) == (temperature > 1.0)
    return explorer


@pytest.mark.parametrize("temperature", [1.0, 30.0])
def test_a_hot_search_or_one_with_a_border_evaluates_where_it_is_most_uncertain(temperature: float) -> None:
    """The point is no less uncertain than any draw of the shape, and is the best of them if nothing else is."""
    explorer = near_cut(temperature)
    draws = 1.5 * seeded(8).standard_normal((20_000, 2))
    with tuned("search", nodes=len(draws)):
        x = proposed(explorer, NONE, seeded(1), Fixed(draws))
    assert explorer.log_uncertainty(x[None, :])[0] >= explorer.log_uncertainty(draws).max() - 1e-8
    assert np.any(np.all(draws == x, axis=1))  # 20 000 against 400: one of the draws is the best


def test_no_point_is_proposed_where_the_likelihood_is_surely_zero() -> None:
    for seed in range(20):
        x = proposed(near_cut(1.0), NONE, seeded(seed))
        assert near_cut(1.0).feasible(near_cut(1.0).frame.whiten(x[None, :]))[0] > 0.0


def test_points_under_way_are_kept_away_from() -> None:
    """A batch of five is spread by half an sd of q; where everything is near a pending point, one is given anyway."""
    explorer, rng, chosen = near_cut(1.0), seeded(1), NONE
    for _ in range(5):
        chosen = np.vstack([chosen, proposed(explorer, chosen, rng)])
    gaps = [np.linalg.norm(a - b) for a, b in itertools.combinations(explorer.frame.whiten(chosen), 2)]
    assert min(gaps) >= TUNING.search.away
    steps = 0.6 * np.arange(-60, 61)  # no point of the square is further than 0.43 from one of these
    grid = np.stack([part.ravel() for part in np.meshgrid(steps, steps)], axis=1)
    assert np.all(np.isfinite(proposed(explorer, explorer.frame.colour(grid), rng)))


def test_half_of_the_candidates_fill_the_ball(monkeypatch: pytest.MonkeyPatch) -> None:
    """In twelve dimensions draws of q all lie in a shell; the point of most uncertainty may lie well inside it."""
    dim = 12
    seen: list[np.ndarray] = []

    def log_uncertainty(self: Explorer, X: np.ndarray) -> np.ndarray:
        seen.append(X)
        return -np.square(X).sum(axis=1)

    monkeypatch.setattr(Explorer, "log_uncertainty", log_uncertainty)
    x = proposed(Explorer.from_prior(Gaussian(np.zeros(dim))), np.empty((0, dim)), seeded())
    radii = np.linalg.norm(seen[0], axis=1)
    assert np.mean(radii < 0.5 * math.sqrt(dim)) > 0.15  # a quarter of all: half of half
    assert np.mean(radii > math.sqrt(dim)) > 0.3
    assert np.linalg.norm(x) < 0.3


# -- a cold search ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cold() -> Explorer:
    """Twenty-five points of a bump with a wave on it, none of them infeasible."""
    X = seeded().standard_normal((25, 2))
    log_l = -0.5 * np.square(X).sum(axis=1) - 0.5 * np.cos(3.0 * X[:, 0])
    explorer = matched(Explorer.from_prior(PLANE), X, log_l, seeded(1))
    assert explorer.is_cold
    return explorer


def told_of(explorer: Explorer, X: np.ndarray) -> LogSurrogate:
    """The surrogate that has been told what it expects at X (N, D) or (D,)."""
    surrogate, Y = explorer.fitted_surrogate, explorer.frame.whiten(np.atleast_2d(X))
    return surrogate.extended(Y, surrogate.mean(Y), np.full(len(Y), TUNING.search.resolution**2))


def middles(side: int) -> np.ndarray:
    """Midpoints of a grid over a square of four, (side², 2)."""
    along = 4.0 * (np.arange(side) + 0.5) / side - 2.0
    return np.stack([part.ravel() for part in np.meshgrid(along, along)], axis=1)


def uncertainty_with(explorer: Explorer, x: np.ndarray, side: int = 40) -> float:
    """Mean of sd[ℓπ] over the square, by midpoints, of an explorer that has been told of x (D,)."""
    told = replace(explorer, surrogate=told_of(explorer, x))
    return float(np.exp(told.log_uncertainty(middles(side))).mean())


def test_a_cold_search_evaluates_where_least_uncertainty_will_be_left(cold: Explorer) -> None:
    """By surrogates that have been told: none of 200 other points would leave half a per cent less.

    The nodes are a grid, which is a sum without noise. Where ℓπ is most uncertain would leave more than 1 % more.
    """
    others = seeded(8).uniform(-2.0, 2.0, (200, 2))
    with tuned("search", nodes=900):
        x = proposed(cold, NONE, seeded(1), Fixed(middles(30)))
    chosen = uncertainty_with(cold, x)
    assert_allclose(chosen, uncertainty_with(cold, x, side=80), rtol=0.002)  # the oracle has converged
    assert chosen < 1.005 * min(uncertainty_with(cold, x) for x in others)
    assert chosen < 0.99 * uncertainty_with(cold, others[int(np.argmax(cold.log_uncertainty(others)))])


def test_the_merit_is_the_uncertainty_that_goes(cold: Explorer) -> None:
    """By surrogates that have been told, one at a time; the last seven are the nodes, of equal density.

    With values as noisy as 0.03, beside which the jitter of what is told, 1e-9, is no more than 1e-6. A variance v is
    what sums over 25 data leave of a prior variance of 219: with round-off of 25ε·219, and its sd with that over 2√v.
    """
    X = seeded(8).uniform(-1.5, 1.5, (12, 2))
    nodes = cold.frame.whiten(X[5:])
    mean, before = cold.fitted_surrogate.predict(nodes)
    weights = truncated(np.minimum(mean, 3.0) + cold.measure.log_pdf(X[5:]))
    expected = []
    with tuned("search", resolution=0.03):
        for x in X:
            after = told_of(cold, x).predict(nodes)[1]
            # e^v − 1, with the first factor of e^v(1 − e^−v) held to e⁴
            sds = [np.sqrt(np.exp(np.minimum(v, 4.0)) * (1.0 - np.exp(-v))) for v in (before, after)]
            expected.append((weights * (sds[0] - sds[1])).sum())
        found = module._merit(cold, X, np.zeros(7), NONE)
    L = cold.fitted_surrogate.L
    of_variance = len(L) * np.finfo(float).eps * float(np.square(L).sum(axis=1).max())
    assert_allclose(found, expected, rtol=1e-5, atol=of_variance * float((weights / (2.0 * np.sqrt(before))).sum()))


def test_the_merit_is_what_is_left_once_the_points_under_way_are_told(cold: Explorer) -> None:
    X = seeded(8).uniform(-1.5, 1.5, (12, 2))
    pending = np.array([[0.4, 0.3], [-0.8, 1.1]])
    merit = module._merit(cold, X, np.zeros(7), pending)
    told = replace(cold, surrogate=told_of(cold, pending))
    assert_allclose(merit, module._merit(told, X, np.zeros(7), NONE), rtol=1e-9)
    assert np.max(np.abs(merit / module._merit(cold, X, np.zeros(7), NONE) - 1.0)) > 0.1
    same = np.concatenate([pending, pending, pending])
    assert np.all(np.isfinite(module._merit(cold, X, np.zeros(7), same)))


def test_a_top_that_no_datum_is_near_is_evaluated_once() -> None:
    """Data on a shell about a quadratic's top, three nats below it and more; under way, it is not asked for again."""
    rng = seeded()
    X = 0.5 * rng.standard_normal((200, 8))  # the posterior of ℓ with sd 1/√3 under a unit prior
    X = X[np.linalg.norm(X, axis=1) > 1.25]
    explorer = matched(Explorer.from_prior(Gaussian(np.zeros(8))), X, -1.5 * np.square(X).sum(axis=1), rng)
    assert explorer.is_cold
    x = proposed(explorer, np.empty((0, 8)), rng)
    assert 2.0 * x @ x < 2.0 * np.min(np.square(X).sum(axis=1)) - 1.0  # −log ℓπ is 2x·x
    other = proposed(explorer, x[None], rng)
    assert 2.0 * other @ other > 2.0 * x @ x


def test_without_a_shape_the_integral_is_over_q(cold: Explorer) -> None:
    """150 draws of q tell it to 8 %: the point chosen leaves less than nine tenths of 100 draws of q would."""
    chosen = uncertainty_with(cold, proposed(cold, NONE, seeded(1)))
    others = cold.frame.colour(seeded(8).standard_normal((100, 2)))
    assert np.mean([chosen < uncertainty_with(cold, x) for x in others]) > 0.9


def test_a_proposal_follows_from_the_generator_and_leaves_the_explorer(cold: Explorer) -> None:
    pending = np.array([[0.4, 0.3]])
    before = cold.log_likelihood(pending)
    one, other = (proposed(cold, pending, seeded(5)) for _ in range(2))
    assert_array_equal(one, other)
    assert not np.array_equal(one, proposed(cold, pending, seeded(6)))
    assert_array_equal(cold.log_likelihood(pending), before)


def test_an_explorer_without_data_proposes_nothing() -> None:
    with pytest.raises(NumericalError, match="no data yet"):
        proposed(Explorer.from_prior(PLANE), NONE, seeded())
