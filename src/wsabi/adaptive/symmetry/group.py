"""Symmetry images: where a known region would be again if the likelihood did not tell some parameters apart.

Mixture components, spectral lines and hidden units can be renumbered, amplitudes and weights can change sign: the
likelihood then has the same mode several times over, and a search from the prior may well end in the same one each
time. Whether it has is asked by one evaluation for each way of exchanging or reversing parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations, pairwise

import numpy as np

from wsabi._core.types import Array, Indices, Mask
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.surrogate.frame import Frame

__all__ = ["Symmetry", "close_to", "connecting", "group_of", "reflected", "suggested_by", "symmetries"]

Swap = tuple[tuple[int, int], ...]

CLEAR = 0.01  # the product of two correlations of a tenth: below, they are noise of q
ALIKE = 1.0  # widths between the means of two images, with the log ratio of their widths: q is known to a part of one


@dataclass(frozen=True)
class Symmetry:
    """u'_d = signs_d · u_{order_d}: parameters exchanged, and reversed about the centre of the prior."""

    order: tuple[int, ...]
    signs: tuple[int, ...]

    @classmethod
    def of(cls, dim: int, swaps: Swap = (), reversed_axes: Sequence[int] = ()) -> Symmetry:
        """The symmetry that makes the swaps, of disjoint pairs, and reverses the axes given, none of them swapped."""
        order, signs = list(range(dim)), [1] * dim
        for i, j in swaps:
            order[i], order[j] = j, i
        for d in reversed_axes:
            signs[d] = -1
        return cls(tuple(order), tuple(signs))

    @property
    def swaps(self) -> Swap:
        """The pairs exchanged, the lower axis first; longer cycles are not among them."""
        return tuple((d, other) for d, other in enumerate(self.order) if d < other and self.order[other] == d)

    @property
    def reversed_axes(self) -> list[int]:
        """The axes reversed."""
        return [d for d, sign in enumerate(self.signs) if sign < 0]

    def described(self, names: Sequence[str]) -> str:
        """Such as "a1 <-> a2, b1 <-> -b2, share reversed", with the D names given; "a -> b" of which a becomes b."""
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
        """The symmetry that makes u'' of u, by way of the other's u'."""
        order = tuple(other.order[d] for d in self.order)
        return Symmetry(order, tuple(s * other.signs[d] for s, d in zip(self.signs, self.order, strict=True)))

    @property
    def inverse(self) -> Symmetry:
        """The symmetry that makes u of u'."""
        order = tuple(int(d) for d in np.argsort(self.order))
        return Symmetry(order, tuple(self.signs[d] for d in order))

    def image_of(self, frame: Frame) -> Frame:
        """The frame of u' where u has the frame given."""
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
    """All products of the generators but the identity; only the first ``limit`` where there are more."""
    found: dict[Symmetry, None] = {}
    fresh = list(generators)
    while fresh and len(found) < limit:
        found.update(dict.fromkeys(fresh))
        products = (g.after(f) for f in fresh for g in generators)
        identity = Symmetry.of(len(generators[0].order))
        fresh = [g for g in dict.fromkeys(products) if g not in found and g != identity]
    return list(found)[:limit]


def symmetries(kinds: Sequence[int]) -> Iterator[Symmetry]:
    """Mirrors of D parameters, each once, those that models are likelier to have first.

    Parameters
    ----------
    kinds : (D,) parameters with the same number have the same prior, and only these are exchanged.

    Notes
    -----
    In this order: everything reversed, all of one kind, all but the first or the last (an intercept), components
    exchanged (:func:`_exchanges`), one axis reversed, an exchange with one of the other axes reversed (two components
    and the share of the first), several neighbouring axes reversed. That is up to D³ in all where all are of one kind;
    whoever asks takes as many as evaluations allow.
    """
    met: set[Symmetry] = set()
    for symmetry in _in_order(kinds):
        if symmetry not in met:
            met.add(symmetry)
            yield symmetry


