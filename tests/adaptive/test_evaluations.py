"""Every value told is kept with who had asked for it, less an offset that a constant added to all of them changes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from wsabi.adaptive.evaluations import Evaluations
from wsabi.priors import Gaussian

MEASURE = Gaussian([0.0, 0.5], [1.0, 4.0])
X = np.random.default_rng(0).standard_normal((6, 2))
LOG_L = np.array([-math.inf, -3.0, -5.0, 2.0, -math.inf, -1.0])


def told(shift: float = 0.0) -> Evaluations:
    """Six points: of the first look 0, 1 and 5, fresh from proposals 2 and 0 the points 2 and 4; 0 and 3 are starts."""
    data = Evaluations(MEASURE)
    for i in (0, 1, 5):
        data.ask(X[i], 0)
    data.draw(X[2], 2)
    data.draw(X[4], 0)
    data.start_from(X[[0, 3]])
    assert data.n_drawn(X) == 2
    data.observe(X[:4], LOG_L[:4] + shift)
    assert data.n_drawn(X) == 1
    data.observe(X[4:], LOG_L[4:] + shift)
    return data


def test_values_are_differences_from_the_best_one() -> None:
    for shift in (0.0, 1e5):
        data = told(shift)
        assert data.offset == 2.0 + shift
        assert_array_equal(data.log_l, LOG_L - 2.0)
        assert_array_equal(data.X, X)
        assert len(data) == 6


def test_the_offset_follows_the_best_of_the_first_points_and_stays() -> None:
    """Of 2D + 2 = 6 points, and of as many more as it takes to meet a finite value."""
    for lead in ([], [-math.inf] * 7):
        data = Evaluations(MEASURE)
        values = [*lead, -4.0, -math.inf, 1.0, -2.0, 3.0, 5.0, 9.0]
        offsets = []
        for n, value in enumerate(values):
            data.observe(X[:1] + n, np.array([value]))
            offsets.append(data.offset)
            assert_array_equal(data.log_l, np.array(values[: n + 1]) - data.offset)
        expected = [0.0] * 7 + [-4.0] * 7 if lead else [-4.0, -4.0, 1.0, 1.0, 3.0, 5.0, 5.0]
        assert offsets == expected


def test_a_first_value_that_means_zero_costs_no_digits() -> None:
    values = np.array([-1e30, -1.25, -0.1, 0.3])
    data = Evaluations(MEASURE)
    for n in range(len(values)):
        data.observe(X[[n]], values[[n]])
        assert_array_equal(data.log_l, values[: n + 1] - np.max(values[: n + 1]))
    assert data.round_off < 1e-15


def floored(values: list[float], start: int = 0) -> Evaluations:
    """Evaluations of these values, one after the other; the points from ``start`` on are draws of the prior."""
    data = Evaluations(MEASURE)
    points = np.random.default_rng(1).standard_normal((len(values), 2))
    data.start_from(points[start:])
    for x, value in zip(points, values, strict=True):
        data.observe(x[None], np.array([value]))
    return data


@pytest.mark.parametrize("floor", [-1e4, -1e30, -1e300])
def test_a_floor_that_comes_back_is_read_as_zero(floor: float) -> None:
    """With the third, and from then on; the others keep their values, and the prior draws among them are counted."""
    data = floored([-1.0, floor, -2.0, floor])
    assert data.floors == []
    assert not np.any(np.isneginf(data.log_l))
    data = floored([-1.0, floor, -2.0, floor, floor, -3.5, floor], start=3)
    assert data.floors == [floor]
    assert_array_equal(data.log_l, [0.0, -math.inf, -1.0, -math.inf, -math.inf, -2.5, -math.inf])
    assert (data.n_starts, data.n_infeasible) == (4, 3)
    assert data.log_floor == floor + 1.0


def test_a_single_value_beyond_a_cliff_is_a_floor() -> None:
    """A thousand times as far below the best as the next, once D + 2 others are known."""
    values = [-1e6, 0.0, -20.0, -900.0, -300.0]
    assert floored(values[:4]).floors == []
    assert floored(values).floors == [-1e6]
    assert floored([-8e5, *values[1:]]).floors == []


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
    data = floored(values)
    assert data.floors == []
    assert data.log_floor == -math.inf
    assert_array_equal(data.log_l + data.offset, values)


def test_two_floors_are_read_one_after_the_other() -> None:
    data = floored([-1.0, -1e20, -1e30, -1e20, -1e30, -1e20, -1e30, -2.0])
    assert data.floors == [-1e30, -1e20]
    assert_array_equal(data.log_l[np.isfinite(data.log_l)], [0.0, -1.0])


def test_an_offset_that_was_a_floor_is_set_anew() -> None:
    """Ten values that all mean zero, and one that does not: its digits are kept."""
    data = floored([-1e30] * 10)
    assert (data.offset, data.floors) == (-1e30, [])
    data.observe(X[:1], np.array([-1.25]))
    assert (data.offset, data.floors) == (-1.25, [-1e30])
    assert_array_equal(data.log_l, [-math.inf] * 10 + [0.0])


def test_an_interrupt_between_two_floors_is_recovered_from() -> None:
    data = floored([-1.0, -1e30, -2.0, -1e30])
    data.floors.append(-1e30)  # as far as it got
    data.recover()
    assert_array_equal(data.log_l, [0.0, -math.inf, -1.0, -math.inf])


@pytest.mark.parametrize(
    ("n_starts", "n_infeasible", "share"), [(20, 0, 0.0), (20, 15, 0.0), (20, 16, 0.2), (9, 9, 1.0)]
)
def test_parts_that_no_draw_has_met(n_starts: int, n_infeasible: int, share: float) -> None:
    """1/(F + 1) where more than three quarters of the draws are infeasible."""
    data = Evaluations(MEASURE)
    data.n_starts = n_starts
    data._zero_starts[-math.inf] = n_infeasible
    assert data.scarce_share == share


def test_who_had_asked_for_a_point_is_remembered() -> None:
    data = told()
    assert_array_equal(data.asked_by, [0, 0, -1, -1, -1, 0])
    assert_array_equal(data.drawn_from, [-1, -1, 2, -1, 0, -1])
    assert (data.n_training, data.n_check, data.n_own(0), data.n_own(1)) == (4, 2, 3, 0)
    assert (data.n_starts, data.n_infeasible) == (2, 1)


def test_training_and_fresh_points_are_kept_apart() -> None:
    data, mine = told(), [0, 1, 3, 5]
    assert_array_equal(data.training()[0], X[mine])
    assert_array_equal(data.training()[1], LOG_L[mine] - 2.0)
    assert_allclose(data.training_joint()[1], LOG_L[mine] - 2.0 + MEASURE.log_pdf(X[mine]), rtol=1e-14)
    fresh, log_l, numbers = data.fresh()
    assert_array_equal(fresh, X[[2, 4]])
    assert_array_equal(log_l, LOG_L[[2, 4]] - 2.0)
    assert_array_equal(numbers, [2, 0])
    assert_array_equal(data.own(0, everything=False)[0], X[[0, 1, 5]])
    assert_array_equal(data.own(0, everything=True)[0], X[mine])


def test_released_fresh_points_are_training_data_those_under_way_too() -> None:
    data = told()
    later = X + 1.0
    data.draw(later[0], 1)
    data.release_fresh()
    data.observe(later[:1], np.zeros(1))
    assert data.n_check == 0
    assert len(data.training()[0]) == 7


def test_an_interrupt_between_the_arrays_leaves_them_equally_long() -> None:
    data = told()
    data.log_l, data.drawn_from = np.append(data.log_l, 0.0), np.append(data.drawn_from, -1)
    data.recover()
    assert len(data.X) == len(data.log_l) == len(data.drawn_from) == len(data.asked_by) == 6


def test_a_value_lost_by_an_interrupt_does_not_come_back_with_the_next() -> None:
    """Before the offset is settled: after the values grew, X did not."""

    class Interrupted(Evaluations):
        def __setattr__(self, name: str, value: object) -> None:
            if name == "X" and len(np.asarray(value)) == 3:
                raise KeyboardInterrupt
            super().__setattr__(name, value)

    data = Interrupted(MEASURE)
    data.observe(X[:2], np.array([-3.0, -5.0]))
    with pytest.raises(KeyboardInterrupt):
        data.observe(X[2:3], np.array([7.0]))
    data.recover()
    assert_array_equal(data.log_l + data.offset, [-3.0, -5.0])
    data.observe(X[2:4], np.array([-1.0, -2.0]))
    assert data.offset == -1.0
    assert_array_equal(data.log_l, [-2.0, -4.0, 0.0, -1.0])


def test_round_off_is_that_of_the_largest_number_that_matters() -> None:
    data = Evaluations(MEASURE)
    data.observe(X, -1e15 * np.linspace(1.0, 2.0, 6))
    data.observe(X[:1] + 1.0, np.array([-1.0]))  # the best is 1e15 above the first ones, by which the offset is settled
    assert data.round_off == np.spacing(1e15)
    low = Evaluations(MEASURE)
    low.observe(X[:2], np.array([-1.0, -1e15]))  # far down: what is lost there does not matter
    assert low.round_off < 1e-14
