"""How q follows the surrogate: weights too uneven for moments, ignorance, and a valley that narrows on the way down."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import wsabi
from wsabi.adaptive.search import anneal as module
from wsabi.adaptive.search.anneal import (
    DRAWS,
    LAST_DATA,
    LAST_INTERACTIONS,
    MAX_DATA,
    Explorer,
    divergence,
    max_data,
    n_draws,
)
from wsabi.adaptive.search.search import Search
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.symmetry.group import Symmetry, reflected
from wsabi.priors import Gaussian


def effective_size(log_w: np.ndarray) -> float:
    """(Σw)²/Σw² of weights held to M^−½ of their sum."""
    w = np.exp(log_w - np.max(log_w))
    w = np.minimum(w, w.sum() / math.sqrt(len(w)))
    return float(w.sum() ** 2 / np.square(w).sum())


@given(st.integers(0, 10_000), st.floats(0.1, 200.0), st.floats(5.0, 80.0))
def test_flattened_weights_count_for_as_many_as_wanted_and_no_flatter(seed: int, spread: float, wanted: float) -> None:
    log_w = spread * np.random.default_rng(seed).standard_normal(600)
    power = module._flattening(log_w, np.zeros(600), wanted)
    assert 0.0 < power <= 1.0
    assert effective_size(power * log_w) >= wanted or power < 2e-3
    if power < 1.0:  # to a thousandth: a little steeper would be too few
        assert effective_size((power + 2e-3) * log_w) < wanted * (1.0 + 1e-9) or power + 2e-3 > 1.0


def test_even_weights_are_left_as_they_are() -> None:
    assert module._flattening(np.zeros(600), np.zeros(600), 100.0) == 1.0


def test_what_is_hardly_feasible_is_not_made_more_so() -> None:
    """Ten draws that are feasible and 590 that hardly are: no power makes a hundred of them, and the ten stay ahead."""
    log_f = np.append(np.zeros(10), np.full(590, -20.0))
    log_w = 30.0 * np.random.default_rng(0).standard_normal(600)
    power = module._flattening(log_w, log_f, 100.0)
    assert 0.0 < power < 2e-3
    w = np.exp(power * log_w + log_f)
    assert w[:10].sum() > 0.99 * w.sum()


@pytest.mark.parametrize("hot", [True, False])
def test_a_hot_search_does_not_lose_sight_of_its_best_points(hot: bool) -> None:
    """Good values far outside q are modelled while the search is hot; a cold one leaves them to another region."""
    explorer = Explorer(Gaussian(np.zeros(2)), np.random.default_rng(0))
    explorer.temperature = 3.0 if hot else 1.0
    explorer.frame = Frame.of(np.zeros(2), 1e-4 * np.eye(2))
    near = 0.01 * np.random.default_rng(1).standard_normal((30, 2))
    far = np.array([[2.0, 1.0], [2.1, 1.0], [2.0, 1.1]])
    log_p = np.append(np.full(30, -50.0), np.zeros(3))
    kept = explorer._relevant(explorer.frame.whiten(np.concatenate([near, far])), log_p)
    assert set(kept) >= set(range(30))
    assert (set(kept) >= {30, 31, 32}) == hot


def test_of_too_many_data_the_best_half_is_kept_and_an_even_choice_of_the_rest() -> None:
    """The low ones are walls: without them nothing tells the surrogate that it must not rise again."""
    explorer = Explorer(Gaussian(np.zeros(2)), np.random.default_rng(0))
    explorer.temperature = 1.0
    log_p = -np.random.default_rng(1).permutation(200).astype(float)
    kept = explorer._relevant(np.random.default_rng(2).standard_normal((200, 2)), log_p, 40)
    ranks = np.sort(-log_p[kept])
    assert len(kept) == len(set(kept)) == 40
    assert list(ranks[:20]) == list(range(20))
    assert ranks[-1] == 199
    assert np.all(np.diff(ranks[20:]) < 11)  # 180 ranks in 19 steps
    few = explorer._relevant(np.random.default_rng(2).standard_normal((30, 2)), log_p[:30], 40)
    assert sorted(few) == list(range(30))


def test_more_coefficients_than_data_that_fit() -> None:
    """In 200 dimensions the 2D + 2 data that a search needs are more than MAX_DATA; they are kept all the same."""
    explorer = Explorer(Gaussian(np.zeros(200)), np.random.default_rng(0))
    kept = explorer._relevant(np.random.default_rng(2).standard_normal((450, 200)), -np.arange(450.0))
    assert sorted(kept) == list(range(402))


@pytest.mark.parametrize("dim", [1, 2, 10, 20])
def test_up_to_twenty_dimensions_the_sizes_are_fixed(dim: int) -> None:
    assert (max_data(dim), max_data(dim, LAST_DATA), n_draws(dim)) == (MAX_DATA, LAST_DATA, DRAWS)


@pytest.mark.parametrize("dim", [21, 25, 30, 40])
def test_above_twenty_dimensions_the_sizes_follow_the_coefficients_of_a_quadratic(dim: int) -> None:
    coefficients = (dim + 1) * (dim + 2) // 2
    assert 1.25 * coefficients < max_data(dim) < 1.75 * coefficients
    assert max_data(dim, LAST_DATA) == max(LAST_DATA, max_data(dim))
    assert n_draws(dim) == 6 * coefficients


def test_q_matched_to_a_gaussian_in_thirty_dimensions_stays_that_gaussian(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 600 draws it ended 17 nats away: too few draws for its 495 moments shrink q at every step."""
    dim = 30
    explorer = Explorer(Gaussian(np.zeros(dim)), np.random.default_rng(0))
    monkeypatch.setattr(
        Explorer, "_log_target", lambda self, Y, caution: (-0.5 * np.square(Y).sum(axis=1), np.zeros(len(Y)))
    )
    shift, factor, log_mass = explorer._matched_moments(0.0)
    assert divergence(shift, factor) < 0.02 * dim
    assert abs(log_mass - 0.5 * dim * math.log(2.0 * math.pi)) < 0.5


