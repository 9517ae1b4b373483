"""What a state says of Z: the combined estimate, the models' own belief, and draws of the posterior."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.bulk.sample import BulkEstimate
from wsabi.adaptive.check.combine import certify
from wsabi.adaptive.check.controls import FINAL, INTERIM, Effort
from wsabi.adaptive.check.crossfit import CrossFit
from wsabi.adaptive.check.left_out import overconfidence_left_out
from wsabi.adaptive.check.pareto import smoothed
from wsabi.adaptive.check.proposal import Proposal, log_mixture
from wsabi.adaptive.models import Models
from wsabi.adaptive.state import State
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import NumericalError
from wsabi.result import Certificate, ModelBelief

__all__ = [
    "belief",
    "bulk_estimate",
    "check_points",
    "extrapolated_nats",
    "final_estimate",
    "interim_estimate",
    "posterior_draws",
    "relearnt",
]

# Numbers of the streams that estimates, the last learning and the posterior draw from.
FOR_ESTIMATES, FOR_LEARNING, FOR_POSTERIOR = range(3)


def interim_estimate(state: State) -> Certificate | None:
    """The combined estimate on the way, or None while there are no models; made once for each number of evaluations."""
    if state.models is None:
        return None
    if state.n not in state.models.estimates:
        state.models.estimates[state.n] = _estimate(state, state.models, INTERIM)
    return _with_bulk(state, state.models.estimates[state.n])


def final_estimate(state: State) -> Certificate | None:
    """The combined estimate, with more draws of the surrogates; None while there are no models."""
    return None if state.models is None else _with_bulk(state, _estimate(state, state.models, FINAL))


def bulk_estimate(state: State) -> BulkEstimate | None:
    """What the bulk points say by themselves, those of a batch under way included; None where there are none."""
    return None if state.bulk is None else state.bulk.ended().estimate


def _with_bulk(state: State, certificate: Certificate) -> Certificate:
    """The combined estimate, with that of the bulk points in its place once their error is smaller.

    The mean of thousands of weights has a standard error that can be believed, and needs no model. While the models
    know log Z better than that, their estimate stays.
    """
    bulk = bulk_estimate(state)
    if bulk is None or not bulk.is_sound or bulk.error >= certificate.log_z_std:
        return certificate
    log_z = bulk.log_z + state.data.offset
    gap, spread = log_z - certificate.model_log_z, math.hypot(bulk.error, certificate.model_log_z_std)
    return replace(
        certificate,
        log_z=log_z,
        log_z_std=bulk.error,
        check_log_z=log_z,
        check_log_z_std=bulk.error,
        difference=gap / spread,
        n_points=bulk.n,
        effective_sample_size=bulk.effective_size,
        pareto_k=bulk.pareto_k,
        misplaced=0.0,
        source="bulk",
    )


def _estimate(state: State, models: Models, effort: Effort) -> Certificate:
    """The combined estimate of these models."""
    rng = state.problem.streams.stream(FOR_ESTIMATES, state.n)
    X, log_l, numbers = state.data.checks()
    log_p = log_mixture(state.proposals, numbers - state.data.first_proposal, X)
    proposal = state.proposals[-1]
    doubt = (
        overconfidence_left_out(models.explorers, models.measure, *state.data.training()) if state.is_unasked else None
    )
    try:
        relative = certify(models, proposal, X, log_l, log_p, rng, effort, state.crossfit, doubt)
    except NumericalError:
        if state.crossfit is None:
            raise
        # Check points so close together that none can be told from the others: they check, and are no data.
        relative = certify(models, proposal, X, log_l, log_p, rng, effort)
    offset = state.data.offset
    return replace(
        relative,
        log_z=relative.log_z + offset,
        model_log_z=relative.model_log_z + offset,
        check_log_z=relative.check_log_z + offset,
        model_log_var=relative.model_log_var + 2.0 * offset,
    )


def extrapolated_nats(state: State, certificate: Certificate) -> float:
    """Nats of log Z by the final ``certificate`` that come from surrogates which exceed all evaluations."""
    if state.models is None or not state.is_unasked:
        return 0.0
    models = state.models.with_originals(
        {
            part.family: replace(part.explorer, extrapolates=False)
            for part in state.models.parts
            if part.symmetry is None
        }
    )
    return abs(certificate.log_z - _estimate(state, models, FINAL).log_z)


def relearnt(state: State) -> State:
    """The same for a last estimate, with surrogates that have learnt from all training data.

    They learn of the check points too, each of which is checked without itself.
    """
    if state.models is None or state.is_unasked:  # the latter have learnt a last time as they were made
        return state
    rng = state.problem.streams.stream(FOR_LEARNING, state.n)
    models = state.models.relearnt(*state.training_data(), rng)
    X, log_l, _ = state.data.checks()
    crossfit = CrossFit.of(models, *state.known.with_images(X, log_l), len(X)) if len(X) else None
    return replace(state, models=models, crossfit=crossfit)


def belief(state: State) -> ModelBelief:
    """The WSABI models' own mean and variance of Z, without any check; NaN where they have none."""
    try:
        if state.models is None:
            raise NumericalError("there are no models yet.")
        log_mean, log_var = state.models.moments()
    except NumericalError:
        return ModelBelief(math.nan, math.nan)
    return ModelBelief(log_mean + state.data.offset, log_var + 2.0 * state.data.offset)


