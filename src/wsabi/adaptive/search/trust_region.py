"""Trust region: a local ascent of log ℓπ without gradients, from a single point.

Where an annealed search follows the most mass, and so prefers broad modes, an ascent from one draw of the prior ends in
the mode in whose basin it began: the two fail in different ways. Each step fits a quadratic to the evaluations near the
best point so far and evaluates the quadratic's maximum within a ball. With fewer evaluations than coefficients the
quadratic is the one whose second derivatives change least from the step before (Powell, 2006), so a step costs one
evaluation, not D².
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.search.ascent import Summit
from wsabi.adaptive.tuning import TUNING

__all__ = ["Ascent", "ascended", "quadratic_through", "within_ball"]


@dataclass(frozen=True, eq=False)
class Ascent:
    """An ascent under way.

    Attributes
    ----------
    radius : Δ of the ball, in base coordinates.
    hessian : (D, D) second derivatives of log ℓπ as the quadratic has them.
    trial : (D,) the point to evaluate next; None where the ascent is over.
    expected : nats that the trial gains over the best point by the quadratic; None for a point that is there to learn.
    is_bounded : whether the trial lies on the edge of the ball.
    best_before : the best log ℓπ when the trial was chosen.
    is_handed_out : whether the trial is under way.
    n_small : how many balls in a row, each half as wide as the one before, have promised next to no gain.
    """

    radius: float
    hessian: Array
    trial: Array | None = None
    expected: float | None = None
    is_bounded: bool = False
    best_before: float = -math.inf
    is_handed_out: bool = False
    n_small: int = 0

    @classmethod
    def begun(cls, dim: int) -> Ascent:
        """Before the first step."""
        return cls(TUNING.search.first_radius, np.zeros((dim, dim)))

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to gain any more."""
        return self.trial is None

    def summit(self, x: Array, prior_cov: Array) -> Summit:
        """The mode at x (D,) with the inverse curvature of the quadratic, no wider than the prior.

        Nor is it thinner than a covariance can be told from a singular one, 64 D round-offs of the prior's variance.
        """
        L = np.linalg.cholesky(prior_cov)
        precisions, turns = np.linalg.eigh(-(L.T @ self.hessian @ L))
        directions = L @ turns
        thinnest = 64 * len(x) * np.finfo(np.float64).eps
        return Summit(x, (directions / np.clip(precisions, 1.0, 1.0 / thinnest)) @ directions.T)


def ascended(ascent: Ascent, X: Array, log_joint: Array) -> Ascent:
    """The ascent after its trial was told: another radius, and the next trial, if there is anything to gain.

    Parameters
    ----------
    X, log_joint : (N, D) and (N,) log ℓπ, the search's own evaluations; at least D + 1 of them are finite.
    """
    finite = np.isfinite(log_joint)
    best = int(np.argmax(log_joint))
    centre, top = X[best], float(log_joint[best])
    S, values = X[finite] - centre, log_joint[finite] - top
    distance = np.linalg.norm(S, axis=1)
    ascent, has_failed = _with_radius(ascent, top)
    if ascent.expected is None and _is_among(ascent.trial, X[~finite]):  # nothing was learnt there: closer
        ascent = replace(ascent, radius=0.5 * ascent.radius)
    poor = _poorest_direction(S, distance, ascent.radius)
    if has_failed and poor is None:
        ascent = replace(ascent, radius=0.5 * ascent.radius)
    while True:
        poor = _poorest_direction(S, distance, ascent.radius)
        step, expected, hessian = _step(ascent, S, values, distance)
        ascent = replace(ascent, hessian=hessian, best_before=top, is_handed_out=False)
        if expected >= TUNING.search.least_ascent and not (has_failed and poor is not None):
            is_bounded = bool(np.linalg.norm(step) > TUNING.search.edge * ascent.radius)
            return replace(ascent, trial=centre + step, expected=expected, is_bounded=is_bounded, n_small=0)
        if poor is not None:
            sign = 1.0 if float(poor @ step) >= 0.0 else -1.0
            return replace(ascent, trial=centre + sign * ascent.radius * poor, expected=None)
        if ascent.n_small == TUNING.search.small_balls or ascent.radius < TUNING.search.least_radius:
            return replace(ascent, trial=None)
        ascent = replace(ascent, radius=0.5 * ascent.radius, n_small=ascent.n_small + 1)


def _is_among(x: Array | None, X: Array) -> bool:
    """Whether x (D,) is one of X (N, D)."""
    return x is not None and bool(np.any(np.all(x == X, axis=1)))


