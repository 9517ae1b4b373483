"""Weighted draws from the posterior ℓπ/Z, with the surface of a :class:`~wsabi.posterior.Posterior`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wsabi._types import Array, ArrayLike, Seed, as_generator
from wsabi.importance import checked_size, resample, warn_if_few
from wsabi.parameters import Groups
from wsabi.priors import named_arguments

__all__ = ["Marginal", "WeightedSamples", "parameter_index"]

_GRID = 200  # values of a default grid
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
    """

    points: Array
    weights: Array
    names: tuple[str, ...]
    keyed: bool = False
    groups: Groups = ()

    @classmethod
    def from_log_weights(
        cls, points: Array, log_weights: Array, names: Sequence[str], *, keyed: bool = False, groups: Groups = ()
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
        return cls(points[keep], weights / weights.sum(), tuple(names), keyed, groups)

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
        """Marginal density of one parameter: Σ w_n N(x; x_n, h²), a kernel density estimate.

        Parameters
        ----------
        parameter : its index or its name.
        grid : (G,) values; None is 200 values over the points and three bandwidths beyond.

        Notes
        -----
        h = 0.9 s n^(−1/5) (Silverman) with n the effective sample size and s the weighted standard deviation. At a hard
        edge of the prior the estimate leaks by about h.
        """
        x = self.points[:, parameter_index(parameter, self.names)]
        centre = float(self.weights @ x)
        sd = math.sqrt(float(self.weights @ np.square(x - centre)))
        # One point alone has no spread; any positive width then says no more and no less than that point.
        width = 0.9 * (sd if sd > 0.0 else max(abs(centre), 1.0) * 1e-6) * self.effective_sample_size**-0.2
        if grid is None:
            values = np.linspace(x.min() - 3.0 * width, x.max() + 3.0 * width, _GRID)
        else:
            values = np.array(grid, dtype=np.float64)
            if values.ndim != 1 or not np.all(np.isfinite(values)):
                raise ValueError(f"grid must be a vector of finite values; got shape {values.shape}.")
        density = np.zeros(values.size)
        for start in range(0, len(x), _BLOCK):
            rows = slice(start, start + _BLOCK)
            density += np.exp(-0.5 * np.square((values[:, None] - x[rows]) / width)) @ self.weights[rows]
        return Marginal(values, density / (width * math.sqrt(2.0 * math.pi)))

    def sample(self, n: int, rng: Seed = None) -> Array:
        """n draws, (n, D), by systematic resampling: a point of weight w occurs ⌊nw⌋ or ⌈nw⌉ times, in random order."""
        return np.asarray(self.points[resample(self.weights, checked_size(n), as_generator(rng))])
