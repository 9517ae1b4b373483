"""The page: one file, verdict and warnings first, nothing from elsewhere; and in a browser, where there is one."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import wsabi
from wsabi.pages.page import report_page, verdict
from wsabi.posterior.posterior import Posterior
from wsabi.posterior.weighted import WeightedSamples

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


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
    assert page.index(verdict(result)) < page.index("<main>")


def test_warnings_stand_before_the_numbers(result: wsabi.Result) -> None:
    page = report_page(dataclasses.replace(result, warnings=("The sky is falling.",)))
    assert page.index("The sky is falling.") < page.index("<main>")
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


# -- in a browser -----------------------------------------------------------------------------------------------------

MEASURE = """<script>
const ratio = (a, b) => {
  const light = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
    .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2] };
  const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05) };
addEventListener('load', () => {
  const style = e => getComputedStyle(e), body = style(document.body);
  const focusable = [...document.querySelectorAll('a[href], [tabindex]')];
  const smallest = [...document.querySelectorAll('figure text')].map(t => {
    const s = t.ownerSVGElement; return parseFloat(style(t).fontSize) * s.clientWidth / s.viewBox.baseVal.width });
  const verdict = style(document.querySelector('.verdict'));
  const found = { width: innerWidth, overflow: document.documentElement.scrollWidth - innerWidth,
    background: body.backgroundColor, contrast: ratio(body.color, body.backgroundColor),
    verdict: ratio(verdict.color, verdict.backgroundColor), smallest: Math.min(...smallest),
    pictures: [...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width > 5).length,
    first: focusable[0].className, focused: focusable.every(e => { e.focus(); return document.activeElement === e }),
    regions: focusable.filter(e => e.matches('.scroll')).every(e => e.getAttribute('aria-label')) };
  const pre = document.createElement('pre'); pre.id = 'found'; pre.textContent = JSON.stringify(found);
  document.body.append(pre) });
</script></head>"""


def measured(page: str, folder: Path, width: int, *, dark: bool) -> dict[str, object]:
    """What a browser makes of the page, by a script that only this copy has."""
    assert CHROMIUM is not None
    copy = folder / "copy.html"
    copy.write_text(page.replace("</head>", MEASURE), encoding="utf-8")
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900", "--enable-logging=stderr",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--dump-dom", copy.as_uri(),
    ]  # fmt: skip
    home = os.environ | {"HOME": str(folder)}
    run = subprocess.run(command, env=home, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in run.stderr, run.stderr
    text = re.search(r'<pre id="found">(.*?)</pre>', run.stdout, re.S)
    assert text is not None, run.stdout[-500:]
    return dict(json.loads(text.group(1)))


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found (Debian: apt-get install chromium)")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_in_a_browser(result: wsabi.Result, tmp_path: Path, width: int, dark: bool) -> None:
    """It renders without complaint, fits the width, can be read, and every link and wide part takes the focus."""
    found = measured(report_page(result), tmp_path, width, dark=dark)
    assert found["overflow"] <= 0  # type: ignore[operator]
    assert found["width"] <= max(width, 500)  # type: ignore[operator]  # some versions have no narrower window
    assert found["background"] == ("rgb(20, 23, 26)" if dark else "rgb(255, 255, 255)")
    assert min(found["contrast"], found["verdict"]) >= 4.5  # type: ignore[type-var]  # WCAG 2.1, AA
    assert found["smallest"] >= 8.5  # type: ignore[operator]  # pixels of text in a picture
    assert found["pictures"] >= 10  # type: ignore[operator]
    assert found["first"] == "skip"
    assert found["focused"]
    assert found["regions"]


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found (Debian: apt-get install chromium)")
def test_twelve_parameters_fit_a_phone(result: wsabi.Result, tmp_path: Path) -> None:
    points = np.random.default_rng(0).normal(size=(300, 12))
    wide = Posterior(WeightedSamples(points, np.full(300, 1 / 300), tuple(f"parameter_{d}" for d in range(12))))
    page = report_page(dataclasses.replace(result, posterior=wide, warnings=("The sky is falling.",)))
    assert len(page.encode()) < 2**21
    found = measured(page, tmp_path, 390, dark=False)
    assert found["overflow"] <= 0  # type: ignore[operator]
    assert found["verdict"] >= 4.5  # type: ignore[operator]
