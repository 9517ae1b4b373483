"""Mixtures of Student densities: what q is not, a shape that bends, has arms or comes in pieces.

They are drawn from, never integrated against, so nothing asks them to be a Gaussian or smooth. Their small matrices are
factored and inverted all at once by NumPy's stacked routines, which the single ones of `_core/linalg.py` are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wsabi._core.types import Array

__all__ = ["DEGREES", "Students", "fit_students", "joined", "shape_of", "truncated"]

DEGREES = 5.0  # of freedom of every component: tails heavier than any Gaussian's, with four moments

ROUNDS = 3  # of draws and fits on the surrogate: each starts from the last one's shape, and little changes after three
DRAWS = 1000  # per round: a hundred and more for each of the components
STEPS = 12  # of expectation maximisation per round: a proposal needs no more than the rough shape
COMPONENTS = 8  # an arc or an arm is followed by that many pieces to a few per cent
REACHING_SHARE = 0.2  # of the draws look further out: enough to be met, too few to matter where there is nothing
EVEN = 0.6  # effective share of the draws above which one component is shape enough


@dataclass(frozen=True)
class Students:
    """Σ_k w_k t_ν(x; μ_k, Σ_k), ν = DEGREES: weights (K,), means (K, D), covs (K, D, D)."""

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

        A ridge thinner than about 1e-8 of its length has a covariance that is singular to round-off. It is drawn from
        with as much added as makes it none: a density that is too wide is a worse proposal, but no wrong one.
        """
        try:
            return np.asarray(np.linalg.cholesky(self.covs), dtype=np.float64)
        except np.linalg.LinAlgError:
            round_off = 64.0 * np.finfo(np.float64).eps * np.trace(self.covs, axis1=1, axis2=2)
            return np.asarray(np.linalg.cholesky(self.covs + round_off[:, None, None] * np.eye(self.covs.shape[1])))

    @cached_property
    def _whiteners(self) -> Array:
        """(K, D, D) transposed inverses of the factors."""
        return np.asarray(np.swapaxes(np.linalg.inv(self.factors), 1, 2))

    def distances(self, X: Array) -> Array:
        """δ_kn = (x_n − μ_k)ᵀΣ_k⁻¹(x_n − μ_k), (K, N), at X (N, D)."""
        # One product for all components, with the N along the last axis, is three times as quick as K small ones.
        white = np.concatenate(self._whiteners, axis=1).T @ np.ascontiguousarray(X.T)
        white -= np.einsum("kd,kde->ke", self.means, self._whiteners).reshape(-1, 1)
        white *= white
        return np.asarray(white.reshape(*self.means.shape, len(X)).sum(axis=1))

    def log_terms(self, X: Array, distances: Array | None = None) -> Array:
        """log w_k t_ν(x_n; μ_k, Σ_k), (K, N)."""
        dim = X.shape[1]
        delta = self.distances(X) if distances is None else distances
        constant = math.lgamma(0.5 * (DEGREES + dim)) - math.lgamma(0.5 * DEGREES)
        constant -= 0.5 * dim * math.log(DEGREES * math.pi)
        log_dets = np.log(np.diagonal(self.factors, axis1=1, axis2=2)).sum(axis=1)
        heads = constant - log_dets + np.log(self.weights)
        return np.asarray(heads[:, None] - 0.5 * (DEGREES + dim) * np.log1p(delta / DEGREES))

    def log_pdf(self, X: Array) -> Array:
        """Log density, (N,), at X (N, D)."""
        return np.asarray(np.logaddexp.reduce(self.log_terms(X), axis=0))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """n draws, (n, D)."""
        labels = rng.choice(len(self.weights), size=n, p=self.weights)
        noise = rng.standard_normal((n, self.means.shape[1])) * np.sqrt(DEGREES / rng.chisquare(DEGREES, n))[:, None]
        return np.asarray(self.means[labels] + (self.factors[labels] @ noise[:, :, None])[:, :, 0])


def joined(parts: Sequence[tuple[float, Students]]) -> Students:
    """The mixture of mixtures with the shares given."""
    return Students(
        np.concatenate([share * part.weights for share, part in parts]),
        np.concatenate([part.means for _, part in parts]),
        np.concatenate([part.covs for _, part in parts]),
    )


def fit_students(X: Array, weights: Array, components: int, rng: np.random.Generator, steps: int = 30) -> Students:
    """Maximum of Σ_n weights_n log Σ_k w_k t_ν(x_n; μ_k, Σ_k) by expectation maximisation, weights (N,) summing to one.

    Each covariance is shrunk towards that of one of K equal parts of the whole by 2D observations' worth, so that a
    component of few effective points stays wide.
    """
    n_effective = 1.0 / float(np.square(weights).sum())
    dim = X.shape[1]
    mean = weights @ X
    whole = (X - mean).T @ ((X - mean) * weights[:, None])
    part = whole * components ** (-2.0 / dim)  # the volume of one of K equal parts is 1/K of the whole's
    chosen = rng.choice(len(X), size=components, replace=False, p=weights)
    mixture = Students(np.full(components, 1.0 / components), X[chosen], np.repeat(part[None], components, axis=0))
    prior_count = 2.0 * dim / n_effective
    for _ in range(steps):
        delta = mixture.distances(X)
        terms = mixture.log_terms(X, delta)
        shares = np.exp(terms - terms.max(axis=0))  # r_kn, (K, N)
        shares *= weights / shares.sum(axis=0)
        pull = shares * (DEGREES + dim) / (DEGREES + delta)  # a Student density counts far points less
        totals = shares.sum(axis=1)
        means = (pull @ X) / np.maximum(pull.sum(axis=1), 1e-300)[:, None]
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
    Population Monte Carlo: the draws of all rounds so far are one sample of the rounds' mixture, weighted accordingly,
    and the next mixture is fitted to it. Weights are truncated, so that no single draw makes a component of its own.
    Beside exp(log_target) its square root is fitted: that mixture reaches along arms and round bends, where the next
    round may find that the mass goes on.
    """
    shape, reaching = guess, guess.widened(2.0)
    used: list[Students] = []
    X, log_t = np.empty((0, guess.means.shape[1])), np.empty(0)
    for _ in range(ROUNDS):
        draws = joined([(1.0 - REACHING_SHARE, shape), (REACHING_SHARE, reaching)])
        used.append(draws)
        fresh = draws.sample(DRAWS, rng)
        X, log_t = np.concatenate([X, fresh]), np.concatenate([log_t, log_target(fresh)])
        log_p = np.logaddexp.reduce([other.log_pdf(X) for other in used], axis=0)
        if not np.any(np.isfinite(log_t)):
            break
        w = truncated(log_t - log_p)
        w /= w.sum()
        if np.count_nonzero(w) < COMPONENTS * X.shape[1]:  # too few to fit anything to: the last shape is kept
            break
        if float(w[-DRAWS:].sum()) ** 2 > EVEN * DRAWS * float(np.square(w[-DRAWS:]).sum()):
            break
        shape = fit_students(X, w, COMPONENTS, rng, STEPS)
        wide = truncated(0.5 * log_t - log_p)
        reaching = fit_students(X, wide / wide.sum(), COMPONENTS // 2, rng, STEPS)
    return joined([(1.0 - REACHING_SHARE, shape), (REACHING_SHARE, reaching)])


def truncated(log_weights: Array) -> Array:
    """Weights (N,) over the largest, none much above N^−½ of their sum: a few huge ones must not decide where to go."""
    w = np.exp(log_weights - np.max(log_weights))
    return np.asarray(np.minimum(w, w.sum() / math.sqrt(len(w))))
