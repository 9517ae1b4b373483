"""The truths of yacht, synthclass and citation, made again by adaptive importance sampling, or by a nested sampler.

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
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import optimize, special

from benchmarks.measuring import RESULTS, Options, Row, print_table, print_targets, save
from wsabi import problems
from wsabi._core.types import Array
from wsabi.adaptive.check.pareto import pareto_k
from wsabi.adaptive.surrogate.students import Students, fit_students, joined
from wsabi.problems import Problem

PRIOR_SHARE = 0.05  # of the draws come from the prior itself
MODE_SHARE, WIDE_SHARE = 0.05, 0.20  # of the rest: the modes as they were found, and a mixture fitted to (ℓπ)^½
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
    rounds: int = 12
    adapt: int = 2500
    final: int = 60_000
    components: int = 16
    lattice: bool = False


CASES = {
    "yacht": Case("yacht"),
    "yacht-standardized": Case("yacht", {"standardized": True}, rounds=20, components=24),
    "synthclass": Case("synthclass", starts=12, rounds=4, adapt=1000, final=20_000, components=6, lattice=True),
    "citation": Case("citation", starts=12, rounds=8, adapt=1000, final=12_000, components=12),
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
        found = optimize.minimize(
            lambda x: -target.at(x), origin, method="L-BFGS-B", options={"eps": STEP, "ftol": 1e-7}
        )
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
class Proposal:
    """q = PRIOR_SHARE π + (1 − PRIOR_SHARE) Σ_k w_k t_ν."""

    problem: Problem
    students: Students

    def log_pdf(self, X: Array) -> Array:
        log_t = self.students.log_pdf(X)
        log_prior = self.problem.prior.log_pdf(X)
        return np.asarray(np.logaddexp(math.log(PRIOR_SHARE) + log_prior, math.log1p(-PRIOR_SHARE) + log_t))

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


def refitted(points: Array, log_joint: Array, log_q: Array, case: Case, rng: np.random.Generator) -> Students:
    """The next mixture from points (N, D), log ℓπ (N,) and the log density (N,) of which they are draws.

    Beside the mixture fitted to ℓπ one is fitted to (ℓπ)^½. It reaches along arms and into corners where ℓπ has little
    mass but which, were they left out, would give the rare huge weights that make a standard error too small.
    """
    narrow = fit_students(points, truncated(log_joint - log_q), case.components, rng)
    wide = fit_students(points, truncated(0.5 * log_joint - log_q), case.components, rng)
    return joined([(1.0 - WIDE_SHARE, narrow), (WIDE_SHARE, wide)])


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


def adapted(
    target: Target, case: Case, modes: Sequence[Mode], rng: np.random.Generator
) -> tuple[Proposal, list[Round]]:
    """A proposal after rounds of adaptation, each refitted to all points so far, and those rounds.

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
        proposals.append(proposal)
        points, values = np.vstack([points, X]), np.append(values, log_joint)
        mixture = special.logsumexp([q.log_pdf(points) for q in proposals], axis=0)
        fitted = refitted(points, values, mixture, case, rng)
        proposal = Proposal(target.problem, joined([(1.0 - MODE_SHARE, fitted), (MODE_SHARE, base)]))
    return proposal, rounds


def importance_sample(target: Target, case: Case, modes: Sequence[Mode], rng: np.random.Generator) -> list[Round]:
    """Rounds of adaptation, and the last, independent one."""
    proposal, rounds = adapted(target, case, modes, rng)
    X = proposal.sample(case.final, rng)
    return [*rounds, Round.of(target(X) - proposal.log_pdf(X))]


def lattice_sum(target: Target, mode: Mode, step: float, depth: float = 20.0) -> float:
    """log Z as the sum of ℓπ over a lattice in coordinates whitened at the mode, out to ``depth`` nats below it.

    For a smooth integrand that dies out, this trapezoidal rule errs by about exp(−2π²/step²) of Z: 3e-9 at a step of
    one if ℓπ were Gaussian. Steps that do not divide one another, and an offset from the mode, show what it is here.
    """
    L = np.linalg.cholesky(mode.cov)
    offset = np.array([0.13, 0.27, 0.41])
    start = (0, 0, 0)
    values = {start: target.at(mode.x + step * L @ offset)}
    best, edge = values[start], deque([start])
    while edge:
        cell = edge.popleft()
        if values[cell] < best - depth:
            continue
        for axis, sign in ((a, s) for a in range(3) for s in (1, -1)):
            moved = list(cell)
            moved[axis] += sign
            near = (moved[0], moved[1], moved[2])
            if near not in values:
                values[near] = target.at(mode.x + step * L @ (np.array(near) + offset))
                best = max(best, values[near])
                edge.append(near)
    return float(special.logsumexp(list(values.values())) + 3.0 * math.log(step) + np.log(np.diag(L)).sum())


