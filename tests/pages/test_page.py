"""The page of a result: one file, verdict and warnings first, nothing from elsewhere."""

from __future__ import annotations

import dataclasses
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from scipy import stats

import wsabi
from wsabi.pages.page import report_page, verdict


@pytest.fixture(scope="module")
def result() -> wsabi.Result:
    prior = {"a<b": stats.norm(0, 2), "tau": (0.0, 4.0), "c": stats.norm(0, 1)}
    run = wsabi.integrate(
        lambda p: -2.0 * (p["a<b"] - 1.0) ** 2 - p["tau"] - 0.5 * p["c"] ** 2, prior, budget=120, rng=0
    )
    return dataclasses.replace(run, warnings=(), notes=("It <rains>.",))


class Outline(HTMLParser):
    """Tags in order, whether they are closed, addresses, ids."""

    VOID = frozenset({"meta", "link", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_it_is_one_file_that_needs_nothing(result: wsabi.Result, tmp_path: Path) -> None:
    path = result.to_html(tmp_path / "report.html")
    page = path.read_text(encoding="utf-8")
    assert page == report_page(result)
    outline = Outline()
    outline.feed(page)
    assert outline.open == []  # every tag is closed, in order
    assert not {"script", "img", "iframe", "object"} & set(outline.tags)
    assert all(address.startswith("#") or address == "data:," for address in outline.addresses)
    assert {address[1:] for address in outline.addresses if address.startswith("#")} <= set(outline.ids)
    assert len(set(outline.ids)) == len(outline.ids)
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", page)
    assert len(page.encode()) < 2**20


def test_it_has_the_numbers_the_settings_and_the_seed(result: wsabi.Result) -> None:
    page = report_page(result, title="My <run>")
    assert "<title>My &lt;run&gt;</title>" in page
    assert "a&lt;b" in page
    assert "It &lt;rains&gt;." in page
    assert "<a>" not in page
    assert str(result.ledger.origin.entropy[0]) in page  # type: ignore[union-attr]
    for name in ("acquisition", "numpy", "python", "95 % interval"):
        assert name in page
    assert page.index(verdict(result)) < page.index("<main")


def test_warnings_stand_before_the_numbers(result: wsabi.Result) -> None:
    page = report_page(dataclasses.replace(result, warnings=("The sky is falling.",)))
    assert page.index("The sky is falling.") < page.index("<main")
    assert 'class="verdict doubtful"' in page


def test_verdicts(result: wsabi.Result) -> None:
    def of(**changes: object) -> str:
        return verdict(dataclasses.replace(result, **changes))  # type: ignore[arg-type]

    assert of().endswith("checked by independent points and without a warning.")
    assert of(certificate=None).endswith("unchecked.")
    assert of(warnings=("a",)).endswith("but a warning says that it should not be relied on as it stands.")
    assert "but 2 warnings say" in of(warnings=("a", "b"))
    assert of(reason="running").endswith("so far; the run had not ended.")
    assert "too uncertain to compare models by" in of(log_z_std=3.0)
    assert "too uncertain to compare models by" in of(log_z_std=math.inf)
    assert of(log_z=-math.inf) == "There is no estimate of log Z: see the warnings."


def test_a_result_that_lacks_nearly_everything_has_a_page_too(result: wsabi.Result) -> None:
    bare = dataclasses.replace(
        result, ledger=None, history=(), settings=None, certificate=None, prior=None,
        posterior=dataclasses.replace(result.posterior, diagnostics=None),
    )  # fmt: skip
    page = report_page(bare)
    for words in ("has no history", "Nothing was searched", "There were no check points"):
        assert words in page
