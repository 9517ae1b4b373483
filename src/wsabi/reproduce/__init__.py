"""The paper's experiments, each from computation to curves, CSV files, figures and a report.

>>> from wsabi import reproduce
>>> reproduce.names()[:2]
['bayes-hermite-vs-sqrt', 'chi-squared']
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wsabi.plots import require_matplotlib
from wsabi.reproduce.chi_squared import CHI_SQUARED
from wsabi.reproduce.curves import Table, Trace
from wsabi.reproduce.evidence import CITATION, SYNTHETIC, YACHT
from wsabi.reproduce.experiment import Claim, Digest, Experiment, Plan
from wsabi.reproduce.mixtures import MIXTURES
from wsabi.reproduce.one_dimension import ACTIVE_L, ACTIVE_M, GRID
from wsabi.reproduce.report import Outcome, write

__all__ = ["Claim", "Digest", "Experiment", "Outcome", "Plan", "Table", "Trace", "get", "names", "run"]

EXPERIMENTS = (GRID, CHI_SQUARED, ACTIVE_L, ACTIVE_M, MIXTURES, YACHT, SYNTHETIC, CITATION)


def names() -> list[str]:
    """Names of all experiments, in the order of the paper."""
    return [experiment.name for experiment in EXPERIMENTS]


def get(name: str) -> Experiment:
    """The experiment of that name.

    Raises
    ------
    ValueError
        If there is none; the message lists those that there are.
    """
    for experiment in EXPERIMENTS:
        if experiment.name == name:
            return experiment
    raise ValueError(f"name must be one of {', '.join(names())}; got {name!r}.")


def run(
    name: str, *, folder: Path, plan: Plan | None = None, step: Callable[[int, int], object] | None = None
) -> Outcome:
    """Run an experiment and write its files into ``folder``; Ctrl-C writes what there is by then.

    Parameters
    ----------
    name : one of :func:`names`.
    folder : for the files; made if need be.
    plan : quick or full, seed, data.
    step : called with the number of steps done and to do, after each.

    Raises
    ------
    ValueError
        For an unknown name.
    FileNotFoundError
        If the experiment's data are missing.
    wsabi.plots.MissingMatplotlib
        If figures cannot be drawn.
    KeyboardInterrupt
        If it was interrupted before its first step was done: there is nothing to write.
    """
    experiment = get(name)
    plan = plan or Plan()
    require_matplotlib()
    started = time.perf_counter()
    items, partial = _collect(experiment, plan, step)
    if not items:
        raise KeyboardInterrupt
    digest = experiment.digest(plan, items)
    seconds = time.perf_counter() - started
    return write(experiment, plan, digest, folder, seconds=seconds, done=len(items), partial=partial)


def _collect(experiment: Experiment, plan: Plan, step: Callable[[int, int], object] | None) -> tuple[list[Any], bool]:
    """Outcomes of the steps, and whether an interruption ended them early."""
    items: list[Any] = []
    size = experiment.size(plan)
    try:
        for item in experiment.steps(plan):
            items.append(item)
            if step is not None:
                step(len(items), size)
            if getattr(item, "interrupted", False):
                return items, True
    except KeyboardInterrupt:
        return items, True
    return items, False
