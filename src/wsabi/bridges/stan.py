"""A Stan program with its data as a model, by BridgeStan: ``wsabi.from_stan``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from wsabi._core.types import Array
from wsabi.bridges.extras import needed
from wsabi.bridges.points import row_of
from wsabi.bridges.stan_density import StanDensity
from wsabi.bridges.stan_reference import reference_of
from wsabi.model import Model
from wsabi.priors import Independent, LogDensity, Prior, Transform, as_prior
from wsabi.priors.names import groups_of

__all__ = ["StanLikelihood", "from_stan"]

_USER = "wsabi.from_stan"
_WIDE = 10.0  # sd of the reference in unconstrained coordinates
_STEP = 1e-6  # of a difference of log π, as a fraction of the parameter,
_LEAST = 1e-4  # which counts as no smaller than this

Variables = dict[str, int]  # name -> number of elements, in the order of the program


@dataclass(frozen=True)
class StanLikelihood:
    """log ℓ(θ) = log p(θ) − log π(θ), where p is what the program computes and π is the prior of the run.

    Parameters
    ----------
    density : log p.
    less : log π, of points (N, D) or by the program without data; None where the program has no prior in it.
    """

    density: StanDensity
    less: Prior | StanDensity | None

    def __call__(self, p: Any) -> float:
        """log ℓ at a point (D,), or at a dict of the names in the order of the program."""
        x = row_of(p)
        value = self.density(x)
        if self.less is None or value == -np.inf:
            return value
        below = self.less(x) if isinstance(self.less, StanDensity) else float(self.less.log_pdf(x[None])[0])
        return value - below if below > -np.inf else -np.inf

    def gradient(self, p: Any) -> Array:
        """∇ log ℓ, (D,)."""
        x = row_of(p)
        slope = self.density.gradient(x)
        if self.less is None:
            return slope
        return slope - (self.less.gradient(x) if isinstance(self.less, StanDensity) else _slope(self.less, x))


def from_stan(
    program: Any,
    data: Any = None,
    prior: Any = None,
    *,
    prior_data: Any = None,
    likelihood_only: bool = False,
    unconstrained: bool = False,
) -> Model:
    """The model of a Stan program with its data, compiled by BridgeStan, with Stan's gradient.

    A Stan program computes log p(y, θ), prior and likelihood in one. What log Z is does not depend on how they are
    taken apart, Z = ∫ p(y, θ) dθ = ∫ [p(y, θ)/π(θ)] π(θ) dθ for any density π that is positive where p is.

    Parameters
    ----------
    program : path of a .stan file or of a library that BridgeStan has compiled; or a ``bridgestan.StanModel``, which
        has its data.
    data : a dict, a path of a JSON file, or JSON.
    prior : π, as :func:`wsabi.integrate` takes it, of the parameters of the program: a dict of its names, or in its
        order. Give the priors that the program has; the search is then over what they allow. None is read off the
        declared bounds: uniform between two, log-normal with an sd of 3 beside one, Student's t with four degrees of
        freedom and a scale of 10 without any.
    prior_data : data without observations, such as N = 0, under which the program computes its prior alone. Then
        log ℓ = log p(y | θ) and π is the program's own prior, and a warning says if that is not normalised.
    likelihood_only : whether the program has no prior in it, and ``prior`` is the whole of it.
    unconstrained : whether the parameters are Stan's unconstrained ones, with the Jacobian in the density; for
        simplexes and other types whose elements are not free. ``prior`` is then π in these, by default N(0, 10²).

    Raises
    ------
    RuntimeError
        If the program does not compile.
    ValueError
        If the parameters have no density of their own (simplexes), or ``prior`` is not one of them.

    Notes
    -----
    Log Z is that of the density as it is written. Stan does not normalise what it truncates: ``sigma ~ normal(0, 1)``
    for a ``real<lower=0> sigma`` is half of a density, which makes log Z too low by log 2; write
    ``target += log(2)`` beside it, or ``normal(0, 1) T[0, ]``. A parameter without any prior statement has an improper
    prior, and log Z is then meaningless. ``prior_data=`` finds the first, and the second where it shows. Points that
    the program rejects count as zero likelihood. Several threads at a time need a program compiled with
    ``STAN_THREADS``.

    Examples
    --------
        model = wsabi.from_stan("line.stan", {"N": 3, "t": [0, 1, 2], "y": [1.1, 2.9, 5.2]})
        result = wsabi.integrate(model)
    """
    if likelihood_only and prior is None:
        raise ValueError("likelihood_only: the program has no prior, so prior must be given.")
    if likelihood_only and prior_data is not None:
        raise ValueError("prior_data is for a program that has its prior: leave out likelihood_only.")
    library, data = _compiled(program, data)
    density = StanDensity(library, data, unconstrained=unconstrained)
    variables = _variables(density)
    base = _reference(density, variables) if prior is None else _checked(prior, variables)
    if prior_data is not None:
        alone = StanDensity(library, prior_data, unconstrained=unconstrained)
        likelihood = StanLikelihood(density, alone)
        return Model(likelihood, LogDensity(alone, base), likelihood.gradient)
    likelihood = StanLikelihood(density, None if likelihood_only else base)
    return Model(likelihood, base, likelihood.gradient)


def _compiled(program: Any, data: Any) -> tuple[str, Any]:
    """The path of the library, and the data."""
    bridgestan = needed("bridgestan", "stan", _USER)
    if isinstance(program, bridgestan.StanModel):
        if data is not None:
            raise TypeError("data: a StanModel has its own; leave it out.")
        return str(program.lib_path), program.data
    path = os.fspath(program)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no Stan program {path!r}: give the path of a .stan file.")
    if not path.endswith(".stan"):
        return path, data
    try:
        return str(bridgestan.compile_model(path)), data
    except (RuntimeError, OSError, ValueError) as error:
        raise RuntimeError(
            f"BridgeStan does not compile {path}: {error}\nIt needs make, a C++ compiler and its own sources, which it "
            "downloads at first use, or finds in the folder that the environment variable BRIDGESTAN names."
        ) from error


def _variables(density: StanDensity) -> Variables:
    """Names and sizes of the parameters.

    Raises
    ------
    ValueError
        If their elements are not free.
    """
    names = density.names
    if not density.unconstrained and len(names) != density.model.param_unc_num():
        raise ValueError(
            f"the parameters {', '.join(_sizes(names))} have {len(names)} elements of which only "
            f"{density.model.param_unc_num()} are free, as those of a simplex or of a correlation matrix: they have no "
            "density of their own. Give unconstrained=True."
        )
    return _sizes(names)


def _sizes(names: list[str]) -> Variables:
    return {base: len(list(group)) for base, group in groupby(names, key=lambda name: re.split("[.:]", name)[0])}


def _reference(density: StanDensity, variables: Variables) -> Prior:
    """The prior where none is given."""
    from scipy import stats

    names = density.names
    each = [stats.norm(0.0, _WIDE)] * len(names) if density.unconstrained else reference_of(density)
    entries: dict[str, Any] = {}
    for name, size in variables.items():
        entries[name] = each[:size] if name not in names else each[0]
        each = each[size:]
    return Independent(entries)


def _checked(given: Any, variables: Variables) -> Prior:
    """The prior with its parameters in the order of the program."""
    if isinstance(given, Mapping) and set(given) == set(variables):
        given = {name: given[name] for name in variables}
    prior: Prior = as_prior(given)
    if isinstance(prior, Transform):
        raise TypeError("prior must have a density, by which that of the program is divided; a Transform has none.")
    wanted = ", ".join(f"{name} ({size})" if size > 1 else name for name, size in variables.items())
    if len(prior.names) != sum(variables.values()):
        raise ValueError(f"prior has {len(prior.names)} parameters; the program has {wanted}.")
    if getattr(prior, "keyed", False):
        sizes = {name: where.stop - where.start if isinstance(where, slice) else 1 for name, where in groups_of(prior)}
        if list(sizes.items()) != list(variables.items()):
            raise ValueError(f"prior is of {', '.join(sizes)}; the program has, in this order, {wanted}.")
    return prior


def _slope(prior: Prior, x: Array) -> Array:
    """∇ log π at x (D,) by central differences, one-sided at the edge of the support, (D,)."""
    steps = _STEP * np.maximum(np.abs(x), _LEAST)
    values = prior.log_pdf(np.vstack([x, x + np.diag(steps), x - np.diag(steps)]))
    here, (ahead, behind) = values[0], np.split(values[1:], 2)
    n_steps = np.isfinite(ahead).astype(np.float64) + np.isfinite(behind)
    rise = np.where(np.isfinite(ahead), ahead, here) - np.where(np.isfinite(behind), behind, here)
    return np.asarray(rise / (steps * np.maximum(n_steps, 1.0)))
