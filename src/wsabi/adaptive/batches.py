"""Batches of bulk points in the state: how one begins, and how its values enter."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.bulk.planning import Costs, Need, Room, batch_size
from wsabi.adaptive.bulk.population import effective_size
from wsabi.adaptive.bulk.sample import Bulk
from wsabi.adaptive.estimate import bulk_estimate, check_points, interim_estimate
from wsabi.adaptive.policy import is_checked, last_error
from wsabi.adaptive.search.leads import Lead, unaccounted
from wsabi.adaptive.state import Phase, State
from wsabi.adaptive.told import with_told
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import NumericalError
from wsabi.ledger import Observation

__all__ = ["next_batch_size", "with_batch_begun", "with_batch_told"]


def next_batch_size(state: State, room: Room, costs: Costs) -> int:
    """Number of points of the next batch of bulk; 0 where none is to be drawn now."""
    if state.problem.settings.bulk == "off" or not costs.is_cheap or state.models is None:
        return 0
    is_busy = state.leads.waiting or state.leads.followed is not None or state.images.is_asking
    if room.modelled > 0 and (is_busy or not (_is_settled(state) or state.bulk is not None)):
        return 0
    return batch_size(state.bulk, state.measure.dim, _need(state), room, costs)


def _is_settled(state: State) -> bool:
    """Whether no search is under way, and the models are checked."""
    return state.phase is Phase.INTEGRATING and is_checked(state)


def _present_error(state: State) -> float:
    """The statistical error of the last estimate by the present models; infinite where they have none."""
    if math.isfinite(last_error(state)):
        return last_error(state)
    try:
        certificate = interim_estimate(state)
    except NumericalError:
        return math.inf
    return math.inf if certificate is None else certificate.log_z_std


def _need(state: State) -> Need:
    """What is known of log Z in this state, and what is wanted."""
    estimate, error = bulk_estimate(state), _present_error(state)
    if estimate is not None and estimate.is_sound:
        error = min(error, estimate.error)
    _, _, log_weights = check_points(state)
    enough = len(log_weights) >= TUNING.check.min_points
    share = effective_size(log_weights) / len(log_weights) if enough else math.nan
    return Need(state.tol, error, share)


def with_batch_begun(state: State, n: int, rng: np.random.Generator) -> State:
    """The state with a batch of n points under way; they are ``state.bulk.batch.U``."""
    bulk = Bulk.none(state.measure.dim) if state.bulk is None else state.bulk
    if bulk.base is not state.proposals[-1] and len(bulk):
        bulk = bulk.restarted()
    return replace(state, bulk=bulk.begun(state.proposals[-1], n, rng))


def with_batch_told(state: State, first: int, log_l: Array) -> State:
    """The state with log ℓ (m,), NaN for failures, of the points of the batch under way from ``first`` on.

    At the end of a batch it is looked through for leads: points whose weight is more than N^−½ of all, and which no
    region explains. The highest of them becomes an evaluation like any other, and is searched around.
    """
    bulk = state.bulk
    if bulk is None or bulk.batch is None:
        raise ValueError("no batch is under way.")
    U = bulk.batch.U[first : first + len(log_l)]
    values = log_l - state.data.offset
    bulk = bulk.told(first, values + state.measure.log_pdf(U))
    state = replace(state, bulk=bulk)
    return state if bulk.batch is not None else _with_lead(state)


def _with_lead(state: State) -> State:
    """The state with the best lead of the last batch, if it has one, among its data."""
    bulk, models = state.bulk, state.models
    if bulk is None or models is None or not bulk.records:
        return state
    last, n = bulk.samples[-1], bulk.records[-1].n
    U, log_joint = last.U[-n:], last.log_joint[-n:]
    log_ratio = last.log_weights[-n:] - max(last.tally.log_unit, state.known.log_total)
    heavy = np.flatnonzero(log_ratio > 0.5 * math.log(len(last)))
    if not len(heavy):
        return state
    X, log_l = U[heavy], log_joint[heavy] - state.measure.log_pdf(U[heavy])
    found = unaccounted(state.known.explorers, state.measure, X, log_l, log_ratio[heavy])
    fresh = [i for i in found if state.data.index_of(X[i]) is None]
    if not fresh:
        return state
    x, value = X[fresh[0]], float(log_l[fresh[0]])
    index = state.n
    state = with_told(state, [Observation(x, value + state.data.offset, None)])
    lead = Lead(x, value + float(state.measure.log_pdf(x[None, :])[0]), index)
    return replace(state, leads=state.leads.found([lead]))
