"""The pictures of a page, drawn by hand: convergence, corner, searches, check."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wsabi._core.types import Array
from wsabi.pages.svg import Panel, number, svg, ticks
from wsabi.plots.corner import MOST, highest_density_levels, joint_density, limits_of
from wsabi.plots.course import Course, Stretch
from wsabi.plots.searches import SearchPath, search_paths
from wsabi.plots.style import OUTCOMES, PURPOSES, less, offset_of
from wsabi.posterior.posterior import Posterior
from wsabi.result import Result

__all__ = ["check_charts", "contour", "convergence_charts", "corner_chart", "search_charts"]

SIZE = (420.0, 270.0)  # of one picture, in pixels: readable on a phone as it is
CELL = 118.0  # of one panel of a corner plot
WIDTH_OF_DIGIT = 6.5  # pixels, of the font of ticks
OUTCOME_CSS = {outcome: f"outcome{k}" for k, outcome in enumerate(OUTCOMES)}


# -- convergence ------------------------------------------------------------------------------------------------------


def convergence_charts(result: Result) -> list[str]:
    """log Z with its error bars over evaluations and over seconds; nothing for a run without a history."""
    try:
        course = Course.of(result)
    except ValueError:
        return []
    evals = [(one, (one.first, one.last)) for one in course.stretches]
    seconds = [(one, (one.begun, one.ended)) for one in course.stretches]
    return [
        _course(course, course.n_evals, evals, "evaluations", logarithmic=course.is_logarithmic),
        _course(course, course.seconds, seconds, "seconds"),
    ]


def _course(
    course: Course, x: Array, spans: Sequence[tuple[Stretch, tuple[float, float]]], unit: str, *,
    logarithmic: bool = False,
) -> str:  # fmt: skip
    begin = int(np.argmax((course.log_z >= course.low) & (course.log_z <= course.high)))  # what is before is far off
    x, n_evals, log_z, std = (values[begin:] for values in (x, course.n_evals, course.log_z, course.std))
    last = max(float(x[-1]), *(span[1] for _, span in spans[-1:]), 1e-300)
    if logarithmic:
        x, last = np.log10(x), math.log10(last)
        spans = [(one, (math.log10(max(span[0], 1)), math.log10(span[1]))) for one, span in spans]
    panel = Panel(*SIZE, (0.0, last), (course.low, course.high), pad=(62.0, 12.0, 24.0, 38.0))
    strip = course.low + 0.05 * (course.high - course.low)
    for one, span in spans:
        if course.is_long(one):
            panel.box(*span, course.low, course.high, f"wash {one.purpose}")
    for width, css in ((2.0, "band2"), (1.0, "band1")):
        panel.band(x, log_z - width * std, log_z + width * std, css)
    for one, span in spans:
        title = f"evaluations {one.first + 1} to {one.last}: {PURPOSES[one.purpose][0]}"
        panel.box(*span, course.low, strip, one.purpose, title)
    panel.line(x, log_z, "line")
    for at, n, value, error in zip(x, n_evals, log_z, std, strict=True):
        panel.dot(float(at), float(value), "point", f"{n:.0f} evaluations: log Z = {value:.6g} ± {error:.2g}", 3.2)
    panel.axes(unit, "log Z (nats)", counted=unit == "evaluations", powers=logarithmic)
    return svg(*SIZE, panel.parts, f"log Z and its error bar over {unit}")


# -- corner -----------------------------------------------------------------------------------------------------------


def corner_chart(posterior: Posterior) -> str:
    """Densities of the first twelve parameters and of all pairs of them."""
    n = min(posterior.dim, MOST)
    side = 330.0 if n == 1 else CELL
    left, below, above = 58.0, 44.0, 30.0
    width, height = left + n * side + 8.0, above + n * side + below
    parts: list[str] = []
    limits = [limits_of(posterior, d) for d in range(n)]
    std = posterior.std
    cov = posterior.cov
    for i in range(n):
        for j in range(i + 1):
            origin = (left + j * side, above + i * side)
            if i == j:
                panel = _marginal(posterior, i, limits[i], side, origin)
            else:
                rho = float(cov[i, j] / (std[i] * std[j])) if std[i] * std[j] > 0.0 else math.nan
                panel = _pair(posterior, (j, i), (limits[j], limits[i]), rho, side, origin, exact=n <= 4)
            _corner_labels(panel, posterior.names, i, j, n)
            parts += panel.parts
    return svg(width, height, parts, f"densities of {', '.join(posterior.names[:n])} and of their pairs")


def _panel(x: tuple[float, float], y: tuple[float, float], side: float, origin: tuple[float, float]) -> Panel:
    panel = Panel(side, side, x, y, pad=(3.0, 3.0, 3.0, 3.0), origin=origin)
    inner = number(side - 6.0)
    panel.add(
        f'<rect class="frame" x="{number(panel.left)}" y="{number(panel.top)}" width="{inner}" height="{inner}"/>'
    )
    return panel


def _marginal(
    posterior: Posterior, d: int, limits: tuple[float, float], side: float, origin: tuple[float, float]
) -> Panel:
    grid, density = posterior.marginal(d, np.linspace(*limits, 80))
    panel = _panel(limits, (0.0, 1.1 * max(float(density.max()), 1e-300)), side, origin)
    low, median, high = posterior.form.quantiles(d, np.array([0.025, 0.5, 0.975]))
    inside = (grid >= low) & (grid <= high)
    panel.band(grid[inside], np.zeros(int(inside.sum())), density[inside], "band1")
    panel.line(grid, density, "line")
    panel.line(np.array([median, median]), np.array(panel.y), "thin")
    name = posterior.names[d]
    title = f"{name}: median {median:.4g}, 95 % from {low:.4g} to {high:.4g}"
    panel.box(*panel.x, *panel.y, "target", title)
    return panel


def _pair(
    posterior: Posterior,
    columns: tuple[int, int],
    limits: tuple[tuple[float, float], tuple[float, float]],
    rho: float,
    side: float,
    origin: tuple[float, float],
    *,
    exact: bool,
) -> Panel:
    panel = _panel(limits[0], limits[1], side, origin)
    joint = joint_density(posterior, *columns, exact=exact)
    for level, css in zip(highest_density_levels(joint.density, (0.95, 0.5)), ("outer", "inner"), strict=True):
        path = "".join(
            f"M{panel.at(*start).replace(',', ' ')}L{panel.at(*end).replace(',', ' ')}"
            for start, end in contour(joint.a, joint.b, joint.density, level)
        )
        panel.add(f'<path class="{css}" d="{_filled(panel, joint.a, joint.b, joint.density, level)}"/>')
        panel.add(f'<path class="contour" fill="none" d="{path}"/>')
    a, b = (posterior.names[d] for d in columns)
    panel.box(*panel.x, *panel.y, "target", f"{a} and {b}: correlation {rho:.2f}; regions of 50 % and 95 %")
    return panel


def contour(x: Array, y: Array, z: Array, level: float) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Segments of the line on which z (X, Y) has a level, by marching squares with linear interpolation."""
    above = z > level
    segments = []
    for i, j in np.argwhere(
        (above[:-1, :-1] != above[1:, :-1]) | (above[:-1, :-1] != above[:-1, 1:]) | (above[:-1, :-1] != above[1:, 1:])
    ):
        corners = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)]
        crossed = []
        for (a, b), (c, d) in zip(corners, [*corners[1:], corners[0]], strict=True):
            if above[a, b] != above[c, d]:
                t = (level - z[a, b]) / (z[c, d] - z[a, b])
                crossed.append((float(x[a] + t * (x[c] - x[a])), float(y[b] + t * (y[d] - y[b]))))
        segments += list(zip(crossed[::2], crossed[1::2], strict=False))
    return segments


