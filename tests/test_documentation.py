"""Pages hang together: every relative link and anchor leads somewhere, and the site's navigation has every page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
AT_ROOT = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md"]
PAGES = [ROOT / name for name in AT_ROOT] + sorted((ROOT / "docs").rglob("*.md"))
MADE = {"changelog.md", "contributing.md", "code-of-conduct.md"}  # of files at the root, by .ci/site_hooks.py
CODE = re.compile(r"^(```|~~~).*?^\1[ ]*$|(?<!`)(`+)(?!`).+?(?<!`)\2(?!`)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
PYTHON = re.compile(r"^```python[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
FENCE = re.compile(r"^```.*?^```[ ]*$", re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """The anchors of the headings, as code forges and the site make them."""
    found: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.add(slug if slug not in found else f"{slug}-1")
    return found


def broken(page: Path, text: str) -> list[str]:
    """The relative links of a page that lead nowhere."""
    wrong = []
    for link in LINK.findall(CODE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name
        if not target.exists() or (anchor and anchor not in anchors(text if not name else target.read_text("utf-8"))):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_anchors_lead_somewhere(page):
    assert not broken(page, page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_blocks_are_python(page):
    for block in PYTHON.findall(page.read_text(encoding="utf-8")):
        if "--8<--" not in block:  # a file that the site includes
            compile(block, page.name, "exec")


def test_a_broken_link_is_seen():
    text = (
        "# Here\n[a](glossary.md) [b](glossary.md#nowhere) [c](gone.md) `[d](gone.md)` [e](http://x) [f](#here) [g](#x)"
    )
    assert broken(ROOT / "docs" / "index.md", text) == ["glossary.md#nowhere", "gone.md", "#x"]


def test_the_navigation_has_every_page_once():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2].partition("\n\n")[0]
    listed = re.findall(r"([\w/-]+\.md)$", text, re.MULTILINE)
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert len(listed) == len(set(listed))
    assert set(listed) == pages | MADE


def test_coverage_in_the_readme_is_that_of_the_experiments():
    measured = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shares = re.findall(r"\d+ of \d+", readme.partition("## How well it works")[2].partition("\n## ")[0])
    assert len(shares) >= 4
    assert [share for share in shares if share not in measured] == []


def test_what_is_cited_is_what_is_released():
    import wsabi

    assert f"\nversion: {wsabi.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
