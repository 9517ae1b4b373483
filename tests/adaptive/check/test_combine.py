"""The combined estimate: check points correct any model, and the error bar is as wide as their spread."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import wsabi.adaptive.check.combine as combine
import wsabi.adaptive.check.residuals as residuals_module
from checked_world import TRUTH, by_surrogate, certified, log_l, regions_of, wrong
from wsabi.adaptive.check.combine import certify
from wsabi.adaptive.check.proposal import Proposal
from wsabi.adaptive.models import Models
from wsabi.adaptive.tuning import TUNING, tuned


def test_model_is_wrong_to_begin_with() -> None:
    """Or the tests below would show nothing."""
    assert abs(regions_of().moments()[0] - TRUTH) > 0.1


@pytest.mark.parametrize(
    ("gap", "trust"), [(0.0, 0.2), (0.5, 0.2), (-2.0, 0.2), (3.0, 5 / 6), (-3.0, 5 / 6), (math.sqrt(4.25), 0.2)]
)
def test_trust_is_by_precision_unless_the_gap_says_that_the_model_is_wrong(gap: float, trust: float) -> None:
    """Variance 0.25, error 1: beyond a gap of √4.25 the variance is gap² − 4."""
    assert_allclose(combine._trust(0.25, gap, 1.0, 100.0), trust)


@pytest.mark.parametrize("trust", [0.0, 0.3, 1.0])
def test_the_variance_by_the_gap_is_the_mean_square_error(trust: float) -> None:
    """Of I + trust·(F − I), I off by 2 and F by N(0, 1), on average over F: 1e6 draws tell it to half a per cent."""
    noise = np.random.default_rng(0).standard_normal(1_000_000)
    stated = np.mean([combine._variance_by_gap(trust, gap, 1.0) for gap in (noise - 2.0)[:20_000]])
    # A gap below the error says nothing of I, where its square less one is below zero: a tenth more than is so.
    actual = np.mean(np.square((1.0 - trust) * 2.0 + trust * noise))
    assert actual * 0.97 < stated < actual * 1.1


@pytest.mark.parametrize(("gap", "trust"), [(1.0, 0.2), (math.sqrt(1.25), 0.2), (2.0, 0.75), (-3.0, 8 / 9)])
def test_an_error_of_more_than_the_model_has_is_no_excuse(gap: float, trust: float) -> None:
    """Variance 0.25, error 1, beside an integral of next to nothing: from a gap of √1.25 on it is gap² − 1."""
    assert_allclose(combine._trust(0.25, gap, 1.0, 1e-9), trust)
    assert_allclose(combine._trust(0.25, gap, 1.0, 0.0), trust)


def test_models_that_have_next_to_nothing_leave_the_estimate_to_the_check_points() -> None:
    """With a surrogate of e^−700 of the likelihood the estimate is that of plain importance sampling."""
    regions = regions_of(lambda X: log_l(X) - 700.0)
    proposal = Proposal(regions.measure, regions)
    X = proposal.sample(40, np.random.default_rng(0))
    log_p = proposal.log_pdf(X)
    found = certify(regions, proposal, X, log_l(X), log_p, np.random.default_rng(1))
    plain = np.logaddexp.reduce(log_l(X) + regions.measure.log_pdf(X) - log_p) - math.log(40)
    assert_allclose(found.check_log_z, plain, rtol=1e-9)
    assert abs(found.check_log_z - TRUTH) < 4.0 * found.check_log_z_std < 2.0


def test_the_combination_covers_where_model_and_check_points_disagree() -> None:
    """The model is 0.8 nats high, with an error bar of 4e-4. Where check points contradict it, the error bar holds Z.

    At least 100 of 300 replicates disagree by three error bars, and of those 0.9 are covered: below 0.8 of 100 has
    probability 2e-3 at 0.9, and 1e-8 at 0.95.
    """
    regions = regions_of(lambda X: wrong(X) + 1.0)
    log_mean, log_var = regions.moments()
    assert abs(log_mean - TRUTH) > 100.0 * math.exp(0.5 * log_var - log_mean)
    disagreeing = [run for run in (certified(regions, 40, seed) for seed in range(300)) if abs(run.difference) > 3.0]
    assert len(disagreeing) >= 100
    covered = sum(abs(run.log_z - TRUTH) < 1.96 * run.log_z_std for run in disagreeing)
    assert covered >= 0.8 * len(disagreeing)


def test_a_right_model_is_left_alone_and_the_error_is_small() -> None:
    regions = regions_of(log_l, n=40)
    run = certified(regions, 40, 0)
    assert abs(run.log_z - TRUTH) < 3e-3
    assert run.log_z_std < 1e-2
    assert abs(run.difference) < 3.0
    # Two sources beat either, down to the least error bar.
    least = TUNING.search.resolution
    assert run.log_z_std <= math.hypot(min(run.model_log_z_std, run.check_log_z_std), least) * (1 + 1e-9)


@pytest.mark.parametrize("n", [0, 1, TUNING.check.min_points - 1, TUNING.check.min_points])
def test_few_check_points_are_not_used(n: int) -> None:
    """Below ``min_points`` the certificate is the same whatever the likelihood there; from then on it is not."""
    regions = regions_of()
    run, other = certified(regions, n, 0), certified(regions, n, 0, lambda X: log_l(X) + 3.0)
    assert run.n_points == n
    if n < TUNING.check.min_points:
        assert run.log_z == run.model_log_z == other.log_z
        assert run.log_z_std == other.log_z_std
        assert math.isnan(run.check_log_z)
        assert run.check_log_z_std == math.inf
        assert run.difference == 0.0
    else:
        assert math.isfinite(run.check_log_z)
        assert run.log_z not in (run.model_log_z, other.log_z)
    assert math.isfinite(run.log_z_std)
    assert run.log_z_std > 0.0


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_model_integral_is_that_of_the_control(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """I in Z = I + E[(ℓπ − M)/p] belongs to the M whose residuals are taken, or the estimate is off by their gap."""
    monkeypatch.setattr(residuals_module, "_best_share", lambda first, second: share)
    regions = regions_of(misled=0.6)
    expected = regions.moments()[0] if share else by_surrogate(regions)
    assert abs(certified(regions, 30, 0).model_log_z - expected) < 5e-3


def test_an_uncertain_surrogate_widens_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """What check points have not met is allowed for by the uncertainty, however many there are.

    The likelihood is the surrogate's own, so that the residuals are nothing and the uncertainty is all that is left.
    """
    regions = regions_of()
    monkeypatch.setattr(residuals_module, "_best_share", lambda first, second: 0.0)
    surrogate = Models.surrogate

    def own(X: np.ndarray) -> np.ndarray:
        return np.asarray(surrogate(regions, X)[0] - regions.measure.log_pdf(X))

    sure = certified(regions, 20, 0, own)
    monkeypatch.setattr(regions, "surrogate", lambda X: (surrogate(regions, X)[0], np.full(len(X), 0.5)))
    unsure, more = certified(regions, 20, 0, own), certified(regions, 80, 0, own)
    assert_allclose(unsure.uncertainty, 0.5, rtol=1e-9)
    assert unsure.check_log_z_std > 10.0 * sure.check_log_z_std
    assert_allclose(unsure.check_log_z_std, TUNING.check.integral_error * 0.5, rtol=0.05)
    assert_allclose(more.check_log_z_std, unsure.check_log_z_std, rtol=0.05)
    assert unsure.log_z_std > 3.0 * sure.log_z_std
    # It is in the models' integral and in the check points' alike: their mean knows no better than either.
    assert unsure.log_z_std >= TUNING.check.integral_error * 0.5 * 0.95


def test_what_several_check_points_agree_on_is_believed() -> None:
    """A lump of e⁹ that no model knows of: two check points in it are enough, and the more the better."""
    regions = regions_of(log_l)

    def lumpy(X: np.ndarray) -> np.ndarray:
        return np.where(X[:, 0] < -0.4, 9.0, log_l(X))

    truth = 9.0 + stats.norm.logcdf(-0.4)  # beside which the rest is nothing
    runs = [certified(regions, 40, seed, lumpy) for seed in range(10)]
    met = [run for run in runs if run.effective_sample_size > 1.5]
    assert len(met) >= 8
    assert all(abs(run.log_z - truth) < 1.5 for run in met)
    assert all(abs(run.log_z - truth) < 0.7 for run in met if run.effective_sample_size > 4.5)


def test_one_huge_weight_widens_the_error_and_hardly_moves_the_estimate() -> None:
    """A model that is right, and one of 40 check points in a spike of e⁹ that nothing else has met.

    The unbiased estimate is carried away by it. What is weighed against the models allows it n^−½ of the sum.
    """
    regions = regions_of(log_l)
    proposal = Proposal(regions.measure, regions)
    spike = proposal.sample(40, np.random.default_rng(3))[7]

    def spiked(X: np.ndarray) -> np.ndarray:
        return np.asarray(log_l(X) + np.where(np.all(spike == X, axis=1), 9.0 - log_l(spike[None])[0], 0.0))

    plain, run = certified(regions, 40, 3), certified(regions, 40, 3, spiked)
    assert run.check_log_z > plain.check_log_z + 3.0
    assert abs(run.log_z - plain.log_z) < math.log1p(1.5 / math.sqrt(40))
    assert run.log_z_std > 1.0


def test_uneven_weights_that_the_control_follows_are_not_bounded() -> None:
    """On a ring the weights are uneven because p does not follow it; where the model does, nothing is cut."""
    regions = regions_of(log_l)
    surrogate = Models.surrogate

    def own(X: np.ndarray) -> np.ndarray:
        return np.asarray(surrogate(regions, X)[0] - regions.measure.log_pdf(X))

    proposal = Proposal(regions.measure, regions)
    rng = np.random.default_rng(0)
    X = proposal.sample(30, rng)
    log_p = proposal.log_pdf(X) + rng.normal(0.0, 3.0, 30)  # as if p were far from ℓπ
    with tuned("check", draws=300, draws_factor=1):
        run = certify(regions, proposal, X, own(X), log_p, rng)
    assert run.effective_sample_size < 10.0
    assert_allclose(run.log_z, run.check_log_z, atol=2e-3)


@pytest.mark.parametrize("drop", [100.0, 500.0, 1e5])
def test_points_of_next_to_no_likelihood_leave_nothing_undefined(drop: float) -> None:
    """One check point so far below the model's mass that its square underflows."""
    run = certified(regions_of(), 1, 0, lambda X: log_l(X) - drop)
    assert 0.0 <= run.effective_sample_size <= 1.0 + 1e-9
    assert math.isfinite(run.log_z)


