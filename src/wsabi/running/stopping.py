"""What ends a run beside its budget: the clock, the callback, Ctrl-C and the tolerance."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np

from wsabi.errors import NumericalError
from wsabi.report.estimate import NEAR
from wsabi.result import Result

if TYPE_CHECKING:
    from wsabi.integrator import Integrator

__all__ = ["CallbackFailed", "Deadline", "Interrupted", "Stopped", "TimeUp", "is_settled", "settled_result"]


class TimeUp(Exception):
    """The seconds for this run are used up."""


class Stopped(Exception):
    """The callback returned False."""


class Interrupted(Exception):
    """Ctrl-C came while the likelihood was at work, and the state is sound."""


class CallbackFailed(Exception):
    """The callback raised what is the cause of this."""


class Deadline:
    """The moment, ``max_seconds`` after it is built, from which on :meth:`check` raises; never where that is None."""

    def __init__(self, max_seconds: float | None) -> None:
        self._at = math.inf if max_seconds is None else time.perf_counter() + max_seconds

    def left(self) -> float:
        """Seconds until then."""
        return self._at - time.perf_counter()

    def check(self) -> None:
        """Raise :class:`TimeUp` if the moment has passed."""
        if time.perf_counter() >= self._at:
            raise TimeUp


def is_settled(integrator: Integrator, tol: float) -> bool:
    """Whether the last two records are within ``tol`` and agree within it, past the first design.

    One record is not enough: the error bar of a young model, whose length-scales have just jumped, may be far too
    small. At the end of a batch of bulk points it is. No error bar is that the strategy has not checked.
    """
    history, log_l, dim = integrator.history, integrator.course.log_l, integrator.chart.dim
    if len(history) < 2 or integrator.n_evals < 4 * (dim + 1):
        return False
    before, last = history[-2:]
    if integrator.course.has_ended_batch:
        before = last
    if last.n_evals != integrator.n_evals or not integrator.strategy.is_checked:
        return False
    if int(np.sum(log_l > np.max(log_l) - NEAR)) <= dim:  # the mode is hardly explored
        return False
    return max(before.log_z_std, last.log_z_std) < tol and abs(before.log_z - last.log_z) < tol


def settled_result(integrator: Integrator, tol: float | None) -> Result | None:
    """The result, if the tolerance ends the run here.

    The last estimate is made with more care than those on the way: its error bar is the one that counts.
    """
    if not tol or not is_settled(integrator, tol):
        return None
    try:
        result = integrator.result(reason="tolerance")
    except NumericalError:
        return None
    return result if result.log_z_std <= tol else None
