"""Symmetries that connect two regions, and their descriptions: over all signed permutations."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.symmetry.group import Symmetry, connecting, group_of
from wsabi.adaptive.tuning import TUNING

Kinds = tuple[int, ...]
MATCH = TUNING.symmetry.match


@st.composite
def symmetries_within(draw: st.DrawFn, kinds: Kinds) -> Symmetry:
    """Any signed permutation that exchanges parameters of one kind only, but for the identity."""
    order = list(range(len(kinds)))
    for kind in set(kinds):
        axes = [d for d, other in enumerate(kinds) if other == kind]
        for d, other in zip(axes, draw(st.permutations(axes)), strict=True):
            order[d] = other
    signs = draw(st.lists(st.sampled_from([-1, 1]), min_size=len(kinds), max_size=len(kinds)))
    if order == sorted(order) and min(signs) > 0:
        signs[0] = -1
    return Symmetry(tuple(order), tuple(signs))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Kinds, Frame, Symmetry, Symmetry]:
    """Kinds, a frame with means of distinct size and slanting axes, and two symmetries within the kinds."""
    dim = draw(st.integers(1, 6))
    kinds = tuple(draw(st.lists(st.integers(0, 2), min_size=dim, max_size=dim)))
    frame = a_frame(dim, draw(st.integers(0, 2**16)), spacing=draw(st.sampled_from([0.3, 1.0, 30.0])))
    return kinds, frame, draw(symmetries_within(kinds)), draw(symmetries_within(kinds))


def a_frame(dim: int, seed: int, spacing: float) -> Frame:
    """Widths about one, and means ``spacing`` apart in size, in any order and of either sign, from one width on."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((dim, dim))
    cov = A @ A.T + 0.5 * np.eye(dim)
    widths = np.sqrt(np.diag(cov))
    sizes = 1.0 + spacing * (1.0 + rng.permutation(dim))
    return Frame.of(sizes * rng.choice([-1.0, 1.0], dim), cov / np.outer(widths, widths))


# -- the symmetry that connects two regions ----------------------------------------------------------------------------


@given(worlds())
def test_the_symmetry_that_made_an_image_is_recovered(world: tuple[Kinds, Frame, Symmetry, Symmetry]) -> None:
    """Means of distinct size leave no other match; its signs are those of the means. Backwards it is the inverse."""
    kinds, frame, symmetry, _ = world
    assert connecting(frame, symmetry.image_of(frame), kinds) == symmetry
    assert connecting(symmetry.image_of(frame), frame, kinds) == symmetry.inverse


@given(worlds())
def test_one_image_after_the_other_is_connected_by_the_product(world: tuple[Kinds, Frame, Symmetry, Symmetry]) -> None:
    """And the symmetries between any two images of a group are in it."""
    kinds, frame, first, second = world
    product, identity = second.after(first), Symmetry.of(len(kinds))
    found = connecting(frame, second.image_of(first.image_of(frame)), kinds)
    assert (identity if found is None else found) == product
    group = group_of([first], 100)
    images = [frame, *(symmetry.image_of(frame) for symmetry in group[:4])]
    assert {connecting(a, b, kinds) for a in images for b in images} <= {*group, None}


@given(worlds(), st.integers(0, 2**16))
def test_regions_known_from_other_data_are_connected_too(
    world: tuple[Kinds, Frame, Symmetry, Symmetry], seed: int
) -> None:
    """Off by a tenth of a width in the means and a tenth in the widths: means further apart than that tell."""
    kinds, _, symmetry, _ = world
    frame = a_frame(len(kinds), seed, spacing=1.0)
    rng = np.random.default_rng(seed)
    image = symmetry.image_of(frame)
    off = np.exp(0.1 * rng.uniform(-1.0, 1.0, len(kinds)))
    blurred = Frame.of(image.mean + 0.1 * rng.uniform(-1.0, 1.0, len(kinds)), image.cov * np.outer(off, off))
    # A match with another axis costs (1 − 0.2)/√2 at least, on two axes or more; the right one 0.2 at most.
    assert connecting(frame, blurred, kinds) == symmetry


@given(worlds())
def test_regions_that_differ_are_not_connected(world: tuple[Kinds, Frame, Symmetry, Symmetry]) -> None:
    """One mean too far out, one width too large, each by more than MATCH: whatever the match, one axis has none."""
    kinds, frame, symmetry, _ = world
    image = symmetry.image_of(frame)
    farthest = int(np.argmax(np.abs(image.mean)))
    moved = image.mean.copy()
    moved[farthest] *= 1.0 + 1.01 * MATCH * np.sqrt(2.0) / np.abs(moved[farthest])  # in widths of the two together
    assert connecting(frame, Frame(moved, image.axes, image.widths), kinds) is None
    wider = np.ones(len(kinds))
    wider[farthest] = np.exp(1.01 * MATCH)
    assert connecting(frame, Frame.of(image.mean, image.cov * np.outer(wider, wider)), kinds) is None


def test_no_symmetry_connects_a_region_with_itself() -> None:
    frame = a_frame(3, 0, 1.0)
    assert connecting(frame, frame, (0, 0, 0)) is None


