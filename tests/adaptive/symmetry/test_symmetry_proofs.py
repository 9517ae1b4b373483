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
    is_in,
    points_of,
    seen_in,
    symmetric_under,
)
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.symmetry.group import Symmetry
from wsabi.adaptive.symmetry.proof import Image, ImagePoint, _checks
from wsabi.adaptive.tuning import TUNING, tuned
from wsabi.priors import Gaussian

pytestmark = pytest.mark.sensitive

AWAY, CHECKS = TUNING.search.away, TUNING.symmetry.checks
THIRD = np.array([-1.0, 1.0, 0.2])
TWO_PAIRS = either(symmetric_under(SWAP), symmetric_under(SWAP, THERE))
A_PAIR_AND_ONE = either(symmetric_under(SWAP), bump(THERE))


def a_pair() -> World:
    """Two modes that are images of each other by exchange, one of them known."""
    return World(symmetric_under(SWAP), HERE, named=[SWAP])


# -- what proves a symmetry -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("symmetry", [SWAP, REVERSE, Symmetry.of(3, ((1, 2),))])
def test_a_true_symmetry_is_proved_by_one_and_three_evaluations(symmetry: Symmetry, declared: bool) -> None:
    some = {"declared": [symmetry]} if declared else {"named": [symmetry]}
    world = World(symmetric_under(symmetry), HERE, **some)  # type: ignore[arg-type]
    world.prepare()
    assert_array_equal(world.ask(), [symmetry.image(world.top)])
    checks = world.handed_out()
    assert len(checks) == CHECKS == 3
    assert all(is_in(symmetry.inverse.image(action.u), world.X[:30]) for action in checks)
    for action in checks[:-1]:
        world.tell([action])
        world.conclude()
        assert world.known.symmetries == ()
    world.tell(checks[-1:])
    world.conclude()
    assert world.known.symmetries == (symmetry,)
    assert len(world.known.regions) == 2
    assert world.unsearched() is None  # the image is a known region by now


def test_the_number_of_checks_is_a_number_of_the_tuning() -> None:
    with tuned("symmetry", checks=5):
        world = a_pair()
        world.prepare()
        world.ask()
        assert len(world.ask()) == 5
        assert world.known.symmetries == (SWAP,)


def test_checks_are_apart_from_the_best_point_and_from_each_other() -> None:
    world = a_pair()
    world.prepare()
    world.ask()
    places = np.vstack([world.top, SWAP.inverse.image(np.array(points_of(world.handed_out())))]) / WIDTH
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)[np.triu_indices(4, 1)]
    assert np.all(distances[:3] > AWAY)
    assert np.all(distances > 0.0)
    assert np.ptp(world.log_l(places * WIDTH)) > 1.0  # not all at one height


def test_agreement_at_the_best_point_only_is_no_symmetry() -> None:
    """A curvature that differs by 1e-3, or 4e-5 nats a tenth of an sd away, is a difference."""
    top = a_pair().top

    def log_l(X: np.ndarray) -> np.ndarray:
        distance = np.square((X - SWAP.image(top)) / WIDTH).sum(axis=1)
        return np.asarray(symmetric_under(SWAP)(X) - 1e-3 * distance * (X[:, 1] > X[:, 0]))

    world = World(log_l, HERE, named=[SWAP])
    world.prepare()
    assert_array_equal(world.ask(), [SWAP.image(top)])
    assert len(world.ask()) == CHECKS
    assert world.known.symmetries == ()
    assert world.known.refuted == {SWAP}
    assert len(world.known.regions) == 1
    assert world.unsearched() is not None  # it holds mass all the same


@pytest.mark.parametrize("wrong", range(CHECKS))
def test_one_check_that_fails_is_enough(wrong: int) -> None:
    world = a_pair()
    world.prepare()
    world.ask()
    for n, action in enumerate(world.handed_out()):
        world.tell([action], off=1e-4 if n == wrong else 0.0)
    world.conclude()
    assert world.known.symmetries == ()
    assert abs(world.images.differences[SWAP] - 1e-4) < 1e-8


def test_too_few_points_in_the_region_prove_nothing() -> None:
    world = a_pair()
    radius = np.linalg.norm(world.X - world.top, axis=1)
    world.X = world.X[np.argsort(radius)[[0, 1, 2]]]
    world.prepare()
    assert len(world.ask()) == 1
    assert world.next_point() is None
    assert world.known.symmetries == ()
    assert world.unsearched() is not None


