"""What becomes of evaluations that fail: :class:`Faults`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wsabi._core.types import Array
from wsabi.errors import LikelihoodError
from wsabi.running.options import RunOptions

if TYPE_CHECKING:
    from wsabi.integrator import Integrator

__all__ = ["Faults"]


class Faults:
    """What becomes of evaluations that fail, by ``on_error`` and ``retries`` of the options."""

    def __init__(self, integrator: Integrator, options: RunOptions) -> None:
        self._integrator = integrator
        self._options = options
        self._tried: dict[bytes, int] = {}
        self._in_a_row = 0
        self.n_alone = 0  # points that are to be evaluated by themselves, after a call for several of them failed
        self.most_in_a_row = 4 * (integrator.chart.dim + 2)  # more than the first design may have outside what works

    def leaves_open_which(self, values: Array) -> bool:
        """Whether a call for several points failed: each is then tried by itself, to know which is at fault."""
        several = self._options.vectorized and len(values) > 1 and bool(np.all(np.isnan(values)))
        goes_on = self._options.retries > 0 or self._options.on_error != "raise"
        self.n_alone = len(values) if several and goes_on else 0
        return self.n_alone > 0

    def succeeded(self) -> None:
        """Take note of a value."""
        self._in_a_row = 0

    def takes(self, x: Array, message: str, traceback: str = "") -> bool:
        """Let the evaluation at x (D,) fail; whether the run goes on. The point is tried again, left out, or put back.

        Raises
        ------
        LikelihoodError
            If too many failed one after another: it is then the likelihood that fails, and not a point.
        """
        key = x.tobytes()
        self._tried[key] = self._tried.get(key, 0) + 1
        reason = f"{message}\n{traceback}" if traceback else message
        if self._tried[key] <= self._options.retries:
            self._integrator.tell_failure(x, reason, again=True)
            return True
        if self._options.on_error == "raise":
            self._integrator.tell_failure(x, reason, again=True)
            return False
        self._integrator.tell_failure(x, reason)
        self._in_a_row += 1
        if self._in_a_row >= self.most_in_a_row:
            raise LikelihoodError(f"{self._in_a_row} evaluations failed one after another; the last: {message}", x)
        return True
