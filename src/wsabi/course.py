"""What the events of a run have led to: :class:`Course`."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wsabi._core.threads import single_threaded
from wsabi._core.types import Array, Streams
from wsabi.adaptive.bulk.planning import Costs
from wsabi.adaptive.search.ascent import Summit
from wsabi.errors import JournalError, NumericalError
from wsabi.gp.kernel import SquaredExponential
from wsabi.ledger import (
    Action,
    Asked,
    BatchBegun,
    BatchTold,
    Climbed,
    Climbing,
    Event,
    Failed,
    GivenUp,
    Logbook,
    Observation,
    Planned,
    Postponed,
    Priced,
    Reseeded,
    Told,
    stacked,
)
from wsabi.priors.chart import Chart
from wsabi.result import Record
from wsabi.runs.journal import Journal
from wsabi.runs.snapshot import packed, unpacked
from wsabi.settings import Settings
from wsabi.strategies.adaptive import AdaptiveStrategy
from wsabi.strategies.plain import PlainStrategy
from wsabi.strategies.protocol import Climb, Strategy

__all__ = ["Course"]

# Random streams are numbered by these and by how many evaluations were ever asked for: what a point is drawn from does
# not depend on the order of the answers, on points that were put off, or on results that were asked for in between.
FOR_POINTS, FOR_CLIMBS, FOR_BATCHES = range(10, 13)

# Seconds of the library's own time after which the journal gets another snapshot, so that a run is resumed in about
# that time; and how many times as long as writing one took, so that snapshots cost a twentieth of the own time at most.
SNAPSHOT_SECONDS, SNAPSHOT_SHARE = 5.0, 20.0
LARGEST = 24 * 2**20  # bytes of a snapshot before it is compressed: a file of 20,000 evaluations stays below 50 MB


class Course:
    """A run from its first event: logbook, strategy, values told, history and clock.

    Every change is an event, which is added to the logbook and, where there is a journal, written down before it is
    used. The same events give the same course, bit for bit on one machine.

    Parameters
    ----------
    origin : the seed.
    usual_budget : evaluations that the strategy expects until it is told otherwise.

    Attributes
    ----------
    points, base, log_l : (N, D), (N, D) and (N,): values told, in the user's and in base coordinates, in their order;
        bulk points are not among them.
    noise : largest difference between two values told for one point.
    notes : what a result is to say of how the run came about.
    journal : the file that events are written to; None for none.
    extra_began : seconds of the run before its first batch of bulk points, or before it went past the usual number of
        evaluations; None before. A run without any limit may take as long again.
    costs : what evaluations cost, as it was last noted; None before.
    """

    def __init__(self, chart: Chart, settings: Settings, origin: Streams, usual_budget: int) -> None:
        self.chart = chart
        self.log = Logbook(origin)
        self.strategy = _strategy(chart, settings, origin, usual_budget)
        self.points = stacked([], chart.dim)
        self.base = stacked([], chart.dim)
        self.log_l = np.empty(0)
        self._batches: list[BatchTold] = []
        self.noise = 0.0
        self.costs: Costs | None = None
        self.extra_began: float | None = None
        self.notes: list[str] = []
        self.history: list[Record] = []
        self.journal: Journal | None = None
        self._streams = origin  # what the next event draws from
        self._next_record = 1
        self._climb: tuple[Climb, int] | None = None  # under way, and how many values were told before it
        self._replayed_seconds: float | None = None  # while events are replayed, the time at which they happened
        self._started = time.perf_counter()
        self._own_seconds = 0.0  # that strategy and records have taken since there was a snapshot
        self._next_snapshot = SNAPSHOT_SECONDS

    def __getstate__(self) -> dict[str, Any]:
        # Another process has another zero of perf_counter; and only one may write to a journal.
        return {**self.__dict__, "_started": self.seconds, "journal": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._started = time.perf_counter() - state["_started"]

    @property
    def n_evals(self) -> int:
        """Number of values told, those of bulk points included."""
        return self.n_modelled + self.log.n_bulk

    @property
    def n_modelled(self) -> int:
        """Number of values told to the strategy one by one."""
        return len(self.log_l)

    @property
    def has_ended_batch(self) -> bool:
        """Whether the last event is the last value of a batch of bulk points."""
        kinds = Told, BatchTold
        last = next((event for event in reversed(self.log.events) if isinstance(event, kinds)), None)
        return isinstance(last, BatchTold) and not len(self.strategy.batch[0])

    def bulk(self) -> tuple[Array, Array]:
        """U (M, D) in base coordinates and log ℓ (M,) of the bulk points that have a value."""
        U = np.concatenate([stacked([], self.chart.dim), *(told.U for told in self._batches)])
        log_l = np.concatenate([np.empty(0), *(told.log_l for told in self._batches)])
        return (U, log_l) if not np.any(np.isnan(log_l)) else (U[~np.isnan(log_l)], log_l[~np.isnan(log_l)])

    # -- the clock ----------------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Wall-clock time since the run began, without the pauses between a result and what goes on from it."""
        return time.perf_counter() - self._started if self._replayed_seconds is None else self._replayed_seconds

    def hold_clock(self, seconds: float) -> None:
        """Let the clock stand at the time of an event that is replayed."""
        self._replayed_seconds = seconds

    def release_clock(self) -> None:
        """Let the clock run again, from the time of the last event replayed."""
        self._started = time.perf_counter() - (self._replayed_seconds or 0.0)
        self._replayed_seconds = None

    @contextlib.contextmanager
    def _own_time(self) -> Iterator[None]:
        """Count the seconds inside as the library's own."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self._own_seconds += time.perf_counter() - begun

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def keep(self, least: float | None = None) -> None:
        """Write a snapshot to the journal, if there is one, and if enough of the library's own time has gone by.

        Parameters
        ----------
        least : seconds; None for as many as a run under way waits for.
        """
        due = self._next_snapshot if least is None else least
        if self.journal is None or self._climb is not None or self._own_seconds < due:
            return
        begun = time.perf_counter()
        # What is too large stays out: models are smaller when they are built again, and bulk points, which may be a
        # million, are replayed in no time.
        with contextlib.suppress(JournalError, OverflowError, TypeError):
            data = packed(self._memory(), self.strategy.given, most=LARGEST)
            self.journal.keep_snapshot(len(self.log.events), data)
        self._own_seconds = 0.0
        self._next_snapshot = max(SNAPSHOT_SECONDS, SNAPSHOT_SHARE * (time.perf_counter() - begun))

    def _memory(self) -> dict[str, Any]:
        """All that does not follow from the events without the strategy, but for what a new course has."""
        return {
            "points": self.points, "base": self.base, "log_l": self.log_l, "noise": self.noise,
            "history": self.history, "next_record": self._next_record, "streams": self._streams,
            "seconds": self.seconds, "extra_began": self.extra_began, "actions": self.log.actions,
            "strategy": self.strategy.memory,
        }  # fmt: skip

    def recall(self, data: bytes, events: Sequence[Event]) -> None:
        """Come into the state of a snapshot, which is that after these events, with the clock of the last of them.

        Raises
        ------
        ValueError
            If the snapshot cannot be read. The course is then as it was.
        """
        memory = unpacked(data, self.strategy.given)
        try:
            log = Logbook(self.log.origin, events)
            log.give_back(memory["actions"])
            self.points, self.base, self.log_l = memory["points"], memory["base"], memory["log_l"]
            self.noise, self.history, self._next_record = memory["noise"], memory["history"], memory["next_record"]
            self._streams, self.extra_began, seconds = memory["streams"], memory["extra_began"], memory["seconds"]
            self.strategy.recall(memory["strategy"])
        except (LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"the snapshot is of another course ({error})") from error
        self.log = log
        self._batches = [event for event in events if isinstance(event, BatchTold)]
        prices = [Costs(event.own, event.call, event.bulk) for event in events if isinstance(event, Priced)]
        self.costs = prices[-1] if prices else None
        self.hold_clock(seconds)

    # -- events -------------------------------------------------------------------------------------------------------

    def append(self, event: Event, actions: Sequence[Action | None] | None = None) -> None:
        """Let an event happen that only the logbook takes note of, and write it down."""
        self.log.append(event, actions)
        fault = self.write()
        if fault is not None:
            raise fault

    def write(self) -> JournalError | None:
        """Bring the journal up to date; why it could not be done, if it could not."""
        try:
            if self.journal is not None:
                self.journal.write(self.log.events)
        except JournalError as fault:
            return fault
        return None

    def plan(self, budget: int, tol: float) -> None:
        """Tell the strategy how many evaluations the run may reach, and the error of log Z that will do."""
        planned = Planned(budget, tol)
        if planned != next((event for event in reversed(self.log.events) if isinstance(event, Planned)), None):
            self.append(planned)
            self.strategy.plan(budget, tol)

    def price(self, costs: Costs) -> None:
        """Take note of what evaluations cost; what is decided by it is decided in the same way in a replay."""
        self.append(Priced(costs.own, costs.call, costs.bulk))
        self.costs = costs

    def reseed(self, origin: Streams) -> None:
        """Draw from another seed from now on."""
        self._streams = origin
        self.append(Reseeded(origin))

    def ask(self, n: int) -> Array:
        """The next n points, (n, D)."""
        first = self.log.postponed[:n]
        X, purposes = [one.x for one in first], [one.purpose for one in first]
        actions: list[Action | None] = [one.action for one in first]
        # What failed counts as under way for good: its neighbourhood is then not asked for at once.
        waiting = self.log.failed + self.log.pending + first
        under_way = [one.action for one in waiting if one.action is not None]
        while len(X) < n:
            rng = self._streams.stream(FOR_POINTS, self.log.n_asked + len(X) - len(first))
            with self._own_time():
                action = self.strategy.ask(under_way, rng)
            under_way.append(action)
            actions.append(action)
            purposes.append(action.purpose.label)
            X.append(self.chart.to_user(action.u[None, :])[0] + 0.0)
        asked = Asked(stacked(X, self.chart.dim), tuple(purposes))
        try:
            self.append(asked, actions)
        except JournalError:
            self.log.append(Postponed(asked.X))
            raise
        return asked.X.copy()

    def take(self, told: Told) -> None:
        """Let values be told: the strategy gets those at new points, the others tell how noisy the likelihood is."""
        log_weights = self.chart.log_weight(told.U)
        base, values = np.concatenate([self.base, told.U]), np.concatenate([self.log_l, told.log_l])
        new: list[Observation] = []
        for i, x in enumerate(told.X):
            number = self.n_modelled + i
            alike = np.flatnonzero(base[: number + 1, 0] == base[number, 0])
            earliest = int(alike[np.argmax(np.all(base[alike] == base[number], axis=1))])
            if earliest < number and values[earliest] != values[number]:
                self.noise = max(self.noise, abs(float(values[earliest] - values[number])))
            elif earliest == number:
                known = self.log.find(x)
                purpose = None if known is None or known.action is None else known.action.purpose
                new.append(Observation(told.U[i], float(told.log_l[i] + log_weights[i]), purpose))
        self.log.append(told)  # what has been evaluated is safe from here on
        fault = self.write()
        self.points = np.concatenate([self.points, told.X])
        self.base, self.log_l = base, values
        with self._own_time():
            if new:
                self.strategy.tell(new)
            self._record()
        if fault is not None:
            raise fault
        self.keep()

    def fail(self, X: Array, reason: str, *, again: bool) -> None:
        """Let the evaluations at X (N, D) fail; ``again`` has them come first when points are next asked for."""
        for x in X:
            self.append(Failed(x, reason, self.seconds))
        if not again:
            self.append(GivenUp(X))
            return
        waiting = {one.x.tobytes() for one in self.log.pending}
        back = [x for x in X if x.tobytes() in waiting]
        if back:
            self.append(Postponed(np.array(back)))

    def begin_batch(self, n: int) -> None:
        """Draw a batch of n bulk points."""
        rng = self._streams.stream(FOR_BATCHES, self.log.n_asked)
        with self._own_time():
            self.strategy.begin_batch(n, rng)
        self.begin_extra_time()
        self.append(BatchBegun(n))

    def begin_extra_time(self) -> None:
        """Take note of when the run went past what its models learn of."""
        if self.extra_began is None:
            self.extra_began = self.seconds

    @single_threaded
    def take_batch(self, told: BatchTold) -> None:
        """Let values of bulk points be told; with the last of a batch there is a new estimate."""
        self.log.append(told)  # what has been evaluated is safe from here on
        fault = self.write()
        self._batches.append(told)
        with self._own_time():
            self.strategy.tell_batch(told.first, told.log_l + self.chart.log_weight(told.U))
            if not len(self.strategy.batch[0]):
                self._next_record = self.n_evals
                self._record()
        if fault is not None:
            raise fault
        self.keep()

    def to_base(self, points: Array) -> Array:
        """Base coordinates: remembered for points that were met before, computed for others."""
        known = [self.log.find(x) for x in points]
        base = [None if one is None else one.u for one in known]
        foreign = [i for i, u in enumerate(base) if u is None]
        computed = dict(zip(foreign, self.chart.to_base(points[foreign]), strict=True)) if foreign else {}
        return np.array([computed[i] if u is None else u for i, u in enumerate(base)])

    def _record(self) -> None:
        """Add to the history, at every sample to begin with and then at every twentieth more: Z costs O(N²D)."""
        if self.n_evals < self._next_record:
            return
        try:
            estimate = self.strategy.estimate(self.noise)
        except NumericalError:  # a result will say so; the values told are safe
            return
        if estimate is None:
            return
        self._next_record = self.n_evals + max(1, self.n_evals // 20)
        self.history.append(Record(self.n_evals, self.seconds, estimate.log_z, estimate.log_z_std))

    # -- climbs by gradients ------------------------------------------------------------------------------------------

    def begin_climb_step(self, climb: Climb, u: Array) -> Array:
        """Take note that a climb evaluates at u (D,), on behalf of a search; the point (D,) in user's coordinates."""
        x = self.chart.to_user(u[None, :])[0] + 0.0
        if self._climb is None:
            self._climb = (climb, self.n_modelled)
        self.append(Climbing(x, u), [Action(u, climb.purpose)])
        return np.asarray(x)

    def wanted_climb(self, left: int) -> Climb | None:
        """The climb to make next with ``left`` evaluations left: from its start once more, if one was interrupted."""
        if self._climb is None:
            return self.strategy.wanted_climb(left)
        wanted, n_before = self._climb
        return replace(wanted, limit=min(wanted.limit, (left + self.n_modelled - n_before) // 2))

    @single_threaded
    def end_climb(self, summit: Summit | None) -> None:
        """Let the search that climbed go on from the mode it has found, or from its points where it found none."""
        rng = self._streams.stream(FOR_CLIMBS, self.log.n_asked)
        with self._own_time():
            self.strategy.climbed(summit, rng)
        self._climb = None
        self.append(Climbed(None, None) if summit is None else Climbed(summit.mean, summit.cov))

    def value_at(self, u: Array) -> float | None:
        """log ℓ told at base coordinates u (D,), or None."""
        here = np.flatnonzero(np.all(self.base == u, axis=1))
        return float(self.log_l[here[0]]) if len(here) else None

    # -- what a callback sees -----------------------------------------------------------------------------------------

    @property
    def last_record(self) -> Record:
        """The last estimate made on the way; of NaN while there is none."""
        return self.history[-1] if self.history else Record(0, 0.0, math.nan, math.nan)

    @property
    def phase(self) -> str:
        """What the last point that was asked for is for."""
        kinds = Asked | Climbing | BatchBegun
        asked = next((event for event in reversed(self.log.events) if isinstance(event, kinds)), None)
        if isinstance(asked, BatchBegun):
            return "bulk"
        return "search" if isinstance(asked, Climbing) else asked.purposes[-1] if asked is not None else ""


def _strategy(chart: Chart, settings: Settings, origin: Streams, usual_budget: int) -> Strategy:
    """The algorithm that the settings choose."""
    if settings.measure == "adaptive":
        return AdaptiveStrategy(chart, settings, origin, usual_budget)
    return PlainStrategy(chart, settings, origin.stream(), _base_kernel(settings.kernel, chart))


def _base_kernel(kernel: SquaredExponential | None, space: Chart) -> SquaredExponential | None:
    """A kernel given in the user's units, in base coordinates."""
    if kernel is None:
        return None
    if kernel.lengthscales.size not in (1, space.dim):
        raise ValueError(f"kernel has {kernel.lengthscales.size} length-scales for {space.dim} dimensions.")
    scale = np.ones(space.dim) if space.affine is None else space.affine[1]
    return SquaredExponential(kernel.scale, kernel.lengthscales / scale)
