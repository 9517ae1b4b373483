"""The Markdown tables of docs/benchmarks.md, from the runs."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence

from benchmarks.peers.cases import CASES
from benchmarks.peers.derived import ACCURACIES, COSTS, Run, Window, ended, median, middle, of, reach, time_to, window
from benchmarks.peers.registry import ENTRANTS, OURS, files

__all__ = ["accuracy_tables", "calls", "cases_in", "conditions", "result_tables", "summary", "time_tables"]


def cases_in(runs: Sequence[Run]) -> list[str]:
    """Their labels, in the order of the benchmark; last those that are not here, such as models without their data."""
    seen = dict.fromkeys(run["case"] for run in runs)
    return [case.label for case in CASES if case.label in seen] + [
        label for label in seen if all(case.label != label for case in CASES)
    ]


def entrants_in(runs: Sequence[Run]) -> list[str]:
    seen = {run["entrant"] for run in runs}
    return [name for name in ENTRANTS if name in seen]


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def number(value: float, form: str = ".3g") -> str:
    """A number as people write it; a dash for NaN and for infinity."""
    if not math.isfinite(value):
        return "–"
    if abs(value) >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:{form}}"


def nats(value: float) -> str:
    return "<1e-4" if abs(value) < 1e-4 else number(value, ".2g")


def timed(value: float) -> str:
    """Seconds; what is below a millisecond is not told apart."""
    return "<0.001" if value < 1e-3 else number(value, ".2g")


def share(flags: Sequence[bool | None]) -> str:
    known = [flag for flag in flags if flag is not None]
    return f"{sum(known)}/{len(known)}" if known else "–"


def _faults(runs: Sequence[Run]) -> str:
    faults = [run["status"] for run in runs if run["status"] != "ended"]
    return ", ".join(f"{faults.count(kind)} {kind}" for kind in dict.fromkeys(faults)) or "0"


def result_table(runs: Sequence[Run], case: str) -> str:
    rows = []
    for name in entrants_in(runs):
        mine = of(runs, name, case)
        if not mine:
            continue
        good = ended(mine)
        errors = [abs(run["error"]) for run in good]
        rows.append([
            name, str(len(mine)), _faults(mine),
            number(median([run.get("n_evals") for run in good or mine]), ".0f"),
            number(median([run.get("own_seconds") for run in good or mine])),
            number(median([run.get("wall_seconds") for run in good or mine])),
            nats(median(errors)), nats(max(errors, default=math.nan)), nats(median([run["log_z_std"] for run in good])),
            share([run["covered"] for run in good]), share([run["converged"] for run in good]),
            number(median([run["effective_draws"] for run in good]), ".0f"),
        ])  # fmt: skip
    heading = ("method", "runs", "without an answer", "evaluations", "own CPU s", "wall s", "error", "largest",
               "claimed sd", "covered", "said converged", "effective draws")  # fmt: skip
    return table(heading, rows)


def result_tables(runs: Sequence[Run]) -> str:
    return "\n".join(f"#### {case}\n\n{result_table(runs, case)}" for case in cases_in(runs))


def summary(runs: Sequence[Run]) -> str:
    """One line for each method, over all problems that it was run on."""
    rows = []
    for name in entrants_in(runs):
        mine = [run for run in runs if run["entrant"] == name]
        good = ended(mine)
        errors = [abs(run["error"]) for run in good]
        within = [sum(e <= accuracy for e in errors) for accuracy in ACCURACIES]
        rows.append([
            name, str(len({run["case"] for run in mine})), str(len(mine)), _faults(mine),
            *(f"{count}/{len(mine)}" for count in within), nats(median(errors)),
            nats(median([run["log_z_std"] for run in good])), share([run["covered"] for run in good]),
            number(median([run["n_evals"] for run in good]), ".0f"),
            number(median([run["own_seconds"] for run in good])),
        ])  # fmt: skip
    heading = ("method", "problems", "runs", "without an answer", "within 0.1 at the end", "within 0.01",
               "median error", "claimed sd", "covered", "evaluations", "own CPU s")  # fmt: skip
    return table(heading, rows)


def accuracy_tables(runs: Sequence[Run]) -> str:
    """Evaluations to each accuracy, a column for each method."""
    names = [name for name in entrants_in(runs) if name != "wsabi plain, 200"]
    parts = []
    for accuracy in ACCURACIES:
        rows = []
        for case in cases_in(runs):
            reaches = [middle([reach(run, accuracy) for run in of(runs, name, case)]) for name in names]
            cells = [
                ("~" if r.extrapolated else "") + number(r.n_evals, ".0f") if of(runs, name, case) else ""
                for name, r in zip(names, reaches, strict=True)
            ]
            least = min(r.n_evals for r in reaches)
            rows.append([case] + [
                f"**{cell}**" if r.n_evals == least < math.inf else cell for cell, r in zip(cells, reaches, strict=True)
            ])  # fmt: skip
        parts.append(f"Evaluations to {accuracy:g} nats for good:\n\n{table(['problem', *names], rows)}")
    return "\n".join(parts)


def time_tables(runs: Sequence[Run], accuracy: float = 0.1) -> str:
    """Seconds in all to the accuracy at each likelihood cost: ours, and the fastest other."""
    rows = []
    others = [name for name in entrants_in(runs) if ENTRANTS[name].file != OURS]
    for case in cases_in(runs):
        cells = []
        for cost in COSTS:
            ours = time_to(of(runs, OURS, case), accuracy, cost)
            times = {name: time_to(of(runs, name, case), accuracy, cost) for name in others}
            best = min(times, key=lambda name: times[name], default="")
            other = times.get(best, math.inf)
            text = f"{timed(ours)} / {timed(other)}" + (f" ({best})" if math.isfinite(other) else "")
            cells.append(f"**{text}**" if ours < other else text)
        rows.append([case, *cells, window_in_words(window(runs, case, accuracy))])
    heading = ["problem", "free", "1 ms", "100 ms", "10 s", "wsabi is the fastest"]
    return table(heading, rows)


def window_in_words(found: Window) -> str:
    if found.is_empty:
        return "nowhere"
    parts = [f"from {seconds(found.low)} ({found.below})"] if found.low > 0.0 else []
    parts += [f"up to {seconds(found.high)} ({found.above})"] if math.isfinite(found.high) else []
    return " ".join(parts) or "at any cost"


def seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{number(value / size, '.2g')} {unit}"
    return f"{value / 1e-9:.2g} ns"


def _with_options(name: str, options: Mapping[str, object]) -> str:
    """The name of a variant and what ``run`` gets for it; objects with a long name by their argument alone."""
    shown = [f"{key}={value!r}" if len(repr(value)) < 40 else f"{key}=..." for key, value in options.items()]
    return f"{name} [{', '.join(shown)}]" if shown else name


def calls() -> str:
    """The function of each peer, quoted from its file."""
    parts = []
    for file, module in files().items():
        source = inspect.getsource(module.run).strip()
        peer = module.PEER
        wants = f" ({', '.join(peer.requirements)})" if peer.requirements else ""
        variants = ", ".join(_with_options(name, options) for name, options in peer.variants.items())
        doc = (module.__doc__ or "").strip()
        parts.append(
            f"#### {variants}{wants}\n\n{doc}\n\n```python\n# benchmarks/peers/methods/{file}.py\n{source}\n```\n"
        )
    return "\n".join(parts)


def conditions(runs: Sequence[Run], machines: Sequence[dict[str, object]]) -> str:
    """Machine, dates and states of the code."""
    lines = []
    for number_, machine in enumerate(machines):
        mine = [run for run in runs if run.get("machine") == number_]
        if mine:
            dates = sorted(run["date"][:16].replace("T", " ") for run in mine)
            lines.append(
                f"- {len(mine)} runs from {dates[0]} to {dates[-1]} on {machine['processor']}, "
                f"{machine['cores']} cores, {machine['system']}, BLAS {machine['blas']}."
            )
    states = sorted({run["wsabi"] for run in runs if ENTRANTS[run["entrant"]].file == OURS})
    lines.append(f"- wsabi: {', '.join(states)}.")
    versions: dict[str, str] = {}
    for run in runs:
        package = ENTRANTS[run["entrant"]].peer.package
        if package and package in run.get("versions", {}):
            versions[package] = run["versions"][package]
    limits = sorted({run["limit"] for run in runs})
    if versions:
        lines.append(f"- Peers: {', '.join(f'{name} {version}' for name, version in versions.items())}.")
    lines.append(f"- CPU limit of a run: {', '.join(f'{value:g}' for value in limits)} s.")
    return "\n".join(lines) + "\n"
