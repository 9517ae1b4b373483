"""From a model to what the user is given: the estimate of log Z with its error bar, and the posterior."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.estimate import belief, extrapolated_nats, final_estimate, interim_estimate, posterior_draws
from wsabi.adaptive.state import State
from wsabi.errors import NumericalError
from wsabi.posterior.posterior import Posterior
from wsabi.posterior.weighted import WeightedSamples
from wsabi.priors.chart import Chart
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.report.density import SurrogateDensity
from wsabi.report.diagnostics import adaptive_diagnostics
from wsabi.result import Certificate, ErrorBudget, ModelBelief

__all__ = ["NEAR", "Estimate", "adaptive_estimate", "adaptive_posterior", "plain_estimate"]

# Draws of the posterior. The 99 % quantile of a heavy-tailed scale parameter (tau of the eight schools) has a standard
# error of 0.2 sds with 4,000 of them, and 0.1 with 16,000, which take half a second in ten dimensions.
DRAWS = 16_000
NEAR = 5.0  # nats below the highest log ℓ: points that far down carry less than a hundredth of its density


@dataclass(frozen=True)
class Estimate:
    """log Z with the parts of its error bar, the GP's own belief, and the certificate where there is one."""

    log_z: float
    error: ErrorBudget
    model: ModelBelief
    certificate: Certificate | None

    @property
    def log_z_std(self) -> float:
        """The error bar, in nats."""
        return self.error.total


def plain_estimate(model: SequentialModel, *, unchecked: bool = False) -> Estimate | None:
    """The closed form under the prior, or None while every value is −inf.

    ``unchecked`` is true where it replaces the adaptive engine: there are too few values to search for modes, and
    nothing checks the model. N values drawn at random would give Z to no better than 1/√N nats, which is added.
    """
    belief = model.belief()
    if belief is None:
        return None
    statistical = belief.log_z_std
    if unchecked:
        statistical = math.hypot(statistical, 1.0 / math.sqrt(np.isfinite(model.log_l).sum()))
    return Estimate(belief.log_mean, ErrorBudget(statistical), belief, None)


def adaptive_estimate(state: State, *, final: bool = False, noise: float = 0.0) -> Estimate | None:
    """The combined estimate of log Z, or None while no region is known.

    This is the one place where the error bar is put together.

    Parameters
    ----------
    final : whether to take more surrogate draws.
    noise : largest difference, in nats, between two values told for one point.

    Raises
    ------
    NumericalError
        If the models, or their check, have failed.
    """
    certificate = final_estimate(state) if final else interim_estimate(state)
    if certificate is None:
        return None
    error = ErrorBudget(
        statistical=certificate.log_z_std,
        unseen=math.log1p(state.unseen_share),
        unsearched=state.unsearched_nats,
        unfinished=math.hypot(state.known.unfinished_nats, extrapolated_nats(state, certificate)),
        infeasible=math.hypot(math.log1p(state.data.scarce_share), state.floor_nats(certificate.log_z)),
        noise=_noise_of_mean(state.data.log_l, noise),
        round_off=state.data.round_off,
    )
    return Estimate(certificate.log_z, error, belief(state), certificate)


def _noise_of_mean(log_l: Array, noise: float) -> float:
    """Nats that noise of the likelihood leaves in log Z, for two values ``noise`` apart at one point.

    The difference of two values has √2 of their sd. What counts is the mean over the evaluations that carry Z, about
    those within NEAR nats of the best log ℓ (N,).
    """
    return noise / math.sqrt(2.0 * max(1, int(np.sum(log_l > np.max(log_l) - NEAR))))


def adaptive_posterior(state: State, chart: Chart, estimate: Estimate) -> Posterior:
    """ℓπ/Z in the user's coordinates, by weighted draws."""
    if estimate.certificate is None:
        raise NumericalError("there is no estimate to draw a posterior from.")
    U, log_weights = posterior_draws(state, DRAWS, estimate.certificate)
    by_points = estimate.certificate.source == "check points"
    drawn = WeightedSamples.from_log_weights(
        chart.to_user(U),
        log_weights,
        chart.names,
        keyed=chart.keyed,
        groups=chart.groups,
        support=chart.support,
        density=None if by_points else SurrogateDensity.of(state, chart, estimate.log_z),
    )
    posterior = Posterior(drawn)
    return replace(posterior, diagnostics=adaptive_diagnostics(state, chart, posterior))
