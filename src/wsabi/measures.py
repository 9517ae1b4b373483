"""Integration measures π(x): Gaussian, Gaussian mixture, uniform box and polynomial densities on intervals.

Each is frozen, knows its density and gradient in log space, its moments, and how to draw from itself. They serve both
as priors given by the user and, in standardised coordinates, as the measure of the closed forms in
:mod:`wsabi.embeddings`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from wsabi._core.checks import box_bounds, checked_names, vector
from wsabi._core.linalg import cholesky, log_det, solve_lower, solve_upper
from wsabi._core.types import Array, ArrayLike, Seed, as_generator
from wsabi.errors import NumericalError
from wsabi.polynomial import Polynomial

__all__ = ["Bounded", "Gaussian", "GaussianMixture", "Measure", "Polynomial", "Uniform"]


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


def _each_covariance(covs: ArrayLike | Sequence[ArrayLike], n: int, dim: int) -> list[ArrayLike]:
    """The covariance of each of n components from one for all, or a sequence of n."""
    if np.isscalar(covs) or (isinstance(covs, np.ndarray) and covs.ndim == 0):
        return [covs] * n
    each: list[ArrayLike] = list(covs)  # type: ignore[arg-type]
    one_matrix = len(each) == dim and all(np.ndim(row) == 1 and np.size(row) == dim for row in each)
    if one_matrix and dim > 1:
        if n == dim:
            raise ValueError(
                f"covs of shape ({dim}, {dim}) may be one covariance or {n} vectors of variances; "
                "give a list of matrices."
            )
        return [np.asarray(covs)] * n
    if len(each) != n:
        raise ValueError(f"covs must be a scalar, one ({dim}, {dim}) matrix or {n} covariances; got {len(each)}.")
    return each


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """Σ_c w_c N(x; μ_c, Σ_c).

    Parameters
    ----------
    weights : (C,) positive; normalised to sum to one.
    means : (C, D) component means; a (C,) vector means D = 1.
    covs : one scalar or (D, D) covariance for all components, or a sequence of C, each as :class:`Gaussian` takes it.
    """

    weights: Array
    components: tuple[Gaussian, ...]
    names: tuple[str, ...]

    def __init__(
        self, weights: ArrayLike, means: ArrayLike, covs: ArrayLike | Sequence[ArrayLike] = 1.0,
        *, names: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        weights_ = vector(weights, "weights")
        if not np.all(weights_ > 0.0):
            raise ValueError(f"weights must be positive; got {weights_}.")
        means_ = np.asarray(means, dtype=np.float64)
        means_ = means_[:, None] if means_.ndim == 1 else means_
        if means_.ndim != 2 or len(means_) != weights_.size:
            raise ValueError(f"means must have shape ({weights_.size}, D) to match weights; got {means_.shape}.")
        each = _each_covariance(covs, *means_.shape)
        object.__setattr__(self, "weights", weights_ / weights_.sum())
        object.__setattr__(self, "components", tuple(Gaussian(m, c) for m, c in zip(means_, each, strict=True)))
        object.__setattr__(self, "names", checked_names(names, means_.shape[1]))

    @property
    def dim(self) -> int:
        """Number of dimensions D."""
        return self.components[0].dim

    @property
    def mean(self) -> Array:
        """Σ_c w_c μ_c, (D,)."""
        return np.asarray(self.weights @ np.stack([c.mean for c in self.components]))

    @property
    def cov(self) -> Array:
        """Σ_c w_c (Σ_c + (μ_c − μ)(μ_c − μ)ᵀ), (D, D)."""
        centred = np.stack([c.mean for c in self.components]) - self.mean
        within = np.einsum("c,cde->de", self.weights, np.stack([c.cov for c in self.components]))
        return np.asarray(within + np.einsum("c,cd,ce->de", self.weights, centred, centred))

    def _log_terms(self, X: Array) -> Array:
        """log w_c N(x_n; μ_c, Σ_c), (C, N)."""
        return np.stack([np.log(w) + c.log_pdf(X) for w, c in zip(self.weights, self.components, strict=True)])

    def log_pdf(self, X: Array) -> Array:
        """log π(x_n), (N,), for X (N, D)."""
        return np.asarray(np.logaddexp.reduce(self._log_terms(X), axis=0))

    def grad_log_pdf(self, X: Array) -> Array:
        """∇ log π(x_n), (N, D): component gradients weighted by responsibility."""
        terms = self._log_terms(X)
        responsibility = np.exp(terms - np.logaddexp.reduce(terms, axis=0))  # (C, N)
        gradients = np.stack([c.grad_log_pdf(X) for c in self.components])  # (C, N, D)
        return np.asarray(np.einsum("cn,cnd->nd", responsibility, gradients))

    def log_pdf_and_gradient(self, x: Array) -> tuple[float, Array]:
        """log π and ∇ log π (D,) at one point x (D,)."""
        return float(self.log_pdf(x[None, :])[0]), self.grad_log_pdf(x[None, :])[0]

    def sample(self, n: int, rng: Seed = None) -> Array:
        """n draws, (n, D)."""
        generator = as_generator(rng)
        labels = generator.choice(len(self.weights), size=n, p=self.weights)
        noise = generator.standard_normal((n, self.dim))
        means = np.stack([c.mean for c in self.components])
        factors = np.stack([c.factor for c in self.components])
        return np.asarray(means[labels] + np.einsum("nde,ne->nd", factors[labels], noise))


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


Bounded = Uniform | Polynomial  # inside a box, zero outside it
Measure = Gaussian | GaussianMixture | Bounded
