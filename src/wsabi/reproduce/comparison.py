"""Methods on one problem with one clock: WSABI spends its samples, the others get the seconds that it took."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from wsabi import baselines
from wsabi.errors import NumericalError
from wsabi.integrate import integrate
from wsabi.plots import LABELS, Line
from wsabi.priors import Gaussian
from wsabi.problems import Problem
from wsabi.reproduce.curves import Table, Trace, at_times, common_times
from wsabi.reproduce.experiment import Plan
from wsabi.result import Record, Result
from wsabi.run import Progress
from wsabi.settings import Method, Settings

__all__ = ["Contest", "compare", "failures", "group", "median_line", "paper_settings", "summary_table"]

# Caps that bind only where a likelihood costs next to nothing: draws are kept in memory, and a GP on more points than
# this takes minutes for one factorisation.
MOST_DRAWS = 2_000_000
MOST_GP_POINTS = 4_000
# Of the evaluations that simple Monte Carlo made in the same time: near the mass, where the chains go, an evaluation
# can cost more than over the prior, and chains that are not complete when time is up count for nothing.
AIS_SHARE = 0.6


@dataclass(frozen=True)
class Contest:
    """One problem, the methods on it, and WSABI's number of samples.

    ``fast`` departs from Settings.paper() where it would take hours: candidates from a pool instead of CMA-ES,
    and hyperparameters refitted as the data grow by a fifth instead of at every sample.
    """

    label: str
    problem: Problem
    methods: tuple[str, ...]
    budget: int
    fast: bool
    vectorized: bool = False


def paper_settings(method: Method, *, fast: bool) -> Settings:
    """Settings.paper, or its quick relative (see :class:`Contest`)."""
    settings = Settings.paper(method)
    return replace(settings, search="pool", refit="geometric") if fast else settings


def compare(contest: Contest, seed: int, plan: Plan) -> Iterator[Trace]:
    """Run every method, WSABI-L first; each trace carries ``seed``."""
    _warm_up()
    seconds, rate = 0.0, 0.0
    for number, method in enumerate(("wsabi-l", *contest.methods)):
        watch = _Watch(contest, method, seed, plan)
        rng = np.random.default_rng([plan.seed, seed, number])
        try:
            result = _run(contest, method, rng, seconds, rate, watch)
        except (NumericalError, ArithmeticError) as error:  # one method's failure must not cost the others' curves
            what = f"{type(error).__name__}: {error}"
            trace = watch.trace(note=f"{LABELS[method]} on {contest.label}, seed {seed}, failed: {what}")
        else:
            trace = watch.trace(history=result.history, interrupted=result.reason == "interrupted")
        if method == "wsabi-l":
            seconds = trace.elapsed
        if method == "smc":
            rate = trace.evaluations / trace.elapsed
        yield trace


@cache
def _warm_up() -> None:
    """One sample by each search, so that no run is charged with loading SciPy's optimisers and cma."""
    for search in ("pool", "cma-es"):
        settings = replace(Settings.paper(), search=search)
        integrate(lambda x: -float(x @ x), Gaussian([0.0, 0.0]), budget=8, rng=0, settings=settings)


class _Watch:
    """A callback that tells how a run goes on, and keeps its estimates in case it fails."""

    def __init__(self, contest: Contest, method: str, seed: int, plan: Plan) -> None:
        self._contest, self._method, self._seed, self._plan = contest, method, seed, plan
        self._kept: list[Record] = []

    def __call__(self, state: Progress) -> None:
        if not self._kept or self._kept[-1].log_z != state.log_z:
            self._kept.append(Record(state.n_evals, state.seconds, state.log_z, state.log_z_std))
        self._plan.tell(
            f"{LABELS[self._method]} on {self._contest.label}, seed {self._seed}: {state.n_evals:,} evaluations, "
            f"{state.seconds:.0f} s, log Z {state.log_z:.4g}"
        )

    def trace(self, *, history: Sequence[Record] | None = None, interrupted: bool = False, note: str = "") -> Trace:
        """The run as a trace: by its own history, or by what was kept of one that failed."""
        problem = self._contest.problem
        return Trace.from_records(
            self._kept if history is None else history,
            problem=self._contest.label, method=self._method, seed=self._seed,
            truth=(problem.log_z, problem.log_z_std), interrupted=interrupted, note=note,
        )  # fmt: skip


