"""One process at a time: a lock beside a file, which says who holds it and ends with the process, however it ends."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

from wsabi.errors import JournalError

__all__ = ["Lock", "holder"]

# Files that this process holds, by path. A record lock belongs to the process: it does not keep out a second opening of
# the same file in one process, and closing any second handle would end it.
_held: dict[str, int] = {}


class Lock:
    """The right to write to ``path``, from the moment this is built until :meth:`release` or the end of the process.

    Raises
    ------
    JournalError
        If another process, or another object of this process, holds it.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(f"{path}.lock")
        self._key = str(self.path.resolve())
        if _held.get(self._key) == os.getpid():
            raise JournalError(f"{path} is already in use in this process; close it first (Integrator.close).")
        self._file = self._acquired(path)
        who = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
        os.ftruncate(self._file, 0)
        os.write(self._file, json.dumps(who).encode())
        _held[self._key] = os.getpid()

    def _acquired(self, path: Path) -> int:
        while True:
            try:
                file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                raise JournalError(f"the lock {self.path} cannot be made: {error.strerror}.") from error
            if not _lock(file):
                os.close(file)
                raise JournalError(
                    f"{path} is in use by {_described(_content(self.path))}. Wait until it has ended, or stop it."
                )
            # Whoever held the lock before may have removed the file between our opening and locking it.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), os.stat(self.path)):
                    return file
            os.close(file)

    def release(self) -> None:
        """Let others write."""
        if _held.get(self._key) != os.getpid():  # released before, or inherited by a fork
            return
        del _held[self._key]
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        os.close(self._file)


def holder(path: Path) -> str | None:
    """Who holds the lock beside a file, in words; None where nobody does."""
    lock = Path(f"{path}.lock")
    if _held.get(str(lock.resolve())) == os.getpid():
        return "this process"
    try:
        file = os.open(lock, os.O_RDWR)
    except OSError:
        return None
    try:
        return None if _lock(file) else _described(_content(lock))
    finally:
        os.close(file)


def _content(lock: Path) -> dict[str, Any]:
    try:
        found = json.loads(lock.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _described(who: dict[str, Any]) -> str:
    if "pid" not in who:
        return "another process"
    return f"process {who['pid']} on {who.get('host')} since {who.get('since')}"


def _lock(file: int) -> bool:
    """Take the lock of an open file, if it is free."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(file, 1 << 20, os.SEEK_SET)  # a byte beyond the text, which others may then read
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(file, 0, os.SEEK_SET)
        return True
    import fcntl

    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
