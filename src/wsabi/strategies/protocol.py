"""What the integrator asks of a strategy, in base coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from wsabi._core.types import Array, Mask
from wsabi.adaptive.bulk.planning import Costs, Room
from wsabi.gp.fit import FitRecord
from wsabi.ledger import Action, Observation, Purpose
from wsabi.report.estimate import Estimate
from wsabi.report.warnings import Remarks
from wsabi.result import BulkRecord, SearchRecord

if TYPE_CHECKING:
    from wsabi.adaptive.search.ascent import Summit

__all__ = ["Climb", "Conclusion", "Strategy"]


@dataclass(frozen=True)
class Climb:
    """A climb by gradients that a strategy wants: from ``start`` (D,), with at most so many gradients."""

    start: Array
    limit: int
    purpose: Purpose


@dataclass(frozen=True)
class Conclusion:
    """What a strategy concludes from all values: the parts of a :class:`~wsabi.Result` that depend on it."""

    estimate: Estimate
    posterior: Any
    remarks: Remarks
    fits: tuple[FitRecord, ...] = ()
    jitter: float = 0.0
    searches: tuple[SearchRecord, ...] = ()
    symmetries: tuple[str, ...] = ()
    batches: tuple[BulkRecord, ...] = ()


class Strategy(Protocol):
    """An algorithm at work: it gives out points, takes values, and has an estimate of Z at any time."""

    @property
    def budget(self) -> float:
        """Number of evaluations that the run is expected to reach; infinite where the strategy does not plan."""
        ...

    @property
    def is_checked(self) -> bool:
        """Whether the error bar may end a run: the strategy has made all the checks of it that it makes."""
        ...

    @property
    def given(self) -> Mapping[str, object]:
        """What a strategy of the same prior, settings and seed has from its beginning, and a snapshot need not hold."""
        ...

    @property
    def memory(self) -> Any:
        """All else that it knows, for a snapshot."""
        ...

    def recall(self, memory: Any) -> None:
        """Know what another strategy of the same prior, settings and seed knew, and no more."""
        ...

    def plan(self, budget: int, tol: float) -> None:
        """Set the number of evaluations that the run is expected to reach, and the error of log Z that will do."""
        ...

    def ask(self, pending: Sequence[Action], rng: np.random.Generator) -> Action:
        """The next evaluation to make, given those that are under way."""
        ...

    def tell(self, told: Sequence[Observation]) -> None:
        """Take values; no two points are the same, and none was told before."""
        ...

    def wanted_climb(self, left: int) -> Climb | None:
        """The climb by gradients to make next, with ``left`` evaluations left; None where there is none to make."""
        ...

    def climbed(self, summit: Summit | None, rng: np.random.Generator) -> None:
        """Take the end of the climb that was wanted: a mode and its curvature, or None where it found none."""
        ...

    def next_batch_size(self, room: Room, costs: Costs) -> int:
        """Number of bulk points to draw next, given what may be spent and what it costs; 0 for none now."""
        ...

    def begin_batch(self, n: int, rng: np.random.Generator) -> None:
        """Draw a batch of n bulk points."""
        ...

    @property
    def batch(self) -> tuple[Array, Mask]:
        """The batch under way: U (n, D), and which of its points wait for a value (n,); n is 0 where there is none."""
        ...

    def tell_batch(self, first: int, log_l: Array) -> None:
        """Take log ℓ (m,), NaN for failures, of the points of the batch under way from number ``first`` on."""
        ...

    def may_miss_modes(self, tol: float) -> bool:
        """Whether further searches are worth it: they may find modes that hold more than ``tol`` nats."""
        ...

    def estimate(self, noise: float) -> Estimate | None:
        """The estimate on the way, or None while there is none; ``noise`` is the spread of values at one point."""
        ...

    def conclude(self, log_l: Array, noise: float) -> Conclusion | None:
        """The final conclusion, given log ℓ (N,) as the user's function returned it; None where every value is −inf.

        The strategy is left as it is, and can go on.
        """
        ...
