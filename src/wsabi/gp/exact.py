"""Gaussian process with zero mean on ℓ̃ (paper eqs. (4)-(6)): condition, append, predict, log marginal likelihood.

The output scale λ multiplies K and leaves m̃ unchanged, so what is factored is the correlation matrix R = K/λ²; λ² is
applied where a variance is wanted. That is what lets λ be profiled out in closed form at every size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wsabi._core.linalg import GrowingFactor, inverse_triangle, jittered_cholesky, log_det, solve_lower, solve_upper
from wsabi._core.types import Array
from wsabi.gp.kernel import SquaredExponential

__all__ = ["GP", "condition", "log_marginal_likelihood"]


@dataclass(slots=True)
class GP:
    """Posterior of ℓ̃ given values at N data (paper eq. (4)), with P pending points behind them.

    A pending point is one whose value is not known yet: it conditions C̃, which needs no values, and leaves m̃ alone.

    Attributes
    ----------
    rows : (N + P, D) data, then pending points.
    n : N.
    lengthscales : (D,).
    factor : packed L with L Lᵀ = R + εI, R the correlation matrix of all rows.
    whitened : (N,) b = L⁻¹ ℓ̃.
    weights : (N,) R⁻¹ ℓ̃ = L⁻ᵀ b; the paper's K⁻¹ℓ̃ is weights/λ².
    scale : λ.
    jitter : the relative ε.
    """

    rows: Array
    n: int
    lengthscales: Array
    factor: GrowingFactor
    whitened: Array
    weights: Array
    scale: float
    jitter: float
    unit_kernel: SquaredExponential

    @property
    def X(self) -> Array:
        """(N, D) data."""
        return self.rows[: self.n]

    @property
    def pending(self) -> Array:
        """(P, D) pending points."""
        return self.rows[self.n :]

    @property
    def kernel(self) -> SquaredExponential:
        """k, with its output scale λ."""
        return SquaredExponential(self.scale, self.lengthscales)

    def lower(self) -> Array:
        """L (N, N) of the data alone."""
        return GrowingFactor(self.factor.packed, self.n).lower()

    def set_values(self, l_tilde: Array, scale: float | None = None) -> None:
        """Condition on other values ℓ̃ (N,) at the same data, O(N²); λ is profiled unless given."""
        data = GrowingFactor(self.factor.packed, self.n)
        self.whitened = data.solve_lower(l_tilde)
        self.weights = data.solve_upper(self.whitened)
        self.scale = profiled_scale(self.whitened) if scale is None else scale

    def append(self, x: Array) -> tuple[Array, float]:
        """Append x (D,) as a pending point, O(N²); returns its row (l, pivot) of the factor."""
        row = self.factor.solve_lower(self.unit_kernel.row(x, self.rows))
        # Exact arithmetic gives pivot² ≥ ε; round-off may not.
        pivot = math.sqrt(max(1.0 + self.jitter - float(row @ row), self.jitter))
        self.factor.append(row, pivot)
        self.rows = np.concatenate([self.rows, x[None, :]])
        return row, pivot

    def accept_pending(self, l_tilde: Array, scale: float | None = None) -> None:
        """Make data of the pending points, with values ℓ̃ (N + P,) for all rows."""
        self.n = len(self.rows)
        self.set_values(l_tilde, scale)

    def drop_pending(self) -> None:
        """Forget the pending points."""
        self.factor.n = self.n
        self.rows = self.rows[: self.n]

    def predict(self, Q: Array) -> tuple[Array, Array]:
        """m̃ (M,) and C̃(x, x) (M,) at Q (M, D): paper eqs. (5) and (6)."""
        R = self.unit_kernel(self.rows, Q)  # (N + P, M)
        V = solve_lower(self.factor.lower(), R)
        c_tilde = self.scale**2 * np.maximum(1.0 - np.square(V).sum(axis=0), 0.0)
        return R[: self.n].T @ self.weights, c_tilde

    def mean(self, Q: Array) -> Array:
        """m̃ (M,) at Q (M, D) (paper eq. (5)), O(NM): no solve is needed for the mean."""
        return np.asarray(self.unit_kernel(Q, self.X) @ self.weights)

    def covariance(self, Q: Array) -> tuple[Array, Array]:
        """m̃ (M,) and the full C̃ (M, M) at Q (M, D), given the data alone: paper eqs. (5) and (6)."""
        R = self.unit_kernel(self.X, Q)
        V = solve_lower(self.lower(), R)
        return R.T @ self.weights, self.scale**2 * (self.unit_kernel.gram(Q) - V.T @ V)

    def predict_with_gradient(self, x: Array) -> tuple[float, float, Array, Array]:
        """m̃, C̃ and their gradients (D,) at one point x (D,): two triangular solves, O(N²)."""
        r = self.unit_kernel.row(x, self.rows)
        half = self.factor.solve_lower(r)
        solved = self.factor.solve_upper(half)  # R⁻¹r
        slope = self.unit_kernel.gradient(x, self.rows, r)  # ∂r/∂x  (N + P, D)
        variance = self.scale**2
        return (
            float(r[: self.n] @ self.weights),
            variance * max(1.0 - float(half @ half), 0.0),
            self.weights @ slope[: self.n],
            -2.0 * variance * (solved @ slope),
        )


def profiled_scale(whitened: Array) -> float:
    """λ maximising the marginal likelihood, λ² = ℓ̃ᵀR⁻¹ℓ̃/N = bᵀb/N; one where every value is zero."""
    scale = math.sqrt(float(whitened @ whitened) / len(whitened))
    return scale if scale > 0.0 else 1.0


def condition(X: Array, l_tilde: Array, lengthscales: Array, *, scale: float | None = None, capacity: int = 0) -> GP:
    """GP on values ℓ̃ (N,) at X (N, D) with fixed length-scales; λ is profiled unless given."""
    unit_kernel = SquaredExponential(1.0, lengthscales)
    L, jitter = jittered_cholesky(unit_kernel.gram(X))
    factor = GrowingFactor.from_lower(L, capacity)
    gp = GP(X, len(X), lengthscales, factor, l_tilde, l_tilde, 1.0, jitter, unit_kernel)
    gp.set_values(l_tilde, scale)
    return gp


def log_marginal_likelihood(X: Array, l_tilde: Array, log_lengthscales: Array) -> tuple[float, Array, float, Array]:
    """log p(ℓ̃ | X, lengthscales) with λ at its maximum, that log λ, and the gradients of both in log lengthscales.

    With b = L⁻¹ℓ̃ and λ² = bᵀb/N:  −½ N log λ² − ½ log|R| − ½ N (1 + log 2π).

    Returns
    -------
    value, gradient (D,), log λ, its gradient (D,).

    Notes
    -----
    With z = R⁻¹ℓ̃, ∂/∂log l_d = ½ Σ_nm G_nm (x_nd − x_md)²/l_d², G = (zzᵀ/λ² − R⁻¹) ∘ R, and ∂ log λ/∂log l_d is the
    same with G = −zzᵀ/(Nλ²) ∘ R. Expanding the square gives Σ_n g_n x_nd² − Σ_nm G_nm x_nd x_md with g = G1, all of it
    from the product G(1, x): no (N, N) array per axis. For zzᵀ ∘ R that product is z ∘ R(z, z ∘ x), with no further
    (N, N) array at all; of R⁻¹ ∘ R one triangle is enough, as dpotri leaves it.
    """
    lengthscales = np.exp(log_lengthscales)
    S = (X - X.mean(axis=0)) / lengthscales
    R = SquaredExponential(1.0, 1.0).gram(S)
    L, _ = jittered_cholesky(R)
    whitened = solve_lower(L, l_tilde)
    n = len(X)
    scale = profiled_scale(whitened)
    value = -0.5 * (2.0 * n * math.log(scale) + log_det(L) + n * (1.0 + math.log(2.0 * math.pi)))
    z = solve_upper(L, whitened)[:, None] / scale
    one_and_S = np.column_stack([np.ones(n), S])

    def contract(products: Array) -> Array:
        """½ Σ_nm G_nm (s_nd − s_md)², (D,), from the products G(1, s), (N, 1 + D), of a symmetric G."""
        return np.asarray(products[:, 0] @ np.square(S) - np.einsum("nd,nd->d", S, products[:, 1:]))

    by_data = contract(z * (R @ (z * one_and_S)))
    half = inverse_triangle(L, overwrite=True)  # of R⁻¹; above the diagonal L is zero
    half *= R.T  # R = Rᵀ, stored as `half` is
    np.fill_diagonal(half, 0.0)  # ½(s_n − s_n)² = 0: left in, its large terms would cancel to round-off
    by_volume = contract(half @ one_and_S) + contract(half.T @ one_and_S)
    return value, by_data - by_volume, math.log(scale), -by_data / n
