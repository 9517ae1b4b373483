"""The surrogate of log ℓ is the textbook GP of its kernel, learns by a right gradient, and is exact on quadratics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from wsabi._linalg import NumericalError
from wsabi.engine import log_surrogate
from wsabi.engine.log_surrogate import LogSurrogate, fit_log_surrogate

THETA = np.log([1.7, 2.5, 0.8])  # l, λ, c: all different, so that no swapped pair passes
TEMPERATURE = 3.0


def dense_kernel(P: np.ndarray, Q: np.ndarray, theta: np.ndarray, temperature: float) -> np.ndarray:
    """k(p, q) of the docstring, one pair at a time."""
    length, scale, curvature = np.exp(theta)
    k = np.empty((len(P), len(Q)))
    for i, p in enumerate(P):
        for j, q in enumerate(Q):
            gap, inner = p - q, float(p @ q)
            k[i, j] = temperature**2 * (10.0**2 + 3.0**2 * inner) + 0.25 * curvature**2 * inner**2
            k[i, j] += scale**2 * math.exp(-0.5 * float(gap @ gap) / length**2)
    return k


def dense_covariance(Y: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Kernel matrix of the data, with noise and the relative jitter."""
    K = dense_kernel(Y, Y, THETA, TEMPERATURE)
    return K + np.diag(noise) + log_surrogate.JITTER * np.mean(np.diag(K)) * np.eye(len(Y))


