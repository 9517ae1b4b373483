"""One result as one HTML file: it needs nothing from elsewhere, and no script."""

from __future__ import annotations

import dataclasses
import math
import platform
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from wsabi.errors import NumericalError
from wsabi.pages.charts import check_charts, convergence_charts, corner_chart, search_charts
from wsabi.pages.notebook import parameter_table, result_rows
from wsabi.plots.corner import MOST
from wsabi.plots.style import OUTCOMES, PURPOSES
from wsabi.result import Result

__all__ = ["report_page", "verdict", "write_page"]

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
    sections = [
        ("result", "Result", _table(result_rows(result))),
        ("posterior", "Posterior", _scrolled(parameter_table(result.posterior), "table of the parameters")),
        ("convergence", "Convergence", _convergence(result)),
        ("corner", "Densities", _corner(result)),
        ("searches", "Searches", _searches(result)),
        ("check", "Check points", _check(result)),
        ("settings", "Settings and versions", _table(_settings(result))),
    ]
    links = "".join(f'<li><a href="#{name}">{heading}</a></li>' for name, heading, _ in sections)
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-heading"><h2 id="{name}-heading">{heading}</h2>{text}</section>'
        for name, heading, text in sections
    )
    state = "doubtful" if result.warnings else "fine"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{CSS}</style></head><body>"
        f'<a class="skip" href="#result">Skip to the result</a><header><h1>{escape(title)}</h1>'
        f'<p class="verdict {state}">{escape(verdict(result))}</p>{_remarks(result)}'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header><main>{body}</main></body></html>\n'
    )


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
    checked = result.certificate is not None and result.certificate.n_points > 0
    return f"{sentence}, checked by independent points and without a warning." if checked else f"{sentence}, unchecked."


def _remarks(result: Result) -> str:
    warnings = "".join(f"<li>{escape(text)}</li>" for text in result.warnings)
    notes = "".join(f"<li>{escape(text)}</li>" for text in result.notes)
    return (f'<ul class="warnings" aria-label="Warnings">{warnings}</ul>' if warnings else "") + (
        f'<ul class="notes" aria-label="Notes">{notes}</ul>' if notes else ""
    )


def _table(rows: list[tuple[str, str]]) -> str:
    """Rows of a name and its HTML."""
    inside = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{text}</td></tr>' for name, text in rows)
    return f"<table>{inside}</table>"


def _scrolled(text: str, label: str) -> str:
    """Something wide, that the keyboard can scroll too."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label, quote=True)}">{text}</div>'


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
    entries = [(purpose, label) for purpose, (label, _) in PURPOSES.items()] if result.ledger is not None else []
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
    return f"<p>{words}</p>" + _scrolled(f'<div style="{style}">{chart}</div>', "densities of the parameters")


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


def _settings(result: Result) -> list[tuple[str, str]]:
    rows = []
    if result.settings is not None:
        rows += [
            (field.name, str(getattr(result.settings, field.name))) for field in dataclasses.fields(result.settings)
        ]
    rows += [("parameters", ", ".join(result.names)), ("prior", type(result.prior).__name__)]
    if result.ledger is not None:
        rows.append(("seed", " ".join(str(word) for word in result.ledger.origin.entropy)))
    rows += [(name, _version(name)) for name in ("wsabi", "numpy", "scipy")]
    rows += [("python", platform.python_version()), ("machine", platform.machine())]
    return [(name, escape(text)) for name, text in rows]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed as a package"


CSS = """
:root{--bg:#fff;--fg:#1b1f24;--dim:#57606a;--line:#d0d7de;--blue:#0072B2;--sky:#56B4E9;--green:#009E73;--amber:#E69F00;
--pink:#CC79A7;--grey:#7d858d;--bad:#b3480a;--badbg:#fdf0e6;--good:#00664a;--goodbg:#e8f6f1}
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e9ec;--dim:#a3abb3;--line:#3a424a;--blue:#56B4E9;
--sky:#2f86bd;--green:#2cc295;--amber:#E69F00;--pink:#d98fb8;--grey:#98a1a9;--bad:#ff9d5c;--badbg:#3a2413;
--good:#5fd6b1;--goodbg:#12332a}}
*{box-sizing:border-box}html{scroll-behavior:smooth}
@media(prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
body{margin:0 auto;padding:16px;max-width:1120px;background:var(--bg);color:var(--fg);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:1.1rem;color:var(--dim);margin:0;font-weight:600}h2{font-size:1.2rem;margin:28px 0 6px;
border-bottom:1px solid var(--line);padding-bottom:4px}p{margin:6px 0}
.verdict{font-size:1.3rem;line-height:1.35;font-weight:600;padding:10px 12px;border-radius:6px;margin:10px 0}
.fine{background:var(--goodbg);color:var(--good)}.doubtful{background:var(--badbg);color:var(--bad)}
.warnings,.notes{padding:8px 12px 8px 30px;border-left:4px solid var(--bad);background:var(--badbg);margin:8px 0}
.notes{border-color:var(--line);background:none;color:var(--dim)}
nav ul,.legend{list-style:none;display:flex;flex-wrap:wrap;gap:4px 16px;padding:0;margin:8px 0}
a{color:var(--blue)}:focus-visible{outline:3px solid var(--amber);outline-offset:2px}
.skip{position:absolute;left:-9999px}.skip:focus{left:16px;top:8px;background:var(--bg);padding:4px 8px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{text-align:left;vertical-align:top;padding:3px 14px 3px 0}section>table th{color:var(--dim);font-weight:500}
td{overflow-wrap:anywhere}.scroll td,.scroll th{white-space:nowrap}
.scroll{overflow-x:auto;padding-bottom:6px}.legend svg{width:12px;height:12px;margin-right:6px;vertical-align:-1px}
.legend{font-size:.9rem;color:var(--dim)}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,340px),1fr));gap:12px}
.grid.small{grid-template-columns:repeat(auto-fill,minmax(min(100%,250px),1fr))}
figure{margin:0}figure svg,.scroll>div>svg{width:100%;height:auto;display:block}
text{fill:var(--fg);font:12px system-ui,sans-serif}.tick{fill:var(--dim);font-size:11px}
.axis,.frame{stroke:var(--line);fill:none}.line{stroke:var(--blue);stroke-width:1.7}
.thin{stroke:var(--blue);stroke-width:.9;fill:none}.dashed{stroke:var(--grey);stroke-dasharray:5 3;fill:none}
.band1,.band2{fill:var(--blue);opacity:.25;stroke:none}.band2{opacity:.13}.point{fill:var(--blue)}
.search{fill:var(--sky)}.image{fill:var(--pink)}.refine{fill:var(--green)}.check{fill:var(--amber)}.told{fill:var(--grey)}
.wash{opacity:.12}.outer{fill:var(--blue);opacity:.22}.inner{fill:var(--blue);opacity:.6}
.contour{stroke:var(--blue);stroke-width:.9}.target{fill:transparent}.target:hover{stroke:var(--amber)}
.faint{fill:var(--grey);opacity:.35}.path{stroke-width:1.4;fill:none}
.outcome0{fill:var(--blue);stroke:var(--blue)}.outcome1{fill:var(--green);stroke:var(--green)}
.outcome2{fill:var(--amber);stroke:var(--amber)}.outcome3{fill:var(--grey);stroke:var(--grey)}
.hollow{fill:var(--bg)}
@media print{nav,.skip{display:none}}
"""
