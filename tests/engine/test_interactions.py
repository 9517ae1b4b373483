"""The kernel of interactions is the sum it is defined by, a covariance, and has the slopes that it says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from wsabi.engine.interactions import Pairs, interactions


def written_out(u: np.ndarray, v: np.ndarray) -> float:
    """½ (mean of k_d + mean of k_d k_e over pairs), one term at a time."""
    k = 1.0 / (1.0 + np.square(u - v))
    pairs = [k[d] * k[e] for d in range(len(k)) for e in range(d)]
    return float(0.5 * (np.mean(k) + np.mean(pairs)))


@given(dim=st.integers(2, 7), n=st.integers(1, 9), m=st.integers(1, 9), seed=st.integers(0, 10**6))
def test_it_is_the_sum_over_parameters_and_pairs(dim: int, n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    U, V = 2.0 * rng.standard_normal((n, dim)), 2.0 * rng.standard_normal((m, dim))
    assert_allclose(interactions(U, V), [[written_out(u, v) for v in V] for u in U], rtol=1e-12)


@given(dim=st.integers(2, 6), n=st.integers(2, 30), seed=st.integers(0, 10**6))
def test_it_is_a_covariance_of_unit_variance(dim: int, n: int, seed: int) -> None:
    U = 3.0 * np.random.default_rng(seed).standard_normal((n, dim))
    k = interactions(U, U)
    assert_allclose(np.diag(k), 1.0, rtol=1e-12)
    assert np.min(np.linalg.eigvalsh(k)) > -1e-12 * n


def test_pairs_are_the_lower_triangle_of_the_same_kernel() -> None:
    U = np.random.default_rng(1).standard_normal((6, 4))
    h = np.array([0.7, 1.1, 1.9, 3.0])
    pairs = Pairs.of(U)
    K = np.zeros(36)
    K[pairs.positions] = pairs.kernel(pairs.axes(np.log(h)))
    assert_allclose(K.reshape((6, 6), order="F"), np.tril(interactions(U / h, U / h), -1), rtol=1e-12)


def test_slopes_are_those_of_finite_differences() -> None:
    """Of Σ_nm A_nm p_nm for a symmetric A; central differences at 1e-5 are right to 1e-9."""
    rng = np.random.default_rng(2)
    U, A = rng.standard_normal((9, 4)), rng.standard_normal((9, 9))
    A = A + A.T
    pairs, log_h = Pairs.of(U), np.log([0.7, 1.1, 1.9, 3.0])

    def total(log_h: np.ndarray) -> float:
        return float(np.sum(A * interactions(U / np.exp(log_h), U / np.exp(log_h))))

    finite = [(total(log_h + 1e-5 * e) - total(log_h - 1e-5 * e)) / 2e-5 for e in np.eye(4)]
    assert_allclose(pairs.slopes(pairs.axes(log_h), A.ravel()[pairs.positions]), finite, rtol=1e-7)
