"""Annealed importance sampling (Neal 2001) with random-walk Metropolis-Hastings, in base coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from wsabi._core.checks import whole_number
from wsabi._core.types import Array, Seed, as_generator
from wsabi.baselines.log_moments import LogMoments
from wsabi.baselines.recording import Callback, Run, Summary
from wsabi.posterior.weighted import WeightedSamples
from wsabi.priors import Gaussian, Measure
from wsabi.result import ModelBelief, Result

__all__ = ["annealed_importance_sampling", "temperature_ladder"]

Spacing = Literal["log", "sigmoid", "linear"]

PILOT_CHAINS = 16
PILOT_SHARE = 0.2  # of the budget, spent on tuning
TARGET_ACCEPTANCE = 0.3  # near the optimum of a random walk, 0.44 in one dimension falling to 0.23 in many
GAIN = 2.0  # of log step per unit of acceptance: a step nobody accepts halves at every temperature
MOST_TEMPERATURES = 1000
UNTUNED_FIRST = 1e-4  # β_1 of the "log" spacing without a pilot: for log ℓ that varies by some 10⁴ nats over the prior
SIGMOID_REACH = 4.0
FEW = 10.0  # effective chains below which the standard error is a guess


def annealed_importance_sampling(
    log_likelihood: Callable[..., Any],
    prior: Any,
    *,
    budget: int,
    rng: Seed = None,
    vectorized: bool = False,
    n_temperatures: int | None = None,
    spacing: Spacing = "log",
    steps_per_temperature: int = 1,
    step: float | None = None,
    start_scale: float = 1.0,
    batch: int = 1000,
    max_seconds: float | None = None,
    callback: Callback | None = None,
) -> Result:
    """Ẑ = mean over chains of w = ∏_k f_k(x_{k−1})/f_{k−1}(x_{k−1}), f_k = p₀^(1−β_k) (ℓπ)^(β_k), β from 0 to 1.

    Each chain starts with a draw from p₀ and makes Metropolis-Hastings moves that leave f_k invariant between the
    factors. Chains are independent and E[w] = Z exactly, so the standard error over chains is honest wherever the
    weights have a variance to speak of.

    Parameters
    ----------
    log_likelihood, prior, rng, vectorized, max_seconds, callback : as for :func:`wsabi.integrate`.
    budget : number of evaluations, those of the pilot included; a remainder too small for a chain is not used.
    n_temperatures : K, number of factors in w; None is about as many as there are chains, at most 1000.
    spacing : of β_1 ... β_K: "log", geometric from 1/sd(log ℓ), as seen by the pilot, or 1e-4 without one; "sigmoid",
        dense at both ends; or "linear".
    steps_per_temperature : Metropolis-Hastings moves at each of β_1 ... β_(K−1).
    step : standard deviation of the Gaussian proposal in units of the prior's, at every temperature; None lets the
        pilot choose one for each.
    start_scale : standard deviation of p₀, a Gaussian centred on the prior mean, in units of the prior's; 1 is the
        prior itself.
    batch : most chains moved together, and so most points in one call of a vectorised likelihood.

    Notes
    -----
    A chain costs 1 + (K − 1)·steps evaluations. The pilot, at most a fifth of the budget, runs sixteen chains whose
    steps follow their own acceptance; they are then thrown away, because a chain that tunes itself has no proper
    weight, and the steps stay fixed. The history has a record after each completed batch of chains, batches growing by
    a third.

    Examples
    --------
    >>> import wsabi
    >>> from wsabi.baselines import annealed_importance_sampling
    >>> prior = wsabi.Gaussian([0.0, 0.0])
    >>> result = annealed_importance_sampling(lambda x: -50 * x @ x, prior, budget=4000, rng=0)
    >>> abs(result.log_z + 4.6151) < 4 * result.log_z_std
    True
    """
    run = Run(
        log_likelihood, prior, method="annealed-importance-sampling", budget=budget, vectorized=vectorized,
        max_seconds=max_seconds, callback=callback, gaussian=True,
    )  # fmt: skip
    if spacing not in get_args(Spacing):
        raise ValueError(f"spacing must be one of {', '.join(map(repr, get_args(Spacing)))}; got {spacing!r}.")
    if not 0.0 < start_scale <= 1.0:
        raise ValueError(f"start_scale must lie in (0, 1], in standard deviations of the prior; got {start_scale}.")
    if step is not None and not (math.isfinite(step) and step > 0.0):
        raise ValueError(f"step must be positive, in standard deviations of the prior, or None; got {step}.")
    moves = whole_number("steps_per_temperature", steps_per_temperature)
    wanted = None if n_temperatures is None else whole_number("n_temperatures", n_temperatures)
    plan = _plan(run.budget, wanted, moves, tuned=step is None)
    path = _Path(run, as_generator(rng), start_scale, moves)
    return run.complete(_Annealing(run, path, plan, spacing, step, whole_number("batch", batch)))


def temperature_ladder(n: int, spacing: Spacing, first: float) -> Array:
    """β_0 = 0 < β_1 < ... < β_n = 1, (n + 1,); ``first`` is β_1 of the "log" spacing, at most 1/n."""
    t = np.linspace(0.0, 1.0, n + 1)
    if spacing == "linear" or n == 1:
        return t
    if spacing == "sigmoid":
        s = 1.0 / (1.0 + np.exp(-SIGMOID_REACH * (2.0 * t - 1.0)))
        return np.asarray((s - s[0]) / (s[-1] - s[0]))
    return np.concatenate([[0.0], np.geomspace(min(first, 1.0 / n), 1.0, n)])


@dataclass(frozen=True)
class _Plan:
    """How the budget is spent: all fixed before the first weight is known."""

    n_temperatures: int
    n_chains: int
    pilot_temperatures: int  # zero without a pilot


def _plan(budget: int, n_temperatures: int | None, moves: int, *, tuned: bool) -> _Plan:
    share = int(PILOT_SHARE * budget) if tuned else 0
    affordable = 1 + (share // PILOT_CHAINS - 1) // moves if share >= 2 * PILOT_CHAINS else 0
    pilot = min(affordable, n_temperatures or math.isqrt(budget // moves), MOST_TEMPERATURES)
    main = budget - (PILOT_CHAINS * (1 + (pilot - 1) * moves) if pilot else 0)
    if n_temperatures is None:
        n_temperatures = min(max(math.isqrt(main // moves), 1), MOST_TEMPERATURES)
    cost = 1 + (n_temperatures - 1) * moves
    if main < 2 * cost:
        raise ValueError(
            f"budget={budget} leaves {main} evaluations after tuning, and n_temperatures={n_temperatures} makes a "
            f"chain cost {cost}: at least two chains are needed. Raise the budget or lower n_temperatures."
        )
    return _Plan(n_temperatures, main // cost, pilot)


@dataclass(slots=True)
class _Chains:
    """M chains: where they are, log p₀ there, and h = log ℓπ − log p₀, so that log f_k = log p₀ + β_k h."""

    U: Array
    log_start: Array
    h: Array


class _Path:
    """The sequence of densities between p₀ and ℓπ, and the moves along it."""

    def __init__(self, run: Run, rng: np.random.Generator, start_scale: float, moves: int) -> None:
        self._run, self._rng, self.moves = run, rng, moves
        measure = run.chart.measure
        self._from_prior = start_scale == 1.0
        self._start: Measure = (
            measure if self._from_prior else Gaussian(measure.mean, start_scale**2 * measure.cov, names=measure.names)
        )
        self._factor = np.linalg.cholesky(measure.cov)  # proposals have the prior's correlations

    @property
    def dim(self) -> int:
        return len(self._factor)

    def _at(self, U: Array) -> _Chains:
        log_start = self._start.log_pdf(U)
        h = self._run.evaluate(U)
        if not self._from_prior:
            h = h + self._run.chart.measure.log_pdf(U) - log_start
        return _Chains(U, log_start, h)

    def begin(self, n: int) -> _Chains:
        """n draws from p₀."""
        return self._at(self._start.sample(n, self._rng))

    def move(self, chains: _Chains, beta: float, step: float) -> float:
        """Metropolis-Hastings moves of all chains under f_β; returns the share accepted."""
        accepted = 0.0
        for _ in range(self.moves):
            noise = self._rng.standard_normal(chains.U.shape) @ self._factor.T
            other = self._at(chains.U + step * noise)
            with np.errstate(invalid="ignore"):  # −inf − (−inf): from zero to zero density, which is not accepted
                log_ratio = other.log_start - chains.log_start + beta * other.h - beta * chains.h
            take = np.log1p(-self._rng.random(len(log_ratio))) < log_ratio
            chains.U[take], chains.h[take] = other.U[take], other.h[take]
            chains.log_start[take] = other.log_start[take]
            accepted += float(take.mean()) / self.moves
        return accepted


class _Annealing:
    def __init__(self, run: Run, path: _Path, plan: _Plan, spacing: Spacing, step: float | None, batch: int) -> None:
        self._run, self._path, self._plan, self._spacing, self._batch = run, path, plan, spacing, batch
        # 2.38/√D times the target's sd is the classic random-walk step; at the hottest the target is the prior.
        self._step = 2.38 / math.sqrt(path.dim) if step is None else step
        self._steps = np.full(plan.n_temperatures - 1, self._step)  # at β_1 ... β_(K−1)
        self._beta = temperature_ladder(plan.n_temperatures, spacing, UNTUNED_FIRST)
        self._tuned = plan.pilot_temperatures == 0
        self._moments = LogMoments()
        self._ends: list[Array] = []
        self._log_weights: list[Array] = []
        self._cold: list[float] = []

    def advance(self) -> bool:
        if not self._tuned:
            self._tune()
        done = self._moments.n
        n = min(max(10, done // 3), self._batch, self._plan.n_chains - done)
        if n > 0:
            self._anneal(n)
        return self._moments.n < self._plan.n_chains

    def _tune(self) -> None:
        """Set the ladder's lowest rung and the steps from pilot chains, whose weights are not used."""
        chains = self._path.begin(PILOT_CHAINS)
        finite = chains.h[np.isfinite(chains.h)]
        spread = float(finite.std()) if finite.size > 1 else 1.0
        # β_1 h then varies by about one nat over the start: the first factor of w is under control.
        first = 1.0 / max(spread, 1.0)
        self._beta = temperature_ladder(self._plan.n_temperatures, self._spacing, first)
        log_steps = [math.log(self._step)]
        for beta in temperature_ladder(self._plan.pilot_temperatures, self._spacing, first)[1:-1]:
            rate = self._path.move(chains, float(beta), math.exp(log_steps[-1]))
            log_steps.append(log_steps[-1] + GAIN * (rate - TARGET_ACCEPTANCE))
        where = np.linspace(0.0, 1.0, len(log_steps))
        self._steps = np.exp(np.interp(np.linspace(0.0, 1.0, len(self._steps)), where, log_steps))
        self._tuned = True

    def _anneal(self, n: int) -> None:
        """Run n chains from p₀ to ℓπ and keep their ends and weights."""
        chains = self._path.begin(n)
        rungs = np.diff(self._beta)
        log_w = rungs[0] * chains.h
        rates = []
        for beta, rung, step in zip(self._beta[1:-1], rungs[1:], self._steps, strict=True):
            rates.append(self._path.move(chains, float(beta), float(step)))
            log_w = log_w + rung * chains.h
        self._moments.add(log_w)
        self._ends.append(chains.U)
        self._log_weights.append(log_w)
        self._cold += rates[-max(1, len(rates) // 5) :]

    def belief(self) -> ModelBelief | None:
        return self._moments.belief()

    def summary(self) -> Summary | None:
        belief = self._moments.belief()
        if belief is None:
            return None
        space = self._run.chart
        posterior = WeightedSamples.from_log_weights(
            space.to_user(np.concatenate(self._ends)),
            np.concatenate(self._log_weights),
            space.names,
            keyed=space.keyed,
            groups=space.groups,
            support=space.support,
        )
        return Summary(belief, posterior, tuple(self._warnings()))

    def _warnings(self) -> list[str]:
        found = []
        size = self._moments.effective_size
        if size < FEW:
            found.append(
                f"{self._moments.n} chains are worth only {size:.1f} of equal weight: the standard error is itself "
                "uncertain, and more likely too small; use more temperatures or a larger budget."
            )
        if self._cold and float(np.mean(self._cold)) < 0.05:
            found.append(
                f"only {np.mean(self._cold):.1%} of the moves at the coldest temperatures were accepted: the chains "
                "hardly moved; use a smaller step."
            )
        return found
