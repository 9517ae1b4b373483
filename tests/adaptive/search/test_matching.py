"""One match moves q to the surrogate's posterior: even weights, caution, a trust region; and the last surrogate."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from wsabi.adaptive.search import explorer as explorer_module
from wsabi.adaptive.search import matching as module
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.search.matching import (
    divergence,
    log_student,
    matched,
    matched_until_still,
    relearnt,
    rematched,
    student_noise,
)
from wsabi.adaptive.search.proposing import proposed
from wsabi.adaptive.tuning import TUNING, tuned
from wsabi.errors import NumericalError
from wsabi.priors import Gaussian


def a_bump(n: int, dim: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """n points (n, D) of a standard normal, and log ℓ = −½|x|² (n,)."""
    X = np.random.default_rng(seed).standard_normal((n, dim))
    return X, -0.5 * np.square(X).sum(axis=1)


# -- the divergence and the draws -------------------------------------------------------------------------------------


def test_divergence_between_gaussians() -> None:
    """In one dimension ½(s² + m² − 1) − log s; in more it is what 200 000 draws of log N(m, S)/N(0, I) average to."""
    assert_allclose(
        divergence(np.array([0.7]), np.array([[0.3]])), 0.5 * (0.09 + 0.49 - 1.0) - math.log(0.3), rtol=1e-12
    )
    assert divergence(np.zeros(4), np.eye(4)) == 0.0
    rng = np.random.default_rng(2)
    A, mean = rng.standard_normal((3, 3)), rng.standard_normal(3)
    cov = A @ A.T + 0.1 * np.eye(3)
    inner, standard = Gaussian(mean, cov), Gaussian(np.zeros(3))
    X = inner.sample(200_000, 0)
    terms = inner.log_pdf(X) - standard.log_pdf(X)
    error = terms.std() / math.sqrt(len(X))
    found = divergence(mean, np.linalg.cholesky(cov))
    assert abs(found - terms.mean()) < stats.norm.isf(5e-7) * error  # false alarm 1e-6


@pytest.mark.parametrize("dim", [1, 3])
def test_density_of_the_matching_proposal(dim: int) -> None:
    noise = np.random.default_rng(0).standard_normal((6, dim))
    scale = TUNING.search.wider * np.eye(dim)
    expected = stats.multivariate_t(np.zeros(dim), scale, df=TUNING.search.tail).logpdf(noise)
    assert_allclose(log_student(noise), expected, rtol=1e-12)


def test_draws_of_the_matching_proposal_follow_its_density() -> None:
    """A Student-t in one dimension, by Kolmogorov and Smirnov; false alarm 1e-6."""
    draws = student_noise(5000, 1, np.random.default_rng(0))[:, 0]
    numbers = TUNING.search
    assert stats.kstest(draws, stats.t(numbers.tail, scale=math.sqrt(numbers.wider)).cdf).pvalue > 1e-6


@pytest.mark.parametrize(
    ("dim", "draws"), [(1, 600), (20, 600), *((dim, 3 * (dim + 1) * (dim + 2)) for dim in (21, 30, 40))]
)
def test_above_twenty_dimensions_the_draws_follow_the_coefficients_of_a_quadratic(dim: int, draws: int) -> None:
    assert module._n_draws(dim) == draws


# -- weights ----------------------------------------------------------------------------------------------------------


def effective_size(log_w: np.ndarray) -> float:
    """(Σw)²/Σw² of weights held to M^−½ of their sum."""
    w = np.exp(log_w - np.max(log_w))
    w = np.minimum(w, w.sum() / math.sqrt(len(w)))
    return float(w.sum() ** 2 / np.square(w).sum())


@given(st.integers(0, 10_000), st.floats(0.1, 200.0), st.floats(5.0, 80.0))
def test_flattened_weights_count_for_as_many_as_wanted_and_no_flatter(seed: int, spread: float, wanted: float) -> None:
    log_w = spread * np.random.default_rng(seed).standard_normal(600)
    power = module._flattening(log_w, np.zeros(600), wanted)
    assert 0.0 < power <= 1.0
    assert effective_size(power * log_w) >= wanted or power < 2e-3
    if power < 1.0:  # to a thousandth: a little steeper would be too few
        assert effective_size((power + 2e-3) * log_w) < wanted * (1.0 + 1e-9) or power + 2e-3 > 1.0


def test_even_weights_are_left_as_they_are() -> None:
    assert module._flattening(np.zeros(600), np.zeros(600), 100.0) == 1.0


def test_what_is_hardly_feasible_is_not_made_more_so() -> None:
    """Ten draws that are feasible and 590 that hardly are: no power makes a hundred of them, and the ten stay ahead."""
    log_f = np.append(np.zeros(10), np.full(590, -20.0))
    log_w = 30.0 * np.random.default_rng(0).standard_normal(600)
    power = module._flattening(log_w, log_f, 100.0)
    assert 0.0 < power < 2e-3
    w = np.exp(power * log_w + log_f)
    assert w[:10].sum() > 0.99 * w.sum()


# -- one match --------------------------------------------------------------------------------------------------------


def test_theta_is_learnt_as_the_data_grow() -> None:
    """By a tenth, or when they have become others; not at every match."""
    rng = np.random.default_rng(0)
    explorer = Explorer.from_prior(Gaussian(np.zeros(2)))
    X = 0.3 * rng.standard_normal((67, 2))
    log_l = -0.5 * np.square(X / 0.3).sum(axis=1)
    learnt = []
    for n in (60, 61, 64, 66, 67, 40):  # at last fewer: what it has learnt was of others
        explorer = matched(explorer, X[:n], log_l[:n], rng)
        learnt.append(explorer.learnt_n)
    assert learnt == [60, 60, 60, 66, 66, 40]


def test_q_matched_to_a_gaussian_in_thirty_dimensions_stays_that_gaussian(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 600 draws it ended 17 nats away: too few draws for its 495 moments shrink q at every step."""
    dim = 30
    explorer = Explorer.from_prior(Gaussian(np.zeros(dim)))
    monkeypatch.setattr(
        Explorer, "log_target", lambda self, Y, caution: (-0.5 * np.square(Y).sum(axis=1), np.zeros(len(Y)))
    )
    shift, factor, log_mass, _ = module._moments(explorer, 0.0, np.random.default_rng(0))
    assert divergence(shift, factor) < 0.02 * dim
    assert abs(log_mass - 0.5 * dim * math.log(2.0 * math.pi)) < 0.5


