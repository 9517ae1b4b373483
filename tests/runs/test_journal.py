"""The journal: nothing is lost, nobody else writes, and what is wrong is said without touching the file."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import wsabi
from wsabi.ledger import Failed, Told
from wsabi.runs import journal as journals
from wsabi.runs.journal import Journal, read
from wsabi.runs.lock import holder

ROOT = Path(__file__).resolve().parents[2]
PRIOR = wsabi.Gaussian([0.0, 0.0])
PLAIN = wsabi.Settings(measure="prior")
pytestmark = pytest.mark.filterwarnings("ignore:.*fork")  # from Python 3.12 on, where there are threads


def log_l(x: np.ndarray) -> float:
    return -0.5 * float(x @ x)


def run(path: Path | None, budget: int = 12, **given: Any) -> wsabi.Result:
    arguments = {"rng": 0, "settings": PLAIN, **given}
    f, prior = arguments.pop("f", log_l), arguments.pop("prior", PRIOR)
    return wsabi.integrate(f, prior, budget=budget, journal=path, **arguments)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.db"


def assert_same(one: wsabi.Result, other: wsabi.Result) -> None:
    assert_array_equal(one.points, other.points)
    assert (one.log_z, one.log_z_std, one.reason) == (other.log_z, other.log_z_std, other.reason)


def test_a_journal_changes_no_number_and_leaves_one_file(path: Path) -> None:
    assert_same(run(path), run(None))
    assert os.listdir(path.parent) == ["run.db"]  # neither lock nor write-ahead log


def test_a_finished_run_is_not_evaluated_again_and_more_budget_goes_on(path: Path) -> None:
    calls = []

    def counted(x: np.ndarray) -> float:
        calls.append(x)
        return log_l(x)

    counted.__qualname__ = "log_l"
    first = run(path, f=counted)
    assert_same(run(path, f=counted), first)
    assert len(calls) == 12
    more = run(path, 20, f=counted)
    assert len(calls) == 20
    assert_array_equal(more.points[:12], first.points)
    assert_same(more, run(None, 20))


@pytest.mark.parametrize("settings", [PLAIN, wsabi.Settings()])
def test_an_exception_and_a_second_process_go_on_bit_for_bit(path: Path, settings: wsabi.Settings) -> None:
    def fails(x: np.ndarray) -> float:
        if len(told(path)) == 15:
            raise ZeroDivisionError("boom")
        return log_l(x)

    fails.__qualname__ = "log_l"
    with pytest.raises(wsabi.LikelihoodError, match="boom"):
        run(path, 30, f=fails, settings=settings, tol=0)
    assert_same(run(path, 30, settings=settings, tol=0), run(None, 30, settings=settings, tol=0))


def told(path: Path) -> list[Told]:
    return [event for event in read(path).ledger.events if isinstance(event, Told)]


def test_it_is_written_before_it_is_used(path: Path) -> None:
    """While the likelihood runs, the point under way and all before it are in the file."""

    def looks(x: np.ndarray) -> float:
        record = read(path)
        evaluations = record.ledger.evaluations
        assert evaluations[-1].x.tolist() == x.tolist()
        assert evaluations[-1].log_l is None
        assert all(one.log_l is not None for one in evaluations[:-1])
        assert all(record.times[i] <= record.times[i + 1] for i in range(len(record.times) - 1))
        return log_l(x)

    run(path, 6, f=looks)
    assert read(path).run["likelihood"].endswith("looks")
    assert read(path).run["end"]["reason"] == "budget"


def test_an_evaluation_of_a_batch_is_written_before_the_batch_is_told(path: Path) -> None:
    calls = []

    def stops(x: np.ndarray) -> float:
        calls.append(x.tobytes())
        if len(calls) == 7:
            os._exit(7)
        return log_l(x)

    stops.__qualname__ = "log_l"
    child = os.fork()
    if child == 0:
        run(path, 12, f=stops, batch=4)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    again = []

    def counted(x: np.ndarray) -> float:
        again.append(x)
        return log_l(x)

    counted.__qualname__ = "log_l"
    result = run(path, 12, f=counted, batch=4)
    assert len(again) == 6  # six of twelve had been made, two of them in an unfinished batch
    assert_same(result, run(None, 12, batch=4))


# -- who may write ----------------------------------------------------------------------------------------------------


def test_another_process_is_refused_and_told_who_holds_it(path: Path) -> None:
    code = f"import wsabi; wsabi.Integrator(wsabi.Gaussian([0.0, 0.0]), journal={str(path)!r})"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    with wsabi.Integrator(PRIOR, rng=0, journal=path) as mine:
        mine.tell([[0.0, 0.0]], [0.0])
        other = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert f"in use by process {os.getpid()} on " in other.stderr
        assert len(told(path)) == 1  # reading is allowed
        with pytest.raises(wsabi.JournalError, match="already in use in this process"):
            wsabi.Integrator(PRIOR, rng=0, journal=path)
        assert holder(path) == "this process"
    assert holder(path) is None
    wsabi.Integrator(PRIOR, rng=0, journal=path).close()


def test_the_lock_of_a_killed_process_does_not_count(path: Path) -> None:
    child = os.fork()
    if child == 0:
        wsabi.Integrator(PRIOR, rng=0, journal=path).tell([[0.0, 0.0]], [0.0])
        os._exit(0)  # closes nothing
    os.waitpid(child, 0)
    assert Path(f"{path}.lock").exists()
    assert holder(path) is None
    with wsabi.Integrator(PRIOR, rng=0, journal=path) as mine:
        assert mine.n_evals == 1


# -- another problem --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prior": wsabi.Gaussian([0.0, 1.0])}, r"another run: prior.mean\[1\] is 0.0 there and 1.0 here"),
        ({"settings": wsabi.Settings(measure="prior", method="bq")}, "method is 'wsabi-l' there and 'bq' here"),
        ({"rng": 1}, "another seed than rng"),
        ({"f": lambda x: 0.0}, "of the likelihood 'log_l'; log_likelihood is '.*lambda"),
    ],
)  # fmt: skip
def test_another_problem_is_refused_and_the_difference_named(path: Path, change: Any, message: str) -> None:
    run(path)
    before = path.read_bytes()
    with pytest.raises(wsabi.JournalError, match=message):
        run(path, **change)
    assert path.read_bytes() == before
    run(path, 13)


def test_without_rng_the_runs_own_seed_goes_on(path: Path) -> None:
    run(path)
    assert_same(run(path, 20, rng=None), run(None, 20))


def test_functions_are_passed_again(path: Path) -> None:
    def prior(scale: float = 1.0) -> wsabi.LogDensity:
        return wsabi.LogDensity(lambda x: -0.5 * float(x @ x) / scale - np.log(2 * np.pi * scale), PRIOR)

    run(path, prior=prior())
    assert run(path, 15, prior=prior()).n_evals == 15
    with pytest.raises(wsabi.JournalError, match="prior, a LogDensity, has another function"):
        run(path, 15, prior=prior(1.1))


# -- another version --------------------------------------------------------------------------------------------------


def test_another_engine_takes_the_evaluations_as_told_and_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(path, 12)
    with sqlite3.connect(path) as connection:  # as if another version had drawn other points
        facts = dict(connection.execute("SELECT key, value FROM run"))
        old = {**json.loads(facts["versions"]), "wsabi": "0.0.1"}
        connection.execute("UPDATE run SET value = ? WHERE key = 'versions'", (json.dumps(old),))
        connection.execute("UPDATE run SET value = '[1, 2, 3, 4]' WHERE key = 'entropy'")
    connection.close()
    more = run(path, 20)
    assert_array_equal(more.points[:12], first.points)
    assert any("begun with wsabi 0.0.1" in note and "taken as told" in note for note in more.notes)
    assert read(path).course == 2
    assert_same(run(path, 20), more)
    assert any("taken as told" in note for note in run(path, 21).notes)  # it stays true


# -- files that are no journals ---------------------------------------------------------------------------------------


def damaged(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "text":
        path.write_text("a,b\n1,2\n", encoding="utf-8")
    elif how == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif how == "short":
        path.write_bytes(data[:60])
    elif how == "overwritten":
        path.write_bytes(data[:5000] + bytes(3000) + data[8000:])
    elif how == "changed":  # one digit of one value
        where = data.rindex(b'"log_l":[') + 12
        path.write_bytes(data[:where] + (b"1" if data[where : where + 1] != b"1" else b"2") + data[where + 1 :])
    else:
        path.unlink()
        connection = sqlite3.connect(path)
        if how == "newer":
            connection.execute(f"PRAGMA application_id = {journals.APPLICATION}")
            connection.execute("PRAGMA user_version = 99")
        connection.execute("CREATE TABLE mine (x)")
        connection.commit()
        connection.close()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("text", "not a journal of wsabi: it is no SQLite file"),
        ("foreign", "an SQLite file of another program"),
        ("newer", "another version of wsabi .format 99"),
        ("short", "it ends within its header"),
        ("cut", "is damaged"),
        ("overwritten", "is damaged"),
        ("changed", r"is damaged: event \d+ of \d+ is not as it was written"),
    ],
)
def test_a_damaged_or_foreign_file_is_left_as_it_is(path: Path, how: str, message: str) -> None:
    run(path, 40)
    damaged(path, how)
    before = path.read_bytes()
    with pytest.raises(wsabi.JournalError, match=message):
        run(path, 41)
    assert path.read_bytes() == before
    with pytest.raises(wsabi.JournalError, match=message):
        read(path)
    assert os.listdir(path.parent) == ["run.db"]


def test_tables_of_somebody_else_are_not_looked_at(path: Path) -> None:
    """A view or a trigger could make reading the file do more than reading it."""
    run(path, 5)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TRIGGER surprise AFTER INSERT ON event BEGIN DELETE FROM event; END")
    connection.close()
    with pytest.raises(wsabi.JournalError, match="it has other tables"):
        run(path, 6)


def test_an_empty_file_and_a_missing_folder(path: Path) -> None:
    path.touch()
    assert run(path, 5).n_evals == 5
    with pytest.raises(wsabi.JournalError, match=r"cannot be made: No such file or directory"):
        run(path.parent / "nowhere" / "run.db")
    with pytest.raises(wsabi.JournalError, match="cannot be read: No such file"):
        read(path.parent / "other.db")


def test_the_write_ahead_log_of_a_deleted_file_is_not_taken_for_its_own(path: Path) -> None:
    with wsabi.Integrator(PRIOR, rng=0, journal=path) as mine:
        mine.tell([[0.0, 0.0]], [0.0])
        shutil.copy(f"{path}-wal", path.parent / "saved")
    path.unlink()
    shutil.move(path.parent / "saved", f"{path}-wal")
    with wsabi.Integrator(PRIOR, rng=1, journal=path) as mine:
        assert mine.n_evals == 0


# -- the disk is full -------------------------------------------------------------------------------------------------


class Full:
    """A connection to a disk that is full from some transaction on."""

    def __init__(self, connection: sqlite3.Connection, commits: int) -> None:
        self.connection, self.left = connection, commits

    def execute(self, statement: str, *arguments: Any) -> Any:
        if statement == "COMMIT":
            self.left -= 1
            if self.left < 0:
                raise sqlite3.OperationalError("database or disk is full")
        return self.connection.execute(statement, *arguments)

    def close(self) -> None:
        self.connection.close()


@pytest.mark.parametrize("commits", [6, 7, 8, 9])
def test_a_full_disk_loses_nothing_and_the_run_goes_on_once_there_is_room(path: Path, commits: int) -> None:
    mine = wsabi.Integrator(PRIOR, settings=PLAIN, rng=0, journal=path)
    assert mine.journal is not None
    connection = mine.journal._connection
    mine.journal._connection = Full(connection, commits)  # type: ignore[assignment]
    with pytest.raises(wsabi.JournalError, match=r"disk is full\. What it holds so far is safe") as caught:
        mine.run(log_l, budget=20)
    assert caught.value.result is not None
    assert caught.value.result.n_evals == mine.n_evals
    assert len(told(path)) <= mine.n_evals <= len(told(path)) + 1
    mine.journal._connection = connection
    result = mine.run(log_l, budget=20 - mine.n_evals)
    assert len(told(path)) == 20
    mine.close()
    assert_same(result, run(None, 20))
    assert_same(run(path, 20), result)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounts a small disk")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", disk], check=False).returncode != 0:
        pytest.skip("mounts are not allowed here")
    try:
        path = disk / "run.db"
        with pytest.raises(wsabi.JournalError, match="disk is full") as caught:
            run(path, 300)
        assert caught.value.result is not None
        assert len(told(path)) >= caught.value.result.n_evals - 1 > 5
        subprocess.run(["mount", "-o", "remount,size=4m", disk], check=True)
        calls: list[object] = []
        n = len(told(path))

        def counted(x: np.ndarray) -> float:
            calls.append(x)
            return log_l(x)

        counted.__qualname__ = "log_l"
        assert run(path, n + 5, f=counted).n_evals == n + 5
        assert len(calls) == 5
    finally:
        subprocess.run(["umount", disk], check=True)


# -- the rest ---------------------------------------------------------------------------------------------------------


def test_a_result_to_start_from_is_written_too_and_used_once(path: Path) -> None:
    first = run(None, 10)
    one = run(path, 5, start=first, rng=3)
    assert one.n_evals == 15
    assert_same(run(path, 8, start=first, rng=3), run(None, 8, start=first, rng=3))


def test_a_pickled_integrator_has_no_journal(path: Path) -> None:
    with wsabi.Integrator(PRIOR, rng=0, journal=path) as mine:
        mine.tell([[0.0, 0.0]], [0.0])
        copy = pickle.loads(pickle.dumps(mine))
    copy.tell([[1.0, 0.0]], [0.0])
    assert len(told(path)) == 1


def test_failures_are_known_where_a_run_is_told_again(path: Path) -> None:
    with wsabi.Integrator(PRIOR, settings=PLAIN, rng=0, journal=path) as mine:
        mine.run(log_l, budget=6)
        mine.tell_failure(mine.ask(1), "out of memory")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE run SET value = '[1, 2, 3, 4]' WHERE key = 'entropy'")
    connection.close()
    with wsabi.Integrator(PRIOR, settings=PLAIN, journal=path) as again:
        assert (again.n_evals, again.n_failed) == (6, 1)


def test_failures_stay_in_the_file(path: Path) -> None:
    with wsabi.Integrator(PRIOR, rng=0, journal=path) as mine:
        mine.course.append(Failed(mine.ask()[0], "out of memory", 1.0))
    assert any(one.failure == "out of memory" for one in read(path).ledger.evaluations)


def test_an_interrupted_commit_is_written_once_more(path: Path) -> None:
    with wsabi.Integrator(PRIOR, rng=0, journal=path) as mine:
        mine.tell([[0.0, 0.0]], [0.0])
        journal = mine.journal
        assert isinstance(journal, Journal)
        journal._n_written -= 1  # the interrupt came between the commit and this count
        mine.tell([[1.0, 0.0]], [0.0])
    assert len(told(path)) == 2
