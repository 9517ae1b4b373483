"""An ascent climbs to a mode without gradients: its quadratic, its ball, its steps, and how its search ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from driving import advance, an_engine, content
from found_by_hand import MEASURE, hits_of
from wsabi.adaptive import policy
from wsabi.adaptive.search.search import Search
from wsabi.adaptive.search.trust_region import Ascent, ascended, quadratic_through, within_ball
from wsabi.adaptive.state import State
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.tuning import TUNING, tuned
from wsabi.priors import Gaussian
from wsabi.result import Kind, Outcome, SearchRecord, Start
from wsabi.strategies.adaptive import AdaptiveStrategy

Function = Callable[[np.ndarray], np.ndarray]  # log ℓπ (N,) of (N, D)
FIRST_RADIUS = TUNING.search.first_radius
NONE = np.empty((0, 2))


def symmetric(dim: int, rng: np.random.Generator) -> np.ndarray:
    A = rng.standard_normal((dim, dim))
    return np.asarray(A + A.T)


# -- the quadratic ----------------------------------------------------------------------------------------------------


def value_of(slope: np.ndarray, curvature: np.ndarray, S: np.ndarray) -> np.ndarray:
    """g·s + ½ sᵀHs, (N,) at S (N, D)."""
    return np.asarray(S @ slope + 0.5 * np.einsum("nd,de,ne->n", S, curvature, S))


def least_change(S: np.ndarray, values: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same as ``quadratic_through`` from its definition, over all D(D + 1)/2 entries of H − H₀.

    c and g are free, so the entries have the least norm among those that solve the equations without them. Entries off
    the diagonal count twice in |H − H₀|².
    """
    n, dim = S.shape
    rows, columns = np.triu_indices(dim)
    root = np.where(rows == columns, 1.0, math.sqrt(2.0))
    P = np.column_stack([np.ones(n), S])
    B = S[:, rows] * S[:, columns] * np.where(rows == columns, 0.5, 1.0) / root  # of the entries times root
    rest = values - 0.5 * np.einsum("nd,de,ne->n", S, before, S)
    left = np.linalg.svd(P)[0][:, np.linalg.matrix_rank(P) :]  # orthogonal to all c + g·s
    entries = np.linalg.pinv(left.T @ B, rcond=1e-10) @ (left.T @ rest)
    linear = np.linalg.lstsq(P, rest - B @ entries, rcond=None)[0]
    change = np.zeros((dim, dim))
    change[rows, columns] = change[columns, rows] = entries / root
    return linear[1:], before + change


