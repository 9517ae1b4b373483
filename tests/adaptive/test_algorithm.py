"""A step of the algorithm: a pure function of its inputs, and who is told of what it has led to."""

from __future__ import annotations

import collections
import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import wsabi
from driving import advance, an_engine, content, run_engine, stream, told
from wsabi.adaptive.algorithm import concluded, initial, step
from wsabi.adaptive.estimate import interim_estimate
from wsabi.adaptive.models import Models
from wsabi.adaptive.purposes import CheckPoint, ImagePoint, Refinement, SearchPoint
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.search.matching import matched, rematched
from wsabi.adaptive.state import Phase, State
from wsabi.adaptive.told import with_told
from wsabi.ledger import Action, Observation
from wsabi.problems import narrow_gaussian

DIM = 2
PRIOR = wsabi.Gaussian(np.zeros(DIM))
CENTRE, WIDTH = np.array([0.5, -0.3]), np.array([0.3, 0.2])
N = 80  # evaluations after which a run on the bump has been in every phase


def bump(X: np.ndarray) -> np.ndarray:
    return np.asarray(-0.5 * np.square((X - CENTRE) / WIDTH).sum(axis=1))


def walled(X: np.ndarray) -> np.ndarray:
    """The bump behind a wall, beyond which a floor means zero likelihood."""
    return np.where(X[:, 0] > 0.2, bump(X), -1e30)


def exchanged(X: np.ndarray) -> np.ndarray:
    """Two bumps, each the image of the other where both parameters are exchanged: no region spans both."""
    tops = np.array([[1.6, 0.1], [0.1, 1.6]])
    return np.asarray(np.logaddexp(*(-0.5 * np.square((X - top) / 0.001).sum(axis=1) for top in tops)))


def begun(seed: int = 0, n: int = N) -> State:
    """Before anything is told."""
    problem = an_engine(PRIOR, n, seed).state.problem
    return initial(problem, n, problem.streams.stream())


def apart(state: State) -> Any:
    """The content of a state but for its models, which alone are mutable."""
    return content(state, Models)


def phase_of(state: State) -> tuple[Phase, bool]:
    """Where a run is: its phase, and whether a search under way has got beyond its design."""
    return state.phase, state.search is not None and state.search.has_begun


@pytest.fixture(scope="module")
def finished() -> State:
    """After a hundred evaluations of a hundred."""
    return run_engine(PRIOR, bump, 100)


# -- a pure function --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("log_l", "n"), [(bump, N), (walled, N), (exchanged, 140)])
def test_a_step_leaves_the_state_it_was_given(log_l: Any, n: int) -> None:
    """Field by field, all along a run, whatever was told."""
    state, new, phases, purposes = begun(n=n), list[Observation](), set(), set()
    for _ in range(n):
        before = apart(state)
        after, action = step(state, new, (), stream(state))
        assert apart(state) == before
        phases.add(after.phase)
        purposes.add(type(action.purpose))
        state, new = after, [told(action, log_l)]
    assert purposes >= {SearchPoint, CheckPoint, Refinement}
    if log_l is bump:
        assert phases == set(Phase)
    if log_l is exchanged:
        assert ImagePoint in purposes
        assert len(state.known.symmetries) == 1


def test_a_conclusion_leaves_the_state_it_was_given_and_its_models() -> None:
    engine = an_engine(PRIOR, N)
    for n in (4, 15, 30, 11, 15):
        state = advance(engine, bump, n)
        before = content(state)
        concluded(state, np.random.default_rng(0))
        assert content(state) == before


def test_the_same_inputs_give_the_same_outputs() -> None:
    """Of a copy, where there are models, for these learn of what is told; of the very state, where there are none."""
    state, new, seen = begun(), list[Observation](), set()
    for _ in range(N):
        other = state if state.models is None else None
        if other is None and phase_of(state) not in seen:
            other = copy.deepcopy(state)
        seen.add(phase_of(state))
        rng = stream(state)
        again = copy.deepcopy(rng)
        after, action = step(state, new, (), rng)
        if other is not None:
            repeated, same = step(other, new, (), again)
            assert content(same) == content(action)
            assert content(repeated) == content(after)
            assert repr(again.bit_generator.state) == repr(rng.bit_generator.state)
        state, new = after, [told(action, bump)]
    assert {phase for phase, _ in seen} == set(Phase)


@pytest.mark.parametrize("log_l", [bump, walled])
def test_the_same_evaluations_folded_again_give_the_same_state(log_l: Any) -> None:
    """Models included; what is drawn for a point depends on its number alone."""
    state, heard = begun(), list[Observation]()
    for _ in range(N):
        state, action = step(state, heard[-1:], (), stream(state))
        heard.append(told(action, log_l))
    again = begun()
    for number, one in enumerate(heard):
        again, action = step(again, heard[max(number - 1, 0) : number], (), stream(again))
        assert content(action) == content(Action(one.u, action.purpose))
    assert content(again) == content(state)


