"""Does the engine find modes that hide? Default runs on the problems of benchmarks/hidden_modes.py.

    python -m benchmarks.study_hidden_modes [NAME ...] [--seeds 10] [--unseen] [--dear]

Runs are `wsabi.integrate(log_likelihood, prior, rng=seed)`, on the half for development; ``--unseen`` takes the other
half, which is meant for one look. Evaluations are cheap here, so that runs go on with bulk points; ``--dear`` switches
these off, as if each evaluation took seconds: it is the searches alone that have to find the modes.

A mode counts where it holds more than 5 % of Z. It is found where an evaluation lies within D/2 + 3 nats of its top and
an ascent from there ends at it: a posterior draw has D/2 nats less than the top in the mean. The first such evaluation
says what has found it: the kind of the search that asked for it, or what else it was for.

The first table has, of each problem: runs that found all modes; modes found, of all; 95 % intervals that cover; runs
that neither cover nor warn; runs that warn; medians of error, error bar and evaluations; the largest error. The second
has, of each kind of search: how many there were, evaluations of each, how many ended in a new region, and how many
modes they found first, apart from the mode that is found first of all. Then follow the runs that neither cover nor
warn.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

import wsabi
from benchmarks.hidden_modes import DEVELOPMENT, MAKERS, UNSEEN
from benchmarks.measuring import RESULTS, Options, cpu_seconds, print_table, save
from benchmarks.mode_search import Surface, top_of
from benchmarks.stored_modes import Mode, modes_of
from benchmarks.study_held_out import to_base
from wsabi import Independent
from wsabi._core.types import Array
from wsabi.problems import Problem

LEAST_SHARE = 0.05  # of Z: modes with less do not count
TRIALS = 15  # evaluations whose ascents are followed before a mode counts as not found
KINDS = ("annealed", "greedy", "ascent", "around a point", "check", "refine", "image", "bulk")


@dataclass(frozen=True)
class Found:
    """A mode that counts: its shares of Z and of ascents, and the first evaluation in it; None where there is none."""

    share: float
    ascents: float
    evaluation: int | None
    by: str | None


@dataclass(frozen=True)
class Run:
    """One run: the error of log Z and its reported sd in nats, and the modes that count."""

    problem: str
    seed: int
    error: float
    log_z_std: float
    truth_std: float
    converged: bool
    n_evals: int
    seconds: float
    warnings: tuple[str, ...]
    error_budget: str
    searches: tuple[tuple[str, str, str, int], ...]  # kind, start, outcome, evaluations
    modes: tuple[Found, ...]

    @property
    def covers(self) -> bool:
        return abs(self.error) <= 1.96 * math.hypot(self.log_z_std, self.truth_std)

    @property
    def is_silent(self) -> bool:
        """Whether the interval does not cover and nothing warns."""
        return not self.covers and not self.warnings

    @property
    def is_complete(self) -> bool:
        return all(mode.by is not None for mode in self.modes)


def found_by(purpose: str, result: wsabi.Result) -> str:
    """What an evaluation with that purpose was for, in one of KINDS."""
    if not purpose.startswith("search "):
        return purpose
    number = int(purpose.split()[1])
    if number >= len(result.searches):  # it was under way when the run ended
        return "unfinished search"
    record = result.searches[number]
    return record.kind if record.start == "prior" else "around a point"


def first_in(mode: int, modes: Sequence[Mode], surface: Surface, U: Array, log_joint: Array) -> int | None:
    """The first of the evaluations U (N, D) that has found that mode, or None; ascents are followed from TRIALS."""
    here = modes[mode]
    high = log_joint > here.log_joint - 0.5 * U.shape[1] - 3.0
    distances = np.array([_distance(U, other) for other in modes])
    nearest = high & (np.argmin(distances, axis=0) == mode)
    for n in np.flatnonzero(nearest)[:TRIALS]:
        if top_of(surface, modes, U[n]) == mode:
            return int(n)
    return None


def _distance(U: Array, mode: Mode) -> Array:
    """(u − m)ᵀC⁻¹(u − m), (N,)."""
    offsets = U - mode.u
    return np.asarray((offsets * np.linalg.solve(mode.cov, offsets.T).T).sum(axis=1))


def run(name: str, seed: int, *, dear: bool) -> Run:
    """One run as a user would make it: defaults, a seed, no budget; without bulk points if evaluations are dear."""
    problem, modes = MAKERS[name](), modes_of(name)
    settings = wsabi.Settings(bulk="off" if dear else "auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result, seconds = cpu_seconds(
            lambda: wsabi.integrate(problem.log_likelihood, problem.prior, rng=seed, settings=settings)
        )
    return Run(
        name,
        seed,
        result.log_z - problem.log_z,
        result.log_z_std,
        problem.log_z_std,
        result.converged,
        result.n_evals,
        seconds,
        result.warnings,
        str(result.error_budget),
        tuple((one.kind, one.start, one.outcome, one.n_evals) for one in result.searches),
        found(problem, modes, result),
    )


def found(problem: Problem, modes: Sequence[Mode], result: wsabi.Result) -> tuple[Found, ...]:
    """The modes that count, and what has found each of them."""
    surface = Surface(to_base(problem))
    asked = {} if result.ledger is None else {one.x.tobytes(): one.purpose for one in result.ledger.evaluations}
    U = cast("Independent", problem.prior).marginals.to_base(result.points)
    log_joint = surface(U)
    met = []
    for number, mode in enumerate(modes):
        if mode.share > LEAST_SHARE:
            first = first_in(number, modes, surface, U, log_joint)
            by = None if first is None else found_by(asked.get(result.points[first].tobytes(), "bulk"), result)
            met.append(Found(mode.share, mode.ascents, first, by))
    return tuple(met)


def row(runs: Sequence[Run]) -> list[str]:
    """One line of the first table."""
    errors, n = np.abs([r.error for r in runs]), len(runs)
    modes = [mode for r in runs for mode in r.modes]
    dim = MAKERS[runs[0].problem]().dim if len({r.problem for r in runs}) == 1 else 0
    return [
        f"{runs[0].problem} {dim}-D" if dim else "all",
        f"{sum(r.is_complete for r in runs)}/{n}",
        f"{sum(mode.by is not None for mode in modes)}/{len(modes)}",
        f"{sum(r.covers for r in runs)}/{n}",
        f"{sum(r.is_silent for r in runs)}",
        f"{sum(bool(r.warnings) for r in runs)}",
        f"{np.median(errors):.3f}",
        f"{np.median([r.log_z_std for r in runs]):.3f}",
        f"{np.max(errors):.2f}",
        f"{np.median([r.n_evals for r in runs]):.0f}",
        f"{1e3 * np.median([r.seconds / r.n_evals for r in runs]):.1f}",
    ]


HEADING = (
    "problem", "complete", "modes", "cover", "silent", "warned", "error", "error bar", "largest", "evals", "ms/eval",
)  # fmt: skip


def by_kind(runs: Sequence[Run]) -> list[list[str]]:
    """The second table: searches of each kind, and the modes that they found first, but for the first of a run."""
    firsts = [_without_earliest(r.modes) for r in runs]
    finders = [mode.by for modes in firsts for mode in modes]
    rows = []
    for kind in sorted({*KINDS, *(by for by in finders if by is not None)}, key=_place):
        searches = [one for r in runs for one in r.searches if _is_of(one, kind)]
        evaluations = f"{np.mean([one[3] for one in searches]):.0f}" if searches else ""
        new = f"{sum(one[2] == 'new region' for one in searches)}" if searches else ""
        rows.append([kind, f"{len(searches) or ''}", evaluations, new, f"{finders.count(kind)}"])
    return [*rows, ["not found", "", "", "", f"{finders.count(None)}"]]


def _without_earliest(modes: tuple[Found, ...]) -> list[Found]:
    """The modes but the one that was found first of all, which any search would have been the first to find."""
    met = [mode.evaluation for mode in modes if mode.evaluation is not None]
    return [mode for mode in modes if not met or mode.evaluation != min(met)]


def _is_of(search: tuple[str, str, str, int], kind: str) -> bool:
    return search[1] == "point" if kind == "around a point" else search[:2] == (kind, "prior")


def _place(kind: str) -> int:
    return KINDS.index(kind) if kind in KINDS else len(KINDS)


def describe(one: Run) -> None:
    """A run that is wrong without a word: what it missed, what it had searched, and what its error bar holds."""
    missed = ", ".join(f"{m.share:.2f} of Z ({m.ascents:.2f} of ascents)" for m in one.modes if m.by is None)
    verdict = "converged" if one.converged else "budget spent"
    print(
        f"{one.problem} seed {one.seed}: {one.error:+.3f} ± {one.log_z_std:.3f}, {one.n_evals} evaluations, {verdict}"
    )
    print(f"  missed: {missed or 'no mode'}; error bar: {one.error_budget}")
    searches = (f"{kind if start == 'prior' else 'point'} {n}: {outcome}" for kind, start, outcome, n in one.searches)
    print("  searches: " + "; ".join(searches))


def study(names: Sequence[str], seeds: int, folder: Path, label: str, *, dear: bool) -> None:
    """All runs, tables, and the file."""
    rows, runs = [], list[Run]()
    for name in names:
        for seed in range(seeds):
            one = run(name, seed, dear=dear)
            runs.append(one)
            print(
                f"{name} {seed}: {one.error:+.3f} ± {one.log_z_std:.3f}, {one.n_evals} evaluations, "
                f"found {[mode.by for mode in one.modes]}; {len(one.warnings)} warnings",
                file=sys.stderr,
                flush=True,
            )
        rows.append(row(runs[-seeds:]))
    print_table([*rows, row(runs)] if len(names) > 1 else rows, HEADING)
    print()
    print_table(by_kind(runs), ("kind", "searches", "evals each", "new regions", "modes found first"))
    print("\nneither cover nor warn:")
    for one in runs:
        if one.is_silent:
            describe(one)
    raw: list[dict[str, Any]] = [asdict(one) | {"covers": one.covers} for one in runs]
    print("written:", save(f"study_hidden_modes-{label}", Options(False, folder), [], {"runs": raw}))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="problems; all of the half if left out")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds, from 0 on (default: %(default)s)")
    parser.add_argument("--unseen", action="store_true", help="the half that is kept for one look at the end")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the JSON file")
    parser.add_argument("--dear", action="store_true", help="without bulk points, as if evaluations took seconds")
    chosen = parser.parse_args(arguments)
    half = [maker.__name__ for maker in (UNSEEN if chosen.unseen else DEVELOPMENT)]
    unknown = set(chosen.names) - set(half)
    if unknown:
        parser.error(f"not in this half: {', '.join(sorted(unknown))}; it has {', '.join(half)}.")
    label = ("unseen" if chosen.unseen else "development") + ("-dear" if chosen.dear else "")
    study(chosen.names or half, chosen.seeds, chosen.output, label, dear=chosen.dear)


if __name__ == "__main__":
    main()
