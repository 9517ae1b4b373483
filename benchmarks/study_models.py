"""Real models of posteriordb with known log Z and posterior moments: the engine as `wsabi.integrate` runs it.

    python -m benchmarks.study_models [NAME ...] [--seeds 8] [--models FOLDER]

The models and their data are no part of this repository. FOLDER holds `models.py` with a dict `MODELS`, each entry with
`prior`, `log_likelihood`, `log_z`, `log_z_se`, `view` and the posterior `mean` and `sd` of `view(x)`; the default is
`../shared/models` beside the repository, or the environment variable WSABI_MODELS. Quantiles are compared with those in
`benchmarks/reference_quantiles.json`, which `python -m benchmarks.reference_quantiles` makes.

The first table is of log Z: median and largest |error| in nats, median reported sd, how many 95 % intervals cover, how
many runs are wrong without a word (they neither cover nor have a warning), how many have a warning, and how many ended
in an error, of which the other columns know nothing. The second is of
the posterior, worst over parameters and runs: the error of a mean and of the 1 % and 99 % quantiles, in true sds, and
the sd furthest from the true one, as a ratio; then how many runs are out of bounds (a mean by 0.1 sd, an sd by 10 %, a
quantile by 0.25 sd), and how many of these have no warning.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import wsabi
from benchmarks.measuring import Options, cpu_seconds, print_table, save
from wsabi._core.types import Array
from wsabi.posterior.distribution import weighted_quantiles

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("WSABI_MODELS", ROOT.parent / "shared" / "models"))
REFERENCE = ROOT / "benchmarks" / "reference_quantiles.json"
LEVELS = (0.01, 0.99)
BOUNDS = {"mean_error": 0.1, "sd_error": 0.1, "quantile_error": 0.25}  # what a posterior without a warning should keep


@dataclass(frozen=True)
class Run:
    """One run: the error of log Z and its reported sd in nats, and how far the posterior is off.

    ``mean_error`` and ``quantile_error`` are the worst over parameters, in true sds; the latter is NaN where no
    quantiles are known. ``sd_ratio`` is that of the sd furthest from the true one.
    """

    model: str
    seed: int
    error: float
    log_z_std: float
    log_z_se: float
    n_evals: int
    seconds: float
    warnings: tuple[str, ...]
    mean_error: float
    sd_ratio: float
    quantile_error: float

    @property
    def covers(self) -> bool:
        return abs(self.error) <= 1.96 * math.hypot(self.log_z_std, self.log_z_se)

    @property
    def sd_error(self) -> float:
        return abs(self.sd_ratio - 1.0)

    @property
    def is_out_of_bounds(self) -> bool:
        return any(getattr(self, name) > bound for name, bound in BOUNDS.items())


def load_models(folder: Path) -> dict[str, Any]:
    path = folder / "models.py"
    if not path.exists():
        raise SystemExit(f"there is no {path}: name the folder of the models with --models or WSABI_MODELS.")
    spec = importlib.util.spec_from_file_location("wsabi_study_models", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return dict(module.MODELS)


def moments_of(viewed: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Mean (D,), sd (D,) and the quantiles (2, D) at LEVELS of weighted points (N, D)."""
    mean = weights @ viewed
    sd = np.sqrt(weights @ np.square(viewed - mean))
    quantiles = [weighted_quantiles(column, weights, np.array(LEVELS)) for column in viewed.T]
    return mean, sd, np.transpose(quantiles)


def reference_quantiles() -> dict[str, Array]:
    """Quantiles (2, D) at LEVELS by model; none where nobody has made them."""
    if not REFERENCE.exists():
        return {}
    entries = json.loads(REFERENCE.read_text(encoding="utf-8"))
    return {name: np.array(entry["quantiles"]) for name, entry in entries.items()}


