"""One warped GP under one fixed measure, growing a sample at a time at O(N²) each.

:class:`SequentialModel` is the mutable part of the method: data in, next points and moments of Z out. It knows nothing
of the user's coordinates, budgets or likelihood; :mod:`wsabi.integrator` does.
"""

from __future__ import annotations

import math

import numpy as np

from wsabi._core.logspace import safe_log, scaled_likelihood
from wsabi._core.types import Array
from wsabi.gp.exact import GP, condition
from wsabi.gp.fit import Fit, FitRecord, LengthscalePrior, fit_lengthscales
from wsabi.gp.kernel import SquaredExponential
from wsabi.priors import Measure
from wsabi.quadrature.acquisition import log_uncertainty_at
from wsabi.quadrature.design import candidates, inside, spread_design
from wsabi.quadrature.integral import moments
from wsabi.quadrature.lookahead import Lookahead
from wsabi.quadrature.maximise import CandidatePool, cma_es, polish
from wsabi.quadrature.warp import latent_values, offset
from wsabi.result import ModelBelief
from wsabi.settings import Settings

__all__ = ["SequentialModel"]

REFIT_GROWTH = 1.2  # a fit at every fifth more data: the fits then cost about as much as the last two of them


class SequentialModel:
    """GP on ℓ̃ under ``measure``, with its hyperparameters, candidate pool and next design.

    Parameters
    ----------
    measure : π, in coordinates where its standard deviation is of order one.
    settings : method, acquisition, search, refit, alpha.
    rng : the stream of the first design, and of the pools and CMA-ES unless :meth:`propose` is given another.
    kernel : fixed kernel in the measure's coordinates, or None to learn it.
    with_design : begin with a space-filling design; without, the caller brings the first data.
    lengthscales : (D,) from which the first fit starts.
    """

    def __init__(
        self,
        measure: Measure,
        settings: Settings,
        rng: np.random.Generator,
        kernel: SquaredExponential | None = None,
        *,
        with_design: bool = True,
        lengthscales: Array | None = None,
    ) -> None:
        self.measure = measure
        self.settings = settings
        self.kernel = kernel
        self.rng = rng
        self.X = np.empty((0, measure.dim))
        self.log_l = np.empty(0)
        self.gp: GP | None = None
        self.alpha = 0.0
        self.log_l_max = -math.inf
        self.fits: list[FitRecord] = []
        self.max_jitter = 0.0
        self._pool: CandidatePool | None = None
        self._lengthscales = lengthscales
        self._next_fit = 0
        self._sd = np.sqrt(np.diag(measure.cov))
        n_initial = settings.initial or 2 * (measure.dim + 1)
        self._design = list(spread_design(measure, n_initial, rng)) if with_design else []

    # -- data ---------------------------------------------------------------------------------------------------------

    def observe(self, X: Array, log_l: Array) -> None:
        """Add points X (M, D), all different from each other and from earlier ones, with log ℓ (M,)."""
        first_new = len(self.X)
        self.X = np.concatenate([self.X, X])
        self.log_l = np.concatenate([self.log_l, log_l])
        if not np.any(np.isfinite(self.log_l)):
            return
        gp, self.gp = self.gp, None  # until it has all data: an interrupt leaves no half-grown model behind
        if gp is None or self.settings.refit == "every" or len(self.X) >= self._next_fit:
            self._refit()
        else:
            self._extend(gp, first_new)
            self.gp = gp

    def recover(self) -> None:
        """Make the model whole again after an interrupt inside one of its methods."""
        self._pool = None
        if self.gp is not None:
            self.gp.drop_pending()
        elif np.any(np.isfinite(self.log_l)):
            self._refit()

    def _l_tilde(self) -> Array:
        likelihood, self.log_l_max = scaled_likelihood(self.log_l)
        self.alpha = 0.0 if self.settings.method == "bq" else offset(likelihood, self.settings.alpha)
        return latent_values(likelihood, self.alpha, self.settings.method)

    def _extend(self, gp: GP, first_new: int) -> None:
        """Append rows for the new data to the factor and the pool, O(N²) each."""
        self._drop_pending(gp)
        for x in self.X[first_new:]:
            self._append(gp, x)
        gp.accept_pending(self._l_tilde(), self._fixed_scale())

    def _append(self, gp: GP, x: Array) -> None:
        row, pivot = gp.append(x)
        if self._pool is not None:
            self._pool.append(x, row, pivot, gp)

    def _refit(self) -> None:
        """Learn the hyperparameters, then factor afresh; the pool is drawn anew when it is next needed."""
        l_tilde = self._l_tilde()
        n, dim, young = len(self.X), self.measure.dim, self._too_young_to_fit()
        prior = LengthscalePrior.for_dim(dim)
        fit: Fit | None = None
        if self.kernel is not None:
            lengthscales = np.broadcast_to(self.kernel.lengthscales, (dim,)).copy()
        elif young:
            lengthscales = math.exp(prior.mean) * self._sd
        else:
            warm = None if self._lengthscales is None else self._lengthscales / self._sd
            fit = fit_lengthscales(self.X / self._sd, l_tilde, prior=prior, warm=warm)
            lengthscales = self._lengthscales = fit.lengthscales * self._sd
        self._next_fit = n + 1 if young else math.ceil(REFIT_GROWTH * n)
        self.gp = condition(self.X, l_tilde, lengthscales, scale=self._fixed_scale(), capacity=self._next_fit)
        self.max_jitter = max(self.max_jitter, self.gp.jitter)
        self._pool = None
        if fit is not None:
            self.fits.append(
                FitRecord(
                    n, tuple(lengthscales), self.gp.scale, fit.log_evidence, fit.n_iterations, fit.converged,
                    fit.at_bound,
                )
            )  # fmt: skip

    def _too_young_to_fit(self) -> bool:
        """Whether the first design goes on and fewer than D + 2 points are known: its next points need no model.

        Fewer data than a scale, D length-scales and one more say little that the length-scales' prior does not, whose
        centre serves until then. With ``refit="every"`` a fit is made all the same.
        """
        if self.kernel is not None or self.settings.refit == "every":
            return False
        return bool(self._design) and len(self.X) < self.measure.dim + 2

    def _fixed_scale(self) -> float | None:
        return None if self.kernel is None else self.kernel.scale

    # -- where next ---------------------------------------------------------------------------------------------------

    def propose(self, n: int, pending: Array, rng: np.random.Generator | None = None) -> Array:
        """The next n points, (n, D), given points already under way, (P, D)."""
        rng = self.rng if rng is None else rng
        chosen = np.empty((0, self.measure.dim))
        while len(chosen) < n:
            x = self._next(np.concatenate([pending, chosen]), rng)
            chosen = np.concatenate([chosen, x[None, :]])
        return chosen

    def _next(self, pending: Array, rng: np.random.Generator) -> Array:
        """The next point (D,) of the first design that is not there already, or of the acquisition."""
        taken = np.concatenate([self.X, pending])
        while self._design:
            x = self._design.pop(0)
            if not np.any(np.all(taken == x, axis=1)):
                return np.asarray(x)
        return self._choose(pending, rng)

    def _choose(self, pending: Array, rng: np.random.Generator) -> Array:
        gp = self.gp
        if gp is None:  # nothing but −inf so far: go on with draws of the measure
            return np.asarray(self.measure.sample(1, rng)[0])
        self._condition_on_pending(gp, pending)
        if self.settings.acquisition == "expected-entropy":
            x = self._choose_by_lookahead(gp, rng)
        elif self.settings.search == "cma-es":
            start = self._ensure_pool(gp, rng).best(gp, self.settings.method)
            x = cma_es(
                lambda Q: log_uncertainty_at(gp, self.measure, self.settings.method, Q), self.measure, start, rng
            )
        else:
            start = self._ensure_pool(gp, rng).best(gp, self.settings.method)
            x = polish(gp, self.measure, self.settings.method, start)
        return self._distinct(inside(self.measure, x), pending, rng)

    def _choose_by_lookahead(self, gp: GP, rng: np.random.Generator) -> Array:
        lookahead = Lookahead.prepare(gp, self.measure, self.settings.method)
        points = self._ensure_pool(gp, rng).points
        change = lookahead.variance_change(points)
        if not np.any(np.isfinite(change)):  # every candidate is a datum to the model: it is sure everywhere
            return np.asarray(self.measure.sample(1, rng)[0])
        start = points[np.argmin(change)]
        if self.settings.search == "pool":
            return np.asarray(start)
        # In units of the best candidate's own change: CMA-ES ends where values differ by 1e-3, and V[Z] has any scale.
        unit = abs(float(np.min(change))) or 1.0
        return cma_es(lambda Q: -lookahead.variance_change(Q) / unit, self.measure, start, rng)

    def _distinct(self, x: Array, pending: Array, rng: np.random.Generator) -> Array:
        """x, or a draw from the measure where x is a point that is there already."""
        taken = np.concatenate([self.X, pending])
        while np.any(np.all(taken == x, axis=1)):
            x = self.measure.sample(1, rng)[0]
        return x

    def _ensure_pool(self, gp: GP, rng: np.random.Generator) -> CandidatePool:
        if self._pool is None:
            size = int(np.clip(256 * self.measure.dim, 512, 2048))
            # Centres by ℓπ², the weight of the acquisition itself; steps of a length-scale, which is how far the
            # maximum of the variance lies from a datum, or of the measure where that is narrower.
            log_pi = self.measure.log_pdf(self.X)
            log_pi = np.where(np.isfinite(log_pi), log_pi, -745.0)  # a datum where a polynomial density is zero
            log_weights = np.where(np.isfinite(self.log_l), self.log_l - self.log_l_max, -745.0) + 2.0 * log_pi
            steps = np.minimum(gp.lengthscales, self._sd)
            points = candidates(self.measure, self.X, log_weights, steps, size, rng)
            self._pool = CandidatePool.build(points, gp, self.measure, capacity=self._next_fit)
        return self._pool

    # -- pending points -----------------------------------------------------------------------------------------------

    def _condition_on_pending(self, gp: GP, pending: Array) -> None:
        """Make the factor and the pool hold exactly these pending points after the data."""
        known = len(gp.pending)
        if known > len(pending) or not np.array_equal(gp.pending, pending[:known]):
            self._drop_pending(gp)
            known = 0
        for x in pending[known:]:
            self._append(gp, x)

    def _drop_pending(self, gp: GP) -> None:
        gp.drop_pending()
        if self._pool is not None:
            self._pool.truncate(gp.n)

    # -- what is known of Z -------------------------------------------------------------------------------------------

    def belief(self) -> ModelBelief | None:
        """log E[Z | D] and log V[Z | D], or None while every value is −inf."""
        if self.gp is None:
            return None
        scaled = moments(self.gp, self.measure, self.alpha, self.settings.method)
        return ModelBelief(
            log_mean=safe_log(scaled.mean) + self.log_l_max,
            log_var=safe_log(scaled.variance) + 2.0 * self.log_l_max,
            variance_clipped=scaled.clipped,
        )
