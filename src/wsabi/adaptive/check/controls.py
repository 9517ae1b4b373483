"""The two control variates, and their integrals: the WSABI models in closed form, the surrogates by draws.

Both are models M of ℓπ whose integral over the prior is known without an evaluation of the likelihood. The WSABI models
integrate in closed form. The surrogates of log ℓ are integrated by draws of the proposal p, ∫ M = E_p[M/p], with the
components of p as control variates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.check.proposal import Proposal
from wsabi.adaptive.models import Models
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import NumericalError

__all__ = ["FINAL", "INTERIM", "Controls", "Draws", "Effort", "controls_of", "exp_ratio", "integrated"]


@dataclass(frozen=True)
class Controls:
    """Integrals of the two controls, in units of exp(log_unit).

    Attributes
    ----------
    surrogate, surrogate_error : integral of the surrogates, and its Monte Carlo error.
    wsabi, wsabi_variance : mean and variance of Z by the WSABI models; None where these cannot be used.
    uncertainty : predictive sd of log ℓ, averaged over the posterior of the surrogates.
    log_cap : upper bound on log M/p of the surrogates, as it was applied in the integral.
    overconfidence : factor by which the check points found the predictive sds too small, at least one.
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
    def patch_error(self) -> float:
        """Error of the surrogate in patches that no check point has met, as an error of the integral."""
        numbers = TUNING.check
        sd = min(self.uncertainty * min(self.overconfidence, numbers.max_overconfidence), 1.0)
        return numbers.integral_error * sd * self.surrogate

    @property
    def min_error(self) -> float:
        """The least error bar that the surrogate's integral can have."""
        return max(TUNING.search.resolution, TUNING.check.integral_error * self.uncertainty) * self.surrogate

    @property
    def share_alone(self) -> float:
        """Weight of the WSABI models without check points: one where they have the smaller error, else zero."""
        by_surrogate = TUNING.check.integral_error * self.uncertainty * self.surrogate
        return float(self.wsabi is not None and math.sqrt(self.wsabi_variance) < by_surrogate)

    def in_units_of(self, log_weights: Array) -> Controls:
        """The same in units of the mean of log ℓπ/p (N,), where the models lie far below the check points."""
        short = float(np.logaddexp.reduce(log_weights)) - math.log(len(log_weights)) - self.log_unit
        if not short > TUNING.check.unit_shift:
            return self
        less = math.exp(-short) * self.surrogate
        unit = self.log_unit + short
        return replace(self, log_unit=unit, surrogate=less, surrogate_error=0.0, wsabi=None, wsabi_variance=0.0)

    def combined(self, share: float, *, checked: bool) -> tuple[float, float]:
        """Integral I of the control with that share a of WSABI, and the models' variance σ² of Z about it.

        σ² = a² V_wsabi + ((1 − a) e κ s I_s)² + (1 − c)(I_wsabi − I_s)²

        with s the uncertainty, κ the overconfidence, e = ``integral_error``, and I_s the surrogate's integral. The two
        models rest on different transforms, and agree only where both are right. Where check points have chosen one of
        the two, their distance is the other one's error: c = 1 − 4a(1 − a) with check points, and 0 without.
        """
        wsabi = self.surrogate if self.wsabi is None else self.wsabi
        by_surrogate = TUNING.check.integral_error * self.uncertainty * self.overconfidence * self.surrogate
        own = share**2 * self.wsabi_variance + ((1.0 - share) * by_surrogate) ** 2
        chosen = 1.0 - (2.0 * share) * (2.0 * (1.0 - share)) if checked else 0.0
        distance = (wsabi - self.surrogate) ** 2
        return share * wsabi + (1.0 - share) * self.surrogate, own + (1.0 - chosen) * distance


@dataclass(frozen=True)
class Draws:
    """X (N, D), drawn from a proposal: their log density, log ℓπ by the surrogate there and its sd, (N,) each."""

    proposal: Proposal
    X: Array
    log_p: Array
    log_m: Array
    sd: Array

    @classmethod
    def of(cls, proposal: Proposal, regions: Models, n: int, rng: np.random.Generator) -> Draws:
        """N = n draws."""
        X = proposal.sample(n, rng)
        return cls(proposal, X, proposal.log_pdf(X), *regions.surrogate(X))

    def followed_by(self, more: Draws) -> Draws:
        """These draws and more of the same proposal."""
        both = [
            np.concatenate(pair)
            for pair in [(self.X, more.X), (self.log_p, more.log_p), (self.log_m, more.log_m), (self.sd, more.sd)]
        ]
        return Draws(self.proposal, *both)

    @property
    def n(self) -> int:
        """N."""
        return len(self.X)

    @property
    def log_cap(self) -> float:
        """log √N: upper bound on M/p in units of its mean, so that no draw has more than N^−½ of the integral.

        This is truncated importance sampling (Ionides, 2008). Where p is small there are no data, and a large value of
        the surrogate there is mostly an extrapolation.
        """
        return 0.5 * math.log(self.n)


