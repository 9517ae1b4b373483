"""One look knows its design, its calm and its despair."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from wsabi.adaptive.search.known_regions import NEGLIGIBLE
from wsabi.adaptive.search.search import Search, look_limit
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.priors import Gaussian
from wsabi.problems import narrow_gaussian

MEASURE = Gaussian([0.0, 0.0])
NONE = np.empty((0, 2))


def a_search(*, first: bool = True, around: np.ndarray | None = None, seed: int = 0) -> Search:
    return Search(MEASURE, np.random.default_rng(seed), first=first, around=around)


def test_the_design_is_given_out_in_order_without_what_was_taken() -> None:
    search, rng = a_search(), np.random.default_rng(1)
    design = np.array(search.design)
    assert len(design) > MEASURE.dim
    taken = design[[0, 2]]
    given: list[np.ndarray] = []
    while search.design:
        given.append(search.next_point(np.concatenate([taken, *[x[None, :] for x in given]]), NONE, rng))
    assert_array_equal(given, np.delete(design, [0, 2], axis=0))


def test_a_design_that_was_taken_whole_gives_way_to_draws_of_the_prior() -> None:
    """Nothing finite is known yet: the explorer has no word."""
    search = a_search()
    design = np.array(search.design)
    x = search.next_point(design, NONE, np.random.default_rng(1))
    assert search.design == []
    assert_array_equal(x, MEASURE.sample(1, np.random.default_rng(1))[0])


def test_only_the_first_look_begins_at_the_prior_mean() -> None:
    assert_array_equal(a_search().design[0], MEASURE.mean)
    starts = [a_search(first=False, seed=seed).design[0] for seed in range(3)]
    assert all(np.linalg.norm(x) > 0.0 for x in starts)
    assert len(np.unique(starts, axis=0)) == 3


def test_a_look_around_a_point_stays_there() -> None:
    x = np.array([3.0, -3.0])
    search = a_search(first=False, around=Frame.of(x, 0.25**2 * MEASURE.cov))
    assert_array_equal(search.explorer.frame.mean, x)
    design = np.array(search.design)
    assert len(design) > MEASURE.dim
    assert np.max(np.abs(design - x)) < 5.0 * 0.25 * math.sqrt(np.max(np.diag(MEASURE.cov)))  # ten normal draws: 6e-6


class Pretender(SimpleNamespace):
    """An explorer that learns nothing: the look sees what the test sets."""

    def match(self, X: np.ndarray, log_l: np.ndarray) -> None:
        """Nothing moves."""

    fit = match


def pretending(**attributes: Any) -> Search:
    search = a_search()
    frame = Frame.of(np.zeros(2), np.eye(2) / (2.0 * math.pi))  # of unit volume: potential is the best value's
    calm = {"is_cold": True, "drift": 0.0, "uncertainty": 0.0, "log_z": 0.0, "frame": frame}
    search.explorer = Pretender(**{**calm, **attributes})  # type: ignore[assignment]
    return search


def points_until_arrival(search: Search, log_z: Any = None, limit: int = 1000) -> int | None:
    """Evaluations after which the look has arrived; log_z(n) sets the mass after n of them."""
    for n in range(1, limit):
        if log_z is not None:
            search.explorer.log_z = log_z(n)
        search.learn(NONE, np.empty(0), n, 0.0)
        if search.has_arrived(n):
            return n
    return None


def test_a_calm_look_arrives_and_a_rough_one_later() -> None:
    calm = points_until_arrival(pretending())
    assert calm is not None
    assert calm > 2 * MEASURE.dim  # enough for a diagonal quadratic
    for rough in ({"uncertainty": 5.0}, {"drift": 5.0 * MEASURE.dim}):
        late = points_until_arrival(pretending(**rough))
        assert late is not None
        assert late > 2 * calm


def test_a_hot_look_never_arrives() -> None:
    assert points_until_arrival(pretending(is_cold=False)) is None


def test_the_calm_begins_after_an_unrest_that_left_the_mass_alone() -> None:
    search = pretending(drift=5.0)
    search.learn(NONE, np.empty(0), 1, 0.0)
    search.explorer.drift = 0.0
    assert points_until_arrival(search) == points_until_arrival(pretending())


def test_a_batch_counts_by_its_points() -> None:
    """Ten values at a time: a rough look is given up after as many evaluations, and hope is lost as soon."""
    single, batched = pretending(uncertainty=5.0), pretending(uncertainty=5.0, log_z=-math.inf)
    late = points_until_arrival(single)
    assert late is not None
    n = 1
    while not batched.has_arrived(n):
        batched.learn(NONE, np.empty(0), n, -100.0)
        n += 10
    assert n <= late + 20
    assert batched.is_hopeless(0.0)


def test_a_mass_that_grows_breaks_the_calm() -> None:
    """The calm is counted from where the growth ended; a hundredth of a nat in all is none."""
    calm = points_until_arrival(pretending())
    assert calm is not None
    assert points_until_arrival(pretending(), lambda n: 0.01 * min(n, 5) / 5) == calm
    late = points_until_arrival(pretending(), lambda n: float(min(n, 5)))
    assert late is not None
    assert late == calm + 4  # calm from the fifth point on, where it was from the first


def test_the_explorer_is_told_of_points_under_way() -> None:
    pending = np.array([[0.0, 0.0], [1.0, 1.0]])
    search = pretending(surrogate=object(), propose=lambda points: points.sum(axis=0))
    search.design = []
    assert_array_equal(search.next_point(pending, pending, np.random.default_rng(0)), [1.0, 1.0])


def a_climb(rate: float, n: int, end: float, *, log_z: float = -math.inf, is_cold: bool = True) -> Search:
    """A look whose best value grew by ``rate`` at each of n evaluations, up to ``end``."""
    search = pretending(log_z=log_z, is_cold=is_cold)
    for i in range(n):
        search.learn(NONE, np.empty(0), i + 1, end - rate * (n - 1 - i))
    return search


def test_hopeless_is_a_gap_that_the_climb_cannot_close() -> None:
    total, low = 0.0, -NEGLIGIBLE - 50.0
    enough = 50.0 / look_limit(MEASURE.dim)
    assert a_climb(0.0, 30, low).is_hopeless(total)
    assert a_climb(0.9 * enough, 30, low).is_hopeless(total)
    assert not a_climb(1.1 * enough, 30, low).is_hopeless(total)
    assert not a_climb(0.0, 30, low, is_cold=False).is_hopeless(total)  # still annealing
    assert not a_climb(0.0, 3, low).is_hopeless(total)  # too early to tell
    assert not a_climb(0.0, 30, -NEGLIGIBLE + 0.1).is_hopeless(total)  # near enough already
    assert not a_climb(0.0, 30, low, log_z=-NEGLIGIBLE + 0.1).is_hopeless(total)  # so says the surrogate
    assert not a_climb(0.0, 30, low).is_hopeless(-math.inf)  # nothing to compare with


def test_the_limit_of_a_look_grows_with_the_dimension() -> None:
    assert 0 < look_limit(1) < look_limit(2) < look_limit(10)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_look_walks_from_its_design_to_the_mass(seed: int) -> None:
    """A bump of a thirtieth of the prior's width is reached within the limit, with its mass to a tenth of a nat."""
    problem = narrow_gaussian(2)
    rng = np.random.default_rng(seed)
    search = Search(MEASURE, rng, first=False)
    X, log_l = NONE, np.empty(0)
    while not search.has_arrived(len(X)):
        x = search.next_point(X, NONE, rng)[None, :]
        X, log_l = np.concatenate([X, x]), np.append(log_l, problem.log_likelihood_vectorized(x))
        if not search.design:
            search.learn(X, log_l, len(X), float(log_l.max()))
        assert len(X) < look_limit(2)
    assert search.explorer.temperature == 1.0
    assert abs(search.explorer.log_z - problem.log_z) < 0.1
    assert not search.is_hopeless(problem.log_z)
    assert np.max(np.abs(search.explorer.frame.mean - 900.0 / 901.0)) < 0.5 / 30.0