@pytest.mark.parametrize("dim", [1, 2, 3, 6])
def test_a_quadratic_is_recovered_from_as_many_points_as_coefficients(dim: int) -> None:
    """Whatever the curvature before was; 1e-8 of the largest entry sees any factor, and leaves room for round-off."""
    rng = np.random.default_rng(dim)
    for _ in range(10):
        S = rng.standard_normal(((dim + 1) * (dim + 2) // 2, dim))
        slope, curvature = rng.standard_normal(dim), symmetric(dim, rng)
        found = quadratic_through(S, value_of(slope, curvature, S) + 3.0, symmetric(dim, rng))
        assert_allclose(found[0], slope, atol=1e-8 * np.linalg.cond(S))
        assert_allclose(found[1], curvature, atol=1e-8 * np.linalg.cond(S))


@pytest.mark.parametrize("dim", [1, 2, 3, 6])
def test_fewer_points_are_met_exactly_with_the_least_change(dim: int) -> None:
    """From D + 1, where nothing need change, to one less than there are coefficients; any values."""
    rng = np.random.default_rng(dim)
    for n in range(dim + 1, (dim + 1) * (dim + 2) // 2):
        S, values, before = rng.standard_normal((n, dim)), rng.standard_normal(n), symmetric(dim, rng)
        slope, curvature = quadratic_through(S, values, before)
        off = values - value_of(slope, curvature, S)
        assert_allclose(off, off[0], atol=1e-8)
        assert_allclose(curvature, curvature.T, atol=1e-10)
        expected = least_change(S, values, before)
        assert_allclose(slope, expected[0], atol=1e-8)
        assert_allclose(curvature, expected[1], atol=1e-8)
        if n == dim + 1:
            assert_allclose(curvature, before, atol=1e-8)


def test_points_told_twice_change_nothing() -> None:
    rng = np.random.default_rng(0)
    S, values, before = rng.standard_normal((5, 3)), rng.standard_normal(5), symmetric(3, rng)
    once = quadratic_through(S, values, before)
    twice = quadratic_through(np.vstack([S, S[:2]]), np.append(values, values[:2]), before)
    for one, other in zip(once, twice, strict=True):
        assert_allclose(other, one, atol=1e-8)


# -- the ball ---------------------------------------------------------------------------------------------------------


def assert_best_within_the_ball(slope: np.ndarray, curvature: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Inside, no lower than 1e5 points, half of them on the edge, and optimal by (μ − H)s = g with μ − H ≥ 0.

    The last is sufficient, and fails at 1e-7 for any other point; the points do not rest on it.
    """
    dim = len(slope)
    s = within_ball(slope, curvature)
    S = rng.standard_normal((100_000, dim))
    S /= np.linalg.norm(S, axis=1, keepdims=True)
    S[::2] *= rng.uniform(size=(50_000, 1)) ** (1.0 / dim)
    radius, size = float(np.linalg.norm(s)), float(np.linalg.norm(slope) + np.abs(curvature).max())
    assert radius <= 1.0 + 1e-9
    best = float(np.max(value_of(slope, curvature, S)))
    assert value_of(slope, curvature, s[None, :])[0] >= best - 1e-10 * size
    rise = slope + curvature @ s
    mu = float(s @ rise) / radius**2 if radius > 1.0 - 1e-6 else 0.0
    assert_allclose(rise, mu * s, atol=1e-7 * size)
    assert mu >= max(0.0, float(np.linalg.eigvalsh(curvature)[-1])) - 1e-7 * size
    return s


@pytest.mark.parametrize("dim", [2, 3])
def test_the_best_point_of_a_ball_is_found_inside_or_on_its_edge(dim: int) -> None:
    rng = np.random.default_rng(dim)
    n_inside = 0
    for _ in range(40):
        A = symmetric(dim, rng)
        curvature = A if rng.uniform() < 0.5 else -A @ A
        s = assert_best_within_the_ball(10.0 ** rng.uniform(-2.0, 1.0) * rng.standard_normal(dim), curvature, rng)
        n_inside += bool(np.linalg.norm(s) < 1.0 - 1e-6)
    assert 3 <= n_inside <= 37


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_without_curvature_the_best_point_lies_along_the_slope(dim: int, scale: float) -> None:
    slope = scale * np.arange(1.0, dim + 1.0)
    assert_allclose(within_ball(slope, np.zeros((dim, dim))), slope / np.linalg.norm(slope), atol=1e-8)


def test_a_slope_without_a_part_along_the_largest_eigenvalue_leaves_it_to_fill_the_ball() -> None:
    """The axes are those of the coordinates, so that this part is zero, not round-off."""
    rng = np.random.default_rng(0)
    for largest in (0.5, 2.0):
        for part in (0.0, 0.1):
            slope = np.array([0.0, 2.0 * part, part])
            s = assert_best_within_the_ball(slope, np.diag([largest, -1.0, -0.3]), rng)
            assert np.linalg.norm(s) > 1.0 - 1e-6


def test_where_that_part_is_round_off_the_step_stays_within_the_ball() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        curvature = turn @ np.diag([1.0, -1.0, 0.3]) @ turn.T
        s = within_ball(turn @ np.array([0.0, 0.2, 0.1]), 0.5 * (curvature + curvature.T))
        assert np.linalg.norm(s) <= 1.0 + 1e-9


# -- the steps --------------------------------------------------------------------------------------------------------


def begun_at(start: np.ndarray, log_joint: Function, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The points that an ascent begins with, X (D + 1, D), and their log ℓπ."""
    dim = len(start)
    directions = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    X = np.concatenate([start[None, :], start + FIRST_RADIUS * directions])
    return X, log_joint(X)


def climb(
    start: np.ndarray, log_joint: Function, rng: np.random.Generator, limit: int
) -> tuple[Ascent, np.ndarray, np.ndarray]:
    """The ascent once it is over or has used up its limit, and its evaluations."""
    X, values = begun_at(start, log_joint, rng)
    ascent = Ascent.begun(len(start))
    while len(X) < limit:
        ascent = ascended(ascent, X, values)
        if ascent.trial is None:
            break
        X = np.vstack([X, ascent.trial])
        values = np.append(values, log_joint(ascent.trial[None, :]))
    return ascent, X, values


def a_bell(dim: int, width: float, rng: np.random.Generator) -> tuple[Function, np.ndarray, np.ndarray]:
    """A correlated Gaussian log ℓ under N(0, I): log ℓπ less its top, its mode and its precision."""
    A = rng.standard_normal((dim, dim))
    P = np.linalg.inv(width**2 * (A @ A.T / dim + 0.05 * np.eye(dim)))
    mean, precision = 0.8 * rng.standard_normal(dim), P + np.eye(dim)
    mode = np.linalg.solve(precision, P @ mean)
    return lambda X: value_of(np.zeros(dim), -precision, X - mode), mode, precision


def climbs_of_bells(dim: int, limit: int) -> tuple[list[int], list[float]]:
    """Evaluations, and nats below the top, of 20 ascents of bells of widths 0.3, 0.1 and 0.02 in turn."""
    n_evals, missing = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        log_joint, _, _ = a_bell(dim, (0.3, 0.1, 0.02)[seed % 3], rng)
        _, X, values = climb(rng.standard_normal(dim), log_joint, rng, limit)
        n_evals.append(len(X))
        missing.append(-float(np.max(values)))
    return n_evals, missing


@pytest.mark.sensitive
@pytest.mark.parametrize(("dim", "limit"), [(2, 60), (5, 240), (10, 900)])
def test_ascents_of_a_correlated_bell_end_within_a_tenth_of_a_nat(dim: int, limit: int) -> None:
    """All but two of 20: of 1,200 ascents under two kernels 4 fell short, which makes three in 20 a chance of 5e-5.

    With one halving of the ball before an ascent was over, one in four fell short in ten dimensions.
    """
    n_evals, missing = climbs_of_bells(dim, limit)
    assert max(n_evals) < limit
    assert np.sum(np.array(missing) > 0.1) <= 2


def a_valley(X: np.ndarray) -> np.ndarray:
    """Rosenbrock's, of width 0.2 and length about one, less its top."""
    across, along = (X[:, 1:] - np.square(X[:, :-1])) / 0.2, (1.0 - X[:, :-1]) / 0.5
    return np.asarray(-0.5 * (np.square(across) + np.square(along)).sum(axis=1))


def climbs_of_the_valley(dim: int, limit: int) -> tuple[list[int], list[float], list[float]]:
    """Evaluations, and nats below the top before and after, of 20 ascents."""
    n_evals, before, after = [], [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        _, X, values = climb(rng.standard_normal(dim), a_valley, rng, limit)
        n_evals.append(len(X))
        before.append(-float(values[0]))
        after.append(-float(np.max(values)))
    return n_evals, before, after


@pytest.mark.sensitive
@pytest.mark.parametrize(("dim", "limit", "nats", "least"), [(2, 120, 0.35, 13), (5, 300, 2.0, 10)])
def test_ascents_of_a_curved_valley_end_near_its_top(dim: int, limit: int, nats: float, least: int) -> None:
    """So many of 20 within so many nats; in 5-D a fifth end at a lower mode, 7 nats below.

    Of 1,000 ascents under two kernels 0.90 and 0.82 come so near, and the longest have 60 and 226 evaluations: a chance
    of 4e-4 to fail. Where a ball that was too narrow was kept, 0.57 and 0.7 came so near, and one in a hundred of those
    in 5-D had over 300 evaluations, of 0.004 nats each.
    """
    n_evals, before, after = climbs_of_the_valley(dim, limit)
    assert max(n_evals) < limit
    assert np.median(before) > 10.0
    assert np.sum(np.array(after) < nats) >= least


def a_ridge(X: np.ndarray) -> np.ndarray:
    """Of slope two along the first coordinate, and a hundredth wide across."""
    return np.asarray(2.0 * X[:, 0] - 0.5 * np.square(X[:, 1:] / 0.01).sum(axis=1))


def test_a_point_there_to_learn_that_is_the_best_widens_the_ball() -> None:
    """Else the ascent would creep along the ridge: 0.004 nats a step where each is 0.002 long."""
    X = np.array([[0.0, 0.0], [-0.002, 0.0], [0.002, 0.0]])
    learning = replace(Ascent.begun(2), radius=0.002, trial=X[-1], expected=None, n_small=2)
    after = ascended(replace(learning, best_before=float(a_ridge(X[:2]).max())), X, a_ridge(X))
    assert after.radius == 0.004
    assert after.n_small == 1
    lower = ascended(replace(learning, best_before=float(a_ridge(X).max())), X, a_ridge(X))
    assert lower.radius <= 0.002


def test_the_summit_of_a_bell_has_its_mode_and_its_width() -> None:
    """Where the ascent has met as many points as there are coefficients near its end; the curvature to a tenth."""
    rng = np.random.default_rng(1)
    log_joint, mode, precision = a_bell(2, 0.3, rng)
    X = mode + 0.05 * rng.standard_normal((6, 2))
    ascent = replace(Ascent.begun(2), radius=0.2)
    ascent = ascended(ascent, X, log_joint(X))
    summit = ascent.summit(mode, np.eye(2))
    root = np.linalg.cholesky(precision)
    assert_array_equal(summit.mean, mode)
    assert_allclose(root.T @ summit.cov @ root, np.eye(2), atol=0.1)


def test_a_summit_is_no_wider_than_the_prior() -> None:
    """Before the first step the quadratic has no curvature."""
    cov = np.array([[1.0, 0.3], [0.3, 0.5]])
    assert_allclose(Ascent.begun(2).summit(np.zeros(2), cov).cov, cov, atol=1e-12)
    rising = replace(Ascent.begun(2), hessian=np.diag([3.0, -40.0]))
    values = np.linalg.eigvalsh(cov - rising.summit(np.zeros(2), cov).cov)
    assert values[0] > -1e-12
    assert values[1] > 0.1


def test_a_step_leaves_its_input_as_it_was_and_is_the_same_again() -> None:
    rng = np.random.default_rng(0)
    log_joint, _, _ = a_bell(3, 0.3, rng)
    X, values = begun_at(rng.standard_normal(3), log_joint, rng)
    ascent = ascended(Ascent.begun(3), X, values)
    assert ascent.trial is not None
    X, values = np.vstack([X, ascent.trial]), np.append(values, log_joint(ascent.trial[None, :]))
    before = content((ascent, X, values))
    once, twice = ascended(ascent, X, values), ascended(ascent, X, values)
    assert content((ascent, X, values)) == before
    assert content(once) == content(twice) != content(ascent)


def test_an_ascent_is_the_same_after_the_same_start_and_with_a_constant_added() -> None:
    """Round-off decides on which side of the top a direction is learnt, so only the best points are compared."""
    log_joint, _, _ = a_bell(3, 0.3, np.random.default_rng(0))
    start = np.ones(3)
    _, X, values = climb(start, log_joint, np.random.default_rng(1), 60)
    assert_array_equal(climb(start, log_joint, np.random.default_rng(1), 60)[1], X)
    _, shifted, higher = climb(start, lambda X: log_joint(X) + 1024.0, np.random.default_rng(1), 60)
    assert_allclose(shifted[np.argmax(higher)], X[np.argmax(values)], atol=1e-6)


def beyond_the_wall(X: np.ndarray) -> np.ndarray:
    """A bell of width 0.2 at one half in each direction, with zero likelihood from 0.6 on along the first."""
    return np.where(X[:, 0] > 0.6, -np.inf, -0.5 * np.square((X - 0.5) / 0.2).sum(axis=1))


def test_a_trial_of_zero_likelihood_has_gained_nothing() -> None:
    """The next one is closer, and finite."""
    X = np.array([[0.3, 0.4], [0.3, 0.15], [0.05, 0.4]])
    ascent = ascended(Ascent.begun(2), X, beyond_the_wall(X))
    assert ascent.trial is not None
    X = np.vstack([X, [0.61, 0.4]])
    ascent = replace(ascent, trial=X[-1], expected=1.0, best_before=float(np.max(beyond_the_wall(X))))
    after = ascended(ascent, X, beyond_the_wall(X))
    assert after.radius == 0.5 * ascent.radius
    assert after.trial is not None
    assert np.all(np.isfinite(after.trial))
    assert np.all(np.isfinite(after.hessian))


def climb_by_search(dim: int, seed: int, log_joint: Function, limit: int) -> tuple[Search, np.ndarray, np.ndarray]:
    """The search of an ascent under N(0, I) once that is over, or its limit is used up, and its evaluations."""
    rng = np.random.default_rng(seed)
    search = Search.ascending(Gaussian(np.zeros(dim)), 1, rng)
    X, values = np.empty((0, dim)), np.empty(0)
    while len(X) < limit:
        search, x = search.handed_out(X)
        x = search.next_point(X[:0], rng) if x is None else x
        X, values = np.vstack([X, x]), np.append(values, log_joint(x[None, :]))
        if not search.design and np.isfinite(values).sum() >= dim + 2:
            search = search.ascended(X, values, rng)
        if search.ascent is None:
            break
    return search, X, values


@pytest.mark.parametrize(("dim", "limit"), [(2, 60), (5, 150)])
def test_a_search_gets_past_points_of_zero_likelihood(dim: int, limit: int) -> None:
    """A trial that was told before is replaced by a point beside it.

    Half of the ascents end within a nat of the top.
    """
    missing = []
    for seed in range(20):
        with np.errstate(divide="raise", invalid="raise"):
            _, X, values = climb_by_search(dim, seed, beyond_the_wall, limit)
        assert np.all(np.isfinite(X))
        missing.append(-float(np.max(values)))
    assert np.median(missing) < 1.0


def test_no_point_is_tried_twice() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        start = rng.standard_normal(2)
        start[0] = -abs(start[0])
        _, X, _ = climb(start, beyond_the_wall, rng, 100)
        assert len(np.unique(X, axis=0)) == len(X)


# -- its search -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_an_ascending_search_begins_with_a_draw_and_a_simplex_around_it(dim: int) -> None:
    measure = Gaussian(np.full(dim, 3.0), 4.0 * np.eye(dim))
    search = Search.ascending(measure, 7, np.random.default_rng(1))
    design = np.array(search.design)
    assert_array_equal(design[0], measure.sample(1, np.random.default_rng(1))[0])
    edges = design[1:] - design[0]
    assert_allclose(edges @ edges.T, FIRST_RADIUS**2 * np.eye(dim), atol=1e-12)
    assert (search.kind, search.number, search.alone, search.from_prior, search.first) == (
        "ascent",
        7,
        True,
        True,
        False,
    )
    assert not search.climbed
    assert not search.may_be_predicted
    assert content(Search.ascending(measure, 7, np.random.default_rng(1))) == content(search)
    assert content(Search.ascending(measure, 7, np.random.default_rng(2))) != content(search)


def test_each_step_of_a_search_is_one_trial_and_the_last_hands_over_the_mode() -> None:
    """D + 2 draws around it complete what an explorer needs; then the explorer is alone."""
    log_joint, mode, precision = a_bell(2, 0.3, np.random.default_rng(0))
    search, X, values = climb_by_search(2, 0, log_joint, 60)
    assert search.ascent is None
    assert search.climbed
    assert search.n_zoomed == len(X)
    best = X[int(np.argmax(values))]
    assert_array_equal(search.explorer.frame.mean, best)
    assert float((best - mode) @ precision @ (best - mode)) < 0.2  # a tenth of a nat
    assert len(search.design) == 4
    assert search.ascended(X, values, np.random.default_rng(0)) is search


def test_while_a_trial_is_under_way_the_next_point_lies_on_its_ball() -> None:
    log_joint, _, _ = a_bell(2, 0.3, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    search = Search.ascending(MEASURE, 1, rng)
    X = np.array(search.design)
    search = search.without_design().ascended(X, log_joint(X), rng)
    search, trial = search.handed_out(X)
    assert search.ascent is not None
    assert trial is not None
    assert_array_equal(trial, search.ascent.trial)
    beside = search.next_point(trial[None, :], rng)
    assert_allclose(np.linalg.norm(beside - trial), search.ascent.radius, rtol=1e-10)


CENTRE = np.array([0.5, -0.3])


def bump(X: np.ndarray) -> np.ndarray:
    return np.asarray(-0.5 * np.square((X - CENTRE) / 0.3).sum(axis=1))


def after_searches(n: int, seed: int, log_l: Function = bump) -> AdaptiveStrategy:
    engine = an_engine(MEASURE, 300, seed)
    while len(engine.state.known.searches) < n:
        assert engine.state.n < 300
        advance(engine, log_l)
    return engine


@pytest.mark.parametrize("seed", range(3))
def test_an_ascent_ends_in_a_known_region_that_predicts_its_best_point(seed: int) -> None:
    """A quadratic log ℓ is known in the bulk of its region after one search: before the ascent has got to the top."""
    state = after_searches(2, seed).state
    record = state.known.searches[1]
    assert (record.kind, record.start, record.outcome) == ("ascent", "prior", "known region")
    assert hits_of(state.known) == [2]
    assert state.known.gains[1] == 0.0
    assert_allclose(record.log_z, state.known.explorers[0].log_z + state.data.offset)
    with tuned("known", predicted=0.0):  # nothing is predicted so well: it goes on to the mode, and learns the region
        longer = after_searches(2, seed).state
    assert longer.known.searches[1].kind == "ascent"
    assert longer.known.searches[1].outcome == "known region"
    assert longer.known.searches[1].n_evals > record.n_evals


def test_an_ascent_does_not_end_where_a_known_region_is_wrong() -> None:
    """A spike inside a broad bump: the best point lies in the region, whose surrogate knows nothing of the spike."""
    engine = after_searches(1, 0)
    rng = np.random.default_rng(0)
    search = Search.ascending(MEASURE, engine.state.n_begun, rng)
    inside = CENTRE + 0.02 * np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [1.0, 1.0]])
    search = replace(search, design=tuple(inside))
    engine.state = replace(engine.state, search=search, n_begun=search.number + 1)
    ended = list[bool]()
    for height in (0.0, 5.0):
        copy = an_engine(MEASURE, 300, 0)
        copy.state = engine.state
        advance(copy, lambda X, h=height: bump(X) + h, 4)  # type: ignore[misc]
        copy.ask((), np.random.default_rng(0))  # it takes notice of what was told
        ended.append(copy.state.search is None or copy.state.search.number != search.number)
    assert ended == [True, False]


# -- which kind comes next --------------------------------------------------------------------------------------------


def after(*searches: tuple[Kind, Outcome, int] | tuple[Kind, Outcome, int, Start]) -> State:
    """A state that knows these searches, (kind, outcome, evaluations, start)."""
    records = tuple(SearchRecord(one[2], 0.0, one[1], *one[3:], kind=one[0]) for one in searches)
    state = an_engine(MEASURE, 1000).state
    return replace(state, known=replace(state.known, searches=records))


FIRST: tuple[Kind, Outcome, int] = ("annealed", "new region", 40)
EACH: tuple[tuple[Kind, Outcome, int], ...] = (FIRST, ("ascent", "known region", 20), ("greedy", "known region", 30))


def test_every_kind_comes_once_and_annealed_first() -> None:
    assert [policy.next_kind(after(*EACH[:n])) for n in range(3)] == ["annealed", "ascent", "greedy"]


def test_searches_around_a_point_are_no_trials_of_their_kind() -> None:
    state = after(*EACH[:2], ("greedy", "new region", 10, "point"))
    assert policy.next_kind(state) == "greedy"


@pytest.mark.parametrize("seed", range(5))
def test_then_the_kind_with_most_chance_of_a_new_region_per_evaluation(seed: int) -> None:
    """By Laplace's rule (f + 1)/(n + 2) over the mean cost; the first search counts for its cost alone."""
    rng = np.random.default_rng(seed)
    searches = list(EACH)
    for _ in range(30):
        costs = {}
        for kind in policy.KINDS:
            mine = [one for one in searches[1:] if one[0] == kind]
            found = sum(one[1] == "new region" for one in mine)
            mean = np.mean([one[2] for one in mine]) if mine else searches[0][2]
            costs[kind] = (found + 1) / (len(mine) + 2) / mean
        chosen = policy.next_kind(after(*searches))
        assert_allclose(costs[chosen], max(costs.values()), rtol=1e-12)
        outcome: Outcome = "new region" if rng.uniform() < 0.3 else "known region"
        searches.append((chosen, outcome, int(rng.integers(5, 60))))
    assert {one[0] for one in searches[3:]} == set(policy.KINDS)


def test_searches_that_find_nothing_take_turns() -> None:
    """Of equal cost: whichever has been tried least often comes next, so no kind is ahead of another by two."""
    searches: list[tuple[Kind, Outcome, int]] = [FIRST, ("ascent", "known region", 40), ("greedy", "known region", 40)]
    for _ in range(12):
        searches.append((policy.next_kind(after(*searches)), "known region", 40))
        counts = [sum(one[0] == kind for one in searches[1:]) for kind in policy.KINDS]
        assert max(counts) - min(counts) <= 1


def test_searches_are_not_enough_before_every_kind_has_come() -> None:
    """However often they return."""
    returns = [EACH[1]] * 6
    assert not policy.keeps_returning(after(FIRST, *returns))
    assert policy.keeps_returning(after(FIRST, *returns, EACH[2]))


@pytest.mark.parametrize("steep", [1e6, 1e17, 1e22])
def test_the_mode_of_a_ridge_as_thin_as_round_off_has_a_covariance(steep: float) -> None:
    """A curvature of 1e22 prior variances once made a singular covariance, and a run crashed.

    Twenty turns of the ridge, under priors with correlations: half of them had no frame.
    """
    dim, eye = 4, np.eye(4)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
        hessian = -(turn * np.array([1.0, 3.0, 10.0, steep])) @ turn.T
        root = rng.standard_normal((dim, dim))
        summit = replace(Ascent.begun(dim), hessian=hessian).summit(np.zeros(dim), root @ root.T / dim + 0.5 * eye)
        assert np.all(Frame.of(summit.mean, summit.cov).widths > 0.0)
    summit = replace(Ascent.begun(dim), hessian=-np.diag([1.0, 3.0, 10.0, 1e6])).summit(np.zeros(dim), eye)
    assert_allclose(summit.cov, np.diag([1.0, 1.0 / 3.0, 0.1, 1e-6]), atol=1e-12)
