"""Names of the parameters, and the dict of them that a likelihood or a density may receive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from wsabi._core.types import Array

__all__ = ["Groups", "Named", "groups_of", "keys_of", "named_arguments", "points_from"]

Groups = tuple[tuple[str, int | slice], ...]  # name -> its column, or the columns of a vector


class Named(Protocol):
    """Anything with names of its parameters, and with ``groups`` where some form vectors: a prior or a chart."""

    @property
    def names(self) -> tuple[str, ...]:
        """D names."""


def groups_of(names: Named | Sequence[str]) -> Groups:
    """Entries of a dict of the parameters with their columns: an int for a number, a slice for a vector.

    Parameters
    ----------
    names : a prior, a chart or D names. Names alone stand for numbers, whatever they look like: "a[0]" is a name too.
    """
    if isinstance(names, Sequence):
        return tuple((name, d) for d, name in enumerate(names))
    groups: Groups = getattr(names, "groups", ())
    return groups or groups_of(names.names)


def keys_of(names: Named | Sequence[str]) -> tuple[str, ...]:
    """Keys of a dict of the parameters: those of :func:`groups_of`."""
    return tuple(name for name, _ in groups_of(names))


def named_arguments(names: Named | Sequence[str], X: Array) -> dict[str, Any]:
    """The dict that a keyed likelihood receives.

    Parameters
    ----------
    names : a prior, a chart or D names.
    X : (D,) one point, or (N, D) points.

    Returns
    -------
    name -> float for one point, name -> (N,) array for several; for a vector of k parameters (k,) and (N, k) arrays.
    The arrays are copies.

    Examples
    --------
    >>> import numpy as np
    >>> named_arguments(["amp", "tau"], np.array([1.0, 2.0]))
    {'amp': 1.0, 'tau': 2.0}
    >>> from wsabi.priors import as_prior
    >>> prior = as_prior({"beta": [(0, 1), (0, 1)], "tau": (0, 5)})
    >>> named_arguments(prior, np.array([0.25, 0.5, 2.0]))
    {'beta': array([0.25, 0.5 ]), 'tau': 2.0}
    """
    dim = len(names if isinstance(names, Sequence) else names.names)
    if X.ndim not in (1, 2) or X.shape[-1] != dim:
        raise ValueError(f"X must have shape ({dim},) or (N, {dim}), one column per name; got {X.shape}.")
    given = ((name, X[..., where]) for name, where in groups_of(names))
    return {name: value.copy() if value.ndim else float(value) for name, value in given}


def points_from(X: Any, names: Named, argument: str = "X") -> Array:
    """Points (N, D) from an array, one point (D,), or a dict or a list of dicts of the parameters.

    Raises
    ------
    ValueError
        For another shape, another set of names, or numbers that are not finite.
    """
    dim = len(names.names)
    if isinstance(X, Mapping) or (isinstance(X, list | tuple) and X and isinstance(X[0], Mapping)):
        X = [_row_of(one, names, argument) for one in ([X] if isinstance(X, Mapping) else X)]
    points = np.array(X, dtype=np.float64, ndmin=2) + 0.0  # no −0.0: points are recognised by their bytes
    if points.ndim != 2 or points.shape[1] != dim or not len(points):
        raise ValueError(f"{argument} has shape {np.shape(X)}; expected (N, {dim}), one row per point.")
    if not np.all(np.isfinite(points)):
        raise ValueError(f"{argument} must be finite.")
    return points


def _row_of(given: Mapping[str, Any], names: Named, argument: str) -> Array:
    """The point (D,) that a dict of the parameters' names stands for."""
    keys = keys_of(names)
    if not isinstance(given, Mapping) or set(given) != set(keys):
        what = f"keys {sorted(map(str, given))}" if isinstance(given, Mapping) else type(given).__name__
        raise ValueError(
            f"a point of {argument} has {what}; expected a dict with the keys {', '.join(map(repr, keys))}."
        )
    row = np.empty(len(names.names))
    for name, where in groups_of(names):
        row[where] = given[name]
    return row
