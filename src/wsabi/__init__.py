"""wsabi: the evidence Z = ∫ ℓ(x) π(x) dx by warped sequential active Bayesian integration."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from wsabi.errors import EvidenceWarning, JournalError, LikelihoodError, NoMassFound, NumericalError, WorkersLost
from wsabi.integrate import integrate
from wsabi.load import load

if TYPE_CHECKING:
    from wsabi.bridges.bilby import from_bilby
    from wsabi.bridges.jax import from_jax
    from wsabi.bridges.prior_transform import from_prior_transform
    from wsabi.bridges.pymc import from_pymc
    from wsabi.bridges.sklearn import from_sklearn_gp
    from wsabi.bridges.stan import from_stan
    from wsabi.bridges.umbridge import from_umbridge
    from wsabi.comparison import Comparison, compare
    from wsabi.gp.kernel import SquaredExponential
    from wsabi.integrator import Integrator
    from wsabi.model import Model
    from wsabi.posterior.posterior import Posterior
    from wsabi.priors import Gaussian, GaussianMixture, Independent, LogDensity, Polynomial, Transform, Uniform
    from wsabi.result import Result
    from wsabi.settings import Settings

__version__ = "0.2.0"
__all__ = [
    "Comparison",
    "EvidenceWarning",
    "Gaussian",
    "GaussianMixture",
    "Independent",
    "Integrator",
    "JournalError",
    "LikelihoodError",
    "LogDensity",
    "Model",
    "NoMassFound",
    "NumericalError",
    "Polynomial",
    "Posterior",
    "Result",
    "Settings",
    "SquaredExponential",
    "Transform",
    "Uniform",
    "WorkersLost",
    "__version__",
    "compare",
    "from_bilby",
    "from_jax",
    "from_prior_transform",
    "from_pymc",
    "from_sklearn_gp",
    "from_stan",
    "from_umbridge",
    "integrate",
    "load",
]

# The modules of the names that are loaded when they are first used. `import wsabi` loads neither the engine nor NumPy.
_HOMES = {
    "Comparison": "comparison",
    "Gaussian": "priors",
    "GaussianMixture": "priors",
    "Independent": "priors",
    "Integrator": "integrator",
    "LogDensity": "priors",
    "Model": "model",
    "Polynomial": "priors",
    "Posterior": "posterior.posterior",
    "Result": "result",
    "Settings": "settings",
    "SquaredExponential": "gp.kernel",
    "Transform": "priors",
    "Uniform": "priors",
    "compare": "comparison",
    "from_bilby": "bridges.bilby",
    "from_jax": "bridges.jax",
    "from_prior_transform": "bridges.prior_transform",
    "from_pymc": "bridges.pymc",
    "from_sklearn_gp": "bridges.sklearn",
    "from_stan": "bridges.stan",
    "from_umbridge": "bridges.umbridge",
}


def __getattr__(name: str) -> Any:
    """A name that is loaded on its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All names, loaded or not."""
    return sorted({*globals(), *_HOMES})
