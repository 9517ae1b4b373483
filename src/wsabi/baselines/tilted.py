"""Integrals of g(x) = Σ_i a_i k(x, x_i) + γ times a Gaussian or mixture measure, against a second kernel.

g π is a sum of Gaussians with signed weights, since k(x, x_i) N(x; μ, Σ) = c_i N(x; P x_i + (I − P)μ, S) with
P = Σ(Λ + Σ)⁻¹ and S = Σ − PΣ; the second kernel, of other length-scales, only widens each of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wsabi._core.linalg import cholesky, solve_lower, solve_upper, square_distances
from wsabi._core.types import Array
from wsabi.gp.kernel import SquaredExponential
from wsabi.priors import Gaussian, GaussianMixture
from wsabi.quadrature.embeddings import kernel_mean

__all__ = ["TiltedMeasure"]


@dataclass(frozen=True)
class _Part:
    """Σ_j v_j N(x; m_j, S), with v (J,), m (J, D) and one S (D, D)."""

    weights: Array
    means: Array
    cov: Array


@dataclass(frozen=True)
class TiltedMeasure:
    """g π as a sum of Gaussians."""

    parts: tuple[_Part, ...]

    @classmethod
    def build(
        cls, kernel: SquaredExponential, measure: Gaussian | GaussianMixture, X: Array, weights: Array, constant: float
    ) -> TiltedMeasure:
        """For g(x) = Σ_i a_i k(x, x_i) + γ: X (N, D), weights a (N,), constant γ."""
        if isinstance(measure, Gaussian):
            components = [(1.0, measure)]
        else:
            components = list(zip(measure.weights.tolist(), measure.components, strict=True))
        parts = []
        for share, gaussian in components:
            L = cholesky(np.diag(np.square(kernel.lengthscales)) + gaussian.cov)
            half = solve_lower(L, gaussian.cov)
            P = solve_upper(L, half).T
            means = gaussian.mean + (X - gaussian.mean) @ P.T
            amplitudes = share * weights * kernel_mean(kernel, gaussian, X)
            parts.append(_Part(amplitudes, means, gaussian.cov - half.T @ half))
            parts.append(_Part(np.array([share * constant]), gaussian.mean[None, :], gaussian.cov))
        return cls(tuple(parts))

    def against(self, kernel: SquaredExponential, Y: Array) -> Array:
        """∫ g(x) k(x, y_m) π(x) dx, (M,), for Y (M, D)."""
        total = np.zeros(len(Y))
        for part in self.parts:
            total += part.weights @ _widened(kernel, part.cov, part.means, Y)
        return total

    def twice(self, kernel: SquaredExponential) -> tuple[float, float]:
        """∬ g(x) k(x, x') g(x') π π', and the same with absolute weights: the size of what cancels."""
        total = size = 0.0
        for a in self.parts:
            for b in self.parts:
                E = _widened(kernel, a.cov + b.cov, a.means, b.means)
                total += float(a.weights @ E @ b.weights)
                size += float(np.abs(a.weights) @ E @ np.abs(b.weights))
        return total, size


def _widened(kernel: SquaredExponential, cov: Array, A: Array, B: Array) -> Array:
    """∫ k(x, b_m) N(x; a_n, C) dx = λ² |Λ|^½ |Λ + C|^−½ exp(−½ (a_n − b_m)ᵀ(Λ + C)⁻¹(a_n − b_m)), (N, M)."""
    L = cholesky(np.diag(np.square(kernel.lengthscales)) + cov)
    log_ratio = float(np.log(kernel.lengthscales / np.diag(L)).sum())
    centre = B.mean(axis=0)
    U, V = (solve_lower(L, (side - centre).T).T for side in (A, B))
    return np.asarray(np.exp(2.0 * kernel.log_scale + log_ratio - 0.5 * square_distances(U, V)))
