"""The prior of a PyMC model in the parameters' own coordinates: independent, or each variable given others.

p(x) = ∏_k p(x_k | parents of x_k). Where no variable has parents the prior is ``Independent``; otherwise it is the map
x_k = F_k⁻¹(c_k | parents), c uniform on the unit cube, in the order in which the variables depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from wsabi._core.types import Array
from wsabi.bridges.extras import needed
from wsabi.bridges.families import FAMILIES, distribution
from wsabi.priors import Gaussian, Independent, Transform

__all__ = ["Conditionals", "Densities", "Variable", "prior_of", "variables_of"]

_USER = "wsabi.from_pymc"
_NORMAL_VECTOR = "MvNormalRV"
_PROBES = 64  # draws at which densities and transforms are compared with PyMC's: all of K = 2 are ordered once in 2⁶⁴
_SAME_DENSITY = 1e-5  # relative: PyTensor holds constants such as 1/3 in single precision


@dataclass(frozen=True)
class ByRows:
    """The parameters of a distribution from values of the parents, with N in front of both.

    Parameters
    ----------
    compute : the function of PyTensor.
    ranks : of the parameters for a single set of values.
    """

    compute: Callable[..., list[Any]]
    ranks: tuple[int, ...]

    def __call__(self, *parents: Array) -> list[Array]:
        """Each parameter, (N, ...), or (1, ...) where it is constant."""
        found = [np.asarray(one, dtype=np.float64) for one in self.compute(*parents)]
        return [one if one.ndim > rank else one[None] for one, rank in zip(found, self.ranks, strict=True)]


@dataclass(frozen=True)
class Variable:
    """A free variable of a model.

    Attributes
    ----------
    name, shape : as in the model.
    family : the name of its distribution's class, such as "NormalRV".
    parents : names of the free variables on which its parameters depend.
    parameters : from the values of the parents, each (N, ...), to the parameters of the distribution, each (N, ...) or,
        where it is constant, (1, ...).
    """

    name: str
    shape: tuple[int, ...]
    family: str
    parents: tuple[str, ...]
    parameters: ByRows

    @property
    def size(self) -> int:
        """The number of its elements."""
        return math.prod(self.shape)

    @property
    def elements(self) -> list[str]:
        """Their names: tau, or theta[0], theta[1], or w[0,0], w[0,1], ..."""
        indices = product(*(range(end) for end in self.shape))
        return [f"{self.name}[{','.join(map(str, index))}]" if index else self.name for index in indices]

    def given(self, *parents: Array) -> list[Array]:
        """The parameters of one number's distribution, (N or 1, ...), so that they broadcast against (N, *shape)."""
        rank = 1 + len(self.shape)
        return [a.reshape(a.shape[0], *(1,) * (rank - a.ndim), *a.shape[1:]) for a in self.parameters(*parents)]

    def quantile(self, C: Array, *parents: Array) -> Array:
        """x with x_j of distribution function c_j given the parents, (N, *shape), for C (N, *shape)."""
        if self.family != _NORMAL_VECTOR:
            alone = distribution(self.family, self.given(*parents))
            with np.errstate(all="ignore"):  # each formula may overflow in the tail of the other
                X = np.where(C <= 0.5, alone.ppf(C), alone.isf(1.0 - C))
            low, high = alone.support()  # no value stands on a bound: a scale of zero would leave nothing behind it
            return np.asarray(np.clip(X, np.nextafter(low, high), np.nextafter(high, low)))
        from scipy.special import ndtri

        mean, cov = self.parameters(*parents)
        return np.asarray(mean + (np.linalg.cholesky(cov) @ ndtri(C)[..., None])[..., 0])  # μ + L z

    def log_density(self, X: Array, *parents: Array) -> Array:
        """log p(x | parents), (N,) or (1,), for X (N, *shape)."""
        if self.family != _NORMAL_VECTOR:
            each = np.asarray(distribution(self.family, self.given(*parents)).logpdf(X))
            return np.asarray(each.reshape(len(X), self.size).sum(axis=1))
        mean, cov = self.parameters(*parents)
        pairs = zip(np.broadcast_to(mean, X.shape), np.broadcast_to(cov, (*X.shape, X.shape[1])), X, strict=True)
        return np.array([Gaussian(m, c).log_pdf(x[None])[0] for m, c, x in pairs])

    @property
    def entry(self) -> Any:
        """What stands for it in a dict of distributions; for a variable without parents."""
        if self.family == _NORMAL_VECTOR:
            mean, cov = self.parameters()
            return Gaussian(mean[0], cov[0])
        columns = [np.broadcast_to(a[0], self.shape).ravel() for a in self.given()]
        each = [self._alone([float(value) for value in values]) for values in zip(*columns, strict=True)]
        return each if self.shape else each[0]

    def _alone(self, parameters: list[float]) -> Any:
        low_high = (parameters[0], parameters[1]) if self.family == "UniformRV" else None
        return low_high or distribution(self.family, list(parameters))


