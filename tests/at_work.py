"""Likelihoods that other processes import: they work, fail, hang, or kill the process they run in."""

from __future__ import annotations

import math
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np


def log_l(x: np.ndarray) -> float:
    return -0.5 * float(x @ x)


def named(p: dict[str, Any]) -> float:
    return -0.5 * float(p["a"] ** 2) - 0.5 * float(np.sum(np.square(p["b"])))


def rows(X: np.ndarray) -> np.ndarray:
    return np.asarray(-0.5 * np.sum(X**2, axis=1))


class Slow:
    """Takes so many seconds, and writes down which process evaluated what."""

    def __init__(self, seconds: float, folder: str) -> None:
        self.seconds, self.folder = seconds, folder

    def __call__(self, x: np.ndarray) -> float:
        begun = time.time()
        time.sleep(self.seconds)
        with open(Path(self.folder) / f"{os.getpid()}", "a", encoding="utf-8") as file:
            file.write(f"{begun} {time.time()}\n")
        return log_l(x)


class Faulty:
    """Does ``what`` where the first coordinate is above 1; at each such point so many times."""

    def __init__(self, what: str, folder: str = "", times: int = 10**9) -> None:
        self.what, self.folder, self.times = what, folder, times

    def __call__(self, x: np.ndarray) -> Any:
        if x[0] <= 1.0 or not self._counts(x):
            return log_l(x)
        if self.what == "raises":
            raise ValueError("boom")
        if self.what == "hangs":
            time.sleep(1000.0)
        if self.what == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.what == "exits":
            os._exit(3)
        return {"nan": math.nan, "inf": math.inf, "shape": np.zeros(3), "none": None}[self.what]

    def _counts(self, x: np.ndarray) -> bool:
        if self.times >= 10**9:
            return True
        path = Path(self.folder) / x.tobytes().hex()
        n = len(path.read_text(encoding="utf-8")) if path.exists() else 0
        path.write_text("x" * (n + 1), encoding="utf-8")
        return n < self.times


class Unpicklable:
    def __call__(self, x: np.ndarray) -> float:
        return log_l(x)

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle an open connection")
