"""Likelihoods that are mixtures of Gaussian densities, whose Z is exact: the paper's synthetic set and relatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from wsabi._core.logspace import log_sum_exp
from wsabi._core.types import Array
from wsabi.priors import Gaussian
from wsabi.problems._problem import LOG_2PI, Problem, checked_dim, require_positive, unit_prior

__all__ = ["DiagonalMixture", "gmm", "two_bumps"]


@dataclass(frozen=True, eq=False)
class DiagonalMixture:
    """log Σ_k w_k ∏_d N(x_d; m_kd, s_kd²).

    Parameters
    ----------
    weights : (K,) w, summing to one.
    means, sds : (K, D) m and s.
    """

    weights: Array
    means: Array
    sds: Array

    def __call__(self, X: Array) -> Array:
        """(N,) for X (N, D).

        Each squared distance is expanded, (x − m)²/s² = x²/s² − 2xm/s² + m²/s²: two matrix products for all N·K terms.
        The means are within a few s of the origin in every use here, so nothing cancels.
        """
        precision = 1.0 / np.square(self.sds)  # (K, D)
        squares = np.square(X) @ precision.T - 2.0 * X @ (precision * self.means).T  # (N, K)
        constant = np.square(self.means / self.sds).sum(axis=1) + 2.0 * np.log(self.sds).sum(axis=1)
        terms = np.log(self.weights) - 0.5 * (squares + constant + self.means.shape[1] * LOG_2PI)
        top = terms.max(axis=1)
        return np.asarray(top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))

    def log_evidence(self, prior_variance: float) -> float:
        """log Z under N(0, vI): log Σ_k w_k ∏_d N(m_kd; 0, s_kd² + v), exact."""
        variance = np.square(self.sds) + prior_variance
        log_terms = -0.5 * (np.square(self.means) / variance + np.log(variance) + LOG_2PI).sum(axis=1)
        return log_sum_exp(np.log(self.weights) + log_terms)


def gmm(seed: int = 0, dim: int = 4, spread: Literal["sd", "variance"] = "sd") -> Problem:
    """A random mixture of 5 to 14 Gaussian densities under the prior N(0, 25² I); Z is exact.

    K ~ U{5..14}; means uniform on [−25, 25]^D; one integer from 21..29 per component and axis; weights the lengths of
    the K segments into which K − 1 uniform points cut the unit interval.

    Parameters
    ----------
    seed : of the mixture.
    dim : D.
    spread : how the integers are read: "sd", as standard deviations (smooth), or "variance" (separate lumps).

    Notes
    -----
    Paper, "Synthetic Likelihoods", with domain [−50, 50]^D; it fixes neither the prior nor the reading of the scale.
    """
    dim = checked_dim(dim)
    if spread not in ("sd", "variance"):
        raise ValueError(f'spread must be "sd" or "variance"; got {spread!r}.')
    rng = np.random.default_rng(seed)
    n_components = int(rng.integers(5, 15))
    means = rng.uniform(-25.0, 25.0, size=(n_components, dim))
    scales = rng.integers(21, 30, size=(n_components, dim)).astype(np.float64)
    cuts = np.sort(rng.uniform(size=n_components - 1))
    mixture = DiagonalMixture(
        weights=np.diff(cuts, prepend=0.0, append=1.0),
        means=means,
        sds=scales if spread == "sd" else np.sqrt(scales),
    )
    return Problem(
        name="gmm",
        prior=Gaussian(np.zeros(dim), 25.0**2),
        function=mixture,
        log_z=mixture.log_evidence(25.0**2),
        log_z_std=0.0,
        description=f"mixture of {n_components} Gaussians in {dim}-D, seed {seed}, scales read as {spread}",
        reference="exact: a sum of products of Gaussians",
    )


def two_bumps(dim: int = 2, separation: float = 2.0, sd: float = 0.2, shares: Sequence[float] = (0.6, 0.4)) -> Problem:
    """Two separate Gaussian bumps under N(0, I); Z is exact.

    ℓ(x) = w₁ N(x; −c, s²I) + w₂ N(x; +c, s²I), c = separation/2 on every axis

    Parameters
    ----------
    dim : D.
    separation : distance of the centres along every axis.
    sd : s.
    shares : (w₁, w₂), positive; normalised to sum to one.
    """
    dim = checked_dim(dim)
    require_positive(sd=sd)
    weights = np.asarray(shares, dtype=np.float64)
    if weights.shape != (2,) or not np.all(weights > 0.0):
        raise ValueError(f"shares must be two positive numbers; got {shares!r}.")
    centre = np.full(dim, 0.5 * separation)
    mixture = DiagonalMixture(weights / weights.sum(), np.stack([-centre, centre]), np.full((2, dim), sd))
    return Problem(
        name="two_bumps",
        prior=unit_prior(dim),
        function=mixture,
        log_z=mixture.log_evidence(1.0),
        log_z_std=0.0,
        description=f"two Gaussian bumps of sd {sd:g} in {dim}-D, {separation:g} apart on every axis",
        reference="exact: a sum of products of Gaussians",
    )
