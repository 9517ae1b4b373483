"""Names of the parameters, and the dict of them that a likelihood or a density may receive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from wsabi._core.types import Array

__all__ = ["Groups", "Named", "groups_of", "keys_of", "named_arguments"]

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
