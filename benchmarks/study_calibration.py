"""The constants that calibrate error bars, measured on random shapes that no study of accuracy or coverage uses.

    python -m benchmarks.study_calibration [--shapes 40] [--evals 50] [--output FILE]

Each run makes ``evals`` (D + 2) evaluations, and counts where no evaluation is left unexplained. Then the last
estimate is made with several values of each constant. Printed are, over all runs,

    integral_error   |log of the models' integral − log Z| over the mean predictive sd of log ℓ
    typical_error    the same over the sd that the models' integral is given
    contradiction    rms error and coverage of the combined estimate with values around the present one

with the present value beside each. The shapes are those of benchmarks/shapes.py; coverage is reported on the public
suite, benchmarks/held_out.py and real models.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import print_table
from benchmarks.shapes import Shape
from wsabi import Settings
from wsabi._core.types import Streams
from wsabi.adaptive.estimate import final_estimate, relearnt
from wsabi.adaptive.state import State
from wsabi.adaptive.tuning import TUNING, tuned
from wsabi.ledger import Observation
from wsabi.priors.chart import chart
from wsabi.strategies.adaptive import AdaptiveStrategy

FACTORS = (0.5, 0.7, 1.0, 1.4, 2.0)  # of the present value, at which the combined estimate is made again
VARIED = ("integral_error", "typical_error", "contradiction", "shared_error")
CLIPPED = 4.0  # sds: a standardised error counts no more, so that one miss does not decide


def final_state(shape: Shape, n: int, seed: int) -> State | None:
    """The state after n evaluations, with the models of the last estimate; None where no region was found."""
    coordinates = chart(shape.prior, gaussian=True)
    strategy = AdaptiveStrategy(coordinates, Settings(), Streams.of(seed), n)
    for i in range(n):
        action = strategy.ask((), np.random.default_rng((seed, i)))
        value = shape(coordinates.to_user(action.u[None])[0])
        strategy.tell([Observation(action.u, value, action.purpose)])
    return None if strategy.state.models is None else relearnt(strategy.state)


def study(seed: int, per_dimension: int) -> dict[str, Any] | None:
    """Ratios of one run, and its standardised and plain errors under each varied value."""
    shape = Shape(seed)
    state = final_state(shape, per_dimension * (shape.dim + 2), seed)
    present = None if state is None else final_estimate(state)
    if state is None or present is None or state.unsearched_nats > 0.0 or state.has_met_more:
        return None
    error = abs(present.model_log_z - shape.log_z)
    row: dict[str, Any] = {
        "seed": seed,
        "dim": shape.dim,
        "wsabi_share": present.wsabi_share,
        "integral_error": error / present.uncertainty,
        "typical_error": error / present.model_log_z_std,
    }
    for name in VARIED:
        for factor in FACTORS:
            with tuned("check", **{name: factor * getattr(TUNING.check, name)}):
                made = final_estimate(state)
            assert made is not None
            row[f"{name}*{factor:g}"] = (made.log_z - shape.log_z, made.log_z_std)
    return row


def described(rows: Sequence[dict[str, Any]]) -> None:
    cells = []
    for name in ("integral_error", "typical_error"):
        ratios = np.array([row[name] for row in rows])
        low, middle, high = np.quantile(ratios, (0.16, 0.5, 0.84))
        rms = float(np.sqrt(np.mean(np.minimum(ratios, CLIPPED) ** 2)))
        cells.append([name, f"{getattr(TUNING.check, name):g}", f"{rms:.2f}", f"{low:.2f}, {middle:.2f}, {high:.2f}"])
    print_table(cells, ("constant", "present", "rms ratio", "16, 50, 84 %"))
    print()
    cells = []
    for name in VARIED:
        for factor in FACTORS:
            errors, sds = np.array([row[f"{name}*{factor:g}"] for row in rows]).T
            z = np.minimum(np.abs(errors) / sds, CLIPPED)
            value = factor * getattr(TUNING.check, name)
            score = float(np.mean(np.log(sds) + 0.5 * z**2))
            cover = np.mean(np.abs(errors) <= 1.96 * sds)
            numbers = np.median(np.abs(errors)), np.sqrt(np.mean(errors**2)), np.median(sds)
            cells.append([name, f"{value:.3g}", *(f"{number:.4f}" for number in numbers)])
            cells[-1] += [f"{np.sqrt(np.mean(z**2)):.2f}", f"{100 * cover:.0f} %", f"{score:.3f}"]
    heading = ("constant", "value", "median error", "rms error", "median bar", "rms of error/bar", "cover", "score")
    print_table(cells, heading)
    print(f"\n{len(rows)} runs. The score is the mean of log bar + ½ (error/bar)²; lower is better.")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", type=int, default=40)
    parser.add_argument("--evals", type=int, default=50, help="evaluations for D parameters, over D + 2")
    parser.add_argument("--output", type=Path, default=None, help="file for the raw numbers, as JSON")
    chosen = parser.parse_args(arguments)
    rows = [row for row in (study(seed, chosen.evals) for seed in range(chosen.shapes)) if row is not None]
    if chosen.output is not None:
        chosen.output.write_text(json.dumps(rows) + "\n", encoding="utf-8")
    described(rows)


if __name__ == "__main__":
    main()
