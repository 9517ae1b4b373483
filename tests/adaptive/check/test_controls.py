"""The controls: their integrals by as many draws as it takes, and when the WSABI models are left out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import wsabi.adaptive.check.controls as controls_module
from checked_world import by_surrogate, certified, log_l, regions_of
from wsabi.adaptive.check.combine import certify
from wsabi.adaptive.check.controls import FINAL, Controls, Draws, controls_of
from wsabi.adaptive.check.crossfit import CrossFit
from wsabi.adaptive.check.proposal import Proposal
from wsabi.adaptive.check.residuals import surrogate_residuals
from wsabi.adaptive.models import Models
from wsabi.adaptive.tuning import TUNING, tuned
from wsabi.errors import NumericalError


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
    share = controls_of(regions, Draws.of(proposal, regions, 300, np.random.default_rng(1)))
    assert ask(0.9 * share.surrogate_error / share.min_error) == 1
    assert ask(1.1 * share.surrogate_error / share.min_error) == 0


def test_no_draw_carries_more_of_an_integral_than_the_root_of_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A surrogate that soars in one place of a hundred: held to √N times its mean there, and at check points alike."""
    regions = regions_of(log_l)
    soaring = regions.surrogate
    place = 2.2

    def surrogate(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        log_m, sd = soaring(X)
        return log_m + np.where(np.abs(X[:, 0] - place) < 0.01, 20.0, 0.0), sd

    monkeypatch.setattr(regions, "surrogate", surrogate)
    monkeypatch.setattr(controls_module, "_usable_moments", lambda *_: (None, 0.0))
    proposal = Proposal(regions.measure, regions)
    rng = np.random.default_rng(0)
    draws = Draws.of(proposal, regions, 1000, rng)
    soared = np.abs(draws.X[:, 0] - place) < 0.01
    assert 1 <= np.sum(soared) <= 5
    models = controls_of(regions, draws)
    ratio = np.exp(np.minimum(surrogate(draws.X)[0] - draws.log_p - models.log_unit, draws.log_cap))
    assert_allclose(models.surrogate, proposal.mean_of(ratio, draws.X, draws.log_p)[0], rtol=1e-9)
    assert np.max(ratio) <= 1.002 * np.sum(ratio) / math.sqrt(1000)
    X = np.array([[place], [0.3]])
    log_p = proposal.log_pdf(X)
    residuals = surrogate_residuals(models, CrossFit.without_any(regions, 2), draws, X, np.full(2, -np.inf), log_p)
    assert_allclose(residuals[0], -math.sqrt(1000), rtol=1e-9)
    assert_allclose(residuals[1], -np.exp(surrogate(X[1:])[0] - log_p[1:] - models.log_unit)[0], rtol=1e-9)


@pytest.mark.parametrize(("factor", "patch_error"), [(1.0, 0.1), (2.0, 0.2), (3.0, 0.3), (50.0, 0.3)])
def test_an_overconfident_surrogate_has_a_larger_error(factor: float, patch_error: float) -> None:
    """The models' sd in proportion; what check points may not have met up to three times."""
    models = Controls(0.0, 1.0, 0.0, None, 0.0, 0.1 / TUNING.check.integral_error, overconfidence=factor)
    assert_allclose(models.combined(0.0, checked=True)[1], (0.1 * factor) ** 2)
    assert_allclose(models.patch_error, patch_error)


@pytest.mark.parametrize("soaring", [0, 1, 3, 6])
def test_a_capped_mean_is_its_own_cap(soaring: int) -> None:
    """m = mean of min(r, √N m), however far ratios soar; without any it is the mean."""
    r = np.random.default_rng(0).uniform(0.5, 1.5, 1600)
    r[:soaring] = 1e40
    m = math.exp(controls_module._log_capped_mean(np.log(r)))
    assert_allclose(m, np.mean(np.minimum(r, 40.0 * m)), rtol=2e-3)
    assert 0.9 < m < 1.0 / (1.0 - soaring / 40.0) + 0.1


def test_what_many_ratios_agree_on_is_not_capped() -> None:
    """Of 1,600 ratios twenty are all there is: a surrogate that few draws meet, and no accident."""
    log_r = np.full(1600, -200.0)
    log_r[:20] = 0.0
    assert_allclose(controls_module._log_capped_mean(log_r), math.log(20 / 1600), rtol=1e-9)


@given(st.integers(100, 5000), st.floats(1e-3, 1e3))
def test_as_many_draws_as_the_error_asks_for(n: int, ratio: float) -> None:
    """The error of n draws falls to 0.25 of the least error bar with n(ratio/0.25)²: more than n, ``most`` at most."""
    models = Controls(0.0, 1.0, ratio * 0.35, None, 0.0, 1.0)
    models = replace(models, surrogate_error=ratio * models.min_error)
    after = FINAL.draws_after(n, models)
    assert min(1.4 * n, FINAL.most) <= after <= FINAL.most
    assert after == FINAL.most or after >= n * (ratio / 0.25) ** 2


@pytest.mark.parametrize(("left_over", "share"), [(1e6, 1.0), (0.0, 0.0)])
def test_without_check_points_the_model_of_smaller_error_is_taken(left_over: float, share: float) -> None:
    """If the surrogate's error is made large, the estimate is WSABI's closed form; if it is made zero, the surrogate's.

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


def lost(regions: Models) -> tuple[float, float]:
    raise NumericalError("lost to round-off.")


@pytest.mark.parametrize(
    "moments",
    [
        lost,
        lambda regions: (math.inf, 0.0),
        lambda regions: (regions.log_mass + 60.0, 0.0),
        lambda regions: (Models.moments(regions)[0], 2.0 * Models.moments(regions)[0] + 0.1),
        lambda regions: (Models.moments(regions)[0] + 0.5, Models.moments(regions)[1]),
        lambda regions: (Models.moments(regions)[0] - 0.5, Models.moments(regions)[1]),
    ],
    ids=["lost", "infinite", "far off", "no knowledge", "above its integrand", "below its integrand"],
)
@pytest.mark.parametrize("n", [0, 40])
def test_wsabi_is_left_out_where_it_is_not_to_be_believed(
    n: int, moments: Callable[[Models], tuple[float, float]], monkeypatch: pytest.MonkeyPatch
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


def test_uncertainty_falls_with_the_data_and_is_the_surrogates_own() -> None:
    """Averaged over its posterior, by draws to a few per cent."""
    few, many = regions_of(n=7), regions_of(n=25)
    assert certified(few, 0, 0).uncertainty > certified(many, 0, 0).uncertainty
    grid = np.linspace(-6.0, 6.0, 4001)[:, None]
    log_joint, sd = few.surrogate(grid)
    w = np.exp(log_joint - log_joint.max())
    assert_allclose(certified(few, 0, 0, n_draws=4000).uncertainty, w @ sd / w.sum(), rtol=0.1)
