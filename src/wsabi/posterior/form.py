"""What a posterior may be made of, behind one interface."""

from __future__ import annotations

from typing import Protocol

from wsabi._core.types import Array, ArrayLike, Seed
from wsabi.posterior.weighted import Marginal, Marginal2, WeightedSamples
from wsabi.priors.names import Groups

__all__ = ["Form"]


class Form(Protocol):
    """What a posterior is made of: a closed form of a model, or weighted points."""

    @property
    def names(self) -> tuple[str, ...]:
        """D names of the parameters."""
        ...

    @property
    def keyed(self) -> bool:
        """Whether functions of x receive a dict of the names."""
        ...

    @property
    def groups(self) -> Groups:
        """Names of the dict's entries with their columns; empty where each name is an entry."""
        ...

    @property
    def support(self) -> tuple[Array, Array] | None:
        """(low, high), both (D,), outside which the prior is zero; None if not known."""
        ...

    @property
    def description(self) -> str:
        """What it is, in a few words."""
        ...

    @property
    def mean(self) -> Array:
        """(D,)."""
        ...

    @property
    def cov(self) -> Array:
        """(D, D)."""
        ...

    def quantiles(self, axis: int, levels: Array) -> Array:
        """Values (L,) of one parameter below which the probabilities (L,) lie."""
        ...

    def marginal(self, parameter: int | str, grid: ArrayLike | None = None) -> Marginal:
        """Density of one parameter."""
        ...

    def marginal2(self, a: int, b: int, grids: tuple[Array, Array]) -> Marginal2:
        """Joint density of two parameters."""
        ...

    def log_density(self, X: Array) -> Array:
        """log p at X (M, D), (M,)."""
        ...

    def sample(self, n: int, rng: Seed = None) -> Array:
        """Draws, (n, D)."""
        ...

    def weighted_sample(self, n: int, rng: Seed = None) -> WeightedSamples:
        """At most n weighted points."""
        ...
