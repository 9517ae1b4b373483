"""From a model to what the user is told: the estimate of log Z, its warnings, its posterior."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from wsabi._linalg import JITTER, NumericalError
from wsabi._types import Array
from wsabi.charts import Chart
from wsabi.engine.adaptive import AdaptiveModel
from wsabi.engine.certificate import FINAL, INTERIM, MIN_POINTS
from wsabi.fit import LOG_BOUND
from wsabi.posterior import Posterior
from wsabi.result import Certificate, ModelBelief
from wsabi.sequential import SequentialModel
from wsabi.weighted_samples import WeightedSamples

__all__ = ["Estimate", "concluded", "estimate_of", "posterior_of", "symmetries_of", "warnings_of"]

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
    """The estimate of log Z, or None where the model has none yet; ``final`` asks for more surrogate draws."""
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
    try:
        certificate = model.estimate(FINAL if final else INTERIM)
    except NumericalError:
        certificate = None
    if certificate is None:
        return None
    belief = ModelBelief(certificate.model_log_z, certificate.model_log_var)
    unseen = math.log1p(model.lookout.unseen_share), math.log1p(model.data.scarce_share)
    log_z_std = math.hypot(certificate.log_z_std, *unseen, model.found.heat)
    return Estimate(certificate.log_z, log_z_std, belief, certificate)


def posterior_of(model: Model, chart: Chart, estimate: Estimate) -> Posterior | WeightedSamples:
    """ℓπ/Z in the user's coordinates: in closed form under the prior as measure, by weighted draws otherwise."""
    if isinstance(model, AdaptiveModel):
        U, log_weights = model.posterior_draws(4000)
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


# -- warnings ---------------------------------------------------------------------------------------------------------


def warnings_of(model: Model, estimate: Estimate, log_l: Array, noise: float, names: Sequence[str]) -> list[str]:
    """Plain sentences about what may be wrong; empty when all is well.

    Parameters
    ----------
    log_l : (N,) every log-likelihood.
    noise : largest difference, in nats, between two values told for one point.
    names : of the D parameters.
    """
    found = _warn_of_numbers(model, estimate)
    near = int(np.sum(log_l > np.max(log_l) - 5.0))
    dim = model.measure.dim
    if near <= dim:
        found.append(
            f"only {near} of {len(log_l)} evaluations lie within 5 nats of the highest: the mass is hardly explored, "
            "and neither the estimate nor its standard deviation can be trusted."
        )
    if noise > 0.0:
        found.append(
            f"one point was told two values {noise:.3g} nats apart: the likelihood is noisy, which the model does not "
            "know; the first value was kept."
        )
    if isinstance(model, SequentialModel) and model.settings.measure == "adaptive":
        finite = int(np.isfinite(log_l).sum())
        of = "" if finite == len(log_l) else f" with a likelihood above zero, of {len(log_l)},"
        found.append(f"{finite} evaluations{of} are too few to look for the mass: this is plain WSABI under the prior.")
    if isinstance(model, AdaptiveModel):
        found += _warn_of_looks(model) + _warn_of_edges(model, names) + _warn_of_certificate(estimate)
    return found


def _warn_of_numbers(model: Model, estimate: Estimate) -> list[str]:
    found = []
    if not math.isfinite(estimate.log_z):
        found.append("the model's mean of Z is not positive: log Z has no estimate; use method 'wsabi-l'.")
    if estimate.model.variance_clipped:
        found.append("the variance of Z was lost in round-off and replaced by its round-off.")
    if estimate.certificate is not None and estimate.certificate.wsabi_share < 0.1:
        return found  # the rest is about WSABI's models, on which this estimate hardly rests
    # Only the lower end: a length-scale at the upper end is an axis on which the likelihood does not depend.
    if model.fits and min(model.fits[-1].lengthscales) < 1.01 * math.exp(-LOG_BOUND):
        found.append("a length-scale is at the lower end of its range: the model sees islands, not a function.")
    if model.max_jitter > JITTER:
        found.append(f"the kernel matrix needed a relative jitter of {model.max_jitter:.0e}.")
    return found


