"""An ordinary differential equation: how fast an epidemic spreads, from the number of pupils in bed each day."""

import numpy as np
from scipy import stats
from scipy.integrate import solve_ivp
from scipy.special import gammaln, logsumexp

import wsabi

PUPILS = 763.0  # influenza in an English boarding school, January 1978: British Medical Journal 1978;1:587
in_bed = np.array([3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4], dtype=float)
days = np.arange(len(in_bed), dtype=float)


def infected(beta: float, gamma: float, first: float) -> np.ndarray:
    """I(t) on each day of dS/dt = −βSI/N, dI/dt = βSI/N − γI, with I(0) = first, (14,)."""

    def rates(_: float, state: np.ndarray) -> list[float]:
        susceptible, ill = state
        infections = beta * susceptible * ill / PUPILS
        return [-infections, infections - gamma * ill]

    solved = solve_ivp(rates, (0.0, days[-1]), [PUPILS - first, first], t_eval=days, method="LSODA", rtol=1e-7)
    return np.asarray(np.maximum(solved.y[1], 1e-9))


def log_density(counts: np.ndarray, expected: np.ndarray, dispersion: float | np.ndarray) -> np.ndarray:
    """log p(counts | expected): negative binomial, variance expected + expected²/dispersion; summed over days."""
    share = expected / (expected + dispersion)
    coefficient = gammaln(counts + dispersion) - gammaln(dispersion) - gammaln(counts + 1.0)
    return np.asarray(coefficient + dispersion * np.log1p(-share) + counts * np.log(share)).sum(axis=-1)


def log_likelihood(p: dict[str, float]) -> float:
    """log p(in_bed | β, γ, I(0), dispersion); the last two are given by their logs."""
    expected = infected(p["beta"], p["gamma"], np.exp(p["log_first"]))
    return float(log_density(in_bed, expected, np.exp(p["log_dispersion"])))


prior = {
    "beta": stats.gamma(4.0, scale=0.5),  # infections per day by one pupil at the beginning
    "gamma": stats.gamma(4.0, scale=0.125),  # recoveries per day
    "log_first": stats.norm(0.5, 1.0),
    "log_dispersion": stats.norm(2.0, 1.0),
}
result = wsabi.integrate(log_likelihood, prior, budget=200, rng=0)
print(result)
draws = result.posterior.sample(2000, rng=1)
low, high = np.quantile(draws[:, 0] / draws[:, 1], [0.025, 0.975])
print(f"reproduction number beta/gamma: {np.median(draws[:, 0] / draws[:, 1]):.2f}, 95 % in [{low:.2f}, {high:.2f}]")


def infected_at_all(beta: np.ndarray, gamma: np.ndarray, first: np.ndarray, steps: int = 20) -> np.ndarray:
    """The same for many parameters at once by the classical Runge-Kutta method, (M, 14)."""
    state, path = np.stack([PUPILS - first, first]), [first]

    def rates(state: np.ndarray) -> np.ndarray:
        infections = beta * state[0] * state[1] / PUPILS
        return np.stack([-infections, infections - gamma * state[1]])

    for _ in days[1:]:
        for _ in range(steps):
            k1 = rates(state)
            k2 = rates(state + 0.5 / steps * k1)
            k3 = rates(state + 0.5 / steps * k2)
            state = state + (k1 + 2.0 * k2 + 2.0 * k3 + rates(state + k3 / steps)) / (6.0 * steps)
        path.append(state[1])
    return np.maximum(np.stack(path, axis=1), 1e-9)


# The exact value by 5,000 Student draws around the posterior.
student = stats.multivariate_t(np.asarray(result.posterior.mean), 1.3 * np.asarray(result.posterior.cov), df=5, seed=2)
points = student.rvs(5000)
points = points[(points[:, 0] > 0) & (points[:, 1] > 0)]  # the prior is zero elsewhere
expected = infected_at_all(points[:, 0], points[:, 1], np.exp(points[:, 2]))
log_prior = sum(density.logpdf(column) for density, column in zip(prior.values(), points.T, strict=True))
log_weights = log_density(in_bed, expected, np.exp(points[:, 3:])) + log_prior - student.logpdf(points)
print(f"estimate {result.log_z:.4f} ± {result.log_z_std:.4f}")
print(f"exact    {logsumexp(log_weights) - np.log(5000):.4f}")
