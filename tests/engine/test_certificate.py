"""The certificate: fresh points correct any model without bias, and their error bar is as wide as their spread."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from wsabi.engine import certificate
from wsabi.engine.certificate import MIN_POINTS, Proposal, certify, pareto_k
from wsabi.engine.explorer import Explorer, Frame
from wsabi.engine.regions import Regions
from wsabi.measures import Gaussian
from wsabi.result import Certificate
from wsabi.settings import Settings

TRUTH = math.log(0.5 / math.sqrt(0.5**2 + 1.0)) - 0.5 * 0.4**2 / 1.25  # ∫ exp(−½((x − 0.4)/0.5)²) N(x; 0, 1)


def log_l(X: np.ndarray) -> np.ndarray:
    return -0.5 * np.square((X[:, 0] - 0.4) / 0.5)


def wrong(X: np.ndarray) -> np.ndarray:
    """What the models are told instead: a narrower bump, elsewhere and too high."""
    return -0.5 * np.square((X[:, 0] - 0.7) / 0.35) + 0.3


def regions_of(function=wrong, dim: int = 1, n: int = 25, misled: float = 0.0) -> Regions:
    """Two regions whose models have seen ``function``, and whose surrogates ``misled`` more than that."""
    measure = Gaussian(np.zeros(dim))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, dim))
    explorers = []
    for centre, log_z in ((0.5, -1.0), (-0.4, -2.0)):
        explorer = Explorer(measure, rng)
        explorer.frame = Frame(np.full(dim, centre), 0.5 * np.eye(dim))
        explorer.fit(X, function(X) + misled, learn=True)
        explorer.log_z = log_z
        explorers.append(explorer)
    return Regions(measure, Settings(), rng, explorers, X, function(X), [None, None])


def certified(regions: Regions, n: int, seed: int, function=log_l, n_draws: int = 300) -> Certificate:
    """The certificate from n fresh points on which the likelihood is ``function``."""
    proposal = Proposal(regions.measure, regions)
    rng = np.random.default_rng(seed)
    X = proposal.sample(n, rng)
    return certify(regions, proposal, X, function(X), proposal.log_pdf(X), rng, n_draws)


# -- the proposal -----------------------------------------------------------------------------------------------------


def test_proposal_density_integrates_to_one() -> None:
    """On the real line by x = tan θ, which brings the tails of the Student components into reach."""
    proposal = Proposal(Gaussian([0.0]), regions_of())
    nodes, weights = np.polynomial.legendre.leggauss(2000)
    angle = 0.5 * np.pi * nodes
    values = np.exp(proposal.log_pdf(np.tan(angle)[:, None])) / np.square(np.cos(angle))
    assert_allclose(0.5 * np.pi * weights @ values, 1.0, rtol=1e-8)


@pytest.mark.parametrize("dim", [1, 2])
def test_draws_of_the_proposal_follow_its_density(dim: int) -> None:
    """E_p[g/p] = ∫ g for g = N(0.2, 0.6² I), and the same for the two first moments; false alarm 1e-6 in all."""
    proposal = Proposal(Gaussian(np.zeros(dim)), regions_of(lambda X: -np.square(X).sum(axis=1), dim))
    X = proposal.sample(40_000, np.random.default_rng(5))
    target = stats.multivariate_normal(np.full(dim, 0.2), 0.36 * np.eye(dim))
    ratio = np.exp(target.logpdf(X) - proposal.log_pdf(X))
    for values, expected in ((ratio, 1.0), (ratio * X[:, 0], 0.2), (ratio * X[:, -1] ** 2, 0.4)):
        z = (values.mean() - expected) / (values.std() / math.sqrt(len(X)))
        assert abs(z) < stats.norm.isf(0.5e-6 / 3)


def test_in_one_dimension_the_draws_pass_a_kolmogorov_smirnov_test() -> None:
    proposal = Proposal(Gaussian([0.0]), regions_of())
    X = proposal.sample(5000, np.random.default_rng(1))[:, 0]
    grid = np.sinh(np.linspace(-9.0, 9.0, 20_001))
    density = np.exp(proposal.log_pdf(grid[:, None]))
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(grid))])
    assert abs(cumulative[-1] - 1.0) < 1e-5
    assert stats.kstest(X, lambda x: np.interp(x, grid, cumulative)).pvalue > 1e-6  # the false-alarm rate


# -- Pareto k ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [-0.3, 0.2, 0.5, 0.9, 1.5])
def test_pareto_k_recovers_the_shape(k: float) -> None:
    """5 000 Pareto weights have a tail of 213, whose k is known to (1 + k)/√213: five of those, false alarm 1e-6.

    The weak prior pulls towards ½ by (k − ½)·10/223, which is allowed for.
    """
    weights = 1.0 + stats.genpareto(k).rvs(5000, random_state=np.random.default_rng(3))
    expected = k + (0.5 - k) * 10.0 / 223.0
    assert abs(pareto_k(np.log(weights)) - expected) < 5.0 * (1.0 + k) / math.sqrt(213.0)


def test_pareto_k_does_not_see_the_scale_of_the_weights() -> None:
    log_w = np.log(stats.genpareto(0.6).rvs(300, random_state=np.random.default_rng(0)))
    assert_allclose(pareto_k(log_w + 500.0), pareto_k(log_w), atol=1e-9)
    assert_allclose(pareto_k(log_w[::-1]), pareto_k(log_w), atol=1e-12)


def test_pareto_k_of_few_equal_or_mostly_zero_weights() -> None:
    assert math.isnan(pareto_k(np.zeros(24)))
    assert pareto_k(np.zeros(100)) == 0.0
    mostly_zero = np.full(100, math.log(1e-300))
    mostly_zero[:3] = 0.0
    assert math.isfinite(pareto_k(mostly_zero))


# -- certify ----------------------------------------------------------------------------------------------------------


def test_model_is_wrong_to_begin_with() -> None:
    """Or the tests below would show nothing."""
    assert abs(regions_of().moments()[0] - TRUTH) > 0.1


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_fresh_estimate_is_unbiased_for_any_fixed_share(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean of 300 replicates of 30 points, with models wrong in two ways; false alarm 1e-6 each."""
    monkeypatch.setattr(certificate, "_best_share", lambda first, second: share)
    regions = regions_of(misled=0.6)
    z = np.array([math.exp(certified(regions, 30, seed).fresh_log_z) for seed in range(300)])
    assert abs(z.mean() - math.exp(TRUTH)) < stats.norm.isf(0.5e-6) * z.std() / math.sqrt(len(z))


