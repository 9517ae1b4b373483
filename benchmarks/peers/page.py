"""docs/benchmarks.md: the parts between markers are written anew from the runs; what stands around them stays."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from benchmarks.peers import figures, tables, targets
from benchmarks.peers.store import Runs

__all__ = ["write"]

NAME = "benchmarks.md"


def filled(text: str, parts: dict[str, Callable[[], str]]) -> str:
    """The text with each ``<!-- NAME: generated -->`` ... ``<!-- end -->`` filled; what has no marker is appended."""
    for name, make in parts.items():
        begin = f"<!-- {name}: generated -->"
        if begin not in text:
            text += f"\n{begin}\n<!-- end -->\n"
        pattern = re.compile(re.escape(begin) + r".*?<!-- end -->", re.DOTALL)
        content = f"{begin}\n\n{make().strip()}\n\n<!-- end -->"
        text = pattern.sub(lambda _match, content=content: content, text, count=1)
    return text


def write(runs: Runs, folder: Path) -> Path:
    """Write the page and its figures into the folder; its path."""
    made = list(runs.runs.values())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    text = path.read_text(encoding="utf-8") if path.exists() else "# Benchmarks\n"
    parts = {
        "conditions": lambda: tables.conditions(made, runs.machines),
        "summary": lambda: tables.summary(made),
        "evaluations": lambda: tables.accuracy_tables(made),
        "times": lambda: tables.time_tables(made),
        "targets": lambda: targets.target_table(made),
        "results": lambda: tables.result_tables(made),
        "calls": tables.calls,
    }
    path.write_text(filled(text, parts), encoding="utf-8")
    for name, figure in figures.all_figures(made).items():
        (folder / "figures").mkdir(exist_ok=True)
        figure.savefig(folder / "figures" / f"benchmarks-{name}.png", dpi=100)
    print(f"written: {path}")
    return path