def test_round_off_is_no_difference() -> None:
    world = a_pair()
    world.prepare()
    for _ in range(2):
        for n, action in enumerate(world.handed_out()):
            world.tell([action], off=1e-9 * (-1) ** n)
        world.conclude()
    assert world.known.symmetries == (SWAP,)


@pytest.mark.parametrize("joint", [False, True])
def test_likelihood_and_prior_must_both_be_symmetric(joint: bool) -> None:
    """Where the prior is no image of itself, neither a symmetric ℓ nor a symmetric ℓπ says what the other is."""
    centre, swap, measure = np.array([0.5, -0.5]), Symmetry.of(2, ((0, 1),)), Gaussian([0.5, 0.0])
    symmetric = symmetric_under(swap, centre)

    def log_l(X: np.ndarray) -> np.ndarray:
        return np.asarray(symmetric(X) - (measure.log_pdf(X) if joint else 0.0))

    world = World(log_l, centre, named=[swap], measure=measure)
    assert len(everything_answered(world)) == 1
    assert world.known.symmetries == ()
    assert world.unsearched() is not None


def test_two_symmetries_at_once() -> None:
    """Their product comes free: the fourth region is known by then."""
    log_l = either(symmetric_under(SWAP), seen_in(REVERSE, symmetric_under(SWAP)))
    world = World(log_l, HERE, named=[SWAP, REVERSE, REVERSE.after(SWAP)])
    world.prepare()
    assert len(world.ask()) == 3
    assert len(world.ask()) == 3 * CHECKS
    assert set(world.known.symmetries) == {SWAP, REVERSE}
    assert len(world.known.regions) == 4


def test_nothing_is_concluded_while_answers_are_outstanding() -> None:
    """The one that matters is the first, and the last to be told says nothing."""
    world = World(symmetric_under(REVERSE), HERE, named=[REVERSE, SWAP, Symmetry.of(3, ((1, 2),))])
    assert not world.images.has_answers
    world.prepare()
    actions = world.handed_out()
    for action in actions[:-1]:
        world.tell([action])
        world.conclude()
        assert world.images.has_answers
        assert world.next_point() is None
        assert world.unsearched() is None
    world.tell(actions[-1:])
    world.conclude()
    assert not world.images.has_answers
    assert len(world.handed_out()) == CHECKS


def test_nothing_is_concluded_while_images_are_queued() -> None:
    world = World(symmetric_under(REVERSE), HERE, named=[REVERSE, SWAP, Symmetry.of(3, ((1, 2),))])
    world.prepare()
    action = world.next_point()
    assert action is not None
    world.tell([action])
    world.conclude()
    assert world.unsearched() is None
    assert len(world.ask()) == 2  # the rest
    assert len(world.handed_out()) == CHECKS


def test_images_that_are_never_told_hold_up_the_rest_until_the_next_search_only() -> None:
    world = World(symmetric_under(SWAP), HERE, named=[SWAP, REVERSE])
    world.prepare()
    actions = world.handed_out()
    world.tell(actions[:-1])
    world.conclude()
    assert world.next_point() is None
    world.prepare()
    world.ask()
    assert len(world.handed_out()) == CHECKS


@pytest.mark.parametrize("checks", [False, True])
def test_what_is_never_told_is_asked_for_again(checks: bool) -> None:
    """An image that was handed out and forgotten costs no symmetry, nor does a forgotten check.

    Not even a second evaluation of the first image: its answer is among the data.
    """
    world = a_pair()
    world.prepare()
    first = world.handed_out()
    if checks:
        world.tell(first)
        world.conclude()
        assert len(world.handed_out()) == CHECKS  # and none of them told
    asked = everything_answered(world)
    assert world.known.symmetries == (SWAP,)
    assert is_in(SWAP.image(world.top), asked) == (not checks)


def test_an_answer_after_it_was_given_up_is_no_answer() -> None:
    """Nor is a number that was never given out."""
    world = a_pair()
    world.prepare()
    actions = world.handed_out()
    world.images = world.images.forgotten()
    assert not world.images.is_asking
    world.images = world.images.told(actions[0].purpose, 0.0).told(ImagePoint(99), 0.0)  # type: ignore[arg-type]
    assert not world.images.has_answers


