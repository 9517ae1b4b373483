"""For those who own the loop: budgets, dicts, failures, threads, and callbacks that stop."""

from __future__ import annotations

import math
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from scipy import stats

import wsabi
from wsabi.ledger import Asked

PRIOR = wsabi.Gaussian([0.0, 0.0])
NAMED = {"a": stats.norm(), "b": [stats.norm(), (0.0, 1.0)]}
PLAIN = wsabi.Settings(measure="prior")


def log_l(x: np.ndarray) -> float:
    return -0.5 * float(x @ x)


def named(p: dict[str, Any]) -> float:
    return -0.5 * float(p["a"] ** 2 + np.sum(np.square(p["b"])))


# -- budgets and ends -------------------------------------------------------------------------------------------------


def test_a_budget_and_a_tolerance_end_the_loop_with_the_reason() -> None:
    it = wsabi.Integrator(PRIOR, settings=PLAIN, rng=0, budget=15, tol=1e-9)
    assert it.done is None
    assert math.isnan(it.log_z)
    while not it.done:
        x = it.ask(1)
        it.tell(x, [log_l(x[0])])
    assert (it.done, it.n_evals) == ("budget", 15)
    assert (it.log_z, it.log_z_std) == (it.history[-1].log_z, it.history[-1].log_z_std)
    loose = wsabi.Integrator(PRIOR, settings=PLAIN, rng=0, budget=100, tol=0.05)
    while not loose.done:
        x = loose.ask(1)
        loose.tell(x, [log_l(x[0])])
    assert (loose.done, loose.n_evals < 40) == ("tolerance", True)
    assert loose.result().log_z_std <= 0.05


def test_the_budget_is_planned_as_integrate_plans_it() -> None:
    """Check points come in time for a small budget."""
    it = wsabi.Integrator(PRIOR, rng=0, budget=60, tol=0)
    while not it.done:
        x = it.ask(1)
        it.tell(x, [log_l(x[0])])
    same = wsabi.integrate(log_l, PRIOR, budget=60, tol=0, rng=0)
    result = it.result()
    assert np.array_equal(result.points, same.points)
    assert result.log_z == same.log_z
    assert result.ledger is not None
    assert any("check" in event.purposes for event in result.ledger.events if isinstance(event, Asked))


@pytest.mark.parametrize(("given", "message"), [({"budget": 0}, "budget must be"), ({"tol": -1.0}, "tol must be")])
def test_what_makes_no_sense_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wsabi.Integrator(PRIOR, **given)


# -- dicts ------------------------------------------------------------------------------------------------------------


def test_points_are_dicts_where_the_prior_is_one() -> None:
    it = wsabi.Integrator(NAMED, settings=PLAIN, rng=0)
    assert it.names == ("a", "b[0]", "b[1]")
    points = it.ask(3)
    assert [sorted(p) for p in points] == [["a", "b"]] * 3
    it.tell(points, [named(p) for p in points])
    it.tell(points[0], named(points[0]))  # one by itself, told before
    it.tell({"b": [0.1, 0.2], "a": 0.3}, -1.0)
    X = it.ask(2, as_dict=False)
    assert X.shape == (2, 3)
    it.tell(X, [0.0, 0.0])
    assert it.n_evals == 7
    assert len(it.pending) == 0
    assert it.result().points[4].tolist() == [0.3, 0.1, 0.2]


