"""A model, likelihood and prior in one object, goes where a likelihood and a prior go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import wsabi
from wsabi import Model

PRIOR = {"a": (-8.0, 10.0), "b": (-8.0, 10.0)}
EXACT = np.log(2.0 * np.pi / 18.0**2)


def log_likelihood(p: dict[str, float]) -> float:
    return -0.5 * ((p["a"] - 1.0) ** 2 + (p["b"] - 1.0) ** 2)


def together(X: np.ndarray) -> np.ndarray:
    return -0.5 * np.square(X - 1.0).sum(axis=1)


class Gradient:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, p: dict[str, float]) -> dict[str, float]:
        self.calls += 1
        return {name: 1.0 - value for name, value in p.items()}


def test_every_door_gives_what_likelihood_and_prior_give_apart():
    model = Model(log_likelihood, PRIOR)
    apart = wsabi.integrate(log_likelihood, PRIOR, budget=40, rng=0)
    assert abs(apart.log_z - EXACT) < 0.01
    assert wsabi.integrate(model, budget=40, rng=0).log_z == apart.log_z
    assert wsabi.Integrator(model, rng=0).run(budget=40).log_z == apart.log_z
    assert wsabi.Integrator(PRIOR, rng=0).run(log_likelihood, budget=40).log_z == apart.log_z


def test_its_own_gradient_climbs_where_that_is_of_use():
    options: dict[str, Any] = {"budget": 30, "rng": 0}
    model = Model(log_likelihood, PRIOR, grad=Gradient())
    wsabi.integrate(model, **options)
    assert model.grad.calls > 0  # type: ignore[union-attr]
    unused = replace(model, grad=Gradient())
    wsabi.integrate(unused, **options, settings=wsabi.Settings.paper())
    assert unused.grad.calls == 0  # type: ignore[union-attr]
    given = Gradient()
    wsabi.Integrator(unused, rng=0).run(budget=30, grad=given)
    assert given.calls > 0
    assert unused.grad.calls == 0  # type: ignore[union-attr]


def test_vectorized_goes_with_it():
    model = Model(together, [(-8.0, 10.0)] * 2, vectorized=True)
    assert abs(wsabi.integrate(model, budget=40, rng=0).log_z - EXACT) < 0.01
    assert abs(wsabi.Integrator(model, rng=0).run(budget=40).log_z - EXACT) < 0.01


def test_names_and_repr():
    model = Model(log_likelihood, PRIOR)
    assert model.names == ("a", "b")
    assert repr(model) == "Model(a, b; Independent prior, no gradient)"
    assert "with a gradient" in repr(replace(model, grad=Gradient()))


def test_a_prior_with_functions_is_given_again_by_the_model(tmp_path):
    model = Model(lambda x: -0.5 * float(x @ x), wsabi.Transform(lambda c: 6.0 * c - 3.0, 2))
    result = wsabi.integrate(model, budget=40, rng=0)
    result.save(tmp_path / "result.json")
    assert wsabi.load(tmp_path / "result.json", prior=model).log_z == result.log_z


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: wsabi.integrate(model, PRIOR), "has a prior of its own"),
        (lambda model: wsabi.integrate(model, vectorized=True), "vectorized is a field of the Model"),
        (lambda model: wsabi.integrate(log_likelihood), "prior is missing"),
        (lambda model: wsabi.Integrator(PRIOR).run(), "log_likelihood is missing"),
        (lambda model: Model(3, PRIOR), "log_likelihood must be callable; got int"),
        (lambda model: Model(log_likelihood, PRIOR, grad=3), "grad must be callable; got int"),
        (lambda model: Model(log_likelihood, log_likelihood), "prior is a function"),
    ],
)
def test_what_is_wrong_is_said(call, message):
    with pytest.raises(TypeError, match=message):
        call(Model(log_likelihood, PRIOR))
