"""The kernel of interactions is the product it is defined by, a covariance, and has the slopes that it says."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from wsabi.adaptive.surrogate.interactions import AxisKernel, bent, interactions


def some_sides(dim: int, rng: np.random.Generator) -> np.ndarray:
    """log h, log a, c, log s, all different."""
    return np.array([[0.3], [0.2], [0.0], [0.8]]) + 0.5 * rng.standard_normal((4, dim))


def written_out(u: np.ndarray, w: np.ndarray, sides: np.ndarray) -> float:
    """The sum over all sets of parameters of Π a_d k_d, one term at a time, over the same with k = 1."""
    h, a, s = np.exp(sides[[0, 1, 3]])
    axis = [[s[d] / h[d] * math.tanh((x[d] - sides[2, d]) / s[d]) for d in range(len(u))] for x in (u, w)]
    k = [1.0 / (1.0 + (axis[0][d] - axis[1][d]) ** 2) for d in range(len(u))]
    sets = [chosen for n in range(len(u) + 1) for chosen in itertools.combinations(range(len(u)), n)]
    terms = [math.prod(a[d] * k[d] for d in chosen) for chosen in sets]
    return sum(terms) / sum(math.prod(a[d] for d in chosen) for chosen in sets)


@given(dim=st.integers(1, 6), n=st.integers(1, 6), m=st.integers(1, 6), seed=st.integers(0, 10**6))
def test_it_is_the_sum_over_all_sets_of_parameters(dim: int, n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    U, W, sides = 2.0 * rng.standard_normal((n, dim)), 2.0 * rng.standard_normal((m, dim)), some_sides(dim, rng)
    expected = [[written_out(u, w, sides) for w in W] for u in U]
    assert_allclose(interactions(bent(U, sides), bent(W, sides), sides[1]), expected, rtol=1e-11)


@given(dim=st.integers(1, 6), n=st.integers(2, 30), seed=st.integers(0, 10**6))
def test_it_is_a_covariance_of_unit_variance(dim: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = AxisKernel.of(3.0 * rng.standard_normal((n, dim)), some_sides(dim, rng)).p
    assert_allclose(np.diag(p), 1.0, rtol=1e-12)
    assert np.min(np.linalg.eigvalsh(p)) > -1e-12 * n


def test_a_wide_axis_is_straight_and_a_narrow_one_ends() -> None:
    u = np.array([[-30.0], [-1.0], [0.2], [1.0], [30.0]])
    straight = bent(u, np.array([[math.log(2.0)], [0.0], [0.1], [math.log(1e6)]]))
    assert_allclose(straight, (u - 0.1) / 2.0, rtol=1e-6)
    ending = bent(u, np.array([[math.log(2.0)], [0.0], [0.1], [math.log(3.0)]]))
    assert_allclose(ending[[0, -1], 0], [-1.5, 1.5], rtol=1e-6)


@pytest.mark.parametrize("far", [1.0, 1e4])
def test_slopes_are_those_of_finite_differences(far: float) -> None:
    """Of Σ_nm A_nm p_nm for a symmetric A; central differences at 1e-5 are right to 1e-9. One point may be far out."""
    rng = np.random.default_rng(2)
    U, A = rng.standard_normal((9, 4)), rng.standard_normal((9, 9))
    U[0] *= far
    A = A + A.T
    sides = some_sides(4, rng)

    def total(vector: np.ndarray) -> float:
        return float(np.sum(A * AxisKernel.of(U, vector.reshape(4, 4)).p))

    flat = sides.ravel()
    finite = [(total(flat + 1e-5 * e) - total(flat - 1e-5 * e)) / 2e-5 for e in np.eye(16)]
    assert_allclose(AxisKernel.of(U, sides).slopes(A).ravel(), finite, rtol=1e-6, atol=1e-8)
