"""``wsabi.from_pymc``: prior and likelihood taken apart, in the coordinates of the model; what cannot be is refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

import wsabi
from bridging import imported, needs
from wsabi.bridges.families import FAMILIES, HalfStudent
from wsabi.bridges.pymc_prior import variables_of

pytestmark = [needs("pymc"), pytest.mark.filterwarnings("ignore")]
T = np.linspace(-1.0, 1.0, 12)
Y = 0.7 - 1.2 * T + 0.8 * np.sin(40.0 * T)


@pytest.fixture(scope="module")
def pm() -> Any:
    return imported("pymc")


@pytest.fixture(scope="module")
def line(pm: Any) -> wsabi.Model:
    with pm.Model() as model:
        coefficients = pm.Normal("c", 0, [2.0, 3.0], shape=2)
        sigma = pm.HalfNormal("sigma", 2)
        pm.Normal("y", coefficients[0] + coefficients[1] * T, sigma, observed=Y)
    return wsabi.from_pymc(model)


def log_density_of_line(a: float, b: float, sigma: float) -> float:
    return float(stats.norm(a + b * T, sigma).logpdf(Y).sum())


def test_the_prior_is_in_the_coordinates_of_the_model(line: wsabi.Model) -> None:
    assert line.names == ("c[0]", "c[1]", "sigma")
    X = np.array([[1.0, -2.0, 0.5], [0.1, 4.0, 3.0]])
    expected = stats.norm(0, [2.0, 3.0]).logpdf(X[:, :2]).sum(axis=1) + stats.halfnorm(0, 2).logpdf(X[:, 2])
    assert_allclose(line.prior.log_pdf(X), expected, rtol=1e-12)


def test_likelihood_and_gradient(line: wsabi.Model) -> None:
    point = {"c": np.array([0.5, -1.0]), "sigma": 0.9}
    assert line.log_likelihood(point) == pytest.approx(log_density_of_line(0.5, -1.0, 0.9), rel=1e-12)
    x = np.array([0.5, -1.0, 0.9])
    steps = 1e-6 * np.eye(3)
    differences = [(log_density_of_line(*(x + e)) - log_density_of_line(*(x - e))) / 2e-6 for e in steps]
    assert line.grad is not None
    assert_allclose(line.grad(point), differences, rtol=1e-6)


def test_log_z_is_right(line: wsabi.Model) -> None:
    result = wsabi.integrate(line, budget=120, rng=0)

    def given(sigma: float) -> float:  # y ~ N(0, 4·11ᵀ + 9·ttᵀ + σ²I)
        cov = 4.0 + 9.0 * np.outer(T, T) + sigma**2 * np.eye(12)
        return float(np.exp(stats.multivariate_normal(cov=cov).logpdf(Y) + 10.0) * stats.halfnorm(0, 2).pdf(sigma))

    exact = np.log(integrate.quad(given, 1e-3, 20.0, epsrel=1e-9)[0]) - 10.0
    assert abs(result.log_z - exact) < 4 * result.log_z_std + 0.01


def test_a_hierarchical_prior_is_a_map_from_the_cube(pm: Any) -> None:
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2)
        tau = pm.HalfNormal("tau", 1)
        pm.Normal("y", pm.Normal("theta", mu, tau, shape=3), 1, observed=[0.5, 1.0, 3.0])
    made = wsabi.from_pymc(model)
    assert made.names == ("mu", "tau", "theta[0]", "theta[1]", "theta[2]")
    assert made.grad is None
    result = wsabi.integrate(made, budget=200, rng=0)

    def given(tau: float) -> float:  # y ~ N(0, 4·11ᵀ + (1 + τ²)I)
        cov = 4.0 + (1.0 + tau**2) * np.eye(3)
        return float(stats.multivariate_normal(cov=cov).pdf([0.5, 1.0, 3.0]) * stats.halfnorm.pdf(tau))

    exact = np.log(integrate.quad(given, 0.0, 12.0, epsrel=1e-9)[0])
    assert abs(result.log_z - exact) < 4 * result.log_z_std + 0.01
    data = pickle.loads(pickle.dumps(result)).posterior.sample(5, 0)  # as workers and notebooks do
    assert_allclose(data, result.posterior.sample(5, 0))


def test_every_family_has_the_density_of_pymc(pm: Any) -> None:
    with pm.Model() as model:
        pm.Normal("normal", 1.0, 2.0)
        pm.Uniform("uniform", [-1.0, 0.0], 3.0, shape=2)
        pm.HalfNormal("half_normal", 2.0)
        pm.LogNormal("log_normal", 0.3, 0.5)
        pm.Exponential("exponential", 3.0)
        pm.Gamma("gamma", 2.0, 3.0)
        pm.InverseGamma("inverse_gamma", 3.0, 2.0)
        pm.Beta("beta", 2.0, 3.0)
        pm.StudentT("student", 4.0, mu=1.0, sigma=2.0)
        pm.HalfStudentT("half_student", 4.0, 2.0)
        pm.Cauchy("cauchy", 1.0, 2.0)
        pm.HalfCauchy("half_cauchy", 2.0)
        pm.Laplace("laplace", 1.0, 2.0)
        pm.Logistic("logistic", 1.0, 2.0)
        pm.Weibull("weibull", 2.0, 3.0)
        pm.Gumbel("gumbel", 1.0, 2.0)
        pm.Triangular("triangular", lower=0.0, upper=2.0, c=0.5)
        pm.TruncatedNormal("truncated", mu=1.0, sigma=2.0, lower=0.0)
        pm.Pareto("pareto", 2.0, 3.0)
        pm.Moyal("moyal", 1.0, 2.0)
        pm.SkewNormal("skew_normal", mu=1.0, sigma=2.0, alpha=3.0)
        pm.Wald("wald", mu=1.0, lam=2.0)
        pm.MvNormal("vector", [1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]])
        pm.Normal("matrix", 0.0, 1.0, shape=(2, 2))
        pm.Normal("y", 0.0, 1.0, observed=0.0)
    assert {one.family for one in variables_of(model)} == {*FAMILIES, "MvNormalRV"}
    prior = wsabi.from_pymc(model).prior
    # Another path to PyMC's densities than the one that from_pymc itself checks: variable by variable, at a draw.
    X = prior.sample(3, 0)
    for x in X:
        total, column = 0.0, 0
        for rv in model.free_RVs:
            size = max(int(np.prod(rv.type.shape)), 1)
            value = x[column : column + size].reshape(rv.type.shape)
            total += float(np.sum(pm.logp(rv, value).eval()))
            column += size
        assert prior.log_pdf(x[None])[0] == pytest.approx(total, rel=1e-6)


def test_vectors_and_arrays_that_depend_on_others(pm: Any) -> None:
    """The density of the map's draws is PyMC's, which from_pymc checks; here the draws themselves are."""
    with pm.Model() as model:
        centre = pm.Normal("centre", [0.0, 3.0], 1.0, shape=2)
        scale = pm.Exponential("scale", 1.0)
        pm.MvNormal("pair", centre, scale * np.array([[1.0, 0.8], [0.8, 1.0]]))
        pm.Gamma("matrix", mu=scale + 1.0, sigma=np.array([0.1, 0.2, 0.3]), shape=(2, 3))
        pm.Normal("y", 0.0, 1.0, observed=0.0)
    made = wsabi.from_pymc(model)
    assert made.names[5:] == ("matrix[0,0]", "matrix[0,1]", "matrix[0,2]", "matrix[1,0]", "matrix[1,1]", "matrix[1,2]")
    draws = made.prior.sample(20_000, 1)
    pair = (draws[:, 3:5] - draws[:, :2]) / np.sqrt(draws[:, 2:3])
    error = 5.0 / np.sqrt(20_000)
    assert_allclose(np.cov(pair.T), [[1.0, 0.8], [0.8, 1.0]], atol=2.0 * error)
    units = (draws[:, 5:] - draws[:, 2:3] - 1.0) / np.tile([0.1, 0.2, 0.3], 2)
    assert_allclose(units.mean(axis=0), 0.0, atol=error)
    assert_allclose(units.std(axis=0), 1.0, atol=2.0 * error)


def test_zero_likelihood_data_containers_and_pickles(pm: Any) -> None:
    with pm.Model() as model:
        data = pm.Data("data", np.array([0.2, 0.7]))
        pm.Uniform("y", 0.0, pm.Uniform("top", 0.0, 2.0), observed=data)
    made = wsabi.from_pymc(model)
    assert made.log_likelihood({"top": 0.5}) == -np.inf
    assert made.log_likelihood({"top": 1.25}) == pytest.approx(-2 * np.log(1.25))
    assert pickle.loads(pickle.dumps(made.log_likelihood))({"top": 1.25}) == made.log_likelihood({"top": 1.25})
    with model:
        assert wsabi.from_pymc().names == ("top",)


def add_potential(pm: Any) -> None:
    pm.Potential("bound", -(pm.Normal("a") ** 2))


def add_ordered(pm: Any) -> None:
    pm.Normal("cut", 0, 1, shape=2, transform=pm.distributions.transforms.ordered, initval=[0.0, 1.0])


def add_cut_normal(pm: Any) -> None:
    pm.Normal("positive", 0, 1, transform=pm.distributions.transforms.log, initval=1.0)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "potential": (add_potential, r"Potential \(bound\), which is neither prior nor likelihood. .*CustomDist"),
    "flat": (lambda pm: pm.Flat("a"), r"prior of a is improper \(Flat\).*pymc.Normal\(\"a\", 0, 10\)"),
    "half flat": (lambda pm: pm.HalfFlat("a"), r"prior of a is improper \(HalfFlat\).*HalfNormal"),
    "discrete": (lambda pm: pm.Poisson("n", 3.0), r"n is discrete \(Poisson\): sum it out .*pymc.Mixture"),
    "simplex": (lambda pm: pm.Dirichlet("p", np.ones(3)), "p has the distribution Dirichlet.*break the stick"),
    "walk": (
        lambda pm: pm.GaussianRandomWalk("w", 0.0, 1.0, steps=3, init_dist=pm.Normal.dist(0, 1)),
        "w has the distribution RandomWalk.*cumulative sum",
    ),
    "own": (
        lambda pm: pm.CustomDist("a", 1.0, logp=lambda v, m: -abs(v - m)),
        "a has the distribution CustomDist_a.*Write it with one of .*Normal.*wsabi.LogDensity",
    ),
    "ordered": (add_ordered, r"transform of cut \(Ordered\) leaves out a part of its prior.*positive differences"),
    "cut": (add_cut_normal, r"transform of positive \(LogTransform\) leaves out a part"),
    "unnamed": (lambda pm: pm.Normal("a", pm.Normal.dist(0, 1), 1), "a depends on a random number that is no variable"),
    "rows": (lambda pm: pm.MvNormal("m", np.zeros(2), np.eye(2), shape=(3, 2)), r"MvNormal of shape \(3, 2\): write"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_taken_apart_is_refused_with_what_to_write(pm: Any, case: str) -> None:
    build, message = REFUSED[case]
    with pm.Model() as model:
        build(pm)
        pm.Normal("y", 0, 1, observed=1.0)
    with pytest.raises(ValueError, match=message):
        wsabi.from_pymc(model)


def test_a_model_without_data_or_none_at_all(pm: Any) -> None:
    with pm.Model() as model:
        pm.Normal("a")
    with pytest.raises(ValueError, match="has no observed variable"):
        wsabi.from_pymc(model)
    with pytest.raises(TypeError, match=r"model must be a pymc.Model; got int"):
        wsabi.from_pymc(3)


def test_an_op_without_gradient_leaves_it_out(pm: Any) -> None:
    decorator = imported("pytensor.compile.ops").as_op
    tensor = imported("pytensor.tensor")

    @decorator(itypes=[tensor.dscalar], otypes=[tensor.dscalar])  # type: ignore[untyped-decorator]
    def simulator(a: np.ndarray) -> np.ndarray:
        return np.asarray(np.square(a))

    with pm.Model() as model:
        pm.Normal("y", simulator(pm.Normal("a")), 1.0, observed=2.0)
    made = wsabi.from_pymc(model)
    assert made.grad is None
    assert made.log_likelihood({"a": 3.0}) == pytest.approx(stats.norm(9.0, 1.0).logpdf(2.0))


def test_half_student_is_the_fold_of_student() -> None:
    half = HalfStudent(4.0, 2.0)
    q = np.array([1e-12, 0.1, 0.5, 0.9, 1.0 - 1e-9])
    x = np.where(q < 0.9, half.icdf(q), half.iccdf(1.0 - q))
    assert_allclose(half.cdf(x), q, rtol=1e-9)
    assert_allclose(half.ccdf(x), 2.0 * stats.t(4.0, scale=2.0).sf(x), rtol=1e-9)
    assert integrate.quad(lambda v: float(np.exp(half.logpdf(v))), 0.0, 1.7)[0] == pytest.approx(float(half.cdf(1.7)))
    assert half.logpdf(-1.0) == -np.inf
    assert half.cdf(-1.0) == 0.0
