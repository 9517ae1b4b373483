"""Weighted draws: moments, marginals and draws against plain formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from wsabi.weighted_samples import WeightedSamples


@pytest.fixture
def samples():
    """Draws of N(0, I) weighted to N((1, −½), I)."""
    points = np.random.default_rng(0).normal(size=(20_000, 2))
    log_weights = points @ [1.0, -0.5] - 1e4  # weights that underflow unless scaled
    log_weights[0] = -np.inf
    return WeightedSamples.from_log_weights(points, log_weights, ("a", "b"))


def test_moments(samples):
    """Effective size 20,000/e^1.25 = 5,700, so a standard error of 0.013; 0.08 is six of them: false alarm 1e-8."""
    assert samples.weights.sum() == pytest.approx(1.0)
    assert samples.effective_sample_size == pytest.approx(20_000 * math.exp(-1.25), rel=0.15)
    assert_allclose(samples.mean, [1.0, -0.5], atol=0.08)
    assert_allclose(samples.cov, np.eye(2), atol=0.12)
    assert len(samples.points) == 19_999  # the point of weight zero is left out


def test_expect_agrees_with_the_moments(samples):
    assert_allclose(samples.expect(lambda X: X, vectorized=True), samples.mean)
    few = WeightedSamples(samples.points[:50], np.full(50, 0.02), ("a", "b"), keyed=True)
    assert few.expect(lambda p: p["a"] - p["b"]) == pytest.approx(few.mean[0] - few.mean[1])
    with pytest.raises(ValueError, match="f returned shape"):
        few.expect(lambda p: 1.0, vectorized=True)


def test_marginal_is_a_density(samples):
    """The kernel estimate of bandwidth h ≈ 0.16 widens N(1, 1) to N(1, 1 + h²): 1.2 % lower at the top."""
    marginal = samples.marginal("a")
    assert_allclose(integrate.trapezoid(marginal.density, marginal.grid), 1.0, atol=2e-3)
    at = samples.marginal(0, [0.0, 1.0, 2.0])
    assert_allclose(at.density, stats.norm.pdf([0.0, 1.0, 2.0], loc=1.0), atol=0.03)
    with pytest.raises(ValueError, match="not one of a, b"):
        samples.marginal("c")
    with pytest.raises(ValueError, match="index below 2"):
        samples.marginal(2)
    with pytest.raises(ValueError, match="grid must be a vector"):
        samples.marginal(0, [[0.0]])


def test_draws_follow_the_weights(samples):
    draws = samples.sample(4000, rng=0)
    assert_allclose(draws.mean(axis=0), samples.mean, atol=0.02)  # systematic: a few points more or less
    assert np.array_equal(draws, samples.sample(4000, rng=0))
    with pytest.raises(ValueError, match="n must be"):
        samples.sample(0)


def test_no_weight_is_an_error():
    with pytest.raises(ValueError, match="no finite value among 3"):
        WeightedSamples.from_log_weights(np.zeros((3, 1)), np.full(3, -np.inf), ("a",))
