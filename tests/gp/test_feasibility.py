"""The border of the feasible part: moments and evidence against exact integrals, planes and balls that are learnt."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from wsabi.gp.feasibility import FAR, LENGTHS, MOST, SCALE, STEP, Border, _kernel, _propagated, _tilted, fit_border

Inside = Callable[[np.ndarray], np.ndarray]


def points(n: int, dim: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, dim))


def border_of(inside: Inside, X: np.ndarray) -> Border:
    feasible = inside(X)
    return fit_border(X[feasible], X[~feasible])


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("mean", [-3.0, 0.0, 0.7])
@pytest.mark.parametrize("variance", [0.1, 4.0])
def test_moments_of_a_cut_gaussian(sign: float, mean: float, variance: float) -> None:
    sd = math.sqrt(variance)

    def moment(power: int) -> float:
        found, _ = quad(
            lambda g: g**power * ndtr(sign * g) * norm.pdf(g, mean, sd), -40, 40, points=[mean, 0.0], limit=200
        )
        return float(found)

    log_mass, m, v = _tilted(np.array([sign]), np.array([mean]), np.array([variance]))
    assert_allclose(np.exp(log_mass), moment(0), rtol=1e-9)
    assert_allclose(m, moment(1) / moment(0), rtol=1e-8, atol=1e-10)
    assert_allclose(v, moment(2) / moment(0) - (moment(1) / moment(0)) ** 2, rtol=1e-7)


def test_evidence_of_one_sign_is_a_half() -> None:
    assert_allclose(_propagated(points(1, 2), np.ones(1), 2.0).log_evidence, math.log(0.5), atol=1e-6)


@pytest.mark.parametrize("signs", [[1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])
@pytest.mark.parametrize("n", [2, 3])
def test_evidence_of_few_signs_is_the_mass_of_an_orthant(n: int, signs: list[float]) -> None:
    """E ∏ Φ(s g) with g ~ N(0, K) is P(all s(g + e) > 0) for noise e: ¼ + asin ρ/2π, ⅛ + Σ asin ρ/4π.

    Run to its end the propagation is 2.3 % off for three equal signs, and 0.2 % or less for the others.
    """
    Y, s = points(n, 2, seed=3), np.array(signs[:n])
    K = _kernel(Y, Y, 1.5) + np.eye(n)
    rho = (K / np.sqrt(np.outer(np.diag(K), np.diag(K))) * np.outer(s, s))[np.triu_indices(n, 1)]
    exact = 0.5**n + np.arcsin(rho).sum() / (2.0**n * math.pi / 2.0)
    assert_allclose(math.exp(_propagated(Y, s, 1.5).log_evidence), exact, rtol=0.025)


def test_the_kernel_is_that_of_its_formula() -> None:
    a, b, length = np.array([0.3, -1.0]), np.array([1.2, 0.5]), 1.7
    expected = SCALE**2 * (1.0 + a @ b / length**2 + math.exp(-0.5 * np.square(a - b).sum() / length**2))
    assert_allclose(_kernel(a[None], b[None], length), [[expected]], rtol=1e-13)


def plane(X: np.ndarray) -> np.ndarray:
    return X @ np.arange(1.0, X.shape[1] + 1.0) < 0.5


def ball(X: np.ndarray) -> np.ndarray:
    return np.square(X - 0.3).sum(axis=1) < 2.0


@pytest.mark.parametrize(
    ("inside", "dim", "n", "wrong"), [(plane, 2, 60, 0.04), (plane, 5, 120, 0.04), (ball, 3, 150, 0.05)]
)
def test_planes_and_balls_are_learnt(inside: Inside, dim: int, n: int, wrong: float) -> None:
    """Fewer than the nearest of the n points would put on the wrong side, which are 0.05, 0.15 and 0.11 of all."""
    for seed in range(3):
        X, P = points(n, dim, seed), points(4000, dim, seed + 10)
        chance = border_of(inside, X).chance(P)
        assert np.mean((chance > 0.5) != inside(P)) < wrong
        assert abs(np.mean(chance) - np.mean(inside(P))) < wrong


def test_far_from_the_border_there_is_no_doubt() -> None:
    X = points(80, 2)
    border = border_of(plane, X)
    normal = np.array([1.0, 2.0]) / math.sqrt(5.0)
    assert_array_equal(border.chance(np.array([-1.5 * normal, 1.8 * normal])), [1.0, 0.0])


def test_the_two_sides_are_alike() -> None:
    X, P = points(50, 2), points(30, 2, seed=1)
    inside = plane(X)
    one, other = fit_border(X[inside], X[~inside]), fit_border(X[~inside], X[inside])
    assert_allclose(one.sign.chance(P), 1.0 - other.sign.chance(P), atol=1e-6)


def test_turned_coordinates_change_nothing() -> None:
    X, P = points(50, 3), points(30, 3, seed=1)
    turn = np.linalg.qr(points(3, 3, seed=2))[0]
    inside = plane(X)
    turned = fit_border(X[inside] @ turn, X[~inside] @ turn)
    assert_allclose(turned.chance(P @ turn), border_of(plane, X).chance(P), atol=1e-6)


@pytest.mark.parametrize("distance", [50.0, 1e3, 1e8])
def test_zeros_far_away_cast_no_doubt_on_the_centre(distance: float) -> None:
    """q is a thousandth or less of the prior: nothing is cut off the region itself."""
    X, blocked = points(60, 3), distance * points(5, 3, seed=1)
    border = fit_border(X, blocked)
    assert_array_equal(border.chance(points(200, 3, seed=2)), 1.0)
    assert np.all(border.chance(blocked) < 0.5)
    assert np.all(np.sqrt(np.square(border.sign.Y).sum(axis=1)) <= FAR * (1.0 + 1e-12))


def test_only_the_nearest_to_the_other_side_are_used() -> None:
    X = points(600, 2)
    inside = plane(X)
    border = fit_border(X[inside], X[~inside])
    assert len(border.sign.Y) == 2 * MOST
    away = np.abs(border.sign.Y @ [1.0, 2.0] - 0.5) / math.sqrt(5.0)
    assert np.max(away) < np.max(np.abs(X @ [1.0, 2.0] - 0.5)) / math.sqrt(5.0) / 2.0


def test_the_length_is_kept_or_moves_by_a_step() -> None:
    X = points(60, 2)
    inside = plane(X)
    assert fit_border(X[inside], X[~inside]).length in LENGTHS
    assert fit_border(X[inside], X[~inside], 1.3, learn=False).length == 1.3
    assert fit_border(X[inside], X[~inside], 2.0).length in {2.0 / STEP, 2.0, 2.0 * STEP}
    assert fit_border(X[inside], X[~inside], LENGTHS[-1]).length <= LENGTHS[-1]


def test_what_lies_behind_points_of_zero_likelihood_is_no_part_of_it() -> None:
    """A small box, and zeros all over the prior: most are too far from the border for g, which is in doubt there."""
    rng = np.random.default_rng(0)
    feasible, blocked = rng.uniform(0.6, 0.9, (10, 2)), 3.0 * points(400, 2)
    blocked = blocked[np.max(np.abs(blocked - 0.75), axis=1) > 0.15]
    border = fit_border(feasible, blocked)
    P = blocked + 0.02 * points(len(blocked), 2, seed=1)
    P = P[np.linalg.norm(P - 0.75, axis=1) > 1.0]
    assert_array_equal(border.chance(P), 0.0)
    assert np.max(border.sign.chance(P)) > 0.0
