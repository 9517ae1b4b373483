"""The density of a posterior by the surrogates of log ℓ, in a form small enough to keep with a result."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.state import State
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.surrogate.model import LogSurrogate
from wsabi.gp.feasibility import Border
from wsabi.priors.chart import Chart

__all__ = ["SurrogateDensity"]


@dataclass(frozen=True, eq=False)
class _Region:
    """The surrogate of one region.

    Attributes
    ----------
    log_weight, wide : w and the frame of q of the region; where w q is the largest, this surrogate speaks.
    frame, surrogate, top : the surrogate's coordinates, its mean of log ℓ − top, and top.
    border : where ℓ is positive; None where it is everywhere.
    """

    log_weight: float
    wide: Frame
    frame: Frame
    surrogate: LogSurrogate
    top: float
    border: Border | None

    def log_likelihood(self, U: Array) -> Array:
        """The mean of log ℓ, (M,) at U (M, D), and no more than a nat above the best evaluation."""
        Y = self.frame.whiten(U)
        values = np.minimum(self.surrogate.mean(Y), 1.0) + self.top
        if self.border is None:
            return np.asarray(values)
        with np.errstate(divide="ignore"):
            return np.asarray(values + np.log(self.border.chance(Y)))


@dataclass(frozen=True, eq=False)
class SurrogateDensity:
    """log p(x) = log ℓπ − log Z with the surrogates' mean of log ℓ and the reported log Z.

    Attributes
    ----------
    chart : the prior and its coordinates.
    regions : of the posterior.
    shift : what the surrogates' log ℓ lack, less log Z.
    """

    chart: Chart
    regions: tuple[_Region, ...]
    shift: float

    @classmethod
    def of(cls, state: State, chart: Chart, log_z: float) -> SurrogateDensity | None:
        """Of the models as they are at the end; None while there are none."""
        models = state.models if state.crossfit is None else state.crossfit.regions
        if models is None:
            return None
        parts = []
        for part in models.parts:
            explorer = part.explorer
            if explorer.surrogate is None:
                return None
            small = replace(explorer.surrogate, L=np.empty((0, 0)))  # the mean needs no factor
            parts.append(_Region(part.log_weight, part.frame, explorer.frame, small, explorer.top, explorer.border))
        return cls(chart, tuple(parts), state.data.offset - log_z)

    def __call__(self, X: Array) -> Array:
        """log p, (M,) at X (M, D) in the user's coordinates; −inf outside the support."""
        if not self.chart.separable:
            raise TypeError(
                "a density in the user's coordinates is not known under a Transform prior (its Jacobian is unknown): "
                "use sample() or expect(), or give the prior as Independent."
            )
        low, high = self.chart.support
        inside = np.all((low <= X) & (high >= X), axis=1)
        log_p = np.full(len(X), -np.inf)
        U = self.chart.to_base(X[inside])
        owner = np.argmax([part.log_weight + part.wide.log_density(U) for part in self.regions], axis=0)
        values = np.empty(len(U))
        for k, part in enumerate(self.regions):
            values[owner == k] = part.log_likelihood(U[owner == k])
        prior = self.chart.measure.log_pdf(U) - self.chart.log_jacobian_diag(U).sum(axis=1)
        log_p[inside] = values + prior + self.shift
        return log_p
