"""Certify: an estimate of Z from fresh independent points that is unbiased whatever the model's faults.

Points u_j are drawn from a density p of heavier tails than q, with a share of the prior. For any function M with known
integral I, fixed before the u_j are seen,

    Z = I + E_p[(ℓπ − M)/p]

and the mean over j has an honest standard error, small where M is close to ℓπ. Two such M are at hand: the WSABI models
(I in closed form) and the explorers' surrogate of log ℓ (I by cheap Monte Carlo on the surrogate); M is the mean of the
two weighted a : 1 − a, with the a in [0, 1] whose residuals are smallest. The u_j never enter a model; they choose a, one
number, which costs the estimate a bias of the order of its variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

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
        constant = math.lgamma(0.5 * (DEGREES + dim)) - math.lgamma(0.5 * DEGREES) - 0.5 * dim * math.log(DEGREES * math.pi)
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

    The models' mean is taken as right to within σ, σ² = V (their own variance) + (difference of the two controls'
    integrals)²: two models built on different transforms agree only where both are right. The certificate's correction
    δ ± s is then weighed against it, after σ² has been raised to δ² − s² where the correction says that it was too small.

    Raises
    ------
    NumericalError
        If the models have no usable integral.
    """
    log_mean, log_var = regions.moments()
    variance = math.exp(min(log_var - 2.0 * log_mean, 700.0))  # all below is in units of the models' mean
    draws = proposal.sample(n_draws, rng)
    shift, shift_se = _surrogate_shift(regions, proposal, draws, log_mean)
    true = np.exp(np.minimum(log_l + regions.measure.log_pdf(X) - log_p - log_mean, 700.0))
    by_wsabi = true - regions.control(X, log_p + log_mean)
    by_surrogate = true - np.exp(np.minimum(regions.surrogate(X) - log_p - log_mean, 700.0))
    n = len(X)
    enough = n >= MIN_POINTS
    share_wsabi = _best_share(by_wsabi, by_surrogate) if enough else 1.0
    residual = share_wsabi * by_wsabi + (1.0 - share_wsabi) * by_surrogate
    integral = 1.0 + (1.0 - share_wsabi) * shift
    delta = float(np.mean(residual)) if enough else 0.0
    # (n − 1)/(n − 3) is the variance of Student's t: the spread itself is estimated from n points.
    standard_error = float(np.std(residual)) / math.sqrt(n - 3) if enough else math.inf
    standard_error = math.hypot(standard_error, (1.0 - share_wsabi) * shift_se)
    misfit = variance + shift**2
    if enough:
        misfit = max(misfit, delta**2 - standard_error**2)
        share = misfit / (misfit + standard_error**2) if misfit > 0.0 else 0.0
        combined, combined_variance = integral + share * delta, share * standard_error**2
    else:
        combined, combined_variance = 1.0, misfit
    combined = max(combined, 1e-3)  # a correction to below nothing says only that the models are of no use
    weights = np.log(np.maximum(true, 1e-300))
    total = float(true.sum())
    return Certificate(
        log_z=log_mean + math.log(combined),
        log_z_std=math.sqrt(math.log1p(combined_variance / combined**2)),
        model_log_z=log_mean + math.log(max(integral, 1e-300)),
        model_log_z_std=math.sqrt(math.log1p(misfit)),
        fresh_log_z=log_mean + math.log(max(integral + delta, 1e-300)) if enough else math.nan,
        fresh_log_z_std=standard_error / max(integral + delta, 1e-3) if enough else math.inf,
        difference=delta / standard_error if enough and standard_error > 0.0 else 0.0,
        n_points=n,
        effective_sample_size=total**2 / float(np.square(true).sum()) if total > 0.0 else 0.0,
        pareto_k=pareto_k(weights),
        wsabi_share=share_wsabi,
        model_log_mean=log_mean,
        model_log_var=log_var,
    )


def _best_share(first: Array, second: Array) -> float:
    """a in [0, 1] that minimises the variance of a·first + (1 − a)·second, (N,) each."""
    gap = first - second
    spread = float(np.var(gap))
    if spread == 0.0:
        return 1.0
    return float(np.clip(-np.mean((second - second.mean()) * (gap - gap.mean())) / spread, 0.0, 1.0))


def _surrogate_shift(regions: Regions, proposal: Proposal, draws: Array, log_mean: float) -> tuple[float, float]:
    """Integral of the log-surrogate's ℓπ less the models', over the models', and its Monte Carlo error."""
    log_p = proposal.log_pdf(draws)
    difference = np.exp(np.minimum(regions.surrogate(draws) - log_p - log_mean, 700.0))
    difference -= regions.control(draws, log_p + log_mean)
    return float(np.mean(difference)), float(np.std(difference)) / math.sqrt(len(draws))