@dataclass(frozen=True)
class Conditionals:
    """The map from the unit cube, variable by variable, each after its parents.

    Parameters
    ----------
    variables : in an order in which parents come first.
    """

    variables: tuple[Variable, ...]

    def by_name(self, C: Array) -> dict[str, Array]:
        """The value of each variable, (N, *shape), for C (N, D)."""
        found: dict[str, Array] = {}
        column = 0
        for one in self.variables:
            share = C[:, column : column + one.size].reshape(len(C), *one.shape)
            found[one.name] = one.quantile(share, *(found[name] for name in one.parents))
            column += one.size
        return found

    def __call__(self, C: Array) -> Array:
        """The parameters (N, D) for C (N, D)."""
        values = self.by_name(C)
        return np.column_stack([values[one.name].reshape(len(C), one.size) for one in self.variables])


@dataclass(frozen=True)
class Densities:
    """The densities of a PyMC model as graphs of PyTensor, in its own coordinates, without transforms.

    Attributes
    ----------
    values : variables that stand for the values of the free variables, in the order of the model.
    log_priors : log p(x_k | parents), elementwise, of each.
    log_likelihood : the sum over the observed variables.
    """

    values: list[Any]
    log_priors: list[Any]
    log_likelihood: Any

    @classmethod
    def of(cls, model: Any) -> Densities:
        """Of a model."""
        logprob = needed("pymc.logprob", "pymc", _USER)
        tensor = needed("pytensor.tensor", "pymc", _USER)
        values = [rv.type(name=rv.name) for rv in model.free_RVs]
        observed = [model.rvs_to_values[rv] for rv in model.observed_RVs]
        rvs = [*model.free_RVs, *model.observed_RVs]
        found = logprob.conditional_logp(dict(zip(rvs, [*values, *observed], strict=True)))
        log_likelihood = sum(tensor.sum(found[value]) for value in observed)
        return cls(values, [found[value] for value in values], log_likelihood)


def variables_of(model: Any) -> list[Variable]:
    """The free variables of a PyMC model, in its order, in which parents come first.

    Raises
    ------
    ValueError
        If one of them has no place in a prior: discrete, improper, or without a counterpart in ``scipy.stats``.
    """
    shapes = model.eval_rv_shapes()
    return [_variable(rv, model, tuple(map(int, shapes[rv.name]))) for rv in model.free_RVs]


def _variable(rv: Any, model: Any, shape: tuple[int, ...]) -> Variable:
    """The description of one free variable."""
    family = type(rv.owner.op).__name__
    _refuse(rv, family)
    parameters = list(rv.owner.op.dist_params(rv.owner))
    parents = _parents(rv, parameters, model)
    if family == _NORMAL_VECTOR and len(shape) != 1:
        raise ValueError(f"{rv.name} is a MvNormal of shape {shape}: write one of shape ({shape[-1]},) for each row.")
    return Variable(rv.name, shape, family, tuple(one.name for one in parents), _by_rows(parameters, parents))


_CURES = {
    "DirichletRV": 'For K shares write v = pymc.Beta("v", 1, numpy.arange(K - 1, 0, -1)), of shape (K - 1,), and break '
    "the stick with them: p[k] = v[k] ∏ (1 − v[j]) over j < k. That is the uniform Dirichlet distribution.",
    "RandomWalkRV": 'Write the steps as steps = pymc.Normal("steps", ...) and the walk as their cumulative sum.',
    "FlatRV": 'Give a proper one that is as wide as you mean it, such as pymc.Normal("{name}", 0, 10).',
    "HalfFlatRV": 'Give a proper one that is as wide as you mean it, such as pymc.HalfNormal("{name}", 10).',
}


def _refuse(rv: Any, family: str) -> None:
    """Raise for a variable that has no place in a prior."""
    known = _shown(family)
    cure = _CURES.get(family, "").format(name=rv.name)
    if rv.type.dtype.startswith(("int", "uint", "bool")):
        raise ValueError(
            f"{rv.name} is discrete ({known}): sum it out of the likelihood, for instance with pymc.Mixture, or make "
            "one model for each of its values and compare them."
        )
    if family in ("FlatRV", "HalfFlatRV"):
        raise ValueError(f"the prior of {rv.name} is improper ({known}), so there is no evidence. {cure}")
    if family != _NORMAL_VECTOR and family not in FAMILIES:
        ways = sorted(
            name.removesuffix("RV").replace("Inv", "Inverse").replace("Beta", "") or "Beta" for name in FAMILIES
        )
        raise ValueError(
            f"{rv.name} has the distribution {known}, which has no counterpart here. {cure or 'Write it with one of'} "
            f"{'' if cure else ', '.join(ways) + ', or MvNormal'}, or give prior and likelihood by hand: "
            "wsabi.Model(log_likelihood, wsabi.LogDensity(logpdf, reference))."
        )


