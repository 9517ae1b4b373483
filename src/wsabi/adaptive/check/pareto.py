"""The tail of importance weights: Pareto-smoothed importance sampling's shape k."""

from __future__ import annotations

import math

import numpy as np

from wsabi._core.types import Array

__all__ = ["pareto_k"]


def pareto_k(log_weights: Array) -> float:
    """Shape k of a generalised Pareto fitted to the largest weights (PSIS); NaN below 25 weights.

    Notes
    -----
    Zhang & Stephens' (2009) posterior mean over a grid of the profile likelihood, for the M = min(N/5, 3√N) largest
    weights, pulled to ½ by a weak prior worth ten observations as in Vehtari et al. (2024). Below 0.5 the variance of
    the mean is finite; above 0.7 neither the mean nor its standard error can be trusted.
    """
    n = len(log_weights)
    if n < 25:
        return math.nan
    tail = math.ceil(min(0.2 * n, 3.0 * math.sqrt(n)))
    if not np.any(np.isfinite(log_weights)):
        return math.nan
    ordered = np.sort(np.exp(log_weights - np.max(log_weights)))
    excess = ordered[-tail:] - ordered[-tail - 1]
    excess = excess[excess > 0.0]
    if len(excess) < 5:  # all but equal weights have no tail; a handful beside nothing is all tail
        return 0.0 if ordered[-tail - 1] > 0.0 else math.inf
    m = len(excess)
    grid = np.arange(1, 31 + int(math.sqrt(m)))
    quartile = excess[max(int(m / 4 + 0.5) - 1, 0)]
    b = 1.0 / excess[-1] + (1.0 - np.sqrt(grid[-1] / (grid - 0.5))) / (3.0 * quartile)
    k = np.array([np.mean(np.log1p(-value * excess)) for value in b])
    log_likelihood = m * (np.log(-b / k) - k - 1.0)
    weight = np.exp(log_likelihood - np.max(log_likelihood))
    best = float(weight @ b / weight.sum())
    shape = float(np.mean(np.log1p(-best * excess)))
    return (m * shape + 10.0 * 0.5) / (m + 10.0)
