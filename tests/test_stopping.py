"""A tolerance ends a run once further searches and check points have checked it, and not with half the mass."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

import wsabi
from wsabi.adaptive.tuning import TUNING
from wsabi.result import Result
from wsabi.strategies.adaptive import AdaptiveStrategy

pytestmark = pytest.mark.sensitive

PRIOR = wsabi.Gaussian([0.0, 0.0])
MODES, WIDTH = np.array([[1.0, 1.0], [-1.1, -0.9]]), 0.1  # no symmetry images of each other, twenty sds apart


def two_modes(X: np.ndarray) -> np.ndarray:
    squares = np.square(X[:, None, :] - MODES).sum(axis=2)
    return np.asarray(np.logaddexp.reduce(-0.5 * squares / WIDTH**2, axis=1))


VARIANCE = 1.0 + WIDTH**2
TWO_MODES = math.log(WIDTH**2 / VARIANCE) + float(
    np.logaddexp.reduce(-0.5 * np.square(MODES).sum(axis=1) / VARIANCE)
)  # N(c; 0, (1 + s²)I)·2πs² for each


def one_mode(X: np.ndarray) -> np.ndarray:
    return np.asarray(-0.5 * np.square((X - MODES[0]) / 0.3).sum(axis=1))


def run(budget: int | None = None) -> Result:
    """One mode, until the tolerance or the budget ends it."""
    return wsabi.integrate(one_mode, PRIOR, budget=budget, rng=0, vectorized=True)


def engine_of(integrator: wsabi.Integrator) -> AdaptiveStrategy:
    assert isinstance(integrator.strategy, AdaptiveStrategy)
    return integrator.strategy


@cache
def ended_run() -> Result:
    """The same, with a budget that it does not need."""
    return run(120)


@pytest.mark.parametrize("seed", [0, 2, 4])
def test_a_run_without_a_budget_does_not_end_with_one_of_two_modes(seed: int) -> None:
    """One alone is log 2 low. Where the tolerance may end a run before its searches return, seed 4 ends so."""
    result = wsabi.integrate(two_modes, PRIOR, rng=seed, vectorized=True)
    assert result.reason == "tolerance"
    assert abs(result.log_z - TWO_MODES) < 0.05
    enough = int(TUNING.policy.returns)
    assert [search.outcome for search in result.searches[-enough:]] == ["known region"] * enough


def test_what_is_not_checked_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small its error bar; as soon as it is checked it ends, and not because the budget does."""
    ended = ended_run()
    assert ended.reason == "tolerance"
    monkeypatch.setattr(AdaptiveStrategy, "is_checked", False)
    unchecked = run(120)
    assert ended.n_evals < 120
    assert unchecked.reason == "budget"
    assert unchecked.n_evals == 120
    monkeypatch.setattr(AdaptiveStrategy, "is_checked", True)
    assert run(120).n_evals <= ended.n_evals


def test_a_run_that_ends_has_enough_check_points_and_searches() -> None:
    result = run()
    assert result.reason == "tolerance"
    assert result.certificate is not None
    assert result.certificate.n_points >= TUNING.check.enough_points
    assert [search.outcome for search in result.searches[1:]] == ["known region"] * (len(result.searches) - 1)
    assert len(result.searches) > TUNING.policy.returns


@pytest.mark.parametrize("seed", range(3))
def test_a_small_budget_is_not_ended_by_points_too_few_to_check_it(seed: int) -> None:
    result = wsabi.integrate(one_mode, PRIOR, budget=60, rng=seed, vectorized=True)
    assert result.certificate is not None
    assert result.certificate.n_points >= TUNING.check.min_points
    assert math.isfinite(result.certificate.check_log_z)


def test_without_check_points_searches_alone_check_it() -> None:
    result = wsabi.integrate(one_mode, PRIOR, rng=0, vectorized=True, settings=wsabi.Settings(certify=0.0))
    assert result.reason == "tolerance"
    assert result.certificate is not None
    assert result.certificate.n_points == 0


def test_the_tolerance_is_what_the_engine_plans_for() -> None:
    """Given, or the usual 0.05 where it is not; zero where the whole budget is asked for."""
    integrator = wsabi.Integrator(PRIOR, rng=0)
    planned = []
    for tol in (None, 0.3, 0.0):
        integrator.run(one_mode, budget=1, tol=tol, vectorized=True)
        planned.append(engine_of(integrator).state.tol)
    assert planned == [0.05, 0.3, 0.0]


@pytest.mark.parametrize("certify", [0.0, 0.02])
def test_searches_go_on_with_few_check_points_or_none(certify: float) -> None:
    """A first run ends with one search; what is left of the budget finds the other mode."""
    integrator = wsabi.Integrator(PRIOR, settings=wsabi.Settings(certify=certify), rng=0)
    first = integrator.run(two_modes, budget=35, tol=0, vectorized=True)
    more = integrator.run(two_modes, budget=165, tol=0, vectorized=True)
    assert len(more.searches) > len(first.searches) + 2
    assert abs(more.log_z - TWO_MODES) < 0.05


def test_where_only_time_limits_a_run_searches_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares refer to the usual number of evaluations, once that is spent to as many again."""
    integrator = wsabi.Integrator(PRIOR, rng=0, settings=wsabi.Settings(bulk="off"))
    monkeypatch.setattr(integrator, "usual_budget", 40)
    counted = 0

    def counting(X: np.ndarray) -> np.ndarray:
        nonlocal counted
        counted += len(X)
        if counted > 130:
            raise KeyboardInterrupt
        return one_mode(X)

    result = integrator.run(counting, max_seconds=600.0, tol=0, vectorized=True)
    assert result.n_evals == 130
    assert engine_of(integrator).budget == 160
    assert sum(search.n_evals for search in result.searches) > 40


def test_the_last_record_is_the_result() -> None:
    """A run that ends by its tolerance has just been recorded, with less care."""
    result = ended_run()
    assert result.reason == "tolerance"
    last = result.history[-1]
    assert (last.n_evals, last.log_z, last.log_z_std) == (result.n_evals, result.log_z, result.log_z_std)
    assert result.history[-2].n_evals < last.n_evals
