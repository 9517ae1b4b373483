"""The mean of importance weights with control variates, and its standard error, from sums over points."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.tuning import TUNING

__all__ = ["Tally"]


@dataclass(frozen=True, eq=False)
class Tally:
    """Sums over N points of f = exp(log w − log_unit) and of rows a = (1, controls), whose controls have mean zero.

    The regression of f on a has the intercept

        β = G⁻¹ b,  G = Σ a aᵀ,  b = Σ f a,

    which estimates the mean of f, with the variance of what the controls leave, (Σf² − bᵀβ)/(N(N − C)), where C is the
    number of columns. Weights have a heavy tail that N points may not have met, so (max f/N)² is added: one more weight
    like the largest is allowed for. The sums are all that is needed, so the points may be let go of.

    Attributes
    ----------
    log_unit : what the weights are taken relative to.
    n, gram, moment, square, largest : N, G (C, C), b (C,), Σf² and max f.
    """

    log_unit: float
    n: int
    gram: Array
    moment: Array
    square: float
    largest: float

    @classmethod
    def of(cls, log_unit: float, log_weights: Array, rows: Array) -> Tally:
        """Sums over log weights (N,), −inf allowed, with rows (N, C)."""
        f = np.exp(log_weights - log_unit)
        return cls(log_unit, len(f), rows.T @ rows, rows.T @ f, float(f @ f), float(np.max(f, initial=0.0)))

    def __add__(self, other: Tally) -> Tally:
        """The sums over the points of both, which have the same controls and the same unit."""
        return replace(
            self,
            n=self.n + other.n,
            gram=self.gram + other.gram,
            moment=self.moment + other.moment,
            square=self.square + other.square,
            largest=max(self.largest, other.largest),
        )

    def mean(self) -> tuple[float, float]:
        """The mean of f and its variance; the variance is infinite where there are too few points."""
        if self.n <= 2 * len(self.moment):
            return float(self.moment[0]) / max(self.n, 1), math.inf
        # The columns are scaled to unit length, so that what counts as dependent does not depend on their sizes.
        scale = 1.0 / np.sqrt(np.maximum(np.diag(self.gram), np.finfo(np.float64).tiny))
        whole = self.gram * np.outer(scale, scale)
        beta = scale * np.linalg.lstsq(whole, scale * self.moment, rcond=TUNING.bulk.min_eigenvalue)[0]
        left = max(self.square - float(self.moment @ beta), 0.0)
        return float(beta[0]), left / (self.n * (self.n - len(beta))) + (self.largest / self.n) ** 2
