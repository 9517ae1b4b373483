"""``wsabi plot``, ``report`` and ``watch``: pictures and pages of the file of a run."""

from __future__ import annotations

import sys
import time
import webbrowser
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from wsabi.cli.endings import FAILED, USAGE, File, Prior, fail, prior_from, quietly, record_of, result_of
from wsabi.pages.document import document
from wsabi.pages.live import LivePage
from wsabi.pages.of_file import RunFile
from wsabi.pages.serving import served
from wsabi.plots import MissingMatplotlib, require_matplotlib

__all__ = ["check_format", "open_page", "register", "save_figure"]

FORMATS = (".png", ".svg", ".pdf")
DPI = 150  # dots per inch of a .png
PAUSE = 0.5  # seconds between two looks at the file that is watched


class What(StrEnum):
    """The pictures of a result."""

    corner = "corner"
    convergence = "convergence"
    searches = "searches"
    slices = "slices"
    check = "check"
    all = "all"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(
        "plot", epilog="Examples: wsabi plot run.db · wsabi plot run.db --what all -o figures/ · "
        "wsabi plot run.db --parameters tau,beta -o corner.pdf",
    )(plot_command)  # fmt: skip
    app.command("report", epilog="Example: wsabi report run.db -o report.html")(report_command)
    app.command(
        "watch", epilog="Examples: wsabi watch run.db · on a cluster: wsabi watch run.db --no-browser --port 8765, and "
        "at home ssh -L 8765:127.0.0.1:8765 cluster",
    )(watch_command)  # fmt: skip


# -- pictures ---------------------------------------------------------------------------------------------------------


def plot_command(
    file: File,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help=".png, .svg or .pdf; or a folder. By default run-corner.png for run.db.",
                     show_default=False),
    ] = None,
    what: Annotated[What, typer.Option(help="Which picture; all of them have --what in their names.")] = What.corner,
    parameters: Annotated[
        str | None, typer.Option(help="Of the corner plot, such as tau,beta; up to twelve.", show_default=False)
    ] = None,
    prior: Prior = None,
) -> None:  # fmt: skip
    """Draw pictures of a run, also while it goes on."""
    wanted = [one.value for one in What if one is not What.all] if what is What.all else [what.value]
    places = _places(file, out, wanted, several=what is What.all)
    try:
        require_matplotlib()
    except MissingMatplotlib as error:
        fail(str(error), FAILED)
    result = result_of(file, prior_from(prior))
    chosen = None if parameters is None else [name.strip() for name in parameters.split(",")]
    written = 0
    for name, place in places.items():
        try:
            figure = quietly(partial(getattr(result.plot, name), *([chosen] if name == "corner" else [])))
        except (ValueError, KeyError) as error:  # the run has nothing of the kind, or no such parameter
            sys.stderr.write(f"{name}: {error.args[0]}\n")
            continue
        save_figure(figure, place)
        sys.stdout.write(f"{place}\n")
        written += 1
    if not written:
        raise typer.Exit(FAILED)


def _places(file: Path, out: Path | None, wanted: list[str], *, several: bool) -> dict[str, Path]:
    """Where each picture goes."""
    if out is None or out.is_dir() or (several and not out.suffix):
        folder = Path() if out is None else out
        return {what: folder / f"{file.stem}-{what}.png" for what in wanted}
    check_format(out)
    return {what: out.with_stem(f"{out.stem}-{what}") if several else out for what in wanted}


def check_format(place: Path) -> None:
    """End the command where a picture cannot be written to such a file."""
    if place.suffix.lower() not in FORMATS:
        fail(f"pictures are written to a {', '.join(FORMATS)} file; got {place}.", USAGE)


def save_figure(figure: Any, place: Path) -> None:
    """Write a figure in the format of its suffix; where that cannot be, the command ends."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(place, dpi=DPI)
    except OSError as error:
        fail(f"{place} cannot be written: {error.strerror or error}.", FAILED)


# -- pages ------------------------------------------------------------------------------------------------------------


def report_command(
    file: File,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="By default run.html for run.db.", show_default=False)
    ] = None,
    prior: Prior = None,
) -> None:
    """Write a page about a run, one HTML file; of a run that failed or goes on it says so."""
    if not file.is_file():
        fail(f"there is no file {file}.", FAILED)
    place = file.with_suffix(".html") if out is None else out
    run = RunFile(file, prior=prior_from(prior))
    page = document(quietly(run.content))
    try:
        place.write_text(page, encoding="utf-8")
    except OSError as error:
        fail(f"{place} cannot be written: {error.strerror}.", FAILED)
    sys.stdout.write(f"{place}\n")
    if run.record is None:
        fail(run.problem, FAILED)


def watch_command(
    file: File,
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="Port of this machine; by default one that is free.", show_default=False),
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser, where there is one.")
    ] = True,
    prior: Prior = None,
) -> None:  # fmt: skip
    """Show the page of a run while it goes on, on this machine only; the page updates itself. Ctrl-C ends it."""
    given = prior_from(prior)
    record_of(file)  # a file that cannot be read at all is not worth watching
    page = LivePage(RunFile(file, prior=given))
    try:
        with served(page, port) as address:
            sys.stdout.write(f"{address}\n")
            sys.stdout.flush()
            sys.stderr.write(f"Watching {file}. Ctrl-C ends this; the run is not touched.\n")
            if browser:
                open_page(address)
            while True:
                quietly(page.refresh)
                time.sleep(PAUSE)
    except KeyboardInterrupt:
        sys.stderr.write("\nNo longer watching.\n")
    except OSError as error:
        fail(f"port {port} of this machine cannot be used: {error.strerror}. Give another --port.", FAILED)


def open_page(address: str) -> None:
    """Open a page in a browser with a window; one that would take over the terminal is left alone."""
    try:
        found = webbrowser.get()
    except webbrowser.Error:
        return
    if type(found) is not webbrowser.GenericBrowser:
        found.open(address)
