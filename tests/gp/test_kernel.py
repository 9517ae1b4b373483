"""The kernel against explicit differences, its gradient, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import reference
from wsabi.gp.kernel import SquaredExponential


@pytest.mark.parametrize("dim", [1, 2, 3, 20])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_matrix_and_row_match_explicit_differences(dim: int, offset: float) -> None:
    """The fast form expands the square: uncentred, an offset of 1e6 would lose 1e-4."""
    rng = np.random.default_rng(dim)
    kernel = SquaredExponential(1.7, rng.uniform(0.5, 2.0, dim))
    A, B = offset + rng.standard_normal((5, dim)), offset + rng.standard_normal((4, dim))
    expected = reference.kernel_matrix(kernel, A, B)
    assert_allclose(kernel(A, B), expected, rtol=1e-11)  # round-off ε|a|² in an exponent of some tens
    for a, row in zip(A, expected, strict=True):
        assert_allclose(kernel.row(a, B), row, rtol=1e-13)
    K = kernel.gram(A)
    assert_array_equal(np.diag(K), 1.7**2)
    assert_allclose(K, reference.kernel_matrix(kernel, A, A), rtol=1e-11)


def test_one_lengthscale_serves_every_axis() -> None:
    A = np.random.default_rng(0).standard_normal((4, 3))
    assert_array_equal(SquaredExponential(2.0, 0.7)(A, A), SquaredExponential(2.0, [0.7] * 3)(A, A))
    assert SquaredExponential(2.0, 0.7).log_scale == np.log(2.0)


def test_gradient_matches_central_differences() -> None:
    rng = np.random.default_rng(3)
    kernel, X = SquaredExponential(1.3, [0.6, 1.1, 2.0]), rng.standard_normal((4, 3))
    for n in range(4):
        reference.assert_gradient(
            lambda x, n=n: float(kernel.row(x, X)[n]),  # type: ignore[misc]
            lambda x, n=n: kernel.gradient(x, X, kernel.row(x, X))[n],  # type: ignore[misc]
            rng.standard_normal(3),
        )


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan])
def test_scale_must_be_positive(scale: float) -> None:
    with pytest.raises(ValueError, match="scale must be positive and finite; got"):
        SquaredExponential(scale, 1.0)


@pytest.mark.parametrize("lengthscales", [0.0, [1.0, -1.0], [np.nan], [np.inf], [[1.0]]])
def test_lengthscales_must_be_a_positive_vector(lengthscales: object) -> None:
    with pytest.raises(ValueError, match="lengthscales must be positive and finite, a scalar or a vector; got"):
        SquaredExponential(1.0, lengthscales)  # type: ignore[arg-type]


def test_the_kernel_keeps_its_own_lengthscales() -> None:
    lengths = np.array([1.0, 2.0])
    kernel = SquaredExponential(1.0, lengths)
    lengths[0] = 9.0
    assert_array_equal(kernel.lengthscales, [1.0, 2.0])
