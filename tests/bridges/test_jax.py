"""``wsabi.from_jax``: compiled, in double precision, with the gradient of JAX."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import trapezoid

import wsabi
from bridging import imported, needs

pytestmark = [needs("jax"), pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")]


def rosenbrock(x: Any) -> Any:
    return -((1.0 - x[0]) ** 2) - 5.0 * (x[1] - x[0] ** 2) ** 2


def by_name(p: dict[str, Any]) -> Any:
    jnp = imported("jax.numpy")
    return -0.5 * jnp.sum((p["beta"] - 1.0) ** 2) - jnp.log(p["tau"]) ** 2


def test_value_and_gradient_have_double_precision_and_leave_jax_as_it_was() -> None:
    jax = imported("jax")
    before = jax.numpy.ones(1).dtype
    model = wsabi.from_jax(rosenbrock, [(-3.0, 3.0)] * 2)
    x = np.array([0.3, -1.7])
    assert model.log_likelihood(x) == pytest.approx(rosenbrock(x), rel=1e-14)  # single precision: 1e-7
    expected = [2 * 0.7 + 20 * 0.3 * (-1.7 - 0.09), -10 * (-1.7 - 0.09)]
    assert model.grad is not None
    assert_allclose(model.grad(x), expected, rtol=1e-14)
    assert jax.numpy.ones(1).dtype == before


def test_names_of_a_dict_prior_reach_the_function_and_the_gradient() -> None:
    model = wsabi.from_jax(by_name, {"beta": [(-9.0, 11.0)] * 2, "tau": (0.05, 20.0)})
    point = {"beta": np.array([1.5, 0.0]), "tau": 2.0}
    assert model.grad is not None
    gradient = model.grad(point)
    assert_allclose(gradient["beta"], [-0.5, 1.0])
    assert_allclose(gradient["tau"], -np.log(2.0), rtol=1e-14)


def test_log_z_is_right_and_the_gradient_is_climbed_by() -> None:
    model = wsabi.from_jax(rosenbrock, [(-3.0, 3.0)] * 2)
    result = wsabi.integrate(model, budget=150, rng=0)
    x = np.linspace(-3.0, 3.0, 1201)
    grid = np.exp(rosenbrock(np.meshgrid(x, x, indexing="ij")))
    exact = np.log(trapezoid(trapezoid(grid, x), x) / 36.0)
    assert abs(result.log_z - exact) < 4 * result.log_z_std + 0.02
    assert result.ledger is not None
    assert any(type(event).__name__ == "Climbed" for event in result.ledger.events)


def test_it_is_pickled_for_workers() -> None:
    model = wsabi.from_jax(rosenbrock, [(-3.0, 3.0)] * 2)
    again = pickle.loads(pickle.dumps(model.log_likelihood))
    x = np.array([0.3, -1.7])
    assert again(x) == model.log_likelihood(x)


def test_a_transform_has_no_use_for_the_gradient() -> None:
    model = wsabi.from_jax(rosenbrock, wsabi.Transform(lambda c: 6.0 * c - 3.0, 2))
    assert model.grad is None
    assert np.isfinite(wsabi.integrate(model, budget=30, rng=0).log_z)


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(TypeError, match="log_likelihood must be a function; got int"):
        wsabi.from_jax(3, [(0.0, 1.0)])  # type: ignore[arg-type]
    model = wsabi.from_jax(lambda x: 2.0 * x, [(0.0, 1.0)])
    with pytest.raises(wsabi.LikelihoodError, match=r"must return one number, of shape \(\); got shape \(1,\)"):
        wsabi.integrate(model, budget=20, rng=0)
