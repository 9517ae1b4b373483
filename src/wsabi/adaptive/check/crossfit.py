"""Cross-fitting: the check points serve the surrogates as data, and check them all the same.

A surrogate that has been told a check point is no control variate for it: it knows the answer. The surrogate without
that one point is, and has the other check points as data. With M₋j the surrogate without check points u_j, and I₋j its
integral,

    Z = E[I₋j + (ℓπ − M₋j)(u_j)/p(u_j)]

for every j, since M₋j follows from the training data and from draws that are independent of u_j; so the mean over j is
as unbiased as with one M that has seen none of them, and M₋j is the better one (Chernozhukov et al., 2018, for the
name). What M₋j is made of beside data (q, θ, the highest value, which data count as noisy) is that of the training data
alone, but for a relative jitter of 1e-11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wsabi._core.types import Array, Indices
from wsabi.adaptive.models import Models
from wsabi.adaptive.search.known_regions import ground_of

__all__ = ["CrossFit"]


@dataclass(frozen=True)
class CrossFit:
    """Models whose surrogates have the n check points among their data, and the same without any one of them.

    Attributes
    ----------
    regions : with the check points.
    owners : for each region, which check points each of the last data of its surrogate is, or is an image of.
    n : number of check points.
    """

    regions: Models
    owners: Sequence[Indices]
    n: int

    @classmethod
    def without_any(cls, regions: Models, n: int) -> CrossFit:
        """Surrogates of which none has any of the n check points."""
        return cls(regions, [np.empty(0, dtype=np.intp)] * len(regions.parts), n)

    @classmethod
    def of(cls, regions: Models, X: Array, log_l: Array, n: int) -> CrossFit:
        """With X (M, D), log ℓ (M,): the n check points, and then all of them again for every symmetry image."""
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

    def without_each(self, X: Array) -> Array:
        """log M₋j, and log M with all of them last, (n + 1, M), at X (M, D)."""
        log_l = np.empty((self.n + 1, len(X)))
        for part, owners, mine in zip(self.regions.parts, self.owners, self.regions.shares(X), strict=True):
            if len(mine):
                groups = [np.flatnonzero(owners == j) for j in range(self.n + 1)]
                log_l[:, mine] = part.explorer.log_likelihood_without(X[mine], groups, len(owners))
        return log_l + self.regions.measure.log_pdf(X)
