"""Importance-weighted points: what they are worth, moments, expectations, resampling; and the Student proposal."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from wsabi._linalg import log_det, solve_lower
from wsabi._types import Array
from wsabi.priors import named_arguments

__all__ = ["ImportanceSample", "LowSampleSizeWarning", "Student", "checked_size", "resample", "warn_if_few"]

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
class ImportanceSample:
    """Points x_m with weights w_m ∝ p(x_m)/q(x_m), q the density they were drawn from.

    Parameters
    ----------
    points : (M, D), in the user's coordinates.
    weights : (M,), none negative, with sum one.
    names : D names of the parameters.
    keyed : whether functions of a point receive a dict of the names.
    """

    points: Array = field(repr=False)
    weights: Array = field(repr=False)
    names: tuple[str, ...]
    keyed: bool = False

    @property
    def effective_sample_size(self) -> float:
        """1/Σw²: the number of independent draws that would say as much."""
        return 1.0 / float(np.square(self.weights).sum())

    @property
    def mean(self) -> Array:
        """Σ w_m x_m, (D,)."""
        return np.asarray(self.weights @ self.points)

    @property
    def cov(self) -> Array:
        """Σ w_m (x_m − mean)(x_m − mean)ᵀ, (D, D)."""
        centred = self.points - self.mean
        return np.asarray((centred.T * self.weights) @ centred)

    def expect(self, f: Callable[[Any], object], *, vectorized: bool = False) -> float | Array:
        """Σ w_m f(x_m), of the shape of one value of f.

        Parameters
        ----------
        f : from one (D,) point, or a dict where ``keyed``, to a number or an array; with ``vectorized``, from (M, D),
            or a dict of (M,) arrays, to (M, ...).

        Raises
        ------
        ValueError
            If f is not finite at a point, or returns the wrong number of values.
        """
        warn_if_few(self.weights, stacklevel=4)
        X = self.points
        if vectorized:
            values = np.asarray(f(self._given(X)), dtype=np.float64)
            if values.ndim == 0 or len(values) != len(X):
                raise ValueError(
                    f"f returned shape {values.shape} for {len(X)} points; expected ({len(X)}, ...). "
                    "With vectorized=True it is given all points at once, one per row."
                )
        else:
            values = np.array([f(self._given(x)) for x in X], dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(values).reshape(len(X), -1).all(axis=1))
        if bad.size:
            raise ValueError(f"f must be finite where the posterior is positive; got {values[bad[0]]} at {X[bad[0]]}.")
        mean = np.tensordot(self.weights, values, axes=1)
        return float(mean) if values.ndim == 1 else np.asarray(mean)

    def _given(self, X: Array) -> Array | dict[str, Any]:
        """What f receives: a copy, for it may work in place."""
        return named_arguments(self.names, X) if self.keyed else X.copy()


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
