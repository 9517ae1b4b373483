"""GP on log ℓ: a quadratic with Gaussian-distributed coefficients plus a smooth remainder.

A log-likelihood of hundreds of nats is out of reach of any warp of ℓ, but close to a quadratic where it matters. The
quadratic is part of the kernel (Bayesian linear regression on 1, y, yyᵀ), so what the data leave open about its
coefficients is part of the predictive variance, and no count of points has to be reached before it can be used. The
remainder is a squared exponential along q's axes and, from three parameters on, functions of any few parameters on axes
that may end (:mod:`wsabi.adaptive.surrogate.interactions`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from wsabi.adaptive.surrogate.interactions import SIDES, AxisKernel, bent, interactions
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import NumericalError

__all__ = ["LogSurrogate", "Theta", "Trend", "fit_log_surrogate", "n_coefficients"]

Side = tuple[float, float, float, float]  # log h, log a, c, log s of one parameter's axis


def n_coefficients(dim: int) -> int:
    """Number of coefficients of a quadratic in ``dim`` dimensions, (D + 1)(D + 2)/2."""
    return (dim + 1) * (dim + 2) // 2


@dataclass(frozen=True)
class Theta:
    """What the kernel learns; all but the centres c_d as logarithms.

    Attributes
    ----------
    lengths : (D,) log l_d, along the axes of q.
    sides : (P, 4, D) log h_d, log a_d, c_d and log s_d of the parameters' own axes, for each of P interactions.
    scales : (2 + P,) log λ, log c, and log σ for each of the interactions.
    """

    lengths: Array
    sides: Array
    scales: Array

    @classmethod
    def each(cls, dim: int, length: float, sides: Sequence[Side], scale: float) -> Theta:
        """One number for all l_d, four for all parameters' axes of an interaction, one for the scales."""
        axes = np.repeat(np.reshape(sides, (len(sides), SIDES, 1)), dim, axis=2)
        return cls(np.full(dim, length), axes, np.full(2 + len(sides), scale))

    def like(self, vector: Array) -> Theta:
        """Of the same parts, with the values of ``vector``."""
        dim, both = self.lengths.size, self.lengths.size + self.sides.size
        return Theta(vector[:dim], vector[dim:both].reshape(self.sides.shape), vector[both:])

    def with_parts_of(self, other: Theta) -> Theta:
        """The same with as many interactions as the other has: without its last, or with the other's last."""
        n = len(other.sides)
        sides = np.concatenate([self.sides, other.sides[len(self.sides) :]])[:n]
        scales = np.append(self.scales, other.scales[self.scales.size :])[: 2 + n]
        return Theta(self.lengths, sides, scales)

    @property
    def vector(self) -> Array:
        """All of them in one vector."""
        return np.concatenate([self.lengths, self.sides.ravel(), self.scales])

    def reflected(self, order: Sequence[int], signs: Sequence[int]) -> Theta:
        """The same for parameters u'_d = signs_d · u_order(d)."""
        sides = self.sides[:, :, list(order)]
        sides[:, 2] *= np.asarray(signs)  # the centres
        return Theta(self.lengths, sides, self.scales)

    def heated(self, ratio: float) -> Theta:
        """The same in units of a temperature ``ratio`` times as high."""
        return Theta(self.lengths, self.sides, self.scales + math.log(ratio))


@dataclass(frozen=True)
class Trend:
    """A quadratic a + b·y − ½ yᵀHy that is known beforehand: the prior mean of the Gaussian process."""

    constant: float
    slope: Array
    curvature: Array

    def __call__(self, P: Array) -> Array:
        """Its values, (M,), at P (M, D)."""
        return np.asarray(self.constant + P @ self.slope - 0.5 * np.einsum("md,md->m", P @ self.curvature, P))


