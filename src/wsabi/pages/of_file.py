"""The page of a run's file, whatever is in it: a result, a run under way, one that failed, or nothing yet."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import replace
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

from wsabi.errors import JournalError, NumericalError
from wsabi.following import Follower
from wsabi.ledger import Planned
from wsabi.pages.document import Content, Mood, Section, table
from wsabi.pages.page import result_content, versions_text
from wsabi.runs.display import UNLIMITED
from wsabi.runs.journal import Record
from wsabi.runs.lock import holder
from wsabi.runs.saved import read_any
from wsabi.runs.state import RunState

__all__ = ["RunFile"]

MOST_REASONS = 12  # of failed evaluations that are listed


class RunFile:
    """A journal or a saved result, and its page. It is read again by :meth:`read`, which replays only what is new.

    Parameters
    ----------
    path : of the file; it may be unreadable, which the page then says.
    prior : where the file cannot hold it, as for :func:`wsabi.load`.

    Attributes
    ----------
    record : what the file held when it was last read; None where it could not be read.
    problem : why there can be no result, such as that the file is damaged; empty where nothing stands in the way.
    """

    def __init__(self, path: Path, *, prior: Any = None) -> None:
        self.path = path
        self.record: Record | None = None
        self.problem = ""
        self._prior = prior
        self._follower: Follower | None = None
        self._held_by: str | None = None
        self._read_at = 0.0
        self.read()

    def has_news(self) -> bool:
        """Whether the file has changed, or who writes to it; what could not be read is always tried again."""
        return self._follower is None or self._follower.has_news() or holder(self.path) != self._held_by

    def read(self) -> None:
        """Read what the file holds now."""
        self._held_by, self._read_at, self.problem = holder(self.path), time.time(), ""
        try:
            if self._follower is not None:
                begun = self._follower.record.run.get("created")
                if self._follower.read().run.get("created") != begun:
                    self._follower = None  # another run has taken the place of the first
            if self._follower is None:
                self._follower = Follower(self.path, prior=self._prior)
            self.record = self._follower.record
        except JournalError as error:
            self._follower, self.problem = None, str(error)
            try:
                self.record = read_any(self.path)
            except JournalError:
                self.record = None

    @property
    def state(self) -> RunState | None:
        """Where the run stands; None where the file could not be read."""
        return None if self.record is None else RunState.of(self.record, self._held_by)

    def content(self) -> Content:
        """What stands on the page. The run is replayed, as far as that is new."""
        state = self.state
        title = f"wsabi: {self.path.name}"
        if self.record is None or state is None:
            return Content(title, f"This file cannot be read: {self.problem}", "doubtful", (), "", self.state_html())
        about = self._about(self.record, state)
        if self._follower is not None:
            try:
                whole = result_content(self._follower.result(), title, self.record.run.get("versions", {}))
                return replace(
                    whole, sections=(*whole.sections[:-1], *about, whole.sections[-1]), state=self.state_html()
                )
            except NumericalError as error:  # nothing but zero likelihood among it
                self.problem = str(error)
        verdict, mood = _without_result(state, self.problem)
        return Content(title, verdict, mood, about, "", self.state_html())

    def state_html(self) -> str:
        """Where the run stands, in a few lines of HTML; costs no replay."""
        state, read_at = self.state, _clock(self._read_at)
        if self.record is None or state is None:
            return f'<div class="state"><p class="counts">{escape(str(self.path))}, as of {read_at}</p></div>'
        sentence = f"{state.words[:1].upper()}{state.words[1:]}."
        how = f" It goes on with <code>wsabi resume {escape(str(self.path))}</code>." if state.is_cut_short else ""
        budget = _budget(self.record, state)
        bar = ""
        if state.kind == "running" and budget is not None:
            done = state.n_evals + state.n_failed
            bar = f'<progress max="{budget}" value="{done}" aria-label="evaluations made"></progress>'
        return (
            f'<div class="state {state.kind}"><p role="status">{escape(sentence)}{how}</p>{bar}'
            f'<p class="counts">{escape(_counts(state, budget))}; as of {read_at}</p></div>'
        )

    def _about(self, record: Record, state: RunState) -> tuple[Section, ...]:
        """The sections on the run itself."""
        run = record.run
        created = run.get("created")
        begun = "" if created is None else f"{_clock(float(created))}, on {run.get('host', 'an unknown machine')}"
        rows = [
            ("file", str(self.path)),
            ("state", state.words),
            ("begun", begun),
            ("likelihood", str(run.get("likelihood") or "")),
            ("evaluations", _counts(state, _budget(record, state))),
            ("run with", versions_text(run.get("versions") or {})),
            ("seed", " ".join(map(str, record.ledger.origin.entropy))),
        ]  # fmt: skip
        sections = [Section("run", "Run", table([(name, escape(text)) for name, text in rows if text]))]
        if state.failures:
            sections.insert(0, Section("failures", "Failed evaluations", _failures(state)))
        return tuple(sections)


def _without_result(state: RunState, problem: str) -> tuple[str, Mood]:
    """The verdict on a run that has no result to show, and its mood."""
    yet = " yet" if state.kind == "running" else ""
    none = f"There is no estimate of log Z{yet}:"
    if state.n_evals == 0 and state.n_failed == 0:
        return f"{none} nothing {'has been' if yet else 'was'} evaluated.", "open"
    if state.n_evals == 0:
        return f"{none} every evaluation failed.", "doubtful"
    if state.n_zero == state.n_evals:
        return f"{none} all {state.n_evals} evaluations found zero likelihood.", "open" if yet else "doubtful"
    return f"{none} {problem}", "doubtful"


def _counts(state: RunState, budget: int | None) -> str:
    """Evaluations in a clause: "57 of at most 500 evaluations, 8 under way, 2 failed, best log ℓ −12.3"."""
    most = "" if budget is None else f" of at most {budget}"
    words = [f"{state.n_evals}{most} evaluations"]
    words += [f"{n} {what}" for n, what in ((state.n_pending, "under way"), (state.n_failed, "failed")) if n]
    words += [f"{state.n_zero} with zero likelihood"] if state.n_zero else []
    words += [f"best log ℓ {state.best:.6g}"] if math.isfinite(state.best) else []
    return ", ".join(words)


def _budget(record: Record, state: RunState) -> int | None:
    """Evaluations that the run may reach; None where it was not told, only its time is limited, or bulk goes beyond."""
    planned = [event.budget for event in record.ledger.events if isinstance(event, Planned)]
    least = max(state.n_evals + state.n_failed, 1)
    return planned[-1] if planned and least <= planned[-1] < UNLIMITED else None


def _failures(state: RunState) -> str:
    """What went wrong, the most frequent first, each with the last evaluation that it happened to."""
    last = {_what_failed(reason): reason for reason in state.failures}
    counted = Counter(map(_what_failed, state.failures)).most_common()
    items = "".join(
        f'<details id="failure-{k}"><summary>{escape(what)} ({_times(n)})</summary>'
        f'<pre class="scroll" tabindex="0" role="region" aria-label="failure {k}">{escape(last[what])}</pre></details>'
        for k, (what, n) in enumerate(counted[:MOST_REASONS], start=1)
    )
    more = len(counted) - MOST_REASONS
    return items + (f"<p>and {more} other reasons.</p>" if more > 0 else "")


def _what_failed(reason: str) -> str:
    """The error itself, without the point at which it happened: the last line of its traceback."""
    return reason.strip().splitlines()[-1] if reason.strip() else "no reason given"


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%d %B %Y, %H:%M:%S %Z")
