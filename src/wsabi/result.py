"""What a run returns: bare frozen data, printable and picklable."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from wsabi._core.edges import edge
from wsabi._core.logspace import log_ratio_std
from wsabi._core.types import Array, Seed
from wsabi.gp.fit import FitRecord
from wsabi.settings import Settings

if TYPE_CHECKING:
    from wsabi.ledger import Ledger
    from wsabi.plots.of_result import ResultPlots
    from wsabi.posterior.posterior import Posterior

__all__ = [
    "BulkRecord", "Certificate", "CheckPoints", "Diagnostics", "ErrorBudget", "LogBayesFactor", "ModelBelief",
    "Reason", "Record", "Result", "SearchRecord", "Slice",
]  # fmt: skip

Reason = Literal["tolerance", "budget", "time", "interrupted", "callback", "error", "running"]
Outcome = Literal["new region", "known region", "negligible mass", "unfinished"]
Start = Literal["prior", "point"]
Kind = Literal["annealed", "greedy", "ascent"]
Source = Literal["models", "check points", "bulk"]
Rows = Literal["draws", "weighted", "evaluations"]

REASONS: dict[str, str] = {
    "tolerance": "the error bar of log Z is within the tolerance",
    "budget": "the budget of evaluations is spent",
    "time": "the budget of seconds is spent",
    "interrupted": "interrupted",
    "callback": "the callback ended the run",
    "error": "the likelihood failed",
    "running": "not stopped: more points can be asked for",
}


@dataclass(frozen=True, repr=False)
class LogBayesFactor:
    """log Z of one model less log Z of another, in nats, and one standard deviation of it: ``r2 - r1``."""

    value: float
    std: float

    def __str__(self) -> str:
        return f"{self.value:.{_decimals(self.std)}f} ± {self.std:.2g}"

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class ModelBelief:
    """The GP's own belief: log E[Z | D] and log V[Z | D]; ``variance_clipped`` where V was lost in round-off."""

    log_mean: float
    log_var: float
    variance_clipped: bool = False

    @property
    def log_z_std(self) -> float:
        """√log(1 + V/E²), the standard deviation of log Z for a log-normal of these moments."""
        return log_ratio_std(self.log_mean, self.log_var)


