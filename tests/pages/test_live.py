"""The live page is made again when there is something new, and not too often."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from wsabi.pages.document import Content
from wsabi.pages.live import LivePage


def test_the_page_rests_between_pieces_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that took a second to make is not made again within three, however often it is asked to."""
    now = [1000.0]
    monkeypatch.setattr("wsabi.pages.live.time.monotonic", lambda: now[0])
    made: list[float] = []

    class File:
        path = Path("run.db")

        def has_news(self) -> bool:
            return True

        def read(self) -> None:
            pass

        def state_html(self) -> str:
            return ""

        def content(self) -> object:
            made.append(now[0])
            now[0] += 1.0
            return Content("", "", "open", ())

    page = LivePage(File())  # type: ignore[arg-type]
    for _ in range(40):
        page.refresh()
        now[0] += 0.5
    assert len(made) == 7  # in 27 seconds
    assert min(b - a for a, b in itertools.pairwise(made)) >= 4.0
