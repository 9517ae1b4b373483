"""Scalable graphics drawn by hand: text that a browser shows, with a title on what can be pointed at.

Colours are names of CSS classes, so that a page decides on dark or light.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np

from wsabi._core.types import Array

__all__ = ["Panel", "number", "sparkline", "stacked_bar", "svg", "ticks"]


def number(value: float) -> str:
    """A coordinate with as many decimals as a screen has use for."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def svg(width: float, height: float, parts: Iterable[str], label: str, *, role: str = "img") -> str:
    """A picture that grows with its place; ``label`` is read aloud by a screen reader."""
    return (
        f'<svg viewBox="0 0 {number(width)} {number(height)}" role="{role}" aria-label="{escape(label, quote=True)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round values between two ends, steps of 1, 2, 2.5 or 5 times a power of ten."""
    span = high - low
    if not (math.isfinite(span) and span > 0.0):
        return []
    raw = span / max(most, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= raw * (1.0 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def sparkline(x: Array, y: Array, label: str, *, width: int = 110, height: int = 24) -> str:
    """A density without axes, in the colour of the text around it."""
    panel = Panel(
        width, height, (float(x[0]), float(x[-1])), (0.0, 1.05 * max(float(np.max(y)), 1e-300)), pad=(1, 1, 1, 1)
    )
    outline = " ".join(panel.at(*point) for point in zip(x, y, strict=True))
    start, end = panel.at(float(x[0]), 0.0), panel.at(float(x[-1]), 0.0)
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(label, quote=True)}"><polygon points="{start} {outline} {end}" fill="#0072B2" '
        f'fill-opacity="0.25"/><polyline points="{outline}" fill="none" stroke="#0072B2" stroke-width="1.2"/></svg>'
    )


def stacked_bar(parts: Sequence[tuple[str, float]], *, width: int = 240, height: int = 12) -> str:
    """Shares of a whole side by side, each with its name and value as title; hues that the colour-blind tell apart."""
    colours = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999", "#5B4A3F")
    total = sum(share for _, share in parts)
    if not (math.isfinite(total) and total > 0.0):
        return ""
    drawn, x = [], 0.0
    for (name, share), colour in zip(parts, colours, strict=False):
        w = width * share / total
        drawn.append(
            f'<rect x="{number(x)}" y="0" width="{number(w)}" height="{height}" fill="{colour}">'
            f"<title>{escape(name)}</title></rect>"
        )
        x += w
    label = ", ".join(name for name, _ in parts)
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(label, quote=True)}">{"".join(drawn)}</svg>'
    )


