"""Runs with a bulk phase, from the call to the result: what they give, and what becomes of faults."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import wsabi
from wsabi.ledger import BatchBegun, BatchTold

PRIOR = wsabi.Gaussian(np.zeros(2))
CENTRE, SD = np.array([0.4, -0.2]), 0.35
LOG_Z = float(np.sum(np.log(SD / math.hypot(1.0, SD)) - 0.5 * CENTRE**2 / (1.0 + SD**2)))


def log_l(X: np.ndarray) -> np.ndarray:
    """A Gaussian."""
    return np.asarray(-0.5 * np.sum(np.square((X - CENTRE) / SD), axis=-1))


def run(f: Callable[..., object] = log_l, **options: object) -> wsabi.Result:
    arguments = {"budget": 3000, "tol": 0, "rng": 0, "vectorized": True, **options}
    return wsabi.integrate(f, PRIOR, **arguments)  # type: ignore[arg-type]


@cache
def finished() -> wsabi.Result:
    return run()


def test_a_budget_is_spent_and_most_of_it_in_bulk() -> None:
    result = finished()
    assert result.n_evals == 3000 == len(result.points) == len(result.log_likelihoods)
    assert sum(batch.n for batch in result.batches) >= 3000 - 400  # the usual budget is modelled, at most
    np.testing.assert_allclose(result.log_likelihoods, log_l(result.points), rtol=1e-12)
    assert abs(result.log_z - LOG_Z) < 4.0 * result.log_z_std


def test_without_bulk_every_evaluation_is_modelled() -> None:
    result = run(budget=120, settings=wsabi.Settings(bulk="off"))
    assert result.batches == ()
    assert len(result.ledger.evaluations) == 120


def test_a_dear_likelihood_gets_what_it_always_got() -> None:
    """A call that takes longer than the engine: no batches, and the same points as without bulk."""
    import time

    def slow(X: np.ndarray) -> np.ndarray:
        time.sleep(0.05)
        return log_l(X)

    results = [run(slow, budget=60, settings=wsabi.Settings(bulk=bulk)) for bulk in ("auto", "off")]
    assert results[0].batches == ()
    np.testing.assert_array_equal(results[0].points, results[1].points)


ARM = wsabi.Gaussian(np.zeros(2))


def banana(X: np.ndarray) -> np.ndarray:
    """A bent arm, which the models do not know to a thousandth."""
    return np.asarray(-0.5 * np.square(X[:, 0] / 0.9) - 0.5 * np.square((X[:, 1] - np.square(X[:, 0]) + 0.5) / 0.15))


@cache
def banana_log_z() -> float:
    grid = np.linspace(-6.0, 6.0, 4001)
    a, b = np.meshgrid(grid, np.linspace(-2.0, 8.0, 4001), indexing="ij")
    X = np.column_stack([a.ravel(), b.ravel()])
    log_f = banana(X) - 0.5 * np.sum(np.square(X), axis=1) - math.log(2.0 * math.pi)
    return float(np.log(np.exp(log_f).sum() * (12.0 / 4000) * (10.0 / 4000)))


@cache
def of_banana() -> wsabi.Result:
    return wsabi.integrate(banana, ARM, tol=0.003, rng=1, vectorized=True)


def test_a_tolerance_alone_works() -> None:
    result = of_banana()
    assert result.error_budget.statistical < 0.0035
    assert abs(result.log_z - banana_log_z()) < 4.0 * max(result.log_z_std, 0.003)


def test_the_posterior_is_the_evaluated_points() -> None:
    result = of_banana()
    if result.certificate is not None and result.certificate.source == "bulk":
        assert result.posterior.effective_sample_size > 1000
        known = {tuple(point) for point in result.points}
        assert all(tuple(point) in known for point in result.posterior.sample(50, rng=0))
        assert any("no model has learnt of" in note for note in result.notes)
    value = result.posterior.mean[1]
    assert value == pytest.approx(quadrature_mean(), abs=0.03)


@cache
def quadrature_mean() -> float:
    grid = np.linspace(-6.0, 6.0, 2001)
    a, b = np.meshgrid(grid, np.linspace(-2.0, 8.0, 2001), indexing="ij")
    X = np.column_stack([a.ravel(), b.ravel()])
    f = np.exp(banana(X) - 0.5 * np.sum(np.square(X), axis=1))
    return float(f @ X[:, 1] / f.sum())


def test_the_same_seed_gives_the_same_points() -> None:
    again = run()
    np.testing.assert_array_equal(again.points, finished().points)
    assert again.log_z == finished().log_z


# -- files ------------------------------------------------------------------------------------------------------------


def test_a_result_is_saved_and_loaded(tmp_path: Path) -> None:
    finished().save(tmp_path / "run.json")
    loaded = wsabi.load(tmp_path / "run.json")
    assert loaded.log_z == finished().log_z
    np.testing.assert_array_equal(loaded.points, finished().points)


class Stopped(Exception):
    """A process that ends in mid-batch."""


def test_a_journal_goes_on_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    """Stopped inside a batch whose first half was told: the same points and the same log Z as never stopped."""
    whole = run(one_by_one, vectorized=False, journal=tmp_path / "whole.db")
    told = [event for event in whole.ledger.events if isinstance(event, BatchTold)]
    after = len(whole.ledger.evaluations) + len(told[0].log_l) // 2
    n_calls = 0

    def breaking(x: np.ndarray) -> float:
        nonlocal n_calls
        n_calls += 1
        if n_calls > after:
            raise Stopped
        return one_by_one(x)

    with pytest.raises(wsabi.LikelihoodError) as raised:
        run(breaking, vectorized=False, journal=tmp_path / "run.db")
    assert raised.value.result.n_evals == after  # nothing finished is lost
    loaded = wsabi.load(tmp_path / "run.db")
    assert loaded.n_evals == after


def one_by_one(x: np.ndarray) -> float:
    return float(log_l(x))


def test_a_replay_repeats_every_batch(tmp_path: Path) -> None:
    result = run(journal=tmp_path / "run.db")
    loaded = wsabi.load(tmp_path / "run.db")
    assert loaded.log_z == result.log_z
    assert [batch.n for batch in loaded.batches] == [batch.n for batch in result.batches]
    assert any(isinstance(event, BatchBegun) for event in loaded.ledger.events)


def test_a_run_goes_on_from_a_result_with_its_bulk() -> None:
    more = run(start=finished(), budget=1000, rng=None)
    assert more.n_evals == 4000
    assert sum(batch.n for batch in more.batches) > sum(batch.n for batch in finished().batches)
    assert more.log_z_std <= 1.05 * finished().log_z_std


# -- faults -----------------------------------------------------------------------------------------------------------


def test_another_length_for_a_large_batch_loses_nothing() -> None:
    def cut(X: np.ndarray) -> np.ndarray:
        return log_l(X) if len(X) < 100 else log_l(X)[:100]

    with pytest.raises(wsabi.LikelihoodError, match=r"returned shape \(100,\) for \d+ points") as raised:
        run(cut)
    assert raised.value.result.n_evals > 50
    assert abs(raised.value.result.log_z - LOG_Z) < 0.05


@pytest.mark.parametrize("vectorized", [True, False])
@pytest.mark.parametrize("fault", ["nan", "exception"])
def test_faults_inside_a_batch_are_left_out(vectorized: bool, fault: str) -> None:
    """A corner far from the mode, which bulk points of the prior meet."""

    def failing(X: np.ndarray) -> object:
        bad = np.asarray(X[..., 0] > 1.9)
        if fault == "exception" and np.any(bad):
            raise ZeroDivisionError("corner")
        return np.where(bad, np.nan, log_l(X)) if vectorized else (math.nan if bad else float(log_l(X)))

    result = run(failing, vectorized=vectorized, on_error="exclude", budget=1500)
    n_failed = 1500 - result.n_evals
    assert 1 <= n_failed < 200
    assert np.all(result.points[:, 0] <= 1.9)
    assert abs(result.log_z - LOG_Z) < 4.0 * max(result.log_z_std, 0.005)


def test_a_fault_inside_a_batch_ends_the_run_with_all_that_was_done() -> None:
    n_calls = 0

    def failing(x: np.ndarray) -> float:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 1200:
            raise ZeroDivisionError("once")
        return one_by_one(x)

    with pytest.raises(wsabi.LikelihoodError, match="once") as raised:
        run(failing, vectorized=False)
    assert raised.value.result.n_evals == 1199


def test_a_retry_inside_a_batch() -> None:
    n_calls = 0

    def failing_once(x: np.ndarray) -> float:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 1200:
            raise ZeroDivisionError("once")
        return one_by_one(x)

    assert run(failing_once, vectorized=False, retries=1, budget=1500).n_evals == 1500


def test_ctrl_c_inside_a_batch_keeps_what_was_done() -> None:
    n_calls = 0

    def interrupted(x: np.ndarray) -> float:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 1200:
            raise KeyboardInterrupt
        return one_by_one(x)

    result = run(interrupted, vectorized=False)
    assert result.reason == "interrupted"
    assert result.n_evals == 1199
    assert abs(result.log_z - LOG_Z) < 4.0 * result.log_z_std


def test_a_budget_that_does_not_fit_memory_is_refused() -> None:
    with pytest.raises(ValueError, match=r"budget=1000000000000 takes about .* GB"):
        run(budget=10**12)


def test_points_take_little_memory() -> None:
    """60,000 points in two dimensions: below 1 GB for a million in ten is 1 kB for a point, or 100 B a coordinate."""
    tracemalloc.start()
    try:
        result = run(budget=60_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.n_evals == 60_000
    assert peak < 60_000 * 1000 + 150e6  # 150 MB for models, pages of components and the posterior


# -- what else is found -----------------------------------------------------------------------------------------------


def test_a_mode_that_only_bulk_meets_is_counted() -> None:
    """A needle with half of Z: a promise of one mode keeps searches away, and draws of the prior meet it."""
    far = np.array([-1.6, 1.2])

    def two(X: np.ndarray) -> np.ndarray:
        needle = 3.9 - 0.5 * np.sum(np.square((X - far) / 0.08), axis=-1)
        return np.logaddexp(log_l(X), needle)

    sd = math.hypot(1.0, 0.08)
    log_needle = 3.9 + float(np.sum(math.log(0.08 / sd) - 0.5 * far**2 / sd**2))
    result = wsabi.integrate(
        two, PRIOR, budget=6000, tol=0, rng=0, vectorized=True, settings=wsabi.Settings(modes="one")
    )
    assert abs(result.log_z - np.logaddexp(LOG_Z, log_needle)) < 4.0 * result.log_z_std + 0.01


def test_settings_name_what_bulk_may_be() -> None:
    with pytest.raises(ValueError, match="bulk must be one of 'auto', 'off'"):
        wsabi.Settings(bulk="on")  # type: ignore[arg-type]
