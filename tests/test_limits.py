"""What limits a run: the usual budget under either measure, and budgets and tolerances that are none."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import wsabi
from wsabi.limits import checked_budget, checked_tol, default_budget, whole_number


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

    def note(progress: wsabi.loop.Progress) -> None:
        planned.append(progress.budget)
        if progress.n_evals == 12:
            raise KeyboardInterrupt

    settings = wsabi.Settings(measure=measure)
    prior = wsabi.Gaussian([0.0, 0.0])
    integrator = wsabi.Integrator(prior, settings=settings, rng=0)
    result = integrator.run(lambda x: -0.5 * float(x @ x), callback=note)
    assert (result.n_evals, set(planned)) == (12, {budget})
    if measure == "adaptive":
        assert integrator._model.budget == budget  # type: ignore[union-attr]
