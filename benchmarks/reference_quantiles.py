"""The 1 % and 99 % quantiles of the posteriors of real models: a nested sampler finds them, importance weights measure.

    python -m benchmarks.reference_quantiles [NAME ...] [--draws 60000] [--models FOLDER]

The models are those of `benchmarks.study_models`, which compares its posteriors with the numbers written here, to
`benchmarks/reference_quantiles.json`. nautilus (extra `bench`) samples the posterior; a mixture of Student densities is
fitted to that sample, and independent draws of the mixture get weights ℓπ/p. With n effective draws a 1 % quantile is
known to 3.7/√n sd where the tail is normal: 0.02 sd with 34,000. Evidence, means and sds, which the models know from
elsewhere, are printed beside their values here and must agree.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtri, softmax
from scipy.stats import norm

from benchmarks.measuring import print_table
from benchmarks.study_models import FOLDER, LEVELS, REFERENCE, load_models, moments_of
from wsabi._core.types import Array
from wsabi.adaptive.check.pareto import pareto_k
from wsabi.adaptive.surrogate.students import fit_students, joined
from wsabi.priors.chart import chart
from wsabi.priors.gaussian import Gaussian

AGREED = 0.05  # nats, and sds: further from what the model knows is an error, of the sampler or of the model
WIDE = 0.2  # share of the draws that come from components of twice the width, which keeps the weights bounded

COLUMNS = ("effective", "pareto_k", "log_z_off", "mean_off", "sd_off")


class Target:
    """ℓπ of a model in base coordinates u, in which the prior is N(0, I)."""

    def __init__(self, model: Any) -> None:
        self.model, self.space = model, chart(model.prior, gaussian=True)
        self.dim, self.n_evals = len(self.space.names), 0
        measure = self.space.measure
        if not (isinstance(measure, Gaussian) and np.array_equal(measure.cov, np.eye(self.dim))):
            raise TypeError(f"the prior of {model.name} has no map from N(0, I).")

    def log_l(self, U: Array) -> Array:
        """(N,) at U (N, D); −1e300 for zero likelihood, since nautilus takes no infinity."""
        self.n_evals += len(U)
        return np.maximum(np.nan_to_num(self.model.batch(self.space.to_user(U)), nan=-1e300), -1e300)

    def found(self, seed: int) -> tuple[Array, Array]:
        """Draws (N, D) of the posterior and their weights (N,), by nested sampling."""
        from nautilus import Sampler  # type: ignore[import-untyped,import-not-found,unused-ignore]

        sampler = Sampler(ndtri, self.log_l, n_dim=self.dim, n_live=1000, vectorized=True, pass_dict=False, seed=seed)
        sampler.run(n_eff=4000, discard_exploration=True)
        U, log_weights, _ = sampler.posterior()
        return U, softmax(log_weights)


def made(model: Any, n: int, seed: int) -> dict[str, Any]:
    """The entry of one model, from n draws."""
    started, rng, target = time.process_time(), np.random.default_rng(seed), Target(model)
    U, weights = target.found(seed)
    fitted = fit_students(U, weights, 12, rng)
    mixture = joined([(1.0 - WIDE, fitted), (WIDE, fitted.widened(4.0))])
    U = mixture.sample(n, rng)
    log_weights = target.log_l(U) + norm.logpdf(U).sum(axis=1) - mixture.log_pdf(U)
    w = softmax(log_weights)
    mean, sd, quantiles = moments_of(np.asarray(model.view(target.space.to_user(U))), w)
    entry: dict[str, Any] = {"levels": list(LEVELS), "quantiles": [[float(f"{q:.7g}") for q in r] for r in quantiles]}
    entry |= {
        "effective": round(1.0 / float(np.square(w).sum())),
        "pareto_k": round(pareto_k(log_weights), 2),
        "log_z_off": round(float(logsumexp(log_weights)) - math.log(n) - model.log_z, 4),
        "mean_off": round(float(np.max(np.abs(mean - model.mean) / model.sd)), 4),
        "sd_off": round(float(np.max(np.abs(sd / model.sd - 1.0))), 4),
        "evaluations": target.n_evals,
        "seconds": round(time.process_time() - started),
    }
    if max(abs(entry["log_z_off"]), entry["mean_off"], entry["sd_off"]) > AGREED:
        raise SystemExit(f"{model.name} is not what the model says: {entry}")
    return entry


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="models; all of them if left out")
    parser.add_argument("--draws", type=int, default=60_000, help="for the weights (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", type=Path, default=FOLDER, help="folder of models.py (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    models = load_models(chosen.models)
    known = json.loads(REFERENCE.read_text(encoding="utf-8")) if REFERENCE.exists() else {}
    rows = []
    for name in chosen.names or models:
        known[name] = entry = made(models[name], chosen.draws, chosen.seed)
        REFERENCE.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        error = f"{3.7 / math.sqrt(entry['effective']):.3f}"
        rows.append([name, error, *(str(entry[key]) for key in COLUMNS)])
        print(f"{name}: {entry['evaluations']} evaluations, {entry['seconds']} s", file=sys.stderr, flush=True)
    print_table(rows, ("model", "quantile known to, sd", *COLUMNS))


if __name__ == "__main__":
    main()
