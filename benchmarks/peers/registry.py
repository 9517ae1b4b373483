"""The peers: what `methods/` holds, by the names of their variants."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from benchmarks.peers import methods
from benchmarks.peers.task import Answer, Peer, Task

__all__ = ["ENTRANTS", "OURS", "Entrant", "files"]

OURS = "wsabi"

# The order of tables, and of runs of one problem: ours, then from the quick to the slow. Others follow by name.
ORDER = (
    "wsabi",
    "monte_carlo",
    "dynesty",
    "nautilus",
    "ultranest",
    "emukit",
    "pyvbmc",
    "gpry",
    "alabi",
    "bobe",
    "pocomc",
)


@dataclass(frozen=True)
class Entrant:
    """One variant of one peer."""

    name: str
    file: str
    options: Mapping[str, Any]
    module: ModuleType

    @property
    def peer(self) -> Peer:
        peer: Peer = self.module.PEER
        return peer

    def run(self, task: Task) -> Answer:
        answer: Answer = self.module.run(task, **self.options)
        return answer


def files() -> dict[str, ModuleType]:
    """The modules of `methods/` by name. None of them imports its package before it runs."""
    names = [module.name for module in pkgutil.iter_modules(methods.__path__)]
    names.sort(key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))
    return {name: importlib.import_module(f"{methods.__name__}.{name}") for name in names}


ENTRANTS: dict[str, Entrant] = {
    name: Entrant(name, file, options, module)
    for file, module in files().items()
    for name, options in module.PEER.variants.items()
}
