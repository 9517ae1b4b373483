"""The core's speed and accuracy on one thread, against the targets that it is held to.

Every target is a ratio of CPU times taken in this run, or an error: none depends on how fast the machine is. The plain
method is measured, with the prior as its measure. A target in brackets is for information only. Exits with an
error only if an answer is wrong.
"""

from __future__ import annotations

import bisect
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.fresh_process import import_seconds, peak_memory
from benchmarks.gmm_runs import (
    WrongAnswer,
    WsabiRun,
    likelihood_seconds,
    monte_carlo_errors,
    problem,
    relative_error,
    run_wsabi,
)
from benchmarks.measuring import Options, Reference, Row, options, print_table, print_targets, save, spread
from wsabi.baselines import simple_monte_carlo
from wsabi.run import Progress


@dataclass(frozen=True)
class Sizes:
    """How much is run."""

    seeds: int
    matched_seeds: int  # of them, also by WSABI-M
    budget: int  # samples per timed run; then as many again
    window: int  # samples whose cost is compared, at the end of either half
    first_time: float  # CPU seconds from which WSABI is to beat simple Monte Carlo
    memory: tuple[int, int]  # N, D
    imports: int  # fresh interpreters per module


WRONG_AFTER_MANY = 0.3  # nats, in the run that is made for its memory: sees a lost factor of two, even when brief

FULL = Sizes(seeds=16, matched_seeds=8, budget=500, window=100, first_time=0.5, memory=(2000, 8), imports=15)
BRIEF = Sizes(seeds=2, matched_seeds=1, budget=60, window=20, first_time=0.05, memory=(80, 8), imports=2)


def speed_rows(linear: list[WsabiRun], matched: list[WsabiRun], sizes: Sizes) -> list[Row]:
    budget, window = sizes.budget, sizes.window
    units = [run.units for run in linear]
    late = [
        run.cost(2 * budget - window + 1, 2 * budget) / run.cost(budget - window + 1, budget) for run in linear
    ]  # fmt: skip
    methods = [m.units / run.units for m, run in zip(matched, linear, strict=False)]
    span = f"{2 * budget - window + 1}-{2 * budget} / {budget - window + 1}-{budget}"
    return [
        Row.at_most(f"WSABI-L, {budget} samples, CPU in units", float(np.median(units)), 250, note=spread(units)),
        Row.at_most(f"CPU of samples {span}", float(np.median(late)), 5, note=spread(late)),
        Row.at_most("WSABI-M / WSABI-L, CPU", float(np.median(methods)), 2, note=spread(methods)),
    ]


def accuracy_rows(linear: list[WsabiRun], sizes: Sizes) -> list[Row]:
    errors = np.abs([run.error for run in linear])
    claims = np.array([run.claim for run in linear])
    n = len(linear)
    covered = int(np.sum(errors <= 3.0 * claims))
    at = f"at {sizes.budget} samples"
    return [
        Row.at_most(f"|relative error| {at}, median of {n}", float(np.median(errors)), 1e-3, note=spread(errors)),
        Row.at_least(f"runs within 3 reported sds {at}, of {n}", covered, n - 1, "{:d}"),
        Row.at_most(f"median error bar / median error {at}", float(np.median(claims) / np.median(errors)), 5),
    ]


def time_grid(linear: list[WsabiRun], first: float) -> list[float]:
    """Times a factor √2 apart, from the first of interest to the end of the shortest run."""
    end = min(run.clock[-1] for run in linear)
    count = int(np.floor(2.0 * np.log2(max(end / first, 1.0)))) + 1
    return [first * 2.0 ** (0.5 * i) for i in range(count)]


class _TimeUp(Exception):
    """Ends a run of Monte Carlo from its callback, without a result: that of millions of draws takes time to make."""


def library_monte_carlo_errors(seed: int, times: Sequence[float]) -> tuple[list[float], int]:
    """|relative error| of ``simple_monte_carlo``, vectorised, at each CPU time, and the draws made by the last.

    As for WSABI the error at a time is that of the last record by then, and what the library does beside evaluating is
    part of the time: every draw is checked and kept.
    """
    target = problem(seed)
    clock: list[float] = []
    records: list[Progress] = []
    started = time.process_time()

    def record(progress: Progress) -> None:
        clock.append(time.process_time() - started)
        if clock[-1] > times[-1]:
            raise _TimeUp
        records.append(progress)

    with contextlib.suppress(_TimeUp):
        simple_monte_carlo(
            target.log_likelihood_vectorized, target.prior, budget=10**9, rng=seed, vectorized=True, callback=record
        )
    errors = [abs(relative_error(progress.log_z, target.log_z)) for progress in records]
    if not errors[-1] < 6.0 * records[-1].log_z_std:  # a false alarm in 1e9 runs
        raise WrongAnswer(f"simple_monte_carlo, seed {seed}: error {errors[-1]:.2g} of Z.")
    return [errors[bisect.bisect_right(clock, stop) - 1] for stop in times], records[-1].n_evals


