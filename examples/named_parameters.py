"""A prior given as a dict: each parameter has a name and a distribution, and the likelihood receives a dict."""

import numpy as np
from scipy import integrate, stats

import wsabi

times = np.linspace(0.0, 4.0, 9)
observed = 1.5 * np.exp(-0.6 * times) + np.random.default_rng(1).normal(scale=0.4, size=times.size)


def log_likelihood(p: dict[str, float]) -> float:
    """An exponential decay seen through noise of standard deviation 0.4."""
    expected = p["amplitude"] * np.exp(-p["rate"] * times)
    return float(stats.norm.logpdf(observed, expected, 0.4).sum())


prior = {"amplitude": stats.norm(0.0, 2.0), "rate": (0.1, 2.0)}  # a tuple means uniform between the two
result = wsabi.integrate(log_likelihood, prior, budget=100, rng=0)
print(result)

# In two dimensions adaptive quadrature can check the answer, for thousands of evaluations.
shift = float(result.log_likelihoods.max())


def integrand(rate: float, amplitude: float) -> float:
    """Likelihood × prior density, divided by the largest likelihood seen so that it does not underflow."""
    log_l = log_likelihood({"amplitude": amplitude, "rate": rate})
    return float(np.exp(log_l - shift) * stats.norm.pdf(amplitude, 0.0, 2.0) / 1.9)


exact = shift + np.log(integrate.dblquad(integrand, -8.0, 8.0, 0.1, 2.0, epsabs=1e-7, epsrel=1e-6)[0])
print(f"estimate {result.log_z:.4f} ± {result.log_z_std:.4f}")
print(f"exact    {exact:.4f}")
