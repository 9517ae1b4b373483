"""Array alias and the one rule for random state, shared by every module."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Array", "ArrayLike", "Indices", "Mask", "Seed", "Streams", "as_generator"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]
Seed = np.random.Generator | int | None


def as_generator(rng: Seed) -> np.random.Generator:
    """Turn a seed, a ``Generator`` or None into a ``Generator``: once, at the door."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is not None and (isinstance(rng, bool) or not isinstance(rng, int | np.integer)):
        raise TypeError(f"rng must be an int, a numpy Generator or None; got {type(rng).__name__}.")
    return np.random.default_rng(rng)


@dataclass(frozen=True)
class Streams:
    """Independent random streams by number, the same whenever they are asked for: children of one seed.

    What is drawn for one event of a run, an estimate or a posterior, comes from a stream of its own, and so does not
    change what is drawn for others; and two runs of different seeds share none.
    """

    entropy: tuple[int, ...]

    @classmethod
    def of(cls, seed: Seed) -> Streams:
        """Streams of a seed; four words are drawn from a generator, so that its next run is another."""
        return cls(tuple(int(word) for word in as_generator(seed).integers(2**32, size=4)))

    def stream(self, *numbers: int) -> np.random.Generator:
        """The stream of these numbers."""
        return np.random.default_rng([*self.entropy, *numbers])
