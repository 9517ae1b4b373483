"""The evidence of a straight line: two parameters, a Gaussian prior, and an exact answer to compare with."""

import numpy as np

import wsabi

times = np.linspace(-1.0, 1.0, 12)
design = np.column_stack([np.ones_like(times), times])  # y = a + b t
noise_sd = 0.8
observed = design @ [0.7, -1.2] + np.random.default_rng(0).normal(scale=noise_sd, size=12)


def log_likelihood(x: np.ndarray) -> float:
    """log p(observed | a, b) for x = (a, b)."""
    residual = (observed - design @ x) / noise_sd
    return float(-0.5 * residual @ residual - len(observed) * np.log(noise_sd * np.sqrt(2 * np.pi)))


prior = wsabi.Gaussian(mean=[0.0, 0.0], cov=2.0, names=["a", "b"])
result = wsabi.integrate(log_likelihood, prior, budget=80, rng=0)
print(result)

# Both prior and noise are Gaussian, so the data are too: observed ~ N(0, 2 A Aᵀ + σ² I), A the design.
cov = 2.0 * design @ design.T + noise_sd**2 * np.eye(12)
log_det = np.linalg.slogdet(2 * np.pi * cov)[1]
exact = -0.5 * (log_det + observed @ np.linalg.solve(cov, observed))
print(f"estimate {result.log_z:.4f} ± {result.log_z_std:.4f}")
print(f"exact    {exact:.4f}")
