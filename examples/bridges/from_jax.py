"""A log-likelihood in JAX: decay with an unknown rate, amplitude and noise; the gradient comes by itself."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import wsabi

random = np.random.default_rng(0)
times = np.linspace(0.0, 5.0, 25)
observed = 2.0 * np.exp(-0.7 * times) + random.normal(scale=0.1, size=25)


def log_likelihood(p):
    """log p(observed | rate, amplitude, noise), traced by JAX."""
    residual = (observed - p["amplitude"] * jnp.exp(-p["rate"] * times)) / p["noise"]
    return -0.5 * jnp.sum(residual**2) - 25 * jnp.log(p["noise"] * jnp.sqrt(2 * jnp.pi))


prior = {"rate": stats.lognorm(1.0), "amplitude": stats.norm(0, 5), "noise": stats.lognorm(1.0, scale=0.1)}
model = wsabi.from_jax(log_likelihood, prior)
result = wsabi.integrate(model, rng=0)
print(result)

# The same integral on a grid of Gauss-Legendre nodes, 40 in each direction, around the mode.
nodes, weights = np.polynomial.legendre.leggauss(40)
low, high = result.posterior.mean - 8 * result.posterior.std, result.posterior.mean + 8 * result.posterior.std
low = np.maximum(low, [1e-3, -50.0, 1e-3])
axes = [0.5 * (b - a) * nodes + 0.5 * (a + b) for a, b in zip(low, high, strict=True)]
rate, amplitude, noise = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
with jax.enable_x64(True):
    log_l = jax.vmap(log_likelihood)({"rate": rate, "amplitude": amplitude, "noise": noise})
log_f = np.asarray(log_l) + model.prior.log_pdf(np.column_stack([rate, amplitude, noise]))
volume = np.prod(0.5 * (high - low))
each = np.einsum("i,j,k->ijk", weights, weights, weights).ravel()
exact = log_f.max() + np.log(volume * np.sum(each * np.exp(log_f - log_f.max())))
print(f"estimate {result.log_z:.4f} ± {result.log_z_std:.4f}")
print(f"exact    {exact:.4f}")
