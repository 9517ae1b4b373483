"""A result from a file: :func:`load`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsabi.result import Result

__all__ = ["load"]


def load(path: str | os.PathLike[str], *, prior: Any = None) -> Result:
    """The result in a file: of :meth:`wsabi.Result.save`, or the journal of a run, also while that goes on.

    The run is replayed, without the likelihood. The result is the saved one to the last bit on the machine and with the
    versions that saved it. Where another machine or version takes another course, the evaluations are taken as told,
    and a note says so.

    Parameters
    ----------
    prior : the prior of the run, where it contains functions (``Transform``, ``LogDensity``), which no file holds;
        other priors come from the file. Or the :class:`~wsabi.Model` of the run.

    Raises
    ------
    JournalError
        If the file cannot be read, or needs ``prior``, or has another.
    NoMassFound
        If the file holds no finite value.
    """
    from wsabi.following import Follower  # imported here, as it loads the engine

    return Follower(path, prior=prior).result()
