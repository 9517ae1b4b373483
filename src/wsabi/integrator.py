"""The loop: :class:`Integrator` (ask, tell, run, result)."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from wsabi._core.checks import whole_number
from wsabi._core.threads import single_threaded
from wsabi._core.types import Array, ArrayLike, Seed
from wsabi.adaptive.engine import AdaptiveModel
from wsabi.adaptive.search.ascent import Slope
from wsabi.errors import LikelihoodError, NoMassFound, NumericalError, announce
from wsabi.gp.kernel import SquaredExponential
from wsabi.ledger import (
    Asked,
    Climbed,
    Event,
    GivenUp,
    Ledger,
    Origin,
    Planned,
    Postponed,
    Recovered,
    Reseeded,
    Sloped,
    Told,
)
from wsabi.likelihood import bad_values, checked_slope, evaluator, gradient_evaluator
from wsabi.posterior.reweigh import reweigh
from wsabi.priors import LogDensity, as_prior
from wsabi.priors.chart import Chart, chart
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.report.estimate import concluded, estimate_of, posterior_of, symmetries_of
from wsabi.report.warnings import Remarks, remarks_on
from wsabi.result import Reason, Record, Result
from wsabi.run import (
    DEFAULT_TOL,
    Deadline,
    Progress,
    TimeUp,
    checked_budget,
    checked_tol,
    default_budget,
    too_few_evaluations,
)
from wsabi.settings import Settings

__all__ = ["Integrator"]


class _BrokenOffError(Exception):
    """A climb that is replayed was broken off here."""


class Integrator:
    """Z = ∫ ℓπ, one point at a time, for those who own the evaluation loop.

    Parameters
    ----------
    prior : a prior object, or a dict or list of ``scipy.stats`` distributions and (low, high) tuples.
    settings : the algorithm's choices.
    rng : seed, Generator or None. The same seed and the same values told give the same points, bit for bit.

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

    def __init__(self, prior: Any, *, settings: Settings | None = None, rng: Seed = None) -> None:
        self.prior = as_prior(prior)
        if settings is not None and not isinstance(settings, Settings):
            raise TypeError(f"settings must be a wsabi.Settings; got {type(settings).__name__}.")
        self.settings = Settings() if settings is None else settings
        adaptive = self.settings.measure == "adaptive"
        self._chart = chart(self.prior, gaussian=adaptive)
        self._prior_fault = self.prior.normalisation_fault() if isinstance(self.prior, LogDensity) else None
        self._usual_budget = default_budget(self._chart.dim, adaptive=adaptive)
        self._begin(Origin.of(rng))

    def _begin(self, origin: Origin) -> None:
        """Have nothing asked for and nothing told yet, in that random state."""
        self._origin = origin
        self._events: list[Event] = []
        self._replayed_seconds: float | None = None  # while events are replayed, the time at which they happened
        self._notes: list[str] = []
        self._rng = origin.generator()
        self._model: AdaptiveModel | SequentialModel
        if self.settings.measure == "adaptive":
            self._model = AdaptiveModel(
                self._chart.measure, self.settings, self._rng, self._usual_budget, self._chart.kinds, origin.streams
            )
        else:
            kernel = _base_kernel(self.settings.kernel, self._chart)
            self._model = SequentialModel(self._chart.measure, self.settings, self._rng, kernel)
        dim = self._chart.dim
        self._points = np.empty((0, dim))
        self._base = np.empty((0, dim))
        self._log_l = np.empty(0)
        self._seen: dict[bytes, int] = {}  # base coordinates -> index of the first evaluation there
        self._pending: dict[bytes, Array] = {}  # user's coordinates -> base coordinates
        self._postponed: list[tuple[Array, Array]] = []  # (x, u) that a run asked for and did not get to
        self._told: dict[bytes, Array] = {}  # the same for points told: x -> u -> x -> u need not close to the last bit
        self._noise = 0.0  # largest difference between two values told for one point
        self._history: list[Record] = []
        self._next_record = 1
        self._started = time.perf_counter()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_started": self.seconds}  # another process has another zero of perf_counter

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._started = time.perf_counter() - state["_started"]

    @property
    def n_evals(self) -> int:
        """Number of values told."""
        return len(self._log_l)

    @property
    def pending(self) -> Array:
        """(P, D) points asked for and not told yet, in the user's coordinates."""
        return np.array([np.frombuffer(key) for key in self._pending]).reshape(-1, self._chart.dim)

    # -- ask and tell -------------------------------------------------------------------------------------------------

    @single_threaded
    def ask(self, n: int = 1) -> Array:
        """The next n points, (n, D), in the user's coordinates; points asked for and not told count as under way."""
        n = whole_number("n", n)
        self._postponed = [(x, u) for x, u in self._postponed if x.tobytes() not in self._told]
        asked = [self._postponed.pop(0) for _ in range(min(n, len(self._postponed)))]
        if len(asked) < n:
            under_way = np.array([*self._pending.values(), *(u for _, u in asked)]).reshape(-1, self._chart.dim)
            U = self._model.propose(n - len(asked), under_way)
            asked += list(zip(self._chart.to_user(U) + 0.0, U, strict=True))
        self._pending.update((x.tobytes(), u) for x, u in asked)
        X = np.array([x for x, _ in asked])
        self._events.append(Asked(X.copy(), tuple(self._model.purpose_of(u) for _, u in asked)))
        return X

    @single_threaded
    def tell(self, X: ArrayLike, log_l: ArrayLike) -> None:
        """Add values log ℓ (N,) at points X (N, D): asked for or not, in any order.

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
        base = self._to_base(points)
        for x in points:
            self._pending.pop(x.tobytes(), None)
        self._take(points, base, values)

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
        """
        if result.names != self._chart.names:
            raise ValueError(f"start has parameters {result.names}; the prior has {self._chart.names}.")
        if not self._events and result.ledger is not None and self._is_same_problem(result):
            before = self._origin
            if self._replay(result.ledger):
                if rng is not None:
                    self._reseed(Origin.of(rng))
                return
            self._begin(before)
            self._notes.append(
                "The run given as start= could not be replayed here (another machine or another version): its "
                "evaluations were taken as told, its searches and check points were not."
            )
        points, base = result.points, result.base_points
        if not self._maps(base, points):  # of another prior, or another measure
            base = self._to_base(points)
        self._take(points, base, result.log_likelihoods)

    def _maps(self, base: Array, points: Array) -> bool:
        """Whether these are base coordinates (N, D) of the points (N, D) under this prior."""
        try:
            return np.array_equal(self._chart.to_user(base), points)
        except ValueError:  # outside the box of a uniform prior
            return False

    def _is_same_problem(self, result: Result) -> bool:
        """Whether a result is of the same prior and settings as this integrator."""
        if result.settings != self.settings or not self._maps(result.base_points, result.points):
            return False
        if result.prior is self.prior:
            return True
        if self._chart.target is not None:  # its weight is a function, of which one cannot tell that it is the same
            return False
        other = chart(result.prior, gaussian=self.settings.measure == "adaptive").measure
        mine = self._chart.measure
        return (
            type(other) is type(mine)
            and np.array_equal(other.mean, mine.mean)
            and np.array_equal(other.cov, mine.cov)
            and np.array_equal(other.log_pdf(result.base_points), mine.log_pdf(result.base_points))
        )

    def _replay(self, ledger: Ledger) -> bool:
        """Let all events of a ledger happen again; False where they take another course."""
        self._begin(ledger.origin)
        events = iter(ledger.events)
        for event in events:
            if isinstance(event, Asked):
                if not np.array_equal(self.ask(len(event.X)), event.X):
                    return False
            elif isinstance(event, Climbed):
                self._replay_climb(event, events)
            else:
                self._repeat(event)
        self._started = time.perf_counter() - (self._replayed_seconds or 0.0)
        self._replayed_seconds = None
        return True

    def _repeat(self, event: Event) -> None:
        """Let one event happen again that needs no answer."""
        if isinstance(event, Planned):
            self._plan(event.budget, event.tol)
        elif isinstance(event, Told):
            self._replayed_seconds = event.seconds
            for x in event.X:
                self._pending.pop(x.tobytes(), None)
            self._take(event.X, event.U, event.log_l)
        elif isinstance(event, GivenUp):
            self.forget(event.X)
        elif isinstance(event, Postponed):
            self._postpone(event.X, event.U)
        elif isinstance(event, Recovered):
            self._recover()
        elif isinstance(event, Reseeded):
            self._reseed(event.origin)

    def _replay_climb(self, begun: Climbed, events: Iterator[Event]) -> None:
        """Let a climb happen again, with the gradients that it was given."""

        def slope(_: Array) -> tuple[float, Array]:
            for event in events:
                if isinstance(event, Sloped):
                    self._events.append(event)
                    return event.log_l, event.gradient
                if not isinstance(event, Told):
                    break
                self._repeat(event)
            raise _BrokenOffError

        self._events.append(begun)
        if isinstance(self._model, AdaptiveModel):
            with contextlib.suppress(_BrokenOffError):
                self._model.climb(slope, begun.left)

    def _reseed(self, origin: Origin) -> None:
        """Draw from another generator from now on."""
        if type(self._rng.bit_generator).__name__ == origin.bit_generator:
            self._rng.bit_generator.state = origin.generator().bit_generator.state
        else:  # every part of the model holds this generator: it can be put into another state, not exchanged
            self._rng.bit_generator.state = type(self._rng.bit_generator)(list(origin.entropy)).state
        self._events.append(Reseeded(origin))

    def _plan(self, budget: int, tol: float) -> None:
        """Tell the model how many evaluations it may reach, and the error of log Z that will do."""
        self._events.append(Planned(budget, tol))
        if isinstance(self._model, AdaptiveModel):
            self._model.plan(budget, tol)

    @single_threaded
    def _recover(self) -> None:
        """Make the model whole again after an interrupt."""
        self._events.append(Recovered())
        self._model.recover()

    def _postpone(self, X: Array, U: Array) -> None:
        """Give up points X (N, D), U (N, D) for now: they come first when points are next asked for."""
        for x in X:
            self._pending.pop(x.tobytes(), None)
        self._postponed[:0] = list(zip(X, U, strict=True))
        self._events.append(Postponed(X, U))

    def forget(self, X: ArrayLike | None = None) -> None:
        """Give up points (N, D) that were asked for and will never be told; all of them where X is None."""
        points = None if X is None else self._checked_points(X)
        self._events.append(GivenUp(points))
        if points is None:
            self._pending.clear()
            return
        for x in points:
            self._pending.pop(x.tobytes(), None)

    def _checked_points(self, X: ArrayLike) -> Array:
        points = np.array(X, dtype=np.float64, ndmin=2) + 0.0  # no −0.0: points are looked up by their bytes
        if points.ndim != 2 or points.shape[1] != self._chart.dim or not len(points):
            raise ValueError(f"X has shape {np.shape(X)}; expected (N, {self._chart.dim}), one row per point.")
        if not np.all(np.isfinite(points)):
            raise ValueError("X must be finite.")
        return points

    def _to_base(self, points: Array) -> Array:
        """Base coordinates: remembered for points that were asked for, computed for foreign ones."""
        known = [self._pending.get(key, self._told.get(key)) for key in map(np.ndarray.tobytes, points)]
        foreign = [i for i, u in enumerate(known) if u is None]
        computed = dict(zip(foreign, self._chart.to_base(points[foreign]), strict=True)) if foreign else {}
        return np.array([computed[i] if u is None else u for i, u in enumerate(known)])

    def _take(self, points: Array, base: Array, values: Array) -> None:
        weights = self._chart.log_weight(base)
        self._events.append(Told(points, base, values, self.seconds))
        self._told.update((x.tobytes(), u) for x, u in zip(points, base, strict=True))
        self._points = np.concatenate([self._points, points])
        self._base = np.concatenate([self._base, base])
        self._log_l = np.concatenate([self._log_l, values])
        fresh = []
        for i, u in enumerate(base):
            index = self._seen.setdefault(u.tobytes(), self.n_evals - len(base) + i)
            if index == self.n_evals - len(base) + i:
                fresh.append(i)
            elif self._log_l[index] != values[i]:
                self._noise = max(self._noise, abs(float(self._log_l[index] - values[i])))
        if fresh:
            self._model.observe(base[fresh], (values + weights)[fresh])
        self._record()

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
            estimate = estimate_of(self._model, noise=self._noise)
        except NumericalError:  # result() will say so; the values told are safe
            return
        if estimate is None:
            return
        self._next_record = self.n_evals + max(1, self.n_evals // 20)
        self._history.append(Record(self.n_evals, self.seconds, estimate.log_z, estimate.log_z_std))

    def _progress(self, budget: int) -> Progress:
        last = self._history[-1] if self._history else Record(0, 0.0, math.nan, math.nan)
        return Progress(self.n_evals, budget, self.seconds, last.log_z, last.log_z_std)

    @single_threaded
    def result(self, *, reason: Reason = "running") -> Result:
        """The estimate from everything told so far; the integrator is left as it is and can go on.

        Raises
        ------
        NoMassFound
            If nothing was told, or nothing but −inf: there is no number to give.
        """
        try:
            model = concluded(self._model)
            estimate = None if model is None else estimate_of(model, final=True, noise=self._noise)
        except NumericalError as error:
            error.state = (self._points.copy(), self._log_l.copy())
            raise
        if not self.n_evals:
            raise NoMassFound(
                "nothing was evaluated yet, so there is no estimate to give: evaluate by run(log_likelihood), or tell "
                "values by tell(X, log_l), before result().",
                (self._points.copy(), self._log_l.copy()),
            )
        if model is None or estimate is None:
            raise NoMassFound(
                f"none of {self.n_evals} evaluations has a finite log-likelihood: the likelihood is zero wherever it "
                "was tried. Check it at a point that should be feasible, or narrow the prior.",
                (self._points.copy(), self._log_l.copy()),
            )
        history = tuple(self._history)
        if history and history[-1].n_evals == self.n_evals:  # what follows was done with more care
            history = history[:-1]
        history += (Record(self.n_evals, self.seconds, estimate.log_z, estimate.log_z_std),)
        posterior = posterior_of(model, self._chart, estimate)
        remarks = Remarks(() if self._prior_fault is None else (self._prior_fault,))
        remarks += remarks_on(model, estimate, posterior, self._log_l, self._noise, self._chart.names)
        return Result(
            method="adaptive" if self.settings.measure == "adaptive" else self.settings.method,
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
            names=self._chart.names,
            points=self._points.copy(),
            log_likelihoods=self._log_l.copy(),
            base_points=self._base.copy(),
            history=history,
            fits=tuple(model.fits),
            jitter=model.max_jitter,
            settings=self.settings,
            posterior=posterior,
            certificate=estimate.certificate,
            searches=tuple(model.found.searches) if isinstance(model, AdaptiveModel) else (),
            symmetries=symmetries_of(model, self._chart.names),
            prior=self.prior,
            reweigh=reweigh,
            ledger=Ledger(self._origin, tuple(self._events)),
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
    ) -> Result:
        """Evaluate ``log_likelihood`` at up to ``budget`` further points; call again to go on where it stopped.

        See :func:`wsabi.integrate` for the parameters. Ctrl-C returns the result so far, with reason "interrupted".
        """
        result = self._run(
            log_likelihood,
            budget=budget,
            max_seconds=max_seconds,
            tol=tol,
            grad=grad,
            vectorized=vectorized,
            batch=batch,
            callback=callback,
        )
        announce(result.warnings)
        return result

    def _run(
        self,
        log_likelihood: Callable[..., Any],
        *,
        budget: int | None,
        max_seconds: float | None,
        tol: float | None,
        grad: Callable[..., Any] | None,
        vectorized: bool,
        batch: int,
        callback: Callable[[Progress], object] | None,
    ) -> Result:
        """:meth:`run` without a word."""
        total = self.n_evals + checked_budget(budget, self._usual_budget, max_seconds)
        batch = whole_number("batch", batch)
        tol = checked_tol(tol)
        if isinstance(self._model, AdaptiveModel):
            tol = DEFAULT_TOL if tol is None else tol
            self._plan(min(total, self.n_evals + self._usual_budget) if budget is None else total, tol)
            too_few = too_few_evaluations(self._chart.dim, total) if grad is None else None
            if too_few is not None:
                announce([too_few], stacklevel=4)
        evaluate = evaluator(log_likelihood, self._chart, vectorized=vectorized)
        deadline = Deadline(max_seconds)

        def report() -> None:
            if callback is not None:
                callback(self._progress(total))
            deadline.check()

        slope = None if grad is None else self._slope(grad, evaluate, report, vectorized=vectorized)
        reason: Reason = "budget"
        next_check = 0  # evaluations from which on it is asked again whether the tolerance is reached
        try:
            while self.n_evals < total:
                if isinstance(self._model, AdaptiveModel) and self.n_evals >= self._model.budget:
                    # Only time limits the run: shares refer to the usual number of evaluations, again and again.
                    self._plan(self.n_evals + self._usual_budget, tol or 0.0)
                if slope is not None and self._climb(slope, total - self.n_evals):
                    continue
                if not self._step(evaluate, min(batch, total - self.n_evals)):
                    reason = "interrupted"
                    break
                report()
                if tol and self.n_evals >= next_check and self._settled(tol):
                    # The last estimate is made with more care than those on the way, and its error bar is the one
                    # that counts.
                    result = self._result_within(tol)
                    if result is not None:
                        return result
                    next_check = self.n_evals + max(1, self.n_evals // 20)
        except TimeUp:
            reason = "time"
        except KeyboardInterrupt:
            self._recover()
            reason = "interrupted"
        except LikelihoodError as error:
            if np.any(np.isfinite(self._log_l)):
                error.result = self.result(reason="error")
            raise
        if reason == "interrupted" and not np.any(np.isfinite(self._log_l)):
            raise KeyboardInterrupt
        return self.result(reason=reason)

    def _result_within(self, tol: float) -> Result | None:
        """The result, if its error bar is within ``tol``."""
        try:
            result = self.result(reason="tolerance")
        except NumericalError:
            return None
        return result if result.log_z_std <= tol else None

    def _step(self, evaluate: Callable[..., Array], n: int) -> bool:
        """Ask for n points, evaluate and tell them; False if the likelihood was interrupted.

        After a fault or an interrupt the values that were there already are told, and the other points come first in
        the next step: a run that is resumed is the unbroken one.
        """
        X = self.ask(n)
        U = self._to_base(X)
        values = np.full(len(X), np.nan)
        try:
            evaluate(X, out=values)
        except KeyboardInterrupt:
            return False
        finally:
            done = values < np.inf  # neither NaN, which is also what was not reached, nor +inf
            if np.any(done):
                self.tell(X[done], values[done])
            if not np.all(done):
                self._postpone(X[~done], U[~done])
        return True

    def _slope(
        self, grad: Callable[..., Any], evaluate: Callable[..., Array], report: Callable[[], None], *, vectorized: bool
    ) -> Slope:
        """From u (D,) to log ℓ and its gradient, in base coordinates; what has to be evaluated is told and reported."""
        if self.settings.measure != "adaptive":
            raise ValueError(
                f'grad is of no use to measure="{self.settings.measure}", which does not look for the mass: leave grad '
                'out, or take measure="adaptive".'
            )

        def value(u: Array) -> float:
            known = self._seen.get(u.tobytes())
            if known is None:
                known = self.n_evals
                X = self._chart.to_user(u[None, :]) + 0.0
                values = evaluate(X)
                self._pending[X[0].tobytes()] = u
                self.tell(X, values)
                report()
            return float(self._log_l[known]) + float(self._chart.log_weight(u[None, :])[0])

        return checked_slope(value, gradient_evaluator(grad, self._chart, vectorized=vectorized), self._chart)

    def _climb(self, slope: Slope, left: int) -> bool:
        """Let a search climb, if one is to; the gradients are kept in the ledger."""
        begun = False

        def recorded(u: Array) -> tuple[float, Array]:
            nonlocal begun
            if not begun:
                self._events.append(Climbed(left))
                begun = True
            log_l, gradient = slope(u)
            self._events.append(Sloped(log_l, gradient.copy()))
            return log_l, gradient

        return isinstance(self._model, AdaptiveModel) and self._model.climb(recorded, left)

    def _settled(self, tol: float) -> bool:
        """Whether the last two records claim less than ``tol`` and agree within it, past the first design.

        One record is not enough: the claim of a young model, whose length-scales have just jumped, may be far off. Nor
        is any claim of the adaptive model before check points and further looks have checked it.
        """
        if len(self._history) < 2 or self.n_evals < 4 * (self._chart.dim + 1):
            return False
        before, last = self._history[-2:]
        if last.n_evals != self.n_evals:
            return False
        if isinstance(self._model, AdaptiveModel) and not self._model.is_checked:
            return False
        if int(np.sum(self._log_l > np.max(self._log_l) - 5.0)) <= self._chart.dim:  # the mass is hardly explored
            return False
        return max(before.log_z_std, last.log_z_std) < tol and abs(before.log_z - last.log_z) < tol


def _base_kernel(kernel: SquaredExponential | None, space: Chart) -> SquaredExponential | None:
    """A kernel given in the user's units, in base coordinates."""
    if kernel is None:
        return None
    if kernel.lengthscales.size not in (1, space.dim):
        raise ValueError(f"kernel has {kernel.lengthscales.size} length-scales for {space.dim} dimensions.")
    scale = np.ones(space.dim) if space.affine is None else space.affine[1]
    return SquaredExponential(kernel.scale, kernel.lengthscales / scale)
