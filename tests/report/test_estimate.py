"""From a state to what the user is given: the right estimate, an error bar of all its parts, the right posterior."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wsabi
from driving import advance, an_engine, run_engine
from wsabi.adaptive.evaluations import Evaluations
from wsabi.adaptive.search.known_regions import KnownRegions
from wsabi.adaptive.state import State
from wsabi.adaptive.symmetry.group import Symmetry
from wsabi.ledger import Observation
from wsabi.posterior.posterior import Posterior
from wsabi.priors.chart import chart
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.report.estimate import Estimate, adaptive_estimate, adaptive_posterior, plain_estimate
from wsabi.strategies.plain import PlainStrategy, concluded_plain

MEASURE = wsabi.Gaussian([0.0, 0.0])
TRUTH = -math.log(2.0)  # exp(−½xᵀx) under N(0, I₂)
PLAIN = wsabi.Settings(measure="prior")


def log_l(X: np.ndarray) -> np.ndarray:
    return np.asarray(-0.5 * np.square(X).sum(axis=1))


def nowhere(X: np.ndarray) -> np.ndarray:
    return np.full(len(X), -np.inf)


@pytest.fixture(scope="module")
def plain() -> SequentialModel:
    """One warped GP under the prior with forty evaluations."""
    model = SequentialModel(MEASURE, PLAIN, np.random.default_rng(0))
    for _ in range(40):
        X = model.propose(1, np.empty((0, 2)))
        model.observe(X, log_l(X))
    return model


def estimate_of(state: State, **how: Any) -> Estimate:
    estimate = adaptive_estimate(state, **how)
    assert estimate is not None
    return estimate


# -- whether there is one ---------------------------------------------------------------------------------------------


def test_without_a_finite_value_there_is_no_conclusion() -> None:
    engine = an_engine(MEASURE, 80)
    assert engine.conclude(np.empty(0), 0.0) is None
    advance(engine, nowhere, 9)
    assert engine.conclude(np.full(9, -np.inf), 0.0) is None
    under_prior = PlainStrategy(chart(MEASURE), PLAIN, np.random.default_rng(0))
    assert under_prior.conclude(np.empty(0), 0.0) is None
    under_prior.tell([Observation(np.zeros(2), -math.inf, None)])
    assert under_prior.conclude(np.array([-math.inf]), 0.0) is None


def test_a_state_that_still_searches_has_no_estimate_yet() -> None:
    assert adaptive_estimate(run_engine(MEASURE, log_l, 10, budget=80)) is None


def test_too_few_data_give_way_to_plain_wsabi_which_says_so() -> None:
    """As many values drawn at random would know Z to no better than 1/√N nats, which is added to the error bar."""
    engine = an_engine(MEASURE, 80)
    state = advance(engine, log_l, 3)
    found = engine.conclude(state.data.log_l, 0.0)
    assert found is not None
    assert isinstance(found.posterior, Posterior)
    assert found.estimate.certificate is None
    assert math.isfinite(found.estimate.log_z)
    assert found.estimate.log_z_std >= math.hypot(found.estimate.model.log_z_std, 1.0 / math.sqrt(3.0)) > 0.5
    assert found.searches == ()
    told = "Only 3 evaluations have a likelihood above zero, too few to search for modes"
    assert any(told in text for text in found.remarks.warnings)
    assert engine.state is state


def test_a_conclusion_leaves_the_engine_as_it_is() -> None:
    for n in (14, 60):
        engine = an_engine(MEASURE, 80)
        state = advance(engine, log_l, n)
        assert engine.conclude(state.data.log_l, 0.0) is not None
        assert engine.state is state


# -- estimates --------------------------------------------------------------------------------------------------------


def test_estimates_of_both_kinds_are_right(finished: State, plain: SequentialModel) -> None:
    by_prior, by_engine = plain_estimate(plain), estimate_of(finished, final=True)
    assert by_prior is not None
    assert abs(by_prior.log_z - TRUTH) < 5e-3
    assert abs(by_engine.log_z - TRUTH) < 5e-3
    assert by_prior.certificate is None
    assert by_prior.log_z == by_prior.model.log_mean
    assert by_engine.certificate is not None
    assert by_engine.log_z == by_engine.certificate.log_z
    assert abs(by_engine.model.log_mean - TRUTH) < 0.02  # WSABI's own, in coordinates of the posterior


def test_posteriors(finished: State, plain: SequentialModel) -> None:
    """The posterior is N(0, ½I): closed form under the prior, weighted draws under the engine."""
    concluded = concluded_plain(plain, chart(MEASURE), plain.log_l, 0.0)
    assert concluded is not None
    closed, drawn = concluded.posterior, adaptive_posterior(finished, chart(MEASURE), estimate_of(finished))
    assert isinstance(closed, Posterior)
    assert isinstance(drawn, Posterior)
    assert np.abs(closed.cov - 0.5 * np.eye(2)).max() < 0.02
    assert drawn.effective_sample_size > 500.0
    assert np.abs(drawn.cov - 0.5 * np.eye(2)).max() < 0.1  # 16 000 draws: 0.01, ten times
    assert np.abs(drawn.mean).max() < 0.1


# -- parts of the error bar -------------------------------------------------------------------------------------------


def test_mass_that_searches_may_have_missed_widens_the_error(finished: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """√(s² + log²(1 + u)) for the share u that the searches leave open, and the check's own s where it is none."""
    monkeypatch.setattr(KnownRegions, "unseen_share", 0.0)
    sure = estimate_of(finished)
    assert sure.certificate is not None
    assert sure.log_z_std == pytest.approx(sure.certificate.log_z_std, rel=1e-9)
    assert sure.error.unseen == 0.0
    monkeypatch.setattr(KnownRegions, "unseen_share", 0.3)
    unsure = estimate_of(finished)
    assert unsure.log_z_std == pytest.approx(math.hypot(sure.log_z_std, math.log(1.3)), rel=1e-12)
    assert unsure.log_z == sure.log_z


