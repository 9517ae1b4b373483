"""Draws from a posterior in a file: .csv, .npz or .nc."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np

import wsabi

__all__ = ["WRITERS"]


def _csv(result: wsabi.Result, out: Path, n: int, seed: int) -> None:
    """A line of names, then a line for each draw; every digit of the floats."""
    with open(out, "w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(result.names)
        lines.writerows(map(repr, row.tolist()) for row in result.posterior.sample(n, rng=seed))


def _npz(result: wsabi.Result, out: Path, n: int, seed: int) -> None:
    """Arrays ``draws`` (n, D), ``names`` (D,) and ``log_z``."""
    draws = result.posterior.sample(n, rng=seed)
    np.savez_compressed(out, draws=draws, names=np.array(result.names), log_z=result.log_z)


def _netcdf(result: wsabi.Result, out: Path, n: int, seed: int) -> None:
    """The groups of ``result.to_arviz()``; in four chains where n allows it, since ArviZ compares chains."""
    chains = 4 if n % 4 == 0 else 1
    result.to_arviz(n // chains, chains=chains, rng=seed).to_netcdf(str(out))


WRITERS: dict[str, Callable[[wsabi.Result, Path, int, int], None]] = {".csv": _csv, ".npz": _npz, ".nc": _netcdf}
