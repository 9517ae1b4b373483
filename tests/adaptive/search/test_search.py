"""One search knows its design, and when it is settled; a step leaves the search before it alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from driving import content
from wsabi.adaptive.search import search as module
from wsabi.adaptive.search.ascent import Summit
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.search.search import Search, search_limit
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.tuning import TUNING
from wsabi.priors import Gaussian
from wsabi.problems import narrow_gaussian

MEASURE = Gaussian([0.0, 0.0])
NONE = np.empty((0, 2))
NEGLIGIBLE = TUNING.known.negligible


def a_search(*, first: bool = True, seed: int = 0) -> Search:
    return Search.over_prior(MEASURE, 0, np.random.default_rng(seed), first=first)


# -- its design -------------------------------------------------------------------------------------------------------


def test_the_design_is_given_out_in_order_without_what_was_taken() -> None:
    search = a_search()
    design = np.array(search.design)
    assert len(design) > MEASURE.dim
    given: list[np.ndarray] = []
    while True:
        search, x = search.handed_out(np.concatenate([design[[0, 2]], *[x[None, :] for x in given]]))
        if x is None:
            break
        given.append(x)
    assert_array_equal(given, np.delete(design, [0, 2], axis=0))
    assert search.n_handed == len(given)
    assert search.design == ()


def test_a_design_that_was_taken_whole_gives_way_to_draws_of_the_prior() -> None:
    """Nothing finite is known yet: the explorer has no word."""
    search, x = a_search().handed_out(np.array(a_search().design))
    assert x is None
    assert search.design == ()
    assert search.n_handed == 0
    anywhere = search.next_point(NONE, np.random.default_rng(1))
    assert_array_equal(anywhere, MEASURE.sample(1, np.random.default_rng(1))[0])


def test_only_the_first_search_begins_at_the_prior_mean() -> None:
    assert_array_equal(a_search().design[0], MEASURE.mean)
    starts = [a_search(first=False, seed=seed).design[0] for seed in range(3)]
    assert all(np.linalg.norm(x) > 0.0 for x in starts)
    assert len(np.unique(starts, axis=0)) == 3


def test_a_search_around_a_point_stays_there() -> None:
    x = np.array([3.0, -3.0])
    search = Search.around(MEASURE, 1, Frame.of(x, 0.25**2 * MEASURE.cov), np.random.default_rng(0))
    assert_array_equal(search.explorer.frame.mean, x)
    assert not search.from_prior
    assert not search.may_be_predicted
    design = np.array(search.design)
    assert len(design) > MEASURE.dim
    assert np.max(np.abs(design - x)) < 5.0 * 0.25 * math.sqrt(np.max(np.diag(MEASURE.cov)))  # ten normal draws: 6e-6


def test_a_search_from_a_summit_completes_it_by_draws() -> None:
    """D + 2 of them; the explorer stays at the summit when it begins anew, and one from the prior goes back there."""
    x = np.array([3.0, -3.0])
    summit = Summit(x, 0.01 * np.eye(2))
    climbed = replace(a_search(), climbed=True).from_summit(summit, np.random.default_rng(0))
    assert_array_equal(climbed.explorer.frame.mean, x)
    assert len(climbed.design) == MEASURE.dim + 2
    assert np.max(np.abs(np.array(climbed.design) - x)) < 0.6  # eight normal draws of sd 0.1: 2e-8
    assert_array_equal(climbed.reheated().explorer.frame.mean, x)
    assert_array_equal(replace(climbed, climbed=False).reheated().explorer.frame.mean, MEASURE.mean)


def test_a_step_leaves_the_search_before_it_as_it_was() -> None:
    """And with the same generator the same step gives the same search."""
    X = np.random.default_rng(1).standard_normal((12, 2))
    log_l = -0.5 * np.square((X - 0.5) / 0.3).sum(axis=1)
    steps: list[Callable[[Search], Search | None]] = [
        lambda search: search.handed_out(NONE)[0],
        lambda search: search.learnt(X, log_l, 12, float(log_l.max()), np.random.default_rng(2)),
        lambda search: search.zoomed(X, 100.0 * log_l, np.random.default_rng(2)),
        lambda search: search.with_foothold(X, np.where(X[:, 0] > 0.0, log_l, -np.inf)),
        Search.without_design,
        Search.reheated,
    ]
    search = a_search().learnt(X, log_l, 8, float(log_l.max()), np.random.default_rng(3))
    before = content(search)
    for step in steps:
        once, twice = step(search), step(search)
        assert once is not None
        assert twice is not None
        assert content(search) == before
        assert content(once) != before
        assert content(twice) == content(once)


# -- settled --------------------------------------------------------------------------------------------------------


@pytest.fixture
def learns_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Explorers stay as they are, so that a search sees what the test sets."""
    monkeypatch.setattr(module, "matched", lambda explorer, *_: explorer)
    monkeypatch.setattr(Explorer, "fitted", lambda explorer, *_: explorer)


