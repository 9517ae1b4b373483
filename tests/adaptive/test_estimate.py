"""What a state says of Z: estimates that repeat, a last learning that leaves the state alone, and posterior draws."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

import wsabi
from driving import an_engine, content, run_engine
from wsabi.adaptive.algorithm import concluded
from wsabi.adaptive.estimate import (
    FOR_POSTERIOR,
    belief,
    final_estimate,
    interim_estimate,
    posterior_draws,
    relearnt,
)
from wsabi.adaptive.models import Models
from wsabi.adaptive.state import Phase, State
from wsabi.result import Certificate

PRIOR = wsabi.Gaussian([0.0, 0.0])


def gaussian(X: np.ndarray) -> np.ndarray:
    return np.asarray(-2.0 * np.square(X).sum(axis=1))


@pytest.fixture(scope="module")
def finished() -> State:
    """A state that is integrating."""
    return run_engine(PRIOR, gaussian, 80)


@pytest.fixture(scope="module")
def searching() -> State:
    """A state that has no models yet."""
    return run_engine(PRIOR, gaussian, 14, budget=80)


def certificate_of(state: State) -> Certificate:
    certificate = interim_estimate(state)
    assert certificate is not None
    return certificate


# -- the end of a run -------------------------------------------------------------------------------------------------


def test_a_state_with_models_learns_a_last_time_and_stays_as_it_was(finished: State) -> None:
    """From all training data, and the state itself can go on."""
    before = content(finished)
    last = relearnt(finished)
    assert content(finished) == before
    assert finished.models is not None
    assert last.models is not None
    assert last.data is finished.data
    n_training = len(finished.training_data()[0])
    for part, old in zip(last.models.parts, finished.models.parts, strict=True):
        learnt, known = part.explorer.surrogate, old.explorer.surrogate
        assert learnt is not None
        assert known is not None
        assert len(learnt.Y) == n_training
        assert np.max(np.abs(learnt.theta.vector - known.theta.vector)) > 1e-3
    assert last.crossfit is not None
    assert last.crossfit.n == finished.data.n_check > 0


def test_a_state_still_searching_is_concluded_and_stays_as_it_was(searching: State) -> None:
    before = content(searching)
    done = concluded(searching, np.random.default_rng(0))
    assert content(searching) == before
    assert searching.phase is Phase.LOCATING
    assert searching.models is None
    assert done.models is not None
    assert done.data is searching.data
    assert done.known.searches[-1].outcome == "unfinished"
    assert searching.known.searches == ()


def test_a_state_without_models_has_no_estimate(searching: State) -> None:
    assert interim_estimate(searching) is None
    assert final_estimate(searching) is None
    assert relearnt(searching) is searching
    assert np.isnan(belief(searching).log_mean)


# -- streams ----------------------------------------------------------------------------------------------------------


def test_estimates_repeat_and_change_nothing(finished: State) -> None:
    """Whether they are remembered, or made again of a state that remembers none."""
    before = content(finished, Models)
    first = repr(certificate_of(finished))
    again = copy.deepcopy(finished)
    assert again.models is not None
    again.models.estimates.clear()
    assert repr(certificate_of(again)) == first
    assert repr(final_estimate(finished)) == repr(final_estimate(finished))
    draws = [posterior_draws(finished, 200, certificate_of(finished)) for _ in range(2)]
    assert content(draws[0]) == content(draws[1])
    assert content(finished, Models) == before


def test_estimates_of_two_seeds_draw_different_numbers() -> None:
    """They used to share one stream for every number of evaluations, whatever the seed."""
    streams = [an_engine(PRIOR, 80, seed).state.problem.streams for seed in (0, 1)]
    draws = [[one.stream(FOR_POSTERIOR, 40).standard_normal(3) for _ in range(2)] for one in streams]
    for first, again in draws:
        assert np.array_equal(first, again)
    assert not np.any(draws[0][0] == draws[1][0])


# -- the posterior ----------------------------------------------------------------------------------------------------


def test_no_draw_of_the_posterior_weighs_more_than_the_heaviest_evaluation(finished: State) -> None:
    assert finished.models is not None
    proposal, data = finished.proposals[-1], finished.data
    heaviest = np.max(data.log_joint - proposal.log_pdf(data.X))
    soaring = finished.models.with_originals(  # a surrogate that soars everywhere
        {part.family: replace(part.explorer, top=part.explorer.top + 30.0) for part in finished.models.parts}
    )
    _, log_weights = posterior_draws(replace(finished, models=soaring), 500, certificate_of(finished))
    assert np.max(log_weights) <= heaviest
