"""The candidate pool against predictions from scratch, and both searches against a dense grid."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import reference
from wsabi._core.types import Array
from wsabi.gp.exact import GP, condition
from wsabi.priors import Gaussian, Measure, Uniform
from wsabi.quadrature.acquisition import log_uncertainty_at
from wsabi.quadrature.maximise import CandidatePool, bfgs_ascent, cma_es, polish
from wsabi.settings import Method

METHODS: tuple[Method, ...] = ("wsabi-l", "wsabi-m", "bq")
KINDS = ("gaussian", "mixture", "box", "polynomial")


def make_gp(measure: Measure, n: int = 6) -> GP:
    rng = np.random.default_rng([measure.dim, n])
    X = measure.mean + reference.spread_points(n, measure.dim, rng, width=2.0)
    return condition(X, rng.uniform(0.2, 1.4, n), rng.uniform(0.5, 0.8, measure.dim))


def pool_predictions(pool: CandidatePool, gp: GP) -> tuple[Array, Array]:
    """m̃ and C̃ at the candidates from the pool's rows: m̃ = bᵀV, C̃ = λ²(1 − Σ V²)."""
    return gp.whitened @ pool.V[: gp.n], gp.scale**2 * (1.0 - pool.explained)


@pytest.mark.parametrize("capacity", [0, 6, 100])
def test_rows_follow_the_data(capacity: int) -> None:
    """Appended one at a time, with too little room or plenty, pending or accepted: as if solved from scratch."""
    measure = reference.make_measure("gaussian", 2)
    gp = make_gp(measure)
    points, extra = measure.sample(20, 0), measure.mean + np.array([[0.1, 0.2], [-0.8, 0.5], [1.1, -0.9]])
    pool = CandidatePool.build(points, gp, measure, capacity)
    assert_array_equal(pool.log_pi, measure.log_pdf(points))
    for x in extra:
        pool.append(x, *gp.append(x), gp)
        for found, expected in zip(pool_predictions(pool, gp), gp.predict(points), strict=True):
            assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
    assert pool.n == len(gp.rows) == 9
    rebuilt = CandidatePool.build(points, gp, measure, capacity)  # pending points included
    assert_allclose(pool.V[: pool.n], rebuilt.V[: rebuilt.n], rtol=1e-8, atol=1e-11)
    values = np.append(gp.lower() @ gp.whitened, [0.3, 0.4, 0.5])
    gp.accept_pending(values)
    for found, expected in zip(pool_predictions(pool, gp), gp.predict(points), strict=True):
        assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_truncation_forgets_pending_points() -> None:
    measure = reference.make_measure("mixture", 2)
    gp = make_gp(measure)
    pool = CandidatePool.build(measure.sample(20, 0), gp, measure, 0)
    before = pool.explained.copy()
    for x in measure.mean + np.array([[0.1, 0.2], [-0.8, 0.5]]):
        pool.append(x, *gp.append(x), gp)
    assert np.all(pool.explained > before)
    gp.drop_pending()
    pool.truncate(gp.n)
    assert pool.n == gp.n
    assert_allclose(pool.explained, before, rtol=1e-14)
    pool.truncate(gp.n + 3)  # nothing to drop
    assert pool.n == gp.n


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_best_is_the_candidate_of_highest_acquisition(kind: str, method: Method) -> None:
    measure = reference.make_measure(kind, 2)
    gp = make_gp(measure)
    points = measure.sample(50, 0)
    pool = CandidatePool.build(points, gp, measure, 0)
    gp.append(pool.best(gp, method))
    pool = CandidatePool.build(points, gp, measure, 0)
    expected = points[np.argmax(log_uncertainty_at(gp, measure, method, points))]
    assert_array_equal(pool.best(gp, method), expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_both_searches_find_the_maximum_over_a_dense_grid(kind: str, method: Method) -> None:
    measure = reference.make_measure(kind, 1)
    gp = make_gp(measure)
    sd = float(np.sqrt(measure.cov[0, 0]))
    grid = np.linspace(measure.mean - 4 * sd, measure.mean + 4 * sd, 20_001)
    best = float(np.max(log_uncertainty_at(gp, measure, method, grid)))
    start = CandidatePool.build(measure.sample(300, 0), gp, measure, 0).best(gp, method)
    polished = polish(gp, measure, method, start)

    def objective(Q: Array) -> Array:
        return log_uncertainty_at(gp, measure, method, Q)

    evolved = cma_es(objective, measure, start, np.random.default_rng(0))
    for x in (polished, evolved):
        assert x.shape == (1,)
        # On the log scale. CMA-ES stops at a gain of 1e-3; the best of 300 candidates on one axis is closer than that,
        # and a polish that promises less than 1e-2 leaves it there. The next lower maximum is further below.
        assert objective(x[None])[0] > best - 2e-3


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_polish_climbs(kind: str, method: Method) -> None:
    """From draws of the measure, none near a maximum: a tenth of a nat or more for most, which no wrong slope gives."""
    measure = reference.make_measure(kind, 2)
    gp = make_gp(measure)
    starts = measure.sample(20, 3)
    ends = np.array([polish(gp, measure, method, x) for x in starts])
    gains = log_uncertainty_at(gp, measure, method, ends) - log_uncertainty_at(gp, measure, method, starts)
    assert np.median(gains) > 0.1


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_bfgs_ascent_learns_the_curvature_of_a_quadratic(dim: int) -> None:
    """f = −½(x − c)ᵀA(x − c), axes correlated and 30 times apart, from an H that knows nothing of it."""
    rng = np.random.default_rng(dim)
    B = rng.standard_normal((dim, dim)) * np.geomspace(1.0, 30.0, dim)
    A, centre = B.T @ B + np.eye(dim), rng.standard_normal(dim)
    calls = []

    def f(x: Array) -> tuple[float, Array]:
        calls.append(x)
        return float(-0.5 * (x - centre) @ A @ (x - centre)), -A @ (x - centre)

    H = 0.1 * np.eye(dim)
    found = bfgs_ascent(f, np.zeros(dim), H, -np.inf, np.inf, gain=1e-6, max_evals=100)
    assert f(found)[0] > -1e-5  # it stops where its own estimate of the gain is 1e-6; the start is at −10 or lower
    assert_array_equal(H, 0.1 * np.eye(dim))
    calls.clear()
    assert f(bfgs_ascent(f, np.zeros(dim), H, -np.inf, np.inf, gain=0.0, max_evals=5))[0] >= f(np.zeros(dim))[0]
    assert len(calls) <= 5 + 2
    # At an H that is right the first step is the last: two evaluations, the second of them at the centre.
    calls.clear()
    assert_allclose(
        bfgs_ascent(f, np.zeros(dim), np.linalg.inv(A), -np.inf, np.inf, gain=1e-6, max_evals=100), centre, rtol=1e-6
    )
    assert len(calls) == 2


def test_bfgs_ascent_follows_a_wall() -> None:
    """The centre is outside the box: the maximum on the wall is where the other axis, though correlated, is highest."""
    A, centre = np.array([[1.0, 0.6], [0.6, 1.0]]), np.array([2.0, 0.1])

    def f(x: Array) -> tuple[float, Array]:
        return float(-0.5 * (x - centre) @ A @ (x - centre)), -A @ (x - centre)

    found = bfgs_ascent(f, np.zeros(2), 0.25 * np.eye(2), np.full(2, -1.0), np.ones(2), gain=1e-8, max_evals=50)
    assert_allclose(found, [1.0, 0.7], atol=1e-3)  # 0.1 + 0.6·(2 − 1)


def test_bfgs_ascent_stays_where_the_slope_is_wrong_or_missing() -> None:
    for slope in (-1.0, np.nan):
        x = np.array([0.3])
        f = lambda y, slope=slope: (float(y[0]), np.array([slope]))  # noqa: E731
        assert_array_equal(bfgs_ascent(f, x, np.eye(1), -np.inf, np.inf, gain=1e-2, max_evals=12), x)


def test_polish_reaches_the_edge_of_a_box() -> None:
    """One datum in the middle: the variance grows all the way to the corners, and so must the search."""
    box = Uniform([0.0, 0.0], [1.0, 1.0])
    gp = condition(np.full((1, 2), 0.5), np.ones(1), np.ones(2))
    assert_array_equal(polish(gp, box, "bq", np.array([0.7, 0.2])), [1.0, 0.0])


@pytest.mark.parametrize("kind", KINDS)
def test_polish_is_never_worse_and_stays_in_the_box(kind: str) -> None:
    measure = reference.make_measure(kind, 2)
    gp = make_gp(measure)
    for x in np.vstack([measure.sample(20, 3), gp.X]):
        if not np.isfinite(measure.log_pdf(x[None])[0]):
            continue
        before, after = log_uncertainty_at(gp, measure, "wsabi-l", np.stack([x, polish(gp, measure, "wsabi-l", x)]))
        assert after >= before - 1e-12


def test_cma_es_on_a_quadratic_follows_the_seed_and_the_box(dim: int = 3) -> None:
    target = np.array([0.3, -0.6, 0.9])

    def objective(Q: Array) -> Array:
        return np.asarray(-np.square((Q - target) * [1.0, 10.0, 0.1]).sum(axis=1))

    wide = Gaussian(np.zeros(dim), [1.0, 0.01, 100.0])
    found = cma_es(objective, wide, np.zeros(dim), np.random.default_rng(0))
    assert objective(found[None])[0] > -1e-2
    assert_array_equal(found, cma_es(objective, wide, np.zeros(dim), np.random.default_rng(0)))
    assert np.any(found != cma_es(objective, wide, np.zeros(dim), np.random.default_rng(1)))
    box = Uniform(np.zeros(dim), np.full(dim, 0.5))
    found = cma_es(objective, box, np.full(dim, 0.25), np.random.default_rng(0))
    assert np.all((found >= box.low) & (found <= box.high))
    assert_allclose(found, [0.3, 0.0, 0.5], atol=0.1)


def test_cma_es_leaves_the_global_random_state_alone() -> None:
    """The user's own np.random stream is not the library's to seed."""
    np.random.seed(5)  # noqa: NPY002 - the legacy state is what is under test
    before = np.random.get_state()[1].copy()  # type: ignore[index] # noqa: NPY002
    cma_es(lambda Q: -np.square(Q).sum(axis=1), Gaussian([0.0, 0.0]), np.ones(2), np.random.default_rng(0))
    assert_array_equal(np.random.get_state()[1], before)  # type: ignore[index] # noqa: NPY002


def test_cma_es_survives_an_objective_without_values() -> None:
    found = cma_es(lambda Q: np.full(len(Q), -np.inf), Gaussian([1.0]), np.ones(1), np.random.default_rng(0))
    assert np.all(np.isfinite(found))
