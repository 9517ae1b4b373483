"""Pictures of the page: contours where they belong, and well-formed for any result."""

from __future__ import annotations

import dataclasses
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import wsabi
from wsabi.pages.charts import check_charts, contour, convergence_charts, corner_chart, search_charts
from wsabi.pages.svg import Panel
from wsabi.posterior.posterior import Posterior
from wsabi.posterior.weighted import WeightedSamples


@pytest.fixture(scope="module")
def result() -> wsabi.Result:
    prior = {"a<b": stats.norm(0, 2), "tau": (0.0, 4.0)}
    return wsabi.integrate(lambda p: -2.0 * (p["a<b"] - 1.0) ** 2 - p["tau"], prior, budget=90, rng=0)


def test_the_contour_of_a_cone_is_a_circle() -> None:
    """Linear interpolation of a cone is wrong by h²/8r, 1e-3 here."""
    x = np.linspace(-2.0, 2.0, 41)
    segments = contour(x, x, 2.0 - np.hypot(x[:, None], x), 1.0)
    points = np.array(segments).reshape(-1, 2)
    assert_allclose(np.hypot(*points.T), 1.0, atol=2e-3)
    length = sum(np.hypot(*(np.array(end) - start)) for start, end in segments)
    assert length == pytest.approx(2.0 * np.pi, rel=5e-3)  # closed, with no gap


def test_a_saddle_has_two_lines() -> None:
    z = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert len(contour(np.arange(2.0), np.arange(2.0), z, 0.5)) == 2


def test_every_chart_is_well_formed_and_titled(result: wsabi.Result) -> None:
    charts = [
        *convergence_charts(result),
        corner_chart(result.posterior),
        *search_charts(result),
        *check_charts(result),
    ]
    assert len(charts) == 2 + 1 + 3 + 2
    for chart in charts:
        tree = ElementTree.fromstring(chart)
        assert tree.get("aria-label")
        assert any(one.tag.endswith("title") for one in tree.iter())
        assert "nan" not in chart
    assert "a&lt;b and tau: correlation" in charts[2]


def test_of_one_and_of_many_parameters(result: wsabi.Result) -> None:
    for dim, panels in ((1, 1), (12, 78), (15, 78)):
        points = np.random.default_rng(0).normal(size=(200, dim))
        names = tuple(f"x{d}" for d in range(dim))
        chart = corner_chart(Posterior(WeightedSamples(points, np.full(200, 1 / 200), names)))
        assert chart.count('class="frame"') == panels
        assert len(chart) < 1_500_000


def test_what_a_result_lacks_is_left_out(result: wsabi.Result) -> None:
    posterior = dataclasses.replace(result.posterior, diagnostics=None)
    other = dataclasses.replace(result, ledger=None, history=(), posterior=posterior)
    assert convergence_charts(other) == search_charts(other) == check_charts(other) == []


def test_ticks_of_values_far_from_zero_have_an_offset_taken_off(result: wsabi.Result) -> None:
    """Were they written in full, the ticks of 100,000 ± 1 would all read 1e+05."""
    points = np.random.default_rng(0).normal((0.0, 1e5), 1.0, size=(200, 2))
    chart = corner_chart(Posterior(WeightedSamples(points, np.full(200, 1 / 200), ("a", "temperature"))))
    texts = ["".join(one.itertext()) for one in ElementTree.fromstring(chart).iter() if one.get("class") == "tick"]
    assert len(texts) >= 6
    assert all(abs(float(text)) <= 5.0 for text in texts)
    assert len(set(texts)) >= 3
    assert chart.count("temperature − 100000") == 2  # above its panel, and below


def test_things_that_are_counted_have_no_half_ticks() -> None:
    panel = Panel(420.0, 270.0, (0.3, 2.7), (0.0, 1.0))
    panel.axes("search", counted=True)
    ticks = [part for part in panel.parts if 'text-anchor="middle"' in part and "tick" in part]
    assert [part.split(">")[1].split("<")[0] for part in ticks] == ["1", "2"]
