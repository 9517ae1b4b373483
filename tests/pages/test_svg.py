"""Drawing by hand: round ticks, points where they belong, nothing that a name could break."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabi.pages.svg import Panel, sparkline, stacked_bar, svg, ticks


@given(low=st.floats(-1e6, 1e6), span=st.floats(1e-3, 1e6), most=st.integers(2, 8))
def test_ticks_are_few_round_and_inside(low, span, most):
    found = ticks(low, low + span, most)
    assert len(found) <= most + 1
    assert all(low - 1e-6 * span <= value <= low + span * (1 + 1e-6) for value in found)
    if len(found) > 1:
        step = found[1] - found[0]
        assert round(step / 10 ** math.floor(math.log10(step) + 1e-6), 3) in (1.0, 2.0, 2.5, 5.0, 10.0)


def test_no_ticks_without_a_span():
    assert ticks(1.0, 1.0) == ticks(0.0, math.inf) == []


def test_points_land_where_they_belong():
    panel = Panel(100, 50, (0.0, 10.0), (0.0, 5.0), pad=(10, 10, 5, 5))
    assert panel.at(0.0, 0.0) == "10,45"
    assert panel.at(10.0, 5.0) == "90,5"
    assert panel.at(1e9, 0.0).startswith("91.6")  # held to just outside
    panel.dot(20.0, 1.0, "x")
    assert panel.parts == []
    panel.dot(5.0, 2.5, "x", "<a> & b")
    assert "&lt;a&gt; &amp; b" in panel.parts[0]


def test_what_is_drawn_is_well_formed():
    panel = Panel(200, 100, (0.0, 1.0), (0.0, 1.0))
    x = np.linspace(0.0, 1.0, 5)
    panel.axes("x < 1", 'a "name"', "t & u")
    panel.line(x, np.array([0.1, np.nan, 0.3, np.inf, 0.5]), "line")
    panel.band(x, 0.0 * x, x, "band")
    panel.box(0.2, 0.1, 0.0, 1.0, "bar", "<b>")
    picture = svg(200, 100, panel.parts, 'what is "seen" & <drawn>')
    assert ElementTree.fromstring(picture).get("aria-label") == 'what is "seen" & <drawn>'
    assert "nan" not in picture
    assert "inf" not in picture
    ElementTree.fromstring(sparkline(x, x, "<density>"))
    bar = ElementTree.fromstring(stacked_bar([("one", 3.0), ("two", 1.0)], width=100))
    assert [float(rect.get("width", "0")) for rect in bar] == pytest.approx([75.0, 25.0])
    assert stacked_bar([("endless", math.inf)]) == stacked_bar([]) == ""
