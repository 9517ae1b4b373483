"""Certify: an estimate of Z from fresh independent points that is unbiased whatever the model's faults.

Points u_j are drawn from a density p of heavier tails than q, with a share of the prior. For any function M with known
integral I, fixed before the u_j are seen,

    Z = I + E_p[(ℓπ − M)/p]

and the mean over j has an honest standard error, small where M is close to ℓπ. Two such M are at hand: the WSABI models
(I in closed form) and the explorers' surrogate of log ℓ (I by cheap Monte Carlo on the surrogate); M is the mean of
the two weighted a : 1 − a, with the a in [0, 1] whose residuals are smallest. The u_j never enter a model; they choose
a, one number, which costs the estimate a bias of the order of its variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wsabi._linalg import NumericalError
from wsabi._types import Array
from wsabi.engine.regions import Regions
from wsabi.measures import Measure
from wsabi.result import Certificate

__all__ = ["Proposal", "certify", "pareto_k"]

PRIOR_SHARE = 0.1  # of the draws come from the prior itself: what lies outside every region is looked at too
RESOLUTION = 1e-3  # nats: the surrogate's own noise on log ℓ (explorer.fit), below which nothing is claimed
MIN_POINTS = 8  # fresh points below which they have no say: the standard error of a mean of fewer is itself a guess
DEGREES = 5.0  # of freedom of the Student components: tails heavier than any Gaussian's, with four moments


@dataclass(frozen=True)
class Proposal:
    """p = 0.1 π + 0.9 Σ w_k t₅(u; μ_k, Σ_k), the density of the certificate's points."""

    measure: Measure
    regions: Regions

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """n draws, (n, D)."""
        parts = self.regions.parts
        shares = np.append((1 - PRIOR_SHARE) * self.regions.weights, PRIOR_SHARE)
        labels = rng.choice(len(shares), size=n, p=shares / shares.sum())
        X = self.measure.sample(n, rng)
        noise = rng.standard_normal(X.shape) * np.sqrt(DEGREES / rng.chisquare(DEGREES, n))[:, None]
        for k, part in enumerate(parts):
            X[labels == k] = part.frame.colour(noise[labels == k])
        return X

    def log_pdf(self, X: Array) -> Array:
        """log p, (N,)."""
        dim = X.shape[1]
        constant = (
            math.lgamma(0.5 * (DEGREES + dim)) - math.lgamma(0.5 * DEGREES) - 0.5 * dim * math.log(DEGREES * math.pi)
        )
        terms = [math.log(PRIOR_SHARE) + self.measure.log_pdf(X)]
        for part in self.regions.parts:
            log_t = constant - part.frame.log_det
            log_t = log_t - 0.5 * (DEGREES + dim) * np.log1p(np.square(part.radius(X)) / DEGREES)
            terms.append(math.log(1 - PRIOR_SHARE) + part.log_weight + log_t)
        return np.asarray(np.logaddexp.reduce(terms, axis=0))


def pareto_k(log_weights: Array) -> float:
    """Shape k of a generalised Pareto fitted to the largest weights (PSIS); NaN below 25 weights.

    Notes
    -----
    Zhang & Stephens' (2009) posterior mean over a grid of the profile likelihood, for the M = min(N/5, 3√N) largest
    weights, pulled to ½ by a weak prior worth ten observations as in Vehtari et al. (2024). Below 0.5 the variance of
    the mean is finite; above 0.7 neither the mean nor its standard error can be trusted.
    """
    n = len(log_weights)
    if n < 25:
        return math.nan
    tail = math.ceil(min(0.2 * n, 3.0 * math.sqrt(n)))
    if not np.any(np.isfinite(log_weights)):
        return math.nan
    ordered = np.sort(np.exp(log_weights - np.max(log_weights)))
    excess = ordered[-tail:] - ordered[-tail - 1]
    excess = excess[excess > 0.0]
    if len(excess) < 5:
        return 0.0  # all but equal weights have no tail
    m = len(excess)
    grid = np.arange(1, 31 + int(math.sqrt(m)))
    quartile = excess[max(int(m / 4 + 0.5) - 1, 0)]
    b = 1.0 / excess[-1] + (1.0 - np.sqrt((grid[-1] + 1) / (grid - 0.5))) / (3.0 * quartile)
    k = np.array([np.mean(np.log1p(-value * excess)) for value in b])
    log_likelihood = m * (np.log(-b / k) - k - 1.0)
    weight = np.exp(log_likelihood - np.max(log_likelihood))
    best = float(weight @ b / weight.sum())
    shape = float(np.mean(np.log1p(-best * excess)))
    return (m * shape + 10.0 * 0.5) / (m + 10.0)


