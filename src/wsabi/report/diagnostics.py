"""What pictures of a run need to know of its models: slices through the mode, predictions at the check points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.estimate import check_points
from wsabi.adaptive.state import State
from wsabi.errors import NumericalError
from wsabi.posterior.posterior import Posterior
from wsabi.priors.chart import Chart
from wsabi.quadrature.warp import likelihood_moments
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.result import CheckPoints, Diagnostics, Slice

__all__ = ["adaptive_diagnostics", "plain_diagnostics"]

Predict = Callable[[Array], tuple[Array, Array]]

GRID = 101  # points of a slice
TAIL = 1e-3  # posterior probability beyond either end of a slice, before it is made longer
MARGIN = 0.5  # of that length, added at either end


def adaptive_diagnostics(state: State, chart: Chart, posterior: Posterior) -> Diagnostics | None:
    """Of the adaptive engine's surrogates, which have not seen the check points; None where there are none."""
    models = state.models
    if models is None:
        return None

    def predict(U: Array) -> tuple[Array, Array]:
        log_joint, sd = models.surrogate(U)
        return log_joint - state.measure.log_pdf(U) + state.data.offset, sd

    mode = chart.to_user(state.data.X[[np.argmax(state.data.log_joint)]])[0]
    U, log_l, log_weights = check_points(state)
    check = None
    if len(U) and np.any(np.isfinite(log_weights)):
        weights = np.exp(log_weights - np.max(log_weights))
        predicted, sd = predict(U)
        given = chart.log_weight(U)
        check = CheckPoints(
            chart.to_user(U), log_l + state.data.offset - given, predicted - given, sd, weights / weights.sum()
        )
    return Diagnostics(mode, _slices(chart, posterior, mode, predict), check)


def plain_diagnostics(model: SequentialModel, chart: Chart, posterior: Posterior) -> Diagnostics | None:
    """Of one warped GP under the prior; None while it holds no finite value."""
    gp = model.gp
    if gp is None:
        return None

    def predict(U: Array) -> tuple[Array, Array]:
        m, variance = likelihood_moments(model.settings.method, model.alpha, *gp.predict(U))
        with np.errstate(divide="ignore", invalid="ignore"):
            log_m = np.log(np.maximum(m, 0.0))
            return log_m + model.log_l_max, np.sqrt(np.log1p(np.maximum(variance, 0.0) / np.square(m)))

    mode = chart.to_user(model.X[[np.argmax(model.log_l + model.measure.log_pdf(model.X))]])[0]
    return Diagnostics(mode, _slices(chart, posterior, mode, predict))


def _slices(chart: Chart, posterior: Posterior, mode: Array, predict: Predict) -> tuple[Slice, ...]:
    """The model of log ℓ along every parameter, through the mode (D,); none where x_d depends on more than u_d."""
    if not chart.separable:
        return ()
    try:
        ends = np.sort([*posterior.quantile([TAIL, 1.0 - TAIL]), mode], axis=0)[[0, -1]]
    except NumericalError:  # a model without mass
        return ()
    margin = MARGIN * np.ptp(ends, axis=0)
    low, high = chart.support
    slices = []
    for d in range(chart.dim):
        first, last = max(ends[0, d] - margin[d], low[d]), min(ends[1, d] + margin[d], high[d])
        X = np.tile(mode, (GRID, 1))
        X[:, d] = np.linspace(first, last, GRID)
        U = chart.to_base(X)
        keep = np.all(np.isfinite(U), axis=1)
        mean, sd = predict(U[keep])
        slices.append(Slice(X[keep, d], mean - chart.log_weight(U[keep]), sd))
    return tuple(slices)
