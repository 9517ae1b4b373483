"""The engine's own time per evaluation, and where it goes.

    python -m benchmarks.bench_profile                 N = 100, 500, 1,000 in four and in eight dimensions
    python -m benchmarks.bench_profile --most 5000     and N = 5,000
    python -m benchmarks.bench_profile --against DIR   the same runs in turns with the package in DIR/src, as ratios

Own time is the CPU time of `integrate` on one thread, from the first point to the result, less that of the likelihood.
Every run spends its whole budget (``tol=0``). It is measured once plainly, and once more with samples of the stack
every millisecond. Each sample belongs to the innermost function of the package that it is in, and to the first purpose
below whose function is on its stack. The samples go to results/profile-NAME-N.txt as a tree, and to
results/profile-NAME-N.folded as lines "outer;...;inner count", which flame-graph viewers read.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

import numpy as np

import wsabi
from benchmarks.measuring import RESULTS, Options, Row, print_table, print_targets, save, spread
from wsabi import problems
from wsabi._core.types import Array

Stack = tuple[str, ...]
PACKAGE = str(Path(wsabi.__file__).parent)

PROBLEMS: dict[str, Callable[[], problems.Problem]] = {
    "gmm-4": lambda: problems.gmm(0, dim=4),
    "correlated-8": lambda: problems.correlated_gaussian(dim=8),
}

# From the first that is on the stack, a sample has its purpose.
PURPOSES = {
    "learning of θ": ("_learn",),
    "the result": ("result_of",),
    "shapes of regions": ("shape_of",),
    "estimates on the way": ("interim_estimate",),
    "WSABI models": ("SequentialModel.observe", "SequentialModel.propose", "SequentialModel.belief"),
    "matching of q": ("matched",),
    "choice of points": ("proposed", "ascended"),
    "other surrogates": ("fit_log_surrogate",),
}


def own_seconds(name: str, n: int, seed: int) -> tuple[float, float]:
    """Own CPU seconds of a run of n evaluations, and the error of its log Z."""
    target = PROBLEMS[name]()
    inside = 0.0

    def log_likelihood(X: Array) -> Array:
        nonlocal inside
        started = time.process_time()
        values = target.log_likelihood_vectorized(X)
        inside += time.process_time() - started
        return np.asarray(values)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wsabi.EvidenceWarning)
        started = time.process_time()
        result = wsabi.integrate(log_likelihood, target.prior, budget=n, rng=seed, vectorized=True, tol=0)
    return time.process_time() - started - inside, result.log_z - target.log_z


class Sampler:
    """Counts the stack of the main thread at every millisecond of CPU time, outermost first, from the package's on."""

    def __init__(self) -> None:
        self.stacks: Counter[Stack] = Counter()

    def _sample(self, _signal: int, frame: FrameType | None) -> None:
        stack = []
        while frame is not None:
            code = frame.f_code
            if code.co_filename.startswith(PACKAGE):
                stack.append(code.co_qualname)
            frame = frame.f_back
        if stack:
            self.stacks[tuple(reversed(stack))] += 1

    def __enter__(self) -> Sampler:
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)


def purpose(stack: Stack) -> str:
    for name, functions in PURPOSES.items():
        if any(function in stack for function in functions):
            return name
    return "all else"


def tree(stacks: Counter[Stack], least: float = 0.005) -> list[str]:
    """Lines of a tree: the share of all samples, and the function; branches below ``least`` are left out."""
    total = sum(stacks.values())
    below: Counter[Stack] = Counter()
    for stack, count in stacks.items():
        for depth in range(1, len(stack) + 1):
            below[stack[:depth]] += count

    def lines(prefix: Stack) -> list[str]:
        children = [key for key in below if len(key) == len(prefix) + 1 and key[:-1] == prefix]
        made = []
        for key in sorted(children, key=lambda key: -below[key]):
            if below[key] >= least * total:
                made += [f"{100 * below[key] / total:5.1f} % {'  ' * len(prefix)}{key[-1]}", *lines(key)]
        return made

    return lines(())


