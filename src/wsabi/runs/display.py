"""What a person sees while a run goes on: a live line in a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import sys
import time
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from wsabi.run import Progress

__all__ = ["Display", "wanted"]

PAUSE = 10.0  # seconds between plain lines
REFRESH = 0.1  # seconds between changes of the live line
PHASES = {"refine": "refining", "check": "checking", "image": "symmetry", "told": "refining"}
UNLIMITED = 2**31  # a budget that only stands for "until the time is over"


def wanted(progress: bool | None, stream: TextIO | None = None) -> bool:
    """Whether to show anything: None means where standard error is a terminal."""
    if progress is None:
        return bool((sys.stderr if stream is None else stream).isatty())
    if not isinstance(progress, bool):
        raise TypeError(f"progress must be True, False or None; got {progress!r}.")
    return progress


class Display:
    """A callback that shows phase, evaluations done, pending and failed, best log ℓ, log Z, rate and time left.

    Parameters
    ----------
    stream : where to write; standard error unless given. A live line needs a terminal, and the package rich.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._begun: tuple[float, int] | None = None  # time, and evaluations that an earlier run had made
        self._shown = -math.inf
        self._last: Progress | None = None
        self._live: Any = None

    def __enter__(self) -> Display:
        if self._stream.isatty():
            try:
                from rich.console import Console
                from rich.live import Live
            except ImportError:
                return self
            self._live = Live(console=Console(file=self._stream), auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._last is not None:
            self._stream.write(self.line(self._last) + "\n")
            self._stream.flush()

    def __call__(self, state: Progress) -> None:
        """Take note of one step of the run."""
        now = time.perf_counter()
        if self._begun is None:
            self._begun = (now - 1e-9, max(0, state.n_evals - 1))
        self._last = state
        if now - self._shown < (REFRESH if self._live is not None else PAUSE):
            return
        self._shown = now
        if self._live is not None:
            from rich.text import Text

            self._live.update(Text(self.line(state)), refresh=True)
        else:
            self._stream.write(self.line(state) + "\n")
            self._stream.flush()

    def line(self, state: Progress) -> str:
        """One line, such as "searching  57/500 evaluations  8 pending  log Z -15.21 ± 0.34  2.1/s"."""
        phase = state.phase.split()[0] if state.phase else "starting"
        of = "" if state.budget >= UNLIMITED else f"/{state.budget}"
        parts = [
            f"{PHASES.get(phase, 'searching' if phase == 'search' else phase):10}",
            f"{state.n_evals}{of} evaluations",
        ]
        if state.n_pending:
            parts.append(f"{state.n_pending} pending")
        if state.n_failed:
            parts.append(f"{state.n_failed} failed")
        if math.isfinite(state.best):
            parts.append(f"best log ℓ {state.best:.6g}")
        if math.isfinite(state.log_z):
            parts.append(f"log Z {state.log_z:.3f} ± {state.log_z_std:.2g}")
        began, n_before = self._begun or (time.perf_counter(), 0)
        seconds, done = time.perf_counter() - began, state.n_evals - n_before
        if done > 1 and seconds > 0.0:
            rate = done / seconds
            parts.append(f"{rate:.3g}/s" if rate >= 0.1 else f"{1 / rate:.3g} s each")
            if of:
                left = max(0, state.budget - state.n_evals - state.n_failed) / rate
                parts.append(f"at most {_duration(left)} left")
        return "  ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
