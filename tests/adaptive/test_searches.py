"""How searches begin and end: one that meets only what was known ends early, and two close modes are not one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wsabi
from driving import advance, an_engine, run_engine, stream
from found_by_hand import HERE, MEASURE, THERE, a_look, an_explorer, found_of, hits_of
from wsabi.adaptive import searches as module
from wsabi.adaptive.rebuilding import rebuilt
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.search.known_regions import KnownRegions
from wsabi.adaptive.search.matching import matched
from wsabi.adaptive.search.search import Search
from wsabi.adaptive.searches import begun_around
from wsabi.adaptive.state import State
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.tuning import TUNING
from wsabi.strategies.adaptive import AdaptiveStrategy

CENTRE = np.array([0.5, -0.3])


def bump(X: np.ndarray) -> np.ndarray:
    return np.asarray(-0.5 * np.square((X - CENTRE) / 0.3).sum(axis=1))


def searched(n_searches: int, seed: int = 0) -> AdaptiveStrategy:
    """An engine after so many searches."""
    engine = an_engine(MEASURE, 200, seed)
    while len(engine.state.known.searches) < n_searches:
        assert engine.state.n < 200
        advance(engine, bump)
    return engine


# -- what was known before --------------------------------------------------------------------------------------------


def knowing(centre: np.ndarray, height: float = 0.0) -> Explorer:
    """An explorer that knows a bump of sd 0.3 at the centre, of that height, and a quadratic log ℓ beyond it."""
    rng = np.random.default_rng(0)
    X = centre + 0.4 * rng.standard_normal((40, 2))
    log_l = height - 0.5 * np.square((X - centre) / 0.3).sum(axis=1)
    explorer = matched(Explorer(MEASURE, Frame.of(centre, 0.09 * np.eye(2))), X, log_l, rng)
    assert explorer.is_cold
    return explorer


POINTS = CENTRE + 0.4 * np.random.default_rng(1).standard_normal((10, 2))
BEST = np.argsort(-(bump(POINTS) + MEASURE.log_pdf(POINTS)))


@pytest.fixture(scope="module")
def central() -> Explorer:
    return knowing(CENTRE)


@pytest.fixture(scope="module")
def found(central: Explorer) -> KnownRegions:
    """One region, which knows the bump."""
    return found_of(("new region", central))


def test_the_mean_log_likelihood_is_the_surrogates_own(central: Explorer) -> None:
    """Right to a tenth of a nat among its data, with no bonus for uncertainty, never a nat above the best of them."""
    mean, (log_l, sd) = central.mean_log_likelihood(POINTS), central.log_likelihood(POINTS)
    assert_allclose(mean, bump(POINTS), atol=0.1)
    assert_allclose(log_l, mean + 0.5 * np.square(sd), atol=1e-12)  # log E[ℓ]: sd is below one, all is feasible
    assert sd.max() < 1.0
    lower = replace(central, top=central.top - 5.0)
    assert_allclose(lower.mean_log_likelihood(POINTS), mean - 5.0, atol=1e-12)
    far = replace(knowing(CENTRE), surrogate=lower.surrogate, frame=Frame.of(CENTRE + 2.0, 0.09 * np.eye(2)))
    assert far.mean_log_likelihood(CENTRE + np.array([[2.0, 2.0], [40.0, 0.0]])).max() <= far.top + 1.0


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("which", range(6))
def test_a_region_predicts_what_its_surrogate_knew(found: KnownRegions, which: int, sign: float) -> None:
    """Within the tolerance at each of the best 2D + 2 points, whether more or less was met than was expected."""
    X = POINTS[:6]
    for off, host in ((0.45, 0), (0.55, None)):
        log_l = found.explorers[0].mean_log_likelihood(X)
        log_l[which] += sign * off
        assert found.predicts(X, log_l, 0.5) == host


def test_what_is_predicted_is_the_mean_however_unsure(found: KnownRegions) -> None:
    """Beyond its data log E[ℓ] has a bonus for uncertainty, here of 1e-5 nats and more, which is no knowledge."""
    X = CENTRE + 4.0 * (POINTS[:6] - CENTRE)
    expected = found.explorers[0].mean_log_likelihood(X)
    assert np.max(np.abs(found.explorers[0].log_likelihood(X)[0] - expected)) > 1e-5
    assert found.predicts(X, expected, 1e-8) == 0


def test_what_is_far_below_the_best_need_not_be_predicted(found: KnownRegions) -> None:
    log_l = bump(POINTS)
    log_l[BEST[6:]] -= 100.0
    assert found.predicts(POINTS, log_l, 0.5) == 0
    log_l[BEST[6:]] = -np.inf
    assert found.predicts(POINTS, log_l, 0.5) == 0
    assert found.predicts(POINTS, bump(POINTS) - 100.0, 0.5) is None


def test_nothing_is_predicted_by_few_points_or_without_a_region(found: KnownRegions) -> None:
    """Fewer than 2D + 2 with a likelihood above zero are no search yet."""
    log_l = bump(POINTS)
    assert found.predicts(POINTS[:6], log_l[:6], 0.5) == 0
    assert found.predicts(POINTS[:5], log_l[:5], 0.5) is None
    assert found.predicts(POINTS[:6], np.where(np.arange(6) == 2, -np.inf, log_l[:6]), 0.5) is None
    assert KnownRegions(MEASURE).predicts(POINTS, log_l, math.inf) is None


def test_of_several_regions_the_one_that_says_most_at_the_best_point_predicts() -> None:
    """Together: each point by whichever region says most there. The hit is of the region of the best point."""
    found = found_of(("new region", knowing(HERE)), ("new region", knowing(THERE, 1.0)))
    rng = np.random.default_rng(2)
    X = np.concatenate([centre + 0.3 * rng.standard_normal((4, 2)) for centre in (HERE, THERE)])
    squares = [np.square((X - centre) / 0.3).sum(axis=1) for centre in (HERE, THERE)]
    log_l = np.logaddexp(-0.5 * squares[0], 1.0 - 0.5 * squares[1])
    best = int(np.argmax(log_l + MEASURE.log_pdf(X)))
    assert best >= 4
    assert found.predicts(X, log_l, 0.5) == 1
    assert found.predicts(X[::-1], log_l[::-1], 0.5) == 1
    log_l[4:] -= 100.0  # as if there were nothing at THERE: what was expected there was not met
    log_l[:4] += 1.0
    assert found.predicts(X, log_l, 0.5) is None


def test_a_hit_is_the_hosts_where_one_is_given() -> None:
    """The search was still on its way: its own q, in the other region or in none, says nothing."""
    for place in (HERE, np.zeros(2)):
        found = found_of(("new region", an_explorer(HERE)), ("new region", an_explorer(THERE)))
        found = found.recorded(a_look("known region"), an_explorer(place), 0.0, host=1)
        assert hits_of(found) == [1, 2]
        found = found.recorded(a_look("known region"), an_explorer(HERE), 0.0, host=0)
        assert hits_of(found) == [2, 2]
        assert found.gains[-2:] == (0.0, 0.0)


# -- how a search ends ------------------------------------------------------------------------------------------------


def test_a_search_that_meets_what_was_known_ends_with_its_design(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quadratic log ℓ is known everywhere after one search: a greedy one takes 2D + 2 points. Its host has its mass.

    It may have come back by itself with the last of them, but in few runs. An ascent comes before it.
    """
    engine = searched(2)
    while len(engine.state.known.searches) < 3:
        masses = [explorer.log_z + engine.state.data.offset for explorer in engine.state.known.explorers]
        advance(engine, bump)
    search = engine.state.known.searches[2]
    assert (search.n_evals, search.outcome, search.kind) == (2 * 2 + 2, "known region", "greedy")
    assert search.log_z in masses
    assert hits_of(engine.state.known) == [3]
    monkeypatch.setattr(KnownRegions, "predicts", lambda *_: None)
    lengths = [searched(3, seed).state.known.searches[2].n_evals for seed in range(5)]
    assert np.median(lengths) > 2 * 2 + 2


