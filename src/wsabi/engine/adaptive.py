"""The adaptive model: look for mass, recentre on it, integrate there, certify; one evaluation at a time.

Three states follow each other. *Looking*: an explorer starts from a fresh design over the prior and follows the
annealed posterior to a region; looks go on until they stop finding new mass. *Integrating*: WSABI with uncertainty
sampling on the regions, re-matched as data grow, with every few evaluations a fresh point for the certificate. Once the
error claimed is small, what could still be wrong is a region not found, and looking goes on. There is no end: the
caller's budget or tolerance ends it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from wsabi._linalg import NumericalError
from wsabi._types import Array
from wsabi.engine.ascent import Slope, Summit, climb
from wsabi.engine.certificate import INTERIM, MIN_POINTS, Effort, certify
from wsabi.engine.evaluations import Evaluations
from wsabi.engine.found import MORE_OF_THE_SAME, NEGLIGIBLE, Found
from wsabi.engine.images import Images
from wsabi.engine.looking import Search, look_limit
from wsabi.engine.mirrors import Mirror
from wsabi.engine.proposal import Proposal, log_mixture
from wsabi.engine.regions import Regions, carried_lengthscales
from wsabi.fit import FitRecord
from wsabi.measures import Measure
from wsabi.result import Certificate, Look
from wsabi.settings import Settings

__all__ = ["AdaptiveModel"]

BARREN_SHARE = 0.3  # of the budget may go to looks that found nothing new, before there is an estimate
RETURNS = 3  # looks in a row that came back to known regions end the looking, once half that share is spent
SURPRISE = 0.1  # of Z in one fresh point outside every region is a region that all looks have missed
SPARE = 0.05  # of the budget is kept, beside the certificate's share, to integrate with after the first look
REMATCH_GROWTH = 1.15  # q is matched anew, and the models rebuilt, as the training data grow by 15 %
SETTLED = 0.01  # nats: with an error claimed below this, evaluations do more good in another look,
UNCHECKED = 0.1  # and below this as long as one look alone says where the mass is


class AdaptiveModel:
    """Data in, next points and an estimate of Z out, in base coordinates.

    Parameters
    ----------
    measure : the prior, smooth on all of R^D, of standard deviation about one.
    settings : method, acquisition, search, refit, alpha and certify.
    rng : the stream of every draw.
    budget : evaluations the shares above refer to; :meth:`plan` changes it.
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
        self.budget = budget
        self.data = Evaluations(measure)
        self.found = Found(measure)
        self._images = Images([0] * measure.dim if kinds is None else kinds)
        self.regions: Regions | None = None
        self._proposals: list[Proposal] = []
        self._matched_n = 0  # training data when q was last matched
        self._n_integrated = 0
        self._surprise: Array | None = None
        self._seen = 0  # evaluations that the state below has taken notice of
        self._asked_at = 0  # evaluations when the error claimed was last asked for
        self._search: Search | None = self._new_search()

    def plan(self, budget: int) -> None:
        """Set the number of evaluations that the run is expected to reach."""
        self.budget = budget

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
    def looks(self) -> list[Look]:
        """Every look that has ended."""
        return self.found.looks

    @property
    def symmetries(self) -> list[Mirror]:
        """Mirrors under which ℓ and π were found to be the same, those that are not followed last."""
        return self.found.symmetries + self.found.beyond

    @property
    def has_news(self) -> bool:
        """Whether images were told from which no conclusions were drawn."""
        return self._images.has_answers

    @property
    def unseen_share(self) -> float:
        """Mass that may not have been found, relative to that found: elsewhere, and in mirror images."""
        return self.found.unseen_share + self.found.beyond_share + sum(self.echoing_shares)

    @property
    def echoing_shares(self) -> list[float]:
        """The same in images that were found to hold mass and not looked at, one number for each."""
        return self._images.echoing_shares(self.found)

    @property
    def is_looking(self) -> bool:
        """Whether the point proposed last belongs to a look, or is a mirror image of a known one."""
        return self._search is not None or self._images.is_asking

    # -- data ---------------------------------------------------------------------------------------------------------

    def observe(self, X: Array, log_l: Array) -> None:
        """Add points X (M, D) with log ℓ (M,); those drawn for the certificate are kept apart from the models."""
        first = len(self.X)
        self.data.observe(X, log_l)
        for x, value in zip(X, self.log_l[first:], strict=True):
            self._images.tell(x, float(value))
        if self.regions is None:
            return
        for i in range(first, len(self.X)):
            fresh = self.data.drawn_from[i] >= 0
            if not fresh and math.isfinite(self.measure.log_pdf(self.X[[i]])[0]):
                for x, value in zip(*self.found.with_images(self.X[[i]], self.log_l[[i]]), strict=True):
                    self.regions.observe(x, float(value))
            elif fresh and self._is_surprise(i, self.regions):
                self._surprise = self.X[i]

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
        self._images.forget()
        if self.regions is not None or (self._search is None and self.found.explorers):
            self._rebuild()
        elif self._search is None:
            self._search = self._new_search()

    def _training_data(self) -> tuple[Array, Array]:
        """What the models may see, X (N, D) and log ℓ (N,), with the mirror images that say the same."""
        return self.found.with_images(*self.data.training())

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
        image = self._images.next_point()
        if image is not None:
            return image
        if self._search is not None:
            x = self._search.next_point(np.concatenate([self.X, pending]), pending, self.rng)
            self.data.ask(x, len(self.looks))
            return x
        if self._certificate_due(pending):
            return self._draw()
        return self._integrate(pending)

    def _take_notice(self) -> None:
        """Advance the state by what was observed since it was last asked."""
        if self._seen == len(self.X):
            return
        self._seen = len(self.X)
        self._conclude_from_images()
        if self._search is not None:
            self._advance(self._search)
        elif self._surprise is not None:
            self._look_around(self._surprise)
        elif self._images.has_echo and self._can_afford_look():
            self._search = self._echo_search()
        elif self.data.n_training >= REMATCH_GROWTH * self._matched_n:
            self._rebuild()
        elif self._is_settled():
            self._search = self._next_look()

    # -- looking ------------------------------------------------------------------------------------------------------

    def climb(self, slope: Slope, left: int) -> bool:
        """Let the look under way climb by gradients, if its design is told and it has not; whether it did.

        ``slope`` evaluates, and tells this model what it found, before it returns; that takes one evaluation, or two
        where the gradient is checked. There are ``left`` of them. A climb broken off by an error of ``slope`` is begun
        again, from the best point by then.
        """
        search = self._search
        if search is None or search.has_begun or search.design or self._n_own < search.n_handed:
            return False
        X, log_l = self._own(search)
        limit = min(look_limit(self.measure.dim), left) // 2
        if limit < 1 or not np.any(np.isfinite(log_l)):
            return False
        start = X[int(np.argmax(log_l + self.measure.log_pdf(X)))]
        number, before = len(self.looks), len(self.X)
        try:
            summit = climb(slope, self.measure, start, limit)
        finally:  # all that was told on the way is the look's own
            self.data.asked_by[before:] = number
            search.n_handed = self._n_own
        search.climbed = True
        if summit is not None:
            with contextlib.suppress(NumericalError):  # a ridge too thin for numbers: the look goes on from its points
                search.start_from(summit, self.rng)
        return True

    def _next_look(self) -> Search:
        """A look at an image that holds mass, if there is one; else one from the prior, with some images before it."""
        echo = self._echo_search()
        if echo is None:
            self._images.prepare(self.found, *self.data.training_joint())
        return echo or self._new_search()

    def _echo_search(self) -> Search | None:
        image = self._images.echo(self.found) if self._images.has_echo else None
        if image is None:
            return None
        search = self._new_search(around=image.x)
        frame = image.mirror.image_of(image.explorer.frame)
        search.start_from(Summit(image.x, frame.cov), self.rng)
        return search

    def _conclude_from_images(self) -> None:
        """Take note of what was told of mirror images; where that proves a symmetry, the images are regions too."""
        known = self.found.explorers
        self._images.conclude(self.found, *self.data.training_joint())
        if self.found.explorers != known and self.regions is not None:
            self._rebuild()

    def _new_search(self, around: Array | None = None) -> Search:
        first = not self.looks
        # Every other look is a greedy one: hills that the others pass over are met by these, and cheaply.
        greedy = len(self.looks) % 2 == 1 or around is not None
        search = Search(self.measure, self.rng, first=first, greedy=greedy, around=around)
        if around is None:
            self.data.start_from(search.design)
        return search

    def _look_around(self, x: Array) -> None:
        """Begin a look at x (D,), a fresh point that the regions do not account for, if there are evaluations for one.

        The fresh points so far join the training data: a model built because of what one of them said is no longer
        independent of them, and the certificate starts anew with the new region in it.
        """
        self._surprise = None
        if not self._can_afford_look():
            return
        self.regions = None
        self.data.release_fresh()
        self._proposals = []
        self._search = self._new_search(around=x)

    def _can_afford_look(self) -> bool:
        """Whether a typical look leaves the certificate's share of the budget."""
        return len(self.X) + self.found.typical <= self._looking_end

    @property
    def _looking_end(self) -> float:
        """Number of evaluations by which a first estimate must be under way."""
        return (1.0 - self.settings.certify - SPARE) * self.budget

    def _is_settled(self) -> bool:
        """Whether the error claimed is so small that another look does more good; asked as the data grow by 5 %."""
        n = len(self.X)
        if n < 1.05 * self._asked_at or n + self.found.typical > self.budget:
            return False
        self._asked_at = n
        try:
            claim = self.estimate()
        except NumericalError:
            return False
        wanted = UNCHECKED if len(self.looks) == 1 else SETTLED
        return claim is not None and self.n_certificate >= 2 * MIN_POINTS and claim.log_z_std < wanted

    @property
    def _n_own(self) -> int:
        """Evaluations that the look under way has asked for and been told."""
        return self.data.n_own(len(self.looks))

    @property
    def _is_late(self) -> bool:
        """Whether the look under way, if it is not the first, has had its share of evaluations."""
        return bool(self.found.explorers) and self._n_own >= look_limit(self.measure.dim)

    def _own(self, search: Search) -> tuple[Array, Array]:
        """The look's own data: what it asked for; for the first, everything."""
        return self.data.own(len(self.looks), everything=search.first)

    def _advance(self, search: Search) -> None:
        """Let the explorer learn, and end the look where it has arrived, come back or lost hope."""
        own_X, own_l = self._own(search)
        if search.design or self._n_own < search.n_handed:
            return
        if int(np.isfinite(own_l).sum()) < self.measure.dim + 2:
            search.find_foothold(own_X, own_l)
            if self._is_late:
                self._end_look(search, "unfinished")
            return
        # The explorer sees its own evaluations, and everything once it has reached temperature one.
        hot = search.explorer.temperature > 1.0
        X, log_l = (own_X, own_l) if hot else self._training_data()
        try:
            search.learn(X, log_l, self._n_own, float(np.max(own_l + self.measure.log_pdf(own_X))))
        except NumericalError:
            self._end_look(search, "unfinished")
            return
        outcome = self._outcome(search)
        if outcome is not None:
            self._end_look(search, *outcome)

    def _outcome(self, search: Search) -> tuple[str, float] | None:
        """How the look ends, if it ends here, and the share of mass that it has gained."""
        explorer, found = search.explorer, self.found
        known = found.index_of(explorer) if explorer.is_cold else None
        if known is not None and found.accounts_for(known, *self._own(search)):
            return "known region", 0.0
        if search.has_arrived(self._n_own):
            novelty = found.novelty(explorer, self.rng)
            gain = found.gain(explorer, novelty)
            # Inside a known region, or over several: what the look has found is mostly what they have.
            if novelty < MORE_OF_THE_SAME or (known is not None and gain < MORE_OF_THE_SAME):
                return "known region", 0.0
            return ("negligible mass", 0.0) if gain < math.exp(-NEGLIGIBLE) else ("new region", gain)
        if found.explorers and search.is_hopeless(found.log_total):
            return "negligible mass", 0.0
        climbing = not explorer.is_cold and not found.explorers  # may have half of the certificate's share too
        end = self._looking_end + (0.5 * self.settings.certify * self.budget if climbing else 0.0)
        if self._is_late or (self.regions is None and len(self.X) >= end):
            near = explorer.is_cold and explorer.log_z > found.log_total - NEGLIGIBLE
            if near or not found.explorers:
                return "new region", found.gain(explorer, found.novelty(explorer, self.rng))
            return "unfinished", 0.0
        return None

    def _end_look(self, search: Search, outcome: str, gain: float = 0.0) -> None:
        own = self._own(search)
        look = Look(self._n_own, search.explorer.log_z + self.offset, outcome)  # type: ignore[arg-type]
        self.found.record(look, search.explorer, gain)
        self._search = None
        if outcome == "known region" and search.from_prior:
            self._search = self._follow_up(*own)
        if self._search is not None:
            return
        if not self.found.explorers or (self.regions is None and not self._enough_looking()):
            self._search = self._next_look()
        elif self.regions is None or self.regions.explorers != self.found.explorers:
            self._images.prepare(self.found, *self.data.training_joint())
            self._rebuild()

    def _follow_up(self, X: Array, log_l: Array) -> Search | None:
        """A look at what the known regions do not explain of X (N, D), log ℓ (N,), met on another; None if they do."""
        if len(self.X) + self.found.typical > self.budget:
            return None
        odd = self.found.unexplained(X, log_l)
        return None if odd is None else self._new_search(around=X[odd])

    def _enough_looking(self) -> bool:
        returned = [look.outcome == "known region" for look in self.looks[-RETURNS:]]
        spent, typical = self.found.spent, self.found.typical
        return (
            (len(returned) == RETURNS and all(returned) and spent > 0.5 * BARREN_SHARE * self.budget)
            or spent + typical > BARREN_SHARE * self.budget
            or not self._can_afford_look()
        )

    # -- integrating --------------------------------------------------------------------------------------------------

    def _rebuild(self) -> None:
        """Match q of every region to all training data, and give each a new model."""
        X, log_l = self._training_data()
        before = {} if self.regions is None else {id(part.explorer): part for part in self.regions.parts}
        known = [before.get(id(explorer)) for explorer in self.found.explorers]
        self.found.rematch(lambda explorer: explorer.rematched(X, log_l))
        lengthscales = [carried_lengthscales(part, new) for part, new in zip(known, self.found.explorers, strict=True)]
        self._matched_n = self.data.n_training
        self.regions = Regions(
            self.measure, self.settings, self.rng, self.found.explorers, X, log_l, lengthscales, self.found.families
        )
        self._proposals.append(Proposal(self.measure, self.regions))

    def _certificate_due(self, pending: Array) -> bool:
        """Spread certify·budget fresh points evenly over what is left once looking is done."""
        share = self.settings.certify
        if share == 0.0:
            return False
        looked = sum(look.n_evals for look in self.looks)
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
            part.explorer.fit(*self._training_data())
            return np.asarray(part.explorer.propose(pending, part.doubt.sample(200, self.rng)))
        except NumericalError:
            return np.asarray(self._proposals[-1].sample(1, self.rng)[0])

    def conclude(self) -> None:
        """End the looking where it stands, so that there is an estimate, and conclude from the images told so far."""
        self._images.forget()
        if self.regions is not None:
            self._conclude_from_images()
            return
        if self._search is not None and self._search.climbed:
            self._search.design, self._search.n_handed, self._seen = [], 0, -1  # the draws round the summit can wait
        self._take_notice()
        search = self._search
        if self.regions is not None or search is None:
            return
        explorer = search.explorer
        arrived = explorer.surrogate is not None and math.isfinite(explorer.log_z)
        elsewhere = explorer.is_cold and self.found.index_of(explorer) is None
        if arrived and (elsewhere or not self.found.explorers):
            self.found.take(Look(self._n_own, explorer.log_z + self.offset, "unfinished"), explorer)
        if self.found.explorers:
            self._search = None
            self._rebuild()

    # -- what is known of Z -------------------------------------------------------------------------------------------

    def estimate(self, effort: Effort = INTERIM) -> Certificate | None:
        """The combined estimate, or None while looking has not found a region."""
        if self.regions is None:
            return None
        # A stream of its own: asking for the estimate must not change the points that follow.
        rng = np.random.default_rng(len(self.X))
        X, log_l, numbers = self.data.fresh()
        log_p = log_mixture(self._proposals, numbers, X)
        relative = certify(self.regions, self._proposals[-1], X, log_l, log_p, rng, effort)
        return dataclasses.replace(
            relative,
            log_z=relative.log_z + self.offset,
            log_z_std=math.hypot(relative.log_z_std, self.data.round_off),
            model_log_z=relative.model_log_z + self.offset,
            fresh_log_z=relative.fresh_log_z + self.offset,
            model_log_var=relative.model_log_var + 2.0 * self.offset,
        )

    def posterior_draws(self, n: int) -> tuple[Array, Array]:
        """n points (n, D) with log weights (n,) of the surrogates' ℓπ, for expectations under the posterior."""
        if self.regions is None:
            raise NumericalError("there are no regions to draw from yet.")
        proposal = self._proposals[-1]
        X = proposal.sample(n, np.random.default_rng(len(self.X)))
        return X, self.regions.surrogate(X)[0] - proposal.log_pdf(X)

    @property
    def fits(self) -> list[FitRecord]:
        """Every fit of the present models' hyperparameters."""
        return [] if self.regions is None else [fit for part in self.regions.parts for fit in part.model.fits]

    @property
    def max_jitter(self) -> float:
        """Largest relative jitter of the present models."""
        return 0.0 if self.regions is None else max(part.model.max_jitter for part in self.regions.parts)
