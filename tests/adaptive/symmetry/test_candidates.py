"""Which symmetries are tested: those that the user declares, and those that the names of parameters suggest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy import stats

import wsabi
from wsabi.adaptive.symmetry.candidates import Candidates, declared_exchanges, named_exchanges
from wsabi.adaptive.symmetry.group import Symmetry, group_of
from wsabi.priors.chart import Chart, chart
from wsabi.settings import Settings

NORMAL, POSITIVE = stats.norm(0.0, 1.0), stats.gamma(2.0)
TWO = {"mu1": NORMAL, "mu2": NORMAL, "sigma1": POSITIVE, "sigma2": POSITIVE}
VECTORS = {"mu": [NORMAL] * 3, "tau": NORMAL, "sigma": [POSITIVE] * 3}


def chart_of(prior: Any) -> Chart:
    return chart(prior, gaussian=True)


def said(prior: Any) -> list[str]:
    """What the names of a prior suggest, in words."""
    space = chart_of(prior)
    return [symmetry.described(space.names) for symmetry in named_exchanges(space)]


def declared(prior: Any, groups: Sequence[Sequence[str]]) -> list[str]:
    """What groups say, in words."""
    space, checked = chart_of(prior), Settings(exchangeable=groups).exchangeable
    assert checked is not None
    return [symmetry.described(space.names) for symmetry in declared_exchanges(space, checked)]


def scaled(cube: np.ndarray) -> np.ndarray:
    """The first parameter is the scale of the other two."""
    return np.array([cube[0], *(cube[0] * stats.norm.ppf(cube[1:]))])


# -- declared ---------------------------------------------------------------------------------------------------------


def test_declared_groups_are_exchanged_as_wholes_neighbour_by_neighbour() -> None:
    assert declared(TWO, [("mu1", "sigma1"), ("mu2", "sigma2")]) == ["mu1 <-> mu2, sigma1 <-> sigma2"]
    three = {f"{stem}{i}": NORMAL for stem in "ab" for i in range(3)}
    groups = [("a0", "b0"), ("a2", "b2"), ("a1", "b1")]
    assert declared(three, groups) == ["a0 <-> a2, b0 <-> b2", "a1 <-> a2, b1 <-> b2"]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_generators_make_all_permutations_of_the_groups(n: int) -> None:
    space = chart_of({f"{stem}{i}": NORMAL for stem in "ab" for i in range(n)})
    generators = declared_exchanges(space, [(f"a{i}", f"b{i}") for i in range(n)])
    expected = {(*order, *(n + i for i in order)) for order in permutations(range(n))} - {tuple(range(2 * n))}
    assert {symmetry.order for symmetry in group_of(generators, 100)} == expected


def test_the_name_of_a_vector_is_the_whole_vector() -> None:
    prior = {"left": [NORMAL, POSITIVE], "s": NORMAL, "right": [NORMAL, POSITIVE]}
    assert declared(prior, ["left", "right"]) == ["left[0] <-> right[0], left[1] <-> right[1]"]
    assert declared(VECTORS, [("mu[0]", "sigma[0]"), ("mu[2]", "sigma[2]")]) == [
        "mu[0] <-> mu[2], sigma[0] <-> sigma[2]"
    ]


@pytest.mark.parametrize(
    "prior",
    [
        wsabi.Gaussian([0.5, 0.5], [[1.0, 0.6], [0.6, 1.0]]),
        wsabi.Uniform([-1.0, -1.0], [2.0, 2.0]),
        wsabi.GaussianMixture([0.5, 0.5], [[-1.0, 2.0], [2.0, -1.0]], [np.eye(2)] * 2),
        wsabi.LogDensity(lambda x: -np.sum(np.abs(x) ** 3), reference=wsabi.Gaussian([0.0, 0.0])),
    ],
)
def test_priors_that_are_symmetric_as_a_whole_are_accepted(prior: Any) -> None:
    assert declared(prior, ["x0", "x1"]) == ["x0 <-> x1"]


def test_a_transform_that_treats_parameters_alike_is_accepted() -> None:
    prior = wsabi.Transform(scaled, dim=3, names=("tau", "a", "b"))
    assert declared(prior, ["a", "b"]) == ["a <-> b"]


@pytest.mark.parametrize(
    ("prior", "groups", "message"),
    [
        (TWO, ["mu1", "mu3"], "names 'mu3', which the prior does not have; it has mu1, mu2, sigma1, sigma2."),
        (VECTORS, ["mu", "tau"], "pairs 'mu', which has 3 parameters, with 'tau', which has 1; they must be of"),
        (VECTORS, ["mu", "mu[1]"], "exchangeable pairs 'mu', which has 3 parameters, with 'mu[1]', which has 1"),
        (VECTORS, [("mu", "tau"), ("sigma", "mu[1]")], "every parameter at most once; it has 'mu[1]' twice."),
        (TWO, ["mu1", "sigma1"], "pairs 'mu1' with 'sigma1', whose priors differ: exchanging them changes"),
        (wsabi.Gaussian([0.0, 0.1]), ["x0", "x1"], "exchangeable pairs 'x0' with 'x1', whose priors differ"),
        (
            wsabi.Gaussian(np.zeros(3), [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 1.0]]),
            ["x0", "x1"],
            "exchangeable: the prior changes under x0 <-> x1, though each parameter by itself has the same prior.",
        ),
        (
            wsabi.LogDensity(lambda x: 0.0 if x[0] < x[1] else -np.inf, reference=wsabi.Gaussian([0.0, 0.0])),
            ["x0", "x1"],
            "exchangeable: the prior changes under x0 <-> x1",
        ),
        (wsabi.Transform(lambda c: np.array([c[0], c[0] * c[1]]), dim=2), ["x0", "x1"], "whose priors differ"),
    ],
)  # fmt: skip
def test_a_declaration_that_does_not_fit_the_prior_is_refused_at_the_door(
    prior: Any, groups: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        wsabi.Integrator(prior, settings=Settings(exchangeable=groups), rng=0)


# -- named ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        (TWO, ["mu1 <-> mu2, sigma1 <-> sigma2"]),
        (wsabi.Gaussian(np.zeros(4)), ["x0 <-> x1", "x1 <-> x2", "x2 <-> x3"]),
        ([NORMAL, POSITIVE, NORMAL, (0.0, 1.0), POSITIVE], ["x0 <-> x2", "x1 <-> x4"]),  # only those of one prior
        (wsabi.Gaussian(np.zeros(4), names=("w1", "w2", "v1", "v2")), ["w1 <-> w2, v1 <-> v2"]),
        # The share of the first of two components becomes that of the second; of three, it would be no reversal.
        ({**{f"mu{i}": NORMAL for i in (1, 2)}, "share": (0.0, 1.0)}, ["mu1 <-> mu2", "mu1 <-> mu2, share reversed"]),
        ({**{f"mu{i}": NORMAL for i in (1, 2, 3)}, "share": (0.0, 1.0)}, ["mu1 <-> mu2", "mu2 <-> mu3"]),
        ({f"mu_{i}": NORMAL for i in (9, 10, 2)}, ["mu_9 <-> mu_2", "mu_9 <-> mu_10"]),
        (VECTORS, ["mu[0] <-> mu[1], sigma[0] <-> sigma[1]", "mu[1] <-> mu[2], sigma[1] <-> sigma[2]"]),
        ({"a": [NORMAL] * 2, "b": [NORMAL] * 3}, ["a[0] <-> a[1]", "b[0] <-> b[1]", "b[1] <-> b[2]"]),
        (wsabi.Gaussian(np.zeros(2), names=("a[0]", "a[1]")), ["a[0] <-> a[1]"]),
        # Whole vectors whose names end in numbers, and the entries of all of them.
        ({"c1": [NORMAL] * 2, "c2": [NORMAL] * 2},
         ["c1[0] <-> c2[0], c1[1] <-> c2[1]", "c1[0] <-> c1[1], c2[0] <-> c2[1]"]),
        # The third component has no weight of its own: only the first two have the same stems.
        ({**{f"mu{i}": NORMAL for i in (1, 2, 3)}, "w1": (0.0, 1.0), "w2": (0.0, 1.0)}, ["mu1 <-> mu2, w1 <-> w2"]),
    ],
)  # fmt: skip
def test_the_same_stems_at_two_indices_are_exchanged(prior: Any, expected: list[str]) -> None:
    assert said(prior) == expected


@pytest.mark.parametrize(
    "prior",
    [
        wsabi.Gaussian(np.zeros(4), np.diag([1.0, 2.0, 3.0, 4.0])),
        wsabi.Uniform(-np.ones(3), np.array([1.0, 2.0, 3.0])),
        [NORMAL, POSITIVE],
        {"mu": NORMAL, "sigma": POSITIVE, "slope": NORMAL},
        {"mu1": NORMAL, "sigma2": NORMAL},  # no index has two stems, no stem two indices
        {"mu1": NORMAL, "mu2": stats.norm(0.0, 2.0)},  # another prior
        {**TWO, "sigma2": NORMAL},
        wsabi.Gaussian(np.zeros(3), [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 1.0]], names=("a1", "a2", "b")),
        wsabi.Transform(lambda c: np.array([c[0], c[0] * c[1]]), dim=2, names=("a1", "a2")),
    ],
)
def test_a_prior_without_structure_suggests_nothing(prior: Any) -> None:
    assert said(prior) == []


def test_what_is_declared_is_not_named_as_well() -> None:
    space = chart_of({f"mu{i}": NORMAL for i in (1, 2, 3)})
    candidates = Candidates.of(space, [("mu1",), ("mu2",)])
    assert candidates.declared == (Symmetry.of(3, ((0, 1),)),)
    assert candidates.named == (Symmetry.of(3, ((1, 2),)),)
    assert Candidates.of(space, None) == Candidates(space.kinds, (), tuple(named_exchanges(space)))
