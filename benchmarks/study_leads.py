"""A narrow spike on a broad hill that no search has met, and one point told on its flank: is it followed?

    python -m benchmarks.study_leads [--seeds 3]

A run makes 150 evaluations, is told one point about a standard deviation from the top of the spike, and makes 250
more. Printed are the errors of log Z, with the error bars, before that point, right after it and at the end.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np

import wsabi
from benchmarks.measuring import print_table
from wsabi._core.types import Array

CASES = ((3, 0.03), (5, 0.05), (5, 0.01))  # dimensions, and the sd of the spike; that of the hill is HILL
HILL = 0.5
SURPLUS = 1.5  # log of the spike's integral over the hill's, where the prior is the same


class Spiked:
    """log ℓ of the hill and the spike under N(0, I), with the exact log Z."""

    def __init__(self, dim: int, width: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.hill, self.spike = 0.5 * rng.standard_normal(dim), rng.standard_normal(dim)
        self.width, self.height = width, SURPLUS - dim * math.log(width / HILL)

    def __call__(self, x: Array) -> float:
        hill = -0.5 * float(np.square((x - self.hill) / HILL).sum())
        return float(np.logaddexp(hill, self.height - 0.5 * float(np.square((x - self.spike) / self.width).sum())))

    @property
    def log_z(self) -> float:
        def of(centre: Array, sd: float) -> float:
            return 0.5 * len(centre) * math.log(sd**2 / (1 + sd**2)) - 0.5 * float(centre @ centre) / (1 + sd**2)

        return float(np.logaddexp(of(self.hill, HILL), self.height + of(self.spike, self.width)))


def study(dim: int, width: float, seed: int) -> list[str]:
    target = Spiked(dim, width, seed)
    integrator = wsabi.Integrator(wsabi.Gaussian(np.zeros(dim)), rng=seed)

    def go_on(n: int) -> None:
        for _ in range(n):
            X = integrator.ask(1)
            integrator.tell(X, [target(X[0])])

    def described() -> str:
        result = integrator.result()
        return f"{result.log_z - target.log_z:+.3f} ± {result.log_z_std:.3f}"

    go_on(150)
    before = described()
    x = target.spike + width * np.random.default_rng(seed + 77).standard_normal(dim)
    integrator.tell(x, [target(x)])
    told = described()
    go_on(250)
    return [f"{dim}-D", f"{width:g}", str(seed), before, told, described()]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    rows = [study(dim, width, seed) for dim, width in CASES for seed in range(chosen.seeds)]
    print_table(rows, ("", "sd of the spike", "seed", "before", "told", "at the end"))


if __name__ == "__main__":
    main()
