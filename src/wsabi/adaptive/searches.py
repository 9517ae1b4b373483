"""Lookout: where the mass is. The look under way, what looks have found, its images, and when to look again."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.evaluations import Evaluations
from wsabi.adaptive.search.ascent import Summit
from wsabi.adaptive.search.known_regions import MORE_OF_THE_SAME, NEGLIGIBLE, KnownRegions
from wsabi.adaptive.search.search import Search, look_limit
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.surrogate.model import MANY_DIMENSIONS
from wsabi.adaptive.symmetry.candidates import Candidates
from wsabi.adaptive.symmetry.proof import ImagePurpose, ImageTests
from wsabi.errors import NumericalError
from wsabi.priors import Measure
from wsabi.result import Outcome, SearchRecord, Start

__all__ = ["Lookout"]

BARREN_SHARE = 0.3  # of the budget may go to looks that found nothing new, before there is an estimate
# Looks in a row that came back to known regions end the looking: a region as easy to find as those is missed by five of
# them in 3 % of runs, and by three in 12 %, which will do where they have taken half of the share above.
RETURNS, FEWER_RETURNS = 5, 3
# Temperatures, and nats: how well a look must be predicted. Several times the noise that surrogates allow themselves,
# and a part of what tells two modes apart that lie so close together that from afar they look like one.
PREDICTED, PREDICTED_COLD = 0.005, 0.25
SPARE = 0.05  # of the budget is kept, beside the certificate's share, to integrate with after the first look


@dataclass(frozen=True)
class _Ending:
    """How a look ends, the share of mass that it has gained, and the known region that it has come back to.

    ``host`` is None where it is the one in which its q has arrived.
    """

    outcome: Outcome
    gain: float = 0.0
    host: int | None = None


class Lookout:
    """One look after the other, each from the prior or round a point, with a few symmetry images before it.

    Before there is an estimate looks follow each other until :meth:`_enough_looking`; afterwards one is begun when
    the caller says so.

    Parameters
    ----------
    measure : the prior.
    data : all evaluations; looks keep account there of what they have asked for.
    rng : the stream of every draw.
    candidates : the symmetries to test.
    budget : evaluations that the shares above refer to.
    certify : share of the budget that is the certificate's.
    """

    def __init__(
        self,
        measure: Measure,
        data: Evaluations,
        rng: np.random.Generator,
        candidates: Candidates,
        budget: int,
        certify: float,
    ) -> None:
        self.measure = measure
        self.data = data
        self.rng = rng
        self.budget = budget
        self.certify = certify
        self.found = KnownRegions(measure)
        self.images = ImageTests(candidates)
        self._image_points: dict[bytes, ImagePurpose] = {}  # which image each point handed out is
        self.is_preliminary = True  # whether there is no estimate yet, for which looks have to end in time
        self.search: Search | None = self._new_search()

    @property
    def is_asking(self) -> bool:
        """Whether the next point belongs to a look, or is a symmetry image of a known one."""
        return self.search is not None or self.images.is_asking

    @property
    def has_begun(self) -> bool:
        """Whether a look has got beyond its design."""
        return self.search is None or bool(self.found.searches) or self.search.has_begun

    @property
    def unseen_share(self) -> float:
        """Mass that may not have been found, relative to that found: elsewhere, and in symmetry images."""
        return self.found.unseen_share + self.found.beyond_share + sum(self.echoing_shares)

    @property
    def echoing_shares(self) -> list[float]:
        """The same in images that were found to hold mass and not looked at, one number for each."""
        return self.images.unsearched_shares(self.found)

    def training_data(self) -> tuple[Array, Array]:
        """What the models may see, X (N, D) and log ℓ (N,), with the symmetry images that say the same."""
        return self.found.with_images(*self.data.training())

    # -- points -------------------------------------------------------------------------------------------------------

    def next_point(self, pending: Array) -> Array | None:
        """The next image, or the next point of the look, (D,), given points under way (P, D); None for neither."""
        self.images, image = self.images.next_point()
        if image is not None and isinstance(image.purpose, ImagePurpose):
            self._image_points[(image.u + 0.0).tobytes()] = image.purpose
            return image.u
        if self.search is None:
            return None
        x = self.search.next_point(np.concatenate([self.data.X, pending]), pending, self.rng)
        self.data.ask(x, len(self.found.searches))
        return x

    def wanted_climb(self, left: int) -> tuple[Array, int] | None:
        """Where the search under way is to begin to climb by gradients, and with how many; None where it is not.

        It does once its design is told, if it has not climbed yet. There are ``left`` evaluations left; a gradient
        takes one, or two where it is checked.
        """
        search = self.search
        if search is None or search.has_begun or search.design or self._n_own < search.n_handed:
            return None
        X, log_l = self._own(search)
        limit = min(look_limit(self.measure.dim), left) // 2
        if limit < 1 or not np.any(np.isfinite(log_l)):
            return None
        return X[int(np.argmax(log_l + self.measure.log_pdf(X)))], limit

    def expect_climb_point(self, x: Array) -> None:
        """Take note that a climb is about to evaluate x (D,): it is the search's own."""
        self.data.ask(x, len(self.found.searches))

    def climbed(self, summit: Summit | None) -> None:
        """Let the search under way go on from a mode that was climbed; from its points, where none was found."""
        search = self.search
        if search is None:
            return
        search.n_handed = self._n_own
        search.climbed = True
        if summit is not None:
            with contextlib.suppress(
                NumericalError
            ):  # a ridge too thin for numbers: the search goes on from its points
                search.start_from(summit, self.rng)
                # The curvature has as many numbers as the surrogate would need evaluations to learn it.
                if self.measure.dim > MANY_DIMENSIONS:
                    search.explorer.summit = search.explorer.frame

    @property
    def has_met_more(self) -> bool:
        """Whether the look under way has met something that the known regions do not explain."""
        if self.search is None or not self.found.explorers:
            return False
        return self.found.unexplained(*self._own(self.search)) is not None

    @property
    def _n_own(self) -> int:
        """Evaluations that the look under way has asked for and been told."""
        return self.data.n_own(len(self.found.searches))

    def _own(self, search: Search) -> tuple[Array, Array]:
        """The look's own data: what it asked for; for the first, everything."""
        return self.data.own(len(self.found.searches), everything=search.first)

    # -- beginning ----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a look at an image that holds mass, if there is one; else one from the prior, with images before it."""
        echo = self._echo_search()
        if echo is None:
            self.prepare_images()
        self.search = echo or self._new_search()

    def begin_around(self, x: Array) -> None:
        """Begin a look at x (D,), a point that the regions do not account for; what was told there is its own."""
        self.search = self._new_search(around=x)
        self.search.alone = True
        here = self.data.index_of(x)
        if here is not None:
            self.data.give(here, len(self.found.searches))
            self.search.n_handed = 1

    def _frame_around(self, x: Array) -> Frame:
        """q to begin a look at x (D,) with: three times as wide as the nearest region's, or a quarter of the prior.

        The narrower of the two: modes of one likelihood are often of about one width, and a q that is too narrow grows
        threefold with every match.
        """
        wide = Frame.of(x, 0.25**2 * self.measure.cov)
        frames = [explorer.frame for explorer in self.found.explorers]
        if not frames:
            return wide
        nearest = min(frames, key=lambda frame: float(np.square(frame.whiten(x[None, :])).sum()))
        narrow = replace(nearest.scaled(9.0), mean=x)
        return narrow if narrow.log_det < wide.log_det else wide

    def begin_from_prior(self) -> None:
        """Begin a look from fresh draws of the prior."""
        self.search = self._new_search()

    def follow_echo(self) -> bool:
        """Begin a look at an image that was found to hold mass, if there is one and evaluations for it; whether so."""
        if not (self.images.has_unsearched and self.can_afford_look):
            return False
        self.search = self._echo_search()
        return True

    def forget_heat(self) -> None:
        """Let a look that is still hot begin anew with the data it has, some of which have turned out to mean zero."""
        if self.search is not None and self.search.explorer.temperature > 1.0:
            self.search.forget()

    def prepare_images(self) -> None:
        """Queue symmetry images of the regions known."""
        self.images = self.images.prepare(self.found, *self.data.training_joint())

    def _new_search(self, around: Array | None = None) -> Search:
        first = not self.found.searches
        # Every other look is a greedy one: hills that the others pass over are met by these, and cheaply.
        greedy = len(self.found.searches) % 2 == 1 or around is not None
        frame = None if around is None else self._frame_around(around)
        search = Search(self.measure, self.rng, first=first, greedy=greedy, around=frame)
        if around is None:
            self.data.start_from(search.design)
        return search

    def _echo_search(self) -> Search | None:
        if not self.images.has_unsearched:
            return None
        self.images, image = self.images.next_unsearched(self.found)
        if image is None:
            return None
        search = self._new_search(around=image.x)
        frame = image.symmetry.image_of(image.frame)
        search.start_from(Summit(image.x, frame.cov), self.rng)
        return search

    @property
    def can_afford_look(self) -> bool:
        """Whether a typical look leaves the certificate's share of the budget."""
        return len(self.data) + self.found.typical <= self._end

    @property
    def _end(self) -> float:
        """Number of evaluations by which a first estimate must be under way."""
        return (1.0 - self.certify - SPARE) * self.budget

    # -- what was told ------------------------------------------------------------------------------------------------

    def conclude_from_images(self) -> None:
        """Take note of what was told of symmetry images; where that proves a symmetry, the images are regions too."""
        self.images, self.found = self.images.conclude(self.found, *self.data.training_joint())

    def tell_image(self, x: Array, log_l: float) -> None:
        """Take log ℓ at x (D,), if it is an image that was handed out."""
        purpose = self._image_points.pop((x + 0.0).tobytes(), None)
        if purpose is not None:
            self.images = self.images.tell(purpose, log_l + float(self.measure.log_pdf(x[None, :])[0]))

    def purpose_at(self, x: Array) -> ImagePurpose | None:
        """Which image a point x (D,) that was handed out is; None for other points."""
        return self._image_points.get((x + 0.0).tobytes())

    def forget_images(self) -> None:
        """Give up the images that were not told."""
        self.images = self.images.forget()

    def advance(self, search: Search) -> None:
        """Let the explorer learn, and end the look where it has arrived, come back or lost hope."""
        own_X, own_l = self._own(search)
        if search.design or self._n_own < search.n_handed:
            return
        if int(np.isfinite(own_l).sum()) < self.measure.dim + 2:
            search.find_foothold(own_X, own_l)
            if self._is_late:
                self._end_look(search, _Ending("unfinished"))
            return
        if search.alone:
            log_joint = own_l + self.measure.log_pdf(own_X)
            if not search.has_begun and search.zoom(own_X, log_joint, self.rng):
                return
            near = search.nearby(own_X, log_joint)
            own_X, own_l = own_X[near], own_l[near]
        # The explorer sees its own evaluations, and everything once it has reached temperature one; but a search round
        # a point must not be drawn away from it by what is known elsewhere.
        apart = search.explorer.temperature > 1.0 or search.alone
        X, log_l = (own_X, own_l) if apart else self.training_data()
        try:
            search.learn(X, log_l, self._n_own, float(np.max(own_l + self.measure.log_pdf(own_X))))
        except NumericalError:
            self._end_look(search, _Ending("unfinished"))
            return
        ending = self._outcome(search)
        if ending is not None:
            self._end_look(search, ending)

    def settle_on_told(self, search: Search) -> None:
        """Let the first look follow what was told as far as that leads, if it has no evaluations of its own."""
        if not search.first or self._n_own or search.explorer.surrogate is None:
            return
        X, log_l = self._own(search)
        with contextlib.suppress(NumericalError):
            search.explorer.match_until_still(X, log_l)

    @property
    def _is_late(self) -> bool:
        """Whether the look under way, if it is not the first, has had its share of evaluations."""
        return bool(self.found.explorers) and self._n_own >= look_limit(self.measure.dim)

    def _outcome(self, search: Search) -> _Ending | None:
        """How the look ends, if it ends here."""
        explorer, found = search.explorer, self.found
        if search.may_be_predicted:
            host = found.predicts(*self._own(search), max(PREDICTED * explorer.temperature, PREDICTED_COLD))
            if host is not None:  # all that it has met was known beforehand, and so, most likely, where it is going
                return _Ending("known region", host=host)
        known = found.index_of(explorer) if explorer.is_cold else None
        # What no region accounted for, and so was searched alone, has to be shown to be nothing new.
        if known is not None and not search.alone and found.accounts_for(known, *self._own(search)):
            return _Ending("known region")
        if search.has_arrived(self._n_own):
            novelty = found.novelty(explorer, self.rng)
            gain = found.gain(explorer, novelty)
            # Inside a known region, or over several: what the look has found is mostly what they have.
            if novelty < MORE_OF_THE_SAME or (known is not None and gain < MORE_OF_THE_SAME):
                return _Ending("known region")
            return _Ending("negligible mass") if gain < math.exp(-NEGLIGIBLE) else _Ending("new region", gain)
        if found.explorers and search.is_hopeless(found.log_total):
            return _Ending("negligible mass")
        climbing = not explorer.is_cold and not found.explorers  # may have half of the certificate's share too
        end = self._end + (0.5 * self.certify * self.budget if climbing else 0.0)
        if self._is_late or (self.is_preliminary and len(self.data) >= end):
            near = explorer.is_cold and explorer.log_z > found.log_total - NEGLIGIBLE
            if near or not found.explorers:
                return _Ending("new region", found.gain(explorer, found.novelty(explorer, self.rng)))
            return _Ending("unfinished")
        return None

    def _end_look(self, search: Search, ending: _Ending) -> None:
        """Record how a look ended; the next begins here if it is its follow-up, or if there has to be another."""
        X, log_l = self._own(search)
        explorer = search.explorer if ending.host is None else self.found.explorers[ending.host]
        start: Start = "prior" if search.from_prior else "point"
        look = SearchRecord(self._n_own, explorer.log_z + self.data.offset, ending.outcome, start)
        apart = ending.outcome == "new region" and self.found.is_apart(search.explorer, self.rng)
        self.found.record(look, search.explorer, ending.gain, ending.host, apart=apart)
        self.search = None
        affordable = len(self.data) + self.found.typical <= self.budget
        if ending.outcome == "known region" and search.from_prior and affordable:
            odd = self.found.unexplained(X, log_l)
            if odd is not None:
                self.begin_around(X[odd])
                return
        if not self.found.explorers or (self.is_preliminary and not self._enough_looking()):
            self.begin()

    @property
    def keeps_returning(self) -> bool:
        """Whether the last looks have come back to known regions, but for trifles, and were enough to believe it.

        Looks round a point say nothing of the rest of the prior, and do not count.
        """
        looks = [look for look in self.found.searches if look.start == "prior" or look.outcome == "new region"]
        barren = takewhile(lambda look: look.outcome in ("known region", "negligible mass"), reversed(looks))
        last = [look for look in barren if look.outcome == "known region"]
        spent = sum(look.n_evals for look in last)
        return len(last) >= RETURNS or (len(last) >= FEWER_RETURNS and spent > 0.5 * BARREN_SHARE * self.budget)

    def _enough_looking(self) -> bool:
        barren = self.found.spent + self.found.typical > BARREN_SHARE * self.budget
        return self.keeps_returning or barren or not self.can_afford_look

    def break_off(self) -> None:
        """End the look under way where it stands; what it has is kept if there is nothing better, or if it is new."""
        search = self.search
        if search is None:
            return
        explorer = search.explorer
        arrived = explorer.surrogate is not None and math.isfinite(explorer.log_z)
        elsewhere = explorer.is_cold and self.found.index_of(explorer) is None
        if arrived and (elsewhere or not self.found.explorers):
            self.found.take(SearchRecord(self._n_own, explorer.log_z + self.data.offset, "unfinished"), explorer)
        if self.found.explorers:
            self.search = None
