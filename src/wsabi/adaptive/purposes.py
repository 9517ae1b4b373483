"""What an evaluation is for. A purpose travels with its point: out with the action, back with the value."""

from __future__ import annotations

from dataclasses import dataclass

from wsabi.adaptive.symmetry.proof import ImagePoint

__all__ = ["CheckPoint", "ImagePoint", "Refinement", "SearchPoint"]


@dataclass(frozen=True)
class SearchPoint:
    """A point of the search of that number; ``is_draw`` where it is a draw of the prior."""

    number: int
    is_draw: bool = False

    @property
    def label(self) -> str:
        """Such as "search 3"."""
        return f"search {self.number}"


@dataclass(frozen=True)
class CheckPoint:
    """A draw of the proposal of that number, which no model is told of."""

    proposal: int
    label: str = "check"


@dataclass(frozen=True)
class Refinement:
    """A point that a region's models need."""

    label: str = "refine"
