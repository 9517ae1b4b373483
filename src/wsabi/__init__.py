"""wsabi: the evidence Z = ∫ ℓ(x) π(x) dx by warped sequential active Bayesian integration."""

from wsabi.kernels import SquaredExponential
from wsabi.measures import Gaussian, GaussianMixture, Uniform

__version__ = "0.1.0"
__all__ = ["Gaussian", "GaussianMixture", "SquaredExponential", "Uniform", "__version__"]
