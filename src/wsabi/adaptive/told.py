"""What was told: how new evaluations enter the state, and leads among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wsabi.adaptive.purposes import ImagePoint
from wsabi.adaptive.search.known_regions import KnownRegions
from wsabi.adaptive.search.leads import Lead, Searched, unaccounted
from wsabi.adaptive.search.search import Search
from wsabi.adaptive.state import State
from wsabi.adaptive.symmetry.proof import ImageTests
from wsabi.ledger import Observation

__all__ = ["scanned", "with_lead_ended", "with_told"]


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
    state = scanned(state)
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


def scanned(state: State) -> State:
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


def with_lead_ended(state: State, search: Search) -> State:
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
