"""The ``wsabi`` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import wsabi
from wsabi import problems as suite
from wsabi import reproduce as paper
from wsabi.cli import comparing, runs, viewing
from wsabi.cli.demo import run_demo
from wsabi.cli.endings import FAILED, INTERRUPTED, USAGE, fail
from wsabi.plots import MissingMatplotlib
from wsabi.reproduce import Outcome, Plan

__all__ = ["app"]

app = typer.Typer(
    help="Bayesian evidence from few likelihood evaluations.", no_args_is_help=True, pretty_exceptions_enable=False
)

runs.register(app)
viewing.register(app)
comparing.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"wsabi {wsabi.__version__}")
        raise typer.Exit


@app.callback()
def wsabi_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Bayesian evidence from few likelihood evaluations."""


@app.command()
def demo(
    budget: Annotated[int, typer.Option(min=1, help="Evaluations of the likelihood.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the run.")] = 0,
) -> None:
    """Estimate the evidence of a small classification problem, live, and compare it with its known value."""
    run_demo(budget, seed)


@app.command()
def problems() -> None:
    """List the problems with known Z."""
    table = Table("name", "D", "log Z", "± s.e.", "what it is", title="wsabi.problems")
    for name in suite.names():
        try:
            problem = suite.get(name)
        except FileNotFoundError:
            table.add_row(name, "", "", "", "needs a data file: see `wsabi reproduce citation`")
            continue
        error = "exact" if problem.log_z_std == 0.0 else f"{problem.log_z_std:.1g}"
        table.add_row(name, str(problem.dim), f"{problem.log_z:.3f}", error, problem.description)
    Console().print(table)


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(paper.names())}; or all.", show_default=False)],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer seeds and samples: a rough outcome.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files; by default reproduction/NAME.", show_default=False)
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The citation data: the file or its folder.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
) -> None:
    """Run an experiment of the paper and write figures, curves and a report."""
    if name != "all" and name not in paper.names():
        fail(f"there is no experiment {name!r}. Known: {', '.join([*paper.names(), 'all'])}.", USAGE)
    chosen = paper.names() if name == "all" else [name]
    root = Path("reproduction") if out is None else out
    partial = False
    for each in chosen:
        folder = root if out is not None and name != "all" else root / each
        try:
            outcome = _run_one(each, folder, quick=quick, data=data, seed=seed)
        except FileNotFoundError as error:
            if name != "all":
                fail(f"{error}\nOn this command line: wsabi reproduce citation --data PATH.", FAILED)
            Console(stderr=True).print(f"{each}: left out, its data are missing. {error}", markup=False)
            continue
        except MissingMatplotlib as error:
            fail(str(error), FAILED)
        except KeyboardInterrupt:
            fail(f"{each}: interrupted before its first step was done; nothing written.", INTERRUPTED)
        _show(outcome)
        partial = outcome.partial
        if partial:
            raise typer.Exit(INTERRUPTED)


def _run_one(name: str, folder: Path, *, quick: bool, data: Path | None, seed: int) -> Outcome:
    """One experiment under a progress bar, on one thread of linear algebra so that times can be compared."""
    bar = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[doing]}", style="dim"), console=Console(stderr=True), transient=True,
    )  # fmt: skip
    task = bar.add_task(name, total=None, doing="")
    plan = Plan(quick=quick, seed=seed, data=data, tell=lambda text: bar.update(task, doing=text))
    with bar, threadpool_limits(1):
        return paper.run(
            name, folder=folder, plan=plan, step=lambda done, size: bar.update(task, completed=done, total=size)
        )


def _show(outcome: Outcome) -> None:
    """Numbers and verdicts, and where the files are."""
    console = Console()
    summary = Table(*outcome.digest.summary.columns, title=outcome.experiment.title)
    for row in outcome.digest.summary.rows:
        summary.add_row(*map(str, row))
    console.print(summary)
    verdicts = Table("the paper says", "measured", "verdict", show_lines=True)
    for claim in outcome.digest.claims:
        verdicts.add_row(claim.statement, claim.measured, claim.verdict)
    if outcome.digest.claims:
        console.print(verdicts)
    state = f"interrupted after {outcome.done} of {outcome.size} steps" if outcome.partial else "complete"
    console.print(f"{state}, {outcome.seconds:.0f} s; report: {outcome.report}", markup=False, soft_wrap=True)
