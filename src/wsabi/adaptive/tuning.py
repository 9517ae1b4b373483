"""Every number of the engine in one place: its value, its unit, what it decides, and the evidence for it.

``TUNING`` holds the numbers in sections, one section for each part of the engine: ``TUNING.search.span``. A study or a
test varies some of them for a while by :func:`tuned`. :func:`table` lists all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

__all__ = ["TUNING", "Evidence", "Number", "Tuning", "number", "table", "tuned"]

# derived: follows from a formula, given there. reference: published, with its source. measured: a committed script
# measures it, named there. guard: protects the arithmetic, and no result depends on it. chosen: a judgement, with its
# reason; nobody has measured it.
Evidence = Literal["derived", "reference", "measured", "guard", "chosen"]


@dataclass(frozen=True)
class Number:
    """What is known of one number."""

    section: str
    name: str
    value: float
    unit: str
    decides: str
    evidence: Evidence
    because: str


def number(value: float, *, unit: str, decides: str, evidence: Evidence, because: str) -> Any:
    """A field of a section: its value, and what :class:`Number` says of it."""
    return field(default=value, metadata={"unit": unit, "decides": decides, "evidence": evidence, "because": because})


# -- surrogate/: the Gaussian process on log ℓ ------------------------------------------------------------------------


@dataclass(frozen=True)
class SurrogateNumbers:
    """Numbers of the surrogate of log ℓ, its kernels and its coordinates."""


# -- search/: annealing, choice of points, known regions ---------------------------------------------------------------


@dataclass(frozen=True)
class SearchNumbers:
    """Numbers of the searches: temperatures, moves of q, choice of points."""


@dataclass(frozen=True)
class KnownNumbers:
    """Numbers that tell a new region from a known one, and how much may be hidden."""


# -- symmetry/ ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SymmetryNumbers:
    """Numbers of the search for symmetries and their proof."""


# -- models.py: one WSABI model in each region -------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelNumbers:
    """Numbers of the WSABI models of the regions."""


# -- check/: check points and the combined estimate --------------------------------------------------------------------


@dataclass(frozen=True)
class CheckNumbers:
    """Numbers of the check points, their density and the combined estimate."""


# -- algorithm.py, policy.py: what to do next --------------------------------------------------------------------------


@dataclass(frozen=True)
class PolicyNumbers:
    """Numbers that decide what is done next, and when a run has done enough."""


@dataclass(frozen=True)
class Tuning:
    """All numbers, by section."""

    surrogate: SurrogateNumbers = SurrogateNumbers()
    search: SearchNumbers = SearchNumbers()
    known: KnownNumbers = KnownNumbers()
    symmetry: SymmetryNumbers = SymmetryNumbers()
    models: ModelNumbers = ModelNumbers()
    check: CheckNumbers = CheckNumbers()
    policy: PolicyNumbers = PolicyNumbers()


TUNING = Tuning()


@contextmanager
def tuned(section: str, **values: float) -> Iterator[None]:
    """Other values for some numbers of a section, while the context lasts: for studies and tests.

    Raises
    ------
    TypeError
        If the section has no number of that name.
    """
    before = getattr(TUNING, section)
    object.__setattr__(TUNING, section, replace(before, **values))
    try:
        yield
    finally:
        object.__setattr__(TUNING, section, before)


def table() -> list[Number]:
    """Every number, in the order of the sections."""
    return [
        Number(section.name, one.name, getattr(getattr(TUNING, section.name), one.name), **one.metadata)
        for section in fields(TUNING)
        for one in fields(getattr(TUNING, section.name))
    ]
