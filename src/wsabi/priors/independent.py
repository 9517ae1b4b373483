"""What a list or a dict of distributions stands for: D parameters, of which some may form vectors under one name.

An entry of a dict is one parameter (a frozen ``scipy.stats`` distribution or a (low, high) pair) or a vector of k of
them (a list of such entries, a (k, 2) array of bounds, or a Gaussian, GaussianMixture or Uniform). A vector called beta
has the parameters beta[0], ..., beta[k−1], and a function that receives a dict finds a (k,) array under "beta".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from wsabi._core.types import Array, Seed, as_generator
from wsabi.priors.axes import Axes, Marginals, NormalAxes, UniformAxes
from wsabi.priors.box import Uniform
from wsabi.priors.distributions import as_axis
from wsabi.priors.gaussian import Gaussian
from wsabi.priors.mixture import GaussianMixture
from wsabi.priors.names import Groups

__all__ = ["Independent", "Parameters", "standardised"]

Block = Gaussian | GaussianMixture


def standardised(prior: Block) -> Block:
    """The same distribution of u = (x − mean)/sd, per axis, with the overall mean and standard deviations."""
    mean, sd = prior.mean, np.sqrt(np.diag(prior.cov))
    units = np.outer(sd, sd)
    if isinstance(prior, Gaussian):
        correlation = prior.cov / units
        np.fill_diagonal(correlation, 1.0)  # exactly, whatever the rounding of √
        return Gaussian(np.zeros(prior.dim), correlation, names=prior.names)
    means = np.stack([(c.mean - mean) / sd for c in prior.components])
    return GaussianMixture(prior.weights, means, [c.cov / units for c in prior.components], names=prior.names)


@dataclass(frozen=True, eq=False)
class Parameters:
    """D parameters: the map of each to its base coordinate u_d, and the joint distribution of u.

    Attributes
    ----------
    names : D names.
    groups : the names of the entries with their columns, in order; an int for a scalar and a slice for a vector.
    marginals : the maps x_d(u_d).
    blocks : columns and joint distribution, in the user's coordinates, of parameters that depend on each other. Their
        axes are affine. All other u_d are independent and N(0, 1).
    """

    names: tuple[str, ...]
    groups: Groups
    marginals: Marginals
    blocks: tuple[tuple[slice, Block], ...]

    @classmethod
    def of(cls, specs: Sequence[object], names: Sequence[str] | None) -> Parameters:
        """Parameters of the entries of a list (``names`` is None) or of a dict.

        Raises
        ------
        TypeError, ValueError
            With the entry at fault.
        """
        if names is None:
            axes = [as_axis(spec, f"prior[{d}]") for d, spec in enumerate(specs)]
            default = tuple(f"x{d}" for d in range(len(axes)))
            return cls(default, tuple((name, d) for d, name in enumerate(default)), Marginals.gather(axes), ())
        axes = []
        all_names: list[str] = []
        groups: list[tuple[str, int | slice]] = []
        blocks: list[tuple[slice, Block]] = []
        for name, spec in zip(names, specs, strict=True):
            start, label = len(axes), f"prior[{name!r}]"
            members = _members(spec, label)
            if members is None:
                axes.append(as_axis(spec, label))
                all_names.append(name)
                groups.append((name, start))
                continue
            columns = slice(start, start + len(members))
            axes += members
            all_names += [f"{name}[{i}]" for i in range(len(members))]
            groups.append((name, columns))
            if isinstance(spec, Gaussian | GaussianMixture) and not _is_independent(spec):
                blocks.append((columns, spec))
        twice = next((name for i, name in enumerate(all_names) if name in all_names[:i]), None)
        if twice is not None:
            raise ValueError(
                f"prior has two parameters named {twice!r}: one of a vector and one by itself. Rename one."
            )
        return cls(tuple(all_names), tuple(groups), Marginals.gather(axes), tuple(blocks))

    @property
    def measure(self) -> Block:
        """The distribution of u: N(0, I) where no parameters depend on each other."""
        dim = len(self.names)
        parts = [(1.0, np.zeros(dim), np.eye(dim))]  # weight, mean and covariance of each component
        for columns, block in self.blocks:
            unit = standardised(block)
            inner = (
                [(1.0, unit)] if isinstance(unit, Gaussian) else list(zip(unit.weights, unit.components, strict=True))
            )
            parts = [
                (weight * float(share), _with(mean, columns, g.mean), _with(cov, (columns, columns), g.cov))
                for weight, mean, cov in parts
                for share, g in inner
            ]
        weights, means, covs = (list(column) for column in zip(*parts, strict=True))
        if len(parts) == 1:
            return Gaussian(means[0], covs[0], names=self.names)
        return GaussianMixture(weights, np.stack(means), covs, names=self.names)

    def log_pdf(self, X: Array) -> Array:
        """Log density, (N,), for X (N, D): the sum over independent parameters and blocks."""
        if not self.blocks:
            return self.marginals.log_pdf(X)
        alone = np.ones(len(self.names), dtype=bool)
        total = np.zeros(len(X))
        for columns, block in self.blocks:
            alone[columns] = False
            total += block.log_pdf(X[:, columns])
        return total + self.marginals.log_pdf(X, alone)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """n draws, (n, D)."""
        dim = len(self.names)
        U = self.measure.sample(n, rng) if self.blocks else rng.standard_normal((n, dim))
        return self.marginals.to_user(U)


@dataclass(frozen=True, eq=False)
class Independent:
    """Independent parameters, each with its own one-dimensional distribution.

    Parameters
    ----------
    distributions : list of frozen continuous ``scipy.stats`` distributions or (low, high) pairs, a pair meaning
        uniform; or a dict of the same by name, and then the likelihood receives a dict of those names. An entry of a
        dict may also be a vector: a list of distributions and pairs, a (k, 2) array of bounds, or a ``Gaussian``,
        ``GaussianMixture`` or ``Uniform``. The likelihood receives a (k,) array under that name.
    **named : the same by keyword: parameters have names, the likelihood receives one (D,) array.

    Examples
    --------
    >>> from scipy import stats
    >>> Independent(amp=stats.norm(0, 2), tau=(0.1, 10.0)).names
    ('amp', 'tau')
    >>> Independent({"beta": Gaussian([0, 0], [[1, 0.5], [0.5, 1]]), "sigma": (0, 1)}).names
    ('beta[0]', 'beta[1]', 'sigma')
    """

    distributions: tuple[object, ...]
    names: tuple[str, ...]
    keyed: bool
    parameters: Parameters = field(repr=False)

    def __init__(
        self, distributions: Mapping[str, object] | Sequence[object] | None = None, /, **named: object
    ) -> None:
        if (distributions is None) == (not named):
            raise TypeError("Independent takes one list or dict of distributions, or keywords name=distribution.")
        specs, names = _specs_and_names(named if distributions is None else distributions)
        parameters = Parameters.of(specs, names)
        object.__setattr__(self, "distributions", specs)
        object.__setattr__(self, "names", parameters.names)
        object.__setattr__(self, "keyed", isinstance(distributions, Mapping))
        object.__setattr__(self, "parameters", parameters)

    @property
    def dim(self) -> int:
        """Number of dimensions D."""
        return len(self.names)

    @property
    def groups(self) -> Groups:
        """Names of the entries with their columns: an int for a number, a slice for a vector."""
        return self.parameters.groups

    @property
    def marginals(self) -> Marginals:
        """The maps from base coordinates to the user's, one for each parameter."""
        return self.parameters.marginals

    def log_pdf(self, X: Array) -> Array:
        """Sum of the log densities of the entries, (N,), for X (N, D)."""
        return self.parameters.log_pdf(X)

    def sample(self, n: int, rng: Seed = None) -> Array:
        """n draws, (n, D)."""
        return self.parameters.sample(n, as_generator(rng))


