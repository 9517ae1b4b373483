"""``wsabi run``, ``resume``, ``show``, ``export`` and ``init``."""

from __future__ import annotations

import json
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import numpy as np
import typer

import wsabi
from wsabi.cli.draws import WRITERS
from wsabi.cli.endings import (
    FAILED,
    INTERRUPTED,
    USAGE,
    File,
    Prior,
    fail,
    finite,
    prior_from,
    quietly,
    record_of,
    result_of,
)
from wsabi.cli.problem import ProblemError, model_of
from wsabi.errors import JournalError, LikelihoodError, NumericalError, WorkersLost
from wsabi.run import Progress, RunOptions, run
from wsabi.runs.display import Display
from wsabi.runs.journal import Record
from wsabi.runs.lock import holder
from wsabi.runs.state import RunState

__all__ = ["register"]

Target = Annotated[
    str | None,
    typer.Argument(help="model.py:log_likelihood or package.module:name; or a wsabi.Model.", show_default=False),
]
Command = Annotated[
    str | None,
    typer.Option(
        help="A program instead: './simulate {a} {b}', or without braces JSON on its standard input. It prints log ℓ.",
        show_default=False,
    ),
]  # fmt: skip
RunPrior = Annotated[
    str | None,
    typer.Option(help="prior.toml or model.py:prior; by default the prior of the model file.", show_default=False),
]
Budget = Annotated[int | None, typer.Option(min=1, help="Evaluations in all.", show_default=False)]
Tol = Annotated[float | None, typer.Option(min=0.0, help="Error of log Z that will do.", show_default=False)]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes that evaluate.", show_default=False)]
Timeout = Annotated[float | None, typer.Option(help="Seconds for one call; needs --workers.", show_default=False)]
Journal = Annotated[Path, typer.Argument(help="The journal of a run.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(
        "run",
        epilog="Examples: wsabi run model.py:log_likelihood --prior prior.toml --budget 500 --workers 8 --out run.db · "
        "wsabi run --command './simulate {a} {b}' --prior prior.toml · Ctrl-C once finishes what is under way and "
        "stops, twice stops at once; wsabi resume run.db goes on.",
    )(run_command)
    app.command("resume", epilog="Example: wsabi resume run.db --budget 1000")(resume_command)
    app.command("show", epilog="Examples: wsabi show run.db · wsabi show run.db --json | jq .log_z")(show_command)
    app.command("export", epilog="Examples: wsabi export run.db draws.csv · wsabi export run.db draws.nc -n 4000")(
        export_command
    )
    app.command("init", epilog="Example: wsabi init && wsabi run model.py:log_likelihood --prior prior.toml")(
        init_command
    )


def run_command(
    target: Target = None,
    command: Command = None,
    prior: RunPrior = None,
    budget: Budget = None,
    tol: Tol = None,
    max_seconds: Annotated[float | None, typer.Option(help="Seconds for this session.", show_default=False)] = None,
    workers: Workers = None,
    timeout: Timeout = None,
    on_error: Annotated[str, typer.Option(help="'raise' or 'exclude' evaluations that fail.")] = "raise",
    retries: Annotated[int, typer.Option(min=0, help="Times to try a failed evaluation again.")] = 0,
    vectorized: Annotated[bool, typer.Option("--vectorized", help="The likelihood takes (N, D) arrays.")] = False,
    batch: Annotated[int, typer.Option(min=1, help="Points at a time, for each worker.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="The journal; by default named after the model.", show_default=False)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on if the journal exists.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Estimate the evidence of a model, and keep every evaluation in a journal."""
    path = out if out is not None else Path(f"{_stem(target, command)}.db")
    if path.exists() and path.stat().st_size and not resume:
        fail(f"{path} exists. Go on with it: wsabi resume {path}. For a new run give another --out.", USAGE)
    call = {
        "target": target, "command": command, "prior": prior, "budget": budget, "tol": tol, "max_seconds": max_seconds,
        "workers": workers, "timeout": timeout, "on_error": on_error, "retries": retries, "vectorized": vectorized,
        "batch": batch, "seed": seed,
    }  # fmt: skip
    _go({**call, "target": _absolute(target), "prior": _absolute(prior)}, path, quiet=quiet)


def resume_command(
    journal: Journal,
    budget: Budget = None,
    tol: Tol = None,
    max_seconds: Annotated[float | None, typer.Option(help="Seconds for this session.", show_default=False)] = None,
    workers: Workers = None,
    timeout: Timeout = None,
    target: Annotated[
        str | None, typer.Option("--likelihood", help="Where the likelihood is now.", show_default=False)
    ] = None,
    command: Command = None,
    prior: RunPrior = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Go on with a run where it stopped, with the likelihood and the options that it was begun with."""
    record = record_of(journal)
    call = dict(record.run.get("call") or {})
    host = record.run.get("host")
    named = target is not None or command is not None
    if not named and not call:
        fail(f"{journal} was not begun by wsabi run: say what to evaluate, --likelihood model.py:name.", USAGE)
    if not named and host != socket.gethostname():
        what = call.get("command") or call.get("target")
        fail(
            f"{journal} comes from another machine ({host}) and names what to run there: {what}. If you trust it, name "
            "it yourself: --likelihood model.py:name or --command '...', with --prior.",
            USAGE,
        )
    if named:
        call.update(target=_absolute(target), command=command)
    changes = {"budget": budget, "tol": tol, "workers": workers, "timeout": timeout, "prior": _absolute(prior)}
    call.update({key: value for key, value in changes.items() if value is not None}, max_seconds=max_seconds)
    call["seed"] = None  # the run's own
    _go(call, journal, quiet=quiet)


def show_command(
    journal: File,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for other programs.")] = False,
    prior: Prior = None,
) -> None:
    """Show the result so far, also while the run goes on; the likelihood is not called."""
    result, error = None, ""
    record, given = record_of(journal), prior_from(prior)
    try:
        result = quietly(lambda: wsabi.load(journal, prior=given))
    except (JournalError, NumericalError) as fault:
        error = str(fault)
    facts = _facts(journal, record, result, error)
    if as_json:
        sys.stdout.write(json.dumps(facts, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        sys.stdout.write(f"{facts['state']}\n")
        sys.stdout.write(f"{result}\n" if result is not None else f"{facts['n_evals']} evaluations; {error}\n")
    if result is None:
        raise typer.Exit(FAILED)


def export_command(
    journal: File,
    out: Annotated[Path, typer.Argument(help="draws.csv, draws.npz or draws.nc.", show_default=False)],
    n: Annotated[int, typer.Option("-n", min=1, help="Number of draws.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    prior: Prior = None,
) -> None:
    """Write draws from the posterior to a file."""
    if out.suffix not in WRITERS:
        fail(f"draws are written to a {', '.join(WRITERS)} file; got {out}.", USAGE)
    result = result_of(journal, prior_from(prior))
    try:
        WRITERS[out.suffix](result, out, n, seed)
    except ImportError as error:
        fail(str(error), FAILED)
    except OSError as error:
        fail(f"{out} cannot be written: {error.strerror or error}.", FAILED)
    sys.stderr.write(f"{n} draws of {len(result.names)} parameters in {out}\n")


MODEL = '''"""A model for `wsabi run model.py:log_likelihood --prior prior.toml`: replace it by yours."""

import math


def log_likelihood(p):
    """Log of the likelihood at p, a dict with the names of prior.toml.

    Return -math.inf where the model does not exist. This example: a straight line through three points.
    """
    data = [(0.0, 1.1), (1.0, 2.9), (2.0, 5.2)]
    if p["sigma"] <= 0.0:
        return -math.inf
    residuals = [(y - p["slope"] * x - p["offset"]) / p["sigma"] for x, y in data]
    norm = len(data) * (math.log(p["sigma"]) + 0.5 * math.log(2.0 * math.pi))
    return -0.5 * sum(r * r for r in residuals) - norm
'''
PRIOR = """# One line for each parameter: its name, and [low, high] for a uniform distribution,
# or a distribution of scipy.stats with its parameters.

slope = { distribution = "norm", loc = 0.0, scale = 5.0 }
offset = { distribution = "norm", loc = 0.0, scale = 5.0 }
sigma = [0.05, 2.0]
"""


def init_command(
    folder: Annotated[Path, typer.Argument(help="Where to write them.")] = Path(),
) -> None:
    """Write a commented model.py and prior.toml to start from."""
    files = {folder / "model.py": MODEL, folder / "prior.toml": PRIOR}
    for path in files:
        if path.exists():
            fail(f"{path} exists and was left as it is.", USAGE)
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"Written: {', '.join(map(str, files))}. Now:\n")
    model, prior = files
    sys.stdout.write(f"  wsabi run {model}:log_likelihood --prior {prior} --budget 200\n")


# -- a run ------------------------------------------------------------------------------------------------------------


class _Interrupts:
    """Ctrl-C: the first finishes what is under way, the second stops at once."""

    def __init__(self) -> None:
        self.n = 0

    def __enter__(self) -> _Interrupts:
        self._before = signal.signal(signal.SIGINT, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _take(self, number: int, frame: FrameType | None) -> None:
        self.n += 1
        if self.n > 1:
            raise KeyboardInterrupt
        sys.stderr.write("\nCtrl-C: finishing what is under way; once more to stop at once.\n")


def _go(call: Mapping[str, Any], path: Path, *, quiet: bool) -> None:
    """Begin or go on with a run, show it, and end with its exit code."""
    try:
        model = model_of(call["target"], call["command"], call["prior"], vectorized=bool(call["vectorized"]))
    except (ProblemError, ValueError, TypeError) as error:
        fail(str(error), USAGE)
    options = {
        key: call[key] for key in ("budget", "max_seconds", "tol", "workers", "timeout", "on_error", "retries", "batch")
    }
    with _Interrupts() as interrupts, Display() as display:
        show = display if not quiet else None

        def each(state: Progress) -> bool:
            if show is not None:
                show(state)
            return interrupts.n == 0

        try:
            with wsabi.Integrator(model, rng=call["seed"], journal=path) as integrator:
                if integrator.journal is None:
                    raise JournalError(f"{path} has no journal.")
                if integrator.journal.get("call") is None or call["seed"] is None:
                    integrator.journal.set("call", dict(call))
                if integrator.n_evals and not quiet:
                    sys.stderr.write(f"{path}: going on after {integrator.n_evals} evaluations\n")
                chosen = RunOptions(callback=each, **options).for_model(model, adaptive=integrator.is_adaptive)
                result = quietly(lambda: run(integrator, model.log_likelihood, chosen, n_before=0))
                if result.reason == "callback":  # by `each`, at Ctrl-C
                    result = replace(result, reason="interrupted")
                    integrator.journal.set("end", {**integrator.journal.get("end"), "reason": "interrupted"})
        except KeyboardInterrupt:
            fail(f"stopped before there was anything to show. Go on: wsabi resume {path}", INTERRUPTED)
        except (LikelihoodError, WorkersLost, JournalError, NumericalError, ValueError, TypeError) as error:
            notes = " Go on: wsabi resume {path}" if isinstance(error, LikelihoodError | WorkersLost) else ""
            fail(f"{error}{notes.format(path=path)}", FAILED)
    sys.stdout.write(f"{result}\n")
    if result.reason == "interrupted":
        fail(f"stopped by Ctrl-C after {result.n_evals} evaluations. Go on: wsabi resume {path}", INTERRUPTED)
    if not quiet:
        sys.stderr.write(f"journal: {path}\n")


def _facts(path: Path, record: Record, result: wsabi.Result | None, error: str) -> dict[str, Any]:
    """What ``show`` tells, as data."""
    state = RunState.of(record, holder(path))
    goes_on = f"; go on: wsabi resume {path}" if state.is_cut_short else ""
    facts: dict[str, Any] = {
        "state": f"{path}: {state.words}{goes_on}", "running": state.kind == "running", "ended": state.kind == "ended",
        "n_evals": state.n_evals, "n_failed": state.n_failed, "likelihood": record.run.get("likelihood"),
        "versions": record.run.get("versions"),
    }  # fmt: skip
    if result is None:
        return {**facts, "error": error}
    low, high = result.interval(0.95)
    mean, sd = result.posterior.mean, np.sqrt(np.diag(result.posterior.cov))
    posterior = {name: {"mean": finite(m), "sd": finite(s)} for name, m, s in zip(result.names, mean, sd, strict=True)}
    return {
        **facts, "log_z": finite(result.log_z), "log_z_std": finite(result.log_z_std),
        "interval": [finite(low), finite(high)], "reason": result.reason, "converged": result.converged,
        "seconds": result.seconds, "warnings": list(result.warnings), "notes": list(result.notes),
        "posterior": posterior,
    }  # fmt: skip


def _stem(target: str | None, command: str | None) -> str:
    place = (target or "").rpartition(":")[0] or (command or "run").split()[0]
    return Path(place).stem.rpartition(".")[2] or "run"


def _absolute(spec: str | None) -> str | None:
    """The same file from any folder; names of modules are left as they are."""
    if spec is None:
        return None
    place, colon, name = spec.rpartition(":") if not spec.endswith(".toml") else (spec, "", "")
    return f"{Path(place).resolve()}{colon}{name}" if place.endswith((".py", ".toml")) else spec