def test_purposes_travel_with_the_points(finished: State) -> None:
    """Told one by one, all together or backwards, each evaluation is known for what it was for."""
    data = finished.data
    purposes = [
        CheckPoint(int(drawn)) if drawn >= 0 else SearchPoint(int(number), bool(draw)) if number >= 0 else None
        for drawn, number, draw in zip(data.drawn_from, data.searched_by, data.is_draw, strict=True)
    ]
    assert len({(type(one), getattr(one, "number", None)) for one in purposes}) > 4
    new = [Observation(x, float(value), one) for x, value, one in zip(data.X, data.told, purposes, strict=True)]
    singly = begun()
    for one in new:
        singly = with_told(singly, [one])
    assert content(singly.data) == content(data)
    together, backwards = with_told(begun(), new).data, with_told(begun(), new[::-1]).data
    for name in ("X", "told", "searched_by", "drawn_from", "is_draw"):
        assert_array_equal(getattr(together, name), getattr(data, name))
        assert_array_equal(getattr(backwards, name)[::-1], getattr(data, name))


def test_nothing_told_changes_nothing(finished: State) -> None:
    assert with_told(finished, ()) is finished


# -- check points -----------------------------------------------------------------------------------------------------


def test_check_points_never_enter_a_model(finished: State) -> None:
    assert finished.models is not None
    checks, _, numbers = finished.data.checks()
    assert finished.data.n_check == len(np.unique(checks, axis=0)) >= 10
    assert numbers.max() < finished.data.first_proposal + len(finished.proposals)
    for part in finished.models.parts:
        modelled = part.frame.colour(part.model.X)
        assert np.square(modelled[:, None, :] - checks[None]).sum(axis=-1).min() > 1e-12
        assert part.explorer.surrogate is not None
        seen = part.explorer.frame.colour(part.explorer.surrogate.Y)
        assert np.square(seen[:, None, :] - checks[None]).sum(axis=-1).min() > 1e-12


def test_check_points_never_told_are_drawn_again() -> None:
    engine = an_engine(PRIOR, 300)
    drawn = asked = 0
    while engine.state.n < 120:
        action = engine.ask((), engine.state.problem.streams.stream(asked))
        asked += 1
        if isinstance(action.purpose, CheckPoint):
            drawn += 1
            if drawn < 50:  # forgotten
                continue
        engine.tell([told(action, bump)])
    assert drawn >= 50
    assert engine.state.data.n_check == drawn - 49


# -- points under way -------------------------------------------------------------------------------------------------


def test_searches_judge_by_their_own_points_while_others_are_under_way() -> None:
    """Eight points are always under way: a search ends only after its own design was told, none of it check points."""
    engine, queue = an_engine(PRIOR, 200), collections.deque[Action]()
    for asked in range(200):
        while len(queue) < 8:
            queue.append(engine.ask(list(queue), engine.state.problem.streams.stream(asked, len(queue))))
        engine.tell([told(queue.popleft(), bump)])
    state = engine.state
    assert len(state.known.searches) > 2
    for number, search in enumerate(state.known.searches):
        own = state.data.searched_by == number
        assert search.n_evals >= (DIM + 1 if search.kind == "ascent" else 2 * DIM + 1)  # their smallest designs
        assert own.sum() >= search.n_evals  # those under way when it ended came later
        assert np.all(state.data.drawn_from[own] == -1)


def test_a_first_search_may_use_what_was_given_and_counts_what_it_asked_for() -> None:
    X = np.random.default_rng(0).standard_normal((40, DIM))
    engine = an_engine(PRIOR, 100)
    engine.tell([Observation(x, float(value), None) for x, value in zip(X, bump(X), strict=True)])
    state = advance(engine, bump, 60)
    assert state.n == 100
    assert len(state.known.searches) > 1
    assert sum(search.n_evals for search in state.known.searches) <= 60
    certificate = interim_estimate(state)
    assert certificate is not None
    assert certificate.n_points > 0


def test_a_first_search_counts_so_where_an_earlier_result_is_given() -> None:
    earlier = wsabi.integrate(bump, PRIOR, budget=60, rng=0, vectorized=True, tol=0.0)
    given = replace(earlier, ledger=None)  # without its events, its evaluations are taken as told
    again = wsabi.integrate(bump, PRIOR, budget=60, rng=1, vectorized=True, tol=0.0, start=given)
    assert again.n_evals == 120
    assert sum(search.n_evals for search in again.searches) <= 60
    assert len(again.searches) > 1


# -- q matched anew ---------------------------------------------------------------------------------------------------


def test_a_cold_q_takes_the_place_of_a_hot_one() -> None:
    """The mass of ℓ^(1/t)π is larger than that of ℓπ, and is no reason to refuse."""
    problem = narrow_gaussian(DIM)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, DIM))
    explorer = matched(Explorer.from_prior(PRIOR), X, problem.log_likelihood_vectorized(X), rng)
    assert not explorer.is_cold
    near = np.concatenate([X, 900.0 / 901.0 + rng.standard_normal((30, DIM)) / 30.0])
    log_l = problem.log_likelihood_vectorized(near)
    moved = replace(explorer, log_z=1000.0)
    for _ in range(12):
        moved = rematched(moved, near, log_l, rng)
    assert moved.is_cold
    assert abs(moved.log_z - problem.log_z) < 0.5
