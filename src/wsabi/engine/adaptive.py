"""The adaptive model: look for mass, recentre on it, integrate there, certify; one evaluation at a time.

Three states follow each other. *Looking*: an explorer starts from a fresh design over the prior and follows the
annealed posterior to a region; looks go on until they stop finding new mass. *Integrating*: WSABI with uncertainty
sampling on the regions, re-matched as data grow, with every few evaluations a fresh point for the certificate. There is
no end: the caller's budget or tolerance ends it.
"""

from __future__ import annotations

import copy
import dataclasses
import math

import numpy as np

from wsabi._linalg import NumericalError, cholesky
from wsabi._types import Array, Mask
from wsabi.design import spread_design
from wsabi.engine.certificate import Proposal, certify
from wsabi.engine.explorer import Explorer, Frame
from wsabi.engine.regions import Regions, inflation
from wsabi.fit import FitRecord
from wsabi.measures import Measure
from wsabi.result import Certificate, Look
from wsabi.settings import Settings

__all__ = ["AdaptiveModel"]

# A region more than this many nats below the sum of all holds less than a thousandth of Z: it is not worth a model.
NEGLIGIBLE = 7.0
BARREN_SHARE = 0.4  # of the budget may go to looks that found nothing new
RETURNS = 3  # looks in a row that came back to known regions end the looking, once half that share is spent
SURPRISE = 0.1  # of Z in one fresh point outside every region is a region that all looks have missed
LOOKING_SHARE = 0.7  # of the budget may go to looking in all, so that something is left to integrate with
REMATCH_GROWTH = 1.15  # q is matched anew, and the models rebuilt, as the training data grow by a seventh


