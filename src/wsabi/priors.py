"""Priors as the user gives them: everything :func:`as_prior` accepts beyond the measures of :mod:`wsabi.measures`.

A dict or a list of one-dimensional distributions becomes :class:`Independent`; :class:`Transform` is the unit-cube
transform of nested samplers; :class:`LogDensity` is any other density, by importance re-weighting. How each is carried
to a base space with a closed-form measure is the business of :mod:`wsabi.charts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from wsabi._core.types import Array, Seed, as_generator
from wsabi.distributions import is_distribution
from wsabi.marginals import Marginals
from wsabi.measures import Gaussian, GaussianMixture, Polynomial, Uniform
from wsabi.parameters import Groups, Parameters

__all__ = ["Independent", "LogDensity", "Prior", "Transform", "as_prior", "groups_of", "keys_of", "named_arguments"]

# Nested samplers draw multiples of 2⁻⁵³ from the open cube: no transform has to cope with 0 or 1.
_CUBE_MARGIN = 2.0**-53
# When the integral of a LogDensity counts as different from one: see LogDensity.normalisation_fault.
_NEGLIGIBLE_NATS = 0.05  # of log Z: the default tolerance of a run
_FAULT_SDS = 5.0  # standard errors of the mean weight
_LEAST_DRAWS = 100.0  # effective sample size of the weights
_HEAVY_HILL, _HEAVY_MOMENT = 0.5, 0.25  # tail index of the weights by two estimates; from 0.5 on there is no variance


class _Named(Protocol):
    """Anything with names of its parameters, and with ``groups`` where some form vectors: a prior or a chart."""

    @property
    def names(self) -> tuple[str, ...]:
        """D names."""


def groups_of(names: _Named | Sequence[str]) -> Groups:
    """Entries of a dict of the parameters with their columns: an int for a number, a slice for a vector.

    Parameters
    ----------
    names : a prior, a chart or D names. Names alone stand for numbers, whatever they look like: "a[0]" is a name too.
    """
    if isinstance(names, Sequence):
        return tuple((name, d) for d, name in enumerate(names))
    groups: Groups = getattr(names, "groups", ())
    return groups or groups_of(names.names)


def keys_of(names: _Named | Sequence[str]) -> tuple[str, ...]:
    """Keys of a dict of the parameters: those of :func:`groups_of`."""
    return tuple(name for name, _ in groups_of(names))


def named_arguments(names: _Named | Sequence[str], X: Array) -> dict[str, Any]:
    """The dict that a keyed likelihood receives.

    Parameters
    ----------
    names : a prior, a chart or D names.
    X : (D,) one point, or (N, D) points.

    Returns
    -------
    name -> float for one point, name -> (N,) array for several; for a vector of k parameters (k,) and (N, k) arrays.
    The arrays are copies.

    Examples
    --------
    >>> named_arguments(["amp", "tau"], np.array([1.0, 2.0]))
    {'amp': 1.0, 'tau': 2.0}
    >>> prior = as_prior({"beta": [(0, 1), (0, 1)], "tau": (0, 5)})
    >>> named_arguments(prior, np.array([0.25, 0.5, 2.0]))
    {'beta': array([0.25, 0.5 ]), 'tau': 2.0}
    """
    dim = len(names if isinstance(names, Sequence) else names.names)
    if X.ndim not in (1, 2) or X.shape[-1] != dim:
        raise ValueError(f"X must have shape ({dim},) or (N, {dim}), one column per name; got {X.shape}.")
    given = ((name, X[..., where]) for name, where in groups_of(names))
    return {name: value.copy() if value.ndim else float(value) for name, value in given}


@dataclass(frozen=True, eq=False)
class Independent:
    """Independent parameters, each with its own one-dimensional distribution.

    Parameters
    ----------
    distributions : list of frozen continuous ``scipy.stats`` distributions or (low, high) pairs, a pair meaning
        uniform; or a dict of the same by name, and then the likelihood receives a dict of those names. An entry of a
        dict may also be a vector: a list of distributions and pairs, a (k, 2) array of bounds, or a ``Gaussian``,
        ``GaussianMixture`` or ``Uniform``. The likelihood receives a (k,) array under that name.
    **named : the same by keyword: parameters have names, the likelihood receives one (D,) array.

    Examples
    --------
    >>> from scipy import stats
    >>> Independent(amp=stats.norm(0, 2), tau=(0.1, 10.0)).names
    ('amp', 'tau')
    >>> Independent({"beta": Gaussian([0, 0], [[1, 0.5], [0.5, 1]]), "sigma": (0, 1)}).names
    ('beta[0]', 'beta[1]', 'sigma')
    """

    distributions: tuple[object, ...]
    names: tuple[str, ...]
    keyed: bool
    parameters: Parameters = field(repr=False)

    def __init__(
        self, distributions: Mapping[str, object] | Sequence[object] | None = None, /, **named: object
    ) -> None:
        if (distributions is None) == (not named):
            raise TypeError("Independent takes one list or dict of distributions, or keywords name=distribution.")
        specs, names = _specs_and_names(named if distributions is None else distributions)
        parameters = Parameters.of(specs, names)
        object.__setattr__(self, "distributions", specs)
        object.__setattr__(self, "names", parameters.names)
        object.__setattr__(self, "keyed", isinstance(distributions, Mapping))
        object.__setattr__(self, "parameters", parameters)

    @property
    def dim(self) -> int:
        """Number of dimensions D."""
        return len(self.names)

    @property
    def groups(self) -> Groups:
        """Names of the entries with their columns: an int for a number, a slice for a vector."""
        return self.parameters.groups

    @property
    def marginals(self) -> Marginals:
        """The maps from base coordinates to the user's, one for each parameter."""
        return self.parameters.marginals

    def log_pdf(self, X: Array) -> Array:
        """Sum of the log densities of the entries, (N,), for X (N, D)."""
        return self.parameters.log_pdf(X)

    def sample(self, n: int, rng: Seed = None) -> Array:
        """n draws, (n, D)."""
        return self.parameters.sample(n, as_generator(rng))


