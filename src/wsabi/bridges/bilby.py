"""A likelihood and priors of bilby as a model: ``wsabi.from_bilby``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wsabi._core.types import Array
from wsabi.bridges.extras import needed
from wsabi.model import Model
from wsabi.priors import Independent, Transform

__all__ = ["BilbyLikelihood", "BilbyPrior", "FromCube", "from_bilby"]

_USER = "wsabi.from_bilby"
_ZERO = -1e300  # bilby writes zero likelihood as the smallest double
_PROBES = np.array([1e-6, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0 - 1e-6])
_SAME = 1e-6  # of a probability: some distribution functions of bilby are interpolated, and then no inverse


@dataclass(frozen=True)
class BilbyPrior:
    """A prior of bilby on one parameter, with the methods of SciPy's random variables.

    Parameters
    ----------
    prior : of bilby.
    """

    prior: Any

    def _called(self, name: str, values: Any) -> Array:
        """A method of the prior at these values; some take numbers and vectors only, and some write into them."""
        given = np.array(values, dtype=np.float64)
        with np.errstate(all="ignore"):
            found = getattr(self.prior, name)(given.ravel())
        return np.asarray(found, dtype=np.float64).reshape(given.shape)

    def icdf(self, q: Any) -> Array:
        """Quantiles, by ``rescale``."""
        return self._called("rescale", q)

    def iccdf(self, q: Any) -> Array:
        """Quantiles from the upper tail, with the digits that 1 − q has."""
        return self._called("rescale", 1.0 - np.asarray(q))

    def cdf(self, x: Any) -> Array:
        """Distribution function."""
        return self._called("cdf", x)

    def ccdf(self, x: Any) -> Array:
        """Its complement."""
        return 1.0 - self.cdf(x)

    def logpdf(self, x: Any) -> Array:
        """Log density."""
        return self._called("ln_prob", x)

    def support(self) -> tuple[float, float]:
        """The values of smallest and largest probability; ``minimum`` may be that of the size alone."""
        low, high = self.icdf(np.array([0.0, 1.0]))
        return float(low), float(high)

    @property
    def is_consistent(self) -> bool:
        """Whether the distribution function is the inverse of ``rescale``, which some of bilby's are not."""
        try:
            there = self.icdf(_PROBES)
            return bool(np.all(np.abs(self.cdf(there) - _PROBES) < _SAME) and np.all(np.isfinite(self.logpdf(there))))
        except (NotImplementedError, ValueError, TypeError):
            return False


@dataclass(frozen=True)
class FromCube:
    """The map that bilby hands to nested samplers: the unit cube to the parameters.

    Parameters
    ----------
    priors : a ``PriorDict``.
    keys : the parameters.
    """

    priors: Any
    keys: tuple[str, ...]

    def __call__(self, c: Array) -> Array:
        """The parameters (D,) for c (D,)."""
        return np.array([float(value) for value in self.priors.rescale(list(self.keys), list(c))])


@dataclass(frozen=True)
class BilbyLikelihood:
    """log ℓ of bilby at a point; zero likelihood where a constraint is violated.

    Parameters
    ----------
    likelihood, priors : of bilby.
    keys : the parameters, in the order of a point (D,).
    fixed : values of the others.
    use_ratio : whether to return the log ratio to the likelihood of noise.
    """

    likelihood: Any
    priors: Any
    keys: tuple[str, ...]
    fixed: Mapping[str, float]
    use_ratio: bool

    def __call__(self, p: Any) -> float:
        """log ℓ at a point (D,), or at a dict of the names."""
        given = p if isinstance(p, Mapping) else dict(zip(self.keys, map(float, p), strict=True))
        if not np.all(self.priors.evaluate_constraints(dict(given))):
            return -np.inf
        parameters = {**self.fixed, **given}
        method = self.likelihood.log_likelihood_ratio if self.use_ratio else self.likelihood.log_likelihood
        if "parameters" in inspect.signature(method).parameters:
            value = float(method(parameters=parameters))
        else:  # a likelihood that keeps its parameters as state, as all did before bilby 2.7
            self.likelihood.parameters.update(parameters)
            value = float(method())
        return value if value > _ZERO or np.isnan(value) else -np.inf