class AdaptiveModel:
    """Data in, next points and an estimate of Z out, in base coordinates.

    Parameters
    ----------
    measure : the prior, smooth on all of R^D, of standard deviation about one.
    settings : method, acquisition, search, refit, alpha and certify.
    rng : the stream of every draw.
    budget : evaluations the shares above refer to; :meth:`plan` changes it.
    """

    def __init__(self, measure: Measure, settings: Settings, rng: np.random.Generator, budget: int) -> None:
        self.measure = measure
        self.settings = settings
        self.rng = rng
        self.budget = budget
        self.X = np.empty((0, measure.dim))
        self.log_l = np.empty(0)  # less `offset`
        self.offset = 0.0  # the first finite log ℓ: a constant added to all of them must change nothing else
        self.log_p = np.empty(0)  # log density of certificate points when drawn; NaN for training points
        self.looks: list[Look] = []
        self.regions: Regions | None = None
        self._explorers: list[Explorer] = []
        self._drawn: dict[bytes, float] = {}  # certificate points under way -> log density
        self._n_integrated = 0
        self._surprise: Array | None = None
        self._starts: set[bytes] = set()  # points of the designs, which are draws of the prior
        self.n_starts = self.n_infeasible = 0  # of those, told so far, and how many have zero likelihood
        self._seen = 0  # evaluations that the state below has taken notice of
        self._begin_look()

    def plan(self, budget: int) -> None:
        """Set the number of evaluations that the run is expected to reach."""
        self.budget = budget

    # -- data ---------------------------------------------------------------------------------------------------------

    def observe(self, X: Array, log_l: Array) -> None:
        """Add points X (M, D) with log ℓ (M,); those drawn for the certificate are kept apart from the models."""
        log_p = np.array([self._drawn.pop(x.tobytes(), math.nan) for x in X])
        for x, value in zip(X, log_l, strict=True):
            if x.tobytes() in self._starts:
                self.n_starts += 1
                self.n_infeasible += int(value == -math.inf)
        first = len(self.X)
        finite = log_l[np.isfinite(log_l)]
        if finite.size and not np.any(np.isfinite(self.log_l)):
            self.offset = float(finite[0])
        self.log_l = np.concatenate([self.log_l, log_l - self.offset])
        self.log_p = np.concatenate([self.log_p, log_p])
        self.X = np.concatenate([self.X, X])
        if self.regions is not None:
            for i in range(first, len(self.X)):
                if self._training[i] and math.isfinite(self.measure.log_pdf(self.X[[i]])[0]):
                    self.regions.observe(i, self.X[i], float(self.log_l[i]))
                elif self._is_surprise(i, self.regions):
                    self._surprise = self.X[i]

    def _is_surprise(self, i: int, regions: Regions) -> bool:
        """Whether fresh point i holds a tenth of Z by itself and lies outside the bulk of every region."""
        x = self.X[[i]]
        share = self.log_l[i] + self.measure.log_pdf(x)[0] - self.log_p[i] - self._log_total()
        outside = all(part.radius(x)[0] > math.sqrt(self.measure.dim) + 2.0 for part in regions.parts)
        return bool(outside and share > math.log(SURPRISE * max(self.n_certificate, 20)))

    def recover(self) -> None:
        """Make the state whole again after an interrupt inside one of the methods."""
        n = len(self.X)
        self.log_l, self.log_p = self.log_l[:n], self.log_p[:n]
        if self.regions is not None:
            self._rebuild()

    @property
    def _training(self) -> Mask:
        """(N,) which evaluations the models may see."""
        return np.isnan(self.log_p)

    @property
    def n_certificate(self) -> int:
        """Number of certificate points."""
        return int(np.sum(~self._training))

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
        if self.regions is None:
            x = self._next_start(pending)
            x = self._explore(pending) if x is None else x
        elif self._certificate_due():
            proposal = Proposal(self.measure, self.regions)
            x = proposal.sample(1, self.rng)[0]
            self._drawn[x.tobytes()] = float(proposal.log_pdf(x[None, :])[0])
        else:
            x = self._integrate(pending)
        return np.asarray(x)

    def _take_notice(self) -> None:
        """Advance the state by what was observed since it was last asked."""
        if self._seen == len(self.X):
            return
        self._seen = len(self.X)
        if self.regions is None:
            self._advance_look()
        elif self._surprise is not None:
            self._look_around(self._surprise)
        elif int(self._training.sum()) >= REMATCH_GROWTH * self._matched_n:
            self._rebuild()

    # -- looking ------------------------------------------------------------------------------------------------------

    def _begin_look(self) -> None:
        self._explorer = Explorer(self.measure, self.rng)
        self._look_start = len(self.X) if self.looks else 0  # the first look uses whatever was told before it
        self._matched_at = 0
        self._calm_since: int | None = None
        self._calm_log_z = -math.inf
        self._n_cold = 0  # evaluations since temperature one was reached
        self._bests: list[float] = []
        self._design = list(spread_design(self.measure, 2 * self.measure.dim + 2, self.rng))
        if self.looks:
            self._design[0] = self.measure.sample(1, self.rng)[0]  # only the first design has the prior mean
        self._starts.update(x.tobytes() for x in self._design)

    def _look_around(self, x: Array) -> None:
        """Begin a look at x (D,), a fresh point that the regions do not account for.

        The fresh points so far join the training data: a model built because of what one of them said is no longer
        independent of them, and the certificate starts anew with the new region in it.
        """
        self._surprise = None
        self.regions = None
        self.log_p[:] = math.nan
        self._begin_look()
        quarter = Frame(x, 0.25 * cholesky(self.measure.cov))  # between a region's width and the prior's
        self._explorer.frame = quarter
        self._design = list(quarter.colour(self.rng.standard_normal((2 * self.measure.dim + 1, self.measure.dim))))

    def _look_data(self) -> tuple[Array, Array]:
        """What the explorer sees: its own evaluations, and everything once it has reached temperature one."""
        training = self._training
        if self._explorer.temperature > 1.0:
            training = training & (np.arange(len(self.X)) >= self._look_start)
        return self.X[training], self.log_l[training]

    def _advance_look(self) -> None:
        """Let the explorer learn, and end the look where it has arrived, come back or lost hope."""
        dim = self.measure.dim
        X, log_l = self._look_data()
        n_own = len(self.X) - self._look_start
        if self._design or int(np.isfinite(log_l).sum()) < dim + 2:
            return
        explorer = self._explorer
        try:
            # Every point moves a young q; a q that climbs is matched every D/2 points, one that has arrived less often.
            arrived = explorer.temperature == 1.0
            if n_own < 5 * dim or n_own - self._matched_at >= max(1, dim // 2, n_own // 10 if arrived else 0):
                explorer.match(X, log_l)
                self._matched_at = n_own
                self._note_calm()
            else:
                explorer.fit(X, log_l)
        except NumericalError:
            self._end_look("unfinished")
            return
        self._n_cold = self._n_cold + 1 if explorer.temperature == 1.0 else 0
        self._bests.append(float(np.max(self.log_l[self._look_start :])))
        outcome = self._outcome(n_own)
        if outcome is not None:
            self._end_look(outcome)

    def _note_calm(self) -> None:
        """Start or break the calm: q stands still (to twice its importance noise), log ℓ under it is known to half a
        nat, and the mass found has not grown by a tenth since the calm began.
        """  # noqa: D205
        explorer = self._explorer
        still = explorer.temperature == 1.0 and explorer.drift < 0.05 * self.measure.dim and explorer.doubt < 0.5
        if not still or abs(explorer.log_z - self._calm_log_z) > 0.1:
            self._calm_since = len(self.X) if still else None
            self._calm_log_z = explorer.log_z

    def _is_calm(self) -> bool:
        """Whether the calm has lasted for as many points as fix a diagonal quadratic, 2D + 4."""
        return self._calm_since is not None and len(self.X) - self._calm_since >= 2 * self.measure.dim + 4

    def _outcome(self, n_own: int) -> str | None:
        """How the look ends, if it ends here."""
        dim, explorer = self.measure.dim, self._explorer
        if explorer.temperature == 1.0 and self._known_as(explorer) is not None:
            return "known region"
        # A rough log ℓ is never known to half a nat; what is not calm after that many points at temperature one is
        # left to the integration.
        if self._is_calm() or self._n_cold >= 8 * dim + 30:
            return "negligible mass" if explorer.log_z < self._log_total() - NEGLIGIBLE else "new region"
        if self._hopeless():
            return "negligible mass"
        late = bool(self._explorers) and n_own >= _look_limit(dim)
        if late or len(self.X) >= LOOKING_SHARE * self.budget:
            near = explorer.temperature == 1.0 and explorer.log_z > self._log_total() - NEGLIGIBLE
            return "new region" if near or not self._explorers else "unfinished"
        return None

    def _known_as(self, explorer: Explorer) -> int | None:
        """Number of the region in whose bulk q has arrived, if it is one found before."""
        bulk = math.sqrt(self.measure.dim) + 1.0
        for k, known in enumerate(self._explorers):
            y = known.frame.scaled(inflation(self.measure.dim)).whiten(explorer.frame.mean[None, :])[0]
            if float(np.linalg.norm(y)) < bulk:
                return k
        return None

    def _log_total(self) -> float:
        if not self._explorers:
            return -math.inf
        return float(np.logaddexp.reduce([known.log_z for known in self._explorers]))

    def _hopeless(self) -> bool:
        """At temperature one and climbing too slowly to reach a known region's mass within the look's limit."""
        window = 2 * self.measure.dim + 2
        if not self._explorers or self._explorer.temperature > 1.0 or len(self._bests) <= window:
            return False
        gap = self._log_total() - NEGLIGIBLE - self._explorer.log_z
        rate = (self._bests[-1] - self._bests[-1 - window]) / window
        return gap > 0.0 and rate * _look_limit(self.measure.dim) < gap

    def _end_look(self, outcome: str) -> None:
        explorer = self._explorer
        self.looks.append(Look(len(self.X) - self._look_start, explorer.log_z + self.offset, outcome))  # type: ignore[arg-type]
        known = self._known_as(explorer) if outcome == "known region" else None
        if known is not None and explorer.doubt < 0.5 and explorer.log_z > self._explorers[known].log_z + math.log(2.0):
            self._explorers[known] = explorer  # the same place, seen whole: it surely holds twice the mass
        if outcome == "new region" and math.isfinite(explorer.log_z):
            self._explorers.append(explorer)
            total = self._log_total()
            self._explorers = [known for known in self._explorers if known.log_z > total - NEGLIGIBLE]
        if self._explorers and self._enough_looking():
            self._rebuild()
        else:
            self._begin_look()

    def _enough_looking(self) -> bool:
        returned = [look.outcome == "known region" for look in self.looks[-RETURNS:]]
        spent = sum(look.n_evals for look in self.looks if look.outcome != "new region")
        typical = float(np.median([look.n_evals for look in self.looks]))
        return (
            (len(returned) == RETURNS and all(returned) and spent > 0.5 * BARREN_SHARE * self.budget)
            or spent + typical > BARREN_SHARE * self.budget
            or len(self.X) + typical > LOOKING_SHARE * self.budget
        )

    def _next_start(self, pending: Array) -> Array | None:
        """The next point (D,) of the look's design that was not evaluated before."""
        taken = np.concatenate([self.X, pending])
        while self._design:
            x = self._design.pop(0)
            if not np.any(np.all(taken == x, axis=1)):
                return np.asarray(x)
        return None

    def _explore(self, pending: Array) -> Array:
        if self._explorer.surrogate is None:  # nothing finite yet
            return np.asarray(self.measure.sample(1, self.rng)[0])
        for _ in range(10):
            x = self._explorer.propose()
            y = self._explorer.frame.whiten(np.concatenate([x[None, :], pending]))
            if len(y) == 1 or float(np.min(np.linalg.norm(y[1:] - y[0], axis=1))) > 0.5:  # half an sd from any other
                break
        return x

    # -- integrating --------------------------------------------------------------------------------------------------

    def _rebuild(self) -> None:
        """Match q of every region to all training data, and give each a new model."""
        X, log_l = self.X[self._training], self.log_l[self._training]
        old = self.regions.parts if self.regions is not None else []
        lengthscales: list[Array | None] = [
            None if part.model.gp is None else part.model.gp.lengthscales for part in old
        ]
        self._explorers = [_rematched(explorer, X, log_l) for explorer in self._explorers]
        self._matched_n = len(X)
        lengthscales += [None] * (len(self._explorers) - len(lengthscales))
        self.regions = Regions(self.measure, self.settings, self.rng, self._explorers, X, log_l, lengthscales)

    def _certificate_due(self) -> bool:
        """Spread certify·budget fresh points evenly over what is left once looking is done."""
        share = self.settings.certify
        if share == 0.0:
            return False
        looked = sum(look.n_evals for look in self.looks)
        left = max(self.budget - looked, 1)
        rate = min(share * self.budget / left, 0.5)
        return self.n_certificate + len(self._drawn) < rate * (len(self.X) - looked + 1)

    def _integrate(self, pending: Array) -> Array:
        if self.regions is None:
            raise NumericalError("there are no regions to integrate over yet.")
        # One point in three goes where the surrogate of log ℓ is least sure: the square root is blind to what lies
        # beyond its data, where its mean is zero, and would never let q grow.
        self._n_integrated += 1
        if self._n_integrated % 3 == 0:
            explorer = self._explorers[int(self.rng.choice(len(self._explorers), p=self.regions.weights))]
        try:
            if self._n_integrated % 3 == 0:
                explorer.fit(self.X[self._training], self.log_l[self._training])
                return np.asarray(explorer.propose())
            return self.regions.propose(pending)
        except NumericalError:
            return np.asarray(Proposal(self.measure, self.regions).sample(1, self.rng)[0])

    def conclude(self) -> None:
        """End the looking where it stands, so that there is an estimate; does nothing once it has ended by itself."""
        self._take_notice()
        if self.regions is not None:
            return
        arrived = self._explorer.surrogate is not None and math.isfinite(self._explorer.log_z)
        if arrived and (not self._explorers or self._explorer.temperature == 1.0):
            log_z = self._explorer.log_z + self.offset
            self.looks.append(Look(len(self.X) - self._look_start, log_z, "unfinished"))
            self._explorers.append(self._explorer)
        if self._explorers:
            self._rebuild()

    # -- what is known of Z -------------------------------------------------------------------------------------------

    def estimate(self, n_draws: int = 1000) -> Certificate | None:
        """The combined estimate, or None while looking has not found a region."""
        if self.regions is None:
            return None
        fresh = ~self._training
        proposal = Proposal(self.measure, self.regions)
        # A stream of its own: asking for the estimate must not change the points that follow.
        rng = np.random.default_rng(len(self.X))
        relative = certify(self.regions, proposal, self.X[fresh], self.log_l[fresh], self.log_p[fresh], rng, n_draws)
        return dataclasses.replace(
            relative,
            log_z=relative.log_z + self.offset,
            model_log_z=relative.model_log_z + self.offset,
            fresh_log_z=relative.fresh_log_z + self.offset,
            model_log_var=relative.model_log_var + 2.0 * self.offset,
        )

    def posterior_draws(self, n: int) -> tuple[Array, Array]:
        """n points (n, D) with log weights (n,) of the models' ℓπ, for expectations under the posterior."""
        if self.regions is None:
            raise NumericalError("there are no regions to draw from yet.")
        proposal = Proposal(self.measure, self.regions)
        X = proposal.sample(n, np.random.default_rng(len(self.X)))
        log_p = proposal.log_pdf(X)
        return X, np.log(np.maximum(self.regions.control(X, log_p + self.regions.parts[0].explorer.log_z), 1e-300))

    @property
    def doubt(self) -> float:
        """The largest of the regions' predictive sds of log ℓ, in nats, averaged over each."""
        return max((explorer.doubt for explorer in self._explorers), default=math.inf)

    @property
    def fits(self) -> list[FitRecord]:
        """Every fit of the present models' hyperparameters."""
        return [] if self.regions is None else [fit for part in self.regions.parts for fit in part.model.fits]

    @property
    def max_jitter(self) -> float:
        """Largest relative jitter of the present models."""
        return 0.0 if self.regions is None else max(part.model.max_jitter for part in self.regions.parts)


def _look_limit(dim: int) -> int:
    """Evaluations after which a look that is not the first is given up: from the prior to a region takes 10 to 30 D."""
    return 30 * dim + 20


def _rematched(explorer: Explorer, X: Array, log_l: Array) -> Explorer:
    """The explorer with q matched to more data; as it was, where that failed or lost most of the mass it had."""
    moved = copy.copy(explorer)
    try:
        moved.match(X, log_l)
    except NumericalError:
        return explorer
    return moved if moved.temperature == 1.0 and moved.log_z > explorer.log_z - 1.0 else explorer
