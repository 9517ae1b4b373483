"""Images are asked for where they may tell something, and those that hold mass are remembered until searched."""

from __future__ import annotations

import dataclasses
import math
import pickle

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
    is_in,
    points_of,
    seen_in,
    symmetric_under,
)
from wsabi.adaptive.search.known_regions import KnownRegions
from wsabi.adaptive.symmetry.group import Symmetry, group_of
from wsabi.adaptive.symmetry.proof import ImagePoint
from wsabi.adaptive.tuning import TUNING
from wsabi.priors import Gaussian

AWAY, NEGLIGIBLE = TUNING.search.away, TUNING.known.negligible
OTHER_SWAP = Symmetry.of(3, ((1, 2),))
CYCLE = Symmetry((1, 2, 0), (1, 1, 1))
QUARTER_TURN = Symmetry((1, 0, 2), (1, -1, 1))
ONE_HIGH = either(bump(HERE), seen_in(SWAP, bump(HERE, -1.0)))  # lower at the image: no symmetry

# -- which images to ask for ------------------------------------------------------------------------------------------


def test_without_candidates_one_region_has_no_images() -> None:
    world = World(symmetric_under(SWAP), HERE)
    assert everything_answered(world) == []
    assert world.known.symmetries == ()


def test_what_is_declared_comes_first_and_then_what_is_named() -> None:
    world = World(bump(HERE), HERE, declared=[SWAP], named=[OTHER_SWAP, REVERSE])
    world.prepare()
    actions = world.handed_out()
    assert_array_equal(points_of(actions), [s.image(world.top) for s in (SWAP, OTHER_SWAP, REVERSE)])
    assert [action.purpose.label for action in actions] == ["image"] * 3
    assert len({action.purpose for action in actions}) == 3
    assert world.next_point() is None


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_up_to_one_more_than_dimensions_are_queued_at_a_time(dim: int) -> None:
    centre = np.linspace(1.0, 2.0, dim)
    some = group_of([Symmetry.of(dim, reversed_axes=[d]) for d in range(dim)], dim + 2)
    world = World(bump(centre), centre, named=some)
    asked = []
    for n in (min(dim + 1, len(some)), max(len(some) - dim - 1, 0), 0):
        world.prepare()
        actions = world.handed_out()
        assert len(actions) == n
        world.tell(actions)
        asked += points_of(actions)
    assert_array_equal(asked, [symmetry.image(world.top) for symmetry in some])


def test_nothing_is_queued_before_there_is_a_region_or_without_data_in_it() -> None:
    world = World(bump(HERE), HERE, declared=[SWAP])
    X, log_joint = world.data
    assert not world.images.prepared(KnownRegions(world.known.measure), X, log_joint).is_asking
    assert not world.images.prepared(world.known, X + 5.0, log_joint).is_asking
    assert world.images.prepared(world.known, X, log_joint).is_asking


def test_methods_leave_the_object_as_it_is() -> None:
    world = World(symmetric_under(SWAP), HERE, named=[SWAP])
    before = world.images
    world.prepare()
    queued = world.images
    world.ask()
    assert (before.queue, before.tried, before.n_asked) == ((), frozenset(), 0)
    assert (len(queued.queue), queued.answers, queued.unsearched) == (1, (), ())
    with pytest.raises(dataclasses.FrozenInstanceError):
        queued.queue = ()  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(ImagePoint(3))) == ImagePoint(3)


def test_an_image_in_a_known_region_is_asked_for_where_it_is_declared() -> None:
    """In its own, where the exchange moves it by little: a region that lies on a symmetry has it."""
    centre = np.array([1.5, 1.45, 0.8])
    assert everything_answered(World(symmetric_under(SWAP, centre), centre, named=[SWAP])) == []
    world = World(symmetric_under(SWAP, centre), centre, declared=[SWAP])
    asked = everything_answered(world)
    assert is_in(SWAP.image(world.top), asked)
    assert world.known.symmetries == (SWAP,)
    assert len(world.known.regions) == 1  # it is its own image


@pytest.mark.parametrize(("factor", "asked"), [(0.98, False), (1.02, True)])
@pytest.mark.parametrize("is_declared", [False, True])
def test_no_image_beside_a_low_evaluation_unless_it_is_declared(factor: float, asked: bool, is_declared: bool) -> None:
    declared, named = ([SWAP], []) if is_declared else ([], [SWAP])
    world = World(bump(HERE), HERE, declared=declared, named=named)
    beside = factor * AWAY * WIDTH * np.array([0.6, 0.0, -0.8])
    world.X = np.vstack([world.X, SWAP.image(world.top) + beside])
    world.prepare()
    assert bool(world.handed_out()) == (asked or is_declared)