def run(model: Any, seed: int, quantiles: Array | None = None) -> Run:
    """One run as a user would make it: defaults, a seed, no budget."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result, seconds = cpu_seconds(lambda: wsabi.integrate(model.log_likelihood, model.prior, rng=seed))
        points, weights = result.posterior.points, result.posterior.weights
        mean, sd, own = moments_of(np.asarray(model.view(points)), weights)
    log_ratio = np.log(np.maximum(sd, 1e-300) / model.sd)
    return Run(
        model.name,
        seed,
        result.log_z - model.log_z,
        result.log_z_std,
        model.log_z_se,
        result.n_evals,
        seconds,
        result.warnings,
        float(np.max(np.abs(mean - model.mean) / model.sd)),
        math.exp(float(log_ratio[np.argmax(np.abs(log_ratio))])),
        math.nan if quantiles is None else float(np.max(np.abs(own - quantiles) / model.sd)),
    )


def row(runs: Sequence[Run], crashed: int) -> list[str]:
    """Of log Z."""
    errors = np.abs([r.error for r in runs])
    return [
        runs[0].model,
        f"{np.median(errors):.4f}",
        f"{np.max(errors):.4f}",
        f"{np.median([r.log_z_std for r in runs]):.4f}",
        f"{sum(r.covers for r in runs)}/{len(runs)}",
        f"{sum(not r.covers and not r.warnings for r in runs)}",
        f"{sum(bool(r.warnings) for r in runs)}",
        f"{crashed}",
        f"{np.median([r.n_evals for r in runs]):.0f}",
        f"{1e3 * np.median([r.seconds / r.n_evals for r in runs]):.1f}",
    ]


def posterior_row(runs: Sequence[Run]) -> list[str]:
    """Of the posterior."""
    furthest = max((r.sd_ratio for r in runs), key=lambda ratio: abs(math.log(ratio)))
    quantile = max(r.quantile_error for r in runs)
    return [
        runs[0].model,
        f"{max(r.mean_error for r in runs):.2f}",
        f"{furthest:.2f}",
        "" if math.isnan(quantile) else f"{quantile:.2f}",
        f"{sum(r.is_out_of_bounds for r in runs)}/{len(runs)}",
        f"{sum(r.is_out_of_bounds and not r.warnings for r in runs)}",
    ]


HEADING = ("model", "error", "largest", "sd", "cover", "silent", "warned", "crashed", "evals", "ms/eval")
POSTERIOR = ("model", "mean off", "sd ratio", "quantile off", "out of bounds", "of these silent")


def _plain(r: Run) -> dict[str, Any]:
    known = None if math.isnan(r.quantile_error) else r.quantile_error
    return vars(r) | {"covers": r.covers, "is_out_of_bounds": r.is_out_of_bounds, "quantile_error": known}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="models; all of them if left out")
    parser.add_argument("--seeds", type=int, default=8, help="number of seeds, from 0 on (default: %(default)s)")
    parser.add_argument("--models", type=Path, default=FOLDER, help="folder of models.py (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results", help="folder of the JSON file")
    chosen = parser.parse_args(arguments)
    if chosen.models == FOLDER and not (FOLDER / "models.py").exists():  # as part of `make study`
        print(
            f"skipped: there is no {FOLDER / 'models.py'}; name the folder of the models with --models or WSABI_MODELS."
        )
        return
    models = load_models(chosen.models)
    unknown = set(chosen.names) - set(models)
    if unknown:
        parser.error(f"no such model: {', '.join(sorted(unknown))}; known are {', '.join(models)}.")
    quantiles = reference_quantiles()
    rows, of_posterior, raw, crashes = [], [], [], []
    for name in chosen.names or models:
        runs = []
        for seed in range(chosen.seeds):
            try:
                runs.append(run(models[name], seed, quantiles.get(name)))
            except wsabi.NumericalError as error:
                crashes.append({"model": name, "seed": seed, "error": str(error)})
                print(f"{name} {seed}: {error}", file=sys.stderr, flush=True)
                continue
            last = runs[-1]
            print(
                f"{name} {seed}: {last.error:+.4f} ± {last.log_z_std:.4f}, {last.n_evals} evaluations, posterior "
                f"{last.mean_error:.2f} sd, ratio {last.sd_ratio:.2f}, quantiles {last.quantile_error:.2f} sd; "
                f"{len(last.warnings)} warnings",
                file=sys.stderr,
                flush=True,
            )
        raw += [_plain(r) for r in runs]
        if runs:
            rows.append(row(runs, chosen.seeds - len(runs)))
            of_posterior.append(posterior_row(runs))
    print_table(rows, HEADING)
    print()
    print_table(of_posterior, POSTERIOR)
    print("written:", save("study_models", Options(False, chosen.output), [], {"runs": raw, "crashes": crashes}))


if __name__ == "__main__":
    main()