@pytest.mark.parametrize(
    ("dim", "uncertainty", "growth"),
    [(20, 0.1, math.log(2.0)), (30, 1.0, math.log(2.0)), (30, 0.1, 30.0 * math.log(1.5))],
)
def test_in_many_dimensions_q_grows_as_a_surrogate_that_knows_says(
    monkeypatch: pytest.MonkeyPatch, dim: int, uncertainty: float, growth: float
) -> None:
    """Elsewhere to twice its volume at most: in 25-D it stayed too thin to the end, and log Z was 0.9 too low."""
    moments = (np.zeros(dim), 1.5 * np.eye(dim), 0.0, uncertainty)
    monkeypatch.setattr(module, "_moments", lambda explorer, caution, rng: moments)
    X, log_l = a_bump(2 * dim, dim)
    explorer = Explorer.from_prior(Gaussian(np.zeros(dim))).fitted(X, log_l, learn=True, steps=1)
    moved = matched(explorer, X, log_l, np.random.default_rng(0))
    assert_allclose(moved.frame.log_det - explorer.frame.log_det, growth)


def test_one_match_moves_q_by_no_more_than_its_size_and_changes_no_axis_more_than_threefold() -> None:
    """Steps far beyond both are cut to them; those inside are taken as they are."""
    stretch = TUNING.search.most_stretch
    factor = np.diag([1e-3, 0.5, 20.0])
    shift, cov = module._trusted(np.array([30.0, 0.0, 40.0]), factor, 3, extrapolates=False)
    assert_allclose(shift, 2.0 * math.sqrt(3.0) * np.array([0.6, 0.0, 0.8]))
    assert_allclose(cov, np.diag([stretch**-2, 0.25, stretch**2]), atol=1e-12)
    shift, cov = module._trusted(np.array([0.3, 0.0, 0.4]), np.diag([0.5, 1.0, 1.5]), 3, extrapolates=True)
    assert_allclose(shift, [0.3, 0.0, 0.4])
    assert_allclose(cov, np.diag([0.25, 1.0, 2.25]), atol=1e-12)


