"""What the explorer's surrogate says: bounded, cautious where it extrapolates, and zero where the likelihood is."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from wsabi.adaptive.search import explorer as module
from wsabi.adaptive.search.explorer import Explorer, max_data
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.symmetry.group import Symmetry, reflected
from wsabi.adaptive.tuning import TUNING, tuned
from wsabi.errors import NumericalError
from wsabi.priors import Gaussian
from wsabi.problems import narrow_gaussian
from wsabi.quadrature.design import spread_design


def a_bump(n: int, dim: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """n points (n, D) of a standard normal, and log ℓ = −½|x|² (n,)."""
    X = np.random.default_rng(seed).standard_normal((n, dim))
    return X, -0.5 * np.square(X).sum(axis=1)


# -- temperature and data ---------------------------------------------------------------------------------------------


def test_a_wider_span_is_a_colder_search() -> None:
    """t is the spread of the best values over the span: twice the span, half the temperature, and never below one."""
    problem = narrow_gaussian(2)
    X = spread_design(problem.prior, 12, np.random.default_rng(0))
    temperatures = []
    for span in (TUNING.search.span, 2.0 * TUNING.search.span, 1e9):
        with tuned("search", span=span):
            explorer = Explorer.from_prior(problem.prior).fitted(X, problem.log_likelihood_vectorized(X), learn=True)
        temperatures.append(explorer.temperature)
    assert temperatures[0] > 10.0
    assert_allclose(temperatures[1], 0.5 * temperatures[0], rtol=1e-12)
    assert temperatures[2] == 1.0


@pytest.mark.parametrize("hot", [True, False])
def test_a_hot_search_does_not_lose_sight_of_its_best_points(hot: bool) -> None:
    """Good values far outside q are modelled while the search is hot; a cold one leaves them to another region."""
    frame = Frame.of(np.zeros(2), 1e-4 * np.eye(2))
    explorer = Explorer(Gaussian(np.zeros(2)), frame, temperature=3.0 if hot else 1.0)
    near = 0.01 * np.random.default_rng(1).standard_normal((30, 2))
    far = np.array([[2.0, 1.0], [2.1, 1.0], [2.0, 1.1]])
    log_p = np.append(np.full(30, -50.0), np.zeros(3))
    kept = explorer._relevant(frame.whiten(np.concatenate([near, far])), log_p, max_data(2))
    assert set(kept) >= set(range(30))
    assert (set(kept) >= {30, 31, 32}) == hot


def test_of_too_many_data_the_best_half_is_kept_and_an_even_choice_of_the_rest() -> None:
    """The low ones are walls: without them nothing tells the surrogate that it must not rise again."""
    explorer = replace(Explorer.from_prior(Gaussian(np.zeros(2))), temperature=1.0)
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
    """In 200 dimensions the 2D + 2 data that a search needs are more than ``max_data``; they are kept all the same."""
    explorer = Explorer.from_prior(Gaussian(np.zeros(200)))
    Y = np.random.default_rng(2).standard_normal((450, 200))
    kept = explorer._relevant(Y, -np.arange(450.0), int(TUNING.search.max_data))
    assert sorted(kept) == list(range(402))


@pytest.mark.parametrize("dim", [1, 2, 10, 20])
def test_up_to_twenty_dimensions_the_sizes_are_fixed(dim: int) -> None:
    last = int(TUNING.search.last_data)
    assert (max_data(dim), max_data(dim, last)) == (TUNING.search.max_data, last)


@pytest.mark.parametrize("dim", [21, 25, 30, 40])
def test_above_twenty_dimensions_the_sizes_follow_the_coefficients_of_a_quadratic(dim: int) -> None:
    coefficients, last = (dim + 1) * (dim + 2) // 2, int(TUNING.search.last_data)
    assert 1.25 * coefficients < max_data(dim) < 1.75 * coefficients
    assert max_data(dim, last) == max(last, max_data(dim))


def test_what_gradients_have_said_of_the_curvature_is_the_surrogates_trend() -> None:
    """A Gaussian likelihood is known from the summit of ℓπ, whatever q is; and so is its symmetry image."""
    dim, rng = 4, np.random.default_rng(0)
    A = rng.standard_normal((dim, 2 * dim))
    precision, centre = A @ A.T, rng.standard_normal(dim)
    cov = np.linalg.inv(precision + np.eye(dim))
    frame = Frame.of(rng.standard_normal(dim), 0.3 * np.eye(dim) + 0.1)
    explorer = Explorer(Gaussian(np.zeros(dim)), frame, summit=Frame.of(cov @ precision @ centre, cov))
    X = frame.colour(rng.standard_normal((dim + 2, dim)))

    def log_l(u: np.ndarray) -> np.ndarray:
        return np.asarray(-0.5 * np.einsum("nd,de,ne->n", u - centre, precision, u - centre))

    explorer = explorer.fitted(X, log_l(X), learn=True)
    P = frame.colour(2.0 * rng.standard_normal((20, dim)))
    assert_allclose(explorer.mean_log_likelihood(P), np.minimum(log_l(P), explorer.top + 1.0), atol=0.1)
    symmetry = Symmetry.of(dim, ((0, 1),), [2])
    image = reflected(explorer, symmetry)
    assert_allclose(image.mean_log_likelihood(symmetry.image(P)), explorer.mean_log_likelihood(P))
    image = image.fitted(symmetry.image(X), log_l(X))
    assert_allclose(image.mean_log_likelihood(symmetry.image(P)), explorer.mean_log_likelihood(P), atol=0.1)


# -- where the likelihood is zero -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def half() -> Explorer:
    """An explorer fitted to forty points of a standard bump that is cut at the axis: ℓ = 0 where x₀ < 0."""
    X, log_l = a_bump(40)
    return Explorer.from_prior(Gaussian([0.0, 0.0])).fitted(X, np.where(X[:, 0] > 0.0, log_l, -np.inf), learn=True)


def test_chance_of_being_feasible(half: Explorer) -> None:
    """One on the feasible side and zero on the other, and across the axis it falls from one to zero."""
    way = np.column_stack([np.linspace(1.5, -1.5, 31), np.zeros(31)])
    chance = half.feasible(half.frame.whiten(way))
    assert_array_equal(chance[:12], 1.0)
    assert_array_equal(chance[-12:], 0.0)
    assert np.all(np.diff(chance) <= 0.0)
    assert 0.2 < chance[15] < 0.8


def test_without_infeasible_data_all_is_feasible() -> None:
    X, log_l = a_bump(10)
    explorer = Explorer.from_prior(Gaussian([0.0, 0.0])).fitted(X, log_l, learn=True)
    assert_array_equal(explorer.feasible(50.0 * X), 1.0)


def test_a_border_is_forgotten_with_the_data_that_had_it(half: Explorer) -> None:
    x = np.array([[-1.5, 0.0]])
    assert np.isneginf(half.log_likelihood(x)[0])
    whole = half.fitted(*a_bump(40), learn=True)
    assert whole.border is None
    assert np.isfinite(whole.log_likelihood(x)[0])


def test_log_likelihood_is_the_bounded_mean_with_the_chance_of_being_feasible(half: Explorer) -> None:
    X = 2.0 * np.random.default_rng(4).standard_normal((300, 2))
    Y = half.frame.whiten(X)
    mean, v = half.fitted_surrogate.predict(Y)
    chance = half.feasible(Y)
    assert (chance == 0.0).any()
    assert ((chance > 0.0) & (chance < 1.0)).any()
    log_l, sd = half.log_likelihood(X)
    inside = (chance > 0.0) & (v < 1.0)  # where nothing is taken off for extrapolating
    expected = half.top + np.minimum(mean, 1.0) + 0.5 * v + np.log(np.maximum(chance, 1e-300))
    assert_allclose(log_l[inside], expected[inside])
    assert np.all(np.isneginf(log_l[chance == 0.0]))
    assert_allclose(sd[chance == 1.0], np.sqrt(v[chance == 1.0]))
    assert np.all(sd[chance < 1.0] > np.sqrt(v[chance < 1.0]))


def test_beyond_the_data_the_less_is_known_the_more_is_taken_off() -> None:
    """log E[e^g] = m + ½v up to v = 1, and from there on m + ½ − ½(v − 1): six data fix no quadratic in 3-D."""
    explorer = Explorer.from_prior(Gaussian(np.zeros(3))).fitted(*a_bump(6, dim=3, seed=1), learn=True)
    P = 2.0 * np.random.default_rng(2).standard_normal((200, 3))
    mean, v = explorer.fitted_surrogate.predict(explorer.frame.whiten(P))
    assert (v < 1.0).any()
    assert (v > 1.0).any()
    expected = explorer.top + np.minimum(mean, 1.0) + np.where(v < 1.0, 0.5 * v, 1.0 - 0.5 * v)
    assert_allclose(explorer.log_likelihood(P)[0], expected)


# -- the tempered posterior -------------------------------------------------------------------------------------------


def tempered(explorer: Explorer, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """m of g = log ℓ^(1/t)π, its variance v, and the chance p of being feasible, (M,) each."""
    Y = explorer.frame.whiten(X)
    mean, v = explorer.fitted_surrogate.predict(Y)
    m = mean / explorer.temperature + explorer.measure.log_pdf(X)
    return m, v / explorer.temperature**2, explorer.feasible(Y)


@cache
def near_cut(temperature: float) -> Explorer:
    """Twenty points of a narrow bump that is cut at the axis, hot because few of them come near its top, or cold."""
    scale = 0.5 * temperature
    X = np.random.default_rng(0).standard_normal((20, 2))
    log_l = np.where(X[:, 0] > -0.5, -scale * np.square(X).sum(axis=1) - scale * np.cos(3.0 * X[:, 0]), -np.inf)
    explorer = Explorer.from_prior(Gaussian([0.0, 0.0])).fitted(X, log_l, learn=True)
    assert (explorer.temperature > 1.0) == (temperature > 1.0)
    return explorer


@pytest.mark.parametrize("temperature", [1.0, 30.0])
def test_log_uncertainty_is_the_sd_of_the_tempered_posterior(temperature: float) -> None:
    """sd of B·e^g, B ~ Bernoulli(p), g ~ N(m, v), by 60-point Gauss-Hermite, where v is below its cap of 4.

    The sd is taken relative to something between e^m, the median, and e^(m + v/2), the mean: tolerance v/2. Half of
    the points have a v of a tenth and less, so that a lost p, v or temperature is seen.
    """
    explorer = near_cut(temperature)
    X = np.random.default_rng(3).standard_normal((400, 2))
    m, v, p = tempered(explorer, X)
    kept = (v < 3.9) & (p > 0.01) & (m - explorer.measure.log_pdf(X) < 2.5)
    X, m, v, p = X[kept], m[kept], v[kept], p[kept]
    assert (v < 0.1).mean() > 0.3
    assert ((p < 1.0) & (v < 0.1)).sum() > 5
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    powers = [np.exp(k * np.sqrt(v)[:, None] * nodes) @ weights for k in (1, 2)]  # E e^(g − m), E e^(2(g − m))
    assert_allclose(powers[0], np.exp(0.5 * v), rtol=1e-10)  # the oracle has converged
    exact = m + 0.5 * np.log(p * powers[1] - np.square(p * powers[0]))
    found = explorer.log_uncertainty(X)
    # At v of 1e-6 and less, p e^2v − p² e^v is a difference of two ones, known to ε/v.
    slack = 1e-8 + 4.0 * np.finfo(float).eps / np.maximum(v, 1.0 - p)
    assert np.all(found <= exact + slack)
    assert np.all(found >= exact - 0.5 * v - slack)


@pytest.mark.parametrize("temperature", [1.0, 30.0])
def test_log_posterior_is_cautious(temperature: float) -> None:
    """m less ``caution`` √v, + log p; and −inf where ℓ is surely zero."""
    explorer = near_cut(temperature)
    X = np.random.default_rng(3).standard_normal((400, 2))
    m, v, p = tempered(explorer, X)
    found = explorer.log_posterior(X)
    kept = (p > 0.0) & (m - explorer.measure.log_pdf(X) < 2.5)
    assert_allclose(found[kept], (m - TUNING.search.caution * np.sqrt(v))[kept] + np.log(p[kept]), rtol=1e-10)
    assert (p == 0.0).any()
    assert np.all(np.isneginf(found[p == 0.0]))
    assert np.all(np.isneginf(explorer.log_uncertainty(X)[p == 0.0]))


# -- frozen -----------------------------------------------------------------------------------------------------------


def test_more_data_leave_the_explorer_as_it_was(half: Explorer) -> None:
    """Those that are fitted, and those that join; and two fits to the same data are the same."""
    X, log_l = a_bump(50)
    before = half.log_likelihood(X)
    one, other = (half.fitted(X, log_l + 3.0, learn=True) for _ in range(2))
    joined, rows = half.extended(X[40:], log_l[40:])
    assert len(rows) == 10
    for more in (one, joined):
        assert not np.array_equal(more.log_likelihood(X)[0], before[0])
    assert_array_equal(half.log_likelihood(X), before)
    assert_array_equal(one.log_likelihood(X), other.log_likelihood(X))


def test_a_fit_that_fails_is_an_error_and_changes_nothing(half: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    X, log_l = a_bump(41)
    before = half.log_likelihood(X)

    def fail(*arguments: object, **options: object) -> None:
        raise NumericalError("no")

    monkeypatch.setattr(module, "fit_log_surrogate", fail)
    with pytest.raises(NumericalError):
        half.fitted(X, log_l)
    assert_array_equal(half.log_likelihood(X), before)


def test_an_explorer_without_data_says_so() -> None:
    with pytest.raises(NumericalError, match="no data yet"):
        Explorer.from_prior(Gaussian([0.0])).log_likelihood(np.zeros((1, 1)))
