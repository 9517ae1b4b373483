"""Images are asked for where they may tell something, and prove a symmetry by four agreements, no fewer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from wsabi.engine.explorer import AWAY, Explorer, Frame
from wsabi.engine.found import NEGLIGIBLE, Found
from wsabi.engine.images import CHECKS, Image, Images, _checks
from wsabi.engine.mirrors import Mirror, close_to, mirrors, suggested_by
from wsabi.measures import Gaussian, Measure
from wsabi.result import Look

Function = Callable[[np.ndarray], np.ndarray]  # log ℓ (N,) of (N, D)
HERE, WIDTH = np.array([1.5, -0.5, 0.8]), 0.2
THERE = np.array([-0.6, 0.9, -2.3])  # far from all images of HERE, and from its own
SWAP = Mirror.of(3, ((0, 1),))
REVERSE = Mirror.of(3, reversed_axes=[0, 1, 2])
SWAP_AND_REVERSE = Mirror.of(3, ((0, 1),), [2])


def bump(centre: np.ndarray, height: float = 0.0) -> Function:
    """exp(height) at the centre, and a cubic term that makes it no image of itself."""

    def log_l(X: np.ndarray) -> np.ndarray:
        Y = (X - centre) / WIDTH
        return np.asarray(height - 0.5 * np.square(Y).sum(axis=1) + 0.02 * Y[:, 0] ** 3)

    return log_l


def seen_in(mirror: Mirror, log_l: Function) -> Function:
    """The function whose value at the image is the other's at the original."""
    return lambda X: log_l(mirror.inverse.image(X))


def either(*parts: Function) -> Function:
    return lambda X: np.asarray(np.logaddexp.reduce([part(X) for part in parts]))


def symmetric_under(mirror: Mirror, centre: np.ndarray = HERE) -> Function:
    return either(bump(centre), seen_in(mirror, bump(centre)))


class World:
    """A likelihood, a region known from thirty points for each centre, and the images asked for so far."""

    def __init__(self, log_l: Function, *centres: np.ndarray, measure: Measure | None = None) -> None:
        self.log_l = log_l
        self.found = Found(Gaussian(np.zeros(len(centres[0]))) if measure is None else measure)
        self.X = np.empty((0, len(centres[0])))
        self.images = Images([0] * len(centres[0]))
        for centre in centres:
            self.know(centre)

    def know(self, centre: np.ndarray) -> None:
        """A look has found the region at the centre."""
        dim = len(centre)
        rng = np.random.default_rng(len(self.X))
        explorer = Explorer(self.found.measure, rng)
        explorer.frame = Frame.of(centre, WIDTH**2 * np.eye(dim))
        self.X = np.vstack([self.X, explorer.frame.colour(rng.standard_normal((30, dim)))])
        explorer.fit(self.X[-30:], self.log_l(self.X[-30:]), learn=True)
        explorer.log_z = 0.0
        self.found.record(Look(30, 0.0, "new region"), explorer, 1.0)

    @property
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """X (N, D) and log ℓπ (N,)."""
        return self.X, self.log_l(self.X) + self.found.measure.log_pdf(self.X)

    @property
    def top(self) -> np.ndarray:
        """The best point (D,) of the first region."""
        X, log_joint = self.data
        return np.asarray(X[int(np.argmax(log_joint[:30]))])

    def prepare(self) -> None:
        self.images.prepare(self.found, *self.data)

    def handed_out(self) -> list[np.ndarray]:
        """All images in the queue."""
        points = []
        while (x := self.images.next_point()) is not None:
            points.append(x)
        return points

    def tell(self, points: list[np.ndarray]) -> None:
        for x in points:
            self.images.tell(x, float(self.log_l(x[None, :])[0]))
        self.X = np.vstack([self.X, *points])

    def conclude(self) -> None:
        self.images.conclude(self.found, *self.data)

    def ask(self) -> list[np.ndarray]:
        """Evaluate what is queued, draw conclusions, and give the points."""
        points = self.handed_out()
        self.tell(points)
        self.conclude()
        return points


def is_in(x: np.ndarray, points: Any) -> bool:
    return any(np.array_equal(x, other) for other in points)


def everything_asked(world: World) -> list[np.ndarray]:
    """What prepare asks for until it has nothing left; all of it is told, no conclusions drawn."""
    points: list[np.ndarray] = []
    for _ in range(20):  # twelve mirrors, four at a time
        world.prepare()
        queued = world.handed_out()
        for x in queued:
            world.images.tell(x, -100.0)
        points += queued
    return points


def everything_answered(world: World) -> list[np.ndarray]:
    """What is asked for until nothing is left; all of it is told, and conclusions drawn each time."""
    points: list[np.ndarray] = []
    for _ in range(10):
        world.prepare()
        while asked := world.ask():
            points += asked
    return points