def test_only_like_is_matched_with_like() -> None:
    """Parameters of two kinds are never exchanged: where each by itself is not alike, there is no symmetry."""
    swap = Symmetry.of(2, ((0, 1),))
    for size, expected in ((4.0, None), (1.6, Symmetry.of(2, reversed_axes=[0, 1]))):
        frame = Frame.of(np.array([1.5, -size]), np.eye(2))
        assert connecting(frame, swap.image_of(frame), (0, 0)) == swap
        assert connecting(frame, swap.image_of(frame), (0, 1)) == expected


def test_a_small_mean_has_a_sign_where_correlations_have_none() -> None:
    frame = Frame.of(np.array([3.0, 0.9]), np.eye(2))
    reversed_all = Symmetry.of(2, reversed_axes=[0, 1])
    assert connecting(frame, reversed_all.image_of(frame), (0, 0)) == reversed_all


def test_signs_are_settled_by_those_that_are_settled_before() -> None:
    """The first two means are zero and go together; only the first is correlated with the third, whose sign is sure."""
    cov = np.array([[1.0, 0.8, 0.3], [0.8, 1.0, 0.0], [0.3, 0.0, 1.0]])
    frame = Frame.of(np.array([0.0, 0.0, 3.0]), cov)
    both = Symmetry.of(3, reversed_axes=[0, 1])
    assert connecting(frame, both.image_of(frame), (0, 1, 2)) == both


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize("signs", list(product((-1, 1), repeat=3)))
def test_where_a_mean_is_zero_its_correlations_decide(
    axis: int, order: tuple[int, ...], signs: tuple[int, ...]
) -> None:
    """Reversed with or without it, the image has the same mean; a weight and its offset keep their correlation."""
    mean = np.array([2.0, -3.0, 4.5])
    mean[axis] = 0.0
    cov = np.array([[1.0, 0.5, -0.2], [0.5, 1.0, 0.3], [-0.2, 0.3, 1.0]])
    symmetry, frame = Symmetry(order, signs), Frame.of(mean, cov)
    image = symmetry.image_of(frame)
    expected = None if symmetry == Symmetry.of(3) else symmetry
    assert connecting(frame, image, (0, 0, 0)) == expected
    # A mean a tenth of a width off zero, whatever its sign, is no reason to think otherwise.
    aside = Frame.of(mean + 0.1 * np.eye(3)[axis], cov)
    for shift in (-0.1, 0.1):
        shifted = Frame(image.mean + shift * np.eye(3)[order.index(axis)], image.axes, image.widths)
        assert connecting(aside, shifted, (0, 0, 0)) == expected


# -- in words ---------------------------------------------------------------------------------------------------------


def symmetry_from(text: str, names: list[str]) -> Symmetry:
    """The symmetry that a description speaks of: "a -> -b" makes b of a, reversed."""
    order, signs = list(range(len(names))), [1] * len(names)

    def make(target: str, source: int) -> None:
        d = names.index(target.removeprefix("-"))
        order[d], signs[d] = source, -1 if target.startswith("-") else 1

    for part in text.split(", ") if text else []:
        if part.endswith(" reversed"):
            signs[names.index(part.removesuffix(" reversed"))] = -1
        elif " <-> " in part:
            one, other = part.split(" <-> ")
            make(other, names.index(one))
            make(("-" if other.startswith("-") else "") + one, names.index(other.removeprefix("-")))
        else:
            source, target = part.split(" -> ")
            make(target, names.index(source))
    return Symmetry(tuple(order), tuple(signs))


@given(worlds())
def test_a_description_says_all_there_is(world: tuple[Kinds, Frame, Symmetry, Symmetry]) -> None:
    kinds, _, symmetry, _ = world
    names = list("ABCDEF"[: len(kinds)])  # none of which is in "reversed"
    text = symmetry.described(names)
    assert symmetry_from(text, names) == symmetry
    still = [d for d, other in enumerate(symmetry.order) if d == other and symmetry.signs[d] > 0]
    assert not any(names[d] in text for d in still)


@pytest.mark.parametrize(
    ("symmetry", "text"),
    [
        (Symmetry.of(4), ""),
        (Symmetry.of(4, ((0, 2),), [3]), "w <-> y, z reversed"),
        (Symmetry((2, 1, 0, 3), (-1, 1, -1, 1)), "w <-> -y"),
        (Symmetry((2, 1, 0, 3), (1, 1, -1, 1)), "y -> w, w -> -y"),  # a quarter turn
        (Symmetry((1, 2, 0, 3), (1, -1, 1, -1)), "x -> w, y -> -x, w -> y, z reversed"),
    ],
)
def test_descriptions(symmetry: Symmetry, text: str) -> None:
    assert symmetry.described("wxyz") == text


def test_longer_cycles_are_no_swaps() -> None:
    assert Symmetry((1, 2, 0), (1, 1, 1)).swaps == ()
    assert Symmetry((1, 0, 3, 4, 2), (1, 1, 1, -1, 1)).swaps == ((0, 1),)
    assert_array_equal(Symmetry((1, 2, 0), (1, 1, 1)).image(np.arange(3.0)), [1.0, 2.0, 0.0])
