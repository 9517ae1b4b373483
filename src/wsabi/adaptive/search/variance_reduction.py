"""How much uncertainty of ℓπ an evaluation would relieve, all in all: what a cold search chooses its next point by."""

from __future__ import annotations

import numpy as np

from wsabi._core.types import Array

__all__ = ["relative_variance", "relief"]


def relative_variance(v: Array) -> Array:
    """Var[e^g] over (e^m)², e^v(e^v − 1), g ~ N(m, v), less a factor e^v; v is held to 4 in the exponent."""
    return np.asarray(np.exp(np.minimum(v, 4.0)) * -np.expm1(-v))


def relief(v: Array, cov: Array, noise: Array, weights: Array) -> Array:
    """By how much a datum at each of M points lessens Σ_s w_s sd[e^g](s)/e^m over R witnesses s, (M,).

    What the value will be is not known, but what it leaves of the variance is,

        C(s, s) − C(x, s)²/(C(x, x) + noise)

    Parameters
    ----------
    v : (M,) predictive variances C(x, x); the last R points are the witnesses.
    cov : (M, R) predictive covariances C(x, s).
    noise : (M,) noise variances that the data would have.
    weights : (R,) w_s.

    Notes
    -----
    A witness speaks for its own neighbourhood, too, and mostly wins by that: more than the integral it estimates would
    give it. On purpose: R draws in many dimensions are too far apart to see any neighbourhood but their own, and what
    they see of each other is what the surrogate believes of its long reach. Judged by the others alone, 30 runs on
    citation were 0.084 off instead of 0.055 (root mean square), ten on yacht with 500 evaluations 0.14 instead of 0.03;
    by itself alone 0.058 and 0.05.
    """
    before = v[len(v) - len(weights) :]
    after = np.maximum(before - np.square(cov) / (v + noise)[:, None], 0.0)
    gone = weights * (np.sqrt(relative_variance(before)) - np.sqrt(relative_variance(after)))
    return np.asarray(gone.sum(axis=1))
