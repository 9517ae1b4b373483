"""One thread for the linear algebra: matrices of a few hundred rows are slower on several."""

from __future__ import annotations

import contextlib
import functools
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


def single_threaded(function: Callable[P, R]) -> Callable[P, R]:
    """The same function with BLAS held to one thread while it runs, and set back afterwards.

    Beside the speed this makes a run repeat to the last bit whatever the number of cores. Without threadpoolctl
    nothing is changed.
    """

    @functools.wraps(function)
    def held(*args: P.args, **kwargs: P.kwargs) -> R:
        controller = _controller()
        with contextlib.nullcontext() if controller is None else controller.limit(limits=1):
            return function(*args, **kwargs)

    return held
