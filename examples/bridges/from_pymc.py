"""A PyMC model as it is: is there a trend? The evidence of two models, and the posterior in ArviZ."""

import arviz as az
import numpy as np
import pymc as pm
from scipy import stats
from scipy.integrate import quad

import wsabi

random = np.random.default_rng(0)
times = np.linspace(-1.0, 1.0, 20)
observed = 0.4 + 0.9 * times + random.normal(scale=0.6, size=20)

results = {}
for name, trend in (("constant", 0.0), ("trend", 1.0)):
    with pm.Model() as model:
        level = pm.Normal("level", 0, 2)
        sigma = pm.HalfNormal("sigma", 1)
        slope = pm.Normal("slope", 0, 2) if trend else 0.0
        pm.Normal("y", level + slope * times, sigma, observed=observed)
    results[name] = wsabi.integrate(wsabi.from_pymc(model), rng=0)
print(wsabi.compare(results))
print(az.summary(results["trend"].to_arviz()))


def density(sd: float) -> float:
    """p(observed | sigma) p(sigma) / e⁻²⁰, with level and slope integrated out: both are Gaussian."""
    cov = 4.0 + 4.0 * np.outer(times, times) + sd**2 * np.eye(20)
    return np.exp(stats.multivariate_normal(cov=cov).logpdf(observed) + 20.0) * stats.halfnorm.pdf(sd)


exact = np.log(quad(density, 1e-3, 10.0, epsrel=1e-8)[0]) - 20.0
result = results["trend"]
print(f"estimate {result.log_z:.4f} ± {result.log_z_std:.4f}")
print(f"exact    {exact:.4f}")
