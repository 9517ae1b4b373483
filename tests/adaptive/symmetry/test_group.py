"""Mirrors form a group that acts on points and frames, and are proposed once each, likely ones first."""

from __future__ import annotations

from itertools import combinations, islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.symmetry.group import Symmetry, close_to, group_of, suggested_by, symmetries

SWAPS = ((0, 1), (2, 3))


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


def test_a_mirror_names_its_swaps_and_reversed_axes() -> None:
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


# -- candidates -------------------------------------------------------------------------------------------------------


def exchanges_of(every: list[Symmetry]) -> list[Symmetry]:
    """Those that exchange and reverse nothing, in their order."""
    return [symmetry for symmetry in every if symmetry.swaps and not symmetry.reversed_axes]


@pytest.mark.parametrize(
    "kinds", [(0,), (0, 0), (0, 1), (0, 0, 0), (0, 0, 1, 1, 2), (0, 1, 0, 1, 2), (1, 1, 1, 0, 0, 0), (0,) * 7]
)
def test_candidates_are_given_once_and_exchange_like_with_like(kinds: tuple[int, ...]) -> None:
    every = list(symmetries(kinds))
    assert len(every) == len(set(every))
    assert Symmetry.of(len(kinds)) not in every
    for symmetry in every:
        assert sorted(symmetry.order) == list(range(len(kinds)))
        assert all(kinds[d] == kinds[other] for d, other in enumerate(symmetry.order))
        assert symmetry.inverse == symmetry
    # Whatever the kinds, all at once and each by itself can be reversed, and any two of a kind exchanged.
    dim = len(kinds)
    expected = [Symmetry.of(dim, reversed_axes=range(dim)), *(Symmetry.of(dim, reversed_axes=[d]) for d in range(dim))]
    expected += [Symmetry.of(dim, ((i, j),)) for i, j in combinations(range(dim), 2) if kinds[i] == kinds[j]]
    assert set(expected) <= set(every)


@pytest.mark.parametrize(
    ("kinds", "swaps", "left"),
    [((0, 0, 1, 1, 2), ((0, 1), (2, 3)), 4), ((0, 2, 1, 0, 1), ((0, 3), (2, 4)), 1)],
)
def test_two_components_of_parameters_of_several_kinds(
    kinds: tuple[int, ...], swaps: tuple[tuple[int, int], ...], left: int
) -> None:
    """Exchanged jointly first of all exchanges; with the share of the first reversed, before those that leave more."""
    every = list(symmetries(kinds))
    assert exchanges_of(every)[0] == Symmetry.of(5, swaps)
    with_share = every.index(Symmetry.of(5, swaps, [left]))
    partly = [every.index(Symmetry.of(5, (pair,), [left])) for pair in swaps]
    assert with_share < min(partly)


