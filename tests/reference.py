"""Slow, obvious twins of the fast code: plain formulas and brute-force quadrature, for the tests to compare with."""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.testing import assert_allclose

from wsabi._core.types import Array
from wsabi.gp.exact import GP
from wsabi.gp.kernel import SquaredExponential
from wsabi.priors import Bounded, Gaussian, GaussianMixture, Measure, Polynomial, Uniform
from wsabi.quadrature.warp import likelihood_moments
from wsabi.settings import Method


def kernel_matrix(kernel: SquaredExponential, A: Array, B: Array) -> Array:
    """k(a_n, b_m), (N, M), by explicit differences."""
    differences = (A[:, None, :] - B[None, :, :]) / kernel.lengthscales
    return np.asarray(kernel.scale**2 * np.exp(-0.5 * np.square(differences).sum(axis=2)))


def _tensor(nodes: Array, weights: Array, dim: int) -> tuple[Array, Array]:
    """The D-fold product of a one-dimensional rule: nodes (Q^D, D), weights (Q^D,)."""
    points = np.array(list(itertools.product(nodes, repeat=dim)))
    return points, np.array([np.prod(w) for w in itertools.product(weights, repeat=dim)])


def quadrature(measure: Measure, order: int) -> tuple[Array, Array]:
    """Nodes (Q, D) and weights (Q,) with Σ w_q f(x_q) ≈ ∫ f π: Gauss-Hermite or Gauss-Legendre, tensor products."""
    if isinstance(measure, GaussianMixture):
        rules = [quadrature(component, order) for component in measure.components]
        scaled = [w * rule[1] for w, rule in zip(measure.weights, rules, strict=True)]
        return np.concatenate([rule[0] for rule in rules]), np.concatenate(scaled)
    if isinstance(measure, Gaussian):
        nodes, weights = np.polynomial.hermite_e.hermegauss(order)
        points, products = _tensor(nodes, weights / weights.sum(), measure.dim)
        return measure.mean + points @ np.linalg.cholesky(measure.cov).T, products
    assert isinstance(measure, Bounded)
    nodes, weights = np.polynomial.legendre.leggauss(order)
    points, products = _tensor(nodes, weights / 2.0, measure.dim)
    if isinstance(measure, Polynomial):
        columns = zip(points.T, measure.coefficients, strict=True)
        products = products * np.prod([np.polyval(c[::-1], 0.5 * (x + 1.0)) for x, c in columns], axis=0)
    return 0.5 * (measure.low + measure.high) + 0.5 * (measure.high - measure.low) * points, products


def kernel_mean(kernel: SquaredExponential, measure: Measure, X: Array, order: int) -> Array:
    """∫ k(x, x_n) π, (N,)."""
    nodes, weights = quadrature(measure, order)
    return np.asarray(kernel_matrix(kernel, X, nodes) @ weights)


def _node_blocks(kernel: SquaredExponential, nodes: Array) -> Iterator[tuple[slice, Array]]:
    """Rows of k(x_q, x_r) between all nodes, 64 at a time: the whole matrix would not fit in memory."""
    for start in range(0, len(nodes), 64):
        rows = slice(start, start + 64)
        yield rows, kernel_matrix(kernel, nodes[rows], nodes)


def kernel_variance(kernel: SquaredExponential, measure: Measure, order: int, power: int = 1) -> float:
    """∬ k(x, x')^power π π'."""
    nodes, weights = quadrature(measure, order)
    return sum(float(weights[rows] @ (K**power @ weights)) for rows, K in _node_blocks(kernel, nodes))


def product_mean(kernel: SquaredExponential, measure: Measure, X: Array, Y: Array, order: int) -> Array:
    """∫ k(x, x_n) k(x, y_m) π, (N, M)."""
    nodes, weights = quadrature(measure, order)
    return np.asarray((kernel_matrix(kernel, X, nodes) * weights) @ kernel_matrix(kernel, nodes, Y))


