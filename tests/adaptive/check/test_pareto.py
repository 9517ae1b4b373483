"""The tail of importance weights: k is recovered, and defined whatever the weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from wsabi.adaptive.check.pareto import pareto_k, smoothed


@pytest.mark.parametrize("k", [-0.3, 0.2, 0.5, 0.9, 1.5])
def test_pareto_k_recovers_the_shape(k: float) -> None:
    """5 000 Pareto weights have a tail of 213, whose k is known to (1 + k)/√213: five of those, false alarm 1e-6.

    The weak prior pulls towards ½ by (k − ½)·10/223, which is allowed for.
    """
    weights = 1.0 + stats.genpareto(k).rvs(5000, random_state=np.random.default_rng(3))
    expected = k + (0.5 - k) * 10.0 / 223.0
    assert abs(pareto_k(np.log(weights)) - expected) < 5.0 * (1.0 + k) / math.sqrt(213.0)


def test_pareto_k_does_not_see_the_scale_or_the_order_of_the_weights() -> None:
    log_w = np.log(stats.genpareto(0.6).rvs(300, random_state=np.random.default_rng(0)))
    assert_allclose(pareto_k(log_w + 500.0), pareto_k(log_w), atol=1e-9)
    assert_allclose(pareto_k(log_w - 1e4), pareto_k(log_w), atol=1e-9)  # rounded at 1e4
    assert_allclose(pareto_k(log_w[::-1]), pareto_k(log_w), atol=1e-12)


def test_only_the_tail_counts() -> None:
    """Of 300 weights the 52 = ⌈3√300⌉ largest and the one below them: what the others are changes nothing."""
    log_w = np.sort(stats.genpareto(0.6).logpdf(np.linspace(5.0, 0.0, 300)))
    other = log_w.copy()
    other[:247] -= 3.0
    assert pareto_k(other) == pareto_k(log_w)
    other[247:249] -= 0.1
    assert pareto_k(other) != pareto_k(log_w)


def test_pareto_k_of_few_equal_or_mostly_zero_weights() -> None:
    assert math.isnan(pareto_k(np.zeros(24)))
    assert pareto_k(np.zeros(100)) == 0.0
    mostly_zero = np.full(100, math.log(1e-300))
    mostly_zero[:3] = 0.0
    assert math.isfinite(pareto_k(mostly_zero))


@pytest.mark.parametrize("n_finite", [0, 1, 3, 12, 60])
def test_weights_of_zero_leave_nothing_to_chance(n_finite: int) -> None:
    """Points of zero likelihood have log weight −inf: k is NaN where all have, and a number otherwise."""
    log_w = np.full(100, -np.inf)
    log_w[:n_finite] = np.random.default_rng(0).standard_normal(n_finite)
    assert math.isnan(pareto_k(log_w)) == (n_finite == 0)


def test_one_weight_that_outgrows_the_rest_is_a_heavy_tail() -> None:
    """Lognormal weights of sd 4 have no usable mean at 400 draws; those of sd 0.3 are harmless."""
    z = np.random.default_rng(1).standard_normal(400)
    assert pareto_k(4.0 * z) > 0.7
    assert pareto_k(0.3 * z) < 0.5


def test_a_handful_of_weights_beside_nothing_is_all_tail() -> None:
    assert pareto_k(np.concatenate([[0.0], np.full(30, -1000.0)])) == math.inf
    assert pareto_k(np.zeros(31)) == 0.0


def test_smoothed_weights_keep_their_order_their_bulk_and_their_largest() -> None:
    """Draws of a generalised Pareto of shape 0.3: the sum of the smoothed weights is that of the raw ones to 2 %."""
    rng = np.random.default_rng(0)
    log_w = np.log(np.expm1(-0.3 * np.log1p(-rng.uniform(size=4000))) / 0.3 + 1e-3)
    smooth = smoothed(log_w)
    assert np.all(np.diff(smooth[np.argsort(log_w)]) >= 0.0)  # those held to the largest are equal
    changed = smooth != log_w
    assert 0 < changed.sum() <= 190
    assert np.max(smooth) <= np.max(log_w)
    assert abs(np.exp(smooth).sum() / np.exp(log_w).sum() - 1.0) < 0.02


def test_one_weight_that_stands_alone_counts_for_no_more_than_the_tail_says() -> None:
    log_w = np.log(np.random.default_rng(1).exponential(size=4000))
    lone = np.append(log_w, np.max(log_w) + math.log(20.0))
    share = float(np.exp(lone[-1]) / np.exp(lone).sum())
    smooth = smoothed(lone)
    assert share > 0.03
    assert np.exp(smooth[-1]) / np.exp(smooth).sum() < 0.3 * share


@pytest.mark.parametrize("log_w", [np.zeros(10), np.zeros(1000), np.full(100, -np.inf)])
def test_weights_without_a_tail_are_left_as_they_are(log_w: np.ndarray) -> None:
    assert np.array_equal(smoothed(log_w), log_w)
