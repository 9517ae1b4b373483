"""What follows from the runs: evaluations and time to an accuracy, cross-overs, ratios. Nothing here is measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.peers.registry import ENTRANTS, OURS

__all__ = ["ACCURACIES", "COSTS", "Reach", "best_other", "ended", "median", "of", "reach", "time_to", "window"]

Run = dict[str, Any]
ACCURACIES = (0.1, 0.01)  # nats
COSTS = (0.0, 1e-3, 0.1, 10.0)  # seconds for each evaluation
HONEST = 3.0  # a claim is not used to extrapolate where the error is more than so many claimed sds, and the accuracy


@dataclass(frozen=True)
class Reach:
    """Evaluations and own CPU seconds to an accuracy; infinite where it is not reached."""

    n_evals: float = math.inf
    own: float = math.inf
    extrapolated: bool = False

    def total(self, cost: float) -> float:
        """Seconds in all where each evaluation costs so many."""
        return self.own + self.n_evals * cost if math.isfinite(self.n_evals) else math.inf


def of(runs: Iterable[Run], entrant: str, case: str) -> list[Run]:
    return [run for run in runs if run["entrant"] == entrant and run["case"] == case]


def ended(runs: Iterable[Run]) -> list[Run]:
    """Runs that gave an estimate."""
    return [run for run in runs if run["status"] == "ended"]


def median(values: Sequence[float | None]) -> float:
    """Of those that there are; NaN of none."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else math.nan


def reach(run: Run, accuracy: float) -> Reach:
    """When this run came within the accuracy for good.

    With estimates on the way: the first from which on all are within it, the last included. With a single estimate at
    the end, whose error may be small by luck: the end, if the claimed sd is within the accuracy and honest. Where the
    error falls as 1/√N and the end is not good enough, N and time are multiplied by (sd/accuracy)².
    """
    if run["status"] != "ended":
        return Reach()
    end = (run["n_evals"], run["own_seconds"])
    error, std = run["error"], run["log_z_std"]
    root_n = run["entrant"] in ENTRANTS and ENTRANTS[run["entrant"]].peer.root_n
    if run["trace"] or not root_n:
        path = [(n, own, e) for n, own, e, _ in run["trace"] if n <= end[0]] + [(*end, error)]
        good: tuple[float, float] | None = None
        for n, own, e in reversed(path):
            if e is None or abs(e) > accuracy:
                break
            good = (n, own)
        if good is not None:
            return Reach(*good)
    if not root_n or std is None or error is None or abs(error) > HONEST * std + accuracy:
        return Reach()
    factor = max(1.0, (std / accuracy) ** 2)
    return Reach(end[0] * factor, end[1] * factor, extrapolated=factor > 1.0)


def middle(reaches: Sequence[Reach]) -> Reach:
    """The median over runs, in which those that do not reach it count as infinite; the lower of two middle ones."""
    if not reaches:
        return Reach()
    return sorted(reaches, key=lambda r: r.n_evals)[(len(reaches) - 1) // 2]


def time_to(runs: Sequence[Run], accuracy: float, cost: float) -> float:
    """Median seconds in all to the accuracy, where an evaluation costs so many; infinite if most do not reach it."""
    times = sorted(reach(run, accuracy).total(cost) for run in runs)
    return times[(len(times) - 1) // 2] if times else math.inf


def best_other(runs: Sequence[Run], case: str, accuracy: float, kind: str | None = None) -> tuple[str, Reach]:
    """The peer with the fewest evaluations to the accuracy, ours left out."""
    found = [("", Reach())]
    for name, entrant in ENTRANTS.items():
        if entrant.file != OURS and (kind is None or entrant.peer.kind == kind):
            found.append((name, middle([reach(run, accuracy) for run in of(runs, name, case)])))
    return min(found, key=lambda pair: pair[1].n_evals)


@dataclass(frozen=True)
class Window:
    """The costs of an evaluation, in seconds, at which ours takes the least time, and who is faster at either end."""

    low: float = math.inf
    high: float = 0.0
    below: str = ""
    above: str = ""

    @property
    def is_empty(self) -> bool:
        return self.low >= self.high


def window(runs: Sequence[Run], case: str, accuracy: float) -> Window:
    """Where ours is the fastest to the accuracy: all times are straight lines in the cost, so it is one interval.

    It begins at the last intersection with a method that needs more evaluations and less time of its own, and ends at
    the first with one that needs fewer evaluations and more time of its own.
    """
    ours = middle([reach(run, accuracy) for run in of(runs, OURS, case)])
    if not math.isfinite(ours.n_evals):
        return Window()
    low, high, below, above = 0.0, math.inf, "", ""
    for name, entrant in ENTRANTS.items():
        other = middle([reach(run, accuracy) for run in of(runs, name, case)])
        if entrant.file == OURS or not math.isfinite(other.n_evals):
            continue
        more, own = other.n_evals - ours.n_evals, ours.own - other.own
        if more > 0.0 and own / more > low:
            low, below = own / more, name
        elif more < 0.0 and max(own / more, 0.0) < high:
            high, above = max(own / more, 0.0), name
        elif more == 0.0 and own > 0.0:
            return Window(below=name)
    return Window(low, high, below, above)
