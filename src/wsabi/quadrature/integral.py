"""E[Z | D] and V[Z | D] in closed form, for WSABI-L, WSABI-M and Bayes-Hermite quadrature (paper eqs. (2) and (3))."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wsabi._core.linalg import inverse_lower, solve_lower, solve_upper
from wsabi._core.types import Array
from wsabi.errors import NumericalError
from wsabi.gp.exact import GP
from wsabi.priors import Measure
from wsabi.quadrature.embeddings import chain_mean, kernel_mean, kernel_variance, product_mean, squared_kernel_mean
from wsabi.settings import Method

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
    Paper eqs. (2) and (3), ∫mπ and ∬Cππ', with m and C of eqs. (9) and (10) for L, (11) and (12) for M, and of the GP
    on ℓ itself for BQ (section 2). The paper leaves the closed forms out for their length (section 3.3).

    Computed with the correlation kernel R = K/λ²: z = R⁻¹ℓ̃/λ², and powers of λ are put back at the end. L costs
    O(N²D) and two triangular solves; M O(N³).
    """
    kernel = gp.unit_kernel
    if method == "bq":
        w = kernel_mean(kernel, measure, gp.X)
        variance, round_off = _bq_variance(gp, w, kernel_variance(kernel, measure))
        variance, clipped = _clip(variance, round_off)
        return Moments(float(w @ gp.weights), gp.scale**2 * variance, clipped)
    W = product_mean(kernel, measure, gp.X)
    T = chain_mean(kernel, measure, gp.X)
    mean, variance, round_off = _linear_moments(gp, W, T)
    if method == "wsabi-m":
        extra_mean, extra_variance, extra_round_off = _matching_moments(gp, measure, W, T)
        mean, variance, round_off = mean + extra_mean, variance + extra_variance, round_off + extra_round_off
    variance, clipped = _clip(variance, round_off)
    return Moments(alpha + mean, variance, clipped)


def _entry_error(gp: GP) -> float:
    """Relative error of one entry of w, W, T and of the factored R: 4ε + ε max |s_n|², s = (x − mean)/l.

    Each is an exponential, whose exponent is found from |s_n|² + |s_m|² − 2 s_nᵀs_m and so has an absolute error of
    ε|s|². The 4 is for the rest: against sixty digits 3 would do.
    """
    scaled = (gp.X - gp.X.mean(axis=0)) / gp.lengthscales
    return ROUND_OFF * (4.0 + float(np.square(scaled).sum(axis=1).max()))


def _bq_variance(gp: GP, w: Array, total: float) -> tuple[float, float]:
    """∬rππ' − wᵀR⁻¹w and its round-off, r = k/λ².

    With ε the error of an entry, L is exact for a matrix within ε|L||L|ᵀ of R, which moves wᵀR⁻¹w by aᵀδR a, a = R⁻¹w:
    at most ε‖|L|ᵀ|a|‖². The round-off of w itself costs no more than twice that, 2ε|w|ᵀ|a|.
    """
    L = gp.lower()
    half = solve_lower(L, w)
    terms = np.abs(L).T @ np.abs(solve_upper(L, half))
    return total - float(half @ half), _entry_error(gp) * (total + float(terms @ terms))


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
    """What moment matching adds to mean, variance and round-off: ½∫C̃π and ½∬C̃²ππ'.

    Notes
    -----
    With P = R⁻¹, the entries of P are as large as the condition of R and the traces cancel to almost nothing. To first
    order a relative error ε of each entry of T and W, and an error ε of each entry of R (they are at most one),
    moves 1 − tr PW by no more than ε(1 + Σ|P|∘W + Σ|PWP|), and u − 2 tr PT + tr PWPW by no more than
    ε(u + 2Σ|P|∘T + 2Σ|PTP| + 2Σ|PWP|∘W + 2Σ|PWPWP|).

    The second is then often far more than the value. But C̃(x, x')² ≤ C̃(x, x) C̃(x', x'), so that ∬C̃²ππ' ≤ (∫C̃π)²,
    and this limit, with the round-off of ∫C̃π added, serves where it is the smaller of the two.
    """
    L = gp.lower()
    # L⁻¹AL⁻ᵀ is symmetric and has the trace of R⁻¹A; one half-solve per side, no inverse.
    W_white = solve_lower(L, solve_lower(L, W).T)
    T_white = solve_lower(L, solve_lower(L, T).T)
    u = squared_kernel_mean(gp.unit_kernel, measure)
    left = 1.0 - float(np.trace(W_white))  # ∫C̃π/λ²
    spread = u - 2.0 * float(np.trace(T_white)) + float(np.sum(W_white * W_white.T))
    J = inverse_lower(L)  # for round-off only: P = JᵀJ
    P = np.abs(J.T @ J)
    PTP, PWP, PWPWP = (np.abs(J.T @ A @ J) for A in (T_white, W_white, W_white @ W_white))
    entry_error = _entry_error(gp)
    lost_left = entry_error * float(1.0 + np.sum(P * W) + np.sum(PWP))
    lost = entry_error * float(u + 2.0 * (np.sum(P * T) + np.sum(PTP) + np.sum(PWP * W) + np.sum(PWPWP)))
    limit = (max(left, 0.0) + lost_left) ** 2
    variance = gp.scale**2
    # An error of ½∫C̃π in the mean counts as an error of Z, squared.
    round_off = 0.5 * min(lost, limit) + (0.5 * lost_left) ** 2
    mean = 0.5 * variance * max(left, 0.0)
    return mean, 0.5 * variance**2 * min(max(spread, 0.0), limit), variance**2 * round_off
