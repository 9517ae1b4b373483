"""What a user may give for one parameter: a (low, high) pair or a frozen ``scipy.stats`` distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import cast

import numpy as np

from wsabi.marginals import Axes, FrozenDistribution, LogAxes, NormalAxes, QuantileAxis, UniformAxes

__all__ = ["as_axis"]


def as_axis(spec: object, label: str) -> Axes:
    """The axis of a (low, high) pair or of a frozen continuous ``scipy.stats`` distribution.

    Parameters
    ----------
    spec : the pair or the distribution.
    label : what to call it in an error, such as "prior['tau']".

    Raises
    ------
    TypeError
        If it is neither: a number, a distribution not frozen, discrete or multivariate.
    ValueError
        If low ≥ high, or the distribution's parameters are not valid scalars.
    """
    if isinstance(spec, tuple | list):
        return _interval(spec, label)
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
        raise TypeError(f"{label} must be two numbers (low, high); got {pair!r}.")
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


def _parameters(frozen: FrozenDistribution, label: str) -> dict[str, float]:
    """Shape parameters, loc and scale of a frozen distribution by name."""
    shapes = frozen.dist.shapes  # such as "a, b", or None
    names = [*(name.strip() for name in shapes.split(",")), "loc", "scale"] if shapes else ["loc", "scale"]
    given = dict(zip(names, frozen.args, strict=False)) | frozen.kwds
    values = {"loc": 0.0, "scale": 1.0} | given
    if any(np.ndim(value) != 0 for value in values.values()):
        raise ValueError(f"{label} must be one distribution per parameter, with scalar parameters; got {values}.")
    return {name: float(value) for name, value in values.items()}
