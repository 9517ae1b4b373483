"""Replay: let the events of an earlier run happen again, and so come into the state in which it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wsabi._core.types import Array
from wsabi.ledger import Ledger
from wsabi.priors.chart import Chart, chart

if TYPE_CHECKING:
    from wsabi.integrator import Integrator
    from wsabi.result import Result

__all__ = ["is_same_problem", "maps", "replayed"]


def replayed(integrator: Integrator, ledger: Ledger) -> bool:
    """Let all events of a ledger happen again; False where they take another course."""
    integrator.begin(ledger.origin)
    if not all(integrator.repeat(event) for event in ledger.events):
        return False
    integrator.end_replay()
    return True


def maps(space: Chart, base: Array, points: Array) -> bool:
    """Whether ``base`` (N, D) are the base coordinates of ``points`` (N, D) under a prior."""
    try:
        return np.array_equal(space.to_user(base), points)
    except ValueError:  # outside the box of a uniform prior
        return False


def is_same_problem(integrator: Integrator, result: Result) -> bool:
    """Whether a result is of the same prior and settings as an integrator."""
    space = integrator.chart
    if result.settings != integrator.settings or not maps(space, result.base_points, result.points):
        return False
    if result.prior is integrator.prior:
        return True
    if space.target is not None:  # its weight is a function, of which one cannot tell that it is the same
        return False
    other, mine = chart(result.prior, gaussian=integrator.is_adaptive).measure, space.measure
    return (
        type(other) is type(mine)
        and np.array_equal(other.mean, mine.mean)
        and np.array_equal(other.cov, mine.cov)
        and np.array_equal(other.log_pdf(result.base_points), mine.log_pdf(result.base_points))
    )