def monte_carlo_rows(linear: list[WsabiRun], sizes: Sizes, raw: dict[str, Any]) -> list[Row]:
    """WSABI against simple Monte Carlo at equal CPU times; prints the curves.

    The target is against the library's own, which gives what WSABI gives: a result with its history, every point and
    value checked and kept. For information there is also a bare loop, which draws, evaluates, sums and forgets.
    """
    times = time_grid(linear, sizes.first_time)
    warped = np.array([[run.error_at_time(t) for t in times] for run in linear])
    library, bare = (
        [function(run.seed, times) for run in linear] for function in (library_monte_carlo_errors, monte_carlo_errors)
    )
    curves = {name: np.array([errors for errors, _ in found]) for name, found in (("library", library), ("bare", bare))}
    draws = {name: [n for _, n in found] for name, found in (("library", library), ("bare", bare))}
    raw["monte_carlo"] = {"times": times, "errors": curves, "draws": draws}
    cells = [
        (
            f"{t:.2f}",
            *_quartiles(warped[:, j]),
            *(*_quartiles(curves["library"][:, j]), _draws(t / times[-1], draws["library"])),
            *(*_quartiles(curves["bare"][:, j]), _draws(t / times[-1], draws["bare"])),
        )
        for j, t in enumerate(times)
    ]
    print("\n|relative error| over CPU seconds, quartiles over seeds: WSABI-L, then simple Monte Carlo with its draws,")
    print("by the library and by a bare loop")
    print_table(cells, ("CPU s", *("25 %", "50 %", "75 %"), *("25 %", "50 %", "75 %", "draws") * 2))
    span = f"least from {times[0]:.2g} to {times[-1]:.2g} s"
    rows = []
    for name, target in (("library", "> 1"), ("bare", "(> 1)")):
        ratios = np.median(curves[name], axis=0) / np.median(warped, axis=0)
        least = float(ratios.min())
        measured = f"{least:.3g} at {times[int(np.argmin(ratios))]:.2g} s"
        rows.append(Row(f"Monte Carlo's ({name}) / WSABI's median error, {span}", measured, target, least > 1.0))
    return rows


def _draws(share: float, totals: list[int]) -> str:
    return f"{share * float(np.median(totals)):.2g}"


def _quartiles(errors: np.ndarray[Any, np.dtype[np.float64]]) -> list[str]:
    return [f"{value:.1e}" for value in np.quantile(errors, (0.25, 0.5, 0.75))]


def print_sizes(linear: list[WsabiRun], budget: int) -> None:
    """The other curve: errors and CPU time over evaluations."""
    sizes = [budget * share // 20 for share in (2, 4, 8, 14, 20, 28, 40)]
    cells = [
        (
            f"{n}",
            *_quartiles(np.array([run.error_at_size(n) for run in linear])),
            f"{np.median([run.clock[n - 1] for run in linear]):.2f}",
        )
        for n in sizes
    ]
    print("\n|relative error| of WSABI-L over evaluations, quartiles over seeds, and median CPU seconds")
    print_table(cells, ("samples", "25 %", "50 %", "75 %", "CPU s"))


def memory_row(sizes: Sizes, raw: dict[str, Any]) -> Row:
    n, dim = sizes.memory
    peak, seconds, error = peak_memory(n, dim)
    if not abs(error) < WRONG_AFTER_MANY:
        raise WrongAnswer(f"{dim}-D mixture: log Z off by {error:.2g} after {n} samples.")
    raw["memory"] = {"n": n, "dim": dim, "bytes": peak, "cpu_seconds": seconds, "error": error}
    note = f" ({seconds:.0f} s of CPU, log Z off by {error:.1g})"
    return Row.at_most(f"peak memory, N = {n}, D = {dim}, GB", peak / 1e9, 1.5, note=note)


def import_rows(sizes: Sizes, raw: dict[str, Any]) -> list[Row]:
    """The door alone, and the engine, which is loaded on first use."""
    seconds = import_seconds(("wsabi", "wsabi.integrator", "scipy.linalg"), sizes.imports)
    raw["imports"] = seconds
    wsabi, engine, linalg = (float(np.median(values)) for values in seconds.values())
    return [
        Row.at_most("import wsabi / import scipy.linalg, CPU", wsabi / linalg, 1.5, note=f" ({wsabi:.2f} s)"),
        Row.at_most("import of the engine / import scipy.linalg, CPU", engine / linalg, 3, note=f" ({engine:.2f} s)"),
    ]


def main(chosen: Options) -> None:
    sizes = BRIEF if chosen.brief else FULL
    reference = Reference()
    run_wsabi(0, "wsabi-l", 30, reference, go_on=False)  # warm-up: lazy imports, first calls of BLAS
    reference.seconds.clear()
    linear, matched = [], []
    for seed in range(sizes.seeds):
        linear.append(run_wsabi(seed, "wsabi-l", sizes.budget, reference, go_on=True))
        if seed < sizes.matched_seeds:
            matched.append(run_wsabi(seed, "wsabi-m", sizes.budget, reference, go_on=False))
    raw: dict[str, Any] = {"runs": [run.raw() for run in linear + matched], "reference": reference.seconds}
    raw["likelihood_seconds"] = likelihood_seconds(0, sizes.budget)
    unit = float(np.median(reference.seconds))
    print(f"unit: dpotrf + dpotri of 500 × 500, {1e3 * unit:.2f} ms of CPU, median of {len(reference.seconds)}")
    print(f"the likelihood, included below: {raw['likelihood_seconds'] / unit:.1f} units for {sizes.budget} samples")
    print_sizes(linear, sizes.budget)
    rows = speed_rows(linear, matched, sizes) + accuracy_rows(linear, sizes)
    # Before Monte Carlo, whose millions of draws a new process would have in its own peak: it inherits its parent's.
    fresh = [memory_row(sizes, raw), *import_rows(sizes, raw)]
    rows += [*monte_carlo_rows(linear, sizes, raw), *fresh]
    print()
    print_targets(rows)
    print(f"raw numbers: {save('core', chosen, rows, raw)}")


if __name__ == "__main__":
    main(options("Speed and accuracy of the core on one thread."))
