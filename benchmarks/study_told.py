"""Told points alone: does log Z of points that somebody else chose hold the truth, and how far off is it?

    python -m benchmarks.study_told [SEEDS]        # of each design; 3 unless given

The points of a problem come from the prior, from a Markov chain that walks over the posterior (as of a sampler that the
user has run before), or from another run of the engine. They are told to an Integrator that is asked for none.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import wsabi
from benchmarks.measuring import print_table
from wsabi import problems
from wsabi._core.types import Array
from wsabi.problems import Problem

PROBLEMS: dict[str, Callable[[], Problem]] = {
    "gaussian, 5-D": lambda: problems.correlated_gaussian(dim=5, rho=0.5, sd=0.4),
    "two bumps": lambda: problems.two_bumps(dim=2, separation=2.0, sd=0.25),
    "two bumps, 4-D": lambda: problems.two_bumps(dim=4, separation=1.5, sd=0.35),
    "banana": problems.banana,
    "student": lambda: problems.student_tails(sd=0.3),
    "infeasible half": problems.infeasible_half,
    "ridge": lambda: problems.ridge(dim=2, width=0.3),
    "narrow bumps": lambda: problems.two_bumps(dim=3, separation=3.0, sd=0.1),
    "spike on a hill": lambda: _spike(3),
}


def _spike(dim: int) -> Problem:
    """Half of the mass on a hill as wide as the prior, and half of it in a spike a seventh as wide."""
    parts = [wsabi.Gaussian(np.full(dim, -0.5), np.eye(dim)), wsabi.Gaussian(np.full(dim, 0.7), 0.15**2 * np.eye(dim))]
    prior = wsabi.Gaussian(np.zeros(dim))
    masses = [wsabi.Gaussian(np.zeros(dim), part.cov + np.eye(dim)).log_pdf(part.mean[None])[0] for part in parts]

    def function(X: Array) -> Array:
        return np.logaddexp(*[part.log_pdf(X) - mass for part, mass in zip(parts, masses, strict=True)])

    return Problem("spike", prior, function, float(np.log(2.0)), 0.0, "a spike on a hill", "exact")


SIZES = {"prior": (30, 200, 500), "chain": (200, 500), "run": (100, 300)}


def points(problem: Problem, design: str, n: int, seed: int) -> tuple[Array, Array]:
    """n points (n, D) of a design, and log ℓ (n,) there."""
    rng = np.random.default_rng([seed, n])
    if design == "prior":
        X = problem.prior.sample(n, rng)
    elif design == "chain":
        X = chain(problem, n, rng)
    else:
        run = wsabi.integrate(
            problem.log_likelihood_vectorized, problem.prior, budget=n, tol=0, rng=seed, vectorized=True
        )
        X = run.points
    return X, problem.log_likelihood_vectorized(X)


def chain(problem: Problem, n: int, rng: np.random.Generator) -> Array:
    """States that n proposals of a Metropolis walk of 8 walkers have been to, from draws of the prior; all are told."""
    walkers = problem.prior.sample(8, rng)
    log_p = problem.log_likelihood_vectorized(walkers) + problem.prior.log_pdf(walkers)
    sd, met = np.sqrt(np.diag(problem.prior.cov)), [walkers]
    for _ in range((n - 1) // 8):
        scale = sd * np.exp(rng.uniform(np.log(0.05), 0.0, size=(8, 1)))
        tried = walkers + scale * rng.standard_normal(walkers.shape)
        new = problem.log_likelihood_vectorized(tried) + problem.prior.log_pdf(tried)
        goes = log_p + np.log(rng.uniform(size=8)) < new
        walkers, log_p = np.where(goes[:, None], tried, walkers), np.where(goes, new, log_p)
        met.append(tried)
    return np.concatenate(met)[:n]


def told(problem: Problem, X: Array, log_l: Array) -> dict[str, Any]:
    """What an Integrator says of points told."""
    begun = time.process_time()
    integrator = wsabi.Integrator(problem.prior, rng=0)
    integrator.tell(X, log_l)
    result = integrator.result()
    off = result.log_z - problem.log_z
    return {
        "off": off, "bar": result.log_z_std, "z": off / result.log_z_std, "regions": len(result.searches),
        "seconds": time.process_time() - begun, "method": "models" if result.certificate else "plain",
    }  # fmt: skip


def main(seeds: int) -> None:
    warnings.simplefilter("ignore", wsabi.EvidenceWarning)
    rows, outside, every = [], 0, 0
    for name, make in PROBLEMS.items():
        problem = make()
        for design, sizes in SIZES.items():
            for n in sizes:
                found = [told(problem, *points(problem, design, n, seed)) for seed in range(seeds)]
                off = np.array([one["off"] for one in found])
                beyond = int(np.sum(np.abs([one["z"] for one in found]) > 2.0))
                outside, every = outside + beyond, every + seeds
                rows.append(
                    (name, design, str(n), f"{np.sqrt(np.mean(off**2)):.3g}",
                     f"{np.median([one['bar'] for one in found]):.3g}", f"{beyond} of {seeds}",
                     f"{np.mean([one['regions'] for one in found]):.1f}",
                     f"{np.median([one['seconds'] for one in found]):.1f}")
                )  # fmt: skip
                print("\t".join(rows[-1]), flush=True)
    print()
    heading = ("problem", "points", "N", "rms error", "error bar", "beyond 2 bars", "searches", "seconds")
    print_table(rows, heading)
    print(f"\nbeyond two error bars: {outside} of {every}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
