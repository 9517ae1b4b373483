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

from wsabi._core.types import Array
from wsabi.adaptive import policy, searches
from wsabi.adaptive.check.proposal import Proposal
from wsabi.adaptive.evaluations import Evaluations
from wsabi.adaptive.models import Models
from wsabi.adaptive.purposes import CheckPoint, ImagePoint, Refinement, SearchPoint
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.search.known_regions import KnownRegions, ground_of
from wsabi.adaptive.search.leads import Lead, Searched, unaccounted
from wsabi.adaptive.search.matching import rematched
from wsabi.adaptive.search.proposing import proposed
from wsabi.adaptive.search.search import Search
from wsabi.adaptive.state import Phase, Problem, State
from wsabi.adaptive.symmetry.proof import ImageTests
from wsabi.errors import NumericalError
from wsabi.ledger import Action, Observation

__all__ = ["concluded", "initial", "step", "with_told"]


def initial(problem: Problem, budget: int, rng: np.random.Generator) -> State:
    """Before anything is told: a first search begins."""
    measure = problem.measure
    state = State(problem, budget, Evaluations.none(measure), KnownRegions(measure), ImageTests(problem.candidates))
    return searches.begun_from_prior(state, rng)


def step(
    state: State, told: Sequence[Observation], pending: Sequence[Action], rng: np.random.Generator
) -> tuple[State, Action]:
    """Take what was told, and choose what to evaluate next, given the evaluations under way."""
    return chosen(noticed(with_told(state, told), rng), pending, rng)


# -- what was told ----------------------------------------------------------------------------------------------------


def with_told(state: State, told: Sequence[Observation]) -> State:
    """The state with new evaluations among its data; models learn of those that are training data."""
    if not told:
        return state
    before, first = state.data, state.n
    data = before.observed(told, state.known.log_cold)
    state = replace(state, data=data, unscanned=(*state.unscanned, *range(first, len(data))))
    if data.offset != before.offset and (state.known.searches or (state.search and state.search.has_begun)):
        return _forgotten(state)
    if len(data.floors) > len(before.floors) and state.search and state.search.explorer.temperature > 1.0:
        state = replace(state, search=state.search.reheated())  # some of its data have turned out to mean zero
    for one, value in zip(told, data.log_l[first:], strict=True):
        if isinstance(one.purpose, ImagePoint):
            log_joint = float(value + state.measure.log_pdf(one.u[None, :])[0])
            state = replace(state, images=state.images.told(one.purpose, log_joint))
    models = state.models
    if models is None:
        return state
    state = _scanned(state)
    for i in range(first, len(data)):
        if data.is_training[i] and np.isfinite(state.measure.log_pdf(data.X[[i]])[0]):
            for x, value in zip(*state.known.with_images(data.X[[i]], data.log_l[[i]]), strict=True):
                models.observe(x, float(value))
    return state


def _forgotten(state: State) -> State:
    """Nothing is known but the data so far: all that the models had seen has turned out to mean zero likelihood."""
    first = state.data.first_proposal + len(state.proposals)
    data = state.data.without_searches().without_checks(first)
    empty = State(state.problem, state.budget, data, KnownRegions(state.measure), ImageTests(state.problem.candidates))
    return replace(empty, tol=state.tol, n_begun=state.n_begun, unscanned=tuple(range(len(data))))


# -- taking notice ----------------------------------------------------------------------------------------------------


def noticed(state: State, rng: np.random.Generator) -> State:
    """The state after decisions about what was told since the last step: what has ended, and what begins."""
    if state.search is None and state.phase is Phase.LOCATING:  # forgotten
        state = searches.begun_from_prior(state, rng)
    if state.n_noticed == state.n:
        return state
    state = _concluded_from_images(replace(state, n_noticed=state.n), rng)
    before = state.search
    if before is not None:
        state, ended = searches.advanced(state, before, rng)
        if state.search is not None:
            return state
        state = _lead_ended(state, ended)
        if state.is_outdated:
            state = rebuilt(searches.prepared(state), rng)
            state = replace(state, unscanned=tuple(range(state.n)))
    state = _scanned(state)
    state = replace(state, leads=state.leads.following())
    if state.leads.followed is not None:
        return searches.begun_around(state, state.leads.followed.x, rng)
    if before is not None:
        return state
    at_image = searches.following_image(state, rng)
    if at_image is not None:
        return at_image
    if policy.is_rebuild_due(state):
        return rebuilt(state, rng)
    if not policy.may_ask_for_search(state):
        return state
    state = replace(state, asked_at=state.n)
    return searches.begun(state, rng) if policy.is_search_due(state) else state


def _concluded_from_images(state: State, rng: np.random.Generator) -> State:
    """The state after conclusions from images; where they prove a symmetry, the images are regions too."""
    images, known = state.images.concluded(state.known, *state.data.training_joint())
    state = replace(state, images=images, known=known)
    return rebuilt(state, rng) if state.models is not None and state.is_outdated else state


