"""A run: budget, clock, tolerance and Ctrl-C, round one integrator."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from wsabi._core.checks import whole_number
from wsabi._core.types import Array
from wsabi.adaptive.search.ascent import Slope, climb
from wsabi.adaptive.surrogate.theta import n_coefficients
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import JournalError, LikelihoodError, NumericalError, WorkersLost, announce
from wsabi.ledger import Climbed
from wsabi.likelihood import checked_slope, evaluator, gradient_evaluator, likelihood_name
from wsabi.report.estimate import NEAR
from wsabi.result import Reason, Result
from wsabi.runs.executors import KEPT, Call, Fault, Pool, opened

if TYPE_CHECKING:
    from wsabi.integrator import Integrator
    from wsabi.runs.journal import Journal
    from wsabi.strategies.protocol import Climb

__all__ = [
    "DEFAULT_TOL",
    "Deadline",
    "OnError",
    "Progress",
    "TimeUp",
    "checked_budget",
    "checked_tol",
    "default_budget",
    "is_settled",
    "result_within",
    "run",
    "too_few_evaluations",
]

OnError = Literal["raise", "exclude"]
WAKE = 0.2  # seconds after which the clock is looked at while all workers are busy
DEFAULT_TOL = 0.05  # of log Z: far below the factor of three that moves anyone's judgement of two models


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each evaluation; ``log_z`` and ``log_z_std`` are those of the last record.

    Attributes
    ----------
    n_pending, n_failed : evaluations under way, and those that failed and were left out.
    best : the highest log ℓ so far.
    phase : what the last point that was asked for is for, such as "search 0", "refine" or "check".
    integrator : the run itself: its points, its result() so far, and pickle.dumps for a checkpoint. None for baselines.
    """

    n_evals: int
    budget: int
    seconds: float
    log_z: float
    log_z_std: float
    n_pending: int = 0
    n_failed: int = 0
    best: float = -math.inf
    phase: str = ""
    integrator: Integrator | None = field(default=None, repr=False, compare=False)


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
    workers: int | None = None,
    executor: Any = None,
    client: Any = None,
    timeout: float | None = None,
    on_error: OnError = "raise",
    retries: int = 0,
) -> Result:
    """Evaluate ``log_likelihood`` where an integrator asks, until budget, clock, tolerance or Ctrl-C end the run.

    See :func:`wsabi.integrate` for the parameters.

    Parameters
    ----------
    n_before : number of evaluations that ``budget`` does not count; None is all that were made so far. Where it is
        given, a run from a journal goes on as if it had never stopped.
    """
    goes_on = n_before is not None and integrator.n_spent > n_before
    n_before = integrator.n_spent if n_before is None else n_before
    total = n_before + checked_budget(budget, integrator.usual_budget, max_seconds)
    batch = whole_number("batch", batch)
    faults = _Faults(integrator, on_error, retries, vectorized=vectorized)
    tol = checked_tol(tol)
    least = (integrator.settings.min_searches or 0) * (2 * integrator.chart.dim + 2)
    if least > total:
        raise ValueError(
            f"min_searches={integrator.settings.min_searches} takes at least {least} evaluations, and the run has "
            f"{total}: give a larger budget, or fewer searches."
        )
    evaluate = evaluator(log_likelihood, integrator.chart, vectorized=vectorized)
    if integrator.journal is not None:
        integrator.journal.check_likelihood(likelihood_name(log_likelihood))
    call = Call.of(log_likelihood, integrator.chart, vectorized=vectorized)
    pool = opened(call, workers=workers, executor=executor, client=client, timeout=timeout)
    deadline = Deadline(max_seconds)

    def report(*, news: bool = True) -> None:
        if callback is not None and news:
            try:
                goes = callback(integrator.progress(total))
            except Exception as error:
                raise _CallbackFailed from error
            if goes is False:
                raise _Stopped
        deadline.check()

    reason: Reason = "budget"
    try:
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
            integrator.journal.set("end", None)
        if goes_on and tol and not integrator.log.last_told_is_of_climb:
            # A run that was killed here goes on as if it had not been: its tolerance may have been reached.
            result = result_within(integrator, tol) if is_settled(integrator, tol) else None
            if result is not None:
                return _ended(integrator, result)
        if pool is not None:
            if grad is not None:
                raise ValueError("grad climbs from point to point: leave out workers, executor and client, or grad.")
            result = _in_parallel(integrator, pool, faults, report, total, tol, batch)
        else:
            climber = None
            if grad is not None:
                events = integrator.log.events if goes_on else []
                checked = any(isinstance(event, Climbed) and event.mean is not None for event in events)
                climber = _Climber(integrator, grad, evaluate, report, vectorized=vectorized, checked=checked)
            result = _one_by_one(integrator, evaluate, climber, faults, report, total, tol, batch)
        if result is not None:
            return _ended(integrator, result)
    except TimeUp:
        reason = "time"
    except _Stopped:
        reason = "callback"
    except _Interrupted:
        reason = "interrupted"
    except KeyboardInterrupt:  # perhaps while the integrator was at work
        integrator.recover()
        reason = "interrupted"
    except _CallbackFailed as failure:
        raise _with_result(integrator, failure.__cause__ or failure) from None
    except (LikelihoodError, JournalError, WorkersLost) as error:
        raise _with_result(integrator, error)  # noqa: B904  the same error, with more to it
    finally:
        if pool is not None:
            pool.close()
    if reason == "interrupted" and not np.any(np.isfinite(integrator.log_likelihoods)):
        raise KeyboardInterrupt
    return _ended(integrator, integrator.result(reason=reason))


