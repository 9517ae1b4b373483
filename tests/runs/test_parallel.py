"""Workers, executors and a Dask cluster: real processes, and every fault that they can have."""

from __future__ import annotations

import concurrent.futures
import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import at_work
import wsabi
from wsabi.ledger import Failed
from wsabi.runs.executors import LocalPool
from wsabi.runs.journal import read

PRIOR = wsabi.Gaussian([0.0, 0.0])
PLAIN = wsabi.Settings(measure="prior")
TRUTH = -math.log(2.0)
# Workers of a cluster import at_work and wsabi by name.
IMPORTABLE = os.pathsep.join([str(Path(at_work.__file__).parent), str(Path(wsabi.__file__).parents[1])])


def run(f: Any = at_work.log_l, prior: Any = PRIOR, budget: int = 24, **given: Any) -> wsabi.Result:
    return wsabi.integrate(f, prior, budget=budget, **{"rng": 0, "settings": PLAIN, **given})


def assert_right(result: wsabi.Result, tolerance: float = 0.02) -> None:
    assert abs(result.log_z - TRUTH) < tolerance


# -- ways to evaluate -------------------------------------------------------------------------------------------------


def test_one_worker_gives_the_points_of_a_serial_run() -> None:
    one, other = run(workers=1), run()
    assert np.array_equal(one.points, other.points)
    assert one.log_z == other.log_z


def test_workers_are_all_busy_and_the_likelihood_is_theirs(tmp_path: Path) -> None:
    result = run(at_work.Slow(0.05, str(tmp_path)), workers=3, budget=18)
    assert result.n_evals == 18
    spans = [[tuple(map(float, line.split())) for line in file.read_text().splitlines()] for file in tmp_path.iterdir()]
    assert len(spans) == 3
    assert str(os.getpid()) not in {file.name for file in tmp_path.iterdir()}
    assert_right(result)


@pytest.mark.parametrize("given", [{"batch": 3}, {"batch": 3, "vectorized": True}])
def test_batches_for_each_worker(given: dict[str, Any]) -> None:
    result = run(at_work.rows if "vectorized" in given else at_work.log_l, workers=2, **given)
    assert result.n_evals == 24
    assert_right(result)


def test_a_dict_prior_gives_workers_dicts() -> None:
    prior = {"a": stats.norm(), "b": wsabi.Gaussian([0.0])}
    assert_right(run(at_work.named, prior, workers=2))


def test_any_executor() -> None:
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        assert_right(run(lambda x: at_work.log_l(x), executor=threads))
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as processes:
        assert_right(run(executor=processes))


def test_the_tolerance_ends_a_parallel_run() -> None:
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        result = run(executor=threads, tol=0.05, budget=200, settings=wsabi.Settings(measure="prior"))
        assert result.reason == "tolerance"
        assert result.n_evals < 100


