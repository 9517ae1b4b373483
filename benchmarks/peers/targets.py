"""What the benchmark is to show, as ratios within the same runs, and whether it does."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.peers.derived import COSTS, Run, best_other, ended, median, middle, of, reach, time_to
from benchmarks.peers.registry import ENTRANTS, OURS
from benchmarks.peers.tables import cases_in, entrants_in, number, table

__all__ = ["target_table"]

LEAST = 0.01  # nats: a smaller error of a single run is luck
PLAIN, PLAIN_PEER, PLAIN_CASE = "wsabi plain, 200", "emukit WSABI-L", "gmm sd 4-D"


def _verdict(met: int, of_all: int) -> str:
    return "–" if not of_all else "yes" if met == of_all else f"NO, on {met} of {of_all}"


def nested_evaluations(runs: Sequence[Run]) -> list[str]:
    """Evaluations of the best nested sampler over ours, to 0.1 nats, on problems that both solve."""
    ratios = {}
    for case in cases_in(runs):
        ours = middle([reach(run, 0.1) for run in of(runs, OURS, case)])
        _, other = best_other(runs, case, 0.1, "nested sampling")
        if math.isfinite(ours.n_evals) and math.isfinite(other.n_evals):
            ratios[case] = other.n_evals / ours.n_evals
    return _row("evaluations of the best nested sampler over ours, to 0.1 nats", ratios, 50.0)


def nested_at_the_end(runs: Sequence[Run]) -> list[str]:
    """The same for whole runs, each ended by its own rule; nested samplers are then less accurate than ours."""
    ratios = {}
    names = [n for n in entrants_in(runs) if ENTRANTS[n].peer.kind == "nested sampling"]
    for case in cases_in(runs):
        counts = {name: median([run["n_evals"] for run in ended(of(runs, name, case))]) for name in [OURS, *names]}
        theirs = [counts[name] for name in names if math.isfinite(counts[name])]
        if theirs and math.isfinite(counts[OURS]):
            ratios[case] = min(theirs) / counts[OURS]
    return _row("evaluations of the most frugal nested sampler over ours, both as they end by themselves", ratios, 50.0)


def nested_times(runs: Sequence[Run]) -> list[list[str]]:
    """The same for the total time at every cost."""
    rows = []
    for cost in COSTS:
        ratios = {}
        names = [n for n in entrants_in(runs) if ENTRANTS[n].peer.kind == "nested sampling"]
        for case in cases_in(runs):
            ours = time_to(of(runs, OURS, case), 0.1, cost)
            other = min((time_to(of(runs, name, case), 0.1, cost) for name in names), default=math.inf)
            if math.isfinite(ours) and math.isfinite(other):
                ratios[case] = other / ours
        label = "free likelihood" if cost == 0.0 else f"{cost:g} s for each evaluation"
        rows.append(_row(f"time of the fastest nested sampler over ours, to 0.1 nats, {label}", ratios, 1.0))
    return rows


def against_surrogate(runs: Sequence[Run], name: str) -> list[list[str]]:
    """Evaluations and CPU time of a surrogate method over ours, to the error that it ends with."""
    evaluations, times = {}, {}
    for case in cases_in(runs):
        theirs = ended(of(runs, name, case))
        if not theirs:
            continue
        error = max(median([abs(run["error"]) for run in theirs]), LEAST)
        ours = middle([reach(run, error) for run in of(runs, OURS, case)])
        evaluations[case] = median([run["n_evals"] for run in theirs]) / ours.n_evals
        times[case] = median([run["own_seconds"] for run in theirs]) / ours.own
    return [
        _row(f"evaluations of {name} over ours, to the error it ends with, or {LEAST:g}", evaluations, 1.0),
        _row(f"own CPU time of {name} over ours, to the error it ends with, or {LEAST:g}", times, 10.0),
    ]


def against_emukit(runs: Sequence[Run]) -> list[list[str]]:
    ours, theirs = ended(of(runs, PLAIN, PLAIN_CASE)), ended(of(runs, PLAIN_PEER, PLAIN_CASE))
    if not ours or not theirs:
        return []
    cpu = median([run["own_seconds"] for run in theirs]) / median([run["own_seconds"] for run in ours])
    error = median([abs(run["error"]) for run in theirs]) / max(median([abs(run["error"]) for run in ours]), 1e-12)
    return [
        _row(f"own CPU time of {PLAIN_PEER} over plain WSABI-L, 200 samples", {PLAIN_CASE: cpu}, 50.0),
        _row(f"error of {PLAIN_PEER} over that of plain WSABI-L, 200 samples", {PLAIN_CASE: error}, 1.0),
    ]


def coverage(runs: Sequence[Run]) -> list[str]:
    flags = [run["covered"] for run in ended(runs) if run["entrant"] == OURS and run["covered"] is not None]
    share = sum(flags) / len(flags) if flags else math.nan
    return ["share of our 95 % intervals that cover", number(share), f"{sum(flags)} of {len(flags)} runs", "≥ 0.93",
            "yes" if share >= 0.93 else "NO"]  # fmt: skip


def _row(what: str, ratios: dict[str, float], bound: float) -> list[str]:
    if not ratios:
        return [what, "–", "–", f"≥ {bound:g}", "–"]
    least = min(ratios, key=lambda case: ratios[case])
    met = sum(ratio >= bound for ratio in ratios.values())
    worst = f"{number(ratios[least])} ({least})"
    return [what, number(median(list(ratios.values()))), worst, f"≥ {bound:g}", _verdict(met, len(ratios))]


def target_table(runs: Sequence[Run]) -> str:
    rows = [nested_evaluations(runs), nested_at_the_end(runs), *nested_times(runs)]
    for name in ("PyVBMC", "GPry", "alabi", "BOBE"):
        if name in entrants_in(runs):
            rows += against_surrogate(runs, name)
    rows += against_emukit(runs)
    rows.append(coverage(runs))
    return table(("what", "median over problems", "worst", "wanted", "met"), rows)