def close_to(symmetry: Symmetry) -> list[Symmetry]:
    """What an exchange that nearly was a symmetry may lack: one of the other axes reversed, or no longer reversed."""
    dim, swaps, signs = len(symmetry.order), symmetry.swaps, set(symmetry.reversed_axes)
    rest = sorted(set(range(dim)) - {axis for pair in swaps for axis in pair})
    return [Symmetry.of(dim, swaps, sorted(signs ^ {d})) for d in rest] if swaps else []


def suggested_by(symmetry: Symmetry) -> list[Symmetry]:
    """What is likely to be a symmetry too: each of two components exchanged reversed, or a part of what is reversed.

    A model of two components that are reversed together reverses one of them; and one that is reversed by itself is
    exchanged with another, of as many of the parameters before or after.
    """
    dim, swaps, axes = len(symmetry.order), symmetry.swaps, symmetry.reversed_axes
    components = [sorted(component) for component in zip(*swaps, strict=True)]
    lengths = sorted(range(1, len(axes)), key=lambda n: abs(2 * n - len(axes)))
    parts = [axes[a : a + n] for n in lengths for a in range(len(axes) - n + 1)]
    reversals = [Symmetry.of(dim, reversed_axes=part) for part in [*components, *_halves(axes), *parts]]
    rest = [d for d in range(dim) if d not in axes]
    if swaps or not 0 < 2 * len(axes) <= dim:
        return reversals
    partners = [rest[: len(axes)], rest[-len(axes) :]]
    return [*(Symmetry.of(dim, tuple(zip(axes, others, strict=True))) for others in partners), *reversals]


def _halves(axes: Sequence[int]) -> list[list[int]]:
    """The parameters of the first of two components, of whose parameters the axes are all.

    These come in stretches, of each of which the first half belongs to it: weights of the one, weights of the other,
    offset of the one, offset of the other. Stretches of equal length, such as all in one, come first; beyond twelve
    axes there are too many ways.
    """
    half, odd = divmod(len(axes), 2)
    if odd or not 1 < half <= 6:
        return []
    cuts = [cut for n in range(half) for cut in combinations(range(1, half), n)]
    stretches = [[b - a for a, b in pairwise([0, *cut, half])] for cut in cuts]
    stretches.sort(key=lambda lengths: len(set(lengths)))
    ends = [list(accumulate(lengths)) for lengths in stretches]
    return [
        [axes[2 * (end - length) + k] for length, end in zip(lengths, stops, strict=True) for k in range(length)]
        for lengths, stops in zip(stretches, ends, strict=True)
    ]


def connecting(first: Frame, second: Frame, kinds: Sequence[int]) -> Symmetry | None:
    """The symmetry under which the second q is the image of the first, if they look alike; else None.

    Parameters are matched one to one, with their signs, so that means and widths differ least, in units of the widths.
    Where a mean is too close to zero to have a sign, the correlations with the others decide.
    """
    from scipy.optimize import linear_sum_assignment  # imported here: it costs a third of `import wsabi`

    (mean, cov), (image, image_cov) = (first.mean, first.cov), (second.mean, second.cov)
    width, image_width = first.sds, second.sds
    apart = np.abs(np.abs(image)[:, None] - np.abs(mean)) / np.hypot(image_width[:, None], width)
    apart += np.abs(np.log(image_width[:, None] / width))
    apart[np.not_equal.outer(kinds, kinds)] = np.inf
    order = linear_sum_assignment(np.minimum(apart, 1e6))[1]
    if np.any(np.diag(apart[:, order]) > ALIKE):
        return None
    signs = np.where(image * mean[order] < 0.0, -1, 1)
    likeness = image_cov / np.outer(image_width, image_width)
    likeness *= (cov / np.outer(width, width))[np.ix_(order, order)]
    signs = _settled_signs(signs, likeness, np.abs(image) >= image_width)
    symmetry = Symmetry(tuple(int(d) for d in order), tuple(int(s) for s in signs))
    return None if symmetry == Symmetry.of(len(kinds)) else symmetry


