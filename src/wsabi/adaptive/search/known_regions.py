"""KnownRegions: the regions that looks have ended in, and how much mass they say is still hidden."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.regions import inflation, is_part, reach
from wsabi.adaptive.search.anneal import Explorer, total_log_mass
from wsabi.adaptive.search.leads import DEPTH, exceeds
from wsabi.adaptive.symmetry.group import Symmetry, group_of, reflected
from wsabi.priors import Measure
from wsabi.result import SearchRecord

__all__ = ["MORE_OF_THE_SAME", "NEGLIGIBLE", "KnownRegions", "Site"]

# A region more than this many nats below the sum of all holds less than a thousandth of Z: it is not worth a model.
NEGLIGIBLE = 7.0
GAIN_DRAWS = 300  # of q, to compare two surrogates: a share to 5 %
# Of the mass may lie elsewhere, for all that one look can tell: as if one second look in ten found as much again. Every
# look that finds nothing new halves that, for it would have found a region as easy to find as the first in half of all
# cases.
ALONE = 0.1
MOST_IMAGES = 23  # of one region: four components can be numbered in 24 ways, and each way costs a model
SEVERAL = 3  # families: two may be a mode and its neighbour
MORE_OF_THE_SAME = 0.1  # of the mass: what adds less to a known region is no discovery


@dataclass
class Site:
    """A region found: its explorer, how many looks ended in it, and whose symmetry image it is.

    Sites of one ``family`` are images of each other: one has no ``symmetry``, the others are its images by theirs.
    """

    explorer: Explorer
    hits: int
    family: int
    symmetry: Symmetry | None = None


@dataclass
class KnownRegions:
    """The regions found, all looks, and the share of mass that each gained."""

    measure: Measure
    sites: list[Site] = field(default_factory=list)
    gains: list[float | None] = field(default_factory=list)  # None for looks that tell nothing of the prior
    n_negligible: int = 0  # places found that hold next to nothing, each taken for another
    searches: list[SearchRecord] = field(default_factory=list)
    symmetries: list[Symmetry] = field(default_factory=list)  # of ℓ and of π
    refuted: set[Symmetry] = field(default_factory=set)  # symmetries under which ℓ was seen to differ somewhere
    n_families: int = 0  # ever begun: numbers are not given again
    beyond: list[Symmetry] = field(default_factory=list)  # symmetries that would make the group too large to follow
    confirmed: set[tuple[Symmetry, int]] = field(default_factory=set)  # a symmetry, and a family that has it

    @property
    def explorers(self) -> list[Explorer]:
        """The explorer of each region."""
        return [site.explorer for site in self.sites]

    @property
    def families(self) -> list[int]:
        """The family of each region."""
        return [site.family for site in self.sites]

    @property
    def log_total(self) -> float:
        """log of the mass in all regions, as their surrogates have it."""
        return total_log_mass(self.explorers)

    @property
    def log_cold(self) -> float:
        """The same in those that have arrived: of a hot one log_z is no mass."""
        return total_log_mass([explorer for explorer in self.explorers if explorer.is_cold])

    @property
    def heat(self) -> float:
        """Nats that a search which has not arrived may still be below the mass: tD at temperature t, zero at one.

        Draws of ℓ^(1/t)π lie ½tD nats below the top where ℓ is Gaussian, give or take as much.
        """
        hot = [known.temperature for known in self.explorers if known.temperature > 1.0]
        return self.measure.dim * max(hot, default=0.0)

    @property
    def spent(self) -> int:
        """Evaluations of looks that found nothing new."""
        return sum(look.n_evals for look in self.searches if look.outcome != "new region")

    @property
    def typical(self) -> float:
        """Evaluations of a further look: the median of those after the first, or half of the first.

        A look that comes back to what is known takes about half as many as one that has to learn a region.
        """
        later = [look.n_evals for look in self.searches[1:]]
        return float(np.median(later)) if later else 0.5 * self.searches[0].n_evals

    def index_of(self, explorer: Explorer) -> int | None:
        """Number of the region in whose bulk q has arrived, if it is one found before."""
        return self.index_at(explorer.frame.mean)

    def index_at(self, x: Array) -> int | None:
        """Number of the region in whose bulk x (D,) lies, the first found if there are several; None for none."""
        return next(iter(self._all_at(x)), None)

    def _all_at(self, x: Array) -> list[int]:
        """Numbers of the regions in whose bulk x (D,) lies."""
        bulk = math.sqrt(self.measure.dim) + 1.0
        whitened = [known.frame.scaled(inflation(self.measure.dim)).whiten(x[None, :])[0] for known in self.explorers]
        return [k for k, y in enumerate(whitened) if float(np.linalg.norm(y)) < bulk]

    def accounts_for(self, number: int, X: Array, log_l: Array) -> bool:
        """Whether that region's surrogate knew of what a look has met: X (N, D), log ℓ (N,) are the look's own points.

        At the best of them, as many as fix a hyperplane, it must not be too low by half: a lump inside a broad region
        is as new as one outside.
        """
        best = np.argsort(-(log_l + self.measure.log_pdf(X)))[: self.measure.dim + 1]
        best = best[np.isfinite(log_l[best])]
        predicted, _ = self.explorers[number].log_likelihood(X[best])
        return float(np.median(log_l[best] - predicted)) < math.log(2.0)

    def predicts(self, X: Array, log_l: Array, tolerance: float) -> int | None:
        """Number of the region whose surrogate knew beforehand what a look has met, X (N, D), log ℓ (N,); or None.

        At the best 2D + 2 of them, those that the look goes by, the known regions together must be right to
        ``tolerance``, in nats. The region is the one that has most to say at the best.
        """
        feasible = np.isfinite(log_l)
        X, log_l = X[feasible], log_l[feasible]
        best = np.argsort(-(log_l + self.measure.log_pdf(X)))[: 2 * self.measure.dim + 2]
        if not self.explorers or len(best) < 2 * self.measure.dim + 2:
            return None
        predicted = np.array([known.mean_log_likelihood(X[best]) for known in self.explorers])
        off = np.abs(log_l[best] - np.max(predicted, axis=0))
        return int(np.argmax(predicted[:, 0])) if np.all(off <= tolerance) else None

    def unexplained(self, X: Array, log_l: Array) -> int | None:
        """Which of a look's points X (N, D), log ℓ (N,), betrays something that the known regions do not explain.

        The one that exceeds what their surrogates predict by most (:func:`wsabi.adaptive.search.leads.exceeds`), among
        those with an ℓπ within ten nats of the best known, for a region may be that much higher than its flank.
        """
        log_p = log_l + self.measure.log_pdf(X)
        near = np.flatnonzero(log_p > max(known.top_joint for known in self.explorers) - DEPTH)
        if not len(near):
            return None
        excess = exceeds(self.explorers, X[near], log_l[near])
        best = int(np.argmax(excess))
        return int(near[best]) if excess[best] > 0.0 else None

    def gain(self, explorer: Explorer, novelty: float) -> float:
        """Mass that an explorer of the novelty given has and the known regions have not, over that of both together."""
        if not self.explorers:
            return 1.0
        new = explorer.log_z + math.log(max(novelty, 1e-300))
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
        return _share_alone(smaller, [larger], rng) >= MORE_OF_THE_SAME

    def record(
        self, look: SearchRecord, explorer: Explorer, gain: float, host: int | None = None, *, apart: bool = False
    ) -> None:
        """Note how a look ended, and keep what it found; ``gain`` is its share of mass not known before.

        ``host`` is the number of the known region that it belongs to, where that is not the one q has arrived in.

        What is new inside a known region, and not much narrower than it, is more of the same region: one of the two
        explorers is kept, the one with the larger mass. Both are if it lies ``apart``, see :meth:`is_apart`.
        """
        self.searches.append(look)
        new = look.outcome == "new region"
        silent = look.outcome == "unfinished" or (look.start == "point" and not new)
        self.gains.append(None if silent else gain if new else 0.0)
        self.n_negligible += look.outcome == "negligible mass"
        host = self.index_of(explorer) if host is None else host
        if look.outcome == "known region" and host is not None:
            self.sites[host].hits += 1
        if new and math.isfinite(explorer.log_z):
            if host is None or apart or is_part(self.sites[host].explorer, explorer):
                self._keep(explorer)
            else:
                self._replace(self.sites[host], explorer)
            self._prune()

    def take(self, look: SearchRecord, explorer: Explorer) -> None:
        """Keep the explorer of a look that was cut short, for want of anything better."""
        self.searches.append(look)
        self.gains.append(None)
        self._keep(explorer)

    def _keep(self, explorer: Explorer) -> None:
        self.sites.append(Site(explorer, 1, self._new_family()))
        self._reflect()

    def _replace(self, site: Site, explorer: Explorer) -> None:
        """Count a look that ended in a known region, and take its explorer if it has found more mass there."""
        site.hits += 1
        if explorer.log_z > site.explorer.log_z:
            original = explorer if site.symmetry is None else reflected(explorer, site.symmetry.inverse)
            self.rematch(lambda known: original if known is self._original(site).explorer else known)

    def _original(self, site: Site) -> Site:
        """The site of its family that is no image."""
        return next(other for other in self.sites if other.family == site.family and other.symmetry is None)

    # -- symmetry images -----------------------------------------------------------------------------------------------

    def add_symmetry(self, symmetry: Symmetry, family: int) -> None:
        """Take note that ℓ and π are the same in a family's regions and their images: the images are regions.

        One that would make the group larger than MOST_IMAGES is not made use of, but counts in what is hidden.
        """
        if symmetry in self.refuted or symmetry in self.group:
            return
        if len(group_of([*self.symmetries, symmetry], MOST_IMAGES + 1)) > MOST_IMAGES:
            self.beyond.append(symmetry)
            return
        self.symmetries.append(symmetry)
        self.confirm(symmetry, family, holds=True)

    def confirm(self, symmetry: Symmetry, family: int, *, holds: bool) -> None:
        """Take note that a family has a symmetry; or that it has not, and so there is no such symmetry.

        Images by it that are known stay, for their own families had it: each as a region by itself.
        """
        if holds:
            self.confirmed.add((symmetry, family))
        else:
            self.refuted.add(symmetry)
            self.symmetries.remove(symmetry)
            group = self.group
            for site in self.sites:
                if site.symmetry is not None and site.symmetry not in group:
                    site.symmetry, site.family = None, self._new_family()
        self._reflect()

    def _new_family(self) -> int:
        self.n_families += 1
        return self.n_families - 1

    @property
    def group(self) -> list[Symmetry]:
        """All symmetries under which ℓ and π are known to be the same, but for the identity."""
        return group_of(self.symmetries, MOST_IMAGES)

    @property
    def all_symmetries(self) -> list[Symmetry]:
        """Mirrors under which ℓ and π were found to be the same, those that are not followed last."""
        return self.symmetries + self.beyond

    @property
    def beyond_share(self) -> float:
        """Mass, relative to that found, in images that are too many to follow, as far as 5040 (seven components)."""
        if not self.beyond:
            return 0.0
        return (1 + len(group_of([*self.symmetries, *self.beyond], 5039))) / (1 + len(self.group)) - 1.0

    def _reflect(self) -> None:
        """Add the images of known regions that are not known, where the family has confirmed all symmetries."""
        for site in [site for site in self.sites if site.symmetry is None]:
            if not all(self._has(site, symmetry) for symmetry in self.symmetries):
                continue
            for symmetry in self.group:
                image = reflected(site.explorer, symmetry)
                hosts = [self.sites[k] for k in self._all_at(image.frame.mean)]
                if not any(host.family == site.family or not is_part(host.explorer, image) for host in hosts):
                    self.sites.append(Site(image, 0, site.family, symmetry))

    def _has(self, site: Site, symmetry: Symmetry) -> bool:
        """Whether a region has confirmed a symmetry, or lies on the symmetry and is its own image."""
        own = {self.sites[k].family for k in self._all_at(symmetry.image(site.explorer.frame.mean))}
        return (symmetry, site.family) in self.confirmed or site.family in own

    def with_images(self, X: Array, log_l: Array) -> tuple[Array, Array]:
        """Evaluations X (N, D), log ℓ (N,) and what they say of their symmetry images."""
        group = self.group
        return np.concatenate([X, *(symmetry.image(X) for symmetry in group)]), np.tile(log_l, 1 + len(group))

    def rematch(self, rematched: Callable[[Explorer], Explorer]) -> None:
        """Exchange every region's explorer for another of the same region, its images' likewise."""
        for site in self.sites:
            if site.symmetry is None:
                site.explorer = rematched(site.explorer)
        for site in self.sites:
            if site.symmetry is not None:
                site.explorer = reflected(self._original(site).explorer, site.symmetry)

    def _prune(self) -> None:
        """Let go of regions that hold next to nothing, together with their images."""
        floor = self.log_total - NEGLIGIBLE
        families = set(self.families)
        kept = {family for family in families if self.log_mass(family) > floor}
        self.sites = [site for site in self.sites if site.family in kept]
        self.n_negligible += len(families - kept)

    def log_mass(self, family: int) -> float:
        """log of the mass in all regions of a family."""
        return total_log_mass([site.explorer for site in self.sites if site.family == family])

    @property
    def unseen_share(self) -> float:
        """Mass in regions not found, relative to that found, as far as the looks can tell.

        The largest of three answers. ALONE, halved by every look since the last that found something. What the second
        half of the looks found that the first had not, for as many looks again would be expected to find no more than
        that. And Chao's (1987) lower bound on the number of kinds not met, f₁(f₁ − 1)/2(f₂ + 1) from the numbers met
        once and twice, with one standard error of it added since it is a bound, each of the mean mass of those met
        once; it holds where some regions are much harder to find than others. Places that hold next to nothing are
        kinds too: looks that end each in another place have not seen all there is. A region and its symmetry images are
        one kind, since a look ends in each of them with the same chance; but not among SEVERAL families, a landscape so
        rugged that what looks miss is another kind altogether.
        """
        ended = [gain for gain in self.gains if gain is not None]
        barren = len(list(takewhile(lambda gain: gain == 0.0, reversed(ended))))
        alone = ALONE * 0.5**barren
        if len(ended) < 2:
            return alone
        late = sum(ended[-(len(ended) // 2) :])
        hits: dict[int, int] = defaultdict(int)
        for site in self.sites:
            hits[site.family] += site.hits
        total = self.log_total
        kinds = [(hits[family], math.exp(self.log_mass(family) - total)) for family in hits]
        if len(kinds) >= SEVERAL:
            kinds = [(site.hits, math.exp(site.explorer.log_z - total)) for site in self.sites]
        return max(alone, late, _unmet(kinds, self.n_negligible, len(ended)))


def _unmet(kinds: Sequence[tuple[int, float]], n_negligible: int, n_looks: int) -> float:
    """Chao's bound, with one standard error, times the mean mass of kinds met once; of (times met, mass) of each."""
    met_once = [mass for hits, mass in kinds if hits == 1]
    once, twice = len(met_once) + n_negligible, sum(hits == 2 for hits, _ in kinds)
    if once < 2:
        return 0.0
    ratio = once / (twice + 1)
    hidden = 0.5 * (once - 1) * ratio
    hidden += math.sqrt((twice + 1) * (0.5 * ratio**2 + ratio**3 + 0.25 * ratio**4))
    # No more of them than looks were made to meet them.
    return min(hidden, n_looks) * float(np.sum(met_once)) / once


