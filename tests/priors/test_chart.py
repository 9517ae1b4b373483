"""Charts: the base measure is the prior seen through the map, both ways, in any units."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import ndtr

from wsabi.priors import Bounded, Gaussian, GaussianMixture, Independent, LogDensity, Polynomial, Transform, Uniform
from wsabi.priors.chart import AffineChart, MarginalChart, chart

COV = np.array([[4.0, -1.2, 0.3], [-1.2, 1.0, 0.1], [0.3, 0.1, 0.25]])
FACTORS = np.array([1e6, 1e-6, 1.0])


def correlated(factors=1.0):
    return Gaussian(np.array([1.0, -2.0, 0.5]) * factors, COV * np.outer(np.ones(3) * factors, np.ones(3) * factors))


def mixture(factors=1.0):
    units = np.outer(np.ones(3) * factors, np.ones(3) * factors)
    means = np.array([[1.0, 0.0, 2.0], [-3.0, 4.0, 2.0]]) * factors
    return GaussianMixture([1.0, 3.0], means, [COV * units, 2.0 * np.diag([1.0, 2.0, 3.0]) * units])


def box(factors=1.0):
    return Uniform(np.array([-1.0, 0.0, 5.0]) * factors, np.array([2.0, 0.1, 9.0]) * factors)


def independent(factors=1.0):
    a, b, c = np.ones(3) * factors
    return Independent([stats.norm(1.0 * a, 2.0 * a), (0.0, 3.0 * b), stats.gamma(2.5, scale=c)])


def logarithmic(factors=1.0):
    a, b, c = np.ones(3) * factors
    return Independent([stats.lognorm(0.5, scale=a), stats.loguniform(0.1 * b, 5.0 * b), stats.beta(2, 3, scale=c)])


def normals(factors=1.0):
    return Independent(
        [stats.norm(m * f, s * f) for m, s, f in zip([1, 2, 3], [4, 5, 6], np.ones(3) * factors, strict=True)]
    )


def polynomial(factors=1.0):
    low, high = np.array([-1.0, 0.0, 5.0]) * factors, np.array([2.0, 0.1, 9.0]) * factors
    return Polynomial(low, high, [[0.3, 1.0], [1.0, -1.0], [0.0, 2.0, -1.0]])


FAMILIES = [correlated, mixture, box, polynomial, independent, logarithmic, normals]
CHARTS = [(make, False) for make in FAMILIES] + [(box, True), (polynomial, True)]


def cube_to_normals(cube):
    return stats.norm.ppf(cube) * np.array([4.0, 5.0, 6.0]) + np.array([1.0, 2.0, 3.0])


def two_pairs(cube):
    return np.array([2.0 * cube[0], cube[1] ** 2, 2.0 * cube[2], cube[3] ** 2])


def second_in_units_of_the_first(cube):
    return np.array([1.0 + cube[0], cube[1] * (1.0 + cube[0])])


def narrow_normal(x):
    return stats.norm.logpdf(x[0], 0.3, 0.5)


@pytest.mark.parametrize(("make", "gaussian"), CHARTS)
def test_base_measure_is_the_prior_seen_through_the_map(make, gaussian):
    # log ν(u) = log π(x(u)) + Σ log dx/du: map, measure and Jacobian can only be wrong together.
    prior = make()
    c = chart(prior, gaussian=gaussian)
    X = prior.sample(50, 1)
    U = c.to_base(X)
    assert_allclose(c.measure.log_pdf(U), prior.log_pdf(X) + c.log_jacobian_diag(U).sum(axis=1), rtol=1e-10, atol=1e-10)
    assert_allclose(c.to_user(U), X, rtol=1e-12)
    assert c.separable
    assert (c.names, c.dim, c.keyed) == (("x0", "x1", "x2"), 3, False)


@pytest.mark.parametrize(("make", "gaussian"), CHARTS)
def test_base_draws_become_prior_draws(make, gaussian):
    # Two samples of 4,000, Kolmogorov-Smirnov per axis; false alarm 1e-6 in all (Bonferroni over three axes).
    prior = make()
    c = chart(prior, gaussian=gaussian)
    X, Y = c.to_user(c.measure.sample(4_000, 2)), prior.sample(4_000, 3)
    for d in range(3):
        assert stats.ks_2samp(X[:, d], Y[:, d]).pvalue > 1e-6 / 3


@pytest.mark.parametrize(("make", "gaussian"), CHARTS)
@given(u=st.lists(st.floats(-5.0, 5.0), min_size=3, max_size=3))
def test_round_trip_from_the_base_space(make, gaussian, u):
    c = chart(make(), gaussian=gaussian)
    U = np.array([u]) / (5.0 if isinstance(c.measure, Bounded) else 1.0)
    X = c.to_user(U)
    # An ulp of x against the slope dx/du: 1e-6·2e-16 in the tail of a uniform at |u| = 5, worst for [5, 9].
    assert_allclose(c.to_base(X), U, atol=3e-9)


@pytest.mark.parametrize(("make", "gaussian"), CHARTS)
def test_units_leave_the_base_coordinates_alone(make, gaussian):
    plain, scaled = chart(make(), gaussian=gaussian), chart(make(FACTORS), gaussian=gaussian)
    X = make().sample(20, 4)
    U = plain.to_base(X)
    assert_allclose(scaled.to_base(X * FACTORS), U, rtol=1e-11, atol=1e-11)
    assert_allclose(scaled.to_user(U), plain.to_user(U) * FACTORS, rtol=1e-11)
    assert_allclose(scaled.measure.log_pdf(U), plain.measure.log_pdf(U), rtol=1e-11)
    assert_allclose(scaled.log_jacobian_diag(U) - np.log(FACTORS), plain.log_jacobian_diag(U), atol=1e-9)


@pytest.mark.parametrize("make", FAMILIES)
def test_gaussian_charts_cover_all_of_space(make):
    c = chart(make(), gaussian=True)
    assert isinstance(c.measure, Gaussian | GaussianMixture)
    assert np.all(np.isfinite(c.to_user(np.array([[-9.0, 0.0, 9.0], [12.0, -12.0, 30.0]]))))


def test_gaussian_is_standardised_to_its_correlation():
    c = chart(correlated())
    assert isinstance(c.measure, Gaussian)
    assert_allclose(c.measure.cov[0, 1], -0.6, rtol=1e-14)
    assert_array_equal(c.measure.mean, np.zeros(3))
    assert_allclose(c.affine, [[1.0, -2.0, 0.5], [2.0, 1.0, 0.5]])
    assert_array_equal(np.diag(chart(Gaussian([0.0, 0.0], [2.0, 3.0])).measure.cov), 1.0)  # 2/√2/√2 rounds to below 1


def test_mixture_is_standardised_by_its_overall_moments():
    measure = chart(mixture()).measure
    assert_allclose(measure.mean, 0.0, atol=1e-14)
    assert_allclose(np.diag(measure.cov), 1.0, rtol=1e-13)


def test_uniform_becomes_the_box_or_all_of_space():
    c = chart(box())
    assert isinstance(c.measure, Uniform)
    assert_array_equal([c.measure.low, c.measure.high], [-np.ones(3), np.ones(3)])
    assert_array_equal(c.to_base(np.array([[-1.0, 0.1, 7.0]])), [[-1.0, 1.0, 0.0]])
    assert_array_equal(c.to_user(np.array([[-1.0, 1.0, 1.0]])), [[-1.0, 0.1, 9.0]])
    assert chart(box(), gaussian=True).affine is None


def test_box_keeps_points_inside_to_the_last_bit_and_refuses_others():
    # 0.1 + 0.3 in halves: shift + scale·1 may round to above high, which a likelihood would see as outside.
    edges = [chart(Uniform(low, low + width)) for low in (0.1, 1 / 3, 1e6 / 7) for width in (0.3, 0.7, 1 / 3)]
    for c in edges:
        X = c.to_user(np.array([[-1.0], [1.0]]))
        assert c.low <= X[0]
        assert c.high >= X[1]
        assert_array_equal(np.abs(c.to_base(np.array([c.low, c.high]))) <= 1.0, True)
    with pytest.raises(
        ValueError, match=r"U must lie in the box \[-1, 1\]\^D of the base measure; point 1 is \[1\.5\]"
    ):
        edges[0].to_user(np.array([[0.0], [1.5]]))


def test_normal_axes_make_an_affine_chart():
    c = chart(normals())
    assert isinstance(c, AffineChart)
    assert_array_equal(c.affine, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert isinstance(chart(independent()), MarginalChart)
    assert chart(independent()).affine is None


def partition(kinds):
    """The numbers themselves mean nothing: which are the same does."""
    return [kinds.index(kind) for kind in kinds]


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        (Gaussian(np.zeros(3)), [0, 0, 0]),
        (Gaussian([0.0, 1.0, 0.0, 0.0], [4.0, 4.0, 4.0, 1.0]), [0, 1, 0, 3]),  # another mean, and another sd
        (correlated(), [0, 1, 2]),
        (Uniform([0.0, 0.0, 1.0], [3.0, 3.0, 4.0]), [0, 0, 2]),
        ([stats.norm(0, 2), (0, 1), stats.norm(0.0, scale=2.0), stats.gamma(2.5), (0.0, 1.0)], [0, 1, 0, 3, 1]),
        ([stats.norm(0, 2), stats.laplace(0, 2), stats.t(4), stats.t(5)], [0, 1, 2, 3]),
        ([stats.loguniform(0.1, 5.0), stats.truncnorm(-1, 1), stats.beta(2, 3)] * 2, [0, 1, 2, 0, 1, 2]),
        (GaussianMixture([1.0, 1.0], [[0.0, 0.0, 1.0], [2.0, 2.0, 5.0]], [np.eye(3), np.eye(3)]), [0, 0, 2]),
        ({"a": stats.norm(0, 2), "b": (0.0, 1.0), "c": stats.norm(0, 2)}, [0, 1, 0]),
        (LogDensity(narrow_normal, Gaussian(np.zeros(2))), [0, 0]),
        (Transform(np.copy, 3), [0, 0, 0]),
        (Transform(cube_to_normals, 3), [0, 1, 2]),
        (Transform(two_pairs, 4), [0, 1, 0, 1]),
        (Transform(np.sort, 2), [0, 0]),  # which mixes the axes, but not the same ones
        (Transform(second_in_units_of_the_first, 2), [0, 1]),
        (Gaussian([0.1 + 0.2, 0.3, 0.3 * (1.0 + 1e-6)]), [0, 0, 2]),  # round-off is no difference, six digits are
        (Gaussian([0.0]), [0]),
    ],
)
def test_kinds_are_the_parameters_with_the_same_prior(prior, expected):
    assert partition(chart(prior, gaussian=True).kinds) == expected


def test_parameters_of_one_kind_can_be_exchanged():
    # To the last bit: x of the exchanged u is the exchanged x.
    c = chart([stats.norm(1, 2), stats.gamma(2.5), stats.norm(1, 2), (0.0, 3.0), stats.gamma(2.5), (0.0, 3.0)])
    U = np.random.default_rng(0).standard_normal((50, 6))
    for i in range(6):
        for j in range(i):
            order = np.arange(6)
            order[[i, j]] = j, i
            same = np.array_equal(c.to_user(U[:, order]), c.to_user(U)[:, order])
            assert same == (c.kinds[i] == c.kinds[j])


def test_a_dict_prior_makes_a_keyed_chart():
    c = chart({"amp": stats.norm(0, 2), "tau": (0.1, 10.0)})
    assert (c.names, c.keyed, c.measure.names) == (("amp", "tau"), True, ("amp", "tau"))
    assert chart({"amp": stats.norm(0, 2)}).keyed  # affine too


def test_transform_is_fed_with_the_normal_cube():
    c = chart(Transform(cube_to_normals, 3, names=["a", "b", "c"]))
    U = np.random.default_rng(0).standard_normal((10, 3))
    assert_allclose(c.to_user(U), chart(normals()).to_user(U), rtol=1e-10, atol=1e-10)
    assert np.all(np.isfinite(c.to_user(np.full((1, 3), 40.0))))  # Φ(40) = 1 is kept off the face
    assert (c.separable, c.affine, c.names) == (False, None, ("a", "b", "c"))
    assert_array_equal(c.log_weight(U), np.zeros(10))
    with pytest.raises(TypeError, match=r"no known inverse: .* only points that the integrator itself proposed"):
        c.to_base(U)
    with pytest.raises(TypeError, match="no diagonal form"):
        c.log_jacobian_diag(U)


@pytest.mark.parametrize("reference", [Gaussian([0.1], 2.0), Independent([stats.t(4.0)]), Uniform(-6.0, 6.0)])
def test_log_density_weights_have_mean_one(reference):
    # ∫ w dν = ∫ π' = 1, by Gauss-Legendre panels over the base space.
    c = chart(LogDensity(narrow_normal, reference, names=["theta"]))
    reach = 1.0 if isinstance(c.measure, Uniform) else 8.0
    nodes, weights = np.polynomial.legendre.leggauss(400)
    U = reach * nodes[:, None]
    total = reach * np.sum(weights * np.exp(c.log_weight(U) + c.measure.log_pdf(U)))
    assert_allclose(total, 1.0, rtol=1e-10)
    assert c.names == ("theta",)


def test_log_density_takes_the_chart_of_its_reference():
    prior = LogDensity(narrow_normal, Uniform(-2.0, 2.0))
    assert isinstance(chart(prior).measure, Uniform)
    assert isinstance(chart(prior, gaussian=True).measure, Gaussian)
    keyed = chart(LogDensity(lambda p: -p["a"], {"a": stats.expon()}))
    assert keyed.keyed
    assert_allclose(keyed.log_weight(np.array([[-1.0], [2.0]])), 0.0, atol=1e-13)


def test_log_weight_names_logpdf_when_it_is_not_a_number():
    c = chart(LogDensity(lambda x: np.nan, Gaussian([0.0])))
    with pytest.raises(ValueError, match="logpdf must return a finite log density or -inf; got nan at point 0"):
        c.log_weight(np.zeros((2, 1)))


@pytest.mark.parametrize(("make", "gaussian"), [(box, False), (box, True), (independent, False), (logarithmic, False)])
def test_points_outside_the_support_are_named(make, gaussian):
    c = chart(make(), gaussian=gaussian)
    X = make().sample(4, 0)
    X[2, 1] = -0.5
    with pytest.raises(ValueError, match=r"point 2 has x1 = -0.5, outside \[0"):
        c.to_base(X)


def test_shapes_and_finiteness_are_checked():
    c = chart(correlated())
    for call, argument in [(c.to_user, "U"), (c.to_base, "X"), (c.log_weight, "U"), (c.log_jacobian_diag, "U")]:
        with pytest.raises(ValueError, match=rf"{argument} must have shape \(N, 3\), one point per row; got \(3,\)"):
            call(np.zeros(3))
    with pytest.raises(ValueError, match=r"X must be finite; point 1 is \[ 0\. nan  0\.\]"):
        c.to_base(np.array([[0.0, 0.0, 0.0], [0.0, np.nan, 0.0]]))


@pytest.mark.parametrize(
    ("prior", "gaussian"),
    [(make(), gaussian) for make, gaussian in CHARTS]
    + [(Transform(cube_to_normals, 3), False), (LogDensity(narrow_normal, box()), False)],
)
def test_charts_pickle_and_repeat_bit_for_bit(prior, gaussian):
    c = chart(prior, gaussian=gaussian)
    copy, again = pickle.loads(pickle.dumps(c)), chart(prior, gaussian=gaussian)
    U = c.measure.sample(10, 5)
    for other in (copy, again):
        assert_array_equal(other.to_user(U), c.to_user(U))
        assert_array_equal(other.log_weight(U), c.log_weight(U))
        assert_array_equal(other.measure.log_pdf(U), c.measure.log_pdf(U))
    one_by_one = np.vstack([c.to_user(u[None]) for u in U])
    assert_allclose(one_by_one, c.to_user(U), rtol=1e-13)


def test_probability_integral_transform_is_what_it_says():
    X = chart([stats.gamma(2.0)]).to_user(np.array([[-1.3], [0.7]]))
    assert_allclose(stats.gamma(2.0).cdf(X), ndtr([[-1.3], [0.7]]), rtol=1e-12)


def test_support_is_that_of_the_prior():
    """Bounds per axis where the prior has them, the reference's for a LogDensity, none for a Transform."""
    bounded = Independent([stats.norm(), (0.0, 3.0), stats.halfcauchy()])
    expected = [-np.inf, 0.0, 0.0], [np.inf, 3.0, np.inf]
    assert_array_equal(chart(bounded).support, expected)
    assert_array_equal(chart(LogDensity(lambda x: 0.0, bounded)).support, expected)
    for gaussian in (False, True):
        assert_array_equal(chart(box(), gaussian=gaussian).support, [[-1.0, 0.0, 5.0], [2.0, 0.1, 9.0]])
    for prior in (correlated(), mixture(), Transform(lambda c: c, 3)):
        assert_array_equal(chart(prior).support, [[-np.inf] * 3, [np.inf] * 3])
