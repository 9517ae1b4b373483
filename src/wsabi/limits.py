"""How far a run may go: its budget, time, batch and tolerance, checked at the door."""

from __future__ import annotations

import numpy as np

__all__ = ["DEFAULT_TOL", "checked_budget", "checked_tol", "default_budget", "whole_number"]

DEFAULT_TOL = 0.05  # of log Z: far below the factor of three that moves anyone's judgement of two models


def default_budget(dim: int, *, adaptive: bool) -> int:
    """Evaluations when the user sets no limit: 50(D + 2), some ten per coefficient of a quadratic in few dimensions.

    Under the adaptive measure twice as many: it ends by its tolerance long before, unless the likelihood needs them.
    """
    return (100 if adaptive else 50) * (dim + 2)


def whole_number(name: str, value: object) -> int:
    """``value`` if it is a whole number, at least 1; an error naming the argument otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number, at least 1; got {value!r}.")
    return int(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def checked_tol(tol: float | None) -> float | None:
    """``tol`` if it is None or a number that is not negative."""
    if tol is not None and not (_is_number(tol) and tol >= 0):
        raise ValueError(f"tol must be a number, at least 0, or None; got {tol!r}.")
    return tol


def checked_budget(budget: int | None, default: int, max_seconds: float | None) -> int:
    """Number of evaluations allowed: ``budget``, or the default, or no limit where only time is limited."""
    if max_seconds is not None and not (_is_number(max_seconds) and max_seconds > 0):
        raise ValueError(f"max_seconds must be a positive number or None; got {max_seconds!r}.")
    if budget is None:
        return default if max_seconds is None else 2**31
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 1:
        raise ValueError(f"budget must be a whole number of evaluations, at least 1; got {budget!r}.")
    return int(budget)
