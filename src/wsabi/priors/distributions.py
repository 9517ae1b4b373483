"""What a user may give for one parameter: a (low, high) pair or a ``scipy.stats`` distribution.

SciPy has two kinds of distribution objects: frozen ones, such as ``stats.norm(0, 1)``, and since version 1.15 random
variables, such as ``stats.Normal(mu=0, sigma=1)`` or ``2 * stats.Normal() + 1``. Both are taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from types import ModuleType
from typing import Any, cast

import numpy as np

from wsabi._core.types import Array
from wsabi.priors.axes import Axes, FrozenDistribution, LogAxes, NormalAxes, QuantileAxis, UniformAxes
from wsabi.priors.box import Uniform
from wsabi.priors.gaussian import Gaussian
from wsabi.priors.mixture import GaussianMixture

__all__ = ["RandomVariable", "as_axis", "is_distribution"]

_METHODS = ("icdf", "iccdf", "cdf", "ccdf", "logpdf", "support")  # of SciPy's random variables, under SciPy's names


@dataclass(frozen=True, eq=False)
class RandomVariable:
    """A continuous random variable of SciPy's newer kind, with the method names of a frozen distribution.

    Parameters
    ----------
    variable : such as ``stats.Normal(mu=0, sigma=1)``.
    """

    variable: Any

    def ppf(self, q: Array) -> Array:
        """Quantiles F⁻¹(q)."""
        return np.asarray(self.variable.icdf(q))

    def isf(self, q: Array) -> Array:
        """Quantiles (1 − F)⁻¹(q), from the upper tail."""
        try:
            return np.asarray(self.variable.iccdf(q))
        except TypeError:  # raised by SciPy 1.17 itself for some of make_distribution: the tail beyond 1e-16 is lost
            return np.asarray(self.variable.icdf(1.0 - q))

    def cdf(self, x: Array) -> Array:
        """F(x)."""
        return np.asarray(self.variable.cdf(x))

    def sf(self, x: Array) -> Array:
        """1 − F(x), with the digits of the upper tail."""
        return np.asarray(self.variable.ccdf(x))

    def logpdf(self, x: Array) -> Array:
        """Log density."""
        return np.asarray(self.variable.logpdf(x))

    def support(self) -> tuple[float, float]:
        """Bounds of the support."""
        low, high = self.variable.support()
        return float(low), float(high)


def is_distribution(spec: object) -> bool:
    """Whether this is an object of ``scipy.stats``, of any kind: univariate or not, frozen or not."""
    return hasattr(spec, "rvs") or _is_random_variable(spec)


def _is_random_variable(spec: object) -> bool:
    """Whether this is a random variable of SciPy's newer kind, or its class, by its methods: the base is private."""
    return all(hasattr(spec, method) for method in _METHODS)


def as_axis(spec: object, label: str) -> Axes:
    """The axis of a (low, high) pair or of a continuous ``scipy.stats`` distribution with scalar parameters.

    Parameters
    ----------
    spec : the pair, also as a (2,) array, or the distribution.
    label : what to call it in an error, such as "prior['tau']".

    Raises
    ------
    TypeError
        If it is neither: a number, a distribution not frozen, discrete or multivariate.
    ValueError
        If low ≥ high, or the distribution's parameters are not valid scalars.
    """
    if isinstance(spec, np.ndarray):
        spec = spec.tolist()
    if isinstance(spec, tuple | list):
        return _interval(spec, label)
    if isinstance(spec, Gaussian | GaussianMixture | Uniform):
        raise TypeError(
            f"{label} is a {type(spec).__name__} of {spec.dim} parameters, which need a name: write "
            f'wsabi.Independent(beta={type(spec).__name__}(...), ...), or a dict {{"beta": ...}} for a likelihood that '
            "takes a dict."
        )
    if _is_random_variable(spec):
        return _from_random_variable(spec, label)
    from scipy import stats

    if isinstance(spec, stats.rv_continuous):
        raise TypeError(f"{label} is scipy.stats.{spec.name} itself; freeze it: stats.{spec.name}(..., loc, scale).")
    family = getattr(spec, "dist", spec)
    if isinstance(family, stats.rv_discrete):
        raise TypeError(f"{label} is discrete ({family.name}); parameters must be continuous.")
    if isinstance(family, stats.rv_continuous):
        return _from_scipy(cast("FrozenDistribution", spec), label)
    if hasattr(spec, "rvs"):
        raise TypeError(
            f"{label} is {type(spec).__name__}, not a frozen univariate scipy.stats distribution; for dependent "
            "parameters give Gaussian, GaussianMixture, Transform or LogDensity as the whole prior."
        )
    raise TypeError(
        f"{label} must be a frozen scipy.stats distribution or a (low, high) pair; got {type(spec).__name__} {spec!r}."
    )