def _settled_signs(signs: Indices, likeness: Array, is_sure: Mask) -> Indices:
    """Signs (D,), those not sure decided one by one by the products of correlations (D, D) with those that are.

    Σ_e (r_de − s_d s_e r'_de)² is least for the sign of Σ_e s_e r_de r'_de; the clearest is decided first, and those of
    which the correlations say nothing are left as they are.
    """
    signs, is_sure = signs.copy(), is_sure.copy()
    while not np.all(is_sure):
        agreement = np.where(is_sure, 0.0, likeness[:, is_sure] @ signs[is_sure])
        clearest = int(np.argmax(np.abs(agreement)))
        if abs(agreement[clearest]) < CLEAR:
            break
        signs[clearest] = 1 if agreement[clearest] > 0.0 else -1
        is_sure[clearest] = True
    return signs


def _in_order(kinds: Sequence[int]) -> Iterator[Symmetry]:
    dim = len(kinds)
    yield Symmetry.of(dim, reversed_axes=range(dim))
    for kind in dict.fromkeys(kinds):
        yield Symmetry.of(dim, reversed_axes=[d for d in range(dim) if kinds[d] == kind])
    if dim > 1:
        for most in (range(1, dim), range(dim - 1)):
            yield Symmetry.of(dim, reversed_axes=most)
    for swaps in _exchanges(kinds):
        yield Symmetry.of(dim, swaps)
    for d in range(dim):
        yield Symmetry.of(dim, reversed_axes=[d])
    # The fewer axes an exchange leaves alone, the likelier is one of them the share that goes with it.
    for swaps in sorted(_exchanges(kinds), key=len, reverse=True):
        for d in sorted(set(range(dim)) - {axis for pair in swaps for axis in pair}):
            yield Symmetry.of(dim, swaps, [d])
    for length in range(2, dim):
        for a in range(dim - length + 1):
            yield Symmetry.of(dim, reversed_axes=range(a, a + length))


def _exchanges(kinds: Sequence[int]) -> Iterator[Swap]:
    """Ways to exchange two components of a model whose parameters are laid out in one of the usual orders.

    Kind by kind, the ith parameter of every kind with the jth; two halves of the parameters; all pairs of neighbours;
    any two parameters; two shorter blocks that are neighbours; fewer pairs of neighbours.
    """
    dim = len(kinds)
    groups = [[d for d in range(dim) if kinds[d] == kind] for kind in dict.fromkeys(kinds)]
    layouts: list[Swap] = []
    for size in sorted({len(group) for group in groups if len(group) > 1}, reverse=True):
        alike = [group for group in groups if len(group) == size]
        if len(alike) > 1:
            layouts += [tuple((group[i], group[j]) for group in alike) for i, j in combinations(range(size), 2)]
    layouts += [*_blocks(dim, dim // 2), *_pairs(dim, dim // 2)]
    layouts += [((i, j),) for i, j in combinations(range(dim), 2)]
    for length in range(dim // 2 - 1, 1, -1):
        layouts += [*_blocks(dim, length), *_pairs(dim, length)]
    yield from (swaps for swaps in layouts if all(kinds[i] == kinds[j] for i, j in swaps))


def _blocks(dim: int, length: int) -> list[Swap]:
    """Two neighbouring blocks of that length exchanged, wherever they begin."""
    return [tuple((a + k, a + length + k) for k in range(length)) for a in range(dim - 2 * length + 1) if length]


def _pairs(dim: int, count: int) -> list[Swap]:
    """So many pairs of neighbours, next to each other, each exchanged."""
    return [tuple((a + 2 * k, a + 2 * k + 1) for k in range(count)) for a in range(dim - 2 * count + 1) if count]
