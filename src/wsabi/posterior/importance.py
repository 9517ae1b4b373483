"""Importance weights: what they are worth, resampling by them; and the Student proposal they come from."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from wsabi._core.linalg import log_det, solve_lower
from wsabi._core.types import Array

__all__ = ["LowSampleSizeWarning", "Student", "checked_size", "resample", "warn_if_few"]

_LOW_SAMPLE_SIZE = 100.0  # below it a mean is known to no better than a tenth of a standard deviation


class LowSampleSizeWarning(UserWarning):
    """The importance weights are so uneven that few of the points count."""


def checked_size(n: int) -> int:
    """n, if it is a whole number of at least one."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise TypeError(f"n must be a whole number of draws; got {type(n).__name__}.")
    if n < 1:
        raise ValueError(f"n must be at least 1 draw; got {n}.")
    return int(n)


def warn_if_few(weights: Array, *, stacklevel: int = 3) -> None:
    """Warn where weights (M,) that sum to one are worth fewer than 100 independent draws, and fewer than half of M."""
    size = 1.0 / float(np.square(weights).sum())
    if size < min(_LOW_SAMPLE_SIZE, 0.5 * len(weights)):
        warnings.warn(
            f"{len(weights)} weighted points are worth only {size:.1f} independent draws: the posterior is far from "
            "the density they were drawn from. Ask for more of them, or use mean, cov and marginal of the model.",
            LowSampleSizeWarning,
            stacklevel=stacklevel,
        )


def resample(weights: Array, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """n indices, in random order, by systematic resampling of weights (M,) that sum to one.

    An index of weight w occurs ⌊nw⌋ or ⌈nw⌉ times: resampling adds as little noise as it can.
    """
    levels = (np.arange(n) + rng.random()) / n
    index = np.minimum(np.searchsorted(np.cumsum(weights), levels), len(weights) - 1)
    return np.asarray(rng.permutation(index))


@dataclass(frozen=True, eq=False)
class Student:
    """Student density with location (D,), scale matrix L Lᵀ and few degrees of freedom: wider tails than a Gaussian.

    Parameters
    ----------
    location : (D,).
    L : (D, D) lower.
    degrees : degrees of freedom.
    """

    location: Array
    L: Array
    degrees: float = 5.0

    @classmethod
    def around(cls, mean: Array, cov: Array, unit: Array) -> Student:
        """With the given mean and a scale matrix ``cov``, its eigenvalues in units (D,) of each axis kept above 1e-8.

        Round-off, or the negative density of Bayes-Hermite, may leave a closed-form covariance indefinite; a proposal
        only has to be near it.
        """
        values, vectors = np.linalg.eigh(cov / np.outer(unit, unit))
        root = unit[:, None] * vectors * np.sqrt(np.maximum(values, 1e-8))  # root rootᵀ = cov
        upper = np.linalg.qr(root.T, mode="r")
        return cls(mean, np.asarray((upper * np.sign(np.diag(upper))[:, None]).T))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """n draws, (n, D)."""
        normal = rng.standard_normal((n, self.location.size)) @ self.L.T
        return np.asarray(self.location + normal / np.sqrt(rng.chisquare(self.degrees, size=(n, 1)) / self.degrees))

    def log_pdf(self, U: Array) -> Array:
        """Log density at U (M, D), (M,)."""
        dim, degrees = self.location.size, self.degrees
        squares = np.square(solve_lower(self.L, (U - self.location).T)).sum(axis=0)
        constant = gammaln(0.5 * (degrees + dim)) - gammaln(0.5 * degrees) - 0.5 * dim * math.log(degrees * math.pi)
        return np.asarray(constant - 0.5 * log_det(self.L) - 0.5 * (degrees + dim) * np.log1p(squares / degrees))
