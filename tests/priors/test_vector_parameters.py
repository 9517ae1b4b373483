"""Vector parameters under one name: what the likelihood gets, and that joint distributions are honoured exactly."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import wsabi
from wsabi.errors import LikelihoodError
from wsabi.likelihood import evaluator, gradient_evaluator
from wsabi.posterior.weighted import WeightedSamples
from wsabi.priors import Independent, LogDensity, as_prior
from wsabi.priors.chart import chart
from wsabi.priors.names import groups_of, keys_of, named_arguments

MEAN = np.array([1.0, -2.0, 0.5])
COV = np.array([[4.0, 1.2, -0.3], [1.2, 1.0, 0.1], [-0.3, 0.1, 0.25]])
MIXTURE = wsabi.GaussianMixture([0.3, 0.7], [[0.0, 0.0], [2.0, -1.0]], [np.eye(2), [[0.5, 0.2], [0.2, 0.4]]])
SIGMA = stats.gamma(2.0, scale=0.5)
FALSE_ALARM = 1e-6


def mixed() -> Independent:
    return Independent({"beta": wsabi.Gaussian(MEAN, COV), "sigma": SIGMA, "theta": MIXTURE, "low": (0, 1)})


@pytest.mark.parametrize(
    ("spec", "dim"),
    [
        ([stats.norm(0, 10)] * 3, 3),
        (([0, 1], (2, 3.5)), 2),
        ([(0, 1)], 1),
        ([stats.norm(), (0.0, 1.0)], 2),
        (np.array([[0.0, 1.0], [2.0, 3.0]]), 2),
        (wsabi.Gaussian(MEAN, COV), 3),
        (wsabi.Gaussian(0.0, 1.0), 1),
        (wsabi.Uniform([0.0, 1.0], 2.0), 2),
        (MIXTURE, 2),
    ],
)
def test_a_vector_has_numbered_names_and_one_key(spec: Any, dim: int) -> None:
    prior = as_prior({"first": (0, 1), "beta": spec, "sigma": SIGMA})
    assert prior.names == ("first", *(f"beta[{i}]" for i in range(dim)), "sigma")
    assert keys_of(prior) == keys_of(chart(prior)) == ("first", "beta", "sigma")
    assert prior.dim == dim + 2
    X = prior.sample(4, 0)
    one, several = named_arguments(prior, X[0]), named_arguments(chart(prior), X)
    assert type(one["sigma"]) is float
    assert_array_equal(one["beta"], X[0, 1 : dim + 1])
    assert several["beta"].shape == (4, dim)
    assert several["sigma"].shape == (4,)
    several["beta"][:] = 0.0
    assert np.all(X[:, 1] != 0.0)  # copies
    by_keyword = Independent(first=(0, 1), beta=spec, sigma=SIGMA)
    assert (by_keyword.names, by_keyword.keyed) == (prior.names, False)
    assert_array_equal(by_keyword.sample(4, 0), X)


@pytest.mark.parametrize("pair", [(0, 1), [0, 1], np.array([0, 1])], ids=["tuple", "list", "array"])
def test_two_numbers_are_a_pair_and_no_vector(pair: Any) -> None:
    prior = as_prior({"a": pair})
    assert (prior.names, prior.groups) == (("a",), (("a", 0),))
    assert_array_equal(prior.marginals.support, [[0.0], [1.0]])


def test_a_name_with_brackets_is_a_name() -> None:
    prior = as_prior({"a[0]": (0, 1), "a[1]": (0, 1)})
    assert named_arguments(prior, np.array([0.25, 0.5])) == {"a[0]": 0.25, "a[1]": 0.5}
    assert groups_of(["a[0]", "a[1]"]) == (("a[0]", 0), ("a[1]", 1))


@pytest.mark.parametrize(
    ("spec", "error", "match"),
    [
        ({"b": [stats.norm(), 3.0]}, TypeError, r"prior\['b'\]\[1\] must be a frozen scipy.stats distribution or a "),
        ({"b": [(0, 1), (2, 1)]}, ValueError, r"prior\['b'\]\[1\] must be finite with low < high; got \(2.0, 1.0\)"),
        ({"b": np.array([[0.0, 1.0], [0.0, np.inf]])}, ValueError, r"prior\['b'\]\[1\] must be finite"),
        ({"b": np.zeros((2, 3))}, TypeError, r"prior\['b'\]\[0\] must be two numbers"),
        ({"b": []}, TypeError, r"prior\['b'\] must be two numbers"),
        ({"b": [(0, 1), (0, 1)], "b[0]": (0, 1)}, ValueError, r"two parameters named 'b\[0\]'.*Rename one"),
        ([wsabi.Gaussian([0.0, 0.0])], TypeError, r"prior\[0\] is a Gaussian of 2 parameters.*Independent\(beta="),
        ([[stats.norm(), stats.norm()], (0, 1)], TypeError, r"prior\[0\] .*A vector of distributions needs a name"),
    ],
)  # fmt: skip
def test_what_is_no_vector_is_refused_with_its_entry(spec: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        as_prior(spec)


# -- joint distributions ----------------------------------------------------------------------------------------------


def expected_log_pdf(X: np.ndarray) -> np.ndarray:
    beta = stats.multivariate_normal(MEAN, COV).logpdf(X[:, :3])
    parts = [
        math.log(w) + stats.multivariate_normal(c.mean, c.cov).logpdf(X[:, 4:6])
        for w, c in zip(MIXTURE.weights, MIXTURE.components, strict=True)
    ]
    return np.asarray(beta + SIGMA.logpdf(X[:, 3]) + np.logaddexp(*parts) + stats.uniform.logpdf(X[:, 6]))


def test_the_density_is_the_product_over_the_entries() -> None:
    prior = mixed()
    X = prior.sample(50, 0)
    assert_allclose(prior.log_pdf(X), expected_log_pdf(X), rtol=1e-11)  # a lost correlation shows at 1e-1
    X[0, 6] = 1.5
    assert prior.log_pdf(X)[0] == -np.inf


def test_the_chart_carries_the_prior_to_its_measure_axis_by_axis() -> None:
    """log p_x(x) = log ν(u) − Σ log dx_d/du_d: exact, so that Z, marginals and gradients are those of this prior."""
    prior = mixed()
    space = chart(prior)
    assert space.separable
    X = prior.sample(50, 1)
    U = space.to_base(X)
    assert_allclose(space.to_user(U), X, rtol=1e-12)
    assert_allclose(space.measure.log_pdf(U) - space.log_jacobian_diag(U).sum(axis=1), expected_log_pdf(X), rtol=1e-9)


def test_draws_have_the_stated_moments(n: int = 40_000) -> None:
    X = mixed().sample(n, 3)
    mean = np.concatenate([MEAN, [SIGMA.mean()], MIXTURE.mean, [0.5]])
    cov = np.zeros((7, 7))
    cov[:3, :3], cov[3, 3], cov[4:6, 4:6], cov[6, 6] = COV, SIGMA.var(), MIXTURE.cov, 1 / 12
    z = (X.mean(axis=0) - mean) / np.sqrt(np.diag(cov) / n)
    assert np.all(np.abs(z) < stats.norm.isf(FALSE_ALARM / 14))  # two-sided, Bonferroni over D
    # Entries of a covariance have standard errors of order sd·sd/√n, up to √6 times for the kurtosis of gamma(2).
    assert np.all(np.abs(np.cov(X.T) - cov) < 6.0 * math.sqrt(6 / n) * np.sqrt(np.outer(np.diag(cov), np.diag(cov))))


def test_a_gaussian_alone_in_a_dict_has_the_chart_of_the_gaussian() -> None:
    alone, named = chart(wsabi.Gaussian(MEAN, COV)), chart({"beta": wsabi.Gaussian(MEAN, COV)})
    U = np.random.default_rng(0).standard_normal((5, 3))
    assert_array_equal(named.to_user(U), alone.to_user(U))
    assert_array_equal(named.measure.cov, alone.measure.cov)
    assert named.affine is not None


def test_independent_components_keep_the_standard_normal_measure() -> None:
    space = chart({"beta": wsabi.Gaussian([1.0, 2.0], [4.0, 9.0]), "sigma": SIGMA})
    assert_array_equal(space.measure.cov, np.eye(3))


def test_priors_with_vectors_pickle() -> None:
    prior = mixed()
    copy = pickle.loads(pickle.dumps(prior))
    assert copy.groups == prior.groups
    X = prior.sample(5, 1)
    assert_array_equal(copy.log_pdf(X), prior.log_pdf(X))


# -- the functions of the user ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_likelihood_gets_arrays_under_the_names_of_vectors(vectorized: bool) -> None:
    X = mixed().sample(4, 2)

    def log_l(p: dict[str, Any]) -> Any:
        assert list(p) == ["beta", "sigma", "theta", "low"]
        assert np.shape(p["beta"]) == ((4, 3) if vectorized else (3,))
        return p["beta"].sum(axis=-1) - p["theta"][..., 1] * p["sigma"] + p["low"]

    values = evaluator(log_l, chart(mixed()), vectorized=vectorized)(X)
    assert_allclose(values, X[:, :3].sum(axis=1) - X[:, 5] * X[:, 3] + X[:, 6], rtol=1e-13)


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_gradient_may_be_a_dict_of_arrays(vectorized: bool) -> None:
    space = chart(mixed())

    def grad(p: dict[str, Any]) -> dict[str, Any]:
        return {"low": p["low"], "sigma": 2.0 * p["sigma"], "theta": 3.0 * p["theta"], "beta": 4.0 * p["beta"]}

    u = np.linspace(-1.0, 1.0, 7)
    x = space.to_user(u[None, :])[0]
    slopes = np.array([4.0, 4.0, 4.0, 2.0, 3.0, 3.0, 1.0]) * x * np.exp(space.log_jacobian_diag(u[None, :])[0])
    assert_allclose(gradient_evaluator(grad, space, vectorized=vectorized)(u), slopes, rtol=1e-13)

    with pytest.raises(
        LikelihoodError, match=r"(?s)grad returned shape \(.*2,?\) for 'beta' at x = .*; expected \(.*3"
    ):
        gradient_evaluator(lambda p: grad(p) | {"beta": p["theta"]}, space, vectorized=vectorized)(u)


def test_log_density_gets_its_vectors_from_the_reference() -> None:
    def logpdf(p: dict[str, Any]) -> float:
        assert p["beta"].shape == (3,)
        return float(stats.multivariate_normal(MEAN, COV).logpdf(p["beta"]) + SIGMA.logpdf(p["sigma"]))

    prior = LogDensity(logpdf, {"beta": wsabi.Gaussian(MEAN, 2.0 * COV), "sigma": SIGMA})
    X = prior.reference.sample(4, 0)
    expected = stats.multivariate_normal(MEAN, COV).logpdf(X[:, :3]) + SIGMA.logpdf(X[:, 3])
    assert_allclose(prior.log_pdf(X), expected, rtol=1e-12)
    assert keys_of(chart(prior)) == ("beta", "sigma")
    renamed = LogDensity(lambda p: sum(p.values()), {"beta": [(0, 1), (0, 1)]}, names=["a", "b"])
    assert keys_of(chart(renamed)) == ("a", "b")
    assert_allclose(renamed.log_pdf(np.array([[0.25, 0.5]])), [0.75])


def test_weighted_samples_hand_arrays_to_functions() -> None:
    prior = mixed()
    X = prior.sample(200, 0)
    samples = WeightedSamples.from_log_weights(X, np.zeros(200), prior.names, keyed=True, groups=prior.groups)
    assert_allclose(samples.expect(lambda p: p["beta"] * p["sigma"]), (X[:, :3] * X[:, 3:4]).mean(axis=0), rtol=1e-12)


# -- whole runs -------------------------------------------------------------------------------------------------------

DESIGN = np.random.default_rng(5).standard_normal((12, 3))
DATA = DESIGN @ np.array([0.5, -1.0, 0.3]) + 0.4


def log_evidence(cov: np.ndarray, noise: float) -> float:
    return float(stats.multivariate_normal(DESIGN @ MEAN, DESIGN @ cov @ DESIGN.T + noise * np.eye(12)).logpdf(DATA))


def regression(p: dict[str, Any]) -> Any:
    residual = DATA - p["beta"] @ DESIGN.T
    return stats.norm(0, 1.0).logpdf(residual).sum(axis=-1) + stats.norm.logpdf(p["offset"])


def regression_gradient(p: dict[str, Any]) -> dict[str, Any]:
    return {"beta": (DATA - p["beta"] @ DESIGN.T) @ DESIGN, "offset": -p["offset"]}


TRUTH = log_evidence(COV, 1.0) + float(stats.norm(0, math.sqrt(2.0)).logpdf(0.0))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"vectorized": True, "batch": 4},
        {"grad": regression_gradient},
        {"settings": wsabi.Settings(measure="prior")},
    ],
    ids=["scalar", "vectorised", "grad", "prior as measure"],
)
def test_the_evidence_of_a_regression_with_a_correlated_prior(options: Any) -> None:
    """Closed form N(y; Φμ, ΦΣΦᵀ + I); with the correlations lost it moves by 0.34 nats or more."""
    assert abs(log_evidence(np.diag(np.diag(COV)), 1.0) - log_evidence(COV, 1.0)) > 0.3
    prior = {"beta": wsabi.Gaussian(MEAN, COV), "offset": stats.norm()}
    result = wsabi.integrate(regression, prior, budget=150, rng=0, **options)
    assert abs(result.log_z - TRUTH) < 0.05
    assert result.names == ("beta[0]", "beta[1]", "beta[2]", "offset")
    mean = result.posterior.expect(lambda p: p["beta"])
    assert_allclose(mean, result.posterior.mean[:3], atol=0.05)


def test_another_prior_may_have_vectors_too() -> None:
    prior = {"beta": wsabi.Gaussian(MEAN, COV), "offset": stats.norm()}
    result = wsabi.integrate(regression, prior, budget=150, rng=0)
    other = result.with_prior({"beta": wsabi.Gaussian(MEAN, 0.8 * COV), "offset": stats.norm()})
    expected = TRUTH - log_evidence(COV, 1.0) + log_evidence(0.8 * COV, 1.0)
    assert abs(other.log_z - expected) < max(0.1, 4.0 * other.log_z_std)
    assert np.shape(other.posterior.expect(lambda p: p["beta"])) == (3,)
    again = wsabi.integrate(regression, prior, budget=10, rng=1, start=result)
    assert again.n_evals > result.n_evals
