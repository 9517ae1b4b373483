"""A result from the file of a run that may grow: :class:`Follower`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from wsabi._core.threads import single_threaded
from wsabi.errors import JournalError
from wsabi.integrator import Integrator
from wsabi.model import Model
from wsabi.priors import as_prior
from wsabi.replay import repeat, retold, retold_note, retraced
from wsabi.result import Result
from wsabi.runs.data import difference, is_complete, prior_data, prior_from, settings_from
from wsabi.runs.journal import Record, read_snapshot
from wsabi.runs.saved import read_any
from wsabi.settings import Settings

__all__ = ["Follower"]


class Follower:
    """The file of a run, which can be read again while the run goes on: only what is new in it is then replayed.

    The file is opened for reading, for a moment at a time, so that the run never waits.

    Parameters
    ----------
    path, prior : as of :func:`wsabi.load`.

    Attributes
    ----------
    record : what the file held when it was last read.
    """

    def __init__(self, path: str | os.PathLike[str], *, prior: Any = None) -> None:
        self.path = Path(path)
        self._seen = self._signature()
        self.record = read_any(path)
        run = self.record.run
        self._integrator = Integrator(_prior(path, run["prior"], prior), settings=_settings(path, run))
        self._n_replayed = 0
        self._is_retold = False

    def has_news(self) -> bool:
        """Whether the file has changed since it was last read; costs next to nothing."""
        return self._signature() != self._seen

    def read(self) -> Record:
        """What the file holds now."""
        before = self.record
        self._seen = self._signature()
        self.record = read_any(self.path)
        if before.course != self.record.course or before.ledger.origin != self.record.ledger.origin:
            self._n_replayed, self._is_retold = 0, False  # another run, or the same one told again
        return self.record

    def result(self) -> Result:
        """The result of what was last read.

        Raises
        ------
        NoMassFound
            If there is no finite value yet.
        """
        self._catch_up()
        run, events = self.record.run, self.record.ledger.events
        notes = []
        if self._is_retold:
            notes.append(
                "The run could not be replayed here (other versions or another machine than "
                f"{', '.join(f'{name} {version}' for name, version in run['versions'].items())}): its evaluations were "
                "taken as told, its searches and check points were not."
            )
        elif run.get("retold"):
            notes.append(retold_note(run["retold"]))
        end = run.get("end") or {}
        is_last = end.get("n_events") == len(events)
        result = self._integrator.result(reason=end["reason"] if is_last else "running")
        if is_last:
            saved = float(end["log_z"]), float(end["log_z_std"])
            if not notes and (result.log_z, result.log_z_std) != saved:
                notes.append(
                    f"The file says log Z = {saved[0]:.6g} ± {saved[1]:.2g}; the same evaluations give "
                    f"{result.log_z:.6g} ± {result.log_z_std:.2g} here (other versions or another machine)."
                )
            result = replace(result, seconds=float(end.get("seconds", result.seconds)))
        return replace(result, notes=(*result.notes, *notes))

    @single_threaded
    def _catch_up(self) -> None:
        """Replay what has happened since the last time; from a snapshot or the beginning where that is not possible."""
        ledger, n_done = self.record.ledger, self._n_replayed
        integrator, begin = self._integrator, self._integrator.new_course
        self._n_replayed = 0  # were this interrupted, all would be replayed the next time
        if not (n_done and not self._is_retold and repeat(integrator.course, ledger.events[n_done:])):
            course = (
                None if self._is_retold or n_done else retraced(begin, ledger, read_snapshot(self.path, self.record))
            )
            self._is_retold = course is None
            integrator.course = retold(begin, ledger) if course is None else course
        self._n_replayed = len(ledger.events)

    def _signature(self) -> tuple[tuple[int, int], ...]:
        """Size and time of the file, and of the log beside it into which SQLite writes first."""
        found = []
        for path in (self.path, Path(f"{self.path}-wal")):
            with contextlib.suppress(OSError):
                stat = path.stat()
                found.append((stat.st_size, stat.st_mtime_ns))
        return tuple(found)


def _prior(path: str | os.PathLike[str], stored: Any, given: Any) -> Any:
    """The prior of a file, or the one given in its place."""
    if given is None:
        if not is_complete(stored):
            raise JournalError(
                f"{path} holds a run whose prior contains functions ({stored['type']}), which no file can hold: pass "
                f"the same prior again, wsabi.load({str(path)!r}, prior=...)."
            )
        try:
            return prior_from(stored)
        except (ValueError, TypeError, KeyError) as error:
            raise JournalError(f"{path} holds a prior that this version of wsabi cannot read: {error}.") from error
    prior = as_prior(given.prior if isinstance(given, Model) else given)
    found = difference(stored, prior_data(prior), "prior")
    if found is not None:
        raise JournalError(f"{path} holds a run with another prior: {found}.")
    return prior


def _settings(path: str | os.PathLike[str], run: Mapping[str, Any]) -> Settings:
    """The settings of a file, which a later version of the package may have written."""
    try:
        return settings_from(run["settings"])
    except (ValueError, TypeError, KeyError) as error:
        made = run.get("versions", {}).get("wsabi", "of another version")
        raise JournalError(
            f"{path} holds settings that this version of wsabi cannot read: {error}. Read it with wsabi {made}."
        ) from error
