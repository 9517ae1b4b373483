"""Search: one search for a region of mass, from the prior or round a point."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from wsabi._core.types import Array, Mask
from wsabi.adaptive.search.anneal import Explorer
from wsabi.adaptive.search.ascent import Summit
from wsabi.adaptive.search.known_regions import NEGLIGIBLE
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.priors import Measure
from wsabi.quadrature.design import spread_design

__all__ = ["Search", "look_limit"]

MAX_ZOOMS = 8  # twofold to thirtyfold each: from a quarter of the prior to a posterior 1e-8 as wide, or fewer
ZOOM_DEPTH = 4.0  # nats, beside 2D: what chance adds to the drop in one dimension


def look_limit(dim: int) -> int:
    """Evaluations after which a look that is not the first is given up: from the prior to a region takes 10 to 30 D."""
    return 30 * dim + 20


class Search:
    """One look under way: a design over the prior, then an explorer that follows the annealed posterior.

    Parameters
    ----------
    first : whether it is the first, whose design has the prior mean and which may use everything told before.
    greedy : whether the explorer takes the first hill.
    around : where to look instead: q to begin with, centred on a point that no region accounts for.
    """

    def __init__(
        self,
        measure: Measure,
        rng: np.random.Generator,
        *,
        first: bool,
        greedy: bool = False,
        around: Frame | None = None,
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
            self.explorer.frame = around
            self.design = list(self.explorer.frame.colour(rng.standard_normal((2 * dim + 1, dim))))
        self.may_be_predicted = not first and around is None  # by what is known; not by what has learnt from the look
        self.alone = False  # whether it keeps to its own evaluations to the end
        self._n_zoomed = 0  # own evaluations when the width of q was last set, of a search round a point
        self._zooms = 0
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

    def zoom(self, X: Array, log_joint: Array, rng: np.random.Generator) -> bool:
        """Narrow q round the best of the search's own points X (N, D), log ℓπ (N,), until its draws are on that hill.

        A drop of more than 2D + ZOOM_DEPTH nats, in the median over the last design, is that of a q twice too wide or
        more: what it met then is other ground, which would draw the search away from the point it began at. As the drop
        of a Gaussian hill goes with the square of the width, the next width is that of a drop of D.

        Returns
        -------
        Whether there is a new design to evaluate; False where q fits, or has been narrowed MAX_ZOOMS times.
        """
        dim, best = self.measure.dim, int(np.argmax(log_joint))
        last = log_joint[self._n_zoomed :]
        drop = float(np.median(np.where(np.isfinite(last), log_joint[best] - last, math.inf)))
        if drop <= 2.0 * dim + ZOOM_DEPTH or self._zooms == MAX_ZOOMS:
            return False
        self._zooms += 1
        self._n_zoomed = len(X)
        shrink = min(max(dim / drop, 1e-3), 0.25)  # of the variance: q narrows twofold to thirtyfold
        self.explorer.frame = replace(self.explorer.frame.scaled(shrink), mean=X[best])
        self.design = list(self.explorer.frame.colour(rng.standard_normal((dim + 2, dim))))
        return True

    def nearby(self, X: Array, log_joint: Array) -> Mask:
        """Which of the search's own points X (N, D), log ℓπ (N,), it goes by: the best, and those since q was narrowed.

        A broad hill that it met before, on its way to a narrow one, would draw it back.
        """
        near = np.arange(len(X)) >= self._n_zoomed
        near[int(np.argmax(log_joint))] = True
        return near

    def forget(self) -> None:
        """Go on with an explorer that has seen nothing yet; a climbed one keeps its q."""
        fresh = Explorer(self.measure, self.explorer.rng, greedy=self.explorer.greedy)
        if self.climbed or not self.from_prior:
            fresh.frame, fresh.summit = self.explorer.frame, self.explorer.summit
        self.explorer = fresh
        self._matched_at, self._calm_since, self._cold_since = 0, None, None

    def skip_design(self) -> None:
        """Go on without what is left of the design, or not told yet."""
        self.design, self.n_handed = [], 0

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
        still = explorer.is_cold and explorer.drift < 0.05 * self.measure.dim and explorer.uncertainty < 0.5
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

    @property
    def best(self) -> float:
        """The best log ℓπ that the look has met."""
        return max((best for _, best in self._bests), default=-math.inf)

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
