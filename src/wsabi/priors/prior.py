"""Priors as the user gives them: everything :func:`as_prior` accepts.

A dict or a list of one-dimensional distributions becomes :class:`Independent`; :class:`Transform` is the unit-cube
transform of nested samplers; :class:`LogDensity` is any other density, by importance re-weighting. How each is carried
to a base space with a closed-form measure is the business of :mod:`wsabi.priors.chart`.
"""

from __future__ import annotations

from wsabi.priors.independent import Independent
from wsabi.priors.log_density import LogDensity
from wsabi.priors.measure import Measure
from wsabi.priors.specification import as_density
from wsabi.priors.transform import Transform

__all__ = ["Prior", "as_prior"]

Prior = Measure | Independent | Transform | LogDensity


def as_prior(spec: object) -> Prior:
    """The prior that ``spec`` stands for.

    Parameters
    ----------
    spec : a prior object, returned as it is; a dict or list of frozen ``scipy.stats`` distributions and (low, high)
        pairs, which becomes :class:`Independent` (with a dict, the likelihood receives a dict of the same names); a
        (D, 2) array of bounds, which becomes :class:`Uniform`.

    Raises
    ------
    TypeError, ValueError
        If it stands for none, with the entry at fault.
    """
    return spec if isinstance(spec, Transform | LogDensity) else as_density(spec)
