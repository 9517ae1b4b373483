"""Kernel of sums of functions of one parameter, of two, and of more, with each parameter on a bent axis.

    p(u, u') = Π_d (1 + a_d k_d)/(1 + a_d),   k_d = 1/(1 + (v_d − v'_d)²),   v_d = (s_d/h_d) tanh((u_d − c_d)/s_d)

Written out, the product has a term for every set of parameters, weighted by the product of their a_d (an ANOVA kernel).
A log-likelihood of many parameters is rarely a function of all of them at once. A general smooth kernel learns it again
in every corner of D dimensions; terms of few parameters carry it from one corner to all others.

A log-likelihood often no longer depends on a parameter at one end or at both, as where a noise is far below all others.
The tanh bends the axis, so that it ends there, and few data describe the plateau. An s_d of many sds leaves the axis
straight. k_d is rational, not exponential, because such functions change on more than one length-scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.tuning import TUNING

__all__ = ["SIDES", "AxisKernel", "bent", "interactions"]

SIDES = 4  # hyperparameters of each parameter's axis: log h, log a, c, log s


def bent(U: Array, sides: Array) -> Array:
    """v (M, D) of parameters u (M, D); ``sides`` (4, D) are log h, log a, c and log s."""
    log_h, _, centre, log_s = sides
    return np.asarray(np.exp(log_s - log_h) * np.tanh((U - centre) * np.exp(-log_s)))


def interactions(V: Array, W: Array, log_a: Array) -> Array:
    """p(v_m, w_n), (M, N), for bent V (M, D) and W (N, D).

    With q = (v_d − w_d)² a factor is (1 + a + q)/((1 + a)(1 + q)). Numerators and denominators are multiplied
    separately and divided once. v is bounded by s/h, so the products do not overflow. The entries are computed in
    blocks that fit into a cache.
    """
    a = np.exp(log_a)
    left, right = _rows(V), _columns(W)
    p = np.empty((len(V), len(W)))
    rows = max(1, TUNING.surrogate.block // max(len(W), 1))
    below, factor = np.empty((rows, len(W))), np.empty((rows, len(W)))
    share = 1.0 / float(np.prod(1.0 + a))
    for start in range(0, len(V), rows):
        above = p[start : start + rows]
        below_, factor_ = below[: len(above)], factor[: len(above)]
        np.matmul(left[0, start : start + rows], right[0], out=below_)
        np.add(below_, a[0], out=above)
        above *= share
        for d in range(1, len(a)):
            np.matmul(left[d, start : start + rows], right[d], out=factor_)
            below_ *= factor_
            factor_ += a[d]
            above *= factor_
        above /= below_
    return p


def _rows(V: Array) -> Array:
    """(1 + v², −2v, 1), (D, M, 3), of v (M, D). Its product with :func:`_columns` is 1 + (v − w)².

    One product takes half the time of a difference, a square and a sum. Its round-off is ε(v² + w²), 1e-12 for points a
    hundred h from the centre.
    """
    rows = np.ones((V.shape[1], len(V), 3))
    rows[:, :, 0], rows[:, :, 1] = 1.0 + np.square(V.T), -2.0 * V.T
    return rows


def _columns(W: Array) -> Array:
    """(1, w, w²), (D, 3, N), of w (N, D)."""
    columns = np.ones((W.shape[1], 3, len(W)))
    columns[:, 1], columns[:, 2] = W.T, np.square(W.T)
    return columns


@dataclass(frozen=True)
class AxisKernel:
    """p among N points, and its gradient.

    Attributes
    ----------
    U : (N, D) the points, as parameters.
    sides : (4, D) log h, log a, c and log s.
    V : (N, D) the points on the bent axes.
    p : (N, N) the kernel.
    """

    U: Array
    sides: Array
    V: Array
    p: Array

    @classmethod
    def of(cls, U: Array, sides: Array) -> AxisKernel:
        """For points U (N, D)."""
        V = bent(U, sides)
        return cls(U, sides, V, interactions(V, V, sides[1]))

    def slopes(self, A: Array) -> Array:
        """∂/∂(log h, log a, c, log s) of S = Σ_nm A_nm p_nm, (4, D), for a symmetric A (N, N).

        With B = A ∘ p, q = (v_n − v_m)² and F = B/(1 + a + q),

            ∂S/∂log a = a ΣF − a/(1 + a) ΣB,   ∂S/∂q = −E,  E = aF/(1 + q),   ∂S/∂v = −4(v ∘ E1 − Ev)

        The derivatives of v are −v by log h, −sech²/h by c, and v − (u − c) sech²/h by log s.
        """
        B = A * self.p
        total = float(B.sum())
        by_v = np.empty_like(self.V)
        by_a = np.empty(len(self.sides[0]))
        q1, F = np.empty_like(B), np.empty_like(B)
        both = np.ones((len(B), 2))
        left, right = _rows(self.V), _columns(self.V)
        for d, (v, log_a) in enumerate(zip(self.V.T, self.sides[1], strict=True)):
            a = math.exp(log_a)
            np.matmul(left[d], right[d], out=q1)
            np.add(q1, a, out=F)
            np.divide(B, F, out=F)
            by_a[d] = a * float(F.sum()) - a / (1.0 + a) * total
            np.divide(F, q1, out=F)
            both[:, 1] = v
            ones, moments = (F @ both).T
            by_v[:, d] = -(2.0 * 2.0) * a * (v * ones - moments)
        log_h, _, centre, log_s = self.sides
        x = (self.U - centre) * np.exp(-log_s)
        flat = np.exp(-log_h) / np.square(np.cosh(np.minimum(np.abs(x), TUNING.surrogate.max_bend)))  # sech²/h
        by_s = by_v * (self.V - (self.U - centre) * flat)
        return np.stack([-(by_v * self.V).sum(axis=0), by_a, -(by_v * flat).sum(axis=0), by_s.sum(axis=0)])
