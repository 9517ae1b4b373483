"""The three figures of docs/benchmarks.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.peers.derived import Run, ended, of, time_to, window
from benchmarks.peers.registry import ENTRANTS
from benchmarks.peers.tables import cases_in, entrants_in, seconds
from wsabi.plots.style import AMBER, BLUE, GREEN, GREY, ORANGE, PINK, SKY, TRUTH, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["all_figures"]

# A colour for each kind, ours apart, and a marker for each method of a kind.
KIND_COLOURS = {
    "quadrature": GREEN,
    "surrogate": ORANGE,
    "nested sampling": SKY,
    "sequential Monte Carlo": PINK,
    "Monte Carlo": GREY,
}
MARKERS = "osD^vP*X"
DASHES = ((), (4, 1.5), (1, 1.2), (5, 1.5, 1, 1.5), (2, 1), (3, 1, 1, 1, 1, 1))
LEAST = 1e-5  # nats: smaller errors are drawn there


def look(name: str) -> tuple[str, str, tuple[float, ...]]:
    """Colour, marker and dashes of an entrant."""
    entrant = ENTRANTS[name]
    if entrant.file == "wsabi":
        position = list(entrant.peer.variants).index(name)
        return (BLUE, TRUTH, AMBER)[position % 3], MARKERS[position], DASHES[position]
    same = [n for n, e in ENTRANTS.items() if e.peer.kind == entrant.peer.kind and e.file != "wsabi"]
    position = same.index(name)
    return KIND_COLOURS[entrant.peer.kind], MARKERS[position % len(MARKERS)], DASHES[position % len(DASHES)]


def panels(names: Sequence[str], width: float = 3.1, height: float = 2.7) -> tuple[Figure, list[Axes]]:
    """A grid of axes with these titles, at most four in a row."""
    across = min(4, len(names))
    down = math.ceil(len(names) / across)
    with new_figure(width * across, height * down + 1.0) as figure:
        grid = figure.subplots(down, across, squeeze=False).ravel()
    for axes, name in zip(grid, names, strict=False):
        axes.set_title(name, fontsize=9)
    for axes in grid[len(names) :]:
        axes.set_visible(False)
    return figure, list(grid[: len(names)])


def legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend for all panels, below them."""
    handles = {label: handle for one in axes for handle, label in zip(*one.get_legend_handles_labels(), strict=True)}
    order = [name for name in ENTRANTS if name in handles] + [name for name in handles if name not in ENTRANTS]
    figure.legend(
        [handles[name] for name in order], order, loc="outside lower center", ncols=min(5, len(order)), fontsize=8
    )


def error_against_evaluations(runs: Sequence[Run]) -> Figure:
    """|error| of log Z at the end of each run, and on the way where a method says; one panel for each problem."""
    cases = cases_in(runs)
    figure, grid = panels(cases)
    for axes, case in zip(grid, cases, strict=True):
        for name in entrants_in(runs):
            colour, marker, dashes = look(name)
            mine = ended(of(runs, name, case))
            for run in mine:
                path = [(n, e) for n, _, e, _ in run["trace"] if e is not None and n > 0]
                if path:
                    N, errors = np.array(path).T
                    axes.plot(N, np.maximum(np.abs(errors), LEAST), color=colour, dashes=dashes, lw=0.6, alpha=0.5)
            if mine:
                N = [run["n_evals"] for run in mine]
                errors = [max(abs(run["error"]), LEAST) for run in mine]
                ours = ENTRANTS[name].file == "wsabi"
                axes.plot(N, errors, marker, color=colour, ms=6 if ours else 4.5, mec="white", mew=0.4, label=name)
        for accuracy in (0.1, 0.01):
            axes.axhline(accuracy, color=GREY, lw=0.5, zorder=0)
        axes.set(xscale="log", yscale="log")
        axes.set_ylim(bottom=0.7 * LEAST)
    label_edges(grid, "evaluations of ℓ", "|error| of log Z, nats")
    legend(figure, grid)
    return figure


def label_edges(grid: Sequence[Axes], x: str, y: str) -> None:
    for position, axes in enumerate(grid):
        axes.set_xlabel(x, fontsize=8)
        axes.tick_params(labelsize=8)
        if position % 4 == 0:
            axes.set_ylabel(y, fontsize=8)


def time_against_cost(runs: Sequence[Run], accuracy: float = 0.1) -> Figure:
    """Seconds in all to the accuracy against the cost of an evaluation; shaded where ours is the fastest."""
    cases = cases_in(runs)
    figure, grid = panels(cases)
    costs = np.geomspace(1e-7, 100.0, 60)
    for axes, case in zip(grid, cases, strict=True):
        for name in entrants_in(runs):
            if name == "wsabi plain, 200":
                continue
            colour, _, dashes = look(name)
            times = np.array([time_to(of(runs, name, case), accuracy, cost) for cost in costs])
            if np.all(np.isfinite(times)):
                ours = ENTRANTS[name].file == "wsabi"
                axes.plot(costs, times, color=colour, dashes=dashes, lw=2.2 if ours else 1.1, label=name)
        found = window(runs, case, accuracy)
        if not found.is_empty:
            axes.axvspan(max(found.low, costs[0]), min(found.high, costs[-1]), color=BLUE, alpha=0.08, lw=0)
            for end, side, y in ((found.low, "left", 0.98), (found.high, "right", 0.91)):
                if costs[0] < end < costs[-1]:
                    text = f" {seconds(end)} "
                    axes.text(end, y, text, transform=axes.get_xaxis_transform(), fontsize=7, va="top", ha=side)
        axes.set(xscale="log", yscale="log")
        axes.set_xlim(costs[0], costs[-1])
    label_edges(grid, "seconds for each evaluation", f"seconds to {accuracy:g} nats")
    legend(figure, grid)
    return figure


def claimed_against_actual(runs: Sequence[Run]) -> Figure:
    """|error| against the claimed sd, a panel for each method: 95 % should lie below the line at 1.96 sd."""
    names = [n for n in entrants_in(runs) if any(r["log_z_std"] is not None for r in ended(runs) if r["entrant"] == n)]
    figure, grid = panels(names)
    ends = np.array([1e-4, 10.0])
    for axes, name in zip(grid, names, strict=True):
        colour, marker, _ = look(name)
        mine = [run for run in ended(runs) if run["entrant"] == name and run["log_z_std"] is not None]
        sds = np.clip([run["log_z_std"] for run in mine], *ends)
        errors = np.clip([abs(run["error"]) for run in mine], ends[0], 100.0)
        covered = np.array([bool(run["covered"]) for run in mine])
        axes.plot(ends, 1.96 * ends, color=GREY, lw=0.8)
        axes.plot(sds[covered], errors[covered], marker, color=colour, ms=5, mec="white", mew=0.4, ls="")
        axes.plot(sds[~covered], errors[~covered], marker, mec=colour, mfc="none", ms=5, ls="")
        axes.text(
            0.04, 0.94, f"{covered.sum()} of {covered.size} cover", transform=axes.transAxes, fontsize=8, va="top"
        )
        axes.set(xscale="log", yscale="log", xlim=(0.7 * ends[0], 1.4 * ends[1]), ylim=(0.7 * ends[0], 140.0))
    label_edges(grid, "claimed sd, nats", "|error|, nats")
    return figure


def all_figures(runs: Sequence[Run]) -> dict[str, Figure]:
    """The figures by name; none without a run that ended."""
    if not ended(runs):
        return {}
    return {
        "evaluations": error_against_evaluations(runs),
        "time": time_against_cost(runs),
        "claims": claimed_against_actual(runs),
    }
