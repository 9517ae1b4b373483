"""A result in a file: the ledger of its run with prior and settings, as JSON data, and the final numbers.

The models and the posterior are not in the file: they follow from the ledger, by replay, when it is loaded.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wsabi._core.types import Streams
from wsabi.errors import JournalError
from wsabi.ledger import Ledger
from wsabi.runs.data import event_data, event_from, prior_data, settings_data, text_of
from wsabi.runs.journal import Record, read, versions

if TYPE_CHECKING:
    from wsabi.result import Result

__all__ = ["read_any", "save"]

FORMAT, SCHEMA = "wsabi result", 1
INTO = "json"  # the member of an .npz file that has everything; the others are for other programs


def save(result: Result, path: str | os.PathLike[str]) -> None:
    """Write a result to ``path``, which ends in .json or .npz; see :meth:`wsabi.Result.save`."""
    where = Path(path)
    if where.suffix not in (".json", ".npz"):
        raise ValueError(f"path must end in .json or .npz; got {str(path)!r}.")
    if result.ledger is None or result.settings is None:
        raise TypeError(
            f"this result (method {result.method!r}) has no ledger, from which it could be loaded: save the result "
            "of the run itself, and take with_prior after loading."
        )
    content = {
        "prior": prior_data(result.prior),
        "settings": settings_data(result.settings),
        "versions": versions(),
        "entropy": list(result.ledger.origin.entropy),
        "events": [list(event_data(event)) for event in result.ledger.events],
        "end": {
            "reason": result.reason, "seconds": result.seconds, "log_z": _or_text(result.log_z),
            "log_z_std": _or_text(result.log_z_std), "n_events": len(result.ledger.events),
        },
    }  # fmt: skip
    text = text_of(content)
    # The checksum is of the text of the content, which is the same however the file around it is laid out.
    whole = text_of({"format": FORMAT, "schema": SCHEMA, "crc": zlib.crc32(text.encode()), "run": content})
    draft = where.with_name(f"{where.name}.{os.getpid()}.new")
    try:
        if where.suffix == ".json":
            draft.write_text(whole + "\n", encoding="utf-8")
        else:
            packed, names = np.frombuffer(whole.encode(), np.uint8), np.array(result.names)
            points, log_l = result.points, result.log_likelihoods
            with open(draft, "wb") as file:
                np.savez_compressed(file, points=points, log_likelihoods=log_l, names=names, json=packed)
        os.replace(draft, where)
    finally:
        draft.unlink(missing_ok=True)


def _or_text(value: float) -> float | str:
    return value if np.isfinite(value) else str(value)


def read_any(path: str | os.PathLike[str]) -> Record:
    """What a saved result or a journal holds.

    Raises
    ------
    JournalError
        If it is neither, or damaged.
    """
    where = Path(path)
    try:
        with open(where, "rb") as file:
            start = file.read(16)
        if not start:
            raise JournalError(f"{where} is empty: no run has written to it.")
        if start.startswith(b"SQLite format 3"):
            return read(where)
        whole = _text_of_npz(where) if start.startswith(b"PK") else where.read_text(encoding="utf-8")
        found = json.loads(whole)
    except OSError as error:
        raise JournalError(f"{where} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise JournalError(f"{where} is neither a saved result nor a journal of wsabi, or it is damaged.") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise JournalError(f"{where} is neither a saved result nor a journal of wsabi.")
    if found.get("schema") != SCHEMA:
        raise JournalError(
            f"{where} was written by another version of wsabi (format {found.get('schema')}; this version reads "
            f"{SCHEMA}). Read it with that version."
        )
    run = found.get("run")
    if not isinstance(run, dict) or zlib.crc32(text_of(run).encode()) != found.get("crc"):
        raise JournalError(f"{where} is damaged: its content is not as it was written.")
    return _record(run)


def _text_of_npz(path: Path) -> str:
    with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
        return bytes(file[INTO]).decode("utf-8")


def _record(run: Mapping[str, Any]) -> Record:
    events = tuple(event_from(kind, data) for kind, data in run["events"])
    ledger = Ledger(Streams(tuple(run["entropy"])), events)
    return Record({key: value for key, value in run.items() if key != "events"}, ledger, (), 1)
