"""Models: f = ℓπ/q against a mixture q of regions, with one WSABI model in the coordinates of each.

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
from wsabi._core.types import Array, Indices
from wsabi.adaptive.search.explorer import Explorer, total_log_mass
from wsabi.adaptive.search.ground import ground_of, inflation, reach
from wsabi.adaptive.search.known_regions import KnownRegions, Region
from wsabi.adaptive.search.matching import relearnt
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.surrogate.students import Students, shape_of
from wsabi.adaptive.symmetry.group import Symmetry, reflected
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import NumericalError
from wsabi.priors import Gaussian, Measure
from wsabi.quadrature.warp import likelihood_moments
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.result import Certificate
from wsabi.settings import Settings

__all__ = ["Models", "RegionModel"]


@dataclass
class RegionModel:
    """One component q_k of q, its explorer (surrogate of log ℓ) and its WSABI model of f.

    ``shape`` follows the surrogate's posterior, and ``uncertainty`` what the surrogate does not know of it. Where the
    region is an image, ``symmetry`` makes it of the first of its ``family``.
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


def _shapes(regions: Sequence[Region], rng: np.random.Generator) -> list[tuple[Students, Students]]:
    """The shape and the uncertainty of each region, those of images from those of the region whose images they are."""
    fitted: dict[int, tuple[Students, Students]] = {}
    for region in regions:
        if region.symmetry is None:
            explorer = region.explorer
            shape = shape_of(explorer.log_posterior, Students.single(explorer.frame.mean, explorer.frame.cov), rng)
            fitted[region.family] = shape, shape_of(explorer.log_uncertainty, shape, rng)
    return [
        (shape, uncertainty)
        if region.symmetry is None
        else (_image(region.symmetry, shape), _image(region.symmetry, uncertainty))
        for region in regions
        for shape, uncertainty in [fitted[region.family]]
    ]


def _image(symmetry: Symmetry, shape: Students) -> Students:
    """The symmetry image of a mixture."""
    half = np.swapaxes(symmetry.image(shape.covs), 1, 2)
    return Students(shape.weights, symmetry.image(shape.means), symmetry.image(half))


class Models:
    """The mixture q with the model of f on it.

    This is what is mutable in the engine, for speed: each model's factor and candidate pool grow by one row with every
    point. It follows from the regions, the training data and the random stream that it was built with, and can be
    built again from them.

    Parameters
    ----------
    parts : one for each region.
    """

    def __init__(self, measure: Measure, settings: Settings, parts: list[RegionModel]) -> None:
        self.measure = measure
        self.settings = settings
        self.parts = parts
        self.estimates: dict[int, Certificate] = {}  # made on the way, by the number of evaluations

    @classmethod
    def of(
        cls,
        known: KnownRegions,
        settings: Settings,
        X: Array,
        log_l: Array,
        rng: np.random.Generator,
        lengthscales: Sequence[Array | None] | None = None,
    ) -> Models:
        """Models of the regions known, with training data X (N, D), log ℓ (N,).

        Parameters
        ----------
        lengthscales : for each region, what its model's fit starts from, (D,) or None.
        """
        measure, regions = known.measure, known.regions
        log_weights = np.array([region.explorer.log_z for region in regions]) - known.log_total
        standard = Gaussian(np.zeros(measure.dim))
        warm = [None] * len(regions) if lengthscales is None else lengthscales
        parts = [
            RegionModel(
                explorer=region.explorer,
                frame=region.explorer.frame.scaled(inflation(measure.dim)),
                log_weight=float(log_weight),
                model=SequentialModel(standard, settings, rng, with_design=False, lengthscales=start),
                shape=shape,
                uncertainty=uncertainty,
                family=region.family,
                symmetry=region.symmetry,
            )
            for region, log_weight, start, (shape, uncertainty) in zip(
                regions, log_weights, warm, _shapes(regions, rng), strict=True
            )
        ]
        models = cls(measure, settings, parts)
        for part in parts:
            models._fill(part, X, log_l)
        return models

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

    def _fill(self, part: RegionModel, X: Array, log_l: Array) -> None:
        """Give a new model the data within its reach, nearest first, no two of them twins."""
        radius = part.radius(X)
        order = np.argsort(radius)[: min(int(TUNING.models.max_data), int(np.sum(radius <= part.reach)))]
        Y = part.frame.whiten(X[order])
        close = square_distances(Y, Y) < TUNING.models.twin**2
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
            if len(part.model.X) and np.min(square_distances(part.model.X, Y)) < TUNING.models.twin**2:
                continue
            part.model.observe(Y, self.log_f(X, np.array([log_l])))
            n = len(part.model.X)
            if n % max(1, n // 20) == 0:
                self._refresh(part)

    def _refresh(self, part: RegionModel) -> None:
        """Variance of the region's share of Z, by which the next region to sample is chosen."""
        try:
            belief = part.model.belief()
        except NumericalError:
            belief = None
        part.log_variance = -math.inf if belief is None else belief.log_var + 2.0 * part.log_weight

    def relearnt(self, X: Array, log_l: Array, rng: np.random.Generator) -> Models:
        """The same with surrogates that have learnt their θ from all training data X (N, D), log ℓ (N,).

        While the run goes on, θ is learnt as q is matched, which the last part of the data may not have seen.
        """
        learnt = {}
        for part in self.parts:
            if part.symmetry is None:
                mine = ground_of(part.explorer, self.explorers, X, log_l)
                learnt[part.family] = relearnt(part.explorer, X[mine], log_l[mine], rng)
        return self.with_originals(learnt)

    def with_explorer(self, number: int, explorer: Explorer) -> Models:
        """The same with another explorer for one region alone."""
        parts = list(self.parts)
        parts[number] = replace(parts[number], explorer=explorer)
        return self._with_parts(parts)

    def _with_parts(self, parts: list[RegionModel]) -> Models:
        other = copy.copy(self)
        other.parts, other.estimates = parts, {}
        return other

    def with_originals(self, explorers: Mapping[int, Explorer]) -> Models:
        """The same with another explorer for the first region of every family, and its images for the others."""
        return self._with_parts(
            [
                replace(part, explorer=known if part.symmetry is None else reflected(known, part.symmetry))
                for part in self.parts
                for known in [explorers[part.family]]
            ]
        )

    def propose(self, pending: Array, rng: np.random.Generator) -> Array:
        """The next point (D,) of uncertainty sampling, in the region whose share of Z is least certain."""
        part = max(self.parts, key=lambda candidate: candidate.log_variance)
        y = part.model.propose(1, part.frame.whiten(pending) if len(pending) else pending, rng)
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
            total += m * np.exp(np.minimum(log_term + model.log_l_max - log_reference, TUNING.models.largest_exponent))
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

    def lengthscales_for(self, old: Explorer, new: Explorer) -> Array | None:
        """Length-scales (D,) of a region's model along the axes of its explorer's new q; None where it has no model."""
        part = next((part for part in self.parts if part.explorer is old), None)
        if part is None or part.model.gp is None:
            return None
        frame = new.frame.scaled(inflation(new.measure.dim))
        return np.exp(part.frame.lengths_in(frame, np.log(part.model.gp.lengthscales)))
