"""The error bar and its parts: one root sum of squares, put together in one place, readable by a person."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wsabi
from wsabi.result import PART_NAMES, ErrorBudget

PRIOR = wsabi.Gaussian([0.0, 0.0])


def log_l(x: np.ndarray) -> float:
    return float(-2.0 * x @ x)


@given(st.lists(st.floats(0.0, 1e3), min_size=8, max_size=8))
def test_the_total_is_the_root_sum_of_squares(parts: list[float]) -> None:
    budget = ErrorBudget(*parts)
    assert budget.total == pytest.approx(math.sqrt(sum(part**2 for part in parts)), rel=1e-12, abs=1e-300)
    assert list(budget.parts.values()) == parts


def test_every_part_has_a_name_for_people() -> None:
    assert set(PART_NAMES) == {part.name for part in fields(ErrorBudget)}


def test_the_parts_that_matter_are_printed_the_largest_first() -> None:
    budget = ErrorBudget(0.003, unseen=0.012, round_off=1e-9)
    assert str(budget) == "0.012 modes that may have been missed, 0.003 statistical"
    assert str(replace(budget, unseen=0.0)) == "0.003 statistical"


@pytest.mark.parametrize("settings", [wsabi.Settings(), wsabi.Settings(measure="prior"), wsabi.Settings.paper()])
def test_a_result_has_the_budget_of_its_error_bar(settings: wsabi.Settings) -> None:
    budget = 15 if settings.measure == "prior" else 40
    result = wsabi.integrate(log_l, PRIOR, budget=budget, rng=0, settings=settings)
    assert result.error_budget.total == result.log_z_std
    assert f"± {result.log_z_std:.2g}: " in str(result)
    if settings.measure == "prior":
        assert result.error_budget == ErrorBudget(result.model.log_z_std)


def test_another_prior_adds_a_part_and_leaves_the_others() -> None:
    result = wsabi.integrate(log_l, PRIOR, budget=60, rng=0)
    other = result.with_prior(wsabi.Gaussian([0.2, 0.0], 0.8))
    assert other.error_budget.reweighing > 0.0
    assert other.error_budget.total == other.log_z_std
    assert replace(other.error_budget, reweighing=0.0) == result.error_budget


def test_noise_is_a_part() -> None:
    integrator = wsabi.Integrator(PRIOR, rng=0)
    for _ in range(40):
        X = integrator.ask(1)
        integrator.tell(X, [log_l(X[0])])
    before = integrator.result()
    integrator.tell(before.points[5], before.log_likelihoods[5] + 0.5)
    after = integrator.result()
    near = np.sum(before.log_likelihoods > before.log_likelihoods.max() - 5.0)
    assert before.error_budget.noise == 0.0
    assert after.error_budget.noise == pytest.approx(0.5 / math.sqrt(2.0 * near))


def test_the_models_own_belief_is_that_of_wsabi() -> None:
    """log E[Z | D] of the GPs in the regions' coordinates, before any check point has a say."""
    result = wsabi.integrate(log_l, PRIOR, budget=80, rng=0, tol=0)
    assert result.certificate is not None
    assert result.model.log_mean == pytest.approx(-math.log(5.0), abs=0.05)
    assert result.model.log_mean != result.certificate.model_log_z