@dataclass(frozen=True)
class LogSurrogate:
    """Posterior of log ℓ − top given values at Y, in whitened coordinates.

    k(y, y') = t²(10² + 3² y·y') + ¼c²(y·y')² + λ² exp(−½ Σ_d (y_d − y'_d)²/l_d²) + Σ_i σ_i² p_i(u, u'), t the
    temperature, p_i as in :func:`wsabi.adaptive.surrogate.interactions.interactions`.

    Attributes
    ----------
    Y : (N, D) points.
    L : (N, N) lower factor of the kernel matrix with noise.
    weights : (N,) K⁻¹ values.
    theta : what the kernel has learnt.
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
        lengths = np.exp(self.theta.lengths)
        A, B = P / lengths, self.Y / lengths
        U, V = self._bent(P), self._bent(self.Y)
        k = np.empty((len(P), len(self.Y)))
        rows = max(1, TUNING.surrogate.block // max(len(self.Y), 1))
        for start in range(0, len(P), rows):
            block = slice(start, start + rows)
            k[block] = self._kernel_block(P[block], A[block], B, [u[block] for u in U], V)
        return k

    def _bent(self, P: Array) -> list[Array]:
        """The parameters at P (M, D) on the bent axes of each interaction, (M, D)."""
        return [] if self.turn is None else [bent(P @ self.turn.T, sides) for sides in self.theta.sides]

    def _kernel_block(self, P: Array, A: Array, B: Array, U: Sequence[Array], V: Sequence[Array]) -> Array:
        """The kernel between P and Y, which in units of l are A and B, and as parameters on bent axes U and V."""
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
        V = multiply_lower(self._inverse, k.T)
        explained = np.einsum("mn,mn->m", V.T, V.T)
        # Rounding: the quadratic's prior variance is large and cancels; a nat² is 1, so 1e-8 is nothing.
        return (
            self._with_trend(k @ self.weights, P),
            np.maximum(self._prior_variance(P) - explained, TUNING.surrogate.min_variance),
            V,
        )

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

    # -- more data, and without some of them --------------------------------------------------------------------------

    def extended(self, Y: Array, values: Array, noise: Array) -> LogSurrogate:
        """The same with more data: values (R,) at Y (R, D) with noise variances (R,), as its last rows.

        With K = L Lᵀ of the old data, the factor of all is ((L, 0), (S, L')): S = k(Y', Y)L⁻ᵀ and
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

    def predict_without(self, P: Array, groups: Sequence[Indices], last: int) -> tuple[Array, Array]:
        """Predictive means and variances, (G, M) each, at P (M, D), each without one group of the ``last`` rows.

        With C = K⁻¹, c = Ck(Y, p) and w = C·values, of which f are the rows of a group, counted among the last,

            m₋f = m − c_fᵀ C_ff⁻¹ w_f,   v₋f = v + c_fᵀ C_ff⁻¹ c_f

        (Rasmussen & Williams 2006, section 5.4.2, for more than one row and elsewhere than at the row itself.) Of the
        last rows C = L'⁻ᵀL'⁻¹ and c = L'⁻ᵀV', with L' and V' the last rows of L and of L⁻¹k. With C_ff = RRᵀ both are
        sums over R⁻¹c_f and R⁻¹w_f.
        """
        mean, variance, V = self._posterior(P)
        means, variances = np.empty((len(groups), len(P))), np.empty((len(groups), len(P)))
        L = np.asfortranarray(self.L[len(self.L) - last :, len(self.L) - last :])
        C = inverse_from_cholesky(L) if last else L
        c = solve_upper(L, V[len(V) - last :]) if last else V[:0]
        w = self.weights[len(self.weights) - last :]
        for g, rows in enumerate(groups):
            means[g], variances[g] = mean, variance
            if len(rows):
                R = cholesky(C[np.ix_(rows, rows)])
                half_c, half_w = solve_lower(R, c[rows]), solve_lower(R, w[rows])
                means[g] -= half_w @ half_c
                variances[g] += np.einsum("rm,rm->m", half_c, half_c)
        return means, variances


@dataclass(frozen=True)
class _Matrices:
    """The kernel matrix and the parts of it that θ shapes, (N, N) each.

    Of ``whole`` only the lower triangle is to be read.
    """

    smooth: Array
    whole: Array
    interactions: list[AxisKernel]


@dataclass(frozen=True)
class _Data:
    """What the marginal likelihood needs that does not depend on θ.

    ``linear`` and ``quadratic`` are those parts of the kernel matrix, (N, N) each, the latter for c = 1; U (N, D) are
    the parameters at Y, of which the kernel has ``n_interactions``.
    """

    Y: Array
    values: Array
    noise: Array
    temperature: float
    linear: Array
    quadratic: Array
    U: Array
    n_interactions: int

    @classmethod
    def of(cls, Y: Array, values: Array, noise: Array, temperature: float, turn: Array | None, n: int) -> _Data:
        """For values (N,) at Y (N, D) with noise variances (N,), and n interactions where there is a ``turn``."""
        inner = Y @ Y.T
        linear = temperature**2 * (TUNING.surrogate.offset_sd**2 + TUNING.surrogate.slope_sd**2 * inner)
        U, n = (Y, 0) if turn is None else (Y @ turn.T, n)
        return cls(Y, values, noise, temperature, linear, np.square(0.5 * inner), U, n)

    @property
    def theta_mean(self) -> Theta:
        """Centre of the prior on θ: l = 1.6√D (points lie √D from the centre), _side_means, one temperature each."""
        length = 0.5 * math.log(self.Y.shape[1]) + TUNING.surrogate.log_length_mean
        return self.each(length, _side_means(), math.log(self.temperature))

    def each(self, length: float, sides: Sequence[Side], scale: float) -> Theta:
        """A θ of the parts that the kernel of these data has."""
        return Theta.each(self.Y.shape[1], length, sides[: self.n_interactions], scale)

    def matrices(self, theta: Theta, growth: float = 1.0) -> _Matrices:
        """The kernel matrix with noise and ``growth`` times the jitter, and its parts."""
        _, curvature, *sigmas = np.exp(theta.scales)
        Y = self.Y / np.exp(theta.lengths)
        smooth = gaussian_exponent(Y, Y, 2.0 * theta.scales[0])
        np.exp(smooth, out=smooth)
        K = curvature**2 * self.quadratic
        K += self.linear
        K += smooth
        interactions = [AxisKernel.of(self.U, sides) for sides in theta.sides]
        for sigma, kernel in zip(sigmas, interactions, strict=True):
            K += sigma**2 * kernel.p
        diagonal = K.ravel()[:: len(K) + 1]
        diagonal += self.noise + growth * TUNING.surrogate.jitter * float(np.mean(diagonal))
        return _Matrices(smooth, K.T, interactions)


def _side_means() -> tuple[Side, Side]:
    """Prior means of log h, log a, c and log s, of the first interaction and of the second, which changes faster.

    a = 1 gives a parameter as much weight alone as with others; c = 0 is the middle of q.
    """
    one = TUNING.surrogate
    length, plateau = one.log_length_mean, one.log_plateau_mean
    return (length, 0.0, 0.0, plateau), (length + one.log_second_length_shift, 0.0, 0.0, plateau)


def _prior_sds(data: _Data) -> Array:
    """Prior sds of all entries of θ, in one vector."""
    one = TUNING.surrogate
    side = (one.length_sd, one.axis_sd, one.axis_sd, one.axis_sd)
    return data.each(one.length_sd, (side, side), one.scale_sd).vector


def _reaches(data: _Data) -> Array:
    """How far from its prior mean each entry of θ may go, in one vector."""
    one = TUNING.surrogate
    side = (one.length_reach, one.strength_reach, one.axis_reach, one.axis_reach)
    return data.each(one.length_reach, (side, side), one.scale_reach).vector


def _objective(data: _Data, vector: Array) -> tuple[float, Array]:
    """−log p(values | θ) − log p(θ) and its gradient, for θ in one vector."""
    centre = data.theta_mean
    theta = centre.like(vector)
    parts = data.matrices(theta)
    try:
        L = cholesky(parts.whole)
    except NumericalError:
        return TUNING.surrogate.failed_objective, np.zeros_like(vector)
    half = solve_lower(L, data.values)
    weights = solve_upper(L, half)
    A = np.outer(weights, weights) - inverse_from_cholesky(L)
    sds = _prior_sds(data)
    z = (vector - centre.vector) / sds
    value = 0.5 * float(half @ half) + float(np.log(np.diag(L)).sum()) + 0.5 * float(z @ z)
    return value, -0.5 * _slopes(data, theta, parts, A) + z / sds


def _slopes(data: _Data, theta: Theta, parts: _Matrices, A: Array) -> Array:
    """Σ_nm A_nm ∂K_nm/∂θ, one for each entry of θ, for a symmetric A (N, N)."""
    B = A * parts.smooth
    # Σ_nm B_nm (y_nd − y_md)² = 2 Σ_n y_nd² Σ_m B_nm − 2 (YᵀBY)_dd
    squares = 2.0 * (B.sum(axis=1) @ np.square(data.Y) - np.sum(data.Y * (B @ data.Y), axis=0))
    lengths = squares * np.exp(-2.0 * theta.lengths)
    curvature = math.exp(2.0 * theta.scales[1])
    scales = [2.0 * float(np.sum(B)), 2.0 * curvature * float(np.vdot(A, data.quadratic))]
    sides = np.empty_like(theta.sides)
    for i, kernel in enumerate(parts.interactions):
        variance = math.exp(2.0 * theta.scales[2 + i])
        sides[i] = variance * kernel.slopes(A)
        scales.append(2.0 * variance * float(np.vdot(A, kernel.p)))
    return np.concatenate([lengths, sides.ravel(), scales])


def _learn(data: _Data, warm: Theta | None, steps: int) -> Theta:
    """MAP θ by so many steps of L-BFGS-B, from the better of ``warm`` and the prior's centre.

    The warm start alone is not enough: q may have changed shape since, and where the kernel matrix cannot be factored
    the search has no slope to leave by.
    """
    from scipy.optimize import minimize  # imported here: it costs a third of `import wsabi`

    prior = data.theta_mean
    centre, reach = prior.vector, _reaches(data)
    low, high = centre - reach, centre + reach
    starts = [centre] if warm is None else [np.clip(warm.vector, low, high), centre]
    known = [_objective(data, vector) for vector in starts]
    best = int(np.argmin([value for value, _ in known]))
    start, (least, slope) = starts[best], known[best]
    found = minimize(
        lambda vector: (least, slope.copy()) if np.array_equal(vector, start) else _objective(data, vector),
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)),
        options={"maxiter": steps, "ftol": TUNING.surrogate.learning_tolerance},
    )
    return prior.like(np.asarray(found.x) if found.fun <= least else start)


