"""A run: how far it may go, checked at the door, and what a callback sees of it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from wsabi._core.checks import whole_number
from wsabi.adaptive.surrogate.model import MANY_DIMENSIONS, n_coefficients

__all__ = [
    "DEFAULT_TOL",
    "Deadline",
    "Progress",
    "TimeUp",
    "checked_budget",
    "checked_tol",
    "default_budget",
    "too_few_evaluations",
]

DEFAULT_TOL = 0.05  # of log Z: far below the factor of three that moves anyone's judgement of two models


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each evaluation; ``log_z`` and ``log_z_std`` are those of the last record."""

    n_evals: int
    budget: int
    seconds: float
    log_z: float
    log_z_std: float


class TimeUp(Exception):
    """The seconds for this run are used up."""


class Deadline:
    """The moment, ``max_seconds`` after it is built, from which on :meth:`check` raises; never where that is None."""

    def __init__(self, max_seconds: float | None) -> None:
        self._at = math.inf if max_seconds is None else time.perf_counter() + max_seconds

    def check(self) -> None:
        """Raise :class:`TimeUp` if the moment has passed."""
        if time.perf_counter() >= self._at:
            raise TimeUp


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
    return whole_number("budget", budget, wanted="whole number of evaluations")
