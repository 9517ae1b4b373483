"""Which model? Bayes factors and model probabilities, with what the error bars of log Z leave open."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wsabi._core.checks import whole_number
from wsabi._core.edges import edge
from wsabi._core.types import Array
from wsabi.integrator import Integrator
from wsabi.priors import LogDensity
from wsabi.result import LogBayesFactor, Result
from wsabi.run import run
from wsabi.running.options import RunOptions

__all__ = ["Comparison", "compare"]

DRAWS = 20_000  # of every log Z from its error bar: probabilities are then known to a few thousandths
STANDARD = 1.959963984540054  # of a 95 % interval
ROUND = 10  # of a budget, in how many rounds it is spent
# Odds by which one model is ahead, the error bars taken off, in words of Kass & Raftery (1995): 3, 20 and 150 to one.
VERDICTS = ((150.0, "decisive"), (20.0, "strong evidence"), (3.0, "some evidence"))
# Samples of one prior differ by more than this in their distribution functions once in 1e6 (Kolmogorov-Smirnov).
PRIOR_DRAWS, DIFFERENT = 20_000, 0.0270


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Models of the same data, side by side; prints as a table.

    Attributes
    ----------
    names : K names, in the order given.
    log_z, log_z_std : (K,).
    prior : (K,) prior probabilities of the models.
    probabilities : (K,) posterior probabilities, averaged over the errors of log Z.
    intervals : (K, 2) central 95 % of them.
    ahead : (K,) chance that the model is the most probable one, by the error bars.
    verdict : in a sentence.
    notes : what else matters, such as priors that differ and results that are doubtful.
    results : by name.
    """

    names: tuple[str, ...]
    log_z: Array
    log_z_std: Array
    prior: Array
    probabilities: Array
    intervals: Array
    ahead: Array
    verdict: str
    notes: tuple[str, ...] = ()
    results: dict[str, Result] = field(default_factory=dict)

    @property
    def best(self) -> str:
        """The most probable model."""
        return self.names[int(np.argmax(self.log_z + np.log(self.prior)))]

    def log_bayes_factor(self, a: str, b: str) -> LogBayesFactor:
        """log Z of a less log Z of b, without the prior odds."""
        return self.results[self._known(a)] - self.results[self._known(b)]

    def __getitem__(self, name: str) -> Result:
        return self.results[self._known(name)]

    def _known(self, name: str) -> str:
        if name not in self.results:
            raise KeyError(f"{name!r} is not one of the models {', '.join(self.names)}.")
        return name

    def plot(self, *, axes: Any = None) -> Any:
        """log Z relative to the best, and the models' probabilities, on a new figure or on two axes of one's own."""
        return edge("plots.comparison").draw_comparison(self, axes)

    def rows(self) -> list[list[str]]:
        """The table as text, the most probable model first."""
        order = np.argsort(-(self.log_z + np.log(self.prior)))
        best = self.results[self.best]
        rows = [["model", "log Z", "log Bayes factor", "probability", "95 % interval"]]
        for k in order:
            name = self.names[k]
            factor = "" if name == self.best else str(self.results[name] - best)
            low, high = self.intervals[k]
            chance = f"{_probability(low)} to {_probability(high)}"
            log_z = _with_error(self.log_z[k], self.log_z_std[k])
            rows.append([name, log_z, factor, _probability(self.probabilities[k]), chance])
        return rows

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, f"verdict: {self.verdict}", *(f"note: {note}" for note in self.notes)])

    def __repr__(self) -> str:
        return str(self)


