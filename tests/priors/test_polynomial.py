"""Polynomial densities: against the uniform box, scipy.stats, exact fractions and brute force; and every refusal."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import reference
import wsabi
from wsabi._core.types import Array
from wsabi.gp.exact import condition
from wsabi.gp.kernel import SquaredExponential
from wsabi.priors import Measure, Polynomial, Uniform
from wsabi.priors.axes import PolynomialAxis
from wsabi.priors.chart import MarginalChart, chart
from wsabi.priors.polynomial import UnitPolynomial
from wsabi.quadrature import embeddings
from wsabi.quadrature.design import spread_design
from wsabi.quadrature.integral import moments

# Densities with values known elsewhere: Beta(a, b) has a polynomial density for whole a and b.
BETAS = {
    (1, 1): [1.0],
    (2, 1): [0.0, 1.0],
    (1, 4): [1.0, -3.0, 3.0, -1.0],
    (3, 2): [0.0, 0.0, 1.0, -1.0],
    (2, 9): np.append(0.0, np.polynomial.polynomial.polypow([1.0, -1.0], 8)),
}
U = np.concatenate([-np.geomspace(37.0, 1e-3, 60), [0.0], np.geomspace(1e-3, 37.0, 60)])


def all_forms(kernel: SquaredExponential, measure: Measure, X: Array) -> dict[str, Array | float]:
    return {
        "mean": embeddings.kernel_mean(kernel, measure, X),
        "variance": embeddings.kernel_variance(kernel, measure),
        "u": embeddings.squared_kernel_mean(kernel, measure),
        "W": embeddings.product_mean(kernel, measure, X),
        "T": embeddings.chain_mean(kernel, measure, X),
        "T_nn": embeddings.chain_mean_diagonal(kernel, measure, X),
    }


# -- one interval -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), BETAS)
def test_density_mass_and_moments_are_those_of_the_beta_distribution(a: int, b: int) -> None:
    density, beta = UnitPolynomial.normalised(BETAS[a, b], "x"), stats.beta(a, b)
    # Down to 1e-9 from either end, where the powers of the other end would leave (1 − v)⁸ no correct digit.
    near = np.geomspace(1e-9, 0.5, 40)
    v, w = np.concatenate([near, 1.0 - near]), np.concatenate([1.0 - near, near])
    by_end = np.concatenate([beta.pdf(near), stats.beta(b, a).pdf(near)])
    assert_allclose(density.pdf(v, w), by_end, rtol=1e-13)
    below, above = density.masses(v, w)
    assert_allclose(below[:40], beta.cdf(near), rtol=1e-12)
    assert_allclose(above[40:], stats.beta(b, a).cdf(near), rtol=1e-12)
    assert_allclose([density.mean, density.variance], beta.stats("mv"), rtol=1e-15)
    slope = (a - 1) / v - (b - 1) / w
    assert_allclose(density.log_slope(v, w), slope, rtol=1e-11, atol=1e-11 * (a + b))


@pytest.mark.parametrize(("a", "b"), BETAS)
def test_quantiles_keep_both_tails(a: int, b: int) -> None:
    density = UnitPolynomial.normalised(BETAS[a, b], "x")
    axis = PolynomialAxis(np.zeros(1), np.ones(1), density)
    below, above = stats.norm.cdf(U), stats.norm.sf(U)
    v, w = density.quantile(below, above)
    for found, mass, beta in ((v, below, stats.beta(a, b)), (w, above, stats.beta(b, a))):
        tail = (mass < 0.4) & (mass > 1e-250)  # there the smaller share of the interval is known to all its digits
        assert_allclose(beta.logcdf(found[tail]), np.log(mass[tail]), rtol=1e-12, atol=1e-12)
    assert np.all(np.diff(v) >= 0.0)
    middle = np.abs(U) < 5.0
    assert_allclose(axis.to_base(axis.to_user(U[middle, None])), U[middle, None], atol=1e-8)


def test_quantiles_pass_a_zero_inside_the_interval() -> None:
    # 12 (v − ½)²: F(½ + s) = ½ + 4s³, so the quantile has an infinite slope in the middle.
    density = UnitPolynomial.normalised([0.25, -1.0, 1.0], "x")
    c = np.concatenate([[0.5], 0.5 + np.geomspace(1e-12, 0.4, 20), 0.5 - np.geomspace(1e-12, 0.4, 20)])
    v, _ = density.quantile(c, 1.0 - c)
    assert_allclose(v, 0.5 + np.cbrt((c - 0.5) / 4.0), atol=2e-5)  # F is flat to 1e-16 within 3e-6 of the middle
    assert_allclose(v[np.abs(c - 0.5) > 1e-3], (0.5 + np.cbrt((c - 0.5) / 4.0))[np.abs(c - 0.5) > 1e-3], atol=1e-12)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any), st.integers(0, 4))
def test_both_forms_are_one_polynomial(coefficients: list[int], power: int) -> None:
    # (1 − v)^power times any polynomial of non-negative coefficients is a density.
    product = np.polynomial.polynomial.polymul(coefficients, np.polynomial.polynomial.polypow([1.0, -1.0], power))
    density = UnitPolynomial.normalised(product, "x")
    exact = [Fraction(int(c)) for c in np.rint(product)]
    total = sum((c / (k + 1) for k, c in enumerate(exact)), Fraction(0))
    for v in (Fraction(1, 64), Fraction(3, 8), Fraction(7, 8), Fraction(63, 64)):
        value = float(sum((c * v**k for k, c in enumerate(exact)), Fraction(0)) / total)
        assert_allclose(density.pdf(np.array(float(v)), np.array(float(1 - v))), value, rtol=1e-12)
    assert_allclose(density.masses(np.array(0.5), np.array(0.5))[0], density.lower_half, rtol=1e-14)


# -- closed forms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0.02, 0.1, 0.5, 2.0, 20.0, 1e3])
def test_a_constant_polynomial_is_the_uniform_box(length: float) -> None:
    kernel = SquaredExponential(1.3, 3.0 * length * np.array([1.0, 1.7]))
    X = np.random.default_rng(0).uniform(-1.0, 2.0, (12, 2))
    box, flat = Uniform([-1.0, -1.0], [2.0, 2.0]), Polynomial([-1.0, -1.0], [2.0, 2.0], [5.0])
    expected, found = all_forms(kernel, box, X), all_forms(kernel, flat, X)
    for name, values in expected.items():
        assert_allclose(found[name], values, rtol=1e-12, atol=1e-290, err_msg=name)
    assert_allclose(flat.log_pdf(X), box.log_pdf(X), rtol=1e-15)
    assert_allclose(flat.cov, box.cov, rtol=1e-15)


# The same densities as reference.POLYNOMIALS and one more, by formulas that do not cancel at the ends.
DENSITIES: dict[str, tuple[list[float], Callable[[Array], Array]]] = {
    "square": (reference.POLYNOMIALS[0], lambda t: (0.2 + t - 0.7 * t**2) / (0.2 + 1 / 2 - 0.7 / 3)),
    "end": (reference.POLYNOMIALS[1], stats.beta(1, 3).pdf),
    "cubic": (reference.POLYNOMIALS[2], lambda t: t * (1.0 + 0.5 * t - 1.2 * t**2) / (1 / 2 + 0.5 / 3 - 1.2 / 4)),
    "beta": (BETAS[2, 9], stats.beta(2, 9).pdf),
    "arch": (BETAS[3, 2], stats.beta(3, 2).pdf),
}


def panelled(density: Callable[[Array], Array], low: float, high: float, panels: int) -> tuple[Array, Array]:
    """Nodes (Q, 1) and weights (Q,) on one axis by Gauss-Legendre on equal panels of 20 nodes."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    t = ((np.arange(panels)[:, None] + 0.5 * (nodes + 1.0)) / panels).ravel()
    return low + (high - low) * t[:, None], density(t) * np.tile(weights, panels) / (2.0 * panels)


