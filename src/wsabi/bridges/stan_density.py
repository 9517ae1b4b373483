"""The density that a Stan program computes, in the coordinates of its parameters or in Stan's unconstrained ones."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from wsabi._core.types import Array
from wsabi.bridges.extras import needed
from wsabi.bridges.points import floored, row_of

__all__ = ["StanDensity"]

_log = logging.getLogger(__name__)
_STEP = 6e-6  # of max(1, |u|), for central differences of θ(u): ε^⅓, whose relative error is about 1e-10


class StanDensity:
    """log p(θ), with all constants that the program has, of a compiled program with data.

    log p_u(u) = log p(θ(u)) + log |∂θ/∂u| in unconstrained coordinates u

    Parameters
    ----------
    library : path of the compiled program.
    data : as BridgeStan takes it.
    unconstrained : whether points are u instead of θ.
    """

    def __init__(self, library: str, data: Any, *, unconstrained: bool) -> None:
        self.library, self.data, self.unconstrained = library, data, unconstrained

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("library", "data", "unconstrained")}

    @cached_property
    def model(self) -> Any:
        """The ``bridgestan.StanModel``."""
        bridgestan = needed("bridgestan", "stan", "wsabi.from_stan")
        data = self.data
        if isinstance(data, Mapping):  # BridgeStan before 2.7 takes text only
            data = json.dumps(dict(data), default=lambda value: np.asarray(value).tolist())
        return bridgestan.StanModel(self.library, data, warn=False)

    @property
    def names(self) -> list[str]:
        """Names of the elements: "a", "b.1", "b.2"."""
        return list(self.model.param_unc_names() if self.unconstrained else self.model.param_names())

    def __call__(self, p: Any) -> float:
        """log p at (D,), or at a dict of the names; −inf where it breaks a constraint or the program rejects it."""
        try:
            return floored(self.model.log_density(self._u(row_of(p)), propto=False, jacobian=self.unconstrained))
        except RuntimeError as error:
            self._say_once(error)
            return -np.inf

    def gradient(self, x: Array) -> Array:
        """∇ log p, (D,): ∇_θ = (∂θ/∂u)⁻ᵀ ∇_u."""
        u = self._u(x)
        slope = np.array(self.model.log_density_gradient(u, propto=False, jacobian=self.unconstrained)[1])
        return slope if self.unconstrained else np.linalg.solve(self._jacobian(u).T, slope)

    def constrained(self, u: Array) -> Array:
        """θ(u), (D,)."""
        return np.asarray(self.model.param_constrain(np.ascontiguousarray(u)))

    def _u(self, x: Array) -> Array:
        x = np.ascontiguousarray(x)
        return x if self.unconstrained else np.asarray(self.model.param_unconstrain(x))

    def _jacobian(self, u: Array) -> Array:
        """∂θ_i/∂u_j, (D, D)."""
        sizes = _STEP * np.maximum(1.0, np.abs(u))
        rises = [self.constrained(u + step) - self.constrained(u - step) for step in np.diag(sizes)]
        return np.column_stack(rises) / (2.0 * sizes)

    def _say_once(self, error: RuntimeError) -> None:
        """Say why the first point was rejected: Stan's algorithms go on without it, and so does a run."""
        if not self.__dict__.get("_said", False):
            self._said = True
            _log.warning("Stan rejects a point, which counts as zero likelihood; the reason is: %s", error)
