"""You own the loop: ask for points in batches, evaluate them as you like, tell the values in any order."""

from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np

import wsabi

CENTRE = np.array([0.5, -0.5, 0.0])


def simulate(x: np.ndarray) -> float:
    """Stand in for an expensive simulator: log N(x; CENTRE, I)."""
    return float(-0.5 * np.sum((x - CENTRE) ** 2) - 1.5 * np.log(2 * np.pi))


prior = wsabi.Gaussian(mean=[0.0, 0.0, 0.0], cov=1.0)
integrator = wsabi.Integrator(prior, rng=0)

# Values from an earlier study are welcome: nothing already paid for is evaluated again.
old_points = prior.sample(10, rng=1)
integrator.tell(old_points, np.array([simulate(x) for x in old_points]))

with ThreadPoolExecutor(max_workers=4) as pool:
    for _ in range(20):
        futures = {pool.submit(simulate, x): x for x in integrator.ask(4)}
        for future in as_completed(futures):  # told one by one, in the order in which they finish
            integrator.tell(futures[future][None, :], np.array([future.result()]))

result = integrator.result()
print(result)

# N(CENTRE; x, I) under x ~ N(0, I) integrates to N(CENTRE; 0, 2 I).
exact = -0.25 * CENTRE @ CENTRE - 1.5 * np.log(4 * np.pi)
print(f"estimate {result.log_z:.4f} ± {result.log_z_std:.4f}")
print(f"exact    {exact:.4f}")
