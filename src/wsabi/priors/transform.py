"""The prior as nested samplers take it: a map from the unit cube."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from wsabi._core.checks import checked_names
from wsabi._core.types import Array, Seed, as_generator
from wsabi.priors.functions import evaluated

__all__ = ["Transform"]

# Nested samplers draw multiples of 2⁻⁵³ from the open cube: no transform has to cope with 0 or 1.
_CUBE_MARGIN = 2.0**-53


@dataclass(frozen=True, eq=False)
class Transform:
    """The prior of x = T(c), c uniform on the unit cube, as nested samplers take it.

    Parameters
    ----------
    prior_transform : T, from one (D,) point of the open unit cube to the (D,) parameters.
    dim : D.
    names : D names of the parameters.
    vectorized : whether T takes (N, D) and returns (N, D).
    """

    prior_transform: Callable[[Array], object]
    dim: int
    names: tuple[str, ...]
    vectorized: bool

    def __init__(
        self, prior_transform: Callable[[Array], object], dim: int,
        *, names: Sequence[str] | None = None, vectorized: bool = False,
    ) -> None:  # fmt: skip
        if not callable(prior_transform):
            raise TypeError(f"prior_transform must be a function of a (D,) array; got {prior_transform!r}.")
        if isinstance(dim, bool) or not isinstance(dim, int | np.integer):
            raise TypeError(f"dim must be an int, the length of the cube's points; got {type(dim).__name__}.")
        if dim < 1:
            raise ValueError(f"dim must be at least 1; got {dim}.")
        object.__setattr__(self, "prior_transform", prior_transform)
        object.__setattr__(self, "dim", int(dim))
        object.__setattr__(self, "names", checked_names(names, dim))
        object.__setattr__(self, "vectorized", bool(vectorized))

    def from_cube(self, C: Array) -> Array:
        """T(c_n), (N, D), for C (N, D), kept 2⁻⁵³ away from the faces of the cube."""
        open_cube = np.clip(C, _CUBE_MARGIN, 1.0 - _CUBE_MARGIN)
        X = evaluated(self.prior_transform, open_cube, (self.dim,), "prior_transform", vectorized=self.vectorized)
        bad = np.flatnonzero(~np.all(np.isfinite(X), axis=1))
        if bad.size:
            raise ValueError(
                f"prior_transform must return finite parameters; got {X[bad[0]]} "
                f"at the point {open_cube[bad[0]]} of the unit cube."
            )
        return X

    def log_pdf(self, X: Array) -> NoReturn:
        """Not available: T gives draws, not a density.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            "Transform has no density in the user's coordinates (its Jacobian is unknown); "
            "use Independent, Gaussian, GaussianMixture, Uniform or Polynomial where a density is needed."
        )

    def sample(self, n: int, rng: Seed = None) -> Array:
        """n draws, (n, D)."""
        return self.from_cube(as_generator(rng).random((n, self.dim)))
