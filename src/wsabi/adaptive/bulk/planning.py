"""Planning: when bulk begins, how large its next batch is, and when there are enough points."""

from __future__ import annotations

import math
from dataclasses import dataclass

from wsabi.adaptive.bulk.sample import Bulk
from wsabi.adaptive.tuning import TUNING

__all__ = ["Costs", "Need", "Room", "batch_size"]


@dataclass(frozen=True)
class Costs:
    """What evaluations cost in this run, in seconds of wall clock.

    Attributes
    ----------
    own : the engine's own time for one point that it models.
    call : the likelihood at one point.
    bulk : the likelihood at one point of a batch; NaN before the first batch.
    """

    own: float
    call: float
    bulk: float = math.nan

    @property
    def per_point(self) -> float:
        """Seconds for one bulk point, as far as is known."""
        return max(self.call if math.isnan(self.bulk) else self.bulk, TUNING.bulk.least_seconds)

    @property
    def is_cheap(self) -> bool:
        """Whether the likelihood takes less time than the engine: else every evaluation is worth a model."""
        return self.per_point < self.own


@dataclass(frozen=True)
class Room:
    """What a run may still spend.

    Attributes
    ----------
    points : evaluations left, of any kind; infinite where no budget was given.
    modelled : evaluations left that models may learn of.
    seconds : for bulk; infinite where a budget of evaluations or the clock bounds it.
    """

    points: float
    modelled: int
    seconds: float


@dataclass(frozen=True)
class Need:
    """What is known of log Z, and what is wanted.

    Attributes
    ----------
    tol : the statistical error that will do; 0 for as small as the evaluations left can make it.
    error : the statistical error of the present estimate.
    share : effective share of the check points' weights; NaN where it is not known.
    """

    tol: float
    error: float
    share: float


def batch_size(bulk: Bulk | None, dim: int, need: Need, room: Room, costs: Costs) -> int:
    """Number of points of the next batch; 0 where a modelled evaluation does more good, or nothing is needed.

    A modelled evaluation takes the time of the likelihood and that of the engine, a bulk point that of the likelihood
    alone. N bulk points of variance v relative to Z² leave an error of √(v/N). So N = v/tol² of them are needed, or all
    that are left where tol is 0. They are drawn

    - where the likelihood takes less time than the engine,
    - where the error is larger than wanted,
    - and where the N points take less time than the modelled evaluations left would, or as many as take that time bring
      the error below that of the models; or where no modelled evaluations are left.

    It is asked only once the models are checked, or no modelled evaluations are left.
    """
    per_point = costs.per_point
    affordable = min(room.points, room.seconds / per_point)
    if not costs.is_cheap or need.error <= need.tol or affordable < 1.0:
        return 0
    wanted = _wanted(bulk, need)
    enough = min(wanted, affordable)
    if bulk is None and room.modelled > 0:
        in_their_place = room.modelled * (costs.own + costs.call) / per_point
        if need.tol > 0.0 and enough > in_their_place:
            return 0
        if math.sqrt(_variance(bulk, need) / min(enough, in_their_place)) > need.error:
            return 0
    return _size(bulk, dim, wanted, affordable)


def _variance(bulk: Bulk | None, need: Need) -> float:
    """Variance of the weight of one point, relative to Z²."""
    if bulk is not None and math.isfinite(bulk.variance):
        return bulk.variance
    share = TUNING.bulk.unknown_share if math.isnan(need.share) else max(need.share, TUNING.bulk.least_share)
    return 1.0 / share - 1.0 + TUNING.bulk.least_share


def _wanted(bulk: Bulk | None, need: Need) -> float:
    """Number of further points that bring the error down to the tolerance."""
    if need.tol == 0.0:
        return math.inf
    estimate = None if bulk is None else bulk.estimate
    if bulk is None or estimate is None or not math.isfinite(estimate.error):
        return TUNING.bulk.spare * _variance(bulk, need) / need.tol**2
    in_all = TUNING.bulk.spare * len(bulk) * (estimate.error / need.tol) ** 2
    return max(in_all - len(bulk), TUNING.bulk.least_growth * len(bulk))


def _size(bulk: Bulk | None, dim: int, wanted: float, affordable: float) -> int:
    """Points of the next batch: those that a fit needs while densities are fitted, then as many as are wanted."""
    numbers, first = TUNING.bulk, TUNING.bulk.first_batch * dim
    if bulk is None or bulk.is_learning:
        size = float(first * 2 ** (0 if bulk is None else bulk.n_fits))
    else:
        size = min(max(wanted, first), numbers.growth * len(bulk), numbers.largest_batch)
    return int(min(size, affordable))
