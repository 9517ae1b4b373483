"""One result as one HTML file: it needs nothing from elsewhere, and no script."""

from __future__ import annotations

import dataclasses
import math
import platform
from collections.abc import Mapping
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from wsabi.errors import NumericalError
from wsabi.pages.charts import check_charts, convergence_charts, corner_chart, search_charts
from wsabi.pages.document import Content, Mood, Section, document, remarks, scrolled, table
from wsabi.pages.notebook import parameter_table, result_rows
from wsabi.plots.corner import MOST
from wsabi.plots.course import stretches_of
from wsabi.plots.style import OUTCOMES, PURPOSES
from wsabi.result import Result

__all__ = ["report_page", "result_content", "verdict", "versions_text", "write_page"]

WIDE = 1.0  # nats: an evidence known to no better than a factor of e decides little


def write_page(result: Result, path: str | Path) -> Path:
    """Write the page of a result to a file; its folder must exist."""
    target = Path(path)
    target.write_text(report_page(result), encoding="utf-8")
    return target


def report_page(result: Result, title: str = "wsabi report") -> str:
    """The page of a result: verdict, warnings, numbers, pictures, settings; text of one HTML file.

    Pictures are drawn by hand: of the usual libraries for interactive ones each is larger than the page may be. What a
    point or region means is shown when it is pointed at.
    """
    return document(result_content(result, title))


def result_content(result: Result, title: str, run_with: Mapping[str, str] | None = None) -> Content:
    """What stands on the page of a result; ``run_with`` are the versions that made it, on the page of a run's file."""
    rows = result_rows(result)
    if run_with is not None and result.reason == "running":  # that page says more about where the run stands
        rows = [row for row in rows if row[0] != "state"]
    sections = (
        Section("result", "Result", table(rows)),
        Section("posterior", "Posterior", scrolled(parameter_table(result.posterior), "table of the parameters")),
        Section("convergence", "Convergence", _convergence(result)),
        Section("corner", "Densities", _corner(result)),
        Section("searches", "Searches", _searches(result)),
        Section("check", "Check points", _check(result)),
        Section("settings", "Settings and versions", table(_settings(result, run_with))),
    )
    return Content(title, verdict(result), _mood(result), sections, remarks(result.warnings, result.notes))


def verdict(result: Result) -> str:
    """The result in one sentence."""
    if not math.isfinite(result.log_z):
        return "There is no estimate of log Z: see the warnings."
    found = repr(result).split("log Z = ")[1].split(",")[0]
    sentence = f"log Z = {found} nats after {result.n_evals} evaluations"
    if result.warnings:
        many = "a warning says" if len(result.warnings) == 1 else f"{len(result.warnings)} warnings say"
        return f"{sentence}, but {many} that it should not be relied on as it stands."
    if result.reason == "running":
        return f"{sentence} so far; the run had not ended."
    if not result.log_z_std < WIDE:
        return f"{sentence}, which is too uncertain to compare models by."
    checked = "checked by independent points and without a warning" if _is_checked(result) else "unchecked"
    return f"{sentence}, {checked}."


def _is_checked(result: Result) -> bool:
    return result.certificate is not None and result.certificate.n_points > 0


def _mood(result: Result) -> Mood:
    if result.warnings or not math.isfinite(result.log_z):
        return "doubtful"
    return "fine" if result.reason != "running" and result.log_z_std < WIDE and _is_checked(result) else "open"


def _grid(charts: list[str], css: str = "") -> str:
    return f'<div class="grid {css}">' + "".join(f"<figure>{chart}</figure>" for chart in charts) + "</div>"


def _legend(entries: list[tuple[str, str]]) -> str:
    """CSS classes with what they stand for."""
    inside = "".join(
        f'<li><svg viewBox="0 0 12 12" aria-hidden="true"><rect class="{css}" width="12" height="12" rx="2"/></svg>'
        f"{escape(words)}</li>"
        for css, words in entries
    )
    return f'<ul class="legend">{inside}</ul>'


def _convergence(result: Result) -> str:
    charts = convergence_charts(result)
    if not charts:
        return "<p>This result has no history.</p>"
    met = {one.purpose for one in stretches_of(result)}
    entries = [(purpose, label) for purpose, (label, _) in PURPOSES.items() if purpose in met]
    words = "log Z with one and two standard deviations. The strip below says what the evaluations were for."
    return f"<p>{words}</p>{_legend(entries)}{_grid(charts)}"


def _corner(result: Result) -> str:
    try:
        chart = corner_chart(result.posterior)
    except (NumericalError, ValueError):
        return "<p>The model has no posterior to draw.</p>"
    words = "Shaded: the central 95 % of each parameter, and the 50 % and 95 % of highest density of each pair."
    n = min(result.posterior.dim, MOST)
    style = f"min-width:{min(96 * n + 60, 1060)}px;max-width:{160 * n + 80}px" if n > 2 else "max-width:420px"
    return f"<p>{words}</p>" + scrolled(f'<div style="{style}">{chart}</div>', "densities of the parameters")


def _searches(result: Result) -> str:
    charts = search_charts(result)
    if not charts:
        return "<p>Nothing was searched: this method has no searches, or the result no record of them.</p>"
    entries = [(f"outcome{k}", label) for k, (_, _, label) in enumerate(OUTCOMES.values())]
    words = "Each search from where it started (hollow) to its highest likelihood (full)."
    return f"<p>{words}</p>{_legend(entries)}{_grid(charts, 'small')}"


def _check(result: Result) -> str:
    charts = check_charts(result)
    certificate = result.certificate
    if not charts or certificate is None:
        return "<p>There were no check points: nothing independent has checked the model.</p>"
    tail = "not known, for want of points" if math.isnan(certificate.pareto_k) else f"{certificate.pareto_k:.2f}"
    words = (
        f"{certificate.n_points} evaluations that the models had not seen count as "
        f"{certificate.effective_sample_size:.1f}; the Pareto k of their weights is {tail} (reliable up to 0.7). "
        "They should lie on the dashed line."
    )
    return f"<p>{words}</p>{_grid(charts)}"


def _settings(result: Result, run_with: Mapping[str, str] | None) -> list[tuple[str, str]]:
    rows = []
    if result.settings is not None:
        rows += [
            (field.name, str(getattr(result.settings, field.name))) for field in dataclasses.fields(result.settings)
        ]
    rows += [("parameters", ", ".join(result.names)), ("prior", type(result.prior).__name__)]
    if result.ledger is not None:
        rows.append(("seed", " ".join(str(word) for word in result.ledger.origin.entropy)))
    here = {name: _version(name) for name in ("wsabi", "numpy", "scipy")}
    here |= {"python": platform.python_version(), "machine": platform.machine()}
    if run_with is not None and dict(run_with) != here:
        rows += [("run with", versions_text(run_with)), ("page made with", versions_text(here))]
    else:
        rows += list(here.items())
    return [(name, escape(text)) for name, text in rows]


def versions_text(found: Mapping[str, str]) -> str:
    """Versions in one line."""
    return ", ".join(f"{name} {text}" for name, text in found.items())


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed as a package"
