"""The file of all runs: read, added to run by run, and replaced in one step, so that an interruption costs one run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

__all__ = ["FILE", "Runs"]

FILE = Path(__file__).with_name("results.json")
Key = tuple[str, str, int]


class Runs:
    """Runs by entrant, problem and seed, and the machines that they ran on.

    Parameters
    ----------
    path : the JSON file; a missing one is empty.
    """

    def __init__(self, path: Path = FILE) -> None:
        self.path = path
        content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"machines": [], "runs": []}
        self.machines: list[dict[str, Any]] = content["machines"]
        self.runs: dict[Key, dict[str, Any]] = {self.key(run): run for run in content["runs"]}

    @staticmethod
    def key(run: dict[str, Any]) -> Key:
        return run["entrant"], run["case"], run["seed"]

    def __contains__(self, key: Key) -> bool:
        return key in self.runs

    def machine(self, described: dict[str, Any]) -> int:
        """The number of this machine, a new one if it is not known."""
        if described not in self.machines:
            self.machines.append(described)
        return self.machines.index(described)

    def add(self, run: dict[str, Any]) -> None:
        self.runs[self.key(run)] = run
        self.save()

    def drop(self, entrant: str, case: str, seed: int) -> None:
        self.runs.pop((entrant, case, seed), None)

    def save(self) -> None:
        """One line for each run, so that a difference of two versions can be read."""
        lines = ",\n".join(json.dumps(run, allow_nan=False) for run in self.runs.values())
        text = f'{{"machines": {json.dumps(self.machines)},\n"runs": [\n{lines}\n]}}\n'
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        os.replace(new, self.path)
