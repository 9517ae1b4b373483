"""What a notebook shows: warnings first, the numbers of the printed table, no name taken for markup."""

from __future__ import annotations

import dataclasses
from xml.etree import ElementTree

import numpy as np
import pytest

import wsabi
from wsabi.errors import NumericalError
from wsabi.posterior.posterior import Posterior
from wsabi.posterior.weighted import WeightedSamples


@pytest.fixture(scope="module")
def result() -> wsabi.Result:
    prior = {"<a>": (-4.0, 4.0), "b & c": (0.0, 2.0)}
    return wsabi.integrate(lambda p: -0.5 * p["<a>"] ** 2 - p["b & c"], prior, budget=60, rng=0)


def parsed(result: wsabi.Result) -> ElementTree.Element:
    return ElementTree.fromstring(result._repr_html_().replace("<br>", "<br/>"))


def test_it_is_well_formed_and_has_the_numbers(result: wsabi.Result) -> None:
    text = "".join(parsed(result).itertext())
    assert str(result).splitlines()[0][16:] in text
    assert "<a>" in text
    assert "b & c" in text
    assert text.count("density") == 1
    assert len(parsed(result).findall(".//polyline")) == 2  # a density for each parameter
    assert len(result._repr_html_()) < 50_000


def test_warnings_come_first(result: wsabi.Result) -> None:
    warned = dataclasses.replace(result, warnings=("the <sky> is falling.",), notes=("it rains.",))
    text = "".join(parsed(warned).itertext())
    assert text.startswith("Warning. the <sky> is falling.")
    assert text.endswith("it rains.")


def test_the_budget_is_a_bar_of_shares(result: wsabi.Result) -> None:
    titles = [title.text or "" for title in parsed(result).findall(".//rect/title")]
    assert any("statistical" in title for title in titles)


def test_many_parameters_are_not_all_shown(result: wsabi.Result) -> None:
    points = np.random.default_rng(0).normal(size=(50, 40))
    wide = Posterior(WeightedSamples(points, np.full(50, 0.02), tuple(f"x{d}" for d in range(40))))
    assert "and 10 more parameters" in dataclasses.replace(result, posterior=wide)._repr_html_()


def test_one_point_and_no_mass_at_all(result: wsabi.Result) -> None:
    one = Posterior(WeightedSamples(np.ones((1, 2)), np.ones(1), ("a", "b")))
    assert "<polyline" not in dataclasses.replace(result, posterior=one)._repr_html_()
    bq = wsabi.Settings(measure="prior", method="bq")
    plain = wsabi.integrate(lambda x: -0.5 * float(x @ x), wsabi.Gaussian([0.0]), budget=20, rng=0, settings=bq)
    empty = dataclasses.replace(plain.posterior.form, log_z=-np.inf)  # type: ignore[type-var]
    without = dataclasses.replace(plain, posterior=Posterior(empty))
    with pytest.raises(NumericalError):
        without.posterior.summary()
    assert "density" not in without._repr_html_()
