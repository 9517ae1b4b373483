"""Points as a bridge receives them, and the model that it makes of its functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from wsabi._core.types import Array
from wsabi.model import Model
from wsabi.priors import Transform, as_prior

__all__ = ["floored", "model_with", "row_of"]

_FLOOR = -1e100  # of log ℓ: below it a gradient overflows where the value does not


def row_of(p: Any) -> Array:
    """The point (D,) behind what a likelihood receives: the array itself, or the values of a dict, in its order."""
    if isinstance(p, Mapping):
        return np.concatenate([np.ravel(np.asarray(value, dtype=np.float64)) for value in p.values()])
    return np.asarray(p, dtype=np.float64)


def model_with(log_likelihood: Callable[..., Any], prior: Any, grad: Callable[..., Any] | None) -> Model:
    """The model with that gradient, but for a ``Transform``, which mixes the parameters and has no use for it."""
    prior = as_prior(prior)
    return Model(log_likelihood, prior, None if isinstance(prior, Transform) else grad)


def floored(log_l: float) -> float:
    """log ℓ, or −inf where it is so low that its gradient would not be finite."""
    return -math.inf if log_l < _FLOOR else log_l