def test_choosing_the_share_costs_little_and_the_error_bar_matches_the_spread() -> None:
    """The bias of a chosen share is below a quarter of one error bar; the error bar is that of the replicates.

    It may be wider by half, since it allows for tails not met, and not narrower by more than a tenth.
    """
    regions = regions_of()
    runs = [certified(regions, 40, seed) for seed in range(400)]
    z = np.array([math.exp(run.fresh_log_z) for run in runs])
    claims = np.array([math.exp(run.fresh_log_z) * run.fresh_log_z_std for run in runs])
    spread = z.std()
    assert abs(z.mean() - math.exp(TRUTH)) < 0.25 * spread + stats.norm.isf(0.5e-6) * spread / math.sqrt(len(z))
    typical = math.sqrt(np.mean(np.square(claims)))
    assert 0.9 * spread < typical < 1.5 * spread
    assert all(0.0 <= run.wsabi_share <= 1.0 for run in runs)


def test_fresh_points_cover_by_themselves() -> None:
    """F ± 1.96 s holds the truth, whatever the model: of 300 intervals at 0.9, fewer than 250 has probability 2e-4."""
    regions = regions_of()
    runs = [certified(regions, 40, seed) for seed in range(300)]
    assert sum(abs(run.fresh_log_z - TRUTH) < 1.96 * run.fresh_log_z_std for run in runs) >= 250


def test_the_combination_covers_where_model_and_fresh_points_disagree() -> None:
    """The model is 0.8 nats high and claims 4e-4: where the fresh points contradict it, the error bar holds the truth.

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
    assert run.log_z_std <= math.hypot(min(run.model_log_z_std, run.fresh_log_z_std), certificate.RESOLUTION) * (
        1 + 1e-9
    )


@pytest.mark.parametrize("n", [0, 1, MIN_POINTS - 1, MIN_POINTS])
def test_few_fresh_points_have_no_say(n: int) -> None:
    regions = regions_of()
    run = certified(regions, n, 0)
    assert run.n_points == n
    if n < MIN_POINTS:
        assert run.log_z == run.model_log_z == regions.moments()[0]
        assert math.isnan(run.fresh_log_z)
        assert run.fresh_log_z_std == math.inf
        assert run.difference == 0.0
    else:
        assert math.isfinite(run.fresh_log_z)
        assert run.log_z != run.model_log_z
    assert math.isfinite(run.log_z_std)
    assert run.log_z_std > 0.0


@pytest.mark.parametrize("drop", [100.0, 500.0, 1e5])
def test_points_of_next_to_no_likelihood_leave_nothing_undefined(drop: float) -> None:
    """One fresh point so far below the model's mass that its square underflows."""
    run = certified(regions_of(), 1, 0, lambda X: log_l(X) - drop)
    assert 0.0 <= run.effective_sample_size <= 1.0 + 1e-9
    assert math.isfinite(run.log_z)


def test_points_without_likelihood_leave_nothing_undefined() -> None:
    """Every fresh point at −inf: the model's mass is not there, and the estimate must not be NaN."""
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
    for name in ("model_log_z", "fresh_log_z"):
        assert_allclose(getattr(other, name) - 100.0, getattr(one, name), atol=1e-5)  # rounding, through the fits
    # The model's variance is at its round-off here, right to a per cent, and weighs the two: a hundredth of the error.
    assert_allclose(other.log_z - 100.0, one.log_z, atol=1e-2 * one.log_z_std)
    assert_allclose(other.log_z_std, one.log_z_std, rtol=1e-2)
    for name in ("fresh_log_z_std", "difference", "effective_sample_size", "pareto_k", "wsabi_share"):
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
