"""Distribution functions of one parameter and their inverses; the shortest interval of a given probability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre

from wsabi._core.types import Array

__all__ = ["PanelDistribution", "shortest_interval", "weighted_quantiles"]

_BISECTIONS = 60  # a panel is then 1e-18 of its length
_STARTS = 401  # intervals tried at first, and again about the shortest of them


@dataclass(frozen=True, eq=False)
class PanelDistribution:
    """The distribution function of a density known at the Gauss-Legendre nodes of adjoining panels.

    On each panel the density is its interpolating polynomial, whose integral is exact to the accuracy of the rule.

    Attributes
    ----------
    ends : (P + 1,) of the panels.
    cumulative : (P + 1,) probability below each end.
    coefficients : (K + 1, P) of the probability above the lower end of a panel, as a Legendre series in t ∈ [−1, 1].
    """

    ends: Array
    cumulative: Array
    coefficients: Array

    @classmethod
    def of(cls, ends: Array, density: Array) -> PanelDistribution:
        """From P panels and the density (P·K,), up to a factor, at the K nodes of each."""
        n_panels = len(ends) - 1
        values = np.maximum(density, 0.0).reshape(n_panels, -1)
        order = values.shape[1]
        nodes, weights = legendre.leggauss(order)
        # c_k = (k + ½) Σ w_i P_k(t_i) f(t_i): the interpolating polynomial, for k below the number of nodes.
        series = (np.arange(order) + 0.5)[:, None] * (legendre.legvander(nodes, order - 1) * weights[:, None]).T
        integral = legendre.legint(series @ values.T, lbnd=-1, axis=0) * (0.5 * np.diff(ends))
        masses = values @ weights * (0.5 * np.diff(ends))
        total = float(masses.sum())
        return cls(ends, np.concatenate([[0.0], np.cumsum(masses)]) / total, integral / total)

    def quantiles(self, levels: Array) -> Array:
        """Values (L,) below which the probabilities ``levels`` (L,) lie."""
        panel = np.clip(np.searchsorted(self.cumulative, levels, side="right") - 1, 0, len(self.ends) - 2)
        wanted = levels - self.cumulative[panel]
        own = self.coefficients[:, panel]
        low, high = np.full(len(levels), -1.0), np.ones(len(levels))
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            below = legendre.legval(middle, own, tensor=False) < wanted
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        t = 0.5 * (low + high)
        return np.asarray(self.ends[panel] + 0.5 * (t + 1.0) * (self.ends[panel + 1] - self.ends[panel]))


def weighted_quantiles(x: Array, weights: Array, levels: Array) -> Array:
    """Quantiles of weighted values x (N,) at the given levels: half of a value's weight lies on either side of it."""
    order = np.argsort(x)
    below = np.cumsum(weights[order]) - 0.5 * weights[order]
    return np.asarray(np.interp(levels, below, x[order]))


def shortest_interval(quantiles: Callable[[Array], Array], probability: float) -> tuple[float, float]:
    """Ends of the shortest interval that holds a probability; for a density of one hump, that of highest density.

    Parameters
    ----------
    quantiles : from levels (L,) to values (L,).
    """
    first, last = 0.0, 1.0 - probability
    for _ in range(2):
        starts = np.linspace(first, last, _STARTS)
        low, high = quantiles(starts), quantiles(starts + probability)
        best = int(np.argmin(high - low))
        step = starts[1] - starts[0]
        first, last = max(starts[best] - step, 0.0), min(starts[best] + step, 1.0 - probability)
    return float(low[best]), float(high[best])
