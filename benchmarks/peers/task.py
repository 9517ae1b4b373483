"""What a peer is given, a `Task`, and what it gives back, an `Answer`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtri

from wsabi import Gaussian, Uniform
from wsabi._core.types import Array
from wsabi.priors.chart import chart

__all__ = ["Answer", "Peer", "Space", "Task", "effective"]

CLOCKED = 5000  # calls of the likelihood whose time is kept


@dataclass(frozen=True)
class Peer:
    """How a package enters the benchmark; a file in `methods/` has one of these as ``PEER``, and a function ``run``.

    Parameters
    ----------
    kind : "quadrature", "surrogate", "nested sampling", "sequential Monte Carlo" or "Monte Carlo".
    variants : names of the entrants that this file makes, each with the keyword arguments that ``run`` gets for it.
    requirements : what pip installs into the environment ``.venv/peers/FILE``; empty where ours has all that is needed.
    package : the distribution whose version is recorded.
    imports : modules that are imported before the clock starts: what is imported once in a process is not counted.
    root_n : whether the error falls as one over the root of the evaluations, so that it may be extrapolated.
    """

    kind: str
    variants: Mapping[str, Mapping[str, Any]]
    requirements: tuple[str, ...] = ()
    package: str = ""
    imports: tuple[str, ...] = ()
    root_n: bool = False


@dataclass
class Answer:
    """What a peer says at the end.

    Parameters
    ----------
    log_z, log_z_std : the estimate and its standard deviation as claimed; None where the peer claims none.
    converged : whether it says that it has converged; None where it says nothing of the kind.
    effective_draws : of the posterior; None where the posterior is not a set of draws.
    """

    log_z: float
    log_z_std: float | None
    converged: bool | None = None
    effective_draws: float | None = None


@dataclass
class Space:
    """Base coordinates: the prior is N(0, C), a mixture, or uniform on [−1, 1]^D, and the likelihood is in them.

    For peers that want a box, or parameters of unit scale. ``box`` has the support, or ±``reach`` prior sds where the
    prior has no bounds; ``log_prior`` is normalised over all of the support.
    """

    task: Task
    reach: float = 5.0

    @property
    def measure(self) -> Any:
        return self.task.chart.measure

    @property
    def bounded(self) -> bool:
        return isinstance(self.measure, Uniform)

    @property
    def box(self) -> tuple[Array, Array]:
        half = np.ones(self.task.dim) if self.bounded else self.reach * np.sqrt(np.diag(self.measure.cov))
        centre = np.zeros(self.task.dim) if self.bounded else self.measure.mean
        return centre - half, centre + half

    def log_likelihood(self, U: Array) -> Array:
        """(N,) for (N, D)."""
        return self.task.batch(self.task.chart.to_user(np.atleast_2d(U)))

    def log_prior(self, U: Array) -> Array:
        """(N,) for (N, D)."""
        return np.asarray(self.measure.log_pdf(np.atleast_2d(U)))

    def log_joint(self, u: Array) -> float:
        """log ℓπ, a float, for one point."""
        return float(self.log_likelihood(u)[0] + self.log_prior(u)[0])


@dataclass
class Task:
    """A problem with its likelihood counted and timed.

    Attributes
    ----------
    n_evals, inside : points evaluated, and CPU seconds spent in likelihood and prior, which are nobody's own.
    trace : (evaluations, own CPU seconds, log Z, claimed sd) of every estimate on the way that was noted.
    clock : (evaluations before, own CPU seconds then) of the first calls of the likelihood.
    """

    function: Callable[[Array], Array]
    prior: Any
    dim: int
    seed: int
    n_evals: int = 0
    inside: float = 0.0
    trace: list[tuple[int, float, float, float | None]] = field(default_factory=list)
    clock: list[tuple[int, float]] = field(default_factory=list)
    started: float = field(default_factory=time.process_time)

    def __post_init__(self) -> None:
        self.chart = chart(self.prior)
        self._normal = chart(self.prior, gaussian=True)  # N(0, C): the way from the unit cube
        measure = self._normal.measure
        if not isinstance(measure, Gaussian):
            raise TypeError(f"the cube needs a prior that is the image of one Gaussian; got {type(measure).__name__}.")
        self._root, self._mean = np.linalg.cholesky(measure.cov), measure.mean

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    @property
    def space(self) -> Space:
        return Space(self)

    @property
    def own_seconds(self) -> float:
        """CPU seconds since the start, less those inside likelihood and prior."""
        return time.process_time() - self.started - self.inside

    def batch(self, X: Array) -> Array:
        """log ℓ in the user's coordinates, (N,) for (N, D)."""
        started = time.process_time()
        if len(self.clock) < CLOCKED:
            self.clock.append((self.n_evals, started - self.started - self.inside))
        points = np.asarray(X, dtype=np.float64)
        self.n_evals += len(points)
        try:
            with np.errstate(all="ignore"):
                return np.asarray(self.function(points), dtype=np.float64)
        finally:
            self.inside += time.process_time() - started

    def log_likelihood(self, x: Array) -> float:
        """log ℓ of one point (D,)."""
        return float(self.batch(np.asarray(x)[None])[0])

    def floored(self, X: Array) -> Array:
        """``batch`` with −1e300 for −inf, for peers that take none."""
        return np.maximum(self.batch(X), -1e300)

    def from_white(self, Z: Array) -> Array:
        """x (N, D) for z ~ N(0, I), (N, D), so that x has the prior."""
        started = time.process_time()
        X = self._normal.to_user(self._mean + np.atleast_2d(Z) @ self._root.T)
        self.inside += time.process_time() - started
        return X

    def from_cube(self, c: Array) -> Array:
        """The prior transform of nested samplers: x (D,) or (N, D) for c uniform on the unit cube."""
        started = time.process_time()
        Z = ndtri(np.clip(np.asarray(c, dtype=np.float64), 2.0**-53, 1.0 - 2.0**-53))
        self.inside += time.process_time() - started
        X = self.from_white(Z)
        return X[0] if np.ndim(c) == 1 else X

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """n draws of the prior, (n, D)."""
        return self.from_white(rng.standard_normal((n, self.dim)))

    def note(self, log_z: float, log_z_std: float | None = None) -> None:
        """An estimate on the way, at the present number of evaluations."""
        self.trace.append(
            (self.n_evals, self.own_seconds, float(log_z), None if log_z_std is None else float(log_z_std))
        )

    def note_afterwards(self, n_evals: int, log_z: float, log_z_std: float | None = None) -> None:
        """An estimate that was made after so many evaluations; its time is that of the next one."""
        later = (own for before, own in self.clock if before >= n_evals)
        own = next(later, self.own_seconds)
        self.trace.append((int(n_evals), own, float(log_z), None if log_z_std is None else float(log_z_std)))


def effective(log_weights: Array) -> float:
    """(Σw)²/Σw² of weights given as logs."""
    w = np.exp(np.asarray(log_weights) - np.max(log_weights))
    return float(w.sum() ** 2 / np.square(w).sum())
