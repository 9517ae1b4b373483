"""Policy: which action comes next, and when there were enough of a kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile

from wsabi.adaptive.estimate import interim_estimate
from wsabi.adaptive.purposes import CheckPoint
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.search.search import search_limit
from wsabi.adaptive.state import State
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import NumericalError
from wsabi.ledger import Action
from wsabi.result import Kind

__all__ = [
    "can_afford_search",
    "has_searched_enough",
    "is_check_due",
    "is_checked",
    "is_late",
    "is_rebuild_due",
    "is_search_due",
    "keeps_returning",
    "last_error",
    "last_moment",
    "may_ask_for_search",
    "next_kind",
]  # fmt: skip


KINDS: tuple[Kind, ...] = ("annealed", "ascent", "greedy")  # in the order in which they first come


# -- searches ---------------------------------------------------------------------------------------------------------


def keeps_returning(state: State) -> bool:
    """Whether the last searches came back to known regions, or to negligible ones, and were enough to believe it.

    Searches around a point say nothing of the rest of the prior, and do not count. Where the user promises one mode,
    the first search is enough.
    """
    numbers, settings = TUNING.policy, state.problem.settings
    if settings.modes == "one":
        return bool(state.known.regions)
    if sum(search.start == "prior" for search in state.known.searches) < (settings.min_searches or 0):
        return False
    counted = [search for search in state.known.searches if search.start == "prior" or search.outcome == "new region"]
    barren = takewhile(lambda search: search.outcome in ("known region", "negligible mass"), reversed(counted))
    n_returns = sum(search.outcome == "known region" for search in barren)
    has_every_kind = all(any(search.kind == kind for search in counted) for kind in KINDS)
    return has_every_kind and n_returns >= numbers.returns


def next_kind(state: State) -> Kind:
    """The kind of the next search from the prior.

    Every kind comes once, and then the one with the highest chance of a new region per evaluation: by Laplace's rule of
    succession (f + 1)/(n + 2) for f new regions in n searches, over the mean number of evaluations of a search of that
    kind. A first search that finds the first region has told nothing of what others would find.
    """
    from_prior = [search for search in state.known.searches if search.start == "prior"]
    if not from_prior:
        return KINDS[0]
    later = from_prior[1:]
    untried = [kind for kind in KINDS[1:] if all(search.kind != kind for search in later)]
    if untried:
        return untried[0]

    def chance(kind: Kind) -> float:
        mine = [search for search in later if search.kind == kind]
        n_evals = [search.n_evals for search in mine] or [from_prior[0].n_evals]
        found = sum(search.outcome == "new region" for search in mine)
        return (found + 1) / (len(mine) + 2) * len(n_evals) / max(sum(n_evals), 1)

    return max(KINDS, key=chance)


def has_searched_enough(state: State) -> bool:
    """Whether the first searches are to end, so that there is an estimate."""
    too_few = len(state.known.searches) < (state.problem.settings.min_searches or 0)
    barren = state.known.spent + state.known.typical > TUNING.policy.barren_share * state.budget and not too_few
    return keeps_returning(state) or barren or not can_afford_search(state)


def can_afford_search(state: State) -> bool:
    """Whether a typical search leaves the check points' share of the budget."""
    return state.n + state.known.typical <= _end_of_searches(state)


def _end_of_searches(state: State) -> float:
    """Number of evaluations by which a first estimate must be under way."""
    return (1.0 - state.check_share - TUNING.policy.spare) * state.budget


def last_moment(state: State, explorer: Explorer) -> float:
    """Number of evaluations by which the first searches end; one that still climbs may have half of the checks' too."""
    is_climbing = not explorer.is_cold and not state.known.regions
    return _end_of_searches(state) + (0.5 * state.check_share * state.budget if is_climbing else 0.0)


def is_late(state: State) -> bool:
    """Whether the search under way, if it is not the first, has had its share of evaluations."""
    return bool(state.known.regions) and state.n_own >= search_limit(state.measure.dim)


def may_ask_for_search(state: State) -> bool:
    """Whether it is time to ask if another search does more good: it is asked as the data grow by 5 %.

    Check points come evenly over the run, and all of them would be waited for in vain: half of those planned will do,
    if they can check anything. If no more are planned than can, none is waited for.
    """
    planned, enough = state.check_share * state.budget, 0.0
    if planned > TUNING.check.min_points:
        enough = min(max(TUNING.check.min_points, 0.5 * planned), TUNING.check.enough_points)
    if state.problem.settings.modes == "one":
        return False
    has_grown = state.n >= TUNING.policy.ask_again_growth * state.asked_at
    return has_grown and state.n + state.known.typical <= state.budget and state.data.n_check >= enough


def is_search_due(state: State) -> bool:
    """Whether another search does more good than a refinement.

    It does where the error of what was found is small enough, or smaller than what may not have been found.
    """
    try:
        certificate = interim_estimate(state)
    except NumericalError:
        return False
    wanted = max(TUNING.policy.settled, state.tol, math.log1p(state.unseen_share))
    return certificate is not None and certificate.log_z_std < wanted


# -- models and check points ------------------------------------------------------------------------------------------


def is_rebuild_due(state: State) -> bool:
    """Whether q is to be matched anew, and the models built again."""
    return state.data.n_training >= TUNING.policy.rematch_growth * state.matched_n


def is_check_due(state: State, pending: Sequence[Action]) -> bool:
    """Whether the next point is to be a check point.

    They are spread evenly over what is left of the budget. But once the models know log Z well enough, nothing but
    their check is left to do: then check points come first, until there are enough to end the run.
    """
    if state.check_share == 0.0:
        return False
    searched = sum(search.n_evals for search in state.known.searches)
    left = max(state.budget - searched, 1)
    rate = min(state.check_share * state.budget / left, 0.5)
    first = state.data.first_proposal
    under_way = sum(isinstance(one.purpose, CheckPoint) and one.purpose.proposal >= first for one in pending)
    n_checks = state.data.n_check + under_way
    if n_checks < rate * (state.n - searched + 1):
        return True
    enough = min(TUNING.check.enough_points, state.check_share * state.budget)
    return n_checks < enough and last_error(state) < max(TUNING.policy.settled, state.tol)


def last_error(state: State) -> float:
    """The statistical error of the last estimate that was made with the present models; infinite before the first."""
    estimates = {} if state.models is None else state.models.estimates
    return estimates[max(estimates)].log_z_std if estimates else math.inf


def is_checked(state: State) -> bool:
    """Whether searches keep returning, check points have checked what they found, and no evaluation contradicts it.

    So many check points that their error can be believed, or all that the settings ask for.
    """
    planned = state.check_share * state.budget
    needed = max(TUNING.check.min_points, min(TUNING.check.enough_points, planned))
    has_points = planned == 0.0 or state.data.n_check >= needed
    is_explained = state.unsearched_nats == 0.0 and not state.has_met_more
    return has_points and keeps_returning(state) and is_explained
