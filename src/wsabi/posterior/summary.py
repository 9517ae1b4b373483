"""A table of the posterior: mean, sd and quantiles of each parameter."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wsabi._core.types import Array
from wsabi.posterior.named import NamedVector

__all__ = ["LEVELS", "Summary", "decimals"]

LEVELS = (0.025, 0.25, 0.5, 0.75, 0.975)


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """Numbers of each parameter, that print as a table.

    Attributes
    ----------
    names : D names.
    mean, std : (D,), also by name: ``summary.mean["tau"]``.
    levels, quantiles : (Q,) probabilities and (Q, D) values below which they lie.
    effective_sample_size : independent draws that the posterior's weighted points count as.
    """

    names: tuple[str, ...]
    mean: NamedVector
    std: NamedVector
    levels: tuple[float, ...]
    quantiles: Array
    effective_sample_size: float

    @property
    def columns(self) -> tuple[str, ...]:
        """What each column of the table is."""
        return ("mean", "sd", *(f"{100.0 * level:g} %" for level in self.levels))

    @property
    def table(self) -> Array:
        """(D, 2 + Q) the numbers of the table."""
        return np.column_stack([self.mean, self.std, self.quantiles.T])

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Parameter to column to number: ``pandas.DataFrame.from_dict(summary.to_dict(), orient="index")``."""
        return {
            name: dict(zip(self.columns, map(float, row), strict=True))
            for name, row in zip(self.names, self.table, strict=True)
        }

    def cells(self) -> list[list[str]]:
        """The table as text, a list for each parameter: its name, then numbers that show three digits of the sd."""
        return [[name, *_row(row)] for name, row in zip(self.names, self.table, strict=True)]

    def __str__(self) -> str:
        rows = [["", *self.columns], *self.cells()]
        widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        ]
        return "\n".join([*lines, f"effective sample size {self.effective_sample_size:.0f}"])

    def __repr__(self) -> str:
        return str(self)  # what a terminal is asked for when it shows this object is the table


def decimals(std: float, digits: int = 2) -> int | None:
    """Decimals that show so many digits of a sd; None where powers of ten say it better."""
    if not (math.isfinite(std) and std > 0.0):
        return 3
    places = digits - 1 - math.floor(math.log10(std))
    return max(places, 0) if -4 <= places <= 8 else None


def _row(numbers: Array) -> list[str]:
    places = decimals(float(numbers[1]), 3)
    if places is None or float(np.max(np.abs(numbers))) >= 1e9:
        return [f"{number:.6g}" for number in numbers]
    return [f"{number:.{places}f}" for number in numbers]
