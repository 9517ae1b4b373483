"""The density of the check points: a mixture of heavier tails than q, with a share of the prior."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence

import numpy as np

from wsabi._core.types import Array, Indices
from wsabi.adaptive.models import Models
from wsabi.adaptive.surrogate.students import Students, fit_students, joined, truncated
from wsabi.adaptive.tuning import TUNING
from wsabi.priors import Measure

__all__ = ["Proposal", "log_mixture"]


class Proposal:
    """p = 0.1 π + 0.9 Σ_k w_k (0.2 t₅(u; μ_k, Σ_k) + 0.5 s_k(u) + 0.3 d_k(u)), the density of the check points.

    μ_k and Σ_k are those of q_k. s_k has the shape of the surrogate's posterior. d_k is large where the surrogate is
    uncertain. Without d_k no check point would fall on an arm that the surrogate has missed.
    """

    def __init__(self, measure: Measure, regions: Models) -> None:
        self.measure = measure
        shares: list[tuple[float, Students]] = []
        broad, uncertain = TUNING.check.broad_share, TUNING.check.uncertainty_share
        self._gaussians = [part.explorer.frame for part in regions.parts]
        for weight, part in zip(regions.weights, regions.parts, strict=True):
            shares += [
                (weight * broad, Students.single(part.frame.mean, part.frame.cov)),
                (weight * uncertain, part.uncertainty),
                (weight * (1.0 - broad - uncertain), part.shape),
            ]
        self._students = joined(shares)

    def refined(self, log_target: Callable[[Array], Array], rng: np.random.Generator) -> Proposal:
        """The same with half of its draws from a finer mixture of the shape of exp(log_target), (N,) at (N, D).

        It integrates a surrogate that bends too much for the few components of a region, which costs no evaluation.
        """
        X = self.sample(TUNING.check.draws, rng)
        log_weights = log_target(X) - self.log_pdf(X)
        if not np.any(np.isfinite(log_weights)):
            return self
        w = truncated(log_weights)
        if np.count_nonzero(w) < TUNING.check.fine_components * X.shape[1]:
            return self
        fine = fit_students(X, w / w.sum(), TUNING.check.fine_components, rng)
        return self.with_students([(TUNING.check.fine_share, fine)], 1.0 - TUNING.check.fine_share)

    def with_students(self, parts: Sequence[tuple[float, Students]], own_share: float) -> Proposal:
        """The same with other mixtures, each with its share of what is not from the prior; the own keeps one too."""
        other = copy.copy(self)
        other._students = joined([(own_share, self._students), *parts])
        return other

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """n draws, (n, D)."""
        X = self.measure.sample(n, rng)
        inside = rng.uniform(size=n) > TUNING.check.prior_share
        X[inside] = self._students.sample(int(inside.sum()), rng)
        return X

    def log_pdf(self, X: Array) -> Array:
        """log p, (N,)."""
        log_prior = math.log(TUNING.check.prior_share) + self.measure.log_pdf(X)
        return np.asarray(np.logaddexp(log_prior, math.log(1.0 - TUNING.check.prior_share) + self._students.log_pdf(X)))

    def mean_of(self, values: Array, X: Array, log_p: Array, *controls: Array) -> tuple[float, float]:
        """∫ values·p du and its standard error, from values (N,) at X (N, D), draws of this p with log density (N,).

        The components of p and the Gaussians q_k integrate to one, so they are control variates of known mean (Owen and
        Zhou, 2000). Values close to a mixture of them are integrated nearly without error. ``controls`` are further
        control variates, (N,) each, less their mean.
        """
        A = self.control_rows(X, log_p, *controls)
        coefficients = np.linalg.lstsq(A, values, rcond=TUNING.check.min_singular)[0]
        # Each point draws the fit towards itself. Without that its residual would be r/(1 − h), with h its leverage.
        Q = np.linalg.qr(A)[0]
        residual = (values - A @ coefficients) / np.maximum(1.0 - np.square(Q).sum(axis=1), TUNING.check.min_left)
        return float(coefficients[0]), float(np.std(residual)) / math.sqrt(len(X))

    def means_of(self, values: Array, X: Array, log_p: Array) -> Array:
        """∫ values_k·p du, (K,), for several functions with values (K, N), as in :meth:`mean_of`."""
        return np.asarray(np.linalg.lstsq(self.control_rows(X, log_p), values.T, rcond=TUNING.check.min_singular)[0][0])

    def control_rows(self, X: Array, log_p: Array, *more: Array) -> Array:
        """Ones, and functions whose mean over exp(log_p) is zero, (N, C), at draws X (N, D) of that density."""
        terms = self._students.log_terms(X)
        largest = np.argsort(-self._students.weights)[: TUNING.check.max_controls]
        columns = [np.exp(terms[k] - math.log(self._students.weights[k]) - log_p) for k in largest]
        columns += [np.exp(frame.log_density(X) - log_p) for frame in self._gaussians[: TUNING.check.max_controls]]
        return np.stack([np.ones(len(X)), *(column - 1.0 for column in columns), *more], axis=1)


def log_mixture(proposals: Sequence[Proposal], numbers: Indices, X: Array) -> Array:
    """log Σ_r (n_r/n) p_r, (N,), at check points X (N, D) of which point j was drawn from proposal numbers_j (N,).

    The proposals depend on the training data alone, so given these the points are independent, and each may be weighted
    by the density of the mixture instead of its own (the balance heuristic). The estimate stays unbiased, and points of
    early proposals that were too narrow have no large weights. Only the number of points depends on their values.
    """
    used, counts = np.unique(numbers, return_counts=True)
    if not len(used):
        return np.empty(0)
    terms = [math.log(count / len(X)) + proposals[r].log_pdf(X) for r, count in zip(used, counts, strict=True)]
    return np.asarray(np.logaddexp.reduce(terms, axis=0))
