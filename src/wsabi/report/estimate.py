"""From a model to what the user is given: the estimate of log Z with its error bar, and the posterior."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.check.combine import FINAL, INTERIM
from wsabi.adaptive.engine import AdaptiveModel
from wsabi.errors import NumericalError
from wsabi.posterior.closed_form import Posterior
from wsabi.posterior.weighted import WeightedSamples
from wsabi.priors.chart import Chart
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.result import Certificate, ErrorBudget, ModelBelief

__all__ = ["NEAR", "Estimate", "Model", "concluded", "estimate_of", "posterior_of", "symmetries_of"]

Model = AdaptiveModel | SequentialModel
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


def concluded(model: Model) -> Model | None:
    """A model with an estimate, the given one left as it is; None where every value is −inf.

    An adaptive model learns a last time in a copy, in which it is concluded if it is still looking; one with too few
    data to have looked at all gives way to plain WSABI under the prior.
    """
    if not np.any(np.isfinite(model.log_l)):
        return None
    if isinstance(model, SequentialModel):
        return model
    if model.regions is None or model.has_news:
        model = copy.deepcopy(model)
        model.conclude()
    if model.regions is not None:
        return model.relearnt()
    plain = SequentialModel(model.measure, model.settings, model.rng, with_design=False)
    plain.observe(model.X, model.log_l + model.offset)
    return plain


def estimate_of(model: Model, *, final: bool = False, noise: float = 0.0) -> Estimate | None:
    """The estimate of log Z, or None where the model has none yet.

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
    if isinstance(model, SequentialModel):
        belief = model.belief()
        if belief is None:
            return None
        statistical = belief.log_z_std
        if model.settings.measure == "adaptive":
            # Too little was told to search for modes, and nothing checks the model: as many values drawn at random
            # would know Z to no better than this.
            statistical = math.hypot(statistical, 1.0 / math.sqrt(np.isfinite(model.log_l).sum()))
        return Estimate(belief.log_mean, ErrorBudget(statistical), belief, None)
    certificate = model.estimate(FINAL if final else INTERIM)
    if certificate is None:
        return None
    error = ErrorBudget(
        statistical=certificate.log_z_std,
        unseen=math.log1p(model.lookout.unseen_share),
        unsearched=model.unsearched_nats,
        unfinished=model.found.heat,
        infeasible=math.hypot(math.log1p(model.data.scarce_share), model.floor_nats(certificate.log_z)),
        noise=_noise_of_mean(model.log_l, noise),
        round_off=model.data.round_off,
    )
    return Estimate(certificate.log_z, error, model.belief(), certificate)


def _noise_of_mean(log_l: Array, noise: float) -> float:
    """Nats that noise of the likelihood leaves in log Z, for two values ``noise`` apart at one point.

    The difference of two values has √2 of their sd. What counts is the mean over the evaluations that carry Z, about
    those within NEAR nats of the best log ℓ (N,).
    """
    return noise / math.sqrt(2.0 * max(1, int(np.sum(log_l > np.max(log_l) - NEAR))))


def posterior_of(model: Model, chart: Chart, estimate: Estimate) -> Posterior | WeightedSamples:
    """ℓπ/Z in the user's coordinates: in closed form under the prior as measure, by weighted draws otherwise."""
    if isinstance(model, AdaptiveModel):
        if estimate.certificate is None:
            raise NumericalError("there is no estimate to draw a posterior from.")
        U, log_weights = model.posterior_draws(4000, estimate.certificate)
        return WeightedSamples.from_log_weights(
            chart.to_user(U),
            log_weights,
            chart.names,
            keyed=chart.keyed,
            groups=chart.groups,
            support=chart.support,
        )
    if model.gp is None:
        raise NumericalError("the model holds no finite value.")
    return Posterior.from_gp(
        model.gp,
        alpha=model.alpha,
        method=model.settings.method,
        measure=model.measure,
        chart=chart,
        log_l_max=model.log_l_max,
        log_z=estimate.model.log_mean,
    )


def symmetries_of(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """Ways in which parameters can be exchanged or reversed, with their D names."""
    known = model.found.all_symmetries if isinstance(model, AdaptiveModel) else []
    return tuple(symmetry.described(names) for symmetry in known)