def _members(spec: object, label: str) -> list[Axes] | None:
    """The axes of a vector entry, one each; None where the entry is one parameter."""
    if isinstance(spec, Uniform):
        return [UniformAxes(spec.low[d : d + 1], spec.high[d : d + 1]) for d in range(spec.dim)]
    if isinstance(spec, Gaussian | GaussianMixture):
        # A component of a mixture is not N(0, 1) in these coordinates: Parameters.measure says what it is.
        mean, sd = spec.mean, np.sqrt(np.diag(spec.cov))
        return [NormalAxes(mean[d : d + 1], sd[d : d + 1]) for d in range(spec.dim)]
    entries: Sequence[object]
    if isinstance(spec, np.ndarray) and spec.ndim == 2:
        entries = list(spec)
    elif isinstance(spec, tuple | list) and any(_is_entry(item) for item in spec):
        entries = spec
    else:
        return None
    return [as_axis(item, f"{label}[{i}]") for i, item in enumerate(entries)]


def _is_entry(item: object) -> bool:
    """Whether an item of a list is a parameter of its own, so that the list is a vector and not a (low, high) pair."""
    return isinstance(item, tuple | list | np.ndarray) or hasattr(item, "support")


def _is_independent(block: Block) -> bool:
    """Whether a block is a product of normal distributions."""
    return isinstance(block, Gaussian) and not np.any(block.cov[~np.eye(block.dim, dtype=bool)])


def _with(array: Array, where: slice | tuple[slice, slice], values: NDArray[np.float64]) -> Array:
    """A copy of the array with some entries replaced."""
    changed = array.copy()
    changed[where] = values
    return changed


def _specs_and_names(
    distributions: Mapping[str, object] | Sequence[object],
) -> tuple[tuple[object, ...], tuple[str, ...] | None]:
    """Entries of a list or dict of distributions, and the dict's names."""
    if not isinstance(distributions, Mapping | list | tuple):
        raise TypeError(f"distributions must be a list or a dict; got {type(distributions).__name__}.")
    if not distributions:
        raise ValueError("prior is empty: give at least one parameter.")
    if not isinstance(distributions, Mapping):
        return tuple(distributions), None
    for name in distributions:
        if not isinstance(name, str):
            raise TypeError(f"names of parameters must be strings; got {name!r} ({type(name).__name__}).")
    return tuple(distributions.values()), tuple(distributions)
