"""The door: :func:`integrate`."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wsabi.errors import announce

if TYPE_CHECKING:
    from wsabi._core.types import Seed
    from wsabi.model import Model
    from wsabi.result import Result
    from wsabi.running.options import OnError
    from wsabi.running.progress import Progress
    from wsabi.runs.display import Display
    from wsabi.settings import Settings

__all__ = ["integrate"]


def integrate(
    log_likelihood: Callable[..., Any] | Model,
    prior: Any = None,
    *,
    budget: int | None = None,
    max_seconds: float | None = None,
    tol: float | None = None,
    rng: Seed = None,
    settings: Settings | None = None,
    grad: Callable[..., Any] | None = None,
    vectorized: bool = False,
    batch: int = 1,
    start: Result | None = None,
    callback: Callable[[Progress], object] | None = None,
    journal: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    executor: Any = None,
    client: Any = None,
    timeout: float | None = None,
    on_error: OnError = "raise",
    retries: int = 0,
    progress: bool | None = False,
) -> Result:
    """Estimate log Z = log ∫ ℓ(x) π(x) dx.

    Parameters
    ----------
    log_likelihood : from one (D,) point to a float, or with ``vectorized`` from (N, D) to (N,). Where the prior is a
        dict it receives a dict of the same names. −inf is zero likelihood. Or a :class:`~wsabi.Model`, which has the
        prior, the gradient and ``vectorized`` too, such as :func:`wsabi.from_pymc` makes.
    prior : prior object, or a dict or list of ``scipy.stats`` distributions and (low, high) tuples.
    budget : number of evaluations; None is 100(D + 2) under the adaptive measure and 50(D + 2) under others, or no
        limit where ``max_seconds`` is given.
    max_seconds : wall-clock limit.
    tol : stop when log Z is known to this standard deviation; None is 0.05 under the adaptive measure and no limit
        under the prior, whose error bar nothing checks; 0 spends the whole budget.
    rng : seed, Generator or None.
    settings : the algorithm's choices.
    grad : the gradient of ``log_likelihood``, taking what that takes and returning one number for each parameter, (D,)
        or with ``vectorized`` (N, D), or a dict of the names. Searches then climb by it, in some tens of
        evaluations; it is called at those points only, once at each, and the budget does not count it. For the
        adaptive measure, and any prior but ``Transform``. That of a model is not used where workers evaluate.
    batch : points chosen at a time, each aware of the others.
    start : result of an earlier run. With the same prior and settings the run goes on from the state in which it ended,
        with its searches and check points, and with its own random stream unless ``rng`` is given; otherwise its
        evaluations are used. None is repeated.
    callback : called with a :class:`~wsabi.run.Progress` after each batch, and in a climb by ``grad`` after each
        evaluation. It ends the run where it returns False. An exception in it ends the run too, and its attribute
        ``result`` then has everything so far.
    journal : path of a file in which every evaluation is written down at once. Where the file holds a run of the same
        problem, that run goes on: nothing in it is evaluated again, ``budget`` counts its evaluations too, and with the
        same arguments the result is that of a run that was never stopped. See docs/journal.md.
    workers : number of processes of this machine that evaluate at the same time, each started anew. In a script, the
        call must then stand under ``if __name__ == "__main__":``. See docs/parallel.md.
    executor : a ``concurrent.futures.Executor`` (threads, processes, MPI, ...) that evaluates; ``workers`` is then the
        number of evaluations under way at a time, by default the executor's own.
    client : a ``dask.distributed.Client`` whose cluster evaluates.
    timeout : seconds that one call may take, with one of the three above; local workers that take longer are killed.
    on_error : "raise" ends the run at the first evaluation that fails (an exception, NaN, +inf, a wrong shape, a hang,
        a dead worker); "exclude" leaves the point out of the models, and counts it.
    retries : how often a failed evaluation is tried again before that.
    progress : whether to show phase, evaluations, log Z and time left on standard error; None does where that is a
        terminal.

    Raises
    ------
    LikelihoodError
        If the likelihood raises or returns NaN, +inf or a wrong shape, or ``grad`` does or is not its gradient; carries
        the point and the result so far.
    NoMassFound
        If every value is −inf.
    WorkersLost
        If the workers cannot start, or all of them are lost; carries the result so far.
    JournalError
        If the journal is in use by another process, damaged, of another problem, or cannot be written.

    Warns
    -----
    EvidenceWarning
        Once for every entry of ``result.warnings``.

    Examples
    --------
    >>> import wsabi
    >>> result = wsabi.integrate(lambda x: -0.5 * x @ x, wsabi.Gaussian([0.0, 0.0]), budget=40, rng=0)
    >>> abs(result.log_z + 0.6931) < 1e-2
    True
    """
    # These are imported here because they load the engine, which `import wsabi` does not.
    from wsabi.integrator import Integrator
    from wsabi.model import as_model
    from wsabi.run import run
    from wsabi.running.options import RunOptions
    from wsabi.runs.display import Display, wanted

    model = as_model(log_likelihood, prior, grad=grad, vectorized=vectorized)
    options = RunOptions(
        budget=budget,
        max_seconds=max_seconds,
        tol=tol,
        grad=grad,
        batch=batch,
        callback=callback,
        workers=workers,
        executor=executor,
        client=client,
        timeout=timeout,
        on_error=on_error,
        retries=retries,
    )
    with ExitStack() as stack:
        integrator = stack.enter_context(Integrator(model.prior, settings=settings, rng=rng, journal=journal))
        options = options.for_model(model, adaptive=integrator.is_adaptive)
        if wanted(progress):
            options = replace(options, callback=_both(stack.enter_context(Display()), callback))
        if start is not None:
            integrator.continue_from(start, rng)
        n_before = None if integrator.journal is None else int(integrator.journal.get("n_before") or 0)
        result = run(integrator, model.log_likelihood, options, n_before=n_before)
    announce(result.warnings)
    return result


def _both(display: Display, callback: Callable[[Progress], object] | None) -> Callable[[Progress], object]:
    """A callback that shows the state before it calls the user's."""

    def shown(state: Progress) -> object:
        display(state)
        return None if callback is None else callback(state)

    return shown
