"""Closed forms of the squared-exponential kernel under independent polynomial densities on intervals.

Kernel and density both factorise over the axes, so every integral is a product of one-dimensional ones. On each axis
lengths are measured in length-scales from the centre of the interval, as in
:mod:`wsabi.quadrature.embeddings.box`: the interval is [−r, r].

Each one-dimensional integral is a Gaussian times a polynomial p ≥ 0. In terms of error functions it is elementary, but
its terms have both signs and cancel for long length-scales; here it is a Gauss-Legendre sum whose terms are all
positive. A rule of n + ⌈q/2⌉ nodes is exact for p, of degree q, times any polynomial of degree 2n − 1, so its error is
at most 2E ∫p, where E is the distance of the Gaussian from the polynomials of degree 2n − 1: 1e-34 of its peak for
n = 40 on a panel of six length-scales.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_legendre

from wsabi._core.types import Array
from wsabi.priors import Polynomial
from wsabi.priors.polynomial import UnitPolynomial

__all__ = ["PolynomialForms"]

Index = NDArray[np.intp]

_NODES = 40  # n
_PANEL_LENGTH = 6.0  # length-scales
# Intervals up to 100 length-scales wide are covered with panels throughout. On wider ones only the three panels on
# either side of a point's own are used: elsewhere k(x, x_n) < exp(−½ 18²) λ², 1e-70 of its peak.
_WHOLE = 50.0
_REACH = 3
_VANISHING = 39.0  # exp(−½ 39²) is zero in double precision


@functools.cache
def _legendre(n: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on [−1, 1]."""
    nodes, weights = roots_legendre(n)
    return np.asarray(nodes), np.asarray(weights)


@dataclass(frozen=True, eq=False)
class _Panel:
    """One panel of an axis, with the points that it matters to.

    Attributes
    ----------
    index : its place among the equal panels of the interval.
    rows : (n,) indices of those points.
    E : (n, Q) exp(−½(t_n − s_q)²).
    mass : (Q,) Gauss-Legendre weight times density.
    s : (Q,) nodes.
    """

    index: int
    rows: Index
    E: Array
    mass: Array
    s: Array


@dataclass(frozen=True, eq=False)
class _Axis:
    """[−r, r] with the density p((s + r)/2r)/2r."""

    r: float
    density: UnitPolynomial

    @property
    def _count(self) -> int:
        return math.ceil(2.0 * self.r / _PANEL_LENGTH)

    @property
    def _half(self) -> float:
        """Half the width of a panel."""
        return self.r / self._count

    @property
    def _n_nodes(self) -> int:
        return _NODES + (self.density.degree + 3) // 2  # the second moment multiplies p by s²

    def _indices(self, points: Array) -> list[int]:
        """The panels that are needed for these points (N,)."""
        if self.r <= _WHOLE:
            return list(range(self._count))
        home = np.floor((np.clip(points, -self.r, self.r) + self.r) / (2.0 * self._half))
        near = np.unique(home[:, None] + np.arange(-_REACH, _REACH + 1, dtype=np.float64))
        return [int(index) for index in near if 0 <= index < self._count]

    def panels(self, t: Array, indices: list[int]) -> Iterator[_Panel]:
        """The panels of these indices, for points t (N,)."""
        x, weights = _legendre(self._n_nodes)
        share = self._half / self.r  # of the interval, one panel
        for index in indices:
            # Shares of the interval from both ends: neither is a difference, so p keeps its digits where it vanishes.
            v, w = (index + 0.5 * (1.0 + x)) * share, (self._count - 1 - index + 0.5 * (1.0 - x)) * share
            s = -self.r + 2.0 * self.r * v
            rows = np.flatnonzero((t >= s[0] - _VANISHING) & (t <= s[-1] + _VANISHING))
            E = np.exp(-0.5 * np.square(t[rows, None] - s))
            yield _Panel(index, rows, E, 0.5 * share * weights * self.density.pdf(v, w), s)

    def mean(self, t: Array) -> Array:
        """∫ exp(−½(s − t)²) p, (N,)."""
        total = np.zeros(t.size)
        for panel in self.panels(t, self._indices(t)):
            total[panel.rows] += panel.E @ panel.mass
        return total

    def product(self, t: Array, u: Array, powers: tuple[int, ...] = (0,)) -> Array:
        """∫ sᵏ exp(−½(s − t_n)² − ½(s − u_m)²) p, (K, N, M), for each power k."""
        total = np.zeros((len(powers), t.size, u.size))
        indices = self._indices(np.concatenate([t, u]))
        for left, right in zip(self.panels(t, indices), self.panels(u, indices), strict=True):
            block = np.ix_(left.rows, right.rows)
            for k, power in enumerate(powers):
                total[k][block] += (left.E * (left.mass * left.s**power)) @ right.E.T
        return total

    def chain(self, t: Array, u: Array) -> Iterator[tuple[Index, Array, Array]]:
        """Rows n, A (n, Q) and B (M, Q) of each panel, whose Σ_q A_nq B_mq add up to the chain integral.

        ∬ exp(−½(t_n − s)² − ½(s − s')² − ½(s' − u_m)²) p p': A holds the outer integral's terms, B the inner integral
        at its nodes, summed over the panels about each.
        """
        indices = self._indices(np.concatenate([t, u]))
        inner = list(self.panels(u, indices))
        reach = self._count if self.r <= _WHOLE else _REACH
        for outer in self.panels(t, indices):
            B = np.zeros((u.size, outer.s.size))
            for panel in inner:
                if abs(panel.index - outer.index) <= reach:
                    link = np.exp(-0.5 * np.square(panel.s[:, None] - outer.s))
                    B[panel.rows] += (panel.E * panel.mass) @ link
            yield outer.rows, outer.E * outer.mass, B

    def variance(self) -> float:
        """∬ exp(−½(s − s')²) p p' = 2 ∫ exp(−½d²) c(d) dd over d > 0, with c ≥ 0 the autocorrelation of p.

        c is a polynomial, exact by Gauss-Legendre, and d beyond 39 length-scales does not count: the cost does not
        grow with the width of the interval.
        """
        last = min(1.0, _VANISHING / (2.0 * self.r))  # of the interval
        count = math.ceil(2.0 * self.r * last / _PANEL_LENGTH)
        x, weights = _legendre(self._n_nodes + self.density.degree)  # c has degree 2q + 1
        gap = last * (np.arange(count)[:, None] + 0.5 * (1.0 + x)).ravel() / count  # d/2r
        y, inner_weights = _legendre(self.density.degree + 1)
        room = np.maximum(1.0 - gap, 0.0)[:, None]
        v, w = 0.5 * room * (1.0 + y), 0.5 * room * (1.0 - y)  # from the low end to s, from s' to the high end
        pairs = self.density.pdf(v, w + gap[:, None]) * self.density.pdf(v + gap[:, None], w)
        c = 0.5 * room[:, 0] * (pairs @ inner_weights)
        terms = np.tile(weights, count) * np.exp(-0.5 * np.square(2.0 * self.r * gap)) * c
        return float(terms.sum()) * last / count