def test_nothing_under_way_is_lost_where_the_callback_stops(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        first = run(executor=threads, callback=lambda state: state.n_evals < 8, journal=path)
    assert first.reason == "callback"
    assert 8 <= first.n_evals <= 10  # the others that were under way were waited for
    assert all(one.log_l is not None for one in read(path).ledger.evaluations)


def test_a_parallel_run_goes_on_from_its_journal_with_the_same_points(tmp_path: Path) -> None:
    """Told in the same order, the points are the same, whoever evaluated them."""
    path = tmp_path / "run.db"
    first = run(executor=concurrent.futures.ThreadPoolExecutor(1), workers=1, budget=10, journal=path)
    more = run(workers=1, budget=20, journal=path)
    assert np.array_equal(more.points[:10], first.points)
    assert np.array_equal(more.points, run(budget=20).points)


def test_pending_points_are_kept_apart() -> None:
    result = run(executor=concurrent.futures.ThreadPoolExecutor(8), budget=40)
    apart = np.linalg.norm(result.points[:, None] - result.points[None], axis=2) + np.eye(40)
    assert np.min(apart) > 0.02


# -- faults -----------------------------------------------------------------------------------------------------------

FAULTS = ["raises", "nan", "inf", "shape", "none"]
HARD = ["hangs", "dies", "exits"]  # a process of its own is needed
MESSAGES = {
    "raises": "log_likelihood raised ValueError .*boom", "nan": "returned nan", "inf": "returned inf",
    "shape": r"returned shape \(3,\)", "none": "is a return missing", "hangs": r"took longer than timeout=0\.5 s",
    "dies": "the worker process ended .signal 9. during", "exits": "the worker process ended .status 3. during",
}  # fmt: skip


def arguments(what: str, where: str) -> dict[str, Any]:
    return ({"workers": 2} if where == "workers" else {}) | ({"timeout": 0.5} if what == "hangs" else {})


@pytest.mark.parametrize(
    ("what", "where"), [(what, "here") for what in FAULTS] + [(what, "workers") for what in ["raises", "nan", *HARD]]
)
def test_a_fault_raises_with_the_result_so_far(what: str, where: str) -> None:
    with pytest.raises(wsabi.LikelihoodError, match=MESSAGES[what]) as caught:
        run(at_work.Faulty(what), **arguments(what, where))
    assert caught.value.point[0] > 1.0
    assert caught.value.result is not None
    assert caught.value.result.reason == "error"


@pytest.mark.parametrize(
    ("what", "where"), [(what, "here") for what in FAULTS] + [(what, "workers") for what in ["raises", "nan", *HARD]]
)
def test_a_fault_is_excluded_and_counted(what: str, where: str, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    result = run(at_work.Faulty(what), on_error="exclude", journal=path, **arguments(what, where))
    failed = read(path).ledger
    reasons = [event.reason for event in failed.events if isinstance(event, Failed)]
    assert 1 <= len(reasons) < 12
    assert result.n_evals + len(reasons) == 24
    assert np.all(result.points[:, 0] <= 1.0)
    assert np.all(np.isfinite(result.log_likelihoods))
    assert any(f"{len(reasons)} evaluations failed and were left out" in note for note in result.notes)
    if what == "raises":
        assert 'raise ValueError("boom")' in reasons[0]  # the traceback is kept


@pytest.mark.parametrize(("what", "where"), [("raises", "here"), ("raises", "workers"), ("dies", "workers")])
def test_a_fault_that_passes_is_tried_again(what: str, where: str, tmp_path: Path) -> None:
    """The run is then the one without a fault."""
    result = run(at_work.Faulty(what, str(tmp_path), times=1), retries=1, budget=14, **arguments(what, where))
    assert result.n_evals == 14
    if where == "here":
        assert np.array_equal(result.points, run(budget=14).points)
    with pytest.raises(wsabi.LikelihoodError):
        run(at_work.Faulty("raises", str(tmp_path / "none"), times=10**9), retries=1, budget=14)


def test_a_vectorized_batch_finds_out_which_of_its_points_fails() -> None:
    def rows(X: np.ndarray) -> np.ndarray:
        if np.any(X[:, 0] > 1.0):
            raise ValueError("boom")
        return at_work.rows(X)

    result = run(rows, vectorized=True, batch=4, on_error="exclude")
    assert np.all(result.points[:, 0] <= 1.0)
    assert result.n_evals > 12


def test_a_likelihood_that_always_fails_ends_the_run() -> None:
    def fails(x: np.ndarray) -> float:
        raise ValueError("boom")

    with pytest.raises(wsabi.LikelihoodError, match=r"16 evaluations failed one after another; the last: .*boom"):
        run(fails, on_error="exclude", budget=500)


def test_failures_near_the_mode_are_doubted_and_those_far_off_are_not() -> None:
    def fails(x: np.ndarray, low: float, high: float) -> float:
        if low < x[0] < high:
            raise ValueError("boom")
        return 9.0 * at_work.log_l(x)

    near = run(lambda x: fails(x, 0.0, 0.3), on_error="exclude", budget=40)
    assert any("evaluations near the highest likelihood failed" in warning for warning in near.warnings)
    far = run(lambda x: fails(x, 1.5, 9.0), on_error="exclude", budget=40)
    assert not any("evaluations near the highest" in warning for warning in far.warnings)


def test_a_worker_that_is_killed_from_outside_is_replaced(tmp_path: Path) -> None:
    killed: list[int] = []
    original = LocalPool.submit

    def submit(self: LocalPool, number: int, X: np.ndarray) -> None:
        original(self, number, X)
        if number == 6:
            ready = [worker.process.pid for worker in self._workers if worker.is_ready and worker.task is not None]
            os.kill(ready[0], signal.SIGKILL)
            killed.append(ready[0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalPool, "submit", submit)
        result = run(at_work.Slow(0.03, str(tmp_path)), workers=2, retries=1)
    assert killed
    assert result.n_evals == 24
    assert len(list(tmp_path.iterdir())) == 3  # two workers and the one in place of the dead one


def test_no_worker_is_left_behind(tmp_path: Path) -> None:
    pools: list[list[int]] = []
    original = LocalPool.close

    def close(self: LocalPool) -> None:
        pools.append(self.processes)
        original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalPool, "close", close)
        with pytest.raises(wsabi.LikelihoodError):
            run(at_work.Faulty("raises"), workers=2)
    assert pools[0]
    for pid in pools[0]:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_what_cannot_be_pickled_says_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"cannot be sent to other processes .*open connection.*ThreadPoolExecutor"):
        run(at_work.Unpicklable(), workers=2)


def test_a_hang_in_threads_is_given_up() -> None:
    pause = threading.Event()

    def hangs(x: np.ndarray) -> float:
        if x[0] > 1.0:
            pause.wait(20.0)
        return at_work.log_l(x)

    with concurrent.futures.ThreadPoolExecutor(12) as threads:
        begun = time.perf_counter()
        result = run(hangs, executor=threads, workers=2, timeout=0.2, on_error="exclude", budget=16)
        assert time.perf_counter() - begun < 15.0
        pause.set()
    assert result.n_evals < 16


def test_a_broken_executor_ends_the_run_with_what_there_is() -> None:
    context = multiprocessing.get_context("spawn")
    with (
        concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as processes,
        pytest.raises(wsabi.WorkersLost, match="executor") as caught,
    ):
        run(at_work.Faulty("dies"), executor=processes, on_error="exclude")
    assert caught.value.result is not None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workers": 0}, "workers must be"),
        ({"timeout": 3.0}, "a call in this process cannot be interrupted"),
        ({"timeout": -1.0, "workers": 1}, "timeout must be a positive number"),
        ({"on_error": "ignore"}, "on_error must be one of 'raise', 'exclude'; got 'ignore'"),
        ({"retries": -1}, "retries must be"),
        ({"executor": 3}, "executor must have a method submit; got int"),
        ({"client": 3}, "client must be a dask.distributed.Client; got int"),
        ({"workers": 1, "grad": lambda x: -x, "settings": wsabi.Settings()}, "leave out workers"),
    ],
)
def test_arguments_that_make_no_sense(given: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        run(**given)


# -- Dask -------------------------------------------------------------------------------------------------------------

pytest_dask = pytest.mark.filterwarnings("ignore")  # of its own, on ports and event loops


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    import dask

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", IMPORTABLE)
        with (
            dask.config.set({"distributed.worker.daemon": False, "distributed.scheduler.allowed-failures": 0}),
            distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as local,
            distributed.Client(local) as client,
        ):
            yield client


@pytest_dask
def test_a_dask_cluster(cluster: Any, tmp_path: Path) -> None:
    result = run(at_work.Slow(0.02, str(tmp_path)), client=cluster)
    assert_right(result)
    assert len(list(tmp_path.iterdir())) == 2  # separate processes


@pytest_dask
def test_a_lost_dask_worker_is_a_fault_like_others(cluster: Any, tmp_path: Path) -> None:
    cluster.wait_for_workers(2)
    result = run(at_work.Faulty("dies"), client=cluster, workers=2, on_error="exclude", budget=10)
    assert 5 <= result.n_evals < 10
    cluster.wait_for_workers(2, timeout=60)


@pytest_dask
def test_a_lost_dask_scheduler_ends_the_run_with_what_there_is(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", IMPORTABLE)
        local = distributed.LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=None)
        client = distributed.Client(local, timeout=2)

        def stop(state: Any) -> None:
            if state.n_evals == 6:
                local.close()

        with pytest.raises(wsabi.WorkersLost) as caught:
            run(at_work.log_l, client=client, callback=stop)
        assert caught.value.result is not None
        assert caught.value.result.n_evals >= 6
        client.close()
