"""Real models of posteriordb with known log Z and posterior moments: the engine as `wsabi.integrate` runs it.

    python -m benchmarks.study_models [NAME ...] [--seeds 8] [--models FOLDER]

The models and their data are no part of this repository. FOLDER holds `models.py` with a dict `MODELS`, each entry with
`prior`, `log_likelihood`, `log_z`, `log_z_se`, `view` and the posterior `mean` and `sd` of `view(x)`; the default is
`../shared/models` beside the repository, or the environment variable WSABI_MODELS.

A row of the table: median and largest |error| of log Z in nats, median reported sd, how many 95 % intervals cover, how
many runs are wrong without a word (they neither cover nor have a warning), how many have a warning, and of the
posterior the worst error of a mean, in true sds, and the sd furthest from the true one, as a ratio.
"""

from __future__ import annotations

import argparse
import importlib.util
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

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("WSABI_MODELS", ROOT.parent / "shared" / "models"))


@dataclass(frozen=True)
class Run:
    """One run: the error of log Z and its reported sd in nats, and how far the posterior's moments are off."""

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

    @property
    def covers(self) -> bool:
        return abs(self.error) <= 1.96 * math.hypot(self.log_z_std, self.log_z_se)


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


def run(model: Any, seed: int) -> Run:
    """One run as a user would make it: defaults, a seed, no budget."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result, seconds = cpu_seconds(lambda: wsabi.integrate(model.log_likelihood, model.prior, rng=seed))
        points, weights = result.posterior.points, result.posterior.weights
        viewed = np.asarray(model.view(points))
    mean = weights @ viewed
    sd = np.sqrt(weights @ np.square(viewed - mean))
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
    )


def row(runs: Sequence[Run]) -> list[str]:
    errors = np.abs([r.error for r in runs])
    furthest = max((r.sd_ratio for r in runs), key=lambda ratio: abs(math.log(ratio)))
    return [
        runs[0].model,
        f"{np.median(errors):.4f}",
        f"{np.max(errors):.4f}",
        f"{np.median([r.log_z_std for r in runs]):.4f}",
        f"{sum(r.covers for r in runs)}/{len(runs)}",
        f"{sum(not r.covers and not r.warnings for r in runs)}",
        f"{sum(bool(r.warnings) for r in runs)}",
        f"{np.median([r.n_evals for r in runs]):.0f}",
        f"{max(r.mean_error for r in runs):.2f}",
        f"{furthest:.2f}",
        f"{1e3 * np.median([r.seconds / r.n_evals for r in runs]):.1f}",
    ]


HEADING = ("model", "error", "largest", "sd", "cover", "silent", "warned", "evals", "mean off", "sd ratio", "ms/eval")


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
    rows, raw = [], []
    for name in chosen.names or models:
        runs = []
        for seed in range(chosen.seeds):
            runs.append(run(models[name], seed))
            last = runs[-1]
            print(
                f"{name} {seed}: {last.error:+.4f} ± {last.log_z_std:.4f}, {last.n_evals} evaluations, posterior "
                f"{last.mean_error:.2f} sd, ratio {last.sd_ratio:.2f}; {len(last.warnings)} warnings",
                file=sys.stderr,
                flush=True,
            )
        rows.append(row(runs))
        raw += [vars(r) | {"covers": r.covers} for r in runs]
    print_table(rows, HEADING)
    print("written:", save("study_models", Options(False, chosen.output), [], {"runs": raw}))


if __name__ == "__main__":
    main()
