"""A run that evaluates on workers: :func:`in_parallel`."""

from __future__ import annotations

import time

import numpy as np

from wsabi._core.types import Array
from wsabi.errors import JournalError, LikelihoodError
from wsabi.result import Result
from wsabi.running.batches import Batches
from wsabi.running.loop import Loop
from wsabi.running.stopping import Interrupted, Stopped
from wsabi.runs.executors import Fault, Pool

__all__ = ["in_parallel"]

WAKE = 0.2  # seconds after which the clock is looked at while all workers are busy


def in_parallel(loop: Loop, pool: Pool) -> Result | None:
    """Evaluate on workers: one that is free gets new points at once, chosen with all that are under way in mind.

    When the run is to stop, what is under way is waited for, but for Ctrl-C, the clock and the tolerance. The result,
    if the tolerance ended the run.
    """
    tasks: dict[int, Array] = {}
    try:
        return _served(loop, pool, tasks)
    finally:
        if tasks:
            loop.integrator.postpone(np.concatenate(list(tasks.values())))


def _served(loop: Loop, pool: Pool, tasks: dict[int, Array]) -> Result | None:
    """The loop of :func:`in_parallel`; ``tasks`` are those under way, by number."""
    integrator, faults = loop.integrator, loop.faults
    n_tasks = 0
    batches = Batches(loop, None, pool)
    begun: dict[int, float] = {}
    ending: Exception | None = None
    while True:
        if not tasks and ending is None and batches.advance():
            result = loop.settled()
            if result is not None:
                return result
            continue
        under_way = sum(len(X) for X in tasks.values())
        while ending is None and len(tasks) < pool.size and loop.left(under_way) > 0 and not batches.is_due():
            loop.plan_anew()
            started = time.perf_counter()
            X = integrator.ask_points(min(loop.batch, loop.left(under_way)))
            begun[n_tasks] = time.perf_counter()
            loop.meter.own += begun[n_tasks] - started
            tasks[n_tasks] = X
            pool.submit(n_tasks, X)
            n_tasks += 1
            under_way += len(X)
        if not tasks:
            break
        try:
            came = pool.wait(WAKE)
        except KeyboardInterrupt:
            raise Interrupted from None
        for number, outcomes in came:
            seconds = time.perf_counter() - begun.pop(number)
            loop.meter.modelled(0.0, seconds / pool.size, len(outcomes))
            for x, outcome in zip(tasks.pop(number), outcomes, strict=True):
                if not isinstance(outcome, Fault):
                    try:
                        integrator.tell(x, outcome)
                    except JournalError as error:  # the value is taken, and so are the others that have come
                        ending = error if ending is None else ending
                    faults.succeeded()
                elif not faults.takes(x, outcome.message, outcome.traceback) and ending is None:
                    ending = LikelihoodError(outcome.message, x)
        try:
            loop.report(news=bool(came))
        except Stopped as stopped:
            ending = stopped if ending is None else ending
        result = loop.settled() if came and ending is None else None
        if result is not None:
            return result
    if ending is not None:
        raise ending
    return None
