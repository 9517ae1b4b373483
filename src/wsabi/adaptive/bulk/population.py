"""Points of one density with their weights; and all points together, from which the next density is learnt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.bulk.tally import Tally
from wsabi.adaptive.check.pareto import pareto_k
from wsabi.adaptive.check.proposal import Proposal
from wsabi.adaptive.surrogate.students import Students, fit_students, truncated
from wsabi.adaptive.tuning import TUNING

__all__ = ["Population", "Sample", "effective_size"]


@dataclass(frozen=True, eq=False)
class Population:
    """N points U (N, D), of which n_r were drawn from the density p_r, with their log ℓπ (N,).

    Every point has the weight ℓπ/p with p = Σ_r (n_r/N) p_r, the balance heuristic: points of early densities that were
    too narrow have no large weights (Cornuet, Marin, Mira and Robert, 2012). That is what a density is fitted to. It is
    no estimate of Z: later densities follow the earlier points, which then count too little.

    Attributes
    ----------
    proposals, counts : p_r and n_r, R of each.
    log_p : (R, N) log p_r at every point.
    """

    proposals: tuple[Proposal, ...]
    counts: tuple[int, ...]
    U: Array
    log_joint: Array
    log_p: Array

    @classmethod
    def none(cls, dim: int) -> Population:
        """Before the first batch."""
        return cls((), (), np.empty((0, dim)), np.empty(0), np.empty((0, 0)))

    def __len__(self) -> int:
        return len(self.U)

    def with_batch(self, proposal: Proposal, U: Array, log_joint: Array) -> Population:
        """The same with a batch U (n, D), log ℓπ (n,), of another density."""
        known = np.stack([*self.log_p, _log_pdf(proposal, self.U)])
        fresh = np.stack([_log_pdf(other, U) for other in [*self.proposals, proposal]])
        return Population(
            (*self.proposals, proposal),
            (*self.counts, len(U)),
            np.concatenate([self.U, U]),
            np.concatenate([self.log_joint, log_joint]),
            np.concatenate([known, fresh], axis=1),
        )

    @cached_property
    def log_mixture(self) -> Array:
        """(N,) log Σ_r (n_r/N) p_r."""
        shares = np.log(np.array(self.counts) / len(self))
        return np.asarray(np.logaddexp.reduce(self.log_p + shares[:, None], axis=0))

    @cached_property
    def log_weights(self) -> Array:
        """(N,) log ℓπ/p."""
        return np.asarray(self.log_joint - self.log_mixture)

    def next_density(self, base: Proposal, rng: np.random.Generator) -> Proposal:
        """A density that follows the weights so far, with a share of ``base``, which keeps its tails.

        Most of it is a mixture of Student densities fitted to the weighted points by expectation maximisation. A second
        mixture, fitted to the square root of ℓπ, reaches along arms and into tails that few points have met.
        """
        numbers = TUNING.bulk
        used = np.isfinite(self.log_weights)
        if not np.any(used):
            return base
        U, log_joint, log_mixture = self.U[used], self.log_joint[used], self.log_mixture[used]
        weights = truncated(log_joint - log_mixture)
        components = _n_components(weights, U.shape[1])
        if components < 2:
            return base
        shape = _fitted(U, weights, components, rng)
        reaching = _fitted(U, truncated(0.5 * log_joint - log_mixture), components // 2, rng)
        rest = 1.0 - numbers.base_share - numbers.reaching_share
        return base.with_students([(rest, shape), (numbers.reaching_share, reaching)], numbers.base_share)


@dataclass(frozen=True, eq=False)
class Sample:
    """N points U (N, D) of one density, with their log ℓπ and log weights ℓπ/p, (N,) each, and the sums over them.

    The density was fixed before the first of them was drawn, so their mean weight is unbiased. The sums grow with each
    batch of the same density, so that no point is gone through twice.
    """

    proposal: Proposal
    U: Array
    log_joint: Array
    log_weights: Array
    tally: Tally

    @classmethod
    def of(cls, proposal: Proposal, U: Array, log_joint: Array) -> Sample:
        """The first batch U (n, D), log ℓπ (n,)."""
        log_p = _log_pdf(proposal, U)
        log_weights = log_joint - log_p
        return cls(proposal, U, log_joint, log_weights, _tally(proposal, mean_log(log_weights), U, log_weights, log_p))

    def __len__(self) -> int:
        return len(self.U)

    def extended(self, U: Array, log_joint: Array) -> Sample:
        """The same with a further batch U (n, D), log ℓπ (n,)."""
        log_p = _log_pdf(self.proposal, U)
        log_weights = log_joint - log_p
        more = _tally(self.proposal, self.tally.log_unit, U, log_weights, log_p)
        return Sample(
            self.proposal,
            np.concatenate([self.U, U]),
            np.concatenate([self.log_joint, log_joint]),
            np.concatenate([self.log_weights, log_weights]),
            self.tally + more,
        )

    @cached_property
    def pareto_k(self) -> float:
        """Shape of the tail of the weights."""
        return pareto_k(self.log_weights)


def mean_log(log_weights: Array) -> float:
    """log of the mean weight of log weights (N,); zero where all are −inf, which is a unit like any other."""
    total = float(np.logaddexp.reduce(log_weights)) - math.log(max(len(log_weights), 1))
    return total if math.isfinite(total) else 0.0


def _tally(proposal: Proposal, log_unit: float, U: Array, log_weights: Array, log_p: Array) -> Tally:
    """Sums over points U (N, D) with log weights and log density (N,), block by block."""
    tallies = [
        Tally.of(log_unit, log_weights[block], proposal.control_rows(U[block], log_p[block]))
        for block in blocks(len(U))
    ]
    return sum(tallies[1:], tallies[0])


def blocks(n: int) -> list[slice]:
    """Slices of at most ``block`` points, so that no array of all components at all points is made."""
    size = TUNING.bulk.block
    return [slice(first, min(first + size, n)) for first in range(0, max(n, 1), size)]


def effective_size(log_weights: Array) -> float:
    """(Σw)²/Σw² of log weights (N,); zero where none is finite."""
    top = float(np.max(log_weights, initial=-np.inf))
    if not math.isfinite(top):
        return 0.0
    w = np.exp(log_weights - top)
    return float(w.sum()) ** 2 / float(w @ w)


def _log_pdf(proposal: Proposal, U: Array) -> Array:
    return np.concatenate([proposal.log_pdf(U[block]) for block in blocks(len(U))])


def _n_components(weights: Array, dim: int) -> int:
    """As many components as the effective points can determine the means and covariances of."""
    n_effective = float(weights.sum()) ** 2 / float(weights @ weights)
    per_component = TUNING.bulk.points_per_parameter * (dim + 1) * (dim + 2) / 2
    return min(TUNING.bulk.components, int(n_effective / per_component))


def _fitted(U: Array, weights: Array, components: int, rng: np.random.Generator) -> Students:
    """A mixture fitted to at most ``fit_points`` of the points U (N, D), those chosen at random."""
    some = rng.permutation(len(U))[: TUNING.bulk.fit_points] if len(U) > TUNING.bulk.fit_points else np.arange(len(U))
    w = weights[some]
    return fit_students(U[some], w / w.sum(), max(components, 1), rng)
