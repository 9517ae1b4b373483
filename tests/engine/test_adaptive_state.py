"""The adaptive model's bookkeeping: points under way, points forgotten, interrupts, earlier evaluations."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

import wsabi
from wsabi.engine import adaptive
from wsabi.engine.adaptive import AdaptiveModel, _rematched
from wsabi.engine.explorer import Explorer
from wsabi.problems import narrow_gaussian

DIM = 2
NONE = np.empty((0, DIM))
PRIOR = wsabi.Gaussian(np.zeros(DIM))


def bump(X: np.ndarray) -> np.ndarray:
    return np.asarray(-0.5 * np.square((X - [0.5, -0.3]) / [0.3, 0.2]).sum(axis=1))


def a_model(budget: int, **settings: Any) -> AdaptiveModel:
    return AdaptiveModel(PRIOR, wsabi.Settings(**settings), np.random.default_rng(0), budget)


def test_looks_judge_by_their_own_points_while_others_are_under_way() -> None:
    """Eight points are always under way: a look ends only after its own design was told, none of it fresh points."""
    model, queue = a_model(200), collections.deque[np.ndarray]()
    for _ in range(200):
        while len(queue) < 8:
            queue.append(model.propose(1, np.array(list(queue)).reshape(-1, DIM))[0])
        x = queue.popleft()[None, :]
        model.observe(x, bump(x))
    assert len(model.looks) > 2
    for number, look in enumerate(model.looks):
        own = model.asked_by == number
        assert look.n_evals >= 2 * DIM + 1  # the design of a follow-up, the smaller one
        assert own.sum() >= look.n_evals  # those under way when it ended came later
        assert np.all(model.drawn_from[own] == -1)


def test_fresh_points_never_told_are_drawn_again() -> None:
    model = a_model(300)
    drawn = 0
    while len(model.X) < 120:
        x = model.propose(1, NONE)
        if x.tobytes() in model._drawn:
            drawn += 1
            if drawn < 50:  # forgotten
                continue
        model.observe(x, bump(x))
    assert drawn >= 50
    assert model.n_certificate > 0


def test_an_interrupt_in_the_first_build_can_be_recovered(monkeypatch: pytest.MonkeyPatch) -> None:
    model, interrupted = a_model(100), False
    build = adaptive.Regions

    def once(*arguments: Any) -> Any:
        nonlocal interrupted
        if not interrupted:
            interrupted = True
            raise KeyboardInterrupt
        return build(*arguments)

    monkeypatch.setattr(adaptive, "Regions", once)
    while len(model.X) < 100:
        try:
            x = model.propose(1, NONE)
        except KeyboardInterrupt:
            model.recover()
            continue
        model.observe(x, bump(x))
    assert interrupted
    estimate = model.estimate()
    assert estimate is not None
    truth = wsabi.integrate(bump, PRIOR, budget=100, rng=1, vectorized=True, tol=0.0)
    assert abs(estimate.log_z - truth.log_z) < 0.02


def test_the_first_look_counts_what_it_asked_for_not_what_was_given() -> None:
    earlier = wsabi.integrate(bump, PRIOR, budget=100, rng=0, vectorized=True, tol=0.0)
    again = wsabi.integrate(bump, PRIOR, budget=100, rng=1, vectorized=True, tol=0.0, start=earlier)
    assert again.n_evals == 200
    assert sum(look.n_evals for look in again.looks) <= 100
    assert len(again.looks) > 1


def test_a_cold_q_takes_the_place_of_a_hot_one() -> None:
    """The mass of ℓ^(1/t)π is larger than that of ℓπ, and is no reason to refuse."""
    problem = narrow_gaussian(DIM)
    rng = np.random.default_rng(0)
    explorer = Explorer(PRIOR, rng)
    X = rng.standard_normal((12, DIM))
    explorer.match(X, problem.log_likelihood_vectorized(X))
    assert not explorer.is_cold
    explorer.log_z = 1000.0
    near = np.concatenate([X, 900.0 / 901.0 + rng.standard_normal((30, DIM)) / 30.0])
    log_l = problem.log_likelihood_vectorized(near)
    moved = explorer
    for _ in range(12):
        moved = _rematched(moved, near, log_l)
    assert moved.is_cold
    assert abs(moved.log_z - problem.log_z) < 0.5
