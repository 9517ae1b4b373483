"""Symmetries form a group that acts on points and frames."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.symmetry.group import Symmetry, group_of


@st.composite
def signed_permutations(draw: st.DrawFn, dim: int) -> Symmetry:
    """Any of them, also those that are not their own inverse."""
    order = draw(st.permutations(range(dim)))
    return Symmetry(tuple(order), tuple(draw(st.lists(st.sampled_from([-1, 1]), min_size=dim, max_size=dim))))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Symmetry, Symmetry]:
    dim = draw(st.integers(1, 6))
    return draw(signed_permutations(dim)), draw(signed_permutations(dim))


def some_points(symmetry: Symmetry) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((5, len(symmetry.order)))


def a_frame(dim: int) -> Frame:
    """With unequal widths along slanting axes."""
    rng = np.random.default_rng(1)
    A = rng.standard_normal((dim, dim))
    return Frame.of(rng.standard_normal(dim), A @ A.T + 0.1 * np.eye(dim))


# -- algebra ----------------------------------------------------------------------------------------------------------


def test_image_is_what_it_says() -> None:
    cycle = Symmetry((2, 0, 1), (1, -1, 1))
    assert_array_equal(cycle.image(np.array([1.0, 2.0, 3.0])), [3.0, -1.0, 2.0])
    assert_array_equal(cycle.image(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])), [[3.0, -1.0, 2.0], [6.0, -4.0, 5.0]])
    assert_array_equal(Symmetry.of(4, ((0, 2),), [3]).image(np.arange(1.0, 5.0)), [3.0, 2.0, 1.0, -4.0])


@given(pairs())
def test_one_after_the_other_is_the_composition_of_images(both: tuple[Symmetry, Symmetry]) -> None:
    """Exactly: nothing is done to a number but a change of place and of sign."""
    second, first = both
    X = some_points(first)
    assert_array_equal(second.after(first).image(X), second.image(first.image(X)))


@given(pairs())
def test_the_inverse_undoes_from_either_side(both: tuple[Symmetry, Symmetry]) -> None:
    symmetry, other = both
    identity = Symmetry.of(len(symmetry.order))
    X = some_points(symmetry)
    assert_array_equal(symmetry.inverse.image(symmetry.image(X)), X)
    assert symmetry.after(symmetry.inverse) == symmetry.inverse.after(symmetry) == identity
    assert symmetry.inverse.inverse == symmetry
    assert symmetry.after(other).inverse == other.inverse.after(symmetry.inverse)


@given(pairs())
def test_the_image_of_a_frame_sees_images_as_the_frame_sees_the_originals(both: tuple[Symmetry, Symmetry]) -> None:
    """The same sums in another order: equal but for their round-off."""
    symmetry = both[0]
    frame, X = a_frame(len(symmetry.order)), some_points(symmetry)
    image = symmetry.image_of(frame)
    assert_allclose(image.whiten(symmetry.image(X)), frame.whiten(X), rtol=1e-10, atol=1e-12)
    assert_allclose(image.log_density(symmetry.image(X)), frame.log_density(X), rtol=1e-10)
    assert_allclose(image.colour(X), symmetry.image(frame.colour(X)), rtol=1e-10, atol=1e-12)
    axes = symmetry.image(np.eye(len(X[0]))).T  # u' = axes·u
    assert_allclose(image.cov, axes @ frame.cov @ axes.T, rtol=1e-10, atol=1e-12)


def test_a_symmetry_names_its_swaps_and_reversed_axes() -> None:
    symmetry = Symmetry.of(6, ((0, 3), (2, 5)), [1])
    assert symmetry.swaps == ((0, 3), (2, 5))
    assert symmetry.reversed_axes == [1]
    assert Symmetry.of(6, symmetry.swaps, symmetry.reversed_axes) == symmetry
    assert Symmetry.of(3).swaps == ()
    assert Symmetry.of(3).reversed_axes == []


# -- groups -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("generators", "order"),
    [
        ([Symmetry.of(2, ((0, 1),))], 2),
        ([Symmetry((1, 0), (1, -1))], 4),  # a quarter turn
        ([Symmetry.of(2, ((0, 1),)), Symmetry.of(2, reversed_axes=[0, 1])], 4),
        ([Symmetry.of(3, ((0, 1),)), Symmetry.of(3, ((1, 2),))], 6),  # all numberings of three
        ([Symmetry((1, 2, 0), (1, 1, 1)), Symmetry.of(3, ((0, 1),))], 6),
        ([Symmetry.of(2, ((0, 1),)), Symmetry.of(2, reversed_axes=[0])], 8),  # those of a square
        ([Symmetry.of(3, reversed_axes=[d]) for d in range(3)], 8),
    ],
)
def test_group_of_is_closed_and_of_the_right_order(generators: list[Symmetry], order: int) -> None:
    group = group_of(generators, 100)
    identity = Symmetry.of(len(generators[0].order))
    assert len(group) == len(set(group)) == order - 1
    assert identity not in group
    everything = {*group, identity}
    assert {g.after(f) for g in everything for f in everything} == everything
    assert {g.inverse for g in everything} == everything
    assert group[: len(generators)] == generators


def test_no_generators_make_no_group() -> None:
    assert group_of([], 10) == []


def test_group_of_respects_its_limit() -> None:
    """All 120 numberings of five: without a limit each once, with one as many as it allows."""
    generators = [Symmetry.of(5, (pair,)) for pair in combinations(range(5), 2)]
    everything = group_of(generators, 1000)
    assert len(set(everything)) == len(everything) == 119
    for limit in (1, 9, 23, 118):
        some = group_of(generators, limit)
        assert len(some) == limit
        assert some == everything[:limit]