class _Stopped(Exception):
    """The callback returned False."""


class _Interrupted(Exception):
    """Ctrl-C came while the likelihood was at work, and the state is sound."""


class _CallbackFailed(Exception):
    """The callback raised what is the cause of this."""


def _with_result(integrator: Integrator, error: BaseException) -> BaseException:
    """The same error, with all that was evaluated in its attribute ``result``."""
    if np.any(np.isfinite(integrator.log_likelihoods)):
        error.result = integrator.result(reason="error")  # type: ignore[attr-defined]
        error.add_note(f"The attribute result of this error has the {integrator.n_evals} evaluations made so far.")
    return error


class _Faults:
    """What becomes of evaluations that fail.

    Parameters
    ----------
    on_error : "raise", or "exclude" to leave the point out.
    retries : times that an evaluation is tried again before that.
    """

    def __init__(self, integrator: Integrator, on_error: OnError, retries: int, *, vectorized: bool) -> None:
        if on_error not in get_args(OnError):
            raise ValueError(f"on_error must be one of {', '.join(map(repr, get_args(OnError)))}; got {on_error!r}.")
        self._retries = whole_number("retries", retries, least=0)
        self._integrator = integrator
        self._on_error = on_error
        self._tried: dict[bytes, int] = {}
        self._in_a_row = 0
        self._vectorized = vectorized
        self.n_alone = 0  # points that are to be evaluated by themselves, after a call for several of them failed
        self.most_in_a_row = 4 * (integrator.chart.dim + 2)  # more than the first design may have outside what works

    def leaves_open_which(self, values: Array) -> bool:
        """Whether a call for several points failed: each is then tried by itself, to know which is at fault."""
        several = self._vectorized and len(values) > 1 and bool(np.all(np.isnan(values)))
        self.n_alone = len(values) if several and (self._retries or self._on_error != "raise") else 0
        return self.n_alone > 0

    def succeeded(self) -> None:
        """Take note of a value."""
        self._in_a_row = 0

    def takes(self, x: Array, message: str, traceback: str = "") -> bool:
        """Let the evaluation at x (D,) fail; whether the run goes on. The point is tried again, left out, or put back.

        Raises
        ------
        LikelihoodError
            If too many failed one after another: it is then the likelihood that fails, and not a point.
        """
        key = x.tobytes()
        self._tried[key] = self._tried.get(key, 0) + 1
        reason = f"{message}\n{traceback}" if traceback else message
        if self._tried[key] <= self._retries:
            self._integrator.tell_failure(x, reason, again=True)
            return True
        if self._on_error == "raise":
            self._integrator.tell_failure(x, reason, again=True)
            return False
        self._integrator.tell_failure(x, reason)
        self._in_a_row += 1
        if self._in_a_row >= self.most_in_a_row:
            raise LikelihoodError(f"{self._in_a_row} evaluations failed one after another; the last: {message}", x)
        return True


