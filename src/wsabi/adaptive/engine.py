"""The adaptive model: look for mass, recentre on it, integrate there, certify; one evaluation at a time.

Three states follow each other. *Looking*: an explorer starts from a fresh design over the prior and follows the
annealed posterior to a region; looks go on until they stop finding new mass. *Integrating*: WSABI with uncertainty
sampling on the regions, re-matched as data grow, with every few evaluations a check point for the certificate. Once the
error claimed is small, what could still be wrong is a region not found, and looking goes on. There is no end: the
caller's budget or tolerance ends it.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from wsabi._core.types import Array, Streams
from wsabi.adaptive.check.combine import ENOUGH_POINTS, INTERIM, MIN_POINTS, Effort, certify
from wsabi.adaptive.check.crossfit import CrossFit
from wsabi.adaptive.check.pareto import smoothed
from wsabi.adaptive.check.proposal import Proposal, log_mixture
from wsabi.adaptive.evaluations import Evaluations
from wsabi.adaptive.regions import Regions, carried_lengthscales, ground_of
from wsabi.adaptive.search.anneal import Explorer
from wsabi.adaptive.search.known_regions import KnownRegions
from wsabi.adaptive.search.leads import Lead, Searched, unaccounted
from wsabi.adaptive.search.search import Search
from wsabi.adaptive.searches import Lookout
from wsabi.errors import NumericalError
from wsabi.gp.fit import FitRecord
from wsabi.priors import Measure
from wsabi.result import Certificate, ModelBelief
from wsabi.settings import Settings

__all__ = ["AdaptiveModel"]

REMATCH_GROWTH = 1.15  # q is matched anew, and the models rebuilt, as the training data grow by 15 %
EVEN_DRAWS = 0.1  # effective share of the posterior's draws below which a finer proposal is tried
# Numbers of the streams that estimates, the last learning and the posterior draw from.
FOR_ESTIMATES, FOR_LEARNING, FOR_POSTERIOR = range(3)
SETTLED = 0.01  # nats: an error below this is as good as none, and evaluations do more good in another look


@dataclasses.dataclass(frozen=True)
class _Claim:
    """An estimate, and of what: the number of evaluations, and the models."""

    n: int
    regions: Regions
    certificate: Certificate


class AdaptiveModel:
    """Data in, next points and an estimate of Z out, in base coordinates.

    Parameters
    ----------
    measure : the prior, smooth on all of R^D, of standard deviation about one.
    settings : method, acquisition, search, refit, alpha and certify.
    rng : the stream of every draw.
    budget : evaluations that the run is expected to reach; :meth:`plan` changes it.
    kinds : (D,) parameters with the same number have the same prior; None if all have.
    streams : what estimates and posteriors draw from; None for children of ``rng``.
    """

    def __init__(
        self,
        measure: Measure,
        settings: Settings,
        rng: np.random.Generator,
        budget: int,
        kinds: Sequence[int] | None = None,
        streams: Streams | None = None,
    ) -> None:
        self.measure = measure
        self.settings = settings
        self.rng = rng
        self.streams = Streams(tuple(int(word) for word in rng.integers(2**32, size=4))) if streams is None else streams
        self.tol = 0.0
        self.data = Evaluations(measure)
        kinds = [0] * measure.dim if kinds is None else kinds
        self.lookout = Lookout(measure, self.data, rng, kinds, budget, settings.check_share)
        self.regions: Regions | None = None
        self.crossfit: CrossFit | None = None
        self._proposals: list[Proposal] = []
        self._matched_n = 0  # training data when q was last matched
        self._n_integrated = 0
        self._leads: list[Lead] = []  # evaluations that no region accounts for, not searched yet; the highest first
        self._followed: Lead | None = None  # the one that is being searched
        self._open: list[Lead] = []  # those whose search was given up before it had arrived
        self._searched: list[Searched] = []  # where searches of leads have ended
        self._unscanned: list[int] = []  # numbers of evaluations to be looked through for leads
        self._seen = 0  # evaluations that the state below has taken notice of
        self._asked_at = 0  # evaluations when it was last asked whether another look does more good
        self._claim: _Claim | None = None  # the last estimate made on the way

    def plan(self, budget: int, tol: float = 0.0) -> None:
        """Set the number of evaluations that the run is expected to reach, and the error of log Z that will do."""
        self.lookout.budget = budget
        self.tol = tol

    @property
    def budget(self) -> int:
        """Number of evaluations that the run is expected to reach."""
        return self.lookout.budget

    @property
    def X(self) -> Array:
        """(N, D) every point told."""
        return self.data.X

    @property
    def log_l(self) -> Array:
        """(N,) log ℓ there, less ``offset``."""
        return self.data.log_l

    @property
    def offset(self) -> float:
        """What log ℓ are differences from."""
        return self.data.offset

    @property
    def n_certificate(self) -> int:
        """Number of certificate points."""
        return self.data.n_check

    @property
    def found(self) -> KnownRegions:
        """The regions found, and how every look has ended."""
        return self.lookout.found

    @property
    def has_news(self) -> bool:
        """Whether images were told from which no conclusions were drawn."""
        return self.lookout.images.has_answers

    @property
    def is_checked(self) -> bool:
        """Whether looks keep coming back, check points have checked what they found, and no evaluation contradicts it.

        So many check points that their error can be believed, or all that the settings ask for.
        """
        planned = self.settings.check_share * self.budget
        has_points = planned == 0.0 or self.n_certificate >= max(MIN_POINTS, min(ENOUGH_POINTS, planned))
        settled = self.unsearched_nats == 0.0 and not self.lookout.has_met_more
        return has_points and self.lookout.keeps_returning and settled

    # -- data ---------------------------------------------------------------------------------------------------------

    def observe(self, X: Array, log_l: Array) -> None:
        """Add points X (M, D) with log ℓ (M,); those drawn for the certificate are kept apart from the models."""
        first, offset, n_floors = len(self.X), self.offset, len(self.data.floors)
        self.data.observe(X, log_l, self.found.log_cold)
        if self.offset != offset and self.lookout.has_begun:
            self._start_over()
        elif len(self.data.floors) > n_floors:
            self.lookout.forget_heat()
        for x, value in zip(X, self.log_l[first:], strict=True):
            self.lookout.images.tell(x, float(value))
        self._unscanned += range(first, len(self.X))
        if self.regions is None:
            return
        self._scan()
        for i in range(first, len(self.X)):
            fresh = self.data.drawn_from[i] >= 0
            if not fresh and math.isfinite(self.measure.log_pdf(self.X[[i]])[0]):
                for x, value in zip(*self.found.with_images(self.X[[i]], self.log_l[[i]]), strict=True):
                    self.regions.observe(x, float(value))

    def _start_over(self) -> None:
        """Look anew with the data so far, of which all that the models had seen has turned out to mean zero."""
        self.data.disown()
        self.data.release_fresh()
        self.regions, self._proposals, self._followed = None, [], None
        self._leads, self._open, self._searched = [], [], []
        self._matched_n = self._asked_at = 0
        self._unscanned = list(range(len(self.X)))
        self._claim = None
        kinds = self.lookout.images.kinds
        self.lookout = Lookout(self.measure, self.data, self.rng, kinds, self.budget, self.settings.check_share)

    # -- leads --------------------------------------------------------------------------------------------------------

    def _scan(self) -> None:
        """Look through what was told since the last scan for leads; through everything where the regions are new.

        It comes before the surrogates learn of it, so that a prediction is one. Points of the search under way are left
        until it has ended.
        """
        if self.regions is None:
            return
        under_way = len(self.found.searches) if self.lookout.search is not None else -2
        mine = [i for i in self._unscanned if self.data.asked_by[i] != under_way]
        self._unscanned = [i for i in self._unscanned if self.data.asked_by[i] == under_way]
        if not mine:
            return
        X, log_l = self.X[mine], self.log_l[mine]
        log_joint = log_l + self.measure.log_pdf(X)
        log_ratio = log_joint - self._proposals[-1].log_pdf(X) - self.found.log_total
        known = {lead.index for lead in self._leads + self._open}
        for i in unaccounted(self.found.explorers, self.measure, X, log_l, log_ratio):
            if mine[i] not in known:
                self._leads.append(Lead(X[i], float(log_joint[i]), mine[i]))
        self._leads.sort(key=lambda lead: -lead.log_joint)

    def _next_lead(self) -> Lead | None:
        """The highest lead that no search since it was met accounts for; it is taken from the list."""
        while self._leads:
            lead = self._leads.pop(0)
            if not any(ended.covers(lead) for ended in self._searched):
                return lead
        return None

    def _follow(self, lead: Lead) -> None:
        """Begin a search at a lead."""
        self._followed = lead
        self.lookout.begin_around(lead.x)

    def _end_lead(self, search: Search) -> None:
        """Take note of how the search of a lead has ended.

        Where it has found a region because of what a check point said, the models are no longer independent of the
        check points: these become training points, and checking starts anew with the new region in it.
        """
        lead, self._followed = self._followed, None
        if lead is None:
            return
        outcome = self.found.searches[-1].outcome
        if outcome == "unfinished":
            self._open.append(lead)
        else:
            self._searched.append(Searched(search.explorer.frame, max(search.best, lead.log_joint)))
        if outcome == "new region" and self.data.drawn_from[lead.index] >= 0:
            self.data.release_fresh()
            self.regions, self._proposals = None, []

    @property
    def unsearched_nats(self) -> float:
        """Nats by which log Z may be too low for leads that were not searched to the end.

        Each may be the flank of a mode with the volume of the heaviest region known: log(1 + ℓπ(x)·volume/Z).
        """
        followed = [] if self._followed is None else [self._followed]
        leads = [
            lead
            for lead in self._leads + self._open + followed
            if not any(ended.covers(lead) for ended in self._searched) and not self._is_in_region(lead)
        ]
        if not leads or not self.found.explorers:
            return 0.0
        heaviest = max(self.found.explorers, key=lambda explorer: explorer.log_z)
        log_volume = 0.5 * self.measure.dim * math.log(2.0 * math.pi) + heaviest.frame.log_det
        highest = max(lead.log_joint for lead in leads)
        return float(np.logaddexp(0.0, highest + log_volume - self.found.log_total))

    def _is_in_region(self, lead: Lead) -> bool:
        """Whether a lead lies in a region that has data as high as it."""
        number = self.found.index_at(lead.x)
        return number is not None and self.found.explorers[number].top_joint > lead.log_joint - 1.0

    def recover(self) -> None:
        """Make the state whole again after an interrupt inside one of the methods."""
        self.data.recover()
        self.lookout.images.forget()
        if self.lookout.search is not None:
            self.lookout.search.may_be_predicted = False
        if self.regions is not None or (self.lookout.search is None and self.found.explorers):
            self._rebuild()
        elif self.lookout.search is None:
            self.lookout.begin_from_prior()

    # -- where next ---------------------------------------------------------------------------------------------------

    def propose(self, n: int, pending: Array) -> Array:
        """The next n points, (n, D), given points under way, (P, D)."""
        chosen = np.empty((0, self.measure.dim))
        while len(chosen) < n:
            x = self._choose(np.concatenate([pending, chosen]))
            chosen = np.concatenate([chosen, x[None, :]])
        return chosen

    def purpose_of(self, x: Array) -> str:
        """What a point x (D,) that was proposed and not told yet is for."""
        return self.lookout.images.purpose_of(x) or self.data.purpose_of(x) or "refine"

    def _choose(self, pending: Array) -> Array:
        self._take_notice()
        x = self.lookout.next_point(pending)
        if x is not None:
            return x
        return self._draw() if self._certificate_due(pending) else self._integrate(pending)

    def _take_notice(self) -> None:
        """Advance the state by what was observed since it was last asked."""
        if self._seen == len(self.X):
            return
        self._seen = len(self.X)
        self._conclude_from_images()
        search = self.lookout.search
        if search is not None:
            self.lookout.advance(search)
            if self.lookout.search is None:
                self._end_lead(search)
                if self._is_outdated:
                    self.lookout.prepare_images()
                    self._rebuild()
                    self._unscanned = list(range(len(self.X)))
        if self.lookout.search is not None:
            return
        self._scan()
        lead = self._next_lead()
        if lead is not None:
            self._follow(lead)
        elif search is not None or self.lookout.follow_echo():
            pass
        elif self.data.n_training >= REMATCH_GROWTH * self._matched_n:
            self._rebuild()
        elif self._is_settled():
            self.lookout.begin()

    def _conclude_from_images(self) -> None:
        self.lookout.conclude_from_images()
        if self.regions is not None and self._is_outdated:
            self._rebuild()

    @property
    def _is_outdated(self) -> bool:
        """Whether the models are of other regions than those known by now."""
        return self.regions is None or self.regions.explorers != self.found.explorers

    def _is_settled(self) -> bool:
        """Whether another look does more good; asked as the data grow by 5 %.

        It does where the error of what was found is small enough, or smaller than what may not have been found.
        """
        n = len(self.X)
        # Fresh points come evenly over the run, and all of them would be waited for in vain: half of those planned will
        # do, if they can check anything. If no more are planned than can, none is waited for.
        planned = self.settings.check_share * self.budget
        enough = min(max(MIN_POINTS, 0.5 * planned), ENOUGH_POINTS) if planned > MIN_POINTS else 0.0
        if n < 1.05 * self._asked_at or n + self.found.typical > self.budget or self.n_certificate < enough:
            return False
        self._asked_at = n
        try:
            certificate = self.estimate()
        except NumericalError:
            return False
        wanted = max(SETTLED, self.tol, math.log1p(self.lookout.unseen_share))
        return certificate is not None and certificate.log_z_std < wanted

    # -- integrating --------------------------------------------------------------------------------------------------

    def _rebuild(self) -> None:
        """Match q of every region to all training data, and give each a new model."""
        X, log_l = self.lookout.training_data()
        before = {} if self.regions is None else {id(part.explorer): part for part in self.regions.parts}
        known = [before.get(id(explorer)) for explorer in self.found.explorers]
        every = self.found.explorers
        self.found.rematch(lambda explorer: explorer.rematched(*_ground(explorer, every, X, log_l)))
        lengthscales = [carried_lengthscales(part, new) for part, new in zip(known, self.found.explorers, strict=True)]
        self._matched_n = self.data.n_training
        self.regions = Regions(
            self.measure,
            self.settings,
            self.rng,
            self.found.explorers,
            X,
            log_l,
            lengthscales,
            families=self.found.families,
            symmetries=[site.symmetry for site in self.found.sites],
        )
        self._proposals.append(Proposal(self.measure, self.regions))
        self.lookout.is_preliminary = False

    def _certificate_due(self, pending: Array) -> bool:
        """Spread certify·budget check points evenly over what is left once looking is done."""
        share = self.settings.check_share
        if share == 0.0:
            return False
        looked = sum(look.n_evals for look in self.found.searches)
        left = max(self.budget - looked, 1)
        rate = min(share * self.budget / left, 0.5)
        return self.n_certificate + self.data.n_drawn(pending) < rate * (len(self.X) - looked + 1)

    def _draw(self) -> Array:
        """A check points (D,) for the certificate."""
        x = self._proposals[-1].sample(1, self.rng)[0]
        self.data.draw(x, len(self._proposals) - 1)
        return np.asarray(x)

    def _integrate(self, pending: Array) -> Array:
        if self.regions is None:
            raise NumericalError("there are no regions to integrate over yet.")
        # Every other point goes where the surrogate of log ℓ is least sure: the square root is blind to what lies
        # beyond its data, where its mean is zero, and would never let q grow.
        self._n_integrated += 1
        try:
            if self._n_integrated % 2:
                return self.regions.propose(pending)
            part = self.regions.parts[int(self.rng.choice(len(self.regions.parts), p=self.regions.weights))]
            part.explorer.fit(*_ground(part.explorer, self.regions.explorers, *self.lookout.training_data()))
            return np.asarray(part.explorer.propose(pending, part.uncertainty))
        except NumericalError:
            return np.asarray(self._proposals[-1].sample(1, self.rng)[0])

    def conclude(self) -> None:
        """End the looking where it stands, so that there is an estimate, and conclude from the images told so far."""
        self.lookout.images.forget()
        if self.regions is not None:
            self._conclude_from_images()
            return
        search = self.lookout.search
        if search is not None and (search.climbed or (search.first and not search.has_begun)):
            search.skip_design()  # the draws round the summit can wait, and so can a first design where enough was told
            self._seen = -1
        self._take_notice()
        if self.lookout.search is not None and self.lookout.search is search:
            self.lookout.settle_on_told(search)
        if self.regions is None and self.lookout.search is not None:
            self.lookout.break_off()
            if self.lookout.search is None:
                self._rebuild()
        self._unscanned = list(range(len(self.X)))
        self._scan()

    def relearnt(self) -> AdaptiveModel:
        """The same for a last estimate: a copy whose surrogates have learnt from all training data.

        They learn of the check points too, each of which is checked without itself.
        """
        last = copy.copy(self)
        if self.regions is not None:
            rng = self.streams.stream(FOR_LEARNING, len(self.X))
            last.regions = self.regions.relearnt(*self.lookout.training_data(), rng)
            X, log_l, _ = self.data.fresh()
            if len(X):
                last.crossfit = CrossFit.of(last.regions, *self.found.with_images(X, log_l), len(X))
        return last

    # -- what is known of Z -------------------------------------------------------------------------------------------

    def estimate(self, effort: Effort = INTERIM) -> Certificate | None:
        """The combined estimate, or None while looking has not found a region; one on the way is made but once."""
        if self.regions is None:
            return None
        if effort is not INTERIM:
            return self._certified(self.regions, effort)
        if self._claim is None or self._claim.n != len(self.X) or self._claim.regions is not self.regions:
            self._claim = _Claim(len(self.X), self.regions, self._certified(self.regions, effort))
        return self._claim.certificate

    def _certified(self, regions: Regions, effort: Effort) -> Certificate:
        """The combined estimate of these regions."""
        rng = self.streams.stream(FOR_ESTIMATES, len(self.X))
        X, log_l, numbers = self.data.fresh()
        log_p = log_mixture(self._proposals, numbers, X)
        proposal = self._proposals[-1]
        try:
            relative = certify(regions, proposal, X, log_l, log_p, rng, effort, self.crossfit)
        except NumericalError:
            if self.crossfit is None:
                raise
            # Fresh points so close together that none can be told from the others: they check, and are no data.
            relative = certify(regions, proposal, X, log_l, log_p, rng, effort)
        return dataclasses.replace(
            relative,
            log_z=relative.log_z + self.offset,
            model_log_z=relative.model_log_z + self.offset,
            check_log_z=relative.check_log_z + self.offset,
            model_log_var=relative.model_log_var + 2.0 * self.offset,
        )

    def floor_nats(self, log_z: float) -> float:
        """Nats that values read as zero likelihood could have added to that log Z at most: log(1 + e^floor/Z)."""
        if not self.data.floors:
            return 0.0
        return float(np.logaddexp(0.0, min(self.data.log_floor + self.offset - log_z, 700.0)))

    def belief(self) -> ModelBelief:
        """The WSABI models' own mean and variance of Z, without any check; NaN where they have none."""
        try:
            if self.regions is None:
                raise NumericalError("there are no regions yet.")
            log_mean, log_var = self.regions.moments()
        except NumericalError:
            return ModelBelief(math.nan, math.nan)
        return ModelBelief(log_mean + self.offset, log_var + 2.0 * self.offset)

    def posterior_draws(self, n: int, certificate: Certificate) -> tuple[Array, Array]:
        """Points (N, D) with log weights (N,) of ℓπ, for expectations under the posterior.

        n draws of p weighted by the surrogates' ℓπ/p, Pareto-smoothed, each no heavier than the heaviest evaluation: a
        surrogate may soar between its data, and what no evaluation has met anywhere is not evidence. Where the estimate
        rests on the check points (``certificate``), these with their true weights; and where no draw has met the
        feasible part, the training data with ℓπ for weights.
        """
        if self.regions is None:
            raise NumericalError("there are no regions to draw from yet.")
        if certificate.rests_on_points:
            X, _, log_weights = self.check_points()
            return X, log_weights
        regions = self.regions if self.crossfit is None else self.crossfit.regions
        rng = self.streams.stream(FOR_POSTERIOR, len(self.X))
        proposal = self._proposals[-1]
        drawn = self._weighted(proposal, regions, n, rng)
        if _effective_size(drawn[1]) < EVEN_DRAWS * n:
            finer = proposal.refined(lambda X: regions.surrogate(X)[0], rng)
            drawn = max(drawn, self._weighted(finer, regions, n, rng), key=lambda both: _effective_size(both[1]))
        return drawn if np.any(np.isfinite(drawn[1])) else self.data.training_joint()

    def check_points(self) -> tuple[Array, Array, Array]:
        """The check points X (N, D), log ℓ (N,) there, less ``offset``, and their log weights ℓπ/p (N,)."""
        X, log_l, numbers = self.data.fresh()
        if not len(X):
            return X, log_l, log_l
        return X, log_l, log_l + self.measure.log_pdf(X) - log_mixture(self._proposals, numbers, X)

    def _weighted(self, proposal: Proposal, regions: Regions, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """n draws (n, D) of a proposal with log weights (n,) of the surrogates' ℓπ, held to those of evaluations."""
        X = proposal.sample(n, rng)
        log_joint = self.log_l + self.measure.log_pdf(self.X)
        feasible = np.isfinite(log_joint)
        heaviest = np.max(log_joint[feasible] - proposal.log_pdf(self.X[feasible]))
        return X, smoothed(np.minimum(regions.surrogate(X)[0] - proposal.log_pdf(X), heaviest))

    @property
    def fits(self) -> list[FitRecord]:
        """Every fit of the present models' hyperparameters."""
        return [] if self.regions is None else [fit for part in self.regions.parts for fit in part.model.fits]

    @property
    def max_jitter(self) -> float:
        """Largest relative jitter of the present models."""
        return 0.0 if self.regions is None else max(part.model.max_jitter for part in self.regions.parts)


def _ground(explorer: Explorer, explorers: Sequence[Explorer], X: Array, log_l: Array) -> tuple[Array, Array]:
    """Those of X (N, D), log ℓ (N,) that are data of an explorer's surrogate."""
    mine = ground_of(explorer, explorers, X, log_l)
    return X[mine], log_l[mine]


def _effective_size(log_weights: Array) -> float:
    """(Σw)²/Σw² of log weights (N,); zero where none is finite."""
    if not np.any(np.isfinite(log_weights)):
        return 0.0
    w = np.exp(log_weights - np.max(log_weights))
    return float(w.sum() ** 2 / np.square(w).sum())