def chain_mean(kernel: SquaredExponential, measure: Measure, X: Array, Y: Array, order: int) -> Array:
    """∬ k(x_n, x) k(x, x') k(x', y_m) π π', (N, M): the inner integral at each outer node."""
    nodes, weights = quadrature(measure, order)
    right = weights[:, None] * kernel_matrix(kernel, nodes, Y)
    inner = np.concatenate([K @ right for _, K in _node_blocks(kernel, nodes)])
    return np.asarray((kernel_matrix(kernel, X, nodes) * weights) @ inner)


# Exact rational arithmetic: every float is a fraction, so exponents and determinants carry no round-off at all until
# the last square root and exponential. Slow, and right for any ratio of length-scale to standard deviation.
Rational = list[list[Fraction]]


def _rational(A: Array) -> Rational:
    return [[Fraction(float(a)) for a in row] for row in np.atleast_2d(A)]


def _solve(A: Rational, b: list[Fraction]) -> tuple[list[Fraction], Fraction]:
    """A⁻¹b and |A| by Gaussian elimination; A is positive definite, so no pivoting is needed."""
    n, rows, det = len(b), [[*row, b_i] for row, b_i in zip(A, b, strict=True)], Fraction(1)
    for i in range(n):
        det *= rows[i][i]
        rows[i] = [a / rows[i][i] for a in rows[i]]
        for j in set(range(n)) - {i}:
            rows[j] = [a - rows[j][i] * c for a, c in zip(rows[j], rows[i], strict=True)]
    return [row[-1] for row in rows], det


def _quadratic(A: Rational, b: list[Fraction]) -> tuple[Fraction, Fraction]:
    """bᵀA⁻¹b and |A|."""
    solved, det = _solve(A, b)
    return sum((s * b_i for s, b_i in zip(solved, b, strict=True)), Fraction(0)), det


def _joint_gaussian(
    kernel: SquaredExponential, gaussian: Gaussian, links: list[tuple[int, int]], fixed: Array
) -> float:
    """E ∏ k(v_i, v_j) over links (i, j), v = (fixed points, then independent draws from the Gaussian), exactly.

    With y the draws about μ, the exponent is −½ (yᵀHy − 2gᵀy + c) after the prior's Σ⁻¹ is added to each draw's block
    of H, and the expectation is |H|^−½ ∏|Σ|^−½ exp(½ gᵀH⁻¹g − ½c): the plainest form, with no care for cancellation.
    """
    D, F = gaussian.dim, len(fixed)
    draws = max(max(link) for link in links) + 1 - F
    cov = _rational(gaussian.cov)
    points = [[p - m for p, m in zip(row, _rational(gaussian.mean)[0], strict=True)] for row in _rational(fixed)]
    precision = [1 / Fraction(float(length)) ** 2 for length in np.broadcast_to(kernel.lengthscales, (D,))]
    identity = [[Fraction(i == j) for j in range(D)] for i in range(D)]
    inverse = [_solve(cov, row)[0] for row in identity]
    H = [[Fraction(0)] * (draws * D) for _ in range(draws * D)]
    for e in range(draws):
        for i, j in itertools.product(range(D), repeat=2):
            H[e * D + i][e * D + j] += inverse[i][j]
    g, c = [Fraction(0)] * (draws * D), Fraction(0)
    for (a, b), d in itertools.product(links, range(D)):
        drawn = [(v - F) * D + d for v in (a, b) if v >= F]
        known = [points[v][d] for v in (a, b) if v < F]
        for i in drawn:
            H[i][i] += precision[d]
        if len(drawn) == 2:
            H[drawn[0]][drawn[1]] -= precision[d]
            H[drawn[1]][drawn[0]] -= precision[d]
        else:
            g[drawn[0]] += precision[d] * known[0]
            c += precision[d] * known[0] ** 2
    square, det = _quadratic(H, g)
    _, det_cov = _solve(cov, [Fraction(0)] * D)
    return kernel.scale ** (2 * len(links)) * math.exp(float(square - c) / 2) / math.sqrt(float(det * det_cov**draws))


def exact_product_mean(kernel: SquaredExponential, gaussian: Gaussian, x: Array, y: Array) -> float:
    """∫ k(x', x) k(x', y) π(x') for a single pair of points (D,), in rational arithmetic."""
    return _joint_gaussian(kernel, gaussian, [(0, 2), (1, 2)], np.stack([x, y]))


