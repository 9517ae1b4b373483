"""A Gaussian process on points chosen without regard to the likelihood: what BMC and Bayes-Hermite share."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from wsabi._core.linalg import JITTER
from wsabi._core.types import Array
from wsabi.baselines.recording import Run, Summary
from wsabi.posterior.closed_form import ClosedForm
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.result import ModelBelief

__all__ = ["PassiveQuadrature"]

VISIBLE = 1e-3  # a datum missed by a thousandth of the largest likelihood


class PassiveQuadrature:
    """Points from ``propose``, a model of ℓ or ℓ̃ on them, closed-form moments of Z.

    Parameters
    ----------
    run : where to evaluate.
    model : the GP, with its method and its refits.
    propose : from a number n to n new points (n, D) in base coordinates.
    """

    def __init__(self, run: Run, model: SequentialModel, propose: Callable[[int], Array]) -> None:
        self._run, self._model, self._propose = run, model, propose

    def advance(self) -> bool:
        """Evaluate the next points and add them to the model."""
        U = self._propose(self._run.chunk(self._run.budget))
        self._model.observe(U, self._run.evaluate(U))
        return True

    def belief(self) -> ModelBelief | None:
        """The model's closed-form moments of Z."""
        return self._model.belief()

    def summary(self) -> Summary | None:
        """Moments, posterior and warnings from every evaluation of the run."""
        run, model = self._run, self._model
        known = len(model.X)
        if known < run.n_evals:  # a batch was cut short: its points count like any others
            model.observe(run.base_points[known:].copy(), run.log_f[known:].copy())
        belief = model.belief()
        if belief is None or model.gp is None:
            return None
        posterior = ClosedForm.from_gp(
            model.gp, alpha=model.alpha, method=model.settings.method, measure=model.measure, chart=run.chart,
            log_l_max=model.log_l_max, log_z=belief.log_mean,
        )  # fmt: skip
        return Summary(belief, posterior, tuple(self._warnings(belief)), tuple(model.fits), model.max_jitter)

    def _warnings(self, belief: ModelBelief) -> list[str]:
        model = self._model
        found = []
        near = int(np.sum(model.log_l > model.log_l_max - 5.0))
        if not math.isfinite(belief.log_mean):
            found.append("the model's mean of Z is not positive: log Z has no estimate.")
        if near <= self._run.chart.dim:
            found.append(
                f"only {near} of {self._run.n_evals} points lie within 5 nats of the highest likelihood: neither the "
                "estimate nor its standard deviation can be trusted."
            )
        if belief.variance_clipped:
            found.append("the variance of Z was lost in round-off and replaced by its round-off.")
        if model.fits and model.fits[-1].at_bound:
            found.append("a length-scale is at the end of its range: the model says little about that axis.")
        gp = model.gp
        # λ√ε is what the jitter lets the model miss a datum by; ℓ̃ is at most √2, and ℓ one.
        if gp is not None and gp.scale * math.sqrt(gp.jitter) > VISIBLE:
            found.append(
                f"the model's scale is {gp.scale:.3g} times the largest likelihood: no length-scale fits the data, and "
                "the jitter does the work of noise; the estimate can be off by any factor."
            )
        if model.max_jitter > JITTER:
            found.append(f"the kernel matrix needed a relative jitter of {model.max_jitter:.0e}.")
        return found
