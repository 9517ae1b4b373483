"""``result.plot``: pictures of one result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wsabi.plots.check import draw_check
from wsabi.plots.corner import draw_corner
from wsabi.plots.course import draw_convergence
from wsabi.plots.searches import draw_searches
from wsabi.plots.slices import draw_slices
from wsabi.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ResultPlots"]


class ResultPlots:
    """Pictures of a result. Each method returns a ``matplotlib.figure.Figure`` that no window shows.

    ``axes`` are axes to draw on instead of a new figure, as many as the method says; their figure is returned.
    """

    def __init__(self, result: Result) -> None:
        self._result = result

    def __repr__(self) -> str:
        return "result.plot: corner(), convergence(truth=None), searches(), slices(), check()"

    def corner(
        self,
        parameters: Sequence[str | int] | None = None,
        *,
        truth: Mapping[str, Any] | Sequence[float] | None = None,
        axes: Any = None,
    ) -> Figure:
        """Marginal densities of D parameters, and the joint ones of every pair.

        Shaded: the central 95 % of a parameter, and the 50 % and 95 % of highest density of a pair.

        Parameters
        ----------
        parameters : names, of vectors too, or indices; None is all, of which there may be twelve.
        truth : known values, by name or one for each parameter of the posterior.
        axes : (D, D).
        """
        return draw_corner(self._result.posterior, parameters, truth, axes)

    def convergence(self, truth: float | None = None, *, axes: Any = None) -> Figure:
        """log Z ± one and two sd over evaluations and seconds, with what the evaluations were for; the error budget.

        Parameters
        ----------
        truth : known log Z.
        axes : (3,).
        """
        return draw_convergence(self._result, truth, axes)

    def searches(self, *, axes: Any = None) -> Figure:
        """For each search, where it started and where it ended, in log ℓ and in every parameter.

        Parameters
        ----------
        axes : (D + 1,).
        """
        return draw_searches(self._result, axes)

    def slices(self, *, axes: Any = None) -> Figure:
        """The model of log ℓ ± one and two sd along each parameter, through the mode, with evaluations near that line.

        Parameters
        ----------
        axes : (D,).
        """
        return draw_slices(self._result, axes)

    def check(self, *, axes: Any = None) -> Figure:
        """Check points: predicted against actual log ℓ, their weights, and the tail of the weights.

        Parameters
        ----------
        axes : (3,).
        """
        return draw_check(self._result, axes)
