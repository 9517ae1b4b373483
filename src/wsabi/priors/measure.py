"""The measures π for which the closed forms of :mod:`wsabi.quadrature.embeddings` exist.

Each is frozen, knows its density and gradient in log space, its moments, and how to draw from itself. They serve both
as priors given by the user and, in standardised coordinates, as the measure of an integral.
"""

from wsabi.priors.box import Uniform
from wsabi.priors.gaussian import Gaussian
from wsabi.priors.mixture import GaussianMixture
from wsabi.priors.polynomial import Polynomial

__all__ = ["Bounded", "Measure"]

Bounded = Uniform | Polynomial  # inside a box, zero outside it
Measure = Gaussian | GaussianMixture | Bounded