# -- which images to ask for ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_up_to_one_more_than_dimensions_are_queued_in_order(dim: int) -> None:
    centre = 1.5 * np.linspace(-1.0, 2.0, dim + 1)[1:]
    world = World(bump(centre), centre)
    world.prepare()
    points = world.handed_out()
    kinds = (0,) * dim
    assert len(points) == min(dim + 1, len(list(mirrors(kinds))))
    expected = [mirror.image(world.top) for mirror in mirrors(kinds)]
    assert_array_equal(points, expected[: dim + 1])
    assert world.images.next_point() is None


def test_nothing_is_queued_before_there_is_a_region_or_without_data_in_it() -> None:
    world = World(bump(HERE), HERE)
    world.images.prepare(Found(world.found.measure), *world.data)
    assert world.images.next_point() is None
    X, log_joint = world.data
    world.images.prepare(world.found, X + 5.0, log_joint)
    assert world.images.next_point() is None


def test_only_parameters_of_one_kind_are_exchanged() -> None:
    world = World(bump(HERE), HERE)
    world.images = Images([0, 1, 0])
    points = everything_asked(world)
    assert is_in(Mirror.of(3, ((0, 2),)).image(world.top), points)
    assert not is_in(SWAP.image(world.top), points)


def test_nothing_is_asked_for_twice() -> None:
    world = World(bump(HERE), HERE)
    points = everything_asked(world)
    assert_array_equal(points, [mirror.image(world.top) for mirror in mirrors((0, 0, 0))])
    assert len(np.unique(points, axis=0)) == len(points)


def test_no_image_in_the_bulk_of_a_known_region() -> None:
    """Neither of its own, where the mirror moves it by little, nor of another."""
    itself = World(bump(np.array([1.5, 1.45, 0.8])), np.array([1.5, 1.45, 0.8]))
    assert not is_in(SWAP.image(itself.top), everything_asked(itself))
    unknown = World(symmetric_under(SWAP), HERE)
    assert is_in(SWAP.image(unknown.top), everything_asked(unknown))
    known = World(symmetric_under(SWAP), HERE, SWAP.image(HERE))
    tops = [known.X[:30][np.argmax(known.log_l(known.X[:30]))], known.X[30:][np.argmax(known.log_l(known.X[30:]))]]
    points = everything_asked(known)
    assert not any(is_in(SWAP.image(top), points) for top in tops)
    assert points  # of other mirrors


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
    one, both = Mirror.of(2, reversed_axes=[0]), Mirror.of(2, reversed_axes=[0, 1])
    for measure, allowed in (
        (Gaussian([0.0, 0.0]), [one, both]),
        (Gaussian([0.0, 0.0], [[1.0, 0.95], [0.95, 1.0]]), [both]),
        (Gaussian([2.0, 2.0]), []),
    ):
        world = World(bump(centre), centre, measure=measure)
        points = everything_asked(world)
        assert [mirror for mirror in (one, both) if is_in(mirror.image(world.top), points)] == allowed
        lost = measure.log_pdf(world.top[None, :]) - measure.log_pdf(np.array(points).reshape(-1, 2))
        assert np.all(lost < NEGLIGIBLE)


def test_an_image_region_has_no_images_of_its_own() -> None:
    world = World(symmetric_under(SWAP), HERE)
    world.found.add_symmetry(SWAP, 0)
    assert len(world.found.sites) == 2
    points = everything_asked(world)
    assert not is_in(SWAP.image(world.top), points)
    assert len(points) == len(list(mirrors((0, 0, 0)))) - 1


# -- what proves a symmetry -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mirror", [SWAP, REVERSE, Mirror.of(3, ((1, 2),))])
def test_a_true_symmetry_is_proved_by_one_and_three_evaluations(mirror: Mirror) -> None:
    world = World(symmetric_under(mirror), HERE)
    world.prepare()
    first = world.ask()
    assert is_in(mirror.image(world.top), first)
    assert world.found.symmetries == []
    checks = world.handed_out()
    assert len(checks) == CHECKS == 3
    originals = [mirror.inverse.image(x) for x in checks]
    assert all(is_in(x, world.X[:30]) for x in originals)
    for x in checks[:-1]:
        world.tell([x])
        world.conclude()
        assert world.found.symmetries == []
    world.tell(checks[-1:])
    world.conclude()
    assert world.found.symmetries == [mirror]
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
    centre, swap, measure = np.array([0.5, -0.5]), Mirror.of(2, ((0, 1),)), Gaussian([0.5, 0.0])
    symmetric = symmetric_under(swap, centre)

    def log_l(X: np.ndarray) -> np.ndarray:
        return np.asarray(symmetric(X) - (measure.log_pdf(X) if joint else 0.0))

    world = World(log_l, centre, measure=measure)
    world.prepare()
    assert is_in(swap.image(world.top), world.ask())
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
    assert len(points) == 3  # of the other mirrors among the first four
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
    first, both, other = Mirror.of(2, (), [0]), Mirror.of(2, (), [0, 1]), Mirror.of(2, (), [1])
    centre = np.array([1.5, -0.6])
    world = World(symmetric_under(first, centre), centre, first.image(centre))
    world.X[30:] = first.image(world.X[:30])
    world.images = Images(kinds)
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
    """A region long enough to reach the mirror: points on it agree whatever ℓ is."""
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
    assert [(site.family, site.mirror) for site in world.found.sites[2:]] == [(1, None), (1, SWAP)]
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
    assert all(site.mirror is None for site in world.found.sites)
    assert world.images.echo(world.found) is None


