"""The posterior ℓπ/Z under the model, in the user's coordinates: moments, marginals, density, draws, expectations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wsabi._core.linalg import GrowingFactor, inverse_from_cholesky, solve_lower
from wsabi._core.types import Array, ArrayLike, Seed, as_generator
from wsabi.errors import NumericalError
from wsabi.gp.exact import GP
from wsabi.gp.kernel import SquaredExponential
from wsabi.posterior.distribution import PanelDistribution
from wsabi.posterior.importance import LowSampleSizeWarning, Student, checked_size, resample, warn_if_few
from wsabi.posterior.quadratic import QuadraticDensity
from wsabi.posterior.weighted import Marginal, Marginal2, WeightedSamples, parameter_index
from wsabi.priors import Measure
from wsabi.priors.chart import Chart
from wsabi.priors.names import Groups
from wsabi.quadrature.warp import likelihood_moments
from wsabi.settings import Method

__all__ = ["ClosedForm", "LowSampleSizeWarning"]

_BLOCK_ENTRIES = 2**22  # entries of one (points, data) block: 32 MB
# Importance sampling: mostly from a Student density matched to the posterior, with a share of the prior, so that no
# weight exceeds 1/0.3 of what it would be for draws from the prior alone.
_PRIOR_SHARE = 0.3
_POOL_PER_DRAW = 8
_LEAST_POOL = 2**13
_MOMENT_POOL = 2**15
_TAIL = 1e-6  # mass left out at each end of a default grid


@dataclass(frozen=True, eq=False, repr=False)
class ClosedForm:
    """p(x) = ℓ(x)π(x)/Z with ℓ the model's mean: α + ½m̃² (L), α + ½(m̃² + C̃) (M) or m̃ (Bayes-Hermite).

    The means are paper eqs. (9), (11) and, for a GP on ℓ, section 2; Z is eq. (1). The paper stops at Z.

    Attributes
    ----------
    X : (N, D) data, in base coordinates, as is everything here but what the methods return.
    weights : (N,) R⁻¹ℓ̃, R the correlation matrix: m̃(u) = r(u, X) @ weights.
    lengthscales, scale : (D,) of the kernel, and λ.
    alpha, method : the warp.
    measure : π.
    chart : base coordinates to the user's.
    log_l_max : what ℓ was scaled by.
    log_z : log E[Z | D] of the model.
    packed : L Lᵀ = R + εI, packed by rows, for the M model; empty for others.

    Notes
    -----
    ``mean``, ``cov`` and ``marginal`` are closed forms where x = shift + scale·u (priors Gaussian, mixture, Uniform,
    Polynomial, or independent normals). For other independent priors, marginals are still closed forms, means and
    variances are 1-D quadratures of them, and correlations come from 32,768 importance-weighted points, the same at
    every call; with ``Transform`` so do means and variances, to about 1 % of a standard deviation. Bayes-Hermite's m̃
    may be negative: density, marginals and draws clip it at zero; moments do not.
    """

    X: Array
    weights: Array
    lengthscales: Array
    scale: float
    alpha: float
    method: Method
    measure: Measure
    chart: Chart
    log_l_max: float
    log_z: float
    packed: Array = field(default_factory=lambda: np.empty(0))

    @classmethod
    def from_gp(
        cls, gp: GP, *, alpha: float, method: Method, measure: Measure, chart: Chart, log_l_max: float, log_z: float
    ) -> ClosedForm:
        """The posterior of a GP in its present state: arrays are copied, so the GP may go on growing."""
        size = gp.n * (gp.n + 1) // 2 if method == "wsabi-m" else 0
        return cls(
            X=gp.X.copy(), weights=gp.weights.copy(), lengthscales=gp.lengthscales.copy(), scale=float(gp.scale),
            alpha=float(alpha), method=method, measure=measure, chart=chart, log_l_max=float(log_l_max),
            log_z=float(log_z), packed=gp.factor.packed[:size].copy(),
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}  # what is cached can be made again

    def __repr__(self) -> str:
        return f"ClosedForm({', '.join(self.names)}; {self.method}, {len(self.X)} points)"

    @property
    def dim(self) -> int:
        """Number of dimensions D."""
        return len(self.lengthscales)

    @property
    def names(self) -> tuple[str, ...]:
        """D names of the parameters."""
        return self.chart.names

    @property
    def keyed(self) -> bool:
        """Whether functions of x receive a dict of the names."""
        return self.chart.keyed

    @property
    def groups(self) -> Groups:
        """Names of the dict's entries with their columns; empty where each name is an entry."""
        return self.chart.groups

    @property
    def support(self) -> tuple[Array, Array]:
        """(low, high), both (D,): the prior is zero outside."""
        return self.chart.support

    @property
    def description(self) -> str:
        """What it is."""
        return f"closed form, of {len(self.X)} evaluations"

    # -- density ------------------------------------------------------------------------------------------------------

    def log_density(self, X: ArrayLike) -> Array:
        """log p(x_n), (N,), for X (N, D); −inf outside the prior's support, and where m̃ < 0 for Bayes-Hermite.

        Raises
        ------
        TypeError
            For a ``Transform`` prior, which has no density in the user's coordinates.
        """
        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.dim:
            raise ValueError(f"X must have shape (N, {self.dim}), one point per row; got {points.shape}.")
        self._require_separable("log_density")
        low, high = self.chart.support
        inside = np.all((points >= low) & (points <= high), axis=1)
        log_p = np.full(len(points), -np.inf)
        U = self.chart.to_base(points[inside])
        log_p[inside] = self._log_base(U) - self._require_mass() - self.chart.log_jacobian_diag(U).sum(axis=1)
        return log_p

    def _require_mass(self) -> float:
        """log ∫ℓπ of the scaled model, if there is any."""
        if not math.isfinite(self.log_z):
            raise NumericalError(
                f"the model's mean of Z is not positive (log_z = {self.log_z}): it has no posterior. "
                "Use method 'wsabi-l', whose mean cannot be negative, or more evaluations."
            )
        return self.log_z - self.log_l_max

    def _log_base(self, U: Array) -> Array:
        """log ℓ(u_m)π(u_m) of the scaled model, (M,), in base coordinates."""
        kernel = SquaredExponential(1.0, self.lengthscales)
        L = GrowingFactor(self.packed, len(self.X)).lower() if self.method == "wsabi-m" else None
        log_f = self.measure.log_pdf(U)
        step = max(1, _BLOCK_ENTRIES // len(self.X))
        for start in range(0, len(U), step):
            rows = slice(start, start + step)
            R = kernel(self.X, U[rows])  # (N, M)
            c_tilde = np.zeros(R.shape[1])
            if L is not None:
                c_tilde = self.scale**2 * np.maximum(1.0 - np.square(solve_lower(L, R)).sum(axis=0), 0.0)
            likelihood, _ = likelihood_moments(self.method, self.alpha, R.T @ self.weights, c_tilde)
            with np.errstate(divide="ignore"):
                log_f[rows] += np.log(np.maximum(likelihood, 0.0))
        return log_f

    def _require_separable(self, method: str) -> None:
        if not self.chart.separable:
            raise TypeError(
                f"{method} needs a density in the user's coordinates, which a Transform prior does not give (its "
                "Jacobian is unknown): use sample() or expect(), or give the prior as Independent."
            )

    # -- moments ------------------------------------------------------------------------------------------------------

    @property
    def mean(self) -> Array:
        """Posterior mean, (D,)."""
        return self._moments[0].copy()

    @property
    def cov(self) -> Array:
        """Posterior covariance, (D, D)."""
        return self._moments[1].copy()

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        """Mean and covariance in the user's coordinates."""
        if self.chart.affine is not None:
            shift, scale = self.chart.affine
            mean, cov = self._base_moments
            return shift + scale * mean, cov * np.outer(scale, scale)
        sample = self._sample
        if not self.chart.separable:
            return sample.mean, sample.cov
        cov = sample.cov
        mean, variances = (np.array(column) for column in zip(*map(self._axis_moments, range(self.dim)), strict=True))
        ratio = np.sqrt(variances / np.diag(cov))
        return mean, cov * np.outer(ratio, ratio)

    @cached_property
    def _sample(self) -> WeightedSamples:
        """Weighted points for what has no closed form, the same at every call."""
        return self.weighted_sample(_MOMENT_POOL, rng=0)

    def _axis_moments(self, axis: int) -> tuple[float, float]:
        """Mean and variance of x_axis by quadrature of its marginal in base coordinates."""
        density = self._density()
        _, nodes, weights = density.axis_rule(axis)
        share = weights * density.marginal(axis, nodes)
        share /= share.sum()
        x = self.chart.to_user(self._on_axis(axis, nodes))[:, axis]
        mean = float(share @ x)
        return mean, float(share @ np.square(x - mean))

    @cached_property
    def _base_moments(self) -> tuple[Array, Array]:
        """Mean and covariance in base coordinates."""
        self._require_mass()
        _, mean, cov = self._density().moments()
        return mean, cov

    def _density(self) -> QuadraticDensity:
        """ℓπ as a measure times a quadratic form in kernels.

        L: A = ½ z zᵀ, c = α. M: A = ½ (z zᵀ − λ² R⁻¹), c = α + ½λ². Bayes-Hermite: m̃ = Σ z_i r_i, and r_i is the square
        of the kernel √2 times as long, so A = diag(z) with that kernel.
        """
        if self.method == "bq":
            lengthscales = math.sqrt(2.0) * self.lengthscales
            return QuadraticDensity(self.X, lengthscales, np.diag(self.weights), 0.0, self.measure)
        A = np.outer(0.5 * self.weights, self.weights)
        constant = self.alpha
        if self.method == "wsabi-m":
            half_variance = 0.5 * self.scale**2
            A -= half_variance * inverse_from_cholesky(GrowingFactor(self.packed, len(self.X)).lower())
            constant += half_variance
        return QuadraticDensity(self.X, self.lengthscales, A, constant, self.measure)

    # -- marginals ----------------------------------------------------------------------------------------------------

    def marginal(self, parameter: int | str, grid: ArrayLike | None = None) -> Marginal:
        """Marginal density of one parameter, in the user's coordinates; of weighted draws for a ``Transform`` prior.

        Parameters
        ----------
        parameter : its index or its name.
        grid : (G,) values of the parameter; None is 200 values, closer where the density is high, that leave out 1e-6
            of the mass at either end.

        Returns
        -------
        (grid, density), both (G,).
        """
        axis = parameter_index(parameter, self.names)
        if not self.chart.separable:
            return self._sample.marginal(axis, grid)
        log_mass, density = self._require_mass(), self._density()
        if grid is None:
            U = self._on_axis(axis, _default_grid(density, axis))
            x, inside = self.chart.to_user(U)[:, axis], np.ones(len(U), dtype=bool)
        else:
            x = np.array(grid, dtype=np.float64)
            U, inside = self._grid_to_base(axis, x)
        jacobian = np.exp(self.chart.log_jacobian_diag(U)[:, axis])  # dx/du
        values = np.zeros(x.size)
        values[inside] = np.maximum(density.marginal(axis, U[:, axis]), 0.0) / jacobian * math.exp(-log_mass)
        return Marginal(x, values)

    def marginal2(self, a: int, b: int, grids: tuple[Array, Array]) -> Marginal2:
        """Joint density of two parameters, on grids (Ga,) and (Gb,) inside the support."""
        if not self.chart.separable:
            return self._sample.marginal2(a, b, grids)
        bases, jacobians = [], []
        for axis, grid in zip((a, b), grids, strict=True):
            U, inside = self._grid_to_base(axis, np.asarray(grid, dtype=np.float64))
            if not inside.all():
                raise ValueError("grids must lie inside the support of the prior.")
            bases.append(U[:, axis])
            jacobians.append(np.exp(self.chart.log_jacobian_diag(U)[:, axis]))
        points = np.stack(np.meshgrid(*bases, indexing="ij"), axis=-1).reshape(-1, 2)
        values = np.maximum(self._density().marginal_of([a, b], points), 0.0) * math.exp(-self._require_mass())
        values = values.reshape(len(bases[0]), len(bases[1])) / np.outer(*jacobians)
        return Marginal2(np.asarray(grids[0]), np.asarray(grids[1]), values)

    def quantiles(self, axis: int, levels: Array) -> Array:
        """Values (L,) of one parameter below which the given probabilities (L,) lie."""
        if not self.chart.separable:
            return self._sample.quantiles(axis, levels)
        if axis not in self._distributions:
            self._require_mass()
            density = self._density()
            ends, nodes, _ = density.axis_rule(axis)
            self._distributions[axis] = PanelDistribution.of(ends, density.marginal(axis, nodes))
        u = self._distributions[axis].quantiles(levels)
        return self.chart.to_user(self._on_axis(axis, u))[:, axis]

    @cached_property
    def _distributions(self) -> dict[int, PanelDistribution]:
        """Distribution functions in base coordinates, by parameter, as they are asked for."""
        return {}

    def _on_axis(self, axis: int, values: Array) -> Array:
        """Base points (G, D) with the given values on one axis and the measure's mean on the others."""
        U = np.tile(self.measure.mean, (values.size, 1))
        U[:, axis] = values
        return U

    def _grid_to_base(self, axis: int, x: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Base points of those values of a parameter that lie in the support, and which they are."""
        if x.ndim != 1 or not x.size or not np.all(np.isfinite(x)):
            raise ValueError(f"grid must be a vector of finite values; got shape {x.shape}.")
        low, high = self.chart.support
        inside = (x >= low[axis]) & (x <= high[axis])
        X = self.chart.to_user(self._on_axis(axis, np.full(int(inside.sum()), self.measure.mean[axis])))
        X[:, axis] = x[inside]
        return self.chart.to_base(X), inside

    # -- draws --------------------------------------------------------------------------------------------------------

    def sample(self, n: int, rng: Seed = None) -> Array:
        """n draws, (n, D), by importance resampling; a point may occur more than once.

        Warns
        -----
        LowSampleSizeWarning
            If the pool of max(8n, 8192) points that is resampled is worth fewer than 100 independent draws; see
            :meth:`weighted_sample`.
        """
        n, generator = checked_size(n), as_generator(rng)
        U, weights = self._importance(max(_POOL_PER_DRAW * n, _LEAST_POOL), generator)
        warn_if_few(weights)
        return self.chart.to_user(U[resample(weights, n, generator)])

    def weighted_sample(self, n: int, rng: Seed = None) -> WeightedSamples:
        """n importance-weighted points, less those of zero density, with their effective sample size."""
        U, weights = self._importance(checked_size(n), as_generator(rng))
        space = self.chart
        return WeightedSamples(space.to_user(U), weights, self.names, space.keyed, space.groups, space.support)

    def expect(
        self, f: Callable[[Any], object], *, n: int = 10_000, rng: Seed = 0, vectorized: bool = False
    ) -> float | Array:
        """E[f(x)] under the posterior, by self-normalised importance sampling.

        Parameters
        ----------
        f : from one (D,) point to a number or an array; receives a dict of the names where the prior is a dict. With
            ``vectorized``, from (M, D), or a dict of (M,) arrays, to (M, ...).
        n : number of points; the error is about sd[f]/√(n/2) in few dimensions.
        rng : seed, Generator or None. The same points at every call unless it is changed.

        Returns
        -------
        Of the shape of one value of f.

        Warns
        -----
        LowSampleSizeWarning
            If the points are worth fewer than 100 independent draws.
        """
        return self.weighted_sample(n, rng).expect(f, vectorized=vectorized)

    def _importance(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Points (M, D) in base coordinates, M ≤ n, with weights (M,) that sum to one.

        A share of the points comes from π, the others from a Student density about the posterior's mean with its
        covariance as scale; the weight is ℓπ over the density of that mixture.
        """
        mean, cov = self._base_moments
        student = Student.around(mean, cov, np.sqrt(np.diag(self.measure.cov)))
        n_prior = max(int(_PRIOR_SHARE * n), 1) if n > 1 else 0
        U = np.concatenate([self.measure.sample(n_prior, rng), student.sample(n - n_prior, rng)])
        share = n_prior / n
        with np.errstate(divide="ignore"):
            log_q = np.logaddexp(np.log(share) + self.measure.log_pdf(U), math.log1p(-share) + student.log_pdf(U))
        log_w = self._log_base(U) - log_q
        keep = log_w > -np.inf
        if not keep.any():
            raise NumericalError(f"the model's likelihood is zero at all of {n} points drawn; ask for more of them.")
        weights = np.exp(log_w[keep] - log_w.max())
        return U[keep], weights / weights.sum()


def _default_grid(density: QuadraticDensity, axis: int, n: int = 200) -> Array:
    """n values of u_axis: even steps of ½F(u) + ½(u − low)/(high − low), F the distribution function.

    Even steps in u alone would pass by a narrow peak, even steps in F alone would leave the tails out.
    """
    ends, nodes, weights = density.axis_rule(axis)
    share = weights * np.maximum(density.marginal(axis, nodes), 0.0)
    share /= share.sum()
    F = np.concatenate([[0.0], np.cumsum(share) - 0.5 * share, [1.0]])
    u = np.concatenate([ends[:1], nodes, ends[-1:]])
    first, last = int(np.flatnonzero(F <= _TAIL)[-1]), int(np.flatnonzero(F >= 1.0 - _TAIL)[0])
    u, F = u[first : last + 1], F[first : last + 1]
    level = 0.5 * F + 0.5 * (u - u[0]) / (u[-1] - u[0])
    return np.asarray(np.interp(np.linspace(level[0], level[-1], n), level, u))
