"""Images are asked for where they may tell something, and those that hold mass are remembered until looked at."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from symmetric_world import (
    HERE,
    REVERSE,
    SWAP,
    SWAP_AND_REVERSE,
    THERE,
    WIDTH,
    World,
    bump,
    either,
    everything_answered,
    everything_asked,
    is_in,
    seen_in,
    symmetric_under,
)
from wsabi.adaptive.search.anneal import AWAY
from wsabi.adaptive.search.known_regions import NEGLIGIBLE, KnownRegions
from wsabi.adaptive.symmetry.group import Symmetry, close_to, group_of, suggested_by, symmetries
from wsabi.adaptive.symmetry.proof import CHECKS, ImageTests
from wsabi.priors import Gaussian

# -- which images to ask for ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_up_to_one_more_than_dimensions_are_queued_in_order(dim: int) -> None:
    centre = 1.5 * np.linspace(-1.0, 2.0, dim + 1)[1:]
    world = World(bump(centre), centre)
    world.prepare()
    points = world.handed_out()
    kinds = (0,) * dim
    assert len(points) == min(dim + 1, len(list(symmetries(kinds))))
    expected = [symmetry.image(world.top) for symmetry in symmetries(kinds)]
    assert_array_equal(points, expected[: dim + 1])
    assert world.images.next_point() is None


def test_nothing_is_queued_before_there_is_a_region_or_without_data_in_it() -> None:
    world = World(bump(HERE), HERE)
    world.images.prepare(KnownRegions(world.found.measure), *world.data)
    assert world.images.next_point() is None
    X, log_joint = world.data
    world.images.prepare(world.found, X + 5.0, log_joint)
    assert world.images.next_point() is None


def test_only_parameters_of_one_kind_are_exchanged() -> None:
    world = World(bump(HERE), HERE)
    world.images = ImageTests([0, 1, 0])
    points = everything_asked(world)
    assert is_in(Symmetry.of(3, ((0, 2),)).image(world.top), points)
    assert not is_in(SWAP.image(world.top), points)


def test_what_is_suggested_exchanges_like_with_like_too() -> None:
    """A reversal of the first two suggests that they be exchanged with the next two, which have another prior."""
    centre = np.array([1.5, -0.8, 0.6, 1.1])
    reverse = Symmetry.of(4, reversed_axes=[0, 1])
    world = World(symmetric_under(reverse, centre), centre)
    world.images = ImageTests([0, 0, 1, 1])
    asked = everything_answered(world)
    assert world.found.symmetries == [reverse]
    assert not is_in(Symmetry.of(4, ((0, 2), (1, 3))).image(world.top), asked)


def test_nothing_is_asked_for_twice() -> None:
    world = World(bump(HERE), HERE)
    points = everything_asked(world)
    assert_array_equal(points, [symmetry.image(world.top) for symmetry in symmetries((0, 0, 0))])
    assert len(np.unique(points, axis=0)) == len(points)


def test_no_image_in_the_bulk_of_a_known_region() -> None:
    """Neither of its own, where the symmetry moves it by little, nor of another."""
    itself = World(bump(np.array([1.5, 1.45, 0.8])), np.array([1.5, 1.45, 0.8]))
    assert not is_in(SWAP.image(itself.top), everything_asked(itself))
    unknown = World(symmetric_under(SWAP), HERE)
    assert is_in(SWAP.image(unknown.top), everything_asked(unknown))
    known = World(symmetric_under(SWAP), HERE)
    known.know(SWAP.image(HERE), log_z=-1.0)  # not alike: where two are, see below
    tops = [known.X[:30][np.argmax(known.log_l(known.X[:30]))], known.X[30:][np.argmax(known.log_l(known.X[30:]))]]
    points = everything_asked(known)
    assert not any(is_in(SWAP.image(top), points) for top in tops)
    assert points  # of other symmetries


def alike_regions(*mirrors_: Symmetry, height: float = 0.0) -> World:
    """A region at HERE and its images by the symmetries, the last of another height, each known from its own search."""
    heights = [0.0] * (len(mirrors_) - 1) + [height]
    images = (seen_in(symmetry, bump(HERE, h)) for symmetry, h in zip(mirrors_, heights, strict=True))
    return World(either(bump(HERE), *images), HERE, *(symmetry.image(HERE) for symmetry in mirrors_))


CYCLE = Symmetry((1, 2, 0), (1, 1, 1))
QUARTER_TURN = Symmetry((1, 0, 2), (1, -1, 1))


@pytest.mark.parametrize("symmetry", [SWAP, SWAP_AND_REVERSE, QUARTER_TURN, Symmetry((1, 2, 0), (1, -1, 1))])
def test_what_connects_two_alike_regions_is_asked_for_first(symmetry: Symmetry) -> None:
    """Though the image lies in a known region, and though few such symmetries are among those that models have."""
    world = alike_regions(symmetry)
    world.prepare()
    first = world.images.next_point()
    assert first is not None
    tops = [world.X[k : k + 30][np.argmax(world.data[1][k : k + 30])] for k in (0, 30)]
    assert any(is_in(first, [symmetry.image(top), symmetry.inverse.image(top)]) for top in tops)
    assert world.found.index_at(first) is not None


@pytest.mark.parametrize("symmetry", [SWAP, QUARTER_TURN, Symmetry((1, 2, 0), (1, -1, 1))])
def test_a_symmetry_that_connects_two_regions_is_proved(symmetry: Symmetry) -> None:
    """With the same likelihood in all images of the group, by one image and three checks like any other."""
    group = group_of([symmetry], 100)
    world = alike_regions(*group)
    everything_answered(world)
    assert symmetry in world.found.group
    assert len({site.family for site in world.found.sites if site.symmetry is None}) == len(world.found.sites)
    assert len(world.found.sites) == 1 + len(group)
    assert world.images.echoing_shares(world.found) == []


def test_a_cycle_that_connects_two_regions_is_proved() -> None:
    """Three components in a ring: nothing is exchanged in pairs, and nothing reversed, so that it suggests nothing."""
    world = World(either(bump(HERE), *(seen_in(g, bump(HERE)) for g in group_of([CYCLE], 9))), HERE, CYCLE.image(HERE))
    everything_answered(world)
    assert set(world.found.group) == {CYCLE, CYCLE.inverse}
    assert len(world.found.sites) == 3


def test_regions_that_only_look_alike_are_not_connected() -> None:
    """A twentieth of a nat higher: the image is asked for, differs, and refutes the symmetry; both are known."""
    world = alike_regions(SWAP, height=0.05)
    everything_answered(world)
    assert world.found.symmetries == []
    assert SWAP in world.found.refuted
    assert world.images.echo(world.found) is None


def test_a_refuted_mirror_or_a_known_one_connects_nothing() -> None:
    world = alike_regions(SWAP)
    assert set(world.images._connections(world.found)) == {SWAP}
    world.found.refuted.add(SWAP)
    assert list(world.images._connections(world.found)) == []
    world.found.refuted.clear()
    world.found.add_symmetry(SWAP, 0)
    assert list(world.images._connections(world.found)) == []


@pytest.mark.parametrize(("log_z", "connected"), [(0.49, True), (-0.49, True), (0.51, False), (-0.51, False)])
def test_only_regions_of_about_the_same_mass_are_alike(log_z: float, connected: bool) -> None:
    world = World(symmetric_under(SWAP), HERE)
    world.know(SWAP.image(HERE), log_z)
    assert bool(list(world.images._connections(world.found))) == connected


def test_parameters_of_two_kinds_connect_nothing() -> None:
    world = alike_regions(SWAP)
    world.images = ImageTests([0, 1, 0])
    assert list(world.images._connections(world.found)) == []


@pytest.mark.parametrize(("factor", "asked"), [(0.98, False), (1.02, True)])
def test_no_image_beside_an_evaluation(factor: float, asked: bool) -> None:
    world = World(bump(HERE), HERE)
    image = SWAP.image(world.top)
    direction = np.array([0.6, 0.0, -0.8])
    world.X = np.vstack([world.X, image + factor * AWAY * WIDTH * direction])
    assert is_in(image, everything_asked(world)) == asked


@pytest.mark.parametrize(("lower", "asked"), [(NEGLIGIBLE + 0.1, False), (NEGLIGIBLE - 0.1, True)])
def test_an_evaluation_beside_an_image_tells_enough_only_where_it_is_low(lower: float, asked: bool) -> None:
    top = World(bump(HERE), HERE).top
    measure = Gaussian(np.zeros(3))
    level = bump(HERE)(top[None, :]) + measure.log_pdf(top[None, :]) - lower  # of log ℓπ

    def log_l(X: np.ndarray) -> np.ndarray:
        return np.where(X[:, 1] > X[:, 0], level - measure.log_pdf(X), bump(HERE)(X))

    world = World(log_l, HERE, measure=measure)
    image = SWAP.image(top)
    world.X = np.vstack([world.X, image + 0.1 * AWAY * WIDTH])
    assert is_in(image, everything_asked(world)) == asked


def test_no_image_where_the_prior_is_much_smaller() -> None:
    """Correlated parameters can be reversed together, not one of them; shifted ones not at all."""
    centre = np.array([1.9, 1.2])
    one, both = Symmetry.of(2, reversed_axes=[0]), Symmetry.of(2, reversed_axes=[0, 1])
    for measure, allowed in (
        (Gaussian([0.0, 0.0]), [one, both]),
        (Gaussian([0.0, 0.0], [[1.0, 0.95], [0.95, 1.0]]), [both]),
        (Gaussian([2.0, 2.0]), []),
    ):
        world = World(bump(centre), centre, measure=measure)
        points = everything_asked(world)
        assert [symmetry for symmetry in (one, both) if is_in(symmetry.image(world.top), points)] == allowed
        lost = measure.log_pdf(world.top[None, :]) - measure.log_pdf(np.array(points).reshape(-1, 2))
        assert np.all(lost < NEGLIGIBLE)


def test_an_image_region_has_no_images_of_its_own() -> None:
    world = World(symmetric_under(SWAP), HERE)
    world.found.add_symmetry(SWAP, 0)
    assert len(world.found.sites) == 2
    points = everything_asked(world)
    assert not is_in(SWAP.image(world.top), points)
    assert len(points) == len(list(symmetries((0, 0, 0)))) - 1


# -- what answers suggest ---------------------------------------------------------------------------------------------


def test_a_proved_symmetry_has_what_it_suggests_asked_for() -> None:
    world = World(symmetric_under(SWAP), HERE)
    world.prepare()
    asked = [*world.ask(), *world.ask()]
    assert world.found.symmetries == [SWAP]
    suggested = [symmetry.image(world.top) for symmetry in suggested_by(SWAP)]
    assert_array_equal(world.handed_out(), [x for x in suggested if not is_in(x, asked)])


def test_suggestions_are_rationed() -> None:
    """Five axes reversed at once suggest fourteen parts of them: six, of two and three axes, are asked for first."""
    centre = np.array([1.5, -0.5, 0.8, -1.0, 2.0])
    reverse = Symmetry.of(5, reversed_axes=range(5))
    world = World(symmetric_under(reverse, centre), centre)
    world.prepare()
    world.ask()
    assert len(world.ask()) == CHECKS
    assert world.found.symmetries == [reverse]
    suggested = [symmetry.image(world.top) for symmetry in suggested_by(reverse)]
    assert len(suggested) == 14
    assert_array_equal(world.handed_out(), suggested[:6])


def test_an_exchange_that_nearly_is_a_symmetry_has_its_neighbours_asked_for() -> None:
    """Two components and the share of the first, which lies near one half: the exchange alone has mass already."""
    centre = np.array([1.5, -0.5, 0.25])
    world = World(symmetric_under(SWAP_AND_REVERSE, centre), centre)
    world.prepare()
    assert not is_in(SWAP_AND_REVERSE.image(world.top), world.ask())
    assert world.found.symmetries == []
    assert_array_equal(world.ask(), [symmetry.image(world.top) for symmetry in close_to(SWAP)])
    assert len(world.ask()) == CHECKS
    assert world.found.symmetries == [SWAP_AND_REVERSE]


# -- images that hold mass --------------------------------------------------------------------------------------------


def test_an_echo_is_given_once() -> None:
    world = World(either(bump(HERE), bump(SWAP.image(HERE), -1.0)), HERE)
    world.prepare()
    world.ask()
    assert world.found.symmetries == []
    echo = world.images.echo(world.found)
    assert echo is not None
    assert echo.symmetry == SWAP
    assert echo.explorer is world.found.explorers[0]
    assert_array_equal(echo.x, SWAP.image(world.top))
    assert world.images.echo(world.found) is None


def test_there_is_an_echo_once_all_is_told() -> None:
    world = World(symmetric_under(REVERSE), HERE)
    world.prepare()
    world.ask()
    assert not world.images.has_echo  # checks are queued
    world.tell(world.handed_out())
    world.conclude()
    world.images.forget()
    assert world.images.has_echo  # the symmetry explains it, as asking for it will tell
    assert world.images.echo(world.found) is None
    assert not world.images.has_echo


@pytest.mark.parametrize(("height", "share"), [(0.0, 1.0), (-1.0, math.exp(-1.0)), (1.0, 1.0)])
def test_an_echo_counts_as_much_as_it_is_high(height: float, share: float) -> None:
    """Of its family's mass, and no more than that; nothing once there is a region that explains it."""
    alone = either(bump(HERE), seen_in(SWAP, bump(HERE, height)))
    for log_l, centres, part in ((alone, [HERE], 1.0), (either(alone, bump(THERE)), [HERE, THERE], 0.5)):
        world = World(log_l, *centres)
        assert world.images.echoing_shares(world.found) == []
        world.reach(SWAP)
        assert_allclose(world.images.echoing_shares(world.found), [part * share], rtol=1e-6)
        world.know(SWAP.image(HERE))
        assert world.images.echoing_shares(world.found) == []


