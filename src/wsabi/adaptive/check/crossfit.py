"""Cross-fitting: the check points are data of the surrogates, and still check them.

A surrogate that has a check point among its data interpolates it, and cannot be checked by it. The surrogate without
that one point can be checked by it, and has all other check points as data. With M₋j the surrogate without the check
point u_j, and I₋j its integral,

    Z = E[I₋j + (ℓπ − M₋j)(u_j)/p(u_j)]

for every j, because M₋j depends on the training data and on the other check points only. If the check points are
independent given the training data, the mean over j is as unbiased as with one M that has seen none of them, and M₋j is
the better model (Chernozhukov et al., 2018). q, θ, the highest value and the noise of M₋j are those of the training
data alone, up to the jitter of the kernel matrix. The assumption holds for the places of the check points. It does not
hold exactly for their number: the error bar, which they determine, decides when the run searches again or ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wsabi._core.types import Array, Indices
from wsabi.adaptive.models import Models
from wsabi.adaptive.search.explorer import max_data
from wsabi.adaptive.search.ground import ground_of

__all__ = ["CrossFit"]


@dataclass(frozen=True)
class CrossFit:
    """Models whose surrogates have the n check points as data, and the same regions without any one of the points.

    Attributes
    ----------
    regions : with the check points.
    owners : for each region, the numbers of the check points that the last data of its surrogate are, or are images of.
    n : number of check points.
    """

    regions: Models
    owners: Sequence[Indices]
    n: int

    @classmethod
    def without_any(cls, regions: Models, n: int) -> CrossFit:
        """Models whose surrogates have none of the n check points."""
        return cls(regions, [np.empty(0, dtype=np.intp)] * len(regions.parts), n)

    @classmethod
    def of(cls, regions: Models, X: Array, log_l: Array, n: int) -> CrossFit:
        """Models that are given X (M, D), log ℓ (M,): the n check points, followed by all of their symmetry images."""
        explorers, owners = {}, {}
        for part in regions.parts:
            if part.symmetry is None:
                mine = np.flatnonzero(ground_of(part.explorer, regions.explorers, X, log_l, least=0))
                explorers[part.family], rows = part.explorer.extended(X[mine], log_l[mine])
                owners[part.family] = mine[rows] % n
        return cls(regions.with_originals(explorers), [owners[part.family] for part in regions.parts], n)

    @property
    def is_plain(self) -> bool:
        """Whether no surrogate has any of the check points."""
        return all(len(owners) == 0 for owners in self.owners)

    def standard_errors(self, X: Array, log_l: Array) -> Array:
        """Errors of log M₋j at the check points X (n, D), log ℓ (n,), in units of its own sd, (n,)."""
        z = np.zeros(len(X))
        for part, owners, mine in zip(self.regions.parts, self.owners, self.regions.shares(X), strict=True):
            if len(mine):
                groups = [np.flatnonzero(owners == j) for j in mine]
                z[mine] = part.explorer.standard_errors(X[mine], log_l[mine], groups, len(owners))
        return z

    def without_own(self, X: Array) -> Array:
        """log M₋j at u_j for every j, (n,), with X (n, D) the check points."""
        log_l = np.empty(len(X))
        for part, owners, mine in zip(self.regions.parts, self.owners, self.regions.shares(X), strict=True):
            if len(mine):
                groups = [np.flatnonzero(owners == j) for j in mine]
                log_l[mine] = part.explorer.log_likelihood_own_without(X[mine], groups, len(owners))
        return log_l + self.regions.measure.log_pdf(X)

    @property
    def numbered(self) -> Indices:
        """(J,) numbers of the check points that :meth:`without_each` has rows for: all of them, where they are few.

        Of more than one surrogate can have for data, those that are data of some surrogate: for any other, M₋j is M.
        """
        if self.n <= max_data(self.regions.measure.dim):
            return np.arange(self.n)
        return np.unique(np.concatenate(self.owners))

    def without_each(self, X: Array) -> Array:
        """log M₋j for every j of :attr:`numbered`, and in the last row log M, (J + 1, M), at X (M, D)."""
        numbers = [*self.numbered, self.n]
        log_l = np.empty((len(numbers), len(X)))
        for part, owners, mine in zip(self.regions.parts, self.owners, self.regions.shares(X), strict=True):
            if len(mine):
                groups = [np.flatnonzero(owners == j) for j in numbers]
                log_l[:, mine] = part.explorer.log_likelihood_without(X[mine], groups, len(owners))
        return log_l + self.regions.measure.log_pdf(X)