def _scanned(state: State) -> State:
    """The state with leads among what was told since the last scan; among everything where the regions are new.

    It comes before the surrogates learn of it, so that a prediction is one. Points of the search under way are left
    until it has ended.
    """
    if state.models is None:
        return state
    under_way = -2 if state.search is None else state.search.number
    searched_by = state.data.searched_by
    mine = [i for i in state.unscanned if searched_by[i] != under_way]
    state = replace(state, unscanned=tuple(i for i in state.unscanned if searched_by[i] == under_way))
    if not mine:
        return state
    X, log_l = state.data.X[mine], state.data.log_l[mine]
    log_joint = log_l + state.measure.log_pdf(X)
    log_ratio = log_joint - state.proposals[-1].log_pdf(X) - state.known.log_total
    some = unaccounted(state.known.explorers, state.measure, X, log_l, log_ratio)
    leads = [Lead(X[i], float(log_joint[i]), mine[i]) for i in some]
    return replace(state, leads=state.leads.found(leads))


def _lead_ended(state: State, search: Search) -> State:
    """The state after the search of a lead, if it was one, has ended.

    Where it has found a region because of what a check point said, the models are no longer independent of the check
    points: these become training points, and checking starts anew with the new region in it.
    """
    lead, outcome = state.leads.followed, state.known.searches[-1].outcome
    if lead is None:
        return state
    ended = Searched(search.explorer.frame, max(search.best, lead.log_joint))
    state = replace(state, leads=state.leads.ended(None if outcome == "unfinished" else ended))
    if outcome == "new region" and state.data.drawn_from[lead.index] >= 0:
        first = state.data.first_proposal + len(state.proposals)
        state = replace(state, data=state.data.without_checks(first), models=None, proposals=())
    return state


def rebuilt(state: State, rng: np.random.Generator) -> State:
    """The state with q of every region matched to all training data, and a new model for each."""
    X, log_l = state.training_data()
    every = state.known.explorers
    known = state.known.with_explorers(lambda one: rematched(one, *_ground(one, every, X, log_l), rng))
    warm = [
        None if state.models is None else state.models.lengthscales_for(old, new)
        for old, new in zip(every, known.explorers, strict=True)
    ]
    models = Models.of(known, state.problem.settings, X, log_l, rng, warm)
    return replace(
        state,
        known=known,
        models=models,
        proposals=(*state.proposals, Proposal(state.measure, models)),
        matched_n=state.data.n_training,
        phase=Phase.INTEGRATING if state.search is None else Phase.SEARCHING,
    )


def _ground(explorer: Explorer, explorers: Sequence[Explorer], X: Array, log_l: Array) -> tuple[Array, Array]:
    """Those of X (N, D), log ℓ (N,) that are data of an explorer's surrogate."""
    mine = ground_of(explorer, explorers, X, log_l)
    return X[mine], log_l[mine]


# -- the next evaluation ----------------------------------------------------------------------------------------------


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
    return _refinement(replace(state, n_refined=state.n_refined + 1), under_way, rng)


def _refinement(state: State, under_way: Array, rng: np.random.Generator) -> tuple[State, Action]:
    """A point that the models need.

    Every other point goes where a surrogate of log ℓ is most uncertain: the square root is blind to what lies beyond
    its data, where its mean is zero, and would never let q grow.
    """
    models = state.models
    if models is None:
        raise NumericalError("there are no models to refine yet.")
    try:
        if state.n_refined % 2:
            return state, Action(models.propose(under_way, rng), Refinement())
        k = int(rng.choice(len(models.parts), p=models.weights))
        part = models.parts[k]
        explorer = part.explorer.fitted(*_ground(part.explorer, models.explorers, *state.training_data()))
        state = replace(state, models=models.with_explorer(k, explorer), known=state.known.with_explorer(k, explorer))
        return state, Action(proposed(explorer, under_way, rng, part.uncertainty), Refinement())
    except NumericalError:
        return state, Action(state.proposals[-1].sample(1, rng)[0], Refinement())


# -- the end ----------------------------------------------------------------------------------------------------------


def concluded(state: State, rng: np.random.Generator) -> State:
    """The state with searching ended where it stands, so that there is an estimate, and conclusions from all images."""
    state = replace(state, images=state.images.forgotten())
    if state.models is not None:
        return _concluded_from_images(state, rng)
    search = state.search
    if search is not None and (search.climbed or (search.first and not search.has_begun)):
        # The draws around the summit can wait, and so can a first design where enough was told.
        state = replace(state, search=search.without_design(), n_noticed=-1)
    number = state.n_begun
    state = noticed(state, rng)
    if state.models is None and state.search is not None:
        state = searches.broken_off(state, rng, follow_told=state.n_begun == number)
        if state.search is None:
            state = rebuilt(state, rng)
    return _scanned(replace(state, unscanned=tuple(range(state.n))))
