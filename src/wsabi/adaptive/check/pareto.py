"""The tail of importance weights: Pareto-smoothed importance sampling (Vehtari et al., 2024)."""

from __future__ import annotations

import math

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.tuning import TUNING

__all__ = ["pareto_k", "smoothed"]


def pareto_k(log_weights: Array) -> float:
    """Shape k of a generalised Pareto fitted to the largest weights; NaN below 25 weights.

    Notes
    -----
    Zhang & Stephens' (2009) posterior mean over a grid of the profile likelihood, for the M = min(N/5, 3√N) largest
    weights, shrunk towards ½ by a weak prior worth ten observations (Vehtari et al., 2024). Below 0.5 the variance of
    the mean is finite. Above 0.7 neither the mean nor its standard error can be trusted.
    """
    if not _can_be_fitted(log_weights):
        return math.nan
    ordered = np.sort(np.exp(log_weights - np.max(log_weights)))
    tail = _tail_length(len(ordered))
    cutoff = float(ordered[-tail - 1])
    excess = ordered[-tail:] - cutoff
    excess = excess[excess > 0.0]
    if (
        len(excess) < TUNING.check.min_tail
    ):  # nearly equal weights have no tail; a few weights beside zeros are all tail
        return 0.0 if cutoff > 0.0 else math.inf
    return _fitted(excess)[0]


def smoothed(log_weights: Array) -> Array:
    """log weights (N,) whose M largest are replaced by the expected order statistics of a generalised Pareto.

    w_(m) = u + (σ/k)((1 − (m − ½)/M)^−k − 1)

    with k and σ fitted to the M largest weights, and u the largest weight below them. No smoothed weight exceeds the
    largest weight. A weight that is large by chance then counts as much as the tail predicts. Weights are not changed
    if there are fewer than 25, or if some of the tail equal u.
    """
    if not _can_be_fitted(log_weights):
        return log_weights
    top = float(np.max(log_weights))
    weights = np.exp(log_weights - top)
    order = np.argsort(weights)
    tail = order[-_tail_length(len(weights)) :]
    cutoff = float(weights[order[-len(tail) - 1]])
    excess = weights[tail] - cutoff
    # Where weights of the tail equal the cut-off, there is no tail to smooth.
    if np.count_nonzero(excess > 0.0) < max(TUNING.check.min_tail, len(tail)):
        return log_weights
    k, sigma = _fitted(excess)
    upper = 1.0 - (np.arange(1, len(tail) + 1) - 0.5) / len(tail)  # the share of the tail above each
    is_exponential = abs(k) < TUNING.check.exponential_tail
    with np.errstate(over="ignore", invalid="ignore"):  # the end of a very heavy tail overflows; fmin bounds it
        expected = -sigma * np.log(upper) if is_exponential else sigma / k * np.expm1(-k * np.log(upper))
    found = log_weights.copy()
    found[tail] = top + np.log(np.fmin(cutoff + expected, 1.0))
    return found


def _can_be_fitted(log_weights: Array) -> bool:
    """Whether a fifth of the weights (N,) are enough for a tail, and any of them is above zero."""
    few = len(log_weights) < TUNING.check.min_tail / TUNING.check.tail_share
    return not few and bool(np.any(np.isfinite(log_weights)))


def _tail_length(n: int) -> int:
    """M = min(N/5, 3√N)."""
    return math.ceil(min(TUNING.check.tail_share * n, TUNING.check.tail_root * math.sqrt(n)))


def _fitted(excess: Array) -> tuple[float, float]:
    """Shape k and scale σ of a generalised Pareto, from its ordered excesses (M,) above zero."""
    m, numbers = len(excess), TUNING.check
    grid = np.arange(1, numbers.tail_grid + 1 + int(math.sqrt(m)))
    quartile = excess[max(int(numbers.tail_quantile * m + 0.5) - 1, 0)]
    b = 1.0 / excess[-1] + (1.0 - np.sqrt(grid[-1] / (grid - 0.5))) / (numbers.tail_grid_scale * quartile)
    k = np.array([np.mean(np.log1p(-value * excess)) for value in b])
    log_likelihood = m * (np.log(-b / k) - k - 1.0)
    weight = np.exp(log_likelihood - np.max(log_likelihood))
    best = float(weight @ b / weight.sum())
    shape = float(np.mean(np.log1p(-best * excess)))
    return (m * shape + numbers.tail_prior * numbers.tail_prior_mean) / (m + numbers.tail_prior), -shape / best
