"""States of finished runs, which are frozen and so serve all tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import wsabi
from driving import run_engine
from wsabi.adaptive.state import State
from wsabi.result import SearchRecord


@pytest.fixture(scope="session")
def finished() -> State:
    """A state that is integrating exp(−½xᵀx) under N(0, I₂)."""
    return run_engine(wsabi.Gaussian([0.0, 0.0]), lambda X: -0.5 * np.square(X).sum(axis=1), 80)


@pytest.fixture(scope="session")
def calm(finished: State) -> State:
    """The same, where nothing is to be warned of."""
    searches = (
        SearchRecord(30, -0.7, "new region"),
        SearchRecord(10, -0.7, "known region"),
        SearchRecord(10, -0.7, "known region"),
    )
    regions = tuple(replace(region, hits=3) for region in finished.known.regions)
    known = replace(finished.known, searches=searches, gains=(1.0, 0.0, 0.0), regions=regions, n_negligible=0)
    return replace(finished, known=known)
