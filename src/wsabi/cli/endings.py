"""What commands share: how they end, and how they read the file of a run."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer

import wsabi
from wsabi.cli.problem import ProblemError, prior_of
from wsabi.errors import EvidenceWarning, JournalError, NumericalError
from wsabi.runs.journal import Record
from wsabi.runs.saved import read_any

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "USAGE",
    "File",
    "Prior",
    "fail",
    "finite",
    "prior_from",
    "quietly",
    "record_of",
    "result_of",
]

FAILED, USAGE, INTERRUPTED = 1, 2, 130  # 0 is success, 130 is 128 + SIGINT, as shells have it

T = TypeVar("T")

File = Annotated[Path, typer.Argument(help="A journal or a saved result.", show_default=False)]
Prior = Annotated[
    str | None,
    typer.Option(help="prior.toml or model.py:prior, where the file cannot hold the prior.", show_default=False),
]


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


def prior_from(spec: str | None) -> Any:
    """The prior that was named, or None; where it cannot be read, the command ends."""
    try:
        return None if spec is None else prior_of(spec)
    except ProblemError as error:
        fail(str(error), USAGE)


def result_of(path: Path, prior: Any = None) -> wsabi.Result:
    """The result in a file; where there is none, the command ends."""
    try:
        return quietly(lambda: wsabi.load(path, prior=prior))
    except (JournalError, NumericalError) as error:
        fail(str(error), FAILED)


def finite(value: float) -> float | None:
    """A number as JSON has it: None for NaN and infinities."""
    return float(value) if math.isfinite(value) else None