@dataclass
class Panel:
    """A pair of axes inside a picture: collects what is drawn on it.

    Parameters
    ----------
    width, height : of the whole, in pixels.
    x, y : ends of the axes.
    pad : left, right, top, bottom, in pixels.
    origin : of the panel inside a larger picture.
    """

    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]
    pad: tuple[float, float, float, float] = (52.0, 10.0, 22.0, 36.0)
    origin: tuple[float, float] = (0.0, 0.0)
    parts: list[str] = field(default_factory=list)

    @property
    def left(self) -> float:
        """Pixel of the lower end of x."""
        return self.origin[0] + self.pad[0]

    @property
    def right(self) -> float:
        """Pixel of the upper end of x."""
        return self.origin[0] + self.width - self.pad[1]

    @property
    def top(self) -> float:
        """Pixel of the upper end of y."""
        return self.origin[1] + self.pad[2]

    @property
    def bottom(self) -> float:
        """Pixel of the lower end of y."""
        return self.origin[1] + self.height - self.pad[3]

    def px(self, value: float) -> float:
        """Pixel of a value of x, held to just outside the panel."""
        share = (value - self.x[0]) / ((self.x[1] - self.x[0]) or 1.0)
        return self.left + float(np.clip(share, -0.02, 1.02)) * (self.right - self.left)

    def py(self, value: float) -> float:
        """Pixel of a value of y, held to just outside the panel."""
        share = (value - self.y[0]) / ((self.y[1] - self.y[0]) or 1.0)
        return self.bottom - float(np.clip(share, -0.02, 1.02)) * (self.bottom - self.top)

    def at(self, x: float, y: float) -> str:
        """A point of a polyline."""
        return f"{number(self.px(x))},{number(self.py(y))}"

    def shows(self, x: float, y: float) -> bool:
        """Whether a point lies inside."""
        return self.x[0] <= x <= self.x[1] and self.y[0] <= y <= self.y[1]

    def add(self, text: str) -> None:
        """Draw anything."""
        self.parts.append(text)

    def line(self, x: Array, y: Array, css: str) -> None:
        """A polyline through points (N,)."""
        points = " ".join(self.at(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b))
        self.add(f'<polyline class="{css}" fill="none" points="{points}"/>')

    def band(self, x: Array, low: Array, high: Array, css: str) -> None:
        """The area between two curves, as far as it lies inside the panel."""
        low, high = (np.clip(ends, *self.y) for ends in (low, high))
        there = [self.at(a, b) for a, b in zip(x, low, strict=True) if math.isfinite(b)]
        back = [self.at(a, b) for a, b in zip(x[::-1], high[::-1], strict=True) if math.isfinite(b)]
        self.add(f'<polygon class="{css}" points="{" ".join(there + back)}"/>')

    def dot(self, x: float, y: float, css: str, title: str = "", radius: float = 3.0) -> None:
        """A point with a title; nothing where it lies outside."""
        if self.shows(x, y):
            inside = f"<title>{escape(title)}</title>" if title else ""
            self.add(
                f'<circle class="{css}" cx="{number(self.px(x))}" cy="{number(self.py(y))}" r="{number(radius)}">'
                f"{inside}</circle>"
            )

    def box(self, x0: float, x1: float, y0: float, y1: float, css: str, title: str = "") -> None:
        """A rectangle with a title."""
        a, b = sorted((self.px(x0), self.px(x1)))
        c, d = sorted((self.py(y0), self.py(y1)))
        inside = f"<title>{escape(title)}</title>" if title else ""
        self.add(
            f'<rect class="{css}" x="{number(a)}" y="{number(c)}" width="{number(max(b - a, 0.3))}" '
            f'height="{number(max(d - c, 0.3))}">{inside}</rect>'
        )

    def text(self, x: float, y: float, words: str, css: str = "label", anchor: str = "middle") -> None:
        """Words at a pixel."""
        self.add(f'<text class="{css}" x="{number(x)}" y="{number(y)}" text-anchor="{anchor}">{escape(words)}</text>')

    def axes(
        self, x_label: str = "", y_label: str = "", title: str = "", *, most: int = 5, counted: bool = False,
        powers: bool = False,
    ) -> None:  # fmt: skip
        """Lines, ticks and labels.

        Parameters
        ----------
        most : about how many ticks.
        counted : whether things are counted along x, so that there are ticks at whole numbers only.
        powers : whether x is the logarithm to base ten of what the ticks say.
        """
        self.add(
            f'<path class="axis" fill="none" d="M{number(self.left)},{number(self.top)}V{number(self.bottom)}'
            f'H{number(self.right)}"/>'
        )
        for value in ticks(*self.x, most):
            if counted and value != round(value):
                continue
            self.text(self.px(value), self.bottom + 13, f"{10.0**value if powers else value:.5g}", "tick")
        for value in ticks(*self.y, most):
            self.text(self.left - 5, self.py(value) + 3.5, f"{value:.7g}", "tick", "end")
        if x_label:
            self.text(0.5 * (self.left + self.right), self.bottom + 28, x_label)
        if y_label:
            self.text(self.left, self.top - 6, y_label, "label", "start")
        if title:
            self.text(0.5 * (self.left + self.right), self.top - 6, title)
