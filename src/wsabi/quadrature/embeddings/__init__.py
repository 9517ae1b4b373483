"""Closed forms of the squared-exponential kernel k under a measure π, in any dimension.

They are what paper eqs. (2) and (3) need once m and C are written out in kernels (section 3.3, which leaves them out).

The measure is a Gaussian with full covariance, a mixture of them, a uniform box or a product of polynomial densities
on intervals. Every value is assembled as an exponent, with determinants as sums of logarithms, so that length-scales of
any size neither overflow nor cancel. The formulas of each kind of measure are in the modules ``gaussian``, ``box`` and
``polynomial``; here are the functions that serve them all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wsabi._core.types import Array
from wsabi.gp.kernel import SquaredExponential
from wsabi.priors import Gaussian, GaussianMixture, Measure, Polynomial, Uniform
from wsabi.quadrature.embeddings.box import BoxForms
from wsabi.quadrature.embeddings.gaussian import GaussianForms, condition
from wsabi.quadrature.embeddings.polynomial import PolynomialForms

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
    slope, complement, cov = condition(0.5 * np.square(_lengthscales(kernel, gaussian)), gaussian.cov)
    # h_n about μ: P x_n + p would cancel for a measure far from the origin.
    halves = 0.5 * (gaussian.mean + (X - gaussian.mean) @ slope.T)
    return ProductGaussian(cov, slope, complement @ gaussian.mean, halves)


def _forms(kernel: SquaredExponential, measure: Measure) -> GaussianForms | BoxForms | PolynomialForms:
    """The closed forms of this pair: the one place of this package that looks at the measure's type."""
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
