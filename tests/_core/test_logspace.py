"""Likelihoods in and out of log space: no overflow, no NaN, the same numbers as the plain formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import special

from wsabi._core import logspace

values = st.lists(st.floats(-1e5, 1e5), min_size=1, max_size=8)


@given(values, st.floats(-1e5, 1e5))
def test_scaled_likelihood_has_maximum_one_and_forgets_the_offset(log_l: list[float], shift: float) -> None:
    scaled, top = logspace.scaled_likelihood(np.array(log_l))
    assert scaled.max() == 1.0
    assert top == max(log_l)
    moved, _ = logspace.scaled_likelihood(np.array(log_l) + shift)
    assert_allclose(moved, scaled, rtol=1e-9, atol=1e-300)  # round-off of 2e5 in the exponent is 3e-11


def test_zero_likelihoods_scale_to_zero_and_nothing_else_cannot_be_scaled() -> None:
    scaled, top = logspace.scaled_likelihood(np.array([-np.inf, -1e5, -1e5 + math.log(2)]))
    assert_allclose(scaled, [0.0, 0.5, 1.0], rtol=1e-10)
    assert top == -1e5 + math.log(2)
    with pytest.raises(ValueError, match="no finite log-likelihood among 2 values"):
        logspace.scaled_likelihood(np.array([-np.inf, -np.inf]))
    with pytest.raises(ValueError, match="no finite log-likelihood"):
        logspace.scaled_likelihood(np.array([np.nan, 0.0]))


@given(values)
def test_log_sums_match_scipy(a: list[float]) -> None:
    assert_allclose(logspace.log_sum_exp(np.array(a)), special.logsumexp(a), rtol=1e-14, atol=1e-14)


def test_log_of_nothing_is_minus_infinity() -> None:
    assert logspace.log_sum_exp(np.array([-np.inf, -np.inf])) == -math.inf
    assert logspace.safe_log(0.0) == logspace.safe_log(-1.0) == -math.inf
    assert logspace.safe_log(math.e) == 1.0


@given(st.floats(0.1, 10.0), st.floats(0.0, 2.0), st.floats(-1e4, 1e4))
def test_ratio_std_is_that_of_the_log_normal_with_these_moments(mean: float, sd: float, shift: float) -> None:
    """For log Z ~ N(μ, s²), E = exp(μ + ½s²) and V = E²(exp s² − 1), whatever the scale of Z."""
    log_var = 2.0 * math.log(mean) + (math.log(math.expm1(sd * sd)) if sd * sd > 0.0 else -math.inf)
    found = logspace.log_ratio_std(math.log(mean) + shift, log_var + 2.0 * shift)
    # 2·shift carries a round-off of 4e-12, which near sd = 0 moves the root of it by less than 1e-11.
    assert_allclose(found, sd, rtol=1e-10, atol=1e-10)


def test_ratio_std_of_a_mean_that_is_not_positive_is_infinite() -> None:
    assert logspace.log_ratio_std(-math.inf, -3.0) == math.inf
    assert logspace.log_ratio_std(-math.inf, -math.inf) == math.inf  # both underflow when all data are far away
