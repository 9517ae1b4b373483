"""Recentre and integrate: f = ℓπ/q against a mixture q of regions, one WSABI model in the coordinates of each.

With q = Σ w_k q_k, Z = ∫ (ℓπ/q) q = Σ_k w_k ∫ f q_k: the regions are a smooth partition of the same f, and each term is
a Gaussian-measure integral of the kind :mod:`wsabi.quadrature.integral` solves, in coordinates where q_k is standard
normal.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wsabi._core.linalg import square_distances
from wsabi._core.types import Array, Indices, Mask
from wsabi.adaptive.search.anneal import Explorer, total_log_mass
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.surrogate.students import Students, shape_of
from wsabi.adaptive.symmetry.group import Symmetry, reflected
from wsabi.errors import NumericalError
from wsabi.priors import Gaussian, Measure
from wsabi.quadrature.warp import likelihood_moments
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.settings import Settings

__all__ = ["Region", "Regions", "carried_lengthscales", "ground_of", "inflation", "is_part", "reach"]

MAX_DATA = 400  # points per region's model, the nearest to its centre: the price of a fit grows with their cube
TWIN = 1e-4  # two points closer than this, in sds of q, tell the model the same thing and spoil its conditioning


def inflation(dim: int) -> float:
    """Variance of q over that of the posterior, 1 + 4/max(D, 2): three in one and two dimensions, 1.4 in ten.

    Wider is safer in the tails, where f must not grow; but √f of a Gaussian posterior then narrows to √(2/(s² − 1)) of
    q's width in every dimension at once. 1 + 4/D holds D(s² − 1), the curvature at a typical point of q, fixed.
    """
    return 1.0 + 4.0 / max(dim, 2)


def reach(dim: int) -> float:
    """Radius √D + 4, in sds of q, within which data belong to a region: nearly all of q lies inside √D + 3.

    Out there q is so small that f = ℓπ/q of a negligible ℓπ may exceed all others and √f become a model of it; the
    certificate sees that and leaves the model out.
    """
    return math.sqrt(dim) + 4.0


def is_part(known: Explorer, explorer: Explorer) -> bool:
    """Whether an explorer within a known one's region has found a narrower one, of half its variance along the axes."""
    return explorer.frame.log_det < known.frame.log_det - 0.5 * known.measure.dim * math.log(2.0)


def ground_of(
    explorer: Explorer, explorers: Sequence[Explorer], X: Array, log_l: Array, least: int | None = None
) -> Mask:
    """Which of X (N, D), log ℓ (N,), are data of an explorer's surrogate: none in a narrower region inside its own.

    A spike on a broad hill has a surrogate of its own. To that of the hill its points are errors of many nats, by which
    the hill is lost. Where fewer feasible points than ``least`` are left, there is no hill beside the spike, and all of
    them are; None is 2D + 2, as many as a surrogate needs.
    """
    bulk = math.sqrt(X.shape[1]) + 2.0
    keep = np.ones(len(X), dtype=np.bool_)
    for other in explorers:
        if other is explorer or not is_part(explorer, other):
            continue
        wide, narrow = (each.frame.scaled(inflation(X.shape[1])) for each in (explorer, other))
        if np.linalg.norm(wide.whiten(other.frame.mean[None, :])) < bulk:
            keep &= np.linalg.norm(narrow.whiten(X), axis=1) > bulk
    least = 2 * X.shape[1] + 2 if least is None else least
    return keep if np.count_nonzero(keep & np.isfinite(log_l)) >= least else np.ones(len(X), dtype=np.bool_)


@dataclass
class Region:
    """One component q_k, its explorer (surrogate of log ℓ) and its WSABI model of f.

    ``shape`` follows the surrogate's posterior, and ``doubt`` what the surrogate does not know of it. Where it is an
    image, ``symmetry`` makes it of the first of its ``family``.
    """

    explorer: Explorer
    frame: Frame
    log_weight: float
    model: SequentialModel
    shape: Students
    uncertainty: Students
    family: int
    symmetry: Symmetry | None
    log_variance: float = math.inf

    @property
    def reach(self) -> float:
        """Radius, in sds of q, within which data belong to the model."""
        return reach(len(self.frame.mean))

    def radius(self, X: Array) -> Array:
        """Distance of X (N, D) from the centre in sds of q, (N,)."""
        return np.asarray(np.sqrt(np.square(self.frame.whiten(X)).sum(axis=1)))


