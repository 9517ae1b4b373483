"""The estimate from check points: unbiased whatever the models are, with an honest standard error."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

import wsabi.adaptive.check.controls as controls_module
import wsabi.adaptive.check.residuals as residuals_module
from checked_world import (
    TRUTH,
    Function,
    by_surrogate,
    certified,
    cross_fitted,
    log_l,
    regions_of,
    replicates,
    rippled,
    slightly_wrong,
    wrong,
)
from wsabi.adaptive.check.combine import certify
from wsabi.adaptive.check.controls import Draws, controls_of
from wsabi.adaptive.check.crossfit import CrossFit
from wsabi.adaptive.check.proposal import Proposal
from wsabi.adaptive.check.residuals import bound, overconfidence, surrogate_residuals
from wsabi.adaptive.models import Models
from wsabi.adaptive.tuning import TUNING

# Models of no use as controls, and models of some use.
EACH_ERROR = pytest.mark.parametrize("function", [wrong, slightly_wrong])


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_check_estimate_is_unbiased_for_any_fixed_share(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean of 300 replicates of 30 points, with models wrong in two ways; false alarm 1e-6 each.

    The integrals alone would be 0.07 and 0.27 nats too high, 25 standard errors and more.
    """
    monkeypatch.setattr(residuals_module, "_best_share", lambda first, second: share)
    regions = regions_of(slightly_wrong, misled=0.2)
    assert abs((regions.moments()[0] if share else by_surrogate(regions)) - TRUTH) > 0.05
    runs = [certified(regions, 30, seed) for seed in range(300)]
    assert {run.wsabi_share for run in runs} == {share}
    z = np.array([math.exp(run.check_log_z) for run in runs])
    assert abs(z.mean() - math.exp(TRUTH)) < stats.norm.isf(0.5e-6) * z.std() / math.sqrt(len(z))


