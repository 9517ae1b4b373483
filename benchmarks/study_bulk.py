"""Whether 95 % intervals of the bulk phase hold 95 % of the truths, and what refitting does for the effective share.

    python -m benchmarks.study_bulk [--repeats 25] [--points 12000] [--only LABEL]

Each problem of benchmarks/held_out.py is run once, with models alone. From the state in which that run ends, bulk is
begun again and again with other random numbers, so that what varies is bulk alone. No number of the bulk phase was
chosen on these problems. A truth that is itself uncertain counts with its own error. Written to
benchmarks/results/study_bulk.json.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Sequence

import numpy as np

import wsabi
from benchmarks.held_out import CASES, HeldOut
from benchmarks.measuring import RESULTS, print_table
from wsabi._core.types import Array
from wsabi.adaptive.bulk.sample import Bulk
from wsabi.strategies.adaptive import AdaptiveStrategy

NORMAL_95 = 1.959964
MISSED = 0.2  # nats: a median error above it is a mode that the state does not know


def repeats(case: HeldOut, n: int, points: int) -> list[dict[str, float]]:
    """z, error and effective shares of n bulk phases of so many points."""
    problem = case.maker()
    integrator = wsabi.Integrator(problem.prior, rng=0, settings=wsabi.Settings(bulk="off"))
    integrator.run(problem.log_likelihood, budget=case.budget, tol=0.01)
    strategy = integrator.strategy
    assert isinstance(strategy, AdaptiveStrategy)
    if strategy.state.models is None:
        return []
    base, chart = strategy.state.proposals[-1], integrator.chart

    def log_joint(U: Array) -> Array:
        values = problem.log_likelihood_vectorized(chart.to_user(U))
        return np.asarray(values + chart.log_weight(U) + chart.measure.log_pdf(U))

    first = 256 * chart.dim
    sizes = [first, 2 * first, 4 * first]
    sizes.append(max(points - sum(sizes), first))
    found = []
    for seed in range(n):
        bulk, rng = Bulk.none(chart.dim), np.random.default_rng(1000 + seed)
        for size in sizes:
            bulk = bulk.begun(base, size, rng)
            assert bulk.batch is not None
            bulk = bulk.told(0, log_joint(bulk.batch.U))
        estimate = bulk.estimate
        if estimate is not None:
            error = math.hypot(estimate.error, problem.log_z_std)
            off = estimate.log_z - problem.log_z
            found.append(
                {"off": off, "z": off / error, "error": estimate.error, "k": estimate.pareto_k,
                 "before": bulk.records[0].effective_share, "after": bulk.records[-1].effective_share}
            )  # fmt: skip
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--points", type=int, default=12_000)
    parser.add_argument("--only", default="", help="problems whose label contains this")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", wsabi.EvidenceWarning)
    rows, every = [], {}
    for case in CASES:
        if options.only not in case.label:
            continue
        found = repeats(case, options.repeats, options.points)
        if not found:
            continue
        every[case.label] = found
        column = {key: np.array([one[key] for one in found]) for key in found[0]}
        sound = ~(column["k"] > 0.7)
        held = np.abs(column["z"]) < NORMAL_95
        rows.append(
            [
                case.label,
                f"{np.median(column['before']):.2f}",
                f"{np.median(column['after']):.2f}",
                f"{np.median(np.abs(column['off'])):.4f}",
                f"{np.median(column['error']):.4f}",
                f"{int(held[sound].sum())}/{int(sound.sum())}",
            ]
        )
        print(" | ".join(rows[-1]), flush=True)
    print_table(rows, ["problem", "share before", "after", "median error", "median sd", "95 % intervals that hold"])
    # A state that misses a mode is not bulk's fault: its error is a part of its own in the error budget.
    complete = [found for found in every.values() if abs(np.median([one["off"] for one in found])) < MISSED]
    z = np.array([one["z"] for found in complete for one in found if not one["k"] > 0.7])
    share, squares = np.mean(np.abs(z) < NORMAL_95), np.mean(np.square(z))
    print(f"{len(complete)} of {len(every)} states that miss no mode: {share:.1%} of {len(z)}; mean z² {squares:.2f}")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "study_bulk.json").write_text(json.dumps(every, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
