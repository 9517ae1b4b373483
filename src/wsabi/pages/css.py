"""The look of a page: dark and light, narrow and wide."""

__all__ = ["CSS"]

CSS = """
:root{--bg:#fff;--fg:#1b1f24;--dim:#57606a;--line:#d0d7de;--blue:#0072B2;--sky:#56B4E9;--green:#009E73;--amber:#E69F00;
--pink:#CC79A7;--grey:#7d858d;--brown:#5b4a3f;--bad:#b3480a;--badbg:#fdf0e6;--openbg:#eaf2f8;--good:#00664a;--goodbg:#e8f6f1}
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e9ec;--dim:#a3abb3;--line:#3a424a;--blue:#56B4E9;
--sky:#2f86bd;--green:#2cc295;--amber:#E69F00;--pink:#d98fb8;--grey:#98a1a9;--brown:#b39a86;--bad:#ff9d5c;--badbg:#3a2413;--openbg:#1c2a36;
--good:#5fd6b1;--goodbg:#12332a}}
*{box-sizing:border-box}html{scroll-behavior:smooth}body{overflow-wrap:break-word}
.state,.verdict,li,summary{overflow-wrap:anywhere}pre.scroll{overflow-wrap:normal}
@media(prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
body{margin:0 auto;padding:16px;max-width:1120px;background:var(--bg);color:var(--fg);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:1.1rem;color:var(--dim);margin:0;font-weight:600}h2{font-size:1.2rem;margin:28px 0 6px;
border-bottom:1px solid var(--line);padding-bottom:4px}p{margin:6px 0}
.verdict{font-size:1.3rem;line-height:1.35;font-weight:600;padding:10px 12px;border-radius:6px;margin:10px 0}
.state{border-left:4px solid var(--grey);padding:2px 12px;margin:10px 0}.state p{margin:2px 0}.counts{color:var(--dim)}
.state.running{border-color:var(--blue)}.state.ended{border-color:var(--green)}
.state.failed,.state.stopped{border-color:var(--bad)}
progress{width:100%;max-width:420px;height:10px;accent-color:var(--blue);display:block;margin:6px 0}
#lost{position:sticky;bottom:0;margin:12px 0 0;padding:8px 12px;background:var(--badbg);color:var(--bad)}
main:focus{outline:none}details{margin:4px 0}summary{cursor:pointer}pre{margin:4px 0;font-size:.85rem;line-height:1.35}
.open{background:var(--openbg);color:var(--fg)}.fine{background:var(--goodbg);color:var(--good)}.doubtful{background:var(--badbg);color:var(--bad)}
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
td>svg polygon{fill:var(--blue)}td>svg polyline{stroke:var(--blue)}
.band1,.band2{fill:var(--blue);opacity:.25;stroke:none}.band2{opacity:.13}.point{fill:var(--blue)}
.search{fill:var(--sky)}.image{fill:var(--pink)}.refine{fill:var(--green)}.check{fill:var(--amber)}.told{fill:var(--grey)}
.bulk{fill:var(--brown)}
.wash{opacity:.12}.outer{fill:var(--blue);opacity:.22}.inner{fill:var(--blue);opacity:.6}
.contour{stroke:var(--blue);stroke-width:.9}.target{fill:transparent}.target:hover{stroke:var(--amber)}
.faint{fill:var(--grey);opacity:.35}.path{stroke-width:1.4;fill:none}
.outcome0{fill:var(--blue);stroke:var(--blue)}.outcome1{fill:var(--green);stroke:var(--green)}
.outcome2{fill:var(--amber);stroke:var(--amber)}.outcome3{fill:var(--grey);stroke:var(--grey)}
.hollow{fill:var(--bg)}
@media print{nav,.skip{display:none}}
"""
