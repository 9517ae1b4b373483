"""Which action comes next: when searches have been enough, when another does more good, and when a run is checked."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import wsabi
from driving import advance, an_engine, run_engine
from found_by_hand import MEASURE, a_look
from wsabi.adaptive import policy
from wsabi.adaptive.estimate import interim_estimate
from wsabi.adaptive.evaluations import Evaluations
from wsabi.adaptive.state import Phase, State
from wsabi.adaptive.tuning import TUNING, tuned
from wsabi.result import Kind, SearchRecord
from wsabi.strategies.adaptive import AdaptiveStrategy

CENTRE, WIDTH = np.array([0.5, -0.3]), np.array([0.3, 0.2])
TRUTH = float(
    (stats.norm(0.0, np.sqrt(1.0 + np.square(WIDTH))).logpdf(CENTRE) + np.log(WIDTH * math.sqrt(2.0 * math.pi))).sum()
)


def bump(X: np.ndarray) -> np.ndarray:
    return np.asarray(-0.5 * np.square((X - CENTRE) / WIDTH).sum(axis=1))


def round_bump(X: np.ndarray) -> np.ndarray:
    return np.asarray(-0.5 * np.square((X - CENTRE) / 0.3).sum(axis=1))


def a_state(budget: int = 200, **choices: Any) -> State:
    """Before anything is told."""
    return an_engine(MEASURE, budget, **choices).state


def after(state: State, *searches: SearchRecord) -> State:
    """The same after these searches, of the three kinds in turn."""
    records = [replace(record, kind=kind) for record, kind in zip(searches, itertools.cycle(policy.KINDS))]
    return replace(state, known=replace(state.known, searches=tuple(records)))


# -- enough searches --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("searches", "returning"),
    [
        ("n", False),
        ("nkkkk", False),
        ("nkkkkk", True),
        ("kkkkk", True),
        ("nkk-kkk", True),  # a search that found next to nothing is no return, and no discovery
        ("n-----", False),
        ("nkk?kkkk", False),
        ("nkkkkkn", False),
        ("nkkkkknkkkk", False),
        ("nkkkknkkkk", False),  # only the last count
    ],
)
def test_searches_keep_returning(searches: str, returning: bool) -> None:
    """Five in a row, to known regions."""
    outcomes = {"n": "new region", "k": "known region", "-": "negligible mass", "?": "unfinished"}
    records = [a_look(outcomes[letter]) for letter in searches]
    assert policy.keeps_returning(after(a_state(), *records)) == returning


@pytest.mark.parametrize("missing", policy.KINDS)
def test_searches_of_every_kind_must_have_been_made(missing: Kind) -> None:
    """What one kind of search misses, another may find: none of them is left out."""
    kinds = [kind for kind in policy.KINDS if kind != missing]
    state = after(a_state(), *(a_look("known region") for _ in range(6)))
    assert policy.keeps_returning(state)
    records = [replace(record, kind=kinds[i % 2]) for i, record in enumerate(state.known.searches)]
    assert not policy.keeps_returning(replace(state, known=replace(state.known, searches=tuple(records))))


@pytest.mark.parametrize("returns", [5, 7])
def test_so_many_returns_end_the_first_searches(returns: int) -> None:
    """However large the budget: a region as easy to find as the first is missed by five searches in 3 % of runs."""
    assert TUNING.policy.returns == 5
    engine = an_engine(MEASURE, 4000)
    with tuned("policy", returns=returns):
        while engine.state.phase is Phase.LOCATING:
            assert engine.state.n < 300
            advance(engine, round_bump)
        outcomes = [search.outcome for search in engine.state.known.searches]
        assert outcomes == ["new region", *(["known region"] * returns)]
        assert policy.keeps_returning(engine.state)


@pytest.mark.parametrize(
    ("certify", "n_check", "returning", "checked"),
    [
        (0.1, TUNING.check.enough_points, True, True),
        (0.1, TUNING.check.enough_points - 1, True, False),
        (0.1, TUNING.check.enough_points, False, False),
        (0.06, 12, True, True),  # all that will come
        (0.06, 11, True, False),
        (0.02, 4, True, False),  # too few to check anything
        (0.0, 0, True, True),  # where no check points are asked for, none are waited for
        (0.0, 0, False, False),
    ],
)
def test_a_state_is_checked_by_searches_and_check_points(
    monkeypatch: pytest.MonkeyPatch, certify: float, n_check: int, returning: bool, checked: bool
) -> None:
    monkeypatch.setattr(Evaluations, "n_check", n_check)
    searches = [a_look("known region") for _ in range(5 if returning else 2)]
    assert policy.is_checked(after(a_state(certify=certify), *searches)) == checked


def test_a_plan_reaches_the_state() -> None:
    engine = an_engine(MEASURE, 200)
    assert engine.state.tol == 0.0
    for budget, tol in ((320, 0.3), (500, 0.0)):
        engine.plan(budget, tol)
        assert (engine.budget, engine.state.budget, engine.state.tol) == (budget, budget, tol)


# -- searching again --------------------------------------------------------------------------------------------------


def far_bumps(X: np.ndarray) -> np.ndarray:
    """Two bumps ninety sds apart: no region spans both, and each is what half of all searches find."""
    return np.asarray(np.logaddexp(*(-0.5 * np.square((X - c) / 0.03).sum(axis=1) for c in FAR_BUMPS)))


FAR_BUMPS = np.array([[1.0, 1.0], [-1.1, -0.9]])  # no symmetry images of each other
FAR_BUMPS_TRUTH = math.log(2.0 * math.pi * 0.0009) + float(
    np.logaddexp(*stats.norm(0.0, math.sqrt(1.0009)).logpdf(FAR_BUMPS).sum(axis=1))
)
SETTLED = 0.05


@pytest.fixture
def one_search_first(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Integration begins after one search; an error below a twentieth is settled; no evaluation starts a search."""
    monkeypatch.setattr(State, "unseen_share", 0.0)
    with tuned("policy", barren_share=0.0, settled=SETTLED), tuned("known", lead_ratio=math.inf):
        yield


