"""State: all that the engine knows, as one frozen value, which follows from the evaluations by a fold of ``step``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from wsabi._core.types import Array, Streams
from wsabi.adaptive.bulk.sample import Bulk
from wsabi.adaptive.check.crossfit import CrossFit
from wsabi.adaptive.check.proposal import Proposal
from wsabi.adaptive.evaluations import Evaluations
from wsabi.adaptive.models import Models
from wsabi.adaptive.search.known_regions import KnownRegions
from wsabi.adaptive.search.leads import Leads
from wsabi.adaptive.search.search import Search
from wsabi.adaptive.symmetry.candidates import Candidates
from wsabi.adaptive.symmetry.proof import ImageTests
from wsabi.gp.fit import FitRecord
from wsabi.priors import Measure
from wsabi.settings import Settings

__all__ = ["Phase", "Problem", "State"]


class Phase(Enum):
    """What a run is at."""

    LOCATING = "searches follow each other; there are no models yet"
    SEARCHING = "a search is under way beside models"
    INTEGRATING = "points refine the models and check them"


@dataclass(frozen=True)
class Problem:
    """What never changes in a run.

    Attributes
    ----------
    measure : the prior in base coordinates, smooth on all of R^D, of standard deviation about one.
    settings : method, acquisition, search, refit, alpha and certify.
    candidates : the symmetries to test.
    streams : what estimates and posteriors draw from.
    starts : (K, D) points to search around first.
    """

    measure: Measure
    settings: Settings
    candidates: Candidates
    streams: Streams
    starts: Array = field(default_factory=lambda: np.empty((0, 0)))


@dataclass(frozen=True, eq=False)
class State:
    """The state of a run.

    Attributes
    ----------
    budget, tol : evaluations that the run is expected to reach, and the error of log Z that will do, in nats.
    data : all evaluations told.
    known : the regions found, and how every search has ended.
    images : evaluations at symmetry images of known regions, and what they have shown.
    search : the search under way; there is none in the phase INTEGRATING.
    n_begun : number of searches ever begun.
    n_started : how many of the points to search around first were considered.
    leads : evaluations that no region accounts for.
    models : of the regions, with the mixture q; there are none in the phase LOCATING.
    proposals : densities of check points; the last is in use, the first has the number ``data.first_proposal``.
    n_noticed : evaluations that decisions have taken notice of.
    unscanned : numbers of evaluations to be looked through for leads.
    matched_n : training data when q was last matched.
    asked_at : evaluations when it was last asked whether another search does more good.
    n_refined : points given out to refine the models.
    crossfit : surrogates with the check points among their data, in the state of a last estimate; else None.
    bulk : points that no model learns of, drawn by the thousand; None before the first batch.
    is_unasked : whether the regions come from evaluations most of which the engine has not asked for.
    """

    problem: Problem
    budget: int
    data: Evaluations
    known: KnownRegions
    images: ImageTests
    tol: float = 0.0
    phase: Phase = Phase.LOCATING
    search: Search | None = None
    n_begun: int = 0
    n_started: int = 0
    leads: Leads = field(default_factory=Leads)
    models: Models | None = None
    proposals: tuple[Proposal, ...] = ()
    n_noticed: int = 0
    unscanned: tuple[int, ...] = ()
    matched_n: int = 0
    asked_at: int = 0
    n_refined: int = 0
    crossfit: CrossFit | None = None
    bulk: Bulk | None = None
    is_unasked: bool = False

    @property
    def measure(self) -> Measure:
        """The prior in base coordinates."""
        return self.problem.measure

    @property
    def n(self) -> int:
        """Number of evaluations told."""
        return len(self.data)

    @property
    def check_share(self) -> float:
        """Share of the budget that check points take."""
        return self.problem.settings.check_share

    # -- the search under way -----------------------------------------------------------------------------------------

    @property
    def n_own(self) -> int:
        """Evaluations that the search under way has asked for and been told."""
        return 0 if self.search is None else self.data.n_own(self.search.number)

    def own(self, search: Search) -> tuple[Array, Array]:
        """X (N, D) and log ℓ (N,) of a search: what it asked for; for the first search, everything."""
        return self.data.own(search.number, everything=search.first)

    @property
    def has_met_more(self) -> bool:
        """Whether the search under way has met something that the known regions do not explain."""
        if self.search is None or not self.known.regions:
            return False
        return self.known.unexplained(*self.own(self.search)) is not None

    # -- models and data ----------------------------------------------------------------------------------------------

    @property
    def is_outdated(self) -> bool:
        """Whether the models are of other regions than those known by now."""
        return self.models is None or self.models.explorers != self.known.explorers

    def training_data(self) -> tuple[Array, Array]:
        """What the models may see, X (N, D) and log ℓ (N,), with the symmetry images that say the same."""
        return self.known.with_images(*self.data.training())

    @property
    def fits(self) -> list[FitRecord]:
        """Every fit of the present models' hyperparameters."""
        return [] if self.models is None else [fit for part in self.models.parts for fit in part.model.fits]

    @property
    def max_jitter(self) -> float:
        """Largest relative jitter of the present models."""
        return 0.0 if self.models is None else max(part.model.max_jitter for part in self.models.parts)

    # -- what may be missing ------------------------------------------------------------------------------------------

    @property
    def unseen_share(self) -> float:
        """Mass that may not have been found, relative to that found: elsewhere, and in symmetry images."""
        elsewhere = 0.0 if self.problem.settings.modes == "one" else self.known.unseen_share
        return elsewhere + self.known.beyond_share + sum(self.unsearched_images)

    @property
    def unsearched_images(self) -> Sequence[float]:
        """The same in images that were found to hold mass and not searched, one number for each."""
        return self.images.unsearched_shares(self.known)

    @property
    def unsearched_nats(self) -> float:
        """Nats by which log Z may be too low for leads that were not searched to the end."""
        return self.leads.unsearched_nats(self.known)

    def floor_nats(self, log_z: float) -> float:
        """Nats that values read as zero likelihood could have added to that log Z at most: log(1 + e^floor/Z)."""
        if not self.data.floors:
            return 0.0
        return float(np.logaddexp(0.0, min(self.data.log_floor + self.data.offset - log_z, math.log(1e300))))
