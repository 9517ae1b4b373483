"""Evaluations on other processes and machines: local workers, executors of ``concurrent.futures``, Dask clusters.

A pool is given tasks, each of a few points, and hands back their outcomes as they come. It evaluates nothing twice, and
a fault of one worker is the outcome of its task, not the end of the run.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import multiprocessing.connection
import pickle
import signal
import time
import traceback
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from wsabi._core.types import Array
from wsabi.errors import LikelihoodError, WorkersLost
from wsabi.likelihood import evaluator
from wsabi.priors.chart import Chart
from wsabi.priors.names import Groups

__all__ = ["KEPT", "Call", "Fault", "Outcome", "Pool", "opened"]

KEPT = 4000  # last characters of a traceback that are kept
START_FAILURES = 3  # workers in a row that end before they are ready, after which no more are started
START_SECONDS = 120.0  # for a worker to start: imports on a slow disk can take this long


@dataclass(frozen=True)
class Fault:
    """Why an evaluation has no value: a sentence, and the traceback of the exception, if there was one."""

    message: str
    traceback: str = ""


Outcome = float | Fault


@dataclass(frozen=True)
class Signature:
    """What a likelihood is called with; as much of a chart as that takes, and always picklable."""

    names: tuple[str, ...]
    groups: Groups
    keyed: bool


@dataclass(frozen=True)
class Call:
    """The likelihood with its calling convention, to be sent to workers."""

    log_likelihood: Callable[..., Any]
    signature: Signature
    vectorized: bool

    @classmethod
    def of(cls, log_likelihood: Callable[..., Any], chart: Chart, *, vectorized: bool) -> Call:
        """For the parameters of a prior."""
        return cls(log_likelihood, Signature(chart.names, chart.groups, chart.keyed), vectorized)

    def __call__(self, X: Array) -> list[Outcome]:
        """log ℓ at X (n, D), with a fault in the place of each value that could not be had."""
        evaluate = evaluator(self.log_likelihood, self.signature, vectorized=self.vectorized)
        if self.vectorized and len(X) > 1:
            try:
                return [float(value) for value in evaluate(X)]
            except LikelihoodError:
                pass  # of which point, the points by themselves will tell
        return [self._one(evaluate, x) for x in X]

    def _one(self, evaluate: Callable[..., Array], x: Array) -> Outcome:
        try:
            return float(evaluate(x[None, :])[0])
        except LikelihoodError as error:
            lines = traceback.format_exception(error.__cause__) if error.__cause__ is not None else []
            return Fault(str(error), "".join(lines)[-KEPT:])


class Pool(Protocol):
    """Workers: tasks in, outcomes out, in any order."""

    @property
    def size(self) -> int:
        """Number of tasks that can be under way at a time."""
        ...

    def submit(self, number: int, X: Array) -> None:
        """Give points X (n, D) to a free worker."""
        ...

    def wait(self, seconds: float | None) -> list[tuple[int, list[Outcome]]]:
        """Outcomes that have come, by the number of their task; waits for the first, but not longer than that."""
        ...

    def close(self) -> None:
        """Stop: what is under way is given up."""
        ...


class Wanted(Protocol):
    """Which workers a run is to have: these of the arguments of :func:`wsabi.integrate`, checked."""

    @property
    def workers(self) -> int | None: ...
    @property
    def executor(self) -> Any: ...
    @property
    def client(self) -> Any: ...
    @property
    def timeout(self) -> float | None: ...


def opened(call: Call, wanted: Wanted) -> Pool | None:
    """The pool that the arguments of :func:`wsabi.integrate` ask for; None where they ask for none."""
    if wanted.client is not None:
        return DaskPool(call, wanted.client, wanted.workers, wanted.timeout)
    if wanted.executor is not None:
        return FuturesPool(call, wanted.executor, wanted.workers, wanted.timeout)
    if wanted.workers is not None:
        return LocalPool(call, wanted.workers, wanted.timeout)
    return None


def packed(call: Call) -> bytes:
    """A call, pickled; by cloudpickle, where that is installed and pickle cannot.

    Raises
    ------
    TypeError
        If it cannot be pickled.
    """
    try:
        return pickle.dumps(call)
    except Exception as error:
        try:
            import cloudpickle  # type: ignore[import-untyped,import-not-found,unused-ignore]

            return bytes(cloudpickle.dumps(call))
        except Exception:
            raise TypeError(
                f"log_likelihood cannot be sent to other processes ({type(error).__name__}: {error}). Define it as a "
                "function at the top level of a module, without open files or locks; or install cloudpickle, for "
                "lambdas and notebooks; or use threads: executor=concurrent.futures.ThreadPoolExecutor(4)."
            ) from error


# -- processes of this machine ----------------------------------------------------------------------------------------


def _work(pipe: Any, likelihood: bytes) -> None:
    """What a worker process does: read points, evaluate, answer, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches all processes: the parent decides
    try:
        call = pickle.loads(likelihood)
    except Exception as error:
        pipe.send(Fault(f"{type(error).__name__}: {error}", traceback.format_exc()[-KEPT:]))
        return
    pipe.send(None)  # ready
    while True:
        try:
            pipe.send(call(pipe.recv()))
        except (EOFError, BrokenPipeError, ConnectionResetError):  # the run is over, or was killed
            return


