"""GP on log ℓ: a quadratic with Gaussian-distributed coefficients plus a smooth remainder.

A warp of ℓ cannot represent a log-likelihood that varies by hundreds of nats. Where it matters, log ℓ is close to a
quadratic. The quadratic is part of the kernel (Bayesian linear regression on 1, y, yyᵀ), so the uncertainty of its
coefficients is part of the predictive variance, and the model can be used with any number of points. The remainder is a
squared exponential along q's axes and, from three parameters on, a sum of functions of few parameters, on axes that may
end (:mod:`wsabi.adaptive.surrogate.interactions`). :mod:`wsabi.adaptive.surrogate.learning` learns θ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from wsabi._core.linalg import (
    cholesky,
    gaussian_exponent,
    inverse_from_cholesky,
    inverse_lower,
    multiply_lower,
    solve_lower,
    solve_upper,
)
from wsabi._core.types import Array, Indices
from wsabi.adaptive.surrogate.interactions import bent, interactions
from wsabi.adaptive.surrogate.theta import Theta
from wsabi.adaptive.tuning import TUNING

__all__ = ["LogSurrogate", "Trend"]


@dataclass(frozen=True)
class Trend:
    """A known quadratic a + b·y − ½ yᵀHy: the prior mean of the Gaussian process."""

    constant: float
    slope: Array
    curvature: Array

    def __call__(self, P: Array) -> Array:
        """Its values, (M,), at P (M, D)."""
        return np.asarray(self.constant + P @ self.slope - 0.5 * np.einsum("md,md->m", P @ self.curvature, P))


@dataclass(frozen=True)
class LogSurrogate:
    """Posterior of log ℓ − top given values at Y, in whitened coordinates.

    k(y, y') = t²(10² + 3² y·y') + ¼c²(y·y')² + λ² exp(−½ Σ_d (y_d − y'_d)²/l_d²) + Σ_i σ_i² p_i(u, u')

    with t the temperature, p_i as in :func:`wsabi.adaptive.surrogate.interactions.interactions`, and 10 and 3 the
    ``offset_sd`` and ``slope_sd``.

    Attributes
    ----------
    Y : (N, D) points.
    L : (N, N) lower factor of the kernel matrix with noise.
    weights : (N,) K⁻¹ values.
    theta : hyperparameters of the kernel.
    temperature : t, the unit of the values.
    turn : (D, D) matrix from y to the parameters, u = turn·y, each in units of its own sd under q; None without
        interactions.
    trend : prior mean of log ℓ − top; None is zero. ``weights`` are K⁻¹(values − trend).
    """

    Y: Array
    L: Array
    weights: Array
    theta: Theta
    temperature: float
    turn: Array | None
    trend: Trend | None = None

    def _kernel(self, P: Array) -> Array:
        """k(p_m, y_n), (M, N)."""
        B, V = self._data_side
        A, U = P / np.exp(self.theta.lengths), self._bent(P)
        k = np.empty((len(P), len(self.Y)))
        rows = max(1, TUNING.surrogate.block // max(len(self.Y), 1))
        for start in range(0, len(P), rows):
            block = slice(start, start + rows)
            k[block] = self._kernel_block(P[block], A[block], B, [u[block] for u in U], V)
        return k

    @cached_property
    def _data_side(self) -> tuple[Array, list[Array]]:
        """Y in units of l, (N, D), and on the bent axes: what every row of the kernel needs."""
        return self.Y / np.exp(self.theta.lengths), self._bent(self.Y)

    def _bent(self, P: Array) -> list[Array]:
        """The parameters at P (M, D) on the bent axes of each interaction, (M, D)."""
        return [] if self.turn is None else [bent(P @ self.turn.T, sides) for sides in self.theta.sides]

    def _kernel_block(self, P: Array, A: Array, B: Array, U: Sequence[Array], V: Sequence[Array]) -> Array:
        """The kernel between P and Y. In units of l they are A and B; on the bent axes of the parameters, U and V."""
        log_scale, log_curvature, *log_sigmas = self.theta.scales
        k = gaussian_exponent(A, B, 2.0 * log_scale)
        np.exp(k, out=k)
        inner = P @ self.Y.T
        quadratic = (0.5**2 * math.exp(2.0 * log_curvature)) * inner
        quadratic += (self.temperature * TUNING.surrogate.slope_sd) ** 2
        quadratic *= inner
        quadratic += (self.temperature * TUNING.surrogate.offset_sd) ** 2
        k += quadratic
        for u, v, sides, log_sigma in zip(U, V, self.theta.sides, log_sigmas, strict=True):
            p = interactions(u, v, sides[1])
            p *= math.exp(2.0 * log_sigma)
            k += p
        return k

    def mean(self, P: Array) -> Array:
        """Predictive mean, (M,), at P (M, D)."""
        return self._with_trend(self._kernel(P) @ self.weights, P)

    def _with_trend(self, values: Array, P: Array) -> Array:
        """Values (M,) at P (M, D), plus the trend there."""
        return values if self.trend is None else values + self.trend(P)

    def predict(self, P: Array) -> tuple[Array, Array]:
        """Predictive mean and variance, (M,) each, at P (M, D)."""
        mean, variance, _ = self._posterior(P)
        return mean, variance

    def _posterior(self, P: Array) -> tuple[Array, Array, Array]:
        """Predictive mean and variance, (M,) each, and L⁻¹k(Y, P), (N, M), at P (M, D)."""
        k = self._kernel(P)
        mean = self._with_trend(k @ self.weights, P)
        V = multiply_lower(self._inverse, k.T, overwrite=True)
        explained = np.einsum("mn,mn->m", V.T, V.T)
        # The prior variance of the quadratic is large and cancels, so round-off may leave less than zero.
        return mean, np.maximum(self._prior_variance(P) - explained, TUNING.surrogate.min_variance), V

    def covariances(self, P: Array, last: int) -> tuple[Array, Array, Array]:
        """Predictive mean and variance, (M,) each, at P (M, D), and the covariances with the R last of P, (M, R)."""
        mean, variance, V = self._posterior(P)
        some = slice(len(P) - last, None)
        return mean, variance, replace(self, Y=P[some])._kernel(P) - V.T @ V[:, some]

    @cached_property
    def _inverse(self) -> Array:
        """L⁻¹, (N, N)."""
        return inverse_lower(self.L)

    def _prior_variance(self, P: Array) -> Array:
        """k(p_m, p_m), (M,)."""
        scale, curvature, *sigmas = np.exp(self.theta.scales)
        squares = np.square(P).sum(axis=1)
        prior = scale**2 + sum(sigma**2 for sigma in sigmas) + np.square(0.5 * curvature * squares)
        return np.asarray(
            prior + self.temperature**2 * (TUNING.surrogate.offset_sd**2 + TUNING.surrogate.slope_sd**2 * squares)
        )

    # -- more data, and fewer -----------------------------------------------------------------------------------------

    def extended(self, Y: Array, values: Array, noise: Array) -> LogSurrogate:
        """The same with more data as its last rows: values (R,) at Y (R, D) with noise variances (R,).

        With K = L Lᵀ of the old data, the factor of all data is ((L, 0), (S, L')): S = k(Y', Y)L⁻ᵀ and
        L'L'ᵀ = k(Y', Y') − SSᵀ.

        Raises
        ------
        NumericalError
            If the kernel matrix cannot be factored.
        """
        n, rows = len(self.Y), len(Y)
        S = solve_lower(self.L, self._kernel(Y).T).T
        K = replace(self, Y=Y)._kernel(Y)
        diagonal = np.diag_indices(rows)
        K[diagonal] += noise + TUNING.surrogate.jitter * float(np.mean(K[diagonal]))
        L = np.zeros((n + rows, n + rows), order="F")
        L[:n, :n], L[n:, :n], L[n:, n:] = self.L, S, cholesky(K - S @ S.T)
        half = self.L.T @ self.weights  # L⁻¹ of the old values
        values = values if self.trend is None else values - self.trend(Y)
        half = np.concatenate([half, solve_lower(L[n:, n:], values - S @ half)])
        return replace(self, Y=np.concatenate([self.Y, Y]), L=L, weights=solve_upper(L, half))

    def left_out(self) -> tuple[Array, Array]:
        """Errors of the data and their sds, (N,) each, each datum predicted by the surrogate without it.

        With C = K⁻¹ and w = C·values they are w_n/C_nn and C_nn^−½ (Rasmussen & Williams 2006, equation 5.12). The sd
        holds the noise of the datum.
        """
        precision = np.square(self._inverse).sum(axis=0)
        return self.weights / precision, 1.0 / np.sqrt(precision)

    def predict_without(self, P: Array, groups: Sequence[Indices], last: int) -> tuple[Array, Array]:
        """Predictive means and variances, (G, M) each, at P (M, D); each leaves out one group of the ``last`` rows.

        With C = K⁻¹, c = Ck(Y, p), w = C·values, and f the rows of a group, counted among the last rows,

            m₋f = m − c_fᵀ C_ff⁻¹ w_f,   v₋f = v + c_fᵀ C_ff⁻¹ c_f

        (Rasmussen & Williams 2006, section 5.4.2, generalised to several rows and to other points than the rows). For
        the last rows C = L'⁻ᵀL'⁻¹ and c = L'⁻ᵀV', with L' and V' the last rows of L and of L⁻¹k. With C_ff = RRᵀ both
        are sums over R⁻¹c_f and R⁻¹w_f.
        """
        means, variances = np.empty((len(groups), len(P))), np.empty((len(groups), len(P)))
        for g, (mean, variance) in enumerate(self._each_without(P, groups, last)):
            means[g], variances[g] = mean, variance
        return means, variances

    def predict_own_without(self, P: Array, groups: Sequence[Indices], last: int) -> tuple[Array, Array]:
        """Predictive means and variances, (M,) each, at P (M, D), each point without the group of the same number.

        The diagonals of :meth:`predict_without`, in memory that grows with M alone.
        """
        pairs = [(mean[g], variance[g]) for g, (mean, variance) in enumerate(self._each_without(P, groups, last))]
        means, variances = np.array(pairs).reshape(-1, 2).T
        return means, variances

    def _each_without(self, P: Array, groups: Sequence[Indices], last: int) -> Iterator[tuple[Array, Array]]:
        """Predictive mean and variance, (M,) each, at P (M, D) without each group."""
        mean, variance, V = self._posterior(P)
        L = np.asfortranarray(self.L[len(self.L) - last :, len(self.L) - last :])
        C = inverse_from_cholesky(L) if last else L
        c = solve_upper(L, V[len(V) - last :]) if last else V[:0]
        w = self.weights[len(self.weights) - last :]
        for rows in groups:
            if not len(rows):
                yield mean, variance
                continue
            R = cholesky(C[np.ix_(rows, rows)])
            half_c, half_w = solve_lower(R, c[rows]), solve_lower(R, w[rows])
            yield mean - half_w @ half_c, variance + np.einsum("rm,rm->m", half_c, half_c)
