"""Symmetry: an exchange or reversal of parameters that leaves ℓπ unchanged; groups of them; what connects two regions.

Mixture components, spectral lines and hidden units can be renumbered, amplitudes and weights can change sign. The
likelihood then has the same mode several times. The image of a region is the region that a symmetry makes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from wsabi._core.types import Array, Indices, Mask
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.tuning import TUNING

__all__ = ["Symmetry", "connecting", "group_of", "reflected"]

Swap = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Symmetry:
    """u'_d = signs_d · u_{order_d}: parameters exchanged, and reversed about the centre of the prior."""

    order: tuple[int, ...]
    signs: tuple[int, ...]

    @classmethod
    def of(cls, dim: int, swaps: Swap = (), reversed_axes: Sequence[int] = ()) -> Symmetry:
        """The symmetry that exchanges disjoint pairs of axes and reverses other axes."""
        order, signs = list(range(dim)), [1] * dim
        for i, j in swaps:
            order[i], order[j] = j, i
        for d in reversed_axes:
            signs[d] = -1
        return cls(tuple(order), tuple(signs))

    @property
    def swaps(self) -> Swap:
        """The pairs of axes that are exchanged, the lower axis first. Longer cycles are left out."""
        return tuple((d, other) for d, other in enumerate(self.order) if d < other and self.order[other] == d)

    @property
    def reversed_axes(self) -> list[int]:
        """The axes reversed."""
        return [d for d, sign in enumerate(self.signs) if sign < 0]

    def described(self, names: Sequence[str]) -> str:
        """In words, with the D names given: "a1 <-> a2, b1 <-> -b2, share reversed".

        For a longer cycle "a -> b" says that a becomes b.
        """
        pairs = [(i, j) for i, j in self.swaps if self.signs[i] == self.signs[j]]
        signed = [("-" if sign < 0 else "") + name for sign, name in zip(self.signs, names, strict=True)]
        exchanged = [f"{names[i]} <-> {signed[j]}" for i, j in pairs]
        paired = {axis for pair in pairs for axis in pair}
        moved = [(d, e) for d, e in enumerate(self.order) if d != e and d not in paired]
        alone = [d for d in self.reversed_axes if self.order[d] == d]
        rest = [*(f"{names[e]} -> {signed[d]}" for d, e in moved), *(f"{names[d]} reversed" for d in alone)]
        return ", ".join([*exchanged, *rest])

    def image(self, X: Array) -> Array:
        """u' (…, D) of u (…, D)."""
        return np.asarray(X[..., list(self.order)] * np.array(self.signs, dtype=np.float64))

    def after(self, other: Symmetry) -> Symmetry:
        """The product: first the other symmetry, then this one."""
        order = tuple(other.order[d] for d in self.order)
        return Symmetry(order, tuple(s * other.signs[d] for s, d in zip(self.signs, self.order, strict=True)))

    @property
    def inverse(self) -> Symmetry:
        """The symmetry that makes u from u'."""
        order = tuple(int(d) for d in np.argsort(self.order))
        return Symmetry(order, tuple(self.signs[d] for d in order))

    def image_of(self, frame: Frame) -> Frame:
        """The frame of the images of points that have the frame given."""
        return Frame(self.image(frame.mean), self.image(frame.axes.T).T, frame.widths)


def reflected(explorer: Explorer, symmetry: Symmetry) -> Explorer:
    """The explorer of the symmetry image of a region: the same surrogate, in the coordinates of the image of q."""
    known = explorer.surrogate
    frame = symmetry.image_of(explorer.frame)
    if known is not None and known.turn is not None:
        theta = known.theta.reflected(symmetry.order, symmetry.signs)
        known = replace(known, turn=frame.turn, theta=theta)
    summit = None if explorer.summit is None else symmetry.image_of(explorer.summit)
    return replace(explorer, frame=frame, summit=summit, surrogate=known)


def group_of(generators: Sequence[Symmetry], limit: int) -> list[Symmetry]:
    """All products of the generators except the identity, or the first ``limit`` of them."""
    found: dict[Symmetry, None] = {}
    fresh = list(generators)
    while fresh and len(found) < limit:
        found.update(dict.fromkeys(fresh))
        products = (g.after(f) for f in fresh for g in generators)
        identity = Symmetry.of(len(generators[0].order))
        fresh = [g for g in dict.fromkeys(products) if g not in found and g != identity]
    return list(found)[:limit]


def connecting(first: Frame, second: Frame, kinds: Sequence[int]) -> Symmetry | None:
    """The symmetry under which the second q is the image of the first, or None where the two do not match.

    Parameters are matched one to one, with signs, so that the sum of the differences in means and widths is smallest.
    Means are compared in units of the widths, widths by the log of their ratio. Where a mean is too close to zero to
    have a sign, its correlations with the other parameters decide.

    Parameters
    ----------
    kinds : (D,) parameters with the same number have the same prior. Only these are matched.
    """
    from scipy.optimize import linear_sum_assignment  # imported here: it takes a third of the time of `import wsabi`

    (mean, cov), (image, image_cov) = (first.mean, first.cov), (second.mean, second.cov)
    width, image_width = first.sds, second.sds
    apart = np.abs(np.abs(image)[:, None] - np.abs(mean)) / np.hypot(image_width[:, None], width)
    apart += np.abs(np.log(image_width[:, None] / width))
    apart[np.not_equal.outer(kinds, kinds)] = np.inf
    order = linear_sum_assignment(np.minimum(apart, TUNING.symmetry.no_match))[1]
    if np.any(np.diag(apart[:, order]) > TUNING.symmetry.match):
        return None
    signs = np.where(image * mean[order] < 0.0, -1, 1)
    likeness = image_cov / np.outer(image_width, image_width)
    likeness *= (cov / np.outer(width, width))[np.ix_(order, order)]
    signs = _settled_signs(signs, likeness, np.abs(image) >= image_width)
    symmetry = Symmetry(tuple(int(d) for d in order), tuple(int(s) for s in signs))
    return None if symmetry == Symmetry.of(len(kinds)) else symmetry


def _settled_signs(signs: Indices, likeness: Array, is_sure: Mask) -> Indices:
    """Signs (D,) of which the unsure ones are decided, one by one, by correlations with the sure ones.

    Σ_e (r_de − s_d s_e r'_de)² is smallest for the sign of Σ_e s_e r_de r'_de. The axis for which this sum is largest
    is decided first. Axes whose correlations are too small to decide keep their sign.

    Parameters
    ----------
    likeness : (D, D) products r_de r'_de of the correlations of the two regions.
    """
    signs, is_sure = signs.copy(), is_sure.copy()
    while not np.all(is_sure):
        agreement = np.where(is_sure, 0.0, likeness[:, is_sure] @ signs[is_sure])
        clearest = int(np.argmax(np.abs(agreement)))
        if abs(agreement[clearest]) < TUNING.symmetry.clear_sign:
            break
        signs[clearest] = 1 if agreement[clearest] > 0.0 else -1
        is_sure[clearest] = True
    return signs