def test_a_search_that_is_still_hot_widens_the_error_by_its_heat(calm: State) -> None:
    """tD nats at temperature t: what it has found may be that far below the mode."""
    known = calm.known.with_explorer(0, replace(calm.known.explorers[0], temperature=7.0))
    sure, hot = estimate_of(calm), estimate_of(replace(calm, known=known))
    assert hot.log_z_std == pytest.approx(math.hypot(sure.log_z_std, 7.0 * 2), rel=1e-12)
    assert hot.log_z == sure.log_z


def test_images_not_searched_widen_the_error(calm: State, monkeypatch: pytest.MonkeyPatch) -> None:
    before = estimate_of(calm)
    monkeypatch.setattr(State, "unsearched_images", [0.5, 0.5])
    after = estimate_of(calm)
    assert_allclose(after.error.unseen, math.log(math.exp(before.error.unseen) + 1.0), rtol=1e-12)
    assert after.log_z_std > math.log(2.0)  # which holds as much mass again


def test_images_too_many_to_follow_widen_the_error(calm: State) -> None:
    beyond = (Symmetry.of(2, reversed_axes=range(2)),)
    estimate = estimate_of(replace(calm, known=replace(calm.known, beyond=beyond)))
    assert estimate.log_z_std > math.log(2.0)


def test_where_most_is_infeasible_the_error_bar_allows_for_parts_not_met(
    calm: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After one draw of positive likelihood, of ten, the next is of another part with a chance of a half."""
    before = estimate_of(calm)
    monkeypatch.setattr(Evaluations, "n_draws", 10)
    monkeypatch.setattr(Evaluations, "n_infeasible", 9)
    assert_allclose(estimate_of(calm).log_z_std, math.hypot(before.log_z_std, math.log(1.5)))


def test_infeasible_draws_are_counted() -> None:
    state = run_engine(MEASURE, lambda X: np.where(X[:, 0] > 0.5, log_l(X), -np.inf), 30, budget=80)
    assert 0 < state.data.n_infeasible < state.data.n_draws <= 30


def test_a_budget_that_ends_before_the_mode_is_reached_says_so() -> None:
    """A needle of 1e-4 prior sds, with evaluations for little more than the design: the truth is in the error bar."""
    truth = 2.0 * (math.log(1e-4) - 0.5 * 0.6**2)  # exp(−½|x − c|²/s²) under N(0, I): s² exp(−½|c|²) for small s

    def needle(X: np.ndarray) -> np.ndarray:
        return np.asarray(-0.5e8 * np.square(X - 0.6).sum(axis=1))

    result = wsabi.integrate(needle, MEASURE, budget=12, rng=0, vectorized=True)
    assert result.log_z < truth - 100.0  # far from it
    assert result.log_z_std > 0.5 * (truth - result.log_z)
    assert any("while a search was still climbing" in text for text in result.warnings)
