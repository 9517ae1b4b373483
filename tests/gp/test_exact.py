"""The Gaussian process against textbook formulas with dense solves; gradients against central differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import reference
from wsabi._core.linalg import JITTER
from wsabi._core.types import Array
from wsabi.gp.exact import GP, condition, log_marginal_likelihood, profiled_scale


def make_data(dim: int, n: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Points (n, D), values (n,) and unequal length-scales (D,)."""
    rng = np.random.default_rng([seed, dim, n])
    return reference.spread_points(n, dim, rng, 2.0), rng.standard_normal(n) + 1.0, rng.uniform(0.5, 1.0, dim)


def textbook(gp: GP, values: Array, Q: Array) -> tuple[Array, Array]:
    """m̃ from the data, C̃ from data and pending points, (M,) and (M, M)."""
    m_tilde, _ = reference.posterior(gp.kernel, gp.X, values, Q, gp.jitter)
    _, c_tilde = reference.posterior(gp.kernel, gp.rows, np.zeros(len(gp.rows)), Q, gp.jitter)
    return m_tilde, c_tilde


@pytest.mark.parametrize("scale", [None, 2.5])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_predictions_match_the_textbook(dim: int, scale: float | None) -> None:
    X, values, lengthscales = make_data(dim, 7)
    gp = condition(X, values, lengthscales, scale=scale)
    Q = np.random.default_rng(9).standard_normal((5, dim))
    m_tilde, c_tilde = textbook(gp, values, Q)
    # Cancellation in C̃ and the condition of K leave about 1e-11; a lost jitter or scale is far above.
    m, c = gp.predict(Q)
    assert_allclose(m, m_tilde, rtol=1e-9)
    assert_allclose(c, np.diag(c_tilde), rtol=1e-9, atol=1e-12)
    assert_allclose(gp.mean(Q), m_tilde, rtol=1e-9)
    m, full = gp.covariance(Q)
    assert_allclose(m, m_tilde, rtol=1e-9)
    assert_allclose(full, c_tilde, rtol=1e-9, atol=1e-12)
    if scale is not None:
        assert gp.scale == scale
        assert gp.kernel.scale == scale


def test_the_model_interpolates_and_is_certain_at_its_data() -> None:
    X, values, lengthscales = make_data(2, 6)
    m, c = condition(X, values, lengthscales, scale=1.0).predict(X)
    assert_allclose(m, values, rtol=1e-7)
    assert np.all(c < 1e-9)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_gradients_match_central_differences(dim: int) -> None:
    X, values, lengthscales = make_data(dim, 6)
    gp = condition(X, values, lengthscales)
    gp.append(np.full(dim, 0.3))  # gradients see pending points too
    # A point clear of the data: next to one C̃ is 1e-4 of λ² or less, and its differences over 1e-5 are round-off.
    x = np.random.default_rng(8).standard_normal(dim)
    m, c, _, _ = gp.predict_with_gradient(x)
    assert_allclose([m, c], np.ravel(gp.predict(x[None])), rtol=1e-9)
    reference.assert_gradient(lambda y: gp.predict_with_gradient(y)[0], lambda y: gp.predict_with_gradient(y)[2], x)
    reference.assert_gradient(lambda y: gp.predict_with_gradient(y)[1], lambda y: gp.predict_with_gradient(y)[3], x)


def test_pending_points_condition_the_variance_and_leave_the_mean() -> None:
    X, values, lengthscales = make_data(2, 6)
    gp = condition(X, values, lengthscales)
    Q, pending = np.random.default_rng(5).standard_normal((4, 2)), np.array([[0.4, -0.3], [1.0, 1.2]])
    before, c_before = gp.predict(Q)
    for x in pending:
        row, pivot = gp.append(x)
    assert_array_equal(gp.pending, pending)
    assert_array_equal(gp.X, X)
    m, c = gp.predict(Q)
    assert_array_equal(m, before)
    assert_allclose(c, np.diag(textbook(gp, values, Q)[1]), rtol=1e-9)
    assert_allclose([*row, pivot], gp.factor.lower()[-1], rtol=1e-15)
    assert_allclose(np.diag(gp.covariance(Q)[1]), c_before, rtol=1e-9)  # covariance is given the data alone
    gp.drop_pending()
    assert len(gp.pending) == 0
    assert_array_equal(gp.predict(Q)[1], c_before)


