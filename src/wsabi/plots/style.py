"""One look for all figures: a colour, a line and a label per method, told apart by the colour-blind and in grey."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = [
    "AMBER", "BLUE", "BROWN", "COLOURS", "GREEN", "GREY", "LABELS", "LINES", "ORANGE", "OUTCOMES", "PINK", "PURPOSES",
    "SKY", "TRUTH", "MissingMatplotlib", "few_ticks", "house_style", "less", "new_figure", "offset_of", "on_axes",
    "purpose_of", "require_matplotlib", "save", "take_off",
]  # fmt: skip

# The palette of Okabe and Ito (2008), which keeps its hues apart for the colour-blind. Methods never shown in one
# figure may share a colour; methods in one figure differ in line style as well, for grey printers.
COLOURS: dict[str, str] = {
    "wsabi-l": "#0072B2",
    "wsabi-m": "#D55E00",
    "default": "#009E73",
    "bulk": "#000000",
    "smc": "#E69F00",
    "ais": "#56B4E9",
    "bmc": "#CC79A7",
    "bq": "#CC79A7",
    "bbq": "#5B4A3F",
    "wsabi-l-passive": "#0072B2",
    "wsabi-m-passive": "#D55E00",
    "wsabi-l-alpha-0": "#56B4E9",
}
LINES: dict[str, tuple[float, ...]] = {  # dashes in points; empty is a solid line
    "wsabi-l": (),
    "wsabi-m": (6.0, 2.0),
    "default": (),
    "bulk": (),
    "smc": (1.0, 1.5),
    "ais": (5.0, 1.5, 1.0, 1.5),
    "bmc": (3.0, 1.5),
    "bq": (),
    "bbq": (1.0, 1.0, 1.0, 3.0),
    "wsabi-l-passive": (1.0, 2.5),
    "wsabi-m-passive": (1.0, 2.5),
    "wsabi-l-alpha-0": (4.0, 1.5),
}
LABELS: dict[str, str] = {
    "wsabi-l": "WSABI-L",
    "wsabi-m": "WSABI-M",
    "default": "default engine, models alone",
    "bulk": "default engine with bulk points",
    "smc": "simple Monte Carlo",
    "ais": "annealed importance sampling",
    "bmc": "Bayesian Monte Carlo",
    "bq": "Bayes-Hermite (GP on ℓ)",
    "bbq": "BBQ",
    "wsabi-l-passive": "WSABI-L model, prior draws",
    "wsabi-m-passive": "WSABI-M model, prior draws",
    "wsabi-l-alpha-0": "WSABI-L with α = 0",
}
TRUTH = "#333333"
RC: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "svg.hashsalt": "wsabi",  # the same numbers give the same file
}


class MissingMatplotlib(ImportError):
    """matplotlib is not installed."""


def require_matplotlib() -> None:
    """Raise :class:`MissingMatplotlib` with the cure, before anything is computed that could not be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingMatplotlib(
            "figures need matplotlib, which is not installed: pip install 'wsabi[plot]' (or pip install matplotlib)."
        ) from error


@contextmanager
def new_figure(width: float, height: float) -> Iterator[Figure]:
    """A figure of that size in inches, in the house style; it belongs to no window and no global state."""
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(RC):
        yield Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, path: Path, *, dpi: int = 150) -> list[Path]:
    """Write ``path`` with the suffixes .png and .svg; returns the two paths."""
    from matplotlib import rc_context

    path.parent.mkdir(parents=True, exist_ok=True)
    written = [path.with_suffix(".png"), path.with_suffix(".svg")]
    with rc_context(RC):
        figure.savefig(written[0], dpi=dpi, metadata={"Software": None})
        figure.savefig(written[1], metadata={"Date": None})
    return written


# -- pictures of one result -------------------------------------------------------------------------------------------

BLUE, ORANGE, GREEN, SKY, PINK, AMBER, GREY, BROWN = (
    "#0072B2", "#D55E00", "#009E73", "#56B4E9", "#CC79A7", "#E69F00", "#8C8C8C", "#5B4A3F",
)  # fmt: skip
PURPOSES: dict[str, tuple[str, str]] = {  # what an evaluation was for -> label and colour
    "search": ("search", SKY),
    "image": ("symmetry", PINK),
    "refine": ("refine", GREEN),
    "check": ("check", AMBER),
    "bulk": ("bulk", BROWN),
    "told": ("told by you", GREY),
}
OUTCOMES: dict[str, tuple[str, str, str]] = {  # of a search -> colour, marker and label
    "new region": (BLUE, "o", "found a new mode"),
    "known region": (GREEN, "s", "came back to a known mode"),
    "negligible mass": (AMBER, "^", "ended in negligible mass"),
    "unfinished": (GREY, "X", "unfinished"),
}


def purpose_of(label: str) -> str:
    """The kind of an evaluation, of its label in the ledger: "search 3" is a search."""
    kind = label.split()[0]
    return kind if kind in PURPOSES else "refine"


def on_axes(axes: Any, count: int, what: str) -> list[Axes]:
    """Axes that the user gave, as a list of so many."""
    found = list(np.ravel(np.asarray(axes, dtype=object)))
    if len(found) != count:
        raise ValueError(f"{what} needs {count} axes; got {len(found)}.")
    return found


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the house style, on whatever axes."""
    require_matplotlib()
    from matplotlib import rc_context

    with rc_context(RC):
        yield


def few_ticks(axis: Axes, *, x: int = 3, y: int = 3) -> None:
    """At most so many ticks on either axis."""
    from matplotlib.ticker import MaxNLocator

    axis.xaxis.set_major_locator(MaxNLocator(x, prune="both" if x < 5 else None))
    axis.yaxis.set_major_locator(MaxNLocator(y, prune="both" if y < 5 else None))


def offset_of(low: float, high: float) -> float:
    """What to take off values between two ends so that their ticks have few digits; 0 where they have few anyway."""
    span = high - low
    if not 0.0 < span < 1e-3 * max(abs(low), abs(high)):
        return 0.0
    unit = 10.0 ** math.ceil(math.log10(span))
    return round(0.5 * (low + high) / unit) * unit


def less(name: str, offset: float, between: str = " ") -> str:
    """The label of an axis from whose ticks an offset is taken off: "temperature − 100000"."""
    return name if offset == 0.0 else f"{name}{between}{'−' if offset > 0.0 else '+'} {abs(offset):.12g}"


def take_off(scale: Axis, offset: float) -> None:
    """Take an offset off the ticks of an axis."""
    from matplotlib.ticker import FuncFormatter

    scale.set_major_formatter(FuncFormatter(lambda value, _: f"{value - offset:.4g}".replace("-", "−")))