def _run(
    contest: Contest, method: str, rng: np.random.Generator, seconds: float, rate: float,
    tell: Callable[[Progress], None],
) -> Result:  # fmt: skip
    """One method; those of the paper that are not WSABI stop after ``seconds``."""
    problem = contest.problem
    function = problem.log_likelihood_vectorized if contest.vectorized else problem.log_likelihood
    settings = {
        "wsabi-l": paper_settings("wsabi-l", fast=contest.fast),
        "wsabi-m": paper_settings("wsabi-m", fast=contest.fast),
        "wsabi-l-alpha-0": replace(paper_settings("wsabi-l", fast=contest.fast), alpha=0.0),
        "default": Settings(bulk="off"),
    }
    if method in settings:
        return integrate(
            function, problem.prior, budget=contest.budget, rng=rng, settings=settings[method],
            vectorized=contest.vectorized, callback=tell,
        )  # fmt: skip
    shared: dict[str, Any] = {"rng": rng, "vectorized": contest.vectorized, "max_seconds": seconds, "callback": tell}
    if method == "bulk":
        return integrate(
            function, problem.prior, tol=0.0, max_seconds=seconds, rng=rng, vectorized=contest.vectorized, callback=tell
        )
    if method == "smc":
        return baselines.simple_monte_carlo(function, problem.prior, budget=MOST_DRAWS, **shared)
    if method == "ais":
        budget = max(60, int(AIS_SHARE * rate * seconds))
        return baselines.annealed_importance_sampling(function, problem.prior, budget=budget, **shared)
    if method == "bbq":
        return baselines.bbq(function, problem.prior, budget=MOST_GP_POINTS, **shared)
    models: dict[str, Method] = {"bmc": "bq", "wsabi-l-passive": "wsabi-l", "wsabi-m-passive": "wsabi-m"}
    return baselines.bayesian_monte_carlo(
        function, problem.prior, budget=MOST_GP_POINTS, method=models[method],
        alpha="auto" if method == "bmc" else 0.8, **shared,
    )  # fmt: skip


# -- what is made of the traces ----------------------------------------------------------------------------------------


def group(traces: Sequence[Trace], problem: str | None = None) -> dict[str, list[Trace]]:
    """Traces with an estimate by method, in the order of first appearance."""
    found: dict[str, list[Trace]] = {}
    for trace in traces:
        if len(trace.log_z) and (problem is None or trace.problem == problem):
            found.setdefault(trace.method, []).append(trace)
    return found


def failures(traces: Sequence[Trace]) -> tuple[str, ...]:
    """What went wrong in which run, for the report; a run that failed counts with the estimates it had until then."""
    return tuple(trace.note for trace in traces if trace.note)


def median_line(traces: Sequence[Trace], values: Sequence[np.ndarray], *, claim: bool = False) -> Line:
    """Median over seeds with the range of all seeds; for one seed the run itself, with ±2 reported sds if ``claim``."""
    method = traces[0].method
    if len(traces) == 1:
        trace, value = traces[0], np.asarray(values[0])
        if not claim:
            return Line(method, trace.seconds, value)
        with np.errstate(invalid="ignore"):  # an estimate of −inf, where a model's mean of Z is not positive
            half = 2.0 * trace.log_z_std
            return Line(method, trace.seconds, value, value - half, value + half)
    times = common_times(traces)
    stack = np.stack([at_times(trace, value, times) for trace, value in zip(traces, values, strict=True)])
    return Line(method, times, np.median(stack, axis=0), stack.min(axis=0), stack.max(axis=0))


def summary_table(traces: Sequence[Trace], tolerance: float) -> Table:
    """Per problem and method, medians over seeds of what a run ends with, and its time to within the tolerance."""
    rows = []
    for problem in dict.fromkeys(trace.problem for trace in traces):
        for method, runs in group(traces, problem).items():
            reached = float(np.median([run.seconds_to_reach(tolerance) for run in runs]))
            rows.append((
                problem, LABELS[method], len(runs),
                f"{np.median([run.n_evals[-1] for run in runs]):.0f}",
                f"{np.median([run.seconds[-1] for run in runs]):.1f}",
                f"{np.median([run.log_z[-1] for run in runs]):.3f}",
                f"{np.median([run.log_z_std[-1] for run in runs]):.2g}",
                f"{np.median([run.final_error for run in runs]):+.3g}",
                f"{sum(run.covers for run in runs)} of {len(runs)}",
                f"{reached:.1f}" if np.isfinite(reached) else "never",
            ))  # fmt: skip
    columns = (
        "problem", "method", "runs", "evaluations", "seconds", "log Z", "reported sd", "error (nats)",
        "95 % interval covers", f"seconds to within {tolerance:g} nats",
    )  # fmt: skip
    return Table(columns, rows)
