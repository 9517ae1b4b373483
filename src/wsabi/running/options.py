"""The arguments of a run: what they may be, and what they are where the user gives none."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, get_args

import numpy as np

from wsabi._core.checks import whole_number
from wsabi.adaptive.surrogate.theta import n_coefficients
from wsabi.adaptive.tuning import TUNING
from wsabi.model import Model
from wsabi.running.progress import Progress

__all__ = [
    "DEFAULT_TOL",
    "OnError",
    "RunArguments",
    "RunOptions",
    "checked_budget",
    "checked_tol",
    "default_budget",
    "too_few_evaluations",
]

OnError = Literal["raise", "exclude"]
DEFAULT_TOL = 0.05  # of log Z: far below the factor of three that moves anyone's judgement of two models


class RunArguments(TypedDict, total=False):
    """The fields of :class:`RunOptions`, as the types of keyword arguments."""

    budget: int | None
    max_seconds: float | None
    tol: float | None
    grad: Callable[..., Any] | None
    vectorized: bool
    batch: int
    callback: Callable[[Progress], object] | None
    workers: int | None
    executor: Any
    client: Any
    timeout: float | None
    on_error: OnError
    retries: int


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run goes and what ends it; checked when it is built. See :func:`wsabi.integrate` for every field.

    Examples
    --------
    >>> RunOptions(budget=1e3).limit(usual=400)
    1000
    >>> RunOptions().limit(usual=400)
    400
    """

    budget: int | None = None
    max_seconds: float | None = None
    tol: float | None = None
    grad: Callable[..., Any] | None = None
    vectorized: bool = False
    batch: int = 1
    callback: Callable[[Progress], object] | None = None
    workers: int | None = None
    executor: Any = None
    client: Any = None
    timeout: float | None = None
    on_error: OnError = "raise"
    retries: int = 0

    def __post_init__(self) -> None:
        self.limit(usual=1)
        checked_tol(self.tol)
        object.__setattr__(self, "batch", whole_number("batch", self.batch))
        object.__setattr__(self, "retries", whole_number("retries", self.retries, least=0))
        if self.on_error not in get_args(OnError):
            known = ", ".join(map(repr, get_args(OnError)))
            raise ValueError(f"on_error must be one of {known}; got {self.on_error!r}.")
        self._check_workers()

    def _check_workers(self) -> None:
        if self.workers is not None:
            object.__setattr__(self, "workers", whole_number("workers", self.workers))
        if self.executor is not None and self.client is not None:
            raise ValueError("give executor or client, not both.")
        if self.timeout is not None and not (_is_number(self.timeout) and self.timeout > 0):
            raise ValueError(f"timeout must be a positive number of seconds or None; got {self.timeout!r}.")
        if self.timeout is not None and not self.has_workers:
            raise ValueError(
                "timeout needs workers=, executor= or client=: a call in this process cannot be interrupted. "
                "Use workers=1 for one process that can."
            )
        if self.grad is not None and self.has_workers:
            raise ValueError("grad climbs from point to point: leave out workers, executor and client, or grad.")

    @property
    def has_workers(self) -> bool:
        """Whether others than this process evaluate."""
        return self.workers is not None or self.executor is not None or self.client is not None

    def for_model(self, model: Model, *, adaptive: bool) -> RunOptions:
        """The same for the likelihood of a model, with its gradient where one is of use and none was given."""
        of_use = adaptive and not self.has_workers
        grad = model.grad if self.grad is None and of_use else self.grad
        return replace(self, grad=grad, vectorized=model.vectorized)

    def limit(self, usual: int) -> int:
        """Number of evaluations allowed: ``budget``, or the usual one, or no limit where only time is limited."""
        return checked_budget(self.budget, usual, self.max_seconds)


def default_budget(dim: int, *, adaptive: bool) -> int:
    """Evaluations when the user sets no limit: 50(D + 2), some ten per coefficient of a quadratic in few dimensions.

    Under the adaptive measure twice as many: it ends by its tolerance long before, unless the likelihood needs them.
    """
    return (100 if adaptive else 50) * (dim + 2)


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


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def too_few_evaluations(dim: int, budget: int) -> str | None:
    """Why ``budget`` evaluations without gradients cannot be enough in so many dimensions; None where they may be.

    The surrogate of log ℓ has to learn a quadratic, beside the 2D + 2 points of the first design, which are spread over
    the prior and say little about the posterior. Up to ``many_dimensions`` nothing is said: likelihoods as broad as the
    prior were right there with half as many evaluations, and the error bar tells when they were not.
    """
    needed = n_coefficients(dim) + 2 * dim + 2
    if dim <= TUNING.surrogate.many_dimensions or budget >= needed:
        return None
    return (
        f"{dim} dimensions need at least about {math.ceil(needed / 10) * 10} evaluations to learn the "
        f"{n_coefficients(dim)} coefficients of a quadratic log-likelihood, and this run has {budget}: log Z may be "
        "far off, and its error bar too small. Use a larger budget or gradients (grad=)."
    )