@pytest.mark.parametrize(
    ("dim", "uncertainty", "growth"),
    [(20, 0.1, math.log(2.0)), (30, 1.0, math.log(2.0)), (30, 0.1, 30.0 * math.log(1.5))],
)
def test_in_many_dimensions_q_grows_as_a_surrogate_that_knows_says(
    monkeypatch: pytest.MonkeyPatch, dim: int, uncertainty: float, growth: float
) -> None:
    """Elsewhere to twice its volume at most: in 25-D it stayed too thin to the end, and log Z was 0.9 too low."""
    explorer = Explorer(Gaussian(np.zeros(dim)), np.random.default_rng(0))
    X = explorer.rng.standard_normal((2 * dim, dim))
    log_l = -0.5 * np.square(X).sum(axis=1)
    explorer.fit(X, log_l, learn=True)
    explorer.uncertainty = uncertainty
    monkeypatch.setattr(Explorer, "_matched_moments", lambda self, caution: (np.zeros(dim), 1.5 * np.eye(dim), 0.0))
    before = explorer.frame.log_det
    explorer.match(X, log_l)
    assert_allclose(explorer.frame.log_det - before, growth)


def test_what_gradients_have_said_of_the_curvature_is_the_surrogates_trend() -> None:
    """A Gaussian likelihood is known from the summit of ℓπ, whatever q is; and so is its symmetry image."""
    dim, rng = 4, np.random.default_rng(0)
    A = rng.standard_normal((dim, 2 * dim))
    precision, centre = A @ A.T, rng.standard_normal(dim)
    cov = np.linalg.inv(precision + np.eye(dim))
    explorer = Explorer(Gaussian(np.zeros(dim)), rng)
    explorer.summit = Frame.of(cov @ precision @ centre, cov)
    explorer.frame = Frame.of(rng.standard_normal(dim), 0.3 * np.eye(dim) + 0.1)
    X = explorer.frame.colour(rng.standard_normal((dim + 2, dim)))

    def log_l(u: np.ndarray) -> np.ndarray:
        return np.asarray(-0.5 * np.einsum("nd,de,ne->n", u - centre, precision, u - centre))

    explorer.fit(X, log_l(X), learn=True)
    P = explorer.frame.colour(2.0 * rng.standard_normal((20, dim)))
    assert_allclose(explorer.mean_log_likelihood(P), np.minimum(log_l(P), explorer.top + 1.0), atol=0.1)
    symmetry = Symmetry.of(dim, ((0, 1),), [2])
    image = reflected(explorer, symmetry)
    assert_allclose(image.mean_log_likelihood(symmetry.image(P)), explorer.mean_log_likelihood(P))
    image.fit(symmetry.image(X), log_l(X))
    assert_allclose(image.mean_log_likelihood(symmetry.image(P)), explorer.mean_log_likelihood(P), atol=0.1)