@given(st.integers(1, 3), st.integers(1, 6), st.integers(1, 6), st.integers(0, 50))
def test_appending_equals_conditioning_from_scratch(dim: int, n: int, extra: int, seed: int) -> None:
    X, values, lengthscales = make_data(dim, n + extra, seed)
    gp = condition(X[:n], values[:n], lengthscales)
    for x in X[n:]:
        gp.append(x)
    gp.accept_pending(values)
    scratch = condition(X, values, lengthscales)
    Q = np.random.default_rng(seed).standard_normal((4, dim))
    assert gp.n == n + extra
    # The condition of K may reach 1e10, the inverse of the jitter, on points that fall together: 1e-6 of a mean.
    assert_allclose(gp.scale, scratch.scale, rtol=1e-6)
    for mine, other in zip(gp.predict(Q), scratch.predict(Q), strict=True):
        assert_allclose(mine, other, rtol=1e-5, atol=1e-6 * scratch.scale**2)
    assert_allclose(gp.lower(), scratch.lower(), atol=1e-6)


def test_other_values_at_the_same_data() -> None:
    X, values, lengthscales = make_data(2, 6)
    gp = condition(X, values, lengthscales)
    gp.set_values(3.0 * values)
    other = condition(X, 3.0 * values, lengthscales)
    assert_allclose(gp.weights, other.weights, rtol=1e-12)
    assert_allclose(gp.scale, other.scale, rtol=1e-14)
    gp.set_values(values, scale=0.5)
    assert gp.scale == 0.5


@given(st.integers(0, 100), st.integers(1, 3), st.integers(1, 8))
def test_variance_never_grows_with_data(seed: int, dim: int, n: int) -> None:
    """At fixed hyperparameters; λ is fixed for that reason."""
    X, values, lengthscales = make_data(dim, n + 1, seed)
    Q = np.random.default_rng(seed).standard_normal((5, dim))
    fewer = condition(X[:n], values[:n], lengthscales, scale=1.0).predict(Q)[1]
    more = condition(X, values, lengthscales, scale=1.0).predict(Q)[1]
    assert np.all(more <= fewer + 1e-9)  # round-off of the solves


@given(st.integers(0, 100), st.integers(2, 8))
def test_the_order_of_the_data_does_not_matter(seed: int, n: int) -> None:
    X, values, lengthscales = make_data(2, n, seed)
    order = np.random.default_rng(seed).permutation(n)
    Q = np.random.default_rng(seed).standard_normal((4, 2))
    first, second = (condition(X[o], values[o], lengthscales).predict(Q) for o in (np.arange(n), order))
    for a, b in zip(first, second, strict=True):
        assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_profiled_scale_is_the_maximum_of_the_likelihood() -> None:
    X, values, lengthscales = make_data(2, 8)
    gp = condition(X, values, lengthscales)
    R = gp.factor.lower() @ gp.factor.lower().T

    def log_density(scale: float) -> float:
        return float(stats.multivariate_normal(np.zeros(8), scale**2 * R).logpdf(values))

    best = log_density(gp.scale)
    assert best > max(log_density(gp.scale * factor) for factor in (0.99, 1.01))
    value, *_ = log_marginal_likelihood(X, values, np.log(lengthscales))
    assert_allclose(value, best, rtol=1e-10)
    assert profiled_scale(np.zeros(3)) == 1.0  # nothing to learn from: any scale explains zeros


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize(("dim", "n"), [(1, 1), (1, 5), (2, 8), (3, 9)])
def test_marginal_likelihood_and_its_gradient(dim: int, n: int, offset: float) -> None:
    X, values, lengthscales = make_data(dim, n)
    R = reference.kernel_matrix(condition(X, values, lengthscales, scale=1.0).kernel, X, X) + JITTER * np.eye(n)
    variance = float(values @ np.linalg.solve(R, values)) / n
    expected = stats.multivariate_normal(np.zeros(n), variance * R).logpdf(values)
    value, *_ = log_marginal_likelihood(X + offset, values, np.log(lengthscales))
    assert_allclose(value, expected, rtol=1e-8)  # x + 1e6 has lost 1e-10
    reference.assert_gradient(
        lambda theta: log_marginal_likelihood(X + offset, values, theta)[0],
        lambda theta: log_marginal_likelihood(X + offset, values, theta)[1],
        np.log(lengthscales),
        rtol=1e-6,  # the value's own round-off, the condition of R times ε, divided by h
    )


@pytest.mark.parametrize("length", [1e-3, 1.0, 1e3])
def test_extreme_lengthscales_stay_finite(length: float) -> None:
    X, values, _ = make_data(3, 20)
    gp = condition(X, values, np.full(3, length))
    m, c = gp.predict(np.concatenate([X, X + 0.1]))
    assert np.all(np.isfinite(m))
    assert np.all((c >= 0.0) & (c <= gp.scale**2))
    assert math.isfinite(log_marginal_likelihood(X, values, np.full(3, math.log(length)))[0])
