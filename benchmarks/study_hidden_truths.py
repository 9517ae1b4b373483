"""The truths of benchmarks/hidden_modes.py, made again: log Z in two ways, the modes, and how ascents find them.

    python -m benchmarks.study_hidden_truths [NAME ...] [--seed S] [--restarts 500] [--write]

Modes are where local ascents (L-BFGS, to the end) from single draws of the prior end, and those from draws of the
posterior. log Z is by adaptive importance sampling at all of them; and by a way that knows of no modes: the trapezoid
rule where three coordinates or fewer are left once the linear parameters are integrated in closed form, else millions
of draws of the prior, or tempered populations. The share of a mode in Z is that of the posterior draws from which
ascents end there. The distance that is printed is from the stored log Z, in standard errors; ``--write`` stores what
was made.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.collapsed import COLLAPSES, log_evidence_given, trapezoid
from benchmarks.hidden_modes import MAKERS
from benchmarks.measuring import _machine, _versions, print_table
from benchmarks.mode_search import Surface, Tops
from benchmarks.stored_modes import FILE
from benchmarks.study_held_out import tempered, to_base
from benchmarks.study_truths import Case, Mode, Round, Target, adapted
from wsabi._core.types import Array
from wsabi.problems import Problem

COMMAND = "python -m benchmarks.study_hidden_truths --write"
N_FINAL = 200_000  # draws of the last round of importance sampling
N_POSTERIOR = 1000  # posterior draws whose basins are looked up: a share is known to 0.016
N_PRIOR = 6_000_000  # draws of the prior, where they are the second way
SWEEPS = 40  # of each step of a tempered population: with 12 it was up to 0.02 nats off on hares
LATTICES = {"lifetimes": (241, 241, 241), "cancelling": (241, 241, 241), "outliers": (1401, 701, 41)}
POPULATIONS = {"hares": 12}  # repeats of a tempered population of 5,000
EFFORT = {name: {"adapt": 30_000, "components": 48} for name in ("network", "kinks")}
LEAST_SHARE, LEAST_ASCENTS = 0.005, 0.02  # of a mode that is stored
ROUNDING = 1e-5  # least standard error that is stored


def importance(base: Problem, tops: Tops, rng: np.random.Generator) -> tuple[Round, list[int], list[str]]:
    """The last round, the tops of posterior draws, and remarks; draws whose top is new make the rounds begin again."""
    target, surface = Target(base), tops.surface
    effort = Case(base.name, rounds=8, final=N_FINAL, **EFFORT.get(base.name, {"adapt": 5000, "components": 24}))
    remarks = []
    while True:
        n_tops, best = len(tops.places), max(tops.heights)
        high = [k for k, height in enumerate(tops.heights) if height > best - 15.0]
        modes = [Mode(tops.places[k], tops.heights[k], surface.curvature(tops.places[k])) for k in high]
        proposal, _ = adapted(target, effort, sorted(modes, key=lambda mode: -mode.log_mass)[:40], rng)
        U = proposal.sample(N_FINAL, rng)
        log_w = target(U) - proposal.log_pdf(U)
        w = np.exp(log_w - log_w.max())
        basins = tops.of(U[rng.choice(N_FINAL, N_POSTERIOR, p=w / w.sum())])
        new = float(np.mean(np.array(basins) >= n_tops))
        if new <= 2.0 * LEAST_SHARE:
            return Round.of(log_w), basins, remarks
        remarks.append(f"{new:.1%} of the posterior draws end in modes that no ascent from the prior had met")


def by_draws(log_f: Callable[[Array], Array], dim: int, rng: np.random.Generator) -> Round:
    """log ∫ f(u) N(u; 0, I) du by draws of the prior."""
    parts = [log_f(rng.standard_normal((100_000, dim))) for _ in range(N_PRIOR // 100_000)]
    return Round.of(np.concatenate(parts))


def second_way(name: str, base: Problem, rng: np.random.Generator) -> tuple[str, float, float, str]:
    """The other way to log Z: its name, the value, its standard error, and a remark."""
    problem, collapse = MAKERS[name](), COLLAPSES.get(name)

    def collapsed(U: Array) -> Array:
        return log_evidence_given(problem, U)

    log_f = base.log_likelihood_vectorized if collapse is None else collapsed
    nodes = LATTICES.get(name) if collapse is None else collapse.nodes
    if nodes is not None:
        fine, coarse = trapezoid(log_f, nodes), trapezoid(log_f, tuple(2 * n // 3 for n in nodes))
        return "quadrature", fine, max(abs(fine - coarse), ROUNDING), f"{nodes} nodes; error: change from two thirds"
    if name in POPULATIONS:
        runs = [tempered(base, rng, sweeps=SWEEPS) for _ in range(POPULATIONS[name])]
        std = float(np.std(runs, ddof=1)) / math.sqrt(len(runs))
        return "tempered populations", float(np.mean(runs)), std, f"{len(runs)} of 5,000"
    last = by_draws(log_f, base.dim if collapse is None else len(collapse.left), rng)
    return "draws of the prior", last.log_z, last.log_z_std, f"{last.n} draws, {last.effective:.0f} effective"


def make(name: str, seed: int, restarts: int) -> dict[str, Any]:
    """What the file has of a problem."""
    rng, base = np.random.default_rng(seed), to_base(MAKERS[name]())
    started = time.perf_counter()
    surface = Surface(base)
    tops = Tops(surface)
    ends = tops.of(rng.standard_normal((restarts, base.dim)))
    last, basins, remarks = importance(base, tops, rng)
    method, log_z, std, remark = second_way(name, base, rng)
    checks = {
        "importance sampling": (last.log_z, last.log_z_std, f"Pareto k {last.pareto_k:.2f}, {last.effective:.0f} eff."),
        method: (log_z, std, remark),
    }
    share, ascents = (np.bincount(each, minlength=len(tops.places)) / len(each) for each in (basins, ends))
    kept = np.flatnonzero((share >= LEAST_SHARE) | (ascents >= LEAST_ASCENTS))
    modes = [
        {
            "u": _rounded(tops.places[k]),
            "log_joint": _rounded(tops.heights[k]),
            "cov": _rounded(surface.curvature(tops.places[k])),
            "share": float(share[k]),
            "share_std": round(math.sqrt(share[k] * (1.0 - share[k]) / N_POSTERIOR), 4),
            "ascents": round(float(ascents[k]), 4),
        }
        for k in kept[np.lexsort((-np.array(tops.heights)[kept], -share[kept]))]
    ]
    value, error = min(((last.log_z, last.log_z_std), (log_z, std)), key=lambda one: one[1])
    return {
        "log_z": round(value, 5),
        "log_z_std": float(f"{error:.2g}"),
        "checks": {key: [round(a, 5), float(f"{b:.2g}"), text] for key, (a, b, text) in checks.items()},
        "restarts": restarts,
        "seed": seed,
        "tops_met": len(tops.places),
        "remarks": remarks,
        "seconds": round(time.perf_counter() - started),
        "modes": modes,
    }


def _rounded(value: Array | float) -> Any:
    """As lists of numbers of six digits."""
    return np.vectorize(lambda v: float(f"{v:.6g}"))(np.asarray(value)).tolist()


def show(name: str, made: dict[str, Any], before: dict[str, Any] | None) -> None:
    """What was made, beside what is stored."""
    print(f"== {name}: log Z = {made['log_z']} ± {made['log_z_std']}; {made['seconds']} s; {made['tops_met']} tops met")
    stored, stored_std = (before or made)["log_z"], (before or made)["log_z_std"]
    rows = [
        [way, f"{value:.5f}", f"{std:.2g}", f"{(value - stored) / math.hypot(std, stored_std):+.2f}", remark]
        for way, (value, std, remark) in made["checks"].items()
    ]
    print_table(rows, ("way", "log Z", "std. error", "distance", "remark"))
    for remark in made["remarks"]:
        print(remark)
    top = made["modes"][0]["log_joint"]
    cells = [
        [f"{m['share']:.3f}", f"{m['ascents']:.3f}", f"{m['log_joint'] - top:+.2f}", str(np.round(m["u"], 2))]
        for m in made["modes"]
    ]
    print_table(cells, ("share of Z", "of ascents", "height", "place"))
    print(flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="problems; all of them if left out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--restarts", type=int, default=500, help="ascents from draws of the prior (%(default)s)")
    parser.add_argument("--write", action="store_true", help="store what was made")
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.names) - set(MAKERS)
    if unknown:
        parser.error(f"no such problem: {', '.join(sorted(unknown))}; known are {', '.join(MAKERS)}.")
    for name in chosen.names or MAKERS:
        made = make(name, chosen.seed, chosen.restarts)
        content = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {"problems": {}}
        show(name, made, content["problems"].get(name))
        if chosen.write:
            content |= {"command": COMMAND, "versions": _versions(), "machine": _machine()}
            content["problems"][name] = made
            content["problems"] = {key: content["problems"][key] for key in MAKERS if key in content["problems"]}
            FILE.write_text(json.dumps(content, allow_nan=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
