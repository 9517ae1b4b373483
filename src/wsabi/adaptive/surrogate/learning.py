"""Learning the hyperparameters θ of the surrogate: MAP by analytic gradients, and the fit of a surrogate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wsabi._core.linalg import cholesky, gaussian_exponent, inverse_from_cholesky, solve_lower, solve_upper
from wsabi._core.types import Array
from wsabi.adaptive.surrogate.interactions import AxisKernel
from wsabi.adaptive.surrogate.model import LogSurrogate, Trend
from wsabi.adaptive.surrogate.theta import Side, Theta
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import NumericalError

__all__ = ["fit_log_surrogate"]


@dataclass(frozen=True)
class _Matrices:
    """The kernel matrix and those parts of it that depend on θ, (N, N) each.

    Only the lower triangle of ``whole`` may be read.
    """

    smooth: Array
    whole: Array
    interactions: list[AxisKernel]


@dataclass(frozen=True)
class _Data:
    """The part of the marginal likelihood that does not depend on θ.

    ``linear`` and ``quadratic`` are parts of the kernel matrix, (N, N) each, the latter for c = 1. U (N, D) are the
    parameters at Y. The kernel has ``n_interactions`` of them.
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
        """For values (N,) at Y (N, D) with noise variances (N,), and n interactions if there is a ``turn``."""
        inner = Y @ Y.T
        linear = temperature**2 * (TUNING.surrogate.offset_sd**2 + TUNING.surrogate.slope_sd**2 * inner)
        U, n = (Y, 0) if turn is None else (Y @ turn.T, n)
        return cls(Y, values, noise, temperature, linear, np.square(0.5 * inner), U, n)

    @property
    def theta_mean(self) -> Theta:
        """Mean of the prior on θ: l = 1.6√D, :func:`_side_means`, and scales of one temperature.

        Draws of q lie √D from the centre, so a length-scale of 1.6√D sees its neighbours.
        """
        length = 0.5 * math.log(self.Y.shape[1]) + TUNING.surrogate.log_length_mean
        return self.each(length, _side_means(), math.log(self.temperature))

    def each(self, length: float, sides: Sequence[Side], scale: float) -> Theta:
        """The θ of this kernel with the same number in all entries of each kind."""
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
    numbers = TUNING.surrogate
    length, plateau = numbers.log_length_mean, numbers.log_plateau_mean
    return (length, 0.0, 0.0, plateau), (length + numbers.log_second_length_shift, 0.0, 0.0, plateau)


def _prior_sds(data: _Data) -> Array:
    """Prior sds of all entries of θ, in one vector."""
    numbers = TUNING.surrogate
    side = (numbers.length_sd, numbers.axis_sd, numbers.axis_sd, numbers.axis_sd)
    return data.each(numbers.length_sd, (side, side), numbers.scale_sd).vector


def _reaches(data: _Data) -> Array:
    """Largest distance from its prior mean for each entry of θ, in one vector."""
    numbers = TUNING.surrogate
    side = (numbers.length_reach, numbers.strength_reach, numbers.axis_reach, numbers.axis_reach)
    return data.each(numbers.length_reach, (side, side), numbers.scale_reach).vector


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
    """MAP θ by ``steps`` steps of L-BFGS-B, from the better of ``warm`` and the prior mean.

    The warm start alone is not enough: q may have changed its shape, and where the kernel matrix cannot be factored the
    objective has no slope.
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
    """Lower factor of the kernel matrix. If the factorisation fails, it is tried again with more jitter.

    A θ that was learnt from other data may fit these so badly that round-off exceeds the jitter.
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
    """Surrogate of values (N,) at Y (N, D) with noise variances (N,).

    θ is learnt by MAP, from ``theta`` if given; without ``learn`` a given ``theta`` is kept. ``turn`` (D, D) maps y to
    the parameters. With it the kernel has ``n_interactions`` interactions, and without it none. ``steps`` are
    ``learning_steps`` unless given. With a ``trend`` the Gaussian process describes the values less the trend.

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
