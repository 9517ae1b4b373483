"""A model written for dynesty, given to wsabi as it is: the same log Z from a thirtieth of the evaluations."""

import dynesty
import numpy as np

import wsabi

DIM = 3
cov = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.3], [0.0, 0.3, 0.5]])
inverse, log_det = np.linalg.inv(cov), np.linalg.slogdet(2 * np.pi * cov)[1]


def loglike(x):
    """log N(x; 0, cov)."""
    return -0.5 * x @ inverse @ x - 0.5 * log_det


def prior_transform(u):
    """Uniform on [−10, 10]³."""
    return 20.0 * u - 10.0


sampler = dynesty.NestedSampler(loglike, prior_transform, DIM, nlive=100, rstate=np.random.default_rng(0))
sampler.run_nested(print_progress=False)
log_z, error = sampler.results.logz[-1], sampler.results.logzerr[-1]
print(f"dynesty: log Z = {log_z:.3f} ± {error:.3f} from {int(np.sum(sampler.results.ncall))} evaluations")

result = wsabi.integrate(wsabi.from_prior_transform(loglike, prior_transform, DIM), rng=0)
print(f"wsabi:   log Z = {result.log_z:.3f} ± {result.log_z_std:.3f} from {result.n_evals} evaluations")
print(f"estimate {result.log_z:.4f} ± {result.log_z_std:.4f}")
print(f"exact    {-DIM * np.log(20.0):.4f}")
