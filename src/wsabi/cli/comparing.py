"""``wsabi compare``: which model, from the files of their runs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from wsabi.cli.endings import FAILED, USAGE, fail, finite, record_of, result_of
from wsabi.cli.viewing import check_format, save_figure
from wsabi.comparison import Comparison, compare
from wsabi.plots import MissingMatplotlib
from wsabi.runs.lock import holder
from wsabi.runs.state import RunState

__all__ = ["model_names", "register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "compare", epilog="Examples: wsabi compare linear.db quadratic.db · "
        "wsabi compare linear.db quadratic.json --prior-odds 2,1 · wsabi compare *.db --json | jq .verdict",
    )(compare_command)  # fmt: skip


def compare_command(
    files: Annotated[
        list[Path], typer.Argument(help="Journals or saved results of the same data, two or more.", show_default=False)
    ],
    prior_odds: Annotated[
        str | None,
        typer.Option(help="Prior weights of the models, in the order of the files: 2,1.", show_default=False),
    ] = None,
    doubtful: Annotated[bool, typer.Option("--doubtful", help="Compare results that have warnings too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for other programs.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the comparison too: .png, .svg or .pdf.", show_default=False)
    ] = None,
) -> None:
    """Compare models by their evidence: Bayes factors, probabilities, a verdict. They must be of the same data."""
    names = model_names(files)
    odds = None if prior_odds is None else _odds(prior_odds, names)
    if plot is not None:
        check_format(plot)
    for name, file in zip(names, files, strict=True):
        state = RunState.of(record_of(file), holder(file))
        if state.kind != "ended":
            sys.stderr.write(f"{name}: {state.words}; compared as far as it went\n")
    results = {name: result_of(file) for name, file in zip(names, files, strict=True)}
    warned = [name for name, result in results.items() if result.warnings]
    if warned and not doubtful:
        said = "\n".join(f"  {name}: {warning}" for name in warned for warning in results[name].warnings)
        fail(
            f"{', '.join(warned)}: doubtful, and so is any comparison with "
            f"{'it' if len(warned) == 1 else 'them'}.\n{said}\nRepair that, or compare all the same with --doubtful.",
            FAILED,
        )
    comparison = compare(results, prior_odds=odds, allow_doubtful=True)
    if as_json:
        sys.stdout.write(json.dumps(_facts(comparison), ensure_ascii=False, allow_nan=False) + "\n")
    else:
        sys.stdout.write(f"{comparison}\n")
    if plot is not None:
        _draw(comparison, plot)


def model_names(files: Sequence[Path]) -> list[str]:
    """Names of models, from those of their files: without suffix, and with as many folders as tell them apart."""
    if len(files) < 2:
        fail("give two files or more: wsabi compare linear.db quadratic.db.", USAGE)
    if len({file.resolve() for file in files}) < len(files):
        fail("the same file is given twice.", USAGE)
    paths = [file.resolve().with_suffix("").parts for file in files]
    for n in range(1, max(map(len, paths))):
        names = ["/".join(parts[-n:]) for parts in paths]
        if len(set(names)) == len(names):
            return names
    return [file.resolve().as_posix() for file in files]  # they differ in their suffixes only


def _odds(text: str, names: Sequence[str]) -> dict[str, float]:
    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError:
        fail(f"--prior-odds must be numbers such as 2,1; got {text!r}.", USAGE)
    if len(weights) != len(names) or not all(math.isfinite(weight) and weight > 0.0 for weight in weights):
        fail(f"--prior-odds must be a positive number for each of {', '.join(names)}; got {text!r}.", USAGE)
    return dict(zip(names, weights, strict=True))


def _facts(comparison: Comparison) -> dict[str, Any]:
    """The comparison as data."""
    models = {
        name: {
            "log_z": finite(comparison.log_z[k]), "log_z_std": finite(comparison.log_z_std[k]),
            "prior": float(comparison.prior[k]), "probability": float(comparison.probabilities[k]),
            "interval": comparison.intervals[k].tolist(), "ahead": float(comparison.ahead[k]),
        }
        for k, name in enumerate(comparison.names)
    }  # fmt: skip
    return {
        "best": comparison.best, "verdict": comparison.verdict, "models": models, "notes": list(comparison.notes),
    }  # fmt: skip


def _draw(comparison: Comparison, place: Path) -> None:
    try:
        figure = comparison.plot()
    except MissingMatplotlib as error:
        fail(str(error), FAILED)
    save_figure(figure, place)
