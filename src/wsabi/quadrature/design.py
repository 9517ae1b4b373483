"""Point sets that need no model: the first design, and the candidates among which the next sample is sought."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from wsabi._core.types import Array
from wsabi.priors import Bounded, Gaussian, Measure, Polynomial, Uniform

__all__ = ["candidates", "inside", "latin_hypercube", "spread_design"]


def latin_hypercube(n: int, dim: int, rng: np.random.Generator) -> Array:
    """n points in (0, 1)^D, (n, D), one in each of n slices of every axis."""
    slices = np.stack([rng.permutation(n) for _ in range(dim)], axis=1)
    return np.asarray((slices + rng.random((n, dim))) / n)


def spread_design(measure: Measure, n: int, rng: np.random.Generator) -> Array:
    """n points spread over the measure, (n, D): its mean, then a Latin hypercube mapped through it."""
    cube = latin_hypercube(max(n - 1, 1), measure.dim, rng)
    if isinstance(measure, Uniform):
        rest = measure.low + (measure.high - measure.low) * cube
    elif isinstance(measure, Polynomial):
        rest = measure.quantile(cube)
    elif isinstance(measure, Gaussian):
        rest = measure.mean + ndtri(cube) @ measure.factor.T
    else:
        rest = measure.sample(len(cube), rng)
    return np.concatenate([measure.mean[None, :], rest])[:n]


def inside(measure: Measure, X: Array) -> Array:
    """X (N, D), moved to the nearest point of the measure's support."""
    return np.clip(X, measure.low, measure.high) if isinstance(measure, Bounded) else X


def candidates(measure: Measure, X: Array, log_weights: Array, steps: Array, n: int, rng: np.random.Generator) -> Array:
    """n candidates, (n, D): half drawn from the measure, half around data of high weight.

    Parameters
    ----------
    X : (N, D) data.
    log_weights : (N,) log of the unnormalised probability with which each datum is a centre.
    steps : (D,) standard deviation of the step from a centre.
    """
    n_global = n // 2
    weights = np.exp(log_weights - np.max(log_weights))
    centres = X[rng.choice(len(X), size=n - n_global, p=weights / weights.sum())]
    local = centres + steps * rng.standard_normal(centres.shape)
    return np.concatenate([measure.sample(n_global, rng), inside(measure, local)])