def posterior_draws(state: State, n: int, certificate: Certificate) -> tuple[Array, Array]:
    """Points (N, D) with log weights (N,) of ℓπ, for expectations under the posterior.

    They are n draws of p weighted by the surrogates' ℓπ/p, Pareto-smoothed, each no heavier than the heaviest
    evaluation: a surrogate may soar between its data, and what no evaluation has met anywhere is not evidence. Where
    the estimate rests on the check points or on bulk points (``certificate``), they are these with their true weights;
    and where no draw has met the feasible part, the training data with ℓπ for weights.
    """
    if state.models is None:
        raise NumericalError("there are no models to draw from yet.")
    if certificate.source == "bulk" and state.bulk is not None:
        U, _, log_weights = state.bulk.ended().points()
        return U, log_weights
    if certificate.source == "check points":
        X, _, log_weights = check_points(state)
        return X, log_weights
    models = state.models if state.crossfit is None else state.crossfit.regions
    rng = state.problem.streams.stream(FOR_POSTERIOR, state.n)
    proposal = state.proposals[-1]
    drawn = _weighted(state, proposal, models, n, rng)
    if _effective_size(drawn[1]) < TUNING.policy.even_draws * n:
        finer = proposal.refined(lambda X: models.surrogate(X)[0], rng)
        drawn = max(drawn, _weighted(state, finer, models, n, rng), key=lambda both: _effective_size(both[1]))
    return drawn if np.any(np.isfinite(drawn[1])) else state.data.training_joint()


def check_points(state: State) -> tuple[Array, Array, Array]:
    """The check points X (N, D), log ℓ (N,) there, less the offset, and their log weights ℓπ/p (N,)."""
    X, log_l, numbers = state.data.checks()
    if not len(X):
        return X, log_l, log_l
    log_p = log_mixture(state.proposals, numbers - state.data.first_proposal, X)
    return X, log_l, log_l + state.measure.log_pdf(X) - log_p


def _weighted(
    state: State, proposal: Proposal, models: Models, n: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """n draws (n, D) of a proposal with log weights (n,) of the surrogates' ℓπ, held to those of evaluations."""
    X, log_joint = proposal.sample(n, rng), state.data.log_joint
    feasible = np.isfinite(log_joint)
    heaviest = np.max(log_joint[feasible] - proposal.log_pdf(state.data.X[feasible]))
    return X, smoothed(np.minimum(models.surrogate(X)[0] - proposal.log_pdf(X), heaviest))


def _effective_size(log_weights: Array) -> float:
    """(Σw)²/Σw² of log weights (N,); zero where none is finite."""
    if not np.any(np.isfinite(log_weights)):
        return 0.0
    w = np.exp(log_weights - np.max(log_weights))
    return float(w.sum() ** 2 / np.square(w).sum())
