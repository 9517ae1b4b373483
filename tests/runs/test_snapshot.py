"""Snapshots: what comes back is what went in, to the last bit; what does not fit is ignored; nothing is executed."""

from __future__ import annotations

import contextlib
import math
import sqlite3
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wsabi
from driving import content
from wsabi import course, replay
from wsabi.adaptive.purposes import SearchPoint
from wsabi.adaptive.state import Phase
from wsabi.runs import journal
from wsabi.runs.snapshot import START, packed, unpacked

PRIOR = wsabi.Gaussian([0.0, 0.0])
PLAIN = wsabi.Settings(measure="prior")


def log_l(x: np.ndarray) -> float:
    return -0.5 * float(np.sum((x - 0.3) ** 2)) / 0.3**2 + 0.3 * math.sin(3.0 * x[0])


def again(value: Any, **given: object) -> Any:
    return unpacked(packed(value, given), given)


# -- data -------------------------------------------------------------------------------------------------------------

GRID = np.arange(24.0).reshape(4, 6)
ARRAYS = [
    GRID, GRID.T, np.asfortranarray(GRID), GRID[:, ::-1], GRID[::2, 1::3], GRID[1:3], np.broadcast_to(GRID[0], (3, 6)),
    np.empty((0, 3)), np.array(2.5), np.array([math.nan, -math.inf, -0.0]), np.arange(3), np.array([True, False]),
    np.zeros((3, 1)), np.moveaxis(np.arange(24.0).reshape(2, 3, 4), 1, 0),
]  # fmt: skip


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.shape}{array.strides}")
def test_an_array_comes_back_with_its_strides(array: np.ndarray) -> None:
    """They decide in which order a product is summed, and so its last digit."""
    back = again(array)
    assert (back.dtype, back.shape, back.strides) == (array.dtype, array.shape, array.strides)
    assert back.tobytes() == array.tobytes()
    assert back.flags.writeable


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, 2**200, 0.1, math.inf, -0.0, "a ± b", (1, (2.0, "x")), [1, [None]], {"a": 1, (1, 2): [3.0]},
        frozenset({1, 2}), np.float64(0.1), np.int64(3), np.bool_(True), Phase.LOCATING, SearchPoint(3, is_draw=True),
    ],
    ids=repr,
)  # fmt: skip
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    back = again(value)
    assert type(back) is type(value)
    assert content(back) == content(value)


def test_a_generator_goes_on_where_it_was() -> None:
    rng = np.random.default_rng(3)
    rng.standard_normal(7)
    back = again(rng)
    assert np.array_equal(back.standard_normal(9), rng.standard_normal(9))


def test_what_was_one_object_is_one_again_and_what_is_given_is_not_written() -> None:
    shared = np.arange(1000.0)
    data = packed([shared, shared, PRIOR], {"prior": PRIOR})
    one, other, prior = unpacked(data, {"prior": PRIOR})
    assert one is other
    assert prior is PRIOR
    assert len(data) < 8000


class Stranger:
    pass


STRANGERS = {
    "object": Stranger(), "builtin": print, "lambda": lambda: None, "set": {1}, "path": Path("x"),
    "text": np.array(["text"]), "module": math,
}  # fmt: skip


@pytest.mark.parametrize("value", STRANGERS.values(), ids=STRANGERS.keys())
def test_what_is_no_data_of_the_engine_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        packed([value], {})


def written(node: str) -> bytes:
    text = f'[["node",0],[{node}]]'.encode()
    return START + zlib.compress(len(text).to_bytes(8, "little") + text)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"something else", START + b"no zlib", written("nothing"), written('["object","builtins:eval",[]]'),
        written('["object","os:system",[]]'), written('["object","wsabi.run:run",[]]'),
        written('["object","wsabi.cli.app:app",[]]'), written('["object","wsabi.adaptive.purposes:SearchPoint",'
        '[["__class__",1]]]'), written('["__init__",[],{}]'), written('["array","|O",[1],[8],0]'),
        written('["array","<f8",[9],[8],0]'), written('["tuple",[["node",7]]]'), written('["generator",{}]'),
        written('["enum","wsabi.adaptive.state:State","x"]'),
    ],
)  # fmt: skip
def test_what_was_not_written_so_is_not_read_and_nothing_is_executed(data: bytes) -> None:
    assert unpacked(written('["tuple",[1]]'), {}) == (1,)  # or the others would be refused for another reason
    with pytest.raises(ValueError):  # noqa: PT011  whatever it says
        unpacked(data, {})


# -- runs -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot after every value."""
    monkeypatch.setattr(course, "SNAPSHOT_SECONDS", 0.0)
    monkeypatch.setattr(course, "SNAPSHOT_SHARE", 0.0)