def _factor(data: _Data, theta: Theta) -> Array:
    """Lower factor of the kernel matrix, with a hundred and ten thousand times the jitter where it takes that.

    θ kept from other data may fit these so badly that round-off is no longer below the jitter.
    """
    numbers = TUNING.surrogate
    for attempt in range(numbers.jitter_retries):
        try:
            return cholesky(data.matrices(theta, numbers.jitter_growth**attempt).whole)
        except NumericalError:
            continue
    return cholesky(data.matrices(theta, numbers.jitter_growth**numbers.jitter_retries).whole)


def fit_log_surrogate(
    Y: Array,
    values: Array,
    noise: Array,
    *,
    temperature: float,
    turn: Array | None = None,
    n_interactions: int = 1,
    theta: Theta | None = None,
    learn: bool = True,
    steps: int | None = None,
    trend: Trend | None = None,
) -> LogSurrogate:
    """Surrogate of values (N,) at Y (N, D) with noise variances (N,); θ by MAP from ``theta``, or kept.

    ``turn`` (D, D) takes y to the parameters; without it there are no interactions, with it ``n_interactions``.
    ``steps`` are ``learning_steps`` unless given.
    With a ``trend`` the Gaussian process is that of the values less the trend.

    Raises
    ------
    NumericalError
        If the kernel matrix cannot be factored.
    """
    values = values if trend is None else values - trend(Y)
    data = _Data.of(Y, values, noise, temperature, turn, n_interactions)
    if theta is not None:
        theta = theta.with_parts_of(data.theta_mean)
    if learn or theta is None:
        theta = _learn(data, theta, TUNING.surrogate.learning_steps if steps is None else steps)
    L = _factor(data, theta)
    weights = solve_upper(L, solve_lower(L, values))
    return LogSurrogate(Y, L, weights, theta, temperature, turn, trend)
