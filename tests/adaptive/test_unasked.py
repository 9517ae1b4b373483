"""Evaluations that nobody had asked for: the modes among them are found, and the error bar is not that of a run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wsabi
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.result import Result

PRIOR = wsabi.Gaussian([0.0, 0.0])
WIDE, NARROW = (0.4, -1.0), (0.04, 1.2)  # width and centre of two bumps, of about the same mass
HEIGHT = 4.8  # of the narrow one, in nats


def hill(X: np.ndarray, width: float = 0.4, centre: float = 0.3) -> np.ndarray:
    return np.asarray(-0.5 * np.sum(np.square(X - centre), axis=1) / width**2)


def log_z_of_hill(dim: int, width: float = 0.4, centre: float = 0.3) -> float:
    return dim * (-0.5 * centre**2 / (1.0 + width**2) + math.log(width) - 0.5 * math.log(1.0 + width**2))


def told(X: np.ndarray, log_l: np.ndarray, prior: Any = None) -> wsabi.Integrator:
    integrator = wsabi.Integrator(wsabi.Gaussian(np.zeros(X.shape[1])) if prior is None else prior, rng=0)
    integrator.tell(X, log_l)
    return integrator


def bumps_at(X: np.ndarray) -> np.ndarray:
    return np.asarray(np.logaddexp(hill(X, *WIDE), HEIGHT + hill(X, *NARROW)))


LOG_Z_OF_BUMPS = float(np.logaddexp(log_z_of_hill(2, *WIDE), HEIGHT + log_z_of_hill(2, *NARROW)))
SHARE_OF_NARROW = math.exp(HEIGHT + log_z_of_hill(2, *NARROW) - LOG_Z_OF_BUMPS)


def points_of_bumps() -> np.ndarray:
    """Of a sampler: round both bumps, somewhat wider than they are, and a few of the prior."""
    rng = np.random.default_rng(0)
    round_each = [centre + 1.5 * width * rng.standard_normal((40, 2)) for width, centre in (WIDE, NARROW)]
    return np.concatenate([*round_each, rng.standard_normal((20, 2))])


@pytest.fixture(scope="module")
def bumps() -> Result:
    X = points_of_bumps()
    return told(X, bumps_at(X)).result()


def test_both_modes_among_the_evaluations_are_found(bumps: Result) -> None:
    """One region over both, as it was, is ignorant of what lies between and beside them."""
    assert abs(bumps.log_z - LOG_Z_OF_BUMPS) < 0.02
    assert sum(search.outcome == "new region" for search in bumps.searches) >= 2
    at_narrow = SHARE_OF_NARROW * NARROW[1] / (1.0 + NARROW[0] ** 2)  # the prior draws each bump to its mean
    at_wide = (1.0 - SHARE_OF_NARROW) * WIDE[1] / (1.0 + WIDE[0] ** 2)
    assert_allclose(bumps.posterior.mean, at_narrow + at_wide, atol=0.05)


def test_the_error_bar_holds_modes_that_nobody_has_looked_for(bumps: Result) -> None:
    assert bumps.error_budget.unseen == pytest.approx(math.log(1.1))
    assert bumps.log_z_std < 0.11
    assert any("told and not asked for" in text for text in bumps.warnings)
    assert not any("search" in text.lower() and "budget" in text for text in bumps.warnings)


def test_what_no_evaluation_confirms_is_in_the_error_bar() -> None:
    """The best evaluation lies 2.9 nats below the top; a hill of 3 dimensions is known from its flanks."""
    X = np.random.default_rng(1).standard_normal((60, 3))
    X = X[hill(X) < -2.5]
    result = told(X, hill(X)).result()
    assert abs(result.log_z - log_z_of_hill(3)) < 0.02
    assert result.error_budget.unfinished > 0.3
    assert any("above that of every evaluation" in text for text in result.warnings)


def test_points_on_one_flank_have_a_wide_error_bar() -> None:
    """What the models make of the other side is a guess, whichever points were left out to test them."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((80, 2))
    X = X[X[:, 0] < -0.3]
    log_l = np.logaddexp(hill(X), 1.0 + hill(X, width=0.3, centre=1.4))
    truth = np.logaddexp(log_z_of_hill(2), 1.0 + log_z_of_hill(2, width=0.3, centre=1.4))
    result = told(X, log_l).result()
    assert abs(result.log_z - truth) < 2.0 * result.log_z_std


