"""The corner plot: marginal densities of the parameters and the joint ones of all pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wsabi._core.types import Array
from wsabi.plots.style import BLUE, ORANGE, few_ticks, house_style, less, offset_of, on_axes, take_off
from wsabi.posterior.named import columns_of
from wsabi.posterior.posterior import Posterior
from wsabi.posterior.summary import decimals
from wsabi.posterior.weighted import Marginal2

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["chosen_columns", "draw_corner", "highest_density_levels", "joint_density", "limits_of"]

MOST = 12
EXACT = 4  # parameters up to which joint densities are drawn from all that is known; beyond, from THINNED points
THINNED = 1500
GRID = 48


def draw_corner(
    posterior: Posterior,
    parameters: Sequence[str | int] | None,
    truth: Mapping[str, Any] | Sequence[float] | None,
    axes: Any,
) -> Figure:
    """See :meth:`wsabi.plots.of_result.ResultPlots.corner`."""
    columns = chosen_columns(posterior, parameters)
    n, known = len(columns), _truth(posterior, truth)
    with house_style():
        grid = _new_axes(n) if axes is None else np.array(on_axes(axes, n * n, "corner"), dtype=object).reshape(n, n)
        size = float(np.clip(10.0 - 0.25 * n, 8.0, 9.0))
        limits = [limits_of(posterior, d) for d in columns]
        for i, row in enumerate(columns):
            for j, column in enumerate(columns):
                axis = grid[i, j]
                if j > i:
                    axis.set_visible(False)
                    continue
                if i == j:
                    _draw_marginal(axis, posterior, row, limits[i], size, titled=n <= 6)
                    lines = [(axis.axvline, known[row])]
                else:
                    _draw_joint(axis, joint_density(posterior, column, row, exact=n <= EXACT), limits[j], limits[i])
                    lines = [(axis.axvline, known[column]), (axis.axhline, known[row])]
                for line, value in lines:
                    if np.isfinite(value):
                        line(value, color=ORANGE, linewidth=1.0, dashes=(4.0, 2.0))
                _label(axis, posterior.names, (i, j), (row, column), n, size)
    return grid[0, 0].get_figure()  # type: ignore[no-any-return]


def chosen_columns(posterior: Posterior, parameters: Sequence[str | int] | None) -> list[int]:
    """Columns of parameters by name or index; a vector's elements for its name."""
    if parameters is None:
        columns = list(range(posterior.dim))
    else:
        if isinstance(parameters, str):
            parameters = [parameters]
        found = [columns_of(one, posterior.names, posterior.form.groups) for one in parameters]
        columns = [int(d) for one in found for d in np.ravel(np.arange(posterior.dim)[one])]
    if not 1 <= len(columns) <= MOST:
        raise ValueError(
            f"a corner plot of {len(columns)} parameters cannot be read: name up to {MOST} of "
            f"{', '.join(posterior.names)}, as corner([...])."
        )
    return columns


def _truth(posterior: Posterior, truth: Mapping[str, Any] | Sequence[float] | None) -> Array:
    """Known values (D,), NaN where there is none."""
    values = np.full(posterior.dim, np.nan)
    if isinstance(truth, Mapping):
        for name, value in truth.items():
            values[columns_of(name, posterior.names, posterior.form.groups)] = value
    elif truth is not None:
        if len(truth) != posterior.dim:
            raise ValueError(f"truth has {len(truth)} values; expected {posterior.dim}, or a dict of names.")
        values[:] = truth
    return values


def _new_axes(n: int) -> Any:
    from matplotlib.figure import Figure

    side = float(np.clip(2.2 * n, 3.2, 13.0))
    figure = Figure(figsize=(side + 0.4, side))
    gap = 0.06 if n > 1 else 0.0
    margin = (0.5 if n < 5 else 0.68) / side  # inches for labels
    return figure.subplots(
        n, n, squeeze=False,
        gridspec_kw={"wspace": gap, "hspace": gap, "left": 1.35 * margin, "bottom": margin,
                     "right": 1.0 - 0.25 * margin, "top": 1.0 - (0.42 if n <= 6 else 0.12) / side},
    )  # fmt: skip


