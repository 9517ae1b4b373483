"""The page of a run that goes on: the same page, with a script that asks for what has changed."""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections.abc import Mapping

from wsabi.pages.document import PARTS, parts, shell
from wsabi.pages.of_file import RunFile

__all__ = ["LivePage"]

REST = 3.0  # times as long as a piece of work took is waited before the next: a quarter of one core at most
SCRIPT = """
const slowest = 10, focusable = 'a[href], [tabindex], summary';
let misses = 0;
const nameOf = e => e.id || e.getAttribute('href') || e.getAttribute('aria-label') || e.parentElement.id;
function replace(name, part) {
  const place = document.getElementById(name), held = document.activeElement;
  const focus = place !== held && place.contains(held) ? nameOf(held) : null;
  const scrolled = new Map([...place.querySelectorAll('.scroll')].map(e => [nameOf(e), e.scrollLeft]));
  const open = [...place.querySelectorAll('details[open]')].map(e => e.id);
  place.innerHTML = part.html;
  seen[name] = part.version;
  for (const e of place.querySelectorAll('.scroll')) e.scrollLeft = scrolled.get(nameOf(e)) || 0;
  for (const id of open) if (document.getElementById(id)) document.getElementById(id).open = true;
  if (focus) [...place.querySelectorAll(focusable)].find(e => nameOf(e) === focus)?.focus({preventScroll: true});
}
// The section that is read, and where on the screen it begins: what stands above it may grow. While nobody scrolls, it
// is the same as after the last change, or the rounding of scrollY to whole pixels would add up.
let kept = null;
function place() {
  if (kept && kept.y === scrollY) return kept;
  const read = scrollY > 0 && [...document.querySelectorAll('section')].find(e => e.getBoundingClientRect().bottom > 0);
  return read && {id: read.id, top: read.getBoundingClientRect().top};
}
async function update() {
  try {
    const answer = await fetch('now?' + new URLSearchParams(seen), {cache: 'no-store'});
    if (!answer.ok) throw new Error(answer.status);
    const changed = answer.status === 204 ? {} : await answer.json(), before = place();
    for (const name in changed) replace(name, changed[name]);
    const read = before && document.getElementById(before.id);
    if (read) scrollBy({top: read.getBoundingClientRect().top - before.top, behavior: 'instant'});
    kept = read && {...before, y: scrollY};
    misses = 0;
  } catch { misses += 1; }
  document.getElementById('lost').hidden = misses < 2;
  setTimeout(update, pause * Math.min(1 + misses, slowest));
}
setTimeout(update, pause);
"""
LOST = (
    '<p id="lost" role="alert" hidden>This page is not updated now: wsabi watch has ended, or cannot be reached. '
    "It shows what was known last.</p>"
)


class LivePage:
    """The page of a file that may grow, in parts that are made again when it has.

    One thread calls :meth:`refresh`; any thread may ask for the page.

    Parameters
    ----------
    file : of the run.
    pause : seconds after which a page in a browser asks again.
    """

    def __init__(self, file: RunFile, pause: float = 1.5) -> None:
        self._file, self._pause = file, pause
        self._lock = threading.Lock()
        self._title = f"wsabi: {file.path.name}"
        self._parts = {"state": file.state_html(), "summary": "<p>The run is being read.</p>", "main": ""}
        self._is_stale = True  # the result on the page is not that of the file as it was last read
        self._read_after = self._made_after = 0.0

    def refresh(self) -> None:
        """Read the file if it has changed, and make the page again; each of them not more often than it can be."""
        began = time.monotonic()
        if began >= self._read_after and self._file.has_news():
            self._file.read()
            self._replace({"state": self._file.state_html()})
            self._is_stale = True
            self._read_after = _rested(began)
        began = time.monotonic()
        if self._is_stale and began >= self._made_after:
            self._is_stale = False
            self._replace(parts(self._file.content()))
            self._made_after = _rested(began)

    def _replace(self, new: Mapping[str, str]) -> None:
        with self._lock:
            self._parts = {**self._parts, **new}

    def html(self, nonce: str) -> str:
        """The page as it is now; its script runs only under that nonce."""
        now = self._now()
        head = '<style>html{overflow-anchor:none}</style><noscript><meta http-equiv="refresh" content="10"></noscript>'
        seen = json.dumps({name: _version(now[name]) for name in PARTS})
        foot = f'{LOST}<script nonce="{nonce}">const seen = {seen}, pause = {1e3 * self._pause:.0f};{SCRIPT}</script>'
        return shell(self._title, now, head, foot)

    def changed(self, seen: Mapping[str, str]) -> str:
        """JSON of the parts that are not those whose versions were seen; empty where all are."""
        now = self._now()
        versions = {name: _version(now[name]) for name in PARTS}
        new = {
            name: {"version": versions[name], "html": now[name]} for name in PARTS if versions[name] != seen.get(name)
        }
        return json.dumps(new, ensure_ascii=False) if new else ""

    def _now(self) -> dict[str, str]:
        with self._lock:
            return self._parts


def _rested(began: float) -> float:
    """When a piece of work that began then may be done again."""
    now = time.monotonic()
    return now + REST * (now - began)


def _version(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"
