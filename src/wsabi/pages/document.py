"""One HTML file in parts: where the run stands, the verdict with its remarks, and the sections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from wsabi.pages.css import CSS

__all__ = ["PARTS", "Content", "Mood", "Section", "document", "parts", "remarks", "scrolled", "shell", "table"]

Mood = Literal["fine", "doubtful", "open"]  # of the verdict; "open" where there is nothing to judge yet
PARTS = ("state", "summary", "main")  # ids of the elements whose content changes while a run goes on


@dataclass(frozen=True)
class Section:
    """A part of a page: its address on the page, its heading and its HTML."""

    name: str
    heading: str
    html: str


@dataclass(frozen=True)
class Content:
    """What stands on a page.

    Attributes
    ----------
    title : plain text.
    verdict : in one sentence, plain text.
    mood : "fine", "doubtful", or "open".
    sections : in order.
    remarks : warnings and notes, as HTML.
    state : where the run stands, as HTML; empty for a result that belongs to no file.
    """

    title: str
    verdict: str
    mood: Mood
    sections: tuple[Section, ...]
    remarks: str = ""
    state: str = ""


def parts(content: Content) -> dict[str, str]:
    """The HTML inside each of PARTS."""
    links = "".join(f'<li><a href="#{one.name}">{one.heading}</a></li>' for one in content.sections)
    sections = (
        f'<section id="{one.name}" aria-labelledby="{one.name}-heading"><h2 id="{one.name}-heading">{one.heading}</h2>'
        f"{one.html}</section>"
        for one in content.sections
    )
    summary = (
        f'<p class="verdict {content.mood}">{escape(content.verdict)}</p>{content.remarks}'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>'
    )
    return {"state": content.state, "summary": summary, "main": "".join(sections)}


def document(content: Content) -> str:
    """The whole file, which needs nothing from elsewhere and no script."""
    return shell(content.title, parts(content))


def shell(title: str, inside: Mapping[str, str], head: str = "", foot: str = "") -> str:
    """The file around the parts; ``head`` and ``foot`` are what a live page has besides."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{CSS}</style>{head}</head><body>"
        f'<a class="skip" href="#main">Skip to the result</a><header><h1>{escape(title)}</h1>'
        f'<div id="state">{inside["state"]}</div><div id="summary">{inside["summary"]}</div></header>'
        f'<main id="main" tabindex="-1">{inside["main"]}</main>{foot}</body></html>\n'
    )


def remarks(warnings: Iterable[str], notes: Iterable[str] = ()) -> str:
    """Warnings, then notes, as lists; nothing where there are none."""
    return _list("warnings", "Warnings", warnings) + _list("notes", "Notes", notes)


def _list(css: str, label: str, texts: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f'<ul class="{css}" aria-label="{label}">{items}</ul>' if items else ""


def table(rows: Sequence[tuple[str, str]]) -> str:
    """Rows of a name and its HTML."""
    inside = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{text}</td></tr>' for name, text in rows)
    return f"<table>{inside}</table>"


def scrolled(text: str, label: str) -> str:
    """Something wide, that the keyboard can scroll too."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label, quote=True)}">{text}</div>'