def test_three_components_of_two_kinds_are_exchanged_two_at_a_time() -> None:
    expected = [Symmetry.of(6, ((i, j), (3 + i, 3 + j))) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert exchanges_of(list(symmetries((0, 0, 0, 1, 1, 1))))[:3] == expected


def test_blocks_and_interleaved_components_of_one_kind() -> None:
    """Parameters listed component by component, and pair by pair, are the two usual orders: all of them at first.

    Then any two by themselves, before shorter blocks and fewer pairs.
    """
    every = list(symmetries((0,) * 6))
    exchanges = exchanges_of(every)
    assert exchanges[:2] == [Symmetry.of(6, ((0, 3), (1, 4), (2, 5))), Symmetry.of(6, ((0, 1), (2, 3), (4, 5)))]
    assert exchanges[2:17] == [Symmetry.of(6, (pair,)) for pair in combinations(range(6), 2)]
    blocks = [((a, a + 2), (a + 1, a + 3)) for a in range(3)]
    neighbours = [((a, a + 1), (a + 2, a + 3)) for a in range(3)]
    assert exchanges[17:23] == [Symmetry.of(6, swaps) for swaps in [*blocks, *neighbours]]
    assert Symmetry.of(6, reversed_axes=[2, 3, 4]) in every


def test_longer_blocks_and_more_pairs_come_before_shorter_and_fewer() -> None:
    lengths = [
        len(symmetry.swaps) for symmetry in symmetries((0,) * 9) if symmetry.swaps and not symmetry.reversed_axes
    ]
    assert lengths == [4] * 4 + [1] * 36 + [3] * 8 + [2] * 12


@pytest.mark.parametrize(
    ("kinds", "reversals"),
    [
        ((0,), [[0]]),
        ((0, 0), [[0, 1], [1], [0]]),
        ((0, 1), [[0, 1], [0], [1]]),  # each by itself is all of a kind, and all but the other
        ((0, 0, 0), [[0, 1, 2], [1, 2], [0, 1]]),
        ((0, 0, 1, 1, 2), [[0, 1, 2, 3, 4], [0, 1], [2, 3], [4], [1, 2, 3, 4], [0, 1, 2, 3]]),
        ((0, 2, 1, 0, 1), [[0, 1, 2, 3, 4], [0, 3], [1], [2, 4], [1, 2, 3, 4], [0, 1, 2, 3]]),
    ],
)
def test_reversals_of_much_come_first(kinds: tuple[int, ...], reversals: list[list[int]]) -> None:
    """Everything; all of a kind, such as loadings, kinds as they come; all but an intercept at either end."""
    every = list(symmetries(kinds))
    assert every[: len(reversals)] == [Symmetry.of(len(kinds), reversed_axes=axes) for axes in reversals]
    rest = every[len(reversals) :]
    assert not rest or rest[0].swaps


def test_exchanges_come_before_single_reversals_and_these_before_both_together() -> None:
    every = list(symmetries((0,) * 5))
    single = every.index(Symmetry.of(5, reversed_axes=[0]))
    assert all(symmetry.swaps and not symmetry.reversed_axes for symmetry in every[3:single])
    assert every[single : single + 5] == [Symmetry.of(5, reversed_axes=[d]) for d in range(5)]
    both = [n for n, symmetry in enumerate(every) if symmetry.swaps and symmetry.reversed_axes]
    assert min(both) == single + 5
    assert not any(symmetry.swaps for symmetry in every[max(both) + 1 :])


def test_candidates_in_many_dimensions_are_made_as_they_are_asked_for() -> None:
    """Sixty parameters have more than a hundred thousand, and the first ten come first all the same."""
    first = list(islice(symmetries((0,) * 60), 10))
    assert len(set(first)) == 10
    assert exchanges_of(first)[0] == Symmetry.of(60, tuple((d, 30 + d) for d in range(30)))


# -- what one symmetry says of others ----------------------------------------------------------------------------------


def test_close_to_an_exchange_are_those_with_one_more_axis_reversed_or_one_less() -> None:
    assert close_to(Symmetry.of(6, SWAPS)) == [Symmetry.of(6, SWAPS, [4]), Symmetry.of(6, SWAPS, [5])]
    assert close_to(Symmetry.of(6, SWAPS, [4])) == [Symmetry.of(6, SWAPS), Symmetry.of(6, SWAPS, [4, 5])]
    assert close_to(Symmetry.of(4, SWAPS)) == []  # no other axes


def test_close_to_a_reversal_is_nothing() -> None:
    assert close_to(Symmetry.of(4, reversed_axes=[1, 2])) == []


def test_an_exchange_suggests_that_its_components_can_be_reversed() -> None:
    assert suggested_by(Symmetry.of(5, SWAPS)) == [
        Symmetry.of(5, reversed_axes=[0, 2]),
        Symmetry.of(5, reversed_axes=[1, 3]),
    ]


@pytest.mark.parametrize(
    ("axes", "parts"),
    [
        # Halves of one stretch and of two; then what is next to each other, closest to a half first.
        ([0, 1, 2, 3], [[0, 1], [0, 2], [0, 1], [1, 2], [2, 3], [0], [1], [2], [3], [0, 1, 2], [1, 2, 3]]),
        ([0, 2, 4], [[0], [2], [4], [0, 2], [2, 4]]),
        ([0, 1, 2, 3, 4], [[0, 1], [1, 2], [2, 3], [3, 4], [0, 1, 2], [1, 2, 3], [2, 3, 4], *([d] for d in range(5)),
                           [0, 1, 2, 3], [1, 2, 3, 4]]),
    ],
)  # fmt: skip
def test_a_reversal_suggests_its_parts_halves_first(axes: list[int], parts: list[list[int]]) -> None:
    """Those whose length is closest to a half, of two as close the shorter; axes next to each other among those."""
    assert suggested_by(Symmetry.of(5, reversed_axes=axes)) == [Symmetry.of(5, reversed_axes=part) for part in parts]


@pytest.mark.parametrize(
    ("axes", "swaps", "parts"),
    [
        ([1], [[(1, 0)], [(1, 4)]], []),
        ([1, 3], [[(1, 0), (3, 2)], [(1, 2), (3, 4)]], [[1], [3]]),
        ([0, 1], [[(0, 2), (1, 3)], [(0, 3), (1, 4)]], [[0], [1]]),
        ([3, 4], [[(3, 0), (4, 1)], [(3, 1), (4, 2)]], [[3], [4]]),
    ],
)
def test_a_component_that_is_reversed_by_itself_is_exchanged_with_another(
    axes: list[int], swaps: list[list[tuple[int, int]]], parts: list[list[int]]
) -> None:
    """With as many of the other parameters, from the first or up to the last, before parts of it are reversed."""
    expected = [*(Symmetry.of(5, tuple(pairs)) for pairs in swaps), *(Symmetry.of(5, (), part) for part in parts)]
    assert suggested_by(Symmetry.of(5, reversed_axes=axes)) == expected


def test_an_exchange_with_a_reversal_suggests_components_and_parts() -> None:
    assert suggested_by(Symmetry.of(4, ((0, 1),), [2, 3])) == [
        Symmetry.of(4, reversed_axes=axes) for axes in ([0], [1], [2], [3])
    ]
