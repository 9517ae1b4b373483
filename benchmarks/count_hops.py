"""How many functions, in how many modules, one evaluation passes through.

    python -m benchmarks.count_hops

One run with the default settings and one with `Settings.paper()` are made under a profiler, on two round modes in two
dimensions. A hop is a function or method of the package that was entered at least once, arithmetic and properties
included; comprehensions and generated methods are not counted. One evaluation goes from the moment a point is asked for
to the moment before the next is asked for. The count depends on no clock, and on no machine but for its round-off.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import wsabi
from wsabi._core.types import Array

ROOT = str(Path(wsabi.__file__).parent)
RUNS = (("default", wsabi.Settings(), 150), ("paper", wsabi.Settings.paper(), 40))  # settings and budget
STEP = ("running/serial", "_step")  # asks for a point, evaluates it and tells its value

Hop = tuple[str, str]  # module and function


def two_modes(x: Array) -> float:
    """log ℓ at x (2,): two round modes."""
    one, other = -0.5 * np.sum(np.square((x - 1.0) / 0.3)), -0.5 * np.sum(np.square((x + 1.2) / 0.4))
    return float(np.logaddexp(one, other))


def traced(settings: wsabi.Settings, budget: int) -> tuple[wsabi.Result, set[Hop], list[set[Hop]]]:
    """A run, all of its hops, and those of every evaluation."""
    whole: set[Hop] = set()
    each: list[set[Hop]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ROOT) or code.co_name.startswith("<"):
            return
        hop = (code.co_filename[len(ROOT) + 1 : -len(".py")], code.co_qualname)
        if hop == STEP:
            each.append(set())
        whole.add(hop)
        if each:
            each[-1].add(hop)

    sys.setprofile(note)
    try:
        result = wsabi.integrate(
            two_modes, wsabi.Gaussian([0.0, 0.0]), budget=budget, rng=0, tol=0.0, settings=settings
        )
    finally:
        sys.setprofile(None)
    return result, whole, each[:-1]  # the last is followed by the result


def modules(hops: set[Hop]) -> int:
    """In how many modules they are."""
    return len({module for module, _ in hops})


def main() -> None:
    """Print the counts: hops/modules."""
    for name, settings, budget in RUNS:
        result, whole, each = traced(settings, budget)
        purposes = [] if result.ledger is None else [one.purpose.split()[0] for one in result.ledger.evaluations]
        print(f"{name}: the whole run {len(whole)}/{modules(whole)}")
        for purpose in sorted(set(purposes)):
            some = [hops for hops, other in zip(each, purposes, strict=False) if other == purpose]
            if not some:
                continue
            median = statistics.median(map(len, some)), statistics.median(map(modules, some))
            most = max(some, key=len)
            print(
                f"  {purpose}: {len(some)} evaluations, median {median[0]:g}/{median[1]:g}, "
                f"most {len(most)}/{modules(most)}"
            )


if __name__ == "__main__":
    main()
