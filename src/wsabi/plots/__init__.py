"""Figures with matplotlib (extra ``plot``): models of a likelihood on a line, and convergence over time.

``result.plot`` (:mod:`~wsabi.plots.of_result`) draws one result: corner, convergence, searches, slices, check.

Every function takes plain arrays and returns a ``matplotlib.figure.Figure`` that no window shows; :func:`save` writes
it as PNG and SVG. matplotlib is imported when a figure is drawn, not before.
"""

from wsabi.plots.convergence import Line, Panel, Truth, against_time
from wsabi.plots.likelihoods import Band, LikelihoodPanel, density_with_bands, likelihood_panels
from wsabi.plots.style import COLOURS, LABELS, MissingMatplotlib, require_matplotlib, save

__all__ = [
    "COLOURS",
    "LABELS",
    "Band",
    "LikelihoodPanel",
    "Line",
    "MissingMatplotlib",
    "Panel",
    "Truth",
    "against_time",
    "density_with_bands",
    "likelihood_panels",
    "require_matplotlib",
    "save",
]