def asked_and_told(it: wsabi.Integrator, n: int) -> wsabi.Integrator:
    for _ in range(n):
        x = it.ask(1)
        it.tell(x, [log_l(x[0])])
    return it


@pytest.fixture
def n_repeated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many events were replayed, each time a run was resumed."""
    found: list[int] = []
    repeat = replay.repeat

    def counted(which: Any, events: Any) -> bool:
        found.append(len(events))
        return repeat(which, events)

    monkeypatch.setattr(replay, "repeat", counted)
    return found


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(("settings", "stops"), [(None, (7, 24, 41)), (PLAIN, (3, 12))])
def test_a_run_goes_on_from_its_snapshot_as_if_it_had_never_stopped(
    settings: Any, stops: tuple[int, ...], tmp_path: Path, n_repeated: list[int]
) -> None:
    path, done = tmp_path / "run.db", 0
    unbroken = wsabi.Integrator(PRIOR, settings=settings, rng=5, budget=60)
    for stop in stops:
        it = wsabi.Integrator(PRIOR, settings=settings, rng=5, budget=60, journal=path)
        assert it.n_evals == done
        assert content(it.strategy.memory) == content(unbroken.strategy.memory)
        asked_and_told(it, stop - done)
        if stop == stops[-1]:
            it.ask(1)  # under way when the process is killed
        it.close()
        asked_and_told(unbroken, stop - done)
        done = stop
    it = wsabi.Integrator(PRIOR, settings=settings, rng=5, budget=60, journal=path)
    assert n_repeated == [0] * (len(stops) - 1) + [1]  # the point that was under way
    assert len(it.log.postponed) == 1
    asked_and_told(it, 8)
    asked_and_told(unbroken, 8)
    result, expected = it.result(), unbroken.result()
    it.close()
    loaded = wsabi.load(path)
    for one in (result, loaded):
        assert np.array_equal(one.points, expected.points)
        assert (one.log_z, one.log_z_std) == (expected.log_z, expected.log_z_std)
        assert [record.log_z for record in one.history] == [record.log_z for record in expected.history]


def a_journal(path: Path) -> wsabi.Result:
    with wsabi.Integrator(PRIOR, settings=PLAIN, rng=5, journal=path) as it:
        asked_and_told(it, 10)
        return it.result()


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("what", ["another engine", "other events", "damaged", "of another kind"])
def test_a_snapshot_that_does_not_fit_is_ignored(
    what: str, tmp_path: Path, n_repeated: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.db"
    before = a_journal(path)
    if what == "another engine":
        monkeypatch.setattr(journal, "fingerprint", lambda: "another")
    else:
        data = written('["tuple",[1]]')
        changes = {
            "other events": "of_events = of_events + 1",
            "damaged": f"data = x'{data.hex()}'",
            "of another kind": f"data = x'{data.hex()}', crc = {zlib.crc32(data)}",
        }
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"UPDATE snapshot SET {changes[what]}")
    with wsabi.Integrator(PRIOR, settings=PLAIN, rng=5, journal=path) as it:
        after = it.result()
    assert n_repeated[-1] == 20
    assert np.array_equal(after.points, before.points)
    assert after.log_z == before.log_z
    assert after.notes == before.notes


def test_from_a_wrong_state_the_run_is_replayed_from_its_beginning(tmp_path: Path, n_repeated: list[int]) -> None:
    """Of another machine, say: the points that were asked for next do not follow from it."""
    path = tmp_path / "run.db"
    with wsabi.Integrator(PRIOR, settings=PLAIN, rng=5, journal=path) as it:
        asked_and_told(it, 10)
        wrong = asked_and_told(wsabi.Integrator(PRIOR, settings=PLAIN, rng=6), 10).course
        assert it.journal is not None
        it.journal.keep_snapshot(20, packed(wrong._memory(), wrong.strategy.given))
        asked_and_told(it, 2)
        before = it.result()
    with wsabi.Integrator(PRIOR, settings=PLAIN, rng=5, journal=path) as it:
        assert n_repeated == [4, 24]
        after = it.result()
    assert np.array_equal(after.points, before.points)
    assert after.log_z == before.log_z


@pytest.mark.usefixtures("at_once")
def test_a_snapshot_that_is_too_large_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(course, "LARGEST", 100)
    path = tmp_path / "run.db"
    a_journal(path)
    assert journal.read_snapshot(path, journal.read(path)) is None


def test_short_runs_have_no_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    a_journal(path)
    assert journal.read_snapshot(path, journal.read(path)) is None
