"""The likelihood is a program: it is started for every evaluation, two at a time, and what fails is left out."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from scipy.special import logsumexp

import wsabi

PROGRAM = [sys.executable, "-S", str(Path(__file__).parent / "programs" / "pendulum.py")]


def log_likelihood(p: dict[str, float]) -> float:
    """Start the program with the parameters as arguments and read the number that it prints."""
    arguments = [repr(float(p[name])) for name in ("length", "damping")]
    done = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:  # the reason is kept in the ledger of the run
        raise RuntimeError(done.stderr.strip())
    return float(done.stdout)


prior = {"length": (0.2, 2.0), "damping": (0.0, 2.0)}  # metres; per second
with ThreadPoolExecutor(2) as threads:
    result = wsabi.integrate(log_likelihood, prior, budget=150, rng=0, executor=threads, timeout=60, on_error="exclude")
print(result)
print(result.posterior.summary())

# A grid of 40 × 40 around the posterior; the same simulator is imported here, which is quicker than 1,600 programs.
sys.path.insert(0, str(Path(__file__).parent / "programs"))
from pendulum import log_likelihood as imported  # noqa: E402

mean, sd = np.asarray(result.posterior.mean), np.asarray(result.posterior.std)
axes = [np.linspace(m - 6.0 * s, m + 6.0 * s, 40) for m, s in zip(mean, sd, strict=True)]
log_l = [imported(length, damping) for length in axes[0] for damping in axes[1]]
area = (axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0])
print(f"estimate {result.log_z:.4f} ± {result.log_z_std:.4f}")
print(f"exact    {logsumexp(log_l) + np.log(area / (1.8 * 2.0)):.4f}")
