"""What bulk points cost, and what a run to 0.003 nats gives where the likelihood is cheap.

    python -m benchmarks.bench_bulk [--brief]

First the engine's own time per bulk point in 8-D, with the density of a finished run. Then default runs with
``tol=0.003`` on problems of the suite: actual error, statistical part of the error bar, evaluations that models learnt
of and bulk points, CPU seconds of each part, and the effective share of the first and last batch.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence

import numpy as np

import wsabi
from benchmarks.measuring import cpu_seconds, options, print_table, save
from wsabi import problems
from wsabi.adaptive.bulk.sample import Bulk
from wsabi.strategies.adaptive import AdaptiveStrategy

CASES = [
    ("gmm", {}), ("gmm", {"spread": "variance"}), ("shells", {}), ("banana", {}), ("student_tails", {}),
    ("correlated_gaussian", {"dim": 8}), ("yacht", {}),
]  # fmt: skip


def own_microseconds(n: int) -> float:
    """CPU time per bulk point in 8-D, the likelihood excluded, of a batch of n points of a fitted density."""
    problem = problems.get("correlated_gaussian", dim=8)
    integrator = wsabi.Integrator(problem.prior, rng=0, settings=wsabi.Settings(bulk="off"))
    integrator.run(problem.log_likelihood_vectorized, budget=250, tol=0, vectorized=True)
    strategy = integrator.strategy
    assert isinstance(strategy, AdaptiveStrategy)
    base, measure, rng = strategy.state.proposals[-1], strategy.state.measure, np.random.default_rng(0)
    bulk = Bulk.none(8)
    for size in (2048, 4096, 8192, 1024):
        bulk = bulk.begun(base, size, rng)
        assert bulk.batch is not None
        bulk = bulk.told(0, problem.log_likelihood_vectorized(bulk.batch.U) + measure.log_pdf(bulk.batch.U))
    started = time.process_time()
    bulk = bulk.begun(base, n, rng)
    seconds = time.process_time() - started
    assert bulk.batch is not None
    log_joint = problem.log_likelihood_vectorized(bulk.batch.U) + measure.log_pdf(bulk.batch.U)
    started = time.process_time()
    bulk = bulk.told(0, log_joint)
    assert bulk.estimate is not None
    return 1e6 * (seconds + time.process_time() - started) / n


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__ or "", arguments)
    warnings.simplefilter("ignore", wsabi.EvidenceWarning)
    own = own_microseconds(8_192 if chosen.brief else 131_072)
    print(f"own time per bulk point in 8-D: {own:.1f} microseconds")
    rows, raw = [], []
    for name, arguments_of in CASES[:1] if chosen.brief else CASES:
        problem = problems.get(name, **arguments_of)
        for seed in range(1 if chosen.brief else 3):
            result, seconds = cpu_seconds(
                lambda problem=problem, seed=seed: wsabi.integrate(
                    problem.log_likelihood_vectorized, problem.prior, tol=0.003, rng=seed, vectorized=True
                )
            )
            n_bulk = sum(batch.n for batch in result.batches)
            shares = [batch.effective_share for batch in result.batches]
            certificate = result.certificate
            row = {
                "problem": f"{name} {problem.dim}-D", "seed": seed, "error": result.log_z - problem.log_z,
                "statistical": result.error_budget.statistical, "log_z_std": result.log_z_std,
                "modelled": result.n_evals - n_bulk, "bulk": n_bulk, "cpu": seconds,
                "share": [shares[0], shares[-1]] if shares else [], "reason": result.reason,
                "source": "" if certificate is None else certificate.source,
            }  # fmt: skip
            raw.append(row)
            rows.append(
                [
                    row["problem"], str(seed), f"{row['error']:+.4f}", f"{row['statistical']:.4f}",
                    f"{row['log_z_std']:.4f}", str(row["modelled"]), str(n_bulk), f"{seconds:.1f}",
                    f"{shares[0]:.2f} to {shares[-1]:.2f}" if shares else "-", row["source"], result.reason,
                ]
            )  # fmt: skip
            print(" | ".join(rows[-1]), flush=True)
    heading = "problem", "seed", "error", "statistical", "sd", "modelled", "bulk", "CPU s", "share", "source", "reason"
    print_table(rows, heading)
    save("bench_bulk", chosen, [], {"own_microseconds": own, "runs": raw})


if __name__ == "__main__":
    main()