def exact_chain_mean(kernel: SquaredExponential, gaussian: Gaussian, x: Array, y: Array) -> float:
    """∬ k(x, s) k(s, s') k(s', y) π(s) π(s') for a single pair of points (D,), in rational arithmetic."""
    return _joint_gaussian(kernel, gaussian, [(0, 2), (2, 3), (3, 1)], np.stack([x, y]))


def exact_kernel_mean(kernel: SquaredExponential, gaussian: Gaussian, x: Array) -> float:
    """∫ k(x', x) π(x') for a single point (D,), in rational arithmetic."""
    return _joint_gaussian(kernel, gaussian, [(0, 1)], x[None])


# The Gaussian process and the moments of Z, straight from their definitions.


# Positive throughout; zero at the upper end, with a slope of zero; zero at the lower end, cubic.
POLYNOMIALS = [[0.2, 1.0, -0.7], [1.0, -2.0, 1.0], [0.0, 1.0, 0.5, -1.2]]


def make_measure(kind: str, dim: int, seed: int = 0) -> Measure:
    """A measure off the origin with unequal standard deviations near one and, where it can have one, a full Σ."""
    rng = np.random.default_rng([seed, dim])
    mean = rng.uniform(0.4, 1.2, dim) * np.where(np.arange(dim) % 2, -1.0, 1.0)
    if kind == "box":
        half = rng.uniform(1.2, 2.0, dim)
        return Uniform(mean - half, mean + half)
    if kind == "polynomial":
        half = rng.uniform(1.2, 2.0, dim)
        return Polynomial(mean - half, mean + half, POLYNOMIALS[:dim])
    factors = rng.standard_normal((2, dim, dim)) * 0.4 + 0.8 * np.eye(dim)
    covs = [A @ A.T for A in factors]
    if kind == "gaussian":
        return Gaussian(mean, covs[0])
    return GaussianMixture([1.0, 2.0], mean + 0.7 * rng.standard_normal((2, dim)), covs)


def spread_points(n: int, dim: int, rng: np.random.Generator, width: float = 3.0) -> Array:
    """Points (n, D) in [−width, width]^D, one per slice of each axis: unordered, uneven and never close together."""
    slices = np.stack([rng.permutation(n) for _ in range(dim)], axis=1) + rng.uniform(0.2, 0.8, (n, dim))
    return np.asarray(width * (2.0 * slices / n - 1.0))


def posterior(kernel: SquaredExponential, X: Array, values: Array, Q: Array, jitter: float) -> tuple[Array, Array]:
    """m̃ (M,) and C̃ (M, M) at Q: k_*ᵀ(K + ελ²I)⁻¹ℓ̃ and k_** − k_*ᵀ(K + ελ²I)⁻¹k_*."""
    K = kernel_matrix(kernel, X, X) + jitter * kernel.scale**2 * np.eye(len(X))
    k = kernel_matrix(kernel, X, Q)
    solved = np.linalg.solve(K, np.column_stack([values, k]))
    return k.T @ solved[:, 0], kernel_matrix(kernel, Q, Q) - k.T @ solved[:, 1:]


def likelihood_covariance(method: Method, m_tilde: Array, c_tilde: Array) -> Array:
    """C(x, x'), (M, M), from m̃ (M,) and C̃ (M, M).

    L: m̃ C̃ m̃', paper eq. (10);  M: ½C̃² + m̃ C̃ m̃', paper eq. (12)
    """
    if method == "bq":
        return c_tilde
    linear = m_tilde[:, None] * c_tilde * m_tilde
    return linear if method == "wsabi-l" else 0.5 * np.square(c_tilde) + linear


def moments(gp: GP, measure: Measure, alpha: float, method: Method, order: int) -> tuple[float, float]:
    """E[Z] = ∫ m π and V[Z] = ∬ C π π' by quadrature of the model's own m(x) and C(x, x')."""
    nodes, weights = quadrature(measure, order)
    m_tilde, c_tilde = gp.covariance(nodes)
    m, _ = likelihood_moments(method, alpha, m_tilde, np.diag(c_tilde))
    return float(weights @ m), float(weights @ likelihood_covariance(method, m_tilde, c_tilde) @ weights)


