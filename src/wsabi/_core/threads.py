"""One thread for the linear algebra: matrices of a few hundred rows are slower on several."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

__all__ = ["single_threaded"]

P = ParamSpec("P")
R = TypeVar("R")


@functools.cache
def _controller() -> Any:
    """What controls the threads of the libraries loaded by now; None where threadpoolctl is not installed."""
    try:
        from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]
    except ImportError:
        return None
    return ThreadpoolController()


def _release() -> None:
    """Let any Python thread set the number of BLAS threads: from some version on, only the one that did last may."""
    from threadpoolctl import OpenBLASController

    release = getattr(OpenBLASController, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)


class _Held:
    """BLAS held to one thread from the first who enters to the last who leaves, in whatever order threads do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            controller = _controller()
            if self._depth == 0 and controller is not None:
                self._limit = controller.limit(limits=1)
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._limit is not None:
                _release()
                self._limit.restore_original_limits()
                _release()
                self._limit = None


_HELD = _Held()


def single_threaded(function: Callable[P, R]) -> Callable[P, R]:
    """The same function with BLAS held to one thread while it runs, and set back afterwards.

    Beside the speed this makes a run repeat to the last bit whatever the number of cores. Without threadpoolctl
    nothing is changed.
    """

    @functools.wraps(function)
    def held(*args: P.args, **kwargs: P.kwargs) -> R:
        with _HELD:
            return function(*args, **kwargs)

    return held