def _shapes(
    explorers: Sequence[Explorer],
    families: Sequence[int],
    symmetries: Sequence[Symmetry | None],
    rng: np.random.Generator,
) -> list[tuple[Students, Students]]:
    """The shape and the uncertainty of each region, those of images from those of the region whose images they are."""
    fitted: dict[int, tuple[Students, Students]] = {}
    for explorer, family, symmetry in zip(explorers, families, symmetries, strict=True):
        if symmetry is None:
            shape = shape_of(explorer.log_posterior, Students.single(explorer.frame.mean, explorer.frame.cov), rng)
            fitted[family] = shape, shape_of(explorer.log_uncertainty, shape, rng)
    own = [fitted[family] for family in families]
    return [
        both if symmetry is None else (_image(symmetry, both[0]), _image(symmetry, both[1]))
        for symmetry, both in zip(symmetries, own, strict=True)
    ]


def _image(symmetry: Symmetry, shape: Students) -> Students:
    """The symmetry image of a mixture."""
    half = np.swapaxes(symmetry.image(shape.covs), 1, 2)
    return Students(shape.weights, symmetry.image(shape.means), symmetry.image(half))


class Regions:
    """The mixture q with the model of f on it.

    Parameters
    ----------
    measure : the prior in base coordinates.
    explorers : one per region, each at temperature one.
    X, log_l : (N, D) and (N,) training data.
    lengthscales : (D,) to start the model of each region from, or None.
    families : a number for each region; those of one number are symmetry images of each other, with the same errors.
        None if there are no images among them.
    symmetries : for each region, the symmetry whose image it is of the first of its family; None for none.
    """

    def __init__(
        self,
        measure: Measure,
        settings: Settings,
        rng: np.random.Generator,
        explorers: list[Explorer],
        X: Array,
        log_l: Array,
        lengthscales: list[Array | None],
        families: Sequence[int] | None = None,
        symmetries: Sequence[Symmetry | None] | None = None,
    ) -> None:
        self.measure = measure
        self.settings = settings
        log_z = np.array([explorer.log_z for explorer in explorers])
        log_weights = log_z - np.logaddexp.reduce(log_z)
        standard = Gaussian(np.zeros(measure.dim))
        self.parts = []
        numbers = range(len(explorers)) if families is None else families
        symmetries = [None] * len(explorers) if symmetries is None else symmetries
        shapes = _shapes(explorers, numbers, symmetries, rng)
        for k, (explorer, warm) in enumerate(zip(explorers, lengthscales, strict=True)):
            frame = explorer.frame.scaled(inflation(measure.dim))
            model = SequentialModel(standard, settings, rng, with_design=False, lengthscales=warm)
            log_weight, own = float(log_weights[k]), (numbers[k], symmetries[k])
            self.parts.append(Region(explorer, frame, log_weight, model, *shapes[k], *own))
        for part in self.parts:
            self._fill(part, X, log_l)

    @property
    def explorers(self) -> list[Explorer]:
        """The explorer of each region."""
        return [part.explorer for part in self.parts]

    @property
    def log_mass(self) -> float:
        """log of the mass in all regions, as their explorers have it."""
        return total_log_mass(self.explorers)

    @property
    def weights(self) -> Array:
        """(K,) w_k."""
        return np.exp([part.log_weight for part in self.parts])

    def log_q(self, X: Array) -> Array:
        """log q, (N,)."""
        return np.asarray(np.logaddexp.reduce(self.log_terms(X), axis=0))

    def log_terms(self, X: Array) -> Array:
        """log w_k q_k, (K, N)."""
        return np.stack([part.log_weight + part.frame.log_density(X) for part in self.parts])

    def log_f(self, X: Array, log_l: Array) -> Array:
        """log ℓπ/q, (N,)."""
        return np.asarray(log_l + self.measure.log_pdf(X) - self.log_q(X))

    # -- data ---------------------------------------------------------------------------------------------------------

    def _fill(self, part: Region, X: Array, log_l: Array) -> None:
        """Give a new model the data within its reach, nearest first, no two of them twins."""
        radius = part.radius(X)
        order = np.argsort(radius)[: min(MAX_DATA, int(np.sum(radius <= part.reach)))]
        Y = part.frame.whiten(X[order])
        close = square_distances(Y, Y) < TWIN**2
        first = ~np.any(np.tril(close, -1), axis=1)
        chosen = order[first]
        if len(chosen):
            part.model.observe(Y[first], self.log_f(X[chosen], log_l[chosen]))
        self._refresh(part)

    def observe(self, x: Array, log_l: float) -> None:
        """Add a training point x (D,) to the models whose reach it is in."""
        X = x[None, :]
        for part in self.parts:
            if part.radius(X)[0] > part.reach:
                continue
            Y = part.frame.whiten(X)
            if len(part.model.X) and np.min(square_distances(part.model.X, Y)) < TWIN**2:
                continue
            part.model.observe(Y, self.log_f(X, np.array([log_l])))
            n = len(part.model.X)
            if n % max(1, n // 20) == 0:
                self._refresh(part)

    def _refresh(self, part: Region) -> None:
        """Variance of the region's share of Z, by which the next region to sample is chosen."""
        try:
            belief = part.model.belief()
        except NumericalError:
            belief = None
        part.log_variance = -math.inf if belief is None else belief.log_var + 2.0 * part.log_weight

    def relearnt(self, X: Array, log_l: Array, rng: np.random.Generator) -> Regions:
        """The same with surrogates that have learnt their θ from all training data X (N, D), log ℓ (N,).

        While the run goes on θ is learnt as q is matched, which the last 15 % of the data may not have seen.
        """
        learnt = {}
        for part in self.parts:
            if part.symmetry is None:
                mine = ground_of(part.explorer, self.explorers, X, log_l)
                learnt[part.family] = part.explorer.relearnt(X[mine], log_l[mine], rng)
        return self.with_originals(learnt)

    def with_originals(self, explorers: Mapping[int, Explorer]) -> Regions:
        """The same with another explorer for the first region of every family, and its reflections for the others."""
        other = copy.copy(self)
        other.parts = [
            replace(part, explorer=known if part.symmetry is None else reflected(known, part.symmetry))
            for part in self.parts
            for known in [explorers[part.family]]
        ]
        return other

    def propose(self, pending: Array) -> Array:
        """The next point (D,) of uncertainty sampling, in the region whose share of Z is least certain."""
        part = max(self.parts, key=lambda candidate: candidate.log_variance)
        y = part.model.propose(1, part.frame.whiten(pending) if len(pending) else pending)
        return np.asarray(part.frame.colour(y)[0])

    # -- the integral and its integrand -------------------------------------------------------------------------------

    def moments(self) -> tuple[float, float]:
        """log Σ w_k E_k and log Σ_j (Σ_k∈j w_k √V_k)², the models' mean and variance of Z, with j the families.

        Models of symmetry images have been told the same, and are wrong by the same.

        Raises
        ------
        NumericalError
            If a model has lost its variance to round-off.
        """
        means = []
        log_sds: dict[int, list[float]] = {}
        for part in self.parts:
            belief = part.model.belief()
            if belief is None:
                continue
            means.append(part.log_weight + belief.log_mean)
            log_sds.setdefault(part.family, []).append(part.log_weight + 0.5 * belief.log_var)
        if not means:
            raise NumericalError("no region holds a finite log-likelihood.")
        log_variances = [2.0 * np.logaddexp.reduce(family) for family in log_sds.values()]
        return float(np.logaddexp.reduce(means)), float(np.logaddexp.reduce(log_variances))

    def control(self, X: Array, log_reference: Array) -> Array:
        """Σ_k w_k q_k m_k / reference, (N,): the models' ℓπ relative to exp(log_reference) (N,)."""
        total = np.zeros(len(X))
        for part, log_term in zip(self.parts, self.log_terms(X), strict=True):
            gp, model = part.model.gp, part.model
            if gp is None:
                continue
            Y = part.frame.whiten(X)
            if self.settings.method == "wsabi-m":
                m_tilde, c_tilde = gp.predict(Y)
            else:
                m_tilde = gp.mean(Y)
                c_tilde = np.zeros_like(m_tilde)
            m, _ = likelihood_moments(self.settings.method, model.alpha, m_tilde, c_tilde)
            total += m * np.exp(np.minimum(log_term + model.log_l_max - log_reference, 700.0))
        return total

    def surrogate(self, X: Array) -> tuple[Array, Array]:
        """log of the explorers' ℓπ and its sd, (N,) each: in each place by the region of largest w_k q_k."""
        log_l, sd = np.empty(len(X)), np.empty(len(X))
        for part, mine in zip(self.parts, self.shares(X), strict=True):
            if len(mine):
                log_l[mine], sd[mine] = part.explorer.log_likelihood(X[mine])
        return log_l + self.measure.log_pdf(X), sd

    def shares(self, X: Array) -> list[Indices]:
        """For each region, which of X (M, D) its explorer speaks for: where its w_k q_k is the largest."""
        owner = np.argmax(self.log_terms(X), axis=0)
        return [np.flatnonzero(owner == k) for k in range(len(self.parts))]


def carried_lengthscales(part: Region | None, explorer: Explorer) -> Array | None:
    """Length-scales (D,) of a region's model along the axes of its explorer's new q; None where it had no model."""
    if part is None or part.model.gp is None:
        return None
    frame = explorer.frame.scaled(inflation(explorer.measure.dim))
    return np.exp(part.frame.lengths_in(frame, np.log(part.model.gp.lengthscales)))
