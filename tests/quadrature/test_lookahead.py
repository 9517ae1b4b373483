"""The expected variance of Z after one more sample, against conditioning on that sample and integrating anew."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import reference
from wsabi._core.types import Array
from wsabi.gp.exact import GP, condition
from wsabi.priors import Measure
from wsabi.quadrature.integral import moments
from wsabi.quadrature.lookahead import Lookahead
from wsabi.settings import Method

METHODS: tuple[Method, ...] = ("wsabi-l", "wsabi-m", "bq")
KINDS = ("gaussian", "mixture", "box", "polynomial")


def make_gp(measure: Measure, n: int = 5) -> GP:
    rng = np.random.default_rng([measure.dim, n])
    X = measure.mean + reference.spread_points(n, measure.dim, rng, width=2.0)
    return condition(X, rng.uniform(0.2, 1.4, n), rng.uniform(0.45, 0.7, measure.dim), scale=1.3)


def clear_points(gp: GP, measure: Measure) -> Array:
    """Four candidates away from the data: the update leaves out the jitter of the new datum, 1e-10·λ²/C̃ of it."""
    Q = measure.mean + np.random.default_rng(8).uniform(-1.5, 1.5, (40, measure.dim))
    return Q[gp.predict(Q)[1] > 0.05 * gp.scale**2][:4]


def brute_force(gp: GP, values: Array, measure: Measure, method: Method, x: Array, nodes: int = 4) -> float:
    """⟨V[Z | D, ℓ̃(x)]⟩ − V[Z | D]: a new GP with the same hyperparameters for each Gauss-Hermite node of ℓ̃(x)."""
    m_tilde, c_tilde = gp.predict(x[None])
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    after = 0.0
    for value, weight in zip(m_tilde + np.sqrt(c_tilde) * z, w / w.sum(), strict=True):
        more = condition(np.vstack([gp.X, x]), np.append(values, value), gp.lengthscales, scale=gp.scale)
        after += weight * moments(more, measure, 0.0, method).variance
    return after - moments(gp, measure, 0.0, method).variance


def data_values(gp: GP) -> Array:
    return np.asarray(gp.lower() @ gp.whitened)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_change_matches_brute_force(kind: str, dim: int, method: Method) -> None:
    measure = reference.make_measure(kind, dim)
    gp = make_gp(measure)
    Q = clear_points(gp, measure)
    expected = np.array([brute_force(gp, data_values(gp), measure, method, x) for x in Q])
    present = moments(gp, measure, 0.0, method).variance
    assert np.max(np.abs(expected)) > 1e-3 * present  # there is something to see
    found = Lookahead.prepare(gp, measure, method).variance_change(Q)
    assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * present)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_pending_points_count_as_data_at_their_predicted_value(kind: str, method: Method) -> None:
    measure = reference.make_measure(kind, 2)
    gp = make_gp(measure)
    pending = measure.mean + np.array([[0.3, -0.4], [-0.5, 0.6]])
    values = np.append(data_values(gp), gp.mean(pending))
    known = condition(np.vstack([gp.X, pending]), values, gp.lengthscales, scale=gp.scale)
    for x in pending:
        gp.append(x)
    Q = clear_points(gp, measure)
    expected = np.array([brute_force(known, values, measure, method, x) for x in Q])
    found = Lookahead.prepare(gp, measure, method).variance_change(Q)
    present = moments(known, measure, 0.0, method).variance
    assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * present)


@pytest.mark.parametrize("method", METHODS)
def test_the_rule_for_the_unseen_value_is_exact_from_two_nodes_on(method: Method) -> None:
    """V[Z] is quadratic in ℓ̃(x), so more Gauss-Hermite nodes change nothing; one node would."""
    measure = reference.make_measure("gaussian", 1)
    gp = make_gp(measure)
    x = measure.mean + 0.7
    one, two, many = (brute_force(gp, data_values(gp), measure, method, x, nodes) for nodes in (1, 2, 9))
    assert_allclose(two, many, rtol=1e-8)
    assert (method == "bq") == (abs(one - two) < 1e-8 * abs(two))


@pytest.mark.parametrize("method", METHODS)
def test_a_known_point_is_never_the_best(method: Method) -> None:
    """Under L the expected variance may grow at every other point: a datum must not win by scoring zero."""
    measure = reference.make_measure("mixture", 2)
    gp = make_gp(measure)
    gp.append(measure.mean)
    Q = np.vstack([gp.rows, clear_points(gp, measure)])
    change = Lookahead.prepare(gp, measure, method).variance_change(Q)
    assert not np.any(np.isnan(change))
    assert np.all(change[: len(gp.rows)] > np.max(change[len(gp.rows) :]))


def test_no_sample_can_be_expected_to_take_more_variance_than_there_is() -> None:
    """Also where K is ill-conditioned, as it is late in a run: V after the sample is never below zero."""
    measure = reference.make_measure("gaussian", 2)
    rng = np.random.default_rng(0)
    X = measure.sample(60, rng)
    gp = condition(X, np.exp(-0.25 * np.square(X - measure.mean).sum(axis=1)), np.full(2, 2.0))
    Q = np.vstack([measure.sample(200, rng), X + 1e-4 * rng.standard_normal(X.shape)])
    for method in METHODS:
        present = moments(gp, measure, 0.0, method).variance
        assert np.all(Lookahead.prepare(gp, measure, method).variance_change(Q) > -1.01 * present)
