"""The only Cholesky factorisations, triangular solves and row appends of the package.

Every factor is lower triangular, K = L Lᵀ. Two storages are used: a plain (N, N) Fortran array for work on whole
blocks, and :class:`GrowingFactor`, packed by rows, to which a row is appended in O(N²) without moving what is there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack

from wsabi._core.types import Array, Indices
from wsabi.errors import NumericalError

__all__ = [
    "JITTER",
    "MAX_JITTER",
    "GrowingFactor",
    "cholesky",
    "gaussian_exponent",
    "inverse_from_cholesky",
    "inverse_lower",
    "inverse_triangle",
    "jittered_cholesky",
    "log_det",
    "lower_positions",
    "multiply_lower",
    "pairwise_squares",
    "solve_lower",
    "solve_upper",
    "square_distances",
]

# Relative to the mean diagonal of K. Round-off in a factored N×N kernel matrix is about N·ε, 1e-13 for N = 500;
# 1e-10 stays three digits above it, and is 1e-5 of a standard deviation of the function.
JITTER = 1e-10
# Beyond 1e-4 (one per cent of a standard deviation) jitter would be noise that the model does not allow for.
MAX_JITTER = 1e-4


def cholesky(A: Array) -> Array:
    """Lower factor L of a symmetric positive-definite A = L Lᵀ, (N, N); no jitter.

    Raises
    ------
    NumericalError
        If A is not positive definite.
    """
    L, info = lapack.dpotrf(A, lower=1, clean=1)
    if info != 0 or not np.isfinite(L[-1, -1]):  # NaN passes through dpotrf, and reaches the last pivot
        raise NumericalError(f"matrix of shape {A.shape} is not positive definite (leading minor {info}).")
    return np.asarray(L)


def jittered_cholesky(K: Array) -> tuple[Array, float]:
    """Lower factor of K + εI, with ε the smallest of JITTER·10ⁿ times the mean diagonal that succeeds.

    Returns
    -------
    L : (N, N) lower factor.
    jitter : the relative ε used.

    Raises
    ------
    NumericalError
        If even MAX_JITTER does not suffice: K is not a covariance matrix, or holds NaN.
    """
    scale = float(np.mean(np.diag(K)))
    jitter = JITTER
    while jitter <= MAX_JITTER * (1 + 1e-9):
        A = np.array(K.T if K.flags.c_contiguous else K, order="F")  # K = Kᵀ: copied as it lies, not transposed
        A[np.diag_indices_from(A)] += jitter * scale
        L, info = lapack.dpotrf(A, lower=1, clean=1, overwrite_a=1)
        if info == 0 and np.isfinite(L[-1, -1]):  # NaN passes through dpotrf, and reaches the last pivot
            return L, jitter
        jitter *= 10.0
    raise NumericalError(
        f"kernel matrix of {len(K)} points is not positive definite even with a relative jitter of {MAX_JITTER:g}."
    )


def solve_lower(L: Array, B: Array) -> Array:
    """L⁻¹B for lower L (N, N) and B (N,) or (N, M)."""
    X, info = lapack.dtrtrs(L, B, lower=1)
    if info != 0:
        raise NumericalError(f"triangular factor is singular at row {info}.")
    return np.asarray(X)


def solve_upper(L: Array, B: Array) -> Array:
    """L⁻ᵀB for lower L (N, N) and B (N,) or (N, M)."""
    X, info = lapack.dtrtrs(L, B, lower=1, trans=1)
    if info != 0:
        raise NumericalError(f"triangular factor is singular at row {info}.")
    return np.asarray(X)


def inverse_lower(L: Array) -> Array:
    """L⁻¹, (N, N), for lower L: for :func:`multiply_lower` with many columns, in place of as many solves."""
    inverse, info = lapack.dtrtri(L, lower=1)
    if info != 0:
        raise NumericalError(f"triangular factor is singular at row {info}.")
    return np.asarray(inverse)


def multiply_lower(L: Array, B: Array, *, overwrite: bool = False) -> Array:
    """L B for lower L (N, N) and B (N, M); with ``overwrite`` it takes the place of B, if that is in Fortran's order.

    With L⁻¹ at hand this takes a third of the time of :func:`solve_lower` for the hundreds of columns of a prediction:
    OpenBLAS multiplies by a triangle at the speed of any product, but solves at a third of it. Round-off of both grows
    with the condition of L.
    """
    return np.asarray(blas.dtrmm(1.0, L, B, lower=1, overwrite_b=int(overwrite)))


def log_det(L: Array) -> float:
    """log|L Lᵀ| = 2 Σ log L_nn."""
    return 2.0 * float(np.log(np.diag(L)).sum())


def inverse_triangle(L: Array, *, overwrite: bool = False) -> Array:
    """Lower triangle of (L Lᵀ)⁻¹, (N, N), by dpotri, above it what L has there; for traces, never for solves.

    With ``overwrite`` it takes the place of L.
    """
    inverse, info = lapack.dpotri(L, lower=1, overwrite_c=int(overwrite))
    if info != 0:
        raise NumericalError(f"triangular factor is singular at row {info}.")
    return np.asarray(inverse)


def inverse_from_cholesky(L: Array) -> Array:
    """Full symmetric (L Lᵀ)⁻¹, (N, N), for L with a zero upper triangle; for traces and blocks, never for solves."""
    inverse = inverse_triangle(L)
    full = np.add(inverse, inverse.T)  # the upper triangle of L, and so of `inverse`, is zero
    full[np.diag_indices_from(full)] *= 0.5
    return np.asarray(full)


def square_distances(A: Array, B: Array) -> Array:
    """‖a_n − b_m‖² for rows of A (N, D) and B (M, D), as (N, M), by |a|² + |b|² − 2ab.

    One matrix product instead of N·M·D subtractions. Its round-off is ε(|a|² + |b|²), so the caller centres its
    points; below zero it is clipped.
    """
    squares = -2.0 * (A @ B.T)
    squares += np.square(A).sum(axis=1)[:, None]
    squares += np.square(B).sum(axis=1)
    return np.maximum(squares, 0.0, out=squares)


def pairwise_squares(X: Array) -> Array:
    """(x_id − x_jd)² per dimension for the pairs i > j, (D, N(N−1)/2), column after column of the lower triangle."""
    columns, rows = np.triu_indices(len(X), 1)
    return np.ascontiguousarray(np.square(X[rows] - X[columns]).T)


def lower_positions(n: int) -> Indices:
    """Where the pairs of :func:`pairwise_squares` stand in an (n, n) Fortran array, as flat positions."""
    columns, rows = np.triu_indices(n, 1)
    return np.asarray(columns * n + rows)


def gaussian_exponent(A: Array, B: Array, constant: float = 0.0) -> Array:
    """constant − ½‖a_n − b_m‖² for rows of A (N, D) and B (M, D), as (N, M): the exponent of a Gaussian kernel.

    One product of the rows (a, constant − ½|a|², 1) and (b, 1, −½|b|²) does all of the sum, where adding the terms one
    after another would pass over the (N, M) array four times. Round-off is that of :func:`square_distances`: the
    caller centres its points, and what exceeds the constant is clipped.
    """
    left, right = np.empty((len(A), A.shape[1] + 2)), np.empty((len(B), B.shape[1] + 2))
    left[:, :-2], left[:, -2], left[:, -1] = A, constant - 0.5 * np.einsum("nd,nd->n", A, A), 1.0
    right[:, :-2], right[:, -2], right[:, -1] = B, 1.0, -0.5 * np.einsum("nd,nd->n", B, B)
    exponent = left @ right.T
    return np.asarray(np.minimum(exponent, constant, out=exponent))


@dataclass(slots=True)
class GrowingFactor:
    """Lower factor L of a kernel matrix that gains rows, packed row after row.

    Row-packed lower is LAPACK's column-packed upper R = Lᵀ, so a contiguous prefix of ``packed`` is a valid factor
    at every size: nothing is copied to append or to solve (an (N, N) slice of a larger array would be copied by
    every BLAS call).
    """

    packed: Array
    n: int

    @classmethod
    def from_lower(cls, L: Array, capacity: int) -> GrowingFactor:
        """Pack L (N, N), with room for ``capacity`` rows."""
        n = len(L)
        capacity = max(capacity, n)
        packed = np.empty(capacity * (capacity + 1) // 2)
        packed[: n * (n + 1) // 2] = L[np.tril_indices(n)]
        return cls(packed, n)

    def append(self, row: Array, pivot: float) -> None:
        """Append the row (l, pivot): l = L⁻¹k (N,), pivot = √(k(x,x) + ε − lᵀl)."""
        start = self.n * (self.n + 1) // 2
        stop = start + self.n + 1
        if stop > self.packed.size:
            grown = np.empty(max(2 * self.packed.size, stop))
            grown[:start] = self.packed[:start]
            self.packed = grown
        self.packed[start : stop - 1] = row
        self.packed[stop - 1] = pivot
        self.n += 1

    def _filled(self) -> Array:
        return self.packed[: self.n * (self.n + 1) // 2]

    def solve_lower(self, b: Array) -> Array:
        """L⁻¹b, (N,)."""
        return np.asarray(blas.dtpsv(self.n, self._filled(), b, lower=0, trans=1))

    def solve_upper(self, b: Array) -> Array:
        """L⁻ᵀb, (N,)."""
        return np.asarray(blas.dtpsv(self.n, self._filled(), b, lower=0, trans=0))

    def lower(self) -> Array:
        """L as a plain (N, N) Fortran array."""
        L = np.zeros((self.n, self.n), order="F")
        L[np.tril_indices(self.n)] = self._filled()
        return L
