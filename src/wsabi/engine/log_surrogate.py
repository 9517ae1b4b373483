"""GP on log ℓ: a quadratic with Gaussian-distributed coefficients plus a squared-exponential remainder.

A log-likelihood of hundreds of nats is out of reach of any warp of ℓ, but close to a quadratic where it matters. The
quadratic is part of the kernel (Bayesian linear regression on 1, y, yyᵀ), so what the data leave open about its
coefficients is part of the predictive variance, and no count of points has to be reached before it can be used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wsabi._linalg import NumericalError, cholesky, inverse_from_cholesky, solve_lower, solve_upper, square_distances
from wsabi._types import Array

__all__ = ["LogSurrogate", "fit_log_surrogate"]

# Relative to the mean diagonal of the kernel matrix; see _linalg.JITTER. Values of hundreds of nats make that diagonal
# 1e5 nats² and more, of which 1e-11 is noise of 1e-3 nats; round-off in factoring 350 rows is a hundredth of it.
JITTER = 1e-11
OFFSET_SD = 10.0  # prior sd of the constant, in units of the temperature: the data sit at their maximum, near zero
SLOPE_SD = 3.0  # of the linear coefficients: coordinates are whitened, so a slope is a shift of a few sds of q


@dataclass(frozen=True)
class LogSurrogate:
    """Posterior of log ℓ − top given values at Y, in whitened coordinates.

    k(y, y') = t²(10² + 3² y·y') + ¼c²(y·y')² + λ² exp(−½ Σ_d (y_d − y'_d)²/l_d²), t the temperature.

    Attributes
    ----------
    Y : (N, D) points.
    L : (N, N) lower factor of the kernel matrix with noise.
    weights : (N,) K⁻¹ values.
    theta : (D + 2,) log l_d, log λ, log c.
    temperature : t, the unit of the values.
    """

    Y: Array
    L: Array
    weights: Array
    theta: Array
    temperature: float

    def _kernel(self, P: Array) -> Array:
        """k(p_m, y_n), (M, N)."""
        scale, curvature = np.exp(self.theta[-2:])
        inner = P @ self.Y.T
        k = scale**2 * _smooth(P, self.Y, self.theta[:-2])
        k += np.square(0.5 * curvature * inner)
        k += self.temperature**2 * (OFFSET_SD**2 + SLOPE_SD**2 * inner)
        return np.asarray(k)

    def mean(self, P: Array) -> Array:
        """Predictive mean, (M,), at P (M, D)."""
        return self._kernel(P) @ self.weights

    def predict(self, P: Array) -> tuple[Array, Array]:
        """Predictive mean and variance, (M,) each, at P (M, D)."""
        scale, curvature = np.exp(self.theta[-2:])
        k = self._kernel(P)
        V = solve_lower(self.L, k.T)
        squares = np.square(P).sum(axis=1)
        prior = scale**2 + np.square(0.5 * curvature * squares)
        prior += self.temperature**2 * (OFFSET_SD**2 + SLOPE_SD**2 * squares)
        # Rounding: the quadratic's prior variance is large and cancels; a nat² is 1, so 1e-8 is nothing.
        return k @ self.weights, np.maximum(prior - np.square(V).sum(axis=0), 1e-8)


def _smooth(A: Array, B: Array, log_lengths: Array) -> Array:
    """exp(−½ Σ_d (a_d − b_d)²/l_d²), (N, M), for A (N, D) and B (M, D)."""
    lengths = np.exp(log_lengths)
    return np.exp(-0.5 * square_distances(A / lengths, B / lengths))


@dataclass(frozen=True)
class _Data:
    """What the marginal likelihood needs that does not depend on θ."""

    Y: Array
    values: Array
    noise: Array
    temperature: float
    inner: Array

    @property
    def theta_mean(self) -> Array:
        """Centre of the prior on θ: l = 1.6√D (points lie √D from the centre), λ and c one temperature."""
        dim = self.Y.shape[1]
        log_t = math.log(self.temperature)
        return np.append(np.full(dim, 0.5 * math.log(dim) + 0.5), [log_t, log_t])

    def matrices(self, theta: Array, jitter: float = JITTER) -> tuple[Array, Array, Array]:
        """Squared-exponential part, quadratic part, and the whole kernel matrix with noise, (N, N) each."""
        scale, curvature = np.exp(theta[-2:])
        smooth = scale**2 * _smooth(self.Y, self.Y, theta[:-2])
        quadratic = np.square(0.5 * curvature * self.inner)
        K = smooth + quadratic + self.temperature**2 * (OFFSET_SD**2 + SLOPE_SD**2 * self.inner)
        diagonal = np.diag_indices_from(K)
        K[diagonal] += self.noise + jitter * float(np.mean(K[diagonal]))
        return smooth, quadratic, K


# Prior sds, and how far from the prior's centre the search may go, all in log: l_d within a factor of 4 at two sds,
# λ and c within 20.
LENGTH_SD, SCALE_SD = 0.7, 1.5
LENGTH_REACH, SCALE_REACH = 2.5, 7.0


def _spread(dim: int, length: float, scale: float) -> Array:
    """(D + 2,) one number for each l_d, another for λ and c."""
    return np.append(np.full(dim, length), [scale, scale])


def _objective(data: _Data, theta: Array) -> tuple[float, Array]:
    """−log p(values | θ) − log p(θ) and its gradient (D + 2,)."""
    smooth, quadratic, K = data.matrices(theta)
    try:
        L = cholesky(K)
    except NumericalError:
        return 1e10, np.zeros_like(theta)
    half = solve_lower(L, data.values)
    weights = solve_upper(L, half)
    A = np.outer(weights, weights) - inverse_from_cholesky(L)
    sds = _spread(data.Y.shape[1], LENGTH_SD, SCALE_SD)
    z = (theta - data.theta_mean) / sds
    B = A * smooth
    # Σ_nm B_nm (y_nd − y_md)² = 2 Σ_n y_nd² Σ_m B_nm − 2 (YᵀBY)_dd
    squares = 2.0 * (B.sum(axis=1) @ np.square(data.Y) - np.sum(data.Y * (B @ data.Y), axis=0))
    slopes = np.append(squares * np.exp(-2.0 * theta[:-2]), [2.0 * np.sum(B), 2.0 * np.sum(A * quadratic)])
    value = 0.5 * float(half @ half) + float(np.log(np.diag(L)).sum()) + 0.5 * float(z @ z)
    return value, -0.5 * slopes + z / sds


def _learn(data: _Data, warm: Array | None) -> Array:
    """MAP θ (D + 2,) by L-BFGS-B, from the better of ``warm`` and the prior's centre.

    The warm start alone is not enough: q may have changed shape since, and where the kernel matrix cannot be factored
    the search has no slope to leave by.
    """
    from scipy.optimize import minimize  # imported here: it costs a third of `import wsabi`

    reach = _spread(data.Y.shape[1], LENGTH_REACH, SCALE_REACH)
    low, high = data.theta_mean - reach, data.theta_mean + reach
    starts = [data.theta_mean] if warm is None else [np.clip(warm, low, high), data.theta_mean]
    start = min(starts, key=lambda theta: _objective(data, theta)[0])
    found = minimize(
        lambda theta: _objective(data, theta),
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)),
        options={"maxiter": 20, "ftol": 1e-5},
    )
    return np.asarray(found.x) if found.fun <= _objective(data, start)[0] else start


def _factor(data: _Data, theta: Array) -> Array:
    """Lower factor of the kernel matrix, with a hundred and ten thousand times the jitter where it takes that.

    θ kept from other data may fit these so badly that round-off is no longer below the jitter.
    """
    for more in (1.0, 1e2):
        try:
            return cholesky(data.matrices(theta, more * JITTER)[2])
        except NumericalError:
            continue
    return cholesky(data.matrices(theta, 1e4 * JITTER)[2])


def fit_log_surrogate(
    Y: Array, values: Array, noise: Array, *, temperature: float, theta: Array | None = None, learn: bool = True
) -> LogSurrogate:
    """Surrogate of values (N,) at Y (N, D) with noise variances (N,); θ by MAP from ``theta``, or kept.

    Raises
    ------
    NumericalError
        If the kernel matrix cannot be factored.
    """
    data = _Data(Y, values, noise, temperature, Y @ Y.T)
    if learn or theta is None:
        theta = _learn(data, theta)
    L = _factor(data, theta)
    weights = solve_upper(L, solve_lower(L, values))
    return LogSurrogate(Y, L, weights, theta, temperature)