# The moments of Z in sixty decimal digits: no round-off at any condition of K that a jitter of 1e-10 allows.
DIGITS = decimal.Context(prec=60)


def _decimal_solve(A: list[list[Decimal]], columns: list[list[Decimal]]) -> list[list[Decimal]]:
    """A⁻¹b for each column b, by Gaussian elimination; A is positive definite."""
    n, rows = len(A), [[*row, *(b[i] for b in columns)] for i, row in enumerate(A)]
    for i in range(n):
        for j in range(i + 1, n):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [a - factor * c for a, c in zip(rows[j], rows[i], strict=True)]
    solved = [[Decimal(0)] * n for _ in columns]
    for k, x in enumerate(solved):
        for i in reversed(range(n)):
            x[i] = (rows[i][n + k] - sum((rows[i][j] * x[j] for j in range(i + 1, n)), Decimal(0))) / rows[i][i]
    return solved


def exact_variances(gp: GP, values: Array) -> dict[Method, Decimal]:
    """V[Z | D] under N(0, 1), D = 1, of a GP on these values with its jitter, each method's."""
    with decimal.localcontext(DIGITS):
        x, y = ([Decimal(float(v)) for v in column] for column in (gp.X[:, 0], values))
        l2, s2, n = Decimal(float(gp.lengthscales[0])) ** 2, Decimal(gp.scale) ** 2, len(x)
        half, pairs = Decimal("0.5"), list(itertools.product(range(n), repeat=2))

        def matrix(entry: Callable[[Decimal, Decimal], Decimal]) -> list[list[Decimal]]:
            return [[entry(a, b).exp() for b in x] for a in x]

        R = matrix(lambda a, b: -half * (a - b) ** 2 / l2)
        for i in range(n):
            R[i][i] += Decimal(gp.jitter)
        c, A, B = (l2 / (l2 + 2)).sqrt(), 1 / l2 + 1, 3 / l2 + 1
        w = [(l2 / (l2 + 1)).sqrt() * (-half * a * a / (l2 + 1)).exp() for a in x]
        W = [
            [c * e for e in row] for row in matrix(lambda a, b: -((a - b) ** 2) / l2 / 4 - (a + b) ** 2 / 4 / (l2 + 2))
        ]
        T = matrix(lambda a, b: ((a + b) ** 2 / A + (a - b) ** 2 / B) / l2**2 / 4 - half * (a * a + b * b) / l2)
        T = [[e / (A * B).sqrt() for e in row] for row in T]
        a, z, *solved = _decimal_solve(R, [w, y, *W, *T])
        PW, PT = solved[:n], solved[n:]  # columns of R⁻¹W and R⁻¹T
        Wz = [sum((W[i][j] * z[j] for j in range(n)), Decimal(0)) for i in range(n)]
        linear = sum((z[i] * T[i][j] * z[j] for i, j in pairs), Decimal(0))
        linear -= sum((p * q for p, q in zip(Wz, _decimal_solve(R, [Wz])[0], strict=True)), Decimal(0))
        spread = (l2 / (l2 + 4)).sqrt() + sum((PW[j][i] * PW[i][j] for i, j in pairs), Decimal(0))
        spread -= 2 * sum((PT[i][i] for i in range(n)), Decimal(0))
        bq = (l2 / (l2 + 2)).sqrt() - sum((p * q for p, q in zip(a, w, strict=True)), Decimal(0))
        return {"bq": s2 * bq, "wsabi-l": s2 * linear, "wsabi-m": s2 * linear + s2 * s2 * spread / 2}


def assert_gradient(f: Callable[[Array], float], grad: Callable[[Array], Array], x: Array, rtol: float = 1e-7) -> None:
    """Central differences: their error h² + ε/h is least at h = ε^⅓, about 1e-10; ``rtol`` leaves room."""
    h = np.cbrt(np.finfo(float).eps) * np.maximum(1.0, np.abs(x))
    differences = np.array([(f(x + e) - f(x - e)) / (2 * h_d) for h_d, e in zip(h, np.diag(h), strict=True)])
    assert_allclose(grad(x), differences, rtol=rtol, atol=rtol * float(np.max(np.abs(differences))))