def shares(counts: Counter[str]) -> str:
    total = max(sum(counts.values()), 1)
    return ", ".join(f"{name} {100 * count / total:.0f} %" for name, count in counts.most_common(8))


def profile(name: str, n: int, folder: Path) -> dict[str, float]:
    """Sample a run, write its tree and its folded stacks, print where its time goes; the share of every purpose."""
    with Sampler() as sampler:
        own_seconds(name, n, 0)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"profile-{name}-{n}.txt"
    path.write_text("\n".join(tree(sampler.stacks)) + "\n", encoding="utf-8")
    folded = [f"{';'.join(stack)} {count}" for stack, count in sampler.stacks.most_common()]
    path.with_suffix(".folded").write_text("\n".join(folded) + "\n", encoding="utf-8")
    by_purpose: Counter[str] = Counter()
    by_function: Counter[str] = Counter()
    for stack, count in sampler.stacks.items():
        by_purpose[purpose(stack)] += count
        by_function[stack[-1]] += count
    print(f"\n{name}, N = {n}\n  what for: {shares(by_purpose)}\n  where:    {shares(by_function)}\n  written:  {path}")
    total = max(sum(by_purpose.values()), 1)
    return {key: count / total for key, count in by_purpose.items()}


def measured_in(root: Path, name: str, n: int, seed: int) -> float:
    """Own CPU seconds of the package in root/src, in a fresh interpreter that has made a short run before."""
    script = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "from benchmarks.bench_profile import own_seconds\n"
        f"own_seconds({name!r}, 40, 0); print(own_seconds({name!r}, {n}, {seed})[0])"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root / "src"), str(Path(__file__).parents[1])])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout))


def against(other: Path, sizes: Sequence[int], seeds: int) -> list[Row]:
    """Ratios of own time, this package over the other, run by run in turns."""
    here, rows, cells = Path(__file__).parents[1], [], []
    for name in PROBLEMS:
        for n in sizes:
            both = np.array([[measured_in(root, name, n, seed) for root in (other, here)] for seed in range(seeds)])
            ratios = both[:, 1] / both[:, 0]
            before, after = np.median(1e3 * both / n, axis=0)
            cells.append((name, str(n), f"{before:.2f}", f"{after:.2f}", f"{np.median(ratios):.2f}{spread(ratios)}"))
            rows.append(Row.at_most(f"{name}, N = {n}, own time over that before", float(np.median(ratios)), 0.5))
    print_table(cells, ("problem", "N", "ms per evaluation before", "after", "ratio"))
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brief", action="store_true", help="one short run: that it works, not how fast it is")
    parser.add_argument("--most", type=int, default=1000, help="largest N of 100, 500, 1000, 5000")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each kind")
    parser.add_argument("--against", type=Path, help="a checkout to compare with")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the files (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    sizes = [60] if chosen.brief else [n for n in (100, 500, 1000, 5000) if n <= chosen.most]
    names = list(PROBLEMS)[:1] if chosen.brief else list(PROBLEMS)
    rows: list[Row] = []
    raw: dict[str, object] = {}
    if chosen.against is not None:
        rows += against(chosen.against, sizes, chosen.seeds)
    else:
        own_seconds(names[0], 40, 0)  # what is imported late is imported here
        cells = []
        for name in names:
            for n in sizes:
                runs = [own_seconds(name, n, seed) for seed in range(1 if chosen.brief else chosen.seeds)]
                per_point = [1e3 * seconds / n for seconds, _ in runs]
                worst = max(abs(error) for _, error in runs)
                cells.append((name, str(n), f"{np.median(per_point):.2f}{spread(per_point)}", f"{worst:.4f}"))
                raw[f"{name}-{n}"] = {"ms": per_point, "purposes": profile(name, n, chosen.output)}
        print()
        print_table(cells, ("problem", "N", "own ms per evaluation", "largest error of log Z"))
    print()
    print_targets(rows)
    save("bench_profile", Options(chosen.brief, chosen.output), rows, raw)


if __name__ == "__main__":
    main()
