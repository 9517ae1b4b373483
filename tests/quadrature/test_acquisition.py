"""Uncertainty sampling against its formulas in brute force, and its gradient against central differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import reference
from wsabi.gp.exact import GP, condition
from wsabi.priors import Measure
from wsabi.quadrature.acquisition import log_uncertainty, log_uncertainty_and_gradient, log_uncertainty_at
from wsabi.settings import Method

METHODS: tuple[Method, ...] = ("wsabi-l", "wsabi-m", "bq")
KINDS = ("gaussian", "mixture", "box", "polynomial")


def make_gp(measure: Measure, n: int = 6, pending: int = 2) -> GP:
    rng = np.random.default_rng([measure.dim, n])
    X = measure.mean + reference.spread_points(n + pending, measure.dim, rng, width=2.0)
    gp = condition(X[:n], rng.uniform(-0.5, 1.4, n), rng.uniform(0.6, 1.1, measure.dim))
    for x in X[n:]:
        gp.append(x)
    return gp


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_value_is_the_variance_of_the_integrand(kind: str, dim: int, method: Method) -> None:
    """π(x)² C(x, x), with C from the dense textbook posterior: m̃ from data, C̃ from data and pending points."""
    measure = reference.make_measure(kind, dim)
    gp = make_gp(measure)
    Q = measure.sample(6, 3)
    values = gp.factor.lower()[: gp.n, : gp.n] @ gp.whitened
    m_tilde, _ = reference.posterior(gp.kernel, gp.X, values, Q, gp.jitter)
    _, c_tilde = reference.posterior(gp.kernel, gp.rows, np.zeros(len(gp.rows)), Q, gp.jitter)
    expected = np.exp(measure.log_pdf(Q)) ** 2 * np.diag(reference.likelihood_covariance(method, m_tilde, c_tilde))
    assert_allclose(np.exp(log_uncertainty_at(gp, measure, method, Q)), expected, rtol=1e-7)
    assert_allclose(np.exp([log_uncertainty_and_gradient(gp, measure, method, x)[0] for x in Q]), expected, rtol=1e-7)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_gradient_matches_central_differences(kind: str, dim: int, method: Method) -> None:
    measure = reference.make_measure(kind, dim)
    gp = make_gp(measure)
    points = measure.sample(30, 5)
    clear = gp.predict(points)[1] > 0.02 * gp.scale**2  # nearer to the data log C̃ has no useful differences
    for x in points[clear][:3]:
        reference.assert_gradient(
            lambda y: log_uncertainty_and_gradient(gp, measure, method, y)[0],
            lambda y: log_uncertainty_and_gradient(gp, measure, method, y)[1],
            x,
            rtol=1e-6,  # log C̃ is steep near data, and the h² of the differences with it
        )


@pytest.mark.parametrize("method", METHODS)
def test_a_datum_is_the_worst_choice_and_not_an_error(method: Method) -> None:
    measure = reference.make_measure("gaussian", 2)
    gp = make_gp(measure)
    at_data, elsewhere = (log_uncertainty_at(gp, measure, method, gp.rows + step) for step in (0.0, 0.3))
    assert np.all(np.isfinite(at_data))
    assert np.all(at_data < elsewhere)
    value, gradient = log_uncertainty_and_gradient(gp, measure, method, gp.X[0])
    assert math.isfinite(value)
    assert np.all(np.isfinite(gradient))


def test_no_variance_and_no_density_stay_comparable() -> None:
    for method in METHODS:
        found = log_uncertainty(method, np.array([0.0, -np.inf]), np.zeros(2), np.array([0.0, 1.0]))
        assert math.isfinite(found[0])
        assert found[1] == -math.inf


def test_outside_the_box_there_is_nothing_to_gain() -> None:
    measure = reference.make_measure("box", 2)
    gp = make_gp(measure)
    outside = measure.mean + 10.0
    assert log_uncertainty_at(gp, measure, "wsabi-m", outside[None])[0] == -math.inf
    assert log_uncertainty_and_gradient(gp, measure, "wsabi-m", outside)[0] == -math.inf
