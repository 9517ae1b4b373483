"""The warp and its two approximations against their definitions and against samples of ½ℓ̃²."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from reference import likelihood_covariance
from wsabi._core.types import Array
from wsabi.quadrature.warp import latent_values, likelihood_moments, offset
from wsabi.settings import Method


def test_offset_is_a_fraction_of_the_smallest_value() -> None:
    likelihood = np.array([1.0, 0.25, 0.5])
    assert offset(likelihood, "auto") == 0.0
    assert offset(likelihood, 0.8) == 0.2
    assert offset(np.array([1.0, 0.0]), 0.8) == 0.0


def test_latent_values_invert_the_warp() -> None:
    likelihood = np.array([1.0, 0.3, 0.2])
    for method in ("wsabi-l", "wsabi-m"):
        assert_allclose(0.16 + 0.5 * latent_values(likelihood, 0.16, method) ** 2, likelihood, rtol=1e-15)
    assert_array_equal(latent_values(likelihood, 0.0, "bq"), likelihood)
    below = latent_values(np.array([0.3]), 0.3 + 1e-17, "wsabi-l")  # round-off in α must not make a NaN
    assert_array_equal(below, [0.0])


def two_points() -> tuple[Array, Array]:
    """m̃ and C̃ at two correlated points, with C̃ of the order of m̃² so that L and M differ."""
    return np.array([0.9, -0.4]), np.array([[0.5, 0.3], [0.3, 0.8]])


@pytest.mark.parametrize("method", ["wsabi-l", "wsabi-m", "bq"])
def test_pointwise_variance_is_the_diagonal_of_the_covariance(method: Method) -> None:
    m_tilde, c_tilde = two_points()
    _, variance = likelihood_moments(method, 0.1, m_tilde, np.diag(c_tilde))
    assert_allclose(variance, np.diag(likelihood_covariance(method, m_tilde, c_tilde)), rtol=1e-15)


def test_moment_matching_has_the_moments_of_the_chi_squared_process(
    n: int = 400_000, false_alarm: float = 1e-6
) -> None:
    """Mean and covariance of α + ½ℓ̃², ℓ̃ ~ N(m̃, C̃); two-sided, Bonferroni over all five."""
    m_tilde, c_tilde = two_points()
    draws = np.random.default_rng(0).standard_normal((n, 2)) @ np.linalg.cholesky(c_tilde).T + m_tilde
    m, _ = likelihood_moments("wsabi-m", 0.1, m_tilde, np.diag(c_tilde))
    centred = 0.1 + 0.5 * draws**2 - m
    products = np.stack([centred[:, 0] ** 2, centred[:, 1] ** 2, centred[:, 0] * centred[:, 1]], axis=1)
    c = likelihood_covariance("wsabi-m", m_tilde, c_tilde)
    found = np.concatenate([centred, products - [c[0, 0], c[1, 1], c[0, 1]]], axis=1)
    z = found.mean(axis=0) / (found.std(axis=0) / np.sqrt(n))
    assert np.all(np.abs(z) < stats.norm.isf(false_alarm / (2 * z.size)))


def test_linearisation_is_the_first_order_expansion() -> None:
    """As C̃ shrinks, L's moments approach M's: means to C̃, covariances to C̃², no slower."""
    m_tilde, c_tilde = two_points()
    for shrink in (1e-3, 1e-6):
        small = shrink * c_tilde
        (m_l, _), (m_m, _) = (likelihood_moments(w, 0.1, m_tilde, np.diag(small)) for w in ("wsabi-l", "wsabi-m"))
        assert_allclose(m_m - m_l, 0.5 * np.diag(small), rtol=1e-6)
        gap = likelihood_covariance("wsabi-m", m_tilde, small) - likelihood_covariance("wsabi-l", m_tilde, small)
        assert_allclose(gap, 0.5 * small**2, rtol=1e-4)


def test_bayes_hermite_sees_the_likelihood_itself() -> None:
    m_tilde, c_tilde = two_points()
    assert likelihood_moments("bq", 0.1, m_tilde, np.diag(c_tilde))[0] is m_tilde
    assert likelihood_covariance("bq", m_tilde, c_tilde) is c_tilde
