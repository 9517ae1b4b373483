"""Estimates and errors against wall-clock time, one line per method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from wsabi._core.types import Array
from wsabi.plots.style import COLOURS, LABELS, LINES, TRUTH, new_figure

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Line", "Panel", "Truth", "against_time"]


@dataclass(frozen=True, eq=False)
class Line:
    """One method: y (M,) at seconds (M,), with a band from low (M,) to high (M,) where given."""

    method: str
    seconds: Array
    y: Array
    low: Array | None = None
    high: Array | None = None


@dataclass(frozen=True)
class Truth:
    """The known value, drawn as a line with a band of two standard errors."""

    value: float
    std: float


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes: its lines, its y axis, and the truth where there is one to show."""

    title: str
    y_label: str
    lines: Sequence[Line]
    truth: Truth | None = None
    y_scale: Literal["linear", "log"] = "linear"
    y_limits: tuple[float, float] | None = None


def against_time(panels: Sequence[Panel], *, columns: int = 2) -> Figure:
    """Panels against seconds, on a logarithmic time axis, with one legend for all."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    with new_figure(4.1 * columns + 0.4, 3.1 * rows + 0.6) as figure:
        axes = figure.subplots(rows, columns, squeeze=False)
        for axis, panel in zip(axes.flat, panels, strict=False):
            _draw(axis, panel)
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        _common_legend(figure)
    return figure


def _draw(axis: Axes, panel: Panel) -> None:
    if panel.truth is not None:
        low, high = panel.truth.value - 2 * panel.truth.std, panel.truth.value + 2 * panel.truth.std
        axis.axhspan(low, high, color=TRUTH, alpha=0.18, linewidth=0)
        axis.axhline(panel.truth.value, color=TRUTH, linewidth=1.0, dashes=(5.0, 3.0), label="truth ± 2 s.e.")
    for line in panel.lines:
        _draw_line(axis, line)
    axis.set_xscale("log")
    axis.set_yscale(panel.y_scale)
    if panel.y_limits is not None:
        axis.set_ylim(panel.y_limits)
    axis.set_title(panel.title)
    axis.set_xlabel("wall-clock time (s)")
    axis.set_ylabel(panel.y_label)
    axis.grid(color="0.92", linewidth=0.6)


def _draw_line(axis: Axes, line: Line) -> None:
    colour = COLOURS[line.method]
    dashes = LINES[line.method] or (None, None)
    axis.plot(line.seconds, line.y, color=colour, dashes=dashes, label=LABELS[line.method])
    if len(line.seconds):
        axis.plot(line.seconds[-1], line.y[-1], "o", color=colour, markersize=3.5)
    if line.low is not None and line.high is not None:
        axis.fill_between(line.seconds, line.low, np.asarray(line.high), color=colour, alpha=0.15, linewidth=0)


def _common_legend(figure: Figure) -> None:
    """Every label once, in the order of first appearance."""
    found: dict[str, Artist] = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=min(len(found), 4))