@pytest.mark.parametrize("name", DENSITIES)
@pytest.mark.parametrize("length", [0.05, 0.3, 1.0, 20.0])
def test_one_axis_matches_panels_from_a_twentieth_to_twenty_widths(length: float, name: str) -> None:
    coefficients, density = DENSITIES[name]
    measure = Polynomial(-1.0, 2.0, coefficients)
    kernel = SquaredExponential(1.2, 3.0 * length)
    X = np.array([-1.4, -1.0, -0.97, -0.3, 0.4, 1.1, 1.96, 2.0, 2.2])[:, None]  # a little outside too
    oracles = []
    for panels in (24, 30):
        nodes, p = panelled(density, -1.0, 2.0, panels)
        K, G = reference.kernel_matrix(kernel, X, nodes) * p, reference.kernel_matrix(kernel, nodes, nodes)
        R = reference.kernel_matrix(kernel, nodes, X)
        oracles.append({
            "mean": K.sum(axis=1), "variance": p @ G @ p, "u": p @ G**2 @ p, "W": K @ R,
            "T": K @ G @ K.T, "T_nn": np.diag(K @ G @ K.T),
        })  # fmt: skip
    found = all_forms(kernel, measure, X)
    for form, values in oracles[1].items():
        assert_allclose(oracles[0][form], values, rtol=1e-11, err_msg=form)  # the oracle has converged
        assert_allclose(found[form], values, rtol=1e-11, err_msg=form)


