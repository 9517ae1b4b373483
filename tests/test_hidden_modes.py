"""The problems that hide modes are what they say; their stored truths are right as far as is quickly seen."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from benchmarks import study_hidden_truths
from benchmarks.collapsed import COLLAPSES, linear_evidence, log_evidence_given, trapezoid
from benchmarks.hidden_modes import DEVELOPMENT, MAKERS, UNSEEN
from benchmarks.mode_search import Surface, Tops, top_of
from benchmarks.stored_modes import Mode, modes_of, stored
from benchmarks.study_held_out import from_base, to_base
from benchmarks.study_hidden_modes import Found, Run, by_kind, first_in, row
from benchmarks.study_truths import Case, Round, Target, importance_sample
from benchmarks.study_truths import Mode as Bump
from wsabi import Gaussian
from wsabi.problems import Problem


@pytest.fixture(scope="module", params=list(MAKERS))
def problem(request: pytest.FixtureRequest) -> Problem:
    return MAKERS[request.param]()


def test_the_halves_are_of_one_size_and_share_nothing() -> None:
    assert len(DEVELOPMENT) == len(UNSEEN) == 7
    assert len({maker.__name__ for maker in DEVELOPMENT + UNSEEN}) == 14
    assert list(stored()) == list(MAKERS)


def test_vectorised_agrees_with_scalar(problem: Problem) -> None:
    X = from_base(problem, np.random.default_rng(1).standard_normal((10, problem.dim)))
    vectorised = problem.log_likelihood_vectorized(X)
    assert vectorised.shape == (10,)
    assert np.all(np.isfinite(vectorised))
    # Sums of one row and of ten add up in another order: round-off, relative to the largest term.
    assert_allclose([problem.log_likelihood(x) for x in X], vectorised, rtol=1e-9)
    assert pickle.loads(pickle.dumps(problem)).log_likelihood(X[0]) == problem.log_likelihood(X[0])


def test_stored_modes_hold_the_evidence(problem: Problem) -> None:
    """Shares of Z: of at most 1,000 draws, in order, and what is left out is less than a twentieth."""
    modes, truth = modes_of(problem.name), stored()[problem.name]
    assert 2 <= problem.dim <= 8
    assert problem.log_z_std <= 0.01
    assert truth["restarts"] >= 300
    shares = [mode.share for mode in modes]
    assert shares == sorted(shares, reverse=True)
    assert 0.95 < sum(shares) < 1.0 + 1e-9
    assert sum(mode.ascents for mode in modes) < 1.0 + 1e-9


def test_stored_modes_are_tops(problem: Problem) -> None:
    """Of the height that is stored, and no higher within a hundredth of their width, along any direction."""
    surface, rng = Surface(to_base(problem)), np.random.default_rng(2)
    for mode in modes_of(problem.name):
        if mode.share < 0.05:
            continue
        assert_allclose(surface(mode.u[None]), mode.log_joint, atol=1e-3)
        around = mode.u + 0.01 * rng.standard_normal((200, problem.dim)) @ np.linalg.cholesky(mode.cov).T
        assert float(np.max(surface(around))) < mode.log_joint + 2e-3


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in ("network", "kinks")])
def test_laplace_mixture_agrees_with_the_stored_evidence(name: str) -> None:
    """20,000 draws of Student densities round the stored modes and of the prior, refitted once to 5,000 others.

    Five standard errors: a false alarm in 2e6 if normal; the weights are skewed, and the seed is fixed.
    """
    base, rng = to_base(MAKERS[name]()), np.random.default_rng(3)
    bumps = [Bump(mode.u, mode.log_joint, mode.cov) for mode in modes_of(name)]
    effort = Case(name, rounds=1, adapt=5000, final=20_000, components=12)
    last = importance_sample(Target(base), effort, bumps, rng)[-1]
    assert last.log_z_std < 0.05
    assert abs(last.log_z - base.log_z) < 5.0 * math.hypot(last.log_z_std, base.log_z_std)


@pytest.mark.parametrize("name", ["network", "kinks", "antennas", "source"])
def test_draws_of_the_prior_agree_with_the_stored_evidence(name: str) -> None:
    """400,000 draws of the parameters that are left once the linear ones are integrated: five standard errors.

    The modes of the first two are too crooked for 20,000 draws round them.
    """
    problem, dim = MAKERS[name](), len(COLLAPSES[name].left)
    U = np.random.default_rng(6).standard_normal((400_000, dim))
    last = Round.of(log_evidence_given(problem, U))
    assert last.log_z_std < 0.05
    assert abs(last.log_z - problem.log_z) < 5.0 * math.hypot(last.log_z_std, problem.log_z_std)


def test_the_two_ways_to_the_evidence_agree(problem: Problem) -> None:
    """Those stored: four standard errors, a false alarm in 16,000 for each problem."""
    (first, first_std, _), (second, second_std, _) = stored()[problem.name]["checks"].values()
    assert abs(first - second) < 4.0 * math.hypot(first_std, second_std)
    assert math.hypot(first_std, second_std) < 0.1


# -- the second way ---------------------------------------------------------------------------------------------------


def test_linear_evidence_is_a_normal_density() -> None:
    rng = np.random.default_rng(4)
    A, y, mean, sd = rng.standard_normal((3, 6, 2)), rng.standard_normal(6), np.array([0.5, -1.0]), np.array([2.0, 0.3])
    noise = np.array([0.5, 1.0, 2.0])
    expected = [
        stats.multivariate_normal(a @ mean, a @ np.diag(sd**2) @ a.T + s**2 * np.eye(6)).logpdf(y)
        for a, s in zip(A, noise, strict=True)
    ]
    assert_allclose(linear_evidence(A, y, mean, sd, noise), expected, rtol=1e-10)


@pytest.mark.parametrize("name", list(COLLAPSES))
def test_collapsed_likelihood_is_the_mean_over_the_linear_parameters(name: str) -> None:
    """By importance draws of the linear parameters, at the place of the first mode: 5 standard errors."""
    problem, mode = MAKERS[name](), modes_of(name)[0]
    left = list(COLLAPSES[name].left)
    others = [d for d in range(problem.dim) if d not in left]
    expected = log_evidence_given(problem, mode.u[None, left])[0]
    rng, base = np.random.default_rng(5), to_base(problem)
    precision = np.linalg.inv(mode.cov)[np.ix_(others, others)]
    proposal = Gaussian(mode.u[others], 4.0 * np.linalg.inv(0.5 * (precision + precision.T)))
    U = np.tile(mode.u, (20_000, 1))
    U[:, others] = proposal.sample(20_000, rng)
    unit = Gaussian(np.zeros(len(others)))
    last = Round.of(base.log_likelihood_vectorized(U) + unit.log_pdf(U[:, others]) - proposal.log_pdf(U[:, others]))
    assert last.log_z_std < 0.05
    assert abs(last.log_z - expected) < 5.0 * last.log_z_std


def test_trapezoid_of_a_normal_density() -> None:
    """log ∫ N(y; u, s²) N(u; 0, 1) du in each of two coordinates; the rule converges geometrically."""
    value = trapezoid(lambda U: stats.norm(0.5, 0.4).logpdf(U).sum(axis=1), (141, 161))
    assert_allclose(value, 2.0 * stats.norm(0.0, math.hypot(1.0, 0.4)).logpdf(0.5), rtol=1e-8)


# -- whose basin a point is in ----------------------------------------------------------------------------------------


def two_bumps() -> tuple[Surface, list[Mode]]:
    """Bumps of width 0.1 at ±1 along the first axis, the second e times as high, and an ascent to each."""

    def log_l(X: np.ndarray) -> np.ndarray:
        squares = [np.square((X - [place, 0.0]) / 0.1).sum(axis=1) for place in (-1.0, 1.0)]
        return np.asarray(np.logaddexp(-0.5 * squares[0], 1.0 - 0.5 * squares[1]))

    surface = Surface(Problem("bumps", Gaussian(np.zeros(2)), log_l, 0.0, 0.0, "", ""))
    tops = Tops(surface)
    tops.of(np.array([[-0.9, 0.1], [0.8, 0.0], [-1.1, -0.1], [1.3, 0.3]]))
    pairs = zip(tops.places, tops.heights, strict=True)
    return surface, [Mode(u, h, surface.curvature(u), 0.5, 0.0, 0.5) for u, h in pairs]


def test_ascents_end_at_distinct_tops() -> None:
    surface, modes = two_bumps()
    assert len(modes) == 2
    assert_allclose([mode.u for mode in modes], [[-1 / 1.01, 0.0], [1 / 1.01, 0.0]], atol=1e-4)
    assert_allclose(modes[0].cov, np.eye(2) / 101.0, rtol=1e-3)
    assert top_of(surface, modes, np.array([1.2, 0.1])) == 1
    assert top_of(surface, modes[:1], np.array([1.2, 0.1])) is None


def test_a_mode_is_found_where_an_evaluation_is_high_and_climbs_to_it() -> None:
    """Within D/2 + 3 = 4 nats: 2.8 widths away; a little further off it is not found."""
    surface, modes = two_bumps()
    U = np.array([[0.0, 0.0], [-1.0, 0.3], [1.0, 0.0], [-0.9, 0.0], [-1.0, 0.0]])
    assert first_in(0, modes, surface, U, surface(U)) == 3
    assert first_in(1, modes, surface, U, surface(U)) == 2
    assert first_in(0, modes, surface, U[:3], surface(U[:3])) is None


def a_run(error: float, modes: tuple[Found, ...], warnings: tuple[str, ...] = ()) -> Run:
    searches = (("annealed", "prior", "new region", 40), ("ascent", "prior", "new region", 20))
    return Run(
        "source",
        0,
        error,
        0.1,
        0.0,
        True,
        100,
        1.0,
        warnings,
        "",
        (*searches, ("greedy", "point", "unfinished", 9)),
        modes,
    )


def test_tables_count_runs_and_finders() -> None:
    first, second, missed = Found(0.6, 0.4, 7, "annealed"), Found(0.4, 0.6, 50, "ascent"), Found(0.4, 0.6, None, None)
    good = a_run(0.1, (first, second))
    silent = a_run(-0.5, (first, missed))
    warned = replace(silent, warnings=("a mode may have been missed",))
    assert [one.is_silent for one in (good, silent, warned)] == [False, True, False]
    assert row([good, silent, warned])[1:6] == ["1/3", "4/6", "1/3", "1", "1"]
    table = {cells[0]: cells[1:] for cells in by_kind([good, silent, warned])}
    assert table["annealed"] == ["3", "40", "3", "0"]  # it found the mode that is found first of all
    assert table["ascent"] == ["3", "20", "3", "1"]
    assert table["around a point"] == ["3", "9", "0", "0"]
    assert table["greedy"] == ["", "", "", "0"]
    assert table["not found"][-1] == "2"


def test_truths_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With little effort, for the quickest problem: its two modes, and log Z in two ways."""
    monkeypatch.setattr(study_hidden_truths, "N_FINAL", 5000)
    monkeypatch.setattr(study_hidden_truths, "N_POSTERIOR", 30)
    monkeypatch.setitem(study_hidden_truths.EFFORT, "lifetimes", {"adapt": 500, "components": 3})
    monkeypatch.setitem(study_hidden_truths.LATTICES, "lifetimes", (41, 41, 41))
    made = study_hidden_truths.make("lifetimes", 1, 20)
    assert len(made["modes"]) == 2
    assert sum(mode["ascents"] for mode in made["modes"]) == 1.0
    assert set(made["checks"]) == {"importance sampling", "quadrature"}
    log_z = stored()["lifetimes"]["log_z"]
    for value, std, _ in made["checks"].values():
        assert abs(value - log_z) < 5.0 * max(std, 0.01)
