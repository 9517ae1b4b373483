"""Integrals of the squared-exponential kernel under Gaussians and mixtures of them."""

from __future__ import annotations

import math

import numpy as np

from wsabi._core.linalg import cholesky, solve_lower, solve_upper, square_distances
from wsabi._core.types import Array
from wsabi.priors import Gaussian

__all__ = ["GaussianForms", "condition"]


def condition(variances: Array, cov: Array) -> tuple[Array, Array, Array]:
    """The product N(x; y, V) N(x; μ, Σ) ∝ N(x; P y + Q μ, S), V = diag(variances).

    P = Σ(V+Σ)⁻¹, Q = I − P = V(V+Σ)⁻¹, S = (V⁻¹+Σ⁻¹)⁻¹ = Q Σ Qᵀ + P V Pᵀ. P and Q are both solved for and S is a sum
    of two positive terms: Σ − PΣ would cancel where V ≪ Σ, V − QV where V ≫ Σ.

    Returns
    -------
    P, Q, S : (D, D) each.
    """
    L = cholesky(np.diag(variances) + cov)
    P = solve_upper(L, solve_lower(L, cov)).T
    Q = solve_upper(L, solve_lower(L, np.diag(variances))).T
    S = Q @ cov @ Q.T + (P * variances) @ P.T
    return P, Q, 0.5 * (S + S.T)


class GaussianForms:
    """Integrals of one kernel under Σ_a w_a N(μ_a, Σ_a), given as pairs (log w_a, N(μ_a, Σ_a))."""

    def __init__(self, log_scale: float, lengthscales: Array, components: list[tuple[float, Gaussian]]) -> None:
        self._log_scale = log_scale
        self._lengthscales = lengthscales
        self._variances = np.square(lengthscales)  # the diagonal of Λ
        self._components = components

    def _factor(self, cov: Array) -> tuple[Array, float]:
        """Lower L (D, D) of Λ + cov, and log |Λ|^½ |Λ + cov|^−½."""
        L = cholesky(np.diag(self._variances) + cov)
        # Axis by axis: no cancellation between determinants of twenty dimensions, whatever the units.
        return L, float(np.log(self._lengthscales / np.diag(L)).sum())

    def _log_mean(self, gaussian: Gaussian, X: Array) -> Array:
        """log c_n = log ∫ k(x, x_n) N(x; μ, Σ) dx, (N,)."""
        L, log_ratio = self._factor(gaussian.cov)
        U = solve_lower(L, (X - gaussian.mean).T)  # (D, N)
        return np.asarray(2.0 * self._log_scale + log_ratio - 0.5 * np.square(U).sum(axis=0))

    def mean(self, X: Array) -> Array:
        """∫ k(x, x_n) π, (N,)."""
        total = np.zeros(len(X))
        for log_w, gaussian in self._components:
            total += np.exp(log_w + self._log_mean(gaussian, X))
        return total

    def variance(self) -> float:
        """∬ k(x, x') π π' = Σ_ab w_a w_b λ² |Λ|^½ |V|^−½ exp(−½ (μ_a−μ_b)ᵀV⁻¹(μ_a−μ_b)), V = Λ + Σ_a + Σ_b."""
        total = 0.0
        for log_w, a in self._components:
            for log_v, b in self._components:
                L, log_ratio = self._factor(a.cov + b.cov)
                square = float(np.square(solve_lower(L, a.mean - b.mean)).sum())
                total += math.exp(log_w + log_v + 2.0 * self._log_scale + log_ratio - 0.5 * square)
        return total

    def product(self, X: Array, Y: Array) -> Array:
        """∫ k(x, x_n) k(x, y_m) π, (N, M).

        With a = Λ^−½(x−μ) and u = L⁻¹(x−μ), LLᵀ = Λ+2Σ, the exponent is −¼|a_n − a_m|² − ¼|u_n + u_m|²: minus a
        quarter of one squared distance, between (a_n, u_n) and (a_m, −u_m).
        """
        total = np.zeros((len(X), len(Y)))
        for log_w, gaussian in self._components:
            L, log_ratio = self._factor(2.0 * gaussian.cov)
            dX, dY = X - gaussian.mean, Y - gaussian.mean
            left = np.hstack([dX / self._lengthscales, solve_lower(L, dX.T).T])
            right = np.hstack([dY / self._lengthscales, -solve_lower(L, dY.T).T])
            exponent = square_distances(left, right)
            exponent *= -0.25
            exponent += log_w + 4.0 * self._log_scale + log_ratio
            total += np.exp(exponent, out=exponent)
        return total

    def _tilted(self, gaussian: Gaussian, X: Array) -> tuple[Array, Array, Array]:
        """log c_n (N,), m_n (N, D) and S (D, D) of k(x, x_n) N(x; μ, Σ) = c_n N(x; m_n, S).

        m_n is taken about the first component's mean: a measure far from the origin would drown it in round-off.
        """
        P, _, S = condition(self._variances, gaussian.cov)
        offset = gaussian.mean - self._components[0][1].mean
        return self._log_mean(gaussian, X), offset + (X - gaussian.mean) @ P.T, S

    def chain(self, X: Array, Y: Array) -> Array:
        """∬ k(x_n, x) k(x, x') k(x', y_m) π π', (N, M), summed over pairs of components."""
        total = np.zeros((len(X), len(Y)))
        rights = [(log_w, *self._tilted(b, Y)) for log_w, b in self._components]
        for log_w, a in self._components:
            log_c, m, S = self._tilted(a, X)
            for log_v, log_d, m_right, S_right in rights:
                L, log_ratio = self._factor(S + S_right)
                exponent = square_distances(solve_lower(L, m.T).T, solve_lower(L, m_right.T).T)
                exponent *= -0.5
                exponent += (log_w + log_v + 2.0 * self._log_scale + log_ratio + log_c)[:, None]
                exponent += log_d
                total += np.exp(exponent, out=exponent)
        return total

    def chain_diagonal(self, X: Array) -> Array:
        """∬ k(x_n, x) k(x, x') k(x', x_n) π π', (N,)."""
        total = np.zeros(len(X))
        tilted = [(log_w, *self._tilted(a, X)) for log_w, a in self._components]
        for log_w, log_c, m, S in tilted:
            for log_v, log_d, m_right, S_right in tilted:
                L, log_ratio = self._factor(S + S_right)
                square = np.square(solve_lower(L, (m - m_right).T)).sum(axis=0)
                total += np.exp(log_w + log_v + 2.0 * self._log_scale + log_ratio + log_c + log_d - 0.5 * square)
        return total
