"""Did coal mining become safer? The Bayes factor of a trend against a constant rate of accidents."""

import numpy as np
from scipy.special import gammaln, logsumexp

import wsabi

# Explosions in British coal mines with ten deaths or more, each year from 1851 to 1962: Jarrett, Biometrika 66 (1979).
BY_YEAR = (
    "4541043406334026335453144155342522342132211113001011003103220111010100021000110233112111124200014000100000100101"
)
accidents = np.array([int(digit) for digit in BY_YEAR])
centuries = (np.arange(1851, 1963) - 1906.5) / 100.0
constant = gammaln(accidents + 1.0).sum()


def log_likelihood(coefficients: np.ndarray) -> np.ndarray:
    """log p(accidents | coefficients), (N,) at (N, k): Poisson counts of the rate exp(Σ_k c_k centuriesᵏ) in a year."""
    log_rates = coefficients @ np.stack([centuries**k for k in range(coefficients.shape[1])])
    return np.asarray(log_rates @ accidents - np.exp(log_rates).sum(axis=1) - constant)


priors = {
    "constant": wsabi.Gaussian([0.0], 1.0, names=["level"]),
    "trend": wsabi.Gaussian([0.0, 0.0], [1.0, 4.0], names=["level", "trend"]),
    "bend": wsabi.Gaussian([0.0, 0.0, 0.0], [1.0, 4.0, 4.0], names=["level", "trend", "bend"]),
}
results = {name: wsabi.integrate(log_likelihood, prior, rng=0, vectorized=True) for name, prior in priors.items()}
print(wsabi.compare(results))
print(results["trend"].posterior.summary())
print("log Bayes factor of trend against constant:", results["trend"] - results["constant"])


def log_evidence_on_grid(prior: wsabi.Gaussian) -> float:
    """The sum over a grid, which one or two parameters are few enough for."""
    axes = [np.linspace(-6.0, 3.0, 361)] * prior.dim
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes)], axis=1)
    parts = np.array_split(grid, 1 + len(grid) // 5000)
    log_joint = [log_likelihood(part) + prior.log_pdf(part) for part in parts]
    return float(logsumexp(np.concatenate(log_joint)) + prior.dim * np.log(axes[0][1] - axes[0][0]))


exact = log_evidence_on_grid(priors["trend"]) - log_evidence_on_grid(priors["constant"])
print(f"estimate {results['trend'].log_z - results['constant'].log_z:.4f}")
print(f"exact    {exact:.4f}")