@dataclass(frozen=True)
class Effort:
    """How many draws integrate the surrogate: few for the interim estimates of a run, many for its last one.

    The integral starts with ``draws``. More draws are made until its error is below ``tolerable`` or there are
    ``most``. If its error then exceeds ``refine``, it is done again with a proposal that follows the surrogate more
    closely. Both errors are in units of the least error bar of the integral.
    """

    final: bool

    @property
    def draws(self) -> int:
        """Number of draws to start with."""
        return TUNING.check.draws if self.final else TUNING.check.draws // TUNING.check.draws_factor

    @property
    def most(self) -> int:
        """Largest number of draws."""
        return TUNING.check.draws * TUNING.check.draws_factor if self.final else TUNING.check.draws

    @property
    def tolerable(self) -> float:
        """Error above which more draws are made."""
        return TUNING.check.final_tolerance if self.final else TUNING.check.interim_tolerance

    @property
    def refine(self) -> float:
        """Error above which the proposal is refined."""
        return TUNING.check.final_refinement if self.final else TUNING.check.interim_refinement

    def draws_after(self, n: int, controls: Controls) -> int:
        """Number of draws wanted after n: the error falls as 1/√n, so n (error/tolerable)², and some to spare."""
        numbers = TUNING.check
        ratio = min(controls.surrogate_error / (self.tolerable * controls.min_error), numbers.max_shortfall)
        return min(self.most, max(int(numbers.min_growth * n), int(numbers.spare_growth * n * ratio**2)))


INTERIM = Effort(final=False)
FINAL = Effort(final=True)


def integrated(regions: Models, proposal: Proposal, effort: Effort, rng: np.random.Generator) -> tuple[Controls, Draws]:
    """Integrals of both controls, by as many draws as the effort asks for, and those draws."""
    draws = Draws.of(proposal, regions, effort.draws, rng)
    controls = controls_of(regions, draws)
    while controls.surrogate_error > effort.tolerable * controls.min_error and draws.n < effort.most:
        more = effort.draws_after(draws.n, controls) - draws.n
        draws = draws.followed_by(Draws.of(proposal, regions, more, rng))
        controls = controls_of(regions, draws)
    if controls.surrogate_error > effort.refine * controls.min_error:
        draws = Draws.of(proposal.refined(lambda X: regions.surrogate(X)[0], rng), regions, draws.n, rng)
        controls = controls_of(regions, draws)
    return controls, draws


def controls_of(regions: Models, draws: Draws) -> Controls:
    """Integrals of the controls: that of WSABI in closed form, that of the surrogate by draws of p.

    M/p of the surrogate is held to √N times its mean. WSABI's integrand, less its integral, is one more control variate
    for the surrogate's integral.
    """
    proposal, X, log_p = draws.proposal, draws.X, draws.log_p
    log_ratio = draws.log_m - log_p
    log_unit = _log_capped_mean(log_ratio)
    if not math.isfinite(log_unit):
        log_unit = regions.log_mass
    surrogate = exp_ratio(np.minimum(log_ratio - log_unit, draws.log_cap))
    total = float(surrogate.sum())
    uncertainty = float(surrogate @ draws.sd) / total if total > 0.0 else TUNING.check.unknown_sd
    wsabi, variance, known = _usable_wsabi(regions, draws, log_unit)
    integral, error = proposal.mean_of(surrogate, X, log_p, *known)
    return Controls(log_unit, integral, error, wsabi, variance, uncertainty, log_unit + draws.log_cap)


def _usable_wsabi(regions: Models, draws: Draws, log_unit: float) -> tuple[float | None, float, list[Array]]:
    """WSABI's mean and variance of Z, and its integrand over p less its integral; None, 0 and none if not usable.

    The models are not used where their closed form disagrees with the mean of their integrand over the draws: large
    weights of both signs may integrate to anything. Nor are they used where that mean has a large error: what thousands
    of draws cannot integrate, tens of check points cannot check.
    """
    wsabi, variance = _usable_moments(regions, log_unit)
    if wsabi is None:
        return None, variance, []
    numbers = TUNING.check
    integrand = regions.control(draws.X, draws.log_p + log_unit)
    mean, error = draws.proposal.mean_of(integrand, draws.X, draws.log_p)
    allowed = numbers.max_control_gap * wsabi + numbers.max_control_sds * error
    if error > numbers.max_control_noise * wsabi or abs(mean - wsabi) > allowed:
        return None, 0.0, []
    return wsabi, variance, [integrand - wsabi]


def _usable_moments(regions: Models, log_unit: float) -> tuple[float | None, float]:
    """The WSABI models' mean and variance of Z in units of exp(log_unit), or None where they are lost.

    They count as lost if they are far from the unit, or if their relative sd exceeds one.
    """
    try:
        log_mean, log_var = regions.moments()
    except NumericalError:
        return None, 0.0
    far = not math.isfinite(log_mean) or abs(log_mean - log_unit) > TUNING.check.max_control_nats
    if far or log_var - 2.0 * log_mean > 0.0:
        return None, 0.0
    return math.exp(log_mean - log_unit), math.exp(log_var - 2.0 * log_unit)


def _log_capped_mean(log_ratio: Array) -> float:
    """log m for ratios r (N,), with m = mean of min(r, √N m): no ratio is more than N^−½ of their sum.

    If the k largest are held to b = √N m, and s_k is the sum of the others, then k b + s_k = √N b. The solution has the
    first k for which b = s_k/(√N − k) is no less than any of the others. At most N^¼ ratios may be held. Where more of
    them exceed the bound, many draws agree on the mass there, and none is held.
    """
    root = math.sqrt(len(log_ratio))
    ordered = np.sort(log_ratio)[::-1]
    k = np.arange(min(math.ceil(root), 1 + math.ceil(math.sqrt(root))))  # k < √N
    log_sums = np.logaddexp.accumulate(ordered[::-1])[::-1][: len(k)]
    log_caps = log_sums - np.log(root - k)
    enough = np.flatnonzero(ordered[: len(k)] <= log_caps)
    return float(log_caps[enough[0]]) - math.log(root) if len(enough) else float(log_sums[0]) - math.log(len(log_ratio))


def exp_ratio(log_ratio: Array) -> Array:
    """exp of log ratios (N,), of at most ``max_log_ratio`` each, so that no square overflows."""
    return np.exp(np.minimum(log_ratio, TUNING.check.max_log_ratio))
