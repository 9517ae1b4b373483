"""Points that the user believes in: searched first, never trusted alone."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import wsabi

PRIOR = wsabi.Gaussian(np.zeros(2), 9.0)
MODES = np.array([[-4.0, 3.0], [4.0, -2.0]])
SD = 0.05
EACH = float(2.0 * math.log(SD / 3.0))


def needles(x: np.ndarray) -> float:
    """Two needles that few draws of the prior come near."""
    return float(np.logaddexp.reduce(-0.5 * np.sum(np.square((x - MODES) / SD), axis=1)))


def log_z() -> float:
    return float(np.logaddexp.reduce([EACH - 0.5 * mode @ mode / 9.0 for mode in MODES]))


def test_modes_that_are_pointed_at_are_found_first() -> None:
    settings = wsabi.Settings(starts=MODES + 0.3)
    result = wsabi.integrate(needles, PRIOR, budget=250, rng=0, settings=settings)
    assert [search.outcome for search in result.searches[:2]] == ["new region", "new region"]
    assert [search.start for search in result.searches[:2]] == ["point", "point"]
    assert any(search.start == "prior" for search in result.searches)  # never trusted alone
    assert abs(result.log_z - log_z()) < max(3.0 * result.log_z_std, 0.05)


def test_a_chain_in_one_mode_is_one_search() -> None:
    draws = MODES[0] + SD * np.random.default_rng(0).standard_normal((300, 2))
    result = wsabi.integrate(needles, PRIOR, budget=120, rng=0, settings=wsabi.Settings(starts=draws))
    assert sum(search.start == "point" for search in result.searches) <= 2


def test_starts_are_named_as_the_prior_is(tmp_path: Path) -> None:
    prior = {"a": stats.norm(0.0, 3.0), "b": stats.norm(0.0, 3.0)}
    settings = wsabi.Settings(starts={"b": 3.0, "a": -4.0})
    run = {"budget": 60, "rng": 0, "settings": settings}
    result = wsabi.integrate(lambda p: needles(np.array([p["a"], p["b"]])), prior, journal=tmp_path / "r.db", **run)
    np.testing.assert_allclose(result.points[0], [-4.0, 3.0])
    loaded = wsabi.load(tmp_path / "r.db")
    assert loaded.settings == settings
    np.testing.assert_array_equal(loaded.points, result.points)


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        ([[0.5, 2.0]], "starts"),  # outside the box
        ([[0.5]], r"starts has shape \(1, 1\); expected \(N, 2\)"),
        ([[0.5, math.nan]], "starts must be finite"),
        ([], "starts has shape"),
        ({"a": 0.5}, "a point of starts has keys"),
    ],
)
def test_bad_starts_are_refused(starts: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wsabi.Integrator(wsabi.Uniform([0.0, 0.0], [1.0, 1.0]), settings=wsabi.Settings(starts=starts))


def test_starts_need_an_engine_that_searches() -> None:
    with pytest.raises(ValueError, match="starts needs measure='adaptive'"):
        wsabi.Settings(measure="prior", starts=[[0.0]])
    with pytest.raises(TypeError, match="starts must be points"):
        wsabi.Settings(starts="best fit")