def test_an_image_that_was_evaluated_before_answers_by_itself() -> None:
    """So do its checks: what an earlier run has evaluated proves the symmetry again at no cost."""
    world = a_pair()
    world.X = np.vstack([world.X, SWAP.image(world.X)])
    world.prepare()
    assert world.images.has_answers
    assert world.ask() == []
    assert world.known.symmetries == (SWAP,)


def test_an_evaluation_close_to_an_image_is_no_answer() -> None:
    world = a_pair()
    world.X = np.vstack([world.X, SWAP.image(world.top) + 1e-9])
    world.prepare()
    assert not world.images.has_answers
    assert len(world.handed_out()) == 1


def test_an_image_evaluated_before_that_differs_proves_nothing() -> None:
    world = World(either(bump(HERE), seen_in(SWAP, bump(HERE, -1.0))), HERE, named=[SWAP])
    world.X = np.vstack([world.X, SWAP.image(world.X)])
    assert everything_answered(world) == []
    assert world.known.symmetries == ()
    assert world.unsearched() is not None


def test_two_symmetries_that_give_one_point_ask_for_it_once() -> None:
    """The second region's best point is the first's with one axis reversed: by both axes, by the other, one image."""
    first, both, other = Symmetry.of(2, (), [0]), Symmetry.of(2, (), [0, 1]), Symmetry.of(2, (), [1])
    centre = np.array([1.5, -0.6])
    world = World(symmetric_under(first, centre), centre, first.image(centre), named=[both, other])
    world.X[30:] = first.image(world.X[:30])
    world.known = world.known.with_refuted(first)  # or the two regions, which match, suggest it
    assert_array_equal(both.image(first.image(world.top)), other.image(world.top))
    world.prepare()
    points = points_of(world.handed_out())
    assert is_in(other.image(world.top), points)
    assert len(np.unique(points, axis=0)) == len(points)


def test_zero_likelihood_inside_the_region_is_no_check() -> None:
    """Where a third of the region is infeasible the symmetry is proved by the rest, and nothing is undefined."""

    def log_l(X: np.ndarray) -> np.ndarray:
        return np.where(np.abs(X[:, 2] - HERE[2] - 0.5 * WIDTH) < 0.3 * WIDTH, -np.inf, symmetric_under(SWAP)(X))

    world = World(log_l, HERE, named=[SWAP])
    assert 3 < np.sum(np.isinf(world.log_l(world.X))) < 20
    with np.errstate(all="raise"):
        world.prepare()
        world.ask()
        checks = world.handed_out()
        assert len(checks) == CHECKS
        assert np.all(np.isfinite(world.log_l(np.array(points_of(checks)))))
        world.tell(checks)
        world.conclude()
    assert world.known.symmetries == (SWAP,)


def test_a_point_that_is_its_own_image_is_no_check() -> None:
    """A region long enough to reach the symmetry: points on it agree whatever ℓ is."""
    world = a_pair()
    on_it = HERE.copy()
    on_it[:2] = HERE[:2].mean()
    frame = world.known.explorers[0].frame
    wide = Frame(frame.mean, frame.axes, 3.0 * frame.widths)
    world.X = np.vstack([world.X[:2], on_it + 0.01 * np.array([[0.0, 0.0, k] for k in range(20)])])
    assert _checks(Image(SWAP.image(world.top), SWAP, 0.0, wide, 0), *world.data) == []


# -- regions found later ----------------------------------------------------------------------------------------------


def test_a_region_found_later_confirms_a_symmetry_by_one_evaluation() -> None:
    """It comes before all else that is asked for; until then the region has no image."""
    world = World(TWO_PAIRS, HERE, named=[SWAP, REVERSE])
    everything_answered(world)
    assert world.known.symmetries == (SWAP,)
    world.know(THERE)
    assert len(world.known.regions) == 3
    top = world.X[-30:][np.argmax(world.data[1][-30:])]
    world.prepare()
    actions = world.handed_out()
    assert_array_equal(actions[0].u, SWAP.image(top))
    world.tell(actions)
    world.conclude()
    assert world.known.symmetries == (SWAP,)
    assert world.known.confirmed == {(SWAP, 0), (SWAP, 1)}
    assert [(region.family, region.symmetry) for region in world.known.regions[2:]] == [(1, None), (1, SWAP)]
    assert world.next_point() is None  # no checks
    assert world.unsearched() is None


