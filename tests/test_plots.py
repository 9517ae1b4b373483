"""Figures: they are drawn from plain arrays, show what they were given, and are written as PNG and SVG."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

from wsabi import plots
from wsabi.plots.style import LINES

X = np.linspace(-1.0, 1.0, 21)


def panel(**changes):
    values = {
        "title": "a panel",
        "truth": np.exp(-(X**2)),
        "band": plots.Band("wsabi-l", X, np.exp(-(X**2)), np.exp(-(X**2)) - 0.1, np.exp(-(X**2)) + 0.1),
        "points": np.array([-0.5, 0.5]),
        "values": np.array([0.78, 0.78]),
    }
    return plots.LikelihoodPanel(**(values | changes))


def line(method="wsabi-l", scale=1.0):
    seconds = np.geomspace(0.1, 10.0, 12)
    y = scale / seconds
    return plots.Line(method, seconds, y, 0.5 * y, 2.0 * y)


def test_every_method_has_a_colour_a_line_and_a_label():
    assert plots.COLOURS.keys() == plots.LABELS.keys() == LINES.keys()


def test_methods_that_share_a_colour_differ_in_line_or_are_never_together():
    seen = {}
    for method, colour in plots.COLOURS.items():
        seen.setdefault(colour, []).append(method)
    shared = {frozenset(methods) for methods in seen.values() if len(methods) > 1}
    apart = {frozenset({"bmc", "bq"}), frozenset({"ais", "wsabi-l-alpha-0"})}  # in no figure together
    for methods in shared - apart:
        assert len({LINES[method] for method in methods}) == len(methods)


def test_panels_share_a_scale_and_number_the_samples():
    figure = plots.likelihood_panels([panel(numbered=True, prior=np.ones_like(X)), panel(remarks=("a remark",))])
    left, right = figure.axes
    assert left.get_ylim() == right.get_ylim()
    assert {text.get_text() for text in left.texts} >= {"1", "2"}
    assert "a remark" in {text.get_text() for text in right.texts}


def test_against_time_has_a_log_time_axis_the_truth_and_one_legend():
    panels = [
        plots.Panel("estimates", "log Z", [line(), line("smc", 2.0)], truth=plots.Truth(1.0, 0.1)),
        plots.Panel("errors", "nats", [line()], y_scale="log", y_limits=(1e-2, 1e2)),
    ]
    figure = plots.against_time(panels)
    assert [axis.get_xscale() for axis in figure.axes] == ["log", "log"]
    assert figure.axes[1].get_yscale() == "log"
    assert figure.axes[1].get_ylim() == (1e-2, 1e2)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["truth ± 2 s.e.", "WSABI-L", "simple Monte Carlo"]  # WSABI-L once, though in both panels


def test_an_odd_number_of_panels_leaves_the_last_place_empty():
    figure = plots.against_time([plots.Panel(str(i), "y", [line()]) for i in range(3)])
    assert [axis.get_visible() for axis in figure.axes] == [True, True, True, False]


def test_the_density_shows_means_bands_truth_and_samples():
    edges = np.linspace(-0.5, 1.5, 31)
    bands = [plots.Band(name, X, X**2, X**2 - 0.1, X**2 + 0.1) for name in ("wsabi-l", "wsabi-m")]
    density = np.ones((30, len(X)))
    figure = plots.density_with_bands(X, edges, density, np.exp(-(X**2)), bands, np.array([0.0]), np.array([1.0]))
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert "WSABI-L mean" in labels
    assert "WSABI-M 95 % band" in labels
    assert "true ℓ = exp(−x²)" in labels


def test_save_writes_png_and_svg_the_same_each_time(tmp_path):
    first = plots.save(plots.likelihood_panels([panel()]), tmp_path / "a" / "figure", dpi=50)
    again = plots.save(plots.likelihood_panels([panel()]), tmp_path / "b" / "figure", dpi=50)
    assert [path.suffix for path in first] == [".png", ".svg"]
    assert first[0].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **keywords):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(plots.MissingMatplotlib, match=r"pip install 'wsabi\[plot\]'"):
        plots.likelihood_panels([panel()])
