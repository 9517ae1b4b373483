"""Climbs by gradients on behalf of an integrator's searches: :class:`Climber`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wsabi._core.types import Array
from wsabi.adaptive.search.ascent import Slope, climb
from wsabi.errors import NumericalError
from wsabi.likelihood import checked_slope, gradient_evaluator

if TYPE_CHECKING:
    from wsabi.integrator import Integrator
    from wsabi.strategies.protocol import Climb

__all__ = ["Climber"]


class Climber:
    """Climbs by gradients on behalf of an integrator's searches.

    Parameters
    ----------
    evaluate, report : what makes an evaluation, and what is called after each.
    checked : whether ``grad`` was checked against the likelihood earlier in this run.
    """

    def __init__(
        self,
        integrator: Integrator,
        grad: Callable[..., Any],
        evaluate: Callable[..., Array],
        report: Callable[[], None],
        *,
        vectorized: bool,
        checked: bool,
    ) -> None:
        if not integrator.is_adaptive:
            raise ValueError(
                f'grad is of no use to measure="{integrator.settings.measure}", which does not search for modes: '
                'leave grad out, or take measure="adaptive".'
            )
        self._integrator = integrator
        self._evaluate = evaluate
        self._report = report
        gradient = gradient_evaluator(grad, integrator.chart, vectorized=vectorized)
        self._wanted: Climb | None = None  # the climb under way
        self._slope: Slope = checked_slope(self._value, gradient, integrator.chart, checked=checked)

    def climbs(self, left: int) -> bool:
        """Climb if a search wants to, with ``left`` evaluations left; whether it did."""
        integrator = self._integrator
        wanted = integrator.course.wanted_climb(left)
        if wanted is None:
            return False
        self._wanted = wanted
        integrator.course.end_climb(climb(self._slope, integrator.chart.measure, wanted.start, wanted.limit))
        return True

    def _value(self, u: Array) -> float:
        """log ℓ at u (D,) in base coordinates, the weight of a ``LogDensity`` included; told where it is new."""
        integrator = self._integrator
        value = integrator.course.value_at(u)
        if value is None and self._wanted is not None:
            X = integrator.course.begin_climb_step(self._wanted, u)[None, :]
            try:
                values = self._evaluate(X)
            except BaseException:
                integrator.forget(X)
                raise
            integrator.tell(X, values)
            self._report()
            value = float(values[0])
        if value is None:
            raise NumericalError("an evaluation was asked for outside a climb.")
        return value + float(integrator.chart.log_weight(u[None, :])[0])
