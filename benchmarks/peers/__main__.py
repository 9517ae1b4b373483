"""The command line: make environments, run, write the page."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers import environments, matrix, page
from benchmarks.peers.cases import CASES, MODELS, model_cases
from benchmarks.peers.registry import ENTRANTS
from benchmarks.peers.store import FILE, Runs


def entrants_named(names: Sequence[str] | None) -> list[str]:
    """Names of variants, or of files, which stand for all their variants."""
    chosen: list[str] = []
    for name in names or list(ENTRANTS):
        found = [e.name for e in ENTRANTS.values() if name in (e.name, e.file)]
        if not found:
            raise SystemExit(f"no such peer: {name!r}; known are {', '.join(ENTRANTS)}.")
        chosen += found
    return list(dict.fromkeys(chosen))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    made.add_argument("step", nargs="?", choices=["install", "run", "report", "all"], default="all")
    made.add_argument("--quick", action="store_true", help="our part on one small problem, nothing installed or kept")
    made.add_argument("--peers", nargs="+", help="peers or variants; all of them if left out")
    made.add_argument("--problems", nargs="+", help="parts of the problems' names; all of them if left out")
    made.add_argument("--seeds", type=int, default=5, help="number of seeds (default: %(default)s)")
    made.add_argument("--from-seed", type=int, default=0, help="the first seed (default: %(default)s)")
    made.add_argument("--seconds", type=float, default=120.0, help="CPU time of one run (default: %(default)s)")
    made.add_argument("--minutes", type=float, default=1e6, help="no run begins after that; the next call goes on")
    made.add_argument("--again", action="store_true", help="make runs anew that the file has")
    made.add_argument("--file", type=Path, default=FILE, help="the file of runs (default: %(default)s)")
    made.add_argument("--output", type=Path, default=environments.ROOT / "docs", help="folder of page and figures")
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = parser().parse_args(arguments)
    if chosen.quick:
        quick()
        return
    if not model_cases():
        print(f"left out, since their data are not here: {', '.join(MODELS)}. WSABI_MODELS names their folder.")
    if chosen.step in ("install", "all"):
        environments.make_all(chosen.peers)
    runs = Runs(chosen.file)
    if chosen.step in ("run", "all"):
        cases = matrix.cases_named(chosen.problems)
        if not cases:
            raise SystemExit(f"no such problem; known are {', '.join(case.label for case in CASES)}.")
        matrix.run_all(
            runs, entrants_named(chosen.peers), cases, range(chosen.from_seed, chosen.from_seed + chosen.seeds),
            seconds=chosen.seconds, minutes=chosen.minutes, again=chosen.again,
        )  # fmt: skip
    if chosen.step in ("report", "all"):
        page.write(runs, chosen.output)


def quick() -> None:
    """Our part and Monte Carlo on one problem, with the page, in a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Path(folder) / "results.json")
        entrants = entrants_named(["wsabi", "monte_carlo"])
        matrix.run_all(runs, entrants, matrix.cases_named(["banana"]), [0], seconds=60.0, minutes=5.0)
        failed = [run for run in runs.runs.values() if run["status"] != "ended"]
        if failed:
            raise SystemExit(f"{len(failed)} of {len(runs.runs)} runs gave no answer.")
        print(page.write(runs, Path(folder)).read_text(encoding="utf-8").split("## The calls")[0])


if __name__ == "__main__":
    main()
