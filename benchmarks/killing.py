"""A run that is killed again and again, in a process of its own: for the tests of the journal and for study_kills.

    python -m benchmarks.killing JOURNAL CASE KILLS SEED

forks a child that runs with a journal, kills it −9 after a random time, and does so again until it was killed KILLS
times; then lets it end. Prints a line of JSON: points and log Z of the run, the number of kills, of evaluations made,
of those made again although the journal had them, and of those that the kill kept from being written.
"""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import wsabi
from wsabi import course
from wsabi.ledger import Told
from wsabi.runs.journal import read

CENTRE = np.array([0.4, -0.2])
PRIOR = wsabi.Gaussian([0.0, 0.0])
CASES: dict[str, dict] = {
    "adaptive": {"budget": 40, "tol": 0},
    "tolerance": {"budget": 90, "tol": 0.5},
    "snapshots": {"budget": 60, "tol": 0},
    "plain": {"budget": 20, "settings": wsabi.Settings(measure="prior")},
    "batch": {"budget": 36, "tol": 0, "batch": 4},
    "gradient": {"budget": 50, "tol": 0, "grad": lambda x: -(x - CENTRE) / 0.3**2 + [0.9 * np.cos(3 * x[0]), 0.0]},
}

USUAL = course.SNAPSHOT_SECONDS, course.SNAPSHOT_SHARE


def log_likelihood(x: np.ndarray) -> float:
    return float(-0.5 * np.sum((x - CENTRE) ** 2) / 0.3**2 + 0.3 * np.sin(3.0 * x[0]))


def run(journal: Path | None, case: str, calls: Path | None = None) -> wsabi.Result:
    def noted(x: np.ndarray) -> float:
        value = log_likelihood(x)
        if calls is not None:
            with open(calls, "ab", buffering=0) as file:
                file.write(struct.pack("=dd", *x))
        return value

    often = case == "snapshots"  # after every value, and not after some seconds of the library's own time
    course.SNAPSHOT_SECONDS, course.SNAPSHOT_SHARE = (0.0, 0.0) if often else USUAL
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return wsabi.integrate(noted, PRIOR, rng=5, journal=journal, **CASES[case])


def told_in(journal: Path) -> set[bytes]:
    if not journal.exists():
        return set()
    return {x.tobytes() for event in read(journal).ledger.events if isinstance(event, Told) for x in event.X}


def called(calls: Path) -> list[bytes]:
    data = calls.read_bytes() if calls.exists() else b""
    return [data[i : i + 16] for i in range(0, len(data), 16)]


def killed_run(journal: Path, case: str, kills: int, seed: int) -> dict:
    calls = Path(f"{journal}.calls")
    rng = random.Random(seed)
    span, begun = 0.0, time.perf_counter()
    run(None, case)  # to know how long it takes, and to have everything imported
    span = time.perf_counter() - begun
    n_kills = repeated = unwritten = 0
    while n_kills < kills:
        before, n_calls = told_in(journal), len(called(calls))
        child = os.fork()
        if child == 0:
            run(journal, case, calls)
            os._exit(0)
        time.sleep(rng.uniform(0.0, 0.6) * span)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        n_kills += os.WIFSIGNALED(status)
        new = called(calls)[n_calls:]
        repeated += sum(x in before for x in new)
        unwritten += len(set(new) - told_in(journal))
        if not os.WIFSIGNALED(status):
            break
    before, n_calls = told_in(journal), len(called(calls))
    result = run(journal, case, calls)
    repeated += sum(x in before for x in called(calls)[n_calls:])
    return {
        "points": result.points.tobytes().hex(), "log_z": result.log_z, "log_z_std": result.log_z_std,
        "reason": result.reason, "kills": n_kills, "evaluations": len(called(calls)), "repeated": repeated,
        "unwritten": unwritten, "n_evals": result.n_evals,
    }  # fmt: skip


if __name__ == "__main__":
    name, which, how_many, number = sys.argv[1:]
    sys.stdout.write(json.dumps(killed_run(Path(name), which, int(how_many), int(number))) + "\n")
