"""Hidden-mode problems with their linear parameters integrated in closed form: fewer dimensions, the same Z.

Where ℓ is Gaussian in y − A(x)b, and b has independent normal priors, log ∫ ℓ π db is the log density of y under
N(A m, A S Aᵀ + σ²I). What is left over the other coordinates is integrated by the trapezoid rule, which knows of no
modes, or by draws of the prior.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from benchmarks.hidden_modes import hinges, intermediate, line_shapes, log_distances, orbit_signal, steering
from wsabi._core.logspace import log_sum_exp
from wsabi._core.types import Array
from wsabi.priors import Independent
from wsabi.problems import Problem
from wsabi.problems._problem import LOG_2PI

CHUNK = 50_000  # points at a time
WIDEST = 7.0  # prior sds: where a rule ends; 3e-12 of the prior lies beyond


def linear_evidence(A: Array, y: Array, mean: Array, sd: Array, noise: Array | float) -> Array:
    """log N(y; A m, A S Aᵀ + σ²I), (N,), for A (N, n, p), y (n,), m and √S (p,), σ (N,) or a number.

    With B = A√S/σ, r = (y − A m)/σ and M = I + BᵀB it is −½(rᵀr − (Bᵀr)ᵀM⁻¹(Bᵀr)) − ½ log|M| − n log σ − ½n log 2π.
    """
    n, scale = len(y), np.broadcast_to(np.asarray(noise, dtype=np.float64), (len(A),))
    B = A * sd / scale[:, None, None]
    r = (y - A @ mean) / scale[:, None]
    M = np.eye(A.shape[2]) + np.swapaxes(B, 1, 2) @ B
    c = np.einsum("nip,ni->np", B, r)
    quadratic = np.square(r).sum(axis=1) - (c * np.linalg.solve(M, c[:, :, None])[:, :, 0]).sum(axis=1)
    return np.asarray(-0.5 * quadratic - 0.5 * np.linalg.slogdet(M)[1] - n * np.log(scale) - 0.5 * n * LOG_2PI)


class Collapse(NamedTuple):
    """What is linear in a problem.

    Attributes
    ----------
    left : columns of the coordinates that are left.
    design : A (N, n, p) and σ of the points (N, D) whose other columns are not looked at, given the data.
    mean, sd : (p,) of the linear parameters.
    nodes : of the trapezoid rule along each coordinate that is left; None where it would take too many.
    """

    left: tuple[int, ...]
    design: Callable[..., tuple[Array, Array | float]]
    mean: tuple[float, ...]
    sd: tuple[float, ...]
    nodes: tuple[int, ...] | None = None


def _velocities(X: Array, *, t: Array, sd: float, **_: Any) -> tuple[Array, Array | float]:
    """An amplitude of Rayleigh scale s and a uniform phase are two normal coefficients of sd s."""
    sin, cos = orbit_signal(X[:, 0], t)
    return np.stack([sin, cos, np.ones_like(sin)], axis=2), sd


def _kinetics(X: Array, *, t: Array, **_: Any) -> tuple[Array, Array | float]:
    return intermediate(X[:, 0], X[:, 1], t)[:, :, None], X[:, 3]


def _source(X: Array, *, sensors: Array, sd: float, **_: Any) -> tuple[Array, Array | float]:
    log_d = log_distances(X[:, :2], sensors)
    return np.stack([np.ones_like(log_d), -10.0 * log_d], axis=2), sd


def _network(X: Array, *, x: Array, sd: float, **_: Any) -> tuple[Array, Array | float]:
    first, second = (np.tanh(X[:, [k]] * x + X[:, [k + 1]]) for k in (0, 3))
    return np.stack([first, second, np.ones_like(first)], axis=2), sd


def _antennas(X: Array, *, antennas: Array, sd: float, **_: Any) -> tuple[Array, Array | float]:
    cos, sin = steering(X[:, :2], antennas)
    return np.stack([np.hstack([cos, sin]), np.hstack([-sin, cos])], axis=2), sd


def _kinks(X: Array, *, t: Array, sd: float, **_: Any) -> tuple[Array, Array | float]:
    trend = np.broadcast_to(np.column_stack([np.ones_like(t), t]), (len(X), len(t), 2))
    return np.concatenate([trend, hinges(X[:, 2:4], t)], axis=2), sd


def _spectrum(X: Array, *, channels: Array, sd: float, **_: Any) -> tuple[Array, Array | float]:
    first, second = line_shapes(X[:, :3], channels)
    return np.stack([first, second, np.ones_like(first)], axis=2), sd


COLLAPSES: dict[str, Collapse] = {
    "velocities": Collapse((0,), _velocities, (0.0, 0.0, 0.0), (4.0, 4.0, 5.0), (20_001,)),
    "kinetics": Collapse((0, 1, 3), _kinetics, (1.5,), (0.8,), (481, 481, 61)),
    "source": Collapse((0, 1), _source, (35.0, 2.5), (10.0, 0.4), (801, 801)),
    "network": Collapse((0, 1, 3, 4), _network, (0.0, 0.0, 0.0), (1.5, 1.5, 1.0)),
    "antennas": Collapse((0, 1), _antennas, (0.0, 0.0), (1.0, 1.0), (1001, 1001)),
    "kinks": Collapse((2, 3), _kinks, (0.0, 0.0, 0.0, 0.0), (2.0, 1.0, 1.5, 0.8), (1001, 1001)),
    "spectrum": Collapse((0, 1, 2), _spectrum, (1.5, 1.0, 0.5), (0.7, 0.5, 0.5)),
}


def log_evidence_given(problem: Problem, U: Array) -> Array:
    """log ∫ ℓ π over the linear parameters, (N,), at base coordinates U (N, k) of those that are left."""
    collapse, prior = COLLAPSES[problem.name], cast("Independent", problem.prior)
    data = cast("partial[Array]", problem.function).keywords
    values = []
    for part in np.array_split(U, max(1, math.ceil(len(U) / CHUNK))):
        full = np.zeros((len(part), prior.dim))
        full[:, collapse.left] = part
        A, noise = collapse.design(prior.marginals.to_user(full), **data)
        values.append(linear_evidence(A, data["y"], np.array(collapse.mean), np.array(collapse.sd), noise))
    return np.concatenate(values)


def trapezoid(log_f: Callable[[Array], Array], nodes: tuple[int, ...]) -> float:
    """log ∫ f(u) N(u; 0, I) du by the trapezoid rule on [−7, 7]ᵏ; the last axes are summed at once."""
    axes = [np.linspace(-WIDEST, WIDEST, n) for n in nodes]
    rest = np.stack([grid.ravel() for grid in np.meshgrid(*axes[1:], indexing="ij")], axis=-1) if axes[1:] else None
    parts = []
    if rest is None:
        U = axes[0][:, None]
        parts.append(log_sum_exp(log_f(U) - 0.5 * np.square(U).sum(axis=1)))
    else:
        for first in axes[0]:
            U = np.column_stack([np.full(len(rest), first), rest])
            parts.append(log_sum_exp(log_f(U) - 0.5 * np.square(U).sum(axis=1)))
    steps = sum(math.log(axis[1] - axis[0]) for axis in axes)
    return log_sum_exp(np.array(parts)) + steps - 0.5 * len(nodes) * LOG_2PI
