"""Weighted draws from the posterior ℓπ/Z, with the surface of a :class:`~wsabi.posterior.closed_form.Posterior`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from wsabi._core.types import Array, ArrayLike, Seed, as_generator
from wsabi.posterior.importance import checked_size, resample, warn_if_few
from wsabi.priors.names import Groups, named_arguments

__all__ = ["Marginal", "WeightedSamples", "parameter_index"]

_GRID = 200  # values of a default grid
_TAIL = 1e-3  # posterior mass beyond either end of a default grid, before three bandwidths are added to it
# Coordinate of the kernel estimate: z = asinh((x − median)/(_CORE s)), s the robust sd. It is linear to 4 % within
# half of _CORE robust sds of the median and logarithmic far outside, where one bandwidth in x would be too narrow.
_CORE = 3.0
_BLOCK = 2**13  # draws per block of a kernel density estimate: 200 × 8192 doubles are 13 MB


class Marginal(NamedTuple):
    """A one-dimensional marginal: ``density`` (G,) at ``grid`` (G,), in the user's coordinates."""

    grid: Array
    density: Array


def parameter_index(parameter: int | str, names: Sequence[str]) -> int:
    """Index of a parameter given by index or name."""
    if isinstance(parameter, str):
        if parameter not in names:
            raise ValueError(f"parameter {parameter!r} is not one of {', '.join(names)}.")
        return list(names).index(parameter)
    if isinstance(parameter, bool) or not isinstance(parameter, int | np.integer):
        raise TypeError(f"parameter must be an index or a name; got {type(parameter).__name__}.")
    dim = len(names)
    if not -dim <= parameter < dim:
        raise ValueError(f"parameter must be an index below {dim}, the number of parameters; got {parameter}.")
    return int(parameter) % dim


