"""Mixtures of Student densities, for shapes that a Gaussian q does not have: bent, with arms, or in pieces.

Points are drawn from them, and nothing is integrated against them in closed form, so they need not be Gaussian. Their
small matrices are factored and inverted together by NumPy's stacked routines. The routines of `_core/linalg.py` take
one matrix at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.tuning import TUNING

__all__ = ["Students", "fit_students", "joined", "shape_of", "truncated"]


@dataclass(frozen=True)
class Students:
    """Σ_k w_k t_ν(x; μ_k, Σ_k), ν = TUNING.surrogate.degrees: weights (K,), means (K, D), covs (K, D, D)."""

    weights: Array
    means: Array
    covs: Array

    @classmethod
    def single(cls, mean: Array, cov: Array) -> Students:
        """t_ν(x; mean, cov)."""
        return cls(np.ones(1), mean[None], cov[None])

    def widened(self, variance: float) -> Students:
        """The same with all covariances multiplied."""
        return Students(self.weights, self.means, variance * self.covs)

    @cached_property
    def factors(self) -> Array:
        """(K, D, D) lower factors of the covs.

        The covariance of a ridge thinner than about 1e-8 of its length is singular to round-off. A small multiple of
        the identity is added to it. A density that is too wide is a worse proposal, but a valid one.
        """
        try:
            return np.asarray(np.linalg.cholesky(self.covs), dtype=np.float64)
        except np.linalg.LinAlgError:
            round_off = TUNING.surrogate.ridge * np.finfo(np.float64).eps * np.trace(self.covs, axis1=1, axis2=2)
            return np.asarray(np.linalg.cholesky(self.covs + round_off[:, None, None] * np.eye(self.covs.shape[1])))

    @cached_property
    def _whiteners(self) -> Array:
        """(K, D, D) transposed inverses of the factors."""
        return np.asarray(np.swapaxes(np.linalg.inv(self.factors), 1, 2))

    def distances(self, X: Array) -> Array:
        """δ_kn = (x_n − μ_k)ᵀΣ_k⁻¹(x_n − μ_k), (K, N), at X (N, D)."""
        # One product for all components, with N along the last axis, is three times as fast as K small products.
        white = np.concatenate(self._whiteners, axis=1).T @ np.ascontiguousarray(X.T)
        white -= np.einsum("kd,kde->ke", self.means, self._whiteners).reshape(-1, 1)
        white *= white
        return np.asarray(white.reshape(*self.means.shape, len(X)).sum(axis=1))

    def log_terms(self, X: Array, distances: Array | None = None) -> Array:
        """log w_k t_ν(x_n; μ_k, Σ_k), (K, N)."""
        dim, degrees = X.shape[1], TUNING.surrogate.degrees
        delta = self.distances(X) if distances is None else distances
        constant = math.lgamma(0.5 * (degrees + dim)) - math.lgamma(0.5 * degrees)
        constant -= 0.5 * dim * math.log(degrees * math.pi)
        log_dets = np.log(np.diagonal(self.factors, axis1=1, axis2=2)).sum(axis=1)
        heads = constant - log_dets + np.log(self.weights)
        return np.asarray(heads[:, None] - 0.5 * (degrees + dim) * np.log1p(delta / degrees))

    def log_pdf(self, X: Array) -> Array:
        """Log density, (N,), at X (N, D)."""
        return np.asarray(np.logaddexp.reduce(self.log_terms(X), axis=0))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """n draws, (n, D)."""
        labels = rng.choice(len(self.weights), size=n, p=self.weights)
        degrees = TUNING.surrogate.degrees
        noise = rng.standard_normal((n, self.means.shape[1])) * np.sqrt(degrees / rng.chisquare(degrees, n))[:, None]
        return np.asarray(self.means[labels] + (self.factors[labels] @ noise[:, :, None])[:, :, 0])


def joined(parts: Sequence[tuple[float, Students]]) -> Students:
    """The mixture of mixtures with the shares given."""
    return Students(
        np.concatenate([share * part.weights for share, part in parts]),
        np.concatenate([part.means for _, part in parts]),
        np.concatenate([part.covs for _, part in parts]),
    )


def fit_students(
    X: Array, weights: Array, components: int, rng: np.random.Generator, steps: int | None = None
) -> Students:
    """Maximum of Σ_n weights_n log Σ_k w_k t_ν(x_n; μ_k, Σ_k) by expectation maximisation, Σ_n weights_n = 1.

    Each covariance is shrunk towards that of one of K equal parts of the whole, with the weight of 2D observations, so
    that a component of few effective points stays wide. ``steps`` are ``fine_steps`` unless given.
    """
    n_effective = 1.0 / float(np.square(weights).sum())
    dim = X.shape[1]
    mean = weights @ X
    whole = (X - mean).T @ ((X - mean) * weights[:, None])
    part = whole * components ** (-2.0 / dim)  # the volume of one of K equal parts is 1/K of the whole's
    chosen = rng.choice(len(X), size=components, replace=False, p=weights)
    mixture = Students(np.full(components, 1.0 / components), X[chosen], np.repeat(part[None], components, axis=0))
    prior_count = TUNING.surrogate.prior_points * dim / n_effective
    degrees = TUNING.surrogate.degrees
    for _ in range(TUNING.surrogate.fine_steps if steps is None else steps):
        delta = mixture.distances(X)
        terms = mixture.log_terms(X, delta)
        shares = np.exp(terms - terms.max(axis=0))  # r_kn, (K, N)
        shares *= weights / shares.sum(axis=0)
        pull = shares * (degrees + dim) / (degrees + delta)  # a Student density gives far points less weight
        totals = shares.sum(axis=1)
        means = (pull @ X) / np.maximum(pull.sum(axis=1), np.finfo(np.float64).tiny)[:, None]
        covs = np.stack([(X - mean).T @ ((X - mean) * w[:, None]) for mean, w in zip(means, pull, strict=True)])
        covs = (covs + prior_count * part) / (totals + prior_count)[:, None, None]
        kept = totals * n_effective > dim
        if not np.any(kept):
            break
        mixture = Students(totals[kept] / totals[kept].sum(), means[kept], covs[kept])
    return mixture


def shape_of(log_target: Callable[[Array], Array], guess: Students, rng: np.random.Generator) -> Students:
    """A mixture shaped like exp(log_target), which takes (N, D) and costs no evaluation, from a guess of it.

    Notes
    -----
    This is population Monte Carlo. The draws of all rounds are one sample of the mixture of all proposals, and have its
    weights. The next mixture is fitted to this sample. The weights are truncated, so that no single draw makes a
    component of its own. A second mixture is fitted to the square root of the target. It reaches along arms and round
    bends, where the next round may find more mass.
    """
    numbers = TUNING.surrogate
    n, k, share = numbers.shape_draws, numbers.components, numbers.reaching_share
    shape, reaching = guess, guess.widened(2.0)
    used: list[Students] = []
    X, log_t = np.empty((0, guess.means.shape[1])), np.empty(0)
    for _ in range(numbers.shape_rounds):
        draws = joined([(1.0 - share, shape), (share, reaching)])
        used.append(draws)
        latest = draws.sample(n, rng)
        X, log_t = np.concatenate([X, latest]), np.concatenate([log_t, log_target(latest)])
        log_p = np.logaddexp.reduce([other.log_pdf(X) for other in used], axis=0)
        if not np.any(np.isfinite(log_t)):
            break
        w = truncated(log_t - log_p)
        w /= w.sum()
        if np.count_nonzero(w) < k * X.shape[1]:  # too few for a fit: the last shape is kept
            break
        if float(w[-n:].sum()) ** 2 > numbers.even_share * n * float(np.square(w[-n:]).sum()):
            break
        shape = fit_students(X, w, k, rng, numbers.shape_steps)
        wide = truncated(0.5 * log_t - log_p)
        reaching = fit_students(X, wide / wide.sum(), k // 2, rng, numbers.shape_steps)
    return joined([(1.0 - share, shape), (share, reaching)])


def truncated(log_weights: Array) -> Array:
    """Weights (N,) in units of the largest, none much above N^−½ of their sum (Ionides, 2008).

    A few very large weights then do not determine a fit.
    """
    w = np.exp(log_weights - np.max(log_weights))
    return np.asarray(np.minimum(w, w.sum() / math.sqrt(len(w))))
