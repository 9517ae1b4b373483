"""How far a run may go: its budget, time, batch and tolerance, checked at the door."""

from __future__ import annotations

import math

import numpy as np

__all__ = [
    "DEFAULT_TOL",
    "MANY_DIMENSIONS",
    "checked_budget",
    "checked_tol",
    "default_budget",
    "n_coefficients",
    "too_few_evaluations",
    "whole_number",
]

DEFAULT_TOL = 0.05  # of log Z: far below the factor of three that moves anyone's judgement of two models

# Number of dimensions above which the sizes of the adaptive engine's surrogates follow the number of coefficients of a
# quadratic. Up to 20 dimensions there are at most 231 of them, and the fixed sizes are enough.
MANY_DIMENSIONS = 20


def n_coefficients(dim: int) -> int:
    """Number of coefficients of a quadratic in ``dim`` dimensions, (D + 1)(D + 2)/2."""
    return (dim + 1) * (dim + 2) // 2


def too_few_evaluations(dim: int, budget: int) -> str | None:
    """Why ``budget`` evaluations without gradients cannot be enough in so many dimensions; None where they may be.

    The surrogate of log ℓ has to learn a quadratic, beside the 2D + 2 points of the first design, which are spread over
    the prior and say little about the posterior. Up to MANY_DIMENSIONS nothing is said: likelihoods as broad as the
    prior were right there with half as many evaluations, and the error bar tells when they were not.
    """
    needed = n_coefficients(dim) + 2 * dim + 2
    if dim <= MANY_DIMENSIONS or budget >= needed:
        return None
    return (
        f"{dim} dimensions need at least about {math.ceil(needed / 10) * 10} evaluations to learn the "
        f"{n_coefficients(dim)} coefficients of a quadratic log-likelihood, and this run has {budget}: log Z may be "
        "far off, and its error bar too small. Use a larger budget or gradients (grad=)."
    )


def default_budget(dim: int, *, adaptive: bool) -> int:
    """Evaluations when the user sets no limit: 50(D + 2), some ten per coefficient of a quadratic in few dimensions.

    Under the adaptive measure twice as many: it ends by its tolerance long before, unless the likelihood needs them.
    """
    return (100 if adaptive else 50) * (dim + 2)


def whole_number(name: str, value: object, least: int = 1) -> int:
    """``value`` as an int if it is a whole number, at least ``least``; an error naming the argument otherwise.

    A float such as 1e3 counts as whole; 1000.5, NaN, infinity, text and booleans do not.

    Examples
    --------
    >>> whole_number("batch", 1e3)
    1000
    """
    return _whole(name, "whole number", value, least)


def _whole(name: str, wanted: str, value: object, least: int = 1) -> int:
    """``value`` as an int, at least ``least``; ``wanted`` is what the error asks for."""
    whole = int(value) if isinstance(value, float | np.floating) and float(value).is_integer() else value
    if isinstance(whole, bool) or not isinstance(whole, int | np.integer) or whole < least:
        raise ValueError(f"{name} must be a {wanted}, at least {least}; got {value!r}.")
    return int(whole)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def checked_tol(tol: float | None) -> float | None:
    """``tol`` if it is None or a number that is not negative."""
    if tol is not None and not (_is_number(tol) and tol >= 0):
        raise ValueError(f"tol must be a number, at least 0, or None; got {tol!r}.")
    return tol


def checked_budget(budget: float | None, default: int, max_seconds: float | None) -> int:
    """Number of evaluations allowed: ``budget``, or the default, or no limit where only time is limited."""
    if max_seconds is not None and not (_is_number(max_seconds) and max_seconds > 0):
        raise ValueError(f"max_seconds must be a positive number or None; got {max_seconds!r}.")
    if budget is None:
        return default if max_seconds is None else 2**31
    return _whole("budget", "whole number of evaluations", budget)
