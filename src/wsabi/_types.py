"""Array alias and the one rule for random state, shared by every module."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Array", "ArrayLike", "Indices", "Mask", "Seed", "as_generator"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]
Seed = np.random.Generator | int | None


def as_generator(rng: Seed) -> np.random.Generator:
    """Turn a seed, a ``Generator`` or None into a ``Generator``: once, at the door ."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is not None and (isinstance(rng, bool) or not isinstance(rng, int | np.integer)):
        raise TypeError(f"rng must be an int, a numpy Generator or None; got {type(rng).__name__}.")
    return np.random.default_rng(rng)
