"""Files of one experiment: CSV tables, figures, and ``report.md``."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import wsabi
from wsabi.plots import save
from wsabi.reproduce.curves import Cell, Table
from wsabi.reproduce.experiment import Digest, Experiment, Plan

__all__ = ["Outcome", "versions", "write"]


@dataclass(frozen=True)
class Outcome:
    """What came of an experiment: its digest, the files written, the time, and whether it was interrupted.

    ``done`` of ``size`` steps were completed.
    """

    experiment: Experiment
    digest: Digest
    files: tuple[Path, ...]
    report: Path
    seconds: float
    done: int
    size: int
    partial: bool


def versions() -> dict[str, str]:
    """Versions of Python, the machine and the packages that the numbers depend on."""
    found = {"Python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    found["wsabi"] = wsabi.__version__
    return found | {package: metadata.version(package) for package in ("numpy", "scipy", "cma", "matplotlib")}


def write(
    experiment: Experiment, plan: Plan, digest: Digest, folder: Path, *, seconds: float, done: int, partial: bool
) -> Outcome:
    """Write tables, figures and the report into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for name, table in digest.tables.items():
        path = folder / f"{name}.csv"
        table.write(path)
        files.append(path)
    for name, figure in digest.figures.items():
        files += save(figure, folder / name)
    report = folder / "report.md"
    size = experiment.size(plan)
    outcome = Outcome(experiment, digest, (*files, report), report, seconds, done, size, partial)
    report.write_text(_text(outcome, plan), encoding="utf-8")
    return outcome


def _text(outcome: Outcome, plan: Plan) -> str:
    experiment, digest = outcome.experiment, outcome.digest
    parts = [f"# {experiment.title}", f"The paper: {experiment.paper}"]
    if outcome.partial:
        parts.append(
            f"**Partial:** the run was interrupted after {outcome.done} of {outcome.size} steps. Figures, numbers and "
            "verdicts are of what had been computed by then."
        )
    if plan.quick:
        parts.append("**Quick:** fewer seeds and samples than the paper's; the verdicts are rough.")
    parts += ["## What was run", _bullets([*_run_facts(outcome, plan), *digest.remarks])]
    parts.append("## Figures")
    parts += [f"![{name}]({name}.png)\n\n{digest.captions.get(name, '')}".rstrip() for name in digest.figures]
    parts += ["## Numbers", markdown(digest.summary)]
    parts += ["## Verdict", _verdicts(digest)]
    parts += ["## Files", _bullets([f"`{path.name}`" for path in outcome.files])]
    parts += ["## Versions", _bullets([f"{name} {version}" for name, version in versions().items()])]
    return "\n\n".join(parts) + "\n"


def _run_facts(outcome: Outcome, plan: Plan) -> list[str]:
    command = f"wsabi reproduce {outcome.experiment.name}{' --quick' if plan.quick else ''} --seed {plan.seed}"
    return [f"`{command}`: {outcome.done} of {outcome.size} steps in {outcome.seconds:.0f} s, one thread."]


def _verdicts(digest: Digest) -> str:
    if not digest.claims:
        return "Too little was computed to judge any statement of the paper."
    rows = [(claim.statement, claim.measured, f"**{claim.verdict}**") for claim in digest.claims]
    return markdown(Table(("the paper says", "measured", "verdict"), rows))


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def markdown(table: Table) -> str:
    """The table in Markdown."""
    head = [_row(table.columns), _row(["---"] * len(table.columns))]
    return "\n".join(head + [_row(row) for row in table.rows])


def _row(cells: Sequence[Cell]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
