"""Calling the functions that define a prior: the transform of a cube, or a log density."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wsabi._core.types import Array
from wsabi.priors.names import Named, named_arguments

__all__ = ["evaluated"]


def evaluated(
    function: Callable[[Any], object], X: Array, shape: tuple[int, ...], argument: str,
    *, vectorized: bool, names: Named | None = None,
) -> Array:  # fmt: skip
    """function(x_n), (N, *shape), given copies of the rows (a user's function may work in place), or dicts by name."""
    if not len(X):  # a user's function has never met an array without rows, and need not
        return np.empty((0, *shape))
    if vectorized:
        array = np.asarray(function(X.copy() if names is None else named_arguments(names, X)), dtype=np.float64)
        if array.shape != (len(X), *shape):
            raise ValueError(
                f"{argument} returned shape {array.shape} for {len(X)} points; expected {(len(X), *shape)}. "
                "With vectorized=True it is given all points at once, one per row."
            )
        return array
    out = np.empty((len(X), *shape))
    for n, row in enumerate(X):
        given = row.copy() if names is None else named_arguments(names, row)
        value = np.asarray(function(given), dtype=np.float64)
        if value.size != out[n].size or value.ndim > 1:  # a scalar and a (1,) array are the same thing here
            raise ValueError(f"{argument} returned shape {value.shape} for one point; expected {shape}.")
        out[n] = value.reshape(shape)
    return out