@dataclass(frozen=True, eq=False, repr=False)
class WeightedSamples:
    """Points x_n with weights w_n: E[f] ≈ Σ w_n f(x_n).

    Attributes
    ----------
    points : (N, D) in the user's coordinates.
    weights : (N,) positive, with sum one.
    names : D names of the parameters.
    keyed : whether functions of x receive a dict of the names.
    groups : names of the dict's entries with their columns, a slice for a vector; empty where each name is an entry.
    support : (low, high), both (D,), outside which the prior is zero, ±inf where it has no bound; None if not known.
    """

    points: Array
    weights: Array
    names: tuple[str, ...]
    keyed: bool = False
    groups: Groups = ()
    support: tuple[Array, Array] | None = None

    @classmethod
    def from_log_weights(
        cls,
        points: Array,
        log_weights: Array,
        names: Sequence[str],
        *,
        keyed: bool = False,
        groups: Groups = (),
        support: tuple[Array, Array] | None = None,
    ) -> WeightedSamples:
        """Normalise log weights (N,), −inf allowed; points of zero weight are left out.

        Raises
        ------
        ValueError
            If no weight is positive.
        """
        keep = log_weights > -np.inf
        if not keep.any():
            raise ValueError(f"log_weights has no finite value among {len(log_weights)}: there is no posterior.")
        weights = np.exp(log_weights[keep] - log_weights.max())
        return cls(points[keep], weights / weights.sum(), tuple(names), keyed, groups, support)

    def __repr__(self) -> str:
        return f"WeightedSamples({', '.join(self.names)}; {len(self.points)} points)"

    @property
    def dim(self) -> int:
        """Number of dimensions D."""
        return len(self.names)

    @property
    def effective_sample_size(self) -> float:
        """1/Σw²: the number of independent draws that would say as much."""
        return 1.0 / float(np.square(self.weights).sum())

    @property
    def mean(self) -> Array:
        """Σ w_n x_n, (D,)."""
        return np.asarray(self.weights @ self.points)

    @property
    def cov(self) -> Array:
        """Σ w_n (x_n − x̄)(x_n − x̄)ᵀ, (D, D)."""
        centred = self.points - self.mean
        return np.asarray((centred.T * self.weights) @ centred)

    def expect(self, f: Callable[[Any], object], *, vectorized: bool = False) -> float | Array:
        """Σ w_m f(x_m), of the shape of one value of f.

        Parameters
        ----------
        f : from one (D,) point, or a dict where ``keyed``, to a number or an array; with ``vectorized``, from (M, D),
            or a dict of (M,) arrays, to (M, ...).

        Raises
        ------
        ValueError
            If f is not finite at a point, or returns the wrong number of values.
        """
        warn_if_few(self.weights, stacklevel=4)
        X = self.points
        if vectorized:
            values = np.asarray(f(self._given(X)), dtype=np.float64)
            if values.ndim == 0 or len(values) != len(X):
                raise ValueError(
                    f"f returned shape {values.shape} for {len(X)} points; expected ({len(X)}, ...). "
                    "With vectorized=True it is given all points at once, one per row."
                )
        else:
            values = np.array([f(self._given(x)) for x in X], dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(values).reshape(len(X), -1).all(axis=1))
        if bad.size:
            raise ValueError(f"f must be finite where the posterior is positive; got {values[bad[0]]} at {X[bad[0]]}.")
        mean = np.tensordot(self.weights, values, axes=1)
        return float(mean) if values.ndim == 1 else np.asarray(mean)

    def _given(self, X: Array) -> Array | dict[str, Any]:
        """What f receives: a copy, for it may work in place."""
        return named_arguments(self, X) if self.keyed else X.copy()

    def marginal(self, parameter: int | str, grid: ArrayLike | None = None) -> Marginal:
        """Marginal density of one parameter, by a kernel density estimate that keeps to the support of the prior.

        Parameters
        ----------
        parameter : its index or its name.
        grid : (G,) values of the parameter; the density is zero at those outside the support. None is up to
            200 values inside the support, closer where the density is high, from the 0.1 % to the 99.9 % quantile and
            three bandwidths beyond.

        Returns
        -------
        (grid, density), both (G,).

        Notes
        -----
        The estimate is made in z = asinh((x − median)/3s), s = min(sd, IQR/1.34), in which heavy tails are short, with
        a Gaussian kernel of width 0.9 s_z n^(−1/5) (Silverman), n the effective sample size. Near a finite end of the
        support it is corrected to second order in that width (Jones & Foster, Statistica Sinica 6, 1996, eq. 1.2): the
        density there may have any value and any slope, and its integral is one to about 2 %.
        """
        axis = parameter_index(parameter, self.names)
        x = self.points[:, axis]
        low, high = (-math.inf, math.inf) if self.support is None else (float(end[axis]) for end in self.support)
        centre, spread = _centre_and_spread(x, self.weights)
        # One point alone has no spread; any positive width then says no more and no less than that point.
        unit = _CORE * (spread if spread > 0.0 else max(abs(centre), 1.0) * 1e-6)
        z, ends = np.arcsinh((x - centre) / unit), np.arcsinh((np.array([low, high]) - centre) / unit)
        _, spread_z = _centre_and_spread(z, self.weights)
        width = 0.9 * (spread_z if spread_z > 0.0 else 1.0 / _CORE) * self.effective_sample_size**-0.2
        if grid is None:
            at = _default_grid(z, self.weights, width, ends)
            values = np.clip(centre + unit * np.sinh(at), low, high)
            inside = np.ones(values.size, dtype=bool)
        else:
            values = np.array(grid, dtype=np.float64)
            if values.ndim != 1 or not np.all(np.isfinite(values)):
                raise ValueError(f"grid must be a vector of finite values; got shape {values.shape}.")
            inside = (values >= low) & (values <= high)
            at = np.arcsinh((values[inside] - centre) / unit)
        density = np.zeros(values.size)
        jacobian = 1.0 / (unit * np.cosh(at))  # dz/dx
        density[inside] = _bounded_density(at, z, self.weights, width, ends) * jacobian
        return Marginal(values, density)

    def sample(self, n: int, rng: Seed = None) -> Array:
        """n draws, (n, D), by systematic resampling: a point of weight w occurs ⌊nw⌋ or ⌈nw⌉ times, in random order."""
        return np.asarray(self.points[resample(self.weights, checked_size(n), as_generator(rng))])