def compare(
    models: Mapping[str, Result | tuple[Integrator, Callable[..., Any]]],
    *,
    prior_odds: Mapping[str, float] | None = None,
    budget: int | None = None,
    allow_doubtful: bool = False,
) -> Comparison:
    """Compare models of the same data by their evidence.

    Parameters
    ----------
    models : name to result; or, with ``budget``, to a pair of an :class:`~wsabi.Integrator`, which may have been run
        before, and its log-likelihood.
    prior_odds : name to prior weight of the model, of any sum; None is equal weights.
    budget : further evaluations, spent where the ranking is least certain, until it is certain or they are spent.
    allow_doubtful : whether to compare results that have warnings too; they then stand in the notes.

    Raises
    ------
    ValueError
        If a result has warnings, which may mean that its error bar is too small.

    Notes
    -----
    That the models are of the same data cannot be told from log-likelihoods, and is not checked: a Bayes factor between
    different data, or between likelihoods of which one leaves a constant out, means nothing.

    The probabilities are averages over log Z drawn from normal distributions with the reported errors, independent of
    each other.

    Examples
    --------
    >>> import wsabi
    >>> def fitted(scale):
    ...     return wsabi.integrate(lambda x: -0.5 * x @ x, wsabi.Gaussian([0.0], scale**2), budget=120, rng=0)
    >>> comparison = wsabi.compare({"narrow": fitted(1.0), "wide": fitted(30.0)})
    >>> comparison.best, round(comparison.log_bayes_factor("narrow", "wide").value, 1)
    ('narrow', 3.1)
    """
    if not isinstance(models, Mapping) or len(models) < 2:
        raise ValueError('models must be a dict of two or more, such as {"linear": r1, "quadratic": r2}.')
    prior = _prior(tuple(models), prior_odds)
    results = _with_budget(models, prior, budget) if budget is not None else _concluded(models)
    doubtful = {name: result.warnings[0] for name, result in results.items() if result.warnings}
    notes = [f"{name} is doubtful: {warning}" for name, warning in doubtful.items()]
    if doubtful and not allow_doubtful:
        raise ValueError(
            f"{', '.join(doubtful)}: doubtful, and so is any comparison with them. {' '.join(notes)} Repair that, or "
            "compare all the same with allow_doubtful=True."
        )
    return _compared(results, prior, (*notes, *_differing_priors(results)))


def _prior(names: tuple[str, ...], odds: Mapping[str, float] | None) -> Array:
    """Prior probabilities of the models, (K,)."""
    if odds is None:
        return np.full(len(names), 1.0 / len(names))
    if set(odds) != set(names):
        raise ValueError(f"prior_odds must name the models {', '.join(names)}; got {', '.join(map(str, odds))}.")
    weights = np.array([float(odds[name]) for name in names])
    if not (np.all(np.isfinite(weights)) and np.all(weights > 0.0)):
        raise ValueError(f"prior_odds must be positive numbers; got {dict(odds)}.")
    return np.asarray(weights / weights.sum())


def _concluded(models: Mapping[str, Any]) -> dict[str, Result]:
    results = {}
    for name, model in models.items():
        if isinstance(model, tuple) and model and isinstance(model[0], Integrator):
            model = model[0]
        if isinstance(model, Integrator):
            model = model.result()
        if not isinstance(model, Result):
            raise TypeError(
                f"model {name!r} must be a Result, or a pair (Integrator, log_likelihood); got {type(model).__name__}."
            )
        results[name] = model
    return results


# -- probabilities ----------------------------------------------------------------------------------------------------


def _compared(results: dict[str, Result], prior: Array, notes: tuple[str, ...] = ()) -> Comparison:
    log_z = np.array([result.log_z for result in results.values()])
    std = np.array([result.log_z_std for result in results.values()])
    names = tuple(results)
    # The same draws at every call; an infinite error bar is held to one that leaves every ranking open.
    errors = np.random.default_rng(0).standard_normal((DRAWS, len(names))) * np.minimum(std, 1e3)
    log_p = log_z + errors + np.log(prior)
    p = np.exp(log_p - np.logaddexp.reduce(log_p, axis=1)[:, None])
    ahead = np.bincount(np.argmax(log_p, axis=1), minlength=len(names)) / DRAWS
    intervals = np.quantile(p, [0.025, 0.975], axis=0).T
    verdict = _verdict(names, log_z + np.log(prior), std)
    return Comparison(names, log_z, std, prior, p.mean(axis=0), intervals, ahead, verdict, notes, results)


def _verdict(names: tuple[str, ...], score: Array, std: Array) -> str:
    """Of log Z plus log prior probability (K,): who is ahead, and whether the error bars allow to say so."""
    first = int(np.argmax(score))
    # The rival is the one whose lead over the first is least excluded.
    rivals = [k for k in range(len(names)) if k != first]
    least, odds, k = min((float(_lead(score, std, first, k)[1]), float(score[first] - score[k]), k) for k in rivals)
    if not least > 0.0:
        return (
            f"undecided: the error bars of {names[first]} and {names[k]} overlap (log odds {odds:.2g} ± "
            f"{math.hypot(std[first], std[k]):.2g}); more evaluations may tell."
        )
    for ratio, words in VERDICTS:
        if least >= math.log(ratio):
            return f"{words} for {names[first]}: at least {_odds(least)} to 1 against {names[k]}, at 95 %."
    return (
        f"undecided: {names[first]} is ahead of {names[k]}, but the data hardly tell them apart "
        f"(odds {_odds(odds)} to 1)."
    )


