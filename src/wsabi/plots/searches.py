"""Where each search for a mode started and where it ended."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wsabi._core.types import Array
from wsabi.plots.style import GREY, OUTCOMES, few_ticks, house_style, new_figure, on_axes
from wsabi.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["SearchPath", "draw_searches", "search_paths"]


@dataclass(frozen=True, eq=False)
class SearchPath:
    """The evaluations of one search.

    Attributes
    ----------
    number : from one on.
    outcome : how it ended; "unfinished" where the run ended first.
    start : "prior" or "point", what it started from.
    X, log_l : (N, D) and (N,), in order; the first is where it started, the best where it ended.
    """

    number: int
    outcome: str
    start: str
    X: Array
    log_l: Array

    @property
    def best(self) -> int:
        """Which evaluation was the highest."""
        return int(np.argmax(self.log_l))


def search_paths(result: Result) -> list[SearchPath]:
    """The searches of a run with at least one finite value each, from the purposes in its ledger."""
    if result.ledger is None:
        return []
    by_number: dict[int, list[tuple[Array, float]]] = {}
    for one in result.ledger.evaluations:
        kind, _, digits = one.purpose.partition(" ")
        if kind == "search" and digits.isdigit() and one.log_l is not None:
            by_number.setdefault(int(digits), []).append((one.x, one.log_l))
    paths = []
    for number, rows in sorted(by_number.items()):
        log_l = np.array([value for _, value in rows])
        if np.any(np.isfinite(log_l)):
            record = result.searches[number] if number < len(result.searches) else None
            outcome, start = ("unfinished", "prior") if record is None else (record.outcome, record.start)
            paths.append(SearchPath(number + 1, outcome, start, np.array([x for x, _ in rows]), log_l))
    return paths


def draw_searches(result: Result, axes: Any) -> Figure:
    """See :meth:`wsabi.plots.of_result.ResultPlots.searches`."""
    paths = search_paths(result)
    if not paths:
        raise ValueError(
            "there is no search to draw: under the prior as measure, and in baselines, nothing is searched; a result "
            "of with_prior has no ledger."
        )
    count = len(result.names) + 1
    if axes is not None:
        with house_style():
            given = on_axes(axes, count, "searches")
            _draw(result, paths, given)
        return given[0].get_figure()  # type: ignore[return-value]
    columns = min(4, count)
    rows = math.ceil(count / columns)
    with new_figure(2.7 * columns + 0.6, 2.2 * rows + 0.7) as figure:
        grid = figure.subplots(rows, columns, squeeze=False)
        for spare in grid.flat[count:]:
            spare.set_visible(False)
        _draw(result, paths, list(grid.flat[:count]))
        handles: dict[str, Any] = {}
        for axis in grid.flat[:count]:
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=min(5, columns))
    return figure


def _draw(result: Result, paths: Sequence[SearchPath], axes: Sequence[Axes]) -> None:
    tops = np.array([path.log_l[path.best] for path in paths])
    starts = np.array([path.log_l[0] for path in paths])
    _draw_quantity(axes[0], paths, [path.log_l for path in paths])
    axes[0].set_title("log ℓ")
    span = max(float(tops.max() - np.median(starts[np.isfinite(starts)])) if np.isfinite(starts).any() else 1.0, 1.0)
    axes[0].set_ylim(float(tops.max()) - 1.3 * span, float(tops.max()) + 0.1 * span)
    for d, (axis, name) in enumerate(zip(axes[1:], result.names, strict=True)):
        _draw_quantity(axis, paths, [path.X[:, d] for path in paths])
        axis.set_title(name)
    for axis in axes:
        axis.set_xlabel("search")
        axis.set_xlim(0.3, len(paths) + 0.7)
        few_ticks(axis, x=6, y=4)
        axis.set_xticks([path.number for path in paths][:: max(1, len(paths) // 8)])


def _draw_quantity(axis: Axes, paths: Sequence[SearchPath], values: Sequence[Array]) -> None:
    """From the start, a hollow point, to the end, a full one, with the evaluations between them in grey."""
    for path, y in zip(paths, values, strict=True):
        colour, marker, label = OUTCOMES.get(path.outcome, OUTCOMES["unfinished"])
        x = float(path.number)
        axis.plot(np.full(len(y), x), y, ".", color=GREY, markersize=2.5, alpha=0.35, label="evaluations")
        axis.plot([x, x], [y[0], y[path.best]], color=colour, linewidth=1.2)
        axis.plot(x, y[0], marker, markerfacecolor="white", markeredgecolor=colour, markersize=5.5, label="start")
        axis.plot(x, y[path.best], marker, color=colour, markersize=6.5, label=f"end: {label}", linestyle="none")
