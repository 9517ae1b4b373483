"""The border of the part of the prior where ℓ > 0, learnt from the points where the likelihood is zero.

A point is feasible where a function g is positive, g ~ GP(0, k),

    k(y, y') = a² [1 + y·y'/l² + exp(−½ |y − y'|²/l²)]

Most borders are nearly flat over the width of a posterior. The linear part of k extends a flat border between and
beyond the points that show it. The posterior of g, given its signs at the points, is approximated by a Gaussian N(m, v)
with expectation propagation (Minka, 2001; Rasmussen & Williams, 2006, section 3.6). All sites are updated at once, and
each update is damped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr

from wsabi._core.linalg import cholesky, log_det, solve_lower, solve_upper, square_distances
from wsabi._core.types import Array

__all__ = ["Border", "fit_border"]

# a, the prior sd of g, in units of the width over which Φ(g) goes from zero to one. The signs have no error, so it is
# large.
SCALE = 30.0
# Largest number of points on each side, the nearest to the other side. Points behind them add little, and the cost
# grows with the cube of the number.
MOST = 100
LENGTHS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # values of l, in sds of q, that are tried the first time
STEP = 1.5  # factor by which l is changed up and down when it is learnt again
# A place whose nearest infeasible point is less than this times as far away as its nearest feasible point counts as
# infeasible. g knows only the points near the border, so it may be wrong there.
NEARER = 0.5
FAR = 100.0  # sds of q: points that are further out are moved to this distance, so that no number becomes too large
STEPS = 30  # largest number of updates of expectation propagation
DAMPING = 0.7  # share of each update that is made
STILL = 0.05  # relative change of every site below which the updates end
# If g > 0 is certain, half of a Gaussian is left. The Gaussian of the same mean and variance has Φ(−√(2/(π − 2))) =
# 0.09 of its mass on the wrong side, so a probability below that counts as zero.
WRONG_SIDE = float(ndtr(-math.sqrt(2.0 / (math.pi - 2.0))))


@dataclass(frozen=True)
class _Sign:
    """Posterior of g given its signs at Y.

    Attributes
    ----------
    Y : (N, D) points on both sides.
    length : l.
    weights : (N,) w, of m = k w.
    roots : (N,) √τ of the sites' precisions τ.
    L : (N, N) lower factor of I + √τ K √τ.
    log_evidence : log of the probability of the signs.
    """

    Y: Array
    length: float
    weights: Array
    roots: Array
    L: Array
    log_evidence: float

    def chance(self, P: Array) -> Array:
        """Probability (M,) that g > 0 at P (M, D). It is one or zero where the signs leave no uncertainty."""
        k = _kernel(P, self.Y, self.length)
        V = solve_lower(self.L, (k * self.roots).T)
        prior = SCALE**2 * (2.0 + np.square(P).sum(axis=1) / self.length**2)
        v = np.maximum(prior - np.square(V).sum(axis=0), 0.0)
        chance = ndtr((k @ self.weights) / np.sqrt(1.0 + v))
        return np.asarray(np.clip(0.5 + (chance - 0.5) / (1.0 - 2.0 * WRONG_SIDE), 0.0, 1.0))


@dataclass(frozen=True)
class Border:
    """The part where ℓ > 0 by the sign of g, and all feasible and infeasible points, (N, D) and (M, D)."""

    sign: _Sign
    feasible: Array
    blocked: Array

    @property
    def length(self) -> float:
        """l, in sds of q."""
        return self.sign.length

    @cached_property
    def _trees(self) -> tuple[Any, Any]:
        from scipy.spatial import cKDTree  # imported here: it is needed only where the prior has infeasible parts

        return cKDTree(self.feasible), cKDTree(self.blocked)

    def chance(self, P: Array) -> Array:
        """Probability (M,) that ℓ > 0 at P (M, D)."""
        P = _drawn_in(P)
        to_feasible, to_blocked = (tree.query(P)[0] for tree in self._trees)
        return np.where(to_blocked < NEARER * to_feasible, 0.0, self.sign.chance(P))


def _drawn_in(Y: Array) -> Array:
    """Y (N, D), with points further out than FAR moved to that distance."""
    radius = np.sqrt(np.square(Y).sum(axis=1, keepdims=True))
    return np.asarray(Y * np.minimum(1.0, FAR / np.maximum(radius, FAR)))


def _kernel(A: Array, B: Array, length: float) -> Array:
    """k, (N, M), for A (N, D) and B (M, D)."""
    A, B = A / length, B / length
    return np.asarray(SCALE**2 * (1.0 + A @ B.T + np.exp(-0.5 * square_distances(A, B))))


def _tilted(signs: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
    """log ∫ Φ(s g) N(g; μ, σ²) dg and the mean and variance of Φ(s g) N(g; μ, σ²), all (N,)."""
    root = np.sqrt(1.0 + variance)
    z = signs * mean / root
    log_mass = log_ndtr(z)
    ratio = np.exp(-0.5 * np.square(z) - 0.5 * math.log(2.0 * math.pi) - log_mass)
    shifted = mean + signs * variance * ratio / root
    return log_mass, shifted, variance - np.square(variance) * ratio * (z + ratio) / (1.0 + variance)


def _propagated(Y: Array, signs: Array, length: float) -> _Sign:
    """g for signs ±1 (N,) at Y (N, D), with l given."""
    K = _kernel(Y, Y, length)
    # The sites are N(g; shift/precision, 1/precision).
    precision, shift = np.full(len(Y), 1e-6), np.zeros(len(Y))
    L, roots = _site_factor(K, precision)
    log_evidence = -math.inf
    for _ in range(STEPS):
        V = solve_lower(L, roots[:, None] * K)
        variance = np.diag(K) - np.square(V).sum(axis=0)
        mean = K @ shift - V.T @ (V @ shift)
        # The cavity of each point: the posterior without its own site.
        rest = np.maximum(1.0 / variance - precision, 1e-10)
        rest_shift = mean / variance - shift
        log_mass, tilted_mean, tilted_variance = _tilted(signs, rest_shift / rest, 1.0 / rest)
        log_evidence = float(
            log_mass.sum()
            + 0.5 * np.log1p(precision / rest).sum()
            - 0.5 * log_det(L)
            + 0.5 * (shift @ mean - np.sum(np.square(shift) / (precision + rest)))
            + 0.5 * np.sum(rest_shift * (precision / rest * rest_shift - 2.0 * shift) / (precision + rest))
        )
        wanted = np.maximum(1.0 / tilted_variance - rest, 1e-8)
        change = np.max(np.abs(wanted - precision) / (precision + 0.01))
        shift = shift + DAMPING * (tilted_mean / tilted_variance - rest_shift - shift)
        precision = precision + DAMPING * (wanted - precision)
        L, roots = _site_factor(K, precision)
        if change < STILL:
            break
    weights = shift - roots * solve_upper(L, solve_lower(L, roots * (K @ shift)))
    return _Sign(Y, length, weights, roots, L, log_evidence)


def _site_factor(K: Array, precision: Array) -> tuple[Array, Array]:
    """Lower factor of I + √τ K √τ, (N, N), and √τ, (N,)."""
    roots = np.sqrt(precision)
    B = roots[:, None] * K * roots
    B[np.diag_indices_from(B)] += 1.0
    return cholesky(B), roots


def fit_border(feasible: Array, blocked: Array, length: float | None = None, *, learn: bool = True) -> Border:
    """The border between points where ℓ > 0, (N, D), and points where ℓ = 0, (M, D), in sds of q. Neither may be empty.

    l has the largest evidence among ``length`` and its neighbours, or among all of LENGTHS if no length is given.
    Without ``learn`` a given length is kept.

    Raises
    ------
    NumericalError
        If the kernel matrix cannot be factored.
    """
    feasible, blocked = _drawn_in(feasible), _drawn_in(blocked)
    squares = square_distances(feasible, blocked)
    near, beyond = np.argsort(squares.min(axis=1))[:MOST], np.argsort(squares.min(axis=0))[:MOST]
    Y = np.concatenate([feasible[near], blocked[beyond]])
    signs = np.where(np.arange(len(Y)) < len(near), 1.0, -1.0)
    candidates = [_propagated(Y, signs, each) for each in _lengths(length, learn=learn)]
    best = max(candidates, key=lambda sign: sign.log_evidence)
    return Border(best, feasible, blocked)


def _lengths(length: float | None, *, learn: bool) -> list[float]:
    """The values of l to try."""
    if length is None:
        return list(LENGTHS)
    if not learn:
        return [length]
    return [length, *(each for each in (length / STEP, length * STEP) if LENGTHS[0] <= each <= LENGTHS[-1])]
