"""The squared-exponential kernel with one length-scale per axis (ARD)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wsabi._core.linalg import gaussian_exponent
from wsabi._core.types import Array, ArrayLike

__all__ = ["SquaredExponential"]


@dataclass(frozen=True, eq=False)
class SquaredExponential:
    """k(x, x') = λ² exp(−½ (x − x')ᵀ Λ⁻¹ (x − x')), Λ = diag(lengthscales²): K of paper section 2, in D dimensions.

    Parameters
    ----------
    scale : λ, the prior standard deviation of the function.
    lengthscales : scalar or (D,), in the units of x.
    """

    scale: float
    lengthscales: Array

    def __init__(self, scale: float, lengthscales: ArrayLike) -> None:
        lengths = np.atleast_1d(np.asarray(lengthscales, dtype=np.float64)).copy()
        if not (np.isfinite(scale) and scale > 0.0):
            raise ValueError(f"scale must be positive and finite; got {scale}.")
        if lengths.ndim != 1 or not np.all(np.isfinite(lengths) & (lengths > 0.0)):
            raise ValueError(f"lengthscales must be positive and finite, a scalar or a vector; got {lengths}.")
        object.__setattr__(self, "scale", float(scale))
        object.__setattr__(self, "lengthscales", lengths)

    @property
    def log_scale(self) -> float:
        """log λ."""
        return float(np.log(self.scale))

    def __call__(self, A: Array, B: Array) -> Array:
        """k(a_n, b_m), (N, M), for A (N, D) and B (M, D)."""
        centre = B.mean(axis=0)
        scaled_A, scaled_B = (A - centre) / self.lengthscales, (B - centre) / self.lengthscales
        exponent = gaussian_exponent(scaled_A, scaled_B, 2.0 * self.log_scale)
        return np.exp(exponent, out=exponent)

    def row(self, x: Array, X: Array) -> Array:
        """k(x, x_n), (N,), for one x (D,): differences taken directly, which at this size is quicker and exact."""
        scaled = (X - x) / self.lengthscales
        return np.asarray(self.scale**2 * np.exp(-0.5 * np.einsum("nd,nd->n", scaled, scaled)))

    def gram(self, X: Array) -> Array:
        """K = k(x_n, x_m), (N, N), with an exact diagonal λ²."""
        K = self(X, X)
        K[np.diag_indices_from(K)] = self.scale**2
        return K

    def gradient(self, x: Array, X: Array, k: Array) -> Array:
        """∂k(x, x_n)/∂x = −k(x, x_n) Λ⁻¹(x − x_n), (N, D), given k = k(x, x_n), (N,)."""
        return np.asarray((-k[:, None]) * (x - X) / np.square(self.lengthscales))
