"""Batches of bulk points: what evaluations cost, when a batch is due, and its evaluation here or on workers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.bulk.planning import Costs, Room
from wsabi.errors import LikelihoodError
from wsabi.running.stopping import Interrupted
from wsabi.runs.executors import Fault, Pool

if TYPE_CHECKING:
    from wsabi.running.loop import Loop

__all__ = ["Batches", "Meter"]

FIRST_PRICE = 8  # evaluations after which their cost is known well enough to act on
NEW_PRICE = 2.0  # factor by which a cost has to change before it is noted again
CHUNK_SECONDS = 0.5  # of likelihood between two looks at the clock, and between two entries in the journal
LARGEST_CHUNK = 8192  # points: some megabytes of arguments for a vectorised likelihood
TASKS_PER_WORKER = 2  # chunks handed over at a time, so that no worker waits for the next


@dataclass
class Meter:
    """Seconds of wall clock that evaluations have taken, and how many there were.

    Attributes
    ----------
    own, n_own : the engine's time for points that it models.
    call, n_call : the likelihood at these; over the number of workers where there are several.
    bulk, n_bulk : the likelihood at bulk points, by the clock of this process.
    """

    own: float = 0.0
    n_own: int = 0
    call: float = 0.0
    n_call: int = 0
    bulk: float = 0.0
    n_bulk: int = 0

    def modelled(self, own: float, call: float, n: int) -> None:
        """Add n evaluations that models learn of."""
        self.own, self.n_own = self.own + own, self.n_own + n
        self.call, self.n_call = self.call + call, self.n_call + n

    def costs(self) -> Costs | None:
        """Seconds per point; None while too few were measured."""
        if min(self.n_own, self.n_call) < FIRST_PRICE:
            return None
        bulk = self.bulk / self.n_bulk if self.n_bulk else math.nan
        return Costs(self.own / self.n_own, self.call / self.n_call, bulk)


class Batches:
    """Bulk points on behalf of a run.

    Parameters
    ----------
    evaluate : log ℓ (N,) at points X (N, D), into ``out``; None where workers evaluate.
    pool : the workers; None for none.
    """

    def __init__(self, loop: Loop, evaluate: Callable[..., Array] | None, pool: Pool | None = None) -> None:
        self._loop = loop
        self._evaluate = evaluate
        self._pool = pool
        self._failures_in_a_row = 0

    def is_due(self) -> bool:
        """Whether a batch is under way, or to be drawn now."""
        return len(self._loop.integrator.strategy.batch[0]) > 0 or self._size_due() > 0

    def advance(self) -> bool:
        """Evaluate the batch that is due, if there is one; whether there was."""
        loop, integrator = self._loop, self._loop.integrator
        self._note_costs()
        if not len(integrator.strategy.batch[0]):
            size = self._size_due()
            if not size:
                return False
            integrator.begin_batch(size)
        started, before = time.perf_counter(), integrator.log.n_bulk
        try:
            if self._pool is not None:
                self._on_workers(self._pool)
            elif self._evaluate is not None:
                self._here(self._evaluate)
        finally:
            loop.meter.bulk += time.perf_counter() - started
            loop.meter.n_bulk += integrator.log.n_bulk - before
        return True

    def _note_costs(self) -> None:
        """Write down what evaluations cost, where that is new: what is decided by it is then decided so in a replay."""
        course, found = self._loop.integrator.course, self._loop.meter.costs()
        known = course.costs
        if found is None or (known is not None and _is_like(known, found)):
            return
        course.price(found)

    def _size_due(self) -> int:
        loop, integrator = self._loop, self._loop.integrator
        course = integrator.course
        costs, at_record = course.costs, course.last_record.n_evals == course.n_evals
        # An estimate takes as long as many evaluations: it is asked where one has just been made, or at the very end.
        if costs is None or not (at_record or course.n_modelled == loop.modelled):
            return 0
        seconds = loop.seconds_left()
        if loop.is_open_ended and math.isinf(seconds):
            seconds = loop.grace_left()
        points = math.inf if loop.is_open_ended else loop.left()
        return integrator.strategy.next_batch_size(Room(points, loop.modelled_left(), seconds), costs)

    def _chunk(self) -> int:
        """Number of points between two looks at the clock."""
        costs = self._loop.integrator.course.costs
        return 1 if costs is None else int(np.clip(CHUNK_SECONDS / costs.per_point, 1, LARGEST_CHUNK))

    # -- in this process ----------------------------------------------------------------------------------------------

    def _here(self, evaluate: Callable[..., Array]) -> None:
        integrator = self._loop.integrator
        while True:
            first, X = integrator.open_batch(self._chunk())
            if not len(X):
                return
            values = np.full(len(X), np.nan)
            try:
                evaluate(X, out=values)
            except LikelihoodError as error:
                self._keep_done(first, values)
                self._faced(evaluate, error)
                continue
            except KeyboardInterrupt:
                self._keep_done(first, values)
                raise Interrupted from None
            except BaseException:
                self._keep_done(first, values)
                raise
            integrator.tell_batch(first, values)
            self._failures_in_a_row = 0
            self._loop.report()

    def _keep_done(self, first: int, values: Array) -> None:
        """Tell the values (m,) up to the first that is not there; a vectorised call has filled in none or all."""
        sound = values < np.inf  # neither NaN nor +inf
        n = len(values) if np.all(sound) else int(np.argmin(sound))
        if n:
            self._loop.integrator.tell_batch(first, values[:n])
            self._failures_in_a_row = 0

    def _faced(self, evaluate: Callable[..., Array], error: LikelihoodError) -> None:
        """Try the first open point by itself, as often as ``retries`` says; leave it out, or raise."""
        integrator, options = self._loop.integrator, self._loop.options
        first, X = integrator.open_batch(1)
        value = np.full(1, np.nan)
        attempts = options.retries + (1 if options.vectorized else 0)  # of several points, which one was at fault?
        for _ in range(attempts if options.retries or options.on_error != "raise" else 0):
            try:
                evaluate(X, out=value)
                integrator.tell_batch(first, value)
                return
            except LikelihoodError as again:
                error = again
        self._left_out(first, error)

    def _left_out(self, first: int, error: LikelihoodError) -> None:
        """Count the failure of one point; raise where that is wanted, or where too many fail."""
        if self._loop.options.on_error == "raise":
            raise error
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= self._loop.faults.most_in_a_row:
            raise LikelihoodError(
                f"{self._failures_in_a_row} evaluations failed one after another; the last: {error}", error.point
            ) from error
        self._loop.integrator.tell_batch(first, np.full(1, np.nan))

    # -- on workers ---------------------------------------------------------------------------------------------------

    def _on_workers(self, pool: Pool) -> None:
        """Hand chunks to workers, and take what they return in any order."""
        integrator = self._loop.integrator
        first, X = integrator.open_batch()
        n = int(np.clip(math.ceil(len(X) / (TASKS_PER_WORKER * pool.size)), 1, self._chunk()))
        waiting = [(first + i, X[i : i + n]) for i in range(0, len(X), n)]
        under_way: dict[int, tuple[int, Array]] = {}
        number = 0
        while waiting or under_way:
            while waiting and len(under_way) < pool.size:
                under_way[number] = waiting.pop(0)
                pool.submit(number, under_way[number][1])
                number += 1
            try:
                came = pool.wait(None)
            except KeyboardInterrupt:
                raise Interrupted from None
            for task, outcomes in came:
                begin, points = under_way.pop(task)
                self._take(begin, points, outcomes)
            self._loop.report()
        if len(integrator.strategy.batch[0]):  # points between others that were told before
            self._on_workers(pool)

    def _take(self, begin: int, points: Array, outcomes: list[float | Fault]) -> None:
        """Tell the values of one task, failures as NaN."""
        values = np.array([np.nan if isinstance(outcome, Fault) else outcome for outcome in outcomes])
        faults = [(i, outcome) for i, outcome in enumerate(outcomes) if isinstance(outcome, Fault)]
        if faults and self._loop.options.on_error == "raise":
            i, fault = faults[0]
            if i:
                self._loop.integrator.tell_batch(begin, values[:i])
            raise LikelihoodError(fault.message, points[i])
        self._loop.integrator.tell_batch(begin, values)


def _is_like(known: Costs, found: Costs) -> bool:
    """Whether costs are known as well as they need be."""
    if math.isnan(known.bulk) != math.isnan(found.bulk):
        return False
    pairs = [(known.own, found.own), (known.per_point, found.per_point)]
    return all(a < NEW_PRICE * b and b < NEW_PRICE * a for a, b in pairs)
