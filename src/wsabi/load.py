"""A result from a file: :func:`load`."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from wsabi._core.threads import single_threaded
from wsabi.errors import JournalError
from wsabi.integrator import Integrator
from wsabi.model import Model
from wsabi.priors import as_prior
from wsabi.replay import replayed, retold, retold_note
from wsabi.result import Result
from wsabi.runs.data import difference, is_complete, prior_data, prior_from, settings_from
from wsabi.runs.saved import read_any

__all__ = ["load"]


@single_threaded
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
    record = read_any(path)
    run = record.run
    integrator = Integrator(_prior(path, run["prior"], prior), settings=settings_from(run["settings"]))
    notes = []
    course = replayed(integrator.new_course, record.ledger)
    integrator.course = retold(integrator.new_course, record.ledger) if course is None else course
    if course is None:
        notes.append(
            "The run could not be replayed here (other versions or another machine than "
            f"{', '.join(f'{name} {version}' for name, version in run['versions'].items())}): its evaluations were "
            "taken as told, its searches and check points were not."
        )
    elif run.get("retold"):
        notes.append(retold_note(run["retold"]))
    end = run.get("end") or {}
    is_last = end.get("n_events") == len(record.ledger.events)
    result = integrator.result(reason=end["reason"] if is_last else "running")
    if is_last:
        saved = float(end["log_z"]), float(end["log_z_std"])
        if not notes and (result.log_z, result.log_z_std) != saved:
            notes.append(
                f"The file says log Z = {saved[0]:.6g} ± {saved[1]:.2g}; the same evaluations give "
                f"{result.log_z:.6g} ± {result.log_z_std:.2g} here (other versions or another machine)."
            )
        result = replace(result, seconds=float(end.get("seconds", result.seconds)))
    return replace(result, notes=(*result.notes, *notes))


def _prior(path: str | os.PathLike[str], stored: Any, given: Any) -> Any:
    """The prior of a file, or the one given in its place."""
    if given is None:
        if not is_complete(stored):
            raise JournalError(
                f"{path} holds a run whose prior contains functions ({stored['type']}), which no file can hold: pass "
                f"the same prior again, wsabi.load({str(path)!r}, prior=...)."
            )
        return prior_from(stored)
    prior = as_prior(given.prior if isinstance(given, Model) else given)
    found = difference(stored, prior_data(prior), "prior")
    if found is not None:
        raise JournalError(f"{path} holds a run with another prior: {found}.")
    return prior
