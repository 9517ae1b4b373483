"""The adaptive engine as a strategy."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wsabi._core.types import Array, Streams
from wsabi.adaptive.engine import AdaptiveModel
from wsabi.adaptive.search.ascent import Summit
from wsabi.adaptive.symmetry.candidates import Candidates
from wsabi.ledger import Action
from wsabi.priors.chart import Chart
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.report.estimate import Estimate, adaptive_estimate, adaptive_posterior
from wsabi.report.warnings import remarks_on_adaptive
from wsabi.settings import Settings
from wsabi.strategies.plain import concluded_plain
from wsabi.strategies.protocol import Climb, Conclusion, Observation

__all__ = ["AdaptiveStrategy"]


@dataclass(frozen=True)
class _Labelled:
    label: str


@dataclass(frozen=True)
class _ClimbPoint(_Labelled):
    pass


class AdaptiveStrategy:
    """Searches for modes, WSABI in each of them, and check points.

    Parameters
    ----------
    chart : the prior and its coordinates.
    streams : what the first design, estimates and posteriors are drawn from.
    budget : evaluations that the run is expected to reach; :meth:`plan` changes it.
    """

    def __init__(self, chart: Chart, settings: Settings, streams: Streams, budget: int) -> None:
        self.chart = chart
        self._rng = streams.stream()
        candidates = Candidates.of(chart, settings.exchangeable)
        self._model = AdaptiveModel(chart.measure, settings, self._rng, budget, candidates, streams)

    @property
    def budget(self) -> float:
        """Number of evaluations that the run is expected to reach."""
        return self._model.budget

    @property
    def is_checked(self) -> bool:
        """Whether searches keep returning to known modes, and check points agree with the models."""
        return self._model.is_checked

    def plan(self, budget: int, tol: float) -> None:
        """Set the number of evaluations that the run is expected to reach, and the error of log Z that will do."""
        self._model.plan(budget, tol)

    def ask(self, pending: Array, rng: np.random.Generator) -> Action:
        """The next evaluation to make, given points (P, D) that are under way."""
        self._rng.bit_generator.state = rng.bit_generator.state
        u = self._model.propose(1, pending)[0]
        return Action(u, _Labelled(self._model.purpose_of(u)))

    def tell(self, told: Sequence[Observation]) -> None:
        """Take values."""
        for one in told:
            if isinstance(one.purpose, _ClimbPoint):
                self._model.lookout.expect_climb_point(one.u)
        self._model.observe(np.array([one.u for one in told]), np.array([one.log_l for one in told]))

    def wanted_climb(self, left: int) -> Climb | None:
        """The climb that the search under way is to make next; None for none."""
        wanted = self._model.lookout.wanted_climb(left)
        return None if wanted is None else Climb(*wanted, _ClimbPoint(f"search {len(self._model.found.searches)}"))

    def climbed(self, summit: Summit | None, rng: np.random.Generator) -> None:
        """Let the search under way go on from the mode that its climb has found."""
        self._rng.bit_generator.state = rng.bit_generator.state
        self._model.lookout.climbed(summit)

    def estimate(self, noise: float) -> Estimate | None:
        """The combined estimate, or None while no region is known."""
        return adaptive_estimate(self._model, noise=noise)

    def conclude(self, log_l: Array, noise: float) -> Conclusion | None:
        """The last word; None where every value is −inf."""
        model = self._model
        if not np.any(np.isfinite(model.log_l)):
            return None
        if model.regions is None or model.has_news:
            model = copy.deepcopy(model)
            model.conclude()
        if model.regions is None:
            plain = SequentialModel(model.measure, model.settings, model.rng, with_design=False)
            plain.observe(model.X, model.log_l + model.offset)
            return concluded_plain(plain, self.chart, log_l, noise, unchecked=True)
        model = model.relearnt()
        estimate = adaptive_estimate(model, final=True, noise=noise)
        if estimate is None:
            return None
        posterior = adaptive_posterior(model, self.chart, estimate)
        remarks = remarks_on_adaptive(model, estimate, posterior, log_l, noise, self.chart.names)
        symmetries = tuple(symmetry.described(self.chart.names) for symmetry in model.found.all_symmetries)
        fits, jitter = tuple(model.fits), model.max_jitter
        return Conclusion(estimate, posterior, remarks, fits, jitter, tuple(model.found.searches), symmetries)
