"""The only place where likelihoods leave log space: scaled so that their maximum is one."""

from __future__ import annotations

import math

import numpy as np

from wsabi._core.types import Array

__all__ = ["log_ratio_std", "log_sum_exp", "safe_log", "scaled_likelihood"]


def scaled_likelihood(log_l: Array) -> tuple[Array, float]:
    """ℓ = exp(log ℓ − max log ℓ), (N,), and the maximum.

    Raises
    ------
    ValueError
        If every value is −inf: there is nothing to scale by.
    """
    log_l_max = float(np.max(log_l))
    if not math.isfinite(log_l_max):
        raise ValueError(f"no finite log-likelihood among {len(log_l)} values.")
    return np.exp(log_l - log_l_max), log_l_max


def safe_log(x: float) -> float:
    """log x, with log 0 = −inf and no warning."""
    return math.log(x) if x > 0.0 else -math.inf


def log_sum_exp(a: Array) -> float:
    """log Σ exp a_n; −inf where every a_n is."""
    top = float(np.max(a))
    if not math.isfinite(top):
        return top
    return top + math.log(float(np.exp(a - top).sum()))


def log_ratio_std(log_mean: float, log_var: float) -> float:
    """Standard deviation of log Z for a log-normal with the given mean and variance: √log(1 + V/E²).

    For small V/E² this is the relative error √V/E; unlike it, it stays finite in log space for any ratio.
    """
    if log_mean == -math.inf:
        return math.inf
    return math.sqrt(float(np.logaddexp(0.0, log_var - 2.0 * log_mean)))
