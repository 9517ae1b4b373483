"""What is said about a result is seen, true, and short."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

import wsabi
from wsabi.adaptive import engine as adaptive
from wsabi.adaptive.evaluations import Evaluations
from wsabi.errors import NumericalError


def gaussian(x: np.ndarray) -> float:
    return float(-2.0 * x @ x)


PRIOR = wsabi.Gaussian([0.0, 0.0])


def test_integrate_and_run_emit_what_the_result_warns_of() -> None:
    """One Python warning for each entry, from the line of the caller; a result without warnings is silent."""
    with pytest.warns(wsabi.EvidenceWarning) as seen:
        result = wsabi.integrate(gaussian, PRIOR, budget=12, rng=0)
    assert [str(one.message) for one in seen] == list(result.warnings)
    assert result.warnings
    assert all(one.filename == __file__ for one in seen)
    with pytest.warns(wsabi.EvidenceWarning) as again:
        wsabi.Integrator(PRIOR, rng=0).run(gaussian, budget=12)
    assert all(one.filename == __file__ for one in again)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wsabi.integrate(gaussian, PRIOR, rng=0).warnings == ()


def test_another_prior_warns_in_python_too() -> None:
    result = wsabi.integrate(gaussian, wsabi.Uniform([-1.0, -1.0], [1.0, 1.0]), budget=60, rng=0)
    with pytest.warns(wsabi.EvidenceWarning, match="outside the support"):
        other = result.with_prior(wsabi.Uniform([-5.0, -5.0], [5.0, 5.0]))
    assert other.log_z_std == math.inf


def test_a_huge_error_bar_is_a_warning() -> None:
    with pytest.warns(wsabi.EvidenceWarning, match="The error bar is ±"):
        result = wsabi.integrate(lambda x: -0.5 * float(np.sum((x - 3.0) ** 2)) / 1e-8, PRIOR, budget=14, rng=0)
    assert result.log_z_std > 1.0


def test_information_is_a_note_and_no_warning() -> None:
    result = wsabi.integrate(lambda x: -math.inf if x[0] < -0.6 else gaussian(x), PRIOR, rng=0, budget=100, tol=0)
    assert any("likelihood is zero on about" in text for text in result.notes)
    assert not any("zero on about" in text for text in result.warnings)
    assert "note            The likelihood is zero on about" in str(result)


def test_a_failed_check_is_not_called_a_likelihood_of_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    integrator = wsabi.Integrator(PRIOR, rng=0)
    integrator.run(gaussian, budget=60, tol=0)

    def fail(*_: object, **__: object) -> None:
        raise NumericalError("the check has failed.")

    monkeypatch.setattr(adaptive, "certify", fail)
    with pytest.raises(NumericalError, match="the check has failed") as caught:
        integrator.result()
    assert not isinstance(caught.value, wsabi.NoMassFound)
    assert len(caught.value.state[0]) == 60  # nothing that was evaluated is lost


def test_told_points_alone_are_used() -> None:
    """They were "too few to look for the mass", however many they were."""
    integrator = wsabi.Integrator(PRIOR, rng=0)
    X = np.random.default_rng(0).standard_normal((150, 2))
    integrator.tell(X, [gaussian(x) for x in X])
    result = integrator.result()
    assert abs(result.log_z + math.log(5.0)) < 0.01
    assert not any("too few" in text for text in result.warnings)
    assert any("No independent check points" in text for text in result.warnings)


def test_a_true_value_far_below_is_not_said_to_be_zero_likelihood_on_part_of_the_prior() -> None:
    """Of a Cauchy prior: one value lies a thousand times as far below the best as the others, and is a true one."""
    data = Evaluations(PRIOR)
    X = np.random.default_rng(0).standard_normal((8, 2))
    data.start_from(X)
    data.observe(X, np.array([0.0, -1.0, -3.0, -2.0, -5.0, -8.0, -4.0, -184662.0]))
    assert data.floors == [-184662.0]
    assert data.n_infeasible == 0
    more = np.random.default_rng(1).standard_normal((2, 2))
    data.start_from(more)
    data.observe(more, np.full(2, -184662.0))  # three of one value are no accident
    assert data.n_infeasible == 3
    prior = {"a": stats.cauchy(0, 1), "b": stats.norm(0, 1)}
    for seed in range(3):
        result = wsabi.integrate(lambda p: -0.5 * (p["a"] - 1.0) ** 2 - p["b"] ** 2, prior, budget=150, rng=seed)
        assert not any("zero on about" in text for text in result.notes + result.warnings)


def test_no_message_lists_more_than_a_few_values() -> None:
    """A likelihood with a hundred different floors."""
    result = wsabi.integrate(
        lambda x: gaussian(x) if x[0] > -0.3 else -1e30 * (1 + int(10 * abs(x[1]))), PRIOR, budget=150, rng=0
    )
    assert all(sum(character.isdigit() for character in text) < 60 for text in result.warnings + result.notes)


def test_the_table_of_a_running_integrator_makes_no_false_statement() -> None:
    integrator = wsabi.Integrator(PRIOR, rng=0)
    for _ in range(60):
        X = integrator.ask(1)
        integrator.tell(X, [gaussian(X[0])])
    text = str(integrator.result())
    assert "stopped because" not in text
    assert "state           not stopped" in text
    assert "nan" not in text
    assert "inf" not in text
    assert "method          adaptive" in text
    assert "posterior       16000 weighted points, which count as" in text


@pytest.mark.parametrize("seed", range(2))
def test_converged_means_that_the_error_bar_is_within_the_tolerance(seed: int) -> None:
    noise = np.random.default_rng(seed)
    result = wsabi.integrate(lambda x: gaussian(x) + 0.1 * noise.standard_normal(), PRIOR, tol=0.05, rng=seed)
    assert result.converged == (result.reason == "tolerance")
    assert not result.converged or result.log_z_std <= 0.05


def test_values_between_zero_and_one_are_taken_for_a_likelihood_without_its_logarithm() -> None:
    with pytest.warns(wsabi.EvidenceWarning, match="between 0 and 1"):
        wsabi.integrate(lambda x: math.exp(gaussian(x)), PRIOR, budget=40, rng=0)


def test_a_density_that_does_not_integrate_to_one_is_a_warning() -> None:
    forgotten = wsabi.LogDensity(lambda x: -0.5 * float(x @ x), wsabi.Gaussian([0.0, 0.0], 2.0))
    with pytest.warns(wsabi.EvidenceWarning, match="expected 1"):
        wsabi.integrate(gaussian, forgotten, budget=40, rng=0)


# -- the posterior ----------------------------------------------------------------------------------------------------


def test_under_noise_estimate_and_posterior_rest_on_the_check_points() -> None:
    """log ℓ + N(0, 0.5²), 400 evaluations: the surrogate follows the noise and knows nothing.

    Over two seeds, error bars below half a nat that hold the truth (z < 3.5: 0.1 % false alarms), and posterior
    standard deviations within 40 % (effective draws of at least 30: 1e-3).
    """
    sd, shift = 0.225, 0.3
    truth = 3.0 * math.log(sd / math.sqrt(1.0 + sd**2)) - 1.5 * shift**2 / (1.0 + sd**2) + 0.5 * 0.5**2
    for seed in range(2):
        noise = np.random.default_rng(100 + seed)
        result = wsabi.integrate(
            lambda x, noise=noise: float(-0.5 * np.sum((x - shift) ** 2) / sd**2 + 0.5 * noise.standard_normal()),
            wsabi.Gaussian(np.zeros(3)),
            budget=400,
            tol=0,
            rng=seed,
        )
        assert abs(result.log_z - truth) < 3.5 * result.log_z_std
        assert result.log_z_std < 0.5
        sds = np.sqrt(np.diag(result.posterior.cov))
        assert np.all((sds > 0.6 * 0.22) & (sds < 1.4 * 0.22))
        assert result.certificate is not None
        if result.certificate.rests_on_points:
            assert any("check points alone" in text for text in result.notes)
            assert len(result.posterior.points) <= result.certificate.n_points


def test_no_draw_of_the_posterior_weighs_more_than_the_heaviest_evaluation() -> None:
    result_model = adaptive.AdaptiveModel(PRIOR, wsabi.Settings(), np.random.default_rng(0), 80)
    for _ in range(80):
        X = result_model.propose(1, np.empty((0, 2)))
        result_model.observe(X, np.array([gaussian(x) for x in X]))
    certificate = result_model.estimate()
    assert certificate is not None
    assert result_model.regions is not None
    proposal = result_model._proposals[-1]
    heaviest = np.max(result_model.log_l + PRIOR.log_pdf(result_model.X) - proposal.log_pdf(result_model.X))
    for part in result_model.regions.parts:  # a surrogate that soars everywhere
        part.explorer.top += 30.0
    _, log_weights = result_model.posterior_draws(500, certificate)
    assert np.max(log_weights) <= heaviest


# -- streams ----------------------------------------------------------------------------------------------------------


def test_estimates_of_two_seeds_draw_different_numbers() -> None:
    """They used to share one stream for every number of evaluations, whatever the seed."""
    draws = []
    for seed in (0, 1):
        model = adaptive.AdaptiveModel(PRIOR, wsabi.Settings(), np.random.default_rng(seed), 80)
        draws.append(model.streams.stream(adaptive.FOR_POSTERIOR, 40).standard_normal(3))
        assert np.array_equal(draws[-1], model.streams.stream(adaptive.FOR_POSTERIOR, 40).standard_normal(3))
    assert not np.any(draws[0] == draws[1])