def _share_alone(explorer: Explorer, others: Sequence[Explorer], rng: np.random.Generator) -> float:
    """Share of an explorer's mass that the others have not; all of it if there are none.

    By draws of its q: where another surrogate says as much as this one does, nothing is new. Beyond its own data a
    surrogate may say anything, so it counts within √D + 4 sds of its q only, which hold nearly all of them.
    """
    if not others:
        return 1.0
    measure = explorer.measure
    q = explorer.frame.scaled(inflation(measure.dim))
    X = q.colour(rng.standard_normal((GAIN_DRAWS, measure.dim)))
    mine = explorer.log_likelihood(X)[0]
    possible = np.isfinite(mine)
    if not np.any(possible):
        return 0.0
    X, mine = X[possible], mine[possible]
    known = np.max([_within_reach(other, X) for other in others], axis=0)
    log_w = mine + measure.log_pdf(X) - q.log_density(X)
    w = np.exp(log_w - np.max(log_w))
    return float(w @ -np.expm1(np.minimum(known - mine, 0.0))) / float(w.sum())


def _within_reach(known: Explorer, X: Array) -> Array:
    """log ℓ (N,) at X (N, D) by an explorer's surrogate, −inf where it has no data."""
    dim = X.shape[1]
    radius = np.linalg.norm(known.frame.scaled(inflation(dim)).whiten(X), axis=1)
    return np.where(radius < reach(dim), known.log_likelihood(X)[0], -np.inf)
