"""The runs: which there are, in which order, and each in a process of its own."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import wsabi
from benchmarks.measuring import _machine
from benchmarks.peers.cases import CASES, Case
from benchmarks.peers.environments import ROOT, child_environment, interpreter
from benchmarks.peers.registry import ENTRANTS, Entrant
from benchmarks.peers.store import Runs

__all__ = ["described_machine", "planned", "run_all", "run_one"]


def planned(
    entrants: Sequence[str], cases: Sequence[Case], seeds: Sequence[int]
) -> Iterator[tuple[Entrant, Case, int]]:
    """Seed after seed, in each every problem, on each every entrant: what there is after any time is worth having."""
    for seed in seeds:
        for case in cases:
            for name in entrants:
                yield ENTRANTS[name], case, seed


def described_machine() -> dict[str, Any]:
    machine = _machine()
    described = {"system": f"{platform.system()} {platform.machine()}", "blas": machine["blas"]["name"]}
    return described | {key: machine[key] for key in ("processor", "cores")}


def commit() -> str:
    """The state of the sources, such as 46cbf52, with "+" if they were changed since; empty without git."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--abbrev=7"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def run_one(entrant: Entrant, case: Case, seed: int, seconds: float) -> dict[str, Any]:
    """One run in its own process; its record, whatever became of it."""
    python = interpreter(entrant.file, entrant.peer)
    head = {"entrant": entrant.name, "case": case.label, "group": case.group, "seed": seed, "limit": seconds}
    head |= {"date": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "wsabi": f"{wsabi.__version__} {commit()}"}
    if not python.exists():
        return head | {"status": "not installed", "message": f"there is no {python.relative_to(ROOT)}", "trace": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "record.json"
        command = [str(python), "-m", "benchmarks.peers.child", entrant.name, case.label, str(seed), str(seconds)]
        started = time.perf_counter()
        try:
            # In a folder of its own, since some peers write where they stand. On a busy machine, at a low priority, a
            # second of CPU time may take many of the clock.
            done = subprocess.run(
                [*command, str(path)], cwd=folder, env=child_environment(), capture_output=True, encoding="utf-8",
                errors="replace", timeout=60.0 * seconds + 600.0, check=False,
            )  # fmt: skip
            output = done.stderr
        except subprocess.TimeoutExpired:
            output = "the clock"
        if path.exists():
            record = json.loads(path.read_text(encoding="utf-8"))
            if record["status"] == "failed":
                print(output[-2000:], file=sys.stderr, flush=True)
            return head | record
    seconds_taken = round(time.perf_counter() - started, 1)
    message = output.strip().splitlines()[-1][:300] if output.strip() else "ended by the kernel"
    status = "out of time" if seconds_taken >= seconds else "failed"
    return head | {"status": status, "message": message, "wall_seconds": seconds_taken, "trace": []}


def run_all(
    runs: Runs, entrants: Sequence[str], cases: Sequence[Case], seeds: Sequence[int],
    *, seconds: float, minutes: float, again: bool = False,
) -> None:  # fmt: skip
    """Every run that the file does not have yet; no new one begins after so many minutes."""
    machine, deadline = runs.machine(described_machine()), time.monotonic() + 60.0 * minutes
    if again:
        for entrant, case, seed in planned(entrants, cases, seeds):
            runs.drop(entrant.name, case.label, seed)
    todo = [entry for entry in planned(entrants, cases, seeds) if (entry[0].name, entry[1].label, entry[2]) not in runs]
    for number, (entrant, case, seed) in enumerate(todo, 1):
        if time.monotonic() > deadline:
            print(f"stopped after {minutes:g} minutes; {len(todo) - number + 1} runs are left.")
            return
        run = run_one(entrant, case, seed, seconds) | {"machine": machine}
        if run["status"] != "not installed":  # else the next call tries again
            runs.add(run)
        print(f"{number}/{len(todo)} {_line(run)}", flush=True)


def _line(run: dict[str, Any]) -> str:
    head = f"{run['case']}, {run['entrant']}, seed {run['seed']}: "
    if run["status"] != "ended":
        return f"{head}{run['status']}, {run['message']}; {run.get('n_evals')} evaluations"
    std = run["log_z_std"]
    claimed = "" if std is None else f" ± {std:.4f}"
    return f"{head}{run['error']:+.4f}{claimed}, {run['n_evals']} evaluations, own {run['own_seconds']:.1f} s"


def cases_named(names: Sequence[str] | None) -> list[Case]:
    return [case for case in CASES if not names or any(name.lower() in case.label.lower() for name in names)]
