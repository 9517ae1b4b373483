"""The surrogate of log ℓ is the textbook GP of its kernel, and is exact on quadratics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dense_surrogate import (
    TEMPERATURE,
    a_theta,
    a_turn,
    data,
    dense_covariance,
    dense_kernel,
    fitted,
    without_jitter,
)
from wsabi.adaptive.surrogate.learning import fit_log_surrogate
from wsabi.adaptive.surrogate.model import Trend
from wsabi.adaptive.tuning import tuned
from wsabi.errors import NumericalError


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_prediction_is_that_of_the_textbook_gp(dim: int) -> None:
    """m = kᵀK⁻¹y and v = k(p, p) − kᵀK⁻¹k by dense inverses; 1e-8 is the conditioning (1e4) times ε, with room."""
    surrogate, Y, values, noise = fitted(dim)
    P = 1.5 * np.random.default_rng(9).standard_normal((20, dim))
    inverse = np.linalg.inv(dense_covariance(Y, noise))
    k = dense_kernel(P, Y, a_theta(dim), TEMPERATURE)
    mean, variance = surrogate.predict(P)
    assert_allclose(mean, k @ inverse @ values, rtol=1e-8, atol=1e-8)
    prior = np.diag(dense_kernel(P, P, a_theta(dim), TEMPERATURE))
    assert_allclose(variance, prior - np.einsum("mn,nk,mk->m", k, inverse, k), rtol=1e-7, atol=1e-7)
    assert_array_equal(surrogate.mean(P), mean)


@pytest.mark.parametrize("dim", [1, 4])
def test_the_kernel_is_the_same_in_blocks(dim: int) -> None:
    surrogate, Y, _, _ = fitted(dim)
    P = np.random.default_rng(3).standard_normal((23, dim))
    whole = surrogate.predict(P)
    with tuned("surrogate", block=2 * len(Y) + 1):  # two rows at a time, and one left over
        assert_allclose(surrogate.predict(P), whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dim", [1, 4])
@without_jitter
def test_more_data_are_as_good_as_all_at_once(dim: int) -> None:
    surrogate, Y, values, noise = fitted(dim)
    P = np.random.default_rng(3).standard_normal((15, dim))
    first = fit_log_surrogate(
        Y[:7],
        values[:7],
        noise[:7],
        temperature=TEMPERATURE,
        turn=a_turn(dim),
        n_interactions=2,
        theta=a_theta(dim),
        learn=False,
    )
    longer = first.extended(Y[7:9], values[7:9], noise[7:9]).extended(Y[9:], values[9:], noise[9:])
    assert_allclose(longer.L, surrogate.L, rtol=1e-9, atol=1e-9)
    assert_allclose(longer.weights, surrogate.weights, rtol=1e-8, atol=1e-8)
    assert_allclose(longer.predict(P), surrogate.predict(P), rtol=1e-8, atol=1e-8)
    assert_allclose(first.predict(P)[0], first.mean(P), rtol=1e-12)  # and the first is as it was


@pytest.mark.parametrize("dim", [1, 4])
@without_jitter
def test_covariances_say_what_one_more_datum_leaves_of_the_variances(dim: int) -> None:
    """C(s, s) − C(p, s)²/(C(p, p) + noise) is the variance of a surrogate that has been told, whatever the value is."""
    surrogate, *_ = fitted(dim)
    P = np.random.default_rng(3).standard_normal((9, dim))
    mean, variance, covariances = surrogate.covariances(P, 4)
    assert_allclose((mean, variance), surrogate.predict(P), rtol=1e-12)
    assert_allclose(np.diagonal(covariances[5:]), variance[5:], rtol=1e-9, atol=1e-9)
    for p, v, row in zip(P, variance, covariances, strict=True):
        told = surrogate.extended(p[None], np.array([7.0]), np.array([0.2]))
        assert_allclose(variance[5:] - np.square(row) / (v + 0.2), told.predict(P[5:])[1], rtol=1e-8, atol=1e-8)


@without_jitter
def test_a_datum_given_twice_without_noise_is_a_numerical_error() -> None:
    surrogate, Y, values, _ = fitted(3)
    with pytest.raises(NumericalError):
        surrogate.extended(np.repeat(Y[:1] + 0.1, 2, axis=0), np.repeat(values[:1], 2), np.full(2, -1e-9))


@pytest.mark.parametrize("dim", [1, 2, 4])
@without_jitter
def test_predictions_without_some_data_are_those_of_a_fit_without_them(dim: int) -> None:
    """Each group of the last eight rows, of one, two, three and no rows, at points elsewhere and at the data."""
    surrogate, Y, values, noise = fitted(dim)
    P = np.concatenate([np.random.default_rng(3).standard_normal((9, dim)), Y])
    groups = [np.array(rows, dtype=np.intp) for rows in ([2], [7, 0], [1, 5, 6], [])]
    means, variances = surrogate.predict_without(P, groups, 8)
    for rows, mean, variance in zip(groups, means, variances, strict=True):
        kept = np.setdiff1d(np.arange(len(Y)), len(Y) - 8 + rows)
        without = fit_log_surrogate(
            Y[kept],
            values[kept],
            noise[kept],
            temperature=TEMPERATURE,
            turn=a_turn(dim),
            n_interactions=2,
            theta=a_theta(dim),
            learn=False,
        )
        assert_allclose((mean, variance), without.predict(P), rtol=1e-8, atol=1e-8)


def test_without_any_last_data_there_is_nothing_to_leave_out() -> None:
    surrogate, Y, _, _ = fitted(2)
    none = np.empty(0, dtype=np.intp)
    means, variances = surrogate.predict_without(Y + 0.3, [none, none], 0)
    assert_array_equal(means, np.stack(2 * [surrogate.predict(Y + 0.3)[0]]))
    assert_array_equal(variances, np.stack(2 * [surrogate.predict(Y + 0.3)[1]]))


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
        fit_log_surrogate(Y, values, noise, temperature=1.0, theta=a_theta(2), learn=False)


def test_a_trend_is_the_prior_mean() -> None:
    """The same as a surrogate of the values less the trend, with the trend added; also with data that join later."""
    dim = 3
    Y, values, noise = data(dim)
    rng = np.random.default_rng(9)
    curvature = rng.standard_normal((dim, dim))
    trend = Trend(0.7, rng.standard_normal(dim), curvature @ curvature.T)
    arguments = {"temperature": TEMPERATURE, "turn": a_turn(dim), "n_interactions": 2, "theta": a_theta(dim)}
    P = rng.standard_normal((5, dim))
    expected = [0.7 + p @ trend.slope - 0.5 * p @ trend.curvature @ p for p in P]
    assert_allclose(trend(P), expected)
    first = fit_log_surrogate(Y[:8], values[:8], noise[:8], learn=False, trend=trend, **arguments)
    with_trend = first.extended(Y[8:], values[8:], noise[8:])
    rest = fit_log_surrogate(Y[:8], values[:8] - trend(Y[:8]), noise[:8], learn=False, **arguments)
    without = rest.extended(Y[8:], values[8:] - trend(Y[8:]), noise[8:])
    mean, variance = with_trend.predict(P)
    assert_allclose(mean, without.predict(P)[0] + expected)
    assert_allclose(with_trend.mean(P), mean)
    assert_array_equal(variance, without.predict(P)[1])
    groups = [np.array([0]), np.array([1, 3])]
    means, _ = with_trend.predict_without(P, groups, 4)
    assert_allclose(means, without.predict_without(P, groups, 4)[0] + expected)
