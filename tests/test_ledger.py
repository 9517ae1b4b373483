"""A run is its ledger: replayed, it goes on as if it had never stopped."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import wsabi
from wsabi._core.types import Streams
from wsabi.ledger import Asked, Ledger, Told

PRIOR = wsabi.Gaussian([0.0, 0.0, 0.0])
CENTRE = np.array([0.4, -0.2, 0.1])


def log_l(x: np.ndarray) -> float:
    return float(-0.5 * np.sum((x - CENTRE) ** 2) / 0.3**2 + 0.3 * np.sin(3.0 * x[0]))


def grad(x: np.ndarray) -> np.ndarray:
    gradient = -(x - CENTRE) / 0.3**2
    gradient[0] += 0.9 * np.cos(3.0 * x[0])
    return np.asarray(gradient)


def assert_same(one: wsabi.Result, other: wsabi.Result) -> None:
    assert np.array_equal(one.points, other.points)
    assert (one.log_z, one.log_z_std, one.searches) == (other.log_z, other.log_z_std, other.searches)
    assert np.array_equal(one.posterior.mean, other.posterior.mean)


@pytest.mark.parametrize(
    ("settings", "gradient"),
    [(wsabi.Settings(), None), (wsabi.Settings(), grad), (wsabi.Settings(measure="prior", method="wsabi-m"), None)],
)
def test_a_run_that_goes_on_from_its_result_is_the_unbroken_one(settings: wsabi.Settings, gradient: Any) -> None:
    """Bit for bit: points, log Z, its error bar, searches and posterior; the result may have been pickled."""
    unbroken = wsabi.Integrator(PRIOR, rng=3, settings=settings)
    first = unbroken.run(log_l, budget=60, tol=0, grad=gradient)
    expected = unbroken.run(log_l, budget=25, tol=0, grad=gradient)
    start = pickle.loads(pickle.dumps(first))
    found = wsabi.integrate(log_l, PRIOR, budget=25, tol=0, settings=settings, start=start, grad=gradient)
    assert_same(found, expected)
    assert [record.n_evals for record in found.history] == [record.n_evals for record in expected.history]
    assert found.seconds >= first.seconds


def test_one_more_evaluation_keeps_searches_and_error_bar() -> None:
    """It used to throw the searches and check points away: ± 0.0033 became ± 0.076."""
    for seed in range(2):
        first = wsabi.integrate(log_l, PRIOR, rng=seed)
        more = wsabi.integrate(log_l, PRIOR, budget=1, start=first)
        assert more.n_evals == first.n_evals + 1
        assert more.searches[: len(first.searches)] == first.searches
        assert more.log_z_std <= 1.05 * first.log_z_std
        assert abs(more.log_z - first.log_z) < first.log_z_std


def test_batches_out_of_order_and_given_up_are_replayed() -> None:
    def go_on(integrator: wsabi.Integrator, turns: range) -> None:
        for turn in turns:
            X = integrator.ask(3)
            if turn % 5 == 0:
                integrator.forget(X[1])
                X = X[[0, 2]]
            integrator.tell(X[::-1], [log_l(x) for x in X[::-1]])
            if turn % 7 == 0:
                integrator.tell(CENTRE + 0.01 * turn, [log_l(CENTRE + 0.01 * turn)])

    unbroken = wsabi.Integrator(PRIOR, rng=0)
    go_on(unbroken, range(25))
    resumed = wsabi.Integrator(PRIOR, rng=99)
    resumed.continue_from(unbroken.result())
    go_on(unbroken, range(25, 32))
    go_on(resumed, range(25, 32))
    assert_same(resumed.result(), unbroken.result())


def test_a_second_continuation_replays_both() -> None:
    first = wsabi.integrate(log_l, PRIOR, budget=40, tol=0, rng=0)
    second = wsabi.integrate(log_l, PRIOR, budget=20, tol=0, rng=5, start=first)
    third = wsabi.integrate(log_l, PRIOR, budget=10, tol=0, start=second)
    again = wsabi.integrate(log_l, PRIOR, budget=10, tol=0, start=second)
    assert_same(third, again)
    assert np.array_equal(third.points[:60], second.points)


def test_another_seed_draws_other_points_from_there_on() -> None:
    first = wsabi.integrate(log_l, PRIOR, budget=50, tol=0, rng=0)
    own, other = (wsabi.integrate(log_l, PRIOR, budget=30, tol=0, start=first, rng=rng) for rng in (None, 1))
    assert np.array_equal(own.points[:50], other.points[:50])
    assert not np.array_equal(own.points[50:], other.points[50:])


@pytest.mark.parametrize(
    ("prior", "settings"),
    [(wsabi.Gaussian([0.0, 0.0, 0.0], 1.1), None), (PRIOR, wsabi.Settings(certify=0.3))],
)
def test_under_another_prior_or_other_settings_evaluations_are_taken_as_told(prior: Any, settings: Any) -> None:
    first = wsabi.integrate(log_l, PRIOR, budget=50, tol=0, rng=0)
    more = wsabi.integrate(log_l, prior, budget=10, tol=0, rng=0, settings=settings, start=first)
    assert more.n_evals == 60
    assert np.array_equal(more.points[:50], first.points)
    assert more.ledger is not None
    assert sum(isinstance(event, Told) for event in more.ledger.events) == 11  # all fifty at once


def test_a_replay_that_takes_another_course_is_noticed_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    first = wsabi.integrate(log_l, PRIOR, budget=50, tol=0, rng=0)
    assert first.ledger is not None
    foreign = replace(first, ledger=Ledger(Streams.of(12345), first.ledger.events))  # as another machine would do
    more = wsabi.integrate(log_l, PRIOR, budget=30, tol=0, rng=0, start=foreign)
    assert more.n_evals == 80
    assert np.array_equal(more.points[:50], first.points)
    assert any("could not be replayed" in text for text in more.notes)


def test_an_interrupted_likelihood_goes_on_where_it_was() -> None:
    calls = 0

    def interrupted(x: np.ndarray) -> float:
        nonlocal calls
        calls += 1
        if calls == 45:
            raise KeyboardInterrupt
        return log_l(x)

    unbroken = wsabi.Integrator(PRIOR, rng=1)
    first = unbroken.run(interrupted, budget=60, tol=0)
    assert first.reason == "interrupted"
    expected = unbroken.run(log_l, budget=30, tol=0)
    assert_same(wsabi.integrate(log_l, PRIOR, budget=30, tol=0, start=first), expected)


def test_the_ledger_tells_what_each_evaluation_was_for() -> None:
    integrator = wsabi.Integrator(PRIOR, rng=0)
    integrator.run(log_l, budget=80, tol=0)
    integrator.tell(CENTRE, log_l(CENTRE))
    waiting = integrator.ask(1)
    ledger = integrator.result().ledger
    assert ledger is not None
    evaluations = ledger.evaluations
    assert len(evaluations) == 82
    purposes = {evaluation.purpose for evaluation in evaluations}
    assert {"search 0", "refine", "check", "told"} <= purposes
    assert [e.log_l for e in evaluations if e.purpose == "told"] == [log_l(CENTRE)]
    assert np.array_equal(evaluations[-1].x, waiting[0])
    assert evaluations[-1].log_l is None
    assert all(e.told is None or e.asked is None or e.told > e.asked for e in evaluations)
    assert isinstance(ledger.events[evaluations[0].asked or 0], Asked)


def test_two_runs_with_one_generator_are_different_and_one_seed_is_one_run() -> None:
    rng = np.random.default_rng(0)
    one, two = (wsabi.integrate(log_l, PRIOR, budget=20, rng=rng) for _ in range(2))
    assert not np.array_equal(one.points, two.points)
    again = wsabi.integrate(log_l, PRIOR, budget=20, rng=np.random.default_rng(0))
    assert np.array_equal(one.points, again.points)
