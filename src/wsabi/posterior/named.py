"""Vectors of parameters that know their names."""

from __future__ import annotations

from typing import Any

import numpy as np

from wsabi._core.types import Array, ArrayLike
from wsabi.priors.names import Groups

__all__ = ["NamedVector", "columns_of"]


def columns_of(parameter: object, names: tuple[str, ...], groups: Groups) -> int | slice:
    """The column of a parameter, or the columns of a vector, by its name or its index.

    Raises
    ------
    KeyError
        For an unknown one; the message lists the known ones.
    """
    known = dict(groups) | {name: column for column, name in enumerate(names)}
    if isinstance(parameter, str):
        if parameter not in known:
            raise KeyError(f"{parameter!r} is not one of the parameters {', '.join(known)}.")
        return known[parameter]
    if isinstance(parameter, bool) or not isinstance(parameter, int | np.integer):
        raise TypeError(f"a parameter is given by its name or its index; got {type(parameter).__name__}.")
    if not -len(names) <= parameter < len(names):
        raise KeyError(f"there is no parameter number {parameter}: there are {len(names)}, {', '.join(names)}.")
    return int(parameter) % len(names)


class NamedVector(np.ndarray[Any, np.dtype[np.float64]]):
    """A (D,) array whose entries can also be had by name: ``mean["tau"]``, or ``mean["beta"]`` for a vector.

    Whatever is computed from it is a plain array or number: names would not follow a sum or a permutation.

    Examples
    --------
    >>> mean = NamedVector([1.0, 2.0, 3.0], ("b[0]", "b[1]", "tau"), (("b", slice(0, 2)), ("tau", 2)))
    >>> mean["tau"], mean["b"].tolist(), (mean + 1.0).tolist()
    (3.0, [1.0, 2.0], [2.0, 3.0, 4.0])
    """

    names: tuple[str, ...] = ()
    groups: Groups = ()

    def __new__(cls, values: ArrayLike, names: tuple[str, ...], groups: Groups = ()) -> NamedVector:
        """Of D values with their names; ``groups`` as in :class:`~wsabi.priors.chart.Chart`."""
        vector = np.array(values, dtype=np.float64).view(cls)
        vector.names, vector.groups = names, groups
        return vector

    def __getitem__(self, key: Any) -> Any:
        plain = np.asarray(self)
        if not isinstance(key, str):
            return plain[key]
        value = plain[columns_of(key, self.names, self.groups)]
        return value if value.ndim else float(value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **keywords: Any) -> Any:
        if out is not None:
            keywords["out"] = tuple(_plain(one) for one in out)
        return getattr(ufunc, method)(*map(_plain, inputs), **keywords)

    def copy(self, order: Any = "C") -> NamedVector:
        """The same, with its names."""
        return NamedVector(self, self.names, self.groups)

    def __reduce__(self) -> Any:
        return NamedVector, (np.asarray(self), self.names, self.groups)

    def __copy__(self) -> NamedVector:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> NamedVector:
        return self.copy()

    def to_dict(self) -> dict[str, float | Array]:
        """Name to number, or to a (k,) array for a vector."""
        keys = self.groups or tuple((name, column) for column, name in enumerate(self.names))
        return {name: self[name] for name, _ in keys}


def _plain(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, NamedVector) else value
