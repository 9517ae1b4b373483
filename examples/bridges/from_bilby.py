"""A likelihood and priors of bilby, as a model and by bilby's own run_sampler."""

import logging
import tempfile

import bilby
import numpy as np

import wsabi

bilby.core.utils.logger.setLevel(logging.ERROR)
random = np.random.default_rng(0)
times = np.linspace(0.0, 1.0, 30)
observed = 1.5 * times + 0.3 + random.normal(scale=0.5, size=30)


def line(time, slope, offset):
    return slope * time + offset


likelihood = bilby.core.likelihood.GaussianLikelihood(times, observed, line, sigma=0.5)
priors = {
    "slope": bilby.core.prior.Gaussian(0.0, 3.0, "slope"),
    "offset": bilby.core.prior.Gaussian(0.0, 2.0, "offset"),
}

result = wsabi.integrate(wsabi.from_bilby(likelihood, priors), rng=0)
print(result)

# The same by bilby, which finds the sampler because wsabi is installed; the result is one of bilby's.
with tempfile.TemporaryDirectory() as folder:
    theirs = bilby.run_sampler(likelihood, priors, sampler="wsabi", outdir=folder, seed=0)
print(theirs)

design = np.column_stack([times, np.ones(30)])
cov = design @ np.diag([9.0, 4.0]) @ design.T + 0.25 * np.eye(30)  # of the data, which are Gaussian too
exact = -0.5 * (np.linalg.slogdet(2 * np.pi * cov)[1] + observed @ np.linalg.solve(cov, observed))
print(f"estimate {theirs.log_evidence:.4f} ± {theirs.log_evidence_err:.4f}")
print(f"exact    {exact:.4f}")
