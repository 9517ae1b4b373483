"""Priors π(x), and the way from the user's coordinates to a base space whose measure has closed forms.

gaussian, mixture, box, polynomial  the measures with closed forms
independent                         one distribution for each parameter, or for vectors of them
axes, distributions                 the map of one parameter, and the ``scipy.stats`` objects it is read from
transform, log_density              a map from the unit cube, and a density known point by point
prior, specification                whatever stands for a prior, as a prior
names, functions                    names of the parameters, and calls of the functions that define a prior
chart                               the map between base and user's coordinates
"""

from wsabi.priors.box import Uniform
from wsabi.priors.gaussian import Gaussian
from wsabi.priors.independent import Independent
from wsabi.priors.log_density import LogDensity
from wsabi.priors.measure import Bounded, Measure
from wsabi.priors.mixture import GaussianMixture
from wsabi.priors.polynomial import Polynomial
from wsabi.priors.prior import Prior, as_prior
from wsabi.priors.transform import Transform

__all__ = [
    "Bounded",
    "Gaussian",
    "GaussianMixture",
    "Independent",
    "LogDensity",
    "Measure",
    "Polynomial",
    "Prior",
    "Transform",
    "Uniform",
    "as_prior",
]
