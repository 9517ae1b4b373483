"""Leads: evaluations that the known regions do not account for; each is searched before anything else is done.

An evaluation at x is a lead if two things hold. The density p from which check points are drawn, which follows all
known regions, is far too small there: ℓπ/(Z p) is large. And no region's surrogate predicts so much
(:func:`wsabi.adaptive.search.ground.exceeds`). The first alone also holds in the tail of a region that is known
well, the second alone wherever a surrogate is young. It does not matter who asked for the evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from wsabi._core.types import Array, Indices, Mask
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.search.ground import exceeds, inflation
from wsabi.adaptive.search.known_regions import KnownRegions
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.tuning import TUNING
from wsabi.priors import Measure

__all__ = ["Lead", "Leads", "Searched", "unaccounted"]


@dataclass(frozen=True, eq=False)
class Lead:
    """A point x (D,) to search, its log ℓπ, and the number of the evaluation."""

    x: Array
    log_joint: float
    index: int


@dataclass(frozen=True, eq=False)
class Searched:
    """Where the search of a lead ended: its q, and the best log ℓπ it has met."""

    frame: Frame
    best: float

    def covers(self, lead: Lead) -> bool:
        """Whether a lead lies in the bulk of that q, and is no more than a nat higher than the best met there."""
        radius = np.linalg.norm(self.frame.scaled(inflation(len(lead.x))).whiten(lead.x[None, :]))
        return bool(radius < math.sqrt(len(lead.x)) + 2.0 and lead.log_joint <= self.best + 1.0)


@dataclass(frozen=True, eq=False)
class Leads:
    """Leads, and what became of them.

    Attributes
    ----------
    waiting : leads that were not searched yet, the highest first.
    followed : the one that is being searched.
    given_up : those whose search was given up before it had arrived.
    searched : where searches of leads have ended.
    """

    waiting: tuple[Lead, ...] = ()
    followed: Lead | None = None
    given_up: tuple[Lead, ...] = ()
    searched: tuple[Searched, ...] = ()

    def found(self, leads: Sequence[Lead]) -> Leads:
        """The same with more leads, those that are known left out."""
        known = {lead.index for lead in self.waiting + self.given_up}
        fresh = [lead for lead in leads if lead.index not in known]
        return replace(self, waiting=tuple(sorted([*self.waiting, *fresh], key=lambda lead: -lead.log_joint)))

    def following(self) -> Leads:
        """The same with the highest lead followed that no search since accounts for; with none, where all are."""
        waiting = list(self.waiting)
        while waiting:
            lead = waiting.pop(0)
            if not any(ended.covers(lead) for ended in self.searched):
                return replace(self, waiting=tuple(waiting), followed=lead)
        return replace(self, waiting=(), followed=None)

    def ended(self, searched: Searched | None) -> Leads:
        """The same after the search of the lead followed has ended there; None where it was given up."""
        lead = self.followed
        if lead is None:
            return self
        if searched is None:
            return replace(self, followed=None, given_up=(*self.given_up, lead))
        return replace(self, followed=None, searched=(*self.searched, searched))

    def unsearched_nats(self, known: KnownRegions) -> float:
        """Nats by which log Z may be too low for leads that were not searched to the end.

        Each may be the flank of a mode with the volume of the heaviest region known: log(1 + ℓπ(x)·volume/Z).
        """
        followed = [] if self.followed is None else [self.followed]
        leads = [
            lead
            for lead in [*self.waiting, *self.given_up, *followed]
            if not any(ended.covers(lead) for ended in self.searched) and not _is_in_region(lead, known)
        ]
        if not leads or not known.regions:
            return 0.0
        heaviest = max(known.explorers, key=lambda explorer: explorer.log_z)
        log_volume = 0.5 * known.measure.dim * math.log(2.0 * math.pi) + heaviest.frame.log_det
        highest = max(lead.log_joint for lead in leads)
        return float(np.logaddexp(0.0, highest + log_volume - known.log_total))


def _is_in_region(lead: Lead, known: KnownRegions) -> bool:
    """Whether a lead lies in a region that has data as high as it."""
    number = known.index_at(lead.x)
    return number is not None and known.explorers[number].top_joint > lead.log_joint - 1.0


def unaccounted(explorers: Sequence[Explorer], measure: Measure, X: Array, log_l: Array, log_ratio: Array) -> Indices:
    """Which of X (N, D), log ℓ (N,) are leads, given log ℓπ/(Z p) (N,); the one of highest ℓπ first."""
    with np.errstate(invalid="ignore"):
        log_joint = log_l + measure.log_pdf(X)
        high = log_joint > max(explorer.top_joint for explorer in explorers) - TUNING.known.flank_depth
        candidates: Mask = np.isfinite(log_joint) & high & (log_ratio > math.log(TUNING.known.lead_ratio))
    some = np.flatnonzero(candidates)
    if not len(some):
        return some
    some = some[exceeds(explorers, X[some], log_l[some]) > 0.0]
    return np.asarray(some[np.argsort(-log_joint[some])])
