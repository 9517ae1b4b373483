"""Calling the user's log-likelihood: scalar or vectorised, array or dict, with every fault named."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from wsabi._types import Array
from wsabi.charts import Chart
from wsabi.priors import named_arguments

if TYPE_CHECKING:
    from wsabi.result import Result

__all__ = ["LikelihoodError", "bad_values", "evaluator"]


class LikelihoodError(RuntimeError):
    """The likelihood raised, or returned NaN, +inf or the wrong shape.

    Attributes
    ----------
    point : (D,) where it happened, in the user's coordinates.
    result : the :class:`~wsabi.Result` of all evaluations before it, or None if there were none to speak of.
    """

    def __init__(self, message: str, point: Array) -> None:
        super().__init__(message)
        self.point = point
        self.result: Result | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.point), {"result": self.result}


def bad_values(log_l: Array) -> list[int]:
    """Indices of NaN and +inf; −inf is a legal value (zero likelihood)."""
    return [int(i) for i in np.flatnonzero(np.isnan(log_l) | (log_l == np.inf))]


def evaluator(log_likelihood: Callable[..., Any], chart: Chart, *, vectorized: bool) -> Callable[..., Array]:
    """A function from points X (N, D) to checked log-likelihoods (N,).

    It writes them into ``out`` (N,), if that is given, as they come: what was evaluated before a fault or an interrupt
    is in the caller's hands.
    """
    if not callable(log_likelihood):
        raise TypeError(f"log_likelihood must be callable; got {type(log_likelihood).__name__}.")

    def arguments(x: Array) -> Any:
        # A copy: a likelihood may work in place.
        return named_arguments(chart.names, x) if chart.keyed else x.copy()

    def one_by_one(X: Array, out: Array | None = None) -> Array:
        values = np.empty(len(X)) if out is None else out
        for i, x in enumerate(X):
            values[i] = _call_scalar(log_likelihood, arguments(x), x)
        return values

    def together(X: Array, out: Array | None = None) -> Array:
        values = np.empty(len(X)) if out is None else out
        values[:] = _call_vectorized(log_likelihood, arguments(X), X)
        _check(values, X)
        return values

    return together if vectorized else one_by_one


def _describe(x: Array) -> str:
    return np.array2string(x, precision=6, threshold=20)


def _call_scalar(log_likelihood: Callable[..., Any], argument: Any, x: Array) -> float:
    try:
        returned = log_likelihood(argument)
    except Exception as error:
        message = f"log_likelihood raised {type(error).__name__} at x = {_describe(x)}: {error}"
        raise LikelihoodError(message, x.copy()) from error
    value = _as_floats(returned, x)
    if value.size != 1:
        raise LikelihoodError(
            f"log_likelihood returned shape {value.shape} for one point; expected a float "
            "(pass vectorized=True if it takes (N, D) arrays).",
            x.copy(),
        )
    _check(value.reshape(1), x[None, :])
    return float(value.item())


def _call_vectorized(log_likelihood: Callable[..., Any], argument: Any, X: Array) -> Array:
    try:
        returned = log_likelihood(argument)
    except Exception as error:
        message = f"log_likelihood raised {type(error).__name__} for {len(X)} points: {error}"
        raise LikelihoodError(message, X[0].copy()) from error
    values = _as_floats(returned, X[0])
    if values.shape != (len(X),):
        raise LikelihoodError(
            f"log_likelihood returned shape {values.shape} for {len(X)} points; expected ({len(X)},): "
            "one value per row of X.",
            X[0].copy(),
        )
    return values


def _as_floats(returned: Any, x: Array) -> Array:
    """What the likelihood returned as float64; None, text and complex numbers are refused rather than converted."""
    try:
        array = np.asarray(returned)
        if array.dtype.kind in "biuf" or (array.dtype == object and array.size and None not in array.ravel().tolist()):
            return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        pass  # ragged lists and objects that are no numbers
    what = "None (is a return missing?)" if returned is None else f"{type(returned).__name__} {returned!r}"
    raise LikelihoodError(f"log_likelihood returned {what} at x = {_describe(x)}; expected a real number.", x.copy())


def _check(values: Array, X: Array) -> None:
    bad = bad_values(values)
    if bad:
        raise LikelihoodError(
            f"log_likelihood returned {values[bad[0]]} at x = {_describe(X[bad[0]])}; expected a number or −inf.",
            X[bad[0]].copy(),
        )