def _one_by_one(
    integrator: Integrator,
    evaluate: Callable[..., Array],
    climber: _Climber | None,
    faults: _Faults,
    report: Callable[..., None],
    total: int,
    tol: float | None,
    batch: int,
) -> Result | None:
    """Evaluate in this process; the result, if the tolerance ended the run."""
    next_check = 0  # evaluations from which on it is asked again whether the tolerance is reached
    while integrator.n_spent < total:
        _plan_anew(integrator, tol)
        if climber is not None and climber.climbs(total - integrator.n_spent):
            continue
        n = 1 if faults.n_alone else min(batch, total - integrator.n_spent)
        faults.n_alone = max(0, faults.n_alone - 1)
        _step(integrator, evaluate, faults, n)
        report()
        if tol and integrator.n_evals >= next_check and is_settled(integrator, tol):
            # The last estimate is made with more care than those on the way: its error bar is the one that counts.
            result = result_within(integrator, tol)
            if result is not None:
                return result
            next_check = integrator.n_evals + max(1, integrator.n_evals // 20)
    return None


def _plan_anew(integrator: Integrator, tol: float | None) -> None:
    """Where only time limits the run: shares refer to the usual number of evaluations, again and again."""
    if integrator.n_evals >= integrator.strategy.budget:
        integrator.plan(integrator.n_evals + integrator.usual_budget, tol or 0.0)


def _in_parallel(
    integrator: Integrator,
    pool: Pool,
    faults: _Faults,
    report: Callable[..., None],
    total: int,
    tol: float | None,
    batch: int,
) -> Result | None:
    """Evaluate on workers: one that is free gets new points at once, chosen with all that are under way in mind.

    When the run is to stop, what is under way is waited for, but for Ctrl-C, the clock and the tolerance.
    """
    tasks: dict[int, Array] = {}
    try:
        return _served(integrator, pool, tasks, faults, report, total, tol, batch)
    finally:
        if tasks:
            integrator.postpone(np.concatenate(list(tasks.values())))


def _served(
    integrator: Integrator,
    pool: Pool,
    tasks: dict[int, Array],
    faults: _Faults,
    report: Callable[..., None],
    total: int,
    tol: float | None,
    batch: int,
) -> Result | None:
    """The loop of :func:`_in_parallel`; ``tasks`` are those under way, by number."""
    n_tasks = next_check = 0
    ending: Exception | None = None
    while True:
        under_way = sum(len(X) for X in tasks.values())
        while ending is None and len(tasks) < pool.size and integrator.n_spent + under_way < total:
            _plan_anew(integrator, tol)
            X = integrator.ask_points(min(batch, total - integrator.n_spent - under_way))
            tasks[n_tasks] = X
            pool.submit(n_tasks, X)
            n_tasks += 1
            under_way += len(X)
        if not tasks:
            break
        try:
            came = pool.wait(WAKE)
        except KeyboardInterrupt:
            raise _Interrupted from None
        for number, outcomes in came:
            for x, outcome in zip(tasks.pop(number), outcomes, strict=True):
                if not isinstance(outcome, Fault):
                    try:
                        integrator.tell(x, outcome)
                    except JournalError as error:  # the value is taken, and so are the others that have come
                        ending = error if ending is None else ending
                    faults.succeeded()
                elif not faults.takes(x, outcome.message, outcome.traceback) and ending is None:
                    ending = LikelihoodError(outcome.message, x)
        try:
            report(news=bool(came))
        except _Stopped as stopped:
            ending = stopped if ending is None else ending
        if came and ending is None and tol and integrator.n_evals >= next_check and is_settled(integrator, tol):
            result = result_within(integrator, tol)
            if result is not None:
                return result
            next_check = integrator.n_evals + max(1, integrator.n_evals // 20)
    if ending is not None:
        raise ending
    return None


def _ended(integrator: Integrator, result: Result) -> Result:
    """The result of a run, after its journal has taken note of it."""
    if integrator.journal is not None:
        integrator.journal.end(result.reason, seconds=result.seconds, log_z=result.log_z, log_z_std=result.log_z_std)
    return result


def is_settled(integrator: Integrator, tol: float) -> bool:
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


def result_within(integrator: Integrator, tol: float) -> Result | None:
    """The result, if its error bar is within ``tol``."""
    try:
        result = integrator.result(reason="tolerance")
    except NumericalError:
        return None
    return result if result.log_z_std <= tol else None


def _step(integrator: Integrator, evaluate: Callable[..., Array], faults: _Faults, n: int) -> None:
    """Ask for n points, evaluate and tell them.

    After a fault or an interrupt the values that were there already are told, and the other points come first in the
    next step: a run that is resumed is the unbroken one.
    """
    X = integrator.ask_points(n)
    values = np.full(len(X), np.nan)
    try:
        if integrator.journal is not None and len(X) > 1:
            _evaluate_and_keep(integrator.journal, evaluate, X, values)
        else:
            evaluate(X, out=values)
        faults.succeeded()
    except LikelihoodError as error:
        which_is_open = faults.leaves_open_which(values)
        _tell_done(integrator, X, values)
        if which_is_open:
            return
        lines = traceback.format_exception(error.__cause__) if error.__cause__ is not None else []
        if not faults.takes(error.point, str(error), "".join(lines)[-KEPT:]):
            raise
    except KeyboardInterrupt:
        _tell_done(integrator, X, values)
        raise _Interrupted from None
    except BaseException:
        _tell_done(integrator, X, values)
        raise
    else:
        integrator.tell(X, values)


def _tell_done(integrator: Integrator, X: Array, values: Array) -> None:
    """Tell the values (N,) that are there, and have the other points X (N, D) come first in the next step."""
    done = values < np.inf  # neither NaN, which is also what was not reached, nor +inf
    try:
        if np.any(done):
            integrator.tell(X[done], values[done])
    finally:
        if not np.all(done):
            integrator.postpone(X[~done])


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
                f'grad is of no use to measure="{integrator.settings.measure}", which does not search for modes: '
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
