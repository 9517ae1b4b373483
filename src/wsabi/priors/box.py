"""The uniform density on a box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wsabi._core.checks import box_bounds, checked_names
from wsabi._core.types import Array, ArrayLike, Seed, as_generator

__all__ = ["Uniform"]


@dataclass(frozen=True, eq=False)
class Uniform:
    """Uniform density on the box ∏_d [low_d, high_d].

    Parameters
    ----------
    low, high : scalars or (D,), with low < high.
    """

    low: Array
    high: Array
    names: tuple[str, ...]

    def __init__(self, low: ArrayLike, high: ArrayLike, *, names: Sequence[str] | None = None) -> None:
        low_, high_ = box_bounds(low, high)
        object.__setattr__(self, "low", low_)
        object.__setattr__(self, "high", high_)
        object.__setattr__(self, "names", checked_names(names, low_.size))

    @property
    def dim(self) -> int:
        """Number of dimensions D."""
        return self.low.size

    @property
    def mean(self) -> Array:
        """Centre of the box, (D,)."""
        return 0.5 * (self.low + self.high)

    @property
    def cov(self) -> Array:
        """diag((high − low)²/12), (D, D)."""
        return np.diag(np.square(self.high - self.low) / 12.0)

    def log_pdf(self, X: Array) -> Array:
        """−Σ log(high − low) inside, −inf outside, (N,)."""
        inside = np.all((self.low <= X) & (self.high >= X), axis=1)
        return np.where(inside, -np.log(self.high - self.low).sum(), -np.inf)

    def grad_log_pdf(self, X: Array) -> Array:
        """Zero, (N, D)."""
        return np.zeros_like(X)

    def log_pdf_and_gradient(self, x: Array) -> tuple[float, Array]:
        """log π and its gradient, zero (D,), at one point x (D,)."""
        return float(self.log_pdf(x[None, :])[0]), np.zeros(self.dim)

    def sample(self, n: int, rng: Seed = None) -> Array:
        """n draws, (n, D)."""
        return np.asarray(self.low + (self.high - self.low) * as_generator(rng).random((n, self.dim)))
