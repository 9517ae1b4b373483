"""The kernel of the surrogate written out, one entry at a time, and small data to compare with."""

from __future__ import annotations

import math

import numpy as np

from wsabi.adaptive.surrogate import learning
from wsabi.adaptive.surrogate.learning import fit_log_surrogate
from wsabi.adaptive.surrogate.model import LogSurrogate
from wsabi.adaptive.surrogate.theta import Theta
from wsabi.adaptive.tuning import TUNING, tuned

TEMPERATURE = 3.0
OFFSET, SLOPE = TUNING.surrogate.offset_sd, TUNING.surrogate.slope_sd
without_jitter = tuned("surrogate", jitter=0.0)  # which follows the mean diagonal of what is factored at once


def a_theta(dim: int) -> Theta:
    """All different, so that no swapped pair passes; from three dimensions on with two interactions."""
    lengths, d = np.log(1.7 * 0.8 ** np.arange(dim)), np.arange(dim)
    sides = np.array([np.log(1.3 * 1.2**d), np.log(0.6 * 1.3**d), 0.4 - 0.3 * d, np.log(2.0 * 1.1**d)])
    both = np.stack([sides, 0.7 * sides + 0.1])[: 2 if dim >= 3 else 0]
    return Theta(lengths, both, np.log([2.5, 0.8, 1.9, 1.4][: 2 + len(both)]))


def a_turn(dim: int) -> np.ndarray | None:
    """A matrix that is neither symmetric nor orthogonal; None below three dimensions."""
    return np.eye(dim) + 0.3 * np.random.default_rng(77).standard_normal((dim, dim)) if dim >= 3 else None


def dense_interactions(u: np.ndarray, v: np.ndarray, sides: np.ndarray) -> float:
    """The product over parameters, each on its bent axis, written out."""
    h, a, s = np.exp(sides[[0, 1, 3]])
    p = 1.0
    for d in range(len(u)):
        there, here = (s[d] / h[d] * math.tanh((x[d] - sides[2, d]) / s[d]) for x in (u, v))
        p *= (1.0 + a[d] / (1.0 + (there - here) ** 2)) / (1.0 + a[d])
    return p


def dense_kernel(P: np.ndarray, Q: np.ndarray, theta: Theta, temperature: float) -> np.ndarray:
    """k(p, q) of the docstring, one pair at a time."""
    lengths, (scale, curvature, *sigmas) = np.exp(theta.lengths), np.exp(theta.scales)
    turn = a_turn(P.shape[1])
    k = np.empty((len(P), len(Q)))
    for i, p in enumerate(P):
        for j, q in enumerate(Q):
            gap, inner = p - q, float(p @ q)
            k[i, j] = (
                temperature**2 * (TUNING.surrogate.offset_sd**2 + TUNING.surrogate.slope_sd**2 * inner)
                + 0.25 * curvature**2 * inner**2
            )
            k[i, j] += scale**2 * math.exp(-0.5 * sum((gap[d] / lengths[d]) ** 2 for d in range(len(gap))))
            for sigma, sides in zip(sigmas, theta.sides, strict=True):
                k[i, j] += sigma**2 * dense_interactions(turn @ p, turn @ q, sides)  # type: ignore[operator]
    return k


def dense_covariance(Y: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Kernel matrix of the data, with noise and the relative jitter."""
    K = dense_kernel(Y, Y, a_theta(Y.shape[1]), TEMPERATURE)
    return K + np.diag(noise) + TUNING.surrogate.jitter * np.mean(np.diag(K)) * np.eye(len(Y))


def data(dim: int, n: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(dim)
    Y = rng.standard_normal((n, dim))
    return Y, np.sin(Y.sum(axis=1)) - np.square(Y).sum(axis=1), rng.uniform(0.05, 0.5, n)


def fitted(dim: int) -> tuple[LogSurrogate, np.ndarray, np.ndarray, np.ndarray]:
    Y, values, noise = data(dim)
    surrogate = fit_log_surrogate(
        Y, values, noise, temperature=TEMPERATURE, turn=a_turn(dim), n_interactions=2, theta=a_theta(dim), learn=False
    )
    return surrogate, Y, values, noise


def a_bundle(Y: np.ndarray, values: np.ndarray, noise: np.ndarray, temperature: float = TEMPERATURE) -> learning._Data:
    return learning._Data.of(Y, values, noise, temperature, a_turn(Y.shape[1]), 2)
