"""The adaptive engine on the problem suite: errors at stated budgets, coverage of its intervals, own CPU time.

    python -m benchmarks.study_engine [--seeds 20] [--only NAME] [--jobs 2] [--compare] [--as-called]

First the public suite (`wsabi.problems`), then the problems of benchmarks/held_out.py, which are kept for judging and
have no targets. Every run spends its whole budget (``tol=0``) from its own seed. ``--compare`` adds `Settings.paper()`
with a fast search at the same number of evaluations, and simple Monte Carlo with a hundred times as many.
``--as-called`` runs `wsabi.integrate(log_likelihood, prior)` instead, with no budget: each run ends by its tolerance or
the default ceiling, and the evaluations in the table are the median of what it took.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import wsabi
from benchmarks import held_out
from wsabi import problems
from wsabi.baselines import simple_monte_carlo

RESULTS = pathlib.Path(__file__).parent / "results"


HELD_OUT = "held out"
AS_CALLED = "engine, no budget"


@dataclass(frozen=True)
class Case:
    """A problem, a budget, and the median error it is held to (None where a warning will do)."""

    label: str
    problem: str
    options: dict[str, Any]
    budget: int
    target: float | None


CASES = (
    Case("gmm sd 4-D", "gmm", {"spread": "sd"}, 200, 1e-3),
    Case("synthclass 3-D", "synthclass", {}, 200, 0.01),
    Case("citation 6-D", "citation", {}, 500, 0.05),
    Case("yacht standardised 8-D", "yacht", {"standardized": True}, 350, 0.3),
    Case("yacht standardised 8-D", "yacht", {"standardized": True}, 1250, 0.1),
    Case("yacht raw 8-D", "yacht", {"standardized": False}, 1250, 0.2),
    Case("gmm variance 4-D", "gmm", {"spread": "variance"}, 1000, 0.05),
    *(Case(f"correlated {d}-D", "correlated_gaussian", {"dim": d}, 30 * d, 0.03) for d in (2, 6, 10)),
    *(Case(f"correlated {d}-D", "correlated_gaussian", {"dim": d}, 100 * d, 0.02) for d in (2, 6, 10)),
    Case("correlated 15-D", "correlated_gaussian", {"dim": 15}, 1500, 0.1),
    Case("narrow 2-D", "narrow_gaussian", {"dim": 2}, 150, 0.02),
    Case("narrow 4-D", "narrow_gaussian", {"dim": 4}, 150, 0.02),
    Case("banana 2-D", "banana", {}, 100, 0.01),
    Case("product of widths 4-D", "product_widths", {}, 200, None),
    Case("two bumps 2-D", "two_bumps", {}, 200, None),
    Case("Student tails 2-D", "student_tails", {}, 200, None),
    Case("ridge 3-D", "ridge", {}, 200, None),
    Case("shells 2-D", "shells", {}, 400, None),
    Case("eggbox 2-D", "eggbox", {}, 600, None),
    Case("plateau 2-D", "plateau", {}, 200, None),
    Case("infeasible half 2-D", "infeasible_half", {}, 150, None),
    *(Case(case.label, HELD_OUT, {}, case.budget, None) for case in held_out.CASES),
)


@dataclass(frozen=True)
class Run:
    """One run of one method."""

    case: int
    method: str
    seed: int
    error: float
    std: float
    cpu_per_eval: float
    n_evals: int
    warnings: tuple[str, ...]


def problem_of(case: Case, seed: int) -> problems.Problem:
    """The case's problem; mixtures are drawn anew for each seed."""
    options = dict(case.options)
    if case.problem == HELD_OUT:
        return next(other.maker() for other in held_out.CASES if other.label == case.label)
    if case.problem == "gmm":
        options["seed"] = seed
    return problems.get(case.problem, **options)


