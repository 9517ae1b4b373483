"""A tolerance ends a run once further looks and fresh points have checked it, and not with half the mass."""

from __future__ import annotations

import math

import numpy as np
import pytest

import wsabi
from wsabi.engine.adaptive import AdaptiveModel
from wsabi.engine.certificate import ENOUGH_POINTS
from wsabi.engine.lookout import FEWER_RETURNS
from wsabi.result import Result

PRIOR = wsabi.Gaussian([0.0, 0.0])
MODES, WIDTH = np.array([[1.0, 1.0], [-1.1, -0.9]]), 0.1  # no mirror images of each other, twenty sds apart


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
    return wsabi.integrate(one_mode, PRIOR, budget=budget, rng=0, vectorized=True)


@pytest.mark.parametrize("seed", [0, 2, 4])
def test_a_run_without_a_budget_does_not_end_with_one_of_two_modes(seed: int) -> None:
    """One alone is log 2 low. Where the tolerance may end a run before its looks have returned, seed 4 ends so."""
    result = wsabi.integrate(two_modes, PRIOR, rng=seed, vectorized=True)
    assert result.reason == "tolerance"
    assert abs(result.log_z - TWO_MODES) < 0.05
    last = [look.outcome for look in result.looks[-FEWER_RETURNS:]]
    assert last == ["known region"] * FEWER_RETURNS


def test_what_is_not_checked_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small its claim; as soon as it is checked it ends, and not because the budget does."""
    ended = run(120)
    assert ended.reason == "tolerance"
    monkeypatch.setattr(AdaptiveModel, "is_checked", False)
    unchecked = run(120)
    assert unchecked.reason == "budget"
    assert unchecked.n_evals == 120
    monkeypatch.setattr(AdaptiveModel, "is_checked", True)
    assert run(120).n_evals <= ended.n_evals


def test_a_run_that_ends_has_enough_fresh_points_and_looks() -> None:
    result = run()
    assert result.reason == "tolerance"
    assert result.certificate is not None
    assert result.certificate.n_points >= ENOUGH_POINTS
    assert [look.outcome for look in result.looks[1:]] == ["known region"] * (len(result.looks) - 1)
    assert len(result.looks) > FEWER_RETURNS


def test_without_fresh_points_looks_alone_check_it() -> None:
    result = wsabi.integrate(one_mode, PRIOR, rng=0, vectorized=True, settings=wsabi.Settings(certify=0.0))
    assert result.reason == "tolerance"
    assert result.certificate is not None
    assert result.certificate.n_points == 0


def test_the_tolerance_is_what_the_model_plans_for() -> None:
    """Given, or the usual 0.05 where it is not; zero where the whole budget is asked for."""
    integrator = wsabi.Integrator(PRIOR, rng=0)
    planned = []
    for tol in (None, 0.3, 0.0):
        integrator.run(one_mode, budget=1, tol=tol, vectorized=True)
        planned.append(integrator._model.tol)  # type: ignore[union-attr]
    assert planned == [0.05, 0.3, 0.0]