def test_searches_are_compared_at_their_temperature_and_only_those_from_the_prior(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither the first search, before which nothing was known, nor one around a point that was not predicted."""
    judged: list[Search] = []
    asked: list[tuple[Search, float, float]] = []
    ending = module._ending

    def noting(state: State, search: Search, rng: np.random.Generator) -> Any:
        judged.append(search)
        return ending(state, search, rng)

    def predicts(_: KnownRegions, X: np.ndarray, log_l: np.ndarray, tolerance: float) -> None:
        assert len(X) == len(log_l)
        asked.append((judged[-1], tolerance, judged[-1].explorer.temperature))

    monkeypatch.setattr(module, "_ending", noting)
    monkeypatch.setattr(KnownRegions, "predicts", predicts)
    engine = searched(3)
    engine.state = begun_around(engine.state, CENTRE + 1.0, np.random.default_rng(0))
    while len(engine.state.known.searches) < 4:
        advance(engine, bump)
    kinds = {(search.first, search.from_prior) for search in judged}
    assert kinds == {(True, True), (False, True), (False, False)}
    assert {(search.first, search.from_prior) for search, _, _ in asked} == {(False, True)}
    for _, tolerance, temperature in asked:
        assert tolerance == max(TUNING.known.predicted_heat * temperature, TUNING.known.predicted)
    assert len(asked) == sum(search.from_prior and not search.first for search in judged)


@pytest.mark.parametrize("log_l", [bump, lambda X: np.where(X[:, 0] > 0.2, bump(X), -np.inf)])
def test_only_searches_from_the_prior_count_their_draws(log_l: Any) -> None:
    """A search around a point says nothing of the share of the prior where the likelihood is zero."""
    engine = an_engine(MEASURE, 200)
    advance(engine, log_l, 40)
    before = engine.state.data.n_draws
    engine.state = begun_around(engine.state, CENTRE, np.random.default_rng(0))
    number = engine.state.search.number if engine.state.search is not None else -1
    while engine.state.search is not None and engine.state.search.number == number:
        advance(engine, log_l)
    own = engine.state.data.searched_by == number
    assert own.sum() >= 5
    assert not np.any(engine.state.data.is_draw[own])
    assert before == np.sum(engine.state.data.is_draw[:40])
    assert before >= 6


CLOSE = np.array([[0.7, 0.3, -0.4, 0.2], [0.74, 0.32, -0.4, 0.25]])  # of width 0.003: from afar they are one mode


def test_two_modes_close_together_are_not_taken_for_one_from_afar() -> None:
    """With a tolerance of a quarter of a temperature later searches end with their design, and log 2 is missing.

    Then three runs of five were wrong, and six of eight are right once in twenty times. Of 96 runs with the tolerance
    as it is four were wrong: fewer than six of eight are right once in three hundred times.
    """

    def log_l(X: np.ndarray) -> np.ndarray:
        squares = np.square(X[:, None, :] - CLOSE).sum(axis=2)
        return np.asarray(np.logaddexp.reduce(-0.5 * squares / 0.003**2, axis=1))

    truth = 4.0 * math.log(0.003) + float(np.logaddexp.reduce(-0.5 * np.square(CLOSE).sum(axis=1) / (1.0 + 0.003**2)))
    is_right = list[bool]()
    while sum(is_right) < 6 and len(is_right) - sum(is_right) < 3:  # until it is decided
        run = wsabi.integrate(log_l, wsabi.Gaussian(np.zeros(4)), rng=len(is_right), vectorized=True)
        is_right.append(abs(run.log_z - truth) < max(0.05, 2.0 * run.log_z_std))
    assert sum(is_right) == 6


# -- models built anew ------------------------------------------------------------------------------------------------


def test_models_built_anew_know_the_same_regions() -> None:
    """Building again is safe at any time: every region is matched to all training data, its model has the new q."""
    state = run_engine(MEASURE, bump, 60)
    again = rebuilt(state, stream(state))
    assert again.models is not None
    assert state.models is not None
    assert not state.is_outdated
    assert not again.is_outdated
    assert again.models is not state.models
    assert len(again.proposals) == len(state.proposals) + 1
    assert len(again.known.regions) == len(state.known.regions) == len(again.models.parts)
    assert again.matched_n == again.data.n_training
