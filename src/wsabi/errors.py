"""Errors and warnings that a user of the library may want to catch by name. This module imports no other."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsabi._core.types import Array
    from wsabi.result import Result

__all__ = [
    "EvidenceWarning",
    "JournalError",
    "LikelihoodError",
    "NoMassFound",
    "NumericalError",
    "WorkersLost",
    "announce",
]


class NumericalError(ArithmeticError):
    """A computation the method cannot support; ``state`` carries the last good result, if there is one."""

    def __init__(self, message: str, state: object = None) -> None:
        super().__init__(message)
        self.state = state


class NoMassFound(NumericalError):
    """Every evaluation so far is −inf: there is no estimate to give. ``state`` holds (points, log_likelihoods)."""


class LikelihoodError(RuntimeError):
    """The likelihood raised, or returned NaN, +inf or the wrong shape.

    Attributes
    ----------
    point : (D,) where it happened, in the user's coordinates.
    result : the :class:`~wsabi.Result` of all evaluations before it, or None if there were none to speak of.
    """

    def __init__(self, message: str, point: Array) -> None:
        super().__init__(message)
        self.point = point
        self.result: Result | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.point), {"result": self.result}


class JournalError(RuntimeError):
    """The file of a run cannot be read, written or gone on with; the message says why and what to do.

    Attributes
    ----------
    result : the :class:`~wsabi.Result` of all evaluations so far where the file could no longer be written, or None.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.result: Result | None = None


class WorkersLost(RuntimeError):
    """The workers of a run are gone, or cannot start. What was evaluated before is kept.

    Attributes
    ----------
    result : the :class:`~wsabi.Result` of all evaluations so far, or None if there were none to speak of.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.result: Result | None = None


class EvidenceWarning(UserWarning):
    """The estimate of log Z, its error bar or the posterior is doubtful; the message says why and what to do."""


def announce(messages: Iterable[str], stacklevel: int = 3) -> None:
    """Emit an :class:`EvidenceWarning` for each message, as if by the caller's caller."""
    for message in messages:
        warnings.warn(message, EvidenceWarning, stacklevel=stacklevel)
