"""Charts: the map between the user's coordinates x and a base space u whose measure has closed forms.

Z = ∫ ℓ(x) π(x) dx = ∫ ℓ(x(u)) w(u) ν(u) du with ν a Gaussian, a Gaussian mixture, a uniform box or a product of
polynomial densities on [−1, 1], and w = 1 except for :class:`~wsabi.priors.LogDensity`. Base coordinates have no units:
an axis scaled by any factor keeps its u.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from wsabi._core.types import Array
from wsabi.priors.axes import Marginals, PolynomialAxis, UniformAxes
from wsabi.priors.box import Uniform
from wsabi.priors.gaussian import Gaussian
from wsabi.priors.independent import Independent, standardised
from wsabi.priors.log_density import LogDensity
from wsabi.priors.measure import Bounded, Measure
from wsabi.priors.mixture import GaussianMixture
from wsabi.priors.names import Groups
from wsabi.priors.polynomial import Polynomial
from wsabi.priors.prior import as_prior
from wsabi.priors.transform import Transform

__all__ = ["AffineChart", "Chart", "CubeChart", "MarginalChart", "chart"]

# Round-off of a base coordinate computed by a search inside the box [−1, 1]^D.
_BOX_SLACK = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class Chart(ABC):
    """A map between base and user coordinates, with the base measure.

    Parameters
    ----------
    names : D names of the parameters.
    keyed : whether the likelihood receives a dict of the names.
    measure : ν, in base coordinates.
    target : the density to re-weight to, if the prior is not the image of ν itself.
    groups : names of the entries of a dict with their columns, a slice for a vector; empty where each of ``names`` is
        an entry.
    """

    names: tuple[str, ...]
    keyed: bool
    measure: Measure
    target: LogDensity | None = None
    groups: Groups = ()

    @property
    def dim(self) -> int:
        """Number of dimensions D."""
        return len(self.names)

    @property
    def affine(self) -> tuple[Array, Array] | None:
        """(shift, scale), both (D,), with x = shift + scale·u, where the map is affine; else None."""
        return None

    @property
    def support(self) -> tuple[Array, Array]:
        """(low, high), both (D,), in the user's coordinates: the prior is zero outside; ±inf where no bound is known.

        With a :class:`~wsabi.priors.LogDensity` these are the bounds of its reference.
        """
        everywhere = np.full(self.dim, np.inf)
        return -everywhere, everywhere

    @property
    def separable(self) -> bool:
        """Whether x_d depends on u_d alone."""
        return True

    @property
    def kinds(self) -> tuple[int, ...]:
        """(D,) numbers, the same for parameters with the same prior, so that they may be worth exchanging.

        They are taken as the same if they agree, to seven digits, where all u_d are the same, for five of these.
        """
        maps = self._to_user(np.outer([-0.9, -0.4, 0.0, 0.3, 0.8], np.ones(self.dim)))
        seen = [tuple(f"{value:.6e}" for value in column) for column in maps.T]
        numbers = {column: number for number, column in enumerate(dict.fromkeys(seen))}
        return tuple(numbers[column] for column in seen)

    def to_user(self, U: Array) -> Array:
        """x(u_n), (N, D), for U (N, D)."""
        _check_shape(U, self.dim, "U")
        return self._to_user(U)

    def to_base(self, X: Array) -> Array:
        """u(x_n), (N, D), for X (N, D).

        Raises
        ------
        ValueError
            If a point is outside the support of the prior, or not finite.
        TypeError
            If the map has no inverse (:class:`~wsabi.priors.Transform`).
        """
        _check_shape(X, self.dim, "X")
        bad = np.flatnonzero(~np.all(np.isfinite(X), axis=1))
        if bad.size:
            raise ValueError(f"X must be finite; point {bad[0]} is {X[bad[0]]}.")
        return self._to_base(X)

    def log_weight(self, U: Array) -> Array:
        """log w(u_n), (N,), to be added to the log likelihood; zero unless the prior is a ``LogDensity``, −inf allowed.

        Raises
        ------
        ValueError
            If the user's logpdf returns NaN or +inf.
        """
        if self.target is None:
            _check_shape(U, self.dim, "U")
            return np.zeros(len(U))
        return self.target.log_weight(self.to_user(U))

    def log_jacobian_diag(self, U: Array) -> Array:
        """log |dx_d/du_d| at u_n, (N, D): log p_u(u) = log p_x(x(u)) + log |dx/du| for the density of one axis.

        Raises
        ------
        TypeError
            If the map is not separable (:class:`~wsabi.priors.Transform`).
        """
        _check_shape(U, self.dim, "U")
        return self._log_jacobian_diag(U)

    @abstractmethod
    def _to_user(self, U: Array) -> Array: ...

    @abstractmethod
    def _to_base(self, X: Array) -> Array: ...

    @abstractmethod
    def _log_jacobian_diag(self, U: Array) -> Array: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class AffineChart(Chart):
    """x = shift + scale·u, kept inside the support.

    Parameters
    ----------
    shift, scale : (D,).
    low, high : (D,) support of the prior in the user's coordinates.
    """

    shift: Array
    scale: Array
    low: Array
    high: Array

    @property
    def affine(self) -> tuple[Array, Array]:
        """(shift, scale), both (D,)."""
        return self.shift, self.scale

    @property
    def support(self) -> tuple[Array, Array]:
        """(low, high), both (D,)."""
        return self.low, self.high

    def _to_user(self, U: Array) -> Array:
        X = self.shift + self.scale * U
        if not isinstance(self.measure, Bounded):
            return X
        bad = np.flatnonzero(~np.all(np.abs(U) <= 1.0 + _BOX_SLACK, axis=1))
        if bad.size:
            raise ValueError(f"U must lie in the box [-1, 1]^D of the base measure; point {bad[0]} is {U[bad[0]]}.")
        return np.minimum(np.maximum(X, self.low), self.high)  # a likelihood never meets a point an ulp outside

    def _to_base(self, X: Array) -> Array:
        _check_support(X, self.low, self.high, self.names)
        U = (X - self.shift) / self.scale
        return np.clip(U, -1.0, 1.0) if isinstance(self.measure, Bounded) else U

    def _log_jacobian_diag(self, U: Array) -> Array:
        return np.log(self.scale) + np.zeros_like(U)


@dataclass(frozen=True, eq=False, kw_only=True)
class MarginalChart(Chart):
    """Each x_d from its own u_d, by the probability integral transform where that is N(0, 1).

    Parameters
    ----------
    marginals : the D axes.
    """

    marginals: Marginals

    @property
    def support(self) -> tuple[Array, Array]:
        """(low, high), both (D,)."""
        return self.marginals.support

    def _to_user(self, U: Array) -> Array:
        return self.marginals.to_user(U)

    def _to_base(self, X: Array) -> Array:
        _check_support(X, *self.marginals.support, self.names)
        return self.marginals.to_base(X)

    def _log_jacobian_diag(self, U: Array) -> Array:
        return self.marginals.log_jacobian(U)


@dataclass(frozen=True, eq=False, kw_only=True)
class CubeChart(Chart):
    """x = T(Φ(u)), T the unit-cube transform of a nested sampler.

    Parameters
    ----------
    transform : the prior, T.
    """

    transform: Transform

    @property
    def separable(self) -> bool:
        """False: any x_d may depend on all of u."""
        return False

    def _to_user(self, U: Array) -> Array:
        return self.transform.from_cube(ndtr(U))

    def _to_base(self, X: Array) -> Array:
        raise TypeError(
            "prior_transform has no known inverse: with a Transform prior only points that the integrator itself "
            "proposed can be told. Use Independent, Gaussian or Uniform to tell points of your own."
        )

    def _log_jacobian_diag(self, U: Array) -> Array:
        raise TypeError(
            "prior_transform may mix the axes, so its Jacobian has no diagonal form; use Independent, Gaussian or "
            "Uniform where densities in the user's coordinates are needed."
        )


def chart(prior: object, *, gaussian: bool = False) -> Chart:
    """The chart of a prior.

    Parameters
    ----------
    prior : anything :func:`wsabi.priors.as_prior` accepts.
    gaussian : whether the base space must be all of R^D with a smooth density: a ``Uniform`` or ``Polynomial`` prior is
        then carried to N(0, I) by the probability integral transform, instead of to the box [−1, 1]^D.

    Returns
    -------
    ``Gaussian``: u standardised per axis, ν = N(0, correlation). ``GaussianMixture``: standardised by overall mean and
    sd, ν the mixture in those units. ``Uniform``, ``Polynomial``: the box, ν with the same density in those units.
    ``Transform``: ν = N(0, I). ``Independent``: the same, or N(0, correlation) or a mixture where an entry is a
    ``Gaussian`` or a ``GaussianMixture``. ``LogDensity``: the chart of its reference, with a weight.
    """
    prior = as_prior(prior)
    if isinstance(prior, LogDensity):
        return replace(chart(prior.reference, gaussian=gaussian), target=prior, names=prior.names, groups=prior.groups)
    if isinstance(prior, Gaussian | GaussianMixture):
        return _standardised(prior)
    if isinstance(prior, Transform):
        return CubeChart(names=prior.names, keyed=False, measure=_standard_normal(prior.names), transform=prior)
    if isinstance(prior, Independent):
        space = _of_marginals(prior.marginals, prior.parameters.measure, prior.names)
        return replace(space, keyed=prior.keyed, groups=prior.groups)
    if gaussian:
        return _of_marginals(_bounded_marginals(prior), _standard_normal(prior.names), prior.names)
    return _box(prior)


def _standard_normal(names: tuple[str, ...]) -> Gaussian:
    """N(0, I)."""
    return Gaussian(np.zeros(len(names)), 1.0, names=names)


def _standardised(prior: Gaussian | GaussianMixture) -> AffineChart:
    """u = (x − mean)/sd per axis; the measure becomes the same family in those units."""
    everywhere = np.full(prior.dim, np.inf)
    return AffineChart(
        names=prior.names, keyed=False, measure=standardised(prior), shift=prior.mean,
        scale=np.sqrt(np.diag(prior.cov)), low=-everywhere, high=everywhere,
    )  # fmt: skip


def _bounded_marginals(prior: Bounded) -> Marginals:
    """Each axis of a prior inside a box as the image of a standard normal variable."""
    if isinstance(prior, Uniform):
        return Marginals(prior.dim, ((np.arange(prior.dim), UniformAxes(prior.low, prior.high)),))
    axes = [PolynomialAxis(prior.low[[d]], prior.high[[d]], density) for d, density in enumerate(prior.densities)]
    return Marginals(prior.dim, tuple((np.array([d]), axis) for d, axis in enumerate(axes)))


def _box(prior: Bounded) -> AffineChart:
    """u = (x − centre)/half-width: the box [−1, 1]^D."""
    ones = np.ones(prior.dim)
    measure: Measure
    if isinstance(prior, Uniform):
        measure = Uniform(-ones, ones, names=prior.names)
    else:  # t in [0, 1] is the same share of the interval in any units, so the coefficients stay as they are
        measure = Polynomial.of_densities(-ones, ones, prior.densities, names=prior.names)
    return AffineChart(
        names=prior.names, keyed=False, measure=measure,
        shift=0.5 * (prior.low + prior.high), scale=0.5 * (prior.high - prior.low), low=prior.low, high=prior.high,
    )  # fmt: skip


def _of_marginals(marginals: Marginals, measure: Gaussian | GaussianMixture, names: tuple[str, ...]) -> Chart:
    """Axis by axis to a measure on R^D, affinely where every axis is normal."""
    if marginals.affine is None:
        return MarginalChart(names=names, keyed=False, measure=measure, marginals=marginals)
    shift, scale = marginals.affine
    low, high = marginals.support
    return AffineChart(names=names, keyed=False, measure=measure, shift=shift, scale=scale, low=low, high=high)


def _check_shape(points: Array, dim: int, argument: str) -> None:
    """Raise unless the points are (N, D)."""
    if points.ndim != 2 or points.shape[1] != dim:
        raise ValueError(f"{argument} must have shape (N, {dim}), one point per row; got {points.shape}.")


def _check_support(X: Array, low: Array, high: Array, names: tuple[str, ...]) -> None:
    """Raise, with the index, at the first point outside the support [low, high]."""
    outside = (low > X) | (high < X)
    bad = np.argwhere(outside)
    if bad.size:
        n, d = bad[0]
        raise ValueError(
            f"X must lie inside the prior's support; point {n} has {names[d]} = {X[n, d]}, outside "
            f"[{low[d]}, {high[d]}]: its prior density is zero. Leave it out, or widen the prior."
        )