def test_a_mirror_counts_once_however_many_of_its_images_hold_mass() -> None:
    """Checks that have failed hold mass like the first image; the highest relative to its original counts."""
    world = World(symmetric_under(SWAP), HERE)
    world.prepare()
    world.ask()
    for x in world.handed_out():
        world.images.tell(x, float(world.log_l(x[None, :])[0]) - 0.5)
    world.conclude()
    assert world.found.symmetries == []
    assert_allclose(world.images.echoing_shares(world.found), [1.0], rtol=1e-6)


def test_a_symmetry_that_is_proved_leaves_no_echo_to_count() -> None:
    world = World(symmetric_under(SWAP), HERE)
    world.prepare()
    world.ask()
    assert len(world.images.echoing_shares(world.found)) == 1
    world.ask()
    assert world.found.symmetries == [SWAP]
    assert world.images.echoing_shares(world.found) == []


def test_the_highest_echo_comes_first() -> None:
    other = Symmetry.of(3, ((1, 2),))
    world = World(either(bump(HERE), bump(SWAP.image(HERE), -2.0), bump(other.image(HERE), -1.0)), HERE)
    for symmetry in (SWAP, other):
        world.reach(symmetry)
    echoes = [world.images.echo(world.found), world.images.echo(world.found)]
    assert [echo.symmetry for echo in echoes if echo is not None] == [other, SWAP]


