"""A symmetry is proved by four agreements, no fewer, and confirmed or refuted by every region found beside."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from symmetric_world import (
    HERE,
    REVERSE,
    SWAP,
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
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.symmetry.group import Symmetry, close_to
from wsabi.adaptive.symmetry.proof import CHECKS, Image, ImageTests, _checks
from wsabi.priors import Gaussian

pytestmark = pytest.mark.sensitive

# -- what proves a symmetry -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("symmetry", [SWAP, REVERSE, Symmetry.of(3, ((1, 2),))])
def test_a_true_symmetry_is_proved_by_one_and_three_evaluations(symmetry: Symmetry) -> None:
    world = World(symmetric_under(symmetry), HERE)
    world.reach(symmetry)
    assert world.found.symmetries == []
    checks = world.handed_out()
    assert len(checks) == CHECKS == 3
    originals = [symmetry.inverse.image(x) for x in checks]
    assert all(is_in(x, world.X[:30]) for x in originals)
    for x in checks[:-1]:
        world.tell([x])
        world.conclude()
        assert world.found.symmetries == []
    world.tell(checks[-1:])
    world.conclude()
    assert world.found.symmetries == [symmetry]
    assert len(world.found.sites) == 2
    assert world.images.echo(world.found) is None  # the image is a known region by now


def test_checks_are_apart_from_the_best_point_and_from_each_other() -> None:
    world = World(symmetric_under(SWAP), HERE)
    world.prepare()
    world.ask()
    places = np.vstack([world.top, SWAP.inverse.image(np.array(world.handed_out()))]) / WIDTH
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)[np.triu_indices(4, 1)]
    assert np.all(distances[:3] > AWAY)
    assert np.all(distances > 0.0)
    assert np.ptp(world.log_l(places * WIDTH)) > 1.0  # not all at one height


def test_agreement_at_the_best_point_only_is_no_symmetry() -> None:
    """A curvature that differs by 1e-3, or 4e-5 nats a tenth of an sd away, is a difference."""
    top = World(symmetric_under(SWAP), HERE).top

    def log_l(X: np.ndarray) -> np.ndarray:
        distance = np.square((X - SWAP.image(top)) / WIDTH).sum(axis=1)
        return np.asarray(symmetric_under(SWAP)(X) - 1e-3 * distance * (X[:, 1] > X[:, 0]))

    world = World(log_l, HERE)
    world.prepare()
    assert is_in(SWAP.image(top), world.ask())
    assert len(world.ask()) == CHECKS
    assert world.found.symmetries == []
    assert len(world.found.sites) == 1
    assert world.images.echo(world.found) is not None  # it holds mass all the same


@pytest.mark.parametrize("wrong", range(CHECKS))
def test_one_check_that_fails_is_enough(wrong: int) -> None:
    world = World(symmetric_under(SWAP), HERE)
    world.prepare()
    world.ask()
    checks = world.handed_out()
    for n, x in enumerate(checks):
        world.images.tell(x, float(world.log_l(x[None, :])[0]) + (1e-4 if n == wrong else 0.0))
    world.conclude()
    assert world.found.symmetries == []


def test_too_few_points_in_the_region_prove_nothing() -> None:
    world = World(symmetric_under(SWAP), HERE)
    radius = np.linalg.norm(world.X - world.top, axis=1)
    world.X = world.X[np.argsort(radius)[[0, 1, 2]]]
    world.prepare()
    assert is_in(SWAP.image(world.top), world.ask())
    assert world.images.next_point() is None
    assert world.found.symmetries == []
    assert world.images.echo(world.found) is not None


def test_round_off_is_no_difference() -> None:
    world = World(symmetric_under(SWAP), HERE)
    world.prepare()
    for _ in range(2):
        for n, x in enumerate(world.handed_out()):
            world.images.tell(x, float(world.log_l(x[None, :])[0]) + 1e-9 * (-1) ** n)
        world.conclude()
    assert world.found.symmetries == [SWAP]


@pytest.mark.parametrize("joint", [False, True])
def test_likelihood_and_prior_must_both_be_symmetric(joint: bool) -> None:
    """Where the prior is no image of itself, neither a symmetric ℓ nor a symmetric ℓπ says what the other is."""
    centre, swap, measure = np.array([0.5, -0.5]), Symmetry.of(2, ((0, 1),)), Gaussian([0.5, 0.0])
    symmetric = symmetric_under(swap, centre)

    def log_l(X: np.ndarray) -> np.ndarray:
        return np.asarray(symmetric(X) - (measure.log_pdf(X) if joint else 0.0))

    world = World(log_l, centre, measure=measure)
    world.reach(swap)
    world.ask()
    assert world.found.symmetries == []
    assert world.images.echo(world.found) is not None


def test_two_symmetries_at_once() -> None:
    """Their product comes free: the fourth region is known by then, and its image is asked for no more."""
    world = World(either(symmetric_under(SWAP), seen_in(REVERSE, symmetric_under(SWAP))), HERE)
    world.prepare()
    world.ask()
    assert len(world.ask()) == 2 * CHECKS
    assert set(world.found.symmetries) == {SWAP, REVERSE}
    assert len(world.found.sites) == 4
    asked = [*world.handed_out(), *everything_asked(world)]
    assert not is_in(REVERSE.after(SWAP).image(world.top), asked)


def test_nothing_is_concluded_while_answers_are_outstanding() -> None:
    """The one that matters is the first, and the last to be told says nothing."""
    world = World(symmetric_under(REVERSE), HERE)
    assert not world.images.has_answers
    world.prepare()
    points = world.handed_out()
    assert_array_equal(points[0], REVERSE.image(world.top))
    for x in points[:-1]:
        world.tell([x])
        world.conclude()
        assert world.images.has_answers
        assert world.images.next_point() is None
        assert world.images.echo(world.found) is None
    world.tell(points[-1:])
    world.conclude()
    assert not world.images.has_answers
    assert len(world.handed_out()) == CHECKS


def test_nothing_is_concluded_while_images_are_queued() -> None:
    world = World(symmetric_under(REVERSE), HERE)
    world.prepare()
    x = world.images.next_point()
    assert x is not None
    assert_array_equal(x, REVERSE.image(world.top))
    world.tell([x])
    world.conclude()
    assert world.images.echo(world.found) is None
    assert len(world.ask()) == 3  # the rest of the first four
    assert len(world.handed_out()) == CHECKS


def test_images_that_are_never_told_hold_up_the_rest_until_the_next_look_only() -> None:
    world = World(symmetric_under(SWAP), HERE)
    world.prepare()
    points = world.handed_out()
    world.tell(points[:-1])
    world.conclude()
    assert world.images.next_point() is None
    world.prepare()
    world.ask()
    assert len(world.handed_out()) == CHECKS


@pytest.mark.parametrize("checks", [False, True])
def test_what_is_never_told_is_asked_for_again(checks: bool) -> None:
    """An image that was handed out and forgotten costs no symmetry, nor does a forgotten check.

    Not even a second evaluation of the first image: its answer is among the data.
    """
    world = World(symmetric_under(SWAP), HERE)
    world.prepare()
    first = world.handed_out()
    assert is_in(SWAP.image(world.top), first)
    if checks:
        world.tell(first)
        world.conclude()
        assert len(world.handed_out()) == CHECKS  # and none of them told
    asked = everything_answered(world)
    assert world.found.symmetries == [SWAP]
    assert is_in(SWAP.image(world.top), asked) == (not checks)


def test_what_is_queued_is_forgotten_too() -> None:
    world = World(symmetric_under(SWAP), HERE)
    world.prepare()
    first = [world.images.next_point(), *world.handed_out()]
    world.images.forget()
    world.prepare()
    assert world.images.next_point() is not None  # one is handed out, three are queued
    world.images.forget()
    assert not world.images.is_asking
    assert world.images.next_point() is None
    world.prepare()
    assert_array_equal(world.handed_out(), first)


def test_an_image_that_was_evaluated_before_answers_by_itself() -> None:
    """So do its checks: what an earlier run has evaluated proves the symmetry again at no cost."""
    world = World(symmetric_under(SWAP), HERE)
    world.X = np.vstack([world.X, SWAP.image(world.X)])
    world.prepare()
    assert world.images.has_answers
    points = world.ask()
    assert len(points) == 3  # of the other symmetries among the first four
    assert not is_in(SWAP.image(world.top), points)
    assert world.found.symmetries == [SWAP]
    assert not any(is_in(x, SWAP.image(world.X[:30])) for x in world.handed_out())


def test_an_evaluation_close_to_an_image_is_no_answer() -> None:
    world = World(symmetric_under(SWAP), HERE)
    world.X = np.vstack([world.X, SWAP.image(world.top) + 1e-9])
    world.prepare()
    assert not world.images.has_answers
    assert is_in(SWAP.image(world.top), world.handed_out())


def test_an_image_evaluated_before_that_differs_proves_nothing() -> None:
    world = World(either(bump(HERE), seen_in(SWAP, bump(HERE, -1.0))), HERE)
    world.X = np.vstack([world.X, SWAP.image(world.X)])
    asked = everything_answered(world)
    assert world.found.symmetries == []
    assert not is_in(SWAP.image(world.top), asked)
    assert world.images.echo(world.found) is not None


@pytest.mark.parametrize("kinds", [(0, 0), (0, 1)])  # one batch after the other, or both in one
def test_two_mirrors_that_give_one_point_ask_for_it_once(kinds: tuple[int, int]) -> None:
    """The second region's best point is the first's with one axis reversed: by both axes, by the other, one image."""
    first, both, other = Symmetry.of(2, (), [0]), Symmetry.of(2, (), [0, 1]), Symmetry.of(2, (), [1])
    centre = np.array([1.5, -0.6])
    world = World(symmetric_under(first, centre), centre, first.image(centre))
    world.X[30:] = first.image(world.X[:30])
    world.images = ImageTests(kinds)
    assert_array_equal(both.image(first.image(world.top)), other.image(world.top))
    asked = 0
    for _ in range(3):
        world.prepare()
        points = world.handed_out()
        asked += is_in(other.image(world.top), points)
        assert len(np.unique(points, axis=0)) == len(points)
        world.tell(points)
    assert asked == 1


def test_zero_likelihood_inside_the_region_is_no_check() -> None:
    """Where a third of the region is infeasible the symmetry is proved by the rest, and nothing is undefined."""

    def log_l(X: np.ndarray) -> np.ndarray:
        return np.where(np.abs(X[:, 2] - HERE[2] - 0.5 * WIDTH) < 0.3 * WIDTH, -np.inf, symmetric_under(SWAP)(X))

    world = World(log_l, HERE)
    assert 3 < np.sum(np.isinf(world.log_l(world.X))) < 20
    with np.errstate(all="raise"):
        world.prepare()
        world.ask()
        checks = world.handed_out()
        assert len(checks) == CHECKS
        assert np.all(np.isfinite(world.log_l(np.array(checks))))
        world.tell(checks)
        world.conclude()
    assert world.found.symmetries == [SWAP]


def test_a_point_that_is_its_own_image_is_no_check() -> None:
    """A region long enough to reach the symmetry: points on it agree whatever ℓ is."""
    world = World(symmetric_under(SWAP), HERE)
    on_it = HERE.copy()
    on_it[:2] = HERE[:2].mean()
    frame = world.found.explorers[0].frame
    world.found.explorers[0].frame = Frame(frame.mean, frame.axes, 3.0 * frame.widths)
    world.X = np.vstack([world.X[:2], on_it + 0.01 * np.array([[0.0, 0.0, k] for k in range(20)])])
    image = Image(SWAP.image(world.top), SWAP, 0.0, world.found.explorers[0], 0)
    assert _checks(image, *world.data) == []


def test_values_at_other_places_are_no_answers() -> None:
    world = World(symmetric_under(SWAP), HERE)
    world.prepare()
    points = world.handed_out()
    for x in points:
        world.images.tell(x + 1e-9, 0.0)
    world.conclude()
    world.tell(points)
    world.conclude()
    assert len(world.handed_out()) == CHECKS


# -- regions found later ----------------------------------------------------------------------------------------------


def test_a_region_found_later_confirms_a_symmetry_by_one_evaluation() -> None:
    """It comes before all else that is asked for; until then the region has no image."""
    world = World(either(symmetric_under(SWAP), symmetric_under(SWAP, THERE)), HERE)
    everything_answered(world)
    assert world.found.symmetries == [SWAP]
    world.know(THERE)
    assert len(world.found.sites) == 3
    top = world.X[-30:][np.argmax(world.data[1][-30:])]
    world.prepare()
    points = world.handed_out()
    assert_array_equal(points[0], SWAP.image(top))
    world.tell(points)
    world.conclude()
    assert world.found.symmetries == [SWAP]
    assert world.found.confirmed == {(SWAP, 0), (SWAP, 1)}
    assert [(site.family, site.symmetry) for site in world.found.sites[2:]] == [(1, None), (1, SWAP)]
    assert not any(is_in(x, SWAP.image(world.X)) for x in world.handed_out())  # no checks
    assert world.images.echo(world.found) is None


def test_a_region_found_later_refutes_a_symmetry() -> None:
    """What was known by it stays, as a region of its own, and is asked about like any other."""
    world = World(either(symmetric_under(SWAP), bump(THERE)), HERE)
    everything_answered(world)
    assert world.found.symmetries == [SWAP]
    world.know(THERE)
    everything_answered(world)
    assert world.found.symmetries == []
    assert sorted(site.family for site in world.found.sites) == [0, 1, 2]
    assert all(site.symmetry is None for site in world.found.sites)
    assert world.images.echo(world.found) is None


def test_an_image_that_refutes_a_symmetry_may_hold_mass() -> None:
    world = World(either(symmetric_under(SWAP), bump(THERE), seen_in(SWAP, bump(THERE, -1.0))), HERE)
    everything_answered(world)
    world.know(THERE)
    top = world.X[-30:][np.argmax(world.data[1][-30:])]
    world.prepare()
    world.ask()
    assert world.found.symmetries == []
    assert_array_equal(world.ask(), [symmetry.image(top) for symmetry in close_to(SWAP)])
    echo = world.images.echo(world.found)
    assert echo is not None
    assert (echo.family, echo.symmetry) == (1, SWAP)


def test_regions_known_at_once_are_checked_each_for_itself() -> None:
    """Three checks of the one and three of the other are not six of one symmetry."""
    both = World(either(symmetric_under(SWAP), symmetric_under(SWAP, THERE)), HERE, THERE)
    assert len(both.reach(SWAP)) == 4
    assert len(both.handed_out()) == 2 * CHECKS
    everything_answered(both)
    assert both.found.symmetries == [SWAP]
    assert both.found.confirmed == {(SWAP, 0), (SWAP, 1)}
    assert len(both.found.sites) == 4


def test_checks_that_fail_in_the_second_region_refute_what_the_first_proves() -> None:
    world = World(either(symmetric_under(SWAP), symmetric_under(SWAP, THERE)), HERE, THERE)
    world.reach(SWAP)
    checks = world.handed_out()
    assert len(checks) == 2 * CHECKS
    for x in checks:
        at_there = np.linalg.norm(x - SWAP.image(THERE)) < 1.0
        world.images.tell(x, float(world.log_l(x[None, :])[0]) + 1e-3 * at_there)
    world.conclude()
    assert world.found.symmetries == []
    assert (SWAP, 1) not in world.found.confirmed


def n_wrong(world: World) -> int:
    """How many values the models would be given that are not those of ℓ."""
    X, log_l = world.found.with_images(world.X, world.log_l(world.X))
    return int(np.sum(np.abs(world.log_l(X) - log_l) > 1e-6))


@pytest.mark.parametrize("centres", [(HERE, THERE), (THERE, HERE)])
def test_a_region_known_to_differ_lets_no_other_prove_the_symmetry(centres: tuple[np.ndarray, np.ndarray]) -> None:
    world = World(either(symmetric_under(SWAP), bump(THERE)), *centres)
    everything_answered(world)
    assert world.found.symmetries == []
    assert n_wrong(world) == 0


def test_a_symmetry_that_was_refuted_is_not_proved_again_by_a_third_region() -> None:
    third = np.array([1.0, 0.0, -1.0])
    world = World(either(symmetric_under(SWAP), bump(THERE), symmetric_under(SWAP, third)), HERE)
    for centre in (THERE, third):
        everything_answered(world)
        world.know(centre)
    everything_answered(world)
    assert world.found.symmetries == []
    assert n_wrong(world) == 0


def test_a_symmetry_is_asked_about_even_beside_a_low_evaluation() -> None:
    world = World(either(symmetric_under(SWAP), bump(THERE)), HERE)
    everything_answered(world)
    assert world.found.symmetries == [SWAP]
    world.X = np.vstack([world.X, SWAP.image(THERE)])
    world.know(THERE)
    everything_answered(world)
    assert world.found.symmetries == []
    assert n_wrong(world) == 0


def test_a_known_value_at_an_image_refutes_a_symmetry_that_holds_elsewhere() -> None:
    """Two modes are images of each other by exchange, a third has none; its image was evaluated for another reason."""
    third = np.array([-1.0, 1.0, 0.2])
    world = World(either(symmetric_under(SWAP), bump(third)), HERE, third)
    for _ in range(8):
        world.prepare()
        while world.ask():
            pass
    assert world.found.symmetries == []
    assert SWAP in world.found.refuted


def test_a_family_left_out_before_the_proof_is_asked_after_it() -> None:
    """Beside the image of a region that has none a low value is known: left out at first, it must refute later."""
    third = np.array([-1.0, 1.0, 0.2])
    world = World(either(symmetric_under(SWAP), bump(third)), HERE, third)
    world.X = np.vstack([world.X, SWAP.image(third)])
    for _ in range(8):
        world.prepare()
        while world.ask():
            pass
    assert world.found.symmetries == []