def _lead(score: Array, std: Array, a: int, b: int) -> tuple[float, float]:
    """By how much a is ahead of b, and the lower end of the 95 % interval of that."""
    lead = float(score[a] - score[b])
    return lead, lead - STANDARD * math.hypot(std[a], std[b])


# -- further evaluations ----------------------------------------------------------------------------------------------


def _with_budget(models: Mapping[str, Any], prior: Array, budget: int) -> dict[str, Result]:
    """Results after so many further evaluations, where they matter most for the ranking."""
    left = whole_number("budget", budget)
    for name, model in models.items():
        if not (
            isinstance(model, tuple) and len(model) == 2 and isinstance(model[0], Integrator) and callable(model[1])
        ):
            raise TypeError(
                f"with budget=, model {name!r} must be a pair (Integrator, log_likelihood); got {type(model).__name__}."
            )
    fresh = [name for name, (integrator, _) in models.items() if not integrator.n_evals]
    if fresh:
        share = max(1, left // (len(fresh) + 1))
        for name in fresh:
            left -= _run(models[name], share)
    results = {name: integrator.result() for name, (integrator, _) in models.items()}
    step = max(1, math.ceil(left / ROUND))
    while left > 0:
        unsure = _least_certain(results, prior)
        used = 0 if unsure is None else _run(models[unsure], min(step, left))
        if unsure is None or not used:
            break
        left -= used
        results[unsure] = models[unsure][0].result()
    return results


def _run(model: tuple[Integrator, Callable[..., Any]], budget: int) -> int:
    """Evaluate so many points; how many they were."""
    integrator, log_likelihood = model
    before = integrator.n_evals
    run(integrator, log_likelihood, RunOptions(budget=budget, tol=0.0))
    return integrator.n_evals - before


def _least_certain(results: Mapping[str, Result], prior: Array) -> str | None:
    """Of the best model and those it is not surely ahead of: the one with the largest error bar; None where it is."""
    names = list(results)
    score = np.array([results[name].log_z for name in names]) + np.log(prior)
    std = np.array([results[name].log_z_std for name in names])
    first = int(np.argmax(score))
    close = [k for k in range(len(names)) if k != first and not _lead(score, std, first, k)[1] > 0.0]
    return names[max([first, *close], key=lambda k: std[k])] if close else None


# -- priors of shared parameters --------------------------------------------------------------------------------------


def _differing_priors(results: Mapping[str, Result]) -> tuple[str, ...]:
    """A note for every shared parameter whose priors are not the same."""
    samples: dict[str, tuple[tuple[str, ...], Array]] = {}
    for name, result in results.items():
        if result.prior is not None and not isinstance(result.prior, LogDensity):  # which gives no draws
            rng = np.random.default_rng(0)
            samples[name] = (result.names, np.sort(result.prior.sample(PRIOR_DRAWS, rng), axis=0))
    notes = []
    for parameter in dict.fromkeys(name for names, _ in samples.values() for name in names):
        columns = {model: X[:, names.index(parameter)] for model, (names, X) in samples.items() if parameter in names}
        (first, reference), *others = columns.items()
        differ = [model for model, x in others if _distance(reference, x) > DIFFERENT]
        if differ:
            notes.append(
                f"the prior of {parameter} in {', '.join(differ)} differs from that in {first}: part of the Bayes "
                "factor comes from that."
            )
    return tuple(notes)


def _distance(x: Array, y: Array) -> float:
    """Largest distance between the distribution functions of two sorted samples."""
    both = np.concatenate([x, y])
    F, G = (np.searchsorted(sample, both, side="right") / len(sample) for sample in (x, y))
    return float(np.max(np.abs(F - G)))


# -- text -------------------------------------------------------------------------------------------------------------


def _with_error(value: float, std: float) -> str:
    return str(LogBayesFactor(float(value), float(std)))


def _probability(p: float) -> str:
    """0.93, or 2e-05, or 1 − 2e-05."""
    if p < 0.001:
        return f"{p:.1g}"
    return f"1 − {1.0 - p:.1g}" if 0.999 < p < 1.0 else f"{p:.3f}"


def _odds(nats: float) -> str:
    return f"{math.exp(nats):.3g}" if nats < 14.0 else f"10^{nats / math.log(10.0):.0f}"