def certify(
    regions: Regions,
    proposal: Proposal,
    X: Array,
    log_l: Array,
    log_p: Array,
    rng: np.random.Generator,
    n_draws: int,
) -> Certificate:
    """Combine the models' integral with the fresh points X (N, D), log ℓ (N,), drawn with log density log_p (N,).

    The models' mean is taken as right to within σ, σ² = V (their own variance) + (the other surrogate's integral less
    theirs)²: two models built on different transforms agree only where both are right. It is weighed against the fresh
    estimate F ± s by precision, after V has been multiplied by how much larger the models' residuals at the fresh
    points are than they predicted, and σ² raised to (F − mean)² − s² where F says that it was too small, and by the
    error of plain importance sampling where heavy-tailed weights say that q misses part of the mass.
    """
    draws = proposal.sample(n_draws, rng)
    log_weights = log_l + regions.measure.log_pdf(X) - log_p
    models = _models(regions, draws, proposal.log_pdf(draws), _usable_moments(regions))
    fresh = _fresh(models, regions, X, log_weights, log_p)
    if models.uneven and fresh is not None and fresh.contradiction > 3.0:
        models = _models(regions, draws, proposal.log_pdf(draws), _explorers_mass(regions))
        fresh = _fresh(models, regions, X, log_weights, log_p)
    sigma2 = models.variance + models.misfit**2
    combined, variance = models.integral, sigma2
    if fresh is not None:
        gap = fresh.value - models.integral
        sigma2 += (fresh.surprise - 1.0) * models.variance
        sigma2 = max(sigma2 + fresh.distrust**2, gap**2 - fresh.error**2, fresh.largest**2)
        trust = sigma2 / (sigma2 + fresh.error**2)
        combined, variance = models.integral + trust * gap, trust * fresh.error**2
    combined = max(combined, 1e-3)  # a correction to below nothing says only that the models are of no use
    log_unit = models.log_unit
    return Certificate(
        log_z=log_unit + math.log(combined),
        log_z_std=math.hypot(math.sqrt(math.log1p(variance / combined**2)), RESOLUTION),
        model_log_z=log_unit,
        model_log_z_std=math.sqrt(math.log1p(sigma2)),
        fresh_log_z=math.nan if fresh is None else log_unit + math.log(max(fresh.value, 1e-3)),
        fresh_log_z_std=math.inf if fresh is None else fresh.error / max(fresh.value, 1e-3),
        difference=0.0 if fresh is None else (fresh.value - 1.0) / math.hypot(fresh.error, math.sqrt(models.variance)),
        n_points=len(X),
        effective_sample_size=0.0 if fresh is None else fresh.effective_size,
        pareto_k=math.nan if fresh is None else fresh.tail,
        wsabi_share=1.0 if fresh is None else fresh.share,
        model_log_var=2.0 * log_unit + math.log(max(models.variance, 1e-300)),
    )


@dataclass(frozen=True)
class _Models:
    """Integrals of the two controls in units of exp(log_unit), the WSABI models' mean.

    Where that mean is of no use the unit is the explorers' mass, the models' control and integral are zero, and the
    variance is large.
    """

    log_unit: float
    integral: float
    variance: float
    misfit: float
    lower: float
    lower_error: float
    lower_usable: bool
    uneven: bool  # few draws hold most of the WSABI control: a few data in q's tail may be all it is made of

    def control(self, regions: Regions, X: Array, log_p: Array) -> Array:
        """The WSABI control over p, (N,)."""
        return self.integral * regions.control(X, log_p + self.log_unit)


def _models(regions: Regions, draws: Array, log_p: Array, moments: tuple[float, float, float]) -> _Models:
    """Integrals of the controls: WSABI's in closed form, the surrogate's and its lower bound's by draws (M, D) of p.

    What is averaged over the draws is the difference to WSABI's integrand, whose integral is known, so that the Monte
    Carlo error is of the difference alone. A control is left out where its integral is not to be believed: where
    WSABI's closed form disagrees with the draws, as weights of both signs that have grown huge may integrate to
    anything; where few of the draws hold all of the surrogate, which the still fewer fresh points would not meet.
    """
    n = len(draws)
    log_mean, log_lower = regions.surrogate(draws)
    log_unit, variance, integral = moments
    wsabi = integral * regions.control(draws, log_p + log_unit)
    noise = float(np.std(wsabi)) / math.sqrt(n)
    if abs(float(np.mean(wsabi)) - integral) > 0.2 + 5.0 * noise:
        log_unit, variance, integral = _explorers_mass(regions)
        wsabi = np.zeros(n)
    mean, lower = (_ratio(log_pi - log_p - log_unit) - wsabi for log_pi in (log_mean, log_lower))
    return _Models(
        log_unit=log_unit,
        integral=integral,
        variance=variance,
        misfit=float(np.mean(mean)),
        lower=integral + float(np.mean(lower)),
        lower_error=float(np.std(lower)) / math.sqrt(n),
        lower_usable=_is_even(log_lower - log_p),
        uneven=integral > 0.0 and not _is_even(np.log(np.maximum(wsabi, 1e-300))),
    )


