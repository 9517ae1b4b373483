"""Quantiles of densities on panels against known distributions; shortest intervals; weighted quantiles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from wsabi.posterior.distribution import PanelDistribution, shortest_interval, weighted_quantiles

LEVELS = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999999])


def panels(low, high, n, pdf):
    ends = np.linspace(low, high, n + 1)
    nodes, _ = np.polynomial.legendre.leggauss(20)
    half = 0.5 * np.diff(ends)[:, None]
    return PanelDistribution.of(ends, pdf(0.5 * (ends[1:] + ends[:-1])[:, None] + half * nodes).ravel())


@pytest.mark.parametrize(
    ("distribution", "ends"),
    [(stats.norm(1.0, 2.0), (-19.0, 21.0)), (stats.gamma(3.0), (0.0, 60.0)), (stats.beta(2.0, 5.0), (0.0, 1.0))],
)
def test_quantiles_invert_the_distribution_function(distribution, ends):
    """A factor in the density cancels; 1e-10 of the sd is the round-off of the cumulative sums in the tails."""
    found = panels(*ends, 30, lambda x: 7.0 * distribution.pdf(x)).quantiles(LEVELS)
    assert_allclose(found, distribution.ppf(LEVELS), rtol=1e-9, atol=1e-8 * distribution.std())


def test_the_ends_are_the_ends():
    flat = panels(2.0, 5.0, 3, np.ones_like)
    assert_allclose(flat.quantiles(np.array([0.0, 0.25, 1.0])), [2.0, 2.75, 5.0], rtol=1e-14)


def test_shortest_interval():
    norm, gamma = stats.norm(), stats.gamma(3.0)
    assert_allclose(shortest_interval(norm.ppf, 0.95), [-1.959964, 1.959964], atol=1e-4)
    low, high = shortest_interval(gamma.ppf, 0.9)
    assert_allclose(gamma.pdf(low), gamma.pdf(high), rtol=1e-4)  # where the density is equal it is the shortest
    assert_allclose(gamma.cdf(high) - gamma.cdf(low), 0.9, rtol=1e-10)
    assert shortest_interval(stats.expon().ppf, 0.8)[0] == 0.0


@given(
    x=st.lists(st.integers(-1000, 1000), min_size=2, max_size=30, unique=True),  # a shift leaves their order
    q=st.floats(0.0, 1.0),
    shift=st.floats(-10.0, 10.0),
)
def test_weighted_quantiles_are_monotone_and_shift_with_the_values(x, q, shift):
    values = np.array(x, dtype=float)
    weights = np.arange(1.0, len(x) + 1.0)
    weights /= weights.sum()
    found = weighted_quantiles(values, weights, np.array([0.0, q, 1.0]))
    assert values.min() == found[0] <= found[1] <= found[2] == values.max()
    assert_allclose(weighted_quantiles(values + shift, weights, np.array([q])), found[1] + shift, atol=1e-9)


def test_weighted_quantiles_of_equal_weights_are_plain_ones():
    x = np.random.default_rng(0).normal(size=4001)
    found = weighted_quantiles(x, np.full(4001, 1 / 4001), np.array([0.1, 0.5, 0.9]))
    assert_allclose(found, np.quantile(x, [0.1, 0.5, 0.9]), atol=2e-3)
    assert found[1] == pytest.approx(np.median(x), rel=1e-9)