def _filled(panel: Panel, x: Array, y: Array, z: Array, level: float) -> str:
    """The part above a level, as rows of rectangles whose ends are interpolated."""
    half = 0.5 * abs(panel.py(float(y[1])) - panel.py(float(y[0]))) + 0.15
    path = []
    for j, row in enumerate(z.T):
        inside = np.concatenate([[False], row > level, [False]])
        starts, ends = np.flatnonzero(~inside[:-1] & inside[1:]), np.flatnonzero(inside[:-1] & ~inside[1:]) - 1
        for first, last in zip(starts.tolist(), ends.tolist(), strict=True):
            left = _crossing(x, row, level, first, first - 1)
            right = _crossing(x, row, level, last, last + 1)
            a, width = panel.px(left), panel.px(right) - panel.px(left)
            middle = panel.py(float(y[j]))
            path.append(f"M{number(a)} {number(middle - half)}h{number(width)}v{number(2 * half)}h{number(-width)}z")
    return "".join(path)


def _crossing(x: Array, row: Array, level: float, inner: int, outer: int) -> float:
    """Where a row passes the level between a point above it and its neighbour, if it has one."""
    if not 0 <= outer < len(x):
        return float(x[inner])
    t = (row[inner] - level) / (row[inner] - row[outer])
    return float(x[inner] + t * (x[outer] - x[inner]))


def _corner_labels(panel: Panel, names: Sequence[str], i: int, j: int, n: int) -> None:
    """Names above the diagonal, ticks at the left and below."""
    middle = 0.5 * (panel.left + panel.right)
    x, y = offset_of(*panel.x), offset_of(*panel.y)
    if i == j:
        panel.text(middle, panel.top - 8.0, less(names[i], x))
    if i == n - 1:
        for value in _few(panel.x, x, WIDTH_OF_DIGIT):
            panel.text(panel.px(value), panel.bottom + 14.0, f"{value - x:.4g}", "tick")
        panel.text(middle, panel.bottom + 32.0, less(names[j], x))
    if j == 0 and i > 0:
        for value in _few(panel.y, y):
            panel.text(panel.left - 5.0, panel.py(value) + 3.5, f"{value - y:.4g}", "tick", "end")


