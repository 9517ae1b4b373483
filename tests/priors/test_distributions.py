"""Priors from SciPy's newer random variables, against frozen distributions that are the same."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import wsabi
from wsabi.priors import as_prior
from wsabi.priors.axes import NormalAxes, QuantileAxis, UniformAxes
from wsabi.priors.distributions import RandomVariable, as_axis, is_distribution

GAMMA = stats.make_distribution(stats.gamma)
U = np.linspace(-6.0, 6.0, 49)[:, None]

SAME = [
    (stats.Normal(mu=1.5, sigma=0.3), stats.norm(1.5, 0.3), NormalAxes),
    (stats.Normal(), stats.norm(), NormalAxes),
    (stats.Uniform(a=-1.0, b=2.0), stats.uniform(-1.0, 3.0), UniformAxes),
    (GAMMA(a=2.0), stats.gamma(2.0), QuantileAxis),
    (3.0 * GAMMA(a=2.0) + 1.0, stats.gamma(2.0, 1.0, 3.0), QuantileAxis),
    (2.0 * stats.Normal() + 1.0, stats.norm(1.0, 2.0), QuantileAxis),
    (-2.0 * stats.Normal(mu=1.0, sigma=1.0), stats.norm(-2.0, 2.0), QuantileAxis),
    (stats.exp(stats.Normal(mu=0.5, sigma=0.7)), stats.lognorm(0.7, scale=np.exp(0.5)), QuantileAxis),
    (stats.make_distribution(stats.loguniform)(a=0.1, b=20.0), stats.loguniform(0.1, 20.0), QuantileAxis),
]


@pytest.mark.parametrize(("variable", "frozen", "kind"), SAME, ids=lambda value: str(value)[:24])
def test_a_random_variable_is_the_same_prior_as_its_frozen_twin(variable, frozen, kind):
    axis, twin = as_axis(variable, "prior"), as_axis(frozen, "prior")
    assert isinstance(axis, kind)
    assert_allclose(axis.to_user(U), twin.to_user(U), rtol=1e-9, atol=1e-9)  # a swapped tail shows at 1e-1
    X = twin.to_user(U)
    assert_allclose(axis.to_base(X), U, atol=1e-7)
    assert_allclose(axis.log_pdf(X), twin.log_pdf(X), rtol=1e-8, atol=1e-8)
    assert_allclose([axis.low, axis.high], [twin.low, twin.high], rtol=1e-13)


def test_a_truncated_normal():
    axis = as_axis(stats.truncate(stats.Normal(), 0.0, 3.0), "prior")
    twin = as_axis(stats.truncnorm(0.0, 3.0), "prior")
    inner = np.linspace(-5.0, 5.0, 41)[:, None]
    assert_allclose(axis.to_user(inner), twin.to_user(inner), atol=1e-9)
    X = axis.to_user(U)
    assert np.all((X > 0.0) & (X < 3.0))
    assert_allclose(axis.log_pdf(X), twin.log_pdf(X), rtol=1e-9)
    assert axis.log_pdf(np.array([[-1.0], [4.0]])).tolist() == [[-np.inf], [-np.inf]]


def test_in_lists_dicts_and_vectors():
    prior = as_prior({"a": stats.Normal(mu=1.0, sigma=2.0), "b": [stats.Uniform(a=0, b=1), GAMMA(a=2.0)]})
    twin = as_prior({"a": stats.norm(1.0, 2.0), "b": [(0, 1), stats.gamma(2.0)]})
    assert prior.names == ("a", "b[0]", "b[1]")
    X = twin.sample(20, 0)
    assert_allclose(prior.sample(20, 0), X, rtol=1e-9)
    assert_allclose(prior.log_pdf(X), twin.log_pdf(X), rtol=1e-9)
    assert as_prior([stats.Normal(), stats.exp(stats.Normal())]).dim == 2


def test_a_run():
    """E[exp(−x)] under a gamma distribution of shape a is 2⁻ᵃ; of exp(−y²/2) under N(0, 1) it is 2^−½."""
    prior = [GAMMA(a=2.0), stats.Normal()]
    result = wsabi.integrate(lambda x: -x[0] - 0.5 * x[1] ** 2, prior, budget=60, rng=0)
    assert abs(result.log_z + 2.5 * np.log(2.0)) < 0.03


@pytest.mark.parametrize(
    ("spec", "error", "match"),
    [
        ([stats.Normal(mu=[0.0, 1.0], sigma=1.0)], ValueError, r"prior\[0\] must be one .* of shape \(2,\)"),
        ([stats.truncate(stats.Normal(), [0.0, 1.0], 3.0)], ValueError, "one distribution per parameter"),
        ([stats.Normal(mu=0.0, sigma=-1.0)], ValueError, r"prior\[0\] has parameters .* not exist: Normal"),
        ({"g": GAMMA(a=-1.0)}, ValueError, r"prior\['g'\] has parameters"),
        ({"g": GAMMA}, TypeError, r"prior\['g'\] is the class .* itself; give it parameters"),
        ([stats.Normal], TypeError, r"prior\[0\] is the class Normal itself"),
        (stats.Normal(), TypeError, "put a univariate one in a list or dict"),
    ],
)  # fmt: skip
def test_what_is_no_single_parameter_is_refused_by_name(spec, error, match):
    with pytest.raises(error, match=match):
        as_prior(spec)


@pytest.mark.skipif(not hasattr(stats, "Binomial"), reason="SciPy before 1.16 has no discrete random variables")
def test_discrete_random_variables_are_refused():
    with pytest.raises(TypeError, match=r"prior\[0\] is discrete"):
        as_prior([stats.Binomial(n=5, p=0.3)])


def test_a_class_derived_from_normal_is_not_taken_for_normal():
    class Normal(stats.Normal):
        pass

    assert isinstance(as_axis(Normal(mu=0.0, sigma=1.0), "prior"), QuantileAxis)


def test_priors_of_random_variables_pickle():
    prior = as_prior([stats.Normal(mu=1.0, sigma=2.0), stats.truncate(stats.Normal(), 0.0, 3.0), 2.0 * stats.Normal()])
    copy = pickle.loads(pickle.dumps(prior))
    assert_array_equal(copy.sample(5, 1), prior.sample(5, 1))


def test_what_is_a_distribution():
    assert all(
        map(is_distribution, [stats.norm, stats.norm(), stats.Normal, stats.Normal(), stats.multivariate_normal])
    )
    assert not any(map(is_distribution, [len, (0, 1), np.zeros(2), wsabi.Gaussian([0.0])]))
    assert RandomVariable(stats.Uniform(a=0, b=2)).support() == (0.0, 2.0)