def _quantiles(x: Array, weights: Array, levels: Array) -> Array:
    """Quantiles of weighted values x (N,) at the given levels: half of a value's weight lies on either side of it."""
    order = np.argsort(x)
    below = np.cumsum(weights[order]) - 0.5 * weights[order]
    return np.asarray(np.interp(levels, below, x[order]))


def _centre_and_spread(x: Array, weights: Array) -> tuple[float, float]:
    """Median of weighted values x (N,), and min(sd, IQR/1.34), the sd of a normal of that interquartile range."""
    lower, centre, upper = _quantiles(x, weights, np.array([0.25, 0.5, 0.75]))
    largest = float(np.max(np.abs(x - centre)))
    if largest == 0.0:
        return float(centre), 0.0
    # Scaled by the largest: values of 1e200, which a heavy-tailed prior does give, have a square that overflows.
    scaled = (x - centre) / largest
    mean = float(weights @ scaled)
    sd = largest * math.sqrt(float(weights @ np.square(scaled - mean)))
    robust = float(upper - lower) / 1.34
    return float(centre), min(sd, robust) if robust > 0.0 else sd


def _default_grid(z: Array, weights: Array, width: float, ends: Array) -> Array:
    """Values (G,) of z inside ``ends`` (2,): even steps of ½F(z) + ½(z − first)/(last − first).

    F is the distribution function. Even steps in z alone would pass by a narrow peak, even steps in F alone would leave
    the tails out.
    """
    first, last = _quantiles(z, weights, np.array([_TAIL, 1.0 - _TAIL])) + np.array([-3.0, 3.0]) * width
    first, last = max(first, ends[0]), min(last, ends[1])
    levels = np.linspace(_TAIL, 1.0 - _TAIL, _GRID)
    nodes = np.concatenate([[first], _quantiles(z, weights, levels), [last]])
    level = 0.5 * np.concatenate([[0.0], levels, [1.0]]) + 0.5 * (nodes - first) / (last - first)
    # One point of large weight is several quantiles at once: it gets one value.
    return np.unique(np.interp(np.linspace(0.0, 1.0, _GRID), level, nodes))


def _bounded_density(at: Array, z: Array, weights: Array, width: float, ends: Array) -> Array:
    """Density (G,) at ``at`` (G,) of weighted values z (N,) known to lie between ``ends`` (2,), with a Gaussian kernel.

    With t = (at − z)/h and a_j = ∫ t^j φ(t) dt over the t that the ends allow: the kernel φ(t)/a_0 gives a density f_0
    that is right to O(h), the kernel (a_2 − a_1 t) φ(t)/(a_0 a_2 − a_1²) gives f_1, right to O(h²) and sometimes
    negative, and f_0 exp(f_1/f_0 − 1) is positive and right to O(h²). Far from the ends all are the plain one.
    """
    zeroth, first = np.zeros(at.size), np.zeros(at.size)
    for start in range(0, len(z), _BLOCK):
        rows = slice(start, start + _BLOCK)
        t = (at[:, None] - z[rows]) / width
        kernel = np.exp(-0.5 * np.square(t))
        zeroth += kernel @ weights[rows]
        first += (kernel * t) @ weights[rows]
    norm = width * math.sqrt(2.0 * math.pi)
    zeroth, first = zeroth / norm, first / norm
    # Ends farther than 40 widths are as good as none, and finite: ∞·φ(∞) would be NaN.
    top = np.minimum((at - ends[0]) / width, 40.0)
    bottom = np.maximum((at - ends[1]) / width, -40.0)
    phi_top, phi_bottom = (np.exp(-0.5 * np.square(t)) / math.sqrt(2.0 * math.pi) for t in (top, bottom))
    a0 = ndtr(top) - ndtr(bottom)
    a1 = phi_bottom - phi_top
    a2 = a0 + bottom * phi_bottom - top * phi_top
    plain = zeroth / a0
    linear = (a2 * zeroth - a1 * first) / (a0 * a2 - np.square(a1))
    ratio = np.divide(linear, plain, out=np.ones_like(plain), where=plain > 0.0)
    return np.asarray(plain * np.exp(ratio - 1.0))