@dataclass(frozen=True)
class ErrorBudget:
    """What the error bar of log Z is made of: independent parts in nats, whose root sum of squares is ``log_z_std``.

    Attributes
    ----------
    statistical : of the models and the check points, as they are combined; under the prior as measure, the model's own.
    unseen : modes that the searches may have missed, and images that are known and not followed.
    unsearched : points that the known modes do not explain, and that no search has explained either.
    unfinished : a search that was still climbing.
    infeasible : parts where the likelihood is positive that no draw has met, and values read as zero likelihood.
    noise : of the likelihood, where it gave two values at one point.
    round_off : of log ℓ itself, where its values are huge.
    reweighing : the step to another prior, see :meth:`Result.with_prior`.
    """

    statistical: float
    unseen: float = 0.0
    unsearched: float = 0.0
    unfinished: float = 0.0
    infeasible: float = 0.0
    noise: float = 0.0
    round_off: float = 0.0
    reweighing: float = 0.0

    @property
    def parts(self) -> dict[str, float]:
        """The parts by name."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @property
    def total(self) -> float:
        """√Σ part², in nats."""
        return math.hypot(*self.parts.values())

    def __str__(self) -> str:
        """The parts that matter, the largest first: "0.012 modes that may have been missed, 0.003 statistical"."""
        shown = sorted(self.parts.items(), key=lambda part: -part[1])
        least = 0.1 * self.total  # in quadrature a part of that size is half a per cent of the total
        return ", ".join(f"{nats:.2g} {PART_NAMES[name]}" for name, nats in shown if nats > 0.0 and nats >= least)


PART_NAMES = {
    "statistical": "statistical",
    "unseen": "modes that may have been missed",
    "unsearched": "points that no mode explains",
    "unfinished": "a search that had not ended",
    "infeasible": "feasible parts that may have been missed",
    "noise": "noise of the likelihood",
    "round_off": "round-off",
    "reweighing": "the step to another prior",
}


@dataclass(frozen=True)
class Certificate:
    """The models' integral beside that of independent check points, and the two combined.

    Attributes
    ----------
    log_z, log_z_std : the combination, and its statistical error; ``Result.error_budget`` has what else there is.
    model_log_z, model_log_z_std : integral of the control variate, with the models' own variance, their distance from
        each other and, where the check points ask for it, what it takes to agree with them.
    check_log_z, check_log_z_std : unbiased estimate from the check points, with the model as control variate.
    difference : check points less models, in standard deviations of both together.
    n_points, effective_sample_size, pareto_k : of the check points' importance weights; k is NaN below 25 points.
    wsabi_share : weight of the WSABI models in the control variate; the rest is the surrogate of log ℓ.
    uncertainty : the surrogate's predictive sd of log ℓ in nats, averaged over its posterior.
    model_log_var : log of the models' variance of Z.
    source : what log_z and its sd rest on: "models", checked by the check points; "check points" alone, where the
        models do not know the integral; or "bulk", thousands of points that need no model.
    misplaced : share of the posterior that the surrogate has in wrong places, as the check points have it: half the
        mean of |ℓπ − M|/(Z p). NaN where there are too few.
    """

    log_z: float
    log_z_std: float
    model_log_z: float
    model_log_z_std: float
    check_log_z: float
    check_log_z_std: float
    difference: float
    n_points: int
    effective_sample_size: float
    pareto_k: float
    wsabi_share: float
    uncertainty: float
    model_log_var: float
    source: Source = "models"
    misplaced: float = math.nan

    @property
    def rests_on_points(self) -> bool:
        """Whether log_z and its sd are those of evaluations alone, without the models."""
        return self.source != "models"


@dataclass(frozen=True, eq=False)
class Slice:
    """The model of log ℓ along one parameter, the others as at the mode.

    Attributes
    ----------
    grid : (G,) values of the parameter, in the user's coordinates.
    mean, std : (G,) of log ℓ there, in nats.
    """

    grid: Array
    mean: Array
    std: Array


@dataclass(frozen=True, eq=False)
class CheckPoints:
    """The check points, and what models that had not seen them predicted there.

    Attributes
    ----------
    points : (N, D), in the user's coordinates.
    log_likelihoods : (N,) log ℓ as evaluated.
    predicted, std : (N,) predictive mean and sd of log ℓ.
    weights : (N,) ℓπ/p, p the density they were drawn from, with sum one.
    """

    points: Array
    log_likelihoods: Array
    predicted: Array
    std: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """What pictures of a run need to know of its models.

    Attributes
    ----------
    mode : (D,) the evaluation of highest ℓπ, in the user's coordinates.
    slices : one for each parameter, through the mode; empty where the prior's coordinates cannot be taken one by one.
    check : None where there were no check points.
    """

    mode: Array
    slices: tuple[Slice, ...] = ()
    check: CheckPoints | None = None


@dataclass(frozen=True)
class SearchRecord:
    """One search, from the prior or around a point that another met: its cost, log mass, outcome and kind.

    ``kind`` is "annealed" for a search that follows the most mass from a design over the prior, "greedy" for one that
    takes the nearest mode, and "ascent" for a local ascent from a single point.
    """

    n_evals: int
    log_z: float
    outcome: Outcome
    start: Start = "prior"
    kind: Kind = "annealed"


@dataclass(frozen=True)
class BulkRecord:
    """One batch of bulk points: how many, and the effective share of their weights, (Σw)²/(n Σw²)."""

    n: int
    effective_share: float


@dataclass(frozen=True)
class Record:
    """State of the estimate after ``n_evals`` evaluations and ``seconds`` of wall-clock time."""

    n_evals: int
    seconds: float
    log_z: float
    log_z_std: float


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The estimate of log Z, how it was reached, and what follows from it; of every method, baselines too.

    Attributes
    ----------
    method : "adaptive", the default; "wsabi-l", "wsabi-m" or "bq" under the prior as measure; or a baseline's name.
    log_z, log_z_std : estimate of log Z and one standard deviation of it.
    error_budget : what ``log_z_std`` is made of, in nats.
    model : the GP's own belief, log E[Z | D] and log V[Z | D], without any check; NaN where it has none. For Monte
        Carlo, log of the mean and its variance.
    points, log_likelihoods : (N, D) and (N,), every evaluation, in the user's coordinates.
    base_points : (N, D), the same points in the model's coordinates.
    history : estimates over the run.
    fits : outcome of every fit of the hyperparameters, length-scales in the model's coordinates.
    jitter : largest relative jitter that a kernel matrix needed.
    warnings : sentences about what makes the number doubtful; empty when all is well.
    notes : sentences for information, which cast no uncertainty on it.
    certificate : the models' integral beside that of check points; None where there were none (prior as measure).
    searches : the searches for modes, from the prior or around a point; empty under the prior as measure.
    symmetries : ways to exchange parameters, or to reverse them about the centre of the prior, under which ℓπ was found
        to be the same; such as "mu1 <-> mu2".
    prior : the prior of the run.
    ledger : everything that happened in the run, from which it can go on; None for baselines and after ``with_prior``.
    settings : the algorithm's choices; None for baselines.
    posterior : ℓπ/Z in the user's coordinates: moments, quantiles, densities, draws, by name.
    """

    method: str
    log_z: float
    log_z_std: float
    model: ModelBelief
    n_evals: int
    seconds: float
    converged: bool
    reason: Reason
    warnings: tuple[str, ...]
    names: tuple[str, ...]
    points: Array = field(repr=False)
    log_likelihoods: Array = field(repr=False)
    base_points: Array = field(repr=False)
    history: tuple[Record, ...] = field(repr=False)
    fits: tuple[FitRecord, ...] = field(repr=False)
    jitter: float
    settings: Settings | None = field(repr=False)
    posterior: Posterior = field(repr=False)
    certificate: Certificate | None = field(default=None, repr=False)
    batches: tuple[BulkRecord, ...] = field(default=(), repr=False)
    searches: tuple[SearchRecord, ...] = field(default=(), repr=False)
    symmetries: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    error_budget: ErrorBudget = field(default=ErrorBudget(math.nan), repr=False)
    prior: Any = field(default=None, repr=False)
    reweigh: Callable[..., Result] | None = field(default=None, repr=False)
    ledger: Ledger | None = field(default=None, repr=False)

    @property
    def diagnostics(self) -> Diagnostics | None:
        """What pictures need to know of the models; None for baselines and after ``with_prior``."""
        return self.posterior.diagnostics

    @property
    def plot(self) -> ResultPlots:
        """Pictures: ``corner()``, ``convergence()``, ``searches()``, ``slices()``, ``check()`` (extra ``plot``)."""
        return edge("plots.of_result").ResultPlots(self)  # type: ignore[no-any-return]

    def to_html(self, path: str | Path) -> Path:
        """Write a page about this result, one HTML file that needs nothing from elsewhere; returns where it is."""
        return edge("pages.page").write_page(self, path)  # type: ignore[no-any-return]

    def to_arviz(self, draws: int = 1000, *, chains: int = 4, rng: Seed = 0, **options: Any) -> Any:
        """Draws for ArviZ (extra ``arviz``), as InferenceData or DataTree: :func:`wsabi.bridges.arviz.to_arviz`."""
        return edge("bridges.arviz").to_arviz(self, draws, chains=chains, rng=rng, **options)

    def to_dataframe(self, n: int = 4000, *, of: Rows = "draws", rng: Seed = 0) -> Any:
        """A pandas DataFrame of draws, weighted points or evaluations: :func:`wsabi.bridges.pandas.to_dataframe`."""
        return edge("bridges.pandas").to_dataframe(self, n, of=of, rng=rng)

    def to_anesthetic(self) -> Any:
        """The weighted points as ``anesthetic.MCMCSamples``: :func:`wsabi.bridges.anesthetic.to_anesthetic`."""
        return edge("bridges.anesthetic").to_anesthetic(self)

    def to_getdist(self, **options: Any) -> Any:
        """The weighted points as ``getdist.MCSamples``: :func:`wsabi.bridges.getdist.to_getdist`."""
        return edge("bridges.getdist").to_getdist(self, **options)

    def with_prior(self, prior: Any) -> Result:
        """log Z and posterior under another prior, from the same evaluations: Z' = Z·E[π'/π] under the posterior.

        Parameters
        ----------
        prior : as :func:`wsabi.integrate` takes it, with a density in the same parameters, in any order: they are
            matched by name, or by position where the prior has no names of its own.

        Returns
        -------
        A result whose ``log_z_std`` has grown by how far the posterior moves away from the evaluations, with a warning
        where it should not be trusted. It is infinite where the other prior reaches beyond the support of the run's:
        nothing was evaluated there. See :func:`wsabi.posterior.reweigh.reweigh`.
        """
        if self.reweigh is None:
            raise TypeError(f"a result of {self.method} keeps no model to reweigh: run again under the other prior.")
        return self.reweigh(self, self.prior, prior)

    def __sub__(self, other: Result) -> LogBayesFactor:
        """The log Bayes factor of this model against another of the same data: which cannot be told from here."""
        if not isinstance(other, Result):
            return NotImplemented
        return LogBayesFactor(self.log_z - other.log_z, math.hypot(self.log_z_std, other.log_z_std))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this result to a file that ends in .json or .npz, for :func:`wsabi.load`; nothing is pickled.

        The file holds prior, settings and every event of the run as data. A prior with functions (``Transform``,
        ``LogDensity``) has to be given again when the file is loaded.

        Raises
        ------
        TypeError
            If there is no ledger: for results of baselines and of ``with_prior``.
        """
        from wsabi.runs.saved import save

        save(self, path)

    def interval(self, probability: float = 0.95) -> tuple[float, float]:
        """(low, high) for log Z: log_z ± z·log_z_std, z the normal quantile of the given probability."""
        if not 0.0 < probability < 1.0:
            raise ValueError(f"probability must lie between 0 and 1; got {probability}.")
        from scipy.special import ndtri

        if not math.isfinite(self.log_z_std):
            return -math.inf, math.inf
        half = float(ndtri(0.5 + 0.5 * probability)) * self.log_z_std
        return self.log_z - half, self.log_z + half

    def __repr__(self) -> str:
        digits = _decimals(self.log_z_std)
        log_z = f"{self.log_z:.{digits}f} ± {self.log_z_std:.2g}"
        doubts = f", {len(self.warnings)} warning{'s' * (len(self.warnings) > 1)}" if self.warnings else ""
        return f"Result({self.method}: log Z = {log_z}, {self.n_evals} evaluations{doubts})"

    def _repr_html_(self) -> str:
        return str(edge("pages.notebook").html(self))

    def __str__(self) -> str:
        low, high = self.interval(0.95)
        digits = _decimals(self.log_z_std)
        rows = [
            ("log Z", f"{self.log_z:.{digits}f} ± {self.log_z_std:.2g}"),
            ("95 % interval", f"[{low:.{digits}f}, {high:.{digits}f}]"),
            ("error bar", f"± {self.log_z_std:.2g}: {self.error_budget}"),
            ("evaluations", f"{self.n_evals}"),
            ("seconds", f"{self.seconds:.2f}"),
            ("method", self.method),
            ("state" if self.reason == "running" else "stopped because", REASONS[self.reason]),
        ]
        if self.certificate is not None and self.certificate.n_points:
            rows.insert(3, ("check", _described(self.certificate)))
        rows.append(("posterior", self.posterior.form.description))
        rows += [("symmetry", text) for text in self.symmetries]
        if math.isnan(self.error_budget.total):
            rows = [row for row in rows if row[0] != "error bar"]
        lines = [f"{name:<16}{value}" for name, value in rows]
        lines += [f"{'warning':<16}{text}" for text in self.warnings]
        lines += [f"{'note':<16}{text}" for text in self.notes]
        return "\n".join(lines)


def _described(certificate: Certificate) -> str:
    """The check in one line: how many points, and whether they agree."""
    points = f"{certificate.n_points} independent points"
    if not math.isfinite(certificate.check_log_z):
        return f"{points}, too few to check anything"
    verdict = "agree" if abs(certificate.difference) <= 3.0 else "disagree"
    return f"{points} {verdict}: {certificate.check_log_z:.6g} ± {certificate.check_log_z_std:.2g}"


def _decimals(std: float) -> int:
    """Decimals that show two digits of ``std``: 4 for 0.0023, 0 for 23; between 0 and 12."""
    return 1 - math.floor(math.log10(min(max(std, 1e-11), 10.0))) if math.isfinite(std) else 1
