"""Evaluations: every point and value told, and what each was for, as arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from wsabi._core.types import Array, Indices, Mask
from wsabi.adaptive.purposes import CheckPoint, SearchPoint
from wsabi.adaptive.tuning import TUNING
from wsabi.ledger import Observation
from wsabi.priors import Measure

__all__ = ["Evaluations"]


@dataclass(frozen=True, eq=False)
class Evaluations:
    """Points X (N, D) and log ℓ (N,), less ``offset``, in base coordinates.

    Attributes
    ----------
    told : (N,) log ℓ as it came.
    searched_by : (N,) number of the search that asked for a point; −1 for none.
    drawn_from : (N,) number of the proposal of a check point; −1 for training points.
    is_draw : (N,) whether a point is a draw of the prior.
    offset : the best log ℓ of the first 2D + 2 points, before which no model asks: a constant added to all of them must
        change nothing else, and a first value of −1e30, meaning zero, must not cost the others their digits. Where all
        of them meant zero, it is the best once that is known.
    floors : values that are read as zero likelihood.
    first_proposal : check points of proposals with a lower number are training points.

    Notes
    -----
    Many a likelihood returns −1e30, or another number far below all others, for what it does not allow. Such a floor
    has no slope to follow and is no value to fit: once recognised, it is read as −inf.
    """

    measure: Measure
    X: Array
    told: Array
    searched_by: Indices
    drawn_from: Indices
    is_draw: Mask
    offset: float = 0.0
    floors: tuple[float, ...] = ()
    first_proposal: int = 0

    @classmethod
    def none(cls, measure: Measure) -> Evaluations:
        """Before anything is told."""
        nobody = np.empty(0, dtype=np.intp)
        return cls(measure, np.empty((0, measure.dim)), np.empty(0), nobody, nobody, np.empty(0, dtype=np.bool_))

    def __len__(self) -> int:
        return len(self.X)

    # -- more of them -------------------------------------------------------------------------------------------------

    def observed(self, new: Sequence[Observation], log_mass: float = -math.inf) -> Evaluations:
        """These and new ones. ``log_mass``, less the offset, is what is known of log Z; it decides what is a floor."""
        purposes = [one.purpose for one in new]
        searched_by = [purpose.number if isinstance(purpose, SearchPoint) else -1 for purpose in purposes]
        drawn_from = [purpose.proposal if isinstance(purpose, CheckPoint) else -1 for purpose in purposes]
        drawn_from = [number if number >= self.first_proposal else -1 for number in drawn_from]
        is_draw = [isinstance(purpose, SearchPoint) and purpose.is_draw for purpose in purposes]
        young = len(self) < 2 * self.measure.dim + 2 or not np.any(np.isfinite(self.log_l))
        more = replace(
            self,
            X=np.concatenate([self.X, [one.u for one in new]]),
            told=np.concatenate([self.told, [one.log_l for one in new]]),
            searched_by=np.concatenate([self.searched_by, np.array(searched_by, dtype=np.intp)]),
            drawn_from=np.concatenate([self.drawn_from, np.array(drawn_from, dtype=np.intp)]),
            is_draw=np.concatenate([self.is_draw, np.array(is_draw, dtype=np.bool_)]),
        )
        if young:
            more = more._with_offset()
        while (floor := more._lowest_if_floor(log_mass)) is not None:
            more = replace(more, floors=(*more.floors, floor))
            if floor == more.offset:  # nothing else had been told when the offset was set
                more = more._with_offset()
        return more

    def _with_offset(self) -> Evaluations:
        finite = self._read[np.isfinite(self._read)]
        return replace(self, offset=float(np.max(finite)) if finite.size else 0.0)

    def _lowest_if_floor(self, log_mass: float) -> float | None:
        """The lowest finite value told, if it counts for nothing, and is repeated or beyond a cliff."""
        finite, numbers = self._read[np.isfinite(self._read)], TUNING.policy
        if not finite.size:
            return None
        lowest, dim = finite.min(), self.measure.dim
        drop = finite.max() - lowest
        # A mode that holds less than what such a floor adds would have to be e⁻¹⁰ of the prior wide in each dimension.
        out_of_sight = numbers.floor_depth + numbers.floor_depth_per_dim * dim
        if drop == 0.0 or (drop < out_of_sight and lowest - self.offset > log_mass - numbers.floor_below_mass):
            return None
        values, counts = np.unique(finite, return_counts=True)  # a sort: only where there may be a floor
        is_cliff = len(values) > dim + 2 and drop > numbers.cliff * (values[-1] - values[1])
        return float(values[0]) if is_cliff or counts[0] >= numbers.same_values else None

    def given(self, index: int, search: int) -> Evaluations:
        """The same with one evaluation a search's own, whoever had asked for it; a check point stays one."""
        searched_by = self.searched_by.copy()
        searched_by[index] = search
        return replace(self, searched_by=searched_by)

    def without_searches(self) -> Evaluations:
        """The same with no evaluation any search's own."""
        return replace(self, searched_by=np.full(len(self), -1, dtype=np.intp))

    def without_checks(self, first_proposal: int) -> Evaluations:
        """The same with all check points training points, those under way from proposals so far among them."""
        return replace(self, drawn_from=np.full(len(self), -1, dtype=np.intp), first_proposal=first_proposal)

    # -- values -------------------------------------------------------------------------------------------------------

    @cached_property
    def _read(self) -> Array:
        """(N,) log ℓ, floors read as −inf."""
        return np.where(np.isin(self.told, self.floors), -math.inf, self.told)

    @cached_property
    def log_l(self) -> Array:
        """(N,) log ℓ less the offset, floors read as −inf."""
        return self._read - self.offset

    @property
    def log_joint(self) -> Array:
        """(N,) log ℓπ less the offset."""
        return np.asarray(self.log_l + self.measure.log_pdf(self.X))

    @property
    def log_floor(self) -> float:
        """log ℓ, less the offset, of the highest floor that is read as zero: a bound of what it adds to Z."""
        return max(self.floors, default=-math.inf) - self.offset

    @property
    def round_off(self) -> float:
        """Nats to which differences from the offset are right, where ℓ is large."""
        return float(np.spacing(max(abs(self.offset), abs(float(np.max(self.log_l))))))

    # -- who sees what ------------------------------------------------------------------------------------------------

    @cached_property
    def is_training(self) -> Mask:
        """(N,) which evaluations the models may see."""
        return np.asarray(self.drawn_from < 0)

    @property
    def n_training(self) -> int:
        """How many they are."""
        return int(self.is_training.sum())

    @property
    def n_check(self) -> int:
        """Number of check points."""
        return len(self) - self.n_training

    def index_of(self, x: Array) -> int | None:
        """Number of the first evaluation at x (D,), or None."""
        here = np.flatnonzero(np.all(x == self.X, axis=1))
        return int(here[0]) if len(here) else None

    def n_own(self, search: int) -> int:
        """Evaluations that a search has asked for and been told."""
        return int(np.sum(self.searched_by == search))

    def own(self, search: int, *, everything: bool) -> tuple[Array, Array]:
        """X (N, D) and log ℓ (N,) of a search: what it asked for or was given, or all training data."""
        mine = (self.searched_by == search) | (self.is_training & everything)
        return self.X[mine], self.log_l[mine]

    def training(self) -> tuple[Array, Array]:
        """X (N, D) and log ℓ (N,) of the training data."""
        mine = self.is_training
        return self.X[mine], self.log_l[mine]

    def training_joint(self) -> tuple[Array, Array]:
        """X (N, D) and log ℓπ (N,) of the training data."""
        X, log_l = self.training()
        return X, log_l + self.measure.log_pdf(X)

    def checks(self) -> tuple[Array, Array, Indices]:
        """X (N, D), log ℓ (N,) and numbers of their proposals (N,) of the check points."""
        mine = ~self.is_training
        return self.X[mine], self.log_l[mine], self.drawn_from[mine]

    # -- where the likelihood is zero ---------------------------------------------------------------------------------

    @property
    def n_draws(self) -> int:
        """Draws of the prior told so far."""
        return int(self.is_draw.sum())

    @property
    def n_infeasible(self) -> int:
        """Draws of the prior with zero likelihood.

        A floor that was met once or twice is as likely a true value, of a prior with heavy tails, and is not counted.
        """
        repeated = [floor for floor in self.floors if np.sum(self.told == floor) >= TUNING.policy.same_values]
        return int(np.sum(self.is_draw & np.isin(self.told, [-math.inf, *repeated])))

    @property
    def scarce_share(self) -> float:
        """Mass that may lie in parts of positive likelihood that no draw of the prior has met, relative to that found.

        After F draws of positive likelihood the next is of another part with a chance of about 1/(F + 1). Where most of
        the prior is feasible, parts are no islands, and searches find what there is: then nothing is counted.
        """
        if self.n_infeasible <= TUNING.policy.scarce * self.n_draws:
            return 0.0
        return 1.0 / (self.n_draws - self.n_infeasible + 1)
