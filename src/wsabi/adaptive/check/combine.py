"""Certify: an estimate of Z from fresh independent points that is unbiased whatever the model's faults.

Points u_j are drawn from a density p of heavier tails than q, with a share of the prior. For any function M with known
integral I, fixed before the u_j are seen,

    Z = I + E_p[(ℓπ − M)/p]

and the mean over j has an honest standard error, small where M is close to ℓπ. Two such M are at hand: the WSABI models
(I in closed form) and the explorers' surrogate of log ℓ (I by cheap Monte Carlo on the surrogate); M is the mean of
the two weighted a : 1 − a, with the a in [0, 1] whose residuals are smallest. In the last estimate of a run the
surrogate has the other check points among its data (:mod:`wsabi.adaptive.check.crossfit`), an M for every j; no u_j
enters the model that it checks. They choose a, and whether there is a control at all, which costs the estimate a bias
of the order of its variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.check.crossfit import CrossFit
from wsabi.adaptive.check.pareto import pareto_k
from wsabi.adaptive.check.proposal import Proposal
from wsabi.adaptive.regions import Regions
from wsabi.adaptive.search.anneal import RESOLUTION
from wsabi.adaptive.surrogate.students import truncated
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import NumericalError
from wsabi.result import Certificate

__all__ = ["FINAL", "INTERIM", "Effort", "certify"]


@dataclass(frozen=True)
class Effort:
    """How well the surrogate is integrated: by ``draws`` of p, and by as many more as it takes until they are ``most``,
    while the error of its integral exceeds the share ``tolerable`` of the least claim; then, where it exceeds the share
    ``refine``, by as many of a p that follows the surrogate more closely.
    """  # noqa: D205

    final: bool

    @property
    def draws(self) -> int:
        """Draws to begin with."""
        return TUNING.check.draws if self.final else TUNING.check.draws // TUNING.check.draws_factor

    @property
    def most(self) -> int:
        """Draws at most."""
        return TUNING.check.draws * TUNING.check.draws_factor if self.final else TUNING.check.draws

    @property
    def tolerable(self) -> float:
        """Error above which more draws are made."""
        return TUNING.check.final_tolerance if self.final else TUNING.check.interim_tolerance

    @property
    def refine(self) -> float:
        """Error above which the proposal is refined."""
        return TUNING.check.final_refinement if self.final else TUNING.check.interim_refinement

    def draws_after(self, n: int, models: _Models) -> int:
        """How many draws there should be after n: a tenth more than the error says, and half as many again at least."""
        one = TUNING.check
        ratio = min(models.surrogate_error / (self.tolerable * models.least_claim), one.max_shortfall)
        return min(self.most, max(int(one.min_growth * n), int(one.spare_growth * n * ratio**2)))


INTERIM = Effort(final=False)  # is asked for again and again while the run goes on
FINAL = Effort(final=True)  # is asked for once


def certify(
    regions: Regions,
    proposal: Proposal,
    X: Array,
    log_l: Array,
    log_p: Array,
    rng: np.random.Generator,
    effort: Effort = INTERIM,
    crossfit: CrossFit | None = None,
) -> Certificate:
    """Combine the models' integral with the check points X (N, D), log ℓ (N,), drawn with log density log_p (N,).

    The models' integral is taken as right to within σ, σ² = what they say themselves + (distance of the two)², the
    latter as far as the check points do not prefer one: two models built on different transforms agree only where both
    are right. It is weighed against the fresh estimate F by precision, its variance raised to (F − mean)² less four
    times F's where F says that it was too small (:func:`_trust`). In the weights it stands with a third of σ, which is
    made to cover, and F with its own noise; in what is claimed with all of σ, raised to what the spread of the
    residuals, and the largest, say of the size of the models' errors, and F with what both may have missed. What is
    weighed is F with its largest residual bounded (:func:`_bound`): one check points in a place that p hardly reaches
    says that there is something, which is in its error, but not how much. With a ``crossfit`` the models' integral is
    that of its surrogate, which has all data.
    """
    numbers = TUNING.check
    crossfit = CrossFit.without_any(regions, len(X)) if crossfit is None else crossfit
    regions = crossfit.regions
    draws = _Draws.of(proposal, regions, effort.draws, rng)
    models = _models(regions, draws)
    while models.surrogate_error > effort.tolerable * models.least_claim and draws.n < effort.most:
        more = effort.draws_after(draws.n, models) - draws.n
        draws = draws.followed_by(_Draws.of(proposal, regions, more, rng))
        models = _models(regions, draws)
    if models.surrogate_error > effort.refine * models.least_claim:
        draws = _Draws.of(proposal.refined(lambda X: regions.surrogate(X)[0], rng), regions, draws.n, rng)
        models = _models(regions, draws)
    fresh = None
    if len(X) >= TUNING.check.min_points:
        log_weights = log_l + regions.measure.log_pdf(X) - log_p
        models = models.in_view_of(log_weights)
        models = replace(models, overconfidence=_overconfidence(crossfit, X, log_l, log_weights))
        by_surrogate = _surrogate_residuals(models, crossfit, draws, X, log_weights, log_p)
        fresh = _fresh(models, regions, X, log_weights, log_p, by_surrogate)
    share = fresh.share if fresh is not None else models.share_by_claim
    integral, sigma2 = models.combined(share, by_fresh=fresh is not None)
    combined, variance = integral, sigma2
    difference = caution = 0.0
    rests_on_points = False
    if fresh is not None:
        gap = fresh.value - integral
        sigma2 = max(sigma2, TUNING.check.min_variance)  # where models and points have met zero likelihood only
        difference = gap / math.hypot(fresh.error, math.sqrt(sigma2))
        trust = _trust(TUNING.check.typical_error**2 * sigma2, gap, fresh.noise, integral)
        combined = integral + trust * max(fresh.bounded - integral, min(gap, 0.0))
        sigma2 = max(sigma2, gap**2 - fresh.error**2, fresh.largest**2, (TUNING.check.shared_error * fresh.spread) ** 2)
        rests_on_points = fresh.can_stand_alone and (
            fresh.is_plain or math.sqrt(sigma2) > numbers.useful_share * max(integral, 0.0)
        )
        if rests_on_points:  # models that do not know the integral say nothing of the error of a mean over points
            combined, variance, caution = fresh.value, fresh.noise**2, fresh.scarcity
        else:
            # What the surrogate does not know is in both of them, and does not average out.
            shared = (1.0 - share) * fresh.unmet
            variance = max(sigma2 / (sigma2 + fresh.error**2) * fresh.error**2, shared**2)
            variance = max(variance, _variance_by_gap(trust, gap, fresh.noise))
            caution = _caution(fresh, integral)
    uses_surrogate = fresh is None or not fresh.is_plain
    of_integral = (1.0 - share) * models.surrogate_error * uses_surrogate  # in which both estimates have their part
    variance += of_integral**2
    log_unit = models.log_unit
    # A correction to below nothing says only that the models are of no use.
    combined, integral = max(combined, TUNING.check.min_integral), max(integral, TUNING.check.min_integral)
    return Certificate(
        log_z=log_unit + math.log(combined),
        log_z_std=math.hypot(math.sqrt(math.log1p(variance / combined**2)), RESOLUTION, caution),
        model_log_z=log_unit + math.log(integral),
        model_log_z_std=math.sqrt(math.log1p(sigma2 / integral**2)),
        check_log_z=math.nan if fresh is None else log_unit + math.log(max(fresh.value, TUNING.check.min_integral)),
        check_log_z_std=math.inf
        if fresh is None
        else math.hypot(fresh.error, of_integral) / max(fresh.value, numbers.min_integral),
        difference=difference,
        n_points=len(X),
        effective_sample_size=0.0 if fresh is None else fresh.effective_size,
        pareto_k=math.nan if fresh is None else fresh.tail,
        wsabi_share=share,
        uncertainty=models.uncertainty,
        model_log_var=2.0 * log_unit + math.log(max(sigma2, TUNING.check.min_variance)),
        rests_on_points=rests_on_points,
        misplaced=math.nan if fresh is None else fresh.misplaced,
    )


def _trust(variance: float, gap: float, error: float, integral: float) -> float:
    """Weight of an estimate with that error, ``gap`` away from a model's, of that variance, which the gap may raise.

    Up to ``contradiction`` errors it says nothing of the model, as far as they are those of points beside a useful one.
    """
    by_chance = (
        error**2
        + (TUNING.check.contradiction**2 - 1.0) * min(error, TUNING.check.useful_share * max(integral, 0.0)) ** 2
    )
    variance = max(variance, gap**2 - by_chance)
    return variance / (variance + error**2)


def _variance_by_gap(trust: float, gap: float, error: float) -> float:
    """Mean square error of I + trust·(F − I) for an unbiased F of that error, ``gap`` away from I.

    I is wrong by gap² − error² in the mean, squared: a gap that may be chance, and so hardly moves the estimate, may
    also be the models' error.
    """
    return (1.0 - trust) ** 2 * max(gap**2 - error**2, 0.0) + (trust * error) ** 2


@dataclass(frozen=True)
class _Models:
    """Integrals of the two controls in units of exp(log_unit).

    Attributes
    ----------
    surrogate, surrogate_error : integral of the explorers' surrogate, and its Monte Carlo error.
    wsabi, wsabi_variance : mean and variance of Z by the WSABI models; None where they are not to be believed.
    uncertainty : the surrogate's predictive sd of log ℓ, averaged over its posterior.
    log_cap : what log M/p of the surrogate was held to.
    overconfidence : by how much these sds are too small, as check points have it.
    """

    log_unit: float
    surrogate: float
    surrogate_error: float
    wsabi: float | None
    wsabi_variance: float
    uncertainty: float
    log_cap: float = math.inf
    overconfidence: float = 1.0

    @property
    def unmet(self) -> float:
        """What patches of the surrogate's errors that no check points has met may add to an integral."""
        return (
            TUNING.check.integral_error
            * min(self.uncertainty * min(self.overconfidence, TUNING.check.max_overconfidence), 1.0)
            * self.surrogate
        )

    @property
    def least_claim(self) -> float:
        """The least error that may be claimed for the surrogate's integral."""
        return max(RESOLUTION, TUNING.check.integral_error * self.uncertainty) * self.surrogate

    @property
    def share_by_claim(self) -> float:
        """Weight of the WSABI models where no check points can choose: all or nothing, by the smaller claim."""
        return float(
            self.wsabi is not None
            and math.sqrt(self.wsabi_variance) < TUNING.check.integral_error * self.uncertainty * self.surrogate
        )

    def in_view_of(self, log_weights: Array) -> _Models:
        """The same in units in which log ℓπ/p (N,) can be told, where these models have next to nothing."""
        short = float(np.logaddexp.reduce(log_weights)) - math.log(len(log_weights)) - self.log_unit
        if not short > TUNING.check.unit_shift:
            return self
        less = math.exp(-short) * self.surrogate
        unit = self.log_unit + short
        return replace(self, log_unit=unit, surrogate=less, surrogate_error=0.0, wsabi=None, wsabi_variance=0.0)

    def combined(self, share: float, *, by_fresh: bool) -> tuple[float, float]:
        """Integral of the control with that share of WSABI, and the variance of Z about it, by the models alone."""
        wsabi = self.surrogate if self.wsabi is None else self.wsabi
        by_surrogate = TUNING.check.integral_error * self.uncertainty * self.overconfidence * self.surrogate
        own = share**2 * self.wsabi_variance + ((1.0 - share) * by_surrogate) ** 2
        # Where the check points have chosen one of the two, its distance from the other is the other's fault.
        chosen = 1.0 - (2.0 * share) * (2.0 * (1.0 - share)) if by_fresh else 0.0
        misfit = (wsabi - self.surrogate) ** 2
        return share * wsabi + (1.0 - share) * self.surrogate, own + (1.0 - chosen) * misfit


