"""What only a fresh interpreter can show: peak memory and the cost of an import."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np

__all__ = ["import_seconds", "peak_memory"]

MEMORY = """
import resource, sys
import wsabi
from wsabi.problems import gmm

n, dim = int(sys.argv[1]), int(sys.argv[2])
target = gmm(0, dim=dim)
settings = wsabi.Settings(measure="prior")
result = wsabi.integrate(
    target.log_likelihood_vectorized, target.prior, budget=n, rng=0, vectorized=True, settings=settings
)
usage = resource.getrusage(resource.RUSAGE_SELF)
peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)  # kilobytes, but for macOS
print([peak, usage.ru_utime + usage.ru_stime, result.log_z - target.log_z])
"""

IMPORT = """
import time
started = time.process_time()
import {module}
print(time.process_time() - started)
"""


def _run(script: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"a fresh interpreter failed:\n{done.stderr}")
    return done.stdout


def peak_memory(n_evals: int, dim: int) -> tuple[float, float, float]:
    """Peak resident bytes of a whole process that makes a run, its CPU seconds, and the error of log Z."""
    peak, seconds, error = json.loads(_run(MEMORY, str(n_evals), str(dim)))
    return peak, seconds, error


def import_seconds(modules: tuple[str, ...], repeats: int) -> dict[str, list[float]]:
    """CPU seconds of importing each module, with all that it imports, first in a fresh interpreter; taken in turns."""
    seconds: dict[str, list[float]] = {module: [] for module in modules}
    for module in modules:  # not counted: byte code is compiled and files come into the system's cache
        _run(IMPORT.format(module=module))
    for turn in range(repeats):
        for module in np.roll(modules, turn).tolist():
            seconds[module].append(float(_run(IMPORT.format(module=module))))
    return seconds
