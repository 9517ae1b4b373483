"""A small result that every outgoing bridge carries over."""

from __future__ import annotations

from typing import Any

import pytest
from scipy import stats

import wsabi

collect_ignore = ["umbridge_server.py"]  # a program that tests start, which imports what may not be there


@pytest.fixture(scope="package")
def result() -> wsabi.Result:
    """Two vectors' worth of parameters: beta (2,) and a tau that piles up at its lower bound."""
    prior = {"beta": [stats.norm(0, 2)] * 2, "log_tau": (0.0, 4.0)}

    def log_likelihood(p: dict[str, Any]) -> float:
        return -2.0 * float((p["beta"] - 1.0) @ (p["beta"] - 1.0)) - p["log_tau"]

    return wsabi.integrate(log_likelihood, prior, budget=60, rng=0)
