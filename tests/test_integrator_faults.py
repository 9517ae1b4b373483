"""The loop: budgets, stopping, callbacks, interrupts and faults; nothing that was evaluated is ever lost."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import wsabi
from wsabi.adaptive import algorithm, searches
from wsabi.adaptive.models import Models
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.result import Result
from wsabi.run import Progress
from wsabi.running.options import default_budget
from wsabi.strategies import adaptive as strategy

PLAIN = wsabi.Settings(measure="prior")
PRIOR = wsabi.Gaussian([0.0, 0.0])
TRUTH = -math.log(2.0)  # exp(−½xᵀx) under N(0, I₂)


def log_l(x: np.ndarray) -> float:
    return -0.5 * float(x @ x)


def log_ls(X: np.ndarray) -> np.ndarray:
    return np.array([log_l(x) for x in X])  # the same rounding


class Counter:
    """The likelihood, with a record of its calls; from call ``limit`` on it does ``then`` instead."""

    def __init__(self, limit: float = math.inf, then: Callable[[], float] | None = None) -> None:
        self.points: list[tuple[float, ...]] = []
        self.limit, self.then = limit, then

    def __call__(self, x: np.ndarray) -> float:
        if self.then is not None and len(self.points) >= self.limit:
            return self.then()
        self.points.append(tuple(x))
        return log_l(x)


def evaluations(error: wsabi.NumericalError) -> tuple[np.ndarray, np.ndarray]:
    """(points, log_likelihoods) that came back with the error."""
    assert isinstance(error.state, tuple)
    points, values = error.state
    return points, values


def interrupt() -> float:
    raise KeyboardInterrupt


def boom() -> float:
    raise ZeroDivisionError("boom")


def integrator(rng: int = 0, prior: Any = PRIOR, **choices: Any) -> wsabi.Integrator:
    return wsabi.Integrator(prior, settings=wsabi.Settings(measure="prior", **choices), rng=rng)


def run(budget: int = 20, **arguments: Any) -> Result:
    given = {"rng": 0, "settings": PLAIN, **arguments}
    return wsabi.integrate(given.pop("log_likelihood", log_l), given.pop("prior", PRIOR), budget=budget, **given)


def assert_same(a: Result, b: Result) -> None:
    """Bit for bit, but for the clock."""
    assert_array_equal(a.points, b.points)
    assert_array_equal(a.log_likelihoods, b.log_likelihoods)
    assert (a.log_z, a.log_z_std, a.model, a.fits, a.warnings) == (b.log_z, b.log_z_std, b.model, b.fits, b.warnings)
    numbers = [[(r.n_evals, r.log_z, r.log_z_std) for r in result.history] for result in (a, b)]
    assert numbers[0] == numbers[1]


# -- budgets and stopping ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [0, -1, 10.5, True, "10"])
def test_a_budget_is_a_whole_number(budget: Any) -> None:
    with pytest.raises(ValueError, match="budget must be a whole number of evaluations, at least 1; got"):
        run(budget)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("max_seconds", 0.0), ("max_seconds", math.nan), ("max_seconds", "3"), ("tol", -1.0),
        ("tol", math.nan), ("batch", 0), ("batch", 1.5), ("settings", {"method": "wsabi-l"}),
    ],
)  # fmt: skip
def test_other_arguments_are_checked_before_anything_is_evaluated(argument: str, value: Any) -> None:
    likelihood = Counter()
    with pytest.raises((ValueError, TypeError), match=argument):
        run(log_likelihood=likelihood, **{argument: value})
    assert likelihood.points == []


def test_a_misspelt_argument_is_an_error() -> None:
    with pytest.raises(TypeError, match="bugdet"):
        wsabi.integrate(log_l, PRIOR, bugdet=10)  # type: ignore[call-arg]


@pytest.mark.parametrize("batch", [1, 7])
def test_the_budget_is_spent_exactly(batch: int) -> None:
    likelihood = Counter()
    result = run(np.int64(17), log_likelihood=likelihood, batch=batch)  # type: ignore[arg-type]
    assert (result.n_evals, len(likelihood.points)) == (17, 17)
    assert (result.reason, result.converged) == ("budget", False)


def test_without_a_budget_there_is_a_default() -> None:
    result = wsabi.integrate(lambda x: -0.5 * float(x[0] ** 2), wsabi.Gaussian([0.0]), rng=0, settings=PLAIN)
    assert result.n_evals == default_budget(1, adaptive=False) == 150


def test_the_budget_in_seconds() -> None:
    def slow(x: np.ndarray) -> float:
        time.sleep(0.02)
        return log_l(x)

    began = time.perf_counter()
    result = wsabi.integrate(slow, PRIOR, max_seconds=0.2, rng=0, settings=PLAIN)
    assert result.reason == "time"
    assert 1 <= result.n_evals <= 10  # 0.2 s of 0.02 s each
    assert 0.2 <= time.perf_counter() - began < 5.0
    assert run(5, max_seconds=60.0).reason == "budget"


def test_stopping_at_a_tolerance() -> None:
    loose, tight = run(100, tol=1e-2), run(100, tol=1e-3)
    for result, tol in ((loose, 1e-2), (tight, 1e-3)):
        assert (result.reason, result.converged) == ("tolerance", True)
        assert result.log_z_std < tol
        assert abs(result.log_z - TRUTH) < 5 * tol
    assert 12 <= loose.n_evals < tight.n_evals < 100  # never inside the first design
    assert run(30, tol=1e-12).reason == "budget"


def test_the_callback_sees_every_step() -> None:
    seen: list[Progress] = []
    result = run(12, callback=seen.append)
    assert [state.n_evals for state in seen] == list(range(1, 13))
    assert {state.budget for state in seen} == {12}
    assert all(a.seconds <= b.seconds for a, b in itertools.pairwise(seen))
    assert [(s.n_evals, s.log_z, s.log_z_std) for s in seen] == [
        (r.n_evals, r.log_z, r.log_z_std) for r in result.history
    ]
    batches: list[Progress] = []
    run(12, batch=5, callback=batches.append)
    assert [state.n_evals for state in batches] == [5, 10, 12]


def test_an_error_in_the_callback_is_the_users_own() -> None:
    mine = integrator()
    with pytest.raises(RuntimeError, match="no terminal"):
        mine.run(log_l, budget=10, callback=lambda state: (_ for _ in ()).throw(RuntimeError("no terminal")))
    assert mine.n_evals == 1
    assert_same(run(10), mine.run(log_l, budget=9))


# -- interrupts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [1, 4, 15])
def test_ctrl_c_returns_the_result_so_far_and_the_run_can_go_on(calls: int) -> None:
    """The point that was interrupted is asked for again: the resumed run is the unbroken one, bit for bit."""
    mine = integrator()
    result = mine.run(Counter(calls, interrupt), budget=30)
    assert (result.reason, result.converged, result.n_evals) == ("interrupted", False, calls)
    assert math.isfinite(result.log_z)
    assert_same(run(30), mine.run(log_l, budget=30 - calls))


def test_ctrl_c_before_anything_is_known_is_ctrl_c() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(log_likelihood=Counter(0, interrupt))


@pytest.mark.parametrize("place", ["_append", "_refit", "_choose", "_l_tilde"])
def test_ctrl_c_inside_the_model_loses_nothing(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cheap likelihood is interrupted in our own code, most of the time: the model must not be left half-grown."""
    mine = integrator()
    mine.run(log_l, budget=12)
    original, calls = getattr(SequentialModel, place), itertools.count()

    def interrupted(self: SequentialModel, *given: Any) -> Any:
        if next(calls) == 2:
            raise KeyboardInterrupt
        return original(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(SequentialModel, place, interrupted)
        result = mine.run(log_l, budget=30)
    assert result.reason == "interrupted"
    assert result.n_evals == len(result.points) == mine.n_evals
    assert_array_equal(result.log_likelihoods, log_ls(result.points))
    further = mine.run(log_l, budget=10)
    assert further.n_evals == result.n_evals + 10
    assert abs(further.log_z - TRUTH) < 5e-3


@pytest.mark.parametrize(
    ("place", "call"),
    [
        (strategy, "step"), (strategy, "with_told"), (algorithm, "noticed"), (algorithm, "chosen"),
        (algorithm, "rebuilt"), (searches, "advanced"), (Models, "observe"), (Models, "propose"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_ctrl_c_inside_the_engine_loses_nothing_and_the_run_goes_on_as_the_unbroken_one(
    place: Any, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it falls, before or after the work was done: the state is folded again from the ledger."""
    unbroken = wsabi.Integrator(PRIOR, rng=0)
    calls = itertools.count()
    original = getattr(place, call)

    def counted(*given: Any) -> Any:
        next(calls)
        return original(*given)

    with monkeypatch.context() as patch:
        patch.setattr(place, call, counted)
        expected = unbroken.run(log_l, budget=60, tol=0.0)
    n_calls = next(calls)
    assert n_calls >= 1
    for late in (False, True):
        mine, calls = wsabi.Integrator(PRIOR, rng=0), itertools.count()

        def interrupted(*given: Any, late: bool = late, calls: Iterator[int] = calls) -> Any:
            here = next(calls) == n_calls // 2
            if here and not late:
                raise KeyboardInterrupt
            done = original(*given)
            if here:
                raise KeyboardInterrupt
            return done

        with monkeypatch.context() as patch:
            patch.setattr(place, call, interrupted)
            stopped = mine.run(log_l, budget=60, tol=0.0)
        assert stopped.reason == "interrupted"
        assert stopped.n_evals == len(stopped.points) == mine.n_evals
        assert_array_equal(stopped.points, expected.points[: stopped.n_evals])
        assert_array_equal(stopped.log_likelihoods, log_ls(stopped.points))
        assert_same(expected, mine.run(log_l, budget=60 - stopped.n_evals, tol=0.0))


# -- faults -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "then", [boom, lambda: math.nan, lambda: math.inf, lambda: [1.0, 2.0]], ids=["raise", "nan", "inf", "shape"]
)
def test_a_fault_carries_the_point_and_all_earlier_evaluations(then: Any) -> None:
    likelihood = Counter(9, then)
    with pytest.raises(wsabi.LikelihoodError) as caught:
        run(log_likelihood=likelihood)
    error, unbroken = caught.value, run(10)
    assert_array_equal(error.point, unbroken.points[9])
    assert error.result is not None
    assert (error.result.reason, error.result.n_evals) == ("error", 9)
    assert_array_equal(error.result.points, unbroken.points[:9])


@pytest.mark.parametrize(("then", "vectorized"), [(boom, False), (interrupt, False), (None, True)])
def test_what_a_batch_had_finished_is_kept(then: Any, vectorized: bool) -> None:
    """Ten calls paid for, then a fault or Ctrl-C in the middle of a batch of four: all ten are in the result."""
    likelihood = Counter(10, then)
    done = itertools.count()

    def together(X: np.ndarray) -> np.ndarray:
        return np.array([log_l(x) if next(done) != 10 else math.nan for x in X])

    mine = integrator()
    try:
        result = mine.run(together if vectorized else likelihood, budget=30, batch=4, vectorized=vectorized)
    except wsabi.LikelihoodError as error:
        assert error.result is not None  # noqa: PT017
        result = error.result
    assert result.n_evals == (11 if vectorized else 10)
    assert_array_equal(result.log_likelihoods, log_ls(result.points))


def test_a_fault_at_the_first_point_has_no_result_to_carry() -> None:
    with pytest.raises(wsabi.LikelihoodError, match="raised ZeroDivisionError at x =") as caught:
        run(log_likelihood=Counter(0, boom))
    assert caught.value.result is None


def test_a_breakdown_of_the_model_does_not_lose_the_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the linear algebra does, what was paid for comes back with the error."""
    original = SequentialModel.belief

    def breaks(self: SequentialModel) -> Any:
        if len(self.X) > 9:
            raise wsabi.NumericalError("K is too ill-conditioned")
        return original(self)

    monkeypatch.setattr(SequentialModel, "belief", breaks)
    with pytest.raises(wsabi.NumericalError, match="ill-conditioned") as caught:
        run(20)
    points, values = evaluations(caught.value)
    assert len(points) >= 10
    assert_array_equal(values, log_ls(points))


def test_nothing_but_minus_infinity_is_said_and_not_guessed() -> None:
    with pytest.raises(wsabi.NoMassFound, match="none of 15 evaluations has a finite log-likelihood") as caught:
        run(15, log_likelihood=lambda x: -math.inf)
    points, values = evaluations(caught.value)
    assert points.shape == (15, 2)
    assert_array_equal(values, np.full(15, -np.inf))


def test_no_result_before_the_first_value() -> None:
    """Not "none of 0 evaluations is finite", which sends the reader to the likelihood."""
    with pytest.raises(wsabi.NoMassFound, match=r"nothing was evaluated yet.*tell\(X, log_l\), before result\(\)"):
        integrator().result()
