"""Pages in headless Chromium, where one is found: they can be read, reached by keys, and follow a run by themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import wsabi
from browser import CHROMIUM, WHY_SKIPPED, Browser
from wsabi.pages.live import LivePage
from wsabi.pages.of_file import RunFile
from wsabi.pages.page import report_page
from wsabi.pages.serving import served
from wsabi.posterior.posterior import Posterior
from wsabi.posterior.weighted import WeightedSamples

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason=WHY_SKIPPED)]

LOOKS = [(390, False), (390, True), (1280, False), (1280, True)]
MEASURE = """(() => {
const ratio = (a, b) => {
  const light = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
    .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2] };
  const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05) };
const style = e => getComputedStyle(e), page = style(document.body).backgroundColor;
const own = e => style(e).backgroundColor;
const behind = e => !e ? page : own(e) === 'rgba(0, 0, 0, 0)' ? behind(e.parentElement) : own(e);
const words = 'p, li, th, td, h1, h2, a, summary';
const texts = [...document.querySelectorAll(words)].filter(e => e.getClientRects().length);
const sizes = [...document.querySelectorAll('figure text')].map(t => {
  const s = t.ownerSVGElement; return parseFloat(style(t).fontSize) * s.clientWidth / s.viewBox.baseVal.width });
return { width: innerWidth, overflow: document.documentElement.scrollWidth - innerWidth, background: page,
  contrast: Math.min(...texts.map(e => ratio(style(e).color, behind(e)))), smallest: Math.min(...sizes),
  pictures: [...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width > 5).length,
  unnamed: [...document.querySelectorAll('.scroll')].filter(e => !e.getAttribute('aria-label')).length } })()"""
FOCUS = "document.activeElement.getAttribute('href') || document.activeElement.getAttribute('aria-label')"
SHOWN = "document.getElementById('corner').getBoundingClientRect().top"
REACHABLE = "[...document.querySelectorAll('a[href], [tabindex=\"0\"], summary')].length"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def result() -> wsabi.Result:
    prior = {"a<b": stats.norm(0, 2), "tau": (0.0, 4.0), "c": stats.norm(0, 1)}
    run = wsabi.integrate(
        lambda p: -2.0 * (p["a<b"] - 1.0) ** 2 - p["tau"] - 0.5 * p["c"] ** 2, prior, budget=120, rng=0
    )
    return dataclasses.replace(run, warnings=(), notes=("It <rains>.",))


def check_look(browser: Browser, width: int, *, dark: bool) -> dict[str, Any]:
    """What holds of every page at every width, in the dark and in the light."""
    browser.look(width, dark=dark)
    found: dict[str, Any] = browser.run(MEASURE)
    assert found["width"] == width
    assert found["overflow"] <= 0
    assert found["background"] == ("rgb(20, 23, 26)" if dark else "rgb(255, 255, 255)")
    assert found["contrast"] >= 4.5  # WCAG 2.1, AA
    assert found["unnamed"] == 0
    assert browser.complaints == []
    return found


def opened(browser: Browser, page: str, folder: Path) -> None:
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    browser.look(1280)
    browser.open(path.as_uri())


def test_a_report_can_be_read_anywhere(browser: Browser, result: wsabi.Result, tmp_path: Path) -> None:
    opened(browser, report_page(result), tmp_path)
    for width, dark in LOOKS:
        found = check_look(browser, width, dark=dark)
        assert found["smallest"] >= 8.5  # pixels of text in a picture
        assert found["pictures"] >= 10


def test_every_link_and_wide_part_is_reached_by_keys(browser: Browser, result: wsabi.Result, tmp_path: Path) -> None:
    opened(browser, report_page(result), tmp_path)
    met = []
    for _ in range(browser.run(REACHABLE)):
        browser.press("Tab")
        met.append(browser.run(FOCUS))
    assert met[0] == "#main"  # the way past the links
    assert met[1:8] == ["#result", "#posterior", "#convergence", "#corner", "#searches", "#check", "#settings"]
    assert met[8:] == ["table of the parameters", "densities of the parameters"]
    browser.run("document.querySelector('a[href=\"#check\"]').focus()")
    browser.press("Enter")
    browser.wait("scrollY > 500")


def test_twelve_parameters_fit_a_phone(browser: Browser, result: wsabi.Result, tmp_path: Path) -> None:
    points = np.random.default_rng(0).normal(size=(300, 12))
    wide = Posterior(WeightedSamples(points, np.full(300, 1 / 300), tuple(f"parameter_{d}" for d in range(12))))
    page = report_page(dataclasses.replace(result, posterior=wide, warnings=("The sky is falling.",)))
    assert len(page.encode()) < 2**21
    opened(browser, page, tmp_path)
    check_look(browser, 390, dark=False)


def test_a_live_page_follows_the_run(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    integrator = wsabi.Integrator(wsabi.Gaussian([0.0, 0.0], names=["a", "b"]), rng=0, journal=path)
    page = LivePage(RunFile(path), pause=0.1)
    page.refresh()
    with served(page) as address:
        browser.look(1280)
        browser.open(address)
        assert "Running" in browser.run("document.querySelector('.state').textContent")
        assert "nothing has been evaluated" in browser.run("document.querySelector('.verdict').textContent")
        told(integrator, 30)
        integrator.tell_failure(integrator.ask(1)[0], "ValueError: boom")
        refreshed(page)
        browser.wait("document.querySelector('.verdict').textContent.includes('log Z = ')")
        assert "30 evaluations, 1 failed" in browser.run("document.querySelector('.counts').textContent")
        for width, dark in LOOKS:
            check_look(browser, width, dark=dark)
        # What a reader has focused, opened and scrolled stays as it is when the page changes.
        browser.look(390)
        browser.run("document.querySelector('details').open = true")
        browser.run("document.querySelector('.scroll').scrollLeft = 40; document.querySelector('.scroll').focus()")
        browser.run("document.getElementById('corner').scrollIntoView({behavior: 'instant'})")
        browser.settle()
        shown = browser.run(SHOWN)
        told(integrator, 5)
        integrator.close()
        refreshed(page)
        browser.wait("document.querySelector('.verdict').textContent.includes('35 evaluations')")
        assert "Stopped without an end" in browser.run("document.querySelector('.state').textContent")
        assert browser.run(FOCUS) == "table of the parameters"
        kept = "[document.querySelector('details').open, document.querySelector('.scroll').scrollLeft]"
        assert browser.run(kept) == [True, 40]
        assert abs(browser.run(SHOWN) - shown) <= 1.0  # pixels, though what stands above has another height
        assert browser.run("document.getElementById('lost').hidden")
        assert browser.complaints == []
    browser.wait("!document.getElementById('lost').hidden")


def told(integrator: wsabi.Integrator, n: int) -> None:
    for _ in range(n):
        x = integrator.ask(1)
        integrator.tell(x, [-0.5 * float(x[0] @ x[0])])


def refreshed(page: LivePage) -> None:
    """Up to date at once: the pauses between pieces of work are over."""
    page._read_after = page._made_after = 0.0
    page.refresh()
