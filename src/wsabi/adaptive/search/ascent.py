"""Climb: with gradients, a mode of ℓπ and its width are found in some tens of evaluations, whatever D."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wsabi._core.linalg import cholesky
from wsabi._core.types import Array
from wsabi.adaptive.tuning import TUNING
from wsabi.priors import Measure

__all__ = ["Slope", "Summit", "climb"]

Slope = Callable[[Array], tuple[float, Array]]  # u (D,) -> log ℓ and ∇ log ℓ (D,), the latter unused where ℓ = 0


@dataclass(frozen=True)
class Summit:
    """A mode of ℓπ, (D,), and the inverse curvature of −log ℓπ there, (D, D), no wider than the prior."""

    mean: Array
    cov: Array


class _SpentError(Exception):
    """The evaluations for this climb are used up."""


class _Joint:
    """−log ℓπ and its gradient at one point u (D,), remembered; ``best`` has the lowest value met, where, its gradient.

    Raises :class:`_SpentError` instead of calling ``slope`` for the (limit + 1)th time.
    """

    def __init__(self, slope: Slope, measure: Measure, start: Array, limit: int) -> None:
        self.slope, self.measure, self.limit = slope, measure, limit
        self.best = (math.inf, start, np.zeros_like(start))
        self._met: dict[bytes, tuple[float, Array]] = {}  # a line search that fails is followed by another like it

    def __call__(self, u: Array) -> tuple[float, Array]:
        key = u.tobytes()
        if key not in self._met:
            if len(self._met) == self.limit:
                raise _SpentError
            self._met[key] = self._evaluate(u.copy())
        return self._met[key]

    def _evaluate(self, u: Array) -> tuple[float, Array]:
        log_l, gradient = self.slope(u)
        if log_l == -math.inf:
            return TUNING.search.wall, np.zeros_like(u)
        log_prior, prior_gradient = self.measure.log_pdf_and_gradient(u)
        value, gradient = -log_l - log_prior, -gradient - prior_gradient
        if value < self.best[0]:
            self.best = (value, u, gradient)
        return value, gradient


def climb(slope: Slope, measure: Measure, start: Array, limit: int) -> Summit | None:
    """Climb log ℓπ from ``start`` (D,) by BFGS, then take its curvature from D more gradients; None if that failed.

    Parameters
    ----------
    slope : makes and keeps an evaluation at each call; called at most ``limit`` times, never twice for one point.

    Notes
    -----
    BFGS has a curvature of its own, but only along the way it came. The gradients g_k of −log ℓπ at μ + s_k v_k, with
    v_k and s_k² the eigenvectors and -values of its inverse Hessian, give the curvature along all of them, made
    symmetric: a_kl = v_l·(g_k − g)/s_k. With A = (a_kl) one Newton step, μ − A⁻¹g, ends the climb; it costs nothing.
    """
    from scipy.optimize import minimize  # imported here: it costs a third of `import wsabi`

    joint = _Joint(slope, measure, start, limit)
    values: list[float] = []

    def stop_at_standstill(intermediate_result: object) -> None:
        values.append(intermediate_result.fun)  # type: ignore[attr-defined]
        gains = -np.diff(values[-3:])
        if len(gains) == 2 and np.all(gains < TUNING.search.standstill):
            raise StopIteration

    try:
        found = minimize(joint, start, jac=True, method="BFGS", callback=stop_at_standstill)
        _, top, gradient = joint.best
        curvature = _curvature(joint, top, gradient, found.hess_inv)
    except (_SpentError, np.linalg.LinAlgError):
        return None
    cov = _no_wider(curvature, measure)
    step = cov @ gradient
    # Beyond one sd it would be no correction: the climb has ended at an edge, where the gradient is not zero.
    return Summit(top - step if float(step @ gradient) < 1.0 else top, cov)


def _curvature(joint: _Joint, top: Array, gradient: Array, inverse_hessian: Array) -> Array:
    """∇∇(−log ℓπ) at ``top``, (D, D), from D gradients, each about an sd away along an axis of the inverse Hessian.

    Of axes that the climb has not followed BFGS has no idea, and its sd is one. A step goes no further than twice the
    largest sd that those before it, shortest first, have measured: a difference over a part of an sd is as good.
    """
    variances, axes = np.linalg.eigh(inverse_hessian)
    columns, widest = [], 0.0
    for axis, sd in zip(axes.T, np.sqrt(np.clip(variances, TUNING.search.least_variance, 1.0)), strict=True):
        step = min(sd, 2.0 * widest) if widest else sd
        column = axis / sd**2  # what BFGS has; it stands where ℓ = 0 on either side
        # Downhill first: a climb that has ended at an edge steps back from it.
        for signed in (step, -step) if gradient @ axis >= 0.0 else (-step, step):
            value, there = joint(top + signed * axis)
            if value < TUNING.search.wall:
                column = (there - gradient) / signed
                break
        widest = max(widest, 1.0 / math.sqrt(max(float(axis @ column), 1.0)))
        columns.append(column)
    curvature = np.stack(columns, axis=1) @ axes.T
    return np.asarray(0.5 * (curvature + curvature.T))


def _no_wider(curvature: Array, measure: Measure) -> Array:
    """The inverse of a curvature (D, D), no wider than the prior N(·, LLᵀ): eigenvalues of LᵀAL of at least one."""
    L = cholesky(measure.cov)
    precisions, turns = np.linalg.eigh(L.T @ curvature @ L)
    directions = L @ turns
    return np.asarray((directions / np.maximum(precisions, 1.0)) @ directions.T)
