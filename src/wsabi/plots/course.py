"""How log Z settled over a run, what its evaluations were for, and what its error bar is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wsabi._core.types import Array
from wsabi.ledger import BatchTold, Ledger, Told
from wsabi.plots.style import BLUE, ORANGE, PURPOSES, TRUTH, few_ticks, house_style, new_figure, on_axes, purpose_of
from wsabi.result import PART_NAMES, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Course", "Stretch", "draw_convergence", "stretches_of"]

MOSTLY = 0.75  # of all evaluations
WASHED = 0.04  # of all evaluations: a stretch of one purpose that is shorter is shown in the strip only


class Stretch(NamedTuple):
    """Evaluations of one purpose in a row: the first of them and the one after the last, and the seconds they took."""

    purpose: str
    first: int
    last: int
    begun: float
    ended: float


@dataclass(frozen=True, eq=False)
class Course:
    """A run over its evaluations.

    Attributes
    ----------
    n_evals, seconds, log_z, std : (R,) records.
    stretches : what evaluations were for, in order; empty where not known.
    low, high : limits of log Z that show its second half, and more of it where it fits.
    """

    n_evals: Array
    seconds: Array
    log_z: Array
    std: Array
    stretches: tuple[Stretch, ...]
    low: float
    high: float

    @classmethod
    def of(cls, result: Result, truth: float | None = None) -> Course:
        """Of a result with a history."""
        rows = [(r.n_evals, r.seconds, r.log_z, r.log_z_std) for r in result.history if np.isfinite(r.log_z)]
        table = np.array(rows, dtype=np.float64).reshape(-1, 4)
        if not len(table):
            raise ValueError("the result has no history with a finite log Z to draw.")
        half = table[len(table) // 2 :]
        bars = np.concatenate([half[:, 2] - half[:, 3], half[:, 2] + half[:, 3], [] if truth is None else [truth]])
        low, high = np.quantile(bars[np.isfinite(bars)], [0.1, 0.9]) if np.isfinite(bars).any() else (-1.0, 1.0)
        last = 3.0 * result.log_z_std if np.isfinite(result.log_z_std) else 1.0
        ends = [low, high, result.log_z - last, result.log_z + last, *([] if truth is None else [truth])]
        margin = 0.15 * (max(ends) - min(ends)) or 0.1
        n_evals, seconds, log_z, std = table.T
        return cls(n_evals, seconds, log_z, std, stretches_of(result), min(ends) - margin, max(ends) + margin)

    @property
    def n_known(self) -> int:
        """Evaluations of which it is known what they were for."""
        return self.stretches[-1].last if self.stretches else 0

    @property
    def is_logarithmic(self) -> bool:
        """Whether most evaluations are bulk points, beside which all others could not be seen on a linear axis."""
        bulk = sum(one.last - one.first for one in self.stretches if one.purpose == "bulk")
        return bulk > MOSTLY * self.n_known

    def is_long(self, one: Stretch) -> bool:
        """Whether a stretch is long enough to be shown on the whole height of a plot."""
        return one.last - one.first >= WASHED * self.n_known


def stretches_of(result: Result) -> tuple[Stretch, ...]:
    """What the evaluations of a run were for, in the order of their values; nothing without a ledger."""
    found: list[Stretch] = []
    for purpose, count, seconds in () if result.ledger is None else _told(result.ledger):
        begun = found[-1].ended if found else 0.0
        if found and found[-1].purpose == purpose:
            last = found.pop()
            found.append(last._replace(last=last.last + count, ended=seconds))
        else:
            first = found[-1].last if found else 0
            found.append(Stretch(purpose, first, first + count, begun, seconds))
    return tuple(found)


def _told(ledger: Ledger) -> Iterator[tuple[str, int, float]]:
    """Purposes of evaluations that were told together, how many they were, and the seconds of the run at that time."""
    purposes = {one.x.tobytes(): purpose_of(one.purpose) for one in ledger.evaluations}
    for event in ledger.events:
        if isinstance(event, Told):
            for x in event.X:
                yield purposes[x.tobytes()], 1, event.seconds
        elif isinstance(event, BatchTold):
            yield "bulk", int(np.isfinite(event.log_l).sum() + np.isneginf(event.log_l).sum()), event.seconds


def draw_convergence(result: Result, truth: float | None, axes: Any) -> Figure:
    """See :meth:`wsabi.plots.of_result.ResultPlots.convergence`."""
    course = Course.of(result, truth)
    if axes is not None:
        with house_style():
            by_evals, by_seconds, budget = on_axes(axes, 3, "convergence")
            _draw(result, course, truth, by_evals, by_seconds, budget)
        return by_evals.get_figure()  # type: ignore[return-value]
    with new_figure(8.6, 5.4) as figure:
        halves: Any = figure.subfigures(2, 1, height_ratios=[2.4, 1.0])  # each with margins of its own
        above, below = halves
        by_evals, by_seconds = above.subplots(1, 2, sharey=True)
        budget = below.subplots()
        _draw(result, course, truth, by_evals, by_seconds, budget)
        handles, labels = by_evals.get_legend_handles_labels()
        above.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _draw(result: Result, course: Course, truth: float | None, by_evals: Axes, by_seconds: Axes, budget: Axes) -> None:
    spans = [(one, (one.first, one.last)) for one in course.stretches]
    _draw_course(by_evals, course, course.n_evals, spans, truth)
    if course.is_logarithmic:
        by_evals.set_xscale("log")
        by_evals.set_xlim(1.0, float(course.n_evals[-1]))
    by_evals.set_xlabel("evaluations")
    by_evals.set_ylabel("log Z (nats)")
    by_evals.set_title(f"log Z = {result.log_z:.5g} ± {result.log_z_std:.2g} after {result.n_evals} evaluations")
    _draw_course(by_seconds, course, course.seconds, [(one, (one.begun, one.ended)) for one in course.stretches], truth)
    by_seconds.set_xlabel("seconds")
    by_seconds.set_title(f"{result.seconds:.3g} s")
    _draw_budget(budget, result)


def _draw_course(
    axis: Axes, course: Course, x: Array, spans: Sequence[tuple[Stretch, tuple[float, float]]], truth: float | None
) -> None:
    """log Z over x (R,), above a strip that says what evaluations were for."""
    named: set[str] = set()
    for one, span in spans:
        label, colour = PURPOSES[one.purpose]
        own = None if one.purpose in named else label
        axis.axvspan(*span, 0.0, 0.06, color=colour, linewidth=0, label=own, zorder=2.5)  # above the bands
        named.add(one.purpose)
        if course.is_long(one):
            axis.axvspan(*span, 0.06, 1.0, color=colour, alpha=0.10, linewidth=0)
    for width, alpha, own in ((2.0, 0.15, None), (1.0, 0.3, "± 1 and 2 sd")):
        low, high = course.log_z - width * course.std, course.log_z + width * course.std
        axis.fill_between(x, low, high, color=BLUE, alpha=alpha, linewidth=0, label=own)
    axis.plot(x, course.log_z, color=BLUE, label="log Z", marker="o", markersize=2.0)
    if truth is not None:
        axis.axhline(truth, color=ORANGE, linewidth=1.2, dashes=(5.0, 3.0), label="truth")
    axis.set_ylim(course.low, course.high)
    axis.set_xlim(0.0, max(float(x[-1]), *(span[1] for _, span in spans[-1:]), 1e-300))
    few_ticks(axis, x=6, y=5)


def _draw_budget(axis: Axes, result: Result) -> None:
    least = 1e-3 * result.error_budget.total if np.isfinite(result.error_budget.total) else 0.0
    parts = [(PART_NAMES[name], nats) for name, nats in result.error_budget.parts.items() if nats > least]
    parts.sort(key=lambda part: part[1])
    parts = parts[-5:]
    finite = [nats for _, nats in parts if np.isfinite(nats)]
    longest = max(finite, default=1.0)
    for row, (_, nats) in enumerate(parts):
        length = nats if np.isfinite(nats) else 1.2 * longest
        axis.barh(row, length, height=0.62, color=BLUE, alpha=0.75)
        axis.annotate(f"{nats:.2g}", (length, row), (3, 0), textcoords="offset points", va="center", fontsize=8)
    axis.set_yticks(range(len(parts)), [name for name, _ in parts])
    axis.set_ylim(-0.6, max(len(parts), 1) - 0.4)
    axis.set_xlim(0.0, 1.35 * longest)
    axis.set_xlabel("nats; the error bar is the root of the sum of squares")
    axis.set_title(f"error budget: ± {result.log_z_std:.2g}", color=TRUTH)
