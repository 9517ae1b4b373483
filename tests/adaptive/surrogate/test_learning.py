"""θ is learnt by a right gradient, and finds what the values depend on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from dense_surrogate import (
    TEMPERATURE,
    a_bundle,
    a_theta,
    a_turn,
    data,
    dense_covariance,
    fitted,
    without_jitter,
)
from wsabi.adaptive.surrogate import learning
from wsabi.adaptive.surrogate.learning import fit_log_surrogate
from wsabi.adaptive.surrogate.theta import Theta


@pytest.mark.parametrize("dim", [1, 3])
def test_objective_is_the_log_evidence_and_the_prior(dim: int) -> None:
    """−log N(y; 0, K) − log p(θ), up to constants that θ does not enter."""
    _, Y, values, noise = fitted(dim)
    bundle = a_bundle(Y, values, noise)
    evidence = stats.multivariate_normal(np.zeros(len(Y)), dense_covariance(Y, noise)).logpdf(values)
    sds = learning._prior_sds(bundle)
    theta = a_theta(dim).vector
    prior = stats.norm(bundle.theta_mean.vector, sds).logpdf(theta).sum()
    constants = 0.5 * (len(Y) + len(theta)) * math.log(2 * math.pi) + np.log(sds).sum()
    assert_allclose(learning._objective(bundle, theta)[0], -(evidence + prior + constants), rtol=1e-9)


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("shift", [0.0, 1.0, -1.5])
@without_jitter
def test_gradient_of_the_objective(dim: int, shift: float) -> None:
    """Central differences: h² + ε·|f|/h at h = 1e-5 leaves 1e-8; a lost factor of two or a missing term is far more.

    Without jitter, which follows the mean diagonal and so θ: its slope, some 1e-5, is left out of the gradient.
    """
    Y, values, noise = data(dim)
    bundle, theta = a_bundle(Y, values, noise), a_theta(dim).vector + shift
    h = 1e-5
    finite = [
        (learning._objective(bundle, theta + h * e)[0] - learning._objective(bundle, theta - h * e)[0]) / (2 * h)
        for e in np.eye(len(theta))
    ]
    assert_allclose(learning._objective(bundle, theta)[1], finite, rtol=1e-6, atol=1e-7 * np.max(np.abs(finite)))


def test_learning_does_not_lower_the_objective_it_started_from() -> None:
    Y, values, noise = data(3, n=40)
    bundle = a_bundle(Y, values, noise)

    def learnt_from(theta: Theta | None) -> np.ndarray:
        options = {"turn": a_turn(3), "n_interactions": 2, "theta": theta}
        return fit_log_surrogate(Y, values, noise, temperature=TEMPERATURE, **options).theta.vector

    def objective(vector: np.ndarray) -> float:
        return learning._objective(bundle, vector)[0]

    centre = bundle.theta_mean
    learnt = learnt_from(None)
    assert objective(learnt) < objective(centre.vector)
    assert objective(learnt_from(centre.like(learnt))) - objective(learnt) <= 1e-9
    reach = learning._reaches(bundle)
    wild = learnt_from(centre.like(centre.vector + 50.0))
    assert np.all(np.abs(wild - centre.vector) <= reach)


def test_a_common_unit_of_values_and_temperature_scales_out() -> None:
    """10 × the values at 10 × the temperature is the same surrogate in another unit, and as likely a θ."""
    Y, values, noise = data(2)
    unit = np.log([1.0, 1.0, 10.0, 10.0])
    theta = a_theta(2)
    vector = theta.vector
    ones = a_bundle(Y, values, noise, 1.0)
    tens = a_bundle(Y, 10.0 * values, 100.0 * noise, 10.0)
    (value, slope), (value_10, slope_10) = (
        learning._objective(bundle, vector + shift) for bundle, shift in ((ones, 0.0 * unit), (tens, unit))
    )
    assert_allclose(value_10 - value, len(Y) * math.log(10.0), rtol=1e-9)
    assert_allclose(slope_10, slope, rtol=1e-7, atol=1e-8)
    one = fit_log_surrogate(Y, values, noise, temperature=1.0, theta=theta, learn=False)
    ten = fit_log_surrogate(Y, 10.0 * values, 100.0 * noise, temperature=10.0, theta=theta.heated(10.0), learn=False)
    P = np.random.default_rng(0).standard_normal((5, 2))
    assert_allclose(ten.predict(P)[0], 10.0 * one.predict(P)[0], rtol=1e-8)
    assert_allclose(ten.predict(P)[1], 100.0 * one.predict(P)[1], rtol=1e-8)
    # Learnt, they differ by where the search stops, at 1e-5 of an objective that is another number in another unit.
    one = fit_log_surrogate(Y, values, noise, temperature=1.0)
    ten = fit_log_surrogate(Y, 10.0 * values, 100.0 * noise, temperature=10.0)
    assert_allclose(ten.theta.vector - one.theta.vector, unit, atol=0.02)
    assert_allclose(ten.predict(P)[0], 10.0 * one.predict(P)[0], rtol=1e-2)


@pytest.mark.parametrize("relevant", [0, 1])
def test_an_axis_that_does_not_matter_has_a_long_length_scale(relevant: int) -> None:
    """sin 3y of one coordinate: its length-scale falls below the prior's centre, the other's rises, over a factor e."""
    rng = np.random.default_rng(5)
    Y = rng.standard_normal((40, 2))
    values = 3.0 * np.sin(3.0 * Y[:, relevant])
    surrogate = fit_log_surrogate(Y, values, np.full(40, 1e-6), temperature=1.0)
    centre = a_bundle(Y, values, np.full(40, 1e-6), 1.0).theta_mean.lengths
    lengths = surrogate.theta.lengths
    assert lengths[relevant] < centre[relevant]
    assert lengths[1 - relevant] > centre[1 - relevant]
    assert lengths[1 - relevant] - lengths[relevant] > 1.0
    # And that is what makes it right off the data: along the idle axis nothing changes.
    P = np.repeat(rng.uniform(-1.0, 1.0, (20, 1)), 2, axis=1)
    P[:, 1 - relevant] = 2.0
    mean, _ = surrogate.predict(P)
    assert np.sqrt(np.mean(np.square(mean - 3.0 * np.sin(3.0 * P[:, relevant])))) < 0.3  # of values with an sd of two


def test_a_sum_of_functions_of_pairs_is_learnt_from_few_points() -> None:
    """Five parameters, steps of single ones and products of two: 120 points, judged at 500 others.

    The squared exponential alone has to learn each corner by itself; with the interactions less than half of its mean
    square error is left, and the variance knows: the standardised errors are of size one.
    """
    rng = np.random.default_rng(3)

    def f(Y: np.ndarray) -> np.ndarray:
        step = np.tanh(2.0 * Y)
        return np.asarray(2.0 * step[:, 0] + step[:, 1] * np.cos(Y[:, 2]) - np.cos(2.0 * Y[:, 3]))

    Y, P = rng.standard_normal((120, 5)), rng.standard_normal((500, 5))
    noise = np.full(len(Y), 1e-6)
    plain = fit_log_surrogate(Y, f(Y), noise, temperature=1.0)
    paired = fit_log_surrogate(Y, f(Y), noise, temperature=1.0, turn=np.eye(5))
    error = {name: s.predict(P)[0] - f(P) for name, s in (("plain", plain), ("paired", paired))}
    assert np.mean(np.square(error["paired"])) < 0.5 * np.mean(np.square(error["plain"]))
    assert 0.5 < np.sqrt(np.mean(np.square(error["paired"]) / paired.predict(P)[1])) < 1.5


def test_a_second_interaction_learns_what_changes_faster() -> None:
    """Steps with ripples on them, along the same parameters: half the mean square error, in the middle of four sets."""

    def f(Y: np.ndarray) -> np.ndarray:
        steps = 3.0 * np.tanh(Y[:, 0]) + 2.0 * np.tanh(Y[:, 1] - 0.5) * np.tanh(Y[:, 2])
        return np.asarray(steps + np.cos(5.0 * Y[:, 0]) + 0.7 * np.sin(5.0 * Y[:, 1]))

    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        Y, P = rng.standard_normal((150, 4)), rng.standard_normal((500, 4))
        options = {"temperature": 1.0, "turn": np.eye(4), "steps": 60}
        one, two = (
            fit_log_surrogate(Y, f(Y), np.full(len(Y), 1e-6), n_interactions=n, **options).mean(P) - f(P)
            for n in (1, 2)
        )
        ratios.append(np.mean(np.square(two)) / np.mean(np.square(one)))
    assert np.median(ratios) < 0.5
