"""Models of a likelihood on a line: mean, 95 % band, samples, truth; and the density of the process they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wsabi._core.types import Array
from wsabi.plots.style import COLOURS, LABELS, LINES, TRUTH, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Band", "LikelihoodPanel", "density_with_bands", "likelihood_panels"]


@dataclass(frozen=True, eq=False)
class Band:
    """A model of ℓ over x (M,): mean (M,) with an interval from low (M,) to high (M,)."""

    method: str
    x: Array
    mean: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class LikelihoodPanel:
    """One panel: the true ℓ over ``band.x``, a model of it, the samples (N,) and (N,) it saw, and remarks.

    ``prior`` (M,), where given, is drawn as a grey silhouette of the prior density at the foot of the panel;
    ``numbered`` writes beside each sample when it was chosen.
    """

    title: str
    truth: Array
    band: Band
    points: Array
    values: Array
    remarks: tuple[str, ...] = ()
    prior: Array | None = None
    numbered: bool = False


def likelihood_panels(panels: Sequence[LikelihoodPanel], *, band_label: str = "95 % band") -> Figure:
    """Panels side by side on one scale."""
    with new_figure(4.0 * max(len(panels), 1) + 0.4, 3.5) as figure:
        axes = figure.subplots(1, max(len(panels), 1), sharey=True, squeeze=False)[0]
        for axis, panel in zip(axes, panels, strict=False):
            _draw_panel(axis, panel, band_label)
        bottom, top = axes[0].get_ylim()
        axes[0].set_ylim(bottom, top + 0.18 * (top - bottom))  # room for the remarks
        axes[0].set_ylabel("likelihood ℓ(x)")
        _legend_below(figure, axes[0])
    return figure


def _draw_panel(axis: Axes, panel: LikelihoodPanel, band_label: str) -> None:
    band = panel.band
    if panel.prior is not None:
        silhouette = 0.25 * float(np.max(panel.truth)) * panel.prior / float(np.max(panel.prior))
        axis.fill_between(band.x, 0.0, silhouette, color="0.9", linewidth=0, label="prior π(x), not to scale")
    axis.axhline(0.0, color="0.6", linewidth=0.6)
    _draw_band(axis, band, band_label)
    axis.plot(band.x, panel.truth, color=TRUTH, dashes=(4.0, 2.0), linewidth=1.1, label="true ℓ")
    axis.plot(panel.points, panel.values, "o", color=TRUTH, markersize=4.0, label="samples")
    if panel.numbered:
        for number, (x, value) in enumerate(zip(panel.points, panel.values, strict=True), start=1):
            axis.annotate(str(number), (x, value), (0, 4), textcoords="offset points", ha="center", fontsize=6.5)
    axis.set_title(panel.title)
    axis.set_xlabel("x")
    axis.set_xlim(float(band.x[0]), float(band.x[-1]))
    axis.text(0.02, 0.98, "\n".join(panel.remarks), transform=axis.transAxes, va="top", fontsize=7.5)


def _draw_band(axis: Axes, band: Band, band_label: str) -> None:
    colour = COLOURS[band.method]
    axis.fill_between(band.x, band.low, band.high, color=colour, alpha=0.22, linewidth=0, label=band_label)
    axis.plot(band.x, band.mean, color=colour, label="posterior mean")


def _legend_below(figure: Figure, axis: Axes) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 5))


def density_with_bands(
    x: Array, edges: Array, density: Array, truth: Array, bands: Sequence[Band], points: Array, values: Array
) -> Figure:
    """Heat map of p(ℓ(x)), means and 95 % bands of its approximations, the true ℓ and the samples.

    Parameters
    ----------
    x : (M,) positions.
    edges : (B + 1,) edges of the bins of ℓ.
    density : (B, M) probability density of ℓ(x) per bin.
    truth : (M,) ℓ(x).
    points, values : (N,) samples.
    """
    from matplotlib.colors import LogNorm

    with new_figure(7.2, 4.2) as figure:
        axis = figure.subplots()
        # Logarithmic: χ² with one degree of freedom has an infinite peak at its foot.
        shade = np.ma.masked_less_equal(density, 0.0)
        norm = LogNorm(0.02, 20.0)
        centres = 0.5 * (edges[1:] + edges[:-1])
        image = axis.pcolormesh(x, centres, shade, cmap="Greys", norm=norm, alpha=0.75, rasterized=True)
        figure.colorbar(image, ax=axis, label="probability density of ℓ(x)", fraction=0.04, pad=0.02, extend="both")
        for band in bands:
            colour, dashes = COLOURS[band.method], LINES[band.method] or (None, None)
            axis.plot(band.x, band.mean, color=colour, label=f"{LABELS[band.method]} mean")
            axis.plot(band.x, band.low, color=colour, linewidth=0.9, dashes=dashes, alpha=0.9)
            label = f"{LABELS[band.method]} 95 % band"
            axis.plot(band.x, band.high, color=colour, linewidth=0.9, dashes=dashes, alpha=0.9, label=label)
        axis.plot(x, truth, color=TRUTH, dashes=(4.0, 2.0), linewidth=1.1, label="true ℓ = exp(−x²)")
        axis.plot(points, values, "o", color=TRUTH, markersize=4.0, label="samples", zorder=5)
        axis.set_xlim(float(x[0]), float(x[-1]))
        axis.set_ylim(float(edges[0]), float(edges[-1]))
        axis.set_xlabel("x")
        axis.set_ylabel("likelihood ℓ(x)")
        axis.legend(loc="upper right", ncols=1)
    return figure
