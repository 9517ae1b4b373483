"""The combined estimate of Z: the models' integral and the check points, weighted by their precisions.

Points u_j are drawn from a density p of heavier tails than q, with a share of the prior. For any model M with known
integral I, fixed before the u_j are evaluated,

    Z = I + E_p[(ℓπ − M)/p]

so F = I + mean of (ℓπ − M)/p is unbiased. Its standard error is small where M is close to ℓπ. Two models are at hand:
the WSABI models and the surrogates of log ℓ (:mod:`wsabi.adaptive.check.controls`). M is their mean with weights a and
1 − a. The check points choose a, and whether there is a control at all, which costs F a bias of the order of its
variance (:mod:`wsabi.adaptive.check.residuals`). In the last estimate of a run the surrogates have the other check
points as data, and there is an M for every j (:mod:`wsabi.adaptive.check.crossfit`). No u_j is among the data of the
model that it checks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.check.controls import INTERIM, Controls, Effort, integrated
from wsabi.adaptive.check.crossfit import CrossFit
from wsabi.adaptive.check.proposal import Proposal
from wsabi.adaptive.check.residuals import CheckEstimate, checked
from wsabi.adaptive.models import Models
from wsabi.adaptive.tuning import TUNING
from wsabi.result import Certificate

__all__ = ["certify"]


def certify(
    regions: Models,
    proposal: Proposal,
    X: Array,
    log_l: Array,
    log_p: Array,
    rng: np.random.Generator,
    effort: Effort = INTERIM,
    crossfit: CrossFit | None = None,
    doubt: float | None = None,
) -> Certificate:
    """Combine the models' integral with the check points X (N, D), log ℓ (N,), drawn with log density log_p (N,).

    With a ``crossfit`` the models are those of its regions, whose surrogates have the check points as data. Fewer check
    points than ``min_points`` are not used. Without them ``doubt`` is the factor by which the surrogates underestimate
    their errors, where they are of points that the engine has not chosen; None where it has.
    """
    crossfit = CrossFit.without_any(regions, len(X)) if crossfit is None else crossfit
    controls, draws = integrated(crossfit.regions, proposal, effort, rng)
    check = None
    if len(X) >= TUNING.check.min_points:
        controls, check = checked(controls, crossfit, draws, X, log_l, log_p)
    share = controls.share_alone if check is None else check.share
    if check is None and doubt is not None:
        share, (integral, variance) = _of_any_points(replace(controls, overconfidence=doubt))
    else:
        integral, variance = controls.combined(share, checked=check is not None)
    combined = _combined(integral, variance, share, check)
    return _certificate(controls, check, share, integral, combined, len(X))


def _of_any_points(controls: Controls) -> tuple[float, tuple[float, float]]:
    """The share of WSABI, the models' integral I and its variance σ² where the points are not the engine's choice.

    σ² is at least (κ s I)², with s the surrogates' mean predictive sd of log ℓ and κ their overconfidence. Where the
    engine chooses the points that lessen s, a third of s is what the integral is wrong by; points of another kind may
    all lie on one side. Where κ s is small, the surrogates stand alone: evaluations that were left out have shown that
    they can be believed, and the WSABI models have no such proof.
    """
    sd = controls.overconfidence * controls.uncertainty
    if sd < TUNING.unasked.believed:
        return 0.0, (controls.surrogate, (sd * controls.surrogate) ** 2)
    integral, variance = controls.combined(controls.share_alone, checked=False)
    return controls.share_alone, (integral, max(variance, (sd * max(integral, controls.surrogate)) ** 2))


@dataclass(frozen=True)
class _Combined:
    """The combined estimate, in the unit of the controls.

    Attributes
    ----------
    value, variance : of the combined estimate.
    model_variance : σ² of the models' integral, raised to what the check points show.
    difference : distance of the two estimates, in sds.
    caution : nats that are added to the error bar because neither estimate can be believed.
    rests_on_points : whether the check points alone make the estimate.
    """

    value: float
    variance: float
    model_variance: float
    difference: float = 0.0
    caution: float = 0.0
    rests_on_points: bool = False


def _combined(integral: float, variance: float, share: float, check: CheckEstimate | None) -> _Combined:
    """I + τ(F' − I), with I the models' integral of variance σ², and F' the bounded estimate of the check points.

    The weight τ takes (``typical_error`` · σ)² as the variance of I, and the noise of F (:func:`_trust`). The reported
    variance takes all of σ², raised to what the residuals show, and all of the error of F. F' bounds the largest
    residual, because a single check point that p hardly reaches tells that something is there, but not how much.
    """
    if check is None:
        return _Combined(integral, variance, variance)
    numbers = TUNING.check
    gap = check.value - integral
    variance = max(variance, numbers.min_variance)
    difference = gap / math.hypot(check.error, math.sqrt(variance))
    trust = _trust(numbers.typical_error**2 * variance, gap, check.noise, integral)
    by_residuals = max(check.largest**2, (numbers.shared_error * check.spread) ** 2)
    variance = max(variance, gap**2 - check.error**2, by_residuals)
    is_useless = check.is_plain or math.sqrt(variance) > numbers.useful_share * max(integral, 0.0)
    if check.can_stand_alone and is_useless:
        # Models that do not know the integral say nothing about the error of a mean over points.
        return _Combined(check.value, check.noise**2, variance, difference, check.scarcity, rests_on_points=True)
    value = integral + trust * max(check.bounded - integral, min(gap, 0.0))
    by_precision = variance / (variance + check.error**2) * check.error**2
    # Patches that the surrogate has wrong are in both estimates, so their error does not average out.
    shared = ((1.0 - share) * check.patch_error) ** 2
    reported = max(by_precision, shared, _variance_by_gap(trust, gap, check.noise))
    return _Combined(value, reported, variance, difference, _caution(check, integral))


def _trust(variance: float, gap: float, error: float, integral: float) -> float:
    """Weight τ of an estimate with that error, ``gap`` away from a model's integral of that variance.

    τ = v/(v + error²),  v = max(variance, gap² − error² − (c² − 1) min(error, u·integral)²)

    with c = ``contradiction`` and u = ``useful_share``. A gap below c errors may be chance, and does not raise the
    variance of the model. An error above u of the integral counts as u of it: beside a useful model it is not chance.
    """
    excused = min(error, TUNING.check.useful_share * max(integral, 0.0))
    by_chance = error**2 + (TUNING.check.contradiction**2 - 1.0) * excused**2
    variance = max(variance, gap**2 - by_chance)
    return variance / (variance + error**2)


def _variance_by_gap(trust: float, gap: float, error: float) -> float:
    """Mean square error of I + τ(F − I) for an unbiased F of that error, ``gap`` away from I.

    The mean of gap² is the squared error of I plus error², so gap² − error² estimates the squared error of I.
    """
    return (1.0 - trust) ** 2 * max(gap**2 - error**2, 0.0) + (trust * error) ** 2


def _caution(check: CheckEstimate, integral: float) -> float:
    """Nats that are added to the error bar where a standard error cannot describe it.

    They are half of the distance of the two estimates, less one nat that the standard error holds, and the uncertainty
    of a mean that rests on few points, which is most likely far too low.
    """
    numbers = TUNING.check
    least = numbers.min_integral
    distance = abs(math.log(max(check.value, least)) - math.log(max(integral, least)))
    return math.hypot(numbers.distance_share * max(0.0, distance - numbers.free_distance), check.scarcity)


def _certificate(
    controls: Controls, check: CheckEstimate | None, share: float, integral: float, combined: _Combined, n: int
) -> Certificate:
    """The combined estimate as logs of Z, with both parts of it.

    The Monte Carlo error of the surrogate's integral is part of both estimates. A negative estimate says only that the
    models are of no use; it is reported as ``min_integral``.
    """
    uses_surrogate = check is None or not check.is_plain
    of_integral = (1.0 - share) * controls.surrogate_error * uses_surrogate
    variance, model_variance = combined.variance + of_integral**2, combined.model_variance
    log_unit, least = controls.log_unit, TUNING.check.min_integral
    value, integral = max(combined.value, least), max(integral, least)
    checked_value = math.nan if check is None else max(check.value, least)
    return Certificate(
        log_z=log_unit + math.log(value),
        log_z_std=math.hypot(math.sqrt(math.log1p(variance / value**2)), TUNING.search.resolution, combined.caution),
        model_log_z=log_unit + math.log(integral),
        model_log_z_std=math.sqrt(math.log1p(model_variance / integral**2)),
        check_log_z=log_unit + math.log(checked_value),
        check_log_z_std=math.inf if check is None else math.hypot(check.error, of_integral) / checked_value,
        difference=combined.difference,
        n_points=n,
        effective_sample_size=0.0 if check is None else check.effective_size,
        pareto_k=math.nan if check is None else check.tail,
        wsabi_share=share,
        uncertainty=controls.uncertainty,
        model_log_var=2.0 * log_unit + math.log(max(model_variance, TUNING.check.min_variance)),
        source="check points" if combined.rests_on_points else "models",
        misplaced=math.nan if check is None else check.misplaced,
    )
