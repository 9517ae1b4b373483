"""The one record every problem is: a prior, a likelihood and the truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from wsabi._core.types import Array, ArrayLike
from wsabi.priors import Gaussian, Measure

__all__ = ["LOG_2PI", "Problem", "checked_dim", "require_positive", "unit_prior"]

LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, eq=False)
class Problem:
    """An integrand ℓ(x) π(x) with known log Z = log ∫ ℓ(x) π(x) dx.

    Parameters
    ----------
    name : the name by which :func:`wsabi.problems.get` knows it.
    prior : π(x), one of the measures of :mod:`wsabi.priors.measure`.
    function : log ℓ, from (N, D) to (N,); a module-level object, so that a problem can be pickled to a worker.
    log_z : the truth.
    log_z_std : standard error of the truth; zero where it is exact to round-off.
    description : what the integrand is, with its settings.
    reference : how the truth was made.
    """

    name: str
    prior: Measure
    function: Callable[[Array], Array] = field(repr=False)
    log_z: float
    log_z_std: float
    description: str
    reference: str

    @property
    def dim(self) -> int:
        """Number of dimensions D."""
        return self.prior.dim

    def log_likelihood(self, x: ArrayLike) -> float:
        """log ℓ(x), a float, for one point x (D,)."""
        point = np.asarray(x, dtype=np.float64)
        if point.shape != (self.dim,):
            raise ValueError(f"x must have shape ({self.dim},) for problem {self.name!r}; got {point.shape}.")
        return float(self.log_likelihood_vectorized(point[None])[0])

    def log_likelihood_vectorized(self, X: ArrayLike) -> Array:
        """log ℓ(x_n), (N,), for the rows of X (N, D)."""
        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.dim:
            raise ValueError(f"X must have shape (N, {self.dim}) for problem {self.name!r}; got {points.shape}.")
        if not np.all(np.isfinite(points)):
            row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
            raise ValueError(f"X must be finite for problem {self.name!r}; row {row} is {points[row]}.")
        return self.function(points)


def checked_dim(dim: object, least: int = 1) -> int:
    """The dimension, or an error naming the argument."""
    if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < least:
        raise ValueError(f"dim must be an integer of at least {least}; got {dim!r}.")
    return int(dim)


def require_positive(**values: float) -> None:
    """An error naming the first argument that is not a positive finite number."""
    for argument, value in values.items():
        if not (value > 0.0 and math.isfinite(value)):
            raise ValueError(f"{argument} must be positive and finite; got {value}.")


def unit_prior(dim: int) -> Gaussian:
    """N(0, I), the prior of the classics."""
    return Gaussian(np.zeros(dim))
