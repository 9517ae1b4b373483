"""A one-dimensional likelihood, models that were given another one, and the certificate from check points."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from found_by_hand import a_fitted_explorer, known_with
from wsabi.adaptive.check.combine import INTERIM, certify
from wsabi.adaptive.check.crossfit import CrossFit
from wsabi.adaptive.check.proposal import Proposal
from wsabi.adaptive.models import Models
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.tuning import tuned
from wsabi.result import Certificate
from wsabi.settings import Settings

Function = Callable[[np.ndarray], np.ndarray]

TRUTH = math.log(0.5 / math.sqrt(0.5**2 + 1.0)) - 0.5 * 0.4**2 / 1.25  # ∫ exp(−½((x − 0.4)/0.5)²) N(x; 0, 1)


def log_l(X: np.ndarray) -> np.ndarray:
    return -0.5 * np.square((X[:, 0] - 0.4) / 0.5)


def wrong(X: np.ndarray) -> np.ndarray:
    """What the models are told instead: a narrower bump, elsewhere and too high."""
    return -0.5 * np.square((X[:, 0] - 0.7) / 0.35) + 0.3


def slightly_wrong(X: np.ndarray) -> np.ndarray:
    """What is wrong by tenths of a nat, so that the models are of use as controls; those of ``wrong`` are left out."""
    return -0.5 * np.square((X[:, 0] - 0.5) / 0.45) + 0.2


def rippled(X: np.ndarray) -> np.ndarray:
    return log_l(X) + 0.8 * np.sin(7.0 * X[:, 0])


@cache
def regions_of(function: Function = wrong, dim: int = 1, n: int = 25, misled: float = 0.0) -> Models:
    """Two regions whose models have seen ``function``, and whose surrogates ``misled`` more than that.

    All tests share them. A test that replaces a method of theirs restores it.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, dim))
    frames = [Frame.of(np.full(dim, centre), 0.25 * np.eye(dim)) for centre in (0.5, -0.4)]
    explorers = [
        a_fitted_explorer(frame, X, function(X) + misled, log_z)
        for frame, log_z in zip(frames, (-1.0, -2.0), strict=True)
    ]
    return Models.of(known_with(explorers), Settings(), X, function(X), rng)


def certified(regions: Models, n: int, seed: int, function: Function = log_l, n_draws: int = 300) -> Certificate:
    """The certificate from n check points on which the likelihood is ``function``."""
    proposal = Proposal(regions.measure, regions)
    rng = np.random.default_rng(seed)
    X = proposal.sample(n, rng)
    with tuned("check", draws=n_draws, draws_factor=1):
        return certify(regions, proposal, X, function(X), proposal.log_pdf(X), rng)


def cross_fitted(regions: Models, n: int, seed: int, function: Function, n_draws: int = 300) -> Certificate:
    """The certificate from n check points that are data of the surrogates as well."""
    proposal = Proposal(regions.measure, regions)
    rng = np.random.default_rng(seed)
    X = proposal.sample(n, rng)
    crossfit = CrossFit.of(regions, X, function(X), n)
    with tuned("check", draws=n_draws, draws_factor=1):
        return certify(regions, proposal, X, function(X), proposal.log_pdf(X), rng, INTERIM, crossfit)


@cache
def replicates(function: Function) -> list[Certificate]:
    """Three hundred certificates of 40 check points each, by models that have seen ``function``."""
    return [certified(regions_of(function), 40, seed) for seed in range(300)]


def by_surrogate(regions: Models) -> float:
    """log ∫ of the explorers' ℓπ on the real line, by the trapezoidal rule."""
    grid = np.linspace(-6.0, 6.0, 4001)
    return float(np.logaddexp.reduce(regions.surrogate(grid[:, None])[0])) + math.log(grid[1] - grid[0])
