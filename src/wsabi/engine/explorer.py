"""Locate: find one region of posterior mass by annealing a surrogate of log ℓ.

The surrogate's tempered posterior ℓ^(1/t) π is followed by a Gaussian q whose moments are matched to it by importance
sampling on the surrogate, which costs no evaluation. The temperature t is set by the data: the best 2D + 2 values span
five temperatures. Far from the mass t is large and q is nearly the prior; as better points are found t falls to one
and q becomes the posterior's own mean and covariance. The surrogate is fitted in coordinates whitened by q, which is
what copes with ridges and scales; the prior is known and never modelled, so q cannot leave it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wsabi._linalg import NumericalError, cholesky, log_det, solve_lower
from wsabi._types import Array, Indices, Mask
from wsabi.engine.log_surrogate import LogSurrogate, fit_log_surrogate
from wsabi.measures import Measure

__all__ = ["Explorer", "Frame"]

# Temperatures between the best value and the (2D + 2)nd. The log density of draws from a D-dimensional Gaussian spreads
# by √(D/2), two in eight dimensions, so five keeps q as wide as the data allow; a colder search takes the first hill.
SPAN = 5.0
MAX_DATA = (
    250  # points in the surrogate, nearest in value: factoring 250 costs a millisecond, and the far ones add little
)
DRAWS = 600  # importance draws per matching step: moments to about 5 %, well inside the inflation of q
TAIL = 8.0  # degrees of freedom of the matching proposal, and its variance is 1.5 that of q: weights stay bounded
WIDER = 1.5
CAUTION = 0.5  # predictive sds subtracted from the surrogate when matching q: q stays where there are data


@dataclass(frozen=True)
class Frame:
    """Affine coordinates u = mean + factor·y in which q is standard normal."""

    mean: Array
    factor: Array

    @property
    def log_det(self) -> float:
        """log|factor|."""
        return 0.5 * log_det(self.factor)

    def whiten(self, X: Array) -> Array:
        """y (N, D) of u (N, D)."""
        return solve_lower(self.factor, (X - self.mean).T).T

    def colour(self, Y: Array) -> Array:
        """u (N, D) of y (N, D)."""
        return np.asarray(self.mean + Y @ self.factor.T)

    def move(self, shift: Array, factor: Array) -> Frame:
        """The frame whose standard normal is N(shift, factor·factorᵀ) in this one's coordinates."""
        mixed = self.factor @ factor
        return Frame(self.mean + self.factor @ shift, cholesky(mixed @ mixed.T))

    def scaled(self, variance: float) -> Frame:
        """The same with all variances multiplied."""
        return Frame(self.mean, math.sqrt(variance) * self.factor)


def divergence(shift: Array, factor: Array) -> float:
    """KL(N(shift, factor·factorᵀ) ‖ N(0, I)) in nats."""
    return 0.5 * float(np.square(factor).sum() + shift @ shift - len(shift) - log_det(factor))