def test_ignorance_makes_the_search_more_cautious(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moments that rest on what the surrogate does not know are taken again with four times the caution."""
    X, log_l = a_bump(12, seed=1)
    asked: list[float] = []
    honest = module._moments
    uncertainty = 0.0

    def recorded(explorer: Explorer, caution: float, rng: np.random.Generator) -> tuple[object, ...]:
        asked.append(caution)
        return (*honest(explorer, caution, rng)[:3], uncertainty)

    monkeypatch.setattr(module, "_moments", recorded)
    for uncertainty, expected in ((1.9, [0.5]), (2.1, [0.5, 2.0])):  # noqa: B007 (read by `recorded`)
        asked.clear()
        matched(Explorer.from_prior(Gaussian(np.zeros(2))), X, log_l, np.random.default_rng(0))
        assert asked == expected


@cache
def arrived() -> Explorer:
    """Matched to twenty points of a standard bump under a standard prior, in two dimensions."""
    return matched(Explorer.from_prior(Gaussian([0.0, 0.0])), *a_bump(20), np.random.default_rng(1))


def test_the_same_data_and_generator_give_the_same_explorer_and_leave_the_old_one() -> None:
    X, log_l = a_bump(30)
    before = arrived().log_likelihood(X)
    one, other = (matched(arrived(), X, log_l, np.random.default_rng(3)) for _ in range(2))
    assert_array_equal(one.log_likelihood(X), other.log_likelihood(X))
    assert_array_equal(one.frame.cov, other.frame.cov)
    assert (one.log_z, one.drift, one.uncertainty) == (other.log_z, other.drift, other.uncertainty)
    assert one.log_z != arrived().log_z
    assert_array_equal(arrived().log_likelihood(X), before)


def test_where_a_fit_fails_the_old_explorer_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    X, log_l = a_bump(30)
    known = arrived()

    def fail(*arguments: object, **options: object) -> None:
        raise NumericalError("no")

    monkeypatch.setattr(explorer_module, "fit_log_surrogate", fail)
    rng = np.random.default_rng(0)
    with pytest.raises(NumericalError):
        matched(known, X, log_l, rng)
    assert rematched(known, X, log_l, rng) is known
    assert relearnt(known, X, log_l, rng) is known
    moving = replace(known, drift=math.inf)
    assert matched_until_still(moving, X, log_l, rng) is moving


@pytest.mark.parametrize(
    ("changes", "is_taken"),
    [
        ({"log_z": -0.9}, True),
        ({"log_z": -1.1}, False),
        ({"log_z": -1.1, "uncertainty": 0.4}, True),
        ({"log_z": 5.0, "temperature": 2.0}, False),
    ],
)
def test_most_of_the_mass_is_not_lost_to_a_match_unless_log_l_is_known(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, float], is_taken: bool
) -> None:
    """An old log Z of zero, cold. What an explorer that was still hot had for its mass is no mass to compare with."""
    old = replace(arrived(), log_z=0.0, uncertainty=0.1)
    new = replace(old, **{"uncertainty": 0.6, **changes})
    monkeypatch.setattr(module, "matched", lambda *arguments: new)
    X, log_l = a_bump(3)
    rng = np.random.default_rng(0)
    assert rematched(old, X, log_l, rng) is (new if is_taken else old)
    if new.is_cold:
        hot = replace(old, temperature=2.0)
        assert rematched(hot, X, log_l, rng) is new


@pytest.mark.parametrize("height", [1e90, 1e200, 1e300])
def test_values_further_apart_than_any_square_do_not_overflow(height: float) -> None:
    """Squares of 1e200 are no numbers: what is that far down counts as 1e100 nats down, and the order is kept."""
    X = a_bump(20)[0]
    log_l = -height * np.square(X).sum(axis=1)
    rng = np.random.default_rng(1)
    with np.errstate(over="raise", invalid="raise"):
        explorer = matched(Explorer.from_prior(Gaussian([0.0, 0.0])), X, log_l, rng)
        predicted, sd = explorer.log_likelihood(X)
        x = proposed(explorer, np.empty((0, 2)), rng)
    assert np.all(np.isfinite(predicted))
    assert np.all(np.isfinite(sd))
    assert np.all(np.isfinite(x))
    assert np.all(np.isfinite([explorer.log_z, explorer.temperature, *explorer.frame.mean, *explorer.frame.widths]))
    assert explorer.top == log_l.max()


# -- the last surrogate -----------------------------------------------------------------------------------------------


def test_a_last_surrogate_has_more_data_than_it_has_learnt_from() -> None:
    """θ is that of ``max_data`` of them, as before; the surrogate has all 90, or ``last_data`` of 170."""
    X = np.random.default_rng(0).standard_normal((170, 2))
    log_l = -np.square(X).sum(axis=1) + 0.1 * np.sin(4.0 * X[:, 0])
    with tuned("search", max_data=60, last_data=150):
        explorer = Explorer.from_prior(Gaussian(np.zeros(2))).fitted(X[:90], log_l[:90], learn=True)
        rng = np.random.default_rng(0)
        last, most = relearnt(explorer, X[:90], log_l[:90], rng), relearnt(explorer, X, log_l, rng)
        again = explorer.fitted(X[:90], log_l[:90], learn=True)
    assert [len(one.fitted_surrogate.Y) for one in (explorer, last, most)] == [60, 90, 150]
    assert_allclose(last.fitted_surrogate.theta.vector, again.fitted_surrogate.theta.vector, rtol=1e-9)
    assert (last.frame, most.frame) == (explorer.frame, explorer.frame)


@pytest.mark.parametrize(("dim", "on_the_way", "at_last"), [(2, 0, 0), (4, 1, 2)])
def test_a_last_surrogate_has_more_interactions(dim: int, on_the_way: int, at_last: int) -> None:
    """With more data than it has learnt from, and with fewer; check points that join it leave them as they are."""
    X, log_l = a_bump(70, dim)
    assert TUNING.search.last_interactions == 2
    with tuned("search", max_data=65):
        for n in (60, 70):
            rng = np.random.default_rng(1)
            explorer = matched(Explorer.from_prior(Gaussian(np.zeros(dim))), X[:n], log_l[:n], rng)
            assert explorer.is_cold
            last = relearnt(explorer, X[:n], log_l[:n], rng)
            assert len(last.fitted_surrogate.Y) == n
            more, joined = last.extended(X[:3] + 0.1, log_l[:3])
            assert len(joined) == 3
            for known, expected in ((explorer, on_the_way), (last, at_last), (more, at_last)):
                assert len(known.fitted_surrogate.theta.sides) == expected


def test_more_data_that_leave_more_uncertain_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    X, log_l = a_bump(90)
    monkeypatch.setattr(module, "_mean_sd", lambda one, _: float(len(one.fitted_surrogate.Y)))
    with tuned("search", max_data=60):
        explorer = Explorer.from_prior(Gaussian(np.zeros(2))).fitted(X, log_l, learn=True)
        kept = relearnt(explorer, X, log_l, np.random.default_rng(0))
    assert len(kept.fitted_surrogate.Y) == 60


def test_the_mean_sd_is_that_over_the_posterior() -> None:
    """By quadrature in one dimension; six hundred draws know it to a few per cent."""
    X = np.array([[-2.0], [-1.0], [0.2], [1.1], [2.5]])
    explorer = Explorer.from_prior(Gaussian(np.zeros(1)))
    explorer = explorer.fitted(X, -np.square(X[:, 0]) + 0.3 * np.sin(5.0 * X[:, 0]), learn=True)
    found = module._mean_sd(explorer, student_noise(600, 1, np.random.default_rng(0)))
    y = np.linspace(-6.0, 6.0, 4001)
    mean, variance = explorer.fitted_surrogate.predict(y[:, None])
    t = explorer.temperature
    w = np.exp(np.minimum(mean / t, 3.0) + explorer.measure.log_pdf(explorer.frame.colour(y[:, None])))
    assert_allclose(found, w @ np.sqrt(variance) / t / w.sum(), rtol=0.1)
