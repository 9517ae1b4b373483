"""Evaluations that the engine has not asked for: the modes among them, so that there is an estimate without another.

A run chooses its points, and ends a search when it knows a mode. Points that somebody else has chosen are what they
are. So each way of searching is tried on all of them: q follows the annealed posterior of all evaluations, then begins
at each evaluation that is higher than its neighbours. Regions are kept where they predict the evaluations better: each
of these is predicted by a surrogate that is without it (:mod:`wsabi.adaptive.check.left_out`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from wsabi._core.types import Array, Mask
from wsabi.adaptive.check.left_out import log_score, overconfidence_left_out
from wsabi.adaptive.check.proposal import Proposal
from wsabi.adaptive.models import Models
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.search.ground import inflation, is_part
from wsabi.adaptive.search.known_regions import KnownRegions
from wsabi.adaptive.search.matching import matched_until_still, relearnt, rematched
from wsabi.adaptive.search.search import Search
from wsabi.adaptive.state import Phase, State
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import NumericalError
from wsabi.result import Kind, Outcome, SearchRecord, Start

__all__ = ["is_mostly_unasked", "with_regions_of_told"]


def is_mostly_unasked(state: State) -> bool:
    """Whether there are no models yet, and the first search has asked for less than half of the evaluations."""
    search = state.search
    return search is not None and search.first and state.models is None and 2 * state.n_own < state.n


def with_regions_of_told(state: State, search: Search, rng: np.random.Generator) -> State:
    """The state with regions and models from all evaluations, and no search under way; as it was if there are too few.

    Parameters
    ----------
    search : the first, which is under way.
    """
    X, log_l = state.data.training()
    if np.count_nonzero(np.isfinite(log_l)) < state.measure.dim + 2:
        return state
    first = _followed(search.explorer, X, log_l, rng)
    if first is None:
        return state
    known = _taken(state, state.known, first, "annealed")
    known = _without_needless(_with_modes(state, known, X, log_l, rng), X, log_l)
    known = _each(known, X, log_l, lambda one, Y, y: relearnt(one, Y, y, rng))
    doubt = overconfidence_left_out(known.explorers, state.measure, X, log_l)
    known = known.with_explorers(
        lambda one: replace(one, extrapolates=doubt * one.uncertainty < TUNING.unasked.believed)
    )
    models = Models.of(known, state.problem.settings, X, log_l, rng)
    proposals = (*state.proposals, Proposal(state.measure, models))
    more = replace(state, known=known, models=models, proposals=proposals, search=None, is_unasked=True)
    return replace(more, phase=Phase.INTEGRATING, matched_n=state.data.n_training)


def _followed(explorer: Explorer, X: Array, log_l: Array, rng: np.random.Generator) -> Explorer | None:
    """The explorer where X (N, D), log ℓ (N,) lead it; None where it has no surrogate.

    It takes the most mass. Where its q stays hot, it takes the nearest mode, for which fewer good evaluations will do.
    """
    explorer = matched_until_still(explorer, X, log_l, rng)
    if not explorer.is_cold:
        greedy = matched_until_still(replace(explorer, greedy=True), X, log_l, rng)
        explorer = greedy if greedy.is_cold else explorer
    return explorer if explorer.surrogate is not None and math.isfinite(explorer.log_z) else None


def _taken(state: State, known: KnownRegions, explorer: Explorer, kind: Kind) -> KnownRegions:
    outcome: Outcome = "new region" if explorer.is_cold else "unfinished"
    start: Start = "prior" if kind == "annealed" else "point"
    return known.taken(SearchRecord(0, explorer.log_z + state.data.offset, outcome, start, kind), explorer)


def _with_modes(state: State, known: KnownRegions, X: Array, log_l: Array, rng: np.random.Generator) -> KnownRegions:
    """The regions, and those round evaluations higher than their neighbours that make the predictions better."""
    score = log_score(known.explorers, state.measure, X, log_l)
    tried: list[Frame] = []
    for frame in _tops(state, X, log_l):
        if len(tried) == TUNING.unasked.most_searches:
            break
        if any(_are_in_bulk(frame.mean[None, :], other)[0] for other in tried):
            continue
        start = Explorer(state.measure, frame, greedy=True)
        explorer = _arrived(start, *_ground(start, known.explorers, X, log_l), rng)
        tried.append(frame if explorer is None else explorer.frame)
        if explorer is None:
            continue
        more = _taken(state, known, explorer, "greedy")
        more = _each(more, X, log_l, lambda one, Y, y: rematched(one, Y, y, rng))
        better = log_score(more.explorers, state.measure, X, log_l)
        if better > score + TUNING.unasked.least_gain:
            known, score = more, better
    return known


def _tops(state: State, X: Array, log_l: Array) -> Iterator[Frame]:
    """q at evaluations of X (N, D), log ℓ (N,) whose ℓπ is above that of their neighbours, the highest first.

    Neighbours are the next 2D + 2 where ℓ > 0. The bulk of q reaches as far as they do.
    """
    from scipy.spatial import cKDTree  # imported here: most runs have no use for it

    dim, finite = state.measure.dim, np.isfinite(log_l)
    X, log_joint = X[finite], (log_l + state.measure.log_pdf(X))[finite]
    distances, neighbours = cKDTree(X).query(X, k=min(2 * dim + 3, len(X)))
    is_top = log_joint >= np.max(log_joint[neighbours], axis=1)
    is_high = log_joint > np.max(log_joint) - TUNING.known.flank_depth
    some = np.flatnonzero(is_top & is_high & (distances[:, -1] > 0.0))
    for i in some[np.argsort(-log_joint[some])]:
        yield Frame.of(X[i], distances[i, -1] ** 2 / (dim + 2) * np.eye(dim))


def _arrived(start: Explorer, X: Array, log_l: Array, rng: np.random.Generator) -> Explorer | None:
    """Where X (N, D), log ℓ (N,) lead an explorer; None where it does not arrive."""
    try:
        explorer = matched_until_still(start, X, log_l, rng)
    except NumericalError:
        return None
    return explorer if explorer.is_cold and math.isfinite(explorer.log_z) else None


def _without_needless(known: KnownRegions, X: Array, log_l: Array) -> KnownRegions:
    """The regions without those of which the others predict the evaluations as well, those still hot first."""
    score = log_score(known.explorers, known.measure, X, log_l)
    for region in sorted(known.regions, key=lambda one: -one.explorer.temperature):
        fewer = known.without(region.family)
        if not fewer.regions:
            continue
        left = log_score(fewer.explorers, known.measure, X, log_l)
        if left > score - TUNING.unasked.least_gain:
            known, score = fewer, left
    return known


def _each(
    known: KnownRegions, X: Array, log_l: Array, other: Callable[[Explorer, Array, Array], Explorer]
) -> KnownRegions:
    """The regions with every explorer exchanged for what ``other`` makes of it and its own X (N, D), log ℓ (N,)."""
    every = known.explorers
    return known.with_explorers(lambda one: other(one, *_ground(one, every, X, log_l)))


def _ground(explorer: Explorer, every: Sequence[Explorer], X: Array, log_l: Array) -> tuple[Array, Array]:
    """Those of X (N, D), log ℓ (N,) that are data of an explorer: none in the bulk of regions beside it, or narrower.

    In a run a search sees its own evaluations alone, and is not drawn to the modes that are known. Where fewer than
    2D + 2 feasible ones would be left, all are data.
    """
    keep = np.ones(len(X), dtype=np.bool_)
    centre = explorer.frame.mean[None, :]
    for other in every:
        is_beside = not _are_in_bulk(centre, other.frame)[0]
        if other is not explorer and (is_beside or is_part(explorer, other)):
            keep &= ~_are_in_bulk(X, other.frame)
    if np.count_nonzero(keep & np.isfinite(log_l)) < 2 * X.shape[1] + 2:
        return X, log_l
    return X[keep], log_l[keep]


def _are_in_bulk(X: Array, frame: Frame) -> Mask:
    """Which of X (N, D) lie in the bulk of a region's q."""
    dim = X.shape[1]
    return np.asarray(np.linalg.norm(frame.scaled(inflation(dim)).whiten(X), axis=1) < math.sqrt(dim) + 2.0)
