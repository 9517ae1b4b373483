"""Expected variance of Z after the next sample (paper section 4.1, eq. (13)), by rank-one updates.

Adding x* to the data moves K⁻¹ by eeᵀ/C̃* with e = (−K⁻¹k*, 1), and z by δe with δ = (ℓ̃(x*) − m̃*)/C̃*. The variance of
Z is a quadratic in z, so its expectation over the Gaussian predictive of ℓ̃(x*) is exact: the second moment of δ is
1/C̃*, and any Gauss-Hermite rule with two or more nodes gives the same number. No refit, no factorisation.

Departure from the paper. Eq. (13) averages over ℓ(x*) ~ N(m, C), the approximate model of ℓ; here the average is over
the Gaussian predictive of ℓ̃(x*). Under L the two agree, because ℓ(x*) is affine in ℓ̃(x*) (eq. (7)), and for
Bayes-Hermite they are the same thing. Under M they do not agree. There N(m, C) puts probability on ℓ < α, for which no
ℓ̃ exists, and a value of ℓ does not tell the sign of ℓ̃; the model could not be conditioned on such draws without a rule
for them. The predictive of ℓ̃ is the exact law of what the GP is conditioned on next, and its average has a closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wsabi._core.linalg import solve_lower, solve_upper
from wsabi._core.types import Array
from wsabi.gp.exact import GP
from wsabi.priors import Measure
from wsabi.quadrature.embeddings import (
    chain_mean,
    chain_mean_diagonal,
    kernel_mean,
    product_mean,
    product_mean_diagonal,
)
from wsabi.settings import Method

__all__ = ["Lookahead"]

# A candidate with less than this share of its prior variance left is a datum already; its C̃* is round-off.
MIN_VARIANCE = 1e-8


@dataclass(frozen=True)
class Lookahead:
    """What the expected variance of Z needs of the present model, computed once for any number of candidates.

    W and T are those of :mod:`wsabi.quadrature.integral` in units of λ; L is the factor of the correlation matrix;
    pending points count as data whose value is their prediction (zero weight).
    """

    gp: GP
    measure: Measure
    method: Method
    rows: Array
    weights: Array
    L: Array
    W: Array
    T: Array

    @classmethod
    def prepare(cls, gp: GP, measure: Measure, method: Method) -> Lookahead:
        """O(N²D) for W and T."""
        rows = gp.rows
        weights = np.concatenate([gp.weights, np.zeros(len(gp.pending))])
        kernel = gp.unit_kernel
        if method == "bq":
            W = T = np.empty((0, 0))
        else:
            W, T = product_mean(kernel, measure, rows), chain_mean(kernel, measure, rows)
        return cls(gp, measure, method, rows, weights, gp.factor.lower(), W, T)

    def variance_change(self, Q: Array) -> Array:
        """⟨V[Z | D, ℓ(x*)]⟩ − V[Z | D], (M,), at candidates Q (M, D); most negative is best. O(N²) each.

        The first term is paper eq. (13); the second does not depend on x*. A candidate that is a datum already is +inf:
        under L the expected change may be positive everywhere.
        """
        kernel = self.gp.unit_kernel
        r = kernel(self.rows, Q)  # (N, M)
        half = solve_lower(self.L, r)
        c = 1.0 - np.square(half).sum(axis=0)  # C̃*/λ²  (M,)
        usable = c > MIN_VARIANCE
        a = solve_upper(self.L, half)  # R⁻¹r*  (N, M)
        safe = np.where(usable, c, 1.0)
        change = self._bq_change(Q, a, safe) if self.method == "bq" else self._warped_change(Q, a, safe)
        return np.where(usable, change, np.inf)

    def _bq_change(self, Q: Array, a: Array, c: Array) -> Array:
        """−(∫C̃(x*, x)π(x)dx)²/C̃*: the values do not matter."""
        kernel = self.gp.unit_kernel
        gained = kernel_mean(kernel, self.measure, Q) - kernel_mean(kernel, self.measure, self.rows) @ a
        return np.asarray(-(self.gp.scale**2) * np.square(gained) / c)

    def _warped_change(self, Q: Array, a: Array, c: Array) -> Array:
        """With Q(v) = vᵀT₊v − (W₊v)ᵀK₊⁻¹(W₊v): Q(z, 0) + Q(e)/C̃* − V, and the traces of M."""
        kernel, measure = self.gp.unit_kernel, self.measure
        w = product_mean(kernel, measure, self.rows, Q)  # W's new column  (N, M)
        t = chain_mean(kernel, measure, self.rows, Q)
        Wa = self.W @ a
        g = w - Wa  # first N rows of W₊e
        eWz = self.weights @ g  # eᵀW₊(z, 0)
        eWe = product_mean_diagonal(kernel, measure, Q) - np.sum(a * (w + g), axis=0)
        eTe = chain_mean_diagonal(kernel, measure, Q) - np.sum(a * (2.0 * t - self.T @ a), axis=0)
        gRg = np.square(solve_lower(self.L, g)).sum(axis=0)
        variance = self.gp.scale**2
        spread = eTe - gRg - np.square(eWe) / c  # Q(e)
        change = variance * (variance * spread - np.square(eWz)) / c
        if self.method == "wsabi-m":
            change += 0.5 * variance**2 * (2.0 * (gRg - eTe) / c + np.square(eWe / c))
        return np.asarray(change)
