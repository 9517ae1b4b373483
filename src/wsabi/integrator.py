"""The one mutable object: :class:`Integrator` (ask, tell, run, result)."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

import numpy as np

from wsabi._core.checks import whole_number
from wsabi._core.threads import single_threaded
from wsabi._core.types import Array, ArrayLike, Seed, Streams
from wsabi.adaptive.search.ascent import Summit
from wsabi.errors import JournalError, NoMassFound, NumericalError, announce
from wsabi.gp.kernel import SquaredExponential
from wsabi.ledger import (
    Action,
    Asked,
    Climbed,
    Climbing,
    Event,
    Failed,
    GivenUp,
    Ledger,
    Logbook,
    Observation,
    Planned,
    Postponed,
    Reseeded,
    Told,
    stacked,
)
from wsabi.likelihood import bad_values
from wsabi.posterior.reweigh import reweigh
from wsabi.priors import LogDensity, as_prior
from wsabi.priors.chart import Chart, chart
from wsabi.priors.names import groups_of, keys_of, named_arguments
from wsabi.replay import is_same_problem, maps, replayed
from wsabi.report.estimate import NEAR
from wsabi.report.warnings import Remarks
from wsabi.result import Reason, Record, Result
from wsabi.run import (
    DEFAULT_TOL,
    OnError,
    Progress,
    checked_budget,
    checked_tol,
    default_budget,
    is_settled,
    result_within,
    run,
)
from wsabi.runs.journal import Journal
from wsabi.runs.journal import Record as JournalRecord
from wsabi.settings import Settings
from wsabi.strategies.adaptive import AdaptiveStrategy
from wsabi.strategies.plain import PlainStrategy
from wsabi.strategies.protocol import Climb, Strategy

__all__ = ["Integrator"]

# Random streams are numbered by these and by how many evaluations were ever asked for: what a point is drawn from does
# not depend on the order of the answers, on points that were put off, or on results that were asked for in between.
FOR_POINTS, FOR_CLIMBS = range(10, 12)
MANY_FAILURES = 0.05  # share of the evaluations near the mode from which on failures are worth a warning

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
    prior : a prior object, or a dict or list of ``scipy.stats`` distributions and (low, high) tuples.
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
        self.prior = as_prior(prior)
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
        self._lock = threading.RLock()  # one thread at a time
        self.journal: Journal | None = None
        if journal is None:
            self.begin(Streams.of(rng))
        else:
            self._open(journal, None if rng is None else Streams.of(rng))
        if self.is_adaptive and (budget is not None or tol is not None):
            self.plan(self.budget, self.tol or 0.0)

    def begin(self, origin: Streams) -> None:
        """Have nothing asked for and nothing told yet, with that seed."""
        self.log = Logbook(origin)
        self._streams = origin  # what the next event draws from
        self.strategy = self._new_strategy(origin)
        self._points = stacked([], self.chart.dim)
        self._base = stacked([], self.chart.dim)
        self._log_l = np.empty(0)
        self._noise = 0.0  # largest difference between two values told for one point
        self._notes: list[str] = []
        self._history: list[Record] = []
        self._next_record = 1
        self._found_settled: tuple[int, bool] = (0, False)  # at so many evaluations, whether the tolerance was reached
        self._climb: tuple[Climb, int] | None = None  # under way, and how many values were told before it
        self._replayed_seconds: float | None = None  # while events are replayed, the time at which they happened
        self._started = time.perf_counter()

    def _new_strategy(self, origin: Streams) -> Strategy:
        if self.is_adaptive:
            return AdaptiveStrategy(self.chart, self.settings, origin, self.usual_budget)
        kernel = _base_kernel(self.settings.kernel, self.chart)
        return PlainStrategy(self.chart, self.settings, origin.stream(), kernel)

    def __getstate__(self) -> dict[str, Any]:
        # Another process has another zero of perf_counter; and only one may write to a journal.
        state = {**self.__dict__, "_started": self.seconds, "journal": None}
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()
        self._started = time.perf_counter() - state["_started"]

    @property
    def is_adaptive(self) -> bool:
        """Whether the measure is matched to the posterior, as by default."""
        return self.settings.measure == "adaptive"

    @property
    def n_evals(self) -> int:
        """Number of values told."""
        return len(self._log_l)

    @property
    def n_failed(self) -> int:
        """Number of evaluations that failed and were left out."""
        return len(self.log.failed)

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
        return self._history[-1].log_z if self._history else math.nan

    @property
    def log_z_std(self) -> float:
        """The error bar that belongs to :attr:`log_z`."""
        return self._history[-1].log_z_std if self._history else math.nan

    @property
    def done(self) -> Reason | None:
        """Why the loop may end: "budget" or "tolerance"; None while it should go on."""
        with self._lock:
            if self.n_spent >= self.budget:
                return "budget"
            if not self.tol or not self.n_evals:
                return None
            if self._found_settled[0] != self.n_evals:
                settled = is_settled(self, self.tol) and result_within(self, self.tol) is not None
                self._found_settled = (self.n_evals, settled)
            return "tolerance" if self._found_settled[1] else None

    @property
    def log_likelihoods(self) -> Array:
        """(N,) every value told, in the order in which they came."""
        return self._log_l.copy()

    @property
    def history(self) -> tuple[Record, ...]:
        """Estimates made on the way."""
        return tuple(self._history)

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
        n = whole_number("n", n)
        first = self.log.postponed[:n]
        X, purposes = [one.x for one in first], [one.purpose for one in first]
        actions: list[Action | None] = [one.action for one in first]
        # What failed counts as under way for good: its neighbourhood is then not asked for at once.
        waiting = self.log.failed + self.log.pending + first
        under_way = [one.action for one in waiting if one.action is not None]
        while len(X) < n:
            rng = self._streams.stream(FOR_POINTS, self.log.n_asked + len(X) - len(first))
            action = self.strategy.ask(under_way, rng)
            under_way.append(action)
            actions.append(action)
            purposes.append(action.purpose.label)
            X.append(self.chart.to_user(action.u[None, :])[0] + 0.0)
        asked = Asked(stacked(X, self.chart.dim), tuple(purposes))
        try:
            self._append(asked, actions)
        except JournalError:
            self.log.append(Postponed(asked.X))
            raise
        return asked.X.copy()

    @one_at_a_time
    @single_threaded
    def tell(self, X: Any, log_l: ArrayLike) -> None:
        """Add values log ℓ (N,) at points X (N, D), or a dict or a list of dicts, asked for or not, in any order.

        Raises
        ------
        ValueError
            For wrong shapes, NaN or +inf; nothing of the call is then taken.
        """
        points = self._checked_points(X)
        values = np.atleast_1d(np.asarray(log_l, dtype=np.float64))
        if values.shape != (len(points),):
            raise ValueError(f"log_l has shape {values.shape} for {len(points)} points; expected ({len(points)},).")
        bad = bad_values(values)
        if bad:
            raise ValueError(f"log_l[{bad[0]}] is {values[bad[0]]}; expected a number or −inf (zero likelihood).")
        self._take(Told(points, self._to_base(points), values, self.seconds))

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
        points = self._checked_points(X)
        for i, x in enumerate(points):
            known = self.log.find(x)
            if known is None or known.told is not None:
                why = "was never asked for" if known is None else "was told a value"
                raise ValueError(f"X[{i}] = {x} {why}: only points that are under way can fail.")
        for x in points:
            self._append(Failed(x, reason, self.seconds))
        if not again:
            self._append(GivenUp(points))
        else:
            waiting = {one.x.tobytes() for one in self.log.pending}
            back = [x for x in points if x.tobytes() in waiting]
            if back:
                self._append(Postponed(np.array(back)))

    @one_at_a_time
    def forget(self, X: Any = None) -> None:
        """Give up points (N, D) that were asked for and will never be told; all of them where X is None."""
        self._append(GivenUp(None if X is None else self._checked_points(X)))

    @one_at_a_time
    def postpone(self, X: Array) -> None:
        """Give up points X (N, D) for now: they come first when points are next asked for."""
        self._append(Postponed(X))

    @one_at_a_time
    def plan(self, budget: int, tol: float) -> None:
        """Tell the strategy how many evaluations the run may reach, and the error of log Z that will do."""
        planned = Planned(budget, tol)
        if planned != next((event for event in reversed(self.log.events) if isinstance(event, Planned)), None):
            self._append(planned)
            self.strategy.plan(budget, tol)

    # -- climbs by gradients ------------------------------------------------------------------------------------------

    def begin_climb_step(self, climb: Climb, u: Array) -> Array:
        """Take note that a climb evaluates at u (D,), on behalf of a search; the point (D,) in user's coordinates."""
        x = self.chart.to_user(u[None, :])[0] + 0.0
        if self._climb is None:
            self._climb = (climb, self.n_evals)
        self._append(Climbing(x, u), [Action(u, climb.purpose)])
        return np.asarray(x)

    def wanted_climb(self, left: int) -> Climb | None:
        """The climb to make next with ``left`` evaluations left: from its start once more, if one was interrupted."""
        if self._climb is None:
            return self.strategy.wanted_climb(left)
        wanted, n_before = self._climb
        return replace(wanted, limit=min(wanted.limit, (left + self.n_evals - n_before) // 2))

    @single_threaded
    def end_climb(self, summit: Summit | None) -> None:
        """Let the search that climbed go on from the mode it has found, or from its points where it found none."""
        rng = self._streams.stream(FOR_CLIMBS, self.log.n_asked)
        self.strategy.climbed(summit, rng)
        self._climb = None
        self._append(Climbed(None, None) if summit is None else Climbed(summit.mean, summit.cov))

    def value_at(self, u: Array) -> float | None:
        """log ℓ told at base coordinates u (D,), or None."""
        here = np.flatnonzero(np.all(self._base == u, axis=1))
        return float(self._log_l[here[0]]) if len(here) else None

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
        if self.journal is not None:
            journal, self.journal = self.journal, None
            if journal.past is None or not journal.past.ledger.events:
                self.continue_from(result, rng)
                journal.begin_course(self.log.ledger, n_before=self.n_evals)
            self.journal = journal
            return
        if result.names != self.chart.names:
            raise ValueError(f"start has parameters {result.names}; the prior has {self.chart.names}.")
        if not self.log.events and result.ledger is not None and is_same_problem(self, result):
            before = self.log.origin
            if replayed(self, result.ledger):
                if rng is not None:
                    self.reseed(Streams.of(rng))
                return
            self.begin(before)
            self._notes.append(
                "The run given as start= could not be replayed here (another machine or another version): its "
                "evaluations were taken as told, its searches and check points were not."
            )
        points, base = result.points, result.base_points
        if not maps(self.chart, base, points):  # of another prior, or another measure
            base = self._to_base(points)
        self._take(Told(points, base, result.log_likelihoods, self.seconds))

    def repeat(self, event: Event) -> bool:
        """Let one event of an earlier run happen again; False where it takes another course."""
        if isinstance(event, Asked):
            return bool(np.array_equal(self.ask_points(len(event.X)), event.X))
        if isinstance(event, Planned):
            self.plan(event.budget, event.tol)
        elif isinstance(event, Told):
            self._replayed_seconds = event.seconds
            self._take(event)
        elif isinstance(event, Climbing):
            climb = self.wanted_climb(2**31)
            if climb is None:
                return False
            self.begin_climb_step(climb, event.u)
        elif isinstance(event, Climbed):
            self.end_climb(None if event.mean is None or event.cov is None else Summit(event.mean, event.cov))
        elif isinstance(event, Reseeded):
            self.reseed(event.origin)
        else:
            self._append(event)
        return True

    @single_threaded
    def recover(self) -> None:
        """Come into the state that follows from the ledger, after an interrupt inside one of the methods."""
        replayed(self, self.log.ledger)

    def end_replay(self) -> None:
        """Let the clock run again, from the time of the last event replayed."""
        self._started = time.perf_counter() - (self._replayed_seconds or 0.0)
        self._replayed_seconds = None

    def reseed(self, origin: Streams) -> None:
        """Draw from another seed from now on."""
        self._streams = origin
        self._append(Reseeded(origin))

    # -- points and values --------------------------------------------------------------------------------------------

    def _checked_points(self, X: Any) -> Array:
        if isinstance(X, Mapping) or (isinstance(X, list | tuple) and X and isinstance(X[0], Mapping)):
            X = [self._row_of(one) for one in ([X] if isinstance(X, Mapping) else X)]
        points = np.array(X, dtype=np.float64, ndmin=2) + 0.0  # no −0.0: points are recognised by their bytes
        if points.ndim != 2 or points.shape[1] != self.chart.dim or not len(points):
            raise ValueError(f"X has shape {np.shape(X)}; expected (N, {self.chart.dim}), one row per point.")
        if not np.all(np.isfinite(points)):
            raise ValueError("X must be finite.")
        return points

    def _row_of(self, given: Mapping[str, Any]) -> Array:
        """The point (D,) that a dict of the parameters' names stands for."""
        keys = keys_of(self.chart)
        if not isinstance(given, Mapping) or set(given) != set(keys):
            what = f"keys {sorted(map(str, given))}" if isinstance(given, Mapping) else type(given).__name__
            raise ValueError(f"a point of X has {what}; expected a dict with the keys {', '.join(map(repr, keys))}.")
        row = np.empty(self.chart.dim)
        for name, where in groups_of(self.chart):
            row[where] = given[name]
        return row

    def _to_base(self, points: Array) -> Array:
        """Base coordinates: remembered for points that were met before, computed for others."""
        known = [self.log.find(x) for x in points]
        base = [None if one is None else one.u for one in known]
        foreign = [i for i, u in enumerate(base) if u is None]
        computed = dict(zip(foreign, self.chart.to_base(points[foreign]), strict=True)) if foreign else {}
        return np.array([computed[i] if u is None else u for i, u in enumerate(base)])

    def _take(self, told: Told) -> None:
        """Let values be told: the strategy gets those at new points, the others tell how noisy the likelihood is."""
        log_weights = self.chart.log_weight(told.U)
        base, values = np.concatenate([self._base, told.U]), np.concatenate([self._log_l, told.log_l])
        new: list[Observation] = []
        for i, x in enumerate(told.X):
            number = self.n_evals + i
            earliest = int(np.argmax(np.all(base[: number + 1] == base[number], axis=1)))
            if earliest < number and values[earliest] != values[number]:
                self._noise = max(self._noise, abs(float(values[earliest] - values[number])))
            elif earliest == number:
                known = self.log.find(x)
                purpose = None if known is None or known.action is None else known.action.purpose
                new.append(Observation(told.U[i], float(told.log_l[i] + log_weights[i]), purpose))
        self.log.append(told)  # what has been evaluated is safe from here on
        fault = self._write()
        self._points = np.concatenate([self._points, told.X])
        self._base, self._log_l = base, values
        if new:
            self.strategy.tell(new)
        self._record()
        if fault is not None:
            raise fault

    # -- the journal --------------------------------------------------------------------------------------------------

    @single_threaded
    def _open(self, path: str | os.PathLike[str], origin: Streams | None) -> None:
        """Begin a journal, or go on with the run that it holds."""
        journal = Journal(path, prior=self.prior, settings=self.settings, origin=origin)
        try:
            self.begin(journal.origin)
            if journal.past is not None:
                self._resume(journal, journal.past)
            self.journal = journal
        except BaseException:
            journal.close()
            raise

    def _resume(self, journal: Journal, past: JournalRecord) -> None:
        """Come into the state of an earlier process, by replay, or else with its evaluations taken as told."""
        if replayed(self, past.ledger):
            for event in self.log.put_back:
                self.log.append(event)
            journal.write(self.log.events)
        else:
            self.take_as_told(past.ledger)
            journal.begin_course(self.log.ledger, retold=past.run.get("versions"))
        retold = journal.get("retold")
        if retold is not None:
            self._notes.append(self.retold_note(retold))

    @staticmethod
    def retold_note(versions: Mapping[str, str]) -> str:
        """What to say of a run that was begun with these versions, and could not be replayed with others."""
        return (
            f"The run was begun with wsabi {versions['wsabi']}, NumPy {versions['numpy']} and SciPy "
            f"{versions['scipy']} on {versions['machine']}, and could not be replayed with other versions or on "
            "another machine: its evaluations were taken as told, its searches and check points were not."
        )

    def take_as_told(self, ledger: Ledger) -> None:
        """Begin anew with the seed and the evaluations of a ledger, whatever they were made for."""
        self.begin(ledger.origin)
        told = [event for event in ledger.events if isinstance(event, Told)]
        if told:
            X, U = np.concatenate([one.X for one in told]), np.concatenate([one.U for one in told])
            if not maps(self.chart, U, X):
                U = self._to_base(X)
            self._replayed_seconds = told[-1].seconds
            self._take(Told(X, U, np.concatenate([one.log_l for one in told]), told[-1].seconds))
            self.end_replay()
        for event in ledger.events:
            if isinstance(event, Failed):
                self.log.append(event)

    def _append(self, event: Event, actions: Sequence[Action | None] | None = None) -> None:
        """Let an event happen, and write it down."""
        self.log.append(event, actions)
        fault = self._write()
        if fault is not None:
            raise fault

    def _write(self) -> JournalError | None:
        """Bring the journal up to date; why it could not be done, if it could not."""
        try:
            if self.journal is not None:
                self.journal.write(self.log.events)
        except JournalError as fault:
            return fault
        return None

    def close(self) -> None:
        """Close the journal, if there is one, so that other processes may go on with it."""
        if self.journal is not None:
            self.journal.close()
            self.journal = None

    def __enter__(self) -> Integrator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- results ------------------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Wall-clock time since the run began, without the pauses between a result and what goes on from it."""
        return time.perf_counter() - self._started if self._replayed_seconds is None else self._replayed_seconds

    def _record(self) -> None:
        """Add to the history, at every sample to begin with and then at every twentieth more: Z costs O(N²D)."""
        if self.n_evals < self._next_record:
            return
        try:
            estimate = self.strategy.estimate(self._noise)
        except NumericalError:  # result() will say so; the values told are safe
            return
        if estimate is None:
            return
        self._next_record = self.n_evals + max(1, self.n_evals // 20)
        self._history.append(Record(self.n_evals, self.seconds, estimate.log_z, estimate.log_z_std))

    def progress(self, budget: int) -> Progress:
        """What a callback is shown."""
        last = self._history[-1] if self._history else Record(0, 0.0, math.nan, math.nan)
        asked = next((event for event in reversed(self.log.events) if isinstance(event, Asked | Climbing)), None)
        phase = "search" if isinstance(asked, Climbing) else asked.purposes[-1] if asked is not None else ""
        return Progress(
            self.n_evals,
            budget,
            self.seconds,
            last.log_z,
            last.log_z_std,
            n_pending=len(self.log.pending),
            n_failed=self.n_failed,
            best=float(np.max(self._log_l, initial=-math.inf)),
            phase=phase,
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
        try:
            found = self.strategy.conclude(self._log_l, self._noise) if self.n_evals else None
        except NumericalError as error:
            error.state = (self._points.copy(), self._log_l.copy())
            raise
        if found is None:
            raise self._nothing_found()
        estimate = found.estimate
        history = tuple(self._history)
        if history and history[-1].n_evals == self.n_evals:  # what follows was done with more care
            history = history[:-1]
        history += (Record(self.n_evals, self.seconds, estimate.log_z, estimate.log_z_std),)
        remarks = Remarks(() if self._prior_fault is None else (self._prior_fault,)) + found.remarks
        remarks += self._remarks_on_failures()
        return Result(
            method="adaptive" if self.is_adaptive else self.settings.method,
            log_z=estimate.log_z,
            log_z_std=estimate.log_z_std,
            error_budget=estimate.error,
            model=estimate.model,
            n_evals=self.n_evals,
            seconds=self.seconds,
            converged=reason == "tolerance",
            reason=reason,
            warnings=remarks.warnings,
            notes=(*self._notes, *remarks.notes),
            names=self.chart.names,
            points=self._points.copy(),
            log_likelihoods=self._log_l.copy(),
            base_points=self._base.copy(),
            history=history,
            fits=found.fits,
            jitter=found.jitter,
            settings=self.settings,
            posterior=found.posterior,
            certificate=estimate.certificate,
            searches=found.searches,
            symmetries=found.symmetries,
            prior=self.prior,
            reweigh=reweigh,
            ledger=self.log.ledger,
        )

    def _remarks_on_failures(self) -> Remarks:
        """What to say of evaluations that failed: where they lie near the mass, log Z lacks what is there."""
        failed = stacked([one.u for one in self.log.failed if one.u is not None], self.chart.dim)
        if not self.n_failed:
            return Remarks()
        notes = (f"{self.n_failed} evaluations failed and were left out; result.ledger has the reasons.",)
        top = self._log_l > np.max(self._log_l) - NEAR
        n_top = int(np.sum(top))
        if n_top < 2 or not len(failed):
            return Remarks(notes=notes)
        spread = np.maximum(np.std(self._base[top], axis=0), 1e-12)
        squares = np.sum(np.square((failed[:, None, :] - self._base[None, :, :]) / spread), axis=2)
        near = int(np.sum(top[np.argmin(squares, axis=1)]))  # failures whose nearest neighbour is near the mode
        if near < 2 or near < MANY_FAILURES * (near + n_top):
            return Remarks(notes=notes)
        warning = (
            f"{near} of {near + n_top} evaluations near the highest likelihood failed: log Z and the posterior rest on "
            "the others, and may be wrong where the likelihood could not be computed. Mend the likelihood there, or "
            "return -math.inf where the model does not exist."
        )
        return Remarks((warning,), notes)

    def _nothing_found(self) -> NoMassFound:
        """Why there is no estimate to give."""
        state = (self._points.copy(), self._log_l.copy())
        if not self.n_evals:
            return NoMassFound(
                "nothing was evaluated yet, so there is no estimate to give: evaluate by run(log_likelihood), or tell "
                "values by tell(X, log_l), before result().",
                state,
            )
        return NoMassFound(
            f"none of {self.n_evals} evaluations has a finite log-likelihood: the likelihood is zero wherever it "
            "was tried. Check it at a point that should be feasible, or narrow the prior.",
            state,
        )

    # -- running ------------------------------------------------------------------------------------------------------

    def run(
        self,
        log_likelihood: Callable[..., Any],
        *,
        budget: int | None = None,
        max_seconds: float | None = None,
        tol: float | None = None,
        grad: Callable[..., Any] | None = None,
        vectorized: bool = False,
        batch: int = 1,
        callback: Callable[[Progress], object] | None = None,
        workers: int | None = None,
        executor: Any = None,
        client: Any = None,
        timeout: float | None = None,
        on_error: OnError = "raise",
        retries: int = 0,
    ) -> Result:
        """Evaluate ``log_likelihood`` at up to ``budget`` further points; call again to go on where it stopped.

        See :func:`wsabi.integrate` for the parameters. Ctrl-C returns the result so far, with reason "interrupted".
        """
        result = run(
            self,
            log_likelihood,
            budget=budget,
            max_seconds=max_seconds,
            tol=tol,
            grad=grad,
            vectorized=vectorized,
            batch=batch,
            callback=callback,
            workers=workers,
            executor=executor,
            client=client,
            timeout=timeout,
            on_error=on_error,
            retries=retries,
        )
        announce(result.warnings)
        return result


def _base_kernel(kernel: SquaredExponential | None, space: Chart) -> SquaredExponential | None:
    """A kernel given in the user's units, in base coordinates."""
    if kernel is None:
        return None
    if kernel.lengthscales.size not in (1, space.dim):
        raise ValueError(f"kernel has {kernel.lengthscales.size} length-scales for {space.dim} dimensions.")
    scale = np.ones(space.dim) if space.affine is None else space.affine[1]
    return SquaredExponential(kernel.scale, kernel.lengthscales / scale)
