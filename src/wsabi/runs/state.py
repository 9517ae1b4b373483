"""Where a run stands, from its file alone: :class:`RunState`."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from wsabi.ledger import Asked, Climbing, Event, Failed, Logbook, Planned, Told
from wsabi.result import REASONS

if TYPE_CHECKING:
    from wsabi.runs.journal import Record

__all__ = ["RunState"]

Kind = Literal["running", "ended", "failed", "stopped"]


@dataclass(frozen=True)
class RunState:
    """Where a run stands.

    Attributes
    ----------
    kind : "running"; "ended" by itself or by Ctrl-C; "failed" where the likelihood ended it; "stopped" without an end,
        as by a kill.
    words : the same as a clause, such as "ended: the budget of evaluations is spent".
    n_evals, n_failed, n_pending : evaluations that have a value, that failed and have none, that are under way.
    n_zero : evaluations that found zero likelihood.
    best : highest log ℓ; −inf where there is none.
    failures : reasons of the evaluations that failed, the last of them last.
    """

    kind: Kind
    words: str
    n_evals: int
    n_failed: int
    n_pending: int
    n_zero: int
    best: float
    failures: tuple[str, ...] = ()

    @property
    def is_cut_short(self) -> bool:
        """Whether the run ended before it was done, so that one would go on with it."""
        return self.kind in ("failed", "stopped") or self.words == f"ended: {REASONS['interrupted']}"

    @classmethod
    def of(cls, record: Record, held_by: str | None) -> RunState:
        """Of what a file holds, and who is writing to it (:func:`wsabi.runs.lock.holder`)."""
        log = Logbook(record.ledger.origin, record.ledger.events)
        evaluations = list(log.evaluations)
        values = [one.log_l for one in evaluations if one.log_l is not None]
        failures = [one.failure for one in evaluations if one.log_l is None and one.failure is not None]
        kind, words = _kind(record, held_by, values, failures)
        # A point that was evaluated twice counts twice, as it does in a result.
        told = sum(len(event.X) for event in record.ledger.events if isinstance(event, Told))
        n_values, n_failed = told + log.n_bulk, len(failures) + log.n_bulk_failed
        return cls(
            kind, words, n_values, n_failed, len(log.pending) if kind == "running" else 0,
            sum(value == -math.inf for value in values), max(values, default=-math.inf), tuple(failures),
        )  # fmt: skip


def _kind(record: Record, held_by: str | None, values: list[float], failures: list[str]) -> tuple[Kind, str]:
    if held_by is not None:
        return "running", f"running, in {held_by}"
    end = record.run.get("end")
    if end is not None:
        return "ended", f"ended: {REASONS.get(end.get('reason'), 'for a reason that this version does not know')}"
    if failures and _failed_last(record.ledger.events):
        return "failed", f"stopped by a likelihood that failed: {failures[-1].splitlines()[0]}"
    budget = next((event.budget for event in reversed(record.ledger.events) if isinstance(event, Planned)), math.inf)
    if len(values) >= budget and max(values, default=-math.inf) == -math.inf:
        return "failed", "ended without an estimate: every evaluation found zero likelihood"
    return "stopped", "stopped without an end, as by a kill"


def _failed_last(events: tuple[Event, ...]) -> bool:
    """Whether an evaluation has failed since points were last asked for."""
    since = itertools.takewhile(lambda event: not isinstance(event, Asked | Climbing), reversed(events))
    return any(isinstance(event, Failed) for event in since)
