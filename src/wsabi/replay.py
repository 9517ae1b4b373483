"""Replay: let the events of an earlier run happen again, and so come into the state in which it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from wsabi._core.types import Array, Streams
from wsabi.adaptive.bulk.planning import Costs
from wsabi.adaptive.search.ascent import Summit
from wsabi.course import Course
from wsabi.ledger import (
    Asked,
    BatchBegun,
    BatchTold,
    Climbed,
    Climbing,
    Event,
    Failed,
    Ledger,
    Planned,
    Priced,
    Reseeded,
    Told,
)
from wsabi.priors.chart import Chart, chart
from wsabi.result import Result
from wsabi.runs.journal import Journal, Snapshot
from wsabi.settings import Settings

__all__ = [
    "Begin", "continued", "is_same_problem", "repeat", "replayed", "resumed", "retold", "retold_note", "retraced",
]  # fmt: skip

Begin = Callable[[Streams], Course]  # a new course, of some prior and settings, with that seed

NOT_REPLAYED = (
    "The run given as start= could not be replayed here (another machine or another version): its "
    "evaluations were taken as told, its searches and check points were not."
)


def replayed(begin: Begin, ledger: Ledger, snapshot: Snapshot | None = None) -> Course | None:
    """The course after all events of a ledger have happened again, which goes on; None where they take another course.

    From a snapshot on, where there is one and the events after it follow from it.
    """
    course = retraced(begin, ledger, snapshot)
    if course is not None:
        course.release_clock()
    return course


def retraced(begin: Begin, ledger: Ledger, snapshot: Snapshot | None) -> Course | None:
    """The same, with a clock that stands at the last event."""
    course = begin(ledger.origin)
    n_done = 0
    if snapshot is not None:
        try:
            course.recall(snapshot.data, ledger.events[: snapshot.n_events])
        except ValueError:
            return retraced(begin, ledger, None)
        n_done = snapshot.n_events
    if repeat(course, ledger.events[n_done:]):
        return course
    return retraced(begin, ledger, None) if n_done else None


def repeat(course: Course, events: Iterable[Event]) -> bool:
    """Let events happen again; False where the course takes another way. Its clock then stands at the last of them."""
    return all(_repeated(course, event) for event in events)


def _repeated(course: Course, event: Event) -> bool:
    """Let one event happen again; False where it takes another course."""
    if isinstance(event, Asked):
        return bool(np.array_equal(course.ask(len(event.X)), event.X))
    if isinstance(event, Planned):
        course.plan(event.budget, event.tol)
    elif isinstance(event, Told):
        course.hold_clock(event.seconds)
        course.take(event)
    elif isinstance(event, Climbing):
        climb = course.wanted_climb(2**31)
        if climb is None:
            return False
        course.begin_climb_step(climb, event.u)
    elif isinstance(event, Climbed):
        course.end_climb(None if event.mean is None or event.cov is None else Summit(event.mean, event.cov))
    elif isinstance(event, Reseeded):
        course.reseed(event.origin)
    elif isinstance(event, Priced):
        course.price(Costs(event.own, event.call, event.bulk))
    elif isinstance(event, BatchBegun):
        course.begin_batch(event.n)
    elif isinstance(event, BatchTold):
        U, _ = course.strategy.batch
        if not np.array_equal(U[event.first : event.first + len(event.U)], event.U):
            return False
        course.hold_clock(event.seconds)
        course.take_batch(event)
    else:
        course.append(event)
    return True


def retold(begin: Begin, ledger: Ledger) -> Course:
    """A new course with the seed and the evaluations of a ledger taken as told, whatever they were made for."""
    course = begin(ledger.origin)
    told = [event for event in ledger.events if isinstance(event, Told)]
    if told:
        X, U = np.concatenate([one.X for one in told]), np.concatenate([one.U for one in told])
        if not _maps(course.chart, U, X):
            U = course.to_base(X)
        course.hold_clock(told[-1].seconds)
        course.take(Told(X, U, np.concatenate([one.log_l for one in told]), told[-1].seconds))
        course.release_clock()
    for event in ledger.events:
        if isinstance(event, Failed):
            course.log.append(event)
    return course


def retold_note(versions: Mapping[str, str]) -> str:
    """What to say of a run that was begun with these versions, and could not be replayed with others."""
    return (
        f"The run was begun with wsabi {versions['wsabi']}, NumPy {versions['numpy']} and SciPy "
        f"{versions['scipy']} on {versions['machine']}, and could not be replayed with other versions or on "
        "another machine: its evaluations were taken as told, its searches and check points were not."
    )


def resumed(begin: Begin, journal: Journal) -> Course:
    """The course of the run in a journal, which goes on there: by replay, or else with its evaluations as told."""
    past = journal.past
    if past is None:
        course = begin(journal.origin)
    else:
        again = replayed(begin, past.ledger, journal.snapshot())
        if again is not None:
            course = again
            for event in course.log.put_back:
                course.log.append(event)
            journal.write(course.log.events)
        else:
            course = retold(begin, past.ledger)
            journal.begin_course(course.log.ledger, retold=past.run.get("versions"))
        versions = journal.get("retold")
        if versions is not None:
            course.notes.append(retold_note(versions))
    course.journal = journal
    return course


def continued(course: Course, begin: Begin, result: Result, rng: Streams | None, *, is_same: bool) -> Course:
    """The course that goes on from a result: by replay where the problem is the same, or with its points as told.

    Parameters
    ----------
    course : what takes the points, where they are told.
    rng : what follows is drawn from it; None for the run's own stream.
    is_same : whether the result may be replayed: of the same prior and settings, and nothing has happened here.
    """
    if is_same and result.ledger is not None:
        again = replayed(begin, result.ledger)
        if again is not None:
            if rng is not None:
                again.reseed(rng)
            return again
        course = begin(course.log.origin)
        course.notes.append(NOT_REPLAYED)
    points, base = result.points, result.base_points
    if not _maps(course.chart, base, points):  # of another prior, or another measure
        base = course.to_base(points)
    course.take(Told(points, base, result.log_likelihoods, course.seconds))
    return course


def _maps(space: Chart, base: Array, points: Array) -> bool:
    """Whether ``base`` (N, D) are the base coordinates of ``points`` (N, D) under a prior."""
    try:
        return np.array_equal(space.to_user(base), points)
    except ValueError:  # outside the box of a uniform prior
        return False


def is_same_problem(prior: Any, settings: Settings, space: Chart, result: Result) -> bool:
    """Whether a result is of this prior, with its chart, and these settings."""
    if result.settings != settings or not _maps(space, result.base_points, result.points):
        return False
    if result.prior is prior:
        return True
    if space.target is not None:  # its weight is a function, of which one cannot tell that it is the same
        return False
    other, mine = chart(result.prior, gaussian=settings.measure == "adaptive").measure, space.measure
    return (
        type(other) is type(mine)
        and np.array_equal(other.mean, mine.mean)
        and np.array_equal(other.cov, mine.cov)
        and np.array_equal(other.log_pdf(result.base_points), mine.log_pdf(result.base_points))
    )
