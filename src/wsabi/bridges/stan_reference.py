"""A broad prior for the parameters of a Stan program, read off the bounds that it declares."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wsabi.bridges.stan_density import StanDensity

__all__ = ["reference_of"]

_FREE = 10.0  # scale of a parameter without bounds, in the unit of its multiplier, and degrees of freedom of its
_DEGREES = 4.0  # Student density: values of hundreds are some four sds away once it is mapped to a normal density
_LOG_SD = 3.0  # of log(θ − bound) where there is one bound: 95 % lie between 1/400 and 400
_FAR = 40.0  # of u: e⁻⁴⁰ is nothing beside one
_PROBE = 0.75  # of u, different from element to element, where a bound that depends on other parameters shows
_SAME = 1e-9


def reference_of(density: StanDensity) -> list[Any]:
    """A distribution for each element of θ: uniform between two bounds, log-normal beside one, Student's t without any.

    Parameters
    ----------
    density : in the coordinates of the parameters, as many as unconstrained ones.

    Raises
    ------
    ValueError
        If a parameter is not mapped by itself, or its bounds depend on others.
    """
    names = density.names
    dim = len(names)
    values = (density.constrained(np.full(dim, u)) for u in (0.0, 1.0, _FAR, -_FAR))
    axes = [_axis(*each) for each in zip(*values, strict=True)]
    probe = _PROBE * (1.0 + np.arange(dim) / dim)
    expected = np.array([_value(axis, u) for axis, u in zip(axes, probe, strict=True)])
    wrong = np.flatnonzero(~(np.abs(density.constrained(probe) - expected) <= _SAME * (1.0 + np.abs(expected))))
    if wrong.size:
        raise ValueError(
            f"the bounds of {names[wrong[0]]} are not two numbers: they depend on other parameters, or it is part of "
            "an ordered vector or the like. Give prior=, or unconstrained=True."
        )
    return [_distribution(*axis) for axis in axes]


Axis = tuple[str, float, float]  # "free": θ = a + bu; "one bound": θ = a + b exp(u); "two bounds": a and b


def _axis(centre: float, up: float, top: float, bottom: float) -> Axis:
    """What θ(u) is, from its values at 0, 1, 40 and −40."""
    if abs(top - centre - _FAR * (up - centre)) <= _SAME * abs(top - centre):
        return "free", centre, up - centre
    if abs(up - bottom - math.e * (centre - bottom)) <= _SAME * abs(up - bottom):
        return "one bound", bottom, centre - bottom
    return "two bounds", bottom, top


def _value(axis: Axis, u: float) -> float:
    """θ(u)."""
    kind, a, b = axis
    if kind == "free":
        return a + b * u
    return a + (b * math.exp(u) if kind == "one bound" else (b - a) / (1.0 + math.exp(-u)))


def _distribution(kind: str, a: float, b: float) -> Any:
    """The reference of one parameter."""
    from scipy import stats

    if kind == "free":
        return stats.t(_DEGREES, a, _FREE * abs(b))
    if kind == "two bounds":
        return (a, b)
    above = stats.lognorm(_LOG_SD, loc=a, scale=abs(b))
    return above if b > 0.0 else a - abs(b) * stats.exp(stats.Normal(mu=0.0, sigma=_LOG_SD))
