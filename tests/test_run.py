"""What limits a run: the usual budget under either measure, and budgets and tolerances that are none."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from typing import Any

import numpy as np
import pytest

import wsabi
from wsabi._core.checks import whole_number
from wsabi.adaptive.surrogate.theta import n_coefficients
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import LikelihoodError
from wsabi.running.options import (
    RunArguments,
    RunOptions,
    checked_budget,
    checked_tol,
    default_budget,
    too_few_evaluations,
)

MANY = TUNING.surrogate.many_dimensions


@pytest.mark.parametrize(
    ("dim", "adaptive", "budget"), [(1, True, 300), (1, False, 150), (8, True, 1000), (8, False, 500)]
)
def test_the_usual_budget(dim: int, adaptive: bool, budget: int) -> None:
    """100(D + 2) under the adaptive measure, which ends by its tolerance long before; 50(D + 2) under the prior."""
    assert default_budget(dim, adaptive=adaptive) == budget


@pytest.mark.parametrize(
    ("budget", "max_seconds", "expected"), [(None, None, 77), (12, None, 12), (12, 3.0, 12), (None, 3.0, 2**31)]
)
def test_without_a_budget_it_is_the_default_unless_time_is_limited(
    budget: int | None, max_seconds: float | None, expected: int
) -> None:
    assert checked_budget(budget, 77, max_seconds) == expected


@pytest.mark.parametrize("value", [1000, 1e3, np.int32(1000), np.float64(1e3), np.float32(1e3)], ids=lambda v: repr(v))
def test_a_float_that_is_a_whole_number_will_do(value: Any) -> None:
    """1e3 is how many people write a thousand; what goes on is an int, for it is used as a size."""
    for checked in (checked_budget(value, 77, None), whole_number("batch", value)):
        assert (checked, type(checked)) == (1000, int)


@pytest.mark.parametrize("value", [0, 0.0, 1e3 + 0.5, np.float64(2.5), math.inf, math.nan, True, np.True_, "8", None])
def test_what_is_not_a_whole_number_is_refused_by_name(value: Any) -> None:
    with pytest.raises(ValueError, match=f"batch must be a whole number, at least 1; got {re.escape(repr(value))}"):
        whole_number("batch", value)


@pytest.mark.parametrize("budget", [0, -1, 1.5, 1e3 + 0.5, math.inf, True, "many"])
def test_a_budget_is_a_whole_number(budget: Any) -> None:
    with pytest.raises(ValueError, match="budget must be a whole number of evaluations"):
        checked_budget(budget, 77, None)


@pytest.mark.parametrize("tol", [-0.1, float("nan"), "small", True])
def test_a_tolerance_is_a_number(tol: Any) -> None:
    with pytest.raises(ValueError, match="tol must be"):
        checked_tol(tol)


@pytest.mark.parametrize(("measure", "budget"), [("adaptive", 400), ("prior", 200)])
def test_a_run_without_a_budget_plans_for_the_usual_one(measure: Any, budget: int) -> None:
    planned = []

    def note(progress: wsabi.run.Progress) -> None:
        planned.append(progress.budget)
        if progress.n_evals == 12:
            raise KeyboardInterrupt

    settings = wsabi.Settings(measure=measure)
    prior = wsabi.Gaussian([0.0, 0.0])
    integrator = wsabi.Integrator(prior, settings=settings, rng=0)
    result = integrator.run(lambda x: -0.5 * float(x @ x), callback=note)
    assert (result.n_evals, set(planned)) == (12, {budget})
    if measure == "adaptive":
        assert integrator.strategy.budget == budget  # type: ignore[attr-defined]


@pytest.mark.parametrize(("dim", "coefficients"), [(1, 3), (2, 6), (20, 231), (30, 496)])
def test_the_coefficients_of_a_quadratic(dim: int, coefficients: int) -> None:
    """A constant, D slopes and D(D + 1)/2 curvatures."""
    assert n_coefficients(dim) == coefficients == 1 + dim + dim * (dim + 1) // 2


@pytest.mark.parametrize(("dim", "budget"), [(1, 1), (10, 20), (MANY, 1), (30, 558), (30, 3200), (25, 403)])
def test_evaluations_that_may_be_enough(dim: int, budget: int) -> None:
    """In few dimensions nothing is said; in many a quadratic and the first design, 496 + 62 in 30-D, are enough."""
    assert too_few_evaluations(dim, budget) is None


def test_evaluations_that_cannot_be_enough() -> None:
    message = too_few_evaluations(30, 557)
    assert message is not None
    for part in ("30 dimensions", "about 560 evaluations", "496 coefficients", "this run has 557", "gradients"):
        assert part in message


class _FirstEvaluationError(Exception):
    pass


def _stop(x: np.ndarray) -> float:
    raise _FirstEvaluationError


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("dim", "arguments", "is_too_few"),
    [
        (30, {"budget": 400}, True),
        (30, {"budget": 400, "grad": _stop}, False),
        (30, {}, False),
        (30, {"max_seconds": 60.0}, False),
        (30, {"budget": 400, "settings": wsabi.Settings(measure="prior")}, False),
        (20, {"budget": 40}, False),
    ],
)
def test_a_run_with_too_few_evaluations_says_so_before_the_first(
    dim: int, arguments: dict[str, Any], is_too_few: bool
) -> None:
    error: type[Exception] = wsabi.EvidenceWarning if is_too_few else LikelihoodError
    with pytest.raises(error, match="30 dimensions need" if is_too_few else None):
        wsabi.integrate(_stop, wsabi.Gaussian(np.zeros(dim)), rng=0, **arguments)


def test_the_arguments_of_a_run_are_the_same_everywhere() -> None:
    """They stand in the signature of the door, in RunOptions, and as the types of Integrator.run."""
    options = {one.name: one.default for one in dataclasses.fields(RunOptions)}
    assert RunArguments.__annotations__.keys() == options.keys()
    door = {one.name: one.default for one in inspect.signature(wsabi.integrate).parameters.values()}
    own = {"log_likelihood", "prior", "rng", "settings", "start", "journal", "progress"}
    assert {name: default for name, default in door.items() if name not in own} == options


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": 0}, "budget must be"),
        ({"max_seconds": -1.0}, "max_seconds must be"),
        ({"tol": -1.0}, "tol must be"),
        ({"batch": 0}, "batch must be"),
        ({"retries": -1}, "retries must be"),
        ({"on_error": "ignore"}, "on_error must be one of"),
        ({"workers": 0}, "workers must be"),
        ({"workers": 2, "timeout": 0.0}, "timeout must be"),
        ({"timeout": 1.0}, "timeout needs workers="),
        ({"executor": 1, "client": 1}, "executor or client, not both"),
        ({"grad": abs, "workers": 2}, "leave out workers"),
    ],
)
def test_options_are_checked_when_they_are_built(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RunOptions(**arguments)