def data(dim: int, n: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(dim)
    Y = rng.standard_normal((n, dim))
    return Y, np.sin(Y.sum(axis=1)) - np.square(Y).sum(axis=1), rng.uniform(0.05, 0.5, n)


def fitted(dim: int) -> tuple[LogSurrogate, np.ndarray, np.ndarray, np.ndarray]:
    Y, values, noise = data(dim)
    return fit_log_surrogate(Y, values, noise, temperature=TEMPERATURE, theta=THETA, learn=False), Y, values, noise


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_prediction_is_that_of_the_textbook_gp(dim: int) -> None:
    """m = kᵀK⁻¹y and v = k(p, p) − kᵀK⁻¹k by dense inverses; 1e-8 is the conditioning (1e4) times ε, with room."""
    surrogate, Y, values, noise = fitted(dim)
    P = 1.5 * np.random.default_rng(9).standard_normal((20, dim))
    inverse = np.linalg.inv(dense_covariance(Y, noise))
    k = dense_kernel(P, Y, THETA, TEMPERATURE)
    mean, variance = surrogate.predict(P)
    assert_allclose(mean, k @ inverse @ values, rtol=1e-8, atol=1e-8)
    prior = np.diag(dense_kernel(P, P, THETA, TEMPERATURE))
    assert_allclose(variance, prior - np.einsum("mn,nk,mk->m", k, inverse, k), rtol=1e-7, atol=1e-7)
    assert_array_equal(surrogate.mean(P), mean)


@pytest.mark.parametrize("dim", [1, 3])
def test_objective_is_the_log_evidence_and_the_prior(dim: int) -> None:
    """−log N(y; 0, K) − log p(θ), up to constants that θ does not enter."""
    _, Y, values, noise = fitted(dim)
    bundle = _bundle(Y, values, noise)
    evidence = stats.multivariate_normal(np.zeros(len(Y)), dense_covariance(Y, noise)).logpdf(values)
    prior = stats.norm(bundle.theta_mean, log_surrogate.THETA_SD).logpdf(THETA).sum()
    constants = (
        0.5 * len(Y) * math.log(2 * math.pi) + np.log(log_surrogate.THETA_SD).sum() + 1.5 * math.log(2 * math.pi)
    )
    assert_allclose(log_surrogate._objective(bundle, THETA)[0], -(evidence + prior + constants), rtol=1e-9)


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("shift", [0.0, 1.0, -1.5])
def test_gradient_of_the_objective(dim: int, shift: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Central differences: h² + ε·|f|/h at h = 1e-5 leaves 1e-8; a lost factor of two or a missing term is far more.

    Without jitter, which follows the mean diagonal and so θ: its slope, some 1e-5, is left out of the gradient.
    """
    monkeypatch.setattr(log_surrogate, "JITTER", 0.0)
    Y, values, noise = data(dim)
    bundle, theta = _bundle(Y, values, noise), THETA + shift
    h = 1e-5
    finite = [
        (log_surrogate._objective(bundle, theta + h * e)[0] - log_surrogate._objective(bundle, theta - h * e)[0])
        / (2 * h)
        for e in np.eye(3)
    ]
    assert_allclose(log_surrogate._objective(bundle, theta)[1], finite, rtol=1e-6, atol=1e-7 * np.max(np.abs(finite)))


def _bundle(Y: np.ndarray, values: np.ndarray, noise: np.ndarray) -> log_surrogate._Data:
    inner = Y @ Y.T
    squares = np.square(Y[:, None, :] - Y[None, :, :]).sum(axis=-1)
    return log_surrogate._Data(Y, values, noise, TEMPERATURE, inner, squares)


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_a_quadratic_is_recovered_far_from_its_data(dim: int) -> None:
    """With (D + 1)(D + 2)/2 + 3 points a full quadratic is known everywhere, to the 1e-3 of its noise.

    Without the quadratic part of the kernel the prediction at |y| = 6 would be back near zero: off by tens of nats.
    """
    rng = np.random.default_rng(dim)
    A = rng.standard_normal((dim, dim))
    b = rng.standard_normal(dim)

    def f(Y: np.ndarray) -> np.ndarray:
        return np.asarray(-0.5 * np.square(Y @ A).sum(axis=1) + Y @ b)

    Y = rng.standard_normal(((dim + 1) * (dim + 2) // 2 + 3, dim))
    noise = np.full(len(Y), 1e-6)
    surrogate = fit_log_surrogate(Y, f(Y), noise, temperature=1.0)
    P = rng.standard_normal((50, dim))
    P *= 6.0 / np.linalg.norm(P, axis=1, keepdims=True)
    mean, variance = surrogate.predict(P)
    assert np.max(np.abs(mean - f(P))) < 0.05 * np.max(np.abs(f(P)))
    z = np.abs(mean - f(P)) / np.sqrt(variance)
    assert np.max(z) < 6.0  # and what is left of the error is in the variance


def test_learning_does_not_lower_the_objective_it_started_from() -> None:
    Y, values, noise = data(3, n=40)
    bundle = _bundle(Y, values, noise)
    learnt = fit_log_surrogate(Y, values, noise, temperature=TEMPERATURE)
    assert log_surrogate._objective(bundle, learnt.theta)[0] < log_surrogate._objective(bundle, bundle.theta_mean)[0]
    warm = fit_log_surrogate(Y, values, noise, temperature=TEMPERATURE, theta=learnt.theta)
    difference = log_surrogate._objective(bundle, warm.theta)[0] - log_surrogate._objective(bundle, learnt.theta)[0]
    assert difference <= 1e-9
    low, high = bundle.theta_mean - log_surrogate.THETA_REACH, bundle.theta_mean + log_surrogate.THETA_REACH
    wild = fit_log_surrogate(Y, values, noise, temperature=TEMPERATURE, theta=bundle.theta_mean + 50.0)
    assert np.all((low <= wild.theta) & (wild.theta <= high))


def test_a_common_unit_of_values_and_temperature_scales_out() -> None:
    """10 × the values at 10 × the temperature is the same surrogate in another unit."""
    Y, values, noise = data(2)
    one = fit_log_surrogate(Y, values, noise, temperature=1.0)
    ten = fit_log_surrogate(Y, 10.0 * values, 100.0 * noise, temperature=10.0)
    P = np.random.default_rng(0).standard_normal((5, 2))
    assert_allclose(ten.theta - one.theta, np.log([1.0, 10.0, 10.0]), atol=1e-4)  # the search ends at 1e-5 of its value
    assert_allclose(ten.predict(P)[0], 10.0 * one.predict(P)[0], rtol=1e-3)
    assert_allclose(ten.predict(P)[1], 100.0 * one.predict(P)[1], rtol=1e-3)


def test_variance_is_never_below_its_floor_and_shrinks_at_data() -> None:
    surrogate, Y, _, noise = fitted(2)
    _, at_data = surrogate.predict(Y)
    _, away = surrogate.predict(Y + 10.0)
    assert np.all(at_data >= 1e-8)
    assert np.all(at_data < noise)  # the posterior of a function seen with noise s² is surer than s²
    assert np.all(away > 10.0)


def test_values_that_are_not_numbers_are_a_numerical_error() -> None:
    Y, values, noise = data(2)
    Y[3, 0] = math.nan
    with pytest.raises(NumericalError, match="not positive definite"):
        fit_log_surrogate(Y, values, noise, temperature=1.0, theta=THETA, learn=False)
