"""How searches begin, go on and end: functions from a state to the next."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.policy import can_afford_search, has_searched_enough, is_late, last_moment, next_kind
from wsabi.adaptive.search.ascent import Summit
from wsabi.adaptive.search.matching import matched_until_still
from wsabi.adaptive.search.search import Search, search_limit
from wsabi.adaptive.state import Phase, State
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import NumericalError
from wsabi.result import Outcome, SearchRecord, Start

__all__ = [
    "advanced", "begun", "begun_around", "begun_from_prior", "broken_off", "climbed", "following_image", "prepared",
    "wanted_climb",
]  # fmt: skip


@dataclass(frozen=True)
class _Ending:
    """How a search ends, the share of mass that it has gained, and the known region that it has come back to.

    ``host`` is None where it is the one in which its q has arrived.
    """

    outcome: Outcome
    gain: float = 0.0
    host: int | None = None


# -- beginning --------------------------------------------------------------------------------------------------------


def begun(state: State, rng: np.random.Generator) -> State:
    """A search begins at an image that holds mass, or else at a point that the user believes in, or from the prior."""
    for begin in (_at_image, _at_start):
        state, found = begin(state, rng)
        if found:
            return state
    return begun_from_prior(prepared(state), rng)


def following_image(state: State, rng: np.random.Generator) -> State | None:
    """A search begins at an image that was found to hold mass; None where there is none, or no evaluations for it."""
    if not (state.images.has_unsearched and can_afford_search(state)):
        return None
    return _at_image(state, rng)[0]


def begun_from_prior(state: State, rng: np.random.Generator) -> State:
    """A search begins from fresh draws of the prior."""
    first, kind = not state.known.searches, next_kind(state)
    if kind == "ascent":
        return _with_search(state, Search.ascending(state.measure, state.n_begun, rng))
    search = Search.over_prior(state.measure, state.n_begun, rng, first=first, greedy=kind == "greedy")
    return _with_search(state, search)


def begun_around(state: State, x: Array, rng: np.random.Generator) -> State:
    """A search begins at x (D,), a point that the regions do not account for; what was told there is its own."""
    search = replace(Search.around(state.measure, state.n_begun, _frame_around(state, x), rng), alone=True)
    here = state.data.index_of(x)
    if here is not None:
        state = replace(state, data=state.data.given(here, search.number))
        search = replace(search, n_handed=1)
    return _with_search(state, search)


def prepared(state: State) -> State:
    """The same with images of the known regions queued."""
    return replace(state, images=state.images.prepared(state.known, *state.data.training_joint()))


def _with_search(state: State, search: Search) -> State:
    phase = Phase.LOCATING if state.phase is Phase.LOCATING else Phase.SEARCHING
    return replace(state, search=search, n_begun=search.number + 1, phase=phase)


def _without_search(state: State) -> State:
    phase = Phase.LOCATING if state.phase is Phase.LOCATING else Phase.INTEGRATING
    return replace(state, search=None, phase=phase)


def _at_image(state: State, rng: np.random.Generator) -> tuple[State, bool]:
    """A search begins at an image that holds mass, with q the image of the region's; False where there is none."""
    if not state.images.has_unsearched:
        return state, False
    images, image = state.images.next_unsearched(state.known)
    state = replace(state, images=images)
    if image is None:
        return state, False
    search = Search.around(state.measure, state.n_begun, _frame_around(state, image.x), rng)
    frame = image.symmetry.image_of(image.frame)
    return _with_search(state, search.from_summit(Summit(image.x, frame.cov), rng)), True


def _at_start(state: State, rng: np.random.Generator) -> tuple[State, bool]:
    """An ascent begins at the next point that the user believes in and no region holds; False where there is none."""
    starts = state.problem.starts
    for n in range(state.n_started, len(starts)):
        if state.known.index_at(starts[n]) is None:
            search = Search.ascending(state.measure, state.n_begun, rng, start=starts[n])
            return _with_search(replace(state, n_started=n + 1), search), True
    return replace(state, n_started=len(starts)), False


