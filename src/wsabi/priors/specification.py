"""What a dict, a list or an array of bounds stands for as a prior."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wsabi.priors.box import Uniform
from wsabi.priors.distributions import is_distribution
from wsabi.priors.independent import Independent
from wsabi.priors.measure import Measure

__all__ = ["as_density"]


def as_density(spec: object) -> Measure | Independent:
    """The prior with a known density that ``spec`` stands for; see :func:`wsabi.priors.as_prior`."""
    if isinstance(spec, Measure | Independent):
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
