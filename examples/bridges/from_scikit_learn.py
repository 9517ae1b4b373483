"""The hyperparameters of a Gaussian process of scikit-learn, integrated out; two kernels are compared."""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

import wsabi

random = np.random.default_rng(0)
X = np.sort(random.uniform(0.0, 10.0, 30))[:, None]
y = np.sin(X[:, 0]) + random.normal(scale=0.2, size=30)

noise = WhiteKernel(0.05, (1e-3, 1.0))
models = {}
for name, kernel in (("smooth", RBF(1.0, (0.1, 10.0))), ("rough", Matern(1.0, (0.1, 10.0), nu=1.5))):
    gp = GaussianProcessRegressor(kernel + noise, optimizer=None).fit(X, y)
    models[name] = wsabi.from_sklearn_gp(gp)  # uniform in the logs, between the bounds of the kernel
results = {name: wsabi.integrate(model, rng=0) for name, model in models.items()}
print(wsabi.compare(results))
print(results["smooth"].posterior.summary())

# The integral of the smooth kernel by 40 × 40 Gauss-Legendre nodes in the logs.
nodes, weights = np.polynomial.legendre.leggauss(40)
prior = models["smooth"].prior
ends = np.column_stack([prior.low, prior.high])
a, b = (0.5 * (high - low) * nodes + 0.5 * (low + high) for low, high in ends)
log_l = np.array([[models["smooth"].log_likelihood(np.array([one, two])) for two in b] for one in a])
exact = log_l.max() + np.log(np.sum(np.outer(weights, weights) / 4.0 * np.exp(log_l - log_l.max())))
print(f"estimate {results['smooth'].log_z:.4f} ± {results['smooth'].log_z_std:.4f}")
print(f"exact    {exact:.4f}")