@pytest.mark.parametrize(("lower", "asked"), [(NEGLIGIBLE + 0.1, False), (NEGLIGIBLE - 0.1, True)])
def test_an_evaluation_beside_an_image_tells_enough_only_where_it_is_low(lower: float, asked: bool) -> None:
    top = World(bump(HERE), HERE).top
    measure = Gaussian(np.zeros(3))
    level = bump(HERE)(top[None, :]) + measure.log_pdf(top[None, :]) - lower  # of log ℓπ
    world = World(lambda X: np.where(X[:, 1] > X[:, 0], level - measure.log_pdf(X), bump(HERE)(X)), HERE, named=[SWAP])
    world.X = np.vstack([world.X, SWAP.image(top) + 0.1 * AWAY * WIDTH])
    world.prepare()
    assert bool(world.handed_out()) == asked


def test_no_image_where_the_prior_is_much_smaller() -> None:
    """Correlated parameters can be reversed together, not one of them; shifted ones not at all."""
    centre = np.array([1.9, 1.2])
    one, both = Symmetry.of(2, reversed_axes=[0]), Symmetry.of(2, reversed_axes=[0, 1])
    for measure, allowed in (
        (Gaussian([0.0, 0.0]), [one, both]),
        (Gaussian([0.0, 0.0], [[1.0, 0.95], [0.95, 1.0]]), [both]),
        (Gaussian([2.0, 2.0]), []),
    ):
        world = World(bump(centre), centre, named=[one, both], measure=measure)
        world.prepare()
        points = points_of(world.handed_out())
        assert [symmetry for symmetry in (one, both) if is_in(symmetry.image(world.top), points)] == allowed


def test_an_image_region_has_no_images_of_its_own() -> None:
    world = World(symmetric_under(SWAP), HERE, named=[SWAP, REVERSE])
    world.known = world.known.with_symmetry(SWAP, 0)
    assert len(world.known.regions) == 2
    world.prepare()
    assert_array_equal(points_of(world.handed_out()), [SWAP.image(world.top), REVERSE.image(world.top)])


# -- what connects two regions ----------------------------------------------------------------------------------------


def alike_regions(*symmetries: Symmetry, height: float = 0.0, kinds: tuple[int, ...] = (0, 0, 0)) -> World:
    """A region at HERE and its images by the symmetries, the last of another height, each known from its own search."""
    heights = [0.0] * (len(symmetries) - 1) + [height]
    images = (seen_in(symmetry, bump(HERE, h)) for symmetry, h in zip(symmetries, heights, strict=True))
    centres = [HERE, *(symmetry.image(HERE) for symmetry in symmetries)]
    return World(either(bump(HERE), *images), *centres, kinds=kinds, named=[OTHER_SWAP])


@pytest.mark.parametrize("symmetry", [SWAP, SWAP_AND_REVERSE, QUARTER_TURN, Symmetry((1, 2, 0), (1, -1, 1))])
def test_what_connects_two_alike_regions_is_asked_for_first(symmetry: Symmetry) -> None:
    """Though the image lies in a known region."""
    world = alike_regions(symmetry)
    world.prepare()
    first = world.next_point()
    assert first is not None
    tops = [world.top_of(0), world.top_of(1)]
    assert any(is_in(first.u, [symmetry.image(top), symmetry.inverse.image(top)]) for top in tops)
    assert world.known.index_at(first.u) is not None


@pytest.mark.parametrize("symmetry", [SWAP, SWAP_AND_REVERSE, QUARTER_TURN, Symmetry((1, 2, 0), (1, -1, 1))])
def test_a_symmetry_that_connects_two_regions_is_proved(symmetry: Symmetry) -> None:
    """With the same likelihood in all images of the group, by one image and three checks like any other."""
    group = group_of([symmetry], 100)
    world = alike_regions(*group)
    everything_answered(world)
    assert symmetry in world.known.group
    assert all(region.symmetry is None for region in world.known.regions)
    assert len(world.known.regions) == 1 + len(group)
    assert world.shares == []


def test_a_cycle_that_connects_two_regions_is_proved() -> None:
    """Three components in a ring: the third region follows."""
    world = World(either(bump(HERE), *(seen_in(g, bump(HERE)) for g in group_of([CYCLE], 9))), HERE, CYCLE.image(HERE))
    everything_answered(world)
    assert set(world.known.group) == {CYCLE, CYCLE.inverse}
    assert len(world.known.regions) == 3


def test_regions_that_only_look_alike_are_not_connected() -> None:
    """A twentieth of a nat higher: the image is asked for, differs, and refutes the symmetry; both are known."""
    world = alike_regions(SWAP, height=0.05)
    everything_answered(world)
    assert world.known.symmetries == ()
    assert SWAP in world.known.refuted
    assert_allclose(world.images.differences[SWAP], 0.05, rtol=0.1)
    assert world.unsearched() is None


def test_a_refuted_symmetry_or_a_known_one_connects_nothing() -> None:
    world = alike_regions(SWAP)
    assert set(world.images._connections(world.known)) == {SWAP}
    world.known = world.known.with_refuted(SWAP)
    assert list(world.images._connections(world.known)) == []
    world = alike_regions(SWAP)
    world.known = world.known.with_symmetry(SWAP, 0)
    assert list(world.images._connections(world.known)) == []


