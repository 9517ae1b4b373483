"""First designs and candidates: where they lie, and that they follow the measure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import stats

import reference
from wsabi.priors import Gaussian, Uniform
from wsabi.quadrature.design import candidates, inside, latin_hypercube, spread_design

KINDS = ("gaussian", "mixture", "box")


@given(st.integers(1, 30), st.integers(1, 5), st.integers(0, 100))
def test_latin_hypercube_has_one_point_per_slice(n: int, dim: int, seed: int) -> None:
    cube = latin_hypercube(n, dim, np.random.default_rng(seed))
    assert cube.shape == (n, dim)
    for axis in cube.T:
        assert_array_equal(np.sort(np.floor(n * axis)), np.arange(n))


@pytest.mark.parametrize("n", [1, 2, 9])
@pytest.mark.parametrize("kind", KINDS)
def test_design_begins_at_the_mean(kind: str, n: int) -> None:
    measure = reference.make_measure(kind, 3)
    design = spread_design(measure, n, np.random.default_rng(0))
    assert design.shape == (n, 3)
    assert_array_equal(design[0], measure.mean)
    assert len(np.unique(design, axis=0)) == n
    assert np.all(np.isfinite(measure.log_pdf(design)))


def test_design_is_stratified_in_the_measure() -> None:
    """Pushed back through its measure the design is a Latin hypercube again: one point per slice."""
    box = Uniform([1.0, -2.0], [2.0, 5.0])
    rest = spread_design(box, 11, np.random.default_rng(1))[1:]
    unit = (rest - box.low) / (box.high - box.low)
    gaussian = Gaussian([1.0, -2.0], [[2.0, 0.8], [0.8, 1.0]])
    rest = spread_design(gaussian, 11, np.random.default_rng(1))[1:]
    whitened = np.linalg.solve(np.linalg.cholesky(gaussian.cov), (rest - gaussian.mean).T).T
    for cube in (unit, stats.norm.cdf(whitened)):
        for axis in cube.T:
            assert_array_equal(np.sort(np.floor(10 * axis)), np.arange(10))


def test_inside_moves_only_what_is_outside_a_box() -> None:
    X = np.array([[0.5, 3.0], [-1.0, 0.5]])
    assert_array_equal(inside(Uniform([0.0, 0.0], [1.0, 1.0]), X), [[0.5, 1.0], [0.0, 0.5]])
    assert_array_equal(inside(Gaussian([0.0, 0.0]), X), X)


@pytest.mark.parametrize("kind", KINDS)
def test_half_the_candidates_are_draws_and_half_surround_the_weighty_data(kind: str) -> None:
    measure = reference.make_measure(kind, 2)
    X = measure.sample(5, 0)
    log_weights = np.array([-1e5, -np.inf, 0.0, -2000.0, -900.0])  # only the third has any weight
    found = candidates(measure, X, log_weights, np.full(2, 1e-3), 201, np.random.default_rng(1))
    assert found.shape == (201, 2)
    assert np.all(np.isfinite(measure.log_pdf(found)))
    # A normal step beyond six standard deviations: 202 of them, a false alarm of 4e-7.
    assert np.all(np.abs(found[100:] - X[2]) < 6e-3)
    assert np.sum(np.all(np.abs(found[:100] - X[2]) < 6e-3, axis=1)) < 5


def test_candidates_stay_in_the_box() -> None:
    """Steps as wide as the box from a datum at its corner: three quarters of them would leave it."""
    box = Uniform([0.0, 0.0], [1.0, 2.0])
    found = candidates(box, np.zeros((1, 2)), np.zeros(1), np.array([1.0, 2.0]), 200, np.random.default_rng(0))
    assert np.all(np.isfinite(box.log_pdf(found)))
    assert np.any(np.all((found[100:] > 0.0) & (found[100:] < box.high), axis=1))
