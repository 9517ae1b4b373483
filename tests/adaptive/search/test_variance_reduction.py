"""The uncertainty that goes with a datum is what conditioning takes from it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from wsabi.adaptive.search.variance_reduction import relative_variance, relief


def test_the_relative_variance_is_that_of_a_lognormal_up_to_four() -> None:
    """e^v − 1; beyond, e⁴ in place of e^v in what ignorance would multiply by."""
    v = np.array([1e-9, 0.3, 4.0])
    assert_allclose(relative_variance(v), np.expm1(v), rtol=1e-12)
    assert_allclose(relative_variance(np.array([50.0])), np.exp(4.0), rtol=1e-12)


@pytest.mark.parametrize("last", [1, 4, 7])
def test_relief_is_what_conditioning_takes(last: int) -> None:
    """By the Schur complement of a covariance of seven points, one datum at a time."""
    rng = np.random.default_rng(last)
    A = rng.standard_normal((7, 9))
    C, noise, weights = A @ A.T / 9.0, rng.uniform(0.1, 0.5, 7), rng.uniform(0.1, 1.0, last)
    expected = []
    for x in range(7):
        left = np.diag(C - np.outer(C[:, x], C[x]) / (C[x, x] + noise[x]))[7 - last :]
        uncertainty = [np.sqrt(relative_variance(v)) for v in (np.diag(C)[7 - last :], left)]
        expected.append(weights @ (uncertainty[0] - uncertainty[1]))
    found = relief(np.diag(C), C[:, 7 - last :], noise, weights)
    assert_allclose(found, expected, rtol=1e-12)
    assert np.all(found >= 0.0)