@pytest.mark.parametrize(("log_z", "connected"), [(0.49, True), (-0.49, True), (0.51, False), (-0.51, False)])
def test_only_regions_of_about_the_same_mass_are_alike(log_z: float, connected: bool) -> None:
    world = World(symmetric_under(SWAP), HERE)
    world.know(SWAP.image(HERE), log_z)
    assert bool(list(world.images._connections(world.known))) == connected


def test_parameters_of_two_kinds_connect_nothing() -> None:
    world = alike_regions(SWAP, kinds=(0, 1, 0))
    assert list(world.images._connections(world.known)) == []


# -- images that hold mass --------------------------------------------------------------------------------------------


def test_an_image_that_holds_mass_is_given_once() -> None:
    world = World(ONE_HIGH, HERE, named=[SWAP])
    everything_answered(world)
    assert world.known.symmetries == ()
    image = world.unsearched()
    assert image is not None
    assert image.symmetry == SWAP
    assert image.frame is world.known.explorers[0].frame
    assert_array_equal(image.x, SWAP.image(world.top))
    assert world.unsearched() is None


def test_it_is_given_once_all_is_told() -> None:
    world = World(symmetric_under(SWAP), HERE, named=[SWAP])
    world.prepare()
    world.ask()
    assert not world.images.has_unsearched  # checks are queued
    world.ask()
    assert world.images.has_unsearched
    assert world.unsearched() is None  # the symmetry explains it
    assert not world.images.has_unsearched


@pytest.mark.parametrize(("height", "share"), [(0.0, 1.0), (-1.0, math.exp(-1.0)), (1.0, 1.0)])
def test_an_image_counts_as_much_as_it_is_high(height: float, share: float) -> None:
    """Of its family's mass, and no more than that; nothing once there is a region that explains it."""
    alone = either(bump(HERE), seen_in(SWAP, bump(HERE, height)))
    for log_l, centres, part in ((alone, [HERE], 1.0), (either(alone, bump(THERE)), [HERE, THERE], 0.5)):
        world = World(log_l, *centres, named=[SWAP])
        assert world.shares == []
        world.prepare()
        world.ask()
        assert_allclose(world.shares, [part * share], rtol=1e-6)
        world.know(SWAP.image(HERE))
        assert world.shares == []


def test_a_symmetry_counts_once_however_many_of_its_images_hold_mass() -> None:
    """Checks that have failed hold mass like the first image; the highest relative to its original counts."""
    world = World(symmetric_under(SWAP), HERE, named=[SWAP])
    world.prepare()
    world.ask()
    world.tell(world.handed_out(), off=-0.5)
    world.conclude()
    assert world.known.symmetries == ()
    assert_allclose(world.shares, [1.0], rtol=1e-6)


def test_a_symmetry_that_is_proved_leaves_nothing_to_count() -> None:
    world = World(symmetric_under(SWAP), HERE, named=[SWAP])
    world.prepare()
    world.ask()
    assert len(world.shares) == 1
    world.ask()
    assert world.known.symmetries == (SWAP,)
    assert world.shares == []


def test_the_highest_image_comes_first() -> None:
    log_l = either(bump(HERE), bump(SWAP.image(HERE), -2.0), bump(OTHER_SWAP.image(HERE), -1.0))
    world = World(log_l, HERE, named=[SWAP, OTHER_SWAP])
    everything_answered(world)
    images = [world.unsearched(), world.unsearched()]
    assert [image.symmetry for image in images if image is not None] == [OTHER_SWAP, SWAP]


def test_an_image_that_a_region_explains_by_now_is_not_given() -> None:
    world = World(ONE_HIGH, HERE, named=[SWAP])
    world.prepare()
    world.ask()
    world.know(SWAP.image(HERE))
    assert len(world.known.regions) == 2
    assert world.unsearched() is None


@pytest.mark.parametrize("empty", [-40.0, -math.inf])
def test_an_image_without_mass_is_forgotten(empty: float) -> None:
    """Numbers that are not are errors here."""
    world = World(lambda X: np.where(X[:, 1] > X[:, 0], empty, bump(HERE)(X)), HERE, named=[SWAP])
    with np.errstate(all="raise"):
        assert len(everything_answered(world)) == 1
        assert world.unsearched() is None
    assert world.known.refuted == {SWAP}
    assert world.images.differences[SWAP] > 30.0


def test_zero_likelihood_at_a_check() -> None:
    world = World(symmetric_under(SWAP), HERE, named=[SWAP])
    world.prepare()
    world.ask()
    with np.errstate(all="raise"):
        world.tell(world.handed_out(), off=-math.inf)
        world.conclude()
        image = world.unsearched()
        assert image is not None  # the first image, which did hold mass
        assert_array_equal(image.x, SWAP.image(world.top))
        assert world.unsearched() is None
    assert world.known.symmetries == ()
