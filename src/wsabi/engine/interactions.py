"""Kernel of functions that are sums of functions of one parameter and of two.

    p(u, u') = ½ [Σ_d k_d / D + Σ_{d<e} k_d k_e / (D choose 2)],   k_d = 1/(1 + (u_d − u'_d)²/h_d²)

A log-likelihood of many parameters is rarely any function of all of them at once: a plateau where one length-scale has
grown so long that its input counts no more, the exchange of two scales. What a general smooth kernel has to learn anew
in every corner of D dimensions, these terms carry over from one corner to all. The rational k_d, rather than an
exponential one, because such functions change at more than one pace.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wsabi._linalg import lower_positions, pairwise_squares
from wsabi._types import Array, Indices

__all__ = ["BLOCK", "LEAST_DIMENSION", "Pairs", "interactions"]

LEAST_DIMENSION = 3  # of fewer parameters a function of two is any function
BLOCK = 1 << 15  # entries worked on at a time: three such blocks fit into a core's own cache


def interactions(U: Array, V: Array) -> Array:
    """p(u_m, v_n), (M, N), for U (M, D) and V (N, D) in units of h; D ≥ 2. BLOCK of them at a time is quickest."""
    dim = U.shape[1]
    total = np.zeros((len(U), len(V)))
    squares = np.zeros_like(total)
    k = np.empty_like(total)
    left, right = np.ones((len(U), 3)), np.ones((3, len(V)))
    for u, v in zip(U.T, V.T, strict=True):
        # 1 + (u − v)² as one product, (1 + u², −2u, 1)·(1, v, v²): half the time of a difference, a square and a sum.
        # Its round-off is ε(u² + v²), 1e-12 for points a hundred h from the centre.
        left[:, 0], left[:, 1] = 1.0 + u * u, -2.0 * u
        right[1], right[2] = v, v * v
        np.matmul(left, right, out=k)
        np.reciprocal(k, out=k)
        total += k
        k *= k
        squares += k
    return _combined(total, squares, dim)


def _combined(total: Array, squares: Array, dim: int) -> Array:
    """p of Σ k_d and Σ k_d²: Σ_{d<e} k_d k_e = ½ [(Σ k_d)² − Σ k_d²]."""
    pairs = (np.square(total) - squares) / (dim * (dim - 1))
    return np.asarray(0.5 * (total / dim + pairs))


@dataclass(frozen=True)
class Pairs:
    """The kernel among N points, and its slopes, for many values of h.

    Only the P = N(N − 1)/2 entries below the diagonal are worked on; on it p = 1.

    Attributes
    ----------
    squares : (D, P) squared distances along each axis.
    positions : (P,) their flat positions in an (N, N) matrix laid out by columns.
    """

    squares: Array
    positions: Indices

    @classmethod
    def of(cls, U: Array) -> Pairs:
        """For points U (N, D), D ≥ 2."""
        return cls(pairwise_squares(U), lower_positions(len(U)))

    def axes(self, log_h: Array) -> Array:
        """k_d, (D, P)."""
        return np.asarray(1.0 / (1.0 + self.squares * np.exp(-2.0 * log_h)[:, None]))

    def kernel(self, k: Array) -> Array:
        """p, (P,), of k_d (D, P)."""
        return _combined(k.sum(axis=0), np.einsum("dp,dp->p", k, k), len(k))

    def slopes(self, k: Array, a: Array) -> Array:
        """∂/∂log h_d of Σ_nm A_nm p_nm, (D,), for a symmetric A of entries a (P,) below the diagonal.

        ∂p/∂k_d = ½ [1/D + 2 (Σ_e k_e − k_d)/(D(D − 1))] and ∂k_d/∂log h_d = 2 k_d (1 − k_d); both triangles count.
        """
        dim = len(k)
        pair = 2.0 / (dim * (dim - 1))
        b = a * (1.0 / dim + pair * k.sum(axis=0))
        square = k * k
        cube = square * k
        return np.asarray(2.0 * (k @ b - square @ b - pair * (square @ a - cube @ a)))