def known_bumps(state: State) -> list[bool]:
    """Which of the two bumps, whose log ℓ is zero at the top, a region's surrogate knows of."""
    assert state.models is not None
    log_l = np.max([one.log_likelihood(FAR_BUMPS)[0] for one in state.models.explorers], axis=0) + state.data.offset
    return [bool(value > -1.0) for value in log_l]


def log_z_of(state: State) -> tuple[float, float]:
    """The estimate on the way, and its error bar."""
    certificate = interim_estimate(state)
    assert certificate is not None
    return certificate.log_z, certificate.log_z_std


def with_one_bump(seed: int) -> AdaptiveStrategy | None:
    """An engine that searches again, and knows one bump; None where the first search has found both."""
    engine = an_engine(MEASURE, 250, seed)
    while engine.state.phase is not Phase.SEARCHING:
        state = advance(engine, far_bumps)
        if state.models is not None and all(known_bumps(state)):
            return None
    return engine


@pytest.mark.usefixtures("one_search_first")
def test_a_bump_that_the_first_search_missed_is_found_once_the_error_bar_is_settled() -> None:
    """Without another search the estimate stays log 2 low with an error bar of a hundredth.

    The first search finds one bump alone in half of all runs: in fewer than three of twenty with a chance of 2e-4. The
    seven searches that follow, each of which meets the other bump with a chance of a half, miss it in 1 % of runs, and
    in two of three runs with a chance of 2e-4.
    """
    chosen = list(itertools.islice(filter(None, map(with_one_bump, range(20))), 3))
    assert len(chosen) == 3
    found = 0
    for engine in chosen:
        assert abs(log_z_of(engine.state)[0] - (FAR_BUMPS_TRUTH - math.log(2.0))) < 0.1  # sure of what it had found
        while engine.state.n < 230 and not all(known_bumps(engine.state)):
            advance(engine, far_bumps)
        assert len(engine.state.known.searches) > 1
        if all(known_bumps(engine.state)):
            found += 1
            assert abs(log_z_of(advance(engine, far_bumps, 20))[0] - FAR_BUMPS_TRUTH) < 0.1
    assert found >= 2


@pytest.mark.usefixtures("one_search_first")
def test_searches_go_on_only_once_the_error_bar_is_settled() -> None:
    """A search leaves the estimate in place; where the error bar can never be small enough there is no other."""
    engine, began = an_engine(MEASURE, 120), False
    for _ in range(120):
        state = advance(engine, bump)
        if not began and state.phase is Phase.SEARCHING:
            began = True
            assert state.data.n_check >= 0.5 * state.check_share * 120  # half of those planned
            assert log_z_of(state)[1] < 2.0 * SETTLED  # asked one point before
    assert began
    assert len(engine.state.known.searches) > 1
    assert abs(log_z_of(engine.state)[0] - TRUTH) < 5e-3
    with tuned("policy", settled=0.0):
        assert len(run_engine(MEASURE, bump, 120).known.searches) == 1


@pytest.mark.usefixtures("one_search_first")
@pytest.mark.parametrize("reason", ["as good as none", "good enough", "less than what may be hidden"])
def test_what_makes_another_search_worth_more(monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    """An error below a hundredth, or below the tolerance, or below what was not found; each is enough by itself."""
    if reason == "less than what may be hidden":
        monkeypatch.setattr(State, "unseen_share", math.expm1(SETTLED))
    engine = an_engine(MEASURE, 120)
    engine.plan(120, tol=SETTLED if reason == "good enough" else 0.0)
    with tuned("policy", settled=SETTLED if reason == "as good as none" else 0.0):
        while engine.state.n < 120 and len(engine.state.known.searches) < 2:
            advance(engine, bump)
    assert len(engine.state.known.searches) == 2


# -- check points -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("certify", [0.1, 0.3, 0.5])
def test_the_share_of_check_points_is_kept(certify: float) -> None:
    state = run_engine(wsabi.Gaussian([0.0, 0.0]), bump, 100, certify=certify)
    assert 0.25 * 100 * certify <= state.data.n_check <= 100 * certify + 1
