"""What a notebook shows of a result: warnings, a table, the error budget, the parameters with their densities."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from wsabi.errors import NumericalError
from wsabi.pages.svg import sparkline, stacked_bar
from wsabi.posterior.posterior import Posterior
from wsabi.result import PART_NAMES, ErrorBudget, Result

__all__ = ["budget_parts", "html", "parameter_table", "result_rows"]

MOST = 30  # parameters in a table

WARNING = "border-left:4px solid #D55E00;padding:4px 8px;margin:4px 0;background:rgba(213,94,0,0.12)"
CELL = "text-align:left;padding:1px 10px 1px 0;font-variant-numeric:tabular-nums"
NUMBER = "text-align:right;padding:1px 10px 1px 0;font-variant-numeric:tabular-nums"


def html(result: Result) -> str:
    """The result as a fragment of HTML."""
    warnings = "".join(f'<div style="{WARNING}"><b>Warning.</b> {escape(text)}</div>' for text in result.warnings)
    rows = "".join(
        f'<tr><th style="{CELL}">{escape(name)}</th><td style="{CELL}">{text}</td></tr>'
        for name, text in result_rows(result)
    )
    notes = "".join(f"<div>{escape(text)}</div>" for text in result.notes)
    table = f'<table style="border-collapse:collapse">{rows}</table>'
    return f"<div>{warnings}{table}{parameter_table(result.posterior)}{notes}</div>"


def result_rows(result: Result) -> list[tuple[str, str]]:
    """Rows of the printed table, name and HTML, without warnings, notes; with the error budget as a bar."""
    rows = []
    for line in str(result).splitlines():
        name, text = line[:16].strip(), escape(line[16:])
        if name in ("warning", "note"):
            continue
        if name == "error bar":
            text += "<br>" + stacked_bar(budget_parts(result.error_budget))
        rows.append((name, text))
    return rows


def budget_parts(budget: ErrorBudget) -> list[tuple[str, float]]:
    """Names with nats, and shares of the variance, the largest first."""
    parts = sorted(budget.parts.items(), key=lambda part: -part[1])
    return [(f"{nats:.2g} nats: {PART_NAMES[name]}", nats**2) for name, nats in parts if nats > 1e-3 * budget.total]


def parameter_table(posterior: Posterior) -> str:
    """Mean, sd, quantiles and density of each parameter; nothing where the posterior has no mass."""
    try:
        summary = posterior.summary()
    except NumericalError:
        return ""
    heads = ("", *summary.columns, "density")
    head = "".join(f'<th style="{CELL if not k else NUMBER}">{escape(name)}</th>' for k, name in enumerate(heads))
    body = []
    for d, cells in enumerate(summary.cells()[:MOST]):
        numbers = "".join(f'<td style="{NUMBER}">{cell}</td>' for cell in cells[1:])
        line = _density(posterior, d)
        body.append(f'<tr><th style="{CELL}">{escape(cells[0])}</th>{numbers}<td>{line}</td></tr>')
    left = posterior.dim - MOST
    more = f"<div>and {left} more parameters: result.posterior.summary()</div>" if left > 0 else ""
    return f'<table style="border-collapse:collapse"><tr>{head}</tr>{"".join(body)}</table>{more}'


def _density(posterior: Posterior, d: int) -> str:
    low, high = posterior.form.quantiles(d, np.array([1e-3, 1.0 - 1e-3]))
    if not (math.isfinite(high - low) and high > low):
        return ""
    grid, density = posterior.marginal(d, np.linspace(low, high, 60))
    return sparkline(grid, density, f"density of {posterior.names[d]} from {low:.3g} to {high:.3g}")
