"""The model of log ℓ along every parameter, through the mode, with the evaluations near that line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from wsabi._core.types import Array
from wsabi.plots.style import BLUE, ORANGE, TRUTH, few_ticks, house_style, new_figure, on_axes
from wsabi.result import Diagnostics, Result, Slice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_slices", "known_diagnostics"]

DEPTH = 12.0  # nats below the top that are shown


def known_diagnostics(result: Result, what: str) -> Diagnostics:
    """What the result keeps of its models.

    Raises
    ------
    ValueError
        If it keeps nothing.
    """
    if result.diagnostics is None:
        raise ValueError(f"{what} needs the models of a run, which baselines and results of with_prior do not keep.")
    return result.diagnostics


def draw_slices(result: Result, axes: Any) -> Figure:
    """See :meth:`wsabi.plots.of_result.ResultPlots.slices`."""
    diagnostics = known_diagnostics(result, "slices")
    if not diagnostics.slices:
        raise ValueError("there are no slices under a Transform prior, whose parameters cannot be moved one by one.")
    count = len(diagnostics.slices)
    near = _nearness(result, diagnostics)
    if axes is not None:
        with house_style():
            given = on_axes(axes, count, "slices")
            for d, axis in enumerate(given):
                _draw(axis, result, diagnostics.slices[d], d, diagnostics.mode[d], near[:, d])
        return given[0].get_figure()  # type: ignore[return-value]
    columns = min(4, count)
    rows = math.ceil(count / columns)
    with new_figure(max(2.7 * columns, 4.5) + 0.4, 2.3 * rows + 0.8) as figure:
        grid = figure.subplots(rows, columns, squeeze=False)
        for spare in grid.flat[count:]:
            spare.set_visible(False)
        for d, axis in enumerate(grid.flat[:count]):
            _draw(axis, result, diagnostics.slices[d], d, diagnostics.mode[d], near[:, d])
            if d % columns == 0:
                axis.set_ylabel("log ℓ (nats)")
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=min(4, 2 * columns))
    return figure


def _nearness(result: Result, diagnostics: Diagnostics) -> Array:
    """(N, D) in [0, 1]: how near an evaluation is to the line along a parameter, in sds of the others, exp(−½ r²)."""
    apart = np.square((result.points - diagnostics.mode) / np.maximum(result.posterior.std, 1e-300))
    others = apart.sum(axis=1, keepdims=True) - apart
    return np.asarray(np.exp(-0.5 * np.minimum(others, 100.0)))


def _draw(axis: Axes, result: Result, one: Slice, d: int, mode: float, near: Array) -> None:
    for width, alpha in ((2.0, 0.15), (1.0, 0.3)):
        label = "± 1 and 2 sd" if width == 1.0 else None
        band = (one.mean - width * one.std, one.mean + width * one.std)
        axis.fill_between(one.grid, *band, color=BLUE, alpha=alpha, linewidth=0, label=label)
    axis.plot(one.grid, one.mean, color=BLUE, label="model")
    axis.axvline(mode, color=ORANGE, linewidth=1.0, dashes=(4.0, 2.0), label="mode")
    shown = np.isfinite(result.log_likelihoods)
    colours = np.zeros((int(shown.sum()), 4))
    colours[:, :3] = 0.2
    colours[:, 3] = 0.12 + 0.88 * near[shown]
    axis.scatter(result.points[shown, d], result.log_likelihoods[shown], s=9.0, c=colours, linewidths=0)
    axis.plot([], [], ".", color=TRUTH, markersize=6.0, label="evaluations, darker nearer to the line")
    top = float(np.nanmax(one.mean))
    lowest = float(np.nanmin(one.mean))
    axis.set_ylim(max(top - DEPTH, lowest - 1.0), top + 0.12 * min(DEPTH, max(top - lowest, 2.0)))
    axis.set_xlim(float(one.grid[0]), float(one.grid[-1]))
    axis.set_title(result.names[d])
    few_ticks(axis, x=4, y=4)
