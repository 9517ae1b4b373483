"""log Z and posterior under another prior, from the evaluations of a finished run.

Z' = ∫ ℓπ' = Z · E[π'/π], the expectation under the posterior ℓπ/Z that the run has modelled: no evaluation is needed.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from wsabi._linalg import NumericalError, cholesky, solve_lower, square_distances
from wsabi._logspace import log_sum_exp
from wsabi._types import Array
from wsabi.posterior import Posterior
from wsabi.priors import Prior, as_prior
from wsabi.result import ModelBelief, Result
from wsabi.weighted_samples import WeightedSamples

__all__ = ["reweigh"]

DRAWS = 4000
FEW = 10.0  # effective draws, below which their spread is not known either


def reweigh(result: Result, old: Prior, new: Any) -> Result:
    """The result under the prior ``new`` instead of ``old``, with no new evaluation.

    The variance of log Z is that of the run, multiplied by 1 + c² (c the coefficient of variation of π'/π under the
    posterior: the same evaluations speak for that many times fewer independent ones), plus 1/ESS for the draws, plus
    log²(1 − u) for the share u of the new posterior that no evaluation is near, which may not exist. With u above 0.9,
    or fewer than ten effective draws, nothing is known, and the standard deviation is infinite.

    Raises
    ------
    TypeError
        If either prior has no density (a Transform).
    ValueError
        If the parameters differ, or the new posterior has no overlap with the old one.
    """
    new = as_prior(new)
    if new.dim != len(result.names):
        raise ValueError(f"the other prior has {new.dim} dimensions; the result has {len(result.names)}.")
    X, weights = _draws(result)
    log_ratio = new.log_pdf(X) - old.log_pdf(X)
    log_w = np.log(weights) + log_ratio
    if not np.any(np.isfinite(log_w)):
        raise ValueError("the other prior gives no weight to any point of this posterior: run again under that prior.")
    shift = log_sum_exp(log_w)
    new_weights = np.exp(log_w - shift)
    ess = 1.0 / float(np.square(new_weights).sum())
    spread = float(weights @ np.square(np.exp(log_ratio - shift))) - 1.0  # c² = E[(π'/π)²]/E[π'/π]² − 1
    few = min(FEW, 0.5 / float(np.square(weights).sum()))  # or half of what the draws count for under the old prior
    unseen = _unseen_share(X, weights, new_weights, result.points)
    variance = result.log_z_std**2 * (1.0 + max(spread, 0.0)) + 1.0 / ess
    variance += math.inf if unseen > 0.9 or ess < few else math.log1p(-unseen) ** 2
    log_z = result.log_z + shift
    belief = ModelBelief(result.model.log_mean + shift, 2.0 * (log_z + 0.5 * math.log(math.expm1(min(variance, 50.0)))))
    return dataclasses.replace(
        result,
        log_z=log_z,
        log_z_std=math.sqrt(variance),
        model=belief,
        names=new.names,
        converged=False,
        warnings=result.warnings + tuple(_warnings(ess, unseen)),
        posterior=WeightedSamples(X, new_weights, new.names, getattr(new, "keyed", False), getattr(new, "groups", ())),
        certificate=None,
        prior=new,
    )


def _draws(result: Result) -> tuple[Array, Array]:
    """Points (M, D) and weights (M,) above zero of the modelled posterior, in the user's coordinates."""
    posterior = result.posterior
    sample = posterior.weighted_sample(DRAWS, rng=0) if isinstance(posterior, Posterior) else posterior
    keep = sample.weights > 0.0
    return sample.points[keep], sample.weights[keep]


def _unseen_share(X: Array, old: Array, new: Array, points: Array) -> float:
    """Share of the new posterior's draws that lie farther from any evaluation than nearly all of the old ones did.

    Distances are in standard deviations of the old posterior; "nearly all" is 99 % of its mass.
    """
    mean = old @ X
    cov = (X - mean).T @ ((X - mean) * old[:, None])
    try:
        L = cholesky(cov)
    except NumericalError:
        return 1.0
    draws, seen = solve_lower(L, (X - mean).T).T, solve_lower(L, (points - mean).T).T
    nearest = np.sqrt(np.min(square_distances(draws, seen), axis=1))
    order = np.argsort(nearest)
    usual = nearest[order][np.searchsorted(np.cumsum(old[order]), 0.99).clip(max=len(order) - 1)]
    return max(0.0, float(new[nearest > usual].sum()) - 0.01)


def _warnings(ess: float, unseen: float) -> list[str]:
    found = []
    if ess < 100.0:
        found.append(
            f"the other prior moves the posterior away from the evaluations (effective sample size {ess:.0f}): "
            "run again under that prior."
        )
    if unseen > 0.05:
        found.append(f"about {unseen:.0%} of the posterior under the other prior is far from every evaluation.")
    return found
