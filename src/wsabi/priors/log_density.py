"""A prior known by its log density only, by importance re-weighting against a reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from wsabi._core.checks import checked_names
from wsabi._core.types import Array, Seed, as_generator
from wsabi.priors.functions import evaluated
from wsabi.priors.independent import Independent
from wsabi.priors.measure import Measure
from wsabi.priors.names import Groups
from wsabi.priors.specification import as_density
from wsabi.priors.transform import Transform

__all__ = ["LogDensity"]

# When the integral of a LogDensity counts as different from one: see LogDensity.normalisation_fault.
_NEGLIGIBLE_NATS = 0.05  # of log Z: the default tolerance of a run
_FAULT_SDS = 5.0  # standard errors of the mean weight
_LEAST_DRAWS = 100.0  # effective sample size of the weights
_HEAVY_HILL, _HEAVY_MOMENT = 0.5, 0.25  # tail index of the weights by two estimates; from 0.5 on there is no variance


@dataclass(frozen=True, eq=False)
class LogDensity:
    """Any normalised density π', by importance re-weighting against a reference π: ℓ π' = (ℓ π'/π) π.

    Parameters
    ----------
    logpdf : log π', normalised, from one (D,) point to a float; −inf where the density is zero. With a reference given
        as a dict it receives a dict of the names instead, as the likelihood does.
    reference : π, any other prior with a density. It must be positive wherever π' is, for mass outside it is not
        counted, and works best when wider than π' but not by much.
    names : D names of the parameters, those of the reference if none are given. With names of its own each parameter
        is a number, also where the reference has vectors.
    vectorized : whether logpdf takes (N, D) and returns (N,).
    """

    logpdf: Callable[[Any], object]
    reference: Measure | Independent
    names: tuple[str, ...]
    vectorized: bool
    groups: Groups = field(repr=False)

    def __init__(
        self, logpdf: Callable[[Any], object], reference: object,
        *, names: Sequence[str] | None = None, vectorized: bool = False,
    ) -> None:  # fmt: skip
        if not callable(logpdf):
            raise TypeError(f"logpdf must be a function of a (D,) array; got {type(logpdf).__name__}.")
        if isinstance(reference, Transform | LogDensity):
            raise TypeError(
                f"reference must be a prior whose density is known, to divide by; got {type(reference).__name__}. "
                "Use Gaussian, GaussianMixture, Uniform, Polynomial or Independent."
            )
        prior = as_density(reference)
        object.__setattr__(self, "logpdf", logpdf)
        object.__setattr__(self, "reference", prior)
        object.__setattr__(self, "names", checked_names(prior.names if names is None else names, prior.dim))
        object.__setattr__(self, "groups", getattr(prior, "groups", ()) if names is None else ())
        object.__setattr__(self, "vectorized", bool(vectorized))

    @property
    def dim(self) -> int:
        """Number of dimensions D."""
        return self.reference.dim

    @property
    def keyed(self) -> bool:
        """Whether logpdf and the likelihood receive a dict."""
        return isinstance(self.reference, Independent) and self.reference.keyed

    def log_pdf(self, X: Array) -> Array:
        """log π'(x_n), (N,), for X (N, D).

        Raises
        ------
        ValueError
            If logpdf returns NaN, +inf or the wrong shape.
        """
        names = self if self.keyed else None
        log_p = evaluated(self.logpdf, X, (), "logpdf", vectorized=self.vectorized, names=names)
        bad = np.flatnonzero(~(log_p < np.inf))
        if bad.size:
            raise ValueError(
                f"logpdf must return a finite log density or -inf; got {log_p[bad[0]]} "
                f"at point {bad[0]}, x = {X[bad[0]]}."
            )
        return log_p

    def log_weight(self, X: Array) -> Array:
        """log π'(x_n)/π(x_n), (N,), for X (N, D) inside the support of the reference.

        Raises
        ------
        ValueError
            If the reference has no finite log density at a point where logpdf has.
        """
        log_p, log_q = self.log_pdf(X), self.reference.log_pdf(X)
        bad = np.flatnonzero(np.isfinite(log_p) & ~np.isfinite(log_q))
        if bad.size:
            raise ValueError(
                f"reference has log density {log_q[bad[0]]} at point {bad[0]}, x = {X[bad[0]]}, where logpdf is "
                f"{log_p[bad[0]]}; choose a reference that is positive wherever logpdf is finite."
            )
        return np.where(np.isfinite(log_p), log_p - np.where(np.isfinite(log_q), log_q, 0.0), -np.inf)

    def normalisation_fault(self, n: int | None = None, rng: Seed = 0) -> str | None:
        """A sentence where logpdf does not integrate to one over the reference; None where it does, or nobody can tell.

        ∫π' over the support of π = E[w], w = π'/π, x ~ π, by the mean of n draws. No likelihood is evaluated.

        Parameters
        ----------
        n : number of draws; None is 4,000 where logpdf is vectorised and 1,000 where it is not.
        rng : seed or Generator, of a stream of its own: the run's draws are not touched.

        Notes
        -----
        A fault needs |log m| > 0.05 and |m − 1| > 5 standard errors of the mean m, and draws that are worth 100
        independent ones or more. Where the mean is normal, a correct density gives a false alarm once in 1.7 million
        calls. Weights with heavy tails have means that are too small with standard errors that are too small, seldom
        the opposite. A mean below one is therefore a fault only if the tail of the weights is light. Mass of π' that no
        draw meets, a narrow spike or the tails of Cauchy densities beyond a normal reference, can still look like a
        density that is not normalised; the sentence names both.
        """
        size = n if n is not None else (4000 if self.vectorized else 1000)
        log_w = self.log_weight(self.reference.sample(size, as_generator(rng)))
        top = float(np.max(log_w))
        if not np.isfinite(top):
            return None  # no draw of the reference has any density
        w = np.exp(log_w - top)
        mean, error = float(w.mean()), float(w.std(ddof=1)) / math.sqrt(size)
        log_m = math.log(mean) + top
        few = float(w.sum()) ** 2 / float(np.square(w).sum()) < _LEAST_DRAWS
        # |m − 1| > 5 se, divided by m: m itself may be beyond the largest double.
        distance = abs(-math.expm1(-log_m)) if log_m > -700.0 else math.inf
        if few or abs(log_m) < _NEGLIGIBLE_NATS or distance < _FAULT_SDS * error / mean:
            return None
        if log_m < 0.0 and _has_heavy_tail(log_w):
            return None
        integral = f"{math.exp(log_m):.3g}" if abs(log_m) < 100.0 else f"exp({log_m:.1f})"
        if log_m > 0.0:
            cure = f"Subtract {log_m:.3g} from logpdf, or normalise it."
        else:
            cure = "Normalise logpdf, or choose a reference that covers all of it."
        effect = f"{'is too high' if log_m > 0.0 else 'may be too low'} by about {abs(log_m):.3g} ± {error / mean:.2g}"
        return f"logpdf integrates to about {integral} over the reference, expected 1: log Z {effect}. {cure}"

    def sample(self, n: int, rng: Seed = None) -> NoReturn:
        """Not available: resampling would repeat points and follow π' only in the limit of many draws.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            "LogDensity cannot be sampled exactly, its density being known only point by point; "
            "draw from .reference and weight the draws by exp(.log_weight(X))."
        )


def _has_heavy_tail(log_w: Array) -> bool:
    """Whether the mean of the weights may be far too small, for want of a few huge ones.

    P(w > t) ~ t^(−1/k), with k estimated twice from the largest 2√n of n weights: by Hill's M₁, which has little noise
    and is too large for bounded weights, and by M₁ + 1 − ½/(1 − M₁²/M₂) (Dekkers, Einmahl and de Haan, 1989), which has
    more and is not. M_j is the mean of (log w_i − log w_0)^j, w_0 the largest weight that is not among them. The tail
    is heavy if either says so.
    """
    ordered = np.sort(log_w[np.isfinite(log_w)])[::-1]
    size = int(2.0 * math.sqrt(len(log_w)))
    if size >= len(ordered):
        return True
    gaps = ordered[:size] - ordered[size]
    first, second = float(np.mean(gaps)), float(np.mean(np.square(gaps)))
    if first < 1e-9 or not second - first**2 > 1e-12 * second:  # all the same, but for round-off
        return False
    return first > _HEAVY_HILL or first + 1.0 - 0.5 / (1.0 - first**2 / second) > _HEAVY_MOMENT
