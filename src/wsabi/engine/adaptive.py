"""The adaptive model: look for mass, recentre on it, integrate there, certify; one evaluation at a time.

Three states follow each other. *Looking*: an explorer starts from a fresh design over the prior and follows the
annealed posterior to a region; looks go on until they stop finding new mass. *Integrating*: WSABI with uncertainty
sampling on the regions, re-matched as data grow, with every few evaluations a fresh point for the certificate. Once the
error claimed is small, what could still be wrong is a region not found, and looking goes on. There is no end: the
caller's budget or tolerance ends it.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from wsabi._linalg import NumericalError
from wsabi._types import Array
from wsabi.engine.ascent import Slope
from wsabi.engine.certificate import ENOUGH_POINTS, INTERIM, MIN_POINTS, Effort, certify
from wsabi.engine.crossfit import CrossFit
from wsabi.engine.evaluations import Evaluations
from wsabi.engine.found import Found
from wsabi.engine.lookout import Lookout
from wsabi.engine.proposal import Proposal, log_mixture
from wsabi.engine.regions import Regions, carried_lengthscales
from wsabi.fit import FitRecord
from wsabi.measures import Measure
from wsabi.result import Certificate
from wsabi.settings import Settings

__all__ = ["AdaptiveModel"]

SURPRISE = 0.1  # of Z in one fresh point outside every region is a region that all looks have missed
REMATCH_GROWTH = 1.15  # q is matched anew, and the models rebuilt, as the training data grow by 15 %
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
    """

    def __init__(
        self,
        measure: Measure,
        settings: Settings,
        rng: np.random.Generator,
        budget: int,
        kinds: Sequence[int] | None = None,
    ) -> None:
        self.measure = measure
        self.settings = settings
        self.rng = rng
        self.tol = 0.0
        self.data = Evaluations(measure)
        kinds = [0] * measure.dim if kinds is None else kinds
        self.lookout = Lookout(measure, self.data, rng, kinds, budget, settings.certify)
        self.regions: Regions | None = None
        self.crossfit: CrossFit | None = None
        self._proposals: list[Proposal] = []
        self._matched_n = 0  # training data when q was last matched
        self._n_integrated = 0
        self._surprise: Array | None = None
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
        return self.data.n_fresh

    @property
    def found(self) -> Found:
        """The regions found, and how every look has ended."""
        return self.lookout.found

    @property
    def has_news(self) -> bool:
        """Whether images were told from which no conclusions were drawn."""
        return self.lookout.images.has_answers

    @property
    def is_checked(self) -> bool:
        """Whether looks keep coming back, and fresh points have checked what they found.

        So many that their error can be believed, or all that the settings ask for.
        """
        planned = self.settings.certify * self.budget
        has_points = planned == 0.0 or self.n_certificate >= max(MIN_POINTS, min(ENOUGH_POINTS, planned))
        return has_points and self.lookout.keeps_returning

    @property
    def is_looking(self) -> bool:
        """Whether the point proposed last belongs to a look, or is a mirror image of a known one."""
        return self.lookout.is_asking

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
        if self.regions is None:
            return
        for i in range(first, len(self.X)):
            fresh = self.data.drawn_from[i] >= 0
            if not fresh and math.isfinite(self.measure.log_pdf(self.X[[i]])[0]):
                for x, value in zip(*self.found.with_images(self.X[[i]], self.log_l[[i]]), strict=True):
                    self.regions.observe(x, float(value))
            elif fresh and self._is_surprise(i, self.regions):
                self._surprise = self.X[i]

    def _start_over(self) -> None:
        """Look anew with the data so far, of which all that the models had seen has turned out to mean zero."""
        self.data.disown()
        self.data.release_fresh()
        self.regions, self._proposals, self._surprise = None, [], None
        self._matched_n = self._asked_at = 0
        self._claim = None
        kinds = self.lookout.images.kinds
        self.lookout = Lookout(self.measure, self.data, self.rng, kinds, self.budget, self.settings.certify)

    def _is_surprise(self, i: int, regions: Regions) -> bool:
        """Whether fresh point i holds a tenth of Z by itself and lies outside the bulk of every region."""
        x = self.X[[i]]
        log_p = self._proposals[self.data.drawn_from[i]].log_pdf(x)[0]
        share = self.log_l[i] + self.measure.log_pdf(x)[0] - log_p - self.found.log_total
        outside = all(part.radius(x)[0] > math.sqrt(self.measure.dim) + 2.0 for part in regions.parts)
        return bool(outside and share > math.log(SURPRISE * max(self.n_certificate, 20)))

    def recover(self) -> None:
        """Make the state whole again after an interrupt inside one of the methods."""
        self.data.recover()
        self.lookout.images.forget()
        if self.lookout.search is not None:
            self.lookout.search.may_be_foretold = False
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
        if self.lookout.search is not None:
            self.lookout.advance(self.lookout.search)
            if self.lookout.search is None and self._is_outdated:
                self.lookout.prepare_images()
                self._rebuild()
        elif self._surprise is not None:
            self._look_around(self._surprise)
        elif self.lookout.follow_echo():
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

    def climb(self, slope: Slope, left: int) -> bool:
        """Let the look under way climb by gradients, see :meth:`Lookout.climb`; ``slope`` tells this model."""
        return self.lookout.climb(slope, left)

    def _look_around(self, x: Array) -> None:
        """Begin a look at x (D,), a fresh point that the regions do not account for, if there are evaluations for one.

        The fresh points so far join the training data: a model built because of what one of them said is no longer
        independent of them, and the certificate starts anew with the new region in it.
        """
        self._surprise = None
        if not self.lookout.can_afford_look:
            return
        self.regions, self.lookout.is_preliminary = None, True
        self.data.release_fresh()
        self._proposals = []
        self.lookout.begin_around(x)

    def _is_settled(self) -> bool:
        """Whether another look does more good; asked as the data grow by 5 %.

        It does where the error of what was found is small enough, or smaller than what may not have been found.
        """
        n = len(self.X)
        # Fresh points come evenly over the run, and all of them would be waited for in vain: half of those planned will
        # do, if they can check anything. If no more are planned than can, none is waited for.
        planned = self.settings.certify * self.budget
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
        self.found.rematch(lambda explorer: explorer.rematched(X, log_l))
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
            mirrors=[site.mirror for site in self.found.sites],
        )
        self._proposals.append(Proposal(self.measure, self.regions))
        self.lookout.is_preliminary = False

    def _certificate_due(self, pending: Array) -> bool:
        """Spread certify·budget fresh points evenly over what is left once looking is done."""
        share = self.settings.certify
        if share == 0.0:
            return False
        looked = sum(look.n_evals for look in self.found.looks)
        left = max(self.budget - looked, 1)
        rate = min(share * self.budget / left, 0.5)
        return self.n_certificate + self.data.n_drawn(pending) < rate * (len(self.X) - looked + 1)

    def _draw(self) -> Array:
        """A fresh point (D,) for the certificate."""
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
            part.explorer.fit(*self.lookout.training_data())
            return np.asarray(part.explorer.propose(pending, part.doubt))
        except NumericalError:
            return np.asarray(self._proposals[-1].sample(1, self.rng)[0])

    def conclude(self) -> None:
        """End the looking where it stands, so that there is an estimate, and conclude from the images told so far."""
        self.lookout.images.forget()
        if self.regions is not None:
            self._conclude_from_images()
            return
        if self.lookout.search is not None and self.lookout.search.climbed:
            self.lookout.search.skip_design()  # the draws round the summit can wait
            self._seen = -1
        self._take_notice()
        if self.regions is None and self.lookout.search is not None:
            self.lookout.break_off()
            if self.lookout.search is None:
                self._rebuild()

    def relearnt(self) -> AdaptiveModel:
        """The same for a last estimate: a copy whose surrogates have learnt from all training data.

        They learn of the fresh points too, each of which is checked without itself.
        """
        last = copy.copy(self)
        if self.regions is not None:
            last.regions = self.regions.relearnt(*self.lookout.training_data())
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
        # A stream of its own: asking for the estimate must not change the points that follow.
        rng = np.random.default_rng(len(self.X))
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
        left_out = math.exp(min(self.data.log_floor - relative.log_z, 700.0)) if self.data.floors else 0.0  # at most
        return dataclasses.replace(
            relative,
            log_z=relative.log_z + self.offset,
            log_z_std=math.hypot(relative.log_z_std, self.data.round_off, math.log1p(left_out)),
            model_log_z=relative.model_log_z + self.offset,
            fresh_log_z=relative.fresh_log_z + self.offset,
            model_log_var=relative.model_log_var + 2.0 * self.offset,
        )

    def posterior_draws(self, n: int) -> tuple[Array, Array]:
        """n points (n, D) with log weights (n,) of the surrogates' ℓπ, for expectations under the posterior.

        Where the feasible part is so small that no draw has met it, the training data with ℓπ for weights.
        """
        if self.regions is None:
            raise NumericalError("there are no regions to draw from yet.")
        proposal = self._proposals[-1]
        X = proposal.sample(n, np.random.default_rng(len(self.X)))
        regions = self.regions if self.crossfit is None else self.crossfit.regions
        log_joint = regions.surrogate(X)[0]
        if not np.any(np.isfinite(log_joint)):
            return self.data.training_joint()
        return X, log_joint - proposal.log_pdf(X)

    @property
    def fits(self) -> list[FitRecord]:
        """Every fit of the present models' hyperparameters."""
        return [] if self.regions is None else [fit for part in self.regions.parts for fit in part.model.fits]

    @property
    def max_jitter(self) -> float:
        """Largest relative jitter of the present models."""
        return 0.0 if self.regions is None else max(part.model.max_jitter for part in self.regions.parts)