def _with_radius(ascent: Ascent, top: float) -> tuple[Ascent, bool]:
    """The ascent with a wider ball where the trial has gained what was expected, and whether it has gained nothing.

    A point that was there to learn and is higher than the best says that the ball is narrower than the slope it lies
    on: the ball is widened, and one halving is taken back. Were the ball kept, the best point would move by a radius at
    a time, away from the evaluations that describe it, so that every step would find a direction to learn.
    """
    gain = top - ascent.best_before
    wider = min(2.0 * ascent.radius, TUNING.search.widest_radius)
    if ascent.expected is None:
        if ascent.trial is None or gain <= 0.0:
            return ascent, False
        return replace(ascent, radius=wider, n_small=max(0, ascent.n_small - 1)), False
    if gain > TUNING.search.good_step * ascent.expected and ascent.is_bounded:
        return replace(ascent, radius=wider), False
    return ascent, gain < TUNING.search.poor_step * ascent.expected


def _step(ascent: Ascent, S: Array, values: Array, distance: Array) -> tuple[Array, float, Array]:
    """The best step (D,) within the ball, the gain expected of it, and the second derivatives (D, D) behind it.

    ``S`` (N, D) are the evaluations as seen from the best of them, ``values`` (N,) what they lack to it.
    """
    dim, radius = S.shape[1], ascent.radius
    order = np.argsort(distance)
    most = (dim + 1) * (dim + 2) // 2
    near = order[: max(dim + 1, min(most, int(np.sum(distance <= TUNING.search.ascent_reach * radius))))]
    slope, curvature = quadratic_through(S[near] / radius, values[near], radius**2 * ascent.hessian)
    step = within_ball(slope, curvature)
    expected = float(slope @ step + 0.5 * step @ curvature @ step)
    return radius * step, expected, curvature / radius**2


def _poorest_direction(S: Array, distance: Array, radius: float) -> Array | None:
    """The direction (D,) in which the evaluations near, S (N, D) from the best, say least; None where all are known."""
    dim, near = S.shape[1], (distance <= 2.0 * radius) & (distance > 0.0)
    _, spreads, directions = np.linalg.svd(np.concatenate([S[near] / radius, np.zeros((dim, dim))]))
    return None if spreads[dim - 1] > TUNING.search.poised else directions[dim - 1]


def quadratic_through(S: Array, values: Array, before: Array) -> tuple[Array, Array]:
    """Slope g (D,) and second derivatives H (D, D) of a quadratic c + g·s + ½ sᵀHs through values (N,) at S (N, D).

    Of all that go through them the one with the least |H − H₀|², H₀ = ``before``. With H = H₀ + Σ λ_n s_n s_nᵀ/2 it is
    a linear system in λ, c and g (Powell, 2006).
    """
    n, dim = S.shape
    rest = values - 0.5 * np.einsum("nd,de,ne->n", S, before, S)
    system = np.zeros((n + dim + 1, n + dim + 1))
    system[:n, :n] = np.square(0.5 * (S @ S.T))
    system[:n, n] = system[n, :n] = 1.0
    system[:n, n + 1 :], system[n + 1 :, :n] = S, S.T
    solution = np.linalg.lstsq(system, np.concatenate([rest, np.zeros(dim + 1)]), rcond=TUNING.search.min_singular)[0]
    return solution[n + 1 :], before + 0.5 * (S.T * solution[:n]) @ S


def within_ball(slope: Array, curvature: Array) -> Array:
    """The s (D,) with |s| ≤ 1 that maximises g·s + ½ sᵀHs, by the eigenvectors of H.

    s = (μ − H)⁻¹g with the least μ ≥ 0 for which μ − H is positive and |s| ≤ 1 (Moré and Sorensen, 1983); where g has
    no part along the largest eigenvalue, that direction fills what is left of the ball.
    """
    values, vectors = np.linalg.eigh(-curvature)
    a = vectors.T @ slope

    def at(mu: float) -> Array:
        return a / np.maximum(values + mu, TUNING.search.min_curvature)

    if values[0] > 0.0 and float(np.linalg.norm(at(0.0))) <= 1.0:
        return np.asarray(vectors @ at(0.0))
    low = max(0.0, -float(values[0]))
    margin = TUNING.search.multiplier_margin * (1.0 + float(np.max(np.abs(values))))
    high = low + float(np.linalg.norm(slope)) + margin
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(np.linalg.norm(at(middle))) > 1.0 else (low, middle)
    s = at(high)
    if values[0] <= 0.0 and float(s @ s) < 1.0 - TUNING.search.unfilled:
        s[0] = math.copysign(math.sqrt(max(1.0 - float(s[1:] @ s[1:]), 0.0)), a[0])
    return np.asarray(vectors @ s)
