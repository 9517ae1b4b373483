"""Estimate the evidence of a Gaussian-process classifier, live, and compare it with its known value."""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import wsabi
from wsabi import problems


class LiveTable:
    """A callback that draws a progress bar and, beneath it, how the estimate has moved."""

    def __init__(self, budget: int, truth: float, *, every: int, rows: int = 12) -> None:
        self.truth = truth
        self.every = every
        self.rows = rows
        self.seen: list[tuple[str, ...]] = []
        self.bar = Progress(TextColumn("evaluations"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.task = self.bar.add_task("", total=budget)

    def __call__(self, state: Any) -> None:
        """Take note of one step of the integrator."""
        self.bar.update(self.task, completed=state.n_evals)
        if state.n_evals // self.every > len(self.seen):
            numbers = (f"{state.log_z:.3f}", f"{state.log_z_std:.3f}", f"{state.log_z - self.truth:+.3f}")
            self.seen.append((str(state.n_evals), f"{state.seconds:.1f}", *numbers))

    def __rich__(self) -> Group:
        """Draw the bar and the last few rows."""
        table = Table("evaluations", "seconds", "log Z", "claimed sd", "error")
        for row in self.seen[-self.rows :]:
            table.add_row(*row)
        return Group(self.bar, table)


def verdict(result: Any, problem: Any) -> Table:
    """The estimate and the truth side by side."""
    table = Table("", "log Z", "sd", title=f"{problem.name}, {problem.dim} parameters, {result.n_evals} evaluations")
    table.add_row("estimate", f"{result.log_z:.3f}", f"{result.log_z_std:.3f}")
    table.add_row("known value", f"{problem.log_z:.3f}", f"{problem.log_z_std:.3f}")
    table.add_row("difference", f"{result.log_z - problem.log_z:+.3f}", "")
    return table


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=200, help="evaluations of the likelihood (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the run (default: %(default)s)")
    arguments = parser.parse_args()

    console = Console()
    console.print("Gaussian-process classification of 500 points: the hyperparameters are integrated out.")
    problem = problems.synthclass()
    table = LiveTable(arguments.budget, problem.log_z, every=max(1, arguments.budget // 10))
    with Live(table, console=console, refresh_per_second=8):
        result = wsabi.integrate(
            problem.log_likelihood, problem.prior, budget=arguments.budget, rng=arguments.seed, callback=table
        )
    console.print(f"\n{result}\n", markup=False, highlight=False)
    console.print(verdict(result, problem))


if __name__ == "__main__":
    main()
