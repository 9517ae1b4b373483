"""Models side by side: log Z relative to the best, and their probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wsabi.comparison import Comparison
from wsabi.plots.style import BLUE, GREY, ORANGE, few_ticks, house_style, new_figure, on_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_comparison"]


def draw_comparison(comparison: Comparison, axes: Any) -> Figure:
    """See :meth:`wsabi.comparison.Comparison.plot`."""
    if axes is not None:
        with house_style():
            given = on_axes(axes, 2, "plot")
            _draw(comparison, given)
        return given[0].get_figure()  # type: ignore[return-value]
    with new_figure(8.4, 1.5 + 0.36 * len(comparison.names)) as figure:
        _draw(comparison, list(figure.subplots(1, 2, sharey=True)))
        figure.suptitle(comparison.verdict, fontsize=9.5)
    return figure


def _draw(comparison: Comparison, axes: list[Axes]) -> None:
    order = np.argsort(comparison.log_z + np.log(comparison.prior))
    rows = np.arange(len(order))
    relative = (comparison.log_z - comparison[comparison.best].log_z)[order]
    std = comparison.log_z_std[order]
    shown = np.where(np.isfinite(std), std, 0.0)
    axes[0].errorbar(relative, rows, xerr=1.96 * shown, fmt="o", color=BLUE, markersize=5.0, capsize=3.0, linewidth=1.2)
    axes[0].axvline(0.0, color=GREY, linewidth=0.8, dashes=(4.0, 2.0))
    axes[0].set_xlabel(f"log Z less that of {comparison.best}, with 95 % (nats)")
    axes[0].set_yticks(rows, [comparison.names[k] for k in order])
    axes[0].set_ylim(-0.6, len(order) - 0.4)
    p, (low, high) = comparison.probabilities[order], comparison.intervals[order].T
    axes[1].barh(rows, p, height=0.55, color=BLUE, alpha=0.7)
    error = np.maximum([p - low, high - p], 0.0)
    axes[1].errorbar(p, rows, xerr=error, fmt="none", ecolor=ORANGE, capsize=3.0, linewidth=1.2)
    axes[1].set_xlim(0.0, 1.02)
    axes[1].set_xlabel("probability, with 95 % by the error bars")
    few_ticks_x(axes[0])


def few_ticks_x(axis: Axes) -> None:
    """Few ticks on x; those of y are names."""
    locator = axis.yaxis.get_major_locator()
    few_ticks(axis, x=6)
    axis.yaxis.set_major_locator(locator)
