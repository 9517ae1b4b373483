"""log Z and posterior under another prior, from the evaluations of a finished run.

Z' = ∫ ℓπ' = Z · E[π'/π], the expectation under the posterior ℓπ/Z that the run has modelled: no evaluation is needed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from wsabi._core.linalg import cholesky, solve_lower, square_distances
from wsabi._core.logspace import log_sum_exp
from wsabi._core.types import Array
from wsabi.errors import NumericalError, announce
from wsabi.posterior.posterior import Posterior
from wsabi.posterior.weighted import WeightedSamples
from wsabi.priors import Gaussian, GaussianMixture, Independent, LogDensity, Prior, Transform, Uniform, as_prior
from wsabi.priors.chart import Chart, chart
from wsabi.result import ModelBelief, Result

__all__ = ["reweigh"]

DRAWS = 4000  # of a prior
BLOCK = 2048
FEW = 10.0  # effective draws, below which their spread is not known either
# Share of the new prior outside the support of the old one, where no evaluation can be. At or below NONE it is
# round-off of the tails' probabilities. Up to NEGLIGIBLE, a mode there with as much likelihood as the one known would
# add about a millionth to Z; above it log Z' is taken to be unknown, for the likelihood there may have any size.
NONE = 1e-12
NEGLIGIBLE = 1e-6
# Largest share of the new posterior next to a bound beyond which the new prior goes on, within one decay length of that
# prior: as much is expected beyond the bound, and more if the likelihood rises towards it.
AT_EDGE = 0.01


def reweigh(result: Result, old: Prior, new: Any) -> Result:
    """The result under the prior ``new`` instead of ``old``, with no new evaluation.

    The variance of log Z is that of the run, multiplied by 1 + c² (c the coefficient of variation of π'/π under the
    posterior: the same evaluations speak for that many times fewer independent ones), plus 1/ESS for the draws, plus
    log²(1 − u) for the share u of the new posterior that no evaluation is near, which may not exist. With u above 0.9,
    or fewer than ten effective draws, nothing is known, and the standard deviation is infinite. It is infinite also
    where more than 1e-6 of the new prior lies outside the support of the old one: no evaluation can have been there.

    Parameters are matched by name; the result keeps its own order of them. A new prior without names of its own (x0,
    x1, ...) is matched by position.

    Raises
    ------
    TypeError
        If either prior has no density (a Transform).
    ValueError
        If the parameters differ, or the new posterior has no overlap with the old one.
    """
    new = _in_order(as_prior(new), result.names)
    X, weights = _draws(result)
    log_ratio = new.log_pdf(X) - old.log_pdf(X)
    log_w = np.log(weights) + log_ratio
    if not np.any(np.isfinite(log_w)):
        raise ValueError("the other prior gives no weight to any point of this posterior: run again under that prior.")
    shift = log_sum_exp(log_w)
    new_weights = np.exp(log_w - shift)
    ess = 1.0 / float(np.square(new_weights).sum())
    spread = float(weights @ np.square(np.exp(log_ratio - shift))) - 1.0  # c² = E[(π'/π)²]/E[π'/π]² − 1
    few = min(FEW, 0.5 / float(np.square(weights).sum()))  # or half of what the draws count for under the old prior
    unseen = _unseen_share(X, weights, new_weights, result.points)
    added = result.log_z_std**2 * max(spread, 0.0) + 1.0 / ess
    added += math.inf if unseen > 0.9 or ess < few else math.log1p(-unseen) ** 2
    outside = _outside(old, new, X, new_weights)
    added += math.inf if outside.unknown else math.log1p(outside.at_edge) ** 2
    error = dataclasses.replace(
        result.error_budget, reweighing=math.hypot(result.error_budget.reweighing, math.sqrt(added))
    )
    log_z = result.log_z + shift
    found = _warnings(ess, unseen) + _warn_of_outside(outside, result.points, new)
    announce(found, stacklevel=4)
    belief = ModelBelief(
        result.model.log_mean + shift, 2.0 * (log_z + 0.5 * math.log(math.expm1(min(error.total**2, 50.0))))
    )
    return dataclasses.replace(
        result,
        log_z=log_z,
        log_z_std=error.total,
        error_budget=error,
        model=belief,
        converged=False,
        warnings=result.warnings + tuple(found),
        posterior=Posterior(
            WeightedSamples(
                X,
                new_weights,
                result.names,
                getattr(new, "keyed", False),
                getattr(new, "groups", ()),
                _overlap(old, new),
                Reweighed(result.posterior, old, new, shift),
            )
        ),
        certificate=None,
        prior=new,
        ledger=None,
    )


def _draws(result: Result) -> tuple[Array, Array]:
    """Points (M, D) and weights (M,) above zero of the modelled posterior, in the user's coordinates."""
    points, weights = result.posterior.points, result.posterior.weights
    keep = weights > 0.0
    return points[keep], weights[keep]


