"""Locate: find one region of posterior mass by annealing a surrogate of log ℓ.

The surrogate's tempered posterior ℓ^(1/t) π is followed by a Gaussian q whose moments are matched to it by importance
sampling on the surrogate, which costs no evaluation. The temperature t is set by the data: the best 2D + 2 values span
five temperatures. Far from the mass t is large and q is nearly the prior; as better points are found t falls to one
and q becomes the posterior's own mean and covariance. The surrogate is fitted in coordinates whitened by q, which is
what copes with ridges and scales; the prior is known and never modelled, so q cannot leave it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wsabi._core.linalg import cholesky, log_det, solve_lower, square_distances
from wsabi._core.types import Array, Indices
from wsabi.adaptive.search.variance_reduction import relative_variance, relief
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.surrogate.learning import fit_log_surrogate
from wsabi.adaptive.surrogate.model import LogSurrogate, Trend
from wsabi.adaptive.surrogate.students import Students, truncated
from wsabi.adaptive.surrogate.theta import n_coefficients
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import NumericalError
from wsabi.gp.feasibility import Border, fit_border
from wsabi.priors import Measure

__all__ = ["RESOLUTION", "Explorer", "total_log_mass"]

# Temperatures between the best value and the (2D + 2)nd. The log density of draws from a D-dimensional Gaussian spreads
# by √(D/2), two in eight dimensions, so five keeps q as wide as the data allow; a colder search takes the first hill.
SPAN = 5.0
GREEDY_SPAN = 20.0  # four times as cold: for looks that are wanted to take the first hill
# Points in the surrogate, and fresh ones at last: factoring them costs 3 ms, and all else grows with their square.
MAX_DATA = 350
LAST_DATA = 1000  # points in the surrogate of a last estimate, asked for once: factoring them takes a tenth of a second
# Points in the surrogate per coefficient of a quadratic, above many_dimensions, where that is more than the two numbers
# above. With fewer than one the data do not fix the quadratic; in 25 dimensions the surrogate told it from the smooth
# remainder, and its predictive sd fell from 1.2 nats to 0.01, between 1.25 and 1.4 points per coefficient.
DATA_PER_COEFFICIENT = 1.5
LAST_INTERACTIONS = 2  # in the surrogate of a last estimate, one on the way: half of a surrogate's time goes into one
# By which doubt is judged: to 8 %, and one candidate beside another better, by the same ones. With twice as many, and
# twice the candidates, an evaluation takes a third more time, and ten runs were no more exact.
WITNESSES = 150
# Draws of q among which the next point is chosen, half as many beside the witnesses: the best is in the upper per cent.
CANDIDATES = 400
DRAWS = 600  # importance draws per matching step: moments to about 5 %, well inside the inflation of q
# Importance draws per coefficient of a quadratic, above many_dimensions: q has nearly as many moments. Each step of the
# matching draws from the q of the step before, and too few draws shrink q at every step. Matched to an exact Gaussian
# with 600 draws, q ends 2 nats from it in 20 dimensions, 7 in 25, 17 in 30 and 55 in 40 (Kullback-Leibler divergence,
# after 15 steps). With 6 per coefficient it ends 0.01 D nats away after 3 steps, as with 600 draws in 10 dimensions.
DRAWS_PER_COEFFICIENT = 6
TAIL = 8.0  # degrees of freedom of the matching proposal, whose scale is 1.5 times q's covariance: weights stay bounded
WIDER = 1.5
AWAY = 0.5  # sds of q: closer to a point under way another would most likely tell the same
CAUTION = 0.5  # predictive sds subtracted from the surrogate when matching q: q stays where there are data
HOLLOW = 6  # dimensions from which on fewer than a tenth of a Gaussian's draws come within a nat of its top
RESOLUTION = 1e-3  # temperatures: noise of the values, far below what any of them is wanted for
FAR = 1e60  # nats below the best: what lies further down counts as this far, and no fourth power of it overflows
MATCHES = 30  # at most, without new data: q shrinks threefold in each, and priors are rarely 3^30 posteriors wide
# Nats: above many_dimensions, a surrogate whose predictive sd under the matched q is below this does not extrapolate,
# and q may grow as it says. Growing to twice the volume at a time would take a q that is too thin tens of steps.
KNOWN = 0.5
LEARN_GROWTH = 1.1  # of the data, after which θ is learnt anew: that takes a score of factorisations, and θ is slow
IGNORANT = (
    2.0  # temperatures of uncertainty from which on the surrogate was extrapolating, and four times the caution is due
)


def max_data(dim: int, least: int | None = None) -> int:
    """Largest number of points in a surrogate in ``dim`` dimensions; ``least`` is MAX_DATA unless given."""
    least = MAX_DATA if least is None else least
    return (
        least
        if dim <= TUNING.surrogate.many_dimensions
        else max(least, int(DATA_PER_COEFFICIENT * n_coefficients(dim)))
    )


def n_draws(dim: int) -> int:
    """Number of importance draws per matching step in ``dim`` dimensions."""
    return DRAWS if dim <= TUNING.surrogate.many_dimensions else DRAWS_PER_COEFFICIENT * n_coefficients(dim)


def divergence(shift: Array, factor: Array) -> float:
    """KL(N(shift, factor·factorᵀ) ‖ N(0, I)) in nats."""
    return 0.5 * float(np.square(factor).sum() + shift @ shift - len(shift) - log_det(factor))


class Explorer:
    """Follows ℓ^(1/t) π from the prior to one region of the posterior.

    Parameters
    ----------
    measure : the prior in base coordinates, of standard deviation about one.
    rng : stream of the importance draws and candidates.
    greedy : whether to take the first hill, instead of the one with the most mass: quicker, and less far-sighted.

    Attributes
    ----------
    frame : q.
    temperature : t ≥ 1.
    log_z : log ∫ ℓ^(1/t)π over this region, as the surrogate has it.
    drift : divergence between the last two q, in nats.
    uncertainty : the surrogate's predictive sd of log ℓ^(1/t), averaged over its tempered posterior.
    top, top_joint : the best log ℓ and the best log ℓπ among its data.
    depth : nats below the best from which on data count as noisy.
    summit : N(μ, A⁻¹) with the mode μ of ℓπ and its curvature A there, where gradients have found them; else None.
    border : between its data and those of zero likelihood; None where there are none of those.
    """

    def __init__(self, measure: Measure, rng: np.random.Generator, *, greedy: bool = False) -> None:
        self.measure = measure
        self.greedy = greedy
        self.rng = rng
        self.frame = Frame.of(measure.mean, measure.cov)
        self.temperature = math.inf
        self._matched_temperature = math.inf
        self.log_z = -math.inf
        self.drift = math.inf
        self.uncertainty = math.inf
        self.surrogate: LogSurrogate | None = None
        self._learnt_n = 0  # data when θ was last learnt, hot or cold as the search is
        self.top = self.top_joint = self.depth = 0.0
        self.summit: Frame | None = None
        self.border: Border | None = None

    # -- the surrogate ------------------------------------------------------------------------------------------------

    @property
    def is_cold(self) -> bool:
        """Whether q is matched to the posterior itself, at temperature one; only then is log_z its mass."""
        return self.temperature == 1.0 and self._matched_temperature == 1.0

    def fit(
        self,
        X: Array,
        log_l: Array,
        *,
        learn: bool = False,
        limit: int | None = None,
        steps: int | None = None,
        n_interactions: int = 1,
    ) -> None:
        """Surrogate of log ℓ (N,) at X (N, D), in coordinates of q; θ is learnt or kept.

        At most ``limit`` of them, by default :func:`max_data`.
        """
        feasible = np.isfinite(log_l)
        Y = self.frame.whiten(X)
        blocked = Y[~feasible]
        X, Y, log_l = X[feasible], Y[feasible], log_l[feasible]
        log_p = log_l + self.measure.log_pdf(X)
        keep = self._relevant(Y, log_p, max_data(X.shape[1]) if limit is None else limit)
        drop = np.minimum(np.max(log_p[keep]) - log_p[keep], FAR)
        reference = float(np.sort(drop)[min(2 * X.shape[1] + 1, len(drop) - 1)])
        temperature = max(1.0, reference / (GREEDY_SPAN if self.greedy else SPAN))
        depth = max(10.0 + 2.0 * X.shape[1], 2.0 * reference)
        theta = self.surrogate.theta if self.surrogate is not None else None
        if theta is not None and math.isfinite(self.temperature):
            theta = theta.heated(temperature / self.temperature)
        top = float(np.max(log_l[keep]))
        self.surrogate = fit_log_surrogate(
            Y[keep],
            np.maximum(log_l[keep] - top, -_furthest(depth)),
            _noise(drop, depth, temperature),
            temperature=temperature,
            turn=self._turn(temperature),
            n_interactions=n_interactions,
            theta=theta,
            learn=learn,
            steps=steps,
            trend=self._trend(),
        )
        if learn:
            self._learnt_n = len(feasible)
        elif (temperature == 1.0) != (self.temperature == 1.0):
            self._learnt_n = 0  # the kernel has become another
        self.temperature, self.depth = temperature, depth
        self.top, self.top_joint = top, float(np.max(log_p[keep]))
        length = self.border.length if self.border is not None else None
        self.border = fit_border(Y[keep], blocked, length, learn=learn) if len(blocked) else None

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
        """Axes of the interactions, (D, D), or None: a hot search asks for a direction, which it has without them."""
        return (
            self.frame.turn
            if temperature == 1.0 and self.measure.dim >= TUNING.surrogate.min_interaction_dimension
            else None
        )

    def _relevant(self, Y: Array, log_p: Array, limit: int = MAX_DATA) -> Indices:
        """Indices of the data to model: all near q, and never fewer than 2D + 2.

        Where they are too many, the best half of what can be had and an even choice of the rest: without the walls
        that the low ones are, the surrogate may rise again beyond the good ones. While the search is hot its 2D + 2
        best count as near wherever they are: a q that has shrunk away from them would forget that there is anything
        better, heat up again and go in circles.
        """
        dim = Y.shape[1]
        radius = np.sqrt(np.square(Y).sum(axis=1))
        near = radius <= _reach(dim)
        if self.temperature > 1.0:
            near |= log_p >= np.sort(log_p)[-min(2 * dim + 2, len(log_p))]
        order = np.lexsort((-log_p, np.where(near, 0.0, radius)))[: max(2 * dim + 2, int(near.sum()))]
        head = max(limit // 2, 2 * dim + 2)
        rest = order[head:]
        evenly = np.linspace(0, len(rest) - 1, min(len(rest), max(limit - head, 0))).astype(np.intp)
        return np.concatenate([order[:head], rest[evenly]])

    def mean_log_likelihood(self, X: Array) -> Array:
        """E[log ℓ] by the surrogate, (M,) at X (M, D): what it expects, however unsure."""
        return np.minimum(self._fitted().mean(self.frame.whiten(X)), 1.0) + self.top

    def log_likelihood(self, X: Array) -> tuple[Array, Array]:
        """log E[ℓ] by the surrogate and its sd of log ℓ in nats, (M,) each, at X (M, D).

        For g ~ N(m, v), log E[e^g] = m + ½v; with m held to a nat above the best datum. That is for v up to one nat²:
        beyond, the surrogate extrapolates and may grow without ground, and what exceeds one is taken off, halved. Where
        ℓ may be zero it is multiplied by the chance that it is not, and the sd holds that uncertainty too.
        """
        Y = self.frame.whiten(X)
        mean, v = self._fitted().predict(Y)
        feasible = self._feasible(Y)
        return self._log_expected(mean, v, feasible), np.sqrt(v + (1.0 - feasible) / np.maximum(feasible, 0.1))

    def log_likelihood_without(self, X: Array, groups: Sequence[Indices], last: int) -> Array:
        """log E[ℓ] by the surrogate without each group of its ``last`` data, (G, M), at X (M, D)."""
        Y = self.frame.whiten(X)
        means, variances = self._fitted().predict_without(Y, groups, last)
        return self._log_expected(means, variances, self._feasible(Y))

    def standard_errors(self, X: Array, log_l: Array, groups: Sequence[Indices], last: int) -> Array:
        """Errors of the surrogate in units of its own sd, (M,), at X (M, D) with log ℓ (M,); 0 where ℓ is.

        The surrogate is without the group of its ``last`` data that belongs to the point, if it has any.
        """
        means, variances = self._fitted().predict_without(self.frame.whiten(X), groups, last)
        mean, variance = np.diagonal(means), np.diagonal(variances)
        error = np.where(np.isfinite(log_l), log_l - self.top - mean, 0.0)
        return np.asarray(error / np.sqrt(variance + RESOLUTION**2))

    def _log_expected(self, mean: Array, v: Array, feasible: Array) -> Array:
        """log E[ℓ] for log ℓ − top ~ N(mean, v) where ℓ > 0, by chance ``feasible``."""
        with np.errstate(divide="ignore"):
            excess = 0.5 * np.minimum(v, 1.0) - 0.5 * np.maximum(v - 1.0, 0.0)
            return np.asarray(np.minimum(mean, 1.0) + excess + self.top + np.log(feasible))

    def log_posterior(self, X: Array) -> Array:
        """log ℓ^(1/t)π less a constant, (M,) at X (M, D), cautious as in the matching of q."""
        return self._log_target(self.frame.whiten(X), CAUTION)[0]

    def log_uncertainty(self, X: Array) -> Array:
        """log of the sd that the surrogate gives to ℓ^(1/t)π, less a constant, (M,) at X (M, D).

        log V[exp g] = 2m + v + log(eᵛ − 1) for g ~ N(m, v); here 2m + log(eᵛ − 1), relative to the median e^m, and
        with v in the exponent held to 4: a variance of many nats² is ignorance, and e^v would be all that counts.
        """
        Y = self.frame.whiten(X)
        log_t, v = self._log_target(Y, 0.0)
        feasible = self._feasible(Y)
        known = np.maximum(feasible, 1e-10)  # Var[B e^g] for B ~ Bernoulli(feasible), over (feasible·e^m)²
        return log_t + 0.5 * np.log(relative_variance(v) / known + (1.0 - feasible) / known)

    def _fitted(self) -> LogSurrogate:
        if self.surrogate is None:
            raise NumericalError("the explorer has no data yet.")
        return self.surrogate

    def _log_target(self, Y: Array, caution: float) -> tuple[Array, Array]:
        """log ℓ^(1/t)π less its top, and the variance of log ℓ^(1/t), (M,) each, at y (M, D)."""
        mean, variance = self._fitted().predict(Y)
        mean, variance = mean / self.temperature, variance / self.temperature**2
        # Three temperatures above the best datum at most: a search may expect more than a model may claim.
        log_t = np.minimum(mean, 3.0) - caution * np.sqrt(variance) + self.measure.log_pdf(self.frame.colour(Y))
        with np.errstate(divide="ignore"):
            return log_t + np.log(self._feasible(Y)), variance

    def _feasible(self, Y: Array) -> Array:
        """Chance (M,) that ℓ(y) > 0 at y (M, D)."""
        return np.ones(len(Y)) if self.border is None else self.border.chance(Y)

    # -- q ------------------------------------------------------------------------------------------------------------

    def match(self, X: Array, log_l: Array) -> None:
        """Fit the surrogate, with a θ learnt as the data grow; move q to the moments of its tempered posterior."""
        self.fit(X, log_l, learn=not self._learnt_n <= len(X) < LEARN_GROWTH * self._learnt_n)
        if not self._learnt_n:  # it has turned cold, or hot
            self.fit(X, log_l, learn=True)
        shift, factor, log_mass = self._matched_moments(CAUTION)
        if self.uncertainty > IGNORANT:
            shift, factor, log_mass = self._matched_moments(4.0 * CAUTION)
        # One step moves q by no more than its own size, stretches it no more than threefold along an axis, and no more
        # than doubles its volume: beyond, the surrogate was extrapolating. In many dimensions its volume may grow where
        # the surrogate knows log ℓ there.
        dim = self.measure.dim
        reach = 2.0 * math.sqrt(dim) / max(float(np.linalg.norm(shift)), 1e-12)
        shift = min(1.0, reach) * shift
        values, vectors = np.linalg.eigh(factor @ factor.T)
        values = np.clip(values, 1.0 / 9.0, 9.0)
        growth = 0.5 * float(np.log(values).sum())
        extrapolates = dim <= TUNING.surrogate.many_dimensions or self.uncertainty > KNOWN
        if extrapolates and growth > math.log(2.0):
            values = np.where(values > 1.0, values ** (math.log(2.0) / growth), values)
        cov = (vectors * values) @ vectors.T
        self.log_z = log_mass + self.top / self.temperature + self.frame.log_det
        self._matched_temperature = self.temperature
        self.drift = divergence(shift, cholesky(cov))
        before, self.frame = self.frame, self.frame.move(shift, cov)
        self.surrogate = replace(self._fitted(), theta=before.theta_in(self.frame, self._fitted().theta))
        # θ goes with q, but where q has changed by a quarter of a nat along every axis other lengths may be better.
        self.fit(X, log_l, learn=self.drift > 0.25 * dim)

    def match_until_still(self, X: Array, log_l: Array) -> None:
        """Match q again and again to the same data, until it is cold and stands still."""
        for _ in range(MATCHES):
            if self.is_cold and self.drift < 0.05 * self.measure.dim:
                return
            self.match(X, log_l)

    def rematched(self, X: Array, log_l: Array) -> Explorer:
        """A copy with q matched to more data; itself, where that failed or lost most of the mass it had.

        A loss is believed where the surrogate knows log ℓ to half a nat: then it was the old one that was wrong. The
        mass of an explorer that was still hot is no mass to compare with.
        """
        moved = copy.copy(self)
        try:
            moved.match(X, log_l)
        except NumericalError:
            return self
        kept = not self.is_cold or moved.log_z > self.log_z - 1.0 or moved.uncertainty < 0.5
        return moved if moved.is_cold and kept else self

    def relearnt(self, X: Array, log_l: Array, rng: np.random.Generator) -> Explorer:
        """A copy with the same q whose surrogate has learnt θ from X (N, D), log ℓ (N,); itself, where that failed.

        Learning takes scores of factorisations, so θ is that of :func:`max_data` points; the surrogate has up to
        LAST_DATA, if that is more. Where these lie so close together that another θ would be theirs, it may soar
        between them: more data that leave it with more to uncertainty are not taken.
        """
        learnt = copy.copy(self)
        try:
            learnt.fit(
                X, log_l, learn=True, steps=2 * TUNING.surrogate.learning_steps, n_interactions=LAST_INTERACTIONS
            )
        except NumericalError:
            return self
        if learnt.temperature != self.temperature:
            return self
        dim = self.measure.dim
        if len(X) <= max_data(dim):
            return learnt
        fuller = copy.copy(learnt)
        try:
            fuller.fit(X, log_l, limit=max_data(dim, LAST_DATA), n_interactions=LAST_INTERACTIONS)
        except NumericalError:
            return learnt
        noise = self._student_noise(DRAWS, rng)
        return fuller if fuller.mean_sd(noise) <= learnt.mean_sd(noise) else learnt

    def mean_sd(self, noise: Array) -> float:
        """The surrogate's sd of log ℓ, averaged over its posterior by draws (M, D) of the Student-t round q."""
        log_t, variance = self._log_target(noise, 0.0)
        if not np.any(np.isfinite(log_t)):
            return math.inf
        w = truncated(log_t - _log_student(noise))
        return float(w @ np.sqrt(variance)) / float(w.sum())

    def extended(self, X: Array, log_l: Array) -> tuple[Explorer, Indices]:
        """A copy whose surrogate has more data, and which of X (M, D), log ℓ (M,) they are: the feasible ones near q.

        All else, θ, ``top`` and what counts as noisy, stays as it was without them. The first :func:`max_data` at most.
        """
        Y = self.frame.whiten(X)
        near = np.isfinite(log_l) & (np.square(Y).sum(axis=1) <= _reach(Y.shape[1]) ** 2)
        rows = np.flatnonzero(near)[: max_data(Y.shape[1])]
        drop = np.maximum(self.top_joint - log_l[rows] - self.measure.log_pdf(X[rows]), 0.0)
        values = np.maximum(log_l[rows] - self.top, -_furthest(self.depth))
        if not len(rows):
            return self, rows
        more = copy.copy(self)
        try:
            more.surrogate = self._fitted().extended(Y[rows], values, _noise(drop, self.depth, self.temperature))
        except NumericalError:
            return self, rows[:0]
        return more, rows

    def _matched_moments(self, caution: float) -> tuple[Array, Array, float]:
        """Mean (D,), factor (D, D) and log mass of the tempered posterior, by iterated importance sampling."""
        dim = self.measure.dim
        shift, factor = np.zeros(dim), np.eye(dim)
        log_mass = -math.inf
        noise = self._student_noise(n_draws(dim))  # the same at every step: q then stands still where it has arrived
        log_noise = _log_student(noise)
        for step in range(15):
            Y = shift + noise @ factor.T
            log_t, variance = self._log_target(Y, caution)
            log_w = log_t - log_noise + 0.5 * log_det(factor)
            top = float(np.max(log_w))
            if np.count_nonzero(np.isfinite(log_w)) <= dim:  # too few for a covariance: closer, round the best datum
                self.uncertainty = math.inf
                data = self._fitted().Y
                return data[int(np.argmax(self._log_target(data, caution)[0]))], 0.5 * factor, -math.inf
            w = truncated(log_w)
            log_mass = top + math.log(float(w.mean()))
            self.uncertainty = float(w @ np.sqrt(variance)) / float(w.sum())
            # Weights too uneven for D moments are flattened until they are not: q goes part of the way, and the next
            # step starts from there. What is infeasible stays so.
            with np.errstate(divide="ignore"):
                log_f = np.log(self._feasible(Y))
            possible = np.isfinite(log_w)
            Y, log_w, log_f = Y[possible], log_w[possible] - top, log_f[possible]
            power = _flattening(log_w - log_f, log_f, 3.0 * dim + 10.0)
            log_flat = power * (log_w - log_f) + log_f
            w = truncated(log_flat)
            w /= w.sum()
            mean = w @ Y
            cov = (Y - mean).T @ ((Y - mean) * w[:, None])
            cov[np.diag_indices(dim)] += 1e-6 * np.trace(cov) / dim
            new_factor = cholesky(cov)
            moved = divergence(solve_lower(factor, mean - shift), solve_lower(factor, new_factor))
            shift, factor = mean, new_factor
            if power == 1.0 and step >= 2 and moved < 0.02 * dim:
                break
        return shift, factor, log_mass

    def _student_noise(self, n: int, rng: np.random.Generator | None = None) -> Array:
        """n draws, (n, D), of the Student-t of :func:`_log_student`, by this explorer's stream or another."""
        rng = self.rng if rng is None else rng
        noise = rng.standard_normal((n, self.measure.dim))
        return noise * np.sqrt(WIDER * TAIL / rng.chisquare(TAIL, n))[:, None]

    # -- the next point -----------------------------------------------------------------------------------------------

    def propose(self, pending: Array, shape: Students | None = None) -> Array:
        """Where an evaluation would tell most of ℓ^(1/t)π, (D,), among draws of a widened q and of ``shape``.

        Half an sd of q from any point under way, ``pending`` (P, D), as long as there are such candidates. A hot search
        wants to know where to go, and evaluates where ℓ^(1/t)π is most uncertain. A cold one is to be integrated, and
        takes the point that relieves most doubt, all in all. Where ℓ may be zero it is again the most uncertain one,
        for what an evaluation says of the border is not in the surrogate's variance.
        """
        surveyed = self.is_cold and self.border is None
        Y = self._student_noise(CANDIDATES // 2 if surveyed else CANDIDATES)
        # A quarter reaches three times as far: a q that has become too thin in some direction has all its data in that
        # sliver, and only a point outside it can say so.
        Y[::4] *= 3.0
        # Draws of q lie in a shell √D from its centre. Half are drawn in to fill the ball: where the surrogate expects
        # much more inside than on the shell, that is where ℓ^(1/t)π has most to say.
        Y[1::2] *= self.rng.uniform(size=(len(Y[1::2]), 1))
        X = self.frame.colour(Y)
        if surveyed:
            S, log_density = self._witnesses(shape)
            X = np.concatenate([X, S])
            merit = self._merit(X, log_density, pending)
        else:
            X = X if shape is None else np.concatenate([X, shape.sample(WITNESSES, self.rng)])
            merit = self.log_uncertainty(X)
        if len(pending):
            near = np.min(square_distances(self.frame.whiten(X), self.frame.whiten(pending)), axis=1) < AWAY**2
            if not np.all(near):
                merit = np.where(near, -np.inf, merit)
        return np.asarray(X[int(np.argmax(merit))])

    def _witnesses(self, shape: Students | None) -> tuple[Array, Array]:
        """Draws (R, D) of ``shape``, or of q where there is none, and the log density of each, (R,)."""
        if shape is None:
            noise = self._student_noise(WITNESSES)
            return self.frame.colour(noise), _log_student(noise)
        S = shape.sample(WITNESSES, self.rng)
        return S, shape.log_pdf(S)

    def _merit(self, X: Array, log_density: Array, pending: Array) -> Array:
        """By how much an evaluation at each of X (M, D) lessens ∫ sd[ℓπ], in units of its own, (M,).

        By the last R of X, drawn with that log density (R,), and given the points under way, ``pending`` (P, D). The sd
        is that of :meth:`log_uncertainty`, with the present mean.

        Unless there is a summit that the surrogate is sure of, a nat above all data by two of its sds: then by how much
        each exceeds them. From HOLLOW dimensions on all draws of q lie on a shell, nats below it, and what is more than
        a nat above the data does not count in the integral.
        """
        last = len(log_density)
        log_prior = self.measure.log_pdf(X)
        mean, v, cov = self._with_pending(pending).covariances(self.frame.whiten(X), last)
        rise = mean - 2.0 * np.sqrt(v) + log_prior - self._expected_top(pending)
        if X.shape[1] >= HOLLOW and np.max(rise) > 1.0:
            return rise
        drop = np.maximum(self.top_joint - self.top - mean - log_prior, 0.0)
        weights = truncated(np.minimum(mean[-last:], 3.0) + log_prior[-last:] - log_density)
        return relief(v, cov, _noise(drop, self.depth, 1.0), weights)

    def _expected_top(self, pending: Array) -> float:
        """The best log ℓπ, less ``top``, among the data and the points under way, (P, D), as the surrogate has them."""
        joint = self._fitted().mean(self.frame.whiten(pending)) + self.measure.log_pdf(pending)
        return float(np.max(joint, initial=self.top_joint - self.top))

    def _with_pending(self, pending: Array) -> LogSurrogate:
        """The surrogate as if it had been told what it expects at the points under way, (P, D)."""
        surrogate = self._fitted()
        if not len(pending):
            return surrogate
        Y = self.frame.whiten(pending)
        try:
            return surrogate.extended(Y, surrogate.mean(Y), np.full(len(Y), RESOLUTION**2))
        except NumericalError:  # beside each other, or beside data: they will tell nothing
            return surrogate


def _reach(dim: int) -> float:
    """Sds of q beyond which data are none of the surrogate's: far outside q, whose own points lie within √D + 3."""
    return 6.0 + 2.0 * math.sqrt(dim)


def _furthest(depth: float) -> float:
    """Nats below the best that a value counts for at most: a million nats below is no more than far below."""
    return max(1e6, 3.0 * depth)


def _noise(drop: Array, depth: float, temperature: float) -> Array:
    """Noise variances (N,) of values ``drop`` (N,) nats below the best.

    Far below they are kept for their direction only: beyond ``depth`` they count as noisy.
    """
    excess = np.maximum(0.0, np.minimum(drop, _furthest(depth)) - depth)
    return np.asarray(np.square(RESOLUTION * temperature) + np.square(0.1 * excess))


def _log_student(noise: Array) -> Array:
    """log density (M,) of the D-variate Student-t with TAIL degrees of freedom and covariance scale WIDER·I."""
    dim = noise.shape[1]
    squares = np.square(noise).sum(axis=1) / WIDER
    constant = math.lgamma(0.5 * (TAIL + dim)) - math.lgamma(0.5 * TAIL) - 0.5 * dim * math.log(TAIL * math.pi * WIDER)
    return np.asarray(constant - 0.5 * (TAIL + dim) * np.log1p(squares / TAIL))


def _flattening(log_w: Array, log_f: Array, wanted: float) -> float:
    """The largest β ≤ 1 for which the weights exp(β log_w + log_f), (M,) each, count for ``wanted`` draws.

    Where exp(log_f) alone counts for fewer than that it is a thousandth.
    """

    def effective(power: float) -> float:
        log_flat = power * log_w + log_f
        w = truncated(log_flat)
        return float(w.sum() ** 2 / np.square(w).sum())

    if effective(1.0) >= wanted:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(10):  # to a thousandth
        middle = 0.5 * (low + high)
        low, high = (middle, high) if effective(middle) >= wanted else (low, middle)
    return low or high


def total_log_mass(explorers: Sequence[Explorer]) -> float:
    """log of the mass in all their regions together, −inf for none."""
    return float(np.logaddexp.reduce([explorer.log_z for explorer in explorers])) if explorers else -math.inf
