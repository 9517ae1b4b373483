"""Hooks of mkdocs.yml: pages made of files at the root of the repository, and links that lead to such files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
# Files at the root, which a code forge shows where they are, and the pages that they become.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
}
TARGETS = {**PAGES, "README.md": "index.md"}
WITHOUT_NEIGHBOURS = {"index.md", "quickstart.md"}  # pages beside which a list of pages would have one entry
LINK = re.compile(r"(?<=\]\()([^)#\s]+)(?=[)#])")


def from_root(markdown: str) -> str:
    """The text of a file at the root, with its links as seen from docs/."""
    return LINK.sub(lambda found: TARGETS.get(found[1], found[1].removeprefix("docs/")), markdown)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made of files at the root."""
    for source, page in PAGES.items():
        content = from_root((ROOT / source).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links such as ../CHANGELOG.md to the page that the file became; leave room where there is no list."""
    if page.file.src_uri in WITHOUT_NEIGHBOURS:
        page.meta["hide"] = ["navigation"]
    if page.file.src_uri.startswith("examples/"):
        page.meta["hide"] = ["toc"]  # there are no headings, and code needs the room
    up = "../" * page.file.src_uri.count("/")
    for source, target in TARGETS.items():
        markdown = markdown.replace(f"](../{up}{source}", f"]({up}{target}")
    return markdown
