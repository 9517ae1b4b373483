"""Linear algebra on one thread while the library works, and on as many as the user likes everywhere else."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import threadpoolctl  # type: ignore[import-untyped]

import wsabi
from wsabi._core import threads
from wsabi._core.threads import single_threaded
from wsabi.strategies.adaptive import AdaptiveStrategy

PRIOR = wsabi.Gaussian([0.0, 0.0])


def n_threads() -> set[int]:
    """Threads that the BLAS libraries loaded by now would use, one number where they agree."""
    return {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """The user's own setting, which a machine of one core allows too."""
    with threadpoolctl.threadpool_limits(2):
        assert n_threads() == {2}
        yield


def log_l(x: np.ndarray) -> float:
    return -0.5 * float(x @ x)


def test_a_function_runs_on_one_thread_and_sets_it_back() -> None:
    @single_threaded
    def seen(number: int, *, twice: bool = False) -> tuple[set[int], int]:
        """Its own docstring."""
        return n_threads(), 2 * number if twice else number

    assert seen(3, twice=True) == ({1}, 6)
    assert n_threads() == {2}
    with threadpoolctl.threadpool_limits(3):  # set anew since the first call
        assert seen(3) == ({1}, 3)
        assert n_threads() == {3}
    assert (seen.__name__, seen.__doc__) == ("seen", "Its own docstring.")


def test_one_within_the_other_sets_back_what_the_outer_found() -> None:
    inner = single_threaded(n_threads)
    outer = single_threaded(lambda: (inner(), n_threads()))
    assert outer() == ({1}, {1})
    assert n_threads() == {2}


def test_threads_that_leave_in_the_order_they_entered_set_it_back() -> None:
    """The second finds one thread where the first found two; what the last sets back is what the first found."""
    threads._release()  # the fixture's hold on them
    first_is_in, second_is_in, first_is_out = threading.Event(), threading.Event(), threading.Event()

    @single_threaded
    def first() -> None:
        first_is_in.set()
        assert second_is_in.wait(10)

    @single_threaded
    def second() -> set[int]:
        second_is_in.set()
        assert first_is_out.wait(10)
        return n_threads()

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(first)
        assert first_is_in.wait(10)
        other = pool.submit(second)
        one.result()
        first_is_out.set()
        assert other.result() == {1}
    assert n_threads() == {2}


def test_an_error_sets_it_back_too() -> None:
    @single_threaded
    def broken() -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        broken()
    assert n_threads() == {2}


def test_without_a_controller_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where threadpoolctl is not installed."""
    monkeypatch.setattr(threads, "_controller", lambda: None)
    assert single_threaded(n_threads)() == {2}
    seen: list[set[int]] = []
    ask = AdaptiveStrategy.ask
    monkeypatch.setattr(AdaptiveStrategy, "ask", lambda *given: (seen.append(n_threads()), ask(*given))[1])
    integrator = wsabi.Integrator(PRIOR, rng=0)
    integrator.tell(integrator.ask(4), np.zeros(4))
    assert integrator.n_evals == 4
    assert seen == [{2}] * 4


def test_no_threadpoolctl_is_no_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    assert threads._controller.__wrapped__() is None


def test_the_likelihood_sees_the_users_threads_and_the_model_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """In runs, in climbs by gradients and where the user owns the loop; inside ask, tell and result it is one."""
    seen: dict[str, list[set[int]]] = {"likelihood": [], "gradient": []}
    ours = ("ask", "tell", "climbed", "estimate", "conclude")
    for name in ours:
        method, seen[name] = getattr(AdaptiveStrategy, name), []

        def noting(*arguments: Any, _method: Any = method, _name: str = name, **keywords: Any) -> Any:
            seen[_name].append(n_threads())
            return _method(*arguments, **keywords)

        monkeypatch.setattr(AdaptiveStrategy, name, noting)

    def likelihood(x: np.ndarray) -> float:
        seen["likelihood"].append(n_threads())
        return log_l(x)

    def gradient(x: np.ndarray) -> np.ndarray:
        seen["gradient"].append(n_threads())
        return -x

    integrator = wsabi.Integrator(PRIOR, rng=0)
    integrator.run(likelihood, budget=60, grad=gradient, tol=0.0)
    assert len(seen["likelihood"]) == 60
    for name in ("likelihood", "gradient"):
        assert seen[name]
        assert set.union(*seen[name]) == {2}
    X = integrator.ask(2)
    integrator.tell(X, [log_l(x) for x in X])
    integrator.result()
    for name in ours:
        assert seen[name]
        assert set.union(*seen[name]) == {1}, name
    assert n_threads() == {2}


@pytest.mark.parametrize("fault", ["raises", "interrupts", "nan"])
def test_a_likelihood_that_fails_leaves_the_users_threads(fault: str) -> None:
    def failing(x: np.ndarray) -> float:
        if len(calls) == 15:
            if fault == "nan":
                return float("nan")
            raise RuntimeError("no") if fault == "raises" else KeyboardInterrupt
        calls.append(x)
        return log_l(x)

    calls: list[np.ndarray] = []
    if fault == "interrupts":
        assert wsabi.integrate(failing, PRIOR, budget=30, rng=0).reason == "interrupted"
    else:
        with pytest.raises(wsabi.LikelihoodError):
            wsabi.integrate(failing, PRIOR, budget=30, rng=0)
    assert n_threads() == {2}


def test_what_is_wrong_with_a_call_leaves_the_users_threads() -> None:
    integrator = wsabi.Integrator(PRIOR, rng=0)
    with pytest.raises(ValueError, match="whole number"):
        integrator.ask(0)
    with pytest.raises(ValueError, match="shape"):
        integrator.tell([[0.0, 0.0, 0.0]], [0.0])
    assert n_threads() == {2}


def test_a_run_repeats_whatever_the_number_of_threads() -> None:
    """To the last bit: what the model computes is computed on one."""
    results = []
    for number in (1, 2):
        with threadpoolctl.threadpool_limits(number):
            results.append(wsabi.integrate(log_l, PRIOR, budget=40, rng=0))
    assert np.array_equal(results[0].points, results[1].points)
    assert results[0].log_z == results[1].log_z
