"""The user's gradient of log ℓ in base coordinates, and the check that it is one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import wsabi
from wsabi.errors import LikelihoodError
from wsabi.likelihood import checked_slope, evaluator, gradient_evaluator
from wsabi.priors.chart import Chart, chart

# -- in base coordinates ----------------------------------------------------------------------------------------------


def bent(x: np.ndarray) -> float:
    """No coordinate by itself, nothing symmetric."""
    return float(np.sin(x[0]) * x[1] - 0.3 * x[1] ** 2 + np.cos(x[0] - 2.0 * x[2]))


def bent_gradient(x: np.ndarray) -> np.ndarray:
    turn = np.sin(x[0] - 2.0 * x[2])
    return np.array([np.cos(x[0]) * x[1] - turn, np.sin(x[0]) - 0.6 * x[1], 2.0 * turn])


def by_name(p: dict[str, Any]) -> np.ndarray:
    return np.stack([p["a"], p["b"], p["c"]], axis=-1)


def logpdf(x: np.ndarray) -> float:
    return float(stats.norm(0.5, 0.7).logpdf(x[0]) + stats.gamma(3.0).logpdf(x[1]) + stats.norm.logpdf(x[2]))


MARGINALS = [stats.gamma(2.0, scale=0.5), stats.norm(-1.0, 3.0), stats.beta(2.0, 5.0)]
COVARIANCE = np.array([[4.0, 0.6, 0.0], [0.6, 0.25, 0.1], [0.0, 0.1, 9.0]])
PRIORS = {
    "Gaussian": wsabi.Gaussian([1.0, -2.0, 0.5], COVARIANCE),
    "GaussianMixture": wsabi.GaussianMixture([0.3, 0.7], [[0.0, 0.0, 0.0], [3.0, 1.0, -1.0]], [1.0, 2.0]),
    "Uniform": wsabi.Uniform([-1.0, 0.0, 10.0], [1.0, 5.0, 30.0]),
    "Independent": wsabi.Independent(MARGINALS),
    "LogDensity": wsabi.LogDensity(logpdf, wsabi.Gaussian([0.5, 3.0, 0.0], [1.0, 3.0, 2.0])),
}


def assert_is_the_gradient(space: Chart, log_likelihood: Any, gradient: Any, *, vectorized: bool = False) -> None:
    """Of log ℓ(x(u)) w(u), at three draws of the base measure.

    Central differences are good to h² + ε/h, 1e-10 at h = ε^⅓, and those of the weight, with their own step, to 1e-9:
    1e-6 sees any factor.
    """
    values = evaluator(log_likelihood, space, vectorized=vectorized)
    in_base = gradient_evaluator(gradient, space, vectorized=vectorized)
    steps = np.cbrt(np.finfo(float).eps) * np.eye(space.dim)

    def joint(U: np.ndarray) -> np.ndarray:
        return np.asarray(values(space.to_user(U)) + space.log_weight(U))

    tried = 0
    for u in space.measure.sample(20, np.random.default_rng(1)):
        if not np.isfinite(space.log_weight(u[None, :])[0]):
            continue
        differences = (joint(u + steps) - joint(u - steps)) / (2.0 * steps[0, 0])
        assert_allclose(in_base(u), differences, rtol=1e-6, atol=1e-6 * np.max(np.abs(differences)))
        tried += 1
    assert tried > 10


@pytest.mark.parametrize("name", PRIORS)
def test_it_is_the_gradient_in_base_coordinates(name: str) -> None:
    assert_is_the_gradient(chart(PRIORS[name], gaussian=True), bent, bent_gradient)


@pytest.mark.parametrize("returned", ["array", "dict"])
@pytest.mark.parametrize("vectorized", [False, True])
def test_with_a_dict_prior_it_gets_a_dict_and_may_return_one(returned: str, vectorized: bool) -> None:
    space = chart(dict(zip("abc", MARGINALS, strict=True)), gaussian=True)
    kinds: set[Any] = set()

    def value(p: dict[str, Any]) -> Any:
        X = by_name(p)
        return np.array([bent(x) for x in X]) if vectorized else bent(X)

    def gradient(p: dict[str, Any]) -> Any:
        kinds.update(np.shape(entry) for entry in p.values())
        X = by_name(p)
        G = np.array([bent_gradient(x) for x in X]) if vectorized else bent_gradient(X)
        return {name: G[..., d] for d, name in reversed(list(enumerate("abc")))} if returned == "dict" else G

    assert_is_the_gradient(space, value, gradient, vectorized=vectorized)
    assert kinds == {(1,) if vectorized else ()}


def test_with_vectorized_it_gets_one_row_and_returns_one() -> None:
    shapes = []

    def gradients(X: np.ndarray) -> np.ndarray:
        shapes.append(X.shape)
        return np.array([bent_gradient(x) for x in X])

    def values(X: np.ndarray) -> np.ndarray:
        return np.array([bent(x) for x in X])

    assert_is_the_gradient(chart(PRIORS["Uniform"], gaussian=True), values, gradients, vectorized=True)
    assert set(shapes) == {(1, 3)}


def test_at_the_edge_of_a_density_the_weight_is_differenced_on_one_side() -> None:
    """An exponential density begins at zero: at 1e-7 a central difference would meet log 0."""
    space = chart(wsabi.LogDensity(lambda x: float(stats.expon.logpdf(x[0])), wsabi.Gaussian([0.5])), gaussian=True)
    in_base = gradient_evaluator(lambda x: np.zeros(1), space, vectorized=False)
    u = space.to_base(np.array([[1e-7]]))[0]
    # log w = −x + ½(x − 0.5)² + const, and x = 0.5 + u; one-sided, so to 1e-5.
    assert_allclose(in_base(u), -1.0 - 0.5, atol=1e-4)
    lone = chart(wsabi.LogDensity(lambda x: 0.0 if x[0] == 0.5 else -math.inf, wsabi.Gaussian([0.5])), gaussian=True)
    assert_array_equal(gradient_evaluator(lambda x: np.ones(1), lone, vectorized=False)(np.zeros(1)), [1.0])


# -- the check ---------------------------------------------------------------------------------------------------------


SPACE = chart(wsabi.Gaussian([0.0, 0.0]), gaussian=True)


def check(value: Callable[[np.ndarray], float], gradient: Callable[[np.ndarray], np.ndarray], *points: Any) -> int:
    """Evaluations made beside those at the points."""
    calls = []

    def counted(u: np.ndarray) -> float:
        calls.append(u)
        return value(u)

    slope = checked_slope(counted, gradient, SPACE)
    for u in points:
        slope(np.array(u))
    return len(calls) - len(points)


@pytest.mark.parametrize("distance", [1e-12, 1e-6, 1e-4, 1e-3, 0.02, 0.5, 10.0])
@pytest.mark.parametrize("sd", [1e-4, 0.01, 1.0])
def test_a_right_gradient_passes_however_near_the_mode(distance: float, sd: float) -> None:
    """Sds from the mode; by a first-order difference, the curvature would be taken for an error."""
    u = np.array([0.3, 0.4]) + distance * sd * np.array([0.6, 0.8])

    def value(v: np.ndarray) -> float:
        return -0.5 * float(np.sum((v - [0.3, 0.4]) ** 2)) / sd**2 - 700.0

    assert check(value, lambda v: (np.array([0.3, 0.4]) - v) / sd**2, u) <= 1


def test_values_in_single_precision_pass() -> None:
    """log ℓ about −5,000 is then known to 2e-4 nats, 1e-3 after a sum."""

    def value(v: np.ndarray) -> float:
        return float(np.float32(-0.5 * np.sum((v - 1.0) ** 2) / 0.01**2))

    rng = np.random.default_rng(0)
    for u in rng.standard_normal((50, 2)):
        assert check(value, lambda v: (1.0 - v) / 0.01**2, u) == 1
        with pytest.raises(LikelihoodError, match="is not the gradient"):
            check(value, lambda v: (v - 1.0) / 0.01**2, u)


def test_rounded_values_pass_where_the_two_ends_cancel() -> None:
    """A millionth of log ℓ is taken for noise, also where a step across the mode leaves no rise to compare with."""

    def value(v: np.ndarray) -> float:
        return 7e-4 * round((-700.0 - 0.5 * float(v @ v) / 0.01**2) / 7e-4)

    for distance in np.geomspace(1e-4, 1e-2, 300):  # prior sds; the likelihood's is 0.01
        check(value, lambda v: -v / 0.01**2, [distance, 0.0])


def test_one_gradient_is_checked_and_no_more() -> None:
    def value(v: np.ndarray) -> float:
        return -float(v @ v)

    assert check(value, lambda v: -2.0 * v, [1.0, 1.0], [0.5, 1.0], [0.2, 0.1]) == 1


def test_a_flat_place_is_no_place_to_check_and_the_next_is_taken() -> None:
    def value(v: np.ndarray) -> float:
        return -float(v @ v)

    assert check(value, lambda v: -2.0 * v, [0.0, 0.0]) == 0
    assert check(value, lambda v: -2.0 * v, [0.0, 0.0], [1e-9, 0.0]) == 0
    assert check(value, lambda v: -2.0 * v, [0.0, 0.0], [1.0, 0.0]) == 1
    with pytest.raises(LikelihoodError, match="is not the gradient"):
        check(value, lambda v: 2.0 * v, [0.0, 0.0], [1.0, 0.0])


def test_a_check_that_falls_off_an_edge_is_made_elsewhere() -> None:
    def value(v: np.ndarray) -> float:
        return float(v[0]) if v[0] < 1.0 else -math.inf

    assert check(value, lambda v: np.array([1.0, 0.0]), [1.0 - 1e-9, 0.0], [0.5, 0.0], [0.2, 0.0]) == 2


def test_nothing_is_asked_of_the_gradient_where_the_likelihood_is_zero() -> None:
    slope = checked_slope(lambda u: -math.inf, lambda u: pytest.fail("asked"), SPACE)
    log_zero, gradient = slope(np.ones(2))
    assert log_zero == -math.inf
    assert_array_equal(gradient, [0.0, 0.0])