class PolynomialForms:
    """Integrals of one kernel under one polynomial density, for :mod:`wsabi.quadrature.embeddings`."""

    def __init__(self, log_scale: float, lengthscales: Array, measure: Polynomial) -> None:
        self._log_scale = log_scale
        self._lengthscales = lengthscales
        self._centre = 0.5 * (measure.low + measure.high)
        radii = (0.5 * (measure.high - measure.low) / lengthscales).tolist()
        self._axes = [_Axis(r, density) for r, density in zip(radii, measure.densities, strict=True)]

    def _columns(self, *points: Array) -> Iterator[tuple[_Axis, list[Array]]]:
        """Axis by axis, the axis and t = (x − centre)/l of each set of points."""
        scaled = [(X - self._centre) / self._lengthscales for X in points]
        for d, axis in enumerate(self._axes):
            yield axis, [t[:, d] for t in scaled]

    def mean(self, X: Array) -> Array:
        """∫ k(x, x_n) π, (N,)."""
        total = np.full(len(X), math.exp(2.0 * self._log_scale))
        for axis, (t,) in self._columns(X):
            total *= axis.mean(t)
        return total

    def variance(self) -> float:
        """∬ k(x, x') π π'."""
        return math.exp(2.0 * self._log_scale) * math.prod(axis.variance() for axis in self._axes)

    def product(self, X: Array, Y: Array) -> Array:
        """∫ k(x, x_n) k(x, y_m) π, (N, M)."""
        total = np.full((len(X), len(Y)), math.exp(4.0 * self._log_scale))
        for axis, (t, u) in self._columns(X, Y):
            total *= axis.product(t, u)[0]
        return total

    def chain(self, X: Array, Y: Array) -> Array:
        """∬ k(x_n, x) k(x, x') k(x', y_m) π π', (N, M)."""
        total = np.full((len(X), len(Y)), math.exp(6.0 * self._log_scale))
        for axis, (t, u) in self._columns(X, Y):
            part = np.zeros_like(total)
            for rows, A, B in axis.chain(t, u):
                part[rows] += A @ B.T
            total *= part
        return total

    def chain_diagonal(self, X: Array) -> Array:
        """∬ k(x_n, x) k(x, x') k(x', x_n) π π', (N,)."""
        total = np.full(len(X), math.exp(6.0 * self._log_scale))
        for axis, (t,) in self._columns(X):
            part = np.zeros_like(total)
            for rows, A, B in axis.chain(t, t):
                part[rows] += np.einsum("nq,nq->n", A, B[rows])
            total *= part
        return total

    def pair_moments(self, X: Array, Y: Array) -> tuple[Array, Array]:
        """Mean and variance of each axis of the density ∝ k(x, x_n) k(x, y_m) π(x), (D, N·M) each.

        A pair so far apart that its product is zero in double precision has weight zero too: mean and variance are then
        those of the middle of the interval.
        """
        means, variances = [], []
        for (axis, (t, u)), centre, length in zip(self._columns(X, Y), self._centre, self._lengthscales, strict=True):
            mass, first, second = axis.product(t, u, (0, 1, 2)).reshape(3, -1)
            safe = np.where(mass > 0.0, mass, 1.0)
            mean = first / safe
            means.append(centre + length * mean)
            variances.append(length**2 * np.maximum(second / safe - np.square(mean), 0.0))
        return np.stack(means), np.stack(variances)