def _usable_moments(regions: Regions) -> tuple[float, float, float]:
    """log of the WSABI models' mean, their variance in its units, and one; or the explorers' mass where it is lost."""
    try:
        log_mean, log_var = regions.moments()
    except NumericalError:
        return _explorers_mass(regions)
    if not math.isfinite(log_mean) or log_var - 2.0 * log_mean > 0.0:  # a relative sd above one is no knowledge
        return _explorers_mass(regions)
    return log_mean, math.exp(log_var - 2.0 * log_mean), 1.0


def _explorers_mass(regions: Regions) -> tuple[float, float, float]:
    return float(np.logaddexp.reduce([part.explorer.log_z for part in regions.parts])), 1.0, 0.0


@dataclass(frozen=True)
class _Fresh:
    """The estimate from fresh points in the models' units, its error, and what its weights look like.

    ``surprise`` is the mean square of the WSABI models' residuals over what they predicted, one at the least;
    ``contradiction`` the distance of the estimate from plain importance sampling, in standard errors of the two.
    """

    value: float
    error: float
    share: float
    largest: float
    distrust: float
    surprise: float
    contradiction: float
    tail: float
    effective_size: float


def _fresh(models: _Models, regions: Regions, X: Array, log_weights: Array, log_p: Array) -> _Fresh | None:
    """Z from points X (N, D) with log ℓπ/p (N,), or None where they are too few."""
    n = len(X)
    if n < MIN_POINTS:
        return None
    true = _ratio(log_weights - models.log_unit)
    by_wsabi = true - models.control(regions, X, log_p)
    by_surrogate = true - _ratio(regions.surrogate(X)[1] - log_p - models.log_unit)
    share = _best_share(by_wsabi, by_surrogate) if models.lower_usable else 1.0
    residual = share * by_wsabi + (1.0 - share) * by_surrogate
    value = share * models.integral + (1.0 - share) * models.lower + float(np.mean(residual))
    # n − 3, not n − 1: the spread itself is estimated, and Student's t has a variance of (n − 1)/(n − 3). Residuals are
    # skewed, with a tail that n points may not have met: one more like the largest is allowed for.
    largest = float(np.max(np.abs(residual - residual.mean()))) / n
    error = math.hypot(float(np.std(residual)) / math.sqrt(n - 3), largest, (1.0 - share) * models.lower_error)
    if models.lower_usable:
        error = math.hypot(error, _excess_gap(models, by_wsabi, by_surrogate))
    # Heavy-tailed weights say that p misses part of the mass, where no residual was seen: the control variate then
    # earns no trust, and the error is that of plain importance sampling.
    tail = pareto_k(log_weights)
    predicted = float(np.mean(models.integral**2 * regions.control_variance(X, log_p + models.log_unit)))
    surprise = max(1.0, float(np.mean(np.square(by_wsabi))) / predicted) if predicted > 0.0 else 1.0
    distrust = _distrust(tail) * float(np.std(true)) / math.sqrt(n - 3)
    plain_error = math.hypot(float(np.std(true)), float(np.max(true)) / math.sqrt(n)) / math.sqrt(n - 3)
    gap = abs(value - float(np.mean(true)))
    contradiction = gap / math.hypot(error, plain_error) if gap > 0.0 else 0.0
    squares = float(np.square(true).sum())
    size = float(true.sum()) ** 2 / squares if squares > 0.0 else 0.0
    return _Fresh(value, math.hypot(error, distrust), share, largest, distrust, surprise, contradiction, tail, size)


def _excess_gap(models: _Models, by_wsabi: Array, by_surrogate: Array) -> float:
    """How much farther apart the estimates with either control alone are than their errors allow.

    Both are unbiased, so they may differ by chance only; where they do by more, the fresh points have not met what one
    of the controls lacks, and the spread of its residuals says nothing about it.
    """
    gap = models.integral + float(np.mean(by_wsabi)) - models.lower - float(np.mean(by_surrogate))
    chance = (float(np.var(by_wsabi)) + float(np.var(by_surrogate))) / (len(by_wsabi) - 3) + models.lower_error**2
    return math.sqrt(max(0.0, gap**2 - chance))


def _is_even(log_weights: Array) -> bool:
    """Whether the mean of exp(log_weights) (N,) rests on many of them: Pareto k below 0.7."""
    return pareto_k(log_weights) < 0.7


def _distrust(k: float) -> float:
    """From zero at Pareto k = 0.4 to one at 0.7, the usual limit of importance sampling; zero where k is not known."""
    return 0.0 if math.isnan(k) else min(1.0, max(0.0, (k - 0.4) / 0.3))


def _ratio(log_ratio: Array) -> Array:
    """exp, held to e¹⁰⁰: a model that far off is of no use, and its squares must not overflow."""
    return np.exp(np.minimum(log_ratio, 100.0))


def _best_share(first: Array, second: Array) -> float:
    """a in [0, 1] that minimises the variance of a·first + (1 − a)·second, (N,) each."""
    gap = first - second
    spread = float(np.var(gap))
    if spread == 0.0:
        return 1.0
    return float(np.clip(-np.mean((second - second.mean()) * (gap - gap.mean())) / spread, 0.0, 1.0))
