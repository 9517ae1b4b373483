"""What the serial and the parallel loop share: :class:`Loop`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wsabi.result import Result
from wsabi.running.faults import Faults
from wsabi.running.stopping import settled_result

if TYPE_CHECKING:
    from wsabi.integrator import Integrator

__all__ = ["Loop"]


@dataclass(frozen=True)
class Loop:
    """A run under way.

    Attributes
    ----------
    report : called after each batch; raises what ends the run.
    total : number of evaluations that the integrator may reach.
    tol : the error of log Z that ends the run; None and 0 for none.
    batch : points chosen at a time.
    """

    integrator: Integrator
    faults: Faults
    report: Callable[..., None]
    total: int
    tol: float | None
    batch: int

    def left(self, under_way: int = 0) -> int:
        """Number of evaluations that may still be asked for."""
        return self.total - self.integrator.n_spent - under_way

    def plan_anew(self) -> None:
        """Where only time limits the run: shares refer to the usual number of evaluations, again and again."""
        integrator = self.integrator
        if integrator.n_evals >= integrator.strategy.budget:
            integrator.plan(integrator.n_evals + integrator.usual_budget, self.tol or 0.0)

    def settled(self) -> Result | None:
        """The result, if the tolerance ends the run here."""
        return settled_result(self.integrator, self.tol)
