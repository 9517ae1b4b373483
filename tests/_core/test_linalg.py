"""Factorisations against NumPy, the growing factor against a factorisation from scratch, and every refusal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from wsabi._core import linalg
from wsabi._core.linalg import JITTER, MAX_JITTER, GrowingFactor
from wsabi._core.types import Array
from wsabi.errors import NumericalError


def covariance(n: int, seed: int = 0) -> Array:
    """A well-conditioned covariance (n, n) with an uneven diagonal."""
    B = np.random.default_rng(seed).standard_normal((n, n))
    return np.asarray(B @ B.T + np.diag(np.linspace(1.0, 3.0, n)))


def test_factor_and_solves_match_numpy() -> None:
    A, b = covariance(6), np.random.default_rng(1).standard_normal((6, 3))
    L = linalg.cholesky(A)
    assert_allclose(L, np.linalg.cholesky(A), rtol=1e-13, atol=1e-14)
    for B in (b, b[:, 0]):  # a vector in gives a vector out
        assert linalg.solve_lower(L, B).shape == B.shape
        assert_allclose(linalg.solve_lower(L, B), np.linalg.solve(L, B), rtol=1e-11)
        assert_allclose(linalg.solve_upper(L, B), np.linalg.solve(L.T, B), rtol=1e-11)
    inverse = linalg.inverse_lower(L)
    assert_allclose(inverse, np.linalg.inv(L), rtol=1e-11, atol=1e-13)
    assert_allclose(linalg.multiply_lower(inverse, b), np.linalg.solve(L, b), rtol=1e-11)
    assert_allclose(linalg.log_det(L), np.linalg.slogdet(A)[1], rtol=1e-13)
    assert_allclose(linalg.inverse_from_cholesky(L), np.linalg.inv(A), rtol=1e-11, atol=1e-13)


def test_inputs_are_left_alone() -> None:
    A = np.asfortranarray(covariance(5))
    kept, b = A.copy(), np.ones((5, 2), order="F")
    L = linalg.cholesky(A)
    linalg.jittered_cholesky(A)
    L_kept = L.copy()
    linalg.inverse_from_cholesky(L)
    linalg.inverse_triangle(L)
    linalg.solve_lower(L, b)
    linalg.solve_upper(L, b)
    linalg.inverse_lower(L)
    linalg.multiply_lower(L, b)
    assert_array_equal(A, kept)
    assert_array_equal(L, L_kept)
    assert_array_equal(b, np.ones((5, 2)))


def test_jitter_is_relative_to_the_diagonal_and_grows_only_as_needed() -> None:
    for scale in (1e-12, 1.0, 1e12):
        L, jitter = linalg.jittered_cholesky(scale * covariance(5))
        assert jitter == JITTER
        expected = scale * (covariance(5) + JITTER * np.mean(np.diag(covariance(5))) * np.eye(5))
        assert_allclose(L @ L.T, expected, rtol=1e-12)
    # An eigenvalue of -3e-8 beside a mean diagonal of one: 1e-8 falls just short, 1e-7 suffices.
    indefinite = np.array([[1.0, 1.0 + 3e-8], [1.0 + 3e-8, 1.0]])
    L, jitter = linalg.jittered_cholesky(indefinite)
    assert_allclose(jitter, 1e-7)
    assert_allclose(L @ L.T, indefinite + 1e-7 * np.eye(2), rtol=1e-14)


def test_a_matrix_that_is_no_covariance_is_refused() -> None:
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(NumericalError, match=r"shape \(2, 2\) is not positive definite \(leading minor 2\)"):
        linalg.cholesky(indefinite)
    with pytest.raises(NumericalError, match=f"2 points is not positive definite even with .* {MAX_JITTER:g}"):
        linalg.jittered_cholesky(indefinite)
    with pytest.raises(NumericalError, match="not positive definite"):
        linalg.jittered_cholesky(np.full((2, 2), np.nan))
    singular = np.diag([1.0, 0.0])
    with pytest.raises(NumericalError, match="singular at row 2"):
        linalg.inverse_lower(singular)
    for solve in (linalg.solve_lower, linalg.solve_upper):
        with pytest.raises(NumericalError, match="singular at row 2"):
            solve(singular, np.ones(2))
    assert NumericalError("lost", state=3).state == 3


@given(st.integers(0, 100), st.integers(1, 5), st.integers(0, 6), st.integers(0, 12))
def test_appended_rows_equal_a_factorisation_from_scratch(seed: int, n: int, extra: int, capacity: int) -> None:
    A = covariance(n + extra, seed)
    factor = GrowingFactor.from_lower(linalg.cholesky(A[:n, :n]), capacity)
    for m in range(n, n + extra):
        row = factor.solve_lower(A[:m, m].copy())
        factor.append(row, float(np.sqrt(A[m, m] - row @ row)))
    L, b = np.linalg.cholesky(A), np.random.default_rng(seed).standard_normal(n + extra)
    assert_allclose(factor.lower(), L, rtol=1e-10, atol=1e-12)
    assert_allclose(factor.solve_lower(b), np.linalg.solve(L, b), rtol=1e-8, atol=1e-10)
    assert_allclose(factor.solve_upper(b), np.linalg.solve(L.T, b), rtol=1e-8, atol=1e-10)


def test_gaussian_exponent_is_minus_half_the_square_distance() -> None:
    rng = np.random.default_rng(3)
    A, B = rng.standard_normal((5, 3)), rng.standard_normal((4, 3))
    expected = -0.5 * np.square(A[:, None] - B).sum(axis=2)
    for constant in (0.0, -700.0, 2.5):
        # ε(|a|² + |b|² + |constant|): no more than square_distances and a sum would lose
        assert_allclose(linalg.gaussian_exponent(A, B, constant), constant + expected, rtol=0.0, atol=1e-12)
    near = 1e3 + 1e-9 * rng.standard_normal((5, 3))
    assert np.all(linalg.gaussian_exponent(near, near, 1.5) <= 1.5)


def test_square_distances_are_never_negative() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((7, 3)), rng.standard_normal((4, 3))
    assert_allclose(linalg.square_distances(A, B), np.square(A[:, None] - B).sum(axis=2), rtol=1e-13)
    near = 1e3 + 1e-9 * A  # where a² + b² − 2ab cancels: round-off of either sign
    assert np.all(linalg.square_distances(near, near) >= 0.0)
