"""Where to evaluate next: uncertainty sampling (paper section 4.2, eqs. (14) and (15)) in log space, with gradients.

The other criterion of the paper, the expected variance of Z after the next sample, eq. (13), is in
:mod:`wsabi.quadrature.lookahead`.
"""

from __future__ import annotations

import math

import numpy as np

from wsabi._core.types import Array
from wsabi.gp.exact import GP
from wsabi.priors import Measure
from wsabi.settings import Method

__all__ = ["log_uncertainty", "log_uncertainty_and_gradient", "log_uncertainty_at"]

TINY = 1e-300  # keeps log(0) finite: a point of no variance is the worst choice, not an error


def log_uncertainty(method: Method, log_pi: Array, m_tilde: Array, c_tilde: Array) -> Array:
    """log V[ℓ(x)π(x)], (M,), from log π, m̃ and C̃ (M,).

    L:  2 log π + log C̃ + 2 log|m̃|          paper eq. (15)
    M:  2 log π + log C̃ + log(½C̃ + m̃²)    paper eq. (14)
    BQ: 2 log π + log C̃
    """
    log_a = 2.0 * log_pi + np.log(c_tilde + TINY)
    if method == "bq":
        return log_a
    squared = np.square(m_tilde)
    return log_a + np.log((squared if method == "wsabi-l" else 0.5 * c_tilde + squared) + TINY)


def log_uncertainty_at(gp: GP, measure: Measure, method: Method, Q: Array) -> Array:
    """log V[ℓ(x)π(x)] (paper eqs. (14) and (15)), (M,), at points Q (M, D)."""
    m_tilde, c_tilde = gp.predict(Q)
    return log_uncertainty(method, measure.log_pdf(Q), m_tilde, c_tilde)


def log_uncertainty_and_gradient(gp: GP, measure: Measure, method: Method, x: Array) -> tuple[float, Array]:
    """log V[ℓ(x)π(x)] and its gradient (D,) at one point x (D,)."""
    m, c, grad_m, grad_c = gp.predict_with_gradient(x)
    log_pi, grad_log_pi = measure.log_pdf_and_gradient(x)
    value = 2.0 * log_pi + math.log(c + TINY)
    gradient = 2.0 * grad_log_pi + grad_c / (c + TINY)
    if method == "bq":
        return value, gradient
    half = 0.5 if method == "wsabi-m" else 0.0
    inner = half * c + m * m + TINY
    return value + math.log(inner), gradient + (half * grad_c + 2.0 * m * grad_m) / inner
