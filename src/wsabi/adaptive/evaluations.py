"""Evaluations: every point and value told, and who had asked for it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import numpy as np

from wsabi._core.types import Array, Indices, Mask
from wsabi.priors import Measure

__all__ = ["Evaluations"]

SAME = 3  # equal values at as many points are no accident
CLIFF = 1e3  # times as far below the best as the next is no slope: points would lie thirty times further from a mode
SCARCE = 0.75  # of the prior infeasible: a draw of positive likelihood is the exception
DEEP = 10.0  # nats below the mass found: even over all of the prior it would be a twenty-thousandth of it


def _out_of_sight(dim: int) -> float:
    """Nats below the best at which a value counts for nothing, while no mass is known: 50 + 10D.

    A mode that holds less than what such a floor adds would have to be e⁻¹⁰ of the prior wide in each dimension.
    """
    return 50.0 + 10.0 * dim


class Evaluations:
    """Points X (N, D) and log ℓ (N,), less ``offset``, in base coordinates.

    Attributes
    ----------
    offset : the best log ℓ of the first 2D + 2 points, before which no model asks: a constant added to all of them must
        change nothing else, and a first value of −1e30, meaning zero, must not cost the others their digits. Where all
        of them meant zero, the best once that is known.
    drawn_from : (N,) number of the proposal of a check point; −1 for training points.
    asked_by : (N,) number of the look that asked for a point; −1 for none.
    floors : values, as they came, that are read as zero likelihood.
    n_starts : draws of the prior told so far.

    Notes
    -----
    Many a likelihood returns −1e30, or another number far below all others, for what it does not allow. Such a floor
    has no slope to follow and is no value to fit: once recognised it is read as −inf.
    """

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self.X = np.empty((0, measure.dim))
        self.log_l = np.empty(0)
        self.offset = 0.0
        self._told = np.empty(0)  # log ℓ as they came
        self.floors: list[float] = []
        self.drawn_from = np.empty(0, dtype=np.int64)
        self.asked_by = np.empty(0, dtype=np.int64)
        self.n_starts = 0
        self._zeros: Counter[float] = Counter()  # −inf or a floor -> how many evaluations have it,
        self._zero_starts: Counter[float] = Counter()  # and how many draws of the prior
        self._drawn: dict[bytes, int] = {}  # certificate points under way -> number of their proposal
        self._asked: dict[bytes, int] = {}  # points of looks under way -> number of their look
        self._starts: set[bytes] = set()  # points of the designs, which are draws of the prior

    def __len__(self) -> int:
        return len(self.X)

    # -- points under way ---------------------------------------------------------------------------------------------

    def draw(self, x: Array, proposal: int) -> None:
        """Take note that x (D,) is a check point, drawn from the proposal of that number."""
        self._drawn[x.tobytes()] = proposal

    def ask(self, x: Array, look: int) -> None:
        """Take note that the look of that number has asked for x (D,)."""
        self._asked[x.tobytes()] = look

    def give(self, index: int, look: int) -> None:
        """Make an evaluation one of the look's own, whoever had asked for it; a check point stays one."""
        self.asked_by[index] = look

    def start_from(self, design: Iterable[Array]) -> None:
        """Take note of draws of the prior."""
        self._starts.update(x.tobytes() for x in design)

    def purpose_of(self, x: Array) -> str | None:
        """What a point x (D,) under way is for: "check", or "search" with its number; None for neither."""
        if x.tobytes() in self._drawn:
            return "check"
        number = self._asked.get(x.tobytes())
        return None if number is None else f"search {number}"

    def n_drawn(self, pending: Array) -> int:
        """How many of the points under way, (P, D), are fresh ones."""
        return sum(x.tobytes() in self._drawn for x in pending)

    # -- data ---------------------------------------------------------------------------------------------------------

    def observe(self, X: Array, log_l: Array, log_mass: float = -math.inf) -> None:
        """Add points X (M, D) with log ℓ (M,), not less the offset. X grows last, and so tells what is whole.

        ``log_mass``, less the offset, is what is known of log Z; it decides what is a floor.
        """
        starts = np.array([x.tobytes() in self._starts for x in X], dtype=bool)
        self.n_starts += int(starts.sum())
        self._count_zeros(log_l[np.isin(log_l, [-math.inf, *self.floors])], log_l[starts])
        log_l = np.where(np.isin(log_l, self.floors), -math.inf, log_l)
        drawn_from = np.array([self._drawn.pop(x.tobytes(), -1) for x in X], dtype=np.int64)
        asked_by = np.array([self._asked.pop(x.tobytes(), -1) for x in X], dtype=np.int64)
        self._told = np.concatenate([self._told, log_l])
        if len(self) < 2 * self.measure.dim + 2 or not np.any(np.isfinite(self.log_l)):
            self._set_offset()
        else:
            self.log_l = np.concatenate([self.log_l, log_l - self.offset])
        self.drawn_from = np.concatenate([self.drawn_from, drawn_from])
        self.asked_by = np.concatenate([self.asked_by, asked_by])
        self.X = np.concatenate([self.X, X])
        while (floor := self._lowest_if_floor(log_mass)) is not None:
            self._read_as_zero(floor)

    def _lowest_if_floor(self, log_mass: float) -> float | None:
        """The lowest finite value told, if it counts for nothing, and is repeated or beyond a cliff."""
        values, counts = np.unique(self._told[np.isfinite(self._told)], return_counts=True)
        if len(values) < 2:
            return None
        dim, drop = self.measure.dim, values[-1] - values[0]
        if drop < _out_of_sight(dim) and values[0] - self.offset > log_mass - DEEP:
            return None
        is_cliff = len(values) > dim + 2 and drop > CLIFF * (values[-1] - values[1])
        return float(values[0]) if is_cliff or counts[0] >= SAME else None

    def _read_as_zero(self, floor: float) -> None:
        """Read all values of ``floor`` as −inf, now and from now on."""
        there = self._told == floor
        self.floors.append(floor)
        self._told[there] = -math.inf
        self.log_l[there] = -math.inf
        self._zeros[floor] += int(there.sum())
        self._zero_starts[floor] += sum(x.tobytes() in self._starts for x in self.X[there])
        if floor == self.offset:  # nothing else had been told when it was set
            self._set_offset()

    def _count_zeros(self, zeros: Array, starts: Array) -> None:
        """Count values that mean zero, and those among the values at draws of the prior."""
        self._zeros.update(zeros.tolist())
        self._zero_starts.update(value for value in starts.tolist() if value == -math.inf or value in self.floors)

    @property
    def n_infeasible(self) -> int:
        """Draws of the prior with zero likelihood.

        A floor that was met once or twice is as likely a true value, of a prior with heavy tails, and is not counted.
        """
        return sum(n for value, n in self._zero_starts.items() if value == -math.inf or self._zeros[value] >= SAME)

    def _set_offset(self) -> None:
        finite = self._told[np.isfinite(self._told)]
        self.offset = float(np.max(finite)) if finite.size else 0.0
        self.log_l = self._told - self.offset

    def disown(self) -> None:
        """Forget which look has asked for what."""
        self.asked_by[:] = -1
        self._asked.clear()

    def recover(self) -> None:
        """Make the arrays whole again after an interrupt in :meth:`observe`."""
        n = len(self.X)
        self._told = np.where(np.isin(self._told[:n], self.floors), -math.inf, self._told[:n])
        self.log_l = self._told - self.offset
        self.drawn_from, self.asked_by = self.drawn_from[:n], self.asked_by[:n]

    def release_fresh(self) -> None:
        """Make training points of all fresh ones, those under way among them."""
        self.drawn_from[:] = -1
        self._drawn.clear()

    # -- what is there ------------------------------------------------------------------------------------------------

    @property
    def is_training(self) -> Mask:
        """(N,) which evaluations the models may see."""
        return self.drawn_from < 0

    @property
    def n_training(self) -> int:
        """How many they are."""
        return int(self.is_training.sum())

    @property
    def n_check(self) -> int:
        """Number of certificate points."""
        return len(self) - self.n_training

    def index_of(self, x: Array) -> int | None:
        """Number of the first evaluation at x (D,), or None."""
        here = np.flatnonzero(np.all(x == self.X, axis=1))
        return int(here[0]) if len(here) else None

    def n_own(self, look: int) -> int:
        """Evaluations that a look has asked for and been told."""
        return int(np.sum(self.asked_by == look))

    def own(self, look: int, *, everything: bool) -> tuple[Array, Array]:
        """X (N, D) and log ℓ (N,) of a look: what it asked for or was given, or all training data."""
        mine = (self.asked_by == look) | (self.is_training & everything)
        return self.X[mine], self.log_l[mine]

    def training(self) -> tuple[Array, Array]:
        """X (N, D) and log ℓ (N,) of the training data."""
        mine = self.is_training
        return self.X[mine], self.log_l[mine]

    def training_joint(self) -> tuple[Array, Array]:
        """X (N, D) and log ℓπ (N,) of the training data."""
        X, log_l = self.training()
        return X, log_l + self.measure.log_pdf(X)

    def fresh(self) -> tuple[Array, Array, Indices]:
        """X (N, D), log ℓ (N,) and numbers of their proposals (N,) of the certificate points."""
        mine = ~self.is_training
        return self.X[mine], self.log_l[mine], self.drawn_from[mine]

    @property
    def scarce_share(self) -> float:
        """Mass that may lie in parts of positive likelihood that no draw of the prior has met, relative to that found.

        After F draws of positive likelihood the next is of another part with a chance of about 1/(F + 1). Where most of
        the prior is feasible, parts are no islands, and looks find what there is: it is counted from SCARCE on.
        """
        if self.n_infeasible <= SCARCE * self.n_starts:
            return 0.0
        return 1.0 / (self.n_starts - self.n_infeasible + 1)

    @property
    def log_floor(self) -> float:
        """log ℓ, less the offset, of the highest floor that is read as zero: a bound of what it adds to Z."""
        return max(self.floors, default=-math.inf) - self.offset

    @property
    def round_off(self) -> float:
        """Nats to which differences from the offset are right, where ℓ is large."""
        return float(np.spacing(max(abs(self.offset), abs(float(np.max(self.log_l))))))