def pretending(*, is_cold: bool = True, **attributes: Any) -> Search:
    frame = Frame.of(np.zeros(2), np.eye(2) / (2.0 * math.pi))  # of unit volume: potential is the best value's
    temperature = 1.0 if is_cold else 2.0
    settled = {"drift": 0.0, "uncertainty": 0.0, "log_z": 0.0, **attributes}
    explorer = Explorer(MEASURE, frame, temperature=temperature, matched_temperature=temperature, **settled)
    return replace(a_search(), explorer=explorer)


def told(search: Search, n: int, best: float = 0.0, **attributes: Any) -> Search:
    """The search after n evaluations, its explorer with these attributes."""
    search = replace(search, explorer=replace(search.explorer, **attributes))
    return search.learnt(NONE, np.empty(0), n, best, np.random.default_rng(0))


def points_until_arrival(search: Search, log_z: Any = None, limit: int = 1000) -> int | None:
    """Evaluations after which the search has arrived; log_z(n) is the mass after n of them."""
    for n in range(1, limit):
        search = told(search, n) if log_z is None else told(search, n, log_z=log_z(n))
        if search.has_arrived(n):
            return n
    return None


@pytest.mark.usefixtures("learns_nothing")
def test_a_settled_search_arrives_and_a_rough_one_later() -> None:
    settled = points_until_arrival(pretending())
    assert settled is not None
    assert settled > 2 * MEASURE.dim  # enough for a diagonal quadratic
    for rough in ({"uncertainty": 5.0}, {"drift": 5.0 * MEASURE.dim}):
        late = points_until_arrival(pretending(**rough))
        assert late is not None
        assert late > 2 * settled


@pytest.mark.usefixtures("learns_nothing")
def test_a_hot_search_never_arrives() -> None:
    assert points_until_arrival(pretending(is_cold=False), limit=300) is None  # a rough one arrives after 47


@pytest.mark.usefixtures("learns_nothing")
def test_a_search_settles_after_an_unrest_that_left_the_mass_alone() -> None:
    unsettled = told(pretending(drift=5.0), 1)
    search = replace(unsettled, explorer=replace(unsettled.explorer, drift=0.0))
    assert points_until_arrival(search) == points_until_arrival(pretending())


@pytest.mark.usefixtures("learns_nothing")
def test_a_batch_counts_by_its_points() -> None:
    """Ten values at a time: a rough search is given up after as many evaluations."""
    late = points_until_arrival(pretending(uncertainty=5.0))
    assert late is not None
    batched, n = pretending(uncertainty=5.0, log_z=-math.inf), 1
    while not batched.has_arrived(n):
        batched = told(batched, n, -100.0)
        n += 10
    assert n <= late + 20


@pytest.mark.usefixtures("learns_nothing")
def test_a_mass_that_grows_is_not_settled() -> None:
    """Points are counted from where the growth ended; a hundredth of a nat in all is none."""
    settled = points_until_arrival(pretending())
    assert settled is not None
    assert points_until_arrival(pretending(), lambda n: 0.01 * min(n, 5) / 5) == settled
    late = points_until_arrival(pretending(), lambda n: float(min(n, 5)))
    assert late is not None
    assert late == settled + 4  # settled from the fifth point on, where it was from the first


def test_the_explorer_is_told_of_points_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    pending = np.array([[0.0, 0.0], [1.0, 1.0]])
    surrogate: Any = object()
    monkeypatch.setattr(module, "proposed", lambda explorer, points, rng: points.sum(axis=0))
    assert_array_equal(pretending(surrogate=surrogate).next_point(pending, np.random.default_rng(0)), [1.0, 1.0])


def test_the_limit_of_a_search_grows_with_the_dimension() -> None:
    assert 0 < search_limit(1) < search_limit(2) < search_limit(10)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_search_walks_from_its_design_to_the_mass(seed: int) -> None:
    """A bump of a thirtieth of the prior's width is reached within the limit, with its mass to a tenth of a nat."""
    problem = narrow_gaussian(2)
    rng = np.random.default_rng(seed)
    search = Search.over_prior(MEASURE, 1, rng, first=False)
    X, log_l = NONE, np.empty(0)
    while not search.has_arrived(len(X)):
        search, x = search.handed_out(X)
        x = (search.next_point(NONE, rng) if x is None else x)[None, :]
        X, log_l = np.concatenate([X, x]), np.append(log_l, problem.log_likelihood_vectorized(x))
        if not search.design:
            search = search.learnt(X, log_l, len(X), float(log_l.max()), rng)
        assert len(X) < search_limit(2)
    assert search.explorer.temperature == 1.0
    assert abs(search.explorer.log_z - problem.log_z) < 0.1
    assert np.max(np.abs(search.explorer.frame.mean - 900.0 / 901.0)) < 0.5 / 30.0
