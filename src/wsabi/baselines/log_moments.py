"""Streaming mean and variance of numbers known by their logarithms."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wsabi._core.logspace import safe_log
from wsabi._core.types import Array
from wsabi.result import ModelBelief

__all__ = ["LogMoments"]


@dataclass(slots=True)
class LogMoments:
    """Moments of n numbers y = exp(a), from blocks of a.

    Attributes
    ----------
    n : how many.
    log_scale : the largest a so far; the other two are of y·exp(−log_scale).
    mean : ȳ.
    spread : Σ (y − ȳ)².
    """

    n: int = 0
    log_scale: float = -math.inf
    mean: float = 0.0
    spread: float = 0.0

    def add(self, a: Array) -> None:
        """Add a block a (M,), −inf allowed.

        Two blocks join by ȳ = ȳ₁ + d M/(n + M) and Σ = Σ₁ + Σ₂ + d² nM/(n + M), d = ȳ₂ − ȳ₁: no difference of large
        sums, so a nearly constant y keeps its variance.
        """
        if not a.size:
            return
        top = float(a.max())
        if top > self.log_scale:
            shrink = math.exp(self.log_scale - top)
            self.mean *= shrink
            self.spread *= shrink * shrink
            self.log_scale = top
        y = np.exp(a - self.log_scale) if math.isfinite(self.log_scale) else np.zeros(a.size)
        block_mean = float(y.mean())
        total = self.n + a.size
        gap = block_mean - self.mean
        self.spread += float(np.square(y - block_mean).sum()) + gap * gap * self.n * a.size / total
        self.mean += gap * a.size / total
        self.n = total

    @property
    def effective_size(self) -> float:
        """(Σy)²/Σy²: how many equal numbers would have this relative spread."""
        squares = self.spread + self.n * self.mean**2
        return (self.n * self.mean) ** 2 / squares if squares > 0.0 else 0.0

    def belief(self) -> ModelBelief | None:
        """log ȳ and the log of its variance, Σ (y − ȳ)²/(n(n − 1)); None while every y is zero.

        One number has no spread: its variance is infinite, not zero.
        """
        if self.mean <= 0.0:
            return None
        variance = self.spread / (self.n * (self.n - 1)) if self.n > 1 else math.inf
        return ModelBelief(math.log(self.mean) + self.log_scale, safe_log(variance) + 2.0 * self.log_scale)
