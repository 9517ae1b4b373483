"""The ledger: every event of a run, in order. The state of the run follows from it by replay.

A run is deterministic given its seed and its events: the random numbers of a point come from a stream of their own,
keyed by the seed and the number of points asked for before. An :class:`~wsabi.Integrator` that meets the same events
again is in the same state, bit for bit on one machine. That is how `integrate(start=result)` goes on, and how a journal
is resumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from wsabi._core.types import Array, Streams

__all__ = [
    "Action", "Asked", "BatchBegun", "BatchTold", "Climbed", "Climbing", "Evaluation", "Event", "Failed",
    "GivenUp", "Ledger", "Logbook", "Observation", "Planned", "Postponed", "Priced", "Purpose", "Reseeded",
    "Told",
]  # fmt: skip


class Purpose(Protocol):
    """What an evaluation is for; it travels with the point, from the strategy that asked for it and back."""

    @property
    def label(self) -> str:
        """In a word: "search 3", "refine", "check", "image"."""
        ...


@dataclass(frozen=True)
class Action:
    """An evaluation to make: u (D,) in base coordinates, and what it is for."""

    u: Array
    purpose: Purpose


@dataclass(frozen=True, eq=False)
class Observation:
    """log ℓ at u (D,) in base coordinates, and what the evaluation was for; None where nobody had asked for it."""

    u: Array
    log_l: float
    purpose: Purpose | None


@dataclass(frozen=True)
class Planned:
    """The run was told how many evaluations it may reach, and the error of log Z that will do."""

    budget: int
    tol: float


@dataclass(frozen=True)
class Asked:
    """Points X (n, D), in the user's coordinates, were given out; what each is for."""

    X: Array
    purposes: tuple[str, ...]


@dataclass(frozen=True)
class Told:
    """Values log ℓ (N,) were told at X (N, D), U (N, D) in base coordinates, after so many seconds of the run."""

    X: Array
    U: Array
    log_l: Array
    seconds: float


@dataclass(frozen=True)
class Failed:
    """The evaluation at x (D,) failed for that reason, after so many seconds of the run."""

    x: Array
    reason: str
    seconds: float


@dataclass(frozen=True)
class GivenUp:
    """Points X (N, D) that had been asked for will not be told; all of them where X is None."""

    X: Array | None


@dataclass(frozen=True)
class Postponed:
    """Points X (N, D) that were asked for and not evaluated come first when points are next asked for."""

    X: Array


@dataclass(frozen=True)
class Climbing:
    """A climb by gradients evaluates at x (D,), u (D,) in base coordinates, on behalf of a search."""

    x: Array
    u: Array


@dataclass(frozen=True)
class Climbed:
    """A climb has ended: mode (D,) and inverse curvature (D, D) in base coordinates; None where it found no mode."""

    mean: Array | None
    cov: Array | None


@dataclass(frozen=True)
class Reseeded:
    """The run went on with another seed."""

    origin: Streams


@dataclass(frozen=True)
class BatchBegun:
    """A batch of n bulk points was drawn; which they are follows from the state."""

    n: int


@dataclass(frozen=True)
class BatchTold:
    """Values log ℓ (m,) of the points of the batch under way from number ``first`` on, U (m, D) in base coordinates.

    NaN stands for an evaluation that failed. They were told after so many seconds of the run.
    """

    first: int
    U: Array
    log_l: Array
    seconds: float


@dataclass(frozen=True)
class Priced:
    """What evaluations were found to cost, in seconds: the engine's own work, the likelihood, and that in batches."""

    own: float
    call: float
    bulk: float


Event = (
    Planned
    | Asked
    | Told
    | Failed
    | GivenUp
    | Postponed
    | Climbing
    | Climbed
    | Reseeded
    | BatchBegun
    | BatchTold
    | Priced
)


@dataclass(frozen=True)
class Evaluation:
    """One evaluation: x (D,) in the user's coordinates, what it was for, and log ℓ; None while it is not told.

    ``asked`` and ``told`` are numbers of events; ``asked`` is None for a point that nobody had asked for. ``failure``
    is the reason of the last failed attempt. ``action`` is what the strategy had asked for, while the run is alive.
    """

    x: Array
    purpose: str
    log_l: float | None = None
    asked: int | None = None
    told: int | None = None
    failure: str | None = None
    u: Array | None = field(default=None, repr=False)
    action: Action | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Ledger:
    """The seed of a run, and its events in order."""

    origin: Streams
    events: tuple[Event, ...] = field(repr=False)

    @property
    def evaluations(self) -> list[Evaluation]:
        """Every evaluation, told or under way, in the order in which they were first met."""
        return list(Logbook(self.origin, self.events).evaluations)


