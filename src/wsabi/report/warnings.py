"""Sentences about a result: warnings, which say that the number is doubtful, and notes, which do not.

Every sentence says what was seen, what it means for the number, and what to do about it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from wsabi._core.linalg import JITTER
from wsabi._core.types import Array
from wsabi.adaptive.state import State
from wsabi.adaptive.tuning import TUNING
from wsabi.gp.fit import LOG_BOUND
from wsabi.likelihood import likelihood_hint
from wsabi.posterior.posterior import Posterior
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.report.estimate import NEAR, Estimate

__all__ = ["Remarks", "remarks_on_adaptive", "remarks_on_plain"]

WIDE = 1.0  # nats: an evidence known to no better than a factor of e decides between no two models
FEW_DRAWS = 100.0  # effective draws: with fewer a posterior mean is known to no better than a tenth of its sd
MISPLACED = 0.15  # of the posterior: a mean may then be off by a seventh of the distance to where it belongs
NOTABLE = 0.1  # nats: a tenth of the evidence
MOST_VALUES = 3  # values or names in one sentence


@dataclass(frozen=True)
class Remarks:
    """Sentences about one result."""

    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: Remarks) -> Remarks:
        return Remarks(self.warnings + other.warnings, self.notes + other.notes)


def remarks_on_plain(
    model: SequentialModel, estimate: Estimate, log_l: Array, noise: float, *, unchecked: bool = False
) -> Remarks:
    """All warnings and notes on a result under the prior as measure; the arguments are as below.

    ``unchecked`` is true where it replaces the adaptive engine, because there are too few values to search for modes.
    """
    remarks = _on_values(log_l, noise, model.measure.dim) + _on_numbers(model, estimate)
    return remarks + Remarks((_too_few(model),)) if unchecked else remarks


def remarks_on_adaptive(
    state: State,
    estimate: Estimate,
    posterior: Posterior,
    log_l: Array,
    noise: float,
    names: Sequence[str],
) -> Remarks:
    """All warnings and notes on a result of the adaptive engine.

    Parameters
    ----------
    log_l : (N,) every log-likelihood, as the user's function returned it.
    noise : largest difference, in nats, between two values told for one point.
    names : of the D parameters.
    """
    remarks = _on_values(log_l, noise, state.measure.dim) + _on_numbers(state, estimate)
    remarks += _on_told(state, estimate) if state.is_unasked else _on_searches(state)
    remarks += _on_modes_left(state) + _on_declared(state, names) + _on_feasibility(state)
    return remarks + _on_edges(state, names) + _on_check(estimate) + _on_posterior(estimate, posterior)


def _listed(items: Sequence[str]) -> str:
    """The first few of them, and how many more there are."""
    shown = ", ".join(items[:MOST_VALUES])
    return shown if len(items) <= MOST_VALUES else f"{shown} and {len(items) - MOST_VALUES} more"


def _on_values(log_l: Array, noise: float, dim: int) -> Remarks:
    warnings = []
    hint = likelihood_hint(log_l, 2 * dim + 2)
    if hint is not None:
        warnings.append(hint)
    near = int(np.sum(log_l > np.max(log_l) - NEAR))
    if near <= dim:
        warnings.append(
            f"Only {near} of {len(log_l)} evaluations lie within {NEAR:g} nats of the highest log-likelihood: the mode "
            "is hardly explored, and neither log Z nor its error bar can be trusted. Use a larger budget."
        )
    if noise > 0.0:
        warnings.append(
            f"The likelihood gave two values {noise:.3g} nats apart at one point: it is noisy, and noise is not "
            "modelled. The first value was kept. Fix the random numbers inside the likelihood, or average them out."
        )
    return Remarks(tuple(warnings))


def _on_numbers(model: State | SequentialModel, estimate: Estimate) -> Remarks:
    warnings, notes = [], []
    if not math.isfinite(estimate.log_z):
        warnings.append('The model\'s mean of Z is not positive, so log Z has no estimate. Use method="wsabi-l".')
    elif estimate.log_z_std > WIDE:
        warnings.append(
            f"The error bar is ± {estimate.log_z_std:.3g} nats: the evidence is known to a factor of "
            f"{_factor(estimate.log_z_std)} at best. Use a larger budget."
        )
    if estimate.model.variance_clipped:
        notes.append("The model's variance of Z is below round-off; the size of the round-off was used instead.")
    if estimate.certificate is not None and estimate.certificate.wsabi_share < 0.1:
        return Remarks(tuple(warnings), tuple(notes))  # the rest is about models on which this estimate hardly rests
    # Only the lower end: a length-scale at the upper end is an axis on which the likelihood does not depend.
    if model.fits and min(model.fits[-1].lengthscales) < 1.01 * math.exp(-LOG_BOUND):
        warnings.append(
            "A length-scale is at the lower end of its range: the model sees separate points and no function, and its "
            "error bar means little. The likelihood may be noisy or have steps; otherwise use a larger budget."
        )
    if model.max_jitter > JITTER:
        notes.append(
            f"Points lie so close together that the kernel matrix needed a relative jitter of {model.max_jitter:.0e}."
        )
    return Remarks(tuple(warnings), tuple(notes))


def _factor(nats: float) -> str:
    """exp(nats) for a sentence."""
    return f"{math.exp(nats):.2g}" if nats < 20.0 else f"10^{nats / math.log(10.0):.0f}"


def _too_few(model: SequentialModel) -> str:
    finite = int(np.isfinite(model.log_l).sum())
    of = "" if finite == len(model.log_l) else f", of {len(model.log_l)},"
    return (
        f"Only {finite} evaluations{of} have a likelihood above zero, too few to search for modes: this is plain WSABI "
        "under the prior, and nothing has checked it. Use a larger budget."
    )


def _on_searches(state: State) -> Remarks:
    warnings = []
    searches = state.known.searches
    outcomes = [search.outcome for search in searches]
    if state.known.unfinished_nats > 0.0 or (outcomes and outcomes[-1] == "unfinished"):
        warnings.append(
            "The budget ran out while a search was still climbing: log Z is probably too low. Use a larger budget."
            if state.known.unfinished_nats > 0.0
            else "The last search for modes was given up before it had ended. Use a larger budget."
        )
    elif len(outcomes) > 1 and outcomes[-1] == "new region":
        warnings.append(
            f"The last of {len(outcomes)} searches still found a new mode: there may be more, and log Z is then too "
            "low. Use a larger budget, or a second seed."
        )
    elif sum(search.start == "prior" for search in searches) == 1 and state.problem.settings.modes != "one":
        warnings.append(
            "Only one search for modes was possible: a second mode would have gone unnoticed. Use a larger budget."
        )
    elif state.known.unseen_share > 0.1:
        warnings.append(
            f"The {len(outcomes)} searches keep ending in different places: modes that were not found may hold "
            f"{state.known.unseen_share:.2g} times the evidence of those found, and the error bar allows for that. "
            "Use a larger budget."
        )
    return Remarks(tuple(warnings))


def _on_told(state: State, estimate: Estimate) -> Remarks:
    """Of a result that rests on evaluations which the engine has not chosen."""
    warnings = [
        "Most evaluations were told and not asked for: a mode where none of them lies has gone unnoticed. Ask for "
        "more, by run() or ask(): the first are then spent on searching."
    ]
    if state.known.unfinished_nats > 0.0:
        warnings.append(
            "The evaluations that were told do not come close to a mode: log Z is probably too low. Evaluate more, by "
            "run() or ask()."
        )
    elif estimate.error.unfinished > NOTABLE:
        warnings.append(
            f"The models expect a likelihood above that of every evaluation: {estimate.error.unfinished:.2g} nats of "
            "log Z rest on that, and the error bar holds them. Evaluate near the mode, by run() or ask()."
        )
    return Remarks(tuple(warnings))


def _on_modes_left(state: State) -> Remarks:
    """Warnings of places that are known to hold part of Z and were not searched."""
    warnings = []
    if state.unsearched_nats > 0.0:
        warnings.append(
            "A point was evaluated whose likelihood is far higher than the known modes explain, and the budget ended "
            f"before a search there: log Z may be too low by {state.unsearched_nats:.3g} nats, which the error bar "
            "holds. Use a larger budget."
        )
    shares = state.unsearched_images
    if sum(shares) > 0.01:
        warnings.append(
            f"{len(shares)} images of a known mode, with parameters exchanged or reversed, hold part of the evidence "
            "too and were not searched; the error bar allows for that. Use a larger budget."
        )
    if state.known.beyond:
        warnings.append(
            f"Parameters can be exchanged or reversed in more ways than are followed: {state.known.beyond_share:.3g} "
            "times the evidence found lies in further images. log Z is too low by that, and the error bar holds it. "
            "Order the parameters, so that one image is left."
        )
    return Remarks(tuple(warnings))


def _on_declared(state: State, names: Sequence[str]) -> Remarks:
    """Exchanges that the user has declared and that the evaluations did not prove."""
    images, known, warnings = state.images, state.known, []
    for symmetry in images.candidates.declared:
        what = symmetry.described(names)
        if symmetry in known.refuted:
            off = images.differences.get(symmetry, math.inf)
            warnings.append(
                f"Settings(exchangeable=) declares that {what} changes nothing, but the log-likelihood was seen to "
                f"change by {off:.2g} nats: the declaration is wrong, or the likelihood noisy. It is not used, and "
                "log Z does not rest on it. Correct or remove it."
            )
        elif symmetry not in [*known.group, *known.beyond]:
            warnings.append(
                f"Settings(exchangeable=) declares that {what} changes nothing, but the evaluations ended before that "
                "was proved. It is not used, and modes may be missing from log Z. Use a larger budget."
            )
    return Remarks(tuple(warnings))


def _on_feasibility(state: State) -> Remarks:
    warnings, notes, data = [], [], state.data
    if data.n_infeasible:
        share = data.n_infeasible / data.n_draws
        notes.append(
            f"The likelihood is zero on about {share:.0%} of the prior ({data.n_infeasible} of {data.n_draws} draws)."
        )
    if data.scarce_share > 0.0:
        warnings.append(
            f"Only {data.n_draws - data.n_infeasible} draws of the prior met a positive likelihood: other parts where "
            "it is positive may have been missed, and the error bar allows for that. Narrow the prior if you can."
        )
    if data.floors:
        values = _listed([f"{floor:.6g}" for floor in data.floors])
        notes.append(
            f"A log-likelihood of {values} lies so far below all others that it is counted as zero likelihood; what "
            "that can change of log Z is in the error bar."
        )
    return Remarks(tuple(warnings), tuple(notes))


def _on_edges(state: State, names: Sequence[str]) -> Remarks:
    """Axes along which most of the posterior lies in the outermost hundredth of the prior."""
    if state.models is None:
        return Remarks()
    centre, sds = state.measure.mean, np.sqrt(np.diag(state.measure.cov))
    outside = np.zeros(state.measure.dim)
    for weight, explorer in zip(state.models.weights, state.models.explorers, strict=True):
        distance = np.abs(explorer.frame.mean - centre)
        # 2.576 sds leave out a hundredth, half on each side.
        outside += weight * ndtr((distance - 2.576 * sds) / explorer.frame.sds)
    there = [f"{names[d]} ({share:.0%})" for d, share in enumerate(outside) if share > 0.5]
    if not there:
        return Remarks()
    return Remarks(
        notes=(
            f"The posterior lies in the outermost hundredth of the prior along {_listed(there)}: data and prior "
            "contradict each other there, and the evidence is that of a prior that hardly allows what was seen.",
        )
    )


def _on_check(estimate: Estimate) -> Remarks:
    certificate = estimate.certificate
    if certificate is None or certificate.n_points < TUNING.check.min_points:
        n = 0 if certificate is None else certificate.n_points
        seen = f"Only {n} independent check points were" if n else "No independent check points were"
        return Remarks(
            (f"{seen} evaluated: the error bar has not been checked and may be too small. Use a larger budget.",)
        )
    warnings, notes = [], []
    if certificate.source == "bulk":
        notes.append(
            f"log Z, its error bar and the posterior come from {certificate.n_points} evaluations that no model has "
            f"learnt of, which count as {certificate.effective_sample_size:.0f} independent draws of the posterior."
        )
        return Remarks(notes=tuple(notes))
    if certificate.rests_on_points:
        notes.append(
            f"The models do not describe this likelihood well (it may be noisy or rough): log Z, its error bar and the "
            f"posterior come from the {certificate.n_points} independent check points alone."
        )
        return Remarks(notes=tuple(notes))
    if abs(certificate.difference) > 3.0:
        warnings.append(
            f"Models and check points differ by {abs(certificate.difference):.1f} standard deviations: the models "
            "missed something. The error bar was widened to hold both. Use a larger budget."
        )
    if certificate.pareto_k > TUNING.check.max_tail:
        warnings.append(
            f"A few check points dominate (Pareto k = {certificate.pareto_k:.2f}, above {TUNING.check.max_tail}): do "
            "not rely on the error bar. Use a larger budget."
        )
    elif certificate.effective_sample_size < 0.1 * certificate.n_points:
        warnings.append(
            f"The {certificate.n_points} check points count as {certificate.effective_sample_size:.1f} only, because "
            "most fell where the posterior is small. The error bar was widened. Use a larger budget."
        )
    if certificate.model_log_z_std > 0.5:
        warnings.append(
            "The internal models do not know log Z to half a nat: the likelihood is rough or hardly explored, and the "
            "value rests mostly on the check points. Use a larger budget."
        )
    return Remarks(tuple(warnings), tuple(notes))


def _on_posterior(estimate: Estimate, posterior: Posterior) -> Remarks:
    if estimate.certificate is None:
        return Remarks()
    warnings, size = [], posterior.effective_sample_size
    if size < FEW_DRAWS:
        warnings.append(
            f"The posterior rests on {len(posterior.points)} weighted points that count as {size:.0f} draws: its means "
            f"are known to about {1.0 / math.sqrt(size):.2g} of a standard deviation, its tails less well. Use a "
            "larger budget."
        )
    elif estimate.certificate.misplaced > MISPLACED and not estimate.certificate.rests_on_points:
        warnings.append(
            f"The check points say that about {min(estimate.certificate.misplaced, 1.0):.0%} of the posterior's "
            "probability is in the wrong place; log Z is corrected for that, means and quantiles are not. Use a larger "
            "budget."
        )
    return Remarks(tuple(warnings))