@dataclass
class _Worker:
    """A worker process, and its task."""

    process: Any
    pipe: Any
    started: float
    is_ready: bool = False
    task: tuple[int, Array] | None = None
    since: float = 0.0  # when the worker began with its task


class LocalPool:
    """Processes of this machine, which are started anew (spawn), and replaced when they die or hang.

    Parameters
    ----------
    timeout : seconds for one call of the likelihood; a worker that takes longer is killed.
    """

    def __init__(self, call: Call, workers: int, timeout: float | None) -> None:
        self.size = workers
        self._likelihood = packed(call)
        self._timeout = timeout
        self._context = multiprocessing.get_context("spawn")
        self._n_failed_starts = 0
        self._workers: list[_Worker] = []
        try:
            for _ in range(workers):
                self._workers.append(self._started())
        except BaseException:
            self.close()
            raise

    def _started(self) -> _Worker:
        mine, other = self._context.Pipe()
        process = self._context.Process(target=_work, args=(other, self._likelihood), daemon=True)
        process.start()
        other.close()
        return _Worker(process, mine, time.perf_counter())

    def submit(self, number: int, X: Array) -> None:
        """Give points to a free worker; one that is still starting takes them when it is ready."""
        free = [worker for worker in self._workers if worker.task is None]
        worker = next((each for each in free if each.is_ready), free[0])
        worker.task = (number, X)
        if worker.is_ready:
            self._send(worker)

    def _send(self, worker: _Worker) -> None:
        if worker.task is not None:
            worker.since = time.perf_counter()
            with contextlib.suppress(OSError):  # it has died, which wait() will see
                worker.pipe.send(worker.task[1])

    def wait(self, seconds: float | None) -> list[tuple[int, list[Outcome]]]:
        """Outcomes that have come; a worker that died or hangs is replaced, and its points have a fault."""
        until = None if seconds is None else time.perf_counter() + seconds
        while True:
            ends = [self._deadline(worker) for worker in self._workers] + ([] if until is None else [until])
            pause = max(0.0, min(ends) - time.perf_counter())
            ready = multiprocessing.connection.wait(
                [worker.pipe for worker in self._workers], None if pause == np.inf else pause
            )
            found: list[tuple[int, list[Outcome]]] = []
            for i, worker in enumerate(self._workers):
                if worker.pipe in ready:
                    found += self._answer(i, worker)
                elif time.perf_counter() >= self._deadline(worker):
                    found += self._late(i, worker)
            if found or (until is not None and time.perf_counter() >= until):
                return found

    def _deadline(self, worker: _Worker) -> float:
        if not worker.is_ready:
            return worker.started + START_SECONDS
        if worker.task is None or self._timeout is None:
            return np.inf
        return worker.since + self._timeout * len(worker.task[1])

    def _answer(self, i: int, worker: _Worker) -> list[tuple[int, list[Outcome]]]:
        try:
            answer = worker.pipe.recv()
        except (EOFError, OSError):
            return self._died(i, worker)
        if worker.is_ready:
            number, _ = worker.task or (-1, None)
            worker.task = None
            return [(number, answer)]
        if isinstance(answer, Fault):
            raise WorkersLost(f"log_likelihood cannot be loaded in a worker process: {answer.message}")
        worker.is_ready, self._n_failed_starts = True, 0
        self._send(worker)
        return []

    def _died(self, i: int, worker: _Worker) -> list[tuple[int, list[Outcome]]]:
        worker.process.join(5.0)
        code = worker.process.exitcode
        how = f"signal {-code}" if code is not None and code < 0 else f"status {code}"
        if not worker.is_ready:
            self._n_failed_starts += 1
            if self._n_failed_starts >= START_FAILURES:
                raise WorkersLost(
                    f"worker processes end as they start ({how}). In a script, the call must stand under "
                    "`if __name__ == '__main__':`, since each worker imports the script; and the module with the "
                    "likelihood must be importable."
                )
            task, self._workers[i] = worker.task, self._started()
            self._workers[i].task = task  # it was not begun
            worker.pipe.close()
            return []
        return self._replaced(i, worker, f"the worker process ended ({how}) during the evaluation.")

    def _late(self, i: int, worker: _Worker) -> list[tuple[int, list[Outcome]]]:
        if not worker.is_ready:
            raise WorkersLost(f"a worker process was not ready after {START_SECONDS:.0f} s.")
        worker.process.kill()
        worker.process.join(5.0)
        return self._replaced(i, worker, f"the evaluation took longer than timeout={self._timeout:g} s.")

    def _replaced(self, i: int, worker: _Worker, message: str) -> list[tuple[int, list[Outcome]]]:
        worker.pipe.close()
        self._workers[i] = self._started()
        if worker.task is None:
            return []
        number, X = worker.task
        return [(number, [Fault(message) for _ in X])]

    def close(self) -> None:
        """Kill the workers."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join(5.0)
            worker.pipe.close()
        self._workers = []

    @property
    def processes(self) -> list[int]:
        """Process numbers of the workers."""
        return [int(worker.process.pid) for worker in self._workers]


# -- futures ----------------------------------------------------------------------------------------------------------


@dataclass
class _Flight:
    """A task under way."""

    number: int
    X: Array = field(repr=False)
    since: float


class FuturesPool:
    """Any executor of ``concurrent.futures``: threads, processes, mpi4py, submitit, ...

    Parameters
    ----------
    workers : tasks under way at a time; None for the executor's own number.
    timeout : seconds for one call, from when it was handed over. A call that takes longer is given up; it cannot be
        stopped, and its worker is busy until it returns.
    """

    def __init__(self, call: Call, executor: Any, workers: int | None, timeout: float | None) -> None:
        if not callable(getattr(executor, "submit", None)):
            raise TypeError(f"executor must have a method submit; got {type(executor).__name__}.")
        size = workers if workers is not None else getattr(executor, "_max_workers", None)
        if not isinstance(size, int) or size < 1:
            raise ValueError(
                f"how many workers {type(executor).__name__} has is not known: give workers=, the number of "
                "evaluations to have under way at a time."
            )
        self.size = size
        if isinstance(executor, concurrent.futures.ProcessPoolExecutor):
            packed(call)  # the message of the executor would not say what to do
        self._call, self._executor, self._timeout = call, executor, timeout
        self._flights: dict[Any, _Flight] = {}

    def _handed_over(self, X: Array) -> Any:
        return self._executor.submit(self._call, X)

    def _first_done(self, seconds: float | None) -> set[Any]:
        return set(concurrent.futures.wait(self._flights, seconds, return_when=concurrent.futures.FIRST_COMPLETED).done)

    def submit(self, number: int, X: Array) -> None:
        """Hand points over to the executor."""
        try:
            future = self._handed_over(X)
        except RuntimeError as error:  # BrokenExecutor, or one that was shut down
            raise WorkersLost(f"the executor takes no more tasks: {error}") from error
        self._flights[future] = _Flight(number, X, time.perf_counter())

    def wait(self, seconds: float | None) -> list[tuple[int, list[Outcome]]]:
        """Outcomes that have come."""
        until = np.inf if seconds is None else time.perf_counter() + seconds
        while True:
            end = min([until, *(self._deadline(flight) for flight in self._flights.values())])
            done = self._first_done(None if end == np.inf else max(0.0, end - time.perf_counter()))
            found = [(self._flights.pop(future).number, self._outcome(future)) for future in done]
            for future, flight in list(self._flights.items()):
                if time.perf_counter() >= self._deadline(flight):
                    future.cancel()
                    del self._flights[future]
                    message = f"the evaluation took longer than timeout={self._timeout:g} s."
                    found.append((flight.number, [Fault(message) for _ in flight.X]))
            # The order in which a set happens to be gone through must not decide what follows.
            found.sort(key=lambda each: each[0])
            if found or time.perf_counter() >= until:
                return found

    def _deadline(self, flight: _Flight) -> float:
        return np.inf if self._timeout is None else flight.since + self._timeout * len(flight.X)

    def _outcome(self, future: Any) -> list[Outcome]:
        try:
            return list(future.result())
        except concurrent.futures.BrokenExecutor as error:
            raise WorkersLost(f"the executor is broken: {error}") from error
        except (Exception, concurrent.futures.CancelledError) as error:
            if self._is_lost(error):
                raise WorkersLost(f"the workers are lost: {error}") from error
            return [Fault(f"the worker failed: {type(error).__name__}: {error}", traceback.format_exc()[-KEPT:])]

    def _is_lost(self, error: BaseException) -> bool:
        return False

    def close(self) -> None:
        """Give up what is under way; the executor is the caller's, and stays open."""
        for future in self._flights:
            future.cancel()
        self._flights = {}


