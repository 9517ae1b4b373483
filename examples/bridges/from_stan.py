"""A Stan program as it is: a line with unknown noise. BridgeStan compiles it, which takes a minute."""

import tempfile
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.integrate import quad

import wsabi

PROGRAM = """
data { int<lower=0> N; vector[N] t; vector[N] y; }
parameters { real level; real slope; real<lower=0> sigma; }
model {
  level ~ normal(0, 2);
  slope ~ normal(0, 2);
  sigma ~ exponential(1);
  y ~ normal(level + slope * t, sigma);
}
"""
times = np.linspace(-1.0, 1.0, 20)
observed = 0.4 + 0.9 * times + np.random.default_rng(0).normal(scale=0.6, size=20)
data = {"N": 20, "t": times.tolist(), "y": observed.tolist()}

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "line.stan"
    path.write_text(PROGRAM)
    # The same program without observations is its prior: so the two are taken apart.
    prior = {"level": stats.norm(0, 2), "slope": stats.norm(0, 2), "sigma": stats.expon()}
    model = wsabi.from_stan(path, data, prior, prior_data={"N": 0, "t": [], "y": []})
    result = wsabi.integrate(model, rng=0)
print(result)


def density(sd: float) -> float:
    """p(observed | sigma) p(sigma) / e⁻²⁰, with level and slope integrated out: both are Gaussian."""
    cov = 4.0 + 4.0 * np.outer(times, times) + sd**2 * np.eye(20)
    return np.exp(stats.multivariate_normal(cov=cov).logpdf(observed) + 20.0 - sd)


exact = np.log(quad(density, 1e-3, 10.0, epsrel=1e-8)[0]) - 20.0
print(f"estimate {result.log_z:.4f} ± {result.log_z_std:.4f}")
print(f"exact    {exact:.4f}")
