"""The posterior of the parameters as people use it: one class, whatever the method that it comes from."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from wsabi._core.types import Array, ArrayLike, Seed, as_generator
from wsabi.posterior.distribution import shortest_interval
from wsabi.posterior.form import Form
from wsabi.posterior.named import NamedVector, columns_of
from wsabi.posterior.summary import LEVELS, Summary
from wsabi.posterior.weighted import Expectation, Marginal, Marginal2, WeightedSamples
from wsabi.priors.names import named_arguments
from wsabi.result import Diagnostics

__all__ = ["Interval", "Parameter", "Posterior"]

Kind = Literal["central", "highest-density"]

_POINTS = 4000  # weighted points that stand for a closed form
_EXPECT = 10_000
# A default grid of a joint density: even steps between these quantiles, and a tenth of their distance beyond.
_GRID, _TAIL, _MARGIN = 60, 1e-3, 0.1


class Interval(NamedTuple):
    """Two ends between which a parameter lies with a given probability; (D,) each, or of one parameter."""

    low: Any
    high: Any


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """p(x) = ℓ(x)π(x)/Z in the user's coordinates.

    Under the prior as measure it is a closed form of the model; by the adaptive engine and by Monte Carlo it is a set
    of weighted points. Both do all that is here. Parameters are named as in the prior: ``posterior["tau"]``,
    ``posterior.mean["tau"]``, and ``posterior["beta"]`` for a vector of them.

    Attributes
    ----------
    form : what it is made of.
    diagnostics : the model behind it along lines through its mode, and at the check points; None where not known.

    Examples
    --------
    >>> import wsabi
    >>> result = wsabi.integrate(lambda p: -0.5 * (p["a"] - 1.0) ** 2, {"a": (-9.0, 11.0)}, budget=60, rng=0)
    >>> posterior = result.posterior
    >>> abs(posterior.mean["a"] - 1.0) < 0.05, abs(posterior["a"].std - 1.0) < 0.05
    (True, True)
    >>> low, high = posterior["a"].interval(0.95)
    >>> abs(low + 0.96) < 0.1, abs(high - 2.96) < 0.1
    (True, True)
    """

    form: Form
    diagnostics: Diagnostics | None = None

    def __repr__(self) -> str:
        return f"Posterior({', '.join(self.names)}; {self.form.description})"

    @property
    def names(self) -> tuple[str, ...]:
        """D names of the parameters; elements of a vector are beta[0], beta[1], ..."""
        return self.form.names

    @property
    def dim(self) -> int:
        """Number of parameters D."""
        return len(self.names)

    @property
    def support(self) -> tuple[Array, Array]:
        """(low, high), both (D,): the prior is zero outside; ±inf where there is no bound."""
        everywhere = np.full(self.dim, np.inf)
        return (-everywhere, everywhere) if self.form.support is None else self.form.support

    def __getitem__(self, parameter: str | int) -> Parameter:
        return Parameter(self, str(parameter), columns_of(parameter, self.names, self.form.groups))

    # -- points -------------------------------------------------------------------------------------------------------

    @cached_property
    def _points(self) -> WeightedSamples:
        """All weighted points, or as many as stand for a closed form."""
        return self.form if isinstance(self.form, WeightedSamples) else self.form.weighted_sample(_POINTS, rng=0)

    def __getstate__(self) -> dict[str, Any]:
        return {"form": self.form, "diagnostics": self.diagnostics}

    @property
    def points(self) -> Array:
        """(N, D) points that stand for the posterior, with :attr:`weights`."""
        return self._points.points

    @property
    def weights(self) -> Array:
        """(N,) weights of :attr:`points`, with sum one."""
        return self._points.weights

    @property
    def effective_sample_size(self) -> float:
        """1/Σw²: the number of independent draws that the weighted points count as."""
        return self._points.effective_sample_size

    def weighted_sample(self, n: int, rng: Seed = None) -> WeightedSamples:
        """At most n points with weights; from a closed form n new ones, otherwise those there are, or some of them."""
        return self.form.weighted_sample(n, rng)

    def sample(self, n: int, rng: Seed = None) -> Array:
        """n draws, (n, D), by resampling of weighted points: one may occur more than once."""
        return self.form.sample(n, rng)

    def predict(self, g: Callable[..., object], n: int, rng: Seed = None) -> Array:
        """n draws of the posterior predictive: g at n draws of the posterior.

        Parameters
        ----------
        g : from the parameters, as the likelihood receives them (one (D,) point, or a dict of the names), to data that
            might be observed. A Generator is handed over as ``rng`` if g has a parameter of that name.

        Returns
        -------
        (n, ...), g's values in a row.

        Examples
        --------
        >>> import wsabi
        >>> result = wsabi.integrate(lambda x: -0.5 * x @ x, wsabi.Gaussian([0.0]), budget=40, rng=0)
        >>> data = result.posterior.predict(lambda x, rng: rng.normal(x[0], 0.1, size=5), 100, rng=1)
        >>> data.shape
        (100, 5)
        """
        generator = as_generator(rng)
        draws = self.sample(n, generator)
        more = {"rng": generator} if "rng" in inspect.signature(g).parameters else {}
        given = [named_arguments(self.form, x) if self.form.keyed else x for x in draws]
        return np.array([g(one, **more) for one in given])

    # -- moments and quantiles ----------------------------------------------------------------------------------------

    def _named(self, values: ArrayLike) -> NamedVector:
        return NamedVector(values, self.names, self.form.groups)

    @property
    def mean(self) -> NamedVector:
        """Mean (D,), also by name: ``posterior.mean["tau"]``."""
        return self._named(self.form.mean)

    @property
    def std(self) -> NamedVector:
        """Standard deviation (D,), also by name."""
        return self._named(np.sqrt(np.maximum(np.diag(self.cov), 0.0)))

    @property
    def cov(self) -> Array:
        """Covariance (D, D)."""
        return self.form.cov

    def quantile(self, q: float | ArrayLike) -> Array:
        """Values below which the parameters lie with probability q: (D,), also by name, or (Q, D) for several q."""
        levels = _checked_levels(q)
        values = np.stack([self.form.quantiles(d, levels.ravel()) for d in range(self.dim)], axis=-1)
        return self._named(values[0]) if levels.ndim == 0 else values.reshape((*levels.shape, self.dim))

    def interval(self, probability: float = 0.95, kind: Kind = "central") -> Interval:
        """Ends (low, high), (D,) each and also by name, between which a parameter lies with that probability.

        Parameters
        ----------
        kind : "central" leaves out as much below as above. "highest-density" is the shortest interval, one even where
            there are several modes.
        """
        ends = [self._interval(d, probability, kind) for d in range(self.dim)]
        return Interval(*(self._named(side) for side in zip(*ends, strict=True)))

    def _interval(self, axis: int, probability: float, kind: Kind) -> tuple[float, float]:
        if not 0.0 < probability < 1.0:
            raise ValueError(f"probability must lie between 0 and 1; got {probability}.")
        if kind == "central":
            low, high = self.form.quantiles(axis, np.array([0.5 - 0.5 * probability, 0.5 + 0.5 * probability]))
            return float(low), float(high)
        if kind != "highest-density":
            raise ValueError(f"kind must be 'central' or 'highest-density'; got {kind!r}.")
        return shortest_interval(lambda levels: self.form.quantiles(axis, levels), probability)

    def summary(self, levels: Sequence[float] = LEVELS) -> Summary:
        """A table to print, with mean, sd and quantiles of every parameter; its numbers are attributes."""
        return Summary(
            names=self.names,
            mean=self.mean,
            std=self.std,
            levels=tuple(float(level) for level in levels),
            quantiles=self.quantile(list(levels)),
            effective_sample_size=self.effective_sample_size,
        )

    # -- expectations -------------------------------------------------------------------------------------------------

    def expect(
        self, f: Callable[[Any], object], *, n: int | None = None, rng: Seed = 0, vectorized: bool = False
    ) -> float | Array:
        """E[f(x)] under the posterior, of the shape of one value of f.

        Parameters
        ----------
        f : from one (D,) point to a number or an array; receives a dict of the names where the prior is a dict. With
            ``vectorized``, from (M, D), or a dict of (M,) arrays, to (M, ...).
        n : number of weighted points; None is all there are, and 10,000 of a closed form.
        rng : what they are drawn with, where they are; the same points at every call unless it is changed.

        Warns
        -----
        LowSampleSizeWarning
            If the points are worth fewer than 100 independent draws.
        """
        return self._sampled(n, rng).expect(f, vectorized=vectorized)

    def _sampled(self, n: int | None, rng: Seed) -> WeightedSamples:
        if n is None and isinstance(self.form, WeightedSamples):
            return self.form
        return self.form.weighted_sample(_EXPECT if n is None else n, rng)

    def expect_with_error(
        self, f: Callable[[Any], object], *, n: int | None = None, rng: Seed = 0, vectorized: bool = False
    ) -> Expectation:
        """E[f(x)] and its standard error, as ``(value, error)``; see :meth:`expect`.

        The error is that of the finite number of weighted points. What the model does not know of the posterior is not
        in it: ``result.warnings`` speak of that.
        """
        return self._sampled(n, rng).expect_with_error(f, vectorized=vectorized)

    # -- densities ----------------------------------------------------------------------------------------------------

    def logpdf(self, x: ArrayLike) -> float | Array:
        """log p(x): a number for one (D,) point, (M,) for (M, D); −inf outside the support.

        By the model: the closed form, or the surrogate of log ℓ with the reported log Z. Posteriors of Monte Carlo, and
        those that rest on check points alone, have none, and a rough kernel estimate stands in for it.

        Raises
        ------
        TypeError
            For a ``Transform`` prior, which has no density in the user's coordinates.
        """
        X = np.asarray(x, dtype=np.float64)
        if X.ndim not in (1, 2) or X.shape[-1] != self.dim:
            raise ValueError(f"x must have shape ({self.dim},) or (M, {self.dim}); got {X.shape}.")
        values = self.form.log_density(np.atleast_2d(X))
        return float(values[0]) if X.ndim == 1 else values

    log_density = logpdf

    def marginal(self, parameter: int | str, grid: ArrayLike | None = None) -> Marginal:
        """Density of one parameter: (grid, density), both (G,).

        Parameters
        ----------
        grid : (G,) values; the density is zero outside the support. None is about 200 values inside it, closer where
            the density is high.
        """
        return self.form.marginal(self._column(parameter), grid)

    def marginal2(self, a: int | str, b: int | str, grids: tuple[ArrayLike, ArrayLike] | None = None) -> Marginal2:
        """Joint density (Ga, Gb) of two parameters on grids (Ga,) and (Gb,) inside the support.

        Parameters
        ----------
        grids : values of each; None is 60 even steps that hold all but a thousandth at each end.
        """
        first, second = self._column(a), self._column(b)
        if first == second:
            raise ValueError(f"a and b are the same parameter, {self.names[first]}: use marginal.")
        given = [self._grid(axis) for axis in (first, second)] if grids is None else [np.asarray(g) for g in grids]
        return self.form.marginal2(first, second, (given[0], given[1]))

    def _grid(self, axis: int) -> Array:
        low, high = self.form.quantiles(axis, np.array([_TAIL, 1.0 - _TAIL]))
        margin = max(_MARGIN * (high - low), 1e-9 * max(abs(low), abs(high), 1e-300))
        ends = self.support
        return np.linspace(max(low - margin, ends[0][axis]), min(high + margin, ends[1][axis]), _GRID)

    def _column(self, parameter: int | str) -> int:
        """The column of one number.

        Raises
        ------
        ValueError
            For an unknown name, or that of a vector.
        """
        try:
            column = columns_of(parameter, self.names, self.form.groups)
        except KeyError as error:
            raise ValueError(error.args[0]) from None
        if isinstance(column, slice):
            raise ValueError(f"{parameter} is a vector: name one of {', '.join(self.names[column])}.")
        return column


@dataclass(frozen=True, eq=False, repr=False)
class Parameter:
    """One parameter of a posterior, a number or a vector of k: ``posterior["tau"]``.

    Attributes
    ----------
    posterior : of all parameters.
    name, columns : which one it is.
    """

    posterior: Posterior
    name: str
    columns: int | slice

    def __repr__(self) -> str:
        names = self.names
        return "\n".join(
            f"{name}: {mean:.6g} ± {std:.2g}"
            for name, mean, std in zip(names, np.ravel(self.mean), np.ravel(self.std), strict=True)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The name, or those of a vector's elements."""
        names = self.posterior.names
        return names[self.columns] if isinstance(self.columns, slice) else (names[self.columns],)

    def _own(self, values: Array) -> Any:
        """Of (..., D) this parameter's share, (...) or (..., k)."""
        mine = np.asarray(values)[..., self.columns]
        return mine if mine.ndim else float(mine)

    @property
    def mean(self) -> Any:
        """A number, or (k,)."""
        return self._own(self.posterior.mean)

    @property
    def std(self) -> Any:
        """A number, or (k,)."""
        return self._own(self.posterior.std)

    @property
    def points(self) -> Array:
        """(N,) or (N, k), the weighted points, with :attr:`weights`."""
        return np.asarray(self._own(self.posterior.points))

    @property
    def weights(self) -> Array:
        """(N,)."""
        return self.posterior.weights

    def quantile(self, q: float | ArrayLike) -> Any:
        """As :meth:`Posterior.quantile`: a number, (k,), (Q,) or (Q, k)."""
        levels = _checked_levels(q)
        axes = np.arange(self.posterior.dim)[self.columns]
        found = [self.posterior.form.quantiles(int(d), levels.ravel()) for d in np.ravel(axes)]
        values = np.stack(found, axis=-1).reshape((*levels.shape, *axes.shape))
        return values if values.ndim else float(values)

    def interval(self, probability: float = 0.95, kind: Kind = "central") -> Interval:
        """As :meth:`Posterior.interval`."""
        axes = np.arange(self.posterior.dim)[self.columns]
        ends = [self.posterior._interval(int(d), probability, kind) for d in np.ravel(axes)]
        if axes.ndim == 0:
            return Interval(*ends[0])
        return Interval(*(np.array(side) for side in zip(*ends, strict=True)))

    def sample(self, n: int, rng: Seed = None) -> Array:
        """n draws, (n,) or (n, k)."""
        return np.asarray(self._own(self.posterior.sample(n, rng)))

    def marginal(self, grid: ArrayLike | None = None) -> Marginal:
        """As :meth:`Posterior.marginal`; for a number only."""
        return self.posterior.marginal(self.name if isinstance(self.columns, slice) else self.columns, grid)


def _checked_levels(q: float | ArrayLike) -> Array:
    levels = np.asarray(q, dtype=np.float64)
    if levels.ndim > 1 or not levels.size or not np.all((levels >= 0.0) & (levels <= 1.0)):
        raise ValueError(f"q must be one probability or a list of them, between 0 and 1; got {levels}.")
    return levels
