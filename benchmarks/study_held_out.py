"""The truths of benchmarks/held_out.py, made again.

    python -m benchmarks.study_held_out [NAME] [--seed S] [--smc]

prints how far they are from the stored ones, in standard errors. Each by adaptive importance sampling in coordinates
where the prior is N(0, I), with the machinery of benchmarks.study_truths; where the integral can be done otherwise
(closed form, or quadrature over what is left once the rest is integrated in closed form), also by that, and that is
what is stored. For the others ``--smc`` adds a tempered population from the prior, which knows of no mode search.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from scipy import special

from benchmarks.held_out import CASES, EXACT, HeldOut, Prior
from benchmarks.measuring import print_table
from benchmarks.study_truths import Case, Target, find_modes, importance_sample
from wsabi import Gaussian, Independent, Uniform
from wsabi._core.logspace import log_sum_exp
from wsabi._core.types import Array
from wsabi.problems import Problem
from wsabi.problems._problem import LOG_2PI

BATCH = 20_000  # points at a time: a problem with 60 observations then needs 10 MB per array


def to_base(problem: Problem) -> Problem:
    """The same Z in coordinates u ~ N(0, I): x = μ + Lu for a Gaussian, x_d = F_d⁻¹(Φ(u_d)) for independent axes."""

    def log_l(U: Array) -> Array:
        parts = np.array_split(U, max(1, math.ceil(len(U) / BATCH)))
        return np.concatenate([problem.log_likelihood_vectorized(from_base(problem, part)) for part in parts])

    unit = Gaussian(np.zeros(problem.dim))
    return Problem(problem.name, unit, log_l, problem.log_z, problem.log_z_std, problem.description, problem.reference)


def from_base(problem: Problem, U: Array) -> Array:
    """x(u), (N, D), for U (N, D)."""
    prior = cast("Prior", problem.prior)
    if isinstance(prior, Gaussian):
        return np.asarray(prior.mean + U @ prior.factor.T)
    if isinstance(prior, Uniform):
        return np.asarray(prior.low + (prior.high - prior.low) * special.ndtr(U))
    if isinstance(prior, Independent):
        return prior.marginals.to_user(U)
    raise TypeError(f"prior must be Gaussian, Uniform or Independent; got {type(prior).__name__}.")


def exact(problem: Problem) -> float | None:
    """log Z by the way that the problem's form allows, or None where it allows none."""
    if problem.name not in EXACT:
        return None
    return EXACT[problem.name](problem.prior, **cast("partial[Array]", problem.function).keywords)


def lattice(problem: Problem, n: int) -> float:
    """log Z of a 3-D problem in base coordinates by the trapezoid rule on [−7, 7]³, n nodes an axis."""
    u, step = np.linspace(-7.0, 7.0, n, retstep=True)
    plane = np.column_stack([np.repeat(u, n), np.tile(u, n)])
    slabs = []
    for first in u:
        points = np.column_stack([np.full(n * n, first), plane])
        slabs.append(log_sum_exp(problem.log_likelihood_vectorized(points) - 0.5 * np.square(points).sum(axis=1)))
    return log_sum_exp(np.array(slabs)) - 1.5 * LOG_2PI + 3.0 * math.log(step)


def tempered(problem: Problem, rng: np.random.Generator, n: int = 5000, sweeps: int = 12) -> float:
    """log Z of a problem in base coordinates by sequential Monte Carlo along ℓ^β π, β from 0 to 1.

    Each β keeps 90 % of the particles effective; each sweep is a random-walk Metropolis step of all particles with
    their own covariance, its scale drawn anew so that narrow and wide parts both move.
    """
    U = rng.standard_normal((n, problem.dim))
    log_l, beta, log_z = problem.log_likelihood_vectorized(U), 0.0, 0.0
    while beta < 1.0:
        step = _next_step(log_l, 1.0 - beta)
        w = np.exp(step * (log_l - log_l.max()))
        log_z += step * float(log_l.max()) + math.log(w.mean())
        beta += step
        kept = np.searchsorted(np.cumsum(w / w.sum()), (np.arange(n) + rng.random()) / n * (1.0 - 1e-12))
        U, log_l = U[kept], log_l[kept]
        L = np.linalg.cholesky(np.cov(U.T) + 1e-12 * np.eye(problem.dim))
        for scale in 2.4 / math.sqrt(problem.dim) * np.exp(rng.uniform(-2.0, 0.3, sweeps)):
            proposed = U + scale * rng.standard_normal(U.shape) @ L.T
            new = problem.log_likelihood_vectorized(proposed)
            log_ratio = beta * (new - log_l) - 0.5 * (np.square(proposed).sum(axis=1) - np.square(U).sum(axis=1))
            moved = np.log(rng.random(n)) < log_ratio
            U[moved], log_l[moved] = proposed[moved], new[moved]
    return log_z


