"""What an experiment is: steps that can be interrupted, and a digest of however many of them were done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from wsabi.reproduce.curves import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Amount", "Claim", "Digest", "Experiment", "Plan", "Verdict", "decide"]

Verdict = Literal["holds", "holds in part", "does not hold", "not decided"]


def _ignore(_: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Plan:
    """How to run an experiment.

    Parameters
    ----------
    quick : fewer seeds and samples, for a rough outcome within a minute.
    seed : of everything random.
    data : the citation data: a file, or its folder; None looks where :func:`wsabi.problems.citation` does.
    tell : called with a line of text as the work proceeds.
    """

    quick: bool = False
    seed: int = 0
    data: Path | None = None
    tell: Callable[[str], object] = _ignore


@dataclass(frozen=True)
class Amount:
    """A number of samples, seeds or functions: in full, and for a quick run."""

    full: int
    quick: int

    def of(self, plan: Plan) -> int:
        """The number for that plan."""
        return self.quick if plan.quick else self.full


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, what was measured of it, and whether it held."""

    statement: str
    measured: str
    verdict: Verdict


@dataclass(frozen=True)
class Digest:
    """Everything that is written: CSV tables, figures, the summary in the report, claims and remarks."""

    tables: Mapping[str, Table]
    figures: Mapping[str, Figure]
    summary: Table
    claims: Sequence[Claim]
    remarks: Sequence[str] = ()
    captions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper.

    Parameters
    ----------
    name, title : for the command line and the report.
    paper : what the paper shows, and where.
    size : number of steps for a plan, for the progress bar.
    steps : the steps' outcomes, one after another; an outcome whose ``interrupted`` is true is the last.
    digest : tables, figures and claims from the outcomes so far, at least one.
    """

    name: str
    title: str
    paper: str
    size: Callable[[Plan], int]
    steps: Callable[[Plan], Iterator[Any]]
    digest: Callable[[Plan, Sequence[Any]], Digest]


def decide(holds: bool | None) -> Verdict:
    """The verdict on a statement that is true, false or (None) could not be tested."""
    if holds is None:
        return "not decided"
    return "holds" if holds else "does not hold"
