"""Priors, settings and events as JSON and back, to the last bit; and differences in words."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

import wsabi
from wsabi._core.types import Streams
from wsabi.ledger import Asked, Climbed, Climbing, Event, Failed, GivenUp, Planned, Postponed, Reseeded, Told
from wsabi.priors import as_prior
from wsabi.priors.chart import chart
from wsabi.runs.data import (
    difference,
    event_data,
    event_from,
    is_complete,
    prior_data,
    prior_from,
    settings_data,
    settings_from,
    text_of,
)  # fmt: skip

X = np.array([[0.1, -1e-300], [np.pi, 1e22]])
PRIORS: dict[str, Any] = {
    "gaussian": wsabi.Gaussian([0.1, 2.0], [[1.0, 0.3], [0.3, 2.0]], names=["a", "b"]),
    "mixture": wsabi.GaussianMixture([0.1, 0.2, 0.4], [[0.0], [1 / 3], [2.0]], 0.7),
    "uniform": wsabi.Uniform([0.0, -1.0], [1.0, 1 / 3]),
    "polynomial": wsabi.Polynomial([0.0, -1.0], [1.0, 3.0], [[0.0, 1.0], [0.0, 1.0, -1.0]]),
    "bounds": np.array([[0.0, 1.0], [2.0, 3.0]]),
    "list": [stats.norm(0, 2), (0.1, 10.0), stats.gamma(2.0, scale=3.0)],
    "dict": {
        "amp": stats.lognorm(s=0.3, scale=2.0),
        "beta": [stats.norm(), (0, 1)],
        "box": np.array([[0.0, 1.0], [1.0, 2.0]]),
        "pair": wsabi.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]]),
        "new": stats.Normal(mu=1.0, sigma=2.0),
        "flat": stats.Uniform(a=0.0, b=2.0),
    },
    "named": wsabi.Independent(a=(0, 1), b=stats.t(3)),
}


@pytest.mark.parametrize("name", PRIORS)
def test_a_prior_comes_back_to_the_last_bit(name: str) -> None:
    prior = as_prior(PRIORS[name])
    text = text_of(prior_data(prior))
    assert is_complete(json.loads(text))
    again = prior_from(json.loads(text))
    assert text_of(prior_data(again)) == text
    one, other = chart(prior, gaussian=True), chart(again, gaussian=True)
    assert (one.names, one.keyed, one.groups) == (other.names, other.keyed, other.groups)
    U = np.random.default_rng(0).standard_normal((20, prior.dim))
    assert_array_equal(one.to_user(U), other.to_user(U))
    assert_array_equal(one.measure.log_pdf(U), other.measure.log_pdf(U))
    points = one.to_user(U)
    assert_array_equal(prior.log_pdf(points), again.log_pdf(points))


class Ramp(stats.rv_continuous):
    def _pdf(self, x: Any) -> Any:
        return 2.0 * x


class Fall(stats.rv_continuous):
    def _pdf(self, x: Any) -> Any:
        return 2.0 - 2.0 * x


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (wsabi.Transform(lambda c: c, 2), wsabi.Transform(lambda c: 2 * c, 2), "a Transform, has another function"),
        (wsabi.Transform(lambda c: c, 2), wsabi.Transform(lambda c: c, 3), "prior.dim is 2 there and 3 here"),
        (
            wsabi.LogDensity(lambda x: -float(x @ x), wsabi.Gaussian([0.0])),
            wsabi.LogDensity(lambda x: -2 * float(x @ x), wsabi.Gaussian([0.0])),
            "prior, a LogDensity, has another function",
        ),
        ([Ramp(a=0, b=1, name="norm")()], [Fall(a=0, b=1, name="norm")()], "has another function"),
    ],
)  # fmt: skip
def test_functions_are_told_from_others_by_their_values(one: Any, other: Any, message: str) -> None:
    first, second = prior_data(as_prior(one)), prior_data(as_prior(other))
    assert not is_complete(first)
    assert difference(first, prior_data(as_prior(one)), "prior") is None
    assert message in str(difference(first, second, "prior"))


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (wsabi.Gaussian([0.0]), wsabi.Gaussian([0.5]), "prior.mean[0] is 0.0 there and 0.5 here"),
        ({"a": (0, 1)}, {"b": (0, 1)}, "prior[0][0] is 'a' there and 'b' here"),
        ({"a": (0, 1)}, {"a": (0, 2)}, "prior['a'][1][1] is 1.0 there and 2.0 here"),
        ([(0, 1)], [(0, 1), (0, 1)], "prior has 1 entries there and 2 here"),
        ({"a": stats.norm(0, 1)}, {"a": stats.t(3)}, "is 'norm' there and 't' here"),
        (wsabi.Gaussian([0.0]), [(0, 1)], "prior.type is 'Gaussian' there and 'Independent' here"),
    ],
)
def test_differences_are_named(one: Any, other: Any, message: str) -> None:
    assert message in str(difference(prior_data(as_prior(one)), prior_data(as_prior(other)), "prior"))


@pytest.mark.parametrize(
    "settings",
    [
        wsabi.Settings(),
        wsabi.Settings.paper("bq"),
        wsabi.Settings(measure="prior", kernel=wsabi.SquaredExponential(1.5, [0.1, 1 / 3])),
    ],
)
def test_settings_come_back(settings: wsabi.Settings) -> None:
    data = json.loads(text_of(settings_data(settings)))
    again = settings_from(data)
    assert settings_data(again) == data
    assert again.method == settings.method
    if settings.kernel is None:
        assert again == settings


def test_a_distribution_by_the_name_of_something_else_is_refused() -> None:
    data = {"type": "Independent", "keyed": True, "entries": [["a", {"distribution": "bootstrap", "kwds": {}}]]}
    with pytest.raises(ValueError, match="'bootstrap' is not a continuous distribution"):
        prior_from(data)


EVENTS: list[Event] = [
    Planned(100, 0.05),
    Asked(X, ("search 0", "check")),
    Told(X, X + 1, np.array([-np.inf, -1 / 3]), 0.125),
    Failed(X[0], "RuntimeError: no", 1.5),
    GivenUp(X),
    GivenUp(None),
    Postponed(X[:1]),
    Postponed(np.empty((0, 2))),
    Climbing(X[0], X[1]),
    Climbed(X[0], np.eye(2)),
    Climbed(None, None),
    Reseeded(Streams((1, 2, 2**32 - 1, 4))),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_to_the_last_bit(event: Event) -> None:
    kind, data = event_data(event)
    again = event_from(kind, json.loads(text_of(data)))
    assert type(again) is type(event)
    for name, value in vars(event).items():
        if isinstance(value, np.ndarray):
            assert_array_equal(getattr(again, name), value)
            assert getattr(again, name).shape == value.shape
        else:
            assert getattr(again, name) == value
