"""The adaptive engine as a strategy: the one object that holds its state."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import numpy as np

from wsabi._core.types import Array, Mask, Streams
from wsabi.adaptive.algorithm import concluded, initial, step
from wsabi.adaptive.batches import next_batch_size, with_batch_begun, with_batch_told
from wsabi.adaptive.bulk.planning import Costs, Room
from wsabi.adaptive.estimate import relearnt
from wsabi.adaptive.policy import is_checked
from wsabi.adaptive.purposes import SearchPoint
from wsabi.adaptive.search.ascent import Summit
from wsabi.adaptive.searches import climbed, wanted_climb
from wsabi.adaptive.state import Problem, State
from wsabi.adaptive.symmetry.candidates import Candidates
from wsabi.adaptive.told import with_told
from wsabi.ledger import Action, Observation
from wsabi.priors.chart import Chart
from wsabi.priors.names import points_from
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.report.estimate import Estimate, adaptive_estimate, adaptive_posterior
from wsabi.report.warnings import remarks_on_adaptive
from wsabi.settings import Settings
from wsabi.strategies.plain import concluded_plain
from wsabi.strategies.protocol import Climb, Conclusion

__all__ = ["AdaptiveStrategy"]

MOST_STARTS = 64  # points to search around first, of any number given: no run makes more searches
FOR_CONCLUSION = 20  # number of the stream that the end of a run draws from


class AdaptiveStrategy:
    """Searches for modes, WSABI in each of them, and check points.

    Parameters
    ----------
    chart : the prior and its coordinates.
    streams : what the first design, estimates and posteriors are drawn from.
    budget : evaluations that the run is expected to reach; :meth:`plan` changes it.
    """

    def __init__(self, chart: Chart, settings: Settings, streams: Streams, budget: int) -> None:
        self.chart = chart
        candidates = Candidates.of(chart, settings.exchangeable)
        problem = Problem(chart.measure, settings, candidates, streams, _starts(chart, settings))
        self.state: State = initial(problem, budget, streams.stream())

    @property
    def budget(self) -> float:
        """Number of evaluations that the run is expected to reach."""
        return self.state.budget

    @property
    def is_checked(self) -> bool:
        """Whether searches keep returning to known modes, and check points agree with the models."""
        return is_checked(self.state)

    @property
    def given(self) -> Mapping[str, object]:
        """What never changes in a run."""
        problem = self.state.problem
        return {"problem": problem, **{one.name: getattr(problem, one.name) for one in fields(problem)}}

    @property
    def memory(self) -> State:
        """The state."""
        return self.state

    def recall(self, memory: State) -> None:
        """Go on from another state."""
        self.state = memory

    def plan(self, budget: int, tol: float) -> None:
        """Set the number of evaluations that the run is expected to reach, and the error of log Z that will do."""
        self.state = replace(self.state, budget=budget, tol=tol)

    def ask(self, pending: Sequence[Action], rng: np.random.Generator) -> Action:
        """The next evaluation to make, given those that are under way."""
        self.state, action = step(self.state, (), pending, rng)
        return action

    def tell(self, told: Sequence[Observation]) -> None:
        """Take values."""
        self.state = with_told(self.state, told)

    def wanted_climb(self, left: int) -> Climb | None:
        """The climb that the search under way is to make next; None for none."""
        wanted, search = wanted_climb(self.state, left), self.state.search
        return None if wanted is None or search is None else Climb(*wanted, SearchPoint(search.number))

    def climbed(self, summit: Summit | None, rng: np.random.Generator) -> None:
        """Let the search under way go on from the mode that its climb has found."""
        self.state = climbed(self.state, summit, rng)

    def next_batch_size(self, room: Room, costs: Costs) -> int:
        """Number of bulk points to draw next, given what may be spent and what it costs; 0 for none now."""
        return next_batch_size(self.state, room, costs)

    def begin_batch(self, n: int, rng: np.random.Generator) -> None:
        """Draw a batch of n bulk points."""
        self.state = with_batch_begun(self.state, n, rng)

    @property
    def batch(self) -> tuple[Array, Mask]:
        """The batch under way: U (n, D), and which of its points wait for a value (n,); n is 0 where there is none."""
        batch = None if self.state.bulk is None else self.state.bulk.batch
        if batch is None:
            return np.empty((0, self.chart.dim)), np.zeros(0, dtype=np.bool_)
        return batch.U, batch.is_open

    def tell_batch(self, first: int, log_l: Array) -> None:
        """Take log ℓ (m,), NaN for failures, of the points of the batch under way from number ``first`` on."""
        self.state = with_batch_told(self.state, first, log_l)

    def may_miss_modes(self, tol: float) -> bool:
        """Whether further searches are worth it: they may find modes that hold more than ``tol`` nats."""
        state = self.state
        if state.problem.settings.bulk == "off" or state.models is None:
            return False
        is_searching = state.search is not None or state.leads.waiting or state.images.is_asking
        return bool(is_searching) or math.log1p(state.unseen_share) > tol

    def estimate(self, noise: float) -> Estimate | None:
        """The combined estimate, or None while no region is known."""
        return adaptive_estimate(self.state, noise=noise)

    def conclude(self, log_l: Array, noise: float) -> Conclusion | None:
        """The final conclusion; None where every value is −inf."""
        state = self.state
        if not np.any(np.isfinite(state.data.log_l)):
            return None
        rng = state.problem.streams.stream(FOR_CONCLUSION, state.n)
        if state.models is None or state.images.has_answers:
            state = concluded(state, rng)
        if state.models is None:
            plain = SequentialModel(state.measure, state.problem.settings, rng, with_design=False)
            plain.observe(state.data.X, state.data.log_l + state.data.offset)
            return concluded_plain(plain, self.chart, log_l, noise, unchecked=True)
        state = relearnt(state)
        estimate = adaptive_estimate(state, final=True, noise=noise)
        if estimate is None:
            return None
        posterior = adaptive_posterior(state, self.chart, estimate)
        remarks = remarks_on_adaptive(state, estimate, posterior, log_l, noise, self.chart.names)
        symmetries = tuple(symmetry.described(self.chart.names) for symmetry in state.known.all_symmetries)
        fits, jitter = tuple(state.fits), state.max_jitter
        batches = () if state.bulk is None else state.bulk.ended().records
        return Conclusion(estimate, posterior, remarks, fits, jitter, state.known.searches, symmetries, batches)


def _starts(chart: Chart, settings: Settings) -> Array:
    """The points to search around first, (K, D) in base coordinates, the most distant of all before it next."""
    if settings.starts is None:
        return np.empty((0, chart.dim))
    X = points_from(list(settings.starts), chart, "starts")
    try:
        U = chart.to_base(X)
        inside = np.isfinite(U).all(axis=1) & np.isfinite(chart.measure.log_pdf(U)) & np.isfinite(chart.log_weight(U))
    except ValueError as error:
        raise ValueError(f"starts lies outside the support of the prior: {error}") from None
    if not np.all(inside):
        raise ValueError(f"starts[{int(np.argmin(inside))}] = {X[np.argmin(inside)]} has no density under the prior.")
    order, distance = [0], np.full(len(U), np.inf)
    while len(order) < min(len(U), MOST_STARTS):
        distance = np.minimum(distance, np.square(U - U[order[-1]]).sum(axis=1))
        order.append(int(np.argmax(distance)))
        distance[order] = -1.0
    return U[order]