@pytest.mark.parametrize("seed", range(5))
def test_the_check_estimate_of_a_share_is_a_mixture_of_two(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """F(0.4) = 0.6 F(0) + 0.4 F(1), and so unbiased where both are, unless a control does harm and is left out."""
    z = []
    for share in (0.0, 0.4, 1.0):
        monkeypatch.setattr(residuals_module, "_best_share", lambda first, second, share=share: share)
        run = certified(regions_of(slightly_wrong, misled=-0.4), 30, seed)
        assert run.wsabi_share == share
        z.append(math.exp(run.check_log_z))
    assert abs(z[2] - z[0]) > 1e-4 * z[0]
    assert_allclose(z[1], 0.6 * z[0] + 0.4 * z[2], rtol=1e-9)


def test_points_that_are_data_too_leave_the_estimate_unbiased(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean of 100 replicates of 12 points, of a rippled likelihood of which five points know little; false alarm 1e-6.

    Surrogates that had seen the point which they are compared with would be 8 standard errors off. The estimate is
    unbiased as long as nothing bounds a surrogate that soars where it is not told. The bound (:func:`residuals.bound`)
    biases it by a third of its spread, and its root mean square error is two thirds of that without.
    """
    x = np.linspace(-9.0, 9.0, 20_001)
    truth = float(np.sum(np.exp(rippled(x[:, None])) * stats.norm.pdf(x))) * (x[1] - x[0])
    regions = regions_of(rippled, n=5)
    proposal = Proposal(regions.measure, regions)
    errors = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = proposal.sample(12, rng)
        log_p = proposal.log_pdf(X)
        crossfit = CrossFit.of(regions, X, rippled(X), 12)
        draws = Draws.of(proposal, crossfit.regions, 1000, rng)
        models = controls_of(crossfit.regions, draws)
        log_weights = rippled(X) + regions.measure.log_pdf(X) - log_p
        estimates = []
        for limit in (lambda weights: math.inf, bound):
            monkeypatch.setattr(residuals_module, "bound", limit)
            residuals = surrogate_residuals(models, crossfit, draws, X, log_weights, log_p)
            estimates.append(math.exp(models.log_unit) * (models.surrogate + residuals.mean()))
        errors.append(np.array(estimates) - truth)
    free, bounded = np.transpose(errors)
    assert abs(free.mean()) < stats.norm.isf(0.5e-6) * free.std() / math.sqrt(len(free))
    assert np.square(bounded).mean() < 0.75**2 * np.square(free).mean()


def test_points_that_are_data_too_make_a_better_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The surrogates' integral of the ripples, of which eight points know little, is ten times as good with 40 more."""
    monkeypatch.setattr(residuals_module, "_best_share", lambda first, second: 0.0)
    regions = regions_of(rippled, n=8)
    x = np.linspace(-9.0, 9.0, 20_001)
    truth = math.log(float(np.sum(np.exp(rippled(x[:, None])) * stats.norm.pdf(x))) * (x[1] - x[0]))
    alone = [certified(regions, 40, seed, rippled, n_draws=1000).model_log_z - truth for seed in range(20)]
    told = [cross_fitted(regions, 40, seed, rippled, n_draws=1000).model_log_z - truth for seed in range(20)]
    assert np.median(np.abs(told)) < 0.1 * np.median(np.abs(alone))


def overconfidence_of(regions: Models) -> float:
    proposal = Proposal(regions.measure, regions)
    X = proposal.sample(40, np.random.default_rng(0))
    log_weights = log_l(X) + regions.measure.log_pdf(X) - proposal.log_pdf(X)
    return overconfidence(CrossFit.without_any(regions, 40), X, log_l(X), log_weights)


def test_overconfidence_is_the_size_of_errors_in_units_of_their_sds() -> None:
    """A surrogate told 0.05 nats too much, with sds below a thousandth, is overconfident by fifty; a right one not."""
    assert overconfidence_of(regions_of(log_l)) < 1.5
    assert_allclose(overconfidence_of(regions_of(log_l, misled=0.05)), 0.05 / TUNING.search.resolution, rtol=0.1)


def test_without_likelihood_there_is_nothing_to_be_overconfident_about() -> None:
    regions = regions_of(log_l)
    nothing = np.full(3, -np.inf)
    assert overconfidence(CrossFit.without_any(regions, 3), np.zeros((3, 1)), nothing, nothing) == 1.0


def test_errors_beyond_all_squares_do_not_overflow() -> None:
    regions = regions_of(log_l)
    X, log_l_there = np.zeros((9, 1)), np.append(np.zeros(8), -1e200)
    told = overconfidence(CrossFit.without_any(regions, 9), X, log_l_there, np.append(np.zeros(8), -1e200))
    assert math.isfinite(told)


@EACH_ERROR
def test_choosing_the_share_costs_little_and_the_error_bar_matches_the_spread(function: Function) -> None:
    """The bias of a chosen share is below a quarter of one error bar; the error bar is that of the replicates.

    It may be wider by half, since it allows for tails not met, and not narrower by more than a tenth.
    """
    runs = replicates(function)
    z = np.array([math.exp(run.check_log_z) for run in runs])
    error_bars = np.array([math.exp(run.check_log_z) * run.check_log_z_std for run in runs])
    spread = z.std()
    assert abs(z.mean() - math.exp(TRUTH)) < 0.25 * spread + stats.norm.isf(0.5e-6) * spread / math.sqrt(len(z))
    typical = math.sqrt(np.mean(np.square(error_bars)))
    assert 0.9 * spread < typical < 1.5 * spread
    assert all(0.0 <= run.wsabi_share <= 1.0 for run in runs)


@EACH_ERROR
def test_check_points_cover_by_themselves(function: Function) -> None:
    """F ± 1.96 s holds the truth, whatever the model: of 300 intervals at 0.9, fewer than 250 has probability 2e-4."""
    assert sum(abs(run.check_log_z - TRUTH) < 1.96 * run.check_log_z_std for run in replicates(function)) >= 250


def test_a_surrogate_far_too_high_does_not_widen_the_estimate_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """e⁴ times too high and uncertain of it: left out as control, and no measure of what check points have not met."""
    regions = regions_of(lambda X: log_l(X) + 4.0)
    surrogate = Models.surrogate
    monkeypatch.setattr(regions, "surrogate", lambda X: (surrogate(regions, X)[0], np.ones(len(X))))
    monkeypatch.setattr(regions, "moments", lambda: (math.inf, 0.0))
    run = certified(regions, 60, 0)
    assert abs(run.check_log_z - TRUTH) < 3.0 * run.check_log_z_std
    # Half of Z for the uncertainty, and the spread; in the surrogate's units it would be 27.
    assert run.check_log_z_std < 0.8
    assert abs(run.log_z - TRUTH) < 1.0


@given(st.lists(st.floats(-30.0, 30.0), min_size=8, max_size=60))
def test_one_weight_at_most_exceeds_the_bound(log_weights: list[float]) -> None:
    """And only one that stands alone, with more than n^−½ of the sum; it is left that share, or as much as the next."""
    w = np.sort(np.exp(log_weights))
    most = bound(w)
    assert np.sum(w > most) <= 1
    if w[-1] > most:
        share = np.minimum(w, most).sum() / math.sqrt(len(w))
        assert_allclose(most, max(w[-2], share), rtol=1e-9)
        assert w[-1] > w.sum() / math.sqrt(len(w))


@pytest.mark.parametrize(("few", "n"), [(2, 8), (2, 40), (5, 40)])
def test_few_weights_that_agree_are_all_let_through(few: int, n: int) -> None:
    """However little the others count, of which many may be infeasible."""
    w = np.append(np.zeros(n - few), np.ones(few))
    assert bound(w) >= 1.0
    assert bound(np.zeros(n)) == 0.0


def test_a_control_that_soars_where_it_is_not_told_is_bounded_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """M₋j is the surrogate itself, but for one j, which has e⁹ times as much at its own point.

    Its residual is what the others allow, a tenth of the sum of all M at a hundred points, and the others stay.
    """
    regions = regions_of(log_l)
    proposal = Proposal(regions.measure, regions)
    rng = np.random.default_rng(0)
    draws = Draws.of(proposal, regions, 400, rng)
    models = replace(controls_of(regions, draws), log_cap=math.inf)
    X = proposal.sample(100, rng)
    log_p = proposal.log_pdf(X)
    log_m = regions.surrogate(X)[0]

    def residuals(soar: float) -> np.ndarray:
        def without_each(_: CrossFit, at: np.ndarray) -> np.ndarray:
            return np.repeat(regions.surrogate(at)[0][None], 101, axis=0)

        def without_own(_: CrossFit, at: np.ndarray) -> np.ndarray:
            return regions.surrogate(at)[0] + soar * (np.arange(100) == 7)

        monkeypatch.setattr(CrossFit, "is_plain", False)
        monkeypatch.setattr(CrossFit, "without_each", without_each)
        monkeypatch.setattr(CrossFit, "without_own", without_own)
        crossfit = CrossFit.without_any(regions, 100)
        return surrogate_residuals(models, crossfit, draws, X, log_m - log_p, log_p)

    assert_allclose(residuals(0.0), 0.0, atol=1e-9)
    found = residuals(9.0)
    ratios = np.delete(np.exp(log_m - log_p - models.log_unit), 7)
    assert_allclose(found[7], -max(ratios.max(), ratios.sum() / 9.0), rtol=1e-9)
    assert_allclose(np.delete(found, 7), 0.0, atol=1e-9)


def test_a_surrogate_that_few_draws_meet_is_compared_as_it_was_integrated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A right surrogate of a likelihood that only a few of the draws meet, e⁻²⁰⁰ elsewhere.

    Held to another cap at the check points than in its integral, it explained them away and left next to nothing.
    """
    regions = regions_of(log_l)
    monkeypatch.setattr(controls_module, "_usable_moments", lambda *_: (None, 0.0))

    def spike(X: np.ndarray) -> np.ndarray:
        return np.where(np.abs(X[:, 0] - 0.3) < 0.01, 0.0, -200.0)

    monkeypatch.setattr(regions, "surrogate", lambda X: (spike(X) + regions.measure.log_pdf(X), np.full(len(X), 0.1)))
    truth = math.log(0.02 * float(stats.norm.pdf(0.3)))
    proposal = Proposal(regions.measure, regions)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = proposal.sample(200, rng)
        found = certify(regions, proposal, X, spike(X), proposal.log_pdf(X), rng)
        assert abs(found.log_z - truth) < max(1.0, 3.0 * found.log_z_std)


def test_best_share_minimises_the_variance() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, 200)) * np.array([[1.0], [2.0]])
    best = residuals_module._best_share(first, second)
    variances = [np.var(a * first + (1 - a) * second) for a in np.linspace(0.0, 1.0, 1001)]
    assert abs(best - np.linspace(0.0, 1.0, 1001)[int(np.argmin(variances))]) <= 1e-3
    assert residuals_module._best_share(first, first + 1.0) == 1.0  # nothing to choose
    assert residuals_module._best_share(first, 0.1 * first) == 0.0
    assert residuals_module._best_share(0.1 * first, first) == 1.0