def _warn_of_looks(model: AdaptiveModel) -> list[str]:
    found = []
    outcomes = [look.outcome for look in model.found.looks]
    if outcomes and outcomes[-1] == "unfinished":
        found.append("the last search for the mass ended before it had arrived: give the run more evaluations.")
    elif len(outcomes) > 1 and outcomes[-1] == "new region":
        found.append(
            f"the last of {len(outcomes)} looks from fresh draws of the prior still found a new region: there may be "
            "more, and log Z may be too low by their mass."
        )
    elif model.found.heat > 0.0:
        found.append("the search for the mass had not arrived when its evaluations ended: give the run more.")
    elif len(outcomes) == 1:
        found.append("the budget allowed one look from the prior only: a mode elsewhere would not have been seen.")
    elif model.found.unseen_share > 0.1:
        found.append(
            f"the {len(outcomes)} looks from fresh draws of the prior keep ending in different places: regions not "
            f"found may hold {model.found.unseen_share:.2g} times the mass of those found."
        )
    echoing = model.lookout.echoing_shares
    if sum(echoing) > 0.01:
        found.append(
            f"{len(echoing)} mirror images of a known mode, with parameters exchanged or reversed, were "
            "found to hold mass too and not looked at: give the run more evaluations."
        )
    if model.found.beyond:
        found.append(
            f"parameters can be exchanged or reversed in more ways than are followed: {model.found.beyond_share:.3g} "
            "times the mass found lies in further images, log Z is too low by that, and the error bar holds it."
        )
    if model.data.n_infeasible:
        share = model.data.n_infeasible / model.data.n_starts
        counts = f"{model.data.n_infeasible} of {model.data.n_starts} draws"
        found.append(f"the likelihood is zero on about {share:.0%} of the prior ({counts}).")
    if model.data.scarce_share > 0.0:
        n_feasible = model.data.n_starts - model.data.n_infeasible
        found.append(
            f"{n_feasible} draws of the prior met a positive likelihood: further parts where it is positive may have "
            "been missed, and the error bar allows for that."
        )
    if model.data.floors:
        values = ", ".join(f"{floor:.6g}" for floor in model.data.floors)
        found.append(f"a log-likelihood of {values} was taken to mean zero likelihood.")
    return found


def _warn_of_edges(model: AdaptiveModel, names: Sequence[str]) -> list[str]:
    """Axes along which most of the mass lies in the outermost hundredth of the prior."""
    if model.regions is None:
        return []
    centre, sds = model.measure.mean, np.sqrt(np.diag(model.measure.cov))
    outside = np.zeros(model.measure.dim)
    for weight, explorer in zip(model.regions.weights, model.regions.explorers, strict=True):
        distance = np.abs(explorer.frame.mean - centre)
        outside += weight * ndtr(
            (distance - 2.576 * sds) / explorer.frame.sds
        )  # 2.576 sds leave out a hundredth, half on each side
    return [
        f"{share:.0%} of the mass lies in the outermost hundredth of the prior along {names[d]}: data and prior "
        "contradict each other there, and the evidence is that of a prior that hardly allows what was seen."
        for d, share in enumerate(outside)
        if share > 0.5
    ]


def _warn_of_certificate(estimate: Estimate) -> list[str]:
    certificate, found = estimate.certificate, []
    if certificate is None or not certificate.n_points:
        return ["no fresh points have checked the model: its standard deviation is its own claim."]
    if certificate.n_points < MIN_POINTS:
        return [f"{certificate.n_points} fresh points are too few to check the model: the claim is its own."]
    if abs(certificate.difference) > 3.0:
        found.append(
            f"model and fresh points disagree by {abs(certificate.difference):.1f} standard deviations of what they "
            "claim: the error bar was widened to hold both."
        )
    if certificate.pareto_k > 0.7:
        found.append(
            f"the fresh points' weights are heavy-tailed (Pareto k = {certificate.pareto_k:.2f} > 0.7): mass lies "
            "beyond the tails of the measure, and the error bar is too small."
        )
    elif certificate.effective_sample_size < 0.1 * certificate.n_points:
        found.append(
            f"the weights of the {certificate.n_points} fresh points are so uneven that they count as "
            f"{certificate.effective_sample_size:.1f}: the measure does not fit the mass; the error bar was widened."
        )
    if certificate.model_log_z_std > 0.5:
        found.append(
            "the models do not know the integral to half a nat: the likelihood is rough or hardly explored, and the "
            "estimate rests on the fresh points."
        )
    return found
