"""A run: budget, clock, tolerance and Ctrl-C, round one integrator."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wsabi._core.checks import whole_number
from wsabi._core.types import Array
from wsabi.adaptive.search.ascent import Slope, climb
from wsabi.adaptive.surrogate.model import MANY_DIMENSIONS, n_coefficients
from wsabi.errors import JournalError, LikelihoodError, NumericalError, announce
from wsabi.ledger import Climbed
from wsabi.likelihood import checked_slope, evaluator, gradient_evaluator, likelihood_name
from wsabi.report.estimate import NEAR
from wsabi.result import Reason, Result

if TYPE_CHECKING:
    from wsabi.integrator import Integrator
    from wsabi.runs.journal import Journal
    from wsabi.strategies.protocol import Climb

__all__ = [
    "DEFAULT_TOL",
    "Deadline",
    "Progress",
    "TimeUp",
    "checked_budget",
    "checked_tol",
    "default_budget",
    "run",
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


def run(
    integrator: Integrator,
    log_likelihood: Callable[..., Any],
    *,
    budget: int | None,
    max_seconds: float | None,
    tol: float | None,
    grad: Callable[..., Any] | None,
    vectorized: bool,
    batch: int,
    callback: Callable[[Progress], object] | None,
    n_before: int | None = None,
) -> Result:
    """Evaluate ``log_likelihood`` where an integrator asks, until budget, clock, tolerance or Ctrl-C end the run.

    See :func:`wsabi.integrate` for the parameters.

    Parameters
    ----------
    n_before : number of evaluations that ``budget`` does not count; None is all that were made so far. Where it is
        given, a run from a journal goes on as if it had never stopped.
    """
    goes_on = n_before is not None and integrator.n_evals > n_before
    n_before = integrator.n_evals if n_before is None else n_before
    total = n_before + checked_budget(budget, integrator.usual_budget, max_seconds)
    batch = whole_number("batch", batch)
    tol = checked_tol(tol)
    if integrator.is_adaptive:
        tol = DEFAULT_TOL if tol is None else tol
        planned = min(total, n_before + integrator.usual_budget) if budget is None else total
        if goes_on and budget is None:
            planned = max(planned, int(integrator.strategy.budget))
        integrator.plan(planned, tol)
        too_few = too_few_evaluations(integrator.chart.dim, total) if grad is None else None
        if too_few is not None:
            announce([too_few], stacklevel=4)
    if integrator.journal is not None:
        integrator.journal.check_likelihood(likelihood_name(log_likelihood))
        integrator.journal.set("end", None)
    evaluate = evaluator(log_likelihood, integrator.chart, vectorized=vectorized)
    deadline = Deadline(max_seconds)

    def report() -> None:
        if callback is not None:
            callback(integrator.progress(total))
        deadline.check()

    checked = goes_on and any(isinstance(event, Climbed) and event.mean is not None for event in integrator.log.events)
    climber = (
        None if grad is None else _Climber(integrator, grad, evaluate, report, vectorized=vectorized, checked=checked)
    )
    reason: Reason = "budget"
    next_check = 0  # evaluations from which on it is asked again whether the tolerance is reached
    try:
        if tol and goes_on and not integrator.log.last_told_is_of_climb and _is_settled(integrator, tol):
            result = _result_within(integrator, tol)  # the run was killed before it could come to this
            if result is not None:
                return _ended(integrator, result)
        while integrator.n_evals < total:
            if integrator.n_evals >= integrator.strategy.budget:
                # Only time limits the run: shares refer to the usual number of evaluations, again and again.
                integrator.plan(integrator.n_evals + integrator.usual_budget, tol or 0.0)
            if climber is not None and climber.climbs(total - integrator.n_evals):
                continue
            if not _step(integrator, evaluate, min(batch, total - integrator.n_evals)):
                reason = "interrupted"
                break
            report()
            if tol and integrator.n_evals >= next_check and _is_settled(integrator, tol):
                # The last estimate is made with more care than those on the way: its error bar is the one that counts.
                result = _result_within(integrator, tol)
                if result is not None:
                    return _ended(integrator, result)
                next_check = integrator.n_evals + max(1, integrator.n_evals // 20)
    except TimeUp:
        reason = "time"
    except KeyboardInterrupt:
        integrator.recover()
        reason = "interrupted"
    except (LikelihoodError, JournalError) as error:
        if np.any(np.isfinite(integrator.log_likelihoods)):
            error.result = integrator.result(reason="error")
        raise
    if reason == "interrupted" and not np.any(np.isfinite(integrator.log_likelihoods)):
        raise KeyboardInterrupt
    return _ended(integrator, integrator.result(reason=reason))


def _ended(integrator: Integrator, result: Result) -> Result:
    """The result of a run, after its journal has taken note of it."""
    if integrator.journal is not None:
        integrator.journal.end(result.reason, seconds=result.seconds, log_z=result.log_z, log_z_std=result.log_z_std)
    return result


def _is_settled(integrator: Integrator, tol: float) -> bool:
    """Whether the last two records are within ``tol`` and agree within it, past the first design.

    One record is not enough: the error bar of a young model, whose length-scales have just jumped, may be far too
    small. Nor is any error bar that the strategy has not checked.
    """
    history, log_l, dim = integrator.history, integrator.log_likelihoods, integrator.chart.dim
    if len(history) < 2 or integrator.n_evals < 4 * (dim + 1):
        return False
    before, last = history[-2:]
    if last.n_evals != integrator.n_evals or not integrator.strategy.is_checked:
        return False
    if int(np.sum(log_l > np.max(log_l) - NEAR)) <= dim:  # the mode is hardly explored
        return False
    return max(before.log_z_std, last.log_z_std) < tol and abs(before.log_z - last.log_z) < tol


def _result_within(integrator: Integrator, tol: float) -> Result | None:
    """The result, if its error bar is within ``tol``."""
    try:
        result = integrator.result(reason="tolerance")
    except NumericalError:
        return None
    return result if result.log_z_std <= tol else None


def _step(integrator: Integrator, evaluate: Callable[..., Array], n: int) -> bool:
    """Ask for n points, evaluate and tell them; False if the likelihood was interrupted.

    After a fault or an interrupt the values that were there already are told, and the other points come first in the
    next step: a run that is resumed is the unbroken one.
    """
    X = integrator.ask(n)
    values = np.full(len(X), np.nan)
    try:
        if integrator.journal is not None and len(X) > 1:
            _evaluate_and_keep(integrator.journal, evaluate, X, values)
        else:
            evaluate(X, out=values)
    except KeyboardInterrupt:
        return False
    finally:
        done = values < np.inf  # neither NaN, which is also what was not reached, nor +inf
        if np.any(done):
            integrator.tell(X[done], values[done])
        if not np.all(done):
            integrator.postpone(X[~done])
    return True


def _evaluate_and_keep(journal: Journal, evaluate: Callable[..., Array], X: Array, out: Array) -> None:
    """Evaluate X (N, D) into ``out`` (N,); what a call returned is on the disk before the next one begins."""
    kept = [journal.kept(x) for x in X]
    new = [i for i, value in enumerate(kept) if value is None]
    out[:] = [np.nan if value is None else value for value in kept]
    for i in new:
        evaluate(X[i : i + 1], out=out[i : i + 1])
        journal.keep(X[i], float(out[i]))


class _Climber:
    """Climbs by gradients on behalf of an integrator's searches.

    Parameters
    ----------
    evaluate, report : what makes an evaluation, and what is called after each.
    checked : whether ``grad`` was checked against the likelihood earlier in this run.
    """

    def __init__(
        self,
        integrator: Integrator,
        grad: Callable[..., Any],
        evaluate: Callable[..., Array],
        report: Callable[[], None],
        *,
        vectorized: bool,
        checked: bool,
    ) -> None:
        if not integrator.is_adaptive:
            raise ValueError(
                f'grad is of no use to measure="{integrator.settings.measure}", which does not look for the mass: '
                'leave grad out, or take measure="adaptive".'
            )
        self._integrator = integrator
        self._evaluate = evaluate
        self._report = report
        gradient = gradient_evaluator(grad, integrator.chart, vectorized=vectorized)
        self._wanted: Climb | None = None  # the climb under way
        self._slope: Slope = checked_slope(self._value, gradient, integrator.chart, checked=checked)

    def climbs(self, left: int) -> bool:
        """Climb if a search wants to, with ``left`` evaluations left; whether it did."""
        integrator = self._integrator
        wanted = integrator.wanted_climb(left)
        if wanted is None:
            return False
        self._wanted = wanted
        integrator.end_climb(climb(self._slope, integrator.chart.measure, wanted.start, wanted.limit))
        return True

    def _value(self, u: Array) -> float:
        """log ℓ at u (D,) in base coordinates, the weight of a ``LogDensity`` included; told where it is new."""
        integrator = self._integrator
        value = integrator.value_at(u)
        if value is None and self._wanted is not None:
            X = integrator.begin_climb_step(self._wanted, u)[None, :]
            try:
                values = self._evaluate(X)
            except BaseException:
                integrator.forget(X)
                raise
            integrator.tell(X, values)
            self._report()
            value = float(values[0])
        if value is None:
            raise NumericalError("an evaluation was asked for outside a climb.")
        return value + float(integrator.chart.log_weight(u[None, :])[0])
