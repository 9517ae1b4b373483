"""The certificate: check points correct any model without bias, and their error bar is as wide as their spread."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from wsabi.adaptive.check import combine as certificate
from wsabi.adaptive.check.combine import FINAL, INTERIM, certify
from wsabi.adaptive.check.crossfit import CrossFit
from wsabi.adaptive.check.proposal import Proposal
from wsabi.adaptive.regions import Regions
from wsabi.adaptive.search.anneal import RESOLUTION, Explorer
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.tuning import TUNING, tuned
from wsabi.errors import NumericalError
from wsabi.priors import Gaussian
from wsabi.result import Certificate
from wsabi.settings import Settings

Function = Callable[[np.ndarray], np.ndarray]

TRUTH = math.log(0.5 / math.sqrt(0.5**2 + 1.0)) - 0.5 * 0.4**2 / 1.25  # ∫ exp(−½((x − 0.4)/0.5)²) N(x; 0, 1)


def log_l(X: np.ndarray) -> np.ndarray:
    return -0.5 * np.square((X[:, 0] - 0.4) / 0.5)


def wrong(X: np.ndarray) -> np.ndarray:
    """What the models are told instead: a narrower bump, elsewhere and too high."""
    return -0.5 * np.square((X[:, 0] - 0.7) / 0.35) + 0.3


def regions_of(function: Function = wrong, dim: int = 1, n: int = 25, misled: float = 0.0) -> Regions:
    """Two regions whose models have seen ``function``, and whose surrogates ``misled`` more than that."""
    measure = Gaussian(np.zeros(dim))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, dim))
    explorers = []
    for centre, log_z in ((0.5, -1.0), (-0.4, -2.0)):
        explorer = Explorer(measure, rng)
        explorer.frame = Frame.of(np.full(dim, centre), 0.25 * np.eye(dim))
        explorer.fit(X, function(X) + misled, learn=True)
        explorer.log_z = log_z
        explorers.append(explorer)
    return Regions(measure, Settings(), rng, explorers, X, function(X), [None, None])


def certified(regions: Regions, n: int, seed: int, function: Function = log_l, n_draws: int = 300) -> Certificate:
    """The certificate from n check points on which the likelihood is ``function``."""
    proposal = Proposal(regions.measure, regions)
    rng = np.random.default_rng(seed)
    X = proposal.sample(n, rng)
    with tuned("check", draws=n_draws, draws_factor=1):
        return certify(regions, proposal, X, function(X), proposal.log_pdf(X), rng)


# -- certify ----------------------------------------------------------------------------------------------------------


def test_model_is_wrong_to_begin_with() -> None:
    """Or the tests below would show nothing."""
    assert abs(regions_of().moments()[0] - TRUTH) > 0.1


def test_an_integral_that_draws_cannot_do_is_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where the error of the integral is more than the share asked for."""
    regions = regions_of(log_l)
    proposal, refined = Proposal(regions.measure, regions), []
    monkeypatch.setattr(Proposal, "refined", lambda self, *_: refined.append(self) or self)
    X = proposal.sample(20, np.random.default_rng(0))

    def ask(refinement: float) -> int:
        refined.clear()
        with tuned("check", draws=300, draws_factor=1, final_refinement=refinement):
            certify(regions, proposal, X, log_l(X), proposal.log_pdf(X), np.random.default_rng(1), FINAL)
        return len(refined)

    assert ask(0.0) == 1
    assert ask(math.inf) == 0
    share = certificate._models(regions, certificate._Draws.of(proposal, regions, 300, np.random.default_rng(1)))
    assert ask(0.9 * share.surrogate_error / share.least_claim) == 1
    assert ask(1.1 * share.surrogate_error / share.least_claim) == 0


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_fresh_estimate_is_unbiased_for_any_fixed_share(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean of 300 replicates of 30 points, with models wrong in two ways; false alarm 1e-6 each."""
    monkeypatch.setattr(certificate, "_best_share", lambda first, second: share)
    regions = regions_of(misled=0.6)
    runs = [certified(regions, 30, seed) for seed in range(300)]
    assert {run.wsabi_share for run in runs} == {share}
    z = np.array([math.exp(run.check_log_z) for run in runs])
    assert abs(z.mean() - math.exp(TRUTH)) < stats.norm.isf(0.5e-6) * z.std() / math.sqrt(len(z))


def cross_fitted(regions: Regions, n: int, seed: int, function: Function, n_draws: int = 300) -> Certificate:
    """The certificate from n check points that are data of the surrogates as well."""
    proposal = Proposal(regions.measure, regions)
    rng = np.random.default_rng(seed)
    X = proposal.sample(n, rng)
    crossfit = CrossFit.of(regions, X, function(X), n)
    with tuned("check", draws=n_draws, draws_factor=1):
        return certify(regions, proposal, X, function(X), proposal.log_pdf(X), rng, INTERIM, crossfit)


def rippled(X: np.ndarray) -> np.ndarray:
    return log_l(X) + 0.8 * np.sin(7.0 * X[:, 0])


def test_no_draw_carries_more_of_an_integral_than_the_root_of_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A surrogate that soars in one place of a hundred: held to √N times its mean there, and at check points alike."""
    regions = regions_of(log_l)
    soaring = regions.surrogate
    place = 2.2

    def surrogate(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        log_m, sd = soaring(X)
        return log_m + np.where(np.abs(X[:, 0] - place) < 0.01, 20.0, 0.0), sd

    monkeypatch.setattr(regions, "surrogate", surrogate)
    monkeypatch.setattr(certificate, "_usable_moments", lambda *_: (None, 0.0))
    proposal = Proposal(regions.measure, regions)
    rng = np.random.default_rng(0)
    draws = certificate._Draws.of(proposal, regions, 1000, rng)
    soared = np.abs(draws.X[:, 0] - place) < 0.01
    assert 1 <= np.sum(soared) <= 5
    models = certificate._models(regions, draws)
    ratio = np.exp(np.minimum(surrogate(draws.X)[0] - draws.log_p - models.log_unit, draws.log_cap))
    assert_allclose(models.surrogate, proposal.mean_of(ratio, draws.X, draws.log_p)[0], rtol=1e-9)
    assert np.max(ratio) <= 1.002 * np.sum(ratio) / math.sqrt(1000)
    X = np.array([[place], [0.3]])
    log_p = proposal.log_pdf(X)
    residuals = certificate._surrogate_residuals(
        models, CrossFit.without_any(regions, 2), draws, X, np.full(2, -np.inf), log_p
    )
    assert_allclose(residuals[0], -math.sqrt(1000), rtol=1e-9)
    assert_allclose(residuals[1], -np.exp(surrogate(X[1:])[0] - log_p[1:] - models.log_unit)[0], rtol=1e-9)


def test_points_that_are_data_too_leave_the_estimate_unbiased() -> None:
    """Mean of 200 replicates of 12 points, of a rippled likelihood of which five points know little; false alarm 1e-6.

    Surrogates that had seen the point which they are compared with would be 13 standard errors off.
    """
    x = np.linspace(-9.0, 9.0, 20_001)
    truth = float(np.sum(np.exp(rippled(x[:, None])) * stats.norm.pdf(x))) * (x[1] - x[0])
    regions = regions_of(rippled, n=5)
    proposal = Proposal(regions.measure, regions)
    z = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X = proposal.sample(12, rng)
        log_p = proposal.log_pdf(X)
        crossfit = CrossFit.of(regions, X, rippled(X), 12)
        draws = certificate._Draws.of(proposal, crossfit.regions, 3000, rng)
        models = certificate._models(crossfit.regions, draws)
        log_weights = rippled(X) + regions.measure.log_pdf(X) - log_p
        residuals = certificate._surrogate_residuals(models, crossfit, draws, X, log_weights, log_p)
        z.append(math.exp(models.log_unit) * (models.surrogate + residuals.mean()))
    assert abs(np.mean(z) - truth) < stats.norm.isf(0.5e-6) * np.std(z) / math.sqrt(len(z))


def test_points_that_are_data_too_make_a_better_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The surrogates' integral of the ripples, of which eight points know little, is ten times as good with 40 more."""
    monkeypatch.setattr(certificate, "_best_share", lambda first, second: 0.0)
    regions = regions_of(rippled, n=8)
    x = np.linspace(-9.0, 9.0, 20_001)
    truth = math.log(float(np.sum(np.exp(rippled(x[:, None])) * stats.norm.pdf(x))) * (x[1] - x[0]))
    alone = [certified(regions, 40, seed, rippled, n_draws=1000).model_log_z - truth for seed in range(20)]
    told = [cross_fitted(regions, 40, seed, rippled, n_draws=1000).model_log_z - truth for seed in range(20)]
    assert np.median(np.abs(told)) < 0.1 * np.median(np.abs(alone))


def overconfidence_of(regions: Regions) -> float:
    proposal = Proposal(regions.measure, regions)
    X = proposal.sample(40, np.random.default_rng(0))
    log_weights = log_l(X) + regions.measure.log_pdf(X) - proposal.log_pdf(X)
    return certificate._overconfidence(CrossFit.without_any(regions, 40), X, log_l(X), log_weights)


def test_overconfidence_is_the_size_of_errors_in_units_of_their_sds() -> None:
    """A surrogate told 0.05 nats too much, with sds below a thousandth, is overconfident by fifty; a right one not."""
    assert overconfidence_of(regions_of(log_l)) < 1.5
    assert_allclose(overconfidence_of(regions_of(log_l, misled=0.05)), 0.05 / RESOLUTION, rtol=0.1)


@pytest.mark.parametrize(("factor", "unmet"), [(1.0, 0.1), (2.0, 0.2), (3.0, 0.3), (50.0, 0.3)])
def test_an_overconfident_surrogate_claims_more_error(factor: float, unmet: float) -> None:
    """The models' sd in proportion; what check points may not have met up to three times."""
    models = certificate._Models(0.0, 1.0, 0.0, None, 0.0, 0.1 / TUNING.check.integral_error, overconfidence=factor)
    assert_allclose(models.combined(0.0, by_fresh=True)[1], (0.1 * factor) ** 2)
    assert_allclose(models.unmet, unmet)


def test_without_likelihood_there_is_nothing_to_be_overconfident_about() -> None:
    regions = regions_of(log_l)
    nothing = np.full(3, -np.inf)
    assert certificate._overconfidence(CrossFit.without_any(regions, 3), np.zeros((3, 1)), nothing, nothing) == 1.0


@pytest.mark.parametrize(
    ("gap", "trust"), [(0.0, 0.2), (0.5, 0.2), (-2.0, 0.2), (3.0, 5 / 6), (-3.0, 5 / 6), (math.sqrt(4.25), 0.2)]
)
def test_trust_is_by_precision_unless_the_gap_says_that_the_model_is_wrong(gap: float, trust: float) -> None:
    """Variance 0.25, error 1: beyond a gap of √4.25 the variance is gap² − 4."""
    assert_allclose(certificate._trust(0.25, gap, 1.0, 100.0), trust)


@pytest.mark.parametrize("trust", [0.0, 0.3, 1.0])
def test_the_variance_by_the_gap_is_the_mean_square_error(trust: float) -> None:
    """Of I + trust·(F − I), I off by 2 and F by N(0, 1), on average over F: 1e6 draws tell it to half a per cent."""
    fresh = np.random.default_rng(0).standard_normal(1_000_000)
    claimed = np.mean([certificate._variance_by_gap(trust, gap, 1.0) for gap in (fresh - 2.0)[:20_000]])
    # A gap below the error says nothing of I, where its square less one is below zero: a tenth more than is so.
    actual = np.mean(np.square((1.0 - trust) * 2.0 + trust * fresh))
    assert actual * 0.97 < claimed < actual * 1.1


@pytest.mark.parametrize(("gap", "trust"), [(1.0, 0.2), (math.sqrt(1.25), 0.2), (2.0, 0.75), (-3.0, 8 / 9)])
def test_an_error_of_more_than_the_model_has_is_no_excuse(gap: float, trust: float) -> None:
    """Variance 0.25, error 1, beside an integral of next to nothing: from a gap of √1.25 on it is gap² − 1."""
    assert_allclose(certificate._trust(0.25, gap, 1.0, 1e-9), trust)
    assert_allclose(certificate._trust(0.25, gap, 1.0, 0.0), trust)


@pytest.mark.parametrize("soaring", [0, 1, 3, 6])
def test_a_capped_mean_is_its_own_cap(soaring: int) -> None:
    """m = mean of min(r, √N m), however far ratios soar; without any it is the mean."""
    r = np.random.default_rng(0).uniform(0.5, 1.5, 1600)
    r[:soaring] = 1e40
    m = math.exp(certificate._log_capped_mean(np.log(r)))
    assert_allclose(m, np.mean(np.minimum(r, 40.0 * m)), rtol=2e-3)
    assert 0.9 < m < 1.0 / (1.0 - soaring / 40.0) + 0.1


def test_what_many_ratios_agree_on_is_not_capped() -> None:
    """Of 1,600 ratios twenty are all there is: a surrogate that few draws meet, and no accident."""
    log_r = np.full(1600, -200.0)
    log_r[:20] = 0.0
    assert_allclose(certificate._log_capped_mean(log_r), math.log(20 / 1600), rtol=1e-9)


def test_models_that_have_next_to_nothing_leave_the_fresh_points_their_say() -> None:
    """With a surrogate of e^−700 of the likelihood the estimate is that of plain importance sampling."""
    regions = regions_of(lambda X: log_l(X) - 700.0)
    proposal = Proposal(regions.measure, regions)
    X = proposal.sample(40, np.random.default_rng(0))
    log_p = proposal.log_pdf(X)
    found = certify(regions, proposal, X, log_l(X), log_p, np.random.default_rng(1))
    plain = np.logaddexp.reduce(log_l(X) + regions.measure.log_pdf(X) - log_p) - math.log(40)
    assert_allclose(found.check_log_z, plain, rtol=1e-9)
    assert abs(found.check_log_z - TRUTH) < 4.0 * found.check_log_z_std < 2.0


def test_errors_beyond_all_squares_do_not_overflow() -> None:
    regions = regions_of(log_l)
    X, log_l_there = np.zeros((9, 1)), np.append(np.zeros(8), -1e200)
    told = certificate._overconfidence(CrossFit.without_any(regions, 9), X, log_l_there, np.append(np.zeros(8), -1e200))
    assert math.isfinite(told)


@given(st.integers(100, 5000), st.floats(1e-3, 1e3))
def test_as_many_draws_as_the_error_asks_for(n: int, ratio: float) -> None:
    """The error of n draws falls to 0.25 of the claim with n(ratio/0.25)²; more than n, and no more than ``most``."""
    models = certificate._Models(0.0, 1.0, ratio * 0.35, None, 0.0, 1.0)
    models = replace(models, surrogate_error=ratio * models.least_claim)
    after = FINAL.draws_after(n, models)
    assert min(1.4 * n, FINAL.most) <= after <= FINAL.most
    assert after == FINAL.most or after >= n * (ratio / 0.25) ** 2


def test_choosing_the_share_costs_little_and_the_error_bar_matches_the_spread() -> None:
    """The bias of a chosen share is below a quarter of one error bar; the error bar is that of the replicates.

    It may be wider by half, since it allows for tails not met, and not narrower by more than a tenth.
    """
    regions = regions_of()
    runs = [certified(regions, 40, seed) for seed in range(400)]
    z = np.array([math.exp(run.check_log_z) for run in runs])
    claims = np.array([math.exp(run.check_log_z) * run.check_log_z_std for run in runs])
    spread = z.std()
    assert abs(z.mean() - math.exp(TRUTH)) < 0.25 * spread + stats.norm.isf(0.5e-6) * spread / math.sqrt(len(z))
    typical = math.sqrt(np.mean(np.square(claims)))
    assert 0.9 * spread < typical < 1.5 * spread
    assert all(0.0 <= run.wsabi_share <= 1.0 for run in runs)


def test_fresh_points_cover_by_themselves() -> None:
    """F ± 1.96 s holds the truth, whatever the model: of 300 intervals at 0.9, fewer than 250 has probability 2e-4."""
    regions = regions_of()
    runs = [certified(regions, 40, seed) for seed in range(300)]
    assert sum(abs(run.check_log_z - TRUTH) < 1.96 * run.check_log_z_std for run in runs) >= 250


def test_the_combination_covers_where_model_and_fresh_points_disagree() -> None:
    """The model is 0.8 nats high and claims 4e-4: where the check points contradict it, the error bar holds the truth.

    At least 100 of 300 replicates disagree by three claimed sds, and of those 0.9 are covered: below 0.8 of 100 has
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
    # Two sources beat either, down to what is claimed at all.
    assert run.log_z_std <= math.hypot(min(run.model_log_z_std, run.check_log_z_std), certificate.RESOLUTION) * (
        1 + 1e-9
    )


@pytest.mark.parametrize("n", [0, 1, TUNING.check.min_points - 1, TUNING.check.min_points])
def test_few_fresh_points_have_no_say(n: int) -> None:
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


def by_surrogate(regions: Regions) -> float:
    """log ∫ of the explorers' ℓπ on the real line, by the trapezoidal rule."""
    grid = np.linspace(-6.0, 6.0, 4001)
    return float(np.logaddexp.reduce(regions.surrogate(grid[:, None])[0])) + math.log(grid[1] - grid[0])


@pytest.mark.parametrize(("left_over", "share"), [(1e6, 1.0), (0.0, 0.0)])
def test_without_fresh_points_the_smaller_claim_is_taken_whole(left_over: float, share: float) -> None:
    """With the surrogate's doubt made large, or nothing, the estimate is WSABI's closed form or the surrogate's own.

    The other's distance, misled as it is by 0.6 nats, is in the error either way.
    """
    regions = regions_of(misled=0.6)
    with tuned("check", integral_error=left_over):
        run = certified(regions, 0, 0)
    assert run.wsabi_share == share
    if share:
        assert_allclose(run.log_z, regions.moments()[0], atol=1e-10)
    else:
        assert abs(run.log_z - by_surrogate(regions)) < 5e-3  # by 300 draws
    assert run.log_z_std > 0.3


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_model_integral_is_that_of_the_control(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """I in Z = I + E[(ℓπ − M)/p] belongs to the M whose residuals are taken, or the estimate is off by their gap."""
    monkeypatch.setattr(certificate, "_best_share", lambda first, second: share)
    regions = regions_of(misled=0.6)
    expected = regions.moments()[0] if share else by_surrogate(regions)
    assert abs(certified(regions, 30, 0).model_log_z - expected) < 5e-3


# -- models that are of no use ----------------------------------------------------------------------------------------


def lost(regions: Regions) -> tuple[float, float]:
    raise NumericalError("lost to round-off.")


@pytest.mark.parametrize(
    "moments",
    [
        lost,
        lambda regions: (math.inf, 0.0),
        lambda regions: (regions.log_mass + 60.0, 0.0),
        lambda regions: (Regions.moments(regions)[0], 2.0 * Regions.moments(regions)[0] + 0.1),
        lambda regions: (Regions.moments(regions)[0] + 0.5, Regions.moments(regions)[1]),
        lambda regions: (Regions.moments(regions)[0] - 0.5, Regions.moments(regions)[1]),
    ],
    ids=["lost", "infinite", "far off", "no knowledge", "above its integrand", "below its integrand"],
)
@pytest.mark.parametrize("n", [0, 40])
def test_wsabi_is_left_out_where_it_is_not_to_be_believed(
    n: int, moments: Callable[[Regions], tuple[float, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An integral that is lost, far, unknown or not that of its integrand over draws: the surrogate stands alone."""
    regions = regions_of()
    with tuned("check", integral_error=1e6):  # WSABI would be preferred otherwise
        assert certified(regions, 0, 0).wsabi_share == 1.0
        monkeypatch.setattr(regions, "moments", lambda: moments(regions))
        run = certified(regions, n, 0)
    assert run.wsabi_share == 0.0
    assert math.isfinite(run.log_z)
    assert math.isfinite(run.log_z_std)
    assert abs(run.model_log_z - by_surrogate(regions)) < 5e-3


@pytest.mark.parametrize("n", [0, 40])
def test_a_surrogate_that_gives_no_mass_anywhere_leaves_nothing_undefined(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All draws in what it takes for infeasible: WSABI and the check points remain."""
    regions = regions_of()
    monkeypatch.setattr(regions, "surrogate", lambda X: (np.full(len(X), -np.inf), np.ones(len(X))))
    run = certified(regions, n, 0)
    assert math.isfinite(run.log_z)
    assert run.log_z_std > 0.0


def test_doubt_falls_with_the_data_and_is_the_surrogates_own() -> None:
    """Averaged over its posterior, by draws to a few per cent."""
    few, many = regions_of(n=7), regions_of(n=25)
    assert certified(few, 0, 0).uncertainty > certified(many, 0, 0).uncertainty
    grid = np.linspace(-6.0, 6.0, 4001)[:, None]
    log_joint, sd = few.surrogate(grid)
    w = np.exp(log_joint - log_joint.max())
    assert_allclose(certified(few, 0, 0, n_draws=4000).uncertainty, w @ sd / w.sum(), rtol=0.1)


def test_a_doubtful_surrogate_widens_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """What check points have not met is allowed for by the uncertainty, however many there are.

    The likelihood is the surrogate's own, so that the residuals are nothing and the uncertainty is all that is left.
    """
    regions = regions_of()
    monkeypatch.setattr(certificate, "_best_share", lambda first, second: 0.0)
    surrogate = Regions.surrogate

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


def test_a_surrogate_far_too_high_does_not_widen_what_fresh_points_say_without_it() -> None:
    """e⁴ times too high and in doubt of it: left out as control, and no measure of what check points have not met."""
    regions = regions_of(lambda X: log_l(X) + 4.0)
    surrogate = Regions.surrogate
    regions.surrogate = lambda X: (surrogate(regions, X)[0], np.ones(len(X)))  # type: ignore[method-assign]
    regions.moments = lambda: (math.inf, 0.0)  # type: ignore[method-assign]
    run = certified(regions, 60, 0)
    assert abs(run.check_log_z - TRUTH) < 3.0 * run.check_log_z_std
    assert (
        run.check_log_z_std < 0.8
    )  # half of Z for the uncertainty, and the spread; in the surrogate's units it would be 27
    assert abs(run.log_z - TRUTH) < 1.0


@given(st.lists(st.floats(-30.0, 30.0), min_size=8, max_size=60))
def test_one_weight_at_most_exceeds_the_bound(log_weights: list[float]) -> None:
    """And only one that stands alone, with more than n^−½ of the sum; it is left that share, or as much as the next."""
    w = np.sort(np.exp(log_weights))
    bound = certificate._bound(w)
    assert np.sum(w > bound) <= 1
    if w[-1] > bound:
        share = np.minimum(w, bound).sum() / math.sqrt(len(w))
        assert_allclose(bound, max(w[-2], share), rtol=1e-9)
        assert w[-1] > w.sum() / math.sqrt(len(w))


@pytest.mark.parametrize(("few", "n"), [(2, 8), (2, 40), (5, 40)])
def test_few_weights_that_agree_are_all_let_through(few: int, n: int) -> None:
    """However little the others count, of which many may be infeasible."""
    w = np.append(np.zeros(n - few), np.ones(few))
    assert certificate._bound(w) >= 1.0
    assert certificate._bound(np.zeros(n)) == 0.0


def test_what_several_fresh_points_agree_on_is_believed() -> None:
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
    surrogate = Regions.surrogate

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


def test_a_control_that_soars_where_it_is_not_told_is_bounded_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """M₋j is the surrogate itself, but for one j, which has e⁹ times as much at its own point.

    Its residual is what the others allow, a tenth of the sum of all M at a hundred points, and the others stay.
    """
    regions = regions_of(log_l)
    proposal = Proposal(regions.measure, regions)
    rng = np.random.default_rng(0)
    draws = certificate._Draws.of(proposal, regions, 400, rng)
    models = replace(certificate._models(regions, draws), log_cap=math.inf)
    X = proposal.sample(100, rng)
    log_p = proposal.log_pdf(X)
    log_m = regions.surrogate(X)[0]

    def residuals(soar: float) -> np.ndarray:
        def without_each(_: CrossFit, at: np.ndarray) -> np.ndarray:
            known = np.repeat(regions.surrogate(at)[0][None], 101, axis=0)
            if len(at) == 100:
                known[7, 7] += soar
            return known

        monkeypatch.setattr(CrossFit, "is_plain", False)
        monkeypatch.setattr(CrossFit, "without_each", without_each)
        crossfit = CrossFit.without_any(regions, 100)
        return certificate._surrogate_residuals(models, crossfit, draws, X, log_m - log_p, log_p)

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
    monkeypatch.setattr(certificate, "_usable_moments", lambda *_: (None, 0.0))

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


# -- extremes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drop", [100.0, 500.0, 1e5])
def test_points_of_next_to_no_likelihood_leave_nothing_undefined(drop: float) -> None:
    """One check points so far below the model's mass that its square underflows."""
    run = certified(regions_of(), 1, 0, lambda X: log_l(X) - drop)
    assert 0.0 <= run.effective_sample_size <= 1.0 + 1e-9
    assert math.isfinite(run.log_z)


def test_points_without_likelihood_leave_nothing_undefined() -> None:
    """Every check points at −inf: the model's mass is not there, and the estimate must not be NaN."""
    run = certified(regions_of(), 40, 0, lambda X: np.full(len(X), -np.inf))
    assert run.effective_sample_size == 0.0
    for item in fields(run):
        value = getattr(run, item.name)
        assert not math.isnan(value) or item.name == "pareto_k", item.name  # weights of zero have no tail
    assert run.log_z < run.model_log_z
    assert run.log_z_std > 0.5


def test_a_model_far_too_small_does_not_overflow() -> None:
    """Fresh points a thousand nats above anything the model has seen."""
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


def test_best_share_minimises_the_variance() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, 200)) * np.array([[1.0], [2.0]])
    best = certificate._best_share(first, second)
    variances = [np.var(a * first + (1 - a) * second) for a in np.linspace(0.0, 1.0, 1001)]
    assert abs(best - np.linspace(0.0, 1.0, 1001)[int(np.argmin(variances))]) <= 1e-3
    assert certificate._best_share(first, first + 1.0) == 1.0  # nothing to choose
    assert certificate._best_share(first, 0.1 * first) == 0.0
    assert certificate._best_share(0.1 * first, first) == 1.0