class Logbook:
    """A ledger that grows: events so far, and the evaluations that follow from them, by their points.

    This is the one place where a point is recognised by its coordinates. Bulk points are counted and not remembered
    one by one: there may be a million of them, and each is drawn once.
    """

    def __init__(self, origin: Streams, events: Iterable[Event] = ()) -> None:
        self.origin = origin
        self.events: list[Event] = []
        self.n_asked = 0  # evaluations that were ever asked for, each counted once
        self.n_bulk = self.n_bulk_failed = 0  # bulk points that have a value, and that failed
        self._by_point: dict[bytes, Evaluation] = {}
        self._waiting: dict[bytes, None] = {}  # asked for and neither told nor given up, in order
        self._failures: dict[bytes, None] = {}  # points at which an evaluation failed
        self._first: list[bytes] = []  # postponed: first to be given out again
        for event in events:
            self.append(event)

    @property
    def ledger(self) -> Ledger:
        """What has happened so far, for a result."""
        return Ledger(self.origin, tuple(self.events))

    @property
    def evaluations(self) -> Iterable[Evaluation]:
        """Every evaluation, in the order in which they were first met."""
        return self._by_point.values()

    @property
    def pending(self) -> list[Evaluation]:
        """Evaluations that are under way, in the order in which they were asked for."""
        return [self._by_point[key] for key in self._waiting]

    @property
    def failed(self) -> list[Evaluation]:
        """Evaluations that failed and will not be tried again."""
        return [
            one
            for key, one in ((key, self._by_point[key]) for key in self._failures)
            if one.told is None and key not in self._waiting and key not in self._first
        ]

    @property
    def put_back(self) -> list[Event]:
        """What makes a run that was killed go on: points under way come first again, and climbs repeat their last."""
        by_climbs = [one for one in self.pending if self._is_of_climb(one)]
        others = [one.x for one in self.pending if not self._is_of_climb(one)]
        events: list[Event] = [Postponed(np.array(others))] if others else []
        return events + ([GivenUp(np.array([one.x for one in by_climbs]))] if by_climbs else [])

    @property
    def last_told_is_of_climb(self) -> bool:
        """Whether the last value told is of a climb."""
        told = next((event for event in reversed(self.events) if isinstance(event, Told)), None)
        known = None if told is None else self.find(told.X[-1])
        return known is not None and self._is_of_climb(known)

    def _is_of_climb(self, one: Evaluation) -> bool:
        return one.asked is not None and isinstance(self.events[one.asked], Climbing)

    @property
    def postponed(self) -> list[Evaluation]:
        """Evaluations that come first when points are next asked for."""
        return [self._by_point[key] for key in self._first]

    @property
    def actions(self) -> list[tuple[Array, Action]]:
        """Points (D,) that were asked for and have no value, and the actions behind them: events do not hold those."""
        return [(one.x, one.action) for one in self._by_point.values() if one.told is None and one.action is not None]

    def give_back(self, actions: Sequence[tuple[Array, Action]]) -> None:
        """Put the actions behind their points again."""
        for x, action in actions:
            key = x.tobytes()
            self._by_point[key] = replace(self._by_point[key], u=action.u, action=action)

    def find(self, x: Array) -> Evaluation | None:
        """The evaluation at x (D,), or None."""
        return self._by_point.get(x.tobytes())

    def append(self, event: Event, actions: Sequence[Action | None] | None = None) -> None:
        """Let an event happen; ``actions`` are those behind the points of an :class:`Asked` or :class:`Climbing`."""
        number = len(self.events)
        if isinstance(event, Asked):
            behind = [None] * len(event.X) if actions is None else actions
            for x, purpose, action in zip(event.X, event.purposes, behind, strict=True):
                self._ask(x, purpose, action, number)
        elif isinstance(event, Climbing):
            action = actions[0] if actions else None
            self._ask(event.x, "search" if action is None else action.purpose.label, action, number)
        elif isinstance(event, Told):
            for x, u, value in zip(event.X, event.U, event.log_l, strict=True):
                self._tell(x, u, float(value), number)
        elif isinstance(event, Failed):
            # Unknown only where a run is told again whose questions are not known: it is then a failure for good.
            known = self.find(event.x) or Evaluation(event.x, "told")
            self._by_point[event.x.tobytes()] = replace(known, failure=event.reason)
            self._failures[event.x.tobytes()] = None
        elif isinstance(event, GivenUp):
            keys = [] if event.X is None else [x.tobytes() for x in event.X]
            for key in list(self._waiting) if event.X is None else keys:
                self._waiting.pop(key, None)
            self._first = [key for key in self._first if key not in keys]
        elif isinstance(event, Postponed):
            keys = [x.tobytes() for x in event.X]
            for key in keys:
                self._waiting.pop(key, None)
            self._first[:0] = keys
        elif isinstance(event, BatchBegun):
            self.n_asked += event.n
        elif isinstance(event, BatchTold):
            n_failed = int(np.isnan(event.log_l).sum())
            self.n_bulk += len(event.log_l) - n_failed
            self.n_bulk_failed += n_failed
        self.events.append(event)

    def _ask(self, x: Array, purpose: str, action: Action | None, number: int) -> None:
        key = x.tobytes()
        known = self._by_point.get(key)
        if known is None:
            u = None if action is None else action.u
            self._by_point[key] = Evaluation(x, purpose, asked=number, u=u, action=action)
            self.n_asked += 1
        if key in self._first:
            self._first.remove(key)
        self._waiting[key] = None

    def _tell(self, x: Array, u: Array, value: float, number: int) -> None:
        key = x.tobytes()
        known = self._by_point.get(key)
        if known is None:
            known = Evaluation(x, "told", asked=None)
        if known.told is None:
            self._by_point[key] = replace(known, log_l=value, told=number, u=u)
        self._waiting.pop(key, None)
        if key in self._first:
            self._first.remove(key)


def seeded(origin: Streams, events: Iterable[Event]) -> Streams:
    """The streams that the next event draws from: those of the last seed that the run went on with."""
    for event in events:
        if isinstance(event, Reseeded):
            origin = event.origin
    return origin


def stacked(points: Sequence[Array], dim: int) -> Array:
    """Points (D,) as rows of one array, (n, D), for none of them too."""
    return np.array(points, dtype=np.float64).reshape(-1, dim)
