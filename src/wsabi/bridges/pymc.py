"""A model of PyMC, its prior and likelihood taken apart: ``wsabi.from_pymc``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wsabi._core.types import Array
from wsabi.bridges.extras import needed
from wsabi.bridges.points import floored, model_with
from wsabi.bridges.pymc_prior import Densities, Variable, prior_of, variables_of
from wsabi.model import Model

__all__ = ["PyMCLikelihood", "from_pymc"]


class PyMCLikelihood:
    """log ℓ of the observed variables of a PyMC model and its gradient, compiled by PyTensor when they are first used.

    Parameters
    ----------
    variables : the free variables, in the order in which a point (D,) has them.
    values : variables of PyTensor that stand for their values.
    graph : log ℓ, of these.
    """

    def __init__(self, variables: Sequence[Variable], values: Sequence[Any], graph: Any) -> None:
        self.variables, self.values, self.graph = tuple(variables), list(values), graph
        self._compiled: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_compiled": {}}

    def __call__(self, p: Any) -> float:
        """log ℓ at a point (D,), or at a dict of the names."""
        return floored(float(self._function("value")(*self._arguments(p))))

    def gradient(self, p: Any) -> Any:
        """∇ log ℓ, (D,)."""
        parts = self._function("gradient")(*self._arguments(p))
        return np.concatenate([np.ravel(part) for part in parts])

    def _arguments(self, p: Any) -> list[Array]:
        """The values of the variables, each in its shape."""
        if isinstance(p, Mapping):
            return [np.reshape(p[one.name], one.shape) for one in self.variables]
        ends = np.cumsum([one.size for one in self.variables])[:-1]
        parts = zip(np.split(np.asarray(p, dtype=np.float64), ends), self.variables, strict=True)
        return [part.reshape(one.shape) for part, one in parts]

    def _function(self, what: str) -> Any:
        if what not in self._compiled:
            graph = self.graph if what == "value" else self.gradient_graph
            # PyMC's own way to compile turns the checks of parameters into a log density of −inf.
            home = needed("pymc.pytensorf", "pymc", "wsabi.from_pymc")
            compiler = home.compile if hasattr(home, "compile") else home.compile_pymc  # the name before PyMC 5.18
            self._compiled[what] = compiler(self.values, graph, on_unused_input="ignore")
        return self._compiled[what]

    @property
    def gradient_graph(self) -> Any:
        """∂ log ℓ of each variable, as PyTensor variables."""
        tensor = needed("pytensor.tensor", "pymc", "wsabi.from_pymc")
        return tensor.grad(self.graph, self.values, disconnected_inputs="ignore")

    @property
    def has_gradient(self) -> bool:
        """Whether PyTensor can differentiate it: an ``Op`` written by hand may have no gradient."""
        gradient = needed("pytensor.gradient", "pymc", "wsabi.from_pymc")
        try:
            return self.gradient_graph is not None
        except (NotImplementedError, gradient.NullTypeGradError):
            return False


def from_pymc(model: Any = None) -> Model:
    """The model of a ``pymc.Model``: the prior of its free variables, the likelihood of its observed ones.

    Parameters
    ----------
    model : the PyMC model; None is the one of the ``with`` block. Distributions of one number, vectors and arrays of
        them, and ``MvNormal`` with constant parameters become an ``Independent`` prior in the coordinates of the model,
        without the transforms that PyMC samples in; the gradient comes from PyTensor. Where a prior depends on other
        parameters, as in a hierarchical model, the whole prior becomes a ``Transform`` from the unit cube, variable by
        variable; there is no gradient then.

    Raises
    ------
    ValueError
        If prior and likelihood cannot be taken apart: potentials, improper priors, discrete parameters, distributions
        without a counterpart, transforms that cut the prior. The message says what to write in its place.

    Notes
    -----
    An array of a shape such as (2, 3) becomes a vector of its elements, the last index first.

    Examples
    --------
        with pymc.Model() as line:
            slope = pymc.Normal("slope", 0, 10)
            sigma = pymc.HalfNormal("sigma", 5)
            pymc.Normal("y", slope * x, sigma, observed=y)
        result = wsabi.integrate(wsabi.from_pymc(line))
    """
    pymc = needed("pymc", "pymc", "wsabi.from_pymc")
    model = pymc.modelcontext(model)
    if not isinstance(model, pymc.Model):
        raise TypeError(f"model must be a pymc.Model; got {type(model).__name__}.")
    if model.potentials:
        names = ", ".join(one.name for one in model.potentials)
        raise ValueError(
            f"the model has a Potential ({names}), which is neither prior nor likelihood. Write what belongs to the "
            'likelihood as pymc.CustomDist("name", ..., logp=..., observed=data), and what belongs to the prior as a '
            "distribution."
        )
    if not model.observed_RVs:
        raise ValueError("the model has no observed variable, so it has no likelihood: give observed= to one.")
    variables = variables_of(model)
    densities = Densities.of(model)
    likelihood = PyMCLikelihood(variables, densities.values, densities.log_likelihood)
    grad = likelihood.gradient if likelihood.has_gradient else None
    return model_with(likelihood, prior_of(model, variables, densities), grad)