def test_what_comes_from_no_point_comes_from_the_prior() -> None:
    """Nothing is told of a region: the two halves of a box prior look alike, and nothing crashes."""
    prior = wsabi.Uniform([-1.0, -1.0], [1.0, 1.0])
    X = np.random.default_rng(3).uniform(-1.0, 1.0, (40, 2))
    result = told(X, np.full(40, -3.0), prior).result()
    assert abs(result.log_z + 3.0) < 0.01


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("what", ["hill", "flat", "twins", "half is zero"])
def test_a_few_points_give_a_result(dim: int, n: int, what: str) -> None:
    X = np.random.default_rng(n).standard_normal((n, dim))
    log_l = hill(X)
    if what == "flat":
        log_l = np.zeros(n)
    elif what == "twins":
        X, log_l = np.repeat(X[:1], n, axis=0), np.repeat(log_l[:1], n)
    elif what == "half is zero":
        log_l[1::2] = -math.inf
    integrator = told(X, log_l)
    result = integrator.result()
    assert math.isfinite(result.log_z)
    assert result.log_z_std > 0.05
    integrator.tell(integrator.ask(), [0.0])
    assert math.isfinite(integrator.result().log_z)


def test_a_few_questions_after_many_points_do_not_change_what_is_made_of_them(bumps: Result) -> None:
    X = points_of_bumps()
    integrator = told(X, bumps_at(X))
    x = integrator.ask(3)
    integrator.tell(x, bumps_at(x))
    assert abs(integrator.result().log_z - bumps.log_z) < 0.02


def test_a_result_on_the_way_changes_nothing() -> None:
    X = points_of_bumps()[::4]
    one, other = (told(X, bumps_at(X)) for _ in range(2))
    one.result()
    for _ in range(12):
        a, b = one.ask(), other.ask()
        assert np.array_equal(a, b)
        one.tell(a, bumps_at(a))
        other.tell(b, bumps_at(b))


def test_a_datum_left_out_is_predicted_by_the_others() -> None:
    """As by a surrogate that was never told of it, with the same θ; 1e-6 is what the conditioning leaves."""
    X = np.random.default_rng(4).standard_normal((20, 2))
    log_l = hill(X, width=0.8)
    explorer = Explorer(PRIOR, Frame.of(np.full(2, 0.2), 0.5 * np.eye(2)), temperature=1.0).fitted(X, log_l)
    z, sd = explorer.left_out(X[:3], log_l[:3])
    surrogate = explorer.fitted_surrogate
    for i in range(3):
        row = int(np.argmin(np.linalg.norm(surrogate.Y - explorer.frame.whiten(X[i : i + 1]), axis=1)))
        K = surrogate.L @ surrogate.L.T
        rest = np.delete(np.arange(len(K)), row)
        k = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, row])
        value = (K @ surrogate.weights)[row]
        expected_sd = math.sqrt(K[row, row] - K[row, rest] @ k)
        assert sd[i] == pytest.approx(expected_sd, rel=1e-4)
        assert z[i] == pytest.approx((value - k @ (K @ surrogate.weights)[rest]) / expected_sd, rel=1e-4, abs=1e-4)


def test_a_point_that_is_no_datum_is_predicted_as_usual() -> None:
    X = np.random.default_rng(4).standard_normal((20, 2))
    explorer = Explorer(PRIOR, Frame.of(np.zeros(2), 0.5 * np.eye(2)), temperature=1.0).fitted(X, hill(X))
    new = np.array([[0.1, 0.2]])
    z, sd = explorer.left_out(new, hill(new) + 1.0)
    mean, v = explorer.fitted_surrogate.predict(explorer.frame.whiten(new))
    assert sd[0] == pytest.approx(math.sqrt(v[0] + 1e-6))
    assert z[0] == pytest.approx((hill(new)[0] + 1.0 - explorer.top - mean[0]) / sd[0])