@dataclass(frozen=True, eq=False)
class Reweighed:
    """log p' = log p + log π'/π − log Z'/Z, (M,) at points (M, D).

    Attributes
    ----------
    posterior : under the old prior.
    old, new : the priors.
    log_ratio : log Z'/Z.
    """

    posterior: Posterior
    old: Any
    new: Any
    log_ratio: float

    def __call__(self, X: Array) -> Array:
        """log p'."""
        log_p = np.atleast_1d(self.posterior.logpdf(X)).copy()
        seen = log_p > -np.inf
        log_p[seen] += self.new.log_pdf(X[seen]) - self.old.log_pdf(X[seen]) - self.log_ratio
        return log_p


def _unseen_share(X: Array, old: Array, new: Array, points: Array) -> float:
    """Share of the new posterior's draws that lie farther from any evaluation than nearly all of the old ones did.

    Distances are in standard deviations of the old posterior; "nearly all" is 99 % of its mass.
    """
    mean = old @ X
    cov = (X - mean).T @ ((X - mean) * old[:, None])
    try:
        L = cholesky(cov)
    except NumericalError:
        return 1.0
    draws, seen = solve_lower(L, (X - mean).T).T, solve_lower(L, (points - mean).T).T
    blocks = np.array_split(draws, -(-len(draws) // BLOCK))  # all distances at once might be a gigabyte
    nearest = np.sqrt(np.concatenate([np.min(square_distances(block, seen), axis=1) for block in blocks]))
    order = np.argsort(nearest)
    usual = nearest[order][np.searchsorted(np.cumsum(old[order]), 0.99).clip(max=len(order) - 1)]
    return max(0.0, float(new[nearest > usual].sum()) - 0.01)


def _warnings(ess: float, unseen: float) -> list[str]:
    found = []
    if ess < 100.0:
        found.append(
            f"the other prior moves the posterior away from the evaluations (effective sample size {ess:.0f}): "
            "run again under that prior."
        )
    if unseen > 0.05:
        found.append(f"about {unseen:.0%} of the posterior under the other prior is far from every evaluation.")
    return found


# -- what no evaluation can have seen ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Outside:
    """What the new prior puts outside the support of the old one.

    Attributes
    ----------
    share : of the new prior.
    at_edge : share of the new posterior next to the bounds beyond which the new prior goes on.
    names : the parameters concerned; empty if the part of zero density has no bounds along one parameter.
    """

    share: float
    at_edge: float
    names: tuple[str, ...]

    @property
    def unknown(self) -> bool:
        """Whether log Z under the new prior may be anything."""
        return self.share > NEGLIGIBLE or self.at_edge > AT_EDGE


def _outside(old: Prior, new: Prior, X: Array, weights: Array) -> _Outside:
    """The share by the tails of the new marginals beyond the old bounds, and by draws; the larger counts.

    Tails are exact, and as small as they may be. Draws see parts of zero density inside the bounds, and the new prior
    of a ``LogDensity``, but no share below about 1/4000.

    Parameters
    ----------
    X, weights : (M, D) and (M,), the posterior under the new prior.
    """
    drawn = _drawn_share(old, new)
    if isinstance(new, LogDensity):  # its tails are not known: those of its reference are, where it is not zero
        (low, high), (new_low, new_high) = _bounds(old), _bounds(new)
        wider = (new_low < low) | (new_high > high)
        return _Outside(drawn, 0.0, tuple(name for name, beyond in zip(new.names, wider, strict=True) if beyond))
    space = chart(new, gaussian=True)
    tails, at_edge = np.zeros((2, new.dim)), 0.0
    keep = weights > 0.0
    U, weights = space.to_base(X[keep]), weights[keep]
    for side, (bound, sign) in enumerate(zip(_bounds(old), (-1.0, 1.0), strict=True)):
        for d in range(new.dim):
            u = _edge(space, d, bound[d])
            if u is None:
                continue
            tails[side, d] = _tail(space, d, u, sign)
            if tails[side, d] > NONE:
                # 1/u is the decay length of a normal's tail beyond u.
                at_edge += float(weights[sign * (u - U[:, d]) < 1.0 / max(abs(u), 1.0)].sum())
    by_axis = tails.sum(axis=0)
    share = max(drawn, -math.expm1(float(np.log1p(-np.minimum(by_axis, 1.0 - 1e-16)).sum())))
    names = tuple(name for name, mass in zip(new.names, by_axis, strict=True) if mass > NONE)
    return _Outside(share, at_edge, names) if share > NONE else _Outside(0.0, 0.0, ())


def _drawn_share(old: Prior, new: Prior) -> float:
    """Share of draws of the new prior at which the old one is zero."""
    if isinstance(new, LogDensity):
        X = new.reference.sample(DRAWS, 0)
        log_w = new.log_weight(X)
        if not np.any(np.isfinite(log_w)):
            return 0.0
        weights = np.exp(log_w - log_sum_exp(log_w))
    else:
        X, weights = new.sample(DRAWS, 0), np.full(DRAWS, 1.0 / DRAWS)
    zero = np.isneginf(old.log_pdf(X))
    if isinstance(old, LogDensity):
        zero |= np.isneginf(old.reference.log_pdf(X))  # the run had no points outside the reference
    return float(weights[zero].sum())


def _bounds(prior: Prior) -> tuple[Array, Array]:
    """(low, high), both (D,), of a prior's support."""
    return chart(prior).support


def _overlap(old: Prior, new: Prior) -> tuple[Array, Array]:
    """Bounds of the part where both priors are positive: draws of the old posterior are nowhere else."""
    (low, high), (new_low, new_high) = _bounds(old), _bounds(new)
    return np.maximum(low, new_low), np.minimum(high, new_high)


def _edge(space: Chart, axis: int, value: float) -> float | None:
    """u of a value of one parameter; None where it is not inside the support of the chart's prior."""
    low, high = space.support
    if not low[axis] < value < high[axis]:
        return None
    x = space.to_user(space.measure.mean[None, :])
    x[0, axis] = value
    return float(space.to_base(x)[0, axis])


def _tail(space: Chart, axis: int, u: float, sign: float) -> float:
    """Mass of the chart's measure beyond u along one axis, on the side of ``sign``."""
    measure = space.measure
    if not isinstance(measure, GaussianMixture):
        return float(ndtr(-sign * (u - measure.mean[axis]) / math.sqrt(measure.cov[axis, axis])))
    z = np.array([(u - part.mean[axis]) / math.sqrt(part.cov[axis, axis]) for part in measure.components])
    return float(measure.weights @ ndtr(-sign * z))


def _warn_of_outside(outside: _Outside, points: Array, new: Prior) -> list[str]:
    if not outside.unknown:
        return []
    along = f" along {', '.join(outside.names)}" if outside.names else ""
    if outside.share > NEGLIGIBLE:
        seen = f"{outside.share:.2g} of the other prior lies outside the support of the run's prior{along}"
    else:
        seen = (
            f"{outside.at_edge:.0%} of the posterior under the other prior lies against a bound of the run's prior"
            f"{along}, beyond which the other prior goes on"
        )
    low, high = _bounds(new)
    reuse = ", start=result) to keep the evaluations" if np.all((points >= low) & (points <= high)) else ")"
    return [
        f"{seen}: the likelihood was never evaluated there, so log Z and posterior are those of the part inside, and "
        f"the error bar is infinite. Run again under that prior: wsabi.integrate(log_likelihood, prior{reuse}."
    ]


# -- parameters by name -----------------------------------------------------------------------------------------------


def _in_order(prior: Prior, names: tuple[str, ...]) -> Prior:
    """The prior with its parameters in the order of ``names``, and with these names.

    Raises
    ------
    ValueError
        If it has other names, or another number of them.
    """
    if prior.dim != len(names):
        raise ValueError(f"the other prior has {prior.dim} dimensions; the result has {len(names)}.")
    if prior.names == names or isinstance(prior, Transform):  # a Transform is refused: it has no density
        return prior
    if prior.names == tuple(f"x{d}" for d in range(prior.dim)) and set(prior.names) != set(names):
        return _reordered(prior, range(prior.dim), names)
    if set(prior.names) != set(names):
        raise ValueError(
            f"the other prior has parameters {', '.join(prior.names)}; the result has {', '.join(names)}. Give it the "
            "names of the result, or none to match by position."
        )
    return _reordered(prior, [prior.names.index(name) for name in names], names)


def _reordered(prior: Prior, order: Sequence[int], names: Sequence[str]) -> Prior:
    """The prior whose parameter d is number order[d] of the given one, called names[d]."""
    columns = list(order)
    if isinstance(prior, Gaussian):
        return Gaussian(prior.mean[columns], prior.cov[np.ix_(columns, columns)], names=names)
    if isinstance(prior, GaussianMixture):
        means = np.stack([c.mean[columns] for c in prior.components])
        covs = [c.cov[np.ix_(columns, columns)] for c in prior.components]
        return GaussianMixture(prior.weights, means, covs, names=names)
    if isinstance(prior, Uniform):
        return Uniform(prior.low[columns], prior.high[columns], names=names)
    if isinstance(prior, Independent):
        named = _entries_in_order(prior, columns, names)
        return Independent(named) if prior.keyed else Independent(**named)
    if isinstance(prior, LogDensity):
        reference = _reordered(prior.reference, columns, names)
        back = [columns.index(d) for d in range(prior.dim)]
        logpdf: Callable[[Any], object] = _OfColumns(prior.logpdf, back)
        if prior.keyed and set(prior.names) == set(names):
            logpdf = prior.logpdf  # it takes a dict, which has no order
        elif prior.keyed:
            logpdf = _OfNames(prior.logpdf, prior.names, tuple(names), back)
        return LogDensity(logpdf, reference, names=names, vectorized=prior.vectorized)
    return prior


def _entries_in_order(prior: Independent, columns: list[int], names: Sequence[str]) -> dict[str, object]:
    """Entries of a prior by name, so that together they have its parameters in the order ``columns``.

    Raises
    ------
    ValueError
        If that order would take a vector of parameters apart.
    """
    groups = prior.groups
    if all(isinstance(where, int) for _, where in groups):
        return {name: prior.distributions[d] for name, d in zip(names, columns, strict=True)}
    every = [list(range(prior.dim))[where] if isinstance(where, slice) else [where] for _, where in groups]
    order = sorted(range(len(groups)), key=lambda entry: columns.index(every[entry][0]))
    if [column for entry in order for column in every[entry]] != columns:
        raise ValueError(
            f"the other prior has the vectors {', '.join(name for name, _ in groups)}, whose parameters are not side "
            "by side, in order, in the result."
        )
    return {groups[entry][0]: prior.distributions[entry] for entry in order}


@dataclass(frozen=True)
class _OfColumns:
    """A function of x (..., D) called with its columns in another order; picklable, as a lambda is not."""

    function: Callable[[Any], object]
    columns: list[int]

    def __call__(self, x: Array) -> object:
        return self.function(x[..., self.columns])


@dataclass(frozen=True)
class _OfNames:
    """A function of a dict of ``theirs``, called with a dict of ``names``: theirs[d] is names[columns[d]]."""

    function: Callable[[Any], object]
    theirs: tuple[str, ...]
    names: tuple[str, ...]
    columns: list[int]

    def __call__(self, given: dict[str, Any]) -> object:
        return self.function(
            {name: given[self.names[column]] for name, column in zip(self.theirs, self.columns, strict=True)}
        )
