"""The one mutable object: :class:`Integrator` (ask, tell, run, result)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, Unpack, overload

import numpy as np

from wsabi._core.allocator import keep_freed_memory
from wsabi._core.checks import whole_number
from wsabi._core.threads import single_threaded
from wsabi._core.types import Array, ArrayLike, Seed, Streams
from wsabi.conclusion import result_of
from wsabi.course import Course
from wsabi.errors import announce
from wsabi.ledger import BatchTold, GivenUp, Logbook, Postponed, Told, stacked
from wsabi.likelihood import bad_values
from wsabi.model import Model, as_model
from wsabi.priors import LogDensity, as_prior
from wsabi.priors.chart import chart
from wsabi.priors.names import named_arguments, points_from
from wsabi.replay import continued, is_same_problem, replayed, resumed
from wsabi.result import Reason, Record, Result
from wsabi.run import run
from wsabi.running.options import (
    DEFAULT_TOL,
    RunArguments,
    RunOptions,
    checked_budget,
    checked_tol,
    default_budget,
)
from wsabi.running.progress import Progress
from wsabi.running.stopping import settled_result
from wsabi.runs.journal import Journal
from wsabi.settings import Settings
from wsabi.strategies.protocol import Strategy

__all__ = ["Integrator"]

P = ParamSpec("P")
R = TypeVar("R")


def one_at_a_time(
    method: Callable[Concatenate[Integrator, P], R],
) -> Callable[Concatenate[Integrator, P], R]:
    """The same method, which waits until no other thread is in one of these."""

    @wraps(method)
    def exclusive(self: Integrator, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._lock:
            return method(self, *args, **kwargs)

    return exclusive


class Integrator:
    """Z = ∫ ℓπ, one point at a time, for those who own the evaluation loop.

    Parameters
    ----------
    prior : a prior object, or a dict or list of ``scipy.stats`` distributions and (low, high) tuples. Or a
        :class:`~wsabi.Model`, whose likelihood :meth:`run` then evaluates.
    settings : the algorithm's choices.
    rng : seed, Generator or None. The same seed and the same values told give the same points, bit for bit.
    budget, tol : number of evaluations that the loop may reach, and the error of log Z that will do, for :attr:`done`
        and for the shares of searches and check points; None are those of :func:`wsabi.integrate`. :meth:`run` has its
        own.
    journal : path of a file in which everything that happens is written down at once. If it holds a run of the same
        prior, settings and seed, that run goes on here: nothing in it is evaluated again, and points that were under
        way are the first to be asked for. :meth:`close` lets other processes have it.

    Examples
    --------
    >>> import wsabi
    >>> integrator = wsabi.Integrator(wsabi.Gaussian([0.0]), rng=0)
    >>> for _ in range(12):
    ...     x = integrator.ask()
    ...     integrator.tell(x, -0.5 * (x[:, 0] - 1) ** 2)
    >>> abs(integrator.result().log_z - (-0.25 - 0.5 * 0.6931471805599453)) < 1e-3
    True
    """

    def __init__(
        self,
        prior: Any,
        *,
        settings: Settings | None = None,
        rng: Seed = None,
        budget: int | None = None,
        tol: float | None = None,
        journal: str | os.PathLike[str] | None = None,
    ) -> None:
        self.model = prior if isinstance(prior, Model) else None
        self.prior = as_prior(prior if self.model is None else self.model.prior)
        if settings is not None and not isinstance(settings, Settings):
            raise TypeError(f"settings must be a wsabi.Settings; got {type(settings).__name__}.")
        self.settings = Settings() if settings is None else settings
        self.chart = chart(self.prior, gaussian=self.is_adaptive)
        self._prior_fault = self.prior.normalisation_fault() if isinstance(self.prior, LogDensity) else None
        self.usual_budget = default_budget(self.chart.dim, adaptive=self.is_adaptive)
        self.budget = checked_budget(budget, self.usual_budget, None)
        self.tol = checked_tol(tol)
        if tol is None and self.is_adaptive:
            self.tol = DEFAULT_TOL
        keep_freed_memory()
        self._lock = threading.RLock()  # one thread at a time
        self._found_settled: tuple[int, bool] = (0, False)  # at so many evaluations, whether the tolerance was reached
        if journal is None:
            self.course = self.new_course(Streams.of(rng))
        else:
            self.course = self._opened(journal, None if rng is None else Streams.of(rng))
        if self.is_adaptive and (budget is not None or tol is not None):
            self.plan(self.budget, self.tol or 0.0)

    def new_course(self, origin: Streams) -> Course:
        """A run of this prior and these settings in which nothing has happened yet, with that seed."""
        return Course(self.chart, self.settings, origin, self.usual_budget)

    @single_threaded
    def _opened(self, path: str | os.PathLike[str], origin: Streams | None) -> Course:
        """Begin a journal, or go on with the run that it holds."""
        journal = Journal(path, prior=self.prior, settings=self.settings, origin=origin)
        try:
            return resumed(self.new_course, journal)
        except BaseException:
            journal.close()
            raise

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    @property
    def is_adaptive(self) -> bool:
        """Whether the measure is matched to the posterior, as by default."""
        return self.settings.measure == "adaptive"

    @property
    def log(self) -> Logbook:
        """Every event so far."""
        return self.course.log

    @property
    def strategy(self) -> Strategy:
        """The algorithm at work."""
        return self.course.strategy

    @property
    def journal(self) -> Journal | None:
        """The file in which events are written down, or None."""
        return self.course.journal

    @property
    def seconds(self) -> float:
        """Wall-clock time since the run began, without the pauses between a result and what goes on from it."""
        return self.course.seconds

    @property
    def n_evals(self) -> int:
        """Number of values told."""
        return self.course.n_evals

    @property
    def n_failed(self) -> int:
        """Number of evaluations that failed and were left out."""
        return len(self.log.failed) + self.log.n_bulk_failed

    @property
    def n_spent(self) -> int:
        """Number of evaluations that count against a budget: told, or failed and left out."""
        return self.n_evals + self.n_failed

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of the columns of points."""
        return self.chart.names

    @property
    def log_z(self) -> float:
        """Log Z as of the last record of :attr:`history`; NaN while there is none. :meth:`result` takes more care."""
        return self.course.last_record.log_z

    @property
    def log_z_std(self) -> float:
        """The error bar that belongs to :attr:`log_z`."""
        return self.course.last_record.log_z_std

    @property
    def done(self) -> Reason | None:
        """Why the loop may end: "budget" or "tolerance"; None while it should go on."""
        with self._lock:
            if self.n_spent >= self.budget:
                return "budget"
            if not self.tol or not self.n_evals:
                return None
            if self._found_settled[0] != self.n_evals:
                self._found_settled = (self.n_evals, settled_result(self, self.tol) is not None)
            return "tolerance" if self._found_settled[1] else None

    @property
    def log_likelihoods(self) -> Array:
        """(N,) every value told, in the order in which they came; those of bulk points follow the others."""
        return np.concatenate([self.course.log_l, self.course.bulk()[1]])

    @property
    def history(self) -> tuple[Record, ...]:
        """Estimates made on the way."""
        return tuple(self.course.history)

    @property
    def pending(self) -> Array:
        """(P, D) points asked for and not told yet, in the user's coordinates."""
        return stacked([one.x for one in self.log.pending], self.chart.dim)

    # -- ask and tell -------------------------------------------------------------------------------------------------

    @overload
    def ask(self, n: int = 1, *, as_dict: Literal[False]) -> Array: ...
    @overload
    def ask(self, n: int = 1, *, as_dict: Literal[True]) -> list[dict[str, Any]]: ...
    @overload
    def ask(self, n: int = 1) -> Any: ...
    def ask(self, n: int = 1, *, as_dict: bool | None = None) -> Any:
        """The next n points, in the user's coordinates; points asked for and not told count as under way.

        Parameters
        ----------
        as_dict : whether to give a list of n dicts of the parameters' names, or an (n, D) array; None gives dicts where
            the prior is a dict.
        """
        X = self.ask_points(n)
        as_dicts = self.chart.keyed if as_dict is None else as_dict
        return [named_arguments(self.chart, x) for x in X] if as_dicts else X

    @one_at_a_time
    @single_threaded
    def ask_points(self, n: int) -> Array:
        """The next n points, (n, D)."""
        return self.course.ask(whole_number("n", n))

    @one_at_a_time
    @single_threaded
    def tell(self, X: Any, log_l: ArrayLike) -> None:
        """Add values log ℓ (N,) at points X (N, D), or a dict or a list of dicts, asked for or not, in any order.

        Raises
        ------
        ValueError
            For wrong shapes, NaN or +inf; nothing of the call is then taken.
        """
        points = points_from(X, self.chart)
        values = np.atleast_1d(np.asarray(log_l, dtype=np.float64))
        if values.shape != (len(points),):
            raise ValueError(f"log_l has shape {values.shape} for {len(points)} points; expected ({len(points)},).")
        bad = bad_values(values)
        if bad:
            raise ValueError(f"log_l[{bad[0]}] is {values[bad[0]]}; expected a number or −inf (zero likelihood).")
        self.course.take(Told(points, self.course.to_base(points), values, self.seconds))

    @one_at_a_time
    @single_threaded
    def begin_batch(self, n: int) -> None:
        """Draw a batch of n bulk points, which wait in :attr:`open_batch`."""
        self.course.begin_batch(whole_number("n", n))

    def open_batch(self, most: int = 2**31) -> tuple[int, Array]:
        """The first bulk points that wait for a value, one after another: the number of the first, and X.

        The number is that in the batch. X (m, D) is in the user's coordinates, m at most ``most``, 0 where none waits.
        """
        with self._lock:
            U, waits = self.strategy.batch
            first = int(np.argmax(waits)) if np.any(waits) else len(waits)
            told = np.flatnonzero(~waits[first:])
            n = min(int(told[0]) if len(told) else len(waits) - first, most)
            return first, self.chart.to_user(U[first : first + n])

    @one_at_a_time
    def tell_batch(self, first: int, log_l: Array) -> None:
        """Add values log ℓ (m,), NaN for failures, of the points of the batch under way from number ``first`` on."""
        U, _ = self.strategy.batch
        self.course.take_batch(BatchTold(first, U[first : first + len(log_l)].copy(), log_l, self.seconds))

    @one_at_a_time
    def tell_failure(self, X: Any, reason: str = "", *, again: bool = False) -> None:
        """Tell that evaluations at points X (N, D), a dict or a list of dicts, which were asked for, have failed.

        The points are left out of the models, which is not the same as zero likelihood, and their neighbourhood is not
        asked for at once. ``result`` counts them, and warns where they lie near the mass.

        Parameters
        ----------
        reason : for the ledger and the journal.
        again : whether to try once more: they then come first when points are next asked for.
        """
        points = points_from(X, self.chart)
        for i, x in enumerate(points):
            known = self.log.find(x)
            if known is None or known.told is not None:
                why = "was never asked for" if known is None else "was told a value"
                raise ValueError(f"X[{i}] = {x} {why}: only points that are under way can fail.")
        self.course.fail(points, reason, again=again)

    @one_at_a_time
    def forget(self, X: Any = None) -> None:
        """Give up points (N, D) that were asked for and will never be told; all of them where X is None."""
        self.course.append(GivenUp(None if X is None else points_from(X, self.chart)))

    @one_at_a_time
    def postpone(self, X: Array) -> None:
        """Give up points X (N, D) for now: they come first when points are next asked for."""
        self.course.append(Postponed(X))

    @one_at_a_time
    def plan(self, budget: int, tol: float) -> None:
        """Tell the strategy how many evaluations the run may reach, and the error of log Z that will do."""
        self.course.plan(budget, tol)

    # -- going on from an earlier run ---------------------------------------------------------------------------------

    @single_threaded
    def continue_from(self, result: Result, rng: Seed = None) -> None:
        """Go on from an earlier run; none of its evaluations is made again.

        With the same prior and settings, and nothing asked or told here yet, its events are replayed: this integrator
        is then in the state in which that run ended, searches and check points included. Otherwise, or where the replay
        takes another course (another machine, another version), the evaluations are taken as told.

        Parameters
        ----------
        rng : seed, Generator or None: what follows is drawn from it. With None the run's own stream goes on, and what
            follows is what the unbroken run would have done.

        Where this integrator has a journal that holds a run already, that run goes on and ``result`` is not used.
        """
        course, journal = self.course, self.journal
        if journal is not None and journal.past is not None and journal.past.ledger.events:
            return
        if result.names != self.chart.names:
            raise ValueError(f"start has parameters {result.names}; the prior has {self.chart.names}.")
        is_same = not course.log.events and is_same_problem(self.prior, self.settings, self.chart, result)
        seed = None if rng is None else Streams.of(rng)
        course.journal = None
        try:
            self.course = continued(course, self.new_course, result, seed, is_same=is_same)
            if journal is not None:
                journal.begin_course(self.log.ledger, n_before=self.n_evals)
        finally:
            self.course.journal = journal

    @single_threaded
    def recover(self) -> None:
        """Come into the state that follows from the ledger, after an interrupt inside one of the methods."""
        again = replayed(self.new_course, self.log.ledger)
        if again is not None:
            again.notes, again.journal = self.course.notes, self.journal
            self.course = again
            self.course.write()

    # -- the journal, and results -------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the journal, if there is one, so that other processes may go on with it."""
        if self.journal is not None:
            self.journal.close()
            self.course.journal = None

    def __enter__(self) -> Integrator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def progress(self, budget: int) -> Progress:
        """What a callback is shown."""
        last = self.course.last_record
        return Progress(
            self.n_evals,
            budget,
            self.seconds,
            last.log_z,
            last.log_z_std,
            n_pending=len(self.log.pending),
            n_failed=self.n_failed,
            best=float(np.max(self.course.log_l, initial=-np.inf)),
            phase=self.course.phase,
            integrator=self,
        )

    @one_at_a_time
    @single_threaded
    def result(self, *, reason: Reason = "running") -> Result:
        """The estimate from everything told so far; the integrator is left as it is and can go on.

        Raises
        ------
        NoMassFound
            If nothing was told, or nothing but −inf: there is no number to give.
        """
        return result_of(self.course, self.prior, self.settings, reason, self._prior_fault)

    # -- running ------------------------------------------------------------------------------------------------------

    def run(self, log_likelihood: Callable[..., Any] | None = None, **options: Unpack[RunArguments]) -> Result:
        """Evaluate ``log_likelihood`` at up to ``budget`` further points; call again to go on where it stopped.

        None is the likelihood of the :class:`~wsabi.Model` that this integrator was made from.

        See :func:`wsabi.integrate` for the options: ``budget``, ``max_seconds``, ``tol``, ``grad``, ``vectorized``,
        ``batch``, ``callback``, ``workers``, ``executor``, ``client``, ``timeout``, ``on_error`` and ``retries``.
        Ctrl-C returns the result so far, with reason "interrupted".
        """
        chosen = RunOptions(**options)
        if log_likelihood is not None:
            model = as_model(log_likelihood, self.prior, vectorized=chosen.vectorized)
        elif self.model is not None:
            model = self.model
        else:
            raise TypeError("log_likelihood is missing: this integrator was made from a prior, not from a wsabi.Model.")
        result = run(self, model.log_likelihood, chosen.for_model(model, adaptive=self.is_adaptive))
        announce(result.warnings)
        return result
