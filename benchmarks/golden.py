"""Golden runs: a change that is meant to move code, and not numbers, leaves these as they are, bit for bit.

    python -m benchmarks.golden            compare with benchmarks/golden.json, made on this machine
    python -m benchmarks.golden --write    make the file anew, after a change that is meant to change numbers
    python -m benchmarks.golden --file F   the same with another file, as of the state before a change on this machine

Each run is kept as log Z, its reported sd, the number of evaluations and a hash of the points. Another machine,
another kernel of OpenBLAS, or other versions of NumPy and SciPy, sum in another order and choose other points: there
the file says nothing, and the command says so and compares log Z with the error bar alone. One CPU can run several
kernels: where the kernel alone differs, `OPENBLAS_CORETYPE=SkylakeX python -m benchmarks.golden` takes the file's.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from threadpoolctl import threadpool_info

import wsabi
from benchmarks.measuring import _machine, _versions
from wsabi import problems

FILE = Path(__file__).with_name("golden.json")


def _suite(name: str, budget: int, seed: int, **choices: Any) -> wsabi.Result:
    problem = getattr(problems, name)(**choices.pop("problem", {}))
    return wsabi.integrate(
        problem.log_likelihood_vectorized, problem.prior, budget=budget, rng=seed, vectorized=True, **choices
    )


def _mixture(x: np.ndarray) -> float:
    """Two components that can be exchanged: means x0 and x1, data by hand."""
    y = np.array([-1.2, -0.9, -1.1, 0.8, 1.3, 1.0, 0.9])
    return float(np.logaddexp(-2.0 * (y - x[0]) ** 2, -2.0 * (y - x[1]) ** 2).sum())


def _by_hand() -> wsabi.Result:
    """Ask and tell in batches of three, told out of order, one point given up."""
    integrator = wsabi.Integrator(wsabi.Gaussian([0.0, 0.0, 0.0]), rng=4)
    for turn in range(30):
        X = integrator.ask(3)
        if turn == 7:
            integrator.forget(X[1])
            X = X[[0, 2]]
        integrator.tell(X[::-1], [-0.5 * float(np.sum((x - 0.4) ** 2)) / 0.3**2 for x in X[::-1]])
    return integrator.result()


def _continued() -> wsabi.Result:
    first = _suite("banana", 60, 5)
    problem = problems.banana()
    return wsabi.integrate(
        problem.log_likelihood_vectorized, problem.prior, budget=40, rng=6, vectorized=True, start=first
    )


def _named() -> wsabi.Result:
    prior = {"beta": [stats.norm(0, 2), (-3.0, 3.0)], "tau": stats.halfcauchy(0, 1)}
    return wsabi.integrate(
        lambda p: float(-2.0 * np.sum((p["beta"] - [0.5, -1.0]) ** 2) - (np.log(p["tau"]) - 0.2) ** 2),
        prior,
        budget=150,
        rng=7,
    )


def _with_gradient() -> wsabi.Result:
    centre = np.linspace(-0.5, 0.7, 6)
    return wsabi.integrate(
        lambda x: -0.5 * float(np.sum((x - centre) ** 2)) / 0.05**2,
        wsabi.Gaussian(np.zeros(6)),
        grad=lambda x: -(x - centre) / 0.05**2,
        budget=150,
        rng=8,
    )


RUNS: dict[str, Callable[[], wsabi.Result]] = {
    "gmm": lambda: _suite("gmm", 150, 0, problem={"seed": 0}),
    "banana": lambda: _suite("banana", 120, 1),
    "shells": lambda: _suite("shells", 200, 2),
    "correlated": lambda: _suite("correlated_gaussian", 180, 3, problem={"dim": 6}),
    "student": lambda: _suite("student_tails", 150, 0),
    "infeasible half": lambda: _suite("infeasible_half", 120, 1),
    "synthclass": lambda: _suite("synthclass", 120, 2),
    "to tolerance": lambda: _suite("banana", 300, 9, tol=0.05),
    "exchangeable": lambda: wsabi.integrate(_mixture, wsabi.Gaussian([0.0, 0.0], 4.0), budget=150, rng=3),
    "gradient": _with_gradient,
    "ask and tell": _by_hand,
    "continued": _continued,
    "named, vectors": _named,
    "another prior": lambda: _suite("banana", 100, 2).with_prior(wsabi.Gaussian([0.0, 0.0], 0.8)),
    "paper": lambda: _suite("gmm", 30, 0, problem={"seed": 1, "dim": 2}, settings=wsabi.Settings.paper()),
    "wsabi-m, prior": lambda: _suite("banana", 60, 0, settings=wsabi.Settings(method="wsabi-m", measure="prior")),
    "bq, box": lambda: wsabi.integrate(
        lambda x: -float(x @ x),
        wsabi.Uniform([-2.0, -1.0], [1.0, 2.0]),
        budget=40,
        rng=0,
        settings=wsabi.Settings(method="bq", measure="prior"),
    ),
}


def record(result: wsabi.Result) -> dict[str, Any]:
    points = hashlib.sha256(np.ascontiguousarray(result.points).tobytes()).hexdigest()
    return {"log_z": result.log_z, "log_z_std": result.log_z_std, "n_evals": result.n_evals, "points": points}


def _conditions() -> dict[str, Any]:
    machine = _machine()
    kernels = sorted({lib["architecture"] for lib in threadpool_info() if "architecture" in lib})
    return _versions() | {"processor": machine["processor"], "blas": machine["blas"]["name"], "kernels": kernels}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="runs; all of them if left out")
    parser.add_argument("--write", action="store_true", help="make the file anew")
    parser.add_argument("--file", type=Path, default=FILE, help="the file (default: golden.json beside this script)")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore", wsabi.EvidenceWarning)
    file: Path = chosen.file
    names = chosen.names or list(RUNS)
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"conditions": {}, "runs": {}}
    same = known["conditions"] == _conditions()
    if not same and not chosen.write:
        here = _conditions()
        differ = {key: (there, here.get(key)) for key, there in known["conditions"].items() if here.get(key) != there}
        print(f"{file.name} was made elsewhere (there, here: {differ}): log Z is compared with its error bar alone.")
    made, wrong = dict(known["runs"]), []
    for name in names:
        made[name] = record(RUNS[name]())
        before = known["runs"].get(name)
        if before is None:
            verdict = "new"
        elif before == made[name]:
            verdict = "same"
        else:
            distance = abs(before["log_z"] - made[name]["log_z"])
            within = distance <= 3.0 * np.hypot(before["log_z_std"], made[name]["log_z_std"])
            verdict = "DIFFERENT" if same else "within the error bars" if within else "FAR"
        if verdict in ("DIFFERENT", "FAR"):
            wrong.append(name)
        print(f"{name:16s} {made[name]['log_z']:+.12f} ± {made[name]['log_z_std']:.3g}  {verdict}", flush=True)
    if chosen.write:
        file.write_text(json.dumps({"conditions": _conditions(), "runs": made}, indent=1) + "\n", encoding="utf-8")
        print(f"written: {file.name}")
        return 0
    print("all as they were" if not wrong else f"changed: {', '.join(wrong)}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
