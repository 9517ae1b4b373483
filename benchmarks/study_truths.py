"""The truths of yacht, synthclass and citation, made again: adaptive importance sampling, and a nested sampler to check.

    python -m benchmarks.study_truths [NAME] [--evaluations N] [--seed S] [--nested]

Mode searches, a mixture of Student densities round the modes, rounds that refit it, and one last independent round
which alone gives log Z and its standard error. ``--nested`` runs nautilus (extra ``bench``) instead. The method, the
numbers it gave and their cross-checks are in docs/ground-truths.md.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import optimize, special

from benchmarks.measuring import RESULTS, Options, Row, print_table, print_targets, save
from wsabi import problems
from wsabi._types import Array
from wsabi.engine.certificate import pareto_k
from wsabi.problems import Problem

DEGREES = 8.0  # of freedom of every Student component
PRIOR_SHARE, MODE_SHARE = 0.05, 0.10  # of the draws: the prior itself, and the modes as they were found
STEP = 1e-3  # of finite differences: far above the 1e-9 to which the likelihoods are smooth, far below any width
KEEP = 15.0  # nats below the best mode at which a mode is dropped: all such together hold less than 1e-6 of the mass
TARGET = 0.02  # nats: the standard error every truth has to reach


@dataclass(frozen=True)
class Case:
    """A problem and the effort spent on it.

    Attributes
    ----------
    starts : mode searches, from the prior mean and from draws of the prior.
    adapt : evaluations of each round that refits the mixture.
    final : evaluations of the last round.
    components : Student components fitted.
    lattice : sum over a lattice too, which in three dimensions is better still.
    """

    problem: str
    options: dict[str, Any] = field(default_factory=dict)
    starts: int = 40
    rounds: int = 5
    adapt: int = 6000
    final: int = 60_000
    components: int = 12
    lattice: bool = False


CASES = {
    "yacht": Case("yacht"),
    "yacht-standardized": Case("yacht", {"standardized": True}),
    "synthclass": Case("synthclass", starts=12, rounds=3, adapt=2000, final=20_000, components=6, lattice=True),
    "citation": Case("citation", starts=16, rounds=4, adapt=2500, final=20_000, components=16),
}


class Target:
    """log ℓ(x)π(x), counting the points at which it was asked for."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.n_evals = 0

    def __call__(self, X: Array) -> Array:
        """(N,) values at X (N, D)."""
        self.n_evals += len(X)
        return self.problem.log_likelihood_vectorized(X) + self.problem.prior.log_pdf(X)

    def at(self, x: Array) -> float:
        return float(self(x[None])[0])


@dataclass(frozen=True)
class Mode:
    """A local maximum x of log ℓπ with the covariance (−∇∇ log ℓπ)⁻¹ there."""

    x: Array
    log_joint: float
    cov: Array

    @property
    def log_mass(self) -> float:
        """Laplace's approximation of the mode's part of log Z."""
        return self.log_joint + 0.5 * float(np.linalg.slogdet(2.0 * math.pi * self.cov)[1])


def find_modes(target: Target, starts: int, rng: np.random.Generator) -> list[Mode]:
    """The distinct ends of L-BFGS-B searches within KEEP nats of the best, best first."""
    prior = target.problem.prior
    origins = np.vstack([prior.mean, prior.sample(starts - 1, rng)])
    ends: list[tuple[float, Array]] = []
    for origin in origins:
        found = optimize.minimize(lambda x: -target.at(x), origin, method="L-BFGS-B", options={"eps": STEP, "ftol": 1e-7})
        ends.append((-float(found.fun), np.asarray(found.x)))
    ends.sort(key=lambda end: -end[0])
    sds = np.sqrt(np.diag(prior.cov))
    distinct: list[tuple[float, Array]] = []
    for value, x in ends:
        if value > ends[0][0] - KEEP and all(np.max(np.abs(x - y) / sds) > 0.1 for _, y in distinct):
            distinct.append((value, x))
    return [Mode(x, value, laplace_cov(target, x)) for value, x in distinct]


