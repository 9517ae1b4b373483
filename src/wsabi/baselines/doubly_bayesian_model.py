"""The model of doubly-Bayesian quadrature: a GP on ℓ, a GP on its logarithm, and the difference between them.

With ℓ scaled to a maximum of one, t = log(1 + ℓ/γ) has a GP with mean m_t and covariance C_t. To first order about m_t,

    ℓ = γ(eᵗ − 1) ≈ γ(exp m_t − 1) + g (t − m_t),  g = γ exp m_t,

so E[Z] = ∫ γ(exp m_t − 1) π and V[Z] = ∬ g C_t g' π π'. Neither has a closed form. The GP on ℓ, of mean m_ℓ, has; so
Δ = γ(exp m_t − 1) − m_ℓ, zero at the data, is computed at candidates x_c and interpolated by a third GP:

    E[Z] = ∫ m_ℓ π + ∫ m_Δ π,  g ≈ m_ℓ + m_Δ + γ.

With one kernel for ℓ and Δ, m_ℓ + m_Δ is the GP on ℓ over Y = (data, candidates) with values v = (ℓ, γ(exp m_t − 1)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wsabi._core.linalg import cholesky, jittered_cholesky, solve_lower, solve_upper
from wsabi._core.logspace import safe_log, scaled_likelihood
from wsabi._core.types import Array
from wsabi.baselines.tilted import TiltedMeasure
from wsabi.errors import NumericalError
from wsabi.gp.exact import GP, condition, log_marginal_likelihood
from wsabi.gp.fit import FitRecord, LengthscalePrior, fit_lengthscales
from wsabi.gp.kernel import SquaredExponential
from wsabi.priors import Gaussian, GaussianMixture
from wsabi.quadrature.design import candidates
from wsabi.quadrature.embeddings import kernel_mean
from wsabi.quadrature.wsabi import REFIT_GROWTH
from wsabi.result import ModelBelief

__all__ = ["GAMMA", "Correction", "DoublyBayesianModel", "inverse_log_transform", "log_transform"]

# γ, in units of the largest likelihood seen: what lies more than a factor of a hundred below it is as good as zero, and
# t spans log 101 = 4.6, however many nats log ℓ spans.
GAMMA = 0.01
# Added to the diagonal of K_Y for g in V[Z]: g changes by some 1e-3 of λ, while its weights, whose signs alternate and
# whose squares are summed, shrink a hundredfold; without it round-off hides any sd of Z below a few per cent.
SMOOTHING = 1e-6
LARGEST_T = 30.0  # 10¹¹ times the largest likelihood seen
SHIFT = 0.05  # of log length-scale, for central differences: their error is of relative order SHIFT²
# A candidate with less of its prior variance left adds little that its neighbours do not say, and its value, which
# comes from another model, would have to be fitted by weights that grow as 1/variance.
MIN_VARIANCE = 1e-2


def log_transform(likelihood: Array) -> Array:
    """t = log(1 + ℓ/γ)."""
    return np.log1p(likelihood / GAMMA)


def inverse_log_transform(t: Array) -> Array:
    """ℓ = γ(eᵗ − 1), with t < 0, which only a GP's mean can be, read as zero, and t > 30 as 30."""
    return GAMMA * np.expm1(np.clip(t, 0.0, LARGEST_T))


@dataclass(frozen=True)
class Correction:
    """The GP on ℓ over data and candidates, Y = (X, x_c); there may be none, where the data say it all.

    Attributes
    ----------
    points : (N + M, D) Y.
    n : N.
    m_t : (M,) mean of t at the candidates.
    values : (N + M,) v, likelihoods at the data and γ(exp m_t − 1) at the candidates.
    factor : lower (N + M, N + M), of the correlation matrix of Y with the length-scales of ℓ.
    weights : (N + M,) K_Y⁻¹v.
    kernel_means : (N + M,) w = ∫ k(x, y) π(x) dx, k the correlation.
    rule : (N + M,) K_Y⁻¹w, the weight of each value in E[Z] = ruleᵀv.
    """

    points: Array
    n: int
    m_t: Array
    values: Array
    factor: Array
    weights: Array
    kernel_means: Array
    rule: Array

    @property
    def candidates(self) -> Array:
        """(M, D) x_c."""
        return self.points[self.n :]


