"""Checks of what the user gives: vectors, bounds, names and whole numbers, with errors that name the argument."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wsabi._core.types import Array, ArrayLike

__all__ = ["box_bounds", "checked_names", "vector", "whole_number"]


def vector(value: ArrayLike, argument: str) -> Array:
    """A finite float64 vector, or an error naming the argument."""
    array = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{argument} must be a scalar or a vector; got shape {array.shape}.")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{argument} must be finite; got {array}.")
    return array.copy()


def checked_names(names: Sequence[str] | None, dim: int) -> tuple[str, ...]:
    """The names, if they are D different strings; x0, x1, ... where none are given."""
    if names is None:
        return tuple(f"x{d}" for d in range(dim))
    checked = tuple(names)
    if isinstance(names, str) or not all(isinstance(name, str) for name in checked):
        raise TypeError(f"names must be a list of strings, one per parameter; got {names!r}.")
    if len(checked) != dim or len(set(checked)) != dim:
        raise ValueError(f"names must be {dim} different strings, one per parameter; got {checked}.")
    return checked


def box_bounds(low: ArrayLike, high: ArrayLike) -> tuple[Array, Array]:
    """Bounds (D,) of a box, or an error naming the argument at fault."""
    low_, high_ = vector(low, "low"), vector(high, "high")
    try:
        low_, high_ = (side.copy() for side in np.broadcast_arrays(low_, high_))
    except ValueError:
        raise ValueError(f"low {low_.shape} and high {high_.shape} must have the same length.") from None
    if not np.all(low_ < high_):
        raise ValueError(f"low must be below high in every dimension; got low={low_}, high={high_}.")
    return low_, high_


def whole_number(name: str, value: object, least: int = 1, *, wanted: str = "whole number") -> int:
    """``value`` as an int if it is a whole number, at least ``least``; an error naming the argument otherwise.

    A float such as 1e3 counts as whole; 1000.5, NaN, infinity, text and booleans do not. ``wanted`` is what the error
    asks for.

    Examples
    --------
    >>> whole_number("batch", 1e3)
    1000
    """
    whole = int(value) if isinstance(value, float | np.floating) and float(value).is_integer() else value
    if isinstance(whole, bool) or not isinstance(whole, int | np.integer) or whole < least:
        raise ValueError(f"{name} must be a {wanted}, at least {least}; got {value!r}.")
    return int(whole)
