"""Likelihoods on a line and models of them: what the one-dimensional experiments share."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from wsabi._core.logspace import scaled_likelihood
from wsabi._core.types import Array
from wsabi.gp.exact import GP, condition
from wsabi.gp.fit import LengthscalePrior, fit_lengthscales
from wsabi.priors import Gaussian
from wsabi.quadrature.integral import moments
from wsabi.quadrature.warp import latent_values, likelihood_moments, offset
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.settings import Acquisition, Method, Settings

__all__ = [
    "ALPHA",
    "DOMAIN",
    "NORMAL_95",
    "N_SAMPLES",
    "PRIOR",
    "SHOWN",
    "Bumps",
    "LineModel",
    "active",
    "conditioned",
    "grid_model",
    "random_bumps",
]

NORMAL_95 = 1.959964  # half a 95 % interval, in standard deviations
ALPHA = 0.8  # paper p. 3, footnote
N_SAMPLES = 15
PRIOR = Gaussian([0.0], 4.0)
DOMAIN = (-6.0, 6.0)  # three prior standard deviations


@dataclass(frozen=True, eq=False)
class Bumps:
    """ℓ(x) = Σ_k h_k exp(−½ (x − c_k)²/w_k²), with heights, centres and widths (K,)."""

    heights: Array
    centres: Array
    widths: Array

    def __call__(self, x: Array) -> Array:
        """ℓ, (M,), at x (M,)."""
        return np.asarray(np.exp(-0.5 * np.square((x[:, None] - self.centres) / self.widths)) @ self.heights)

    def log(self, x: Array) -> Array:
        """log ℓ, (M,), without underflow, at x (M,)."""
        terms = np.log(self.heights) - 0.5 * np.square((x[:, None] - self.centres) / self.widths)
        return np.asarray(np.logaddexp.reduce(terms, axis=1))

    @property
    def z(self) -> float:
        """Z = Σ_k h_k w_k √(2π) N(c_k; μ, w_k² + σ²) under the prior N(μ, σ²)."""
        variance = np.square(self.widths) + PRIOR.cov[0, 0]
        normal = np.exp(-0.5 * np.square(self.centres - PRIOR.mean[0]) / variance) / np.sqrt(variance)
        return float(np.sum(self.heights * self.widths * normal))


# The paper does not say which function its one-dimensional figures show. This one has a broad bump, a narrow one and a
# long stretch of nothing.
SHOWN = Bumps(np.array([1.0, 0.45, 0.75]), np.array([-2.2, 0.4, 2.6]), np.array([0.75, 0.9, 0.5]))


def random_bumps(rng: np.random.Generator, widths: tuple[float, float]) -> Bumps:
    """Two to five bumps: centres within two prior sds, heights 0.2 to 1, widths uniform between the two given."""
    n = int(rng.integers(2, 6))
    return Bumps(rng.uniform(0.2, 1.0, n), rng.uniform(-4.0, 4.0, n), rng.uniform(*widths, n))


@dataclass(frozen=True, eq=False)
class LineModel:
    """A GP on ℓ̃ (or ℓ) at ``points`` (N,), and what it makes of ℓ and Z, in the scale of ℓ itself."""

    method: Method
    gp: GP
    alpha: float  # of the scaled likelihood
    scale: float  # max ℓ: values of the model times this are values of ℓ
    points: Array
    values: Array

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of ℓ(x), (M,) each, at x (M,)."""
        m, c = likelihood_moments(self.method, self.alpha, *self.gp.predict(x[:, None]))
        return self.scale * m, self.scale * np.sqrt(c)

    def z(self) -> tuple[float, float]:
        """E[Z] and the standard deviation of Z."""
        found = moments(self.gp, PRIOR, self.alpha, self.method)
        return self.scale * found.mean, self.scale * math.sqrt(found.variance)

    def probability_negative(self, x: Array) -> Array:
        """P(ℓ(x) < 0) under the model's normal, (M,)."""
        mean, sd = self.predict(x)
        return np.asarray(ndtr(-mean / np.maximum(sd, 1e-300)))


def conditioned(method: Method, points: Array, log_l: Array, lengthscale: float | None = None) -> LineModel:
    """The model of log ℓ (N,) at points (N,): length-scale by MAP unless given, α = 0.8 min ℓ."""
    likelihood, log_l_max = scaled_likelihood(log_l)
    alpha = 0.0 if method == "bq" else offset(likelihood, ALPHA)
    l_tilde = latent_values(likelihood, alpha, method)
    if lengthscale is None:
        sd = math.sqrt(PRIOR.cov[0, 0])
        fit = fit_lengthscales(points[:, None] / sd, l_tilde, prior=LengthscalePrior.for_dim(1))
        lengthscale = sd * float(fit.lengthscales[0])
    gp = condition(points[:, None], l_tilde, np.array([lengthscale]))
    return LineModel(method, gp, alpha, math.exp(log_l_max), points, np.exp(log_l))


def grid_model(method: Method, likelihood: Bumps, n: int = N_SAMPLES) -> LineModel:
    """The model of ℓ on a grid of n points over the domain."""
    points = np.linspace(*DOMAIN, n)
    return conditioned(method, points, likelihood.log(points))


def active(
    method: Method, likelihood: Bumps, rng: np.random.Generator, n: int = N_SAMPLES,
    acquisition: Acquisition = "uncertainty",
) -> LineModel:  # fmt: skip
    """n samples chosen one after another by the paper's settings, beginning at the prior mean."""
    model = SequentialModel(PRIOR, replace(Settings.paper(method), initial=1, acquisition=acquisition), rng)
    for _ in range(n):
        x = model.propose(1, np.empty((0, 1)))
        model.observe(x, likelihood.log(x[:, 0]))
    assert model.gp is not None
    return LineModel(method, model.gp, model.alpha, math.exp(model.log_l_max), model.X[:, 0], likelihood(model.X[:, 0]))