def test_dicts_for_a_prior_of_arrays() -> None:
    it = wsabi.Integrator(PRIOR, settings=PLAIN, rng=0)
    (point,) = it.ask(1, as_dict=True)
    assert sorted(point) == ["x0", "x1"]
    it.tell(point, 0.0)
    assert len(it.pending) == 0


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"a": 1.0}, r"a point of X has keys \['a'\]; expected a dict with the keys 'a', 'b'"),
        ({"a": 1.0, "c": 2.0}, "expected a dict with the keys"),
        ([{"a": 1.0, "b": [0.0, 0.5]}, 3.0], "a point of X has float; expected a dict"),
    ],
)
def test_wrong_dicts_are_named(point: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wsabi.Integrator(NAMED).tell(point, 0.0)


# -- failures ---------------------------------------------------------------------------------------------------------


def test_a_failure_is_left_out_and_not_asked_for_again() -> None:
    it = wsabi.Integrator(PRIOR, settings=PLAIN, rng=0, budget=30, tol=0)
    bad = []
    while not it.done:
        x = it.ask(1)
        if x[0, 0] > 1.0:
            it.tell_failure(x, "out of memory")
            bad.append(x[0])
        else:
            it.tell(x, [log_l(x[0])])
    assert it.n_failed == len(bad) > 1
    assert it.n_evals + it.n_failed == 30
    apart = np.linalg.norm(np.array(bad)[:, None] - np.array(bad), axis=2) + 9 * np.eye(len(bad))
    assert np.min(apart) > 0.1
    result = it.result()
    assert result.n_evals == it.n_evals
    assert np.all(np.isfinite(result.log_likelihoods))
    assert result.ledger is not None
    assert sum(one.failure == "out of memory" for one in result.ledger.evaluations) == len(bad)


def test_a_failure_to_be_tried_again_comes_first() -> None:
    it = wsabi.Integrator(PRIOR, settings=PLAIN, rng=0)
    X = it.ask(2)
    it.tell_failure(X[1], "node lost", again=True)
    assert np.array_equal(it.ask(1)[0], X[1])
    it.tell(X, [0.0, 0.0])
    assert it.n_failed == 0
    with pytest.raises(ValueError, match=r"X\[0\] = .* was told a value: only points that are under way can fail"):
        it.tell_failure(X[0])
    with pytest.raises(ValueError, match="was never asked for"):
        it.tell_failure([[7.0, 7.0]])


# -- threads ----------------------------------------------------------------------------------------------------------


def test_threads_may_share_one_integrator() -> None:
    it = wsabi.Integrator(PRIOR, settings=PLAIN, rng=0, budget=40, tol=0)
    faults: list[BaseException] = []

    def work() -> None:
        try:
            while not it.done:
                x = it.ask(1)
                it.tell(x, [log_l(x[0])])
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert 40 <= it.n_evals <= 43
    assert abs(it.result().log_z + math.log(2.0)) < 1e-2
    assert pickle.loads(pickle.dumps(it)).n_evals == it.n_evals


# -- callbacks --------------------------------------------------------------------------------------------------------


def test_a_callback_that_returns_false_ends_the_run() -> None:
    result = wsabi.integrate(log_l, PRIOR, budget=30, rng=0, settings=PLAIN, callback=lambda s: s.n_evals < 12)
    assert (result.reason, result.n_evals) == ("callback", 12)
    assert "the callback ended the run" in str(result)


def test_a_callback_sees_enough_to_draw_and_to_checkpoint() -> None:
    copies: list[bytes] = []

    def look(state: wsabi.run.Progress) -> None:
        assert state.best == max(state.integrator.log_likelihoods)
        assert (state.n_pending, state.n_failed, state.phase) == (0, 0, "refine")
        if state.n_evals == 10:
            copies.append(pickle.dumps(state.integrator))

    result = wsabi.integrate(log_l, PRIOR, budget=20, rng=0, settings=PLAIN, callback=look)
    copy = pickle.loads(copies[0])
    assert np.array_equal(copy.run(log_l, budget=10).points, result.points)


def test_an_exception_in_a_callback_keeps_the_evaluations() -> None:
    def fails(state: Any) -> None:
        if state.n_evals == 9:
            raise OSError("no space for the picture")

    with pytest.raises(OSError, match="no space for the picture") as caught:
        wsabi.integrate(log_l, PRIOR, budget=20, rng=0, settings=PLAIN, callback=fails)
    assert caught.value.result.n_evals == 9  # type: ignore[attr-defined]
    assert "has the 9 evaluations made so far" in caught.value.__notes__[0]
