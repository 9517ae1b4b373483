"""Look: one search for a region of mass, from the prior or round a point, and the list of what searches have found."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from wsabi._types import Array
from wsabi.design import spread_design
from wsabi.engine.ascent import Summit
from wsabi.engine.explorer import Explorer, Frame, total_log_mass
from wsabi.engine.regions import inflation
from wsabi.measures import Measure
from wsabi.result import Look

__all__ = ["MORE_OF_THE_SAME", "NEGLIGIBLE", "Found", "Search", "look_limit"]

# A region more than this many nats below the sum of all holds less than a thousandth of Z: it is not worth a model.
NEGLIGIBLE = 7.0
GAIN_DRAWS = 300  # of q, to compare two surrogates: a share to 5 %
ALONE = 0.1  # of the mass may lie elsewhere, for all that one look can tell: as if one second look in ten found as much
MORE_OF_THE_SAME = 0.1  # of the mass: what adds less to a known region is no discovery


def look_limit(dim: int) -> int:
    """Evaluations after which a look that is not the first is given up: from the prior to a region takes 10 to 30 D."""
    return 30 * dim + 20


@dataclass
class Found:
    """The regions found, by their explorers, and how many looks ended in each; all looks, and the share each gained."""

    measure: Measure
    explorers: list[Explorer] = field(default_factory=list)
    hits: list[int] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)
    n_trifles: int = 0  # places found that hold next to nothing, each taken for another
    looks: list[Look] = field(default_factory=list)

    @property
    def log_total(self) -> float:
        """log of the mass in all regions, as their surrogates have it."""
        return total_log_mass(self.explorers)

    @property
    def spent(self) -> int:
        """Evaluations of looks that found nothing new."""
        return sum(look.n_evals for look in self.looks if look.outcome != "new region")

    @property
    def typical(self) -> float:
        """Median evaluations of a look."""
        return float(np.median([look.n_evals for look in self.looks]))

    def index_of(self, explorer: Explorer) -> int | None:
        """Number of the region in whose bulk q has arrived, if it is one found before."""
        bulk = math.sqrt(self.measure.dim) + 1.0
        for k, known in enumerate(self.explorers):
            y = known.frame.scaled(inflation(self.measure.dim)).whiten(explorer.frame.mean[None, :])[0]
            if float(np.linalg.norm(y)) < bulk:
                return k
        return None

    def accounts_for(self, number: int, X: Array, log_l: Array) -> bool:
        """Whether that region's surrogate knew of what a look has met: X (N, D), log ℓ (N,) are the look's own points.

        At the best of them, as many as fix a hyperplane, it must not be too low by half: a lump inside a broad region
        is as new as one outside.
        """
        best = np.argsort(-(log_l + self.measure.log_pdf(X)))[: self.measure.dim + 1]
        best = best[np.isfinite(log_l[best])]
        predicted, _ = self.explorers[number].log_likelihood(X[best])
        return float(np.median(log_l[best] - predicted)) < math.log(2.0)

    def unexplained(self, X: Array, log_l: Array) -> int | None:
        """Which of a look's points X (N, D), log ℓ (N,), betrays something that the known regions do not explain.

        The one that exceeds what their surrogates predict by most: by two nats beyond two of their sds at least, and
        with an ℓπ within ten nats of the best known, for a region may be that much higher than its flank.
        """
        log_p = log_l + self.measure.log_pdf(X)
        near = np.flatnonzero(log_p > max(known.top_joint for known in self.explorers) - 10.0)
        if not len(near):
            return None
        predicted = [known.log_likelihood(X[near]) for known in self.explorers]
        excess = log_l[near] - np.max([log_m + 2.0 * sd for log_m, sd in predicted], axis=0)
        best = int(np.argmax(excess))
        return int(near[best]) if excess[best] > 2.0 else None

    def gain(self, explorer: Explorer, rng: np.random.Generator) -> float:
        """Mass that an explorer has and the known regions have not, over that of both together.

        By draws of its q: where a known surrogate says as much as this one does, nothing is gained.
        """
        if not self.explorers:
            return 1.0
        q = explorer.frame.scaled(inflation(self.measure.dim))
        X = q.colour(rng.standard_normal((GAIN_DRAWS, self.measure.dim)))
        mine = explorer.log_likelihood(X)[0]
        possible = np.isfinite(mine)
        if not np.any(possible):
            return 0.0
        X, mine = X[possible], mine[possible]
        known = np.max([other.log_likelihood(X)[0] for other in self.explorers], axis=0)
        log_w = mine + self.measure.log_pdf(X) - q.log_density(X)
        w = np.exp(log_w - np.max(log_w))
        novelty = float(w @ -np.expm1(np.minimum(known - mine, 0.0))) / float(w.sum())
        new = explorer.log_z + math.log(max(novelty, 1e-300))
        return math.exp(new - np.logaddexp(new, self.log_total))

    def record(self, look: Look, explorer: Explorer, gain: float) -> None:
        """Note how a look ended, and keep what it found; ``gain`` is its share of mass not known before.

        What is new inside a known region, and not much narrower than it, is more of the same region: one of the two
        explorers is kept, the one with the larger mass.
        """
        self.looks.append(look)
        self.gains.append(gain if look.outcome == "new region" else 0.0)
        self.n_trifles += look.outcome == "negligible mass"
        host = self.index_of(explorer)
        if look.outcome == "known region" and host is not None:
            self.hits[host] += 1
        if look.outcome == "new region" and math.isfinite(explorer.log_z):
            if host is None or self._is_part(host, explorer):
                self.explorers.append(explorer)
                self.hits.append(1)
            else:
                self.hits[host] += 1
                if explorer.log_z > self.explorers[host].log_z:
                    self.explorers[host] = explorer
            self._prune()

    def take(self, look: Look, explorer: Explorer) -> None:
        """Keep the explorer of a look that was cut short, for want of anything better."""
        self.looks.append(look)
        self.gains.append(0.0)
        self.explorers.append(explorer)
        self.hits.append(1)

    def _is_part(self, number: int, explorer: Explorer) -> bool:
        """Whether an explorer within that region has found a narrower one, of half its variance along the axes."""
        known = self.explorers[number].frame
        return explorer.frame.log_det < known.log_det - 0.5 * self.measure.dim * math.log(2.0)

    def _prune(self) -> None:
        """Let go of regions that hold next to nothing."""
        floor = self.log_total - NEGLIGIBLE
        kept = [k for k, known in enumerate(self.explorers) if known.log_z > floor]
        self.n_trifles += len(self.explorers) - len(kept)
        self.explorers, self.hits = [self.explorers[k] for k in kept], [self.hits[k] for k in kept]

    @property
    def unseen_share(self) -> float:
        """Mass in regions not found, relative to that found, as far as the looks can tell; ALONE for fewer than two.

        The larger of two answers. What the second half of the looks found that the first had not, for as many looks
        again would be expected to find no more than that. And Chao's (1987) lower bound on the number of kinds not met,
        f₁(f₁ − 1)/2(f₂ + 1) from the numbers met once and twice, with one standard error of it added since it is a
        bound, each of the mean mass of those met once; it holds where some regions are much harder to find than
        others. Places that hold next to nothing are kinds too: looks that end each in another place have not seen all
        there is.
        """
        ended = [gain for look, gain in zip(self.looks, self.gains, strict=True) if look.outcome != "unfinished"]
        if len(ended) < 2:
            return ALONE
        late = sum(ended[-(len(ended) // 2) :])
        shares = np.exp([known.log_z - self.log_total for known in self.explorers])
        met_once = [share for share, hits in zip(shares, self.hits, strict=True) if hits == 1]
        once, twice = len(met_once) + self.n_trifles, self.hits.count(2)
        if once < 2:
            return late
        ratio = once / (twice + 1)
        kinds = 0.5 * (once - 1) * ratio
        kinds += math.sqrt((twice + 1) * (0.5 * ratio**2 + ratio**3 + 0.25 * ratio**4))
        # No more of them than looks were made to meet them.
        return max(late, min(kinds, len(ended)) * float(np.sum(met_once)) / once)


class Search:
    """One look under way: a design over the prior, then an explorer that follows the annealed posterior.

    Parameters
    ----------
    first : whether it is the first, whose design has the prior mean and which may use everything told before.
    greedy : whether the explorer takes the first hill.
    around : where to look instead, (D,): a point that no region accounts for.
    """

    def __init__(
        self,
        measure: Measure,
        rng: np.random.Generator,
        *,
        first: bool,
        greedy: bool = False,
        around: Array | None = None,
    ) -> None:
        self.measure = measure
        self.first = first
        self.from_prior = around is None
        self.explorer = Explorer(measure, rng, greedy=greedy)
        dim = measure.dim
        if around is None:
            self.design = list(spread_design(measure, 2 * dim + 2, rng))
            if not first:
                self.design[0] = measure.sample(1, rng)[0]
        else:
            self.explorer.frame = Frame.of(around, 0.25**2 * measure.cov)  # between a region's width and the prior's
            self.design = list(self.explorer.frame.colour(rng.standard_normal((2 * dim + 1, dim))))
        self.climbed = False
        self.foothold: tuple[Array, float] | None = None  # a feasible point where few are, and how far it is safe
        self._matched_at = 0
        self._calm_since: int | None = None
        self._calm_log_z = -math.inf
        self.n_handed = 0  # points of the design handed out
        self._cold_since: int | None = None
        self._bests: list[tuple[int, float]] = []  # own evaluations, and their best ℓπ

    def next_point(self, taken: Array, pending: Array, rng: np.random.Generator) -> Array:
        """The next point (D,): of the design, if it was not ``taken`` (N, D) before, or by the explorer."""
        while self.design:
            x = self.design.pop(0)
            if not np.any(np.all(taken == x, axis=1)):
                self.n_handed += 1
                return np.asarray(x)
        if self.explorer.surrogate is None:  # too little that is finite to fit anything to
            return self._anywhere(rng)
        return self.explorer.propose(pending)

    def _anywhere(self, rng: np.random.Generator) -> Array:
        """A draw (D,) of the prior or, half of the time once a feasible point is known, one round that point."""
        x = self.measure.sample(1, rng)[0]
        if self.foothold is None or rng.uniform() < 0.5:
            return np.asarray(x)
        centre, reach = self.foothold
        return np.asarray(centre + reach / math.sqrt(len(x)) * rng.standard_normal(len(x)))

    def find_foothold(self, X: Array, log_l: Array) -> None:
        """Note the best feasible of X (N, D), log ℓ (N,), and how far from it the nearest infeasible one is."""
        feasible = np.isfinite(log_l)
        if np.any(feasible) and not np.all(feasible):
            best = X[feasible][int(np.argmax((log_l + self.measure.log_pdf(X))[feasible]))]
            self.foothold = best, float(np.min(np.linalg.norm(X[~feasible] - best, axis=1)))

    @property
    def has_begun(self) -> bool:
        """Whether the explorer is on its way, or has climbed."""
        return self.climbed or self.explorer.surrogate is not None

    def start_from(self, summit: Summit, rng: np.random.Generator) -> None:
        """Begin with q at a mode that was climbed by gradients; D + 2 draws of it complete what a surrogate needs."""
        self.explorer.frame = Frame.of(summit.mean, summit.cov)
        dim = self.measure.dim
        self.design = list(self.explorer.frame.colour(rng.standard_normal((dim + 2, dim))))

    def learn(self, X: Array, log_l: Array, n_own: int, best: float) -> None:
        """Let the explorer learn from X (N, D), log ℓ (N,); n_own points are the look's own, ``best`` their best ℓπ.

        Raises
        ------
        NumericalError
            If the surrogate cannot be fitted.
        """
        explorer, dim = self.explorer, self.measure.dim
        # Every point moves a young q; a q that climbs is matched every D/2 points, one that has arrived less often.
        arrived = explorer.is_cold
        if n_own < 5 * dim or n_own - self._matched_at >= max(1, dim // 2, n_own // 10 if arrived else 0):
            explorer.match(X, log_l)
            self._matched_at = n_own
            self._note_calm(n_own)
        else:
            explorer.fit(X, log_l)
        if not explorer.is_cold:
            self._cold_since = None
        elif self._cold_since is None:
            self._cold_since = n_own
        self._bests.append((n_own, best))

    def _note_calm(self, n_own: int) -> None:
        """Start or break the calm: q stands still (to twice its importance noise), log ℓ under it is known to half a
        nat, and the mass found has not grown by a tenth since the calm began.
        """  # noqa: D205
        explorer = self.explorer
        still = explorer.is_cold and explorer.drift < 0.05 * self.measure.dim and explorer.doubt < 0.5
        if not still:
            self._calm_since = None
        elif self._calm_since is None or abs(explorer.log_z - self._calm_log_z) > 0.1:
            self._calm_since, self._calm_log_z = n_own, explorer.log_z

    def has_arrived(self, n_own: int) -> bool:
        """Whether the calm has lasted for as many points as fix a diagonal quadratic, 2D + 4.

        A rough log ℓ is never known to half a nat; what is not calm after 8D + 30 points at temperature one is left to
        the integration.
        """
        calm = self._calm_since is not None and n_own - self._calm_since >= 2 * self.measure.dim + 4
        cold = self._cold_since is not None and n_own - self._cold_since >= 8 * self.measure.dim + 30
        return calm or cold

    @property
    def potential(self) -> float:
        """log of the mass that the region may hold: what its surrogate says, or the best ℓπ times the volume of q."""
        explorer = self.explorer
        volume = 0.5 * self.measure.dim * math.log(2.0 * math.pi) + explorer.frame.log_det
        return max(explorer.log_z, self._bests[-1][1] + volume)

    def is_hopeless(self, log_total: float) -> bool:
        """At temperature one and climbing too slowly to reach the known regions' mass within the look's limit."""
        window = 2 * self.measure.dim + 2
        n_own, best = self._bests[-1]
        before = [entry for entry in self._bests if entry[0] <= n_own - window]
        if not self.explorer.is_cold or not before:
            return False
        gap = log_total - NEGLIGIBLE - self.potential
        rate = (best - before[-1][1]) / (n_own - before[-1][0])
        return gap > 0.0 and rate * look_limit(self.measure.dim) < gap