class Explorer:
    """Follows ℓ^(1/t) π from the prior to one region of the posterior.

    Parameters
    ----------
    measure : the prior in base coordinates, of standard deviation about one.
    rng : stream of the importance draws and candidates.

    Attributes
    ----------
    frame : q.
    temperature : t ≥ 1.
    log_z : log ∫ ℓ^(1/t)π over this region, as the surrogate has it.
    drift : divergence between the last two q, in nats.
    doubt : the surrogate's predictive sd of log ℓ^(1/t), averaged over its tempered posterior.
    """

    def __init__(self, measure: Measure, rng: np.random.Generator) -> None:
        self.measure = measure
        self.rng = rng
        self.frame = Frame(measure.mean, cholesky(measure.cov))
        self.temperature = math.inf
        self.log_z = -math.inf
        self.drift = math.inf
        self.doubt = math.inf
        self.surrogate: LogSurrogate | None = None
        self.top = 0.0
        self._blocked = np.empty((0, measure.dim))

    # -- the surrogate ------------------------------------------------------------------------------------------------

    def fit(self, X: Array, log_l: Array, *, learn: bool = False) -> None:
        """Surrogate of log ℓ (N,) at X (N, D), in the coordinates of q; its θ is learnt anew or kept."""
        feasible = np.isfinite(log_l)
        Y = self.frame.whiten(X)
        self._blocked = Y[~feasible]
        X, Y, log_l = X[feasible], Y[feasible], log_l[feasible]
        log_p = log_l + self.measure.log_pdf(X)
        keep = self._relevant(Y, log_p)
        drop = np.max(log_p[keep]) - log_p[keep]
        reference = float(np.sort(drop)[min(2 * X.shape[1] + 1, len(drop) - 1)])
        temperature = max(1.0, reference / SPAN)
        # Values far below the best are kept for their direction only: beyond the span of interest they count as noisy.
        drop = np.minimum(drop, 1e6)  # a million nats below is no more than far below
        excess = np.maximum(0.0, drop - max(10.0 + 2.0 * X.shape[1], 2.0 * reference))
        noise = np.square(1e-3 * temperature) + np.square(0.1 * excess)
        theta = self.surrogate.theta if self.surrogate is not None else None
        if theta is not None and math.isfinite(self.temperature):
            theta = theta + np.array([0.0, 1.0, 1.0]) * math.log(temperature / self.temperature)
        self.top = float(np.max(log_l[keep]))
        self.surrogate = fit_log_surrogate(
            Y[keep], log_l[keep] - self.top, noise, temperature=temperature, theta=theta, learn=learn
        )
        self.temperature = temperature

    def _relevant(self, Y: Array, log_p: Array) -> Indices:
        """Indices of the data to model: the best of those near q, and never fewer than 2D + 2."""
        dim = Y.shape[1]
        radius = np.sqrt(np.square(Y).sum(axis=1))
        near = radius <= 6.0 + 2.0 * math.sqrt(dim)  # far outside q, whose own points lie within √D + 3
        order = np.lexsort((-log_p, np.where(near, 0.0, radius)))
        return order[: max(2 * dim + 2, min(MAX_DATA, int(near.sum())))]

    def log_likelihood(self, X: Array) -> tuple[Array, Array]:
        """log ℓ by the surrogate, (M,) at X (M, D): its mean m, and m less its variance; no higher than the best datum.

        The mean alone may grow where it extrapolates; there its variance (in nats²) is large too, so m − v is safer.
        Where log ℓ is known to a tenth of a nat the two differ by a hundredth. Both are −inf where the nearest datum
        has zero likelihood.
        """
        Y = self.frame.whiten(X)
        mean, variance = self._fitted().predict(Y)
        top = np.where(self._is_blocked(Y), -np.inf, self.top)
        return np.minimum(mean, 0.0) + top, np.minimum(mean - variance, 0.0) + top

    def _fitted(self) -> LogSurrogate:
        if self.surrogate is None:
            raise NumericalError("the explorer has no data yet.")
        return self.surrogate

    def _log_target(self, Y: Array, caution: float) -> tuple[Array, Array]:
        """log ℓ^(1/t)π less its top, and the variance of log ℓ^(1/t), (M,) each, at y (M, D)."""
        mean, variance = self._fitted().predict(Y)
        mean, variance = mean / self.temperature, variance / self.temperature**2
        log_t = np.minimum(mean, 3.0) - caution * np.sqrt(variance) + self.measure.log_pdf(self.frame.colour(Y))
        return np.where(self._is_blocked(Y), -np.inf, log_t), variance

    def _is_blocked(self, Y: Array) -> Mask:
        """Whether the nearest datum of y (M, D) is one of zero likelihood."""
        if not len(self._blocked):
            return np.zeros(len(Y), dtype=bool)
        from scipy.spatial import cKDTree  # imported here: it is needed only where the prior has infeasible parts

        to_blocked, _ = cKDTree(self._blocked).query(Y)
        to_feasible, _ = cKDTree(self._fitted().Y).query(Y)
        return np.asarray(to_blocked < to_feasible)

    # -- q ------------------------------------------------------------------------------------------------------------

    def match(self, X: Array, log_l: Array) -> None:
        """Fit the surrogate and move q to the moments of its tempered posterior."""
        self.fit(X, log_l, learn=True)
        shift, factor, log_mass = self._matched_moments()
        # One step moves q by no more than its own size and stretches it no more than threefold: beyond, the surrogate
        # was extrapolating.
        dim = self.measure.dim
        reach = 2.0 * math.sqrt(dim) / max(float(np.linalg.norm(shift)), 1e-12)
        shift = min(1.0, reach) * shift
        values, vectors = np.linalg.eigh(factor @ factor.T)
        factor = cholesky((vectors * np.clip(values, 1.0 / 9.0, 9.0)) @ vectors.T)
        self.log_z = log_mass + self.top / self.temperature + self.frame.log_det
        self.drift = divergence(shift, factor)
        self.frame = self.frame.move(shift, factor)
        # θ is a length in units of q: where q has changed by half a nat it is another length.
        self.fit(X, log_l, learn=self.drift > 0.5)

    def _matched_moments(self) -> tuple[Array, Array, float]:
        """Mean (D,), factor (D, D) and log mass of the tempered posterior, by iterated importance sampling."""
        dim = self.measure.dim
        shift, factor = np.zeros(dim), np.eye(dim)
        log_mass = -math.inf
        for step in range(15):
            noise = self.rng.standard_normal((DRAWS, dim))
            noise *= np.sqrt(WIDER * TAIL / self.rng.chisquare(TAIL, DRAWS))[:, None]
            Y = shift + noise @ factor.T
            log_t, variance = self._log_target(Y, CAUTION)
            log_w = log_t - _log_student(noise) + 0.5 * log_det(factor)
            top = float(np.max(log_w))
            if not math.isfinite(top):
                return shift, 0.5 * factor, -math.inf
            w = np.exp(log_w - top)
            w = np.minimum(w, w.sum() / math.sqrt(DRAWS))  # truncated importance sampling bounds any one weight
            log_mass = top + math.log(float(w.mean()))
            ess = float(w.sum() ** 2 / np.square(w).sum())
            w /= w.sum()
            self.doubt = float(w @ np.sqrt(variance))
            mean = w @ Y
            cov = (Y - mean).T @ ((Y - mean) * w[:, None])
            # With too few effective draws for D moments, step only part of the way, and inwards.
            trust = min(1.0, ess / (3.0 * dim + 10.0))
            cov = trust * cov + (1.0 - trust) * 0.5 * (factor @ factor.T)
            mean = trust * mean + (1.0 - trust) * shift
            cov[np.diag_indices(dim)] += 1e-6 * np.trace(cov) / dim
            new_factor = cholesky(cov)
            moved = divergence(solve_lower(factor, mean - shift), solve_lower(factor, new_factor))
            shift, factor = mean, new_factor
            if trust == 1.0 and step >= 2 and moved < 0.02 * dim:
                break
        return shift, factor, log_mass

    # -- the next point -----------------------------------------------------------------------------------------------

    def propose(self) -> Array:
        """The candidate (D,), among draws of a widened q, where ℓ^(1/t)π is most uncertain.

        log V[exp g] = 2m + v + log(eᵛ − 1) for g ~ N(m, v), with v in the exponent held to 4: a variance of many nats²
        is ignorance, and e^v would then be the only thing that counts.
        """
        Y = self.rng.standard_normal((400, self.measure.dim))
        Y *= np.sqrt(WIDER * TAIL / self.rng.chisquare(TAIL, 400))[:, None]
        # A quarter reaches three times as far: a q that has become too thin in some direction has all its data in that
        # sliver, and only a point outside it can say so.
        Y[::4] *= 3.0
        log_t, v = self._log_target(Y, 0.0)
        score = 2.0 * log_t + np.minimum(v, 4.0) + np.log(-np.expm1(-v))
        return np.asarray(self.frame.colour(Y[[int(np.argmax(score))]])[0])


def _log_student(noise: Array) -> Array:
    """log density (M,) of the D-variate Student-t with TAIL degrees of freedom and covariance scale WIDER·I."""
    dim = noise.shape[1]
    squares = np.square(noise).sum(axis=1) / WIDER
    constant = math.lgamma(0.5 * (TAIL + dim)) - math.lgamma(0.5 * TAIL) - 0.5 * dim * math.log(TAIL * math.pi * WIDER)
    return np.asarray(constant - 0.5 * (TAIL + dim) * np.log1p(squares / TAIL))
