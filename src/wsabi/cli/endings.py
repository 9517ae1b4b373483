"""How a command ends: exit codes, and a message on standard error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TypeVar

import typer

from wsabi.errors import EvidenceWarning, JournalError
from wsabi.runs.journal import Record
from wsabi.runs.saved import read_any

__all__ = ["FAILED", "INTERRUPTED", "USAGE", "fail", "quietly", "record_of"]

FAILED, USAGE, INTERRUPTED = 1, 2, 130  # 0 is success, 130 is 128 + SIGINT, as shells have it

T = TypeVar("T")


def fail(message: str, code: int) -> NoReturn:
    """End the command with a message and an exit code."""
    sys.stderr.write(f"{message}\n")
    raise typer.Exit(code)


def quietly(function: Callable[[], T]) -> T:
    """Call without Python's warnings of a result, which is shown with them in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvidenceWarning)
        return function()


def record_of(path: Path) -> Record:
    """What a journal or a saved result holds; where it cannot be read, the command ends."""
    try:
        return read_any(path)
    except JournalError as error:
        fail(str(error), FAILED)