def test_a_region_found_later_refutes_a_symmetry() -> None:
    """What was known by it stays, as a region of its own."""
    world = World(A_PAIR_AND_ONE, HERE, declared=[SWAP])
    everything_answered(world)
    assert world.known.symmetries == (SWAP,)
    world.know(THERE)
    everything_answered(world)
    assert world.known.symmetries == ()
    assert world.images.differences[SWAP] > 1.0
    assert sorted(region.family for region in world.known.regions) == [0, 1, 2]
    assert all(region.symmetry is None for region in world.known.regions)
    assert world.unsearched() is None


def test_an_image_that_refutes_a_symmetry_may_hold_mass() -> None:
    world = World(either(A_PAIR_AND_ONE, seen_in(SWAP, bump(THERE, -1.0))), HERE, named=[SWAP])
    everything_answered(world)
    world.know(THERE)
    world.prepare()
    world.ask()
    assert world.known.symmetries == ()
    image = world.unsearched()
    assert image is not None
    assert image.key == (1, SWAP)


def test_regions_known_at_once_are_checked_each_for_itself() -> None:
    """Three checks of the one and three of the other are not six of one symmetry."""
    world = World(TWO_PAIRS, HERE, THERE, named=[SWAP])
    world.prepare()
    assert len(world.ask()) == 2
    assert len(world.ask()) == 2 * CHECKS
    everything_answered(world)
    assert world.known.symmetries == (SWAP,)
    assert world.known.confirmed == {(SWAP, 0), (SWAP, 1)}
    assert len(world.known.regions) == 4


def test_checks_that_fail_in_the_second_region_refute_what_the_first_proves() -> None:
    world = World(TWO_PAIRS, HERE, THERE, named=[SWAP])
    world.prepare()
    world.ask()
    checks = world.handed_out()
    assert len(checks) == 2 * CHECKS
    for action in checks:
        world.tell([action], off=1e-3 if np.linalg.norm(action.u - SWAP.image(THERE)) < 1.0 else 0.0)
    world.conclude()
    assert world.known.symmetries == ()
    assert (SWAP, 1) not in world.known.confirmed


def n_wrong(world: World) -> int:
    """How many values the models would be given that are not those of ℓ."""
    X, log_l = world.known.with_images(world.X, world.log_l(world.X))
    return int(np.sum(np.abs(world.log_l(X) - log_l) > 1e-6))


@pytest.mark.parametrize("centres", [(HERE, THERE), (THERE, HERE)])
def test_a_region_known_to_differ_lets_no_other_prove_the_symmetry(centres: tuple[np.ndarray, np.ndarray]) -> None:
    world = World(A_PAIR_AND_ONE, *centres, named=[SWAP])
    everything_answered(world)
    assert world.known.symmetries == ()
    assert n_wrong(world) == 0


def test_a_symmetry_that_was_refuted_is_not_proved_again_by_a_third_region() -> None:
    third = np.array([1.0, 0.0, -1.0])
    world = World(either(A_PAIR_AND_ONE, symmetric_under(SWAP, third)), HERE, named=[SWAP])
    for centre in (THERE, third):
        everything_answered(world)
        world.know(centre)
    everything_answered(world)
    assert world.known.symmetries == ()
    assert n_wrong(world) == 0


def test_a_symmetry_is_asked_about_even_beside_a_low_evaluation() -> None:
    world = World(A_PAIR_AND_ONE, HERE, named=[SWAP])
    everything_answered(world)
    assert world.known.symmetries == (SWAP,)
    world.X = np.vstack([world.X, SWAP.image(THERE)])
    world.know(THERE)
    everything_answered(world)
    assert world.known.symmetries == ()
    assert n_wrong(world) == 0


@pytest.mark.parametrize("is_known_to_be_low", [False, True])
def test_a_third_mode_without_image_refutes_a_symmetry_of_two(is_known_to_be_low: bool) -> None:
    """Beside its image a low value may be known: the region is left out at first, and must refute after the proof."""
    world = World(either(symmetric_under(SWAP), bump(THIRD)), HERE, THIRD, named=[SWAP])
    if is_known_to_be_low:
        world.X = np.vstack([world.X, SWAP.image(THIRD)])
    everything_answered(world)
    assert world.known.symmetries == ()
    assert SWAP in world.known.refuted