class DoublyBayesianModel:
    """Both GPs on data that grow, with their refits and the uncertainty of the length-scales.

    Parameters
    ----------
    measure : π, of standard deviation one per axis.
    n_candidates : M.
    rng : the stream of the candidates.
    """

    def __init__(self, measure: Gaussian | GaussianMixture, n_candidates: int, rng: np.random.Generator) -> None:
        self.measure = measure
        self.n_candidates = n_candidates
        self.rng = rng
        self.X = np.empty((0, measure.dim))
        self.log_l = np.empty(0)
        self.log_l_max = -math.inf
        self.gp_l: GP | None = None
        self.gp_t: GP | None = None
        self.shifted: list[tuple[GP, GP]] = []  # the GP on t with log length-scale d moved up and down by SHIFT
        self.theta_cov = np.empty((0, 0))  # (D, D) covariance of the log length-scales of t, by Laplace
        self.fits: list[FitRecord] = []
        self.max_jitter = 0.0
        self._next_fit = 0
        self._correction: Correction | None = None

    # -- data ---------------------------------------------------------------------------------------------------------

    def observe(self, X: Array, log_l: Array) -> None:
        """Add points X (M, D) with log ℓ (M,)."""
        self.X = np.concatenate([self.X, X])
        self.log_l = np.concatenate([self.log_l, log_l])
        self._correction = None
        if not np.any(np.isfinite(self.log_l)):
            return
        likelihood, self.log_l_max = scaled_likelihood(self.log_l)
        if self.gp_l is None or self.gp_t is None or len(self.X) >= self._next_fit:
            self._refit(likelihood, log_transform(likelihood))
            return
        t = log_transform(likelihood)
        for gp, values in [(self.gp_l, likelihood), (self.gp_t, t), *((gp, t) for pair in self.shifted for gp in pair)]:
            for x in self.X[gp.n :]:
                gp.append(x)
            gp.accept_pending(values)

    def _refit(self, likelihood: Array, t: Array) -> None:
        """MAP length-scales of both GPs; Laplace approximation for those of t."""
        self._next_fit = math.ceil(REFIT_GROWTH * len(self.X))
        self.gp_l = self._fitted(likelihood, self.gp_l)
        self.gp_t = self._fitted(t, self.gp_t)
        theta = np.log(self.gp_t.lengthscales)
        steps = SHIFT * np.eye(theta.size)
        self.theta_cov = self._laplace(t, theta, steps)
        self.shifted = [
            (condition(self.X, t, np.exp(theta + step)), condition(self.X, t, np.exp(theta - step))) for step in steps
        ]

    def _fitted(self, values: Array, before: GP | None) -> GP:
        warm = None if before is None else before.lengthscales
        fit = fit_lengthscales(self.X, values, prior=LengthscalePrior.for_dim(self.measure.dim), warm=warm)
        gp = condition(self.X, values, fit.lengthscales, capacity=self._next_fit)
        self.max_jitter = max(self.max_jitter, gp.jitter)
        self.fits.append(
            FitRecord(
                len(self.X), tuple(fit.lengthscales), gp.scale, fit.log_evidence, fit.n_iterations, fit.converged,
                fit.at_bound,
            )
        )  # fmt: skip
        return gp

    def _laplace(self, t: Array, theta: Array, steps: Array) -> Array:
        """(−∂² log p(θ | t))⁻¹ by differences of the gradient, never wider than the prior of θ."""
        prior = LengthscalePrior.for_dim(theta.size)

        def gradient(at: Array) -> Array:
            return log_marginal_likelihood(self.X, t, at)[1] + prior.log_density(at)[1]

        H = np.stack([gradient(theta - step) - gradient(theta + step) for step in steps]) / (2.0 * SHIFT)
        values, vectors = np.linalg.eigh(0.5 * (H + H.T))
        return np.asarray((vectors / np.maximum(values, prior.sd**-2.0)) @ vectors.T)

    # -- the third GP -------------------------------------------------------------------------------------------------

    def models(self) -> tuple[GP, GP]:
        """The GPs on ℓ and on t."""
        if self.gp_l is None or self.gp_t is None:
            raise NumericalError("every likelihood so far is zero: there is no model.")
        return self.gp_l, self.gp_t

    def correction(self) -> Correction:
        """Candidates for the present data and Δ at them; computed once per data set."""
        if self._correction is None:
            self._correction = self._build_correction()
        return self._correction

    def draw_candidates(self, n: int) -> Array:
        """n points (n, D), half from π and half around data, chosen by (ℓ + γ)π, at steps of a length-scale of ℓ."""
        gp_l, _ = self.models()
        likelihood, _ = scaled_likelihood(self.log_l)
        log_weights = np.log(likelihood + GAMMA) + self.measure.log_pdf(self.X)
        steps = np.minimum(gp_l.lengthscales, 1.0)
        return candidates(self.measure, self.X, log_weights, steps, n, self.rng)

    def _build_correction(self) -> Correction:
        gp_l, gp_t = self.models()
        kernel = gp_l.unit_kernel
        pool = self.draw_candidates(4 * self.n_candidates)
        log_weights = np.log(inverse_log_transform(gp_t.mean(pool)) + GAMMA) + self.measure.log_pdf(pool)
        chosen = pool[_spread_subset(gp_l, pool, log_weights, self.n_candidates)]
        Y = np.concatenate([self.X, chosen])
        factor, jitter = jittered_cholesky(kernel.gram(Y))
        self.max_jitter = max(self.max_jitter, jitter)
        m_t = gp_t.mean(chosen)
        v = np.concatenate([scaled_likelihood(self.log_l)[0], inverse_log_transform(m_t)])
        w = kernel_mean(kernel, self.measure, Y)
        weights, rule = solve_upper(factor, solve_lower(factor, np.stack([v, w], axis=1))).T
        return Correction(Y, len(self.X), m_t, v, factor, weights, w, rule)

    def slopes(self, Q: Array) -> Array:
        """∂m_t(x)/∂θ_d, (D, M), at Q (M, D), by central differences."""
        return np.stack([(up.mean(Q) - down.mean(Q)) / (2.0 * SHIFT) for up, down in self.shifted])

    # -- what is known of Z -------------------------------------------------------------------------------------------

    def moments(self) -> tuple[float, float, bool]:
        """Mean and variance of Z for ℓ scaled to a maximum of one, and whether the variance was lost in round-off.

        V = ∬ g C_t g' ππ' + (∂E/∂θ)ᵀ cov(θ) (∂E/∂θ): the second term is the uncertainty of the length-scales of t. In
        the first, g is smoothed a little (see SMOOTHING).
        """
        gp_l, gp_t = self.models()
        correction = self.correction()
        K = gp_l.unit_kernel.gram(correction.points)
        K[np.diag_indices_from(K)] += SMOOTHING
        L = cholesky(K)
        weights = solve_upper(L, solve_lower(L, correction.values))
        tilted = TiltedMeasure.build(gp_l.unit_kernel, self.measure, correction.points, weights, GAMMA)
        total, size = tilted.twice(gp_t.unit_kernel)
        half = solve_lower(gp_t.lower(), tilted.against(gp_t.unit_kernel, self.X))
        floor = float(np.finfo(float).eps) * size
        variance = total - float(half @ half)
        g = correction.values[correction.n :] + GAMMA
        slope = self.slopes(correction.candidates) @ (correction.rule[correction.n :] * g)  # ∂E/∂θ  (D,)
        of_theta = float(slope @ self.theta_cov @ slope)
        mean = float(correction.rule @ correction.values)
        return mean, gp_t.scale**2 * max(variance, floor) + of_theta, variance < floor

    def belief(self) -> ModelBelief | None:
        """log E[Z | D] and log V[Z | D], or None while every value is −inf."""
        if self.gp_l is None:
            return None
        mean, variance, clipped = self.moments()
        return ModelBelief(safe_log(mean) + self.log_l_max, safe_log(variance) + 2.0 * self.log_l_max, clipped)


def _spread_subset(gp: GP, pool: Array, log_weights: Array, n: int) -> Array:
    """Indices of up to n points of the pool, each of the largest weight² × variance left by data and points before it.

    A Cholesky factorisation of the pool's posterior covariance with weighted pivots, O(n(N + n)) per point.
    """
    kernel: SquaredExponential = gp.unit_kernel
    V = solve_lower(gp.lower(), kernel(gp.X, pool))  # (N, P)
    left = 1.0 - np.square(V).sum(axis=0)
    rows = np.empty((n, len(pool)))
    chosen: list[int] = []
    while len(chosen) < n:
        usable = left > MIN_VARIANCE
        if not usable.any():
            break
        best = int(np.argmax(np.where(usable, 2.0 * log_weights + np.log(np.maximum(left, MIN_VARIANCE)), -np.inf)))
        k = len(chosen)
        row = kernel.row(pool[best], pool) - V[:, best] @ V - rows[:k, best] @ rows[:k]
        rows[k] = row / math.sqrt(left[best])
        left = left - np.square(rows[k])
        left[best] = 0.0
        chosen.append(best)
    return np.array(chosen, dtype=np.intp)
