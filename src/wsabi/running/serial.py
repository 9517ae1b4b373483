"""A run that evaluates in this process: :func:`one_by_one`."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from wsabi._core.types import Array
from wsabi.errors import LikelihoodError
from wsabi.result import Result
from wsabi.running.batches import Batches
from wsabi.running.climbing import Climber
from wsabi.running.loop import Loop
from wsabi.running.stopping import Interrupted
from wsabi.runs.executors import KEPT

if TYPE_CHECKING:
    from wsabi.integrator import Integrator
    from wsabi.runs.journal import Journal

__all__ = ["one_by_one"]


def one_by_one(loop: Loop, evaluate: Callable[..., Array], climber: Climber | None) -> Result | None:
    """Evaluate in this process; the result, if the tolerance ended the run."""
    faults = loop.faults
    batches = Batches(loop, evaluate)
    while True:
        if batches.advance():
            result = loop.settled()
            if result is not None:
                return result
            continue
        if loop.left() <= 0:
            return None
        loop.plan_anew()
        if climber is not None and climber.climbs(loop.left()):
            continue
        n = 1 if faults.n_alone else min(loop.batch, loop.left())
        faults.n_alone = max(0, faults.n_alone - 1)
        _step(loop, evaluate, n)
        loop.report()
        result = loop.settled()
        if result is not None:
            return result


def _step(loop: Loop, evaluate: Callable[..., Array], n: int) -> None:
    """Ask for n points, evaluate and tell them.

    After a fault or an interrupt the values that were there already are told, and the other points come first in the
    next step: a run that is resumed is the unbroken one.
    """
    integrator, faults, meter = loop.integrator, loop.faults, loop.meter
    begun = time.perf_counter()
    X = integrator.ask_points(n)
    asked = time.perf_counter()
    values = np.full(len(X), np.nan)
    try:
        if integrator.journal is not None and len(X) > 1:
            _evaluate_and_keep(integrator.journal, evaluate, X, values)
        else:
            evaluate(X, out=values)
        evaluated = time.perf_counter()
        faults.succeeded()
    except LikelihoodError as error:
        which_is_open = faults.leaves_open_which(values)
        _tell_done(integrator, X, values)
        if which_is_open:
            return
        lines = traceback.format_exception(error.__cause__) if error.__cause__ is not None else []
        if not faults.takes(error.point, str(error), "".join(lines)[-KEPT:]):
            raise
    except KeyboardInterrupt:
        _tell_done(integrator, X, values)
        raise Interrupted from None
    except BaseException:
        _tell_done(integrator, X, values)
        raise
    else:
        integrator.tell(X, values)
        meter.modelled(asked - begun + time.perf_counter() - evaluated, evaluated - asked, len(X))


def _tell_done(integrator: Integrator, X: Array, values: Array) -> None:
    """Tell the values (N,) that are there, and have the other points X (N, D) come first in the next step."""
    done = values < np.inf  # neither NaN, which is also what was not reached, nor +inf
    try:
        if np.any(done):
            integrator.tell(X[done], values[done])
    finally:
        if not np.all(done):
            integrator.postpone(X[~done])


def _evaluate_and_keep(journal: Journal, evaluate: Callable[..., Array], X: Array, out: Array) -> None:
    """Evaluate X (N, D) into ``out`` (N,); what a call returned is on the disk before the next one begins."""
    kept = [journal.kept(x) for x in X]
    new = [i for i, value in enumerate(kept) if value is None]
    out[:] = [np.nan if value is None else value for value in kept]
    for i in new:
        evaluate(X[i : i + 1], out=out[i : i + 1])
        journal.keep(X[i], float(out[i]))
