"""What a user may give as a prior, what it becomes, and what is refused."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from wsabi.priors import Gaussian, GaussianMixture, Independent, LogDensity, Polynomial, Transform, Uniform, as_prior
from wsabi.priors.chart import chart
from wsabi.priors.names import named_arguments

FALSE_ALARM = 1e-6


def stretch(cube):
    """Picklable prior_transform: x0 uniform on (−5, 5), x1 exponential scaled by |x0|."""
    x0 = 10.0 * cube[0] - 5.0
    return np.array([x0, -np.log1p(-cube[1]) * abs(x0)])


def in_place(cube):
    cube *= 2.0
    return cube


def standard_normal_logpdf(x):
    return -0.5 * float(np.sum(np.square(x))) - 0.5 * len(x) * np.log(2 * np.pi)


def by_name(p):
    return stats.norm.logpdf(p["amp"]) + stats.norm.logpdf(p["tau"], 5.0, 1.0)


def test_prior_objects_are_returned_as_they_are():
    priors = [
        Gaussian([0.0, 1.0]), GaussianMixture([1.0, 2.0], [0.0, 3.0]), Uniform(0.0, [1.0, 2.0]),
        Polynomial(0.0, 1.0, [0.0, 1.0]),
        Independent([(0, 1)]), Transform(stretch, 2), LogDensity(standard_normal_logpdf, Gaussian([0.0], 4.0)),
    ]  # fmt: skip
    assert all(as_prior(prior) is prior for prior in priors)


def test_a_dict_is_keyed_by_its_names_in_order():
    prior = as_prior({"tau": (0.1, 10.0), "amp": stats.norm(0, 2)})
    assert isinstance(prior, Independent)
    assert (prior.names, prior.keyed, prior.dim) == (("tau", "amp"), True, 2)


def test_lists_tuples_and_keywords_are_not_keyed():
    assert as_prior([stats.norm(), (0, 1)]).names == ("x0", "x1")
    assert not as_prior((stats.norm(), (0, 1))).keyed
    named = Independent(amp=stats.norm(), distributions=(0, 1))
    assert (named.names, named.keyed) == (("amp", "distributions"), False)
    assert_array_equal(as_prior([[0, 1]]).marginals.support, as_prior([(0, 1)]).marginals.support)


@pytest.mark.parametrize(
    ("spec", "error", "match"),
    [
        ({}, ValueError, "prior is empty"),
        ([], ValueError, "prior is empty"),
        ({1: stats.norm()}, TypeError, r"names of parameters must be strings; got 1 \(int\)"),
        ({"a": (1.0, 1.0)}, ValueError, r"prior\['a'\] must be finite with low < high; got \(1.0, 1.0\)"),
        ({"a": (2, 1)}, ValueError, r"low < high"),
        ({"a": (0.0, np.inf)}, ValueError, "must be finite"),
        ({"a": (0.0, np.nan)}, ValueError, "must be finite"),
        ({"a": (0, 1, 2)}, TypeError, r"prior\['a'\] must be two numbers"),
        ({"a": ("0", "1")}, TypeError, "two numbers"),
        ({"a": 3.0}, TypeError, r"prior\['a'\] must be a frozen scipy.stats distribution or a \(low, high\) pair"),
        ({"a": stats.norm}, TypeError, r"prior\['a'\] is scipy.stats.norm itself; freeze it"),
        ({"k": stats.poisson(3)}, TypeError, r"prior\['k'\] is discrete \(poisson\)"),
        ({"k": stats.poisson}, TypeError, "discrete"),
        ([stats.multivariate_normal([0, 0])], TypeError, r"prior\[0\] is multivariate_normal_frozen, not a frozen"),
        ([stats.norm([0, 1], 1)], ValueError, r"prior\[0\] must be one distribution per parameter"),
        ([stats.norm(0, -1)], ValueError, r"prior\[0\] has parameters for which the distribution does not exist"),
        ([stats.norm(0, np.inf)], ValueError, "does not exist"),
        ([stats.gamma(-1.0)], ValueError, r"does not exist: {'loc': 0.0, 'scale': 1.0, 'a': -1.0}"),
        ((0.1, 10.0), TypeError, r"single pair; for one uniform parameter write \[\(0.1, 10.0\)\]"),
        (stats.norm(), TypeError, "put a univariate one in a list or dict"),
        (stats.multivariate_normal([0, 0]), TypeError, "give Gaussian for a multivariate normal"),
        (stretch, TypeError, r"prior is a function \(stretch\).*write wsabi.Transform\(stretch, dim\)"),
        (lambda c: c, TypeError, r"write wsabi.Transform\(f, dim\) .*; for a log density write wsabi.LogDensity\(f, "),
        (np.zeros(2), ValueError, r"must have shape \(D, 2\).*got shape \(2,\)"),
        (np.zeros((2, 3)), ValueError, r"got shape \(2, 3\)"),
        (np.zeros((0, 2)), ValueError, r"got shape \(0, 2\)"),
        (np.array([["0", "1"]]), ValueError, "hold real numbers.*dtype <U1"),
        (np.array([[0, 1], [3, 2]]), ValueError, r"prior\[1\] must be finite with low < high; got \(3.0, 2.0\)"),
        (np.array([[0, 1], [0, np.nan]]), ValueError, r"prior\[1\] must be finite"),
        (np.array([[-np.inf, 1.0]]), ValueError, r"prior\[0\] must be finite"),
        (None, TypeError, "prior must be a dict or list .* got NoneType"),
        ("normal", TypeError, "got str"),
    ],
)  # fmt: skip
def test_what_is_not_a_prior_is_refused_by_name(spec, error, match):
    with pytest.raises(error, match=match):
        as_prior(spec)


def test_an_array_of_bounds_is_uniform():
    bounds = np.array([[0, 1], [-2, 3], [5, 5.5]])
    prior = as_prior(bounds)
    assert isinstance(prior, Uniform)
    assert_array_equal(np.column_stack([prior.low, prior.high]), bounds)
    assert not chart(prior).keyed  # the likelihood gets an array
    bounds[:] = 0.0
    assert_array_equal(prior.high, [1.0, 3.0, 5.5])  # a copy


def test_independent_takes_one_form_at_a_time():
    for arguments, named in [((), {}), (([(0, 1)],), {"a": (0, 1)})]:
        with pytest.raises(TypeError, match="one list or dict of distributions, or keywords"):
            Independent(*arguments, **named)
    with pytest.raises(TypeError, match="must be a list or a dict; got float"):
        Independent(3.0)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "match"),
    [
        ((3, 2), {}, TypeError, "prior_transform must be a function"),
        ((stretch, 2.0), {}, TypeError, "dim must be an int"),
        ((stretch, 0), {}, ValueError, "dim must be at least 1; got 0"),
        ((stretch, 2), {"names": ["a"]}, ValueError, "names must be 2 different strings"),
        ((stretch, 2), {"names": ["a", "a"]}, ValueError, "different"),
        ((stretch, 2), {"names": "ab"}, TypeError, "list of strings"),
        ((stretch, 2), {"names": ["a", 1]}, TypeError, "list of strings"),
    ],
)
def test_transform_checks_its_arguments(arguments, options, error, match):
    with pytest.raises(error, match=match):
        Transform(*arguments, **options)


def test_transform_checks_what_comes_back():
    with pytest.raises(ValueError, match=r"prior_transform returned shape \(3,\) for one point; expected \(2,\)"):
        Transform(lambda c: np.zeros(3), 2).sample(4, 0)
    with pytest.raises(ValueError, match=r"prior_transform returned shape \(2, 4\) for 4 points; expected \(4, 2\)"):
        Transform(lambda C: C.T, 2, vectorized=True).sample(4, 0)
    with pytest.raises(ValueError, match=r"prior_transform must return finite parameters; got \[nan nan\]"):
        Transform(lambda c: c * np.nan, 2).sample(4, 0)
    with pytest.raises(TypeError, match="Transform has no density in the user's coordinates"):
        Transform(stretch, 2).log_pdf(np.zeros((1, 2)))


def test_no_points_need_no_call_of_a_users_function():
    def first_row(C):
        return np.tile(C[0], (len(C), 1))  # a function that cannot do without rows

    assert Transform(first_row, 2, vectorized=True).from_cube(np.empty((0, 2))).shape == (0, 2)
    density = LogDensity(lambda X: first_row(X)[:, 0], Gaussian([0.0], 4.0), vectorized=True)
    assert density.log_pdf(np.empty((0, 1))).shape == (0,)


def test_transform_never_shows_the_faces_of_the_cube_and_survives_work_in_place():
    cube = np.array([[0.0, 1.0], [0.5, 0.25]])
    X = Transform(in_place, 2).from_cube(cube)
    assert_array_equal(cube, [[0.0, 1.0], [0.5, 0.25]])
    assert_array_equal(X, Transform(in_place, 2, vectorized=True).from_cube(cube))
    assert 0.0 < X[0, 0] < X[0, 1] < 2.0
    assert_array_equal(X[1], [1.0, 0.5])


def test_transform_in_one_dimension_may_return_a_float():
    assert_allclose(Transform(lambda c: float(c[0]) * 4.0, 1).from_cube(np.array([[0.25]])), [[1.0]])


def test_independent_draws_follow_their_distributions():
    # Kolmogorov-Smirnov per axis; false alarm 1e-6 in all (Bonferroni). A variance 5 % off fails at this n.
    distributions = [stats.norm(1, 2), stats.uniform(-1, 3), stats.lognorm(0.5, scale=2), stats.gamma(2.5), stats.t(3)]
    X = Independent(distributions).sample(20_000, 7)
    for d, distribution in enumerate(distributions):
        assert stats.kstest(X[:, d], distribution.cdf).pvalue > FALSE_ALARM / len(distributions)
    correlation = np.corrcoef(stats.rankdata(X, axis=0), rowvar=False)[np.triu_indices(5, 1)]
    assert np.all(np.abs(correlation) * np.sqrt(20_000) < stats.norm.isf(FALSE_ALARM / (2 * correlation.size)))


def test_transform_draws_follow_the_transform():
    X = Transform(stretch, 2).sample(5_000, 7)
    assert stats.kstest(X[:, 0], stats.uniform(-5, 10).cdf).pvalue > FALSE_ALARM / 2
    assert stats.kstest(X[:, 1] / np.abs(X[:, 0]), stats.expon().cdf).pvalue > FALSE_ALARM / 2


@pytest.mark.parametrize("prior", [Independent([stats.norm(), (0, 1)]), Transform(stretch, 2)])
def test_draws_repeat_with_the_seed(prior):
    assert_array_equal(prior.sample(5, 3), prior.sample(5, np.random.default_rng(3)))
    assert not np.array_equal(prior.sample(5, 3), prior.sample(5, 4))


def test_independent_log_pdf_is_the_sum_of_its_parts():
    X = np.array([[0.3, 0.5], [0.3, 1.5]])
    assert_allclose(
        Independent([stats.norm(1, 2), (0, 1)]).log_pdf(X), [stats.norm.logpdf(0.3, 1, 2), -np.inf], rtol=1e-14
    )


def test_log_density_takes_names_and_keys_from_its_reference():
    keyed = LogDensity(by_name, {"amp": stats.norm(0, 2), "tau": (0.0, 10.0)})
    assert (keyed.names, keyed.keyed, keyed.dim) == (("amp", "tau"), True, 2)
    vectorised = LogDensity(by_name, {"amp": stats.norm(0, 2), "tau": (0.0, 10.0)}, vectorized=True)
    X = keyed.reference.sample(6, 0)
    expected = stats.norm.logpdf(X[:, 0]) + stats.norm.logpdf(X[:, 1], 5.0, 1.0)
    assert_allclose(keyed.log_pdf(X), expected, rtol=1e-14)
    assert_allclose(vectorised.log_pdf(X), expected, rtol=1e-14)
    assert_allclose(keyed.log_weight(X), expected - keyed.reference.log_pdf(X), rtol=1e-13)
    assert LogDensity(standard_normal_logpdf, Gaussian([0.0, 0.0]), names=["a", "b"]).names == ("a", "b")


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_logpdf_that_works_in_place_leaves_the_points_alone(vectorized):
    def squared_in_place(x):
        x *= x
        return -x.sum(axis=-1)

    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    prior = LogDensity(squared_in_place, Gaussian([0.0, 0.0]), vectorized=vectorized)
    assert_array_equal(prior.log_pdf(X), [-5.0, -25.0])
    assert_array_equal(X, [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_log_density_refuses_nan_and_plus_inf(value):
    prior = LogDensity(lambda x: value if x[0] > 0 else 0.0, Gaussian([0.0], 1.0))
    with pytest.raises(ValueError, match=rf"logpdf must return a finite log density or -inf; got {value} at point 1, "):
        prior.log_weight(np.array([[-1.0], [1.0]]))


def test_log_density_allows_minus_inf():
    prior = LogDensity(lambda x: -np.inf if x[0] > 0 else -1.0, Uniform(-1.0, 1.0))
    assert_allclose(prior.log_weight(np.array([[0.5], [-0.5], [3.0]])), [-np.inf, -1.0 + np.log(2.0), -np.inf])


def test_log_density_says_what_it_cannot_do():
    prior = LogDensity(standard_normal_logpdf, Uniform(-1.0, 1.0))
    with pytest.raises(TypeError, match=r"cannot be sampled exactly.*draw from \.reference"):
        prior.sample(3, 0)
    with pytest.raises(ValueError, match=r"reference has log density -inf at point 1, x = \[2\.\]"):
        prior.log_weight(np.array([[0.0], [2.0]]))
    with pytest.raises(TypeError, match=r"reference must be a prior whose density is known.*got Transform"):
        LogDensity(standard_normal_logpdf, Transform(stretch, 2))
    with pytest.raises(TypeError, match="got LogDensity"):
        LogDensity(standard_normal_logpdf, prior)
    with pytest.raises(TypeError, match="logpdf must be a function"):
        LogDensity(0.0, Uniform(-1.0, 1.0))
    with pytest.raises(ValueError, match=r"logpdf returned shape \(2,\) for one point; expected \(\)"):
        LogDensity(lambda x: x, Gaussian([0.0, 0.0])).log_pdf(np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"logpdf returned shape \(3, 2\) for 3 points; expected \(3,\)"):
        LogDensity(lambda x: x, Gaussian([0.0, 0.0]), vectorized=True).log_pdf(np.zeros((3, 2)))


# -- whether a density is normalised ----------------------------------------------------------------------------------


def log_normal_density(X, shift=0.0):
    return stats.norm.logpdf(X).sum(axis=-1) + shift


REFERENCES = {
    "wider": Gaussian([0.0, 0.0], 4.0),
    "itself": Gaussian([0.0, 0.0], 1.0),
    "box": Uniform([-6.0, -6.0], 6.0),
    "a little narrower": Gaussian([0.0, 0.0], 0.8),
    "too narrow": Gaussian([0.0, 0.0], 0.25),  # weights have no variance
    "far too narrow": Gaussian([0.0, 0.0], 0.04),
    "aside": Gaussian([2.0, 0.0], 1.0),
    "far too wide": Gaussian([0.0, 0.0], 1e4),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_a_normalised_density_raises_no_alarm(name, seeds=40):
    """Each alarm is at most one in 1.7 million where weights have a variance; 320 calls here: 2e-4 in all.

    The mean weight under "too narrow" is 0.8 and less most of the time: a plain test at 5 standard errors gives alarms.
    """
    prior = LogDensity(log_normal_density, REFERENCES[name], vectorized=True)
    assert [prior.normalisation_fault(1000, seed) for seed in range(seeds)] == [None] * seeds


@pytest.mark.parametrize("name", ["wider", "itself", "box"])
@pytest.mark.parametrize(("shift", "effect"), [(np.log(2 * np.pi), "is too high"), (-0.7, "may be too low")])
def test_a_density_that_is_not_normalised_is_told_with_its_number(name, shift, effect):
    prior = LogDensity(lambda X: log_normal_density(X, shift), REFERENCES[name], vectorized=True)
    text = prior.normalisation_fault()
    match = re.fullmatch(
        r"logpdf integrates to about (\S+) over the reference, expected 1: "
        rf"log Z {effect} by about (\S+) ± (\S+)\. .*", text
    )  # fmt: skip
    integral, log_m, error = map(float, match.groups())
    assert abs(log_m - abs(shift)) < 5.0 * error + 0.01
    assert_allclose(np.log(integral), shift, atol=5.0 * error + 0.01)
    assert error < 0.1


def test_the_check_of_a_density_survives_any_constant_and_repeats():
    for shift, text in [(2000.0, r"exp\(2000\.\d\)"), (-2000.0, r"exp\(-2000\.\d\)")]:
        prior = LogDensity(lambda x, shift=shift: standard_normal_logpdf(x) + shift, Gaussian([0.0], 2.0))
        assert re.search(text, prior.normalisation_fault())
        assert prior.normalisation_fault() == prior.normalisation_fault()
    assert LogDensity(lambda x: -np.inf, Gaussian([0.0])).normalisation_fault() is None


def test_the_check_of_a_density_costs_what_it_says():
    calls = []
    LogDensity(lambda x: calls.append(x.shape) or standard_normal_logpdf(x), Gaussian([0.0])).normalisation_fault()
    assert calls == [(1,)] * 1000
    calls.clear()
    prior = LogDensity(lambda X: calls.append(X.shape) or log_normal_density(X), Gaussian([0.0]), vectorized=True)
    prior.normalisation_fault()
    assert calls == [(4000, 1)]


def test_mass_outside_the_reference_is_told():
    text = LogDensity(log_normal_density, Uniform(-1.0, 1.0), vectorized=True).normalisation_fault()
    assert "integrates to about 0.68" in text
    assert "choose a reference that covers all of it" in text


def test_named_arguments_are_floats_for_a_point_and_arrays_for_points():
    prior = as_prior({"amp": stats.norm(), "tau": (0, 1)})
    one = named_arguments(prior, np.array([1.0, 0.5]))
    assert one == {"amp": 1.0, "tau": 0.5}
    assert all(type(value) is float for value in one.values())
    X = np.array([[1.0, 0.5], [2.0, 0.25]])
    several = named_arguments(chart(prior), X)
    assert_array_equal(several["tau"], [0.5, 0.25])
    several["tau"][:] = 0.0
    assert_array_equal(X[:, 1], [0.5, 0.25])  # copies
    with pytest.raises(ValueError, match=r"X must have shape \(2,\) or \(N, 2\), one column per name; got \(3,\)"):
        named_arguments(["amp", "tau"], np.zeros(3))


@pytest.mark.parametrize(
    "prior",
    [
        Independent(a=stats.norm(1, 2), b=(0, 1), c=stats.gamma(2.0), d=stats.lognorm(1.0)),
        Transform(stretch, 2, names=["u", "v"]),
        LogDensity(standard_normal_logpdf, Gaussian([0.0, 0.0], 4.0)),
    ],
)
def test_priors_pickle(prior):
    copy = pickle.loads(pickle.dumps(prior))
    assert copy.names == prior.names
    source = prior.reference if isinstance(prior, LogDensity) else prior
    X = source.sample(5, 1)
    if isinstance(prior, Transform):
        assert_array_equal(copy.sample(5, 1), X)
    else:
        assert_array_equal(copy.log_pdf(X), prior.log_pdf(X))
