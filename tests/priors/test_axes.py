"""Maps of one-dimensional distributions to a standard normal, against scipy.stats and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import ndtr

from wsabi.priors.axes import LogAxes, Marginals, NormalAxes, QuantileAxis, UniformAxes
from wsabi.priors.distributions import as_axis

RECOGNISED = [
    (stats.norm(1.5, 0.3), NormalAxes),
    (stats.norm(loc=-2.0, scale=40.0), NormalAxes),
    (stats.uniform(-1.0, 3.0), UniformAxes),
    (stats.lognorm(0.7, scale=3.0), LogAxes),
    (stats.lognorm(s=0.4, loc=-2.0, scale=0.1), LogAxes),
    (stats.loguniform(0.1, 20.0), LogAxes),
    (stats.loguniform(0.5, 2.0, loc=1.0, scale=3.0), LogAxes),
]
# Distributions whose scipy quantiles keep both tails.
UNBOUNDED = [stats.gamma(3.0), stats.t(3.0), stats.expon(scale=5.0), stats.cauchy(1.0, 2.0), stats.weibull_min(1.5)]
BOUNDED = [stats.uniform(-1.0, 3.0), stats.beta(2.0, 3.0), stats.triang(0.3), stats.truncnorm(-2.0, 3.0)]
TAILS = np.concatenate([np.linspace(-8.0, -0.25, 32), [0.0], np.linspace(0.25, 8.0, 32)])[:, None]


def single(distribution):
    return Marginals.gather([as_axis(distribution, "prior")])


@pytest.mark.parametrize(("distribution", "kind"), RECOGNISED)
def test_direct_formulas_agree_with_scipy_quantiles(distribution, kind):
    axis = as_axis(distribution, "prior")
    assert isinstance(axis, kind)
    U = np.linspace(-7.0, 7.0, 57)[:, None]  # scipy's own log-uniform loses its last digits beyond
    expected = np.where(U <= 0.0, distribution.ppf(ndtr(-np.abs(U))), distribution.isf(ndtr(-np.abs(U))))
    # Round-off only: a swapped tail or a missed loc shows at 1e-3 and more.
    assert_allclose(axis.to_user(U), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("distribution", [d for d, _ in RECOGNISED] + UNBOUNDED + BOUNDED)
def test_log_pdf_agrees_with_scipy_inside_on_the_bounds_and_outside(distribution):
    low, high = distribution.support()
    inside = distribution.ppf(np.linspace(0.02, 0.98, 25))
    outside = [end for end in (low - 1.0, high + 1.0) if np.isfinite(end)]
    X = np.concatenate([inside, outside])[:, None]
    assert_allclose(single(distribution).log_pdf(X), distribution.logpdf(X[:, 0]), rtol=1e-11, atol=1e-11)
    assert np.all(np.isneginf(single(distribution).log_pdf(np.array(outside).reshape(-1, 1))))


@pytest.mark.parametrize("distribution", [stats.uniform(-1.0, 3.0), stats.loguniform(0.1, 20.0)])
def test_density_is_positive_on_the_very_bounds(distribution):
    X = np.array(distribution.support())[:, None]
    assert_allclose(single(distribution).log_pdf(X), distribution.logpdf(X[:, 0]), rtol=1e-12)


@pytest.mark.parametrize("distribution", [d for d, _ in RECOGNISED] + UNBOUNDED + BOUNDED)
def test_log_jacobian_agrees_with_central_differences(distribution):
    marginals = single(distribution)
    U = np.linspace(-3.0, 3.0, 25)[:, None]
    h = np.cbrt(np.finfo(float).eps)  # error h² + ε/h, about 1e-10 relative to x; 1e-7 leaves room for curvature
    slope = (marginals.to_user(U + h) - marginals.to_user(U - h)) / (2 * h)
    assert_allclose(marginals.log_jacobian(U), np.log(slope), atol=1e-7)


@pytest.mark.parametrize("distribution", UNBOUNDED)
def test_round_trip_keeps_both_tails(distribution):
    marginals = single(distribution)
    # 1 − p in either tail would lose everything beyond |u| = 8.2 and 1e-3 at |u| = 7.5.
    assert_allclose(marginals.to_base(marginals.to_user(TAILS)), TAILS, atol=1e-13)


@pytest.mark.parametrize("distribution", BOUNDED)
def test_round_trip_near_a_bound_is_limited_by_round_off_alone(distribution):
    marginals = single(distribution)
    error = np.abs(marginals.to_base(marginals.to_user(TAILS)) - TAILS)
    # Near a bound other than zero an ulp of x (or of the 1 − p that scipy forms) is all there is: du = dp/φ(u).
    assert np.all(error <= 1e-13 + 1e-15 / stats.norm.pdf(TAILS))
    if distribution.support()[0] == 0.0:
        assert np.all(error[TAILS < 0.0] < 1e-13)


@pytest.mark.parametrize("distribution", [d for d, _ in RECOGNISED] + UNBOUNDED + BOUNDED)
def test_points_are_strictly_inside_the_support_at_any_u(distribution):
    low, high = distribution.support()
    X = single(distribution).to_user(np.array([[-1e3], [-40.0], [-9.0], [0.0], [9.0], [40.0], [1e3]]))
    assert np.all(np.isfinite(X))
    assert np.all((low < X) & (high > X))
    assert np.all(np.diff(X[2:5], axis=0) > 0.0)


@pytest.mark.parametrize("distribution", [*BOUNDED, stats.loguniform(0.1, 20.0)])
def test_points_on_a_bound_go_to_the_edge(distribution):
    X = np.array(distribution.support())[:, None]
    assert_allclose(single(distribution).to_base(X), [[-8.2095], [8.2095]], atol=1e-4)


class Rounded(stats.rv_continuous):
    """A logistic that knows only F and F⁻¹, so that scipy forms 1 − p in its upper tail and loses it."""

    def _cdf(self, x):
        return 1.0 / (1.0 + np.exp(-x))

    def _ppf(self, q):
        return np.log(q) - np.log1p(-q)


def test_a_tail_that_the_distribution_cannot_tell_stays_finite():
    frozen = Rounded(name="rounded")()
    with np.errstate(divide="ignore"):
        assert np.isinf(frozen.isf(ndtr(-9.0)))  # the trap is there
    X = single(frozen).to_user(np.array([[8.0], [9.0], [12.0]]))
    assert np.all(np.isfinite(X))
    assert_allclose(X[1:], np.log(2.0**53), rtol=1e-6)
    assert_allclose(single(frozen).to_base(np.array([[100.0]])), 8.2095, atol=1e-4)


@given(st.lists(st.floats(-6.0, 6.0), min_size=6, max_size=6))
def test_gathering_by_kind_keeps_the_order_of_the_axes(u):
    specs = [(0.0, 1.0), stats.norm(3.0, 2.0), stats.gamma(2.0), (5.0, 9.0), stats.norm(-1.0, 0.1), stats.lognorm(0.5)]
    axes = [as_axis(spec, "prior") for spec in specs]
    U = np.array([u])
    together = Marginals.gather(axes)
    assert len(together.blocks) == 4  # normal, uniform, log-normal, gamma
    apart = [Marginals.gather([axis]) for axis in axes]
    X = together.to_user(U)
    assert_array_equal(X, np.hstack([m.to_user(U[:, [d]]) for d, m in enumerate(apart)]))
    assert_array_equal(together.to_base(X), np.hstack([m.to_base(X[:, [d]]) for d, m in enumerate(apart)]))
    assert_array_equal(together.log_jacobian(U), np.hstack([m.log_jacobian(U[:, [d]]) for d, m in enumerate(apart)]))
    assert_allclose(together.log_pdf(X), sum(m.log_pdf(X[:, [d]]) for d, m in enumerate(apart)), rtol=1e-13)
    assert_array_equal(np.array(together.support), np.hstack([np.array(m.support) for m in apart]))


def test_other_distributions_go_through_their_quantiles():
    assert isinstance(as_axis(stats.gamma(2.0), "prior"), QuantileAxis)