def laplace_cov(target: Target, x: Array, step: float = 1e-2) -> Array:
    """(−∇∇ log ℓπ)⁻¹ at x by central differences, (D, D); no wider than the prior in any direction."""
    dim = len(x)
    E = step * np.eye(dim)
    signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
    corners = np.array([[x + s * E[i] + t * E[j] for s, t in signs] for i in range(dim) for j in range(i, dim)])
    values = target(corners.reshape(-1, dim)).reshape(-1, 4) @ np.array([1.0, -1.0, -1.0, 1.0]) / (4.0 * step**2)
    hessian = np.zeros((dim, dim))
    hessian[np.triu_indices(dim)] = values
    hessian = hessian + np.triu(hessian, 1).T
    widest = float(np.max(np.linalg.eigvalsh(np.asarray(target.problem.prior.cov))))
    curvatures, axes = np.linalg.eigh(-hessian)
    return np.asarray((axes / np.maximum(curvatures, 1.0 / widest)) @ axes.T)


@dataclass(frozen=True)
class Students:
    """Σ_k w_k t_ν(x; μ_k, Σ_k), ν = DEGREES: weights (K,), means (K, D), covs (K, D, D)."""

    weights: Array
    means: Array
    covs: Array

    @cached_property
    def factors(self) -> Array:
        return np.linalg.cholesky(self.covs)

    def distances(self, X: Array) -> Array:
        """δ_kn = (x_n − μ_k)ᵀΣ_k⁻¹(x_n − μ_k), (K, N)."""
        white = [np.linalg.solve(L, (X - mean).T) for L, mean in zip(self.factors, self.means, strict=True)]
        return np.array([np.square(w).sum(axis=0) for w in white])

    def log_terms(self, X: Array, distances: Array | None = None) -> Array:
        """log w_k t_ν(x_n; μ_k, Σ_k), (K, N)."""
        dim = X.shape[1]
        delta = self.distances(X) if distances is None else distances
        constant = math.lgamma(0.5 * (DEGREES + dim)) - math.lgamma(0.5 * DEGREES)
        constant -= 0.5 * dim * math.log(DEGREES * math.pi)
        log_dets = np.log(np.diagonal(self.factors, axis1=1, axis2=2)).sum(axis=1)
        heads = constant - log_dets + np.log(self.weights)
        return np.asarray(heads[:, None] - 0.5 * (DEGREES + dim) * np.log1p(delta / DEGREES))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        labels = rng.choice(len(self.weights), size=n, p=self.weights)
        noise = rng.standard_normal((n, self.means.shape[1])) * np.sqrt(DEGREES / rng.chisquare(DEGREES, n))[:, None]
        return np.asarray(self.means[labels] + np.einsum("nij,nj->ni", self.factors[labels], noise))


@dataclass(frozen=True)
class Proposal:
    """q = PRIOR_SHARE π + (1 − PRIOR_SHARE) Σ_k w_k t_ν."""

    problem: Problem
    students: Students

    def log_pdf(self, X: Array) -> Array:
        log_t = special.logsumexp(self.students.log_terms(X), axis=0)
        log_prior = self.problem.prior.log_pdf(X)
        return np.logaddexp(math.log(PRIOR_SHARE) + log_prior, math.log1p(-PRIOR_SHARE) + log_t)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        X = self.students.sample(n, rng)
        plain = rng.uniform(size=n) < PRIOR_SHARE
        X[plain] = self.problem.prior.sample(int(plain.sum()), rng)
        return X


def round_modes(modes: Sequence[Mode]) -> Students:
    """Each mode twice, with its Laplace covariance and with four times that, weighted by mass but never below 2 %."""
    log_mass = np.array([mode.log_mass for mode in modes])
    weights = np.maximum(special.softmax(log_mass), 0.02)
    means, covs = np.array([mode.x for mode in modes]), np.array([mode.cov for mode in modes])
    both = np.concatenate([weights, weights])
    return Students(both / both.sum(), np.concatenate([means, means]), np.concatenate([covs, 4.0 * covs]))


