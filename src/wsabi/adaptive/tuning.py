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

    checks: int = number(
        3,
        unit="evaluations",
        decides="how many images must agree, beside that of the best point, before a symmetry counts as proved",
        evidence="chosen",
        because="one image may agree by chance where ℓ hardly depends on a parameter; four in different places do not",
    )
    same: float = number(
        1e-6,
        unit="nats",
        decides="up to what difference log ℓπ at a point and at its image are the same",
        evidence="chosen",
        because="it is far above the round-off of a sum of thousands of terms, and far below what matters to Z",
    )
    same_mass: float = number(
        0.5,
        unit="nats",
        decides="up to what difference in mass two known regions may be images of each other",
        evidence="chosen",
        because="the masses of two images, each by a surrogate of its own data, rarely differ by more",
    )
    match: float = number(
        1.0,
        unit="widths of q, plus the log of the ratio of the widths",
        decides="up to what difference on each axis two regions match",
        evidence="chosen",
        because="q of a region is known to a fraction of its width; evaluations refute what matches by chance",
    )
    clear_sign: float = number(
        0.01,
        unit="product of two correlations",
        decides="from what size on correlations decide the sign of a parameter whose mean is near zero",
        evidence="derived",
        because="it is the product of two correlations of 0.1, and below 0.1 the correlations of q are noise",
    )
    no_match: float = number(
        1e6,
        unit="widths of q",
        decides="what it costs to match parameters of different priors, in place of infinity",
        evidence="guard",
        because="the assignment algorithm needs finite costs; any number far above `match` gives the same result",
    )
    same_point: float = number(
        1e-12,
        unit="relative, plus prior standard deviations",
        decides="up to what distance an image counts as evaluated already",
        evidence="guard",
        because="it is a few thousand times the round-off of a coordinate",
    )
    same_prior: float = number(
        1e-6,
        unit="relative",
        decides="up to what difference the prior is the same after an exchange of parameters",
        evidence="guard",
        because="it is far above the round-off of a quantile function, and far below a difference anybody intends",
    )


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
