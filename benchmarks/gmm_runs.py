"""WSABI and simple Monte Carlo on the four-dimensional mixtures, with errors over evaluations and over CPU time."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import wsabi
from benchmarks.measuring import Reference
from wsabi.problems import Problem, gmm
from wsabi.run import Progress
from wsabi.settings import Method

__all__ = ["WrongAnswer", "WsabiRun", "likelihood_seconds", "monte_carlo_errors", "run_wsabi"]

BATCH = 4096  # draws per call of Monte Carlo's likelihood: the fastest of 2¹⁰, 2¹² and 2¹⁴, whose arrays stay in cache

# An answer is wrong, not just inaccurate, beyond ten reported sds and this share of Z: after 500 samples
# an error bar is below 1e-3, and a wrong constant, axis or power of λ in a closed form costs far more than 2 %.
WRONG = 0.02


class WrongAnswer(ArithmeticError):
    """An estimate that is not a matter of accuracy: its time is of no interest."""


@dataclass
class WsabiRun:
    """One run: up to ``budget`` samples, timed as a whole, then on to twice as many.

    Attributes
    ----------
    seconds : CPU time of ``budget`` samples, with the result.
    unit : CPU time of the reference, before and after.
    error, claim : relative error of Z at ``budget`` samples and the error bar of log Z there.
    clock : (N,) CPU time after each sample.
    history : (evaluations, CPU seconds, relative error) of every record.
    """

    seed: int
    method: Method
    budget: int
    seconds: float = 0.0
    unit: float = 0.0
    error: float = math.nan
    claim: float = math.nan
    clock: list[float] = field(default_factory=list)
    history: list[tuple[int, float, float]] = field(default_factory=list)

    @property
    def units(self) -> float:
        """CPU time of ``budget`` samples in reference units."""
        return self.seconds / self.unit

    def cost(self, first: int, last: int) -> float:
        """CPU time of samples ``first`` to ``last``, counted from one."""
        return self.clock[last - 1] - (self.clock[first - 2] if first > 1 else 0.0)

    def error_at_time(self, seconds: float) -> float:
        """|relative error| of the last record by that CPU time; infinite before the first."""
        past = [error for _, at, error in self.history if at <= seconds]
        return abs(past[-1]) if past else math.inf

    def error_at_size(self, n_evals: int) -> float:
        """|relative error| of the last record by that number of evaluations."""
        return abs([error for n, _, error in self.history if n <= n_evals][-1])

    def raw(self) -> dict[str, Any]:
        return vars(self) | {"units": self.units}


def problem(seed: int) -> Problem:
    return gmm(seed, dim=4, spread="sd")


def relative_error(log_z: float, truth: float) -> float:
    return math.expm1(log_z - truth)


def run_wsabi(seed: int, method: Method, budget: int, reference: Reference, *, go_on: bool) -> WsabiRun:
    """``budget`` samples between two measurements of the reference; with ``go_on`` as many again.

    The likelihood is the vectorised one, a row at a time, and its time is included.
    """
    target = problem(seed)
    run = WsabiRun(seed, method, budget)
    before = reference.measure()
    started = time.process_time()

    def record(progress: Progress) -> None:
        now = time.process_time() - started
        run.clock.append(now)
        error = relative_error(progress.log_z, target.log_z)  # of the last record: it changes when there is a new one
        if not run.history or run.history[-1][2] != error:
            run.history.append((progress.n_evals, now, error))

    settings = wsabi.Settings(measure="prior", method=method)
    integrator = wsabi.Integrator(target.prior, settings=settings, rng=seed)
    result = integrator.run(target.log_likelihood_vectorized, budget=budget, vectorized=True, callback=record)
    run.seconds = time.process_time() - started
    run.error, run.claim = relative_error(result.log_z, target.log_z), result.log_z_std
    if not abs(run.error) < WRONG + 10.0 * run.claim:
        raise WrongAnswer(f"{method}, seed {seed}: relative error {run.error:.2g} after {budget} samples.")
    run.unit = 0.5 * (before + reference.measure())
    if go_on:
        started = time.process_time() - run.seconds  # the clock goes on where it stopped: the reference is left out
        integrator.run(target.log_likelihood_vectorized, budget=budget, vectorized=True, callback=record)
    return run


def likelihood_seconds(seed: int, budget: int) -> float:
    """CPU time of ``budget`` calls of the likelihood with one point."""
    target = problem(seed)
    X = target.prior.sample(budget, seed)
    started = time.process_time()
    for x in X:
        target.log_likelihood_vectorized(x[None])
    return time.process_time() - started


def monte_carlo_errors(seed: int, times: Sequence[float]) -> tuple[list[float], int]:
    """|relative error| of the mean of ℓ over draws from the prior at each CPU time, and the draws made by the last.

    Nothing but drawing, the vectorised likelihood and a sum: no faster simple Monte Carlo can be written with NumPy.
    """
    target, rng = problem(seed), np.random.default_rng([seed, 1])
    total, square, n, errors = 0.0, 0.0, 0, []
    started = time.process_time()
    for stop in times:
        while time.process_time() - started < stop:
            scaled = np.exp(target.log_likelihood_vectorized(target.prior.sample(BATCH, rng)) - target.log_z)
            total += float(scaled.sum())
            square += float(scaled @ scaled)
            n += BATCH
        errors.append(abs(total / n - 1.0))
    standard_error = math.sqrt((square / n - (total / n) ** 2) / n)
    # Six standard errors: a false alarm in 1e9 runs.
    if not errors[-1] < 6.0 * standard_error:
        raise WrongAnswer(
            f"simple Monte Carlo, seed {seed}: error {errors[-1]:.2g}, standard error {standard_error:.2g}."
        )
    return errors, n