@dataclass(frozen=True)
class _Draws:
    """X (N, D), drawn from a proposal: their log density, log ℓπ by the surrogate there and its sd, (N,) each."""

    proposal: Proposal
    X: Array
    log_p: Array
    log_m: Array
    sd: Array

    @classmethod
    def of(cls, proposal: Proposal, regions: Regions, n: int, rng: np.random.Generator) -> _Draws:
        """N = n draws."""
        X = proposal.sample(n, rng)
        return cls(proposal, X, proposal.log_pdf(X), *regions.surrogate(X))

    def followed_by(self, more: _Draws) -> _Draws:
        """These and more of the same proposal."""
        both = [
            np.concatenate(pair)
            for pair in [(self.X, more.X), (self.log_p, more.log_p), (self.log_m, more.log_m), (self.sd, more.sd)]
        ]
        return _Draws(self.proposal, *both)

    @property
    def n(self) -> int:
        """N."""
        return len(self.X)

    @property
    def log_cap(self) -> float:
        """log √N: what M/p is held to, in units of its mean, so that no draw has more than N^−½ of the integral.

        In the manner of truncated importance sampling (Ionides, 2008). What a surrogate has in a place that p hardly
        reaches, and so no datum, is as a rule of its own making: a tenth of an integral has rested on one of 16,000.
        """
        return 0.5 * math.log(self.n)