def run(index: int, method: str, seed: int) -> Run:
    """Run one method on one case; own CPU time is the process's less the likelihood's."""
    case = CASES[index]
    problem = problem_of(case, seed)
    spent = 0.0

    def log_likelihood(x: Any) -> float:
        nonlocal spent
        started = time.process_time()
        value = problem.log_likelihood(x)
        spent += time.process_time() - started
        return value

    started = time.process_time()
    if method == "simple Monte Carlo":
        result = simple_monte_carlo(
            problem.log_likelihood_vectorized, problem.prior, budget=100 * case.budget, rng=seed, vectorized=True
        )
    elif method == AS_CALLED:
        result = wsabi.integrate(log_likelihood, problem.prior, rng=seed)
    else:
        settings = wsabi.Settings() if method == "engine" else wsabi.Settings(measure="prior", alpha=0.8, certify=0.0)
        result = wsabi.integrate(log_likelihood, problem.prior, budget=case.budget, rng=seed, settings=settings, tol=0)
    own = time.process_time() - started - spent
    error = result.log_z - problem.log_z
    std = math.hypot(result.log_z_std, problem.log_z_std)
    return Run(index, method, seed, error, std, own / result.n_evals, result.n_evals, result.warnings)


def summary(runs: list[Run]) -> str:
    """One line of the table."""
    case = CASES[runs[0].case]
    target = None if runs[0].method == AS_CALLED else case.target
    errors = np.abs([r.error for r in runs])
    z = errors / np.array([r.std for r in runs])
    median = float(np.median(errors))
    met = "-" if target is None else ("yes" if median <= target else "NO")
    warned = sum(bool(r.warnings) for r in runs)
    return (
        f"{case.label:<24}{runs[0].method:<20}{np.median([r.n_evals for r in runs]):>6.0f}{median:>10.4f}"
        f"{np.quantile(errors, 0.9):>9.3f}{'' if target is None else f'{target:g}':>8}{met:>5}"
        f"{np.mean(errors < 1):>7.0%}{np.median([r.std for r in runs]):>9.4f}{np.mean(z < 1.96):>7.0%}"
        f"{warned:>5}/{len(runs)}{1e3 * np.median([r.cpu_per_eval for r in runs]):>8.1f}"
    )


HEADER = (
    f"{'problem':<24}{'method':<20}{'evals':>6}{'median':>10}{'90 %':>9}{'target':>8}{'met':>5}{'<1':>7}{'std':>9}"
    f"{'cover':>7}{'warned':>8}{'ms/ev':>8}"
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, write every run to benchmarks/results/study_engine.json (or study_as_called.json)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", default="", help="cases whose label contains this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--as-called", action="store_true")
    options = parser.parse_args(arguments)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    methods = ["engine", "paper's WSABI-L", "simple Monte Carlo"] if options.compare else ["engine"]
    methods = [AS_CALLED] if options.as_called else methods
    everything: list[Run] = []
    print(HEADER, flush=True)
    with ProcessPoolExecutor(options.jobs) as pool:
        for index, case in enumerate(CASES):
            if options.only.lower() not in f"{case.label} {case.budget}".lower():
                continue
            if options.as_called and any(case.label == other.label for other in CASES[:index]):
                continue  # the same problem with another budget
            for method in methods:
                try:
                    jobs = [pool.submit(run, index, method, seed) for seed in range(options.seeds)]
                    runs = [job.result() for job in jobs]
                except FileNotFoundError as error:
                    print(f"{case.label:<24}left out: {error}")
                    break
                everything += runs
                print(summary(runs), flush=True)
    for name, chosen in (("public suite", False), ("held-out problems", True)):
        group = [
            r for r in everything if r.method in ("engine", AS_CALLED) and (CASES[r.case].problem == HELD_OUT) == chosen
        ]
        covered = [abs(r.error) < 1.96 * r.std for r in group]
        if covered:
            print(
                f"{name}: 95 % intervals of the engine hold the truth in {np.mean(covered):.1%} of {len(group)} runs."
            )
    RESULTS.mkdir(exist_ok=True)
    rows = [{**asdict(r), "case": asdict(CASES[r.case])} for r in everything]
    name = "study_as_called" if options.as_called else "study_engine"
    (RESULTS / f"{name}.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
