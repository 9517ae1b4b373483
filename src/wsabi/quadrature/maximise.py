"""Maximising the acquisition: a pool of candidates with cached rows and a gradient polish, or CMA-ES."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wsabi._core.linalg import solve_lower
from wsabi._core.types import Array
from wsabi.gp.exact import GP
from wsabi.priors import Bounded, Measure
from wsabi.quadrature.acquisition import log_uncertainty, log_uncertainty_and_gradient
from wsabi.settings import Method

__all__ = ["CandidatePool", "cma_es", "polish"]


@dataclass(slots=True)
class CandidatePool:
    """M candidates whose predictive mean and variance follow the data one row at a time.

    V = L⁻¹ r(x_d, pool) gains one row per datum, O(NM), after which m̃ = bᵀV and C̃ = λ²(1 − Σ V²) over the whole pool
    are vector operations: a sample costs O(N²) in all.

    Attributes
    ----------
    points : (M, D).
    log_pi : (M,) log density of the measure.
    V : (capacity, M), of which the first n rows (data, then pending points) are in use.
    explained : (M,) Σ V² over all rows in use.
    """

    points: Array
    log_pi: Array
    V: Array
    n: int
    explained: Array

    @classmethod
    def build(cls, points: Array, gp: GP, measure: Measure, capacity: int) -> CandidatePool:
        """Solve for the rows of all data and pending points at once, O(N²M)."""
        n = len(gp.rows)
        V = np.empty((max(capacity, n), len(points)))
        V[:n] = solve_lower(gp.factor.lower(), gp.unit_kernel(gp.rows, points))
        return cls(points, measure.log_pdf(points), V, n, np.square(V[:n]).sum(axis=0))

    def append(self, x: Array, row: Array, pivot: float, gp: GP) -> None:
        """Add the row of x (D,), given its (l, pivot) in the factor of R, O(NM)."""
        if self.n == len(self.V):
            self.V = np.concatenate([self.V, np.empty_like(self.V)])
        v = gp.unit_kernel.row(x, self.points)
        v -= row @ self.V[: self.n]
        v /= pivot
        self.V[self.n] = v
        self.explained += v * v
        self.n += 1

    def truncate(self, n: int) -> None:
        """Drop all rows but the first n (those of pending points come last)."""
        if n < self.n:
            self.explained -= np.square(self.V[n : self.n]).sum(axis=0)
            self.n = n

    def best(self, gp: GP, method: Method) -> Array:
        """The candidate of highest acquisition, (D,)."""
        m_tilde = gp.whitened @ self.V[: gp.n]
        c_tilde = gp.scale**2 * np.maximum(1.0 - self.explained, 0.0)
        return np.asarray(self.points[np.argmax(log_uncertainty(method, self.log_pi, m_tilde, c_tilde))])


def polish(gp: GP, measure: Measure, method: Method, x: Array, max_evals: int = 12) -> Array:
    """A few BFGS steps up the acquisition from x (D,); never worse than x.

    Twelve evaluations gain most of what there is: the sample need not be at the very maximum, only clear of the data.
    So the search ends where a step promises less than 1e-2 of a nat. Between data log C̃ curves over about half a
    length-scale, or half an sd of the measure where that is shorter: its square is the first inverse Hessian.
    """
    widths = 0.5 * np.minimum(gp.lengthscales, np.sqrt(np.diag(measure.cov)))
    low, high = (measure.low, measure.high) if isinstance(measure, Bounded) else (-np.inf, np.inf)

    def objective(point: Array) -> tuple[float, Array]:
        return log_uncertainty_and_gradient(gp, measure, method, point)

    return bfgs_ascent(objective, x, np.diag(widths**2), low, high, gain=1e-2, max_evals=max_evals)


def bfgs_ascent(
    f: Callable[[Array], tuple[float, Array]], x: Array, H: Array, low: Array | float, high: Array | float, *,
    gain: float, max_evals: int,
) -> Array:  # fmt: skip
    """Climb f, which gives value and gradient (D,), from x (D,) within [low, high]; never ends lower than it began.

    x ← x + Hg, clipped, with H (D, D) the running estimate of minus the inverse Hessian; where that does not rise, a
    quarter of it. An axis at its bound with the slope pointing outwards is left out. Ends where the quadratic model
    promises ½gᵀHg < ``gain``.

    Notes
    -----
    Written out because the wrapping and checking of SciPy's optimiser costs more than the few evaluations made here.
    """
    value, gradient = f(x)
    share = 1.0  # of the full step
    for _ in range(max_evals - 1):
        free = ((x > low) | (gradient > 0.0)) & ((x < high) | (gradient < 0.0))
        slope = gradient * free
        step = (H @ slope) * free
        if not 0.5 * share * float(step @ slope) >= gain:
            break
        trial = np.clip(x + share * step, low, high)
        trial_value, trial_gradient = f(trial)
        if trial_value > value:
            H = _bfgs_update(H, trial - x, gradient - trial_gradient)
            x, value, gradient, share = trial, trial_value, trial_gradient, 1.0
        else:
            share *= 0.25
    return x


def _bfgs_update(H: Array, s: Array, y: Array) -> Array:
    """(I − ρsyᵀ) H (I − ρysᵀ) + ρssᵀ with ρ = 1/sᵀy, for a step s (D,) over which the gradient fell by y (D,).

    H itself where f does not curve down along s: the update would not be positive definite.
    """
    curvature = float(s @ y)
    if not curvature > 0.0:
        return H
    Hy = H @ y
    cross = np.outer(s, Hy / curvature)
    return np.asarray(H - cross - cross.T + ((1.0 + float(y @ Hy) / curvature) / curvature) * np.outer(s, s))


def cma_es(objective: Callable[[Array], Array], measure: Measure, start: Array, rng: np.random.Generator) -> Array:
    """Maximise ``objective`` ((M, D) -> (M,)) by CMA-ES from ``start`` (D,), steps in sds of the measure; (D,).

    The paper's choice of search. The package has no one-dimensional CMA-ES, so D = 1 is padded with an idle axis.
    """
    import cma  # imported here: it costs several times `import wsabi`

    dim = measure.dim
    options = {
        "seed": np.nan,  # leaves NumPy's global stream alone: the draws come from rng
        "randn": lambda *shape: rng.standard_normal(shape),
        "verbose": -9,
        "maxfevals": 100 * (dim + 2),
        "tolfun": 1e-3,  # on the log acquisition
        "CMA_stds": np.append(np.sqrt(np.diag(measure.cov)), np.ones(int(dim == 1))),
    }
    if isinstance(measure, Bounded):
        pad = np.ones(int(dim == 1))
        options["bounds"] = [np.append(measure.low, -10 * pad), np.append(measure.high, 10 * pad)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cma warns about its own options, not about the objective
        search = cma.CMAEvolutionStrategy(np.append(start, np.zeros(int(dim == 1))), 0.5, options)
        while not search.stop():
            population = search.ask()
            values = objective(np.asarray(population)[:, :dim])
            search.tell(population, [-v if math.isfinite(v) else 1e10 for v in values.tolist()])
        best = np.asarray(search.result.xbest[:dim])
    return best if objective(best[None, :])[0] >= objective(start[None, :])[0] else start
