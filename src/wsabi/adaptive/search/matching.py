"""Matching: move q to the moments of the surrogate's tempered posterior, which costs no evaluation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from wsabi._core.linalg import cholesky, log_det, solve_lower
from wsabi._core.types import Array
from wsabi.adaptive.search.explorer import Explorer, max_data
from wsabi.adaptive.surrogate.students import truncated
from wsabi.adaptive.surrogate.theta import n_coefficients
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import NumericalError

__all__ = ["divergence", "log_student", "matched", "matched_until_still", "relearnt", "rematched", "student_noise"]


def divergence(shift: Array, factor: Array) -> float:
    """KL(N(shift, factor·factorᵀ) ‖ N(0, I)) in nats."""
    return 0.5 * float(np.square(factor).sum() + shift @ shift - len(shift) - log_det(factor))


def matched(explorer: Explorer, X: Array, log_l: Array, rng: np.random.Generator) -> Explorer:
    """The explorer with its surrogate fitted to X (N, D), log ℓ (N,), and q moved to the surrogate's posterior.

    θ is learnt as the data grow.

    Raises
    ------
    NumericalError
        If the surrogate cannot be fitted.
    """
    numbers, dim = TUNING.search, explorer.measure.dim
    young = not explorer.learnt_n <= len(X) < numbers.learn_growth * explorer.learnt_n
    explorer = explorer.fitted(X, log_l, learn=young)
    if not explorer.learnt_n:  # it has turned cold, or hot
        explorer = explorer.fitted(X, log_l, learn=True)
    shift, factor, log_mass, uncertainty = _moments(explorer, numbers.caution, rng)
    if uncertainty > numbers.ignorant:
        shift, factor, log_mass, uncertainty = _moments(explorer, numbers.more_caution * numbers.caution, rng)
    shift, cov = _trusted(
        shift, factor, dim, extrapolates=dim <= TUNING.surrogate.many_dimensions or uncertainty > numbers.known
    )
    drift = divergence(shift, cholesky(cov))
    surrogate, frame = explorer.fitted_surrogate, explorer.frame.move(shift, cov)
    moved = replace(
        explorer,
        uncertainty=uncertainty,
        log_z=log_mass + explorer.top / explorer.temperature + explorer.frame.log_det,
        matched_temperature=explorer.temperature,
        drift=drift,
        frame=frame,
        surrogate=replace(surrogate, theta=explorer.frame.theta_in(frame, surrogate.theta)),
    )
    # θ goes with q, but where q has changed much along every axis other lengths may be better.
    return moved.fitted(X, log_l, learn=drift > numbers.relearning_drift * dim)


def _trusted(shift: Array, factor: Array, dim: int, *, extrapolates: bool) -> tuple[Array, Array]:
    """A step of q, its mean (D,) and covariance (D, D), held to what the surrogate can know.

    One step moves q by no more than its own size, changes it no more than threefold along an axis, and no more than
    doubles its volume: beyond, the surrogate was extrapolating.
    """
    reach = 2.0 * math.sqrt(dim) / max(float(np.linalg.norm(shift)), TUNING.search.no_step)
    most = TUNING.search.most_stretch
    values, vectors = np.linalg.eigh(factor @ factor.T)
    values = np.clip(values, 1.0 / most**2, most**2)
    growth = 0.5 * float(np.log(values).sum())
    if extrapolates and growth > math.log(2.0):
        values = np.where(values > 1.0, values ** (math.log(2.0) / growth), values)
    return min(1.0, reach) * shift, (vectors * values) @ vectors.T


def matched_until_still(explorer: Explorer, X: Array, log_l: Array, rng: np.random.Generator) -> Explorer:
    """The explorer with q matched again and again to the same data, until it is cold and stands still."""
    for _ in range(int(TUNING.search.most_matches)):
        if explorer.is_cold and explorer.drift < TUNING.search.still_drift * explorer.measure.dim:
            break
        try:
            explorer = matched(explorer, X, log_l, rng)
        except NumericalError:
            break
    return explorer


def rematched(explorer: Explorer, X: Array, log_l: Array, rng: np.random.Generator) -> Explorer:
    """The explorer with q matched to more data; itself, where that failed or lost most of the mass it had.

    A loss is believed where the surrogate knows log ℓ to half a nat: then it was the old one that was wrong. The mass
    of an explorer that was still hot is no mass to compare with.
    """
    try:
        moved = matched(explorer, X, log_l, rng)
    except NumericalError:
        return explorer
    kept = not explorer.is_cold or moved.log_z > explorer.log_z - 1.0 or moved.uncertainty < 0.5
    return moved if moved.is_cold and kept else explorer


def relearnt(explorer: Explorer, X: Array, log_l: Array, rng: np.random.Generator) -> Explorer:
    """The same q with a surrogate that has learnt θ from X (N, D), log ℓ (N,); the explorer itself, where that failed.

    Learning takes scores of factorisations, so θ is that of :func:`max_data` points; the surrogate has more, if there
    are more. Where these lie so close together that another θ would be theirs, the surrogate may soar between them:
    more data that leave it more uncertain are not taken.
    """
    numbers, dim = TUNING.search, explorer.measure.dim
    kernel = int(numbers.last_interactions)
    try:
        learnt = explorer.fitted(
            X, log_l, learn=True, steps=2 * int(TUNING.surrogate.learning_steps), n_interactions=kernel
        )
    except NumericalError:
        return explorer
    if learnt.temperature != explorer.temperature:
        return explorer
    if len(X) <= max_data(dim):
        return learnt
    try:
        fuller = learnt.fitted(X, log_l, limit=max_data(dim, int(numbers.last_data)), n_interactions=kernel)
    except NumericalError:
        return learnt
    noise = student_noise(int(numbers.draws), dim, rng)
    return fuller if _mean_sd(fuller, noise) <= _mean_sd(learnt, noise) else learnt


def _mean_sd(explorer: Explorer, noise: Array) -> float:
    """The surrogate's sd of log ℓ, averaged over its posterior by draws (M, D) of the Student-t round q."""
    log_t, variance = explorer.log_target(noise, 0.0)
    if not np.any(np.isfinite(log_t)):
        return math.inf
    w = truncated(log_t - log_student(noise))
    return float(w @ np.sqrt(variance)) / float(w.sum())


