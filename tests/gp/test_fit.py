"""Length-scales: recovered from draws, indifferent to units, restrained where the data say nothing."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import reference
from wsabi._core.types import Array
from wsabi.errors import NumericalError
from wsabi.gp import fit
from wsabi.gp.exact import log_marginal_likelihood
from wsabi.gp.fit import LOG_BOUND, Fit, LengthscalePrior, fit_lengthscales, starting_points
from wsabi.gp.kernel import SquaredExponential

FLAT = LengthscalePrior(0.0, sd=1e6)


def draw(lengthscales: list[float], n: int, seed: int) -> tuple[Array, Array]:
    """Points in units of the measure's sd and a draw of the GP there."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, len(lengthscales)))
    K = SquaredExponential(2.0, lengthscales).gram(X) + 1e-9 * np.eye(n)
    return X, np.linalg.cholesky(K) @ rng.standard_normal(n)


@pytest.mark.parametrize("lengthscales", [[0.5], [0.6, 2.0], [1.0, 0.7, 2.5]])
@pytest.mark.parametrize("seed", range(4))
def test_lengthscales_are_recovered_from_draws(lengthscales: list[float], seed: int) -> None:
    """Within a quarter in each direction: eighty points leave a standard deviation of five to eight per cent."""
    X, values = draw(lengthscales, 80, seed)
    found = fit_lengthscales(X, values, prior=LengthscalePrior.for_dim(len(lengthscales)))
    assert_allclose(np.log(found.lengthscales), np.log(lengthscales), atol=0.25)
    assert not found.at_bound


def test_the_fit_is_a_maximum_of_the_posterior() -> None:
    X, values = draw([0.8, 1.5], 40, 0)
    prior = LengthscalePrior.for_dim(2)
    found = fit_lengthscales(X, values, prior=prior, max_iterations=100)

    def log_posterior(theta: Array) -> float:
        return log_marginal_likelihood(X, values, theta)[0] + prior.log_density(theta)[0]

    theta = np.log(found.lengthscales)
    best = log_posterior(theta)
    assert_allclose(found.log_evidence, best - prior.log_density(theta)[0], rtol=1e-12)
    for step in 0.05 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1]]):
        assert log_posterior(theta + step) < best


def test_a_warm_start_ends_where_a_cold_one_does_and_sooner() -> None:
    X, values = draw([0.8, 1.5], 60, 1)
    prior = LengthscalePrior.for_dim(2)
    cold = fit_lengthscales(X, values, prior=prior)
    warm = fit_lengthscales(X, values, prior=prior, warm=cold.lengthscales)
    assert_allclose(warm.lengthscales, cold.lengthscales, rtol=1e-2)
    assert warm.n_iterations < cold.n_iterations


def test_starts_are_several_while_the_data_are_few() -> None:
    prior = LengthscalePrior.for_dim(2)
    cold = starting_points(prior, 2, None, 5)
    assert_allclose([s[0] for s in cold], prior.mean + np.array([-1.0, 0.0, 1.0]))
    warm = np.array([0.3, 3.0])
    young, old = starting_points(prior, 2, warm, 19), starting_points(prior, 2, warm, 20)
    assert (len(young), len(old)) == (4, 1)
    assert_array_equal(young[0], np.log(warm))
    assert_array_equal(old[0], np.log(warm))


def test_a_bad_warm_start_is_overruled_while_the_data_are_few() -> None:
    """From length-scales of a hundredth every point is an island and the likelihood is flat."""
    X, values = draw([1.0, 1.0], 15, 2)
    prior = LengthscalePrior.for_dim(2)
    cold = fit_lengthscales(X, values, prior=prior)
    warm = fit_lengthscales(X, values, prior=prior, warm=np.full(2, 0.01))
    assert_allclose(warm.log_evidence, cold.log_evidence, atol=1e-2)