def _shown(family: str) -> str:
    """The name by which a user knows the class."""
    return {"InvGammaRV": "InverseGamma", "WeibullBetaRV": "Weibull"}.get(family, family.removesuffix("RV"))


def _parents(rv: Any, parameters: Sequence[Any], model: Any) -> list[Any]:
    """The free variables on which the parameters depend without any between."""
    try:
        from pytensor.graph.traversal import ancestors  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        from pytensor.graph.basic import ancestors  # type: ignore[import-not-found,no-redef,unused-ignore]
    above = [one for one in ancestors(parameters, blockers=list(model.free_RVs)) if one.owner is not None]
    random = [one for one in above if one not in model.free_RVs and hasattr(one.owner.op, "dist_params")]
    if random:
        raise ValueError(f"the prior of {rv.name} depends on a random number that is no variable of the model.")
    return [one for one in model.free_RVs if one in above]


def _by_rows(parameters: list[Any], parents: Sequence[Any]) -> ByRows:
    """The parameters as a function of many values of the parents."""
    replace = needed("pytensor.graph.replace", "pymc", _USER)
    tensor = needed("pytensor.tensor", "pymc", _USER)
    inputs = [tensor.tensor(dtype="float64", shape=(None, *one.type.shape)) for one in parents]
    together = replace.vectorize_graph(parameters, replace=dict(zip(parents, inputs, strict=True)))
    return ByRows(_computed(inputs, together), tuple(one.ndim for one in parameters))


def _computed(inputs: list[Any], outputs: Any) -> Any:
    """A function of PyTensor in Python, not compiled: there is little to compute, and compiling takes seconds."""
    pytensor = needed("pytensor", "pymc", _USER)
    return pytensor.function(inputs, outputs, mode="FAST_COMPILE", on_unused_input="ignore")


def prior_of(model: Any, variables: Sequence[Variable], densities: Densities) -> Independent | Transform:
    """The prior of these variables.

    Parameters
    ----------
    model : the PyMC model.
    variables, densities : of the model; the densities are what the prior is checked against.

    Raises
    ------
    ValueError
        If a transform of PyMC lets a variable have a part of its values only, or densities do not agree.
    """
    conditionals = Conditionals(tuple(variables))
    dim = sum(one.size for one in variables)
    draws = conditionals.by_name(np.random.default_rng(0).random((_PROBES, dim)))
    _check_transforms(model, draws)
    _check_densities(variables, densities, draws)
    if any(one.parents for one in variables):
        names = [name for one in variables for name in one.elements]
        return Transform(conditionals, dim, names=names, vectorized=True)
    return Independent({one.name: one.entry for one in variables})


def _check_transforms(model: Any, draws: dict[str, Array]) -> None:
    """Raise if a draw of the prior has no place where PyMC would sample."""
    moved = [(rv, how) for rv, how in model.rvs_to_transforms.items() if how is not None and rv in model.free_RVs]
    forward = [how.forward(rv, *rv.owner.inputs) for rv, how in moved]
    compute = _computed(list(model.free_RVs), forward)
    for row in zip(*(draws[rv.name] for rv in model.free_RVs), strict=True):
        with np.errstate(all="ignore"):
            there = compute(*row)
        for value, (rv, how) in zip(there, moved, strict=True):
            if not np.all(np.isfinite(value)):
                raise ValueError(
                    f"the transform of {rv.name} ({type(how).__name__}) leaves out a part of its prior, which then "
                    "does not integrate to one. Leave out transform=: wsabi itself finds modes that are the same but "
                    "for their order. Where the likelihood needs an order, write the first value and positive "
                    "differences as variables."
                )


def _check_densities(variables: Sequence[Variable], densities: Densities, draws: dict[str, Array]) -> None:
    """Raise if a density is not PyMC's: a version may have given a class other parameters."""
    compute = _computed(densities.values, densities.log_priors)
    theirs = [
        [float(np.sum(part)) for part in compute(*row)]
        for row in zip(*(draws[one.name] for one in variables), strict=True)
    ]
    for one, values in zip(variables, np.transpose(theirs), strict=True):
        ours = one.log_density(draws[one.name], *(draws[name] for name in one.parents))
        if not np.allclose(ours, values, rtol=_SAME_DENSITY, atol=_SAME_DENSITY * one.size):
            raise ValueError(
                f"the density of {one.name} ({one.family}) is not the one that this version of PyMC computes "
                f"({ours[0]:.6g} here, {values[0]:.6g} there). Please report it; meanwhile give prior and likelihood "
                "by hand: wsabi.Model(log_likelihood, prior)."
            )