class DaskPool(FuturesPool):
    """A Dask cluster, by its client. A task whose worker is lost is run again by Dask on another.

    Parameters
    ----------
    workers : tasks under way at a time; None for the number of threads of the cluster.
    """

    def __init__(self, call: Call, client: Any, workers: int | None, timeout: float | None) -> None:
        try:
            import distributed
        except ImportError as error:
            raise ImportError("client= needs Dask's distributed: pip install 'wsabi[dask]'") from error
        if not isinstance(client, distributed.Client):
            raise TypeError(f"client must be a dask.distributed.Client; got {type(client).__name__}.")
        if client.asynchronous:
            raise ValueError("client must be a synchronous dask.distributed.Client (asynchronous=False).")
        cluster: Any = client  # its methods have no types
        size = workers if workers is not None else sum(cluster.nthreads().values())
        if not size:
            raise ValueError("client has no workers yet: wait for them, client.wait_for_workers(n), or give workers=.")
        super().__init__(call, client, size, timeout)
        packed(call)
        self._client: Any = cluster
        self._wait: Any = distributed.wait
        # A plugin is sent once to each worker, and to those that join later; scattered data would be lost with workers.
        self._name = f"wsabi-{uuid.uuid4()}"
        self._client.register_plugin(_plugin(call), name=self._name)

    def _handed_over(self, X: Array) -> Any:
        if self._client.status != "running":
            raise WorkersLost(f"the connection to the Dask scheduler is {self._client.status}.")
        return self._client.submit(_called, self._name, X, pure=False)

    def _first_done(self, seconds: float | None) -> set[Any]:
        until = np.inf if seconds is None else time.perf_counter() + seconds
        while True:
            pause = min(1.0, until - time.perf_counter())  # a lost scheduler leaves futures pending for ever
            try:
                return set(self._wait(list(self._flights), max(pause, 0.001), "FIRST_COMPLETED").done)
            except (TimeoutError, OSError, concurrent.futures.CancelledError) as error:
                if self._client.status != "running":
                    raise WorkersLost(f"the connection to the Dask scheduler is {self._client.status}.") from error
                lost = {future for future in self._flights if future.status in ("cancelled", "lost")}
                if lost or time.perf_counter() >= until:
                    return lost

    def _is_lost(self, error: BaseException) -> bool:
        if self._client.status != "running":
            return True
        if not isinstance(error, concurrent.futures.CancelledError):
            return False
        try:  # a task may be cancelled because its worker died, or because there is no scheduler any more
            self._client.run_on_scheduler(int)
        except Exception:
            return True
        return False

    def close(self) -> None:
        """Give up what is under way, and take the likelihood from the workers."""
        super().close()
        with contextlib.suppress(Exception):  # of a scheduler that is gone
            self._client.unregister_worker_plugin(self._name)


def _plugin(call: Call) -> Any:
    """What Dask hands to each worker. The class is made here since Dask is optional."""
    from distributed import WorkerPlugin

    class Likelihood(WorkerPlugin):
        def __init__(self) -> None:
            self.call = call

    return Likelihood()


def _called(name: str, X: Array) -> list[Outcome]:
    """Evaluate by the likelihood that a Dask worker was sent."""
    import distributed

    worker: Any = distributed.get_worker()
    call: Call = worker.plugins[name].call
    return call(X)
