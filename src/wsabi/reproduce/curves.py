"""What an experiment computes: runs of methods over time, and tables that become CSV files."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wsabi._core.types import Array
from wsabi.result import Record

__all__ = ["Cell", "Table", "Trace", "at_times", "common_times", "log_density_of_truth", "trace_table"]

Cell = str | int | float


@dataclass(frozen=True)
class Table:
    """Named columns and rows; one CSV file."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]

    def write(self, path: Path) -> None:
        """Write as CSV: a header, then floats with all their digits."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows([_plain(cell) for cell in row] for row in self.rows)


def _plain(cell: Cell) -> str:
    return repr(float(cell)) if isinstance(cell, float) else str(cell)


@dataclass(frozen=True, eq=False)
class Trace:
    """One run of one method on one problem: its estimates (M,) after each recorded number of evaluations.

    ``log_z_true``, ``log_z_true_std`` are the problem's truth and its standard error.
    """

    problem: str
    method: str
    seed: int
    n_evals: Array
    seconds: Array
    log_z: Array
    log_z_std: Array
    log_z_true: float
    log_z_true_std: float
    interrupted: bool = False
    note: str = ""

    @classmethod
    def from_records(
        cls, records: Sequence[Record], *, problem: str, method: str, seed: int, truth: tuple[float, float],
        interrupted: bool = False, note: str = "",
    ) -> Trace:  # fmt: skip
        """From the history of a run; ``truth`` is log Z and its standard error."""
        return cls(
            problem, method, seed,
            n_evals=np.array([float(record.n_evals) for record in records]),
            seconds=np.array([record.seconds for record in records]),
            log_z=np.array([record.log_z for record in records]),
            log_z_std=np.array([record.log_z_std for record in records]),
            log_z_true=truth[0], log_z_true_std=truth[1], interrupted=interrupted, note=note,
        )  # fmt: skip

    @property
    def elapsed(self) -> float:
        """Seconds until the last record; a hundredth where there is none."""
        return float(self.seconds[-1]) if len(self.seconds) else 0.01

    @property
    def evaluations(self) -> float:
        """Evaluations until the last record."""
        return float(self.n_evals[-1]) if len(self.n_evals) else 0.0

    @property
    def final_error(self) -> float:
        """log Z − log Z_true at the end, in nats."""
        return float(self.log_z[-1]) - self.log_z_true

    @property
    def covers(self) -> bool:
        """Whether the final 95 % interval, widened by the truth's own error, contains the truth."""
        return abs(self.final_error) <= 1.96 * math.hypot(float(self.log_z_std[-1]), self.log_z_true_std)

    def fractional_errors(self) -> Array:
        """|Z/Z_true − 1|, (M,)."""
        with np.errstate(over="ignore"):
            return np.abs(np.expm1(self.log_z - self.log_z_true))

    def seconds_to_reach(self, error: float) -> float:
        """First recorded time from which |log Z − log Z_true| stays under ``error`` to the end, or inf."""
        late = np.flatnonzero(~(np.abs(self.log_z - self.log_z_true) < error))
        first = 0 if not late.size else int(late[-1]) + 1
        return float(self.seconds[first]) if first < len(self.seconds) else math.inf


def trace_table(traces: Iterable[Trace]) -> Table:
    """All records of all runs, one per row."""
    columns = ("problem", "method", "seed", "n_evals", "seconds", "log_z", "log_z_std", "log_z_true", "log_z_true_std")
    rows: list[Sequence[Cell]] = []
    for trace in traces:
        for record in zip(trace.n_evals, trace.seconds, trace.log_z, trace.log_z_std, strict=True):
            numbers = (int(record[0]), *(float(value) for value in record[1:]))
            rows.append((trace.problem, trace.method, trace.seed, *numbers, trace.log_z_true, trace.log_z_true_std))
    return Table(columns, rows)


def log_density_of_truth(trace: Trace) -> Array:
    """log N(log Z_true; log_z, log_z_std²), (M,): how likely the method's belief in log Z holds the truth to be.

    In log Z rather than Z: the density then has no unit, and runs on integrals of different size can be averaged.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (trace.log_z_true - trace.log_z) / trace.log_z_std
        value = -0.5 * np.square(t) - np.log(trace.log_z_std) - 0.5 * math.log(2 * math.pi)
    return np.where(np.isfinite(value), value, -np.inf)


def common_times(traces: Sequence[Trace], n: int = 60) -> Array:
    """n times, log-spaced from when every run has an estimate to the median end, (n,)."""
    start = max(float(trace.seconds[0]) for trace in traces)
    end = float(np.median([trace.seconds[-1] for trace in traces]))
    return np.geomspace(start, max(end, 1.01 * start), n)


def at_times(trace: Trace, values: Array, times: Array) -> Array:
    """The last of ``values`` (M,) recorded at or before each time (T,); the first one before any record."""
    index = np.searchsorted(trace.seconds, times, side="right") - 1
    return np.asarray(values[np.maximum(index, 0)])
