"""The algorithm: one step from state to state, and the action that follows from it.

    state = fold(step, evaluations)

A run is a fold of :func:`step` over what was told. Each step takes notice of new evaluations (:func:`noticed`), then
chooses the next (:func:`chosen`): a point of a search, an image of a known region, a check point, or a point that
refines the models. Nothing here draws random numbers but from the generator that it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wsabi.adaptive import policy, searches
from wsabi.adaptive.evaluations import Evaluations
from wsabi.adaptive.purposes import CheckPoint, SearchPoint
from wsabi.adaptive.rebuilding import concluded_from_images, rebuilt, refinement
from wsabi.adaptive.search.known_regions import KnownRegions
from wsabi.adaptive.state import Phase, Problem, State
from wsabi.adaptive.symmetry.proof import ImageTests
from wsabi.adaptive.told import scanned, with_lead_ended, with_told
from wsabi.adaptive.unasked import is_mostly_unasked, with_regions_of_told
from wsabi.ledger import Action, Observation

__all__ = ["concluded", "initial", "step"]


def initial(problem: Problem, budget: int, rng: np.random.Generator) -> State:
    """Before anything is told: a first search begins, around a point that the user believes in where there is one."""
    measure = problem.measure
    state = State(problem, budget, Evaluations.none(measure), KnownRegions(measure), ImageTests(problem.candidates))
    return searches.begun(state, rng)


def step(
    state: State, told: Sequence[Observation], pending: Sequence[Action], rng: np.random.Generator
) -> tuple[State, Action]:
    """Take what was told, and choose what to evaluate next, given the evaluations under way."""
    return chosen(noticed(with_told(state, told), rng), pending, rng)


def noticed(state: State, rng: np.random.Generator) -> State:
    """The state after decisions about what was told since the last step: what has ended, and what begins."""
    if state.search is None and state.phase is Phase.LOCATING:  # all that was known has been forgotten
        state = searches.begun_from_prior(state, rng)
    if state.n_noticed == state.n:
        return state
    state = concluded_from_images(replace(state, n_noticed=state.n), rng)
    search = state.search
    if search is not None:
        state, ended = searches.advanced(state, search, rng)
        if state.search is not None:
            return state
        state = with_lead_ended(state, ended)
        if state.is_outdated:
            state = rebuilt(searches.prepared(state), rng)
            state = replace(state, unscanned=tuple(range(state.n)))
    state = scanned(state)
    state = replace(state, leads=state.leads.following())
    if state.leads.followed is not None:
        return searches.begun_around(state, state.leads.followed.x, rng)
    return state if search is not None else _with_what_is_due(state, rng)


def _with_what_is_due(state: State, rng: np.random.Generator) -> State:
    """The state where no search is under way, and no lead waits: with a search of an image, new models, or a search."""
    at_image = searches.following_image(state, rng)
    if at_image is not None:
        return at_image
    if policy.is_rebuild_due(state):
        return rebuilt(state, rng)
    if not policy.may_ask_for_search(state):
        return state
    state = replace(state, asked_at=state.n)
    return searches.begun(state, rng) if policy.is_search_due(state) else state


def chosen(state: State, pending: Sequence[Action], rng: np.random.Generator) -> tuple[State, Action]:
    """The next evaluation: an image, a point of the search under way, a check point, or a refinement, in that order."""
    images, image = state.images.handed_out()
    if image is not None:
        return replace(state, images=images), image
    under_way = np.array([one.u for one in pending]).reshape(-1, state.measure.dim)
    if state.search is not None:
        search, x = state.search.handed_out(np.concatenate([state.data.X, under_way]))
        state = replace(state, search=search)
        if x is not None:
            return state, Action(x, SearchPoint(search.number, is_draw=search.from_prior and not search.climbed))
        return state, Action(search.next_point(under_way, rng), SearchPoint(search.number))
    if policy.is_check_due(state, pending):
        number = state.data.first_proposal + len(state.proposals) - 1
        return state, Action(state.proposals[-1].sample(1, rng)[0], CheckPoint(number))
    return refinement(replace(state, n_refined=state.n_refined + 1), under_way, rng)


def concluded(state: State, rng: np.random.Generator) -> State:
    """The state with searching ended where it stands, so that there is an estimate, and conclusions from all images."""
    state = replace(state, images=state.images.forgotten())
    if state.models is not None:
        return concluded_from_images(state, rng)
    search = state.search
    if search is not None and is_mostly_unasked(state):
        found = with_regions_of_told(state, search, rng)
        if found.is_unasked:
            return scanned(replace(found, unscanned=tuple(range(state.n))))
    if search is not None and (search.climbed or (search.first and not search.has_begun)):
        # The draws around the summit can wait, and so can a first design where enough was told.
        state = replace(state, search=search.without_design(), n_noticed=-1)
    number = state.n_begun
    state = noticed(state, rng)
    if state.models is None and state.search is not None:
        state = searches.broken_off(state, rng, follow_told=state.n_begun == number)
        if state.search is None:
            state = rebuilt(state, rng)
    return scanned(replace(state, unscanned=tuple(range(state.n))))
