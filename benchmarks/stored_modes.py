"""What is stored of the problems of benchmarks/hidden_modes.py: log Z, and the modes of ℓπ."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from wsabi._core.types import Array

FILE = Path(__file__).with_name("hidden_modes.json")


@dataclass(frozen=True, eq=False)
class Mode:
    """A mode of ℓπ in base coordinates, where the prior is N(0, I).

    Attributes
    ----------
    u : (D,) its place.
    log_joint : log ℓπ there.
    cov : (D, D) inverse curvature.
    share : of Z that its basin holds, and its standard error.
    ascents : share of local ascents from single draws of the prior that end there.
    """

    u: Array
    log_joint: float
    cov: Array
    share: float
    share_std: float
    ascents: float


@cache
def stored() -> dict[str, dict[str, Any]]:
    """What the file has of each problem, by name."""
    content = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {"problems": {}}
    return cast("dict[str, dict[str, Any]]", content["problems"])


def modes_of(name: str) -> list[Mode]:
    """The stored modes of a problem, that with the largest share of Z first."""
    return [
        Mode(np.array(one["u"]), one["log_joint"], np.array(one["cov"]), one["share"], one["share_std"], one["ascents"])
        for one in stored()[name]["modes"]
    ]
