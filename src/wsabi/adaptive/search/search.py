"""Search: one attempt to find a mode, from the prior or around a point."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from wsabi._core.types import Array, Mask
from wsabi.adaptive.search.ascent import Summit
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.search.matching import matched
from wsabi.adaptive.search.proposing import proposed
from wsabi.adaptive.search.trust_region import Ascent, ascended
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.tuning import TUNING
from wsabi.priors import Measure
from wsabi.quadrature.design import spread_design
from wsabi.result import Kind

__all__ = ["Search", "search_limit"]


def search_limit(dim: int) -> int:
    """Evaluations after which a search that is not the first is given up: from the prior to a mode takes 10 to 30 D."""
    return int(TUNING.search.limit_per_dim) * dim + int(TUNING.search.limit)


@dataclass(frozen=True, eq=False)
class Search:
    """One search under way: a design over the prior, then an explorer that follows the annealed posterior.

    Attributes
    ----------
    number : of the search, counted from zero.
    first : whether it is the first, whose design has the prior mean and which may use everything told before.
    from_prior : whether it began from the prior, and not around a point.
    design : points (D,) that are still to be handed out.
    n_handed : points of designs handed out; the explorer waits until as many are told.
    may_be_predicted : whether it may end because known surrogates predicted what it met.
    alone : whether it keeps to its own evaluations to the end.
    climbed : whether it has climbed to a mode, by gradients or by an ascent without them.
    kind : how it goes about it, see :class:`~wsabi.result.SearchRecord`.
    ascent : the ascent under way; None for other kinds, and once it is over.
    foothold : a feasible point (D,) where few are, and how far it is safe.
    n_zoomed, zooms : own evaluations when the width of q was last set, around a point; and how often it was.
    matched_at : own evaluations when q was last matched.
    settled_since, settled_log_z : own evaluations since which q stands still and log ℓ is known, and log Z then.
    cold_since : own evaluations since which q is at temperature one.
    best : the best log ℓπ that it has met.
    """

    measure: Measure
    number: int
    explorer: Explorer
    design: tuple[Array, ...]
    first: bool = False
    from_prior: bool = True
    n_handed: int = 0
    may_be_predicted: bool = False
    alone: bool = False
    climbed: bool = False
    kind: Kind = "annealed"
    ascent: Ascent | None = None
    foothold: tuple[Array, float] | None = None
    n_zoomed: int = 0
    zooms: int = 0
    matched_at: int = 0
    settled_since: int | None = None
    settled_log_z: float = -math.inf
    cold_since: int | None = None
    best: float = -math.inf

    @classmethod
    def over_prior(
        cls, measure: Measure, number: int, rng: np.random.Generator, *, first: bool, greedy: bool = False
    ) -> Search:
        """One that begins with a design over the prior."""
        design = list(spread_design(measure, 2 * measure.dim + 2, rng))
        if not first:
            design[0] = measure.sample(1, rng)[0]
        explorer = Explorer.from_prior(measure, greedy=greedy)
        kind: Kind = "greedy" if greedy else "annealed"
        return cls(measure, number, explorer, tuple(design), first=first, may_be_predicted=not first, kind=kind)

    @classmethod
    def ascending(cls, measure: Measure, number: int, rng: np.random.Generator, start: Array | None = None) -> Search:
        """A local ascent from ``start`` (D,), or a draw of the prior: its design is that, and a simplex around it."""
        dim, from_prior = measure.dim, start is None
        start = measure.sample(1, rng) if start is None else start[None, :]
        directions = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
        design = np.concatenate([start, start + TUNING.search.first_radius * directions])
        explorer, ascent = Explorer.from_prior(measure, greedy=True), Ascent.begun(dim)
        return cls(
            measure, number, explorer, tuple(design), from_prior=from_prior, alone=True, kind="ascent", ascent=ascent
        )

    @classmethod
    def around(cls, measure: Measure, number: int, frame: Frame, rng: np.random.Generator) -> Search:
        """One that begins with draws of q = ``frame``, centred on a point that no region accounts for."""
        design = frame.colour(rng.standard_normal((2 * measure.dim + 1, measure.dim)))
        explorer = Explorer(measure, frame, greedy=True)
        return cls(measure, number, explorer, tuple(design), from_prior=False, kind="greedy")

    # -- points -------------------------------------------------------------------------------------------------------

    def handed_out(self, taken: Array) -> tuple[Search, Array | None]:
        """The next point (D,) of the design that is not among those ``taken`` (N, D); None where there is none left."""
        left = list(self.design)
        while left:
            x = left.pop(0)
            if not np.any(np.all(taken == x, axis=1)):
                return replace(self, design=tuple(left), n_handed=self.n_handed + 1), x
        return replace(self, design=()), None

    def next_point(self, pending: Array, rng: np.random.Generator) -> Array:
        """The next point (D,) by the explorer, once the design is handed out."""
        if self.ascent is not None and self.ascent.trial is not None:
            # The trial is under way: what is worth knowing beside it is a point nearby.
            direction = rng.standard_normal(len(self.ascent.trial))
            return np.asarray(self.ascent.trial + self.ascent.radius * direction / np.linalg.norm(direction))
        if self.explorer.surrogate is None:  # too little that is finite to fit anything to
            return self._anywhere(rng)
        return proposed(self.explorer, pending, rng)

    def _anywhere(self, rng: np.random.Generator) -> Array:
        """A draw (D,) of the prior or, half of the time once a feasible point is known, one around that point."""
        x = self.measure.sample(1, rng)[0]
        if self.foothold is None or rng.uniform() < 0.5:
            return np.asarray(x)
        centre, reach = self.foothold
        return np.asarray(centre + reach / math.sqrt(len(x)) * rng.standard_normal(len(x)))

    @property
    def has_begun(self) -> bool:
        """Whether the explorer is on its way, or has climbed."""
        return self.climbed or self.explorer.surrogate is not None

    def with_foothold(self, X: Array, log_l: Array) -> Search:
        """The same with the best feasible of X (N, D), log ℓ (N,), and its distance from the nearest infeasible one."""
        feasible = np.isfinite(log_l)
        if not np.any(feasible) or np.all(feasible):
            return self
        best = X[feasible][int(np.argmax((log_l + self.measure.log_pdf(X))[feasible]))]
        return replace(self, foothold=(best, float(np.min(np.linalg.norm(X[~feasible] - best, axis=1)))))

    def without_design(self) -> Search:
        """The same without what is left of the design, or not told yet."""
        return replace(self, design=(), n_handed=0)

    # -- an ascent ----------------------------------------------------------------------------------------------------

    def ascended(self, X: Array, log_joint: Array, rng: np.random.Generator) -> Search:
        """The same after one step of its ascent, given its own points X (N, D), log ℓπ (N,).

        The trial becomes its design; once the ascent is over, the mode is taken like one that gradients have found.
        """
        if self.ascent is None:
            return self
        ascent = ascended(self.ascent, X, log_joint)
        if ascent.trial is not None:
            return replace(self, ascent=ascent, design=(ascent.trial,))
        summit = ascent.summit(X[int(np.argmax(log_joint))], self.measure.cov)
        over = replace(self, ascent=None, climbed=True, n_zoomed=len(X))
        return over.from_summit(summit, rng)

    # -- q ------------------------------------------------------------------------------------------------------------

    def from_summit(self, summit: Summit, rng: np.random.Generator) -> Search:
        """The same with q at a mode that was climbed; D + 2 draws of it complete what a surrogate needs."""
        dim = self.measure.dim
        frame = Frame.of(summit.mean, summit.cov)
        design = tuple(frame.colour(rng.standard_normal((dim + 2, dim))))
        return replace(self, explorer=replace(self.explorer, frame=frame), design=design)

    def zoomed(self, X: Array, log_joint: Array, rng: np.random.Generator) -> Search | None:
        """The same with q narrowed around the best of its own points X (N, D), log ℓπ (N,); None where q fits.

        A drop of far more than 2D nats, in the median over the last design, is that of a q twice too wide or more: what
        it met then is other ground, which would draw the search away from the point it began at. As the drop of a
        Gaussian hill goes with the square of the width, the next width is that of a drop of D.
        """
        numbers, dim, best = TUNING.search, self.measure.dim, int(np.argmax(log_joint))
        last = log_joint[self.n_zoomed :]
        drop = float(np.median(np.where(np.isfinite(last), log_joint[best] - last, math.inf)))
        if drop <= 2.0 * dim + numbers.zoom_depth or self.zooms == numbers.most_zooms:
            return None
        shrink = min(max(dim / drop, numbers.least_zoom), numbers.most_zoom)
        frame = replace(self.explorer.frame.scaled(shrink), mean=X[best])
        return replace(
            self,
            zooms=self.zooms + 1,
            n_zoomed=len(X),
            explorer=replace(self.explorer, frame=frame),
            design=tuple(frame.colour(rng.standard_normal((dim + 2, dim)))),
        )

    def nearby(self, X: Array, log_joint: Array) -> Mask:
        """Which of the search's own points X (N, D), log ℓπ (N,), it goes by: the best, and those since q was narrowed.

        A broad hill that it met before, on its way to a narrow one, would draw it back.
        """
        near = np.arange(len(X)) >= self.n_zoomed
        near[int(np.argmax(log_joint))] = True
        return near

    def reheated(self) -> Search:
        """The same with an explorer that has seen nothing yet; one that has climbed keeps its q."""
        fresh = Explorer.from_prior(self.measure, greedy=self.explorer.greedy)
        if self.climbed or not self.from_prior:
            fresh = replace(fresh, frame=self.explorer.frame, summit=self.explorer.summit)
        return replace(self, explorer=fresh, matched_at=0, settled_since=None, cold_since=None)

    # -- learning -----------------------------------------------------------------------------------------------------

    def learnt(self, X: Array, log_l: Array, n_own: int, best: float, rng: np.random.Generator) -> Search:
        """The same with an explorer that has learnt from X (N, D), log ℓ (N,).

        ``n_own`` points are the search's own, ``best`` is their best log ℓπ.

        Raises
        ------
        NumericalError
            If the surrogate cannot be fitted.
        """
        numbers, dim, search = TUNING.search, self.measure.dim, self
        # Every point moves a young q; a q that climbs is matched every D/2 points, one that has arrived less often.
        wait = max(1, dim // 2, n_own // int(numbers.match_every) if self.explorer.is_cold else 0)
        if n_own < int(numbers.young_per_dim) * dim or n_own - self.matched_at >= wait:
            search = replace(search, explorer=matched(self.explorer, X, log_l, rng), matched_at=n_own)
            search = search._noting_stillness(n_own)
        else:
            search = replace(search, explorer=self.explorer.fitted(X, log_l))
        cold_since = None
        if search.explorer.is_cold:
            cold_since = n_own if search.cold_since is None else search.cold_since
        return replace(search, cold_since=cold_since, best=max(search.best, best))

    def _noting_stillness(self, n_own: int) -> Search:
        """The same with a note since when the search is settled, if it is.

        It is settled while q stands still (to twice its importance noise), log ℓ under it is known to half a nat, and
        the mass found has not grown by a tenth since it settled.
        """
        numbers, explorer = TUNING.search, self.explorer
        is_still = explorer.drift < numbers.still_drift * self.measure.dim
        if not (explorer.is_cold and is_still and explorer.uncertainty < numbers.known):
            return replace(self, settled_since=None)
        if self.settled_since is None or abs(explorer.log_z - self.settled_log_z) > numbers.settled_mass:
            return replace(self, settled_since=n_own, settled_log_z=explorer.log_z)
        return self

    def has_arrived(self, n_own: int) -> bool:
        """Whether it has been settled for as many points as fix a diagonal quadratic, 2D + 4.

        A rough log ℓ is never known to half a nat; what is not settled after 8D + 30 points at temperature one is left
        to the integration.
        """
        dim = self.measure.dim
        settled = self.settled_since is not None and n_own - self.settled_since >= 2 * dim + 4
        patience = int(TUNING.search.patience_per_dim) * dim + int(TUNING.search.patience)
        return settled or (self.cold_since is not None and n_own - self.cold_since >= patience)
