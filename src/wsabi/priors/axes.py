"""One-dimensional distributions and their maps to a standard normal variable u.

The map is the probability integral transform x = F⁻¹(Φ(u)), written so that both tails keep their digits:
x = F⁻¹(Φ(u)) for u ≤ 0 and x = (1 − F)⁻¹(Φ(−u)) for u > 0. Distributions with a direct formula (normal, uniform, and
the logarithms of both) are recognised and handled together, all axes of a kind in one array operation; any other frozen
``scipy.stats`` distribution goes through its own quantile functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from wsabi._core.types import Array
from wsabi.priors.polynomial import UnitPolynomial

__all__ = [
    "Axes",
    "Distribution",
    "FrozenDistribution",
    "LogAxes",
    "Marginals",
    "NormalAxes",
    "PolynomialAxis",
    "QuantileAxis",
    "UniformAxes",
]

# Φ(−8.2095) = 2⁻⁵³, the smallest tail that 1 − p can tell from one. Points exactly on a bound of the support, whose u
# is infinite, and points beyond a tail that underflows are placed here: the mass beyond is 1e-16.
_EDGE_MASS = 2.0**-53
_EDGE = -float(ndtri(_EDGE_MASS))
_TINY = float(np.finfo(np.float64).tiny)  # Φ(−37.5): further out the mass is no longer a normal number
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


class Distribution(Protocol):
    """What is used of a continuous distribution: the methods of a frozen ``scipy.stats`` one."""

    def ppf(self, q: Array) -> Array: ...  # noqa: D102
    def isf(self, q: Array) -> Array: ...  # noqa: D102
    def cdf(self, x: Array) -> Array: ...  # noqa: D102
    def sf(self, x: Array) -> Array: ...  # noqa: D102
    def logpdf(self, x: Array) -> Array: ...  # noqa: D102
    def support(self) -> tuple[float, float]: ...  # noqa: D102


class FrozenDistribution(Distribution, Protocol):
    """The same with the parameters that it was frozen with."""

    dist: Any
    args: tuple[Any, ...]
    kwds: dict[str, Any]


class Axes(Protocol):
    """d independent axes, each a monotone map x(u) that makes x of its distribution from u ~ N(0, 1)."""

    @property
    def low(self) -> Array:
        """(d,) lower bounds of the support."""

    @property
    def high(self) -> Array:
        """(d,) upper bounds of the support."""

    def to_user(self, U: Array) -> Array:
        """x(u), (N, d), strictly inside the support."""

    def to_base(self, X: Array) -> Array:
        """u(x), (N, d), for X inside the support; ±inf on a bound."""

    def log_pdf(self, X: Array) -> Array:
        """log density of each axis, (N, d)."""

    def log_jacobian(self, U: Array) -> Array:
        """log dx/du = log φ(u) − log p(x(u)), (N, d)."""


def _log_phi(U: Array) -> Array:
    """log φ(u), the standard normal density."""
    return np.asarray(-0.5 * np.square(U) - _LOG_SQRT_2PI)


def _strictly_inside(X: Array, low: Array, high: Array) -> Array:
    """X moved off the bounds by one unit in the last place: a likelihood never meets log 0, nor ±inf."""
    return np.minimum(np.maximum(X, np.nextafter(low, high)), np.nextafter(high, low))


@dataclass(frozen=True, eq=False)
class NormalAxes:
    """x = loc + scale·u, exactly.

    Parameters
    ----------
    loc, scale : (d,) mean and standard deviation.
    """

    loc: Array
    scale: Array

    @property
    def low(self) -> Array:
        """−inf, (d,)."""
        return np.full_like(self.loc, -np.inf)

    @property
    def high(self) -> Array:
        """+inf, (d,)."""
        return np.full_like(self.loc, np.inf)

    def to_user(self, U: Array) -> Array:
        """loc + scale·u, (N, d)."""
        return self.loc + self.scale * U

    def to_base(self, X: Array) -> Array:
        """(x − loc)/scale, (N, d)."""
        return (X - self.loc) / self.scale

    def log_pdf(self, X: Array) -> Array:
        """log N(x; loc, scale²), (N, d)."""
        return _log_phi(self.to_base(X)) - np.log(self.scale)

    def log_jacobian(self, U: Array) -> Array:
        """log scale, (N, d)."""
        return np.log(self.scale) + np.zeros_like(U)


@dataclass(frozen=True, eq=False)
class UniformAxes:
    """x = low + (high − low) Φ(u), counted from the nearer bound.

    Parameters
    ----------
    low, high : (d,) bounds.
    """

    low: Array
    high: Array

    def to_user(self, U: Array) -> Array:
        """low + w Φ(u) for u ≤ 0, high − w Φ(−u) for u > 0, w = high − low, (N, d)."""
        step = (self.high - self.low) * ndtr(-np.abs(U))
        return _strictly_inside(np.where(U <= 0.0, self.low + step, self.high - step), self.low, self.high)

    def to_base(self, X: Array) -> Array:
        """Φ⁻¹ of the share of the interval on the nearer side, signed, (N, d)."""
        above, below = X - self.low, self.high - X
        # A bound that went through log and exp may be passed by an ulp: the share is then zero, not negative.
        share = np.maximum(np.minimum(above, below), 0.0) / (self.high - self.low)
        return np.asarray(np.where(above <= below, 1.0, -1.0) * ndtri(share))

    def log_pdf(self, X: Array) -> Array:
        """−log(high − low) inside, −inf outside, (N, d)."""
        return np.where((self.low <= X) & (self.high >= X), -np.log(self.high - self.low), -np.inf)

    def log_jacobian(self, U: Array) -> Array:
        """log(high − low) + log φ(u), (N, d)."""
        return np.log(self.high - self.low) + _log_phi(U)


@dataclass(frozen=True, eq=False)
class LogAxes:
    """x = shift + exp(y), y by ``inner``: log-normal for a normal y, log-uniform for a uniform one.

    Parameters
    ----------
    shift : (d,) lower end of the exponential's range.
    inner : axes of y = log(x − shift).
    low, high : (d,) support; kept as given, since exp(log b) may miss b by an ulp.
    """

    shift: Array
    inner: NormalAxes | UniformAxes
    low: Array
    high: Array

    def to_user(self, U: Array) -> Array:
        """Shift + exp(y(u)), (N, d)."""
        with np.errstate(over="ignore"):  # beyond the largest double: brought back to it
            return _strictly_inside(self.shift + np.exp(self.inner.to_user(U)), self.low, self.high)

    def to_base(self, X: Array) -> Array:
        """u(log(x − shift)), (N, d)."""
        with np.errstate(divide="ignore"):
            return self.inner.to_base(np.log(X - self.shift))

    def log_pdf(self, X: Array) -> Array:
        """log p_y(y) − y with y = log(x − shift), −inf outside, (N, d)."""
        inside = (self.shift < X) & (self.low <= X) & (self.high >= X)
        y = np.clip(np.log(np.where(inside, X - self.shift, 1.0)), self.inner.low, self.inner.high)
        return np.where(inside, self.inner.log_pdf(y) - y, -np.inf)

    def log_jacobian(self, U: Array) -> Array:
        """log dy/du + y(u), (N, d)."""
        return self.inner.log_jacobian(U) + self.inner.to_user(U)


@dataclass(frozen=True, eq=False)
class QuantileAxis:
    """One axis of any continuous ``scipy.stats`` distribution, by its quantile functions.

    Parameters
    ----------
    distribution : the frozen distribution, F.
    low, high : (1,) support.
    """

    distribution: Distribution
    low: Array
    high: Array

    def _quantile(self, U: Array, least_mass: float) -> Array:
        """F⁻¹(Φ(u)), from the nearer tail; tails below ``least_mass`` count as ``least_mass``."""
        mass = np.maximum(ndtr(-np.abs(U)), least_mass)
        X = np.empty_like(U)
        lower = U <= 0.0
        with np.errstate(all="ignore"):
            if np.any(lower):
                X[lower] = self.distribution.ppf(mass[lower])
            if not np.all(lower):
                X[~lower] = self.distribution.isf(mass[~lower])
        return X

    def to_user(self, U: Array) -> Array:
        """F⁻¹(Φ(u)), (N, 1)."""
        X = self._quantile(U, _TINY)
        # Some distributions form 1 − p, or overflow, in a tail: there, the last quantile that can be told.
        lost = ~np.isfinite(X)
        if np.any(lost):
            X[lost] = self._quantile(U[lost], _EDGE_MASS)
        return _strictly_inside(X, self.low, self.high)

    def to_base(self, X: Array) -> Array:
        """Φ⁻¹(F(x)) below the median and −Φ⁻¹(1 − F(x)) above it, (N, 1)."""
        with np.errstate(all="ignore"):
            below = np.asarray(self.distribution.cdf(X))
            U = np.asarray(ndtri(below))
            upper = below > 0.5
            if np.any(upper):
                U[upper] = -ndtri(self.distribution.sf(X[upper]))
        return U

    def log_pdf(self, X: Array) -> Array:
        """log p(x), (N, 1)."""
        with np.errstate(all="ignore"):
            return np.asarray(self.distribution.logpdf(X))

    def log_jacobian(self, U: Array) -> Array:
        """log φ(u) − log p(x(u)), (N, 1)."""
        return _log_phi(U) - self.log_pdf(self.to_user(U))


@dataclass(frozen=True, eq=False)
class PolynomialAxis:
    """One axis of polynomial density on an interval, by its quantile function, counted from the nearer bound.

    Parameters
    ----------
    low, high : (1,) bounds.
    density : of t = (x − low)/(high − low).
    """

    low: Array
    high: Array
    density: UnitPolynomial

    def _shares(self, U: Array) -> tuple[Array, Array]:
        """t(u) and 1 − t(u), (N, 1) each."""
        return self.density.quantile(ndtr(U), ndtr(-U))

    def to_user(self, U: Array) -> Array:
        """F⁻¹(Φ(u)), (N, 1)."""
        v, w = self._shares(U)
        width = self.high - self.low
        return _strictly_inside(np.where(v <= w, self.low + width * v, self.high - width * w), self.low, self.high)

    def to_base(self, X: Array) -> Array:
        """Φ⁻¹(F(x)) below the median and −Φ⁻¹(1 − F(x)) above it, (N, 1)."""
        below, above = self.density.masses(*self._unit(X))
        return np.asarray(np.where(below <= above, ndtri(below), -ndtri(above)))

    def _unit(self, X: Array) -> tuple[Array, Array]:
        """t(x) and 1 − t(x), (N, 1) each."""
        width = self.high - self.low
        return np.maximum((X - self.low) / width, 0.0), np.maximum((self.high - X) / width, 0.0)

    def log_pdf(self, X: Array) -> Array:
        """log p(x), −inf outside, (N, 1)."""
        inside = (self.low <= X) & (self.high >= X)
        with np.errstate(divide="ignore"):
            log_p = np.log(self.density.pdf(*self._unit(X))) - np.log(self.high - self.low)
        return np.where(inside, log_p, -np.inf)

    def log_jacobian(self, U: Array) -> Array:
        """log φ(u) − log p(x(u)), (N, 1); from t(u) itself, which near a bound has more digits than x."""
        p = np.maximum(self.density.pdf(*self._shares(U)), _TINY)
        return np.asarray(_log_phi(U) + np.log(self.high - self.low) - np.log(p))


@dataclass(frozen=True, eq=False)
class Marginals:
    """D independent axes, those of one kind gathered into one block.

    Parameters
    ----------
    dim : D.
    blocks : pairs of the columns of a block and its axes; together they cover 0..D−1 once.
    """

    dim: int
    blocks: tuple[tuple[NDArray[np.intp], Axes], ...]

    @classmethod
    def gather(cls, axes: Sequence[Axes]) -> Marginals:
        """Group single axes by kind, so that the cost of a map grows with the kinds and not with D."""
        groups: dict[object, list[int]] = {}
        for d, axis in enumerate(axes):
            kind = d if isinstance(axis, QuantileAxis) else (type(axis), type(getattr(axis, "inner", None)))
            groups.setdefault(kind, []).append(d)
        blocks = tuple((np.array(columns), _merge([axes[d] for d in columns])) for columns in groups.values())
        return cls(len(axes), blocks)

    @property
    def affine(self) -> tuple[Array, Array] | None:
        """(loc, scale), both (D,), where every axis is normal; else None."""
        first = self.blocks[0][1]
        if len(self.blocks) == 1 and isinstance(first, NormalAxes):
            return first.loc, first.scale
        return None

    @property
    def support(self) -> tuple[Array, Array]:
        """Bounds (low, high), both (D,)."""
        low, high = np.empty(self.dim), np.empty(self.dim)
        for columns, axes in self.blocks:
            low[columns], high[columns] = axes.low, axes.high
        return low, high

    def to_user(self, U: Array) -> Array:
        """x(u), (N, D)."""
        if len(self.blocks) == 1:
            return self.blocks[0][1].to_user(U)
        X = np.empty_like(U)
        for columns, axes in self.blocks:
            X[:, columns] = axes.to_user(U[:, columns])
        return X

    def to_base(self, X: Array) -> Array:
        """u(x), (N, D), for X inside the support; a point on a bound of it goes to |u| = 8.2 (tail mass 2⁻⁵³)."""
        U = np.empty_like(X)
        for columns, axes in self.blocks:
            U[:, columns] = axes.to_base(X[:, columns])
        return np.where(np.isinf(U), np.copysign(_EDGE, U), U)

    def log_pdf(self, X: Array, among: NDArray[np.bool_] | None = None) -> Array:
        """Σ_d log p_d(x_d), (N,), over all axes or over those ``among`` (D,) which the mask is true."""
        total = np.zeros(len(X))
        for columns, axes in self.blocks:
            each = axes.log_pdf(X[:, columns])
            total += each.sum(axis=1) if among is None else each[:, among[columns]].sum(axis=1)
        return total

    def log_jacobian(self, U: Array) -> Array:
        """log dx_d/du_d, (N, D)."""
        J = np.empty_like(U)
        for columns, axes in self.blocks:
            J[:, columns] = axes.log_jacobian(U[:, columns])
        return J


def _merge(axes: Sequence[Axes]) -> Axes:
    """One block from axes of one kind."""
    first = axes[0]
    if isinstance(first, NormalAxes):
        normals = cast("Sequence[NormalAxes]", axes)
        return NormalAxes(np.concatenate([a.loc for a in normals]), np.concatenate([a.scale for a in normals]))
    if isinstance(first, UniformAxes):
        return UniformAxes(np.concatenate([a.low for a in axes]), np.concatenate([a.high for a in axes]))
    if isinstance(first, LogAxes):
        logs = cast("Sequence[LogAxes]", axes)
        inner = cast("NormalAxes | UniformAxes", _merge([a.inner for a in logs]))
        shift, low, high = (np.concatenate([getattr(a, side) for a in logs]) for side in ("shift", "low", "high"))
        return LogAxes(shift, inner, low, high)
    return first
