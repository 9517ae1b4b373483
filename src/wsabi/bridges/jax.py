"""A log-likelihood written in JAX, with its gradient: ``wsabi.from_jax``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wsabi.bridges.extras import needed
from wsabi.bridges.points import floored, model_with
from wsabi.model import Model

__all__ = ["JaxLikelihood", "from_jax"]


class JaxLikelihood:
    """log ℓ and ∇ log ℓ, compiled, in double precision whatever JAX's own setting is.

    Parameters
    ----------
    function : log ℓ, a function of one point that JAX can trace.

    Notes
    -----
    Arrays that the function closes over keep the precision in which they were made: a data set that JAX holds in single
    precision leaves noise of 1e-7 in log ℓ. Keep data in NumPy arrays.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self._jax = needed("jax", "jax", "wsabi.from_jax")
        self._value, self._gradient = self._jax.jit(function), self._jax.jit(self._jax.grad(function))

    def __reduce__(self) -> Any:
        return JaxLikelihood, (self.function,)

    def _call(self, compiled: Callable[..., Any], p: Any) -> Any:
        # jax.experimental.enable_x64 has become jax.enable_x64.
        home = self._jax if hasattr(self._jax, "enable_x64") else needed("jax.experimental", "jax", "wsabi.from_jax")
        with home.enable_x64(True):
            if isinstance(p, dict):
                return compiled({name: np.asarray(value, dtype=np.float64) for name, value in p.items()})
            return compiled(np.asarray(p, dtype=np.float64))

    def __call__(self, p: Any) -> float:
        """log ℓ at a point (D,), or at a dict of the names where the prior is a dict."""
        value = np.asarray(self._call(self._value, p))
        if value.shape != ():
            raise ValueError(f"a JAX log-likelihood must return one number, of shape (); got shape {value.shape}.")
        return floored(float(value))

    def gradient(self, p: Any) -> Any:
        """∇ log ℓ, (D,), or a dict of the names."""
        found = self._call(self._gradient, p)
        return {name: np.asarray(value) for name, value in found.items()} if isinstance(p, dict) else np.asarray(found)


def from_jax(log_likelihood: Callable[..., Any], prior: Any) -> Model:
    """The model of a log-likelihood in JAX: compiled, in float64, with its gradient by ``jax.grad``.

    Parameters
    ----------
    log_likelihood : log ℓ of one point (D,), or of a dict of the names where ``prior`` is a dict; a function that
        ``jax.jit`` and ``jax.grad`` take.
    prior : as :func:`wsabi.integrate` takes it. With a ``Transform`` the gradient is of no use and left out.

    Examples
    --------
        model = wsabi.from_jax(lambda x: -0.5 * jnp.sum(x**2), [(-8.0, 8.0), (-8.0, 8.0)])
        result = wsabi.integrate(model)
    """
    if not callable(log_likelihood):
        raise TypeError(f"log_likelihood must be a function; got {type(log_likelihood).__name__}.")
    likelihood = JaxLikelihood(log_likelihood)
    return model_with(likelihood, prior, likelihood.gradient)
