"""A one-dimensional likelihood, models that were given another one, and the certificate from check points."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from wsabi.adaptive.check.combine import INTERIM, certify
from wsabi.adaptive.check.crossfit import CrossFit
from wsabi.adaptive.check.proposal import Proposal
from wsabi.adaptive.regions import Regions
from wsabi.adaptive.search.anneal import Explorer
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.tuning import tuned
from wsabi.priors import Gaussian
from wsabi.result import Certificate
from wsabi.settings import Settings

Function = Callable[[np.ndarray], np.ndarray]


TRUTH = math.log(0.5 / math.sqrt(0.5**2 + 1.0)) - 0.5 * 0.4**2 / 1.25  # ∫ exp(−½((x − 0.4)/0.5)²) N(x; 0, 1)


def log_l(X: np.ndarray) -> np.ndarray:
    return -0.5 * np.square((X[:, 0] - 0.4) / 0.5)


def wrong(X: np.ndarray) -> np.ndarray:
    """What the models are told instead: a narrower bump, elsewhere and too high."""
    return -0.5 * np.square((X[:, 0] - 0.7) / 0.35) + 0.3


def regions_of(function: Function = wrong, dim: int = 1, n: int = 25, misled: float = 0.0) -> Regions:
    """Two regions whose models have seen ``function``, and whose surrogates ``misled`` more than that."""
    measure = Gaussian(np.zeros(dim))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, dim))
    explorers = []
    for centre, log_z in ((0.5, -1.0), (-0.4, -2.0)):
        explorer = Explorer(measure, rng)
        explorer.frame = Frame.of(np.full(dim, centre), 0.25 * np.eye(dim))
        explorer.fit(X, function(X) + misled, learn=True)
        explorer.log_z = log_z
        explorers.append(explorer)
    return Regions(measure, Settings(), rng, explorers, X, function(X), [None, None])


def certified(regions: Regions, n: int, seed: int, function: Function = log_l, n_draws: int = 300) -> Certificate:
    """The certificate from n check points on which the likelihood is ``function``."""
    proposal = Proposal(regions.measure, regions)
    rng = np.random.default_rng(seed)
    X = proposal.sample(n, rng)
    with tuned("check", draws=n_draws, draws_factor=1):
        return certify(regions, proposal, X, function(X), proposal.log_pdf(X), rng)


def cross_fitted(regions: Regions, n: int, seed: int, function: Function, n_draws: int = 300) -> Certificate:
    """The certificate from n check points that are data of the surrogates as well."""
    proposal = Proposal(regions.measure, regions)
    rng = np.random.default_rng(seed)
    X = proposal.sample(n, rng)
    crossfit = CrossFit.of(regions, X, function(X), n)
    with tuned("check", draws=n_draws, draws_factor=1):
        return certify(regions, proposal, X, function(X), proposal.log_pdf(X), rng, INTERIM, crossfit)


def rippled(X: np.ndarray) -> np.ndarray:
    return log_l(X) + 0.8 * np.sin(7.0 * X[:, 0])


def by_surrogate(regions: Regions) -> float:
    """log ∫ of the explorers' ℓπ on the real line, by the trapezoidal rule."""
    grid = np.linspace(-6.0, 6.0, 4001)
    return float(np.logaddexp.reduce(regions.surrogate(grid[:, None])[0])) + math.log(grid[1] - grid[0])