def _few(ends: tuple[float, float], offset: float, width: float = 0.0) -> list[float]:
    """Two to four round values inside an interval, as many as there is room for if each digit needs some width."""
    low, high = ends
    inner = (low + 0.06 * (high - low), high - 0.06 * (high - low))
    tried = [found for most in (4, 3, 2, 1) if 0 < len(found := ticks(*inner, most)) <= 4]
    fitting = [found for found in tried if sum(width * (1 + len(f"{v - offset:.4g}")) for v in found) <= CELL]
    return max(fitting or tried[-1:], key=len, default=[])


# -- searches ---------------------------------------------------------------------------------------------------------


def search_charts(result: Result) -> list[str]:
    """For log ℓ and the first twelve parameters: where each search started (hollow) and where it ended."""
    paths = search_paths(result)
    if not paths:
        return []
    tops = [float(path.log_l[path.best]) for path in paths]
    starts = [float(path.log_l[0]) for path in paths if math.isfinite(path.log_l[0])]
    span = max(max(tops) - float(np.median(starts)) if starts else 1.0, 1.0)
    limits = (max(tops) - 1.3 * span, max(tops) + 0.1 * span)
    charts = [_searches("log ℓ", paths, [path.log_l for path in paths], limits)]
    for d, name in enumerate(result.names[:MOST]):
        values = [path.X[:, d] for path in paths]
        low, high = float(min(map(np.min, values))), float(max(map(np.max, values)))
        margin = 0.06 * (high - low) or 1.0
        charts.append(_searches(name, paths, values, (low - margin, high + margin)))
    return charts


def _searches(name: str, paths: Sequence[SearchPath], values: Sequence[Array], y: tuple[float, float]) -> str:
    width, height = 300.0, 190.0
    panel = Panel(width, height, (0.3, len(paths) + 0.7), y, pad=(52.0, 8.0, 22.0, 34.0))
    for path, own in zip(paths, values, strict=True):
        css, x = OUTCOME_CSS.get(path.outcome, OUTCOME_CSS["unfinished"]), float(path.number)
        for value in own:
            panel.dot(x, float(value), "faint", radius=1.3)
        panel.line(np.array([x, x]), np.array([own[0], own[path.best]]), f"path {css}")
        start = "from the prior" if path.start == "prior" else "round a point"
        label = OUTCOMES.get(path.outcome, OUTCOMES["unfinished"])[2]
        panel.dot(x, float(own[0]), f"hollow {css}", f"search {path.number} started {start}: {own[0]:.4g}", 3.6)
        title = f"search {path.number}, {len(own)} evaluations, {label}: {own[path.best]:.4g}"
        panel.dot(x, float(own[path.best]), css, title, 4.4)
    panel.axes("search", "", name, counted=True)
    return svg(width, height, panel.parts, f"{name} where each search started and ended")


# -- check points -----------------------------------------------------------------------------------------------------


def check_charts(result: Result) -> list[str]:
    """Predicted against actual log ℓ at the check points, and their weights; nothing where there were none."""
    check = None if result.diagnostics is None else result.diagnostics.check
    if check is None:
        return []
    top = float(np.max(check.log_likelihoods))
    shown = (check.log_likelihoods > top - 20.0) & np.isfinite(check.predicted)
    actual, predicted, sd, weights = (
        values[shown] for values in (check.log_likelihoods, check.predicted, check.std, check.weights)
    )
    low, high = float(min(actual.min(), predicted.min())), float(max(actual.max(), predicted.max()))
    margin = 0.07 * (high - low) or 1.0
    ends = (low - margin, high + margin)
    panel = Panel(*SIZE, ends, ends, pad=(62.0, 12.0, 24.0, 38.0))
    panel.line(np.array(ends), np.array(ends), "dashed")
    for a, p, s, w in zip(actual, predicted, sd, weights, strict=True):
        panel.line(np.array([p - s, p + s]), np.array([a, a]), "thin")
        title = f"actual {a:.5g}, predicted {p:.5g} ± {s:.2g}, weight {w:.1%}"
        panel.dot(float(p), float(a), "point", title, 2.5 + 4.0 * math.sqrt(w / float(check.weights.max())))
    panel.axes("predicted log ℓ", "actual log ℓ")
    ordered = np.sort(check.weights)[::-1]
    bars = Panel(*SIZE, (0.4, len(ordered) + 0.6), (0.0, 1.08 * float(ordered[0])), pad=(62.0, 12.0, 24.0, 38.0))
    for k, w in enumerate(ordered, start=1):
        bars.box(k - 0.4, k + 0.4, 0.0, float(w), "check", f"check point {k} of {len(ordered)}: weight {w:.1%}")
    equal = np.full(2, 1.0 / len(ordered))
    bars.line(np.array(bars.x), equal, "dashed")
    bars.axes("check point, heaviest first", "share of the estimate (dashed: all equal)", counted=True)
    return [
        svg(*SIZE, panel.parts, "predicted against actual log likelihood at the check points"),
        svg(*SIZE, bars.parts, "weights of the check points"),
    ]
