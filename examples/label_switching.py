"""A mixture whose components can be renumbered, declared as such: its mode comes twice, and one search finds both."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import logsumexp

import wsabi

random = np.random.default_rng(5)
heights = np.concatenate([random.normal(-1.5, 0.8, 25), random.normal(2.0, 0.8, 15)])


def log_density(mu1: ArrayLike, mu2: ArrayLike, log_sd: ArrayLike) -> np.ndarray:
    """log p(heights | parameters): each height is from N(mu1, sd²) or N(mu2, sd²), as likely from either."""
    sd = np.exp(log_sd)
    either = [stats.norm.logpdf(heights, mu, sd) for mu in (mu1, mu2)]
    return (np.logaddexp(*either) - np.log(2.0)).sum(axis=-1)


def log_likelihood(x: dict[str, float]) -> float:
    """The same for one point, with the parameters by name."""
    return float(log_density(x["mu1"], x["mu2"], x["log_sd"]))


prior = {"mu1": stats.norm(0.0, 4.0), "mu2": stats.norm(0.0, 4.0), "log_sd": stats.norm(0.0, 1.0)}
# A few evaluations prove what is declared. Groups of several names are declared as [("mu1", "sd1"), ("mu2", "sd2")].
settings = wsabi.Settings(exchangeable=["mu1", "mu2"])
result = wsabi.integrate(log_likelihood, prior, budget=300, rng=0, settings=settings)
print(result)

# Three parameters are few enough for a sum over a lattice that holds both modes: a million evaluations.
axes = [np.linspace(-4.0, 4.0, 121), np.linspace(-4.0, 4.0, 121), np.linspace(-1.2, 1.5, 70)]
total = -np.inf
for mu1 in axes[0]:
    mu2, log_sd = (axis[..., None] for axis in np.meshgrid(axes[1], axes[2], indexing="ij"))
    at = {"mu1": mu1, "mu2": mu2, "log_sd": log_sd}
    log_prior = sum(prior[name].logpdf(value) for name, value in at.items())
    total = np.logaddexp(total, logsumexp(log_density(**at) + log_prior[..., 0]))
print(f"estimate        {result.log_z:.3f}")
print(f"exact           {total + sum(np.log(axis[1] - axis[0]) for axis in axes):.3f}")
