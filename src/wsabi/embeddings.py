"""Closed forms of the squared-exponential kernel k under a measure π, in any dimension.

They are what paper eqs. (2) and (3) need once m and C are written out in kernels (section 3.3, which leaves them out).

The measure is a Gaussian with full covariance, a mixture of them, a uniform box or a product of polynomial densities
on intervals. Every value is assembled as an
exponent, with determinants as sums of logarithms, so that length-scales of any size neither overflow nor cancel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wsabi._core.linalg import cholesky, solve_lower, solve_upper, square_distances
from wsabi._core.types import Array
from wsabi.box_embeddings import BoxForms
from wsabi.gp.kernel import SquaredExponential
from wsabi.polynomial_embeddings import PolynomialForms
from wsabi.priors import Gaussian, GaussianMixture, Measure, Polynomial, Uniform

__all__ = [
    "ProductGaussian",
    "chain_mean",
    "chain_mean_diagonal",
    "kernel_mean",
    "kernel_variance",
    "product_gaussian",
    "product_mean",
    "product_mean_diagonal",
    "squared_kernel_mean",
]


def kernel_mean(kernel: SquaredExponential, measure: Measure, X: Array) -> Array:
    """Kernel mean ∫ k(x, x_n) π(x) dx, in paper eq. (2) for a GP on ℓ.

    Gaussian: λ² |Λ|^½ |Λ+Σ|^−½ exp(−½ (x_n−μ)ᵀ(Λ+Σ)⁻¹(x_n−μ)). Box: per axis, a difference of error functions.

    Parameters
    ----------
    X : (N, D) points x_n.

    Returns
    -------
    (N,) kernel means.
    """
    return _forms(kernel, measure).mean(_points(X, measure, "X"))


def kernel_variance(kernel: SquaredExponential, measure: Measure) -> float:
    """Prior variance of the integral, ∬ k(x, x') π(x) π(x') dx dx', in paper eq. (3) for a GP on ℓ.

    Gaussian: λ² |Λ|^½ |Λ+2Σ|^−½.
    """
    return _forms(kernel, measure).variance()


def squared_kernel_mean(kernel: SquaredExponential, measure: Measure) -> float:
    """u = ∬ k(x, x')² π(x) π(x') dx dx', in paper eq. (3) with C of eq. (12).

    Gaussian: λ⁴ |Λ|^½ |Λ+4Σ|^−½. For any measure it is the kernel variance of the kernel k².
    """
    return _forms(_squared(kernel), measure).variance()


def product_mean(kernel: SquaredExponential, measure: Measure, X: Array, Y: Array | None = None) -> Array:
    """W_nm = ∫ k(x, x_n) k(x, y_m) π(x) dx, in paper eq. (2) with m of eq. (9) or (11).

    Gaussian, with x̄ = (x_n + y_m)/2:
    λ⁴ |Λ|^½ |Λ+2Σ|^−½ exp(−¼ (x_n−y_m)ᵀΛ⁻¹(x_n−y_m) − (x̄−μ)ᵀ(Λ+2Σ)⁻¹(x̄−μ)).

    Parameters
    ----------
    X : (N, D) points x_n.
    Y : (M, D) points y_m; None stands for X.

    Returns
    -------
    (N, M) W; exactly symmetric, with the diagonal of :func:`product_mean_diagonal`, when Y is None.
    """
    X = _points(X, measure, "X")
    if Y is not None:
        return _forms(kernel, measure).product(X, _points(Y, measure, "Y"))
    return _symmetric(_forms(kernel, measure).product(X, X), product_mean_diagonal(kernel, measure, X))


def product_mean_diagonal(kernel: SquaredExponential, measure: Measure, X: Array) -> Array:
    """W_nn = ∫ k(x, x_n)² π(x) dx, (N,), for X (N, D): the kernel mean of the kernel k²."""
    return _forms(_squared(kernel), measure).mean(_points(X, measure, "X"))


def chain_mean(kernel: SquaredExponential, measure: Measure, X: Array, Y: Array | None = None) -> Array:
    """T_nm = ∬ k(x_n, x) k(x, x') k(x', y_m) π(x) π(x') dx dx', in paper eq. (3) with C of eq. (10) or (12).

    Gaussian: k(x, x_n) π(x) = c_n N(x; m_n, S) (see :func:`kernel_mean` for c_n), hence
    T_nm = c_n c_m λ² |Λ|^½ |Λ+2S|^−½ exp(−½ (m_n−m_m)ᵀ(Λ+2S)⁻¹(m_n−m_m)); a mixture sums over pairs of components.
    Box: per axis, the inner integral by error functions and the outer one by Gauss-Legendre panels.

    Parameters
    ----------
    X : (N, D) points x_n.
    Y : (M, D) points y_m; None stands for X.

    Returns
    -------
    (N, M) T; exactly symmetric, with the diagonal of :func:`chain_mean_diagonal`, when Y is None.
    """
    X = _points(X, measure, "X")
    forms = _forms(kernel, measure)
    if Y is not None:
        return forms.chain(X, _points(Y, measure, "Y"))
    return _symmetric(forms.chain(X, X), forms.chain_diagonal(X))


def chain_mean_diagonal(kernel: SquaredExponential, measure: Measure, X: Array) -> Array:
    """T_nn = ∬ k(x_n, x) k(x, x') k(x', x_n) π(x) π(x') dx dx', (N,), for X (N, D)."""
    return _forms(kernel, measure).chain_diagonal(_points(X, measure, "X"))


@dataclass(frozen=True, eq=False)
class ProductGaussian:
    """The Gaussian in k(x, x_i) k(x, x_j) π(x) = W_ij N(x; m_ij, S), for π = N(μ, Σ).

    m_ij = P (x_i + x_j)/2 + p = h_i + h_j, so a sum over pairs Σ_ij A_ij m_ij is a sum over points.

    Attributes
    ----------
    cov : (D, D) S = (2Λ⁻¹ + Σ⁻¹)⁻¹, the same for every pair.
    slope : (D, D) P.
    offset : (D,) p.
    halves : (N, D) h_n = ½ (P x_n + p).
    """

    cov: Array
    slope: Array
    offset: Array
    halves: Array


def product_gaussian(kernel: SquaredExponential, gaussian: Gaussian, X: Array) -> ProductGaussian:
    """Mean and covariance of the normalised product k(x, x_i) k(x, x_j) N(x; μ, Σ).

    k(x, x_i) k(x, x_j) ∝ N(x; x̄_ij, Λ/2) in x, which times N(x; μ, Σ) is a Gaussian: S = (2Λ⁻¹ + Σ⁻¹)⁻¹,
    P = Σ(Λ/2 + Σ)⁻¹, p = (I − P) μ.

    Parameters
    ----------
    X : (N, D) points x_n.
    """
    X = _points(X, gaussian, "X")
    slope, complement, cov = _condition(0.5 * np.square(_lengthscales(kernel, gaussian)), gaussian.cov)
    # h_n about μ: P x_n + p would cancel for a measure far from the origin.
    halves = 0.5 * (gaussian.mean + (X - gaussian.mean) @ slope.T)
    return ProductGaussian(cov, slope, complement @ gaussian.mean, halves)


def _forms(kernel: SquaredExponential, measure: Measure) -> GaussianForms | BoxForms | PolynomialForms:
    """The closed forms of this pair: the one place that looks at the measure's type."""
    lengthscales = _lengthscales(kernel, measure)
    match measure:
        case Gaussian():
            return GaussianForms(kernel.log_scale, lengthscales, [(0.0, measure)])
        case GaussianMixture():
            parts = zip(np.log(measure.weights).tolist(), measure.components, strict=True)
            return GaussianForms(kernel.log_scale, lengthscales, list(parts))
        case Uniform():
            return BoxForms(kernel.log_scale, lengthscales, measure)
        case Polynomial():
            return PolynomialForms(kernel.log_scale, lengthscales, measure)
    raise TypeError(
        f"measure must be a Gaussian, GaussianMixture, Uniform or Polynomial; got {type(measure).__name__}."
    )


def _lengthscales(kernel: SquaredExponential, measure: Measure) -> Array:
    """Length-scales (D,), one given for all axes or one each."""
    size = kernel.lengthscales.size
    if size not in (1, measure.dim):
        raise ValueError(f"kernel.lengthscales must be one or {measure.dim}, as measure has dimensions; got {size}.")
    return np.broadcast_to(kernel.lengthscales, (measure.dim,))


def _points(X: Array, measure: Measure, argument: str) -> Array:
    """X as (N, D) float64, or an error naming the argument: a vector would broadcast to something else."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != measure.dim:
        raise ValueError(f"{argument} must have shape (N, {measure.dim}), one point per row; got {X.shape}.")
    return X


def _squared(kernel: SquaredExponential) -> SquaredExponential:
    """The kernel k² = λ⁴ exp(−½ Δᵀ(Λ/2)⁻¹Δ)."""
    return SquaredExponential(kernel.scale**2, kernel.lengthscales / math.sqrt(2.0))


def _symmetric(A: Array, diagonal: Array) -> Array:
    """½(A + Aᵀ), (N, N), with the given diagonal (N,)."""
    A = A + A.T
    A *= 0.5
    np.fill_diagonal(A, diagonal)
    return A


def _condition(variances: Array, cov: Array) -> tuple[Array, Array, Array]:
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
        P, _, S = _condition(self._variances, gaussian.cov)
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