def _models(regions: Regions, draws: _Draws) -> _Models:
    """Integrals of the controls: WSABI's in closed form, the surrogate's by draws of p.

    WSABI's is left out where it disagrees with the mean of its integrand over the draws, as weights of both signs that
    have grown huge may integrate to anything; and where that mean has an error of a twentieth, for what so many draws
    cannot integrate the check points, far fewer, cannot check. The surrogate is held to √N times its mean over p.
    """
    proposal, X, log_p = draws.proposal, draws.X, draws.log_p
    log_ratio = draws.log_m - log_p
    log_unit = _log_capped_mean(log_ratio)
    if not math.isfinite(log_unit):
        log_unit = regions.log_mass
    surrogate = _ratio(np.minimum(log_ratio - log_unit, draws.log_cap))
    total = float(surrogate.sum())
    uncertainty = float(surrogate @ draws.sd) / total if total > 0.0 else TUNING.check.unknown_sd
    wsabi, variance = _usable_moments(regions, log_unit)
    known = []
    if wsabi is not None:
        by_wsabi = regions.control(X, log_p + log_unit)
        found, noise = proposal.mean_of(by_wsabi, X, log_p)
        # Both are the same integral: beyond five standard errors they differ; the fifth allows for errors too small.
        one = TUNING.check
        allowed = one.max_control_gap * wsabi + one.max_control_sds * noise
        if noise > one.max_control_noise * wsabi or abs(found - wsabi) > allowed:
            wsabi, variance = None, 0.0
        else:
            known = [by_wsabi - wsabi]
    integral, error = proposal.mean_of(surrogate, X, log_p, *known)
    return _Models(log_unit, integral, error, wsabi, variance, uncertainty, log_unit + draws.log_cap)


