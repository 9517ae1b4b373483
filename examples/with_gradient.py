"""A likelihood with a gradient: counts that depend on seven quantities, with and without the gradient's help."""

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp

import wsabi

DIM, N = 8, 4000
random = np.random.default_rng(0)
design = np.column_stack([np.ones(N), random.standard_normal((N, DIM - 1))])
design[:, 2] = 0.9 * design[:, 1] + 0.4 * design[:, 2]  # two of them nearly tell the same
counts = random.poisson(np.exp(design @ random.normal(scale=0.4, size=DIM)))
constant = gammaln(counts + 1.0).sum()


def log_likelihood(x: np.ndarray) -> float:
    """log p(counts | x), counts ~ Poisson(exp(design @ x))."""
    log_rates = design @ x
    with np.errstate(over="ignore"):  # a rate beyond all numbers: zero likelihood
        return float(counts @ log_rates - np.exp(log_rates).sum() - constant)


def gradient(x: np.ndarray) -> np.ndarray:
    """∂ log p(counts | x)/∂x, one number for each parameter."""
    return design.T @ (counts - np.exp(design @ x))


prior = wsabi.Gaussian(mean=np.zeros(DIM), cov=4.0)
for name, grad in (("without grad", None), ("with grad", gradient)):
    result = wsabi.integrate(log_likelihood, prior, budget=500, rng=0, grad=grad)
    print(f"{name}: log Z = {result.log_z:.3f} ± {result.log_z_std:.3f} from {result.n_evals} evaluations; ", end="")
    print(f"the first of {len(result.searches)} searches took {result.searches[0].n_evals} to find the mode")

# With thousands of evaluations, draws of a Student density that has the posterior's mode and curvature know Z to 0.01.
mode = np.asarray(result.posterior.mean)
for _ in range(10):  # Newton's method
    curvature = design.T @ (np.exp(design @ mode)[:, None] * design) + np.eye(DIM) / 4.0
    mode = mode + np.linalg.solve(curvature, gradient(mode) - mode / 4.0)
student = stats.multivariate_t(mode, np.linalg.inv(curvature), df=8, seed=random)
points = student.rvs(5000)
log_weights = np.array([log_likelihood(x) for x in points]) + prior.log_pdf(points) - student.logpdf(points)
exact = logsumexp(log_weights) - np.log(len(points))
print(f"estimate {result.log_z:.4f} ± {result.log_z_std:.4f}")
print(f"exact    {exact:.4f}")
