"""From a model to what the user is given: the estimate of log Z with its error bar, and the posterior."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wsabi.adaptive.check.combine import FINAL, INTERIM
from wsabi.adaptive.engine import AdaptiveModel
from wsabi.errors import NumericalError
from wsabi.posterior.closed_form import Posterior
from wsabi.posterior.weighted import WeightedSamples
from wsabi.priors.chart import Chart
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.result import Certificate, ModelBelief

__all__ = ["Estimate", "Model", "concluded", "estimate_of", "posterior_of", "symmetries_of"]

Model = AdaptiveModel | SequentialModel


@dataclass(frozen=True)
class Estimate:
    """log Z with its standard deviation, the GP's own belief, and the certificate where there is one."""

    log_z: float
    log_z_std: float
    model: ModelBelief
    certificate: Certificate | None


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


def estimate_of(model: Model, *, final: bool = False) -> Estimate | None:
    """The estimate of log Z, or None where the model has none yet; ``final`` asks for more surrogate draws.

    Raises
    ------
    NumericalError
        If the models, or their check, have failed.
    """
    if isinstance(model, SequentialModel):
        belief = model.belief()
        if belief is None:
            return None
        log_z_std = belief.log_z_std
        if model.settings.measure == "adaptive":
            # Too little was told to look for the mass, and nothing checks the model: as many values drawn at random
            # would know Z to no better than this.
            log_z_std = math.hypot(log_z_std, 1.0 / math.sqrt(np.isfinite(model.log_l).sum()))
        return Estimate(belief.log_mean, log_z_std, belief, None)
    certificate = model.estimate(FINAL if final else INTERIM)
    if certificate is None:
        return None
    belief = ModelBelief(certificate.model_log_z, certificate.model_log_var)
    unseen = math.log1p(model.lookout.unseen_share), math.log1p(model.data.scarce_share)
    log_z_std = math.hypot(certificate.log_z_std, *unseen, model.found.heat, model.unsearched_nats)
    return Estimate(certificate.log_z, log_z_std, belief, certificate)


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
    return tuple(mirror.described(names) for mirror in known)
