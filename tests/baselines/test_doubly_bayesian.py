"""BBQ: closed forms against quadrature, look-ahead against models built anew, the estimate against the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wsabi
from reference import kernel_matrix, quadrature
from wsabi.baselines import bbq
from wsabi.baselines.doubly_bayesian import NODE_WEIGHTS, NODES, expected_reduction
from wsabi.baselines.doubly_bayesian_model import (
    GAMMA,
    SHIFT,
    DoublyBayesianModel,
    inverse_log_transform,
    log_transform,
)
from wsabi.baselines.tilted import TiltedMeasure
from wsabi.gp.exact import condition
from wsabi.gp.kernel import SquaredExponential
from wsabi.priors import Gaussian, GaussianMixture

MEASURES = {
    "gaussian-1": Gaussian([0.4], 0.8),
    "gaussian-2": Gaussian([0.3, -0.2], [[1.0, 0.6], [0.6, 1.5]]),
    "mixture-2": GaussianMixture([0.4, 0.6], [[-1.0, 0.0], [0.5, 1.0]], [0.5 * np.eye(2), [[1.0, -0.3], [-0.3, 0.6]]]),
}


@pytest.mark.parametrize("name", MEASURES)
def test_tilted_measure_matches_quadrature(name):
    measure = MEASURES[name]
    rng = np.random.default_rng(0)
    X, Y, weights = rng.normal(size=(5, measure.dim)), rng.normal(size=(4, measure.dim)), rng.normal(size=5)
    inner = SquaredExponential(1.0, np.array([1.2, 1.6])[: measure.dim])
    outer = SquaredExponential(1.3, np.array([1.4, 1.0])[: measure.dim])
    tilted = TiltedMeasure.build(inner, measure, X, weights, 0.3)

    def brute(order):
        nodes, w = quadrature(measure, order)
        gw = w * (kernel_matrix(inner, nodes, X) @ weights + 0.3)
        return gw @ kernel_matrix(outer, nodes, Y), gw @ kernel_matrix(outer, nodes, nodes) @ gw

    for coarse, fine in zip(brute(24), brute(28), strict=True):
        assert_allclose(coarse, fine, rtol=1e-7)  # the oracle has converged
    once, twice = brute(28)
    assert_allclose(tilted.against(outer, Y), once, rtol=1e-7)
    assert_allclose(tilted.twice(outer)[0], twice, rtol=1e-7)


@pytest.fixture(scope="module")
def model():
    """Ten data in two dimensions, candidates chosen."""
    measure = Gaussian([0.0, 0.0])
    model = DoublyBayesianModel(measure, 12, np.random.default_rng(1))
    X = np.random.default_rng(2).normal(size=(10, 2))
    model.observe(X, -np.square(X - 0.4).sum(axis=1))
    model.correction()
    return model


def dense_mean(model, extra_x=None, extra_t=None, lengthscales=None):
    """E[Z] by plain solves: m_t at the candidates, then the GP on ℓ over data, candidates and an extra datum."""
    X, t = model.X, log_transform(np.exp(model.log_l - model.log_l_max))
    if extra_x is not None:
        X, t = np.vstack([X, extra_x]), np.append(t, extra_t)
    kernel_t = SquaredExponential(1.0, model.gp_t.lengthscales if lengthscales is None else lengthscales)
    K_t = kernel_matrix(kernel_t, X, X) + 1e-10 * np.eye(len(X))
    candidates = model.correction().candidates
    m_t = kernel_matrix(kernel_t, candidates, X) @ np.linalg.solve(K_t, t)
    Y = np.vstack([X, candidates])
    v = np.concatenate([inverse_log_transform(t), inverse_log_transform(m_t)])
    K = kernel_matrix(model.gp_l.unit_kernel, Y, Y) + 1e-10 * np.eye(len(Y))
    nodes, w = quadrature(model.measure, 30)
    return w @ kernel_matrix(model.gp_l.unit_kernel, nodes, Y) @ np.linalg.solve(K, v)


def test_mean_is_that_of_the_gp_over_data_and_candidates(model):
    assert_allclose(model.moments()[0], dense_mean(model), rtol=1e-6)  # K's condition number times round-off


def test_variance_is_that_of_the_linearised_model_and_of_the_lengthscales(model):
    _, variance, clipped = model.moments()
    correction = model.correction()
    nodes, w = quadrature(model.measure, 30)
    g = kernel_matrix(model.gp_l.unit_kernel, nodes, correction.points) @ correction.weights + GAMMA
    _, c = model.gp_t.covariance(nodes)
    linear = (w * g) @ c @ (w * g)
    theta = np.log(model.gp_t.lengthscales)
    slope = [
        (dense_mean(model, lengthscales=np.exp(theta + e)) - dense_mean(model, lengthscales=np.exp(theta - e)))
        / (2 * SHIFT)
        for e in SHIFT * np.eye(2)
    ]
    # The slope is of first order in the shift of m_t, dense differences are not: they agree to SHIFT².
    assert_allclose(variance - linear, slope @ model.theta_cov @ np.array(slope), rtol=0.05)
    assert not clipped


def test_laplace_covariance_is_the_inverse_curvature(model):
    from wsabi.gp.exact import log_marginal_likelihood
    from wsabi.gp.fit import LengthscalePrior

    t, prior = log_transform(np.exp(model.log_l - model.log_l_max)), LengthscalePrior.for_dim(2)

    def log_posterior(theta):
        return log_marginal_likelihood(model.X, t, theta)[0] + prior.log_density(theta)[0]

    theta, e = np.log(model.gp_t.lengthscales), 0.02 * np.eye(2)
    H = [
        [
            log_posterior(theta + a + b) - log_posterior(theta + a - b) - log_posterior(theta - a + b)
            + log_posterior(theta - a - b)
            for a in e
        ]
        for b in e
    ]  # fmt: skip
    assert_allclose(model.theta_cov, np.linalg.inv(-np.array(H) / (4 * 0.02**2)), rtol=0.05, atol=1e-3)


def test_expected_reduction_matches_models_built_anew(model):
    Q = np.array([[2.0, 0.0], [-1.5, 1.5], [0.5, -2.0]])  # clear of data and candidates
    mean, c_t = model.gp_t.predict(Q)
    slopes = model.slopes(Q)
    weights = NODE_WEIGHTS / NODE_WEIGHTS.sum()
    for i, found in enumerate(expected_reduction(model, Q)):
        sd = math.sqrt(c_t[i] + slopes[:, i] @ model.theta_cov @ slopes[:, i])
        values = np.maximum(mean[i] + sd * NODES, 0.0)
        means = np.array([dense_mean(model, Q[i], t) for t in values])
        assert_allclose(found, weights @ np.square(means - weights @ means), rtol=1e-4)


def test_a_datum_is_worth_nothing_twice(model):
    assert np.all(expected_reduction(model, model.X[:3]) == 0.0)


def test_appending_equals_building_anew(model):
    """Between fits the factors grow by rows; the same length-scales on all data at once give the same means."""
    grown = DoublyBayesianModel(model.measure, 12, np.random.default_rng(1))
    X = np.random.default_rng(4).normal(size=(11, 2))
    log_l = -np.square(X - 0.4).sum(axis=1)
    grown.observe(X[:10], log_l[:10])
    grown.observe(X[10:], log_l[10:] + 3.0)  # a new maximum: every scaled value changes
    assert grown.gp_t is not None
    values = log_transform(np.exp(grown.log_l - grown.log_l_max))
    Q = np.random.default_rng(5).normal(size=(4, 2))
    assert len(grown.fits) == 2
    for gp in (grown.gp_t, *(gp for pair in grown.shifted for gp in pair)):
        assert_allclose(gp.mean(Q), condition(X, values, gp.lengthscales).mean(Q), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_close_to_the_truth_and_better_than_its_start(seed):
    """Two bumps in one dimension, Z from a fine grid."""

    def log_likelihood(x):
        return float(np.logaddexp(-2.0 * (x[0] - 1.0) ** 2, math.log(0.5) - 4.0 * (x[0] + 1.0) ** 2))

    grid = np.linspace(-9, 9, 20_001)
    values = np.exp([log_likelihood([x]) for x in grid]) * np.exp(-0.5 * grid**2) / math.sqrt(2 * math.pi)
    truth = math.log(values.sum() * (grid[1] - grid[0]))
    result = bbq(log_likelihood, wsabi.Gaussian([0.0]), budget=25, rng=seed)
    assert math.isfinite(result.log_z)
    assert abs(result.log_z - truth) < 0.01
    assert result.history[-1].log_z_std < 0.1 * result.history[3].log_z_std


def test_bad_options_are_named():
    with pytest.raises(ValueError, match="n_candidates must be a whole number"):
        bbq(lambda x: 0.0, wsabi.Gaussian([0.0]), budget=5, n_candidates=0)
    with pytest.raises(ValueError, match="n_lookahead must be a whole number"):
        bbq(lambda x: 0.0, wsabi.Gaussian([0.0]), budget=5, n_lookahead=0)
