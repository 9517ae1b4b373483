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
    estimate F ± s by precision, after σ² has been raised to (F − mean)² − s² where F says that it was too small.
    """
    log_mean, log_var = _usable_moments(regions)
    # All below is in units of the models' mean.
    variance = math.exp(min(log_var - 2.0 * log_mean, 100.0))
    misfit, lower, lower_se = _surrogate_integrals(regions, proposal, rng, n_draws, log_mean)
    sigma2 = variance + misfit**2
    n = len(X)
    true = _ratio(log_l + regions.measure.log_pdf(X) - log_p - log_mean)
    fresh, fresh_se, share = math.nan, math.inf, 1.0
    if n >= MIN_POINTS:
        by_wsabi = true - regions.control(X, log_p + log_mean)
        by_surrogate = true - _ratio(regions.surrogate(X)[1] - log_p - log_mean)
        share = _best_share(by_wsabi, by_surrogate)
        residual = share * by_wsabi + (1.0 - share) * by_surrogate
        fresh = share + (1.0 - share) * lower + float(np.mean(residual))
        # n − 3, not n − 1: the spread itself is estimated, and Student's t has a variance of (n − 1)/(n − 3). Residuals
        # are skewed, with a tail that n points may not have met: one more like the largest is allowed for.
        largest = float(np.max(np.abs(residual - residual.mean()))) / n
        fresh_se = math.hypot(float(np.std(residual)) / math.sqrt(n - 3), largest, (1.0 - share) * lower_se)
        sigma2 = max(sigma2, (fresh - 1.0) ** 2 - fresh_se**2)
    trust = sigma2 / (sigma2 + fresh_se**2) if math.isfinite(fresh_se) else 0.0
    combined = 1.0 + (trust * (fresh - 1.0) if trust else 0.0)
    combined_variance = trust * fresh_se**2 if trust else sigma2
    combined = max(combined, 1e-3)  # a correction to below nothing says only that the models are of no use
    total = float(true.sum())
    return Certificate(
        log_z=log_mean + math.log(combined),
        log_z_std=math.sqrt(math.log1p(combined_variance / combined**2)),
        model_log_z=log_mean,
        model_log_z_std=math.sqrt(math.log1p(sigma2)),
        fresh_log_z=log_mean + math.log(max(fresh, 1e-3)) if n >= MIN_POINTS else math.nan,
        fresh_log_z_std=fresh_se / max(fresh, 1e-3) if n >= MIN_POINTS else math.inf,
        difference=(fresh - 1.0) / math.sqrt(fresh_se**2 + variance) if n >= MIN_POINTS else 0.0,
        n_points=n,
        effective_sample_size=total**2 / float(np.square(true).sum()) if total > 0.0 else 0.0,
        pareto_k=pareto_k(np.log(np.maximum(true, 1e-300))),
        wsabi_share=share,
        model_log_var=log_var,
    )


def _usable_moments(regions: Regions) -> tuple[float, float]:
    """log mean and log variance of the models; where they have none, the explorers' mass, with no claim to it."""
    try:
        log_mean, log_var = regions.moments()
    except NumericalError:
        log_mean = log_var = -math.inf
    if math.isfinite(log_mean):
        return log_mean, log_var
    log_mass = float(np.logaddexp.reduce([part.explorer.log_z for part in regions.parts]))
    return log_mass, 2.0 * log_mass + 100.0


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


def _surrogate_integrals(
    regions: Regions, proposal: Proposal, rng: np.random.Generator, n: int, log_mean: float
) -> tuple[float, float, float]:
    """By n draws: the log-surrogate's integral less the models', its lower bound's integral, and the error of that.

    In units of the models' integral. What is averaged is the difference to the models' integrand, whose integral is
    known, so the Monte Carlo error is of the difference alone.
    """
    draws = proposal.sample(n, rng)
    log_p = proposal.log_pdf(draws) + log_mean
    mean, lower = (_ratio(log_pi - log_p) for log_pi in regions.surrogate(draws))
    models = regions.control(draws, log_p)
    return (
        float(np.mean(mean - models)),
        1.0 + float(np.mean(lower - models)),
        float(np.std(lower - models)) / math.sqrt(n),
    )