def test_the_prior_restrains_an_axis_the_data_hardly_speak_of() -> None:
    """Six points of a function of the first axis alone: maximum likelihood sends the second to the end of its range."""
    X = np.random.default_rng(3).standard_normal((6, 2))
    values = np.sin(2.0 * X[:, 0])
    free = fit_lengthscales(X, values, prior=FLAT, max_iterations=200)
    held = fit_lengthscales(X, values, prior=LengthscalePrior.for_dim(2), max_iterations=200)
    assert free.at_bound
    assert not held.at_bound
    assert held.lengthscales[0] < held.lengthscales[1] < 30.0


def test_an_axis_never_moved_along_keeps_the_mode_of_the_prior() -> None:
    X, values = draw([0.7, 1.0], 20, 3)
    X[:, 1] = 0.4
    found = fit_lengthscales(X, values, prior=LengthscalePrior.for_dim(2))
    assert_allclose(found.lengthscales[1], np.sqrt(2.0), rtol=1e-2)


def test_the_end_of_the_range_is_reported() -> None:
    assert Fit(np.array([1.0, np.exp(LOG_BOUND)]), 0.0, 1, True).at_bound
    assert Fit(np.array([np.exp(-LOG_BOUND)]), 0.0, 1, True).at_bound
    assert not Fit(np.array([999.0, 1.001e-3]), 0.0, 1, True).at_bound
    rough = np.random.default_rng(4)
    X, values = rough.standard_normal((12, 1)), rough.choice([-1.0, 1.0], 12)
    X[1::2] = X[::2] + 1e-4  # values that flip over a step of 1e-4: white noise to any longer length-scale
    values[1::2] = -values[::2]
    found = fit_lengthscales(X, values, prior=LengthscalePrior(-5.0), warm=np.array([0.01]))
    assert found.lengthscales[0] < 1e-2


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_data_leave_the_prior(n: int) -> None:
    """One datum says nothing of length-scales at all: the mode of the prior, √D."""
    X, values = draw([1.0, 1.0, 1.0], n, 5)
    found = fit_lengthscales(X, values, prior=LengthscalePrior.for_dim(3))
    assert np.all(np.isfinite(found.lengthscales))
    if n == 1:
        assert_allclose(found.lengthscales, np.sqrt(3.0), rtol=1e-6)


def test_scaling_the_values_changes_nothing() -> None:
    X, values = draw([0.8, 1.5], 30, 6)
    prior = LengthscalePrior.for_dim(2)
    plain, scaled = (fit_lengthscales(X, factor * values, prior=prior) for factor in (1.0, 1e6))
    assert_allclose(scaled.lengthscales, plain.lengthscales, rtol=1e-2)
    assert_allclose(scaled.log_evidence, plain.log_evidence - 30 * np.log(1e6), atol=1e-2)


def test_prior_density_and_gradient() -> None:
    prior = LengthscalePrior.for_dim(4)
    assert prior.mean == np.log(2.0)
    assert_allclose(prior.log_density(np.full(4, prior.mean + 3.0))[0], -4 * 2.0)  # two standard deviations each
    x = np.array([0.3, -1.0, 2.0, 0.0])
    reference.assert_gradient(lambda t: prior.log_density(t)[0], lambda t: prior.log_density(t)[1], x)


def test_a_point_where_the_model_fails_is_stepped_over(monkeypatch: pytest.MonkeyPatch) -> None:
    X, values = draw([0.8], 20, 7)
    prior = LengthscalePrior.for_dim(1)
    expected = fit_lengthscales(X, values, prior=prior)

    def failing(X: Array, l_tilde: Array, theta: Array) -> tuple[float, Array]:
        if theta[0] > 0.5:
            raise NumericalError("not positive definite")
        return log_marginal_likelihood(X, l_tilde, theta)

    monkeypatch.setattr(fit, "log_marginal_likelihood", failing)
    found = fit_lengthscales(X, values, prior=prior)
    assert_allclose(found.log_evidence, expected.log_evidence, atol=1e-2)
