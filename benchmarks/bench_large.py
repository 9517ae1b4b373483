"""Large runs: a journal of 20,000 evaluations in eight dimensions, killed at random instants and resumed.

    python -m benchmarks.bench_large [--brief]

A thousand evaluations are modelled and the others are bulk. Each process is killed −9 after some hundreds of events,
and the next one resumes the run. Measured are the seconds until it has all that went before, the largest memory of a
process, and the size of the file.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import sqlite3
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import wsabi
from benchmarks.measuring import Options, Row, options, print_table, print_targets, save
from wsabi import problems
from wsabi.runs.journal import read, read_snapshot

PROBLEM = problems.product_widths(dim=8, narrowest=0.2, widest=1.0)


def run(path: Path, budget: int) -> wsabi.Result:
    warnings.simplefilter("ignore")
    return wsabi.integrate(
        PROBLEM.log_likelihood_vectorized, PROBLEM.prior, budget=budget, tol=0, rng=0, journal=path, vectorized=True
    )


def opened(path: Path) -> tuple[float, float]:
    """Seconds to resume, and to load the result."""
    begun = time.perf_counter()
    with wsabi.Integrator(PROBLEM.prior, rng=0, journal=path):
        seconds = time.perf_counter() - begun
    begun = time.perf_counter()
    wsabi.load(path)
    return seconds, time.perf_counter() - begun


def n_events(path: Path) -> int:
    if not path.exists():
        return 0
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM event").fetchone()[0])


def killed(path: Path, budget: int, n: int) -> bool:
    """Whether a child that goes on with the run was killed after n more events, before it had ended."""
    before = n_events(path)
    child = os.fork()
    if child == 0:
        run(path, budget)
        os._exit(0)
    while n_events(path) < before + n:
        time.sleep(0.05)
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def main(chosen: Options) -> None:
    budget, most = (60, 80) if chosen.brief else (20_000, 1000)
    rng = random.Random(0)
    resumed = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        while killed(path, budget, rng.randint(most // 3, most)):
            seconds, loading = opened(path)
            record = read(path)
            snapshot = read_snapshot(path, record)
            n_known = 0 if snapshot is None else snapshot.n_events
            resumed.append((len(record.ledger.events), n_known, seconds, loading))
        result = run(path, budget)
        seconds, loading = opened(path)
        resumed.append((len(read(path).ledger.events), 0, seconds, loading))
        megabytes = path.stat().st_size / 1e6
        with contextlib.closing(sqlite3.connect(path)) as connection:
            inside = connection.execute("SELECT length(data) FROM snapshot").fetchall()
    memory = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1e3
    print(f"{result!r}: log Z off by {result.log_z - PROBLEM.log_z:+.4f}")
    print_table(
        [(str(n), str(known), f"{opening:.1f}", f"{loading:.1f}") for n, known, opening, loading in resumed],
        ("events", "in the snapshot", "seconds to resume", "seconds to load the result"),
    )
    rows = [
        Row.at_most("seconds to resume, the largest", float(np.max([row[2] for row in resumed])), 60.0, "{:.1f}"),
        Row.at_most("memory of a process, MB", memory, 2000.0, "{:.0f}"),
        Row.at_most("file, MB", megabytes, 50.0, "{:.1f}"),
    ]
    print_targets(rows)
    raw = {"resumed": resumed, "megabytes": megabytes, "memory": memory, "snapshot": inside}
    print(f"raw numbers: {save('large', chosen, rows, raw)}")


if __name__ == "__main__":
    main(options("Large runs."))