def make_truth(name: str, case: Case, seed: int) -> tuple[float, float, dict[str, Any]]:
    """log Z, its standard error and the record of how they came about."""
    target, rng = Target(problems.get(case.problem, **case.options)), np.random.default_rng(seed)
    started = time.perf_counter()
    modes = find_modes(target, case.starts, rng)
    cells = [[f"{m.log_joint:.2f}", f"{m.log_mass:.2f}", " ".join(f"{v:.2f}" for v in m.x)] for m in modes]
    print(f"{case.starts} searches, {target.n_evals} evaluations; modes within {KEEP:g} nats of the best:")
    print_table(cells, ("log ℓπ", "Laplace log Z", "at"))
    rounds = importance_sample(target, case, modes, rng)
    labels = [f"adapt {i + 1}" for i in range(case.rounds)] + ["final"]
    print_table([r.cells(label) for r, label in zip(rounds, labels, strict=True)], HEADING)
    log_z, std = rounds[-1].log_z, rounds[-1].log_z_std
    raw: dict[str, Any] = {"name": name, "case": vars(case), "seed": seed, "rounds": [vars(r) for r in rounds]}
    raw["modes"] = [{"x": mode.x, "log_joint": mode.log_joint, "log_mass": mode.log_mass} for mode in modes]
    if case.lattice:
        sums = {step: lattice_sum(target, modes[0], step) for step in (1.0, 0.8, 0.6)}
        print("lattice sums: " + ", ".join(f"{value:.4f} (step {step:g})" for step, value in sums.items()))
        raw |= {"importance": (log_z, std), "lattice": sums}
        log_z, std = float(np.mean(list(sums.values()))), float(np.ptp(list(sums.values())))
    raw |= {"evaluations": target.n_evals, "seconds": time.perf_counter() - started}
    return log_z, std, raw


def nested(name: str, case: Case, seed: int, limit: float) -> tuple[float, float, dict[str, Any]]:
    """log Z by importance nested sampling with neural-network bounds (nautilus), points of its exploration left out.

    Its standard error is taken as n_eff^−½, of the draws within the shells; the volumes of the shells add a little.
    """
    from nautilus import Sampler  # type: ignore[import-untyped,import-not-found,unused-ignore]

    problem = problems.get(case.problem, **case.options)
    mean, sd = problem.prior.mean, np.sqrt(np.diag(problem.prior.cov))
    started = time.perf_counter()
    sampler = Sampler(
        lambda u: mean + sd * special.ndtri(u),
        problem.log_likelihood_vectorized,
        n_dim=problem.dim,
        n_live=1000,
        vectorized=True,
        pass_dict=False,
        seed=seed,
    )
    finished = sampler.run(n_eff=5000, n_like_max=limit, discard_exploration=True)
    if not finished:
        print(f"stopped at {sampler.n_like} evaluations, before the nested sampler was done")
    raw = {"name": name, "seed": seed, "finished": finished, "evaluations": int(sampler.n_like)}
    raw |= {
        "explored": bool(sampler.explored),
        "effective": float(sampler.n_eff),
        "seconds": time.perf_counter() - started,
    }
    return float(sampler.log_z), 1.0 / math.sqrt(sampler.n_eff), raw


def study(name: str, *, evaluations: int | None, seed: int, with_nested: bool) -> None:
    """Make one truth, compare it with the stored one, and keep the record."""
    case = CASES[name]
    print(f"== {name}", flush=True)
    try:
        stored = problems.get(case.problem, **case.options)
    except FileNotFoundError as error:
        print(f"left out: {error}")
        return
    if with_nested:
        log_z, std, raw = nested(name, case, seed, math.inf if evaluations is None else evaluations)
    else:
        log_z, std, raw = make_truth(name, replace(case, final=evaluations or case.final), seed)
    raw |= {"log_z": log_z, "log_z_std": std, "stored": (stored.log_z, stored.log_z_std)}
    print(f"log Z = {log_z:.4f} ± {std:.4f}; stored {stored.log_z:.4f} ± {stored.log_z_std:.4f}")
    print(f"{raw['evaluations']} evaluations, {raw['seconds']:.0f} s")
    distance = abs(log_z - stored.log_z) / math.hypot(std, stored.log_z_std)
    rows = [
        Row.at_most("standard error, nats", std, TARGET),
        Row.at_most("distance from the stored value, standard errors", distance, 4.0),  # false alarm: 6e-5
    ]
    print_targets(rows)
    path = save(f"truth-{name}{'-nested' if with_nested else ''}", Options(False, RESULTS), rows, raw)
    print(f"raw numbers: {path}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=sorted(CASES), help="one problem; all of them if left out")
    parser.add_argument("--evaluations", type=int, help="of the last round; with --nested the limit of the whole run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nested", action="store_true", help="the cross-check instead: nautilus, of the extra bench")
    chosen = parser.parse_args(arguments)
    for name in [chosen.name] if chosen.name else CASES:
        study(name, evaluations=chosen.evaluations, seed=chosen.seed, with_nested=chosen.nested)


if __name__ == "__main__":
    main()
