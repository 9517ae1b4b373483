"""KnownRegions: the regions that searches have ended in, and their symmetry images."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.search.explorer import Explorer, total_log_mass
from wsabi.adaptive.search.ground import exceeds, inflation, is_part, within_reach
from wsabi.adaptive.search.hidden import hidden_share
from wsabi.adaptive.symmetry.group import Symmetry, group_of, reflected
from wsabi.adaptive.tuning import TUNING
from wsabi.priors import Measure
from wsabi.result import SearchRecord

__all__ = ["KnownRegions", "Region"]


@dataclass(frozen=True, eq=False)
class Region:
    """A region found: its explorer, how many searches ended in it, and whose symmetry image it is.

    Regions of one ``family`` are images of each other: one has no ``symmetry``, the others are its images by theirs.
    """

    explorer: Explorer
    hits: int
    family: int
    symmetry: Symmetry | None = None


@dataclass(frozen=True, eq=False)
class KnownRegions:
    """The regions found, all searches, and the share of mass that each gained.

    Attributes
    ----------
    gains : share of mass that each search has gained; None for searches that say nothing of the prior.
    n_negligible : places found that hold next to nothing, each taken for another.
    symmetries : of ℓ and of π.
    refuted : symmetries under which ℓ was seen to differ somewhere.
    n_families : families ever begun; numbers are not given again.
    beyond : symmetries that would make the group too large to follow.
    confirmed : a symmetry, and a family that has it.
    """

    measure: Measure
    regions: tuple[Region, ...] = ()
    gains: tuple[float | None, ...] = ()
    n_negligible: int = 0
    searches: tuple[SearchRecord, ...] = ()
    symmetries: tuple[Symmetry, ...] = ()
    refuted: frozenset[Symmetry] = frozenset()
    n_families: int = 0
    beyond: tuple[Symmetry, ...] = ()
    confirmed: frozenset[tuple[Symmetry, int]] = frozenset()

    @property
    def explorers(self) -> list[Explorer]:
        """The explorer of each region."""
        return [region.explorer for region in self.regions]

    @property
    def families(self) -> list[int]:
        """The family of each region."""
        return [region.family for region in self.regions]

    @property
    def log_total(self) -> float:
        """log of the mass in all regions, by their surrogates."""
        return total_log_mass(self.explorers)

    @property
    def log_cold(self) -> float:
        """The same in those that have arrived: of a hot one log_z is no mass."""
        return total_log_mass([explorer for explorer in self.explorers if explorer.is_cold])

    @property
    def unfinished_nats(self) -> float:
        """Nats that a search which has not arrived may still be below the mode: tD at temperature t, zero at one.

        Draws of ℓ^(1/t)π lie ½tD nats below the top where ℓ is Gaussian, give or take as much.
        """
        hot = [known.temperature for known in self.explorers if known.temperature > 1.0]
        return self.measure.dim * max(hot, default=0.0)

    @property
    def spent(self) -> int:
        """Evaluations of searches that found nothing new."""
        return sum(search.n_evals for search in self.searches if search.outcome != "new region")

    @property
    def typical(self) -> float:
        """Evaluations of a further search: the median of those after the first, or half of the first.

        A search that comes back to what is known takes about half as many as one that has to learn a region.
        """
        later = [search.n_evals for search in self.searches[1:]]
        return float(np.median(later)) if later else 0.5 * self.searches[0].n_evals

    # -- what is known at a point -------------------------------------------------------------------------------------

    def index_of(self, explorer: Explorer) -> int | None:
        """Number of the region in whose bulk q has arrived, if it is one found before."""
        return self.index_at(explorer.frame.mean)

    def index_at(self, x: Array) -> int | None:
        """Number of the region in whose bulk x (D,) lies, the first found if there are several; None for none."""
        return next(iter(self.all_at(x)), None)

    def all_at(self, x: Array) -> list[int]:
        """Numbers of the regions in whose bulk x (D,) lies."""
        bulk = math.sqrt(self.measure.dim) + 1.0
        whitened = [known.frame.scaled(inflation(self.measure.dim)).whiten(x[None, :])[0] for known in self.explorers]
        return [k for k, y in enumerate(whitened) if float(np.linalg.norm(y)) < bulk]

    def accounts_for(self, number: int, X: Array, log_l: Array) -> bool:
        """Whether that region's surrogate knew of what a search has met: X (N, D), log ℓ (N,) are the search's own.

        At the best of them, as many as fix a hyperplane, it must not be too low by half: a lump inside a broad region
        is as new as one outside.
        """
        best = np.argsort(-(log_l + self.measure.log_pdf(X)))[: self.measure.dim + 1]
        best = best[np.isfinite(log_l[best])]
        predicted, _ = self.explorers[number].log_likelihood(X[best])
        return float(np.median(log_l[best] - predicted)) < math.log(2.0)

    def predicts(self, X: Array, log_l: Array, tolerance: float) -> int | None:
        """Number of the region whose surrogate predicted what a search has met, X (N, D), log ℓ (N,); or None.

        At the best 2D + 2 of them, those that the search goes by, the known regions together must be right to
        ``tolerance``, in nats. The region is the one that predicts most at the best.
        """
        feasible = np.isfinite(log_l)
        X, log_l = X[feasible], log_l[feasible]
        best = np.argsort(-(log_l + self.measure.log_pdf(X)))[: 2 * self.measure.dim + 2]
        if not self.regions or len(best) < 2 * self.measure.dim + 2:
            return None
        predicted = np.array([known.mean_log_likelihood(X[best]) for known in self.explorers])
        off = np.abs(log_l[best] - np.max(predicted, axis=0))
        return int(np.argmax(predicted[:, 0])) if np.all(off <= tolerance) else None

    def unexplained(self, X: Array, log_l: Array) -> int | None:
        """Which of a search's points X (N, D), log ℓ (N,), shows something that the known regions do not explain.

        The one that exceeds what their surrogates predict by most (:func:`exceeds`), among those whose ℓπ is not too
        far below the best known, for a mode may be that much higher than its flank.
        """
        log_p = log_l + self.measure.log_pdf(X)
        near = np.flatnonzero(log_p > max(known.top_joint for known in self.explorers) - TUNING.known.flank_depth)
        if not len(near):
            return None
        excess = exceeds(self.explorers, X[near], log_l[near])
        best = int(np.argmax(excess))
        return int(near[best]) if excess[best] > 0.0 else None

    # -- what a search has added --------------------------------------------------------------------------------------

    def gain(self, explorer: Explorer, novelty: float) -> float:
        """Mass that an explorer of the novelty given has and the known regions have not, over that of both together."""
        if not self.regions:
            return 1.0
        new = explorer.log_z + math.log(max(novelty, TUNING.known.no_novelty))
        return math.exp(new - np.logaddexp(new, self.log_total))

    def novelty(self, explorer: Explorer, rng: np.random.Generator) -> float:
        """Share of an explorer's mass that the known regions have not."""
        return _share_alone(explorer, self.explorers, rng)

    def is_apart(self, explorer: Explorer, rng: np.random.Generator) -> bool:
        """Whether an explorer within a known region is to be kept beside it: the smaller has mass the other has not.

        Two regions of two modes each may have one of them in common.
        """
        host = self.index_of(explorer)
        if host is None:
            return False
        smaller, larger = sorted([self.explorers[host], explorer], key=lambda each: each.log_z)
        return _share_alone(smaller, [larger], rng) >= TUNING.known.more_of_the_same

    def recorded(
        self, search: SearchRecord, explorer: Explorer, gain: float, host: int | None = None, *, apart: bool = False
    ) -> KnownRegions:
        """The same after a search has ended, with what it found; ``gain`` is its share of mass not known before.

        ``host`` is the number of the known region that it belongs to, where that is not the one q has arrived in.

        What is new inside a known region, and not much narrower than it, is more of the same region: one of the two
        explorers is kept, the one with the larger mass. Both are if it lies ``apart``, see :meth:`is_apart`.
        """
        new = search.outcome == "new region"
        silent = search.outcome == "unfinished" or (search.start == "point" and not new)
        known = replace(
            self,
            searches=(*self.searches, search),
            gains=(*self.gains, None if silent else gain if new else 0.0),
            n_negligible=self.n_negligible + (search.outcome == "negligible mass"),
        )
        host = known.index_of(explorer) if host is None else host
        if search.outcome == "known region" and host is not None:
            known = known._hit(host)
        if not new or not math.isfinite(explorer.log_z):
            return known
        if host is None or apart or is_part(known.regions[host].explorer, explorer):
            return known._kept(explorer)._pruned()
        return known._improved(host, explorer)._pruned()

    def taken(self, search: SearchRecord, explorer: Explorer) -> KnownRegions:
        """The same with the explorer of a search that was cut short, for want of anything better."""
        return replace(self, searches=(*self.searches, search), gains=(*self.gains, None))._kept(explorer)

    def _hit(self, number: int) -> KnownRegions:
        return self._with_region(number, replace(self.regions[number], hits=self.regions[number].hits + 1))

    def _with_region(self, number: int, region: Region) -> KnownRegions:
        return replace(self, regions=(*self.regions[:number], region, *self.regions[number + 1 :]))

    def _kept(self, explorer: Explorer) -> KnownRegions:
        region = Region(explorer, 1, self.n_families)
        return replace(self, regions=(*self.regions, region), n_families=self.n_families + 1)._reflected()

    def _improved(self, number: int, explorer: Explorer) -> KnownRegions:
        """The same after a search that ended in a known region; its explorer is taken if it found more mass there."""
        known, region = self._hit(number), self.regions[number]
        if not explorer.log_z > region.explorer.log_z:
            return known
        better = explorer if region.symmetry is None else reflected(explorer, region.symmetry.inverse)
        old = self._original(region).explorer
        return known.with_explorers(lambda explorer: better if explorer is old else explorer)

    def _original(self, region: Region) -> Region:
        """The region of its family that is no image."""
        return next(other for other in self.regions if other.family == region.family and other.symmetry is None)

    def _pruned(self) -> KnownRegions:
        """The same without regions that hold next to nothing, and their images."""
        floor = self.log_total - TUNING.known.negligible
        families = set(self.families)
        kept = {family for family in families if self.log_mass(family) > floor}
        regions = tuple(region for region in self.regions if region.family in kept)
        return replace(self, regions=regions, n_negligible=self.n_negligible + len(families - kept))

    def without(self, family: int) -> KnownRegions:
        """The same without the regions of a family."""
        return replace(self, regions=tuple(region for region in self.regions if region.family != family))

    def with_explorers(self, other: Callable[[Explorer], Explorer]) -> KnownRegions:
        """The same with every region's explorer exchanged for another of the same region, its images' likewise."""
        own = {region.family: other(region.explorer) for region in self.regions if region.symmetry is None}
        regions = tuple(
            replace(
                region,
                explorer=own[region.family]
                if region.symmetry is None
                else reflected(own[region.family], region.symmetry),
            )
            for region in self.regions
        )
        return replace(self, regions=regions)

    def with_explorer(self, number: int, explorer: Explorer) -> KnownRegions:
        """The same with another explorer for one region alone."""
        return self._with_region(number, replace(self.regions[number], explorer=explorer))

    # -- symmetry images ----------------------------------------------------------------------------------------------

    def with_symmetry(self, symmetry: Symmetry, family: int) -> KnownRegions:
        """The same where ℓ and π are equal in a family's regions and their images: the images are regions.

        One that would make the group too large is not made use of, but counts in what is hidden.
        """
        if symmetry in self.refuted or symmetry in self.group:
            return self
        most = int(TUNING.symmetry.most_images)
        if len(group_of([*self.symmetries, symmetry], most + 1)) > most:
            return replace(self, beyond=(*self.beyond, symmetry))
        return replace(self, symmetries=(*self.symmetries, symmetry)).with_answer(symmetry, family, holds=True)

    def with_refuted(self, symmetry: Symmetry) -> KnownRegions:
        """The same where ℓ was seen to differ under a symmetry that was not known to hold."""
        return replace(self, refuted=self.refuted | {symmetry})

    def with_answer(self, symmetry: Symmetry, family: int, *, holds: bool) -> KnownRegions:
        """The same where a family was seen to have a known symmetry; or not to have it, and so there is none.

        Images by it that are known stay, for their own families had it: each as a region by itself.
        """
        if holds:
            return replace(self, confirmed=self.confirmed | {(symmetry, family)})._reflected()
        known = replace(
            self.with_refuted(symmetry), symmetries=tuple(other for other in self.symmetries if other != symmetry)
        )
        group, regions = known.group, []
        for region in known.regions:
            if region.symmetry is not None and region.symmetry not in group:
                region = replace(region, symmetry=None, family=known.n_families)
                known = replace(known, n_families=known.n_families + 1)
            regions.append(region)
        return replace(known, regions=tuple(regions))._reflected()

    @property
    def group(self) -> list[Symmetry]:
        """All symmetries under which ℓ and π are known to be the same, but for the identity."""
        return group_of(self.symmetries, int(TUNING.symmetry.most_images))

    @property
    def all_symmetries(self) -> list[Symmetry]:
        """Symmetries under which ℓ and π were found to be the same, those that are not followed last."""
        return [*self.symmetries, *self.beyond]

    @property
    def beyond_share(self) -> float:
        """Mass, relative to that found, in images that are too many to follow, as far as 5040 (seven components)."""
        if not self.beyond:
            return 0.0
        counted = len(group_of([*self.symmetries, *self.beyond], math.factorial(7) - 1))
        return (1 + counted) / (1 + len(self.group)) - 1.0

    def _reflected(self) -> KnownRegions:
        """The same with the images of known regions that are not known, where the family has all symmetries."""
        known = self
        for region in [region for region in self.regions if region.symmetry is None]:
            if not all(known._has(region, symmetry) for symmetry in known.symmetries):
                continue
            for symmetry in known.group:
                image = reflected(region.explorer, symmetry)
                hosts = [known.regions[k] for k in known.all_at(image.frame.mean)]
                if not any(host.family == region.family or not is_part(host.explorer, image) for host in hosts):
                    known = replace(known, regions=(*known.regions, Region(image, 0, region.family, symmetry)))
        return known

    def _has(self, region: Region, symmetry: Symmetry) -> bool:
        """Whether a region has confirmed a symmetry, or lies on the symmetry and is its own image."""
        own = {self.regions[k].family for k in self.all_at(symmetry.image(region.explorer.frame.mean))}
        return (symmetry, region.family) in self.confirmed or region.family in own

    def with_images(self, X: Array, log_l: Array) -> tuple[Array, Array]:
        """Evaluations X (N, D), log ℓ (N,) and what they say of their symmetry images."""
        group = self.group
        return np.concatenate([X, *(symmetry.image(X) for symmetry in group)]), np.tile(log_l, 1 + len(group))

    def log_mass(self, family: int) -> float:
        """log of the mass in all regions of a family."""
        return total_log_mass([region.explorer for region in self.regions if region.family == family])

    # -- what may be hidden -------------------------------------------------------------------------------------------

    @property
    def unseen_share(self) -> float:
        """Mass in regions not found, relative to that found; see :func:`~wsabi.adaptive.search.hidden.hidden_share`.

        A region and its symmetry images are one kind, since a search ends in each of them with the same chance; but not
        among several families, a landscape so rugged that what searches miss is another kind altogether.
        """
        hits: dict[int, int] = defaultdict(int)
        for region in self.regions:
            hits[region.family] += region.hits
        total = self.log_total
        kinds = [(hits[family], math.exp(self.log_mass(family) - total)) for family in hits]
        if len(kinds) >= TUNING.known.several_families:
            kinds = [(region.hits, math.exp(region.explorer.log_z - total)) for region in self.regions]
        return hidden_share(self.gains, kinds, self.n_negligible)


def _share_alone(explorer: Explorer, others: Sequence[Explorer], rng: np.random.Generator) -> float:
    """Share of an explorer's mass that the others have not; all of it if there are none.

    By draws of its q: where another surrogate says as much as this one does, nothing is new. Beyond its own data a
    surrogate may say anything, so it counts within :func:`reach` of its q only.
    """
    if not others:
        return 1.0
    measure = explorer.measure
    q = explorer.frame.scaled(inflation(measure.dim))
    X = q.colour(rng.standard_normal((int(TUNING.known.gain_draws), measure.dim)))
    mine = explorer.log_likelihood(X)[0]
    possible = np.isfinite(mine)
    if not np.any(possible):
        return 0.0
    X, mine = X[possible], mine[possible]
    known = np.max([within_reach(other, X) for other in others], axis=0)
    log_w = mine + measure.log_pdf(X) - q.log_density(X)
    w = np.exp(log_w - np.max(log_w))
    return float(w @ -np.expm1(np.minimum(known - mine, 0.0))) / float(w.sum())
