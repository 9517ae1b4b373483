"""Logistic regression: which of two species of iris a flower is. The weights are integrated out."""

from pathlib import Path

import numpy as np
from scipy import stats
from scipy.special import logsumexp

import wsabi

NAMES = ["intercept", "sepal_length", "sepal_width", "petal_length", "petal_width"]
table = np.loadtxt(
    Path(__file__).parent / "data" / "iris.csv", delimiter=",", skiprows=3
)  # 50 versicolor, 50 virginica
lengths, is_virginica = table[:, :4], table[:, 4]
design = np.column_stack([np.ones(len(lengths)), (lengths - lengths.mean(axis=0)) / lengths.std(axis=0)])
signs = 2.0 * is_virginica - 1.0


def log_likelihood(W: np.ndarray) -> np.ndarray:
    """log p(species | weights): (N,) at weights (N, 5). p(virginica) = 1/(1 + exp(−design·w))."""
    return -np.logaddexp(0.0, -signs * (W @ design.T)).sum(axis=1)


prior = wsabi.Gaussian(mean=np.zeros(5), cov=2.5**2, names=NAMES)
result = wsabi.integrate(log_likelihood, prior, budget=250, rng=0, vectorized=True)
print(result)
print(result.posterior.summary())

# A flower that nobody has seen: the probability that it is a virginica, averaged over the posterior.
flower = np.concatenate([[1.0], (np.array([6.3, 2.9, 4.9, 1.7]) - lengths.mean(axis=0)) / lengths.std(axis=0)])
draws = result.posterior.sample(2000, rng=1)
print(f"p(virginica) = {np.mean(1.0 / (1.0 + np.exp(-draws @ flower))):.3f}")

# The exact value by 50,000 draws of a Student density with the posterior's mean and a wider covariance.
student = stats.multivariate_t(result.posterior.mean, 1.2 * np.asarray(result.posterior.cov), df=6, seed=2)
points = student.rvs(50_000)
log_weights = log_likelihood(points) + prior.log_pdf(points) - student.logpdf(points)
print(f"estimate {result.log_z:.4f} ± {result.log_z_std:.4f}")
print(f"exact    {logsumexp(log_weights) - np.log(len(points)):.4f}")
