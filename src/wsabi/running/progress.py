"""What a callback sees: :class:`Progress`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsabi.integrator import Integrator

__all__ = ["Progress"]


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each evaluation; ``log_z`` and ``log_z_std`` are those of the last record.

    Attributes
    ----------
    n_pending, n_failed : evaluations under way, and those that failed and were left out.
    best : the highest log ℓ so far.
    phase : what the last point that was asked for is for, such as "search 0", "refine" or "check".
    integrator : the run itself: its points, its result() so far, and pickle.dumps for a checkpoint. None for baselines.
    """

    n_evals: int
    budget: int
    seconds: float
    log_z: float
    log_z_std: float
    n_pending: int = 0
    n_failed: int = 0
    best: float = -math.inf
    phase: str = ""
    integrator: Integrator | None = field(default=None, repr=False, compare=False)