def _moments(explorer: Explorer, caution: float, rng: np.random.Generator) -> tuple[Array, Array, float, float]:
    """Mean (D,), factor (D, D) and log mass of the tempered posterior, and the surrogate's mean sd there.

    By iterated importance sampling: each step draws from the Gaussian of the step before.
    """
    numbers, dim = TUNING.search, explorer.measure.dim
    shift, factor = np.zeros(dim), np.eye(dim)
    log_mass = uncertainty = -math.inf
    noise = student_noise(_n_draws(dim), dim, rng)  # the same at every step: q then stands still where it has arrived
    log_noise = log_student(noise)
    for step in range(int(numbers.most_steps)):
        Y = shift + noise @ factor.T
        log_t, variance = explorer.log_target(Y, caution)
        log_w = log_t - log_noise + 0.5 * log_det(factor)
        if np.count_nonzero(np.isfinite(log_w)) <= dim:  # too few for a covariance: closer, round the best datum
            data = explorer.fitted_surrogate.Y
            best = int(np.argmax(explorer.log_target(data, caution)[0]))
            return data[best], 0.5 * factor, -math.inf, math.inf
        w = truncated(log_w)
        log_mass = float(np.max(log_w)) + math.log(float(w.mean()))
        uncertainty = float(w @ np.sqrt(variance)) / float(w.sum())
        mean, new_factor, is_whole = _weighted_moments(explorer, Y, log_w)
        moved = divergence(solve_lower(factor, mean - shift), solve_lower(factor, new_factor))
        shift, factor = mean, new_factor
        if is_whole and step >= 2 and moved < numbers.settled_step * dim:
            break
    return shift, factor, log_mass, uncertainty


def _weighted_moments(explorer: Explorer, Y: Array, log_w: Array) -> tuple[Array, Array, bool]:
    """Mean (D,) and factor (D, D) of draws Y (N, D) with log weights (N,), and whether the weights are as given.

    Weights too uneven for D moments are flattened until they are not: q goes part of the way, and the next step starts
    from there. What is infeasible stays so.
    """
    numbers, dim = TUNING.search, Y.shape[1]
    with np.errstate(divide="ignore"):
        log_f = np.log(explorer.feasible(Y))
    possible = np.isfinite(log_w)
    Y, log_w, log_f = Y[possible], log_w[possible] - float(np.max(log_w)), log_f[possible]
    power = _flattening(log_w - log_f, log_f, numbers.least_draws_per_dim * dim + numbers.least_draws)
    w = truncated(power * (log_w - log_f) + log_f)
    w /= w.sum()
    mean = w @ Y
    cov = (Y - mean).T @ ((Y - mean) * w[:, None])
    cov[np.diag_indices(dim)] += numbers.covariance_jitter * np.trace(cov) / dim
    return mean, cholesky(cov), power == 1.0


def _flattening(log_w: Array, log_f: Array, wanted: float) -> float:
    """The largest β ≤ 1 for which the weights exp(β log_w + log_f), (M,) each, count for ``wanted`` draws.

    Where exp(log_f) alone counts for fewer than that it is a thousandth.
    """

    def effective(power: float) -> float:
        w = truncated(power * log_w + log_f)
        return float(w.sum() ** 2 / np.square(w).sum())

    if effective(1.0) >= wanted:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(10):  # to a thousandth
        middle = 0.5 * (low + high)
        low, high = (middle, high) if effective(middle) >= wanted else (low, middle)
    return low or high


# -- draws of a widened q ---------------------------------------------------------------------------------------------


def _n_draws(dim: int) -> int:
    """Number of importance draws per matching step in ``dim`` dimensions."""
    numbers = TUNING.search
    return int(
        numbers.draws
        if dim <= TUNING.surrogate.many_dimensions
        else numbers.draws_per_coefficient * n_coefficients(dim)
    )


def student_noise(n: int, dim: int, rng: np.random.Generator) -> Array:
    """n draws, (n, D), of the Student-t of :func:`log_student`."""
    tail = TUNING.search.tail
    noise = rng.standard_normal((n, dim))
    return noise * np.sqrt(TUNING.search.wider * tail / rng.chisquare(tail, n))[:, None]


def log_student(noise: Array) -> Array:
    """log density (M,) of a Student-t in D dimensions, with the ``tail`` degrees of freedom and the scale wider·I."""
    dim, tail, wider = noise.shape[1], TUNING.search.tail, TUNING.search.wider
    squares = np.square(noise).sum(axis=1) / wider
    constant = math.lgamma(0.5 * (tail + dim)) - math.lgamma(0.5 * tail) - 0.5 * dim * math.log(tail * math.pi * wider)
    return np.asarray(constant - 0.5 * (tail + dim) * np.log1p(squares / tail))