def test_an_image_that_refutes_a_symmetry_may_hold_mass() -> None:
    world = World(either(symmetric_under(SWAP), bump(THERE), seen_in(SWAP, bump(THERE, -1.0))), HERE)
    everything_answered(world)
    world.know(THERE)
    top = world.X[-30:][np.argmax(world.data[1][-30:])]
    world.prepare()
    world.ask()
    assert world.found.symmetries == []
    assert_array_equal(world.ask(), [mirror.image(top) for mirror in close_to(SWAP)])
    echo = world.images.echo(world.found)
    assert echo is not None
    assert (echo.family, echo.mirror) == (1, SWAP)


def test_regions_known_at_once_are_checked_each_for_itself() -> None:
    """Three checks of the one and three of the other are not six of one mirror."""
    both = World(either(symmetric_under(SWAP), symmetric_under(SWAP, THERE)), HERE, THERE)
    both.prepare()
    assert len(both.ask()) == 4
    assert len(both.handed_out()) == 2 * CHECKS
    everything_answered(both)
    assert both.found.symmetries == [SWAP]
    assert both.found.confirmed == {(SWAP, 0), (SWAP, 1)}
    assert len(both.found.sites) == 4


def test_checks_that_fail_in_the_second_region_refute_what_the_first_proves() -> None:
    world = World(either(symmetric_under(SWAP), symmetric_under(SWAP, THERE)), HERE, THERE)
    world.prepare()
    world.ask()
    for x in world.handed_out():
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


# -- what answers suggest ---------------------------------------------------------------------------------------------


def test_a_proved_symmetry_has_what_it_suggests_asked_for() -> None:
    world = World(symmetric_under(SWAP), HERE)
    world.prepare()
    asked = [*world.ask(), *world.ask()]
    assert world.found.symmetries == [SWAP]
    suggested = [mirror.image(world.top) for mirror in suggested_by(SWAP)]
    assert_array_equal(world.handed_out(), [x for x in suggested if not is_in(x, asked)])


def test_suggestions_are_rationed() -> None:
    """Five axes reversed at once suggest fourteen parts of them: six, of two and three axes, are asked for first."""
    centre = np.array([1.5, -0.5, 0.8, -1.0, 2.0])
    reverse = Mirror.of(5, reversed_axes=range(5))
    world = World(symmetric_under(reverse, centre), centre)
    world.prepare()
    world.ask()
    assert len(world.ask()) == CHECKS
    assert world.found.symmetries == [reverse]
    suggested = [mirror.image(world.top) for mirror in suggested_by(reverse)]
    assert len(suggested) == 14
    assert_array_equal(world.handed_out(), suggested[:6])


def test_an_exchange_that_nearly_is_a_symmetry_has_its_neighbours_asked_for() -> None:
    """Two components and the share of the first, which lies near one half: the exchange alone has mass already."""
    centre = np.array([1.5, -0.5, 0.25])
    world = World(symmetric_under(SWAP_AND_REVERSE, centre), centre)
    world.prepare()
    assert not is_in(SWAP_AND_REVERSE.image(world.top), world.ask())
    assert world.found.symmetries == []
    assert_array_equal(world.ask(), [mirror.image(world.top) for mirror in close_to(SWAP)])
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
    assert echo.mirror == SWAP
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
        world.prepare()
        world.ask()
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
    other = Mirror.of(3, ((1, 2),))
    world = World(either(bump(HERE), bump(SWAP.image(HERE), -2.0), bump(other.image(HERE), -1.0)), HERE)
    world.prepare()
    world.ask()
    echoes = [world.images.echo(world.found), world.images.echo(world.found)]
    assert [echo.mirror for echo in echoes if echo is not None] == [other, SWAP]


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
