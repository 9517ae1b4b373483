"""One run of a baseline: evaluations kept as they are made, the clock, the history, and how it ends."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from wsabi._core.checks import whole_number
from wsabi._core.types import Array
from wsabi.errors import LikelihoodError, NoMassFound, NumericalError
from wsabi.gp.fit import FitRecord
from wsabi.likelihood import evaluator
from wsabi.posterior.form import Form
from wsabi.posterior.posterior import Posterior
from wsabi.priors import as_prior
from wsabi.priors.chart import chart
from wsabi.result import ErrorBudget, ModelBelief, Reason, Record, Result
from wsabi.run import Progress

__all__ = ["Callback", "Estimator", "OutOfTime", "Run", "Summary"]

Callback = Callable[[Progress], object]


class OutOfTime(Exception):
    """The clock ran out inside a batch; what was evaluated of it is kept."""


@dataclass(frozen=True)
class Summary:
    """What an estimator makes of all evaluations: the parts of a :class:`~wsabi.Result` that depend on the method."""

    belief: ModelBelief
    posterior: Form
    warnings: tuple[str, ...] = ()
    fits: tuple[FitRecord, ...] = ()
    jitter: float = 0.0


class Estimator(Protocol):
    """A method at work on a :class:`Run`."""

    def advance(self) -> bool:
        """Evaluate some more points; False if these were the last, whatever is left of the budget."""

    def belief(self) -> ModelBelief | None:
        """The estimate now, or None while there is none."""

    def summary(self) -> Summary | None:
        """The outcome from every evaluation of the run, even of a batch that was cut short; None without mass."""


class Run:
    """Evaluations of one log-likelihood under one prior, up to a budget and a deadline.

    Parameters
    ----------
    method : name of the method, for the result.
    gaussian : whether base coordinates must be all of R^D (see :func:`wsabi.priors.chart.chart`).

    Attributes
    ----------
    chart : the map between base and user's coordinates.
    budget : number of evaluations allowed.
    """

    def __init__(
        self,
        log_likelihood: Callable[..., Any],
        prior: Any,
        *,
        method: str,
        budget: int,
        vectorized: bool,
        max_seconds: float | None,
        callback: Callback | None,
        gaussian: bool = False,
    ) -> None:
        self._started = time.perf_counter()
        self.method = method
        self.budget = whole_number("budget", budget)
        if max_seconds is not None and not max_seconds > 0.0:
            raise ValueError(f"max_seconds must be positive; got {max_seconds}.")
        self._deadline = math.inf if max_seconds is None else self._started + max_seconds
        self.chart = chart(as_prior(prior), gaussian=gaussian)
        self._call = evaluator(log_likelihood, self.chart, vectorized=vectorized)
        self._vectorized = vectorized
        self._callback = callback
        self.n_evals = 0
        self._rows = np.empty((0, 2 * self.chart.dim + 2))  # x, u, log ℓ, log ℓw; grown by doubling
        self._history: list[Record] = []
        self._next_record = 1

    # -- evaluations --------------------------------------------------------------------------------------------------

    @property
    def remaining(self) -> int:
        """Evaluations left."""
        return self.budget - self.n_evals

    @property
    def out_of_time(self) -> bool:
        """Whether the deadline has passed."""
        return time.perf_counter() >= self._deadline

    @property
    def base_points(self) -> Array:
        """(N, D) every point evaluated, in base coordinates."""
        return self._rows[: self.n_evals, self.chart.dim : 2 * self.chart.dim]

    @property
    def points(self) -> Array:
        """(N, D) every point evaluated, in the user's coordinates."""
        return self._rows[: self.n_evals, : self.chart.dim]

    @property
    def log_f(self) -> Array:
        """(N,) log ℓ(x_n) + log w(u_n), w the weight of a ``LogDensity`` prior and one for others."""
        return self._rows[: self.n_evals, -1]

    def evaluate(self, U: Array) -> Array:
        """log ℓ + log w, (M,), at base points U (M, D), M at most the evaluations left.

        Without a vectorised likelihood each value is kept as it comes: what was paid for survives whatever follows.

        Raises
        ------
        OutOfTime
            If the deadline passes before the last point.
        """
        X, log_w = self.chart.to_user(U), self.chart.log_weight(U)
        first, step = self.n_evals, len(U) if self._vectorized else 1
        for start in range(0, len(U), step):
            if start and self.out_of_time:
                raise OutOfTime
            rows = slice(start, start + step)
            self._keep(X[rows], U[rows], self._call(X[rows]), log_w[rows])
        return self.log_f[first:].copy()

    def _keep(self, X: Array, U: Array, log_l: Array, log_w: Array) -> None:
        stop = self.n_evals + len(X)
        if stop > len(self._rows):
            grown = np.empty((max(2 * len(self._rows), stop, 256), self._rows.shape[1]))
            grown[: self.n_evals] = self._rows[: self.n_evals]
            self._rows = grown
        self._rows[self.n_evals : stop] = np.column_stack([X, U, log_l, log_l + log_w])
        self.n_evals = stop

    def chunk(self, largest: int) -> int:
        """Points until the next record is due: a twentieth of those there are, at most ``largest`` or what is left."""
        return min(max(1, self.n_evals // 20), largest, self.remaining)

    # -- the course of a run ------------------------------------------------------------------------------------------

    def complete(self, estimator: Estimator) -> Result:
        """Let the estimator work until budget or time is spent; Ctrl-C gives the result so far.

        Raises
        ------
        LikelihoodError
            With the result of everything before it.
        NoMassFound
            If no evaluation has a positive likelihood.
        NumericalError
            If there is none in what the estimator counts, or it was stopped before its first estimate.
        """
        reason: Reason = "budget"
        more = True
        try:
            while more and self.remaining:
                if self.n_evals and self.out_of_time:
                    raise OutOfTime
                more = estimator.advance()
                self._record(estimator)
        except OutOfTime:
            reason = "time"
        except KeyboardInterrupt:
            reason = "interrupted"
        except LikelihoodError as error:
            summary = estimator.summary()
            error.result = None if summary is None else self._result(summary, "error")
            raise
        summary = estimator.summary()
        if summary is None:
            raise self._no_estimate()
        return self._result(summary, reason)

    def _no_estimate(self) -> NumericalError:
        state = (self.points.copy(), self._rows[: self.n_evals, -2].copy())
        if np.any(self.log_f > -np.inf):
            return NumericalError(
                f"{self.method} has no estimate after {self.n_evals} evaluations: no chain that started where the "
                "likelihood is positive is complete. Raise the budget or the time, or narrow the prior.",
                state,
            )
        return NoMassFound(
            f"none of {self.n_evals} evaluations has a finite log-likelihood: the likelihood is zero wherever it was "
            "tried. Check it at a point that should be feasible, or narrow the prior.",
            state,
        )

    @property
    def seconds(self) -> float:
        """Wall-clock time since the run began."""
        return time.perf_counter() - self._started

    def _record(self, estimator: Estimator) -> None:
        """Add to the history, at every evaluation to begin with and then at every twentieth more; call back."""
        if self.n_evals >= self._next_record:
            try:
                belief = estimator.belief()
            except NumericalError:  # a record is left out, the run goes on; at the end it would be the user's to know
                belief = None
            if belief is not None:
                self._next_record = self.n_evals + max(1, self.n_evals // 20)
                self._history.append(Record(self.n_evals, self.seconds, belief.log_mean, belief.log_z_std))
        if self._callback is not None:
            last = self._history[-1] if self._history else Record(0, 0.0, math.nan, math.nan)
            self._callback(Progress(self.n_evals, self.budget, self.seconds, last.log_z, last.log_z_std))

    def _result(self, summary: Summary, reason: Reason) -> Result:
        belief = summary.belief
        history = tuple(self._history)
        if not history or history[-1].n_evals < self.n_evals:
            history += (Record(self.n_evals, self.seconds, belief.log_mean, belief.log_z_std),)
        return Result(
            method=self.method,
            log_z=belief.log_mean,
            log_z_std=belief.log_z_std,
            error_budget=ErrorBudget(belief.log_z_std),
            model=belief,
            n_evals=self.n_evals,
            seconds=self.seconds,
            converged=False,
            reason=reason,
            warnings=summary.warnings,
            names=self.chart.names,
            points=self.points.copy(),
            log_likelihoods=self._rows[: self.n_evals, -2].copy(),
            base_points=self.base_points.copy(),
            history=history,
            fits=summary.fits,
            jitter=summary.jitter,
            settings=None,
            posterior=Posterior(summary.posterior),
        )
