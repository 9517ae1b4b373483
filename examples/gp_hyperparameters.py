"""The hyperparameters of Gaussian-process regression are integrated out instead of set to one best value."""

import numpy as np
from scipy import stats
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp

import wsabi

random = np.random.default_rng(3)
x = np.sort(random.uniform(0.0, 10.0, 25))
y = np.sin(x) + 0.3 * x + random.normal(scale=0.3, size=25)
y = (y - y.mean()) / y.std()


def own_log_marginal_likelihood(theta: np.ndarray) -> float:
    """log p(y | theta) of the kernel exp(a) exp(−(x − x')²/(2 exp(2l))) + exp(n) δ, theta = (a, l, n)."""
    a, log_length, n = theta
    squares = np.subtract.outer(x, x) ** 2
    K = np.exp(a - 0.5 * squares * np.exp(-2.0 * log_length)) + np.exp(n) * np.eye(len(x))
    factor = cho_factor(K, lower=True)
    log_det = 2.0 * np.log(np.diag(factor[0])).sum()
    return float(-0.5 * (y @ cho_solve(factor, y) + log_det + len(x) * np.log(2.0 * np.pi)))


try:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    regressor = GaussianProcessRegressor(ConstantKernel() * RBF() + WhiteKernel(), optimizer=None).fit(x[:, None], y)
    log_likelihood = regressor.log_marginal_likelihood  # of theta, which scikit-learn has in logs as well
except ImportError:
    print("scikit-learn is not installed: the same formula, written out, takes its place")
    log_likelihood = own_log_marginal_likelihood

prior = {
    "log_variance": stats.norm(0.0, 1.5),
    "log_length": stats.norm(0.5, 1.0),
    "log_noise": stats.norm(-2.0, 1.5),
}
result = wsabi.integrate(lambda p: log_likelihood(np.array(list(p.values()))), prior, budget=150, rng=0)
print(result)

# Predictions at x = 5 and beyond the data, by draws of the hyperparameters: the spread between draws is what one best
# value leaves out.
where = np.array([5.0, 12.0])
means = []
for a, log_length, n in result.posterior.sample(200, rng=1):
    K = np.exp(a - 0.5 * np.subtract.outer(x, x) ** 2 * np.exp(-2.0 * log_length)) + np.exp(n) * np.eye(len(x))
    cross = np.exp(a - 0.5 * np.subtract.outer(where, x) ** 2 * np.exp(-2.0 * log_length))
    means.append(cross @ np.linalg.solve(K, y))
for at, mean, spread in zip(where, np.mean(means, axis=0), np.std(means, axis=0), strict=True):
    print(f"at x = {at:4.1f}: mean {mean:+.2f}, sd of the mean over hyperparameters {spread:.2f}")

# The exact value by Student draws around the posterior; each costs one evaluation, and there are 4,000.
student = stats.multivariate_t(np.asarray(result.posterior.mean), 1.3 * np.asarray(result.posterior.cov), df=5, seed=2)
points = student.rvs(4000)
log_prior = sum(density.logpdf(column) for density, column in zip(prior.values(), points.T, strict=True))
log_l = np.array([own_log_marginal_likelihood(theta) for theta in points])
exact = logsumexp(log_l + log_prior - student.logpdf(points)) - np.log(len(points))
print(f"estimate {result.log_z:.4f} ± {result.log_z_std:.4f}")
print(f"exact    {exact:.4f}")
