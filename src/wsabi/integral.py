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

ROUND_OFF = float(np.finfo(float).eps)  # of a sum, per unit of its absolute terms; measured: a twentieth of that


@dataclass(frozen=True)
class Moments:
    """Mean and variance of Z for ℓ scaled to a maximum of one; ``clipped`` if the variance was below round-off."""

    mean: float
    variance: float
    clipped: bool


def _clip(variance: float, round_off: float) -> tuple[float, bool]:
    """``variance`` if it stands above its round-off, else that round-off, flagged."""
    if not np.isfinite(variance):
        raise NumericalError(f"variance of Z is {variance}: the model's weights have overflowed.")
    return (variance, False) if variance > round_off else (round_off, True)


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
        total = kernel_variance(kernel, measure)
        variance, clipped = _clip(total - float(half @ half), ROUND_OFF * total)
        return Moments(float(w @ gp.weights), gp.scale**2 * variance, clipped)
    W = product_mean(kernel, measure, gp.X)
    T = chain_mean(kernel, measure, gp.X)
    mean, variance, round_off = _linear_moments(gp, W, T)
    if method == "wsabi-m":
        extra_mean, extra_variance, extra_round_off = _matching_moments(gp, measure, W, T)
        mean, variance, round_off = mean + extra_mean, variance + extra_variance, round_off + extra_round_off
    variance, clipped = _clip(variance, round_off)
    return Moments(alpha + mean, variance, clipped)


def _linear_moments(gp: GP, W: Array, T: Array) -> tuple[float, float, float]:
    """Mean less α, variance, and the round-off of the variance, of the L model.

    Weights of an ill-conditioned K are large and of both signs; what is lost is a share ε of the sum of absolute terms,
    |z|ᵀT|z|, in the variance, and of |z|ᵀW|z| in the mean, which counts as an error of Z and so enters squared.
    """
    z, size = gp.weights, np.abs(gp.weights)
    Wz = W @ z
    half = solve_lower(gp.lower(), Wz)
    variance = gp.scale**2
    lost = ROUND_OFF * float(size @ (W @ size))
    round_off = ROUND_OFF * variance * float(size @ (T @ size)) + lost**2
    # W is positive definite, so a mean below its round-off is lost in it: Z is then known to its size, not better.
    mean = max(0.5 * float(z @ Wz), lost)
    return mean, variance * (float(z @ (T @ z)) - float(half @ half)), round_off


def _matching_moments(gp: GP, measure: Measure, W: Array, T: Array) -> tuple[float, float, float]:
    """What moment matching adds to mean, variance and round-off: ½∫C̃π and ½∬C̃²ππ'."""
    L = gp.lower()
    # L⁻¹AL⁻ᵀ is symmetric and has the trace of R⁻¹A; one half-solve per side, no inverse.
    W_white = solve_lower(L, solve_lower(L, W).T)
    T_half = solve_lower(L, T)
    trace_T = float(np.trace(solve_lower(L, T_half.T)))
    variance = gp.scale**2
    u = squared_kernel_mean(gp.unit_kernel, measure)
    mean = 0.5 * variance * max(1.0 - float(np.trace(W_white)), 0.0)
    spread = 0.5 * variance**2 * (u - 2.0 * trace_T + float(np.sum(W_white * W_white.T)))
    return mean, spread, ROUND_OFF * variance**2 * u