def _next_step(log_l: Array, longest: float, share: float = 0.9) -> float:
    """The step of β at which the effective number of weights ℓ^step is ``share`` of all, by bisection."""

    def effective(step: float) -> float:
        w = np.exp(step * (log_l - log_l.max()))
        return float(np.square(w.sum()) / np.square(w).sum()) / len(w)

    if effective(longest) >= share:
        return longest
    low, high = 0.0, longest
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if effective(middle) >= share else (low, middle)
    return low


EFFORT: dict[str, dict[str, Any]] = {
    "gp": {"starts": 20, "adapt": 2500, "final": 60_000},
    "period": {"starts": 300},
    "lines": {"starts": 150},
    "three": {"starts": 300},
    "schools": {"adapt": 20_000, "rounds": 3, "components": 4},
}
LATTICE = {"on_off": 201, "beacons": 401}


def methods(problem: Problem, seed: int, smc: bool) -> list[tuple[str, float, float, str]]:
    """The ways to make the truth: name, log Z, its standard error and a remark."""
    rng, base = np.random.default_rng(seed), to_base(problem)
    effort: dict[str, Any] = {
        "starts": 40,
        "rounds": 6,
        "adapt": 4000,
        "final": 200_000,
        "components": 16,
    } | EFFORT.get(problem.name, {})
    modes = find_modes(Target(base), effort["starts"], rng)
    last = importance_sample(Target(base), Case(problem.name, **effort), modes, rng)[-1]
    remark = f"{len(modes)} modes, {last.effective:.0f} effective, Pareto k {last.pareto_k:.2f}"
    found = [("importance", last.log_z, last.log_z_std, remark)]
    value = exact(problem)
    if value is not None:
        found.append(("exact", value, 0.0, ""))
    if problem.name in LATTICE:
        fine, coarse = (lattice(base, n) for n in (LATTICE[problem.name], 2 * LATTICE[problem.name] // 3))
        found.append(("lattice", fine, abs(fine - coarse), "error: change from the coarser lattice"))
    if smc and len(found) == 1:
        size, repeats = (1000, 4) if problem.name == "gp" else (5000, 6)
        runs = [tempered(base, rng, size) for _ in range(repeats)]
        found.append(("SMC", float(np.mean(runs)), float(np.std(runs, ddof=1)) / math.sqrt(repeats), f"{repeats} runs"))
    return found


def study(case: HeldOut, seed: int, smc: bool) -> None:
    """Make one truth in every way, and print each beside the stored one."""
    problem = case.maker()
    started = time.perf_counter()
    rows = []
    for method, log_z, std, remark in methods(problem, seed, smc):
        distance = (log_z - problem.log_z) / math.hypot(std, problem.log_z_std)
        rows.append([method, f"{log_z:.5f}", f"{std:.5f}", f"{distance:+.2f}", remark])
    seconds = time.perf_counter() - started
    print(f"== {problem.name} ({case.label}): stored {problem.log_z:.5f} ± {problem.log_z_std:.5f}; {seconds:.0f} s")
    print_table(rows, ("method", "log Z", "std. error", "distance", "remark"))
    print(flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [case.maker.__name__ for case in CASES]
    parser.add_argument("name", nargs="?", choices=names, help="one problem; all of them if left out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smc", action="store_true", help="a tempered population too, where nothing is exact")
    chosen = parser.parse_args(arguments)
    for case in CASES:
        if chosen.name in (None, case.maker.__name__):
            study(case, chosen.seed, chosen.smc)


if __name__ == "__main__":
    main()
