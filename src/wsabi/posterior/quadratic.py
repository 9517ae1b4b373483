"""Closed forms of a measure times a quadratic form in kernels: mass, moments and one-dimensional marginals.

f(u) = π(u) (c + Σ_ij A_ij κ(u, x_i) κ(u, x_j)), κ the squared exponential with λ = 1. All three models of ℓπ are of
this kind, so their moments and marginals are written once, here: paper eqs. (9) and (11) with eqs. (5) and (6) put in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, roots_legendre

from wsabi._core.linalg import cholesky, solve_lower
from wsabi._core.types import Array
from wsabi.gp.kernel import SquaredExponential
from wsabi.priors import Bounded, Gaussian, GaussianMixture, Measure, Polynomial, Uniform
from wsabi.quadrature.embeddings import product_gaussian, product_mean, product_mean_diagonal
from wsabi.quadrature.embeddings.polynomial import PolynomialForms

__all__ = ["QuadraticDensity", "truncated_moments"]

# 20 Gauss-Legendre nodes on a panel four standard deviations of the narrowest bump long: 1e-13 of its mass.
_PANEL_NODES = 20
_PANEL_SDS = 4.0
_MAX_PANELS = 4096  # bumps narrower than 1/800 of the prior's sd are then resolved less well
# A bump is 2e-16 of its peak where |u − m|² = 4S·36; the measure holds 1e-23 of its mass beyond ten sds.
_BUMP_REACH = 12.0
_MEASURE_REACH = 10.0
_BLOCK_ENTRIES = 2**22  # entries of one block of work: 32 MB
# Below one length-scale of width the closed form of a truncated variance cancels; a 12-point rule is exact there.
_NARROW = 1.0


@dataclass(frozen=True, eq=False)
class QuadraticDensity:
    """f(u) = π(u) (c + Σ_ij A_ij κ(u, x_i) κ(u, x_j)).

    Parameters
    ----------
    X : (N, D) points x_n, inside the box where π is confined to one.
    lengthscales : (D,) of κ.
    A : (N, N) symmetric.
    constant : c.
    measure : π.
    """

    X: Array
    lengthscales: Array
    A: Array
    constant: float
    measure: Measure

    @property
    def _kernel(self) -> SquaredExponential:
        return SquaredExponential(1.0, self.lengthscales)

    def moments(self) -> tuple[float, Array, Array]:
        """Mass ∫f, mean (D,) and covariance (D, D) of f.

        Notes
        -----
        Σ_ij A_ij W_ij N(u; m_ij, S) has first moment Σ B_ij m_ij and second moment Σ B_ij (S + m_ij m_ijᵀ), B = A ∘ W.
        Both are taken about the datum of highest density: a density much narrower than its distance from the measure's
        mean would otherwise lose its covariance to cancellation. Memory O(N²).
        """
        reference = self._highest()
        mass, first, second = self._sums(reference)
        shift = first / mass
        cov = second / mass - np.outer(shift, shift)
        return mass, reference + shift, 0.5 * (cov + cov.T)

    def _highest(self) -> Array:
        """The x_n where f is highest, (D,)."""
        R = self._kernel.gram(self.X)
        form = self.constant + np.einsum("nm,nm->n", R @ self.A, R)
        with np.errstate(divide="ignore"):
            log_f = np.log(np.maximum(form, 0.0)) + self.measure.log_pdf(self.X)
        return np.asarray(self.X[np.argmax(log_f)])

    def _sums(self, reference: Array) -> tuple[float, Array, Array]:
        """∫f, ∫(u − r)f (D,) and ∫(u − r)(u − r)ᵀf (D, D), r the reference (D,)."""
        offset = self.measure.mean - reference
        mass, first = self.constant, self.constant * offset
        second = self.constant * (self.measure.cov + np.outer(offset, offset))
        if isinstance(self.measure, Bounded):
            parts = [self._box_sums(self.measure, reference)]
        else:
            parts = [self._gaussian_sums(w, gaussian, reference) for w, gaussian in _components(self.measure)]
        for m0, m1, m2 in parts:
            mass, first, second = mass + m0, first + m1, second + m2
        return mass, first, second

    def _gaussian_sums(self, weight: float, gaussian: Gaussian, reference: Array) -> tuple[float, Array, Array]:
        """The pairs' share of :meth:`_sums` under w N(μ, Σ).

        m_ij = h_i + h_j, so with b = B1 the sums are 2 Σ b_i h_i and 2 Hᵀdiag(b)H + 2 HᵀBH: no array of pairs and axes.
        """
        B = self.A * product_mean(self._kernel, gaussian, self.X)
        B *= weight
        product = product_gaussian(self._kernel, gaussian, self.X)
        H = product.halves - 0.5 * reference  # (N, D)
        b = B.sum(axis=1)
        mass = float(b.sum())
        return mass, 2.0 * (b @ H), mass * product.cov + 2.0 * ((H.T * b) @ H + H.T @ (B @ H))

    def _box_sums(self, box: Bounded, reference: Array) -> tuple[float, Array, Array]:
        """The pairs' share of :meth:`_sums` inside a box, where the axes of each pair are independent."""
        n, dim = self.X.shape
        B = self.A * product_mean(self._kernel, box, self.X)
        B = np.triu(B) + np.triu(B, 1)  # each pair once
        first, second = np.zeros(dim), np.zeros((dim, dim))
        step = max(1, _BLOCK_ENTRIES // (n * dim))
        for start in range(0, n, step):
            means, variances = self._pair_moments(box, self.X[start : start + step], self.X[start:])
            means -= reference[:, None]
            b = B[start : start + step, start:].reshape(-1)
            first += means @ b
            second += (means * b) @ means.T + np.diag(variances @ b)
        return float(B.sum()), first, second

    def _pair_moments(self, box: Bounded, left: Array, right: Array) -> tuple[Array, Array]:
        """Mean and variance of each axis of the density ∝ κ(u, x_i) κ(u, x_j) π(u), (D, N·M) each.

        Under the uniform box that is a normal N(x̄_ij, Λ/2) truncated to it.
        """
        if isinstance(box, Polynomial):
            return PolynomialForms(0.0, self.lengthscales, box).pair_moments(left, right)
        midpoints = (0.5 * (left.T[:, :, None] + right.T[:, None, :])).reshape(box.dim, -1)  # x̄_ij
        return truncated_moments(midpoints, self.lengthscales / math.sqrt(2.0), box.low, box.high)

    def marginal(self, axis: int, grid: Array) -> Array:
        """∫ f(u) du over all axes but one, (G,), at the values ``grid`` (G,) of u_axis."""
        return self.marginal_of([axis], np.asarray(grid, dtype=np.float64)[:, None])

    def marginal_of(self, axes: Sequence[int], points: Array) -> Array:
        """∫ f(u) du over all axes but K of them, (G,), at the values ``points`` (G, K) of u on those K.

        Notes
        -----
        ∫ π κ_i κ_j over the other axes is C_ij q_i(g) q_j(g), C a matrix free of g with 0 ≤ C_ij ≤ 1 (its diagonal one
        for a Gaussian): the marginal is one quadratic form in A ∘ C for each g, O(N²) a value and no exponential per
        pair, and no factor of it can overflow.
        """
        total = np.zeros(len(points))
        chosen = np.asarray(axes)
        step = max(1, _BLOCK_ENTRIES // len(self.X))
        for weight, bumps, C in self._axis_forms(chosen):
            C *= weight * self.A
            for start in range(0, len(points), step):
                Q = bumps(points[start : start + step])  # (N, G)
                total[start : start + step] += np.einsum("ng,ng->g", Q, C @ Q)
        prior = _marginal_pdf(self.measure, chosen, points)
        if isinstance(self.measure, Bounded):  # q holds no density here, so that it may be zero, as outside the box
            return np.asarray((total + self.constant) * prior)
        return np.asarray(total + self.constant * prior)

    def _axis_forms(self, axes: NDArray[np.intp]) -> Iterator[tuple[float, _Bumps, Array]]:
        """For each component of π: its weight, the factors q, and C (N, N)."""
        others = ~np.isin(np.arange(self.X.shape[1]), axes)
        if isinstance(self.measure, Bounded):
            yield 1.0, self._bumps(self.measure, axes), self._box_overlap(self.measure, others)
            return
        for weight, gaussian in _components(self.measure):
            yield weight, self._bumps(gaussian, axes), self._gaussian_overlap(gaussian, axes, others)

    def _bumps(self, part: Gaussian | Bounded, axes: NDArray[np.intp]) -> _Bumps:
        """q_i(g): inside a box κ on these axes; under a Gaussian q_i² = W_ii N(g; m_ii, S_aa), m_ii = 2h_i."""
        if isinstance(part, Bounded):
            return _Bumps(self.X[:, axes], np.diag(self.lengthscales[axes]), np.ones(len(self.X)))
        product = product_gaussian(self._kernel, part, self.X)
        L = cholesky(product.cov[np.ix_(axes, axes)])
        norm = np.prod(np.sqrt(2.0 * math.pi) * np.diag(L))
        squares = product_mean_diagonal(self._kernel, part, self.X) / norm
        return _Bumps(2.0 * product.halves[:, axes], math.sqrt(2.0) * L, np.sqrt(squares))

    def _box_overlap(self, box: Bounded, others: NDArray[np.bool_]) -> Array:
        """C = W of the other axes, (N, N)."""
        if not others.any():
            return np.ones_like(self.A)
        kernel = SquaredExponential(1.0, self.lengthscales[others])
        return product_mean(kernel, _some_axes(box, others), self.X[:, others])

    def _gaussian_overlap(self, gaussian: Gaussian, axes: NDArray[np.intp], others: NDArray[np.bool_]) -> Array:
        """C_ij = exp(−½ ΔᵀΛ⁻¹SΛ⁻¹Δ) over the other axes, S = (2Λ⁻¹ + Σ_c⁻¹)⁻¹, Σ_c that of π given the chosen."""
        if not others.any():
            return np.ones_like(self.A)
        root = solve_lower(cholesky(gaussian.cov[np.ix_(axes, axes)]), gaussian.cov[np.ix_(axes, others)])
        conditional = gaussian.cov[np.ix_(others, others)] - root.T @ root
        lengthscales = self.lengthscales[others]
        given = Gaussian(np.zeros(lengthscales.size), conditional)
        S = product_gaussian(SquaredExponential(1.0, lengthscales), given, self.X[:, others]).cov
        features = (self.X[:, others] / np.square(lengthscales)) @ cholesky(S)
        return SquaredExponential(1.0, 1.0).gram(features)

    def axis_rule(self, axis: int) -> tuple[Array, Array, Array]:
        """Gauss-Legendre panels for integrals of the marginal: ends (P + 1,), nodes (P·20,), weights (P·20,).

        Panels of the measure's own sd everywhere, and of the narrowest bump's width wherever there are data.
        """
        low, high, sd = self._range(axis)
        parts = [self.measure] if isinstance(self.measure, Bounded) else [g for _, g in _components(self.measure)]
        bumps = [self._bumps(part, np.array([axis])) for part in parts]
        width = min(min(float(b.L[0, 0]) for b in bumps) * math.sqrt(0.5), sd)  # of q²
        first = max(min(float(b.centres.min()) for b in bumps) - _BUMP_REACH * width, low)
        last = min(max(float(b.centres.max()) for b in bumps) + _BUMP_REACH * width, high)
        count = int(np.clip(math.ceil((last - first) / (_PANEL_SDS * width)), 1, _MAX_PANELS))
        coarse = np.linspace(low, high, math.ceil((high - low) / sd) + 1)
        outside = coarse[(coarse < first) | (coarse > last)]
        ends = np.unique(np.concatenate([outside, np.linspace(first, last, count + 1)]))
        nodes, weights = roots_legendre(_PANEL_NODES)
        half = 0.5 * np.diff(ends)[:, None]
        centres = 0.5 * (ends[1:] + ends[:-1])[:, None]
        return ends, (centres + half * nodes).ravel(), (half * weights).ravel()

    def _range(self, axis: int) -> tuple[float, float, float]:
        """Interval of u_axis that holds the measure, and the smallest sd of its components."""
        if isinstance(self.measure, Bounded):
            low, high = float(self.measure.low[axis]), float(self.measure.high[axis])
            return low, high, 0.5 * (high - low)
        means = np.array([g.mean[axis] for _, g in _components(self.measure)])
        sds = np.sqrt([g.cov[axis, axis] for _, g in _components(self.measure)])
        reach = _MEASURE_REACH * sds
        return float(np.min(means - reach)), float(np.max(means + reach)), float(sds.min())


@dataclass(frozen=True, eq=False)
class _Bumps:
    """q_n(g) = a_n exp(−½ |L⁻¹(g − y_n)|²): centres y (N, K), one lower factor L (K, K), heights a (N,)."""

    centres: Array
    L: Array
    heights: Array

    def __call__(self, points: Array) -> Array:
        """(N, G), for points (G, K)."""
        exponent = np.zeros((len(self.centres), len(points)))
        for g, y in zip(solve_lower(self.L, points.T), solve_lower(self.L, self.centres.T), strict=True):
            exponent += np.square(g - y[:, None])
        return np.asarray(self.heights[:, None] * np.exp(-0.5 * exponent))


def _components(measure: Gaussian | GaussianMixture) -> list[tuple[float, Gaussian]]:
    """Pairs of weight and component."""
    if isinstance(measure, Gaussian):
        return [(1.0, measure)]
    return list(zip(measure.weights.tolist(), measure.components, strict=True))


def _some_axes(box: Bounded, chosen: NDArray[np.bool_]) -> Bounded:
    """The measure of the chosen axes, which are independent of the others."""
    if isinstance(box, Uniform):
        return Uniform(box.low[chosen], box.high[chosen])
    densities = [density for density, use in zip(box.densities, chosen, strict=True) if use]
    return Polynomial.of_densities(box.low[chosen], box.high[chosen], densities)


def _marginal_pdf(measure: Measure, axes: NDArray[np.intp], points: Array) -> Array:
    """π's own marginal density on some axes, (G,), at points (G, K)."""
    if isinstance(measure, Bounded):
        parts = (np.exp(_some_axes(measure, np.arange(measure.dim) == d).log_pdf(points[:, [k]]))
                 for k, d in enumerate(axes))  # fmt: skip
        return np.asarray(math.prod(parts))
    marginals = [(w, Gaussian(g.mean[axes], g.cov[np.ix_(axes, axes)])) for w, g in _components(measure)]
    return np.asarray(sum(w * np.exp(marginal.log_pdf(points)) for w, marginal in marginals))


def truncated_moments(centres: Array, sds: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Mean and variance of N(y, s²) truncated to [low, high], for y inside it.

    With a = (low − y)/s, b = (high − y)/s and Z = Φ(b) − Φ(a): mean y + s (φ(a) − φ(b))/Z, variance
    s² (1 + (aφ(a) − bφ(b))/Z − ((φ(a) − φ(b))/Z)²).

    Parameters
    ----------
    centres : (D, M) y, an axis to a row.
    sds, low, high : (D,).

    Returns
    -------
    mean, variance : (D, M) each.
    """
    means, variances = np.empty_like(centres), np.empty_like(centres)
    for d, (y, s, lo, hi) in enumerate(zip(centres, sds, low, high, strict=True)):
        moments = _narrow_moments if hi - lo < _NARROW * s else _wide_moments
        means[d], variances[d] = moments(y, float(s), float(lo), float(hi))
    return means, variances


def _wide_moments(y: Array, s: float, low: float, high: float) -> tuple[Array, Array]:
    """The closed form; a ≤ 0 ≤ b, so Z is a sum of two positive terms."""
    a, b = (low - y) / s, (high - y) / s
    Z = 0.5 * (erf(b * math.sqrt(0.5)) - erf(a * math.sqrt(0.5)))
    phi_a, phi_b = (np.exp(-0.5 * np.square(t)) / (math.sqrt(2.0 * math.pi) * Z) for t in (a, b))
    shift = phi_a - phi_b
    return y + s * shift, s**2 * (1.0 + a * phi_a - b * phi_b - np.square(shift))


def _narrow_moments(y: Array, s: float, low: float, high: float) -> tuple[Array, Array]:
    """Gauss-Legendre with 12 nodes on an interval shorter than s."""
    nodes, weights = roots_legendre(12)
    t = 0.5 * (high - low) * nodes  # from the centre of the interval
    centre = 0.5 * (low + high)
    P = weights * np.exp(-0.5 * np.square((t - (y - centre)[:, None]) / s))  # (M, Q)
    P /= P.sum(axis=1, keepdims=True)
    mean = P @ t
    return centre + mean, np.einsum("mq,mq->m", P, np.square(t - mean[:, None]))
