"""The demonstration: the evidence of a small classifier, live, beside its known value."""

from __future__ import annotations

import math

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import wsabi
from wsabi import problems
from wsabi.run import Progress as State

__all__ = ["LiveTable", "comparison", "run_demo"]


class LiveTable:
    """A callback that draws a progress bar and, beneath it, how the estimate has moved."""

    def __init__(self, budget: int, truth: float, *, every: int, rows: int = 12) -> None:
        self.truth = truth
        self.every = every
        self.rows = rows
        self.seen: list[tuple[str, ...]] = []
        self.bar = Progress(TextColumn("evaluations"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.task = self.bar.add_task("", total=budget)

    def __call__(self, state: State) -> None:
        """Take note of one step of the integrator."""
        self.bar.update(self.task, completed=state.n_evals)
        if state.n_evals // self.every > len(self.seen):
            numbers: tuple[str, ...] = ("searching", "", "")  # for a mode: there is no estimate yet
            if math.isfinite(state.log_z):
                numbers = (f"{state.log_z:.3f}", f"{state.log_z_std:.3f}", f"{state.log_z - self.truth:+.3f}")
            self.seen.append((str(state.n_evals), f"{state.seconds:.1f}", *numbers))

    def __rich__(self) -> Group:
        """Draw the bar and the last few rows."""
        table = Table("evaluations", "seconds", "log Z", "error bar", "error")
        for row in self.seen[-self.rows :]:
            table.add_row(*row)
        return Group(self.bar, table)


def comparison(result: wsabi.Result, problem: problems.Problem) -> Table:
    """The estimate and the truth side by side."""
    table = Table("", "log Z", "sd", title=f"{problem.name}, {problem.dim} parameters, {result.n_evals} evaluations")
    table.add_row("estimate", f"{result.log_z:.3f}", f"{result.log_z_std:.3f}")
    table.add_row("known value", f"{problem.log_z:.3f}", f"{problem.log_z_std:.3f}")
    table.add_row("difference", f"{result.log_z - problem.log_z:+.3f}", "")
    return table


def run_demo(budget: int, seed: int, console: Console | None = None) -> wsabi.Result:
    """Integrate out the hyperparameters of the synthetic classifier, drawing as it goes."""
    console = console or Console()
    console.print("Gaussian-process classification of 500 points: the hyperparameters are integrated out.")
    problem = problems.synthclass()
    table = LiveTable(budget, problem.log_z, every=max(1, budget // 10))
    with Live(table, console=console, refresh_per_second=8):
        result = wsabi.integrate(problem.log_likelihood, problem.prior, budget=budget, rng=seed, callback=table)
    console.print(f"\n{result}\n", markup=False, highlight=False)
    console.print(comparison(result, problem))
    return result