def _frame_around(state: State, x: Array) -> Frame:
    """q to begin a search at x (D,) with: three times as wide as the nearest region's, or a quarter of the prior.

    The narrower of the two is taken: modes of one likelihood are often of about one width, and a q that is too narrow
    grows threefold with every match.
    """
    wide = Frame.of(x, TUNING.search.around_prior_width**2 * state.measure.cov)
    frames = [explorer.frame for explorer in state.known.explorers]
    if not frames:
        return wide
    nearest = min(frames, key=lambda frame: float(np.square(frame.whiten(x[None, :])).sum()))
    narrow = replace(nearest.scaled(TUNING.search.around_region_width**2), mean=x)
    return narrow if narrow.log_det < wide.log_det else wide


# -- climbing by gradients --------------------------------------------------------------------------------------------


def wanted_climb(state: State, left: int) -> tuple[Array, int] | None:
    """Where the search under way is to begin to climb by gradients, and with how many; None where it is not.

    It does once its design is told, if it has not climbed yet. There are ``left`` evaluations left; a gradient takes
    one, or two where it is checked.
    """
    search = state.search
    if search is None or search.has_begun or search.design or state.n_own < search.n_handed:
        return None
    X, log_l = state.own(search)
    limit = min(search_limit(state.measure.dim), left) // 2
    if limit < 1 or not np.any(np.isfinite(log_l)):
        return None
    return X[int(np.argmax(log_l + state.measure.log_pdf(X)))], limit


def climbed(state: State, summit: Summit | None, rng: np.random.Generator) -> State:
    """The search under way goes on from a mode that was climbed; from its points, where none was found."""
    if state.search is None:
        return state
    search = replace(state.search, n_handed=state.n_own, climbed=True, ascent=None)
    if summit is not None:
        with contextlib.suppress(NumericalError):  # a ridge too thin for numbers: the search goes on from its points
            search = search.from_summit(summit, rng)
            # The curvature has as many numbers as the surrogate would need evaluations to learn it.
            if state.measure.dim > TUNING.surrogate.many_dimensions:
                search = replace(search, explorer=replace(search.explorer, summit=search.explorer.frame))
    return replace(state, search=search)


# -- going on ---------------------------------------------------------------------------------------------------------


def advanced(state: State, search: Search, rng: np.random.Generator) -> tuple[State, Search]:
    """The search under way learns what was told, and ends where it has arrived, come back or has no chance.

    Returns
    -------
    The state, and the search as it is then, which is no longer in the state where it has ended.
    """
    own_X, own_l = state.own(search)
    if search.design or state.n_own < search.n_handed:
        return state, search
    if int(np.isfinite(own_l).sum()) < state.measure.dim + 2:
        search = search.with_foothold(own_X, own_l)
        return (
            _ended(state, search, _Ending("unfinished"), rng) if is_late(state) else _going_on(state, search)
        ), search
    log_joint = own_l + state.measure.log_pdf(own_X)
    if search.ascent is not None:
        return _ascended(state, search, own_X, log_joint, rng)
    if search.alone:
        zoomed = None if search.has_begun else search.zoomed(own_X, log_joint, rng)
        if zoomed is not None:
            return _going_on(state, zoomed), zoomed
        near = search.nearby(own_X, log_joint)
        own_X, own_l = own_X[near], own_l[near]
    # The explorer sees its own evaluations alone: with all of them it would be drawn to the modes that are known.
    best = float(np.max(own_l + state.measure.log_pdf(own_X)))
    try:
        search = search.learnt(own_X, own_l, state.n_own, best, rng)
    except NumericalError:
        return _ended(state, search, _Ending("unfinished"), rng), search
    state = _going_on(state, search)
    ending = _ending(state, search, rng)
    return (state if ending is None else _ended(state, search, ending, rng)), search


def _ascended(
    state: State, search: Search, X: Array, log_joint: Array, rng: np.random.Generator
) -> tuple[State, Search]:
    """The ascent under way takes a step, given its own X (N, D), log ℓπ (N,).

    It ends where the surrogate of a known region predicts its best point.
    """
    best = int(np.argmax(log_joint))
    host = state.known.index_at(X[best])
    if host is not None:
        expected, _ = state.known.explorers[host].log_likelihood(X[[best]])
        value = log_joint[best] - state.measure.log_pdf(X[[best]])[0]
        if abs(value - expected[0]) < TUNING.known.predicted:
            return _ended(state, search, _Ending("known region", host=host), rng), search
    if is_late(state):
        return _ended(state, search, _Ending("unfinished"), rng), search
    search = search.ascended(X, log_joint, rng)
    return _going_on(state, search), search


