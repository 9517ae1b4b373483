"""The mixture of Gaussians Σ_c w_c N(x; μ_c, Σ_c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wsabi._core.checks import checked_names, vector
from wsabi._core.types import Array, ArrayLike, Seed, as_generator
from wsabi.priors.gaussian import Gaussian

__all__ = ["GaussianMixture"]


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