def test_points_without_likelihood_leave_nothing_undefined() -> None:
    """Every check point at −inf: the model's mass is not there, and the estimate must not be NaN."""
    run = certified(regions_of(), 40, 0, lambda X: np.full(len(X), -np.inf))
    assert run.effective_sample_size == 0.0
    for item in fields(run):
        value = getattr(run, item.name)
        if isinstance(value, str):
            continue
        assert not math.isnan(value) or item.name == "pareto_k", item.name  # weights of zero have no tail
    assert run.log_z < run.model_log_z
    assert run.log_z_std > 0.5


def test_a_model_far_too_small_does_not_overflow() -> None:
    """Check points a thousand nats above anything the model has seen."""
    run = certified(regions_of(), 40, 0, lambda X: log_l(X) + 1000.0)
    assert math.isfinite(run.log_z)
    assert math.isfinite(run.log_z_std)
    assert abs(run.difference) > 3.0 or run.log_z_std > 1.0


def test_certificate_shifts_with_log_l() -> None:
    one = certified(regions_of(), 40, 0)
    # Only by 100: the adaptive model takes the first value off all others, so larger ones never come here.
    other = certified(regions_of(lambda X: wrong(X) + 100.0), 40, 0, lambda X: log_l(X) + 100.0)
    for name in ("model_log_z", "check_log_z"):
        assert_allclose(getattr(other, name) - 100.0, getattr(one, name), atol=1e-5)  # rounding, through the fits
    # The model's variance is at its round-off here, right to a per cent, and weighs the two: a hundredth of the error.
    assert_allclose(other.log_z - 100.0, one.log_z, atol=1e-2 * one.log_z_std)
    assert_allclose(other.log_z_std, one.log_z_std, rtol=1e-2)
    for name in ("check_log_z_std", "difference", "effective_sample_size", "pareto_k", "wsabi_share", "uncertainty"):
        assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-3)