def test_walls_keep_a_surrogate_of_many_data_from_rising_again() -> None:
    """Robust regression in 12-D: with the best data alone the model was two to nine nats off after 800 evaluations.

    What is left, a fifth of a nat and more claimed, is what so few evaluations can tell of twelve dimensions.
    """
    dim = 12
    rng = np.random.default_rng(3)
    A = rng.standard_normal((60, dim - 1))
    y = A @ rng.standard_normal(dim - 1) + 0.3 * rng.standard_t(3, 60)

    def value(u: np.ndarray) -> float:
        log_sd = u[-1] - 0.5
        t = (y - 2.0 * A @ u[:-1]) * math.exp(-log_sd)
        return float(-2.5 * np.log1p(np.square(t) / 4.0).sum() - len(y) * log_sd)

    result = wsabi.integrate(value, wsabi.Gaussian(np.zeros(dim)), budget=700, rng=0, tol=0)
    assert result.certificate is not None
    assert result.certificate.uncertainty < 0.6
    assert abs(result.certificate.difference) < 3.0
    assert result.certificate.effective_sample_size > 0.2 * result.certificate.n_points


def test_ignorance_makes_the_search_more_cautious(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moments that rest on what the surrogate does not know are taken again with four times the caution."""
    explorer = Explorer(Gaussian(np.zeros(2)), np.random.default_rng(0))
    X = np.random.default_rng(1).standard_normal((12, 2))
    asked: list[float] = []
    honest = Explorer._matched_moments

    def recorded(self: Explorer, caution: float) -> tuple[np.ndarray, np.ndarray, float]:
        asked.append(caution)
        moments = honest(self, caution)
        self.uncertainty = uncertainty
        return moments

    monkeypatch.setattr(Explorer, "_matched_moments", recorded)
    for uncertainty, expected in ((1.9, [0.5]), (2.1, [0.5, 2.0])):  # noqa: B007 (read by `recorded`)
        asked.clear()
        explorer.match(X, -0.5 * np.square(X).sum(axis=1))
        assert asked == expected


def test_half_of_the_candidates_fill_the_ball(monkeypatch: pytest.MonkeyPatch) -> None:
    """In twelve dimensions draws of q all lie in a shell; the point of most uncertainty may lie well inside it."""
    dim = 12
    explorer = Explorer(Gaussian(np.zeros(dim)), np.random.default_rng(0))
    seen: list[np.ndarray] = []

    def log_uncertainty(self: Explorer, X: np.ndarray) -> np.ndarray:
        seen.append(X)
        return -np.square(X).sum(axis=1)

    monkeypatch.setattr(Explorer, "log_uncertainty", log_uncertainty)
    x = explorer.propose(np.empty((0, dim)))
    radii = np.linalg.norm(seen[0], axis=1)
    assert np.mean(radii < 0.5 * math.sqrt(dim)) > 0.15  # a quarter of all: half of half
    assert np.mean(radii > math.sqrt(dim)) > 0.3
    assert np.linalg.norm(x) < 0.3


def narrowing_valley(dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and observations of a linear regression whose noise is unknown too."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((3 * dim, dim - 1))
    return A, A @ rng.standard_normal(dim - 1) + 0.2 * rng.standard_normal(3 * dim)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_valley_that_narrows_on_the_way_down_is_followed_to_its_end(seed: int) -> None:
    """Ten coefficients and the noise of a regression: q must shrink by tens in width, and not away from its data.

    The posterior's mode given the noise is the ridge estimate; the mean of q lies within a sd of it in every direction
    at least on average.
    """
    dim, scale = 10, 2.0
    A, y = narrowing_valley(dim, seed)
    measure = Gaussian(np.zeros(dim))
    rng = np.random.default_rng(seed)
    search = Search(measure, rng, first=True)
    X, log_l = np.empty((0, dim)), np.empty(0)

    def value(u: np.ndarray) -> float:
        log_sd = u[-1] - 0.5
        return float(-0.5 * np.square((y - scale * A @ u[:-1]) * math.exp(-log_sd)).sum() - len(y) * log_sd)

    while not search.explorer.is_cold and len(X) < 450:
        u = search.next_point(X, np.empty((0, dim)), rng)
        X, log_l = np.concatenate([X, u[None]]), np.append(log_l, value(u))
        if not search.design and len(X) >= search.n_handed:
            search.learn(X, log_l, len(X), float(np.max(log_l + measure.log_pdf(X))))
    assert search.explorer.is_cold
    noise = math.exp(search.explorer.frame.mean[-1] - 0.5)
    precision = np.square(scale / noise) * A.T @ A + np.eye(dim - 1)
    ridge = np.linalg.solve(precision, scale / noise**2 * A.T @ y)
    away = search.explorer.frame.mean[:-1] - ridge
    assert away @ precision @ away < dim


def test_a_last_surrogate_has_more_data_than_it_has_learnt_from() -> None:
    """θ is that of MAX_DATA of them, as before; the surrogate has all 600, or LAST_DATA of 1100."""
    X = np.random.default_rng(0).standard_normal((1100, 2))
    log_l = -np.square(X).sum(axis=1) + 0.1 * np.sin(4.0 * X[:, 0])
    explorer = Explorer(Gaussian(np.zeros(2)), np.random.default_rng(1))
    explorer.fit(X[:600], log_l[:600], learn=True)
    assert explorer.surrogate is not None
    assert len(explorer.surrogate.Y) == MAX_DATA
    rng = np.random.default_rng(0)
    last, most = explorer.relearnt(X[:600], log_l[:600], rng).surrogate, explorer.relearnt(X, log_l, rng).surrogate
    assert last is not None
    assert most is not None
    assert (len(last.Y), len(most.Y)) == (600, LAST_DATA)
    explorer.fit(X[:600], log_l[:600], learn=True)
    assert_allclose(last.theta.vector, explorer.surrogate.theta.vector, rtol=1e-9)


@pytest.mark.parametrize(("dim", "on_the_way", "at_last"), [(2, 0, 0), (4, 1, LAST_INTERACTIONS)])
def test_a_last_surrogate_has_more_interactions(dim: int, on_the_way: int, at_last: int) -> None:
    """With more data than it has learnt from, and with fewer; check points that join it leave them as they are."""
    X = np.random.default_rng(0).standard_normal((MAX_DATA + 50, dim))
    log_l = -0.5 * np.square(X).sum(axis=1)
    for n in (60, len(X)):
        explorer = Explorer(Gaussian(np.zeros(dim)), np.random.default_rng(1))
        explorer.match(X[:n], log_l[:n])
        assert explorer.is_cold
        last = explorer.relearnt(X[:n], log_l[:n], np.random.default_rng(0))
        more, joined = last.extended(X[:3] + 0.1, log_l[:3])
        assert len(joined) == 3
        for known, expected in ((explorer, on_the_way), (last, at_last), (more, at_last)):
            assert known.surrogate is not None
            assert len(known.surrogate.theta.sides) == expected


def test_more_data_that_leave_more_to_doubt_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).standard_normal((600, 2))
    log_l = -np.square(X).sum(axis=1)
    explorer = Explorer(Gaussian(np.zeros(2)), np.random.default_rng(1))
    explorer.fit(X, log_l, learn=True)
    monkeypatch.setattr(Explorer, "mean_sd", lambda self, _: float(len(self.surrogate.Y)))
    kept = explorer.relearnt(X, log_l, np.random.default_rng(0)).surrogate
    assert kept is not None
    assert len(kept.Y) == MAX_DATA


def test_the_mean_sd_is_that_over_the_posterior() -> None:
    """By quadrature in one dimension; six hundred draws know it to a few per cent."""
    X = np.array([[-2.0], [-1.0], [0.2], [1.1], [2.5]])
    explorer = Explorer(Gaussian(np.zeros(1)), np.random.default_rng(1))
    explorer.fit(X, -np.square(X[:, 0]) + 0.3 * np.sin(5.0 * X[:, 0]), learn=True)
    found = explorer.mean_sd(explorer._student_noise(600, np.random.default_rng(0)))
    assert explorer.surrogate is not None
    y = np.linspace(-6.0, 6.0, 4001)
    mean, variance = explorer.surrogate.predict(y[:, None])
    t = explorer.temperature
    w = np.exp(np.minimum(mean / t, 3.0) + explorer.measure.log_pdf(explorer.frame.colour(y[:, None])))
    assert_allclose(found, w @ np.sqrt(variance) / t / w.sum(), rtol=0.1)