def limits_of(posterior: Posterior, d: int) -> tuple[float, float]:
    """Ends of a picture of one parameter: all but a thousandth at each end, and a tenth more, inside the support."""
    low, high = posterior.form.quantiles(d, np.array([1e-3, 1.0 - 1e-3]))
    margin = 0.1 * (high - low) or max(abs(low), 1.0) * 1e-3
    return max(low - margin, float(posterior.support[0][d])), min(high + margin, float(posterior.support[1][d]))


def joint_density(posterior: Posterior, a: int, b: int, *, exact: bool) -> Marginal2:
    """The joint density of two parameters on a coarse grid, of all points or of fewer."""
    grids = tuple(np.linspace(*limits_of(posterior, d), GRID) for d in (a, b))
    if exact:
        return posterior.marginal2(a, b, (grids[0], grids[1]))
    return posterior.weighted_sample(THINNED, rng=0).marginal2(a, b, (grids[0], grids[1]))


def highest_density_levels(density: Array, shares: Sequence[float]) -> list[float]:
    """Values of a density on an even grid above which it holds these shares of its sum."""
    ordered = np.sort(density.ravel())[::-1]
    total = np.cumsum(ordered)
    return [float(ordered[np.searchsorted(total, share * total[-1])]) for share in shares]


def _draw_marginal(
    axis: Axes, posterior: Posterior, d: int, limits: tuple[float, float], size: float, *, titled: bool
) -> None:
    grid = np.linspace(*limits, 200)
    density = posterior.marginal(d, grid).density
    low, median, high = posterior.form.quantiles(d, np.array([0.025, 0.5, 0.975]))
    axis.plot(grid, density, color=BLUE, linewidth=1.3)
    inside = (grid >= low) & (grid <= high)
    axis.fill_between(grid[inside], density[inside], color=BLUE, alpha=0.2, linewidth=0)
    axis.axvline(median, color=BLUE, linewidth=0.8)
    axis.set_xlim(*limits)
    axis.set_ylim(0.0, 1.08 * float(density.max()))
    if titled:
        places = decimals(float(posterior.std[d]))
        mean, sd = (f"{v:.3g}" if places is None else f"{v:.{places}f}" for v in (posterior.mean[d], posterior.std[d]))
        axis.set_title(f"{posterior.names[d]}\n{mean.replace('-', '−')} ± {sd}", fontsize=size)


def _draw_joint(axis: Axes, joint: Marginal2, x: tuple[float, float], y: tuple[float, float]) -> None:
    outer, inner = highest_density_levels(joint.density, (0.95, 0.5))
    top = float(joint.density.max())
    if outer < inner < top:
        axis.contourf(joint.a, joint.b, joint.density.T, [outer, inner, top], colors=["#BFD9EA", BLUE], alpha=0.85)
        axis.contour(joint.a, joint.b, joint.density.T, [outer], colors=[BLUE], linewidths=0.8)
    axis.set_xlim(*x)
    axis.set_ylim(*y)


def _label(
    axis: Axes, names: Sequence[str], at: tuple[int, int], columns: tuple[int, int], n: int, size: float
) -> None:
    """Ticks and names at the left and below only."""
    (i, j), (row, column) = at, columns
    few_ticks(axis, x=6 if n == 1 else 3, y=3)
    x, y = offset_of(*axis.get_xlim()), 0.0 if i == j else offset_of(*axis.get_ylim())
    for scale, offset in ((axis.xaxis, x), (axis.yaxis, y)):
        if offset:
            take_off(scale, offset)
    between = "\n" if n > EXACT else " "  # of a label that would else be wider than its panel
    axis.tick_params(labelsize=size - 1.0, length=2.0, pad=1.5)
    axis.tick_params(axis="x", labelrotation=45.0 if n > 4 else 0.0)
    if i < n - 1:
        axis.tick_params(labelbottom=False)
    else:
        axis.set_xlabel(less(names[column], x, between), fontsize=size, labelpad=2.0)
    if i == j:
        axis.set_yticks([])
    elif j == 0:
        axis.set_ylabel(less(names[row], y, between), fontsize=size, labelpad=2.0)
    else:
        axis.tick_params(labelleft=False)