def test_an_echo_that_a_region_explains_by_now_is_not_given() -> None:
    world = World(either(bump(HERE), bump(SWAP.image(HERE), -1.0)), HERE)
    world.prepare()
    world.ask()
    world.know(SWAP.image(HERE))
    assert len(world.found.sites) == 2
    assert world.images.echo(world.found) is None


def test_an_image_without_mass_is_no_echo() -> None:
    world = World(either(bump(HERE), bump(SWAP.image(HERE), -40.0)), HERE)
    world.prepare()
    world.ask()
    assert world.images.echo(world.found) is None
    assert world.images.next_point() is None


def test_zero_likelihood_at_an_image_is_no_echo() -> None:
    """At the first image, and at a check; numbers that are not are errors here."""

    def log_l(X: np.ndarray) -> np.ndarray:
        return np.where(X[:, 1] > X[:, 0], -np.inf, bump(HERE)(X))

    world = World(log_l, HERE)
    with np.errstate(all="raise"):
        for _ in range(4):
            world.prepare()
            world.ask()
            assert world.images.echo(world.found) is None
    assert world.found.symmetries == []

    world = World(symmetric_under(SWAP), HERE)
    world.prepare()
    world.ask()
    with np.errstate(all="raise"):
        for x in world.handed_out():
            world.images.tell(x, -math.inf)
        world.conclude()
        echo = world.images.echo(world.found)
        assert echo is not None  # the first image, which did hold mass
        assert_array_equal(echo.x, SWAP.image(world.top))
        assert world.images.echo(world.found) is None
    assert world.found.symmetries == []