@pytest.mark.parametrize("dim", [2, 3])
def test_several_axes_are_the_product_of_single_ones(dim: int) -> None:
    rng = np.random.default_rng(dim)
    low, high = rng.uniform(-2.0, 0.0, dim), rng.uniform(1.0, 3.0, dim)
    lengths = (high - low) * np.array([0.05, 20.0, 0.7])[:dim]
    X = low + (high - low) * rng.random((7, dim))
    whole = all_forms(SquaredExponential(1.0, lengths), Polynomial(low, high, reference.POLYNOMIALS[:dim]), X)
    singles = [
        all_forms(SquaredExponential(1.0, lengths[d]), Polynomial(low[d], high[d], reference.POLYNOMIALS[d]), X[:, [d]])
        for d in range(dim)
    ]
    for name, values in whole.items():
        assert_allclose(values, np.prod([np.asarray(s[name]) for s in singles], axis=0), rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("method", ["wsabi-l", "wsabi-m", "bq"])
@pytest.mark.parametrize("length", [0.1, 0.25])
def test_moments_of_z_at_short_lengthscales(method: wsabi.settings.Method, length: float) -> None:
    """E[Z] and V[Z] against ∫mπ and ∬Cππ' on panels, with a density that is zero at both ends."""
    measure = Polynomial(-1.0, 2.0, BETAS[3, 2])
    X = np.linspace(-0.9, 1.9, 6)[:, None]
    gp = condition(X, np.array([0.2, 0.9, 1.4, 1.1, 0.6, 0.3]), np.array([3.0 * length]), scale=1.3)
    expected = []
    for panels in (16, 20):
        nodes, p = panelled(DENSITIES["arch"][1], -1.0, 2.0, panels)
        m_tilde, c_tilde = gp.covariance(nodes)
        m, _ = wsabi.quadrature.warp.likelihood_moments(method, 0.05, m_tilde, np.diag(c_tilde))
        expected.append((p @ m, p @ reference.likelihood_covariance(method, m_tilde, c_tilde) @ p))
    assert_allclose(expected[0], expected[1], rtol=1e-10)
    found = moments(gp, measure, 0.05, method)
    # atol: round-off of the terms of V[Z], which are of the order of one
    assert_allclose([found.mean, found.variance], expected[1], rtol=1e-9, atol=1e-13)


def test_a_very_wide_interval_has_the_limits_of_the_whole_line() -> None:
    # 2,000 length-scales: away from the ends ∫kπ → √(2π) p(x), W and T the same with p², to (l/width)² of curvature.
    r, kernel, rising = 1000.0, SquaredExponential(1.0, 1.0), Polynomial(-1000.0, 1000.0, [0.0, 1.0])
    X = np.array([[-300.0], [0.0], [0.5], [700.0]])
    p = (X[:, 0] + r) / (2.0 * r**2)
    assert_allclose(embeddings.kernel_mean(kernel, rising, X), math.sqrt(2 * math.pi) * p, rtol=1e-12)  # p is linear
    assert_allclose(embeddings.product_mean_diagonal(kernel, rising, X), math.sqrt(math.pi) * p, rtol=1e-12)
    plane = 2 * math.pi / math.sqrt(3)
    # E[ss'] about x is ⅓ for the chain's own Gaussian: p(s)p(s') has the mean p(x)² + ⅓ p'².
    exact = plane * (p**2 + (1.0 / (2.0 * r**2)) ** 2 / 3.0)
    assert_allclose(embeddings.chain_mean_diagonal(kernel, rising, X), exact, rtol=1e-12)
    # ∬kπ² = √(2π)∫p² less what the ends cut off: 2r·∫₀¹4t² dt/(2r)²·√(2π) to first order in 1/r.
    assert_allclose(embeddings.kernel_variance(kernel, rising), math.sqrt(2 * math.pi) * 2.0 / (3.0 * r), rtol=2e-3)


# -- the measure, the chart and the whole run -------------------------------------------------------------------------


def test_draws_follow_the_density(n: int = 20_000, false_alarm: float = 1e-6) -> None:
    measure = Polynomial([0.0, 1.0, -2.0], [1.0, 3.0, 2.0], [BETAS[1, 4], BETAS[3, 2], BETAS[2, 9]])
    X = measure.sample(n, 4)
    exact = [stats.beta(1, 4), stats.beta(3, 2, loc=1.0, scale=2.0), stats.beta(2, 9, loc=-2.0, scale=4.0)]
    for d, beta in enumerate(exact):
        assert stats.kstest(X[:, d], beta.cdf).pvalue > false_alarm / 3
    assert_allclose(measure.log_pdf(X), sum(b.logpdf(X[:, d]) for d, b in enumerate(exact)), rtol=1e-9, atol=1e-9)


def test_outside_and_at_a_zero_the_log_density_is_minus_infinity() -> None:
    measure = Polynomial([0.0, 0.0], [1.0, 2.0], [[0.0, 1.0], [1.0]])
    X = np.array([[0.0, 1.0], [-0.1, 1.0], [0.5, 2.5], [1.0, 2.0]])
    assert_array_equal(np.isneginf(measure.log_pdf(X)), [True, True, True, False])
    assert_array_equal(measure.grad_log_pdf(X)[0], [0.0, 0.0])


def test_design_is_a_latin_hypercube_in_probability() -> None:
    measure = Polynomial([0.0, 5.0], [1.0, 9.0], [BETAS[1, 4], BETAS[3, 2]])
    X = spread_design(measure, 21, np.random.default_rng(0))
    assert_allclose(X[0], measure.mean)
    ranks = np.column_stack([stats.beta(1, 4).cdf(X[1:, 0]), stats.beta(3, 2, loc=5.0, scale=4.0).cdf(X[1:, 1])])
    assert_array_equal(np.sort(np.floor(20 * ranks), axis=0), np.tile(np.arange(20.0)[:, None], 2))


def test_under_the_adaptive_measure_each_axis_is_carried_to_a_normal() -> None:
    c = chart(Polynomial([0.0, -1.0], [2.0, 1.0], [BETAS[2, 1], BETAS[1, 4]], names=["a", "b"]), gaussian=True)
    assert isinstance(c, MarginalChart)
    assert c.names == ("a", "b")
    X = c.to_user(np.array([[0.0, 0.0], [-38.0, 38.0]]))
    assert_allclose(X[0], [2.0 * math.sqrt(0.5), 2.0 * (1.0 - 0.5**0.25) - 1.0], rtol=1e-14)
    assert np.all((X > [0.0, -1.0]) & (X < [2.0, 1.0]))  # strictly: a likelihood never meets the very bound
    assert len(set(c.kinds)) == 2


@pytest.mark.parametrize("measure", ["adaptive", "prior"])
def test_a_run_finds_the_evidence_and_the_posterior(measure: wsabi.settings.MeasureChoice) -> None:
    """ℓ = t₀³(1 − t₁) under Beta(3, 2) × Beta(2, 1): Z by beta functions, and the posterior is a beta again."""
    prior = wsabi.Polynomial([0.0, 2.0], [1.0, 5.0], [BETAS[3, 2], BETAS[2, 1]], names=["p", "q"])

    def log_l(x: Array) -> float:
        return 3.0 * math.log(x[0]) + math.log1p(-(x[1] - 2.0) / 3.0) if x[0] > 0.0 and x[1] < 5.0 else -math.inf

    exact = math.log((2 / 7) * (1 / 3))  # B(6, 2)/B(3, 2) and B(2, 2)/B(2, 1)
    settings = wsabi.Settings(measure=measure, certify=0.2 if measure == "adaptive" else 0.0)
    result = wsabi.integrate(log_l, prior, budget=60, rng=0, settings=settings)
    assert abs(result.log_z - exact) < 5e-3
    assert result.names == ("p", "q")
    # With the adaptive measure the posterior is a sum of weighted draws: a twentieth of the sd of q, 0.67.
    assert_allclose(result.posterior.mean, [6 / 8, 3.5], atol=0.04)
    grid, density = result.posterior.marginal("p")
    # The kernel density estimate of weighted draws keeps its sum to two per cent on a bounded support.
    error = 0.02 if measure == "adaptive" else 5e-3
    assert_allclose(np.sum(0.5 * (density[1:] + density[:-1]) * np.diff(grid)), 1.0, atol=error)
    draws = result.posterior.sample(2000, rng=0)
    assert np.all((draws >= prior.low) & (draws <= prior.high))
    flat = result.with_prior(wsabi.Polynomial([0.0, 2.0], [1.0, 5.0], [1.0], names=["p", "q"]))
    assert abs(flat.log_z - math.log(1 / 8)) < 4 * flat.log_z_std + 0.05  # ∫t³ = ¼, ∫(1 − t) = ½


def test_it_serves_as_the_reference_of_a_log_density() -> None:
    prior = wsabi.LogDensity(lambda x: math.log(2.0 * x[0]), Polynomial(0.0, 1.0, [1.0, 1.0]))
    result = wsabi.integrate(lambda x: 2.0 * math.log(x[0]), prior, budget=30, rng=0)
    assert abs(result.log_z - math.log(0.5)) < 1e-2


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 1.0, [1.0, -2.0]), r"the density of x0 must not be negative .* is -1 at t = 1,"),
        ((0.0, 1.0, [0.24, -1.0, 1.0]), r"the density of x0 must not be negative .* is -0.01 at t = 0.5,"),
        (([0.0, 0.0], 1.0, [[1.0], [0.0, -1e-9, 1.0]]), "the density of x1 must not be negative"),
        ((0.0, 1.0, [0.0, 0.0]), "the density of x0 must not be zero everywhere"),
        ((0.0, 1.0, [1.0, np.nan]), "coefficients of x0 must be finite"),
        ((0.0, 1.0, []), "coefficients must be a list of numbers, c_0 first, or one per parameter"),
        ((0.0, 1.0, 3.0), "coefficients must be a list of numbers, c_0 first, or one per parameter"),
        (([0.0] * 3, 1.0, [[1.0], [1.0]]), "coefficients must be one list or 3, one per dimension"),
        ((1.0, 1.0, [1.0]), "low must be below high in every dimension"),
    ],
)
def test_what_is_not_a_density_is_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Polynomial(*arguments)  # type: ignore[arg-type]


def test_names_appear_in_refusals_and_one_bound_serves_all() -> None:
    with pytest.raises(ValueError, match="the density of slope must not be negative"):
        Polynomial(0.0, 1.0, [[1.0], [-1.0]], names=["level", "slope"])
    measure = Polynomial(0.0, 2.0, [[1.0], [0.0, 1.0]])
    assert_array_equal(measure.high, [2.0, 2.0])
    assert_allclose(
        Polynomial(0.0, 1.0, [1 / 9, -2 / 3, 1.0]).mean, [0.75]
    )  # (t − ⅓)², rounded: −1e-17 at ⅓ is allowed


def test_bad_names_and_reprs() -> None:
    with pytest.raises(ValueError, match="names must be 1 different strings"):
        Polynomial(0.0, 1.0, [1.0], names=["a", "b"])
    assert "Polynomial(low=array([0.])" in repr(Polynomial(0.0, 1.0, [1.0]))