def _interval(pair: Sequence[object], label: str) -> UniformAxes:
    """Uniform on (low, high)."""
    if len(pair) != 2 or not all(isinstance(end, Real) and not isinstance(end, bool) for end in pair):
        vector = any(is_distribution(entry) or isinstance(entry, tuple | list) for entry in pair)
        cure = " A vector of distributions needs a name: give the prior as a dict." if vector else ""
        raise TypeError(f"{label} must be two numbers (low, high); got {pair!r}.{cure}")
    low, high = (float(cast("Real", end)) for end in pair)
    if not (low < high and math.isfinite(high - low)):
        raise ValueError(f"{label} must be finite with low < high; got ({low}, {high}).")
    return UniformAxes(np.array([low]), np.array([high]))


def _from_scipy(frozen: FrozenDistribution, label: str) -> Axes:
    """Axis of a frozen continuous distribution, by its direct formula where one is known."""
    from scipy import stats

    values = _parameters(frozen, label)
    loc, scale, low, high = (np.array([float(v)]) for v in (values["loc"], values["scale"], *frozen.support()))
    # The support of a distribution whose parameters are not valid is (nan, nan), which is not low < high either.
    with np.errstate(all="ignore"):
        median = frozen.ppf(np.array([0.5]))
    if not np.all([low < high, np.isfinite(loc), np.isfinite(scale), np.isfinite(median)]):
        raise ValueError(f"{label} has parameters for which the distribution does not exist: {values}.")
    family = type(frozen.dist)
    if family is type(stats.norm):
        return NormalAxes(loc, scale)
    if family is type(stats.uniform):
        return UniformAxes(low, high)
    if family is type(stats.lognorm):  # log(x − loc) ~ N(log scale, s²)
        return LogAxes(loc, NormalAxes(np.log(scale), np.array([values["s"]])), low, high)
    if family is type(stats.loguniform):  # log(x − loc) uniform between log(a·scale) and log(b·scale)
        return LogAxes(loc, UniformAxes(np.log(values["a"] * scale), np.log(values["b"] * scale)), low, high)
    return QuantileAxis(frozen, low, high)


def _from_random_variable(variable: Any, label: str) -> Axes:
    """Axis of a random variable of SciPy's newer kind, by its direct formula where one is known."""
    from scipy import stats

    if isinstance(variable, type):
        name = variable.__name__
        raise TypeError(f"{label} is the class {name} itself; give it parameters, such as {name}(...).")
    with np.errstate(all="ignore"):
        low, high = (np.asarray(end, dtype=np.float64) for end in variable.support())
        median = np.asarray(variable.icdf(0.5), dtype=np.float64)
        if low.ndim or high.ndim or median.ndim:
            raise ValueError(
                f"{label} must be one distribution per parameter, with scalar parameters; got {variable} of shape "
                f"{median.shape}. Give a list with one distribution for each."
            )
        # Parameters that are not valid give NaN.
        if not (low < high and np.isfinite(median)):
            raise ValueError(f"{label} has parameters for which the distribution does not exist: {variable}.")
        # The log density of a discrete variable is +inf at all of its values, of a continuous one at most at a few.
        if np.all(variable.logpdf(variable.icdf(np.array([0.25, 0.5, 0.75]))) == np.inf):
            raise TypeError(f"{label} is discrete ({variable}); parameters must be continuous.")
    if _is_exactly(variable, stats, "Normal", "StandardNormal") and _are_numbers(variable, "mu", "sigma"):
        return NormalAxes(np.array([float(variable.mu)]), np.array([float(variable.sigma)]))
    low, high = low.reshape(1), high.reshape(1)
    if _is_exactly(variable, stats, "Uniform"):
        return UniformAxes(low, high)
    return QuantileAxis(RandomVariable(variable), low, high)


def _is_exactly(variable: object, stats: ModuleType, *names: str) -> bool:
    """Whether the class is one of those of SciPy with these names; a class derived from it may differ in anything."""
    kind = type(variable)
    return kind.__name__ in names and kind.__module__.split(".")[:2] == stats.__name__.split(".")[:2]


def _are_numbers(variable: object, *names: str) -> bool:
    """Whether the object has these attributes, and each is one finite number."""
    values = [getattr(variable, name, None) for name in names]
    return all(isinstance(value, Real) and math.isfinite(value) for value in values)


def _parameters(frozen: FrozenDistribution, label: str) -> dict[str, float]:
    """Shape parameters, loc and scale of a frozen distribution by name."""
    shapes = frozen.dist.shapes  # such as "a, b", or None
    names = [*(name.strip() for name in shapes.split(",")), "loc", "scale"] if shapes else ["loc", "scale"]
    given = dict(zip(names, frozen.args, strict=False)) | frozen.kwds
    values = {"loc": 0.0, "scale": 1.0} | given
    if any(np.ndim(value) != 0 for value in values.values()):
        raise ValueError(f"{label} must be one distribution per parameter, with scalar parameters; got {values}.")
    return {name: float(value) for name, value in values.items()}
