"""Explorer: a surrogate of log ℓ, and the Gaussian q that is matched to its posterior.

The surrogate's tempered posterior ℓ^(1/t) π is followed by a Gaussian q. The temperature t is set by the data: the best
2D + 2 values span five temperatures. Far from a mode t is large and q is nearly the prior; as better points are found,
t falls to one, and q becomes the posterior's own mean and covariance. The surrogate is fitted in coordinates whitened
by q, which copes with ridges and scales. The prior is known and never modelled, so q cannot leave it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from wsabi._core.linalg import square_distances
from wsabi._core.types import Array, Indices
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.surrogate.learning import fit_log_surrogate
from wsabi.adaptive.surrogate.model import LogSurrogate, Trend
from wsabi.adaptive.surrogate.theta import n_coefficients
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import NumericalError
from wsabi.gp.feasibility import Border, fit_border
from wsabi.priors import Measure

__all__ = ["Explorer", "max_data", "noise_variances", "relative_variance", "total_log_mass"]


def max_data(dim: int, least: int | None = None) -> int:
    """Largest number of points in a surrogate in ``dim`` dimensions; ``least`` is the usual one unless given."""
    least = int(TUNING.search.max_data) if least is None else least
    enough = int(TUNING.search.data_per_coefficient * n_coefficients(dim))
    return least if dim <= TUNING.surrogate.many_dimensions else max(least, enough)


@dataclass(frozen=True, eq=False)
class Explorer:
    """What is known of one region, or on the way to it.

    Attributes
    ----------
    measure : the prior in base coordinates, of standard deviation about one.
    frame : q.
    greedy : whether q takes the nearest mode, instead of the one with the most mass: quicker, and less far-sighted.
    temperature : t ≥ 1.
    matched_temperature : the temperature at which q was matched last.
    log_z : log ∫ ℓ^(1/t)π over this region, by the surrogate.
    drift : divergence between the last two q, in nats.
    uncertainty : the surrogate's predictive sd of log ℓ^(1/t), averaged over its tempered posterior.
    surrogate : of log ℓ − top, in coordinates of q; None before the first data.
    learnt_n : number of data when θ was last learnt, at a temperature of one or above as it is now.
    top, top_joint : the best log ℓ and the best log ℓπ among its data.
    depth : nats below the best from which on data count as noisy.
    summit : N(μ, A⁻¹) with the mode μ of ℓπ and its curvature A there, where gradients have found them; else None.
    border : between its data and those of zero likelihood; None where there are none of those.
    extrapolates : whether its surrogate may say more than a nat above the best datum where it is sure of it.
    """

    measure: Measure
    frame: Frame
    greedy: bool = False
    temperature: float = math.inf
    matched_temperature: float = math.inf
    log_z: float = -math.inf
    drift: float = math.inf
    uncertainty: float = math.inf
    surrogate: LogSurrogate | None = None
    learnt_n: int = 0
    top: float = 0.0
    top_joint: float = 0.0
    depth: float = 0.0
    summit: Frame | None = None
    border: Border | None = None
    extrapolates: bool = False

    @classmethod
    def from_prior(cls, measure: Measure, *, greedy: bool = False) -> Explorer:
        """One that has seen nothing: q is the prior's own Gaussian."""
        return cls(measure, Frame.of(measure.mean, measure.cov), greedy)

    @property
    def is_cold(self) -> bool:
        """Whether q is matched to the posterior itself, at temperature one; only then is ``log_z`` its mass."""
        return self.temperature == 1.0 and self.matched_temperature == 1.0

    @property
    def fitted_surrogate(self) -> LogSurrogate:
        """The surrogate.

        Raises
        ------
        NumericalError
            If there is none yet.
        """
        if self.surrogate is None:
            raise NumericalError("the explorer has no data yet.")
        return self.surrogate

    # -- fitting ------------------------------------------------------------------------------------------------------

    def fitted(
        self,
        X: Array,
        log_l: Array,
        *,
        learn: bool = False,
        limit: int | None = None,
        steps: int | None = None,
        n_interactions: int = 1,
    ) -> Explorer:
        """The same q with a surrogate of log ℓ (N,) at X (N, D), in coordinates of q; θ is learnt or kept.

        The surrogate has at most ``limit`` of the data, by default :func:`max_data`.

        Raises
        ------
        NumericalError
            If the kernel matrix cannot be factored.
        """
        feasible = np.isfinite(log_l)
        Y = self.frame.whiten(X)
        blocked = Y[~feasible]
        X, Y, log_l = X[feasible], Y[feasible], log_l[feasible]
        log_p = log_l + self.measure.log_pdf(X)
        keep = self._relevant(Y, log_p, max_data(X.shape[1]) if limit is None else limit)
        drop = np.minimum(np.max(log_p[keep]) - log_p[keep], TUNING.search.farthest_drop)
        temperature, depth = self._heat_and_depth(drop, X.shape[1])
        theta = self.surrogate.theta if self.surrogate is not None else None
        if theta is not None and math.isfinite(self.temperature):
            theta = theta.heated(temperature / self.temperature)
        top = float(np.max(log_l[keep]))
        surrogate = fit_log_surrogate(
            Y[keep],
            np.maximum(log_l[keep] - top, -_furthest(depth)),
            noise_variances(drop, depth, temperature),
            temperature=temperature,
            turn=self._turn(temperature),
            n_interactions=n_interactions,
            theta=theta,
            learn=learn,
            steps=steps,
            trend=self._trend(),
        )
        learnt_n = self.learnt_n
        if learn:
            learnt_n = len(feasible)
        elif (temperature == 1.0) != (self.temperature == 1.0):
            learnt_n = 0  # the kernel has become another
        length = self.border.length if self.border is not None else None
        return replace(
            self,
            surrogate=surrogate,
            learnt_n=learnt_n,
            temperature=temperature,
            depth=depth,
            top=top,
            top_joint=float(np.max(log_p[keep])),
            border=fit_border(Y[keep], blocked, length, learn=learn) if len(blocked) else None,
        )

    def _heat_and_depth(self, drop: Array, dim: int) -> tuple[float, float]:
        """The temperature, and the depth, of data that lie ``drop`` (N,) nats below the best of them."""
        numbers = TUNING.search
        reference = float(np.sort(drop)[min(2 * dim + 1, len(drop) - 1)])
        temperature = max(1.0, reference / (numbers.greedy_span if self.greedy else numbers.span))
        return temperature, max(numbers.least_depth + 2.0 * dim, 2.0 * reference)

    def _trend(self) -> Trend | None:
        """What is known of log ℓ from its curvature at the summit, in coordinates of q; None where there is no summit.

        With N(μ, A⁻¹) the summit and N(m, S) the prior, −½(u − μ)ᵀA(u − μ) + ½(u − m)ᵀS⁻¹(u − m).
        """
        if self.summit is None:
            return None
        b, B = self.frame.seen_from(self.summit)
        c, C = self.frame.seen_from(Frame.of(self.measure.mean, self.measure.cov))
        return Trend(0.5 * float(c @ c - b @ b), C.T @ c - B.T @ b, B.T @ B - C.T @ C)

    def _turn(self, temperature: float) -> Array | None:
        """Axes of the interactions, (D, D); None for a hot search, which asks for a direction and needs none."""
        return (
            self.frame.turn
            if temperature == 1.0 and self.measure.dim >= TUNING.surrogate.min_interaction_dimension
            else None
        )

    def _relevant(self, Y: Array, log_p: Array, limit: int) -> Indices:
        """Indices of the data to model: all near q, and never fewer than 2D + 2.

        Where they are too many, the best half of what can be had and an even choice of the rest are taken: without the
        low ones the surrogate may rise again beyond the good ones. While the search is hot, its 2D + 2 best count as
        near wherever they are: a q that has shrunk away from them would forget that there is anything better, heat up
        again and go in circles.
        """
        dim = Y.shape[1]
        radius = np.sqrt(np.square(Y).sum(axis=1))
        near = radius <= _data_reach(dim)
        if self.temperature > 1.0:
            near |= log_p >= np.sort(log_p)[-min(2 * dim + 2, len(log_p))]
        order = np.lexsort((-log_p, np.where(near, 0.0, radius)))[: max(2 * dim + 2, int(near.sum()))]
        head = max(limit // 2, 2 * dim + 2)
        rest = order[head:]
        evenly = np.linspace(0, len(rest) - 1, min(len(rest), max(limit - head, 0))).astype(np.intp)
        return np.concatenate([order[:head], rest[evenly]])

    def extended(self, X: Array, log_l: Array) -> tuple[Explorer, Indices]:
        """The same with more data in its surrogate, and which of X (M, D), log ℓ (M,) they are: the feasible near q.

        All else (θ, ``top``, what counts as noisy) stays as it was. At most the first :func:`max_data` are taken.
        """
        Y = self.frame.whiten(X)
        near = np.isfinite(log_l) & (np.square(Y).sum(axis=1) <= _data_reach(Y.shape[1]) ** 2)
        rows = np.flatnonzero(near)[: max_data(Y.shape[1])]
        if not len(rows):
            return self, rows
        drop = np.maximum(self.top_joint - log_l[rows] - self.measure.log_pdf(X[rows]), 0.0)
        values = np.maximum(log_l[rows] - self.top, -_furthest(self.depth))
        noise = noise_variances(drop, self.depth, self.temperature)
        try:
            return replace(self, surrogate=self.fitted_surrogate.extended(Y[rows], values, noise)), rows
        except NumericalError:
            return self, rows[:0]

    # -- what the surrogate says --------------------------------------------------------------------------------------

    def mean_log_likelihood(self, X: Array) -> Array:
        """E[log ℓ] by the surrogate, (M,) at X (M, D), however uncertain it is; at most a nat above the best datum."""
        return np.minimum(self.fitted_surrogate.mean(self.frame.whiten(X)), 1.0) + self.top

    def log_likelihood(self, X: Array) -> tuple[Array, Array]:
        """log E[ℓ] by the surrogate and its sd of log ℓ in nats, (M,) each, at X (M, D).

        For g ~ N(m, v), log E[e^g] = m + ½v; here m is at most a nat above the best datum, or at most m − 2√v where
        the surrogate ``extrapolates``, and this holds for v up to one nat². Beyond, the surrogate extrapolates and may
        grow without data, so half of what exceeds one is taken off. Where ℓ may be zero, ℓ is multiplied by the chance
        that it is not, and the sd holds that uncertainty too.
        """
        Y = self.frame.whiten(X)
        mean, v = self.fitted_surrogate.predict(Y)
        feasible = self.feasible(Y)
        least = TUNING.search.least_chance
        return self._log_expected(mean, v, feasible), np.sqrt(v + (1.0 - feasible) / np.maximum(feasible, least))

    def log_likelihood_without(self, X: Array, groups: Sequence[Indices], last: int) -> Array:
        """log E[ℓ] by the surrogate without each group of its ``last`` data, (G, M), at X (M, D)."""
        Y = self.frame.whiten(X)
        means, variances = self.fitted_surrogate.predict_without(Y, groups, last)
        return self._log_expected(means, variances, self.feasible(Y))

    def log_likelihood_own_without(self, X: Array, groups: Sequence[Indices], last: int) -> Array:
        """log E[ℓ] by the surrogate, (M,) at X (M, D), each without its own group of the ``last`` data."""
        Y = self.frame.whiten(X)
        means, variances = self.fitted_surrogate.predict_own_without(Y, groups, last)
        return self._log_expected(means, variances, self.feasible(Y))

    def standard_errors(self, X: Array, log_l: Array, groups: Sequence[Indices], last: int) -> Array:
        """Errors of the surrogate in units of its own sd, (M,), at X (M, D) with log ℓ (M,); zero where ℓ is zero.

        The surrogate is without the group of its ``last`` data that belongs to the point, if it has any.
        """
        mean, variance = self.fitted_surrogate.predict_own_without(self.frame.whiten(X), groups, last)
        error = np.where(np.isfinite(log_l), log_l - self.top - mean, 0.0)
        return np.asarray(error / np.sqrt(variance + TUNING.search.resolution**2))

    def left_out(self, X: Array, log_l: Array) -> tuple[Array, Array]:
        """Errors of the surrogate in units of its own sd, and that sd, (N,) each, at X (N, D) with log ℓ (N,) > −∞.

        Where a point is among its data, the surrogate is without it.
        """
        surrogate, Y = self.fitted_surrogate, self.frame.whiten(X)
        squares = square_distances(Y, surrogate.Y)
        row = np.argmin(squares, axis=1)
        is_datum = squares[np.arange(len(Y)), row] < TUNING.models.twin**2
        errors, error_sds = surrogate.left_out()
        mean, v = surrogate.predict(Y)
        sd = np.where(is_datum, error_sds[row], np.sqrt(v + TUNING.search.resolution**2))
        return np.where(is_datum, errors[row], log_l - self.top - mean) / sd, sd

    def _log_expected(self, mean: Array, v: Array, feasible: Array) -> Array:
        """log E[ℓ] for log ℓ − top ~ N(mean, v) where ℓ > 0, which it is by chance ``feasible``."""
        with np.errstate(divide="ignore"):
            excess = 0.5 * np.minimum(v, 1.0) - 0.5 * np.maximum(v - 1.0, 0.0)
            return np.asarray(np.minimum(mean, self._highest(mean, v)) + excess + self.top + np.log(feasible))

    def _highest(self, mean: Array, v: Array) -> Array | float:
        """Nats above the best datum that the surrogate may say where log ℓ − top ~ N(mean, v)."""
        return np.maximum(1.0, mean - 2.0 * np.sqrt(v)) if self.extrapolates else 1.0

    def log_posterior(self, X: Array) -> Array:
        """log ℓ^(1/t)π less a constant, (M,) at X (M, D), less the same caution as in the matching of q."""
        return self.log_target(self.frame.whiten(X), TUNING.search.caution)[0]

    def log_uncertainty(self, X: Array) -> Array:
        """log of the sd that the surrogate gives to ℓ^(1/t)π, less a constant, (M,) at X (M, D).

        log V[exp g] = 2m + v + log(eᵛ − 1) for g ~ N(m, v); here 2m + log(eᵛ − 1), relative to the median e^m, with v
        in the exponent held to 4: beyond, a variance means that nothing is known, and e^v would be all that counts.
        """
        Y = self.frame.whiten(X)
        log_t, v = self.log_target(Y, 0.0)
        feasible = self.feasible(Y)
        known = np.maximum(feasible, TUNING.search.no_chance)
        # Var[B e^g] for B ~ Bernoulli(feasible), over (feasible·e^m)²
        return log_t + 0.5 * np.log(relative_variance(v) / known + (1.0 - feasible) / known)

    def log_target(self, Y: Array, caution: float) -> tuple[Array, Array]:
        """log ℓ^(1/t)π less its top and ``caution`` sds, and the variance of log ℓ^(1/t), (M,) each, at y (M, D).

        At most so many temperatures above the best datum as a search may expect, which is more than a model may say.
        """
        mean, variance = self.fitted_surrogate.predict(Y)
        mean, variance = mean / self.temperature, variance / self.temperature**2
        log_prior = self.measure.log_pdf(self.frame.colour(Y))
        log_t = np.minimum(mean, TUNING.search.highest_hope) - caution * np.sqrt(variance) + log_prior
        with np.errstate(divide="ignore"):
            return log_t + np.log(self.feasible(Y)), variance

    def feasible(self, Y: Array) -> Array:
        """Chance (M,) that ℓ(y) > 0 at y (M, D)."""
        return np.ones(len(Y)) if self.border is None else self.border.chance(Y)


def relative_variance(v: Array) -> Array:
    """Var[e^g] over (e^m)², e^v(e^v − 1), g ~ N(m, v), less a factor e^v; v is held to a bound in the exponent."""
    return np.asarray(np.exp(np.minimum(v, TUNING.search.highest_variance)) * -np.expm1(-v))


def noise_variances(drop: Array, depth: float, temperature: float) -> Array:
    """Noise variances (N,) of values ``drop`` (N,) nats below the best.

    Far below they are kept for their direction only: beyond ``depth`` they count as noisy.
    """
    numbers = TUNING.search
    excess = np.maximum(0.0, np.minimum(drop, _furthest(depth)) - depth)
    return np.asarray(np.square(numbers.resolution * temperature) + np.square(numbers.noise_share * excess))


def _data_reach(dim: int) -> float:
    """Sds of q beyond which data are none of the surrogate's: far outside q, whose own points lie within √D + 3."""
    return TUNING.search.data_reach + 2.0 * math.sqrt(dim)


def _furthest(depth: float) -> float:
    """Nats below the best that a value counts for at most: what lies further down is no more than far below."""
    return max(TUNING.search.furthest_value, TUNING.search.furthest_depths * depth)


def total_log_mass(explorers: Sequence[Explorer]) -> float:
    """log of the mass in all their regions together, −inf for none."""
    return float(np.logaddexp.reduce([explorer.log_z for explorer in explorers])) if explorers else -math.inf