def _going_on(state: State, search: Search) -> State:
    return replace(state, search=search)


def _ending(state: State, search: Search, rng: np.random.Generator) -> _Ending | None:
    """How the search ends, if it ends here."""
    explorer, known, numbers = search.explorer, state.known, TUNING.known
    if search.may_be_predicted:
        tolerance = max(numbers.predicted_heat * explorer.temperature, numbers.predicted)
        host = known.predicts(*state.own(search), tolerance)
        if host is not None:  # all that it has met was known before, and so, most likely, is where it is going
            return _Ending("known region", host=host)
    here = known.index_of(explorer) if explorer.is_cold else None
    # What no region accounted for, and so was searched alone, has to be shown to be nothing new.
    if here is not None and not search.alone and known.accounts_for(here, *state.own(search)):
        return _Ending("known region")
    if search.has_arrived(state.n_own):
        novelty = known.novelty(explorer, rng)
        gain = known.gain(explorer, novelty)
        # Inside a known region, or over several: what the search has found is mostly what they have.
        if novelty < numbers.more_of_the_same or (here is not None and gain < numbers.more_of_the_same):
            return _Ending("known region")
        return _Ending("negligible mass") if gain < math.exp(-numbers.negligible) else _Ending("new region", gain)
    return _late_ending(state, search, rng)


def _late_ending(state: State, search: Search, rng: np.random.Generator) -> _Ending | None:
    """How the search ends because its evaluations are spent; None where they are not."""
    explorer, known = search.explorer, state.known
    if not (is_late(state) or (state.phase is Phase.LOCATING and state.n >= last_moment(state, explorer))):
        return None
    near = explorer.is_cold and explorer.log_z > known.log_total - TUNING.known.negligible
    if near or not known.regions:
        return _Ending("new region", known.gain(explorer, known.novelty(explorer, rng)))
    return _Ending("unfinished")


# -- ending -----------------------------------------------------------------------------------------------------------


def _ended(state: State, search: Search, ending: _Ending, rng: np.random.Generator) -> State:
    """The search has ended; the next begins here if it is its follow-up, or if there has to be another."""
    X, log_l = state.own(search)
    explorer = search.explorer if ending.host is None else state.known.explorers[ending.host]
    start: Start = "prior" if search.from_prior else "point"
    log_z = explorer.log_z + state.data.offset
    record = SearchRecord(state.n_own, log_z, ending.outcome, start, search.kind)
    apart = ending.outcome == "new region" and state.known.is_apart(search.explorer, rng)
    known = state.known.recorded(record, search.explorer, ending.gain, ending.host, apart=apart)
    state = _without_search(replace(state, known=known))
    affordable = state.n + known.typical <= state.budget
    if ending.outcome == "known region" and search.from_prior and affordable:
        odd = known.unexplained(X, log_l)
        if odd is not None:
            return begun_around(state, X[odd], rng)
    if not known.regions or (state.phase is Phase.LOCATING and not has_searched_enough(state)):
        return begun(state, rng)
    return state


def broken_off(state: State, rng: np.random.Generator, *, follow_told: bool) -> State:
    """The search under way ends where it stands; what it has is kept if there is nothing better, or if it is new.

    With ``follow_told`` a first search that has no evaluations of its own follows those told as far as they lead.
    """
    search = state.search
    if search is None:
        return state
    if follow_told and search.first and not state.n_own and search.explorer.surrogate is not None:
        search = replace(search, explorer=matched_until_still(search.explorer, *state.own(search), rng))
    explorer, known = search.explorer, state.known
    arrived = explorer.surrogate is not None and math.isfinite(explorer.log_z)
    elsewhere = explorer.is_cold and known.index_of(explorer) is None
    if arrived and (elsewhere or not known.regions):
        record = SearchRecord(state.n_own, explorer.log_z + state.data.offset, "unfinished", kind=search.kind)
        state = replace(state, known=known.taken(record, explorer))
    return _without_search(state) if state.known.regions else state
