"""Sums over weights against least squares on all of the points."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wsabi.adaptive.bulk.tally import Tally

N = 400


@pytest.fixture(scope="module")
def drawn() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    controls = rng.standard_normal((N, 3))
    log_weights = -3.0 + 0.2 * controls[:, 0] + 0.1 * rng.standard_normal(N)
    log_weights[::50] = -np.inf
    return log_weights, np.column_stack([np.ones(N), controls])


def test_the_mean_is_the_intercept_of_least_squares(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    log_weights, rows = drawn
    mean, variance = Tally.of(-3.0, log_weights, rows).mean()
    f = np.exp(log_weights + 3.0)
    beta, *_ = np.linalg.lstsq(rows, f, rcond=None)
    left = f - rows @ beta
    assert mean == pytest.approx(beta[0], rel=1e-10)
    assert variance == pytest.approx(left @ left / (N * (N - 4)) + (f.max() / N) ** 2, rel=1e-8)


def test_sums_of_parts_are_those_of_the_whole(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    log_weights, rows = drawn
    whole = Tally.of(-3.0, log_weights, rows)
    parts = Tally.of(-3.0, log_weights[:150], rows[:150]) + Tally.of(-3.0, log_weights[150:], rows[150:])
    assert parts.n == whole.n
    np.testing.assert_allclose(parts.mean(), whole.mean(), rtol=1e-10)


def test_a_control_that_is_given_twice_changes_nothing(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    log_weights, rows = drawn
    once = Tally.of(-3.0, log_weights, rows).mean()
    twice = Tally.of(-3.0, log_weights, np.column_stack([rows, 7.0 * rows[:, 1]])).mean()
    assert twice[0] == pytest.approx(once[0], rel=1e-8)
    assert twice[1] == pytest.approx(once[1], rel=0.01)  # one column more is counted


def test_the_variance_is_that_of_the_mean() -> None:
    """1,000 samples of 400: the mean of z² is 1 within 4.5 of its standard errors, √(2/1000) (false alarms: 1e-5)."""
    rng = np.random.default_rng(1)
    z = []
    for _ in range(1000):
        control = rng.standard_normal(400)
        f = 3.0 + 0.3 * control + 0.4 * rng.standard_normal(400)
        mean, variance = Tally.of(0.0, np.log(np.maximum(f, 1e-12)), np.column_stack([np.ones(400), control])).mean()
        z.append((mean - 3.0) / math.sqrt(variance - (f.max() / 400) ** 2))
    assert np.mean(np.square(z)) == pytest.approx(1.0, abs=4.5 * math.sqrt(2.0 / 1000) + 0.01)  # t with 398 degrees


def test_too_few_points_have_no_error() -> None:
    assert Tally.of(0.0, np.zeros(4), np.ones((4, 2))).mean()[1] == math.inf