def _log_capped_mean(log_ratio: Array) -> float:
    """log m for ratios r (N,), with m = mean of min(r, √N m): none is more than N^−½ of their sum.

    Where the k largest are held to b = √N m, and s_k is the sum of the others, kb + s_k = √N b. The first k will do
    whose b = s_k/(√N − k) is no less than any of the others. Up to N^¼ of them may be held: what more of them agree on
    is no accident, and then none is.
    """
    root = math.sqrt(len(log_ratio))
    ordered = np.sort(log_ratio)[::-1]
    k = np.arange(min(math.ceil(root), 1 + math.ceil(math.sqrt(root))))  # k < √N
    log_sums = np.logaddexp.accumulate(ordered[::-1])[::-1][: len(k)]
    log_caps = log_sums - np.log(root - k)
    enough = np.flatnonzero(ordered[: len(k)] <= log_caps)
    return float(log_caps[enough[0]]) - math.log(root) if len(enough) else float(log_sums[0]) - math.log(len(log_ratio))


def _usable_moments(regions: Regions, log_unit: float) -> tuple[float | None, float]:
    """The WSABI models' mean and variance of Z in units of exp(log_unit), or None where they are lost."""
    try:
        log_mean, log_var = regions.moments()
    except NumericalError:
        return None, 0.0
    far = not math.isfinite(log_mean) or abs(log_mean - log_unit) > TUNING.check.max_control_nats
    if far or log_var - 2.0 * log_mean > 0.0:  # a relative sd above one is no knowledge
        return None, 0.0
    return math.exp(log_mean - log_unit), math.exp(log_var - 2.0 * log_unit)


