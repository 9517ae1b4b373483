"""Distributions of PyMC as those of ``scipy.stats``, by the name of their class and their parameters there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv

from wsabi._core.types import Array

__all__ = ["FAMILIES", "HalfStudent", "distribution"]


@dataclass(frozen=True)
class HalfStudent:
    """|σt|, t of Student's distribution with ν degrees of freedom, with the methods of SciPy's random variables.

    Parameters
    ----------
    nu, sigma : ν and σ; numbers, or arrays that broadcast.
    """

    nu: Any
    sigma: Any

    def icdf(self, q: Any) -> Array:
        """Quantiles: σ√(νy/(1 − y)) with I_y(½, ν/2) = q, I the regularised incomplete beta function."""
        y = betaincinv(0.5, 0.5 * self.nu, q)
        return np.asarray(self.sigma * np.sqrt(self.nu * y / (1.0 - y)))

    def iccdf(self, q: Any) -> Array:
        """Quantiles from the upper tail: σ√(ν(1 − y)/y) with I_y(ν/2, ½) = q."""
        y = betaincinv(0.5 * self.nu, 0.5, q)
        return np.asarray(self.sigma * np.sqrt(self.nu * (1.0 - y) / y))

    def cdf(self, x: Any) -> Array:
        """I_y(½, ν/2) with y = t²/(ν + t²), t = x/σ; zero below zero."""
        square = np.square(np.maximum(x, 0.0) / self.sigma)
        return np.asarray(betainc(0.5, 0.5 * self.nu, square / (self.nu + square)))

    def ccdf(self, x: Any) -> Array:
        """I_y(ν/2, ½) with y = ν/(ν + t²); one below zero."""
        square = np.square(np.maximum(x, 0.0) / self.sigma)
        return np.asarray(betainc(0.5 * self.nu, 0.5, self.nu / (self.nu + square)))

    def logpdf(self, x: Any) -> Array:
        """log 2 + log p_t(x), −inf below zero."""
        from scipy import stats

        return np.where(np.asarray(x) >= 0.0, np.log(2.0) + stats.t(self.nu, scale=self.sigma).logpdf(x), -np.inf)

    def support(self) -> tuple[float, float]:
        """(0, ∞)."""
        return 0.0, np.inf

    # The names of a frozen distribution, by which priors that depend on others ask.
    ppf, isf = icdf, iccdf


def _truncated_normal(stats: Any, mu: Any, sigma: Any, low: Any = -np.inf, high: Any = np.inf) -> Any:
    return stats.truncnorm((low - mu) / sigma, (high - mu) / sigma, mu, sigma)


def _triangular(stats: Any, low: Any, mode: Any, high: Any) -> Any:
    return stats.triang((mode - low) / (high - low), low, high - low)


# Class of PyMC -> scipy.stats and the parameters of the class, in its order, to a distribution.
FAMILIES: dict[str, Callable[..., Any]] = {
    "NormalRV": lambda stats, mu, sigma: stats.norm(mu, sigma),
    "UniformRV": lambda stats, low, high: stats.uniform(low, high - low),
    "HalfNormalRV": lambda stats, loc, sigma: stats.halfnorm(loc, sigma),
    "LogNormalRV": lambda stats, mu, sigma: stats.lognorm(sigma, scale=np.exp(mu)),
    "ExponentialRV": lambda stats, scale: stats.expon(scale=scale),
    "GammaRV": lambda stats, alpha, scale: stats.gamma(alpha, scale=scale),
    "InvGammaRV": lambda stats, alpha, beta: stats.invgamma(alpha, scale=beta),
    "BetaRV": lambda stats, alpha, beta: stats.beta(alpha, beta),
    "StudentTRV": lambda stats, nu, mu, sigma: stats.t(nu, mu, sigma),
    "HalfStudentTRV": lambda stats, nu, sigma: HalfStudent(nu, sigma),
    "CauchyRV": lambda stats, alpha, beta: stats.cauchy(alpha, beta),
    "HalfCauchyRV": lambda stats, *loc_beta: stats.halfcauchy(loc_beta[-2] if len(loc_beta) > 1 else 0.0, loc_beta[-1]),
    "LaplaceRV": lambda stats, mu, b: stats.laplace(mu, b),
    "LogisticRV": lambda stats, mu, s: stats.logistic(mu, s),
    "WeibullBetaRV": lambda stats, alpha, beta: stats.weibull_min(alpha, scale=beta),
    "GumbelRV": lambda stats, mu, beta: stats.gumbel_r(mu, beta),
    "TriangularRV": _triangular,
    "TruncatedNormalRV": _truncated_normal,
    "ParetoRV": lambda stats, alpha, m: stats.pareto(alpha, scale=m),
    "MoyalRV": lambda stats, mu, sigma: stats.moyal(mu, sigma),
    "SkewNormalRV": lambda stats, mu, sigma, alpha: stats.skewnorm(alpha, mu, sigma),
    "WaldRV": lambda stats, mu, lam, alpha: stats.invgauss(mu / lam, loc=alpha, scale=lam),
}


def distribution(family: str, parameters: list[Any]) -> Any:
    """The distribution of a class of PyMC with these parameters, numbers or arrays that broadcast."""
    from scipy import stats

    return FAMILIES[family](stats, *parameters)
