"""The ground of a region: how far its q, its model and its surrogate reach, and what its surrogate predicts there."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wsabi._core.types import Array, Mask
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.tuning import TUNING

__all__ = ["exceeds", "ground_of", "inflation", "is_part", "reach", "within_reach"]


def inflation(dim: int) -> float:
    """Variance of q over that of the posterior, 1 + 4/max(D, 2): three in one and two dimensions, 1.4 in ten.

    Wider is safer in the tails, where ℓπ/q must not grow; but √(ℓπ/q) of a Gaussian posterior then narrows to √(2/(s² −
    1)) of q's width in every dimension at once. 1 + 4/D holds D(s² − 1), the curvature at a typical point of q, fixed.
    """
    return 1.0 + TUNING.known.inflation / max(dim, 2)


def reach(dim: int) -> float:
    """Radius √D + 4, in sds of q, within which data belong to a region: nearly all of q lies inside √D + 3.

    Out there q is so small that ℓπ/q of a negligible ℓπ may exceed all others, and a model of its square root would be
    a model of that; the check points see it and leave the model out.
    """
    return math.sqrt(dim) + TUNING.models.reach


def is_part(known: Explorer, explorer: Explorer) -> bool:
    """Whether an explorer within a known one's region has found a narrower one, of half its variance along the axes."""
    return explorer.frame.log_det < known.frame.log_det - 0.5 * known.measure.dim * math.log(2.0)


def ground_of(
    explorer: Explorer, explorers: Sequence[Explorer], X: Array, log_l: Array, least: int | None = None
) -> Mask:
    """Which of X (N, D), log ℓ (N,), are data of an explorer's surrogate: none in a narrower region inside its own.

    A spike on a broad hill has a surrogate of its own. To the surrogate of the hill its points are errors of many nats,
    by which the hill is lost. Where fewer feasible points than ``least`` are left, there is no hill beside the spike,
    and all points are data; None is 2D + 2, as many as a surrogate needs.
    """
    bulk = math.sqrt(X.shape[1]) + 2.0
    keep = np.ones(len(X), dtype=np.bool_)
    for other in explorers:
        if other is explorer or not is_part(explorer, other):
            continue
        wide, narrow = (each.frame.scaled(inflation(X.shape[1])) for each in (explorer, other))
        if np.linalg.norm(wide.whiten(other.frame.mean[None, :])) < bulk:
            keep &= np.linalg.norm(narrow.whiten(X), axis=1) > bulk
    least = 2 * X.shape[1] + 2 if least is None else least
    return keep if np.count_nonzero(keep & np.isfinite(log_l)) >= least else np.ones(len(X), dtype=np.bool_)


def exceeds(explorers: Sequence[Explorer], X: Array, log_l: Array) -> Array:
    """Nats by which log ℓ (N,) at X (N, D) exceeds what any of the surrogates predicts, and allows for, (N,)."""
    numbers = TUNING.known
    predicted = [explorer.log_likelihood(X) for explorer in explorers]
    highest = np.max(
        [log_m + numbers.excess_sds * np.minimum(sd, numbers.excess_max_sd) for log_m, sd in predicted], axis=0
    )
    return np.asarray(log_l - highest - numbers.excess)


def within_reach(known: Explorer, X: Array) -> Array:
    """log ℓ (N,) at X (N, D) by an explorer's surrogate, −inf where it has no data."""
    dim = X.shape[1]
    radius = np.linalg.norm(known.frame.scaled(inflation(dim)).whiten(X), axis=1)
    return np.where(radius < reach(dim), known.log_likelihood(X)[0], -np.inf)
