"""Streaming moments in log space against plain NumPy on numbers that fit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from wsabi.baselines.log_moments import LogMoments


@pytest.mark.parametrize("splits", [[1] * 40, [40], [7, 13, 20]])
@pytest.mark.parametrize("shift", [0.0, -1e4, 1e4])
def test_blocks_of_any_size_give_the_same_moments(splits, shift):
    a = np.random.default_rng(0).normal(scale=3.0, size=40)
    a[5] = -np.inf
    moments = LogMoments()
    for block in np.split(a + shift, np.cumsum(splits)[:-1]):
        moments.add(block)
    belief = moments.belief()
    y = np.exp(a)
    assert belief is not None
    assert_allclose(belief.log_mean - shift, math.log(y.mean()), atol=1e-10)
    assert_allclose(belief.log_var - 2 * shift, math.log(y.var(ddof=1) / 40), atol=1e-10)
    assert_allclose(moments.effective_size, y.sum() ** 2 / np.square(y).sum(), rtol=1e-10)


def test_a_nearly_constant_number_keeps_its_variance():
    """Relative spread 1e-9: Σy² − (Σy)²/n would lose every digit of it."""
    noise = np.random.default_rng(1).normal(size=1000)
    moments = LogMoments()
    for block in np.split(1e-9 * noise, 10):
        moments.add(block)
    belief = moments.belief()
    assert belief is not None
    assert_allclose(math.exp(0.5 * belief.log_var), 1e-9 * noise.std(ddof=1) / math.sqrt(1000), rtol=1e-5)


def test_one_number_has_no_known_spread():
    moments = LogMoments()
    moments.add(np.array([3.0]))
    belief = moments.belief()
    assert belief is not None
    assert (belief.log_mean, belief.log_z_std) == (3.0, math.inf)


def test_nothing_but_zeros_has_no_logarithm():
    moments = LogMoments()
    moments.add(np.full(5, -np.inf))
    moments.add(np.empty(0))
    assert moments.belief() is None
    assert (moments.n, moments.effective_size) == (5, 0.0)
