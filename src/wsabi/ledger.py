"""The ledger: everything that happened in a run, in order. The state of the run follows from it by replay.

A run is deterministic given its first random state and its events, so an :class:`~wsabi.Integrator` that meets the same
events again is in the same state, bit for bit on one machine. That is how `integrate(start=result)` goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wsabi._core.types import Array, Seed, Streams, as_generator

__all__ = [
    "Asked", "Climbed", "Evaluation", "Event", "GivenUp", "Ledger", "Origin", "Planned", "Postponed", "Recovered",
    "Reseeded", "Sloped", "Told",
]  # fmt: skip


@dataclass(frozen=True)
class Origin:
    """The random state in which a run began: that of its generator, and of the streams beside it."""

    bit_generator: str
    state: dict[str, Any] = field(repr=False)
    entropy: tuple[int, ...] = field(repr=False)

    @classmethod
    def of(cls, seed: Seed) -> Origin:
        """That of a seed, or of a generator as it is; the generator is moved on, so that the next run is another."""
        rng = as_generator(seed)
        bits = rng.bit_generator
        origin = cls(type(bits).__name__, _copied(bits.state), Streams.of(rng).entropy)
        if isinstance(seed, np.random.Generator):
            moved = bits.jumped() if hasattr(bits, "jumped") else type(bits)(seed.integers(2**32, size=4).tolist())
            bits.state = moved.state
        return origin

    def generator(self) -> np.random.Generator:
        """A generator in that state."""
        bits = getattr(np.random, self.bit_generator)()
        bits.state = _copied(self.state)
        return np.random.Generator(bits)

    @property
    def streams(self) -> Streams:
        """The streams beside the generator."""
        return Streams(self.entropy)


def _copied(state: Any) -> Any:
    """A bit generator's state, with its inner dicts and arrays copied."""
    if isinstance(state, dict):
        return {name: _copied(value) for name, value in state.items()}
    return state.copy() if isinstance(state, np.ndarray) else state


@dataclass(frozen=True)
class Planned:
    """The run was told how many evaluations it may reach, and the error of log Z that will do."""

    budget: int
    tol: float


@dataclass(frozen=True)
class Asked:
    """Points X (n, D), in the user's coordinates, were given out; what each is for."""

    X: Array
    purposes: tuple[str, ...]


@dataclass(frozen=True)
class Told:
    """Values log ℓ (N,) were told at X (N, D), U (N, D) in base coordinates, after so many seconds of the run."""

    X: Array
    U: Array
    log_l: Array
    seconds: float


@dataclass(frozen=True)
class GivenUp:
    """Points X (N, D) that had been asked for will not be told; all of them where X is None."""

    X: Array | None


@dataclass(frozen=True)
class Postponed:
    """Points X (N, D), U (N, D) that were asked for and not evaluated come first when points are next asked for."""

    X: Array
    U: Array


@dataclass(frozen=True)
class Climbed:
    """A search began to climb by gradients, with so many evaluations left."""

    left: int


@dataclass(frozen=True)
class Sloped:
    """In a climb: log ℓ and its gradient (D,), in base coordinates, after what was told for them."""

    log_l: float
    gradient: Array


@dataclass(frozen=True)
class Recovered:
    """The engine was made whole again after an interrupt."""


@dataclass(frozen=True)
class Reseeded:
    """The run went on with another generator."""

    origin: Origin


Event = Planned | Asked | Told | GivenUp | Postponed | Climbed | Sloped | Recovered | Reseeded


@dataclass(frozen=True)
class Evaluation:
    """One evaluation: x (D,) in the user's coordinates, what it was for, and log ℓ; None while it is not told.

    ``asked`` and ``told`` are numbers of events; ``asked`` is None for a point that nobody had asked for.
    """

    x: Array
    purpose: str
    log_l: float | None
    asked: int | None
    told: int | None


@dataclass(frozen=True)
class Ledger:
    """Where a run began, and its events in order."""

    origin: Origin
    events: tuple[Event, ...] = field(repr=False)

    @property
    def evaluations(self) -> list[Evaluation]:
        """Every evaluation, told or under way, in the order in which they were first met."""
        found: dict[bytes, Evaluation] = {}
        for number, event in enumerate(self.events):
            for key, evaluation in _met(event, number, found):
                found[key] = evaluation
        return list(found.values())


def _met(event: Event, number: int, known: dict[bytes, Evaluation]) -> Iterator[tuple[bytes, Evaluation]]:
    """What an event says of evaluations, by the bytes of their points."""
    if isinstance(event, Asked):
        for x, purpose in zip(event.X, event.purposes, strict=True):
            if x.tobytes() not in known:
                yield x.tobytes(), Evaluation(x, purpose, None, number, None)
    elif isinstance(event, Told):
        for x, value in zip(event.X, event.log_l, strict=True):
            before = known.get(x.tobytes())
            if before is None:
                yield x.tobytes(), Evaluation(x, "told", float(value), None, number)
            elif before.told is None:
                yield x.tobytes(), Evaluation(x, before.purpose, float(value), before.asked, number)
