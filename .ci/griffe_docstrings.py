"""Read the package's docstrings for the API pages.

A parameter is written `name : what it is`, where NumPy's convention has a type after the colon. The signature has the
types, so the text moves to the description, and so does what `Returns` opens with. Roles of Sphinx become code.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

from griffe import Extension, Object

SECTION = re.compile(r"^([A-Z][A-Za-z ]+)\n-+\n", re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.*)$", re.MULTILINE)
ROLE = re.compile(r":\w+:`~?([^`]+)`")


def described(body: str) -> str:
    """Entries of a section, with what follows the colon in the description."""
    return ENTRY.sub(lambda entry: f"{entry[1]}\n    {entry[2]}", body)


def readable(docstring: str) -> str:
    """A docstring as griffe and Markdown expect it."""
    parts = SECTION.split(ROLE.sub(r"`\1`", docstring))
    text = parts[0]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if title in {"Parameters", "Attributes"}:
            body = described(body)
        if title == "Returns":
            body = f":\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n\n"
        text += f"{title}\n{'-' * len(title)}\n{body}"
    return text


class Docstrings(Extension):
    """Rewrites each docstring before it is parsed."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)
