"""When bulk begins, and how many points it takes."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from wsabi.adaptive.bulk.planning import Costs, Need, Room, batch_size
from wsabi.adaptive.tuning import TUNING

CHEAP = Costs(own=5e-3, call=2e-6)
NEED = Need(tol=0.003, error=0.01, share=0.5)
ROOM = Room(points=math.inf, modelled=300, seconds=10.0)
FIRST = 4 * TUNING.bulk.first_batch


def test_a_cheap_likelihood_gets_a_first_batch() -> None:
    assert batch_size(None, 4, NEED, ROOM, CHEAP) == FIRST


@pytest.mark.parametrize(
    ("need", "room", "costs"),
    [
        (NEED, ROOM, replace(CHEAP, call=6e-3)),  # the likelihood takes longer than the engine
        (replace(NEED, tol=0.02), ROOM, CHEAP),  # the error will do
        (replace(NEED, tol=0.0), replace(ROOM, points=200.0), CHEAP),  # 200 points leave a larger error than the models
        (replace(NEED, tol=1e-4), ROOM, replace(CHEAP, call=1e-3)),  # 10^8 points take longer than 300 models
        (NEED, replace(ROOM, seconds=0.0), CHEAP),  # no time is left
        (NEED, replace(ROOM, points=0.0), CHEAP),  # nor evaluations
    ],
)
def test_otherwise_models_do_more_good(need: Need, room: Room, costs: Costs) -> None:
    assert batch_size(None, 4, need, room, costs) == 0


def test_without_modelled_evaluations_bulk_need_not_pay() -> None:
    room = replace(ROOM, modelled=0, points=500.0)
    assert batch_size(None, 4, replace(NEED, tol=0.0), room, CHEAP) == 500


def test_time_bounds_a_batch() -> None:
    assert batch_size(None, 4, NEED, replace(ROOM, modelled=0, seconds=1e-3), CHEAP) == 500


def test_the_cost_in_batches_counts_once_it_is_known() -> None:
    slow_alone = Costs(own=5e-3, call=6e-3, bulk=1e-5)  # a vectorised call that is mostly overhead
    assert batch_size(None, 4, NEED, ROOM, slow_alone) == FIRST