@dataclass(frozen=True)
class _Fresh:
    """The estimate from n check points in the models' units, its error, and what its weights look like.

    ``bounded`` is the same estimate with no residual above what :func:`_bound` allows the largest weight; ``noise`` is
    the error without what the points may not have met; ``is_plain`` where the models do harm as a control variate and
    were left out; ``misplaced`` is half the mean of |ℓπ − M|/(Z p) for the surrogate M, the share of the posterior
    that it has in wrong places.
    """

    n: int
    value: float
    bounded: float
    error: float
    noise: float
    share: float
    spread: float
    largest: float
    unmet: float
    tail: float
    effective_size: float
    is_plain: bool
    misplaced: float

    @property
    def scarcity(self) -> float:
        """Nats of doubt about a mean that rests on few points: 3/n_eff as the effective share falls from ⅕ to zero."""
        few = max(0.0, 1.0 - self.effective_size / (TUNING.check.even_share * self.n))
        return TUNING.check.scarce_nats * few / max(self.effective_size, 1.0)

    @property
    def can_stand_alone(self) -> bool:
        """Whether the points are enough, and their weights even enough, for their own standard error to be believed."""
        one = TUNING.check
        enough = max(one.enough_points, one.even_share * self.n)
        return self.effective_size >= enough and not self.tail > one.max_tail


def _overconfidence(crossfit: CrossFit, X: Array, log_l: Array, log_weights: Array) -> float:
    """By how much the surrogate's sds are too small, one at least: the root mean square of its errors in units of them.

    At points X (N, D) with log ℓ (N,) that it has not seen, weighted by log ℓπ/p (N,), so over its posterior.
    """
    if not np.any(np.isfinite(log_weights)):
        return 1.0
    w = truncated(log_weights)
    z = np.minimum(np.abs(crossfit.standard_errors(X, log_l)), TUNING.check.max_standard_error)
    return max(1.0, math.sqrt(float(w @ np.square(z)) / float(w.sum())))


def _surrogate_residuals(
    models: _Models,
    crossfit: CrossFit,
    draws: _Draws,
    X: Array,
    log_weights: Array,
    log_p: Array,
) -> Array:
    """(ℓπ − M)/p at points X (N, D) with log ℓπ/p (N,), less what the integral of M lacks to the models': (N,).

    M is the surrogate, of one integral, or without the point that it is compared with, of an integral for each; M/p is
    held to what it was held to in the integral. A surrogate may soar at the one point that it is not told of, as the
    one that is told of all does not: there M exceeds ℓπ by no more than :func:`_bound` allows.
    """
    true = _ratio(log_weights - models.log_unit)
    most = models.log_cap + draws.proposal.log_pdf(X)
    if crossfit.is_plain:
        return true - _ratio(np.minimum(crossfit.regions.surrogate(X)[0], most) - log_p - models.log_unit)
    own = np.minimum(np.diagonal(crossfit.without_each(X)), most)
    some, log_p_some = draws.X[: TUNING.check.draws], draws.log_p[: TUNING.check.draws]
    log_ratios = np.minimum(crossfit.without_each(some) - log_p_some, models.log_cap)
    integrals = draws.proposal.means_of(_ratio(log_ratios - models.log_unit), some, log_p_some)
    lacking = integrals[-1] - integrals[:-1]
    model = _ratio(own - log_p - models.log_unit)
    return np.asarray(np.maximum(true - model, -_bound(model)) - lacking)


