"""E[Z | D] and V[Z | D] in closed form, for WSABI-L, WSABI-M and Bayes-Hermite quadrature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wsabi._linalg import NumericalError, solve_lower
from wsabi._types import Array
from wsabi.embeddings import chain_mean, kernel_mean, kernel_variance, product_mean, squared_kernel_mean
from wsabi.gp import GP
from wsabi.measures import Measure
from wsabi.warp import Method

__all__ = ["Moments", "moments"]

# A variance is a small difference of large terms; below zero by this share of its terms it is round-off and clipped.
ROUND_OFF = 1e-6


@dataclass(frozen=True)
class Moments:
    """Mean and variance of Z for ℓ scaled to a maximum of one; ``clipped`` if the variance was below round-off."""

    mean: float
    variance: float
    clipped: bool


def _clip(variance: float, size: float) -> tuple[float, bool]:
    """``variance`` if it stands above the round-off of terms of the given size, else that round-off, flagged."""
    if not np.isfinite(variance) or variance < -ROUND_OFF * size:
        raise NumericalError(
            f"variance of Z is {variance:.3g} from terms of size {size:.3g}: K is too ill-conditioned."
        )
    floor = np.finfo(float).eps * size
    return (variance, False) if variance > floor else (floor, True)


def moments(gp: GP, measure: Measure, alpha: float, method: Method) -> Moments:
    """E[Z | D] and V[Z | D] of the scaled likelihood under the model ``method``.

    L:  α + ½ zᵀWz,                      zᵀTz − (Wz)ᵀK⁻¹(Wz)
    M:  L's + ½(λ² − tr K⁻¹W),          L's + ½(u − 2 tr K⁻¹T + tr K⁻¹WK⁻¹W)
    BQ: zᵀw,                             ∬kππ' − wᵀK⁻¹w,    w = ∫kπ

    Notes
    -----
    Computed with the correlation kernel R = K/λ²: z = R⁻¹ℓ̃/λ², and powers of λ are put back at the end. L costs
    O(N²D) and two triangular solves; M O(N³).
    """
    kernel = gp.unit_kernel
    if method == "bq":
        w = kernel_mean(kernel, measure, gp.X)
        half = solve_lower(gp.lower(), w)
        size = kernel_variance(kernel, measure)
        variance, clipped = _clip(size - float(half @ half), size)
        return Moments(float(w @ gp.weights), gp.scale**2 * variance, clipped)
    W = product_mean(kernel, measure, gp.X)
    T = chain_mean(kernel, measure, gp.X)
    mean, variance, size = _linear_moments(gp, W, T)
    if method == "wsabi-m":
        extra_mean, extra_variance, extra_size = _matching_moments(gp, measure, W, T)
        mean, variance, size = mean + extra_mean, variance + extra_variance, size + extra_size
    variance, clipped = _clip(variance, size)
    return Moments(alpha + mean, variance, clipped)


def _linear_moments(gp: GP, W: Array, T: Array) -> tuple[float, float, float]:
    """Mean less α, variance and size of the variance's terms, of the L model."""
    Wz = W @ gp.weights
    half = solve_lower(gp.lower(), Wz)
    variance = gp.scale**2
    first = float(gp.weights @ (T @ gp.weights))
    return 0.5 * float(gp.weights @ Wz), variance * (first - float(half @ half)), variance * first


def _matching_moments(gp: GP, measure: Measure, W: Array, T: Array) -> tuple[float, float, float]:
    """What moment matching adds to mean and variance: ½∫C̃π and ½∬C̃²ππ'."""
    L = gp.lower()
    # L⁻¹AL⁻ᵀ is symmetric and has the trace of R⁻¹A; one half-solve per side, no inverse.
    W_white = solve_lower(L, solve_lower(L, W).T)
    T_half = solve_lower(L, T)
    trace_T = float(np.trace(solve_lower(L, T_half.T)))
    variance = gp.scale**2
    u = squared_kernel_mean(gp.unit_kernel, measure)
    mean = 0.5 * variance * max(1.0 - float(np.trace(W_white)), 0.0)
    spread = 0.5 * variance**2 * (u - 2.0 * trace_T + float(np.sum(W_white * W_white.T)))
    return mean, spread, 0.5 * variance**2 * u
