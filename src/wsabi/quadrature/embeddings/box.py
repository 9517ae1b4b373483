"""Closed forms of the squared-exponential kernel under the uniform box.

Kernel and box both factorise over the axes, so every integral is a product of one-dimensional ones. On each axis
lengths are measured in length-scales from the centre of the box: t = (x − centre)/l, and the box is [−r, r].
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, erfcx, roots_legendre

from wsabi._core.linalg import square_distances
from wsabi._core.types import Array
from wsabi.priors import Uniform

__all__ = ["BoxForms"]

Index = NDArray[np.intp]

# The chain integrand is at its narrowest exp(−s²) along one axis. 40 Gauss-Legendre nodes on a panel at most 8
# length-scales long give it to 2e-13 relative, wherever on the panel or beyond it the peak lies (24 nodes on 6: 1e-6).
_PANEL_NODES = 40
_PANEL_LENGTH = 8.0
# Boxes up to 100 length-scales across are covered with panels throughout. On wider ones only a point's own panel and
# two on either side are: elsewhere k(x, x_n) < exp(−½ 15²) λ², 1e-49 of its peak, and no box is too wide to afford.
_WHOLE_BOX = 50.0
_REACH = 2
# exp(−½ 39²) is zero in double precision: points farther than that from all of a block of panels have no part in it.
_VANISHING = 39.0
_BLOCK_PANELS = 8
# Special functions over (N, M) go through rows in blocks of this many entries, 256 kB: their temporaries stay in cache.
_BLOCK_ENTRIES = 2**15


def _log_window(t: Array, r: float) -> Array:
    """log (1/2r) ∫_{−r}^{r} exp(−½(s − t)²) ds, elementwise, for t of any shape.

    Inside the box this is a sum of two positive error functions. Outside it would be a difference of two numbers
    near one, so there the Gaussian at the nearer edge is taken out: with a = (|t| − r)/√2 and b = (|t| + r)/√2,
    erfc a − erfc b = exp(−a²) (erfcx a − exp(−2r|t|) erfcx b).
    """
    root_half = math.sqrt(0.5)
    log_factor = math.log(math.sqrt(math.pi / 2.0) / (2.0 * r))
    distance = np.abs(t)
    outside = distance > r
    window = erf((r - distance) * root_half) + erf((r + distance) * root_half)
    if not outside.any():
        return np.asarray(np.log(window) + log_factor)
    far = distance[outside]
    near_edge, far_edge = erfcx((far - r) * root_half), erfcx((far + r) * root_half)
    window[outside] = near_edge - np.exp(-2.0 * r * far) * far_edge
    log_window = np.log(window) + log_factor
    log_window[outside] -= 0.5 * np.square(far - r)
    return np.asarray(log_window)


def _log_kernel_variance(r: float) -> float:
    """log (1/4r²) ∬ exp(−½(s − s')²) ds ds' over [−r, r]², with q = 2r:

    (2/q²) (q √(π/2) erf(q/√2) + exp(−q²/2) − 1); for small q the two terms are q² and −½q², so nothing cancels.
    """
    q = 2.0 * r
    total = q * math.sqrt(math.pi / 2.0) * math.erf(q * math.sqrt(0.5)) + math.expm1(-0.5 * q * q)
    return math.log(2.0 * total) - 2.0 * math.log(q)


def _log_product(s: Array, t: Array, r: float) -> Array:
    """log (1/2r) ∫ exp(−½(s − v)² − ½(v − t)²) dv over [−r, r], for broadcasting s and t."""
    return -0.25 * np.square(s - t) + _log_window((s + t) * math.sqrt(0.5), math.sqrt(2.0) * r)


@functools.cache
def _legendre() -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on [−1, 1]."""
    nodes, weights = roots_legendre(_PANEL_NODES)
    return np.asarray(nodes), np.asarray(weights)


def _panels(points: Array, r: float) -> tuple[Array, float]:
    """Centres (P,) and half-width of the equal panels of [−r, r] that the chain integral needs."""
    count = math.ceil(2.0 * r / _PANEL_LENGTH)
    half = r / count
    if r <= _WHOLE_BOX:
        index = np.arange(count, dtype=np.float64)
    else:
        home = np.floor((np.clip(points, -r, r) + r) / (2.0 * half))
        near = np.unique(home[:, None] + np.arange(-_REACH, _REACH + 1, dtype=np.float64))
        index = near[(near >= 0) & (near < count)]
    return -r + half * (2.0 * index + 1.0), half


def _chain_blocks(t_left: Array, t_right: Array, r: float) -> Iterator[tuple[Index, Index, Array, Array]]:
    """Rows n, columns m and blocks A (n, Q), B (m, Q) whose Σ_q A_nq B_mq add up to the chain integral of one axis.

    (1/4r²) ∬ exp(−½(t_n − s)² − ½(s − s')² − ½(s' − t_m)²) ds ds' over [−r, r]²: the inner integral in closed form
    (B), the outer one by Gauss-Legendre panels (weights in A). All terms are positive: unlike the four corners of a
    bivariate normal rectangle (Owen's T), nothing cancels, be the box small or the points outside it.
    """
    nodes, weights = _legendre()
    centres, half = _panels(np.concatenate([t_left, t_right]), r)
    for start in range(0, centres.size, _BLOCK_PANELS):
        block = centres[start : start + _BLOCK_PANELS]
        s = (block[:, None] + half * nodes).ravel()  # (Q,)
        # B falls as exp(−¼(s − t)²), which is zero √2 farther out than A.
        rows = _within(t_left, s[0] - _VANISHING, s[-1] + _VANISHING)
        columns = _within(t_right, s[0] - math.sqrt(2.0) * _VANISHING, s[-1] + math.sqrt(2.0) * _VANISHING)
        A = np.exp(-0.5 * np.square(t_left[rows, None] - s)) * np.tile(weights * (half / (2.0 * r)), block.size)
        yield rows, columns, A, np.exp(_log_product(s, t_right[columns, None], r))


def _within(t: Array, low: float, high: float) -> Index:
    """Indices of the entries of t in [low, high]."""
    return np.flatnonzero((t >= low) & (t <= high))


class BoxForms:
    """Integrals of one kernel under one uniform box, for :mod:`wsabi.quadrature.embeddings`."""

    def __init__(self, log_scale: float, lengthscales: Array, box: Uniform) -> None:
        self._log_scale = log_scale
        self._lengthscales = lengthscales
        self._centre = box.mean
        self._radii = (0.5 * (box.high - box.low) / lengthscales).tolist()  # r_d

    def _scaled(self, X: Array) -> Array:
        """t = (x − centre)/l, (N, D)."""
        return np.asarray((X - self._centre) / self._lengthscales)

    def mean(self, X: Array) -> Array:
        """∫ k(x, x_n) π, (N,)."""
        columns = zip(self._scaled(X).T, self._radii, strict=True)
        return np.asarray(np.exp(2.0 * self._log_scale + sum(_log_window(t, r) for t, r in columns)))

    def variance(self) -> float:
        """∬ k(x, x') π π'."""
        return math.exp(2.0 * self._log_scale + sum(map(_log_kernel_variance, self._radii)))

    def product(self, X: Array, Y: Array) -> Array:
        """∫ k(x, x_n) k(x, y_m) π, (N, M).

        k(x, x_n) k(x, y_m) = λ⁴ exp(−¼|t_n − t_m|²) exp(−|t − ½(t_n + t_m)|²): distances by one matrix product, then
        a window of a kernel narrower by √2 about the midpoint, axis by axis.
        """
        left, right = self._scaled(X), self._scaled(Y)
        exponent = -0.25 * square_distances(left, right) + 4.0 * self._log_scale
        step = max(1, _BLOCK_ENTRIES // max(1, len(Y)))
        for start in range(0, len(X), step):
            rows = slice(start, start + step)
            for t, u, r in zip(left[rows].T, right.T, self._radii, strict=True):
                exponent[rows] += _log_window((t[:, None] + u) * math.sqrt(0.5), math.sqrt(2.0) * r)
        return np.exp(exponent, out=exponent)

    def chain(self, X: Array, Y: Array) -> Array:
        """∬ k(x_n, x) k(x, x') k(x', y_m) π π', (N, M)."""
        total = np.full((len(X), len(Y)), math.exp(6.0 * self._log_scale))
        for t, u, r in zip(self._scaled(X).T, self._scaled(Y).T, self._radii, strict=True):
            axis = np.zeros_like(total)
            for rows, columns, A, B in _chain_blocks(t, u, r):
                if A.shape[0] * B.shape[0] == axis.size:  # every point: no copy of the matrix for the indexing
                    axis += A @ B.T
                else:
                    axis[np.ix_(rows, columns)] += A @ B.T
            total *= axis
        return total

    def chain_diagonal(self, X: Array) -> Array:
        """∬ k(x_n, x) k(x, x') k(x', x_n) π π', (N,)."""
        total = np.full(len(X), math.exp(6.0 * self._log_scale))
        for t, r in zip(self._scaled(X).T, self._radii, strict=True):
            axis = np.zeros_like(total)
            for rows, columns, A, B in _chain_blocks(t, t, r):
                axis[rows] += np.einsum("nq,nq->n", A, B[np.searchsorted(columns, rows)])  # rows are among columns
            total *= axis
        return total
