"""What the serial and the parallel loop share: :class:`Loop`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wsabi.result import Result
from wsabi.running.batches import Meter
from wsabi.running.faults import Faults
from wsabi.running.options import RunOptions
from wsabi.running.stopping import Deadline, settled_result

if TYPE_CHECKING:
    from wsabi.integrator import Integrator

__all__ = ["Loop"]


@dataclass(frozen=True)
class Loop:
    """A run under way.

    Attributes
    ----------
    options : of the run.
    report : called after each batch; raises what ends the run.
    total : number of evaluations that the integrator may reach.
    modelled : number of evaluations after which bulk points are all that is left to do, where they are cheap.
    deadline : the end of the run by the clock.
    meter : what evaluations have cost so far.
    tol : the error of log Z that ends the run; None and 0 for none.
    batch : points chosen at a time.
    """

    integrator: Integrator
    faults: Faults
    options: RunOptions
    report: Callable[..., None]
    total: int
    modelled: int
    deadline: Deadline
    tol: float | None
    batch: int
    meter: Meter = field(default_factory=Meter)

    @property
    def is_open_ended(self) -> bool:
        """Whether no budget was given: the usual number of evaluations bounds those that are modelled."""
        return self.options.budget is None

    def left(self, under_way: int = 0) -> int:
        """Number of evaluations that may still be asked for; without a budget, those of bulk do not count."""
        integrator = self.integrator
        spent = integrator.n_spent - (integrator.log.n_bulk if self.is_open_ended else 0)
        left = self.total - spent - under_way
        return max(left, 1 - under_way) if left < 1 and self._is_worth_more() else left

    def _is_worth_more(self) -> bool:
        """Whether searches may go on after the usual number of evaluations: where they are cheap, and needed."""
        costs, strategy = self.integrator.course.costs, self.integrator.strategy
        if not self.is_open_ended or costs is None or not costs.is_cheap:
            return False
        self.integrator.course.begin_extra_time()
        return self.grace_left() > 0.0 and strategy.may_miss_modes(self.tol or 0.0)

    def grace_left(self) -> float:
        """Seconds that a run without any limit may still take: at most as long again as before its bulk."""
        began, seconds = self.integrator.course.extra_began, self.integrator.seconds
        return seconds if began is None else 2.0 * began - seconds

    def modelled_left(self) -> int:
        """Number of evaluations left that models may learn of."""
        return max(0, self.modelled - self.integrator.course.n_modelled)

    def seconds_left(self) -> float:
        """Seconds until the clock ends the run."""
        return self.deadline.left()

    def plan_anew(self) -> None:
        """Where only time limits the run: shares refer to the usual number of evaluations, again and again."""
        integrator = self.integrator
        n = integrator.course.n_modelled
        if n >= integrator.strategy.budget:
            integrator.plan(n + integrator.usual_budget, self.tol or 0.0)

    def settled(self) -> Result | None:
        """The result, if the tolerance ends the run here."""
        return settled_result(self.integrator, self.tol)
