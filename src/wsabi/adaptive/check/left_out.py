"""Leaving out: every evaluation, predicted by the surrogates without it.

Points that the engine has not chosen are draws of no known density, so they cannot check the integral as check points
do. But each of them checks the surrogate that the others make.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.search.ground import inflation
from wsabi.adaptive.tuning import TUNING
from wsabi.priors import Measure

__all__ = ["log_score", "overconfidence_left_out"]


def overconfidence_left_out(explorers: Sequence[Explorer], measure: Measure, X: Array, log_l: Array) -> float:
    """Root mean square of the surrogates' errors in units of their predictive sds, and one at least.

    Each evaluation, of X (N, D) and log ℓ (N,), is left out of the surrogate that predicts it. It counts by √(ℓπ):
    where points are dense is not known, and ℓπ itself would leave it to a few of them.
    """
    X, log_l, weights = _feasible(measure, X, log_l)
    z, _ = _left_out(explorers, X, log_l)
    z = np.minimum(np.abs(z), TUNING.check.max_standard_error)
    return max(1.0, math.sqrt(float(weights @ np.square(z)) / float(weights.sum())))


def log_score(explorers: Sequence[Explorer], measure: Measure, X: Array, log_l: Array) -> float:
    """Sum of the log densities that the surrogates give to evaluations left out; the higher, the better they predict.

    With z the error in units of its sd s it is −Σ w log(s (1 + z²)), that of Cauchy's density, and w as in
    :func:`overconfidence_left_out`. By a normal density one error in the tails of all regions would outweigh the rest.
    """
    X, log_l, weights = _feasible(measure, X, log_l)
    z, sd = _left_out(explorers, X, log_l)
    return -float(weights @ (np.log1p(np.square(z)) + np.log(sd)))


def _feasible(measure: Measure, X: Array, log_l: Array) -> tuple[Array, Array, Array]:
    """The evaluations where ℓ > 0, and √(ℓπ) there, (N,), relative to the highest."""
    feasible = np.isfinite(log_l)
    X, log_l = X[feasible], log_l[feasible]
    log_joint = log_l + measure.log_pdf(X)
    return X, log_l, np.exp(0.5 * (log_joint - np.max(log_joint)))


def _left_out(explorers: Sequence[Explorer], X: Array, log_l: Array) -> tuple[Array, Array]:
    """Errors in units of their sds, and the sds, (N,) each: in each place by the region of largest w_k q_k."""
    wide = [one.log_z + one.frame.scaled(inflation(X.shape[1])).log_density(X) for one in explorers]
    owner = np.argmax(wide, axis=0)
    z, sd = np.zeros(len(X)), np.ones(len(X))
    for k, explorer in enumerate(explorers):
        mine = np.flatnonzero(owner == k)
        if len(mine):
            z[mine], sd[mine] = explorer.left_out(X[mine], log_l[mine])
    return z, sd
