"""The journal: a run in an SQLite file, written event by event as it happens.

One transaction holds one event, and is on the disk before the event is used. What is in the file after a kill or a
power cut is therefore the run up to its last event, from which it goes on by replay. The file holds data only: the
prior, settings and seed as JSON, and the events as JSON with a checksum each. Reading it executes nothing in it.

A snapshot of what the run knows stands beside the events, so that a long run need not be replayed from its beginning.
The events remain the truth: a snapshot of another engine, or of other events, is ignored.

A run that cannot be replayed here (another version, another machine) begins a new course: its first events are the
evaluations of the earlier course, taken as told. The earlier course stays in the file.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import socket
import sqlite3
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import pathname2url

import numpy as np

from wsabi._core.types import Array, Streams
from wsabi.adaptive.tuning import table
from wsabi.errors import JournalError
from wsabi.ledger import Event, Ledger
from wsabi.runs.data import difference, event_data, event_from, prior_data, settings_data, text_of
from wsabi.runs.lock import Lock
from wsabi.runs.snapshot import fingerprint
from wsabi.settings import Settings

__all__ = ["Journal", "Record", "Snapshot", "read", "read_snapshot"]

APPLICATION = 0x77736162  # "wsab", in the header of the file: tells a journal from other SQLite files
SCHEMA = 2
TABLES = (
    "CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE event (course INTEGER NOT NULL, number INTEGER NOT NULL, at REAL NOT NULL, writer TEXT NOT NULL, "
    "kind TEXT NOT NULL, data TEXT NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (course, number)) WITHOUT ROWID",
    "CREATE TABLE snapshot (id INTEGER PRIMARY KEY, course INTEGER NOT NULL, n_events INTEGER NOT NULL, "
    "of_events INTEGER NOT NULL, engine TEXT NOT NULL, data BLOB NOT NULL, crc INTEGER NOT NULL)",
)
PATIENCE = 5.0  # seconds to wait for a reader that holds the file for a moment


@dataclass(frozen=True)
class Record:
    """What a journal holds.

    Attributes
    ----------
    run : facts about the run by name: "prior", "settings", "versions", "host", "likelihood", "end", ...
    ledger : seed and events of the last course.
    times : of the events, in seconds since 1970.
    course : number of the last course, from 1.
    checksums : of the events.
    """

    run: Mapping[str, Any]
    ledger: Ledger = field(repr=False)
    times: tuple[float, ...] = field(repr=False)
    course: int
    checksums: tuple[int, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Snapshot:
    """What a run knew after so many events, as :func:`wsabi.runs.snapshot.packed` writes it."""

    n_events: int
    data: bytes = field(repr=False)


def versions() -> dict[str, str]:
    """Versions of everything on which the digits of a run depend."""
    import scipy

    from wsabi import __version__

    return {
        "wsabi": __version__, "numpy": np.__version__, "scipy": scipy.__version__, "python": platform.python_version(),
        "machine": platform.machine(),
    }  # fmt: skip


class Journal:
    """A run's file, open for writing; nobody else can write to it meanwhile.

    Parameters
    ----------
    path : of the file; it is made where there is none.
    prior : of the run, as :func:`wsabi.priors.as_prior` returns it.
    origin : the seed, or None for whatever the file has.

    Raises
    ------
    JournalError
        If the file is in use, damaged, not a journal, or of another problem; it is left as it was.

    Attributes
    ----------
    past : what the file held when it was opened; None for a new file.
    """

    def __init__(self, path: str | os.PathLike[str], *, prior: Any, settings: Settings, origin: Streams | None) -> None:
        self.path = Path(path)
        problem = {"prior": prior_data(prior), "settings": settings_data(settings)}
        self._lock = Lock(self.path)
        try:
            self.past: Record | None = None
            if self.path.exists() and self.path.stat().st_size:
                self.past = read(self.path)
                _check_same_problem(self.path, self.past, problem, origin)
            else:
                seed = Streams.of(None) if origin is None else origin
                facts = {"versions": versions(), "host": socket.gethostname(), "created": time.time()}
                given = None if origin is None else list(origin.entropy)
                _create(self.path, {**problem, **facts, "entropy": list(seed.entropy), "rng": given})
            self._connection = _connected(self.path)
        except sqlite3.Error as error:
            self._lock.release()
            raise JournalError(f"the journal {self.path} cannot be opened: {error}.") from error
        except BaseException:
            self._lock.release()
            raise
        self._course = 1 if self.past is None else self.past.course
        self._n_written = 0 if self.past is None else len(self.past.ledger.events)
        self._checksum = 0 if self.past is None else _joined(self.past.checksums)  # of all events
        self._writer = f"{socket.gethostname()}:{os.getpid()}"

    @property
    def origin(self) -> Streams:
        """The seed of the run."""
        return Streams(tuple(self.get("entropy")))

    def write(self, events: Sequence[Event]) -> None:
        """Bring the file up to date with all events of the run: those that it has not yet are added to it.

        Raises
        ------
        JournalError
            If it cannot be written (disk full, ...). Nothing is lost that is in ``events``: the next call tries again.
        """
        new = events[self._n_written :]
        if new:
            rows = self._rows(new, self._n_written)
            self._transact(rows)
            self._n_written = len(events)
            self._checksum = _joined((row[-1] for row in rows), self._checksum)

    def begin_course(self, ledger: Ledger, **facts: Any) -> None:
        """Let the run begin anew, with these events; what the file holds so far stays in it."""
        self._course += 1
        rows = self._rows(ledger.events, 0)
        self._transact(rows, {"entropy": list(ledger.origin.entropy), **facts})
        self._n_written = len(ledger.events)
        self._checksum = _joined(row[-1] for row in rows)

    def keep_snapshot(self, n_events: int, data: bytes) -> None:
        """Keep what the run knows after its first ``n_events`` events, in the place of the snapshot before.

        It saves time when the run goes on, and nothing else: the events remain the truth. It is not kept where it is of
        other events than the file has.

        Raises
        ------
        JournalError
            If it cannot be written.
        """
        if n_events == self._n_written:
            row = (1, self._course, n_events, self._checksum, engine(), data, zlib.crc32(data))
            self._transact([], snapshot=row)

    def snapshot(self) -> Snapshot | None:
        """The snapshot in the file, if it is of this engine and of the events that the file had when it was opened."""
        return None if self.past is None else _snapshot(self._connection, self.past)

    def keep(self, x: Array, value: float) -> None:
        """Keep a value that is told only when others are there too, such as the rest of a batch."""
        self._transact([], {_key_of(x): value if np.isfinite(value) else str(value)})

    def kept(self, x: Array) -> float | None:
        """The value kept for x (D,), or None."""
        value = self.get(_key_of(x))
        return None if value is None else float(value)

    def set(self, key: str, value: Any) -> None:
        """Keep a fact about the run; None takes it away."""
        self._transact([], {key: value})

    def get(self, key: str) -> Any:
        """A fact about the run, or None."""
        row = self._connection.execute("SELECT value FROM run WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def check_likelihood(self, name: str) -> None:
        """Keep the name of the likelihood, or refuse another than the file has.

        Raises
        ------
        JournalError
            If the file has another.
        """
        known = self.get("likelihood")
        if known is None:
            self.set("likelihood", name)
        elif known != name:
            raise JournalError(
                f"{self.path} holds a run of the likelihood {known!r}; log_likelihood is {name!r}. Give the journal "
                "another path, or the function its old name."
            )

    def end(self, reason: str, **numbers: float) -> None:
        """Keep why the run ended, and with which numbers."""
        finite = {key: value if np.isfinite(value) else str(value) for key, value in numbers.items()}
        self.set("end", {"reason": reason, "n_events": self._n_written, **finite})

    def close(self) -> None:
        """Close the file and let others write to it; once is enough, and twice does no harm."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()
        self._lock.release()

    def _rows(self, events: Iterable[Event], first: int) -> list[tuple[Any, ...]]:
        rows = []
        for number, event in enumerate(events, first):
            kind, data = event_data(event)
            text = text_of(data)
            now = time.time()
            crc = _checksum(self._course, number, kind, text)
            rows.append((self._course, number, now, self._writer, kind, text, crc))
        return rows

    def _transact(
        self,
        rows: Iterable[tuple[Any, ...]],
        facts: Mapping[str, Any] | None = None,
        snapshot: tuple[Any, ...] | None = None,
    ) -> None:
        """Write events, facts and a snapshot, all or nothing."""
        execute = self._connection.execute
        try:
            execute("BEGIN IMMEDIATE")
            for row in rows:
                # A transaction that was interrupted after its commit is written once more, with the same content.
                execute("INSERT OR REPLACE INTO event VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            if snapshot is not None:
                execute("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?, ?, ?, ?)", snapshot)
            for key, value in (facts or {}).items():
                if value is None:
                    execute("DELETE FROM run WHERE key = ?", (key,))
                else:
                    execute("INSERT OR REPLACE INTO run VALUES (?, ?)", (key, text_of(value)))
            execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise JournalError(
                    f"the journal {self.path} cannot be written: {error}. What it holds so far is safe. Make room for "
                    "it and go on; the attribute result of this error has every evaluation, this one included."
                ) from error
            raise


def read(path: str | os.PathLike[str]) -> Record:
    """What a journal holds, while it is being written or not. The file is not changed.

    Raises
    ------
    JournalError
        If there is no such file, or it is not a journal, or damaged.
    """
    where = Path(path)
    _check_header(where)
    try:
        with contextlib.closing(_connected(where, readonly=True)) as connection:
            _check_content(where, connection)
            run = {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM run")}
            rows = connection.execute(
                "SELECT course, number, at, kind, data, crc FROM event "
                "WHERE course = (SELECT max(course) FROM event) ORDER BY number"
            ).fetchall()
    except (sqlite3.Error, ValueError) as error:
        raise _damaged(where, str(error)) from error
    events: list[Event] = []
    for i, (course, number, _, kind, text, crc) in enumerate(rows):
        if number != i or crc != _checksum(course, number, kind, text):
            raise _damaged(where, f"event {i} of {len(rows)} is not as it was written")
        try:
            events.append(event_from(kind, json.loads(text)))
        except (ValueError, KeyError, TypeError) as error:
            raise _damaged(where, f"event {i} of {len(rows)} cannot be read ({error})") from error
    course = rows[0][0] if rows else 1
    try:
        ledger = Ledger(Streams(tuple(int(word) for word in run["entropy"])), tuple(events))
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(where, "its seed is missing") from error
    return Record(run, ledger, tuple(row[2] for row in rows), course, tuple(row[5] for row in rows))


def read_snapshot(path: str | os.PathLike[str], record: Record) -> Snapshot | None:
    """The snapshot in a journal, if it is of this engine and of the first events of ``record``; else None."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(_connected(Path(path), readonly=True)) as connection:
        return _snapshot(connection, record)
    return None


def _snapshot(connection: sqlite3.Connection, record: Record) -> Snapshot | None:
    with contextlib.suppress(sqlite3.Error):
        row = connection.execute("SELECT course, n_events, of_events, engine, data, crc FROM snapshot").fetchone()
        if row is None:
            return None
        course, n_events, of_events, made_by, data, crc = row
        fits = (course, made_by) == (record.course, engine()) and 0 < n_events <= len(record.checksums)
        if fits and of_events == _joined(record.checksums[:n_events]) and zlib.crc32(data) == crc:
            return Snapshot(n_events, data)
    return None


def engine() -> str:
    """What a snapshot depends on beside the events: versions, source, and the numbers of the engine."""
    numbers = [one.value for one in table()]
    return text_of({**versions(), "source": fingerprint(), "numbers": zlib.crc32(repr(numbers).encode())})


def _joined(checksums: Iterable[int], before: int = 0) -> int:
    """One checksum of several, after ``before``."""
    return zlib.crc32(b"".join(one.to_bytes(4, "big") for one in checksums), before)


def _key_of(x: Array) -> str:
    return f"value at {x.tobytes().hex()}"


def _checksum(course: int, number: int, kind: str, text: str) -> int:
    return zlib.crc32(f"{course} {number} {kind} {text}".encode())


def _damaged(path: Path, why: str) -> JournalError:
    return JournalError(f"{path} is damaged: {why}. It was left as it is. Restore a copy, or give another path.")


def _check_header(path: Path) -> None:
    """Whether a file begins as a journal does, before SQLite is let near it."""
    try:
        with open(path, "rb") as file:
            header = file.read(100)
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}.") from error
    what = None
    if not header.startswith(b"SQLite format 3\x00"):
        what = "it is no SQLite file"
    elif len(header) < 100:
        raise _damaged(path, "it ends within its header")
    elif int.from_bytes(header[68:72], "big") != APPLICATION:
        what = "it is an SQLite file of another program"
    if what is not None:
        raise JournalError(f"{path} is not a journal of wsabi: {what}. It was left as it is. Give another path.")


def _check_content(path: Path, connection: sqlite3.Connection) -> None:
    """Whether the tables are those of a journal, and intact."""
    schema = connection.execute("PRAGMA user_version").fetchone()[0]
    if schema != SCHEMA:
        raise JournalError(
            f"{path} was written by another version of wsabi (format {schema}; this version reads {SCHEMA}). "
            "Read it with that version."
        )
    tables = {row[0] for row in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if tables != set(TABLES):
        raise JournalError(f"{path} is not a journal of wsabi: it has other tables. It was left as it is.")
    verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise _damaged(path, verdict.splitlines()[0])


def _connected(path: Path, *, readonly: bool = False) -> sqlite3.Connection:
    """A connection by which each statement is a transaction, unless it says otherwise."""
    address = f"file:{pathname2url(str(path.resolve()))}?mode={'ro' if readonly else 'rw'}"
    if readonly and not Path(f"{path}-wal").exists():
        address += "&immutable=1"  # nobody writes: no lock, and no files beside it
    # Threads take turns, by the lock of the Integrator.
    connection = sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        if not readonly:
            connection.execute("PRAGMA synchronous = FULL")  # on the disk at every commit: a power cut loses nothing
    except BaseException:
        connection.close()
        raise
    return connection


def _create(path: Path, run: Mapping[str, Any]) -> None:
    """Make a new file; it appears complete or not at all."""
    draft = Path(f"{path}.{os.getpid()}.new")
    try:
        for old in (draft, Path(f"{path}-wal"), Path(f"{path}-shm")):  # of a file that somebody has deleted
            old.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
            for table in TABLES:
                connection.execute(table)
            rows = [(key, text_of(value)) for key, value in run.items()]
            connection.executemany("INSERT INTO run VALUES (?, ?)", rows)
            connection.execute("COMMIT")
            # Set here, once: were a process killed while it sets it in the file itself, readers could not repair that.
            connection.execute("PRAGMA journal_mode = WAL")
        os.replace(draft, path)
    except (sqlite3.Error, OSError) as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise JournalError(f"the journal {path} cannot be made: {error}.") from error


def _check_same_problem(path: Path, past: Record, problem: Mapping[str, Any], origin: Streams | None) -> None:
    for name, given in problem.items():
        found = difference(past.run.get(name), given, name)
        if found is not None:
            raise JournalError(
                f"{path} holds another run: {found}. Give the journal another path, or this run the same {name}."
            )
    if origin is not None and list(origin.entropy) != past.run.get("rng"):
        raise JournalError(
            f"{path} holds a run with another seed than rng. Leave rng out to go on with the run's own, or give the "
            "journal another path."
        )
