"""Leads: evaluations that the known regions do not account for; each is searched before anything else is done.

An evaluation at x is a lead if two things hold. The density p from which check points are drawn, which follows all
known regions, is far too small there: ℓπ/(Z p) > RATIO. And no region's surrogate predicts so much: log ℓ exceeds what
each of them expects by EXCESS nats and SDS of its own standard deviations. The first alone also holds in the tail of a
region that is known well, the second alone wherever a surrogate is young. It does not matter who asked for the
evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wsabi._core.types import Array, Indices, Mask
from wsabi.adaptive.regions import inflation
from wsabi.adaptive.search.anneal import Explorer
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.priors import Measure

__all__ = ["DEPTH", "Lead", "Searched", "exceeds", "unaccounted"]

RATIO = 10.0  # of ℓπ/Z to p: a proposal that follows ℓπ has weights of this size in one draw of a thousand
EXCESS = 2.0  # nats above the prediction: what a surrogate with an honest sd is wrong by in its tails
SDS = 2.0  # of the surrogate, added to the prediction
MAX_SD = 2.0  # nats: a surrogate that is less sure than this does not predict, and is not excused by it
DEPTH = 10.0  # nats below the best ℓπ known: a mode may be this much higher than the flank where it was met


@dataclass(frozen=True)
class Lead:
    """A point x (D,) to search, its log ℓπ, and the number of the evaluation."""

    x: Array
    log_joint: float
    index: int


@dataclass(frozen=True)
class Searched:
    """Where the search of a lead ended: its q, and the best log ℓπ it has met."""

    frame: Frame
    best: float

    def covers(self, lead: Lead) -> bool:
        """Whether a lead lies in the bulk of that q, and is no more than a nat higher than the best met there."""
        radius = np.linalg.norm(self.frame.scaled(inflation(len(lead.x))).whiten(lead.x[None, :]))
        return bool(radius < math.sqrt(len(lead.x)) + 2.0 and lead.log_joint <= self.best + 1.0)


def exceeds(explorers: Sequence[Explorer], X: Array, log_l: Array) -> Array:
    """Nats by which log ℓ (N,) at X (N, D) exceeds what any of the surrogates predicts, with EXCESS and SDS; (N,)."""
    predicted = [explorer.log_likelihood(X) for explorer in explorers]
    highest = np.max([log_m + SDS * np.minimum(sd, MAX_SD) for log_m, sd in predicted], axis=0)
    return np.asarray(log_l - highest - EXCESS)


def unaccounted(explorers: Sequence[Explorer], measure: Measure, X: Array, log_l: Array, log_ratio: Array) -> Indices:
    """Which of X (N, D), log ℓ (N,) are leads, given log ℓπ/(Z p) (N,); the one of highest ℓπ first."""
    with np.errstate(invalid="ignore"):
        log_joint = log_l + measure.log_pdf(X)
        high = log_joint > max(explorer.top_joint for explorer in explorers) - DEPTH
        candidates: Mask = np.isfinite(log_joint) & high & (log_ratio > math.log(RATIO))
    some = np.flatnonzero(candidates)
    if not len(some):
        return some
    some = some[exceeds(explorers, X[some], log_l[some]) > 0.0]
    return np.asarray(some[np.argsort(-log_joint[some])])