def fit_students(X: Array, weights: Array, components: int, rng: np.random.Generator, steps: int = 60) -> Students:
    """Maximum of Σ_n weights_n log Σ_k w_k t_ν(x_n; μ_k, Σ_k) by expectation maximisation, weights (N,) summing to one.

    Each covariance is shrunk towards the whole sample's by 2D observations' worth, so that a component of few
    effective points stays wide.
    """
    n_effective = 1.0 / float(np.square(weights).sum())
    dim = X.shape[1]
    mean = weights @ X
    whole = (X - mean).T @ ((X - mean) * weights[:, None])
    part = whole * components ** (-2.0 / dim)  # the volume of one of K equal parts is 1/K of the whole's
    chosen = rng.choice(len(X), size=components, replace=False, p=weights)
    mixture = Students(np.full(components, 1.0 / components), X[chosen], np.repeat(part[None], components, axis=0))
    for _ in range(steps):
        delta = mixture.distances(X)
        terms = mixture.log_terms(X, delta)
        shares = np.exp(terms - special.logsumexp(terms, axis=0)) * weights  # r_kn, (K, N)
        pull = shares * (DEGREES + dim) / (DEGREES + delta)  # a Student density counts far points less
        totals = shares.sum(axis=1)
        means = (pull @ X) / np.maximum(pull.sum(axis=1), 1e-300)[:, None]
        prior_count = 2.0 * dim / n_effective
        covs = np.array([(X - m).T @ ((X - m) * p[:, None]) for m, p in zip(means, pull, strict=True)])
        covs = (covs + prior_count * part) / (totals + prior_count)[:, None, None]
        kept = totals * n_effective > dim
        mixture = Students(totals[kept] / totals[kept].sum(), means[kept], covs[kept])
    return mixture


def joined(fitted: Students, modes: Students) -> Students:
    """The fitted mixture with MODE_SHARE of the components round the modes."""
    weights = np.concatenate([(1.0 - MODE_SHARE) * fitted.weights, MODE_SHARE * modes.weights])
    return Students(
        weights, np.concatenate([fitted.means, modes.means]), np.concatenate([fitted.covs, modes.covs])
    )


@dataclass(frozen=True)
class Round:
    """log Z and its standard error from one round's independent weights."""

    n: int
    log_z: float
    log_z_std: float
    effective: float
    largest: float
    pareto_k: float

    @classmethod
    def of(cls, log_weights: Array) -> Round:
        n = len(log_weights)
        w = np.exp(log_weights - np.max(log_weights))
        log_z = float(np.max(log_weights)) + math.log(float(w.mean()))
        std = float(w.std(ddof=1) / w.mean()) / math.sqrt(n)
        effective = float(w.sum() ** 2 / np.square(w).sum())
        return cls(n, log_z, std, effective, float(w.max() / w.sum()), pareto_k(log_weights))

    def cells(self, label: str) -> list[str]:
        numbers = f"{self.n} {self.log_z:.4f} {self.log_z_std:.4f} {self.effective:.0f} {self.largest:.4f}"
        return [label, *numbers.split(), f"{self.pareto_k:.2f}"]


HEADING = ("round", "draws", "log Z", "std. error", "effective", "largest", "Pareto k")


def truncated(log_weights: Array) -> Array:
    """Weights (N,) summing to one, none above N^−½: a few huge ones must not decide where the mixture goes."""
    w = special.softmax(log_weights)
    w = np.minimum(w, 1.0 / math.sqrt(len(w)))
    return np.asarray(w / w.sum())


def importance_sample(target: Target, case: Case, modes: Sequence[Mode], rng: np.random.Generator) -> list[Round]:
    """Rounds of adaptation, each refitted to all points so far, and the last, independent one.

    A point of any earlier round r has weight ℓπ / Σ_r n_r q_r: the rounds together are one sample of their mixture.
    """
    base = round_modes(modes)
    proposal = Proposal(target.problem, base)
    proposals: list[Proposal] = []
    points, values = np.empty((0, target.problem.dim)), np.empty(0)
    rounds: list[Round] = []
    for _ in range(case.rounds):
        X = proposal.sample(case.adapt, rng)
        log_joint = target(X)
        rounds.append(Round.of(log_joint - proposal.log_pdf(X)))
        print("  ".join(rounds[-1].cells(f"adapt {len(rounds)}")), flush=True)
        proposals.append(proposal)
        points, values = np.vstack([points, X]), np.append(values, log_joint)
        mixture = special.logsumexp([q.log_pdf(points) for q in proposals], axis=0)
        fitted = fit_students(points, truncated(values - mixture), case.components, rng)
        proposal = Proposal(target.problem, joined(fitted, base))
    X = proposal.sample(case.final, rng)
    rounds.append(Round.of(target(X) - proposal.log_pdf(X)))
    return rounds
