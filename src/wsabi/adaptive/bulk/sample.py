"""The bulk of a run so far: its batches, and what they say of Z."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from wsabi._core.types import Array, Mask
from wsabi.adaptive.bulk.population import Population, Sample, effective_size
from wsabi.adaptive.check.proposal import Proposal
from wsabi.adaptive.tuning import TUNING
from wsabi.result import BulkRecord

__all__ = ["Batch", "Bulk", "BulkEstimate"]


@dataclass(frozen=True, eq=False)
class Batch:
    """Points U (n, D) drawn from one density, with log ℓπ (n,); ``is_told`` and ``has_failed`` (n,) tell which have it.

    Points that have failed count as if they had never been drawn.
    """

    proposal: Proposal
    U: Array
    log_joint: Array
    is_told: Mask
    has_failed: Mask

    @classmethod
    def of(cls, proposal: Proposal, n: int, rng: np.random.Generator) -> Batch:
        """n draws, none of them told."""
        nothing = np.zeros(n, dtype=np.bool_)
        return cls(proposal, proposal.sample(n, rng), np.full(n, np.nan), nothing, nothing)

    def told(self, first: int, log_joint: Array) -> Batch:
        """The same with log ℓπ (m,) of the points from ``first`` on; NaN for one that failed."""
        values, is_told, has_failed = self.log_joint.copy(), self.is_told.copy(), self.has_failed.copy()
        rows = slice(first, first + len(log_joint))
        values[rows] = log_joint
        has_failed[rows] = np.isnan(log_joint)
        is_told[rows] = ~has_failed[rows]
        return replace(self, log_joint=values, is_told=is_told, has_failed=has_failed)

    @property
    def is_open(self) -> Mask:
        """(n,) which points are neither told nor failed."""
        return np.asarray(~(self.is_told | self.has_failed))


@dataclass(frozen=True)
class BulkEstimate:
    """log Z from bulk points alone, relative to the offset of the data.

    Attributes
    ----------
    log_z, error : the estimate and its standard error, in nats.
    n, effective_size, pareto_k : number of points, and what their weights look like.
    """

    log_z: float
    error: float
    n: int
    effective_size: float
    pareto_k: float

    @property
    def is_sound(self) -> bool:
        """Whether the mean of the weights and its standard error can be believed."""
        return math.isfinite(self.error) and not self.pareto_k > TUNING.check.max_tail


@dataclass(frozen=True, eq=False)
class Bulk:
    """All bulk points of a run.

    After each of the first batches the density of the next is fitted to the points so far; then the density is kept.
    Each density was fixed before its points were drawn, so that their mean weight F_b estimates Z without bias, as does

        F = Σ_b ω_b F_b,  ω_b ∝ n_b √b,

    for n_b points of the b-th density. The weights do not depend on the values. If the variance falls as any power of b
    between 0 and −1, this F has at most 9/8 of the least variance possible (Owen and Zhou, The square root rule for
    adaptive importance sampling, 2020).

    Attributes
    ----------
    samples : the points of each density, in their order.
    learnt : the points from which densities are learnt.
    batch : the one under way.
    base : density of the check points when the batch began; it follows all regions known then.
    n_fits : batches that were learnt from since the regions last changed.
    is_kept : whether the last density is the one that is kept.
    records : what each batch was worth.
    """

    learnt: Population
    samples: tuple[Sample, ...] = ()
    batch: Batch | None = None
    base: Proposal | None = None
    n_fits: int = 0
    is_kept: bool = False
    records: tuple[BulkRecord, ...] = ()

    @classmethod
    def none(cls, dim: int) -> Bulk:
        """Before the first batch."""
        return cls(Population.none(dim))

    def __len__(self) -> int:
        return sum(len(sample) for sample in self.samples)

    @property
    def is_learning(self) -> bool:
        """Whether the next density is to be fitted to what has been learnt."""
        good = bool(self.records) and self.records[-1].effective_share >= TUNING.surrogate.even_share
        return self.n_fits < TUNING.bulk.fitted_batches and not (good and self.n_fits > 1)

    # -- batches ------------------------------------------------------------------------------------------------------

    def begun(self, base: Proposal, n: int, rng: np.random.Generator) -> Bulk:
        """The same with a batch of n points under way.

        Parameters
        ----------
        base : density of the check points, which follows all regions known.
        """
        if self.n_fits == 0:
            density = base
        elif self.is_kept:
            density = self.samples[-1].proposal
        else:
            density = self.learnt.next_density(base, rng)
        return replace(self, batch=Batch.of(density, n, rng), base=base, is_kept=not self.is_learning)

    def told(self, first: int, log_joint: Array) -> Bulk:
        """The same with log ℓπ (m,), NaN for failures, of the points of the batch from ``first`` on."""
        if self.batch is None:
            raise ValueError("no batch is under way.")
        told = replace(self, batch=self.batch.told(first, log_joint))
        return told if told.batch is not None and np.any(told.batch.is_open) else told.ended()

    def ended(self) -> Bulk:
        """The same with what was told of the batch under way among the populations, and no batch under way."""
        batch = self.batch
        if batch is None or not np.any(batch.is_told):
            return replace(self, batch=None)
        U, log_joint = batch.U[batch.is_told], batch.log_joint[batch.is_told]
        sample, samples = Sample.of(batch.proposal, U, log_joint), self.samples
        if samples and samples[-1].proposal is batch.proposal:
            sample, samples = samples[-1].extended(U, log_joint), samples[:-1]
        record = BulkRecord(len(U), effective_size(sample.log_weights[-len(U) :]) / len(U))
        learnt, n_fits = self.learnt, self.n_fits
        if not self.is_kept:
            learnt, n_fits = learnt.with_batch(batch.proposal, U, log_joint), n_fits + 1
        return replace(
            self, samples=(*samples, sample), learnt=learnt, batch=None, n_fits=n_fits, records=(*self.records, record)
        )

    def restarted(self) -> Bulk:
        """The same after the regions have changed: the learning begins again, from all points that were learnt from."""
        return replace(self.ended(), n_fits=0, is_kept=False)

    # -- what they say ------------------------------------------------------------------------------------------------

    @cached_property
    def _shares(self) -> Array:
        """(B,) ω_b."""
        shares = [len(sample) * math.sqrt(b) for b, sample in enumerate(self.samples, 1)]
        return np.array(shares) / sum(shares)

    @cached_property
    def estimate(self) -> BulkEstimate | None:
        """log Z from all densities; None where no point has a weight."""
        if not self.samples:
            return None
        unit = max(sample.tally.log_unit for sample in self.samples)
        means, variances = np.array([sample.tally.mean() for sample in self.samples]).T
        scales = np.exp([sample.tally.log_unit - unit for sample in self.samples])
        enough = np.isfinite(variances)
        if not np.any(enough):
            return None
        shares = self._shares * enough / float(self._shares @ enough)
        mean = float(shares @ (means * scales))
        variance = float(np.square(shares[enough]) @ (variances * scales**2)[enough])
        if mean <= 0.0:
            return None
        error = math.sqrt(math.log1p(variance / mean**2))
        tail = self.samples[-1].pareto_k
        return BulkEstimate(unit + math.log(mean), error, len(self), effective_size(self.points()[2]), tail)

    @property
    def variance(self) -> float:
        """Variance of one weight of the last density, relative to Z², less what the control variates explain of it."""
        if not self.samples:
            return math.nan
        mean, variance = self.samples[-1].tally.mean()
        return variance * len(self.samples[-1]) / mean**2 if mean > 0.0 else math.nan

    def points(self) -> tuple[Array, Array, Array]:
        """U (N, D), log ℓπ (N,) and log weights (N,) of all points, ω_b/n_b · ℓπ/p_b."""
        dim = self.learnt.U.shape[1]
        U = np.concatenate([np.empty((0, dim)), *(sample.U for sample in self.samples)])
        log_joint = np.concatenate([np.empty(0), *(sample.log_joint for sample in self.samples)])
        log_weights = np.concatenate(
            [
                np.empty(0),
                *(
                    sample.log_weights + math.log(share / len(sample))
                    for sample, share in zip(self.samples, self._shares, strict=True)
                ),
            ]
        )
        return U, log_joint, log_weights
