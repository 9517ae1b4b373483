"""Every value told is kept with what it was for, less an offset that a constant added to all of them changes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from wsabi.adaptive.evaluations import Evaluations
from wsabi.adaptive.purposes import CheckPoint, Refinement, SearchPoint
from wsabi.ledger import Observation, Purpose
from wsabi.priors import Gaussian

MEASURE = Gaussian([0.0, 0.5], [1.0, 4.0])
X = np.random.default_rng(0).standard_normal((6, 2))
LOG_L = np.array([-math.inf, -3.0, -5.0, 2.0, -math.inf, -1.0])
PURPOSES = (
    SearchPoint(0, is_draw=True),
    SearchPoint(0),
    CheckPoint(2),
    SearchPoint(1, is_draw=True),
    CheckPoint(0),
    Refinement(),
)


def observations(
    points: np.ndarray, values: Sequence[float] | np.ndarray, purposes: Sequence[Purpose | None] | None = None
) -> list[Observation]:
    """Values (N,) at points (N, D), each for its purpose; nobody had asked for them by default."""
    purposes = [None] * len(points) if purposes is None else purposes
    return [Observation(*one) for one in zip(points, map(float, values), purposes, strict=True)]


def told(shift: float = 0.0) -> Evaluations:
    """Six points: of two searches 0, 1 and 3, of which 0 and 3 are draws; 2 and 4 check proposals 2 and 0."""
    new = observations(X, LOG_L + shift, PURPOSES)
    return Evaluations.none(MEASURE).observed(new[:4]).observed(new[4:])


def one_by_one(values: Sequence[float], first_draw: int | None = None) -> list[Evaluations]:
    """What is known after each of these values; the points from ``first_draw`` on are draws of the prior."""
    points = np.random.default_rng(1).standard_normal((len(values), 2))
    states = [Evaluations.none(MEASURE)]
    for i, (x, value) in enumerate(zip(points, values, strict=True)):
        is_draw = first_draw is not None and i >= first_draw
        states.append(states[-1].observed([Observation(x, value, SearchPoint(0, is_draw=True) if is_draw else None)]))
    return states[1:]


# -- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 1e5])
def test_values_are_differences_from_the_best_one(shift: float) -> None:
    data = told(shift)
    assert data.offset == 2.0 + shift
    assert_array_equal(data.told, LOG_L + shift)
    assert_array_equal(data.log_l, LOG_L - 2.0)
    assert_allclose(data.log_joint, LOG_L - 2.0 + MEASURE.log_pdf(X), rtol=1e-14)
    assert_array_equal(data.X, X)
    assert len(data) == 6


def test_new_values_leave_what_there_was_as_it_was() -> None:
    """And what follows depends on nothing but the evaluations, told at once or one after the other."""
    before = told()
    kept = (before.X.copy(), before.log_l.copy(), before.searched_by.copy(), before.drawn_from.copy())
    more = observations(X + 1.0, [9.0, -1e30, -1e30, -1e30, 0.0, 3.0])
    after = before.observed(more)
    before.given(2, 5), before.without_searches(), before.without_checks(3)
    for now, then in zip((before.X, before.log_l, before.searched_by, before.drawn_from), kept, strict=True):
        assert_array_equal(now, then)
    assert (before.floors, after.floors) == ((), (-1e30,))
    again = told().observed(more[:4]).observed(more[4:])
    assert_array_equal(after.log_l, again.log_l)
    assert (after.offset, after.floors) == (again.offset, again.floors)


def test_the_offset_follows_the_best_of_the_first_points_and_stays() -> None:
    """Of 2D + 2 = 6 points, and of as many more as it takes to meet a finite value."""
    for lead in ([], [-math.inf] * 7):
        values = [*lead, -4.0, -math.inf, 1.0, -2.0, 3.0, 5.0, 9.0]
        states = one_by_one(values)
        for n, data in enumerate(states):
            assert_array_equal(data.log_l, np.array(values[: n + 1]) - data.offset)
        expected = [0.0] * 7 + [-4.0] * 7 if lead else [-4.0, -4.0, 1.0, 1.0, 3.0, 5.0, 5.0]
        assert [data.offset for data in states] == expected


def test_a_first_value_that_means_zero_costs_no_digits() -> None:
    values = np.array([-1e30, -1.25, -0.1, 0.3])
    states = one_by_one(values)
    for n, data in enumerate(states):
        assert_array_equal(data.log_l, values[: n + 1] - np.max(values[: n + 1]))
    assert states[-1].round_off < 1e-15


def test_round_off_is_that_of_the_largest_number_that_matters() -> None:
    none = Evaluations.none(MEASURE)
    data = none.observed(observations(X, -1e15 * np.linspace(1.0, 2.0, 6)))
    data = data.observed(observations(X[:1] + 1.0, [-1.0]))  # 1e15 above the first ones, by which the offset is settled
    assert data.round_off == np.spacing(1e15)
    low = none.observed(observations(X[:2], [-1.0, -1e15]))  # far down: what is lost there does not matter
    assert low.round_off < 1e-14


# -- floors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("floor", [-1e4, -1e30, -1e300])
def test_a_floor_that_comes_back_is_read_as_zero(floor: float) -> None:
    """With the third, and from then on; the others keep their values, and the prior draws among them are counted."""
    states = one_by_one([-1.0, floor, -2.0, floor, floor, -3.5, floor], first_draw=3)
    assert states[3].floors == ()
    assert not np.any(np.isneginf(states[3].log_l))
    for data in states[4:]:
        assert data.floors == (floor,)
    assert_array_equal(states[-1].log_l, [0.0, -math.inf, -1.0, -math.inf, -math.inf, -2.5, -math.inf])
    assert (states[-1].n_draws, states[-1].n_infeasible) == (4, 3)
    assert states[-1].log_floor == floor + 1.0


def test_a_single_value_beyond_a_cliff_is_a_floor() -> None:
    """A thousand times as far below the best as the next, once D + 2 others are known."""
    values = [-1e6, 0.0, -20.0, -900.0, -300.0]
    states = one_by_one(values)
    assert states[3].floors == ()
    assert states[4].floors == (-1e6,)
    assert one_by_one([-8e5, *values[1:]])[-1].floors == ()


@pytest.mark.parametrize(
    "values",
    [
        [-3.0] * 8,  # a constant
        [0.0, -1.0, -2.0, -4.0, *[-60.0] * 5],  # 70 nats are wanted in two dimensions
        [0.0, -200.0, -300.0, -100.0, -100.0, -100.0],  # not the lowest
        [0.0, -1e4, -1e5, -1e7, -1e9, -1e11],  # far apart, but no cliff
    ],
)
def test_what_is_no_floor(values: list[float]) -> None:
    data = one_by_one(values)[-1]
    assert data.floors == ()
    assert data.log_floor == -math.inf
    assert_array_equal(data.log_l + data.offset, values)


def test_what_is_known_of_the_mass_decides_on_a_floor_that_is_not_so_deep() -> None:
    """Sixty nats below the best: a floor where it is ten below the mass that is known, and not where it is less."""
    values = [0.0, -1.0, -2.0, -4.0, *[-60.0] * 5]
    new = observations(np.random.default_rng(1).standard_normal((len(values), 2)), values)
    none = Evaluations.none(MEASURE)
    assert none.observed(new, log_mass=-49.0).floors == (-60.0,)
    assert none.observed(new, log_mass=-51.0).floors == ()


def test_two_floors_are_read_one_after_the_other() -> None:
    data = one_by_one([-1.0, -1e20, -1e30, -1e20, -1e30, -1e20, -1e30, -2.0])[-1]
    assert data.floors == (-1e30, -1e20)
    assert_array_equal(data.log_l[np.isfinite(data.log_l)], [0.0, -1.0])


def test_an_offset_that_was_a_floor_is_set_anew() -> None:
    """Ten values that all mean zero, and one that does not: its digits are kept."""
    before, after = one_by_one([-1e30] * 10 + [-1.25])[-2:]
    assert (before.offset, before.floors) == (-1e30, ())
    assert (after.offset, after.floors) == (-1.25, (-1e30,))
    assert_array_equal(after.log_l, [-math.inf] * 10 + [0.0])


@pytest.mark.parametrize(
    ("n_draws", "n_infeasible", "share"), [(20, 0, 0.0), (20, 15, 0.0), (20, 16, 0.2), (9, 9, 1.0)]
)
def test_parts_that_no_draw_has_met(n_draws: int, n_infeasible: int, share: float) -> None:
    """1/(F + 1) where more than three quarters of the draws are infeasible. Other points are no draws."""
    values = [-math.inf] * n_infeasible + [0.0] * (n_draws - n_infeasible)
    points = np.random.default_rng(1).standard_normal((n_draws, 2))
    draws = observations(points, values, [SearchPoint(0, is_draw=True)] * n_draws)
    data = Evaluations.none(MEASURE).observed([*draws, *observations(X, LOG_L)])
    assert (data.n_draws, data.n_infeasible) == (n_draws, n_infeasible)
    assert data.scarce_share == share


# -- purposes ---------------------------------------------------------------------------------------------------------


def test_the_purpose_of_a_point_is_remembered() -> None:
    data = told()
    assert_array_equal(data.searched_by, [0, 0, -1, 1, -1, -1])
    assert_array_equal(data.drawn_from, [-1, -1, 2, -1, 0, -1])
    assert_array_equal(data.is_draw, [True, False, False, True, False, False])
    assert (data.n_training, data.n_check) == (4, 2)
    assert [data.n_own(number) for number in range(3)] == [2, 1, 0]
    assert (data.n_draws, data.n_infeasible) == (2, 1)


def test_the_purpose_belongs_to_the_value_and_not_to_the_point() -> None:
    """The same point told twice, for two purposes and in another order, is two evaluations."""
    new = observations(X[[0, 0]], [-1.0, -2.0], [CheckPoint(0), SearchPoint(3)])
    data = Evaluations.none(MEASURE).observed(new[::-1])
    assert_array_equal(data.searched_by, [3, -1])
    assert_array_equal(data.drawn_from, [-1, 0])
    assert data.index_of(X[0]) == 0
    assert data.index_of(X[1]) is None


def test_training_and_check_points_are_kept_apart() -> None:
    data, mine = told(), [0, 1, 3, 5]
    assert_array_equal(data.training()[0], X[mine])
    assert_array_equal(data.training()[1], LOG_L[mine] - 2.0)
    assert_allclose(data.training_joint()[1], LOG_L[mine] - 2.0 + MEASURE.log_pdf(X[mine]), rtol=1e-14)
    checks, log_l, numbers = data.checks()
    assert_array_equal(checks, X[[2, 4]])
    assert_array_equal(log_l, LOG_L[[2, 4]] - 2.0)
    assert_array_equal(numbers, [2, 0])
    assert_array_equal(data.own(0, everything=False)[0], X[[0, 1]])
    assert_array_equal(data.own(0, everything=True)[0], X[mine])


def test_a_point_given_to_a_search_is_its_own_and_stays_a_check_point() -> None:
    data = told().given(2, 7)
    assert data.n_own(7) == 1
    assert_array_equal(data.own(7, everything=False)[0], X[[2]])
    assert_array_equal(data.checks()[0], X[[2, 4]])
    assert_array_equal(data.without_searches().searched_by, [-1] * 6)


def test_released_check_points_are_training_data_those_under_way_too() -> None:
    data = told().without_checks(first_proposal=3)
    data = data.observed(observations(X[:2] + 1.0, [0.0, 0.0], [CheckPoint(2), CheckPoint(3)]))
    assert_array_equal(data.checks()[0], X[[1]] + 1.0)
    assert len(data.training()[0]) == 7