def _fresh(
    models: _Models, regions: Regions, X: Array, log_weights: Array, log_p: Array, by_surrogate: Array
) -> _Fresh:
    """Z from points X (N, D) with log ℓπ/p (N,) and the surrogate's residuals (N,) there."""
    n = len(X)
    true = _ratio(log_weights - models.log_unit)
    residual = by_surrogate
    share = 0.0
    if models.wsabi is not None:
        by_wsabi = true - regions.control(X, log_p + models.log_unit)
        share = _best_share(by_wsabi, residual)
        residual = share * by_wsabi + (1.0 - share) * residual
    integral = models.combined(share, by_fresh=True)[0]
    unmet = models.unmet
    is_plain = bool(np.var(residual) > np.var(true))
    if is_plain:  # a control that does harm is left out: plain importance sampling
        residual, integral = true, 0.0
        unmet = min(
            unmet, TUNING.check.integral_error * float(np.mean(true))
        )  # nor is its size a measure of what was not met
    value = integral + float(np.mean(residual))
    bounded = integral + float(np.mean(np.minimum(residual, _bound(true))))
    # n − 3, not n − 1: the spread itself is estimated, and Student's t has a variance of (n − 1)/(n − 3). Residuals are
    # skewed, with a tail that n points may not have met: one more like the largest is allowed for.
    largest = float(np.max(np.abs(residual - residual.mean()))) / n
    spread = float(np.std(residual))
    noise = math.hypot(spread / math.sqrt(n - 3), largest)
    squares = float(np.square(true).sum())
    size = float(true.sum()) ** 2 / squares if squares > 0.0 else 0.0
    misplaced = 0.5 * float(np.mean(np.abs(by_surrogate))) / max(value, TUNING.check.min_integral)
    return _Fresh(
        n=n,
        value=value,
        bounded=bounded,
        error=math.hypot(noise, unmet),
        noise=noise,
        share=share,
        spread=spread,
        largest=largest,
        unmet=unmet,
        tail=pareto_k(log_weights),
        effective_size=size,
        is_plain=is_plain,
        misplaced=misplaced,
    )


def _caution(fresh: _Fresh, integral: float) -> float:
    """Nats by which neither estimate can be believed, beyond what a standard error can say.

    Half of their distance, less one nat, which the standard error holds by itself; and their scarcity: a mean that
    rests on one point is most likely far too low.
    """
    distance = abs(
        math.log(max(fresh.value, TUNING.check.min_integral)) - math.log(max(integral, TUNING.check.min_integral))
    )
    return math.hypot(TUNING.check.distance_share * max(0.0, distance - TUNING.check.free_distance), fresh.scarcity)


def _ratio(log_ratio: Array) -> Array:
    """exp, held to e¹⁰⁰: a model that far off is of no use, and its squares must not overflow."""
    return np.exp(np.minimum(log_ratio, TUNING.check.max_log_ratio))


def _bound(weights: Array) -> float:
    """What the largest of the weights (N,) may count for: as much as the next, or N^−½ of their sum as it then is.

    In the manner of truncated importance sampling (Ionides, 2008), but for one weight only: a point that stands alone
    may be the one in a thousand that falls where p hardly reaches; what two points agree on is no accident. With the
    largest at b, and s the sum of the others, b = (s + b)/√N.
    """
    ordered = np.sort(weights)
    return max(float(ordered[-2]), float(ordered[:-1].sum()) / (math.sqrt(len(weights)) - 1.0))


def _best_share(first: Array, second: Array) -> float:
    """a in [0, 1] that minimises the variance of a·first + (1 − a)·second, (N,) each."""
    gap = first - second
    spread = float(np.var(gap))
    if spread == 0.0:
        return 1.0
    return float(np.clip(-np.mean((second - second.mean()) * (gap - gap.mean())) / spread, 0.0, 1.0))
