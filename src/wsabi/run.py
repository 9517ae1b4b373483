"""A run: an integrator, a likelihood and the options of the run, from the first evaluation to the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from wsabi._core.memory import physical_memory
from wsabi.errors import JournalError, LikelihoodError, WorkersLost, announce
from wsabi.ledger import Climbed
from wsabi.likelihood import evaluator, likelihood_name
from wsabi.result import Reason, Result
from wsabi.running.climbing import Climber
from wsabi.running.faults import Faults
from wsabi.running.loop import Loop
from wsabi.running.options import DEFAULT_TOL, RunOptions, too_few_evaluations
from wsabi.running.parallel import in_parallel
from wsabi.running.progress import Progress
from wsabi.running.serial import one_by_one
from wsabi.running.stopping import CallbackFailed, Deadline, Interrupted, Stopped, TimeUp, settled_result
from wsabi.runs.executors import Call, opened

if TYPE_CHECKING:
    from wsabi.integrator import Integrator

__all__ = ["Progress", "RunOptions", "run"]

# What a bulk point takes: its coordinates in the ledger, in the engine, in the result and once while one of these is
# made; its log ℓ, log ℓπ and log weight, in the same places.
BYTES_PER_NUMBER, NUMBERS_PER_COORDINATE, NUMBERS_PER_POINT = 8, 5, 12


def run(
    integrator: Integrator,
    log_likelihood: Callable[..., Any],
    options: RunOptions,
    *,
    n_before: int | None = None,
) -> Result:
    """Evaluate ``log_likelihood`` where an integrator asks, until budget, clock, tolerance or Ctrl-C end the run.

    Parameters
    ----------
    n_before : number of evaluations that ``budget`` does not count; None is all that were made so far. Where it is
        given, a run from a journal goes on as if it had never stopped.
    """
    goes_on = n_before is not None and integrator.n_spent > n_before
    n_before = integrator.n_spent if n_before is None else n_before
    total = n_before + options.limit(integrator.usual_budget)
    _check_searches(integrator, total)
    _check_memory(integrator, options)
    evaluate = evaluator(log_likelihood, integrator.chart, vectorized=options.vectorized)
    if integrator.journal is not None:
        integrator.journal.check_likelihood(likelihood_name(log_likelihood))
    tol = DEFAULT_TOL if options.tol is None and integrator.is_adaptive else options.tol
    call = Call.of(log_likelihood, integrator.chart, vectorized=options.vectorized)
    pool = opened(call, options)
    deadline = Deadline(options.max_seconds)
    report = _reporter(integrator, options, deadline, total)
    modelled = min(total, n_before + integrator.usual_budget)
    loop = Loop(integrator, Faults(integrator, options), options, report, total, modelled, deadline, tol, options.batch)
    reason: Reason = "budget"
    try:
        _plan(integrator, options, loop, n_before, goes_on=goes_on)
        if integrator.journal is not None:
            integrator.journal.set("end", None)
        result = None
        if goes_on and not integrator.log.last_told_is_of_climb:
            # A run that was killed here goes on as if it had not been: its tolerance may have been reached.
            result = settled_result(integrator, tol)
        if result is None and pool is not None:
            result = in_parallel(loop, pool)
        elif result is None:
            result = one_by_one(loop, evaluate, _climber(loop, options, evaluate, goes_on=goes_on))
        if result is not None:
            return _ended(integrator, result)
    except TimeUp:
        reason = "time"
    except Stopped:
        reason = "callback"
    except Interrupted:
        reason = "interrupted"
    except KeyboardInterrupt:  # perhaps while the integrator was at work
        integrator.recover()
        reason = "interrupted"
    except CallbackFailed as failure:
        raise _with_result(integrator, failure.__cause__ or failure) from None
    except (LikelihoodError, JournalError, WorkersLost) as error:
        raise _with_result(integrator, error)  # noqa: B904  the same error, with more to it
    finally:
        if pool is not None:
            pool.close()
    if reason == "interrupted" and not np.any(np.isfinite(integrator.log_likelihoods)):
        raise KeyboardInterrupt
    return _ended(integrator, integrator.result(reason=reason))


def _check_searches(integrator: Integrator, total: int) -> None:
    """Refuse more searches than a run of so many evaluations can make."""
    least = (integrator.settings.min_searches or 0) * (2 * integrator.chart.dim + 2)
    if least > total:
        raise ValueError(
            f"min_searches={integrator.settings.min_searches} takes at least {least} evaluations, and the run has "
            f"{total}: give a larger budget, or fewer searches."
        )


def _check_memory(integrator: Integrator, options: RunOptions) -> None:
    """Refuse a budget whose points alone do not fit into the memory of this machine."""
    if options.budget is None:
        return
    needed = options.budget * BYTES_PER_NUMBER * (NUMBERS_PER_COORDINATE * integrator.chart.dim + NUMBERS_PER_POINT)
    memory = physical_memory()
    if memory is not None and needed > memory:
        raise ValueError(
            f"budget={options.budget} takes about {needed / 1e9:.3g} GB for the points alone, and this machine has "
            f"{memory / 1e9:.3g} GB: give a smaller budget, or a tolerance (tol=)."
        )


def _plan(integrator: Integrator, options: RunOptions, loop: Loop, n_before: int, *, goes_on: bool) -> None:
    """Tell the adaptive strategy what the run may spend and what will do; warn where that cannot be enough."""
    if not integrator.is_adaptive:
        return
    planned = loop.total
    if options.budget is None:
        planned = min(planned, n_before + integrator.usual_budget)
        if goes_on:
            planned = max(planned, int(integrator.strategy.budget))
    integrator.plan(planned, loop.tol or 0.0)
    too_few = too_few_evaluations(integrator.chart.dim, loop.total) if options.grad is None else None
    if too_few is not None:
        announce([too_few], stacklevel=5)


def _reporter(integrator: Integrator, options: RunOptions, deadline: Deadline, total: int) -> Callable[..., None]:
    """What is called after each batch: it tells the callback where there is news, and raises what ends the run."""

    def report(*, news: bool = True) -> None:
        if options.callback is not None and news:
            try:
                goes = options.callback(integrator.progress(total))
            except Exception as error:
                raise CallbackFailed from error
            if goes is False:
                raise Stopped
        deadline.check()

    return report


def _climber(loop: Loop, options: RunOptions, evaluate: Callable[..., Any], *, goes_on: bool) -> Climber | None:
    """What climbs on behalf of searches; None without ``grad``."""
    if options.grad is None:
        return None
    events = loop.integrator.log.events if goes_on else []
    checked = any(isinstance(event, Climbed) and event.mean is not None for event in events)
    vectorized = options.vectorized
    return Climber(loop.integrator, options.grad, evaluate, loop.report, vectorized=vectorized, checked=checked)


def _with_result(integrator: Integrator, error: BaseException) -> BaseException:
    """The same error, with all that was evaluated in its attribute ``result``."""
    if np.any(np.isfinite(integrator.log_likelihoods)):
        error.result = integrator.result(reason="error")  # type: ignore[attr-defined]
        error.add_note(f"The attribute result of this error has the {integrator.n_evals} evaluations made so far.")
    return error


def _ended(integrator: Integrator, result: Result) -> Result:
    """The result of a run, after its journal has taken note of it."""
    if integrator.journal is not None:
        integrator.course.keep(least=1.0)
        integrator.journal.end(result.reason, seconds=result.seconds, log_z=result.log_z, log_z_std=result.log_z_std)
    return result