def from_bilby(likelihood: Any, priors: Any, *, use_ratio: bool = False) -> Model:
    """The model of a bilby likelihood and its priors.

    Parameters
    ----------
    likelihood : a ``bilby.Likelihood``.
    priors : a ``PriorDict``, or a dict that makes one. Parameters with a fixed value are not parameters of the model.
        Independent priors become an ``Independent`` prior. Where priors depend on each other, jointly or
        conditionally, all become the ``Transform`` that bilby gives to nested samplers.
    use_ratio : whether log Z is that of ``log_likelihood_ratio``: the log Bayes factor against noise.

    Notes
    -----
    A ``Constraint`` is zero likelihood where it is violated, as for bilby's nested samplers: log Z is that of the prior
    as it is written, which keeps less than all of its probability. Add
    log(priors.normalize_constraint_factor(keys)) for that of the prior inside the constraint.

    Examples
    --------
        model = wsabi.from_bilby(likelihood, priors)
        result = wsabi.integrate(model)
    """
    prior = needed("bilby.core.prior", "bilby", _USER)
    if not hasattr(prior, "WeightedDiscreteValues"):  # before 2.7, joint priors came out independent
        raise ImportError("wsabi.from_bilby needs bilby 2.7 or newer: pip install 'wsabi[bilby]'.", name="bilby")
    if not callable(getattr(likelihood, "log_likelihood", None)):
        raise TypeError(f"likelihood must be a bilby.Likelihood; got {type(likelihood).__name__}.")
    priors = priors if isinstance(priors, prior.PriorDict) else prior.PriorDict(dict(priors))
    priors.convert_floats_to_delta_functions()
    keys = tuple(priors.non_fixed_keys)
    if not keys:
        raise ValueError("priors have no free parameter: there is nothing to integrate over.")
    discrete = [key for key in keys if isinstance(priors[key], prior.WeightedDiscreteValues)]
    if discrete:
        raise ValueError(
            f"{discrete[0]} is discrete ({type(priors[discrete[0]]).__name__}): make one model for each of its values, "
            "with the value fixed, and compare them."
        )
    fixed = {key: float(priors[key].peak) for key in priors.fixed_keys}
    likelihood_of = BilbyLikelihood(likelihood, priors, keys, fixed, bool(use_ratio))
    return Model(likelihood_of, _prior(prior, priors, keys))


def _prior(module: Any, priors: Any, keys: tuple[str, ...]) -> Independent | Transform:
    """The prior of the free parameters."""
    linked = [
        key for key in keys if hasattr(priors[key], "condition_func") or isinstance(priors[key], module.JointPrior)
    ]
    if not linked:
        entries = {key: _entry(module, priors[key]) for key in keys}
        if None not in entries.values():
            return Independent(entries)
    # A dict of conditional priors rescales joint ones in any order too, which a plain one does not.
    together = module.ConditionalPriorDict({key: priors[key] for key in priors if key not in priors.constraint_keys})
    return Transform(FromCube(together, keys), len(keys), names=keys)


def _entry(module: Any, prior: Any) -> Any:
    """What stands for one prior in a dict of distributions; None where its distribution function is no inverse."""
    from scipy import stats

    kind = type(prior)
    if kind is module.Uniform:
        return (float(prior.minimum), float(prior.maximum))
    if kind is module.LogUniform:
        return stats.loguniform(prior.minimum, prior.maximum)
    if kind in (module.Gaussian, module.Normal):
        return stats.norm(prior.mu, prior.sigma)
    if kind in (module.LogNormal, module.LogGaussian):
        return stats.lognorm(prior.sigma, scale=np.exp(prior.mu))
    other = BilbyPrior(prior)
    return other if other.is_consistent else None
