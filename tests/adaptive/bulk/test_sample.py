"""Bulk on a known target: unbiased, with an error that is right, and a density that comes to follow the target."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

import wsabi
from wsabi.adaptive.bulk.sample import Bulk
from wsabi.adaptive.check.proposal import Proposal

DIM = 3
# A ring in two of three coordinates: no mixture of a few Gaussians is that, and its integral is known by quadrature.
RADIUS, THICKNESS = 1.0, 0.2


def log_l(X: np.ndarray) -> np.ndarray:
    ring = -0.5 * np.square((np.hypot(X[:, 0], X[:, 1]) - RADIUS) / THICKNESS)
    return np.asarray(ring - 0.5 * np.square(X[:, 2] / 0.3))


@cache
def log_z() -> float:
    r = np.linspace(0.0, 4.0, 40_001)
    ring = np.trapezoid(r * np.exp(-0.5 * np.square((r - RADIUS) / THICKNESS) - 0.5 * r**2), r)
    return math.log(ring) + math.log(0.3 / math.sqrt(1.0 + 0.3**2))


@cache
def base() -> tuple[wsabi.Integrator, Proposal]:
    integrator = wsabi.Integrator(wsabi.Gaussian(np.zeros(DIM)), rng=0, settings=wsabi.Settings(bulk="off"))
    integrator.run(log_l, budget=120, tol=0, vectorized=True)
    return integrator, integrator.strategy.state.proposals[-1]  # type: ignore[attr-defined]


def log_joint(U: np.ndarray) -> np.ndarray:
    return np.asarray(log_l(U) + base()[0].chart.measure.log_pdf(U))


def filled(seed: int, batches: tuple[int, ...]) -> Bulk:
    rng, bulk = np.random.default_rng(seed), Bulk.none(DIM)
    for n in batches:
        bulk = bulk.begun(base()[1], n, rng)
        assert bulk.batch is not None
        bulk = bulk.told(0, log_joint(bulk.batch.U))
    return bulk


def test_the_estimate_is_unbiased_and_its_error_right() -> None:
    """60 runs: the sum of z² and the mean of z within 4 standard errors of those of a normal (false alarms: 2e-4)."""
    estimates = [filled(seed, (400, 800, 1600)).estimate for seed in range(60)]
    z = np.array([(e.log_z - log_z()) / e.error for e in estimates if e is not None])
    assert len(z) == 60
    assert abs(np.mean(z)) < 4.0 / math.sqrt(60)
    assert abs(np.mean(np.square(z)) - 1.0) < 4.0 * math.sqrt(2.0 / 60)


def test_the_density_comes_to_follow_the_target() -> None:
    records = filled(0, (768, 1536, 3072, 6144)).records
    assert records[-1].effective_share > 1.15 * records[0].effective_share
    assert records[-1].effective_share > 0.7


def test_the_density_is_kept_in_the_end() -> None:
    bulk = filled(0, (400,) * 7)
    assert bulk.is_kept
    assert bulk.samples[-1].proposal is not bulk.samples[-2].proposal
    assert len(bulk.samples[-1]) >= 2 * 400
    assert len(bulk) == 7 * 400


def test_points_have_weights_of_the_same_integral() -> None:
    """E[x₂²] under the posterior, 0.09/1.09, from the weighted points: within 5 % (error about 1.5 %)."""
    U, _, log_weights = filled(1, (768, 1536, 3072)).points()
    w = np.exp(log_weights - log_weights.max())
    assert w @ np.square(U[:, 2]) / w.sum() == pytest.approx(0.09 / 1.09, rel=0.08)


def test_parts_of_a_batch_in_any_order_are_the_batch() -> None:
    whole = filled(3, (500,))
    bulk = Bulk.none(DIM).begun(base()[1], 500, np.random.default_rng(3))
    assert bulk.batch is not None
    values = log_joint(bulk.batch.U)
    for first in (300, 0, 150):
        bulk = bulk.told(first, values[first : first + (200 if first == 300 else 150)])
    assert bulk.batch is None
    assert bulk.estimate == whole.estimate


def test_failed_points_count_as_never_drawn() -> None:
    bulk = Bulk.none(DIM).begun(base()[1], 500, np.random.default_rng(3))
    assert bulk.batch is not None
    values = log_joint(bulk.batch.U)
    values[::10] = np.nan
    bulk = bulk.told(0, values)
    assert len(bulk) == 450
    assert bulk.estimate is not None
    assert abs(bulk.estimate.log_z - log_z()) < 5.0 * bulk.estimate.error


def test_an_unfinished_batch_counts_with_what_was_told() -> None:
    bulk = filled(4, (500,)).begun(base()[1], 400, np.random.default_rng(5))
    assert bulk.batch is not None
    told = bulk.told(0, log_joint(bulk.batch.U)[:100])
    assert told.batch is not None
    assert len(told.ended()) == 600
    assert len(told) == 500


def test_zero_likelihood_everywhere_is_no_estimate() -> None:
    bulk = Bulk.none(DIM).begun(base()[1], 200, np.random.default_rng(0))
    assert bulk.told(0, np.full(200, -np.inf)).estimate is None
