"""WSABI against the prior itself, as in the paper, as a strategy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from wsabi._core.types import Array, Mask
from wsabi.adaptive.bulk.planning import Costs, Room
from wsabi.adaptive.purposes import Refinement
from wsabi.adaptive.search.ascent import Summit
from wsabi.errors import NumericalError
from wsabi.gp.kernel import SquaredExponential
from wsabi.ledger import Action, Observation, stacked
from wsabi.posterior.closed_form import ClosedForm
from wsabi.posterior.posterior import Posterior
from wsabi.priors.chart import Chart
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.report.diagnostics import plain_diagnostics
from wsabi.report.estimate import Estimate, plain_estimate
from wsabi.report.warnings import remarks_on_plain
from wsabi.settings import Settings
from wsabi.strategies.protocol import Climb, Conclusion

__all__ = ["PlainStrategy", "concluded_plain"]


class PlainStrategy:
    """One warped GP under the prior.

    Parameters
    ----------
    chart : the prior and its coordinates.
    kernel : fixed kernel in base coordinates, or None to learn it.
    rng : what the first design is drawn from.
    """

    budget = math.inf
    is_checked = True

    def __init__(
        self, chart: Chart, settings: Settings, rng: np.random.Generator, kernel: SquaredExponential | None = None
    ) -> None:
        self.chart = chart
        self._model = SequentialModel(chart.measure, settings, rng, kernel)

    @property
    def given(self) -> Mapping[str, object]:
        """What never changes in a run."""
        model = self._model
        fixed = {"measure": model.measure, "settings": model.settings}
        return fixed if model.kernel is None else fixed | {"kernel": model.kernel}

    @property
    def memory(self) -> SequentialModel:
        """The model."""
        return self._model

    def recall(self, memory: SequentialModel) -> None:
        """Go on with another model."""
        self._model = memory

    def plan(self, budget: int, tol: float) -> None:
        """Do nothing: this strategy does not plan."""

    def ask(self, pending: Sequence[Action], rng: np.random.Generator) -> Action:
        """The next evaluation to make, given those that are under way."""
        under_way = stacked([one.u for one in pending], self.chart.dim)
        return Action(self._model.propose(1, under_way, rng)[0], Refinement())

    def next_batch_size(self, room: Room, costs: Costs) -> int:
        """None: this strategy models every evaluation."""
        return 0

    def begin_batch(self, n: int, rng: np.random.Generator) -> None:
        """Refuse: this strategy models every evaluation."""
        raise NumericalError("the prior as measure has no bulk points.")

    @property
    def batch(self) -> tuple[Array, Mask]:
        """No points."""
        return np.empty((0, self.chart.dim)), np.zeros(0, dtype=np.bool_)

    def tell_batch(self, first: int, log_l: Array) -> None:
        """Refuse: this strategy models every evaluation."""
        raise NumericalError("the prior as measure has no bulk points.")

    def may_miss_modes(self, tol: float) -> bool:
        """Never: this strategy does not search."""
        return False

    def tell(self, told: Sequence[Observation]) -> None:
        """Take values."""
        self._model.observe(np.array([one.u for one in told]), np.array([one.log_l for one in told]))

    def wanted_climb(self, left: int) -> Climb | None:
        """None: this strategy does not search for modes."""
        return None

    def climbed(self, summit: Summit | None, rng: np.random.Generator) -> None:
        """Do nothing: there are no climbs."""

    def estimate(self, noise: float) -> Estimate | None:
        """The closed form, or None while every value is −inf."""
        return plain_estimate(self._model)

    def conclude(self, log_l: Array, noise: float) -> Conclusion | None:
        """The final conclusion; None where every value is −inf."""
        return concluded_plain(self._model, self.chart, log_l, noise)


def concluded_plain(
    model: SequentialModel, chart: Chart, log_l: Array, noise: float, *, unchecked: bool = False
) -> Conclusion | None:
    """The conclusion of one warped GP under the prior; None where every value is −inf.

    ``unchecked`` is true where it replaces the adaptive engine, because there are too few values to search for modes.
    """
    estimate = plain_estimate(model, unchecked=unchecked)
    if estimate is None:
        return None
    if model.gp is None:
        raise NumericalError("the model holds no finite value.")
    form = ClosedForm.from_gp(
        model.gp,
        alpha=model.alpha,
        method=model.settings.method,
        measure=model.measure,
        chart=chart,
        log_l_max=model.log_l_max,
        log_z=estimate.model.log_mean,
    )
    posterior = Posterior(form)
    posterior = replace(posterior, diagnostics=plain_diagnostics(model, chart, posterior))
    remarks = remarks_on_plain(model, estimate, log_l, noise, unchecked=unchecked)
    return Conclusion(estimate, posterior, remarks, tuple(model.fits), model.max_jitter)
