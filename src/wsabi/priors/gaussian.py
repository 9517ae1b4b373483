"""The Gaussian N(x; μ, Σ) with full covariance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from wsabi._core.checks import checked_names, vector
from wsabi._core.linalg import cholesky, log_det, solve_lower, solve_upper
from wsabi._core.types import Array, ArrayLike, Seed, as_generator
from wsabi.errors import NumericalError

__all__ = ["Gaussian"]


def _covariance(cov: ArrayLike, dim: int) -> tuple[Array, Array]:
    """Full (D, D) covariance and its factor from a scalar, a vector of variances or a matrix."""
    array = np.asarray(cov, dtype=np.float64)
    if not np.all(np.isfinite(array)):
        raise ValueError("cov must be finite.")
    if array.ndim == 0:
        full = float(array) * np.eye(dim)
    elif array.ndim == 1 and array.shape == (dim,):
        full = np.diag(array)
    elif array.shape == (dim, dim):
        if not np.allclose(array, array.T, rtol=1e-10, atol=0.0):
            raise ValueError("cov must be symmetric.")
        full = 0.5 * (array + array.T)
    else:
        raise ValueError(
            f"cov must be a scalar, ({dim},) variances or a ({dim}, {dim}) matrix to match mean; "
            f"got shape {array.shape}."
        )
    # Factor the correlation matrix: whether cov is accepted must not depend on the units of the axes.
    sd = np.sqrt(np.maximum(np.diag(full), 0.0))
    if not np.all(sd > 0.0):
        raise ValueError(f"cov must have a positive diagonal; got {np.diag(full)}.")
    try:
        L = sd[:, None] * cholesky(full / np.outer(sd, sd))
    except NumericalError:
        raise ValueError("cov must be positive definite.") from None
    return full, L


@dataclass(frozen=True, eq=False)
class Gaussian:
    """N(x; μ, Σ).

    Parameters
    ----------
    mean : scalar or (D,) μ.
    cov : scalar, (D,) variances or (D, D) matrix Σ.
    names : D names of the parameters, used by results, tables and plots.
    """

    mean: Array
    cov: Array
    names: tuple[str, ...]
    _L: Array = field(repr=False)
    _precision: Array = field(repr=False)  # Σ⁻¹, for gradients at one point
    _log_normaliser: float = field(repr=False)  # ½ log|2πΣ|

    def __init__(self, mean: ArrayLike, cov: ArrayLike = 1.0, *, names: Sequence[str] | None = None) -> None:
        mean_ = vector(mean, "mean")
        array = np.asarray(cov, dtype=np.float64)
        if np.ndim(mean) == 0 and array.ndim >= 1 and array.shape[0] > 1:
            mean_ = np.full(array.shape[0], mean_[0])
        cov_, L = _covariance(array, mean_.size)
        object.__setattr__(self, "mean", mean_)
        object.__setattr__(self, "cov", cov_)
        object.__setattr__(self, "names", checked_names(names, mean_.size))
        object.__setattr__(self, "_L", L)
        object.__setattr__(self, "_precision", solve_upper(L, solve_lower(L, np.eye(mean_.size))))
        object.__setattr__(self, "_log_normaliser", 0.5 * (log_det(L) + mean_.size * math.log(2 * math.pi)))

    @property
    def dim(self) -> int:
        """Number of dimensions D."""
        return self.mean.size

    @property
    def factor(self) -> Array:
        """Lower L (D, D) with L Lᵀ = Σ."""
        return self._L

    def log_pdf(self, X: Array) -> Array:
        """log N(x_n; μ, Σ), (N,), for X (N, D)."""
        U = solve_lower(self._L, (X - self.mean).T)  # L⁻¹(x − μ)  (D, N)
        return np.asarray(-0.5 * np.square(U).sum(axis=0) - self._log_normaliser)

    def grad_log_pdf(self, X: Array) -> Array:
        """∇ log π = −Σ⁻¹(x_n − μ), (N, D)."""
        return -solve_upper(self._L, solve_lower(self._L, (X - self.mean).T)).T

    def log_pdf_and_gradient(self, x: Array) -> tuple[float, Array]:
        """log π and ∇ log π (D,) at one point x (D,)."""
        centred = x - self.mean
        gradient = -self._precision @ centred
        return 0.5 * float(centred @ gradient) - self._log_normaliser, gradient

    def sample(self, n: int, rng: Seed = None) -> Array:
        """n draws, (n, D)."""
        return self.mean + as_generator(rng).standard_normal((n, self.dim)) @ self._L.T
