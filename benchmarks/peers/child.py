"""One run of one entrant on one problem, in the entrant's own interpreter; its record goes to a file.

    python -m benchmarks.peers.child ENTRANT PROBLEM SEED SECONDS FILE

The process gets a signal when it has used ``SECONDS`` of CPU time. Python raises `OutOfTime` then, at the next line of
Python that it comes to, and the record says how far it came. Code that catches everything is ended by the kernel.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import platform
import resource
import signal
import sys
import time
import traceback
import warnings
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.peers.cases import CASES, Loaded, task_of
from benchmarks.peers.registry import ENTRANTS, Entrant
from benchmarks.peers.task import Answer, Task

GRACE = 20  # CPU seconds between the signal and the end by the kernel


class OutOfTime(BaseException):
    """The run's CPU time is spent; not an Exception, which a peer may catch."""


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise OutOfTime


def limit(seconds: float) -> None:
    signal.signal(signal.SIGXCPU, _stop)
    soft = math.ceil(time.process_time() + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, soft + GRACE))


def _number(value: float | None) -> float | None:
    """A number as JSON has it: what is not finite is missing."""
    return float(value) if value is not None and math.isfinite(value) else None


def _thinned(trace: list[Any], most: int = 60) -> list[Any]:
    """At most ``most`` entries, the last among them, denser where the evaluations are few."""
    if len(trace) <= most:
        return trace
    chosen = {round((len(trace) - 1) * (k / (most - 1)) ** 1.5) for k in range(most)}
    return [trace[i] for i in sorted(chosen)]


def record(entrant: Entrant, task: Task, problem: Loaded, answer: Answer | None, seconds: float) -> dict[str, Any]:
    """What is kept of a run, whether it ended or not."""
    own = task.own_seconds
    error = std = covered = None
    if answer is not None:
        error, std = _number(answer.log_z - problem.log_z), _number(answer.log_z_std)
        if error is not None and std is not None:
            covered = abs(error) <= 1.96 * math.hypot(std, problem.log_z_std)
    trace = [[n, round(cpu, 6), _number(log_z - problem.log_z), _number(sd)] for n, cpu, log_z, sd in task.trace]
    return {
        "dim": task.dim,
        "truth": problem.log_z,
        "truth_std": problem.log_z_std,
        "n_evals": task.n_evals,
        "own_seconds": round(own, 4),
        "inside_seconds": round(task.inside, 4),
        "wall_seconds": round(seconds, 3),
        "log_z": _number(answer.log_z) if answer else None,
        "log_z_std": std,
        "error": error,
        "covered": covered,
        "converged": answer.converged if answer else None,
        "effective_draws": _number(answer.effective_draws) if answer else None,
        "trace": [[n, cpu, _short(e), _short(sd)] for n, cpu, e, sd in _thinned(trace)],
        "versions": _versions(entrant),
    }


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def _versions(entrant: Entrant) -> dict[str, str]:
    names = ["numpy", "scipy", *([entrant.peer.package] if entrant.peer.package else [])]
    return {"python": platform.python_version()} | {name: version(name) for name in names}


def main(arguments: list[str]) -> None:
    name, label, seed, seconds, path = arguments
    entrant = ENTRANTS[name]
    case = next(case for case in CASES if case.label == label)
    warnings.simplefilter("ignore")
    task, problem = task_of(case, int(seed))
    for module in entrant.peer.imports:
        importlib.import_module(module)
    limit(float(seconds))
    started, answer, status, message = time.perf_counter(), None, "ended", ""
    task.started = time.process_time()
    try:
        answer = entrant.run(task)
    except OutOfTime:
        status, message = "out of time", f"after {seconds} s of CPU time"
    except Exception as error:
        status = "out of time" if isinstance(error.__context__, OutOfTime) else "failed"
        message = f"{type(error).__name__}: {error}"[:300]
        traceback.print_exc()
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    kept = record(entrant, task, problem, answer, time.perf_counter() - started)
    if answer is not None and kept["log_z"] is None:
        status, message = "failed", f"log Z = {answer.log_z}"
    Path(path).write_text(json.dumps({"status": status, "message": message, **kept}), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # threads and temporary files of a peer that was interrupted may hold the interpreter up


if __name__ == "__main__":
    main(sys.argv[1:])
