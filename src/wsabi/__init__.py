"""wsabi: the evidence Z = ∫ ℓ(x) π(x) dx by warped sequential active Bayesian integration."""

from wsabi.comparison import Comparison, compare
from wsabi.errors import EvidenceWarning, JournalError, LikelihoodError, NoMassFound, NumericalError, WorkersLost
from wsabi.gp.kernel import SquaredExponential
from wsabi.integrate import integrate
from wsabi.integrator import Integrator
from wsabi.load import load
from wsabi.model import Model
from wsabi.posterior.posterior import Posterior
from wsabi.priors import Gaussian, GaussianMixture, Independent, LogDensity, Polynomial, Transform, Uniform
from wsabi.result import Result
from wsabi.settings import Settings

__version__ = "0.1.0"
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
    "integrate",
    "load",
]
