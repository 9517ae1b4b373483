"""The check points: what was predicted of them, what they weigh, and how heavy the tail of their weights is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from wsabi._core.types import Array
from wsabi.plots.slices import known_diagnostics
from wsabi.plots.style import AMBER, BLUE, GREY, ORANGE, few_ticks, house_style, new_figure, on_axes
from wsabi.result import CheckPoints, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_check", "tail_line"]

DEPTH = 20.0  # nats below the best check point that are shown
LIGHTEST = 1e-3  # of the heaviest weight: the tail is about the heavy ones
RELIABLE = 0.7  # Pareto k below which a mean of weights can be relied on (Vehtari et al., 2024)


def draw_check(result: Result, axes: Any) -> Figure:
    """See :meth:`wsabi.plots.of_result.ResultPlots.check`."""
    check = known_diagnostics(result, "check").check
    if check is None:
        raise ValueError("there are no check points: under the prior as measure, or before any was evaluated.")
    if axes is not None:
        with house_style():
            given = on_axes(axes, 3, "check")
            _draw(result, check, given)
        return given[0].get_figure()  # type: ignore[return-value]
    with new_figure(10.2, 3.5) as figure:
        _draw(result, check, list(figure.subplots(1, 3)))
    return figure


def _draw(result: Result, check: CheckPoints, axes: list[Axes]) -> None:
    _draw_predictions(axes[0], check)
    _draw_weights(axes[1], check)
    _draw_tail(axes[2], check, math.nan if result.certificate is None else result.certificate.pareto_k)


def _draw_predictions(axis: Axes, check: CheckPoints) -> None:
    top = float(np.max(check.log_likelihoods))
    shown = (check.log_likelihoods > top - DEPTH) & np.isfinite(check.predicted)
    actual, predicted, sd = (values[shown] for values in (check.log_likelihoods, check.predicted, check.std))
    ends = [float(min(actual.min(), predicted.min())), float(max(actual.max(), predicted.max()))]
    margin = 0.06 * (ends[1] - ends[0]) or 1.0
    line = [ends[0] - margin, ends[1] + margin]
    axis.plot(line, line, color=GREY, linewidth=1.0, dashes=(4.0, 2.0), label="predicted = actual")
    axis.errorbar(predicted, actual, xerr=sd, fmt="none", ecolor=BLUE, alpha=0.5, elinewidth=1.0)
    sizes = 8.0 + 90.0 * check.weights[shown] / max(float(check.weights.max()), 1e-300)
    axis.scatter(predicted, actual, s=sizes, color=BLUE, alpha=0.75, linewidths=0, label="check point, by weight")
    axis.set_xlim(*line)
    axis.set_ylim(*line)
    axis.set_xlabel("predicted log ℓ ± sd")
    axis.set_ylabel("actual log ℓ")
    hidden = len(shown) - int(shown.sum())
    note = f", {hidden} lower not shown" if hidden else ""
    axis.set_title(f"{len(shown)} check points{note}")
    axis.legend(loc="upper left")
    few_ticks(axis, x=5, y=5)


def _draw_weights(axis: Axes, check: CheckPoints) -> None:
    ordered = np.sort(check.weights)[::-1]
    axis.bar(np.arange(1, len(ordered) + 1), ordered, width=0.8, color=AMBER)
    axis.axhline(1.0 / len(ordered), color=GREY, linewidth=1.0, dashes=(4.0, 2.0), label="all equal")
    size = 1.0 / float(np.square(ordered).sum())
    axis.set_title(f"their weights count as {size:.1f} equal ones")
    axis.set_xlabel("check point, heaviest first")
    axis.set_ylabel("share of the estimate")
    axis.legend(loc="upper right")
    few_ticks(axis, x=6, y=5)


def tail_line(weights: Array, k: float) -> tuple[Array, Array]:
    """Chance (T,) that a weight exceeds values (T,), by the generalised Pareto distribution of shape k.

    The tail is the min(N/5, 3√N) largest of N weights; its scale is that of their mean excess, σ = (1 − k) mean.
    """
    n = len(weights)
    m = max(2, min(n // 5, int(3.0 * math.sqrt(n))))
    ordered = np.sort(weights)
    cutoff, tail = ordered[-m - 1], ordered[-m:]
    sigma = max(float(np.mean(tail - cutoff)) * (1.0 - min(k, 0.9)), 1e-300)
    values = np.geomspace(max(cutoff, 1e-300), 3.0 * tail[-1], 60)
    scaled = np.maximum(1.0 + k * (values - cutoff) / sigma, 1e-300)
    chance = np.exp(-(values - cutoff) / sigma) if abs(k) < 1e-6 else scaled ** (-1.0 / k)
    return values, np.asarray(m / n * chance)


def _draw_tail(axis: Axes, check: CheckPoints, k: float) -> None:
    from matplotlib.ticker import NullFormatter

    n = len(check.weights)
    ordered = np.sort(check.weights)[::-1]
    shown = ordered > LIGHTEST * ordered[0]
    axis.plot(ordered[shown], (np.arange(1, n + 1) / n)[shown], "o", color=AMBER, markersize=4.0, label="weights")
    if math.isfinite(k):
        axis.plot(*tail_line(check.weights, k), color=ORANGE, label="fitted tail")
        verdict = "reliable" if k <= RELIABLE else "too heavy"
        axis.set_title(f"Pareto k = {k:.2f}: {verdict} (limit {RELIABLE})")
    else:
        axis.set_title("Pareto k: too few check points (25)")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_ylim(0.3 / n, 1.5)
    axis.set_xlabel("weight")
    axis.set_ylabel("share of weights above")
    axis.legend(loc="lower left")
