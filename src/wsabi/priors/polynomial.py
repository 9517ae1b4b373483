"""The measure with polynomial densities on intervals, and the polynomial density on the unit interval it is made of.

Each polynomial is kept twice, in powers of v and in powers of w = 1 − v, and each end of the interval is served by the
form that does not cancel there. The second form follows from the first exactly: every float is a fraction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.polynomial import polynomial as power_series

from wsabi._core.checks import box_bounds, checked_names
from wsabi._core.types import Array, ArrayLike, Seed, as_generator

__all__ = ["Polynomial", "UnitPolynomial"]

_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
# A density may fall below zero by this many units of round-off of Σ|c_k|: the square of a rounded (v − ⅓) does.
_SLACK = 8.0
_MAX_STEPS = 200  # of a Newton iteration guarded by bisection; it needs about 6, at a zero of the density about 60


@dataclass(frozen=True, eq=False)
class UnitPolynomial:
    """p(v) = Σ_k c_k vᵏ ≥ 0 on [0, 1], of mass one. Points are given by both v and w = 1 − v.

    Attributes
    ----------
    lower : (P,) c_k.
    upper : (P,) coefficients of the same polynomial in powers of w = 1 − v.
    mean, variance : of v.
    """

    lower: Array
    upper: Array
    mean: float
    variance: float

    @classmethod
    def normalised(cls, coefficients: ArrayLike, label: str) -> UnitPolynomial:
        """The density proportional to Σ_k c_k vᵏ, for coefficients (P,); errors name ``label``.

        Raises
        ------
        ValueError
            If a coefficient is not finite, or the polynomial is negative somewhere on [0, 1], or zero everywhere.
        """
        given = np.asarray(coefficients, dtype=np.float64)
        if given.ndim != 1 or given.size == 0:
            raise ValueError(f"coefficients of {label} must be a list of numbers, c_0 first; got shape {given.shape}.")
        if not np.all(np.isfinite(given)):
            raise ValueError(f"coefficients of {label} must be finite; got {given}.")
        exact = [Fraction(float(c)) for c in given]
        while len(exact) > 1 and exact[-1] == 0:
            exact.pop()
        total = _moment(exact, 0)
        _check_density(given, total, label)
        exact = [c / total for c in exact]
        mean = _moment(exact, 1)
        variance = _moment(exact, 2) - mean**2
        lower, upper = (_leading_positive([float(c) for c in form], label) for form in (exact, _reversed(exact)))
        return cls(lower, upper, float(mean), float(variance))

    @property
    def degree(self) -> int:
        """P − 1."""
        return self.lower.size - 1

    @property
    def lower_half(self) -> float:
        """∫ p over [0, ½]."""
        return float(_mass(self.lower, np.array(0.5)))

    def pdf(self, v: Array, w: Array) -> Array:
        """p, of the shape of v."""
        value = np.where(v <= w, power_series.polyval(v, self.lower), power_series.polyval(w, self.upper))
        return np.maximum(value, 0.0)  # below zero by round-off, where p has a zero

    def log_slope(self, v: Array, w: Array) -> Array:
        """d log p/dv, of the shape of v; zero where p is zero."""
        rise = power_series.polyval(v, power_series.polyder(self.lower))
        fall = -power_series.polyval(w, power_series.polyder(self.upper))
        p = self.pdf(v, w)
        return np.asarray(np.where(p > 0.0, np.where(v <= w, rise, fall) / np.where(p > 0.0, p, 1.0), 0.0))

    def masses(self, v: Array, w: Array) -> tuple[Array, Array]:
        """∫ p over [0, v] and over [v, 1]; the one on the nearer side of the middle keeps its relative accuracy."""
        near_low = v <= w
        near = np.where(near_low, _mass(self.lower, np.minimum(v, 0.5)), _mass(self.upper, np.minimum(w, 0.5)))
        near = np.clip(near, 0.0, 1.0)
        return np.where(near_low, near, 1.0 - near), np.where(near_low, 1.0 - near, near)

    def quantile(self, below: Array, above: Array) -> tuple[Array, Array]:
        """v and w = 1 − v with masses ``below`` and ``above`` = 1 − ``below`` on either side, each of their shape."""
        low = below <= self.lower_half
        near = np.empty_like(below)
        near[low] = _inverse_mass(self.lower, below[low])
        near[~low] = _inverse_mass(self.upper, above[~low])
        return np.where(low, near, 1.0 - near), np.where(low, 1.0 - near, near)


def _moment(coefficients: list[Fraction], order: int) -> Fraction:
    """∫ v^order Σ_k c_k vᵏ dv over [0, 1]."""
    return sum((c / (k + order + 1) for k, c in enumerate(coefficients)), Fraction(0))


def _reversed(coefficients: list[Fraction]) -> list[Fraction]:
    """Coefficients in powers of w = 1 − v: d_j = (−1)ʲ Σ_k binomial(k, j) c_k."""
    n = len(coefficients)
    return [
        (-1) ** j * sum((math.comb(k, j) * coefficients[k] for k in range(j, n)), Fraction(0)) for j in range(n)
    ]  # fmt: skip


def _check_density(coefficients: Array, total: Fraction, label: str) -> None:
    """Raise unless the polynomial is non-negative on [0, 1], to round-off, and not zero."""
    slope = power_series.polyder(np.append(np.trim_zeros(coefficients, "b"), 0.0))[:-1]
    real = np.real(power_series.polyroots(slope) if slope.size else [])  # a double root may come as a complex pair
    v = np.concatenate([[0.0, 1.0], real[(real > 0.0) & (real < 1.0)]])
    values = power_series.polyval(v, coefficients)
    least = int(np.argmin(values))
    if values[least] < -_SLACK * _EPS * coefficients.size * np.abs(coefficients).sum():
        raise ValueError(
            f"the density of {label} must not be negative on its interval; its polynomial is {values[least]:.3g} at "
            f"t = {v[least]:.6g}, t = (x − low)/(high − low)."
        )
    if not total > 0:
        raise ValueError(f"the density of {label} must not be zero everywhere; got coefficients {coefficients}.")


def _leading_positive(coefficients: list[float], label: str) -> Array:
    """The coefficients with a first one that is not zero above zero, as near the end a density's must be.

    One that is below zero by round-off of the others is set to zero.
    """
    found = np.array(coefficients)
    for k, c in enumerate(coefficients):
        if c > 0.0:
            break
        if -c > _SLACK * _EPS * found.size * np.abs(found).sum():
            raise ValueError(f"the density of {label} must not be negative on its interval; it is, next to an end.")
        found[k] = 0.0
    return found


def _mass(coefficients: Array, v: Array) -> Array:
    """∫ Σ_k c_k sᵏ ds over [0, v] = v Σ_k c_k vᵏ/(k + 1)."""
    return np.asarray(v * power_series.polyval(v, coefficients / np.arange(1, coefficients.size + 1)))


def _inverse_mass(coefficients: Array, mass: Array) -> Array:
    """v in (0, ½] with ∫ Σ_k c_k sᵏ ds over [0, v] equal to ``mass`` (M,).

    In logarithms, y = log v: log mass = (j + 1) y + log S(v) with v^(j+1) S(v) the integral and c_j its first
    coefficient above zero. That is a straight line near the end, so Newton's iteration keeps its digits at any mass.
    """
    j = int(np.flatnonzero(coefficients)[0])
    shares = coefficients[j:] / np.arange(j + 1, coefficients.size + 1)
    target = np.log(np.maximum(mass, _TINY))
    high = np.full(mass.shape, math.log(0.5))
    low = np.minimum((target - math.log(np.abs(shares).sum())) / (j + 1), high)
    y = np.clip((target - math.log(shares[0])) / (j + 1), low, high)
    for _ in range(_MAX_STEPS):
        v = np.exp(y)
        S = np.maximum(power_series.polyval(v, shares), _TINY)
        excess = (j + 1) * y + np.log(S) - target
        high, low = np.where(excess > 0.0, y, high), np.where(excess > 0.0, low, y)
        slope = power_series.polyval(v, coefficients[j:]) / S  # d(log mass)/dy, zero where the density is
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = y - excess / slope
        following = np.where((step >= low) & (step <= high), step, 0.5 * (low + high))
        done = np.abs(following - y) <= 2.0 * _EPS * np.maximum(1.0, np.abs(y))
        y = following
        if np.all(done):
            break
    return np.minimum(np.exp(y), 0.5)


@dataclass(frozen=True, eq=False)
class Polynomial:
    """Independent parameters, each with a density that is a polynomial on an interval.

    p(x) = ∏_d p_d(t_d)/(high_d − low_d) with p_d(t) ∝ Σ_k c_dk tᵏ and t_d = (x_d − low_d)/(high_d − low_d) in [0, 1].

    Parameters
    ----------
    low, high : scalars or (D,), with low < high.
    coefficients : (P,) c_0, c_1, ... for all parameters alike, or one such list for each, of any lengths. They need
        not be normalised, but the density must not be negative anywhere on the interval.
    names : D names of the parameters, used by results, tables and plots.

    Notes
    -----
    The paper names the polynomial among the densities for which mean and variance of Z are analytic (section 2, after
    eq. (3)). [1] is uniform, [0, 1] rises from zero to 2, [0, 1, −1] is the parabola 6t(1 − t).

    Examples
    --------
    >>> prior = Polynomial([0.0, -1.0], [1.0, 3.0], [[0.0, 1.0], [0.0, 1.0, -1.0]])
    >>> prior.mean.round(6).tolist()
    [0.666667, 1.0]
    """

    low: Array
    high: Array
    names: tuple[str, ...]
    densities: tuple[UnitPolynomial, ...] = field(repr=False)

    def __init__(
        self, low: ArrayLike, high: ArrayLike, coefficients: ArrayLike | Sequence[ArrayLike],
        *, names: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        low_, high_ = box_bounds(low, high)
        each = _coefficient_rows(coefficients, low_.size)
        names_ = checked_names(names, len(each))
        densities = [UnitPolynomial.normalised(c, name) for c, name in zip(each, names_, strict=True)]
        self._fill(low_, high_, densities, names_)

    def _fill(self, low: Array, high: Array, densities: Sequence[UnitPolynomial], names: tuple[str, ...]) -> None:
        object.__setattr__(self, "low", np.broadcast_to(low, (len(names),)).copy())
        object.__setattr__(self, "high", np.broadcast_to(high, (len(names),)).copy())
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "densities", tuple(densities))

    @classmethod
    def of_densities(
        cls, low: Array, high: Array, densities: Sequence[UnitPolynomial], names: Sequence[str] | None = None
    ) -> Polynomial:
        """The same densities of t on other intervals (D,), with no rounding of their coefficients."""
        moved = cls.__new__(cls)
        moved._fill(low, high, densities, checked_names(names, len(densities)))
        return moved

    @property
    def dim(self) -> int:
        """Number of dimensions D."""
        return self.low.size

    @property
    def coefficients(self) -> tuple[Array, ...]:
        """Normalised coefficients (P_d,) of each parameter, in powers of t."""
        return tuple(density.lower.copy() for density in self.densities)

    @property
    def mean(self) -> Array:
        """low + (high − low) E[t], (D,)."""
        return np.asarray(self.low + (self.high - self.low) * [density.mean for density in self.densities])

    @property
    def cov(self) -> Array:
        """diag((high − low)² V[t]), (D, D)."""
        return np.diag(np.square(self.high - self.low) * [density.variance for density in self.densities])

    def _shares(self, X: Array) -> tuple[Array, Array]:
        """Shares of the interval below and above x, (N, D) each."""
        width = self.high - self.low
        return (X - self.low) / width, (self.high - X) / width

    def log_pdf(self, X: Array) -> Array:
        """log π(x_n), (N,), for X (N, D): −inf outside, and where the density is zero."""
        V, W = self._shares(X)
        p = np.column_stack([density.pdf(v, w) for density, v, w in zip(self.densities, V.T, W.T, strict=True)])
        with np.errstate(divide="ignore"):
            log_p = np.log(np.where((V >= 0.0) & (W >= 0.0), p, 0.0))
        return np.asarray((log_p - np.log(self.high - self.low)).sum(axis=1))

    def grad_log_pdf(self, X: Array) -> Array:
        """∇ log π(x_n), (N, D); zero where the density is zero."""
        columns = zip(self.densities, *(share.T for share in self._shares(X)), strict=True)
        slopes = [density.log_slope(v, w) for density, v, w in columns]
        return np.column_stack(slopes) / (self.high - self.low)

    def log_pdf_and_gradient(self, x: Array) -> tuple[float, Array]:
        """log π and ∇ log π (D,) at one point x (D,)."""
        return float(self.log_pdf(x[None, :])[0]), self.grad_log_pdf(x[None, :])[0]

    def quantile(self, C: Array) -> Array:
        """x with x_d of distribution function c_nd, (N, D), for C (N, D) in the unit cube."""
        columns = []
        for c, low, high, density in zip(C.T, self.low, self.high, self.densities, strict=True):
            v, w = density.quantile(c, 1.0 - c)
            columns.append(np.where(v <= w, low + (high - low) * v, high - (high - low) * w))
        return np.column_stack(columns)

    def sample(self, n: int, rng: Seed = None) -> Array:
        """n draws, (n, D)."""
        return self.quantile(as_generator(rng).random((n, self.dim)))


def _coefficient_rows(coefficients: ArrayLike | Sequence[ArrayLike], dim: int) -> list[ArrayLike]:
    """One list of coefficients per parameter, from one for all or from one each; one bound may serve several lists."""
    given = list(np.atleast_1d(coefficients)) if isinstance(coefficients, np.ndarray) else coefficients
    if not (isinstance(given, list | tuple) and given):
        raise ValueError(
            f"coefficients must be a list of numbers, c_0 first, or one per parameter; got {coefficients!r}."
        )
    if all(np.ndim(c) == 0 for c in given):
        return [np.asarray(given)] * dim
    if dim not in (1, len(given)):
        raise ValueError(
            f"coefficients must be one list or {dim}, one per dimension of low and high; got {len(given)}."
        )
    return list(given)
