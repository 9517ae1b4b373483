"""``wsabi.from_sklearn_gp``: log θ with scikit-learn's own value and gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import trapezoid

import wsabi
from bridging import imported, needs

pytestmark = needs("sklearn")
X = np.linspace(0.0, 6.0, 15)[:, None]
Y = np.sin(X[:, 0]) + 0.1 * np.cos(37.0 * X[:, 0])


@pytest.fixture(scope="module")
def kernels() -> Any:
    return imported("sklearn.gaussian_process.kernels")


@pytest.fixture(scope="module")
def gp(kernels: Any) -> Any:
    regressor = imported("sklearn.gaussian_process").GaussianProcessRegressor
    kernel = kernels.RBF(1.0, (0.1, 10.0)) + kernels.WhiteKernel(0.05, (1e-3, 1.0))
    return regressor(kernel, optimizer=None).fit(X, Y)


def test_theta_is_in_logs_with_the_bounds_of_the_kernel(gp: Any) -> None:
    model = wsabi.from_sklearn_gp(gp)
    assert model.names == ("log_k1__length_scale", "log_k2__noise_level")
    assert_allclose([model.prior.low, model.prior.high], np.log([[0.1, 1e-3], [10.0, 1.0]]))


def test_value_and_gradient_are_those_of_the_density_of_the_targets(gp: Any) -> None:
    model = wsabi.from_sklearn_gp(gp)
    theta = np.log([1.7, 0.03])
    K = np.exp(-0.5 * (X - X.T) ** 2 / 1.7**2) + (0.03 + gp.alpha) * np.eye(15)
    assert model.log_likelihood(theta) == pytest.approx(stats.multivariate_normal(cov=K).logpdf(Y), rel=1e-9)
    step = 1e-5 * np.eye(2)
    differences = [(model.log_likelihood(theta + e) - model.log_likelihood(theta - e)) / 2e-5 for e in step]
    assert model.grad is not None
    assert_allclose(model.grad(theta), differences, rtol=1e-6)


def test_log_z_is_right_and_the_process_is_left_alone(gp: Any) -> None:
    before = gp.kernel_.theta.copy()
    model = wsabi.from_sklearn_gp(gp)
    result = wsabi.integrate(model, budget=100, rng=0)
    a, b = (np.linspace(*ends, 61) for ends in zip(model.prior.low, model.prior.high, strict=True))
    log_l = np.array([[gp.log_marginal_likelihood(np.array([one, two])) for two in b] for one in a])
    exact = np.log(trapezoid(trapezoid(np.exp(log_l - log_l.max()), b), a) / np.prod(np.ptp([a, b], axis=1)))
    assert abs(result.log_z - exact - log_l.max()) < 4 * result.log_z_std + 0.01
    assert_allclose(gp.kernel_.theta, before)


def test_vectors_fixed_values_and_priors_of_ones_own(kernels: Any) -> None:
    regressor = imported("sklearn.gaussian_process").GaussianProcessRegressor
    kernel = kernels.ConstantKernel(2.0, "fixed") * kernels.RBF([1.0, 2.0])
    gp = regressor(kernel, alpha=0.1, optimizer=None).fit(np.column_stack([X, X**2]), Y)
    assert wsabi.from_sklearn_gp(gp).names == ("log_k2__length_scale[0]", "log_k2__length_scale[1]")
    model = wsabi.from_sklearn_gp(gp, {"log_length": [stats.norm(0, 1), stats.norm(1, 1)]})
    given = model.log_likelihood({"log_length": np.array([0.3, 0.7])})
    assert given == gp.log_marginal_likelihood(np.array([0.3, 0.7]))
    with pytest.raises(ValueError, match=r"prior has 1 parameters; the kernel has 2: log_k2__length_scale\[0\]"):
        wsabi.from_sklearn_gp(gp, [(0.0, 1.0)])


def test_a_classifier_of_two_classes(kernels: Any) -> None:
    classifier = imported("sklearn.gaussian_process").GaussianProcessClassifier
    two = classifier(kernels.RBF(1.0), optimizer=None).fit(X, Y > 0)
    theta = np.array([0.4])
    assert wsabi.from_sklearn_gp(two).log_likelihood(theta) == two.log_marginal_likelihood(theta)
    three = classifier(kernels.RBF(1.0), optimizer=None).fit(X, np.arange(15) % 3)
    with pytest.raises(ValueError, match="more than two classes"):
        wsabi.from_sklearn_gp(three)


def test_what_is_wrong_is_said(kernels: Any) -> None:
    regressor = imported("sklearn.gaussian_process").GaussianProcessRegressor
    with pytest.raises(TypeError, match="gp must be a Gaussian process of scikit-learn; got RBF"):
        wsabi.from_sklearn_gp(kernels.RBF())
    with pytest.raises(ValueError, match=r"gp is not fitted: call gp.fit\(X, y\) first"):
        wsabi.from_sklearn_gp(regressor(kernels.RBF()))
    fixed = regressor(kernels.RBF(1.0, "fixed")).fit(X, Y)
    with pytest.raises(ValueError, match="has no free hyperparameter"):
        wsabi.from_sklearn_gp(fixed)
