"""Workers at work: the share of their time in the likelihood, the cost in evaluations, and where more stop to help.

Measured: a likelihood that sleeps, so that two cores suffice for sixteen workers, on threads (no start-up), and on
processes. Simulated: 100 and 1,000 workers, by the proposal times measured here.
"""

from __future__ import annotations

import heapq
import math
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

import wsabi
from benchmarks.measuring import Options, Row, options, print_table, print_targets, save

DIM = 3
CENTRE = np.array([0.4, -0.2, 0.1])
WIDTH = 0.4
PRIOR = wsabi.Gaussian(np.zeros(DIM))
TRUTH = float(
    np.sum(-0.5 * CENTRE**2 / (1 + WIDTH**2) - 0.5 * np.log(1 + WIDTH**2)) + DIM * math.log(WIDTH)
)  # exp(−½|x − c|²/w²) under N(0, I)


@dataclass(frozen=True)
class Sleeping:
    seconds: float

    def __call__(self, x: np.ndarray) -> float:
        time.sleep(self.seconds)
        return float(-0.5 * np.sum((x - CENTRE) ** 2) / WIDTH**2)


def timed(workers: int, seconds: float, budget: int, seed: int = 0) -> dict[str, Any]:
    """One run on threads: seconds in all, and by how much log Z is off."""
    with ThreadPoolExecutor(workers) as threads:
        begun = time.perf_counter()
        result = wsabi.integrate(Sleeping(seconds), PRIOR, budget=budget, tol=0, rng=seed, executor=threads)
        wall = time.perf_counter() - begun
    return {
        "workers": workers, "seconds": wall, "share": budget * seconds / (workers * wall),
        "error": result.log_z - TRUTH, "sd": result.log_z_std,
    }  # fmt: skip


def evaluations_to(tol: float, workers: int, seeds: int) -> float:
    """Median number of evaluations until the error bar is within ``tol``, with so many points under way."""
    needed = []
    for seed in range(seeds):
        with ThreadPoolExecutor(workers) as threads:
            f = Sleeping(0.02)
            needed.append(wsabi.integrate(f, PRIOR, budget=600, tol=tol, rng=seed, executor=threads).n_evals)
    return float(np.median(needed))


def own_seconds(budget: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Seconds that the library itself takes for each evaluation of a serial run."""
    marks = [time.perf_counter()]
    f = Sleeping(0.0)

    def mark(state: Any) -> None:
        marks.append(time.perf_counter())

    wsabi.integrate(f, PRIOR, budget=budget, tol=0, rng=0, callback=mark)
    return np.diff(marks)


def simulated(workers: int, seconds: float, own: np.ndarray[Any, np.dtype[np.float64]], n: int, rng: Any) -> float:
    """Share of the workers' time in the likelihood, where one process takes ``own`` seconds for each point.

    The likelihood takes between 0.8 and 1.2 times ``seconds``.
    """
    cost = rng.choice(own, size=n)
    free = [(0.0, worker) for worker in range(workers)]  # when each worker comes for a point
    heapq.heapify(free)
    clock = busy = end = 0.0
    for i in range(n):
        came, worker = heapq.heappop(free)
        clock = max(clock, came) + cost[i]
        took = seconds * rng.uniform(0.8, 1.2)
        busy += took
        end = max(end, clock + took)
        heapq.heappush(free, (clock + took, worker))
    return busy / (workers * end)


def main(chosen: Options) -> None:
    warnings.simplefilter("ignore", wsabi.EvidenceWarning)
    counts, seconds = ((1, 2), 0.05) if chosen.brief else ((1, 2, 4, 8, 16), 0.2)
    per_worker = 6 if chosen.brief else 25
    timed(2, 0.0, 12)  # warm-up
    runs = [timed(workers, seconds, max(20, per_worker * workers)) for workers in counts]
    cells = [
        (str(run["workers"]), str(max(20, per_worker * run["workers"])), f"{run['seconds']:.1f}", f"{run['share']:.0%}",
         f"{run['error']:+.3f} ± {run['sd']:.2g}")
        for run in runs
    ]  # fmt: skip
    print(f"likelihood of {seconds} s")
    print_table(cells, ("workers", "evaluations", "seconds", "worker time in the likelihood", "log Z off by"))

    seeds, tol = (1, 0.3) if chosen.brief else (3, 0.05)
    needed = {workers: evaluations_to(tol, workers, seeds) for workers in ((1, 2) if chosen.brief else (1, 4, 8, 16))}
    print(f"\nevaluations until ± {tol}, median of {seeds} seeds")
    print_table([[f"{n:.0f}" for n in needed.values()]], [f"{workers} workers" for workers in needed])

    own = own_seconds(20 if chosen.brief else 300)
    print(f"\nthe library's own time for one evaluation: mean {1e3 * own.mean():.1f} ms, median "
          f"{1e3 * np.median(own):.1f} ms")  # fmt: skip
    rng = np.random.default_rng(0)
    many = (10, 100) if chosen.brief else (8, 100, 1000)
    lengths = (0.05, 0.5, 5.0, 60.0)
    shares = {w: [simulated(w, t, own, 30 * w, rng) for t in lengths] for w in many}
    print("simulated share of worker time in the likelihood, 30 evaluations for each worker")
    print_table(
        [(str(w), *(f"{share:.0%}" for share in row)) for w, row in shares.items()],
        ("workers", *(f"{t:g} s a call" for t in lengths)),
    )
    last = runs[-2] if len(runs) > 2 else runs[-1]  # 8 workers
    rows = [
        Row.at_least(f"worker time in the likelihood, {last['workers']} workers", last["share"], 0.9, "{:.2f}"),
        Row.at_most("evaluations, most workers / one", max(needed.values()) / needed[1], 1.25, "{:.2f}"),
    ]
    print()
    print_targets(rows)
    raw = {"runs": runs, "needed": {str(w): n for w, n in needed.items()}, "own": own,
           "simulated": {str(w): row for w, row in shares.items()}}  # fmt: skip
    print(f"raw numbers: {save('parallel', chosen, rows, raw)}")


if __name__ == "__main__":
    main(options("Parallel evaluation."))
