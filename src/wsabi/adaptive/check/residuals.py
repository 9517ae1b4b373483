"""What the check points say: residuals of the controls there, and the unbiased estimate F of Z that follows from them.

With r_j = (ℓπ − M)(u_j)/p(u_j) at the check points u_j, drawn from p, and I the integral of M,

    F = I + mean r_j

is unbiased whatever M is, as long as M has not seen u_j. The spread of the residuals gives its standard error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.check.controls import Controls, Draws, exp_ratio
from wsabi.adaptive.check.crossfit import CrossFit
from wsabi.adaptive.check.pareto import pareto_k
from wsabi.adaptive.models import Models
from wsabi.adaptive.surrogate.students import truncated
from wsabi.adaptive.tuning import TUNING

__all__ = ["CheckEstimate", "checked", "overconfidence", "surrogate_residuals"]


@dataclass(frozen=True)
class CheckEstimate:
    """The estimate F of Z from n check points, in the unit of the controls, and what its weights look like.

    Attributes
    ----------
    value : F.
    bounded : F with no residual above what :func:`bound` allows the largest weight.
    noise : standard error of F by the residuals.
    patch_error : error of the surrogate in patches that no check point has met.
    share : weight a of the WSABI models in the control.
    spread : sd of the residuals.
    largest : distance of the most extreme residual from their mean, over n.
    tail : Pareto k of the weights ℓπ/p.
    effective_size : effective sample size of the weights.
    is_plain : whether the control does harm and was left out, so that F is plain importance sampling.
    misplaced : half the mean of |ℓπ − M|/(Z p) for the surrogate M, the share of the posterior that M has elsewhere.
    """

    n: int
    value: float
    bounded: float
    noise: float
    patch_error: float
    share: float
    spread: float
    largest: float
    tail: float
    effective_size: float
    is_plain: bool
    misplaced: float

    @property
    def error(self) -> float:
        """Error of F: that of the residuals, and that of patches which no check point has met."""
        return math.hypot(self.noise, self.patch_error)

    @property
    def scarcity(self) -> float:
        """Uncertainty in nats of a mean that rests on few points: 3/n_eff where the effective share is zero."""
        few = max(0.0, 1.0 - self.effective_size / (TUNING.check.even_share * self.n))
        return TUNING.check.scarce_nats * few / max(self.effective_size, 1.0)

    @property
    def can_stand_alone(self) -> bool:
        """Whether there are enough points of even enough weights that their own standard error can be believed."""
        numbers = TUNING.check
        enough = max(numbers.enough_points, numbers.even_share * self.n)
        return self.effective_size >= enough and not self.tail > numbers.max_tail


def checked(
    controls: Controls, crossfit: CrossFit, draws: Draws, X: Array, log_l: Array, log_p: Array
) -> tuple[Controls, CheckEstimate]:
    """The estimate from check points X (N, D) with log ℓ and log p (N,), and the controls as the points judge them."""
    log_weights = log_l + crossfit.regions.measure.log_pdf(X) - log_p
    controls = controls.in_units_of(log_weights)
    controls = replace(controls, overconfidence=overconfidence(crossfit, X, log_l, log_weights))
    by_surrogate = surrogate_residuals(controls, crossfit, draws, X, log_weights, log_p)
    return controls, _estimate(controls, crossfit.regions, X, log_weights, log_p, by_surrogate)


def overconfidence(crossfit: CrossFit, X: Array, log_l: Array, log_weights: Array) -> float:
    """Root mean square of the surrogate's errors in units of its predictive sds, and one at least.

    The errors are those at points X (N, D) with log ℓ (N,) that the surrogate has not seen. Their weights are log ℓπ/p
    (N,), truncated, so the mean is over the posterior.
    """
    if not np.any(np.isfinite(log_weights)):
        return 1.0
    w = truncated(log_weights)
    z = np.minimum(np.abs(crossfit.standard_errors(X, log_l)), TUNING.check.max_standard_error)
    return max(1.0, math.sqrt(float(w @ np.square(z)) / float(w.sum())))


def surrogate_residuals(
    controls: Controls,
    crossfit: CrossFit,
    draws: Draws,
    X: Array,
    log_weights: Array,
    log_p: Array,
) -> Array:
    """Residuals (N,) of the surrogate at points X (N, D) with log ℓπ/p (N,): (ℓπ − M)/p.

    If the surrogates have the check points as data, M is M₋j, the surrogate without point j, and its integral I₋j takes
    the place of I: the residual is (ℓπ − M₋j)/p − (I − I₋j). M/p has the same upper bound as in the integral. M₋j may
    be far too large at the one point that it was not given. There M₋j/p exceeds ℓπ/p by :func:`bound` at most.
    """
    true = exp_ratio(log_weights - controls.log_unit)
    most = controls.log_cap + draws.proposal.log_pdf(X)
    if crossfit.is_plain:
        return true - exp_ratio(np.minimum(crossfit.regions.surrogate(X)[0], most) - log_p - controls.log_unit)
    own = np.minimum(crossfit.without_own(X), most)
    some, log_p_some = draws.X[: TUNING.check.draws], draws.log_p[: TUNING.check.draws]
    log_ratios = np.minimum(crossfit.without_each(some) - log_p_some, controls.log_cap)
    integrals = draws.proposal.means_of(exp_ratio(log_ratios - controls.log_unit), some, log_p_some)
    lacking = np.zeros(len(X))
    lacking[crossfit.numbered] = integrals[-1] - integrals[:-1]
    model = exp_ratio(own - log_p - controls.log_unit)
    return np.asarray(np.maximum(true - model, -bound(model)) - lacking)


def _estimate(
    controls: Controls, regions: Models, X: Array, log_weights: Array, log_p: Array, by_surrogate: Array
) -> CheckEstimate:
    """F from points X (N, D) with log ℓπ/p (N,) and the surrogate's residuals (N,) there.

    A control whose residuals spread more than the weights themselves is left out.
    """
    n = len(X)
    true = exp_ratio(log_weights - controls.log_unit)
    share, residual = _chosen_residuals(controls, regions, X, log_p, true, by_surrogate)
    integral = controls.combined(share, checked=True)[0]
    patch_error = controls.patch_error
    is_plain = bool(np.var(residual) > np.var(true))
    if is_plain:
        residual, integral = true, 0.0
        # The size of a surrogate that was left out is no measure of the error; the mean of the weights is.
        patch_error = min(patch_error, TUNING.check.integral_error * float(np.mean(true)))
    value = integral + float(np.mean(residual))
    largest = float(np.max(np.abs(residual - residual.mean()))) / n
    spread = float(np.std(residual))
    return CheckEstimate(
        n=n,
        value=value,
        bounded=integral + float(np.mean(np.minimum(residual, bound(true)))),
        # n − 3, not n − 1: the spread is itself estimated, and Student's t has a variance of (n − 1)/(n − 3). Residuals
        # have a heavy tail that n points may not have met, so one more residual like the largest is allowed for.
        noise=math.hypot(spread / math.sqrt(n - 3), largest),
        patch_error=patch_error,
        share=share,
        spread=spread,
        largest=largest,
        tail=pareto_k(log_weights),
        effective_size=_effective_size(true),
        is_plain=is_plain,
        misplaced=0.5 * float(np.mean(np.abs(by_surrogate))) / max(value, TUNING.check.min_integral),
    )


def _chosen_residuals(
    controls: Controls, regions: Models, X: Array, log_p: Array, true: Array, by_surrogate: Array
) -> tuple[float, Array]:
    """The share a of WSABI in the control, and the residuals (N,) of that control, which spread least."""
    if controls.wsabi is None:
        return 0.0, by_surrogate
    by_wsabi = true - regions.control(X, log_p + controls.log_unit)
    share = _best_share(by_wsabi, by_surrogate)
    return share, share * by_wsabi + (1.0 - share) * by_surrogate


def _best_share(first: Array, second: Array) -> float:
    """The a in [0, 1] that minimises the variance of a·first + (1 − a)·second, (N,) each."""
    gap = first - second
    spread = float(np.var(gap))
    if spread == 0.0:
        return 1.0
    return float(np.clip(-np.mean((second - second.mean()) * (gap - gap.mean())) / spread, 0.0, 1.0))


def _effective_size(weights: Array) -> float:
    """(Σw)²/Σw², and zero without any weight."""
    squares = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0.0 else 0.0


def bound(weights: Array) -> float:
    """Upper bound on the largest of the weights (N,): the second largest, or N^−½ of their sum if that is more.

    This is truncated importance sampling (Ionides, 2008) for one weight only. A single large weight may come from a
    place where p is small, and be one in a thousand; two large weights agree. With the largest held to b, and s the sum
    of the others, b = (s + b)/√N.
    """
    ordered = np.sort(weights)
    return max(float(ordered[-2]), float(ordered[:-1].sum()) / (math.sqrt(len(weights)) - 1.0))
