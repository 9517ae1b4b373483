"""What every benchmark needs: CPU time, a unit of it, a table of targets, and raw results as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy.linalg import lapack

import wsabi
from wsabi._core.types import Array

__all__ = ["Options", "Reference", "Row", "cpu_seconds", "options", "print_table", "print_targets", "save", "spread"]

RESULTS = Path(__file__).parent / "results"

T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """What was asked for on the command line."""

    brief: bool
    folder: Path


def options(description: str, arguments: Sequence[str] | None = None) -> Options:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--brief", action="store_true", help="few seeds and small sizes: that it runs, not how fast")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the JSON file (default: %(default)s)")
    parsed = parser.parse_args(arguments)
    return Options(parsed.brief, parsed.output)


def cpu_seconds(function: Callable[[], T]) -> tuple[T, float]:
    """What the function returns and the CPU time that it took: unlike the wall clock's, not that of other processes."""
    started = time.process_time()
    value = function()
    return value, time.process_time() - started


class Reference:
    """The unit of CPU time: LAPACK's dpotrf and dpotri, in place, of a positive-definite ``size`` × ``size`` matrix.

    It is measured between the runs that it is to judge, over and over: a machine's speed changes with its load.
    """

    def __init__(self, size: int = 500) -> None:
        A = np.random.default_rng(0).standard_normal((size, size))
        self._matrix = np.asfortranarray(A @ A.T + size * np.eye(size))
        self.seconds: list[float] = []
        inverse = np.tril(self._inverted())
        identity = self._matrix @ (inverse + np.tril(inverse, -1).T)
        if not np.allclose(identity, np.eye(size), atol=1e-8):
            raise ArithmeticError("dpotrf and dpotri did not invert the reference matrix.")

    def _inverted(self, matrix: Array | None = None) -> Array:
        """The lower triangle of the inverse, written over ``matrix``."""
        factor, info = lapack.dpotrf(self._matrix.copy(order="F") if matrix is None else matrix, lower=1, overwrite_a=1)
        inverse, info_inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)
        if info or info_inverse:
            raise ArithmeticError(f"dpotrf returned {info}, dpotri {info_inverse}.")
        return np.asarray(inverse)

    def measure(self, repeats: int = 20) -> float:
        """Median CPU seconds of ``repeats`` units, now; the copy of the matrix is not counted."""
        seconds = []
        for _ in range(repeats):
            matrix = self._matrix.copy(order="F")
            started = time.process_time()
            self._inverted(matrix)
            seconds.append(time.process_time() - started)
        self.seconds += seconds
        return float(np.median(seconds))


@dataclass(frozen=True)
class Row:
    """One line of the table: a quantity, its value, the bound it should keep, and whether it does."""

    what: str
    measured: str
    target: str
    met: bool

    @classmethod
    def at_most(cls, what: str, value: float, bound: float, form: str = "{:.3g}", note: str = "") -> Row:
        return cls(what, form.format(value) + note, "≤ " + form.format(bound), value <= bound)

    @classmethod
    def at_least(cls, what: str, value: float, bound: float, form: str = "{:.3g}", note: str = "") -> Row:
        return cls(what, form.format(value) + note, "≥ " + form.format(bound), value >= bound)


def spread(values: Sequence[float] | Array, form: str = "{:.3g}") -> str:
    """The smallest and the largest value, in brackets, to stand after a median."""
    return f" ({form.format(min(values))} to {form.format(max(values))})"


def print_table(rows: Sequence[Sequence[str]], heading: Sequence[str]) -> None:
    """Columns as wide as their widest cell, two blanks apart."""
    widths = [max(len(row[i]) for row in [heading, *rows]) for i in range(len(heading))]
    for row in [heading, ["-" * width for width in widths], *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def print_targets(rows: Sequence[Row]) -> None:
    cells = [(row.what, row.measured, row.target, "yes" if row.met else "NO") for row in rows]
    print_table(cells, ("what", "measured", "target", "met"))


def save(name: str, chosen: Options, rows: Sequence[Row], raw: dict[str, Any]) -> Path:
    """Write targets and raw numbers, with versions and machine, to ``name``.json (``name``-brief.json)."""
    chosen.folder.mkdir(parents=True, exist_ok=True)
    path = chosen.folder / f"{name}{'-brief' if chosen.brief else ''}.json"
    content = {"brief": chosen.brief, "versions": _versions(), "machine": _machine()}
    content |= {"targets": [asdict(row) for row in rows], "raw": raw}
    path.write_text(json.dumps(content, default=_plain, allow_nan=False) + "\n", encoding="utf-8")
    return path


def _plain(value: object) -> object:
    """NumPy's numbers, truth values and arrays as Python's own."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"cannot write a {type(value).__name__} as JSON.")


def _versions() -> dict[str, str]:
    installed = {name: version(name) for name in ("numpy", "scipy", "cma")}
    return {"python": platform.python_version(), "wsabi": wsabi.__version__, **installed}


def _machine() -> dict[str, Any]:
    dependencies = np.show_config(mode="dicts")["Build Dependencies"]  # type: ignore[index,call-overload,unused-ignore]
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "blas": dependencies["blas"],
        "load": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