@dataclass(frozen=True, eq=False)
class Transform:
    """The prior of x = T(c), c uniform on the unit cube, as nested samplers take it.

    Parameters
    ----------
    prior_transform : T, from one (D,) point of the open unit cube to the (D,) parameters.
    dim : D.
    names : D names of the parameters.
    vectorized : whether T takes (N, D) and returns (N, D).
    """

    prior_transform: Callable[[Array], object]
    dim: int
    names: tuple[str, ...]
    vectorized: bool

    def __init__(
        self, prior_transform: Callable[[Array], object], dim: int,
        *, names: Sequence[str] | None = None, vectorized: bool = False,
    ) -> None:  # fmt: skip
        if not callable(prior_transform):
            raise TypeError(f"prior_transform must be a function of a (D,) array; got {prior_transform!r}.")
        if isinstance(dim, bool) or not isinstance(dim, int | np.integer):
            raise TypeError(f"dim must be an int, the length of the cube's points; got {type(dim).__name__}.")
        if dim < 1:
            raise ValueError(f"dim must be at least 1; got {dim}.")
        object.__setattr__(self, "prior_transform", prior_transform)
        object.__setattr__(self, "dim", int(dim))
        object.__setattr__(self, "names", _checked_names(names, dim))
        object.__setattr__(self, "vectorized", bool(vectorized))

    def from_cube(self, C: Array) -> Array:
        """T(c_n), (N, D), for C (N, D), kept 2⁻⁵³ away from the faces of the cube."""
        open_cube = np.clip(C, _CUBE_MARGIN, 1.0 - _CUBE_MARGIN)
        X = _evaluate(self.prior_transform, open_cube, (self.dim,), "prior_transform", vectorized=self.vectorized)
        bad = np.flatnonzero(~np.all(np.isfinite(X), axis=1))
        if bad.size:
            raise ValueError(
                f"prior_transform must return finite parameters; got {X[bad[0]]} "
                f"at the point {open_cube[bad[0]]} of the unit cube."
            )
        return X

    def log_pdf(self, X: Array) -> NoReturn:
        """Not available: T gives draws, not a density.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            "Transform has no density in the user's coordinates (its Jacobian is unknown); "
            "use Independent, Gaussian, GaussianMixture, Uniform or Polynomial where a density is needed."
        )

    def sample(self, n: int, rng: Seed = None) -> Array:
        """n draws, (n, D)."""
        return self.from_cube(as_generator(rng).random((n, self.dim)))


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
    reference: Gaussian | GaussianMixture | Uniform | Polynomial | Independent
    names: tuple[str, ...]
    vectorized: bool
    groups: Groups = field(repr=False)

    def __init__(
        self, logpdf: Callable[[Any], object], reference: object,
        *, names: Sequence[str] | None = None, vectorized: bool = False,
    ) -> None:  # fmt: skip
        if not callable(logpdf):
            raise TypeError(f"logpdf must be a function of a (D,) array; got {type(logpdf).__name__}.")
        prior = as_prior(reference)
        if isinstance(prior, Transform | LogDensity):
            raise TypeError(
                f"reference must be a prior whose density is known, to divide by; got {type(prior).__name__}. "
                "Use Gaussian, GaussianMixture, Uniform, Polynomial or Independent."
            )
        object.__setattr__(self, "logpdf", logpdf)
        object.__setattr__(self, "reference", prior)
        object.__setattr__(self, "names", _checked_names(prior.names if names is None else names, prior.dim))
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
        log_p = _evaluate(self.logpdf, X, (), "logpdf", vectorized=self.vectorized, names=names)
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


Prior = Gaussian | GaussianMixture | Uniform | Polynomial | Independent | Transform | LogDensity


def as_prior(spec: object) -> Prior:
    """The prior that ``spec`` stands for.

    Parameters
    ----------
    spec : a prior object, returned as it is; a dict or list of frozen ``scipy.stats`` distributions and (low, high)
        pairs, which becomes :class:`Independent` (with a dict, the likelihood receives a dict of the same names); a
        (D, 2) array of bounds, which becomes :class:`~wsabi.measures.Uniform`.

    Raises
    ------
    TypeError, ValueError
        If it stands for none, with the entry at fault.
    """
    if isinstance(spec, Prior):
        return spec
    if isinstance(spec, Mapping):
        return Independent(spec)
    if isinstance(spec, list | tuple):
        if len(spec) == 2 and all(isinstance(end, Real) for end in spec):
            raise TypeError(f"prior {spec!r} is a single pair; for one uniform parameter write [{spec!r}].")
        return Independent(spec)
    if isinstance(spec, np.ndarray):
        return _box(spec)
    if is_distribution(spec):
        raise TypeError(
            f"prior is a scipy.stats object ({type(spec).__name__}); put a univariate one in a list or dict, "
            "and give Gaussian for a multivariate normal."
        )
    if callable(spec):
        name = getattr(spec, "__name__", "f")
        name = name if name.isidentifier() else "f"
        raise TypeError(
            f"prior is a function ({name}). For the prior_transform of a nested sampler, from the unit cube to the "
            f"parameters, write wsabi.Transform({name}, dim) with dim the number of parameters; for a log density "
            f"write wsabi.LogDensity({name}, reference)."
        )
    raise TypeError(
        "prior must be a dict or list of scipy.stats distributions and (low, high) pairs, a (D, 2) array of bounds, or "
        "a Gaussian, GaussianMixture, Uniform, Polynomial, Independent, Transform or LogDensity; got "
        f"{type(spec).__name__}."
    )


def _box(bounds: NDArray[Any]) -> Uniform:
    """The uniform prior of a (D, 2) array with one row (low, high) for each parameter."""
    if bounds.ndim != 2 or bounds.shape[1] != 2 or not len(bounds) or bounds.dtype.kind not in "iuf":
        raise ValueError(
            "a prior given as an array must have shape (D, 2) and hold real numbers, one row (low, high) for each "
            f"parameter; got shape {bounds.shape} and dtype {bounds.dtype}."
        )
    ends = bounds.astype(np.float64)
    with np.errstate(all="ignore"):
        bad = np.flatnonzero(~((ends[:, 0] < ends[:, 1]) & np.isfinite(ends[:, 1] - ends[:, 0])))
    if bad.size:
        low, high = ends[bad[0]]
        raise ValueError(f"prior[{bad[0]}] must be finite with low < high; got ({low}, {high}).")
    return Uniform(ends[:, 0], ends[:, 1])


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


def _checked_names(names: Sequence[str] | None, dim: int) -> tuple[str, ...]:
    """The names, if they are D different strings; x0, x1, ... where none are given."""
    if names is None:
        return tuple(f"x{d}" for d in range(dim))
    checked = tuple(names)
    if isinstance(names, str) or not all(isinstance(name, str) for name in checked):
        raise TypeError(f"names must be a list of strings, one per parameter; got {names!r}.")
    if len(checked) != dim or len(set(checked)) != dim:
        raise ValueError(f"names must be {dim} different strings, one per parameter; got {checked}.")
    return checked


def _specs_and_names(
    distributions: Mapping[str, object] | Sequence[object],
) -> tuple[tuple[object, ...], tuple[str, ...] | None]:
    """Entries of a list or dict of distributions, and the dict's names."""
    if not isinstance(distributions, Mapping | list | tuple):
        raise TypeError(f"distributions must be a list or a dict; got {type(distributions).__name__}.")
    if not distributions:
        raise ValueError("prior is empty: give at least one parameter.")
    if not isinstance(distributions, Mapping):
        return tuple(distributions), None
    for name in distributions:
        if not isinstance(name, str):
            raise TypeError(f"names of parameters must be strings; got {name!r} ({type(name).__name__}).")
    return tuple(distributions.values()), tuple(distributions)


def _evaluate(
    function: Callable[[Any], object], X: Array, shape: tuple[int, ...], argument: str,
    *, vectorized: bool, names: _Named | None = None,
) -> Array:  # fmt: skip
    """function(x_n), (N, *shape), given copies of the rows (a user's function may work in place), or dicts by name."""
    if vectorized:
        array = np.asarray(function(X.copy() if names is None else named_arguments(names, X)), dtype=np.float64)
        if array.shape != (len(X), *shape):
            raise ValueError(
                f"{argument} returned shape {array.shape} for {len(X)} points; expected {(len(X), *shape)}. "
                "With vectorized=True it is given all points at once, one per row."
            )
        return array
    out = np.empty((len(X), *shape))
    for n, row in enumerate(X):
        given = row.copy() if names is None else named_arguments(names, row)
        value = np.asarray(function(given), dtype=np.float64)
        if value.size != out[n].size or value.ndim > 1:  # a scalar and a (1,) array are the same thing here
            raise ValueError(f"{argument} returned shape {value.shape} for one point; expected {shape}.")
        out[n] = value.reshape(shape)
    return out
