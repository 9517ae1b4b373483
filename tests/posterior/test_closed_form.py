"""The posterior under the model: every closed form against brute-force quadrature, draws against closed forms."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import trapezoid

import reference
from wsabi.errors import NumericalError
from wsabi.gp.exact import condition
from wsabi.gp.kernel import SquaredExponential
from wsabi.posterior.closed_form import ClosedForm, LowSampleSizeWarning
from wsabi.posterior.importance import Student, resample
from wsabi.posterior.quadratic import QuadraticDensity, truncated_moments
from wsabi.posterior.weighted import WeightedSamples
from wsabi.priors import Bounded, Gaussian, GaussianMixture, Independent, LogDensity, Polynomial, Transform, Uniform
from wsabi.priors.chart import chart
from wsabi.quadrature.integral import moments
from wsabi.quadrature.warp import latent_values

METHODS = ("wsabi-l", "wsabi-m", "bq")
KINDS = ("gaussian", "mixture", "box", "polynomial")
LOG_L_MAX = -3.0  # what the scaled likelihood of these tests was divided by


def covariance(dim):
    sd = np.array([1.3, 0.7, 0.4])[:dim]
    correlation = np.array([[1.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 1.0]])[:dim, :dim]
    return correlation * np.outer(sd, sd)


def prior(kind, dim):
    mean = np.array([2.0, -1.0, 0.5])[:dim]
    if kind == "gaussian":
        return Gaussian(mean, covariance(dim))
    if kind == "mixture":
        return GaussianMixture([0.3, 0.7], [mean, mean + 0.8], [covariance(dim), 0.5 * np.eye(dim)])
    low, high = mean - 1.5, mean + np.array([0.5, 1.0, 2.0])[:dim]
    return Polynomial(low, high, reference.POLYNOMIALS[:dim]) if kind == "polynomial" else Uniform(low, high)


def likelihood(U):
    """A smooth bump, off centre and skewed, in base coordinates, with maximum near one."""
    centre = np.array([0.4, -0.3, 0.2])[: U.shape[1]]
    return np.exp(-0.6 * np.square(U - centre).sum(axis=1)) * (1.0 + 0.3 * np.tanh(U[:, 0]))


def build(space, method):
    """Posterior of a GP conditioned on 5, 9 or 12 points drawn from the base measure of a chart."""
    X = space.measure.sample((5, 9, 12)[space.dim - 1], 0)
    alpha = 0.0 if method == "bq" else 0.01
    l_tilde = latent_values(np.maximum(likelihood(X), alpha), alpha, method)
    gp = condition(X, l_tilde, np.array([0.9, 1.3, 1.1])[: space.dim], capacity=20)
    log_z = np.log(moments(gp, space.measure, alpha, method).mean) + LOG_L_MAX
    return ClosedForm.from_gp(
        gp, alpha=alpha, method=method, measure=space.measure, chart=space, log_l_max=LOG_L_MAX, log_z=log_z
    )


def model(posterior, U):
    """ℓ of the model at U, by the plain formulas."""
    kernel = SquaredExponential(1.0, posterior.lengthscales)
    R = reference.kernel_matrix(kernel, posterior.X, posterior.X) + 1e-10 * np.eye(len(posterior.X))
    r = reference.kernel_matrix(kernel, U, posterior.X)
    m_tilde = r @ posterior.weights
    if posterior.method == "bq":
        return m_tilde
    if posterior.method == "wsabi-l":
        return posterior.alpha + 0.5 * np.square(m_tilde)
    c_tilde = posterior.scale**2 * (1.0 - (r * np.linalg.solve(R, r.T).T).sum(axis=1))
    return posterior.alpha + 0.5 * (np.square(m_tilde) + c_tilde)


def rule(measure, order):
    """Nodes (Q, D) and weights (Q,) for integrals under a measure, tensor products.

    Box: Gauss-Legendre. Gaussians: the trapezium rule on ±8 sd, whose error for a bump of sd s is exp(−2π²s²/h²): below
    1e-12 for h = 0.4 and every s ≥ 0.5 met here, where Gauss-Hermite of order 70 gives 1e-8.
    """
    if isinstance(measure, Bounded):
        return reference.quadrature(measure, order)
    if isinstance(measure, GaussianMixture):
        rules = [rule(component, order) for component in measure.components]
        weights = [w * part[1] for w, part in zip(measure.weights, rules, strict=True)]
        return np.concatenate([part[0] for part in rules]), np.concatenate(weights)
    line = np.linspace(-8.0, 8.0, order)
    points = np.stack(np.meshgrid(*[line] * measure.dim, indexing="ij"), axis=-1).reshape(-1, measure.dim)
    weights = np.exp(-0.5 * np.square(points).sum(axis=1)) * ((line[1] - line[0]) / np.sqrt(2 * np.pi)) ** measure.dim
    heavy = weights > 1e-18
    return measure.mean + points[heavy] @ np.linalg.cholesky(measure.cov).T, weights[heavy]


def quadratic(density, nodes):
    """c + Σ_ij A_ij κ_i κ_j at nodes, plainly."""
    r = reference.kernel_matrix(SquaredExponential(1.0, density.lengthscales), nodes, density.X)
    return density.constant + ((r @ density.A) * r).sum(axis=1)


def brute_moments(posterior, order):
    """Mass, mean and covariance in the user's coordinates by a tensor rule for the base measure."""
    nodes, weights = rule(posterior.measure, order)
    weights = weights * model(posterior, nodes)
    mass = weights.sum()
    X = posterior.chart.to_user(nodes)
    mean = weights @ X / mass
    return mass, mean, ((X - mean).T * weights) @ (X - mean) / mass


def legendre(low, high, panels, order=40):
    """Gauss-Legendre panels: nodes, weights."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    ends = np.linspace(low, high, panels + 1)
    half = 0.5 * np.diff(ends)[:, None]
    return (0.5 * (ends[1:] + ends[:-1])[:, None] + half * nodes).ravel(), (half * weights).ravel()


CASES = [(kind, dim, method) for kind in KINDS for dim in (1, 2, 3) for method in METHODS]


@pytest.mark.parametrize(("kind", "dim", "method"), CASES)
def test_mean_and_covariance_match_quadrature(kind, dim, method):
    posterior = build(chart(prior(kind, dim)), method)
    orders = (61, 81) if dim < 3 else (22, 26) if kind == "box" else (45, 51)
    coarse, fine = (brute_moments(posterior, order) for order in orders)
    for a, b in zip(coarse, fine, strict=True):
        assert_allclose(a, b, rtol=1e-9, atol=1e-10)  # the oracle has converged
    # 1e-8: sees a wrong factor anywhere, and leaves room for weights of 1e3 that cancel.
    assert_allclose(posterior.mean, fine[1], rtol=1e-8, atol=1e-9)
    assert_allclose(posterior.cov, fine[2], rtol=1e-8, atol=1e-9)
    assert_allclose(np.exp(posterior.log_z - LOG_L_MAX), fine[0], rtol=1e-8)


@pytest.mark.parametrize("kind", ["gaussian", "mixture", "box"])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_moments_and_mass_under_a_measure_off_centre(kind, dim):
    """The base measure of a chart has mean zero; here μ ≠ 0 and the box is not symmetric."""
    measure = prior(kind, dim)
    X = measure.sample(9, 1)
    rng = np.random.default_rng(2)
    A = rng.standard_normal((9, 9))
    density = QuadraticDensity(X, np.array([0.8, 0.9, 0.7])[:dim], A @ A.T, 0.3, measure)
    nodes, weights = rule(measure, 81 if dim < 3 else 30 if kind == "box" else 51)
    f = weights * quadratic(density, nodes)
    mean = f @ nodes / f.sum()
    cov = ((nodes - mean).T * f) @ (nodes - mean) / f.sum()
    mass, closed_mean, closed_cov = density.moments()
    assert_allclose(mass, f.sum(), rtol=1e-9)
    assert_allclose(closed_mean, mean, rtol=1e-9)
    assert_allclose(closed_cov, cov, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("axis", [0, -1])
def test_marginal_of_a_measure_off_centre(kind, dim, axis):
    """∫ over the other axes by a tensor rule for the measure given u_axis, μ ≠ 0, full Σ."""
    measure = prior(kind, dim)
    X = measure.sample(9, 1)
    A = np.random.default_rng(2).standard_normal((9, 9))
    density = QuadraticDensity(X, np.array([0.8, 0.9, 0.7])[:dim], A @ A.T, 0.3, measure)
    g = X[:3, axis] + 0.1
    axis = axis % dim
    others = np.arange(dim) != axis
    parts = measure.components if kind == "mixture" else (measure,)
    shares = measure.weights if kind == "mixture" else (1.0,)
    expected = np.zeros(3)
    for share, part in zip(shares, parts, strict=True):
        for k, value in enumerate(g):
            nodes, weights = given(part, axis, others, value)
            expected[k] += share * weights @ quadratic(density, nodes)
    assert_allclose(density.marginal(axis, g), expected, rtol=1e-9)


def given(part, axis, others, value):
    """Rule for the density of u with u_axis = value: the conditional of the other axes times the marginal."""
    nodes = np.full((1, len(others)), value)
    if isinstance(part, Uniform):
        weights = np.array([(part.low[axis] <= value <= part.high[axis]) / (part.high[axis] - part.low[axis])])
        rest = Uniform(part.low[others], part.high[others]) if others.any() else None
    elif isinstance(part, Polynomial):
        weights = np.exp(Polynomial(part.low[axis], part.high[axis], part.coefficients[axis]).log_pdf(nodes[:, [axis]]))
        coefficients = [c for c, use in zip(part.coefficients, others, strict=True) if use]
        rest = Polynomial(part.low[others], part.high[others], coefficients) if others.any() else None
    else:
        variance = part.cov[axis, axis]
        weights = np.array([stats.norm.pdf(value, part.mean[axis], np.sqrt(variance))])
        cross = part.cov[others, axis]
        mean = part.mean[others] + cross * (value - part.mean[axis]) / variance
        cov = part.cov[np.ix_(others, others)] - np.outer(cross, cross) / variance
        rest = Gaussian(mean, cov) if others.any() else None
    if rest is None:
        return nodes, weights
    inner, inner_weights = rule(rest, 61)
    nodes = np.repeat(nodes, len(inner), axis=0)
    nodes[:, others] = inner
    return nodes, weights * inner_weights


@pytest.mark.parametrize(("kind", "dim", "method"), CASES)
def test_marginals_integrate_to_one_and_have_the_closed_form_moments(kind, dim, method):
    space = chart(prior(kind, dim))
    posterior = build(space, method)
    reach = 1.0 if kind in ("box", "polynomial") else 9.0
    shift, scale = space.affine
    for axis in range(dim):
        x, weights = legendre(shift[axis] - reach * scale[axis], shift[axis] + reach * scale[axis], 20)
        grid, density = posterior.marginal(axis, x)
        raw = posterior._density().marginal(axis, (x - shift[axis]) / scale[axis])
        assert_allclose(density[raw > 0], raw[raw > 0] * np.exp(LOG_L_MAX - posterior.log_z) / scale[axis], rtol=1e-12)
        signed = raw * np.exp(LOG_L_MAX - posterior.log_z) / scale[axis]  # Bayes-Hermite may be negative
        assert_allclose(weights @ signed, 1.0, rtol=1e-8)
        assert_allclose(weights @ (signed * grid), posterior.mean[axis], rtol=1e-8)
        assert_allclose(weights @ (signed * (grid - posterior.mean[axis]) ** 2), posterior.cov[axis, axis], rtol=1e-7)
        if method != "bq":
            assert np.all(density >= 0.0)
            # Trapezium on the default grid: steps of a twelfth of an sd or less leave an error under 1e-3.
            assert_allclose(trapezoid(*posterior.marginal(axis)[::-1]), 1.0, rtol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_log_density_is_the_model_over_z(kind, method):
    space = chart(prior(kind, 2))
    posterior = build(space, method)
    U = space.measure.sample(20, 5)
    expected = model(posterior, U) * np.exp(space.measure.log_pdf(U)) / np.prod(space.affine[1])
    log_p = posterior.log_density(space.to_user(U))
    positive = expected > 0
    assert_allclose(log_p[positive], np.log(expected[positive]) + LOG_L_MAX - posterior.log_z, rtol=1e-9, atol=1e-7)
    assert np.all(log_p[~positive] == -np.inf)


def test_log_density_outside_the_support_is_minus_infinity():
    posterior = build(chart(prior("box", 2)), "wsabi-l")
    assert np.array_equal(np.isfinite(posterior.log_density([[2.0, -1.0], [2.6, -1.0]])), [True, False])
    assert posterior.marginal(0, [2.0, 2.6]).density[1] == 0.0
    with pytest.raises(ValueError, match=r"X must have shape \(N, 2\)"):
        posterior.log_density([1.0, 2.0])


# -- charts that are not affine ---------------------------------------------------------------------------------------


@pytest.fixture(params=["wsabi-l", "wsabi-m"])
def curved(request):
    return build(chart({"amp": stats.gamma(3.0, scale=2.0), "tau": (0.1, 10.0)}), request.param)


def test_separable_chart_matches_quadrature(curved):
    coarse, fine = brute_moments(curved, 61), brute_moments(curved, 81)
    assert_allclose(coarse[1], fine[1], rtol=1e-8)
    assert_allclose(curved.mean, fine[1], rtol=1e-8)
    assert_allclose(np.diag(curved.cov), np.diag(fine[2]), rtol=1e-7)
    # Correlation from about 1.5e4 effective points: standard error 0.008, so 0.05 is six of them.
    correlation = curved.cov[0, 1] / np.sqrt(np.prod(np.diag(curved.cov)))
    assert abs(correlation - fine[2][0, 1] / np.sqrt(np.prod(np.diag(fine[2])))) < 0.05


def test_separable_chart_marginals(curved):
    x, weights = legendre(0.1, 10.0, 40)
    density = curved.marginal("tau", x).density
    assert_allclose(weights @ density, 1.0, rtol=1e-6)  # x(u) is not smooth at the ends of the interval
    assert_allclose(weights @ (density * x), curved.mean[1], rtol=1e-6)
    grid, density = curved.marginal("amp")
    assert len(grid) == 200
    assert_allclose(trapezoid(density, grid), 1.0, rtol=1e-3)
    # The same by integrating the joint density over the other parameter.
    points = np.column_stack([np.full_like(x, 5.0), x])
    assert_allclose(weights @ np.exp(curved.log_density(points)), curved.marginal(0, [5.0]).density[0], rtol=1e-6)


def test_separable_chart_is_zero_outside_its_support(curved):
    assert curved.marginal("tau", [0.05, 5.0, 11.0]).density[[0, 2]].tolist() == [0.0, 0.0]
    assert curved.log_density([[-1.0, 5.0]])[0] == -np.inf


def mixing(c):
    """A transform that mixes the axes."""
    return np.array([c[0] + 2.0 * c[1], c[1] ** 2])


def test_transform_moments_and_errors():
    posterior = build(chart(Transform(mixing, 2)), "wsabi-l")
    _, mean, cov = brute_moments(posterior, 81)
    # 2^15 points worth at least a third: standard error of a mean 0.01 sd; 0.06 sd is six of them.
    assert np.all(np.abs(posterior.mean - mean) < 0.06 * np.sqrt(np.diag(cov)))
    assert_allclose(posterior.cov, cov, rtol=0.1, atol=0.06 * np.max(cov))
    assert posterior.sample(10, 0).shape == (10, 2)
    grid, density = posterior.marginal(0)  # of weighted points
    assert_allclose(trapezoid(density, grid), 1.0, atol=0.02)
    with pytest.raises(TypeError, match="log_density needs a density"):
        posterior.log_density([[0.5, 0.5]])


def test_log_density_prior_follows_its_reference():
    target = LogDensity(stats.norm(0.0, 1.0).logpdf, [stats.norm(0.0, 2.0)], names=["slope"])
    posterior = build(chart(target), "wsabi-l")
    assert_allclose(posterior.mean, brute_moments(posterior, 61)[1], rtol=1e-8)
    assert posterior.names == ("slope",)


# -- joint densities and quantiles ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_joint_densities_match_quadrature_of_the_third_axis(kind, method):
    """Exact in the base coordinates of three correlated axes: a dropped covariance of any pair shows."""
    posterior = build(chart(prior(kind, 3)), method)
    density = posterior._density()
    low, high = np.quantile(posterior.measure.sample(500, 1), [0.2, 0.8], axis=0)
    for pair, other in (((0, 1), 2), ((2, 0), 1)):
        points = np.array([[low[pair[0]], high[pair[1]]], [0.1, 0.2], [high[pair[0]], low[pair[1]]]])
        found = density.marginal_of(list(pair), points)
        if isinstance(posterior.measure, Bounded):
            x, weights = legendre(-1.0, 1.0, 6, 20)
        else:
            x, weights = legendre(-9.0, 9.0, 60, 20)
        for k, (a, b) in enumerate(points):
            nodes = np.empty((len(x), 3))
            nodes[:, pair[0]], nodes[:, pair[1]], nodes[:, other] = a, b, x
            brute = weights @ (np.exp(posterior.measure.log_pdf(nodes)) * quadratic(density, nodes))
            assert found[k] == pytest.approx(brute, rel=1e-8, abs=1e-12)


def test_joint_density_in_the_users_coordinates(curved):
    """Its integral over one parameter is the marginal of the other."""
    a = np.linspace(0.01, 70.0, 1401)
    b = np.array([0.5, 2.0, 5.0])
    joint = curved.marginal2(0, 1, (a, b)).density
    assert_allclose(trapezoid(joint, a, axis=0), curved.marginal(1, b).density, rtol=1e-4)
    assert_allclose(curved.marginal2(1, 0, (b, a)).density, joint.T, rtol=1e-12)
    with pytest.raises(ValueError, match="inside the support"):
        curved.marginal2(1, 0, (np.array([-1.0]), a))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["wsabi-l", "wsabi-m"])
def test_quantiles_invert_the_marginal(kind, method):
    """The integral of the marginal up to each quantile is its level, at the accuracy of the closed form."""
    posterior = build(chart(prior(kind, 2)), method)
    levels = np.array([0.001, 0.1, 0.5, 0.975])
    shift, scale = posterior.chart.affine
    for axis in range(2):
        ends, _, _ = posterior._density().axis_rule(axis)
        first = shift[axis] + scale[axis] * ends[0]
        for level, x in zip(levels, posterior.quantiles(axis, levels), strict=True):
            nodes, weights = legendre(first, x, 60, 20)
            assert weights @ posterior.marginal(axis, nodes).density == pytest.approx(level, abs=1e-9)


# -- draws ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gaussian", "mixture", "box"])
@pytest.mark.parametrize("method", ["wsabi-l", "wsabi-m"])
def test_draws_have_the_closed_form_moments(kind, method, false_alarm=1e-6):
    posterior = build(chart(prior(kind, 2)), method)
    pool = posterior.weighted_sample(40_000, 3)
    assert pool.effective_sample_size > 8_000  # a fifth: a proposal that misses the posterior falls far below
    bound = stats.norm.isf(false_alarm / 8)  # two-sided, Bonferroni over two means and two variances
    sd = np.sqrt(np.diag(posterior.cov))
    centred = pool.points - posterior.mean
    for values, truth in ((centred, np.zeros(2)), (np.square(centred), sd**2)):
        error = np.sqrt(np.square(pool.weights) @ np.square(values - truth))  # of a self-normalised mean
        assert np.all(np.abs(pool.weights @ values - truth) < bound * error)
    draws = posterior.sample(4000, 4)
    assert draws.shape == (4000, 2)
    # Systematic resampling of a pool of 32,000, worth at least 6,000: no noisier than 1/√4000 + 1/√6000 of an sd.
    assert np.all(np.abs(draws.mean(axis=0) - posterior.mean) < bound * sd * (4000**-0.5 + 6000**-0.5))


def test_draws_repeat_with_the_seed_and_stay_inside_the_box():
    posterior = build(chart(prior("box", 2)), "wsabi-l")
    draws = posterior.sample(500, 1)
    assert np.array_equal(draws, posterior.sample(500, 1))
    assert not np.array_equal(draws, posterior.sample(500, 2))
    low, high = prior("box", 2).low, prior("box", 2).high
    assert np.all((draws >= low) & (draws <= high))
    assert posterior.sample(1, 0).shape == (1, 2)


def test_weights_are_those_of_the_density():
    """Far from its posterior a proposal still gives unbiased weights: the mass comes out right."""
    posterior = build(chart(prior("gaussian", 2)), "wsabi-l")
    student = Student(np.array([0.3, 0.1]), np.array([[1.0, 0.0], [0.4, 0.8]]))
    x, weights = legendre(-400.0, 400.0, 400, 20)
    line = Student(np.zeros(1), np.eye(1))
    assert_allclose(weights @ np.exp(line.log_pdf(x[:, None])), 1.0, rtol=1e-9)  # tail beyond: 1e-11
    assert_allclose(student.log_pdf(posterior.X), stats.multivariate_t([0.3, 0.1], student.L @ student.L.T, 5).logpdf(
        posterior.X
    ), rtol=1e-12)  # fmt: skip


def test_expect(curved):
    mean = curved.expect(lambda p: np.array([p["amp"], p["tau"]]))
    sd = np.sqrt(np.diag(curved.cov))
    assert np.all(np.abs(mean - curved.mean) < 6 * sd / np.sqrt(3000))  # 10^4 points worth 3,000 or more
    assert mean.shape == (2,)
    fast = curved.expect(lambda p: np.column_stack([p["amp"], p["tau"]]), vectorized=True)
    assert_allclose(fast, mean, rtol=1e-12)
    assert isinstance(curved.expect(lambda p: p["amp"] > 3), float)
    assert curved.expect(lambda p: 1.0) == pytest.approx(1.0, rel=1e-12)


def test_expect_rejects_a_bad_function():
    posterior = build(chart(prior("gaussian", 1)), "wsabi-l")
    with pytest.raises(ValueError, match="f must be finite"):
        posterior.expect(lambda x: np.nan)
    with pytest.raises(ValueError, match=r"f returned shape \(3,\)"):
        posterior.expect(lambda X: np.ones(3), vectorized=True)
    with pytest.raises(ValueError, match="n must be at least 1"):
        posterior.sample(0)
    with pytest.raises(TypeError, match="n must be a whole number"):
        posterior.sample(1.5)


def test_few_effective_points_are_warned_of():
    samples = WeightedSamples(np.arange(200.0)[:, None], np.r_[0.99, np.full(199, 0.01 / 199)], ("x",))
    assert samples.effective_sample_size == pytest.approx(1.02, abs=0.01)
    with pytest.warns(LowSampleSizeWarning, match=r"worth only 1\.0 independent draws"):
        samples.expect(lambda x: x[0])


def test_posterior_far_from_student_warns():
    """Two sharp peaks in eight dimensions: a Student density over both hardly meets either."""
    centre = np.full(8, 2.0)

    def peaks(U):
        near = np.minimum(np.square(U - centre).sum(axis=1), np.square(U + centre).sum(axis=1))
        return np.exp(-8.0 * near)

    space = chart(Gaussian(np.zeros(8)))
    X = np.concatenate([centre + 0.1 * space.measure.sample(20, 0), -centre + 0.1 * space.measure.sample(20, 1)])
    gp = condition(X, np.sqrt(2 * peaks(X)), np.full(8, 0.12))
    z = moments(gp, space.measure, 0.0, "wsabi-l").mean
    posterior = ClosedForm.from_gp(
        gp, alpha=0.0, method="wsabi-l", measure=space.measure, chart=space, log_l_max=0.0, log_z=np.log(z)
    )
    with pytest.warns(LowSampleSizeWarning):
        posterior.sample(100, 0)


def test_resampling_gives_each_its_share():
    weights = np.array([0.5, 0.25, 0.125, 0.125])
    index = resample(weights, 800, np.random.default_rng(0))
    assert np.bincount(index).tolist() == [400, 200, 100, 100]


def test_importance_sample_moments():
    points = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 2.0]])
    samples = WeightedSamples(points, np.array([0.5, 0.25, 0.25]), ("a", "b"))
    assert_allclose(samples.mean, [1.5, 1.75])
    assert_allclose(samples.cov, np.cov(points.T, aweights=samples.weights, ddof=0))


# -- the object -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_pickle_and_independence_from_the_gp(method):
    space = chart(Independent(amp=stats.norm(1.0, 2.0), tau=stats.gamma(3.0)))
    X = space.measure.sample(10, 0)
    gp = condition(X, likelihood(X), np.array([0.9, 1.1]), capacity=20)
    keywords = {"alpha": 0.0, "method": method, "measure": space.measure, "chart": space, "log_l_max": 0.0}
    posterior = ClosedForm.from_gp(gp, log_z=-1.0, **keywords)
    query = np.array([[1.0, 2.0], [0.5, 3.0]])
    before = posterior.log_density(query)
    gp.append(np.array([0.3, 0.2]))
    gp.X[:] = gp.weights[:] = gp.factor.packed[:] = 0.0
    copy = pickle.loads(pickle.dumps(posterior))
    assert np.array_equal(posterior.log_density(query), before)
    assert np.array_equal(copy.log_density(query), before)
    assert np.array_equal(copy.mean, posterior.mean)
    assert repr(posterior) == f"ClosedForm(amp, tau; {method}, 10 points)"


def test_parameters_by_name_and_index():
    posterior = build(chart(Gaussian([0.0, 1.0], 2.0, names=["amp", "tau"])), "wsabi-l")
    by_name = posterior.marginal("tau", [0.5]).density
    assert by_name == posterior.marginal(1, [0.5]).density == posterior.marginal(-1, [0.5]).density
    assert by_name != posterior.marginal("amp", [0.5]).density
    with pytest.raises(ValueError, match="'tua' is not one of amp, tau"):
        posterior.marginal("tua")
    with pytest.raises(ValueError, match="index below 2"):
        posterior.marginal(2)
    with pytest.raises(TypeError, match="index or a name"):
        posterior.marginal(1.0)
    with pytest.raises(ValueError, match="grid must be a vector"):
        posterior.marginal(0, [[1.0]])


def test_a_narrow_posterior_keeps_its_covariance():
    """Posterior sd 1/500 of the box, weights of 2e4 that cancel: about the box's centre its variance is 4e-5 off."""
    box = Uniform([-1.0], [1.0])
    X = 0.9 + 0.003 * np.linspace(-3.0, 3.0, 9)[:, None]
    gp = condition(X, np.exp(-0.25 * np.square((X[:, 0] - 0.9) / 0.002)), np.array([0.006]))
    density = QuadraticDensity(X, gp.lengthscales, np.outer(gp.weights, gp.weights), 0.0, box)
    x, weights = legendre(0.84, 0.96, 10)
    p = weights * np.square(reference.kernel_matrix(gp.unit_kernel, x[:, None], X) @ gp.weights)
    mean = p @ x / p.sum()
    variance = p @ np.square(x - mean) / p.sum()
    _, closed_mean, closed_cov = density.moments()
    assert abs(closed_mean[0] - mean) < 1e-8 * np.sqrt(variance)
    assert_allclose(closed_cov[0, 0], variance, rtol=1e-6)


def test_returned_moments_are_copies():
    posterior = build(chart(prior("gaussian", 2)), "wsabi-l")
    posterior.mean[:] = 0.0
    posterior.cov[:] = 0.0
    assert np.all(posterior.mean != 0.0)
    assert np.all(np.diag(posterior.cov) > 0.0)


def test_a_model_without_mass_says_so():
    space = chart(prior("gaussian", 1))
    gp = condition(space.measure.sample(4, 0), -np.ones(4), np.array([1.0]))
    posterior = ClosedForm.from_gp(
        gp, alpha=0.0, method="bq", measure=space.measure, chart=space, log_l_max=0.0, log_z=-np.inf
    )
    for use in (lambda: posterior.mean, lambda: posterior.sample(3), lambda: posterior.marginal(0)):
        with pytest.raises(NumericalError, match="not positive"):
            use()


def test_units_change_nothing():
    """x scaled by 1e6 on one axis and 1e-6 on the other: the same posterior in those units."""
    units = np.array([1e6, 1e-6])
    plain = prior("gaussian", 2)
    scaled = Gaussian(plain.mean * units, plain.cov * np.outer(units, units))
    a, b = build(chart(plain), "wsabi-m"), build(chart(scaled), "wsabi-m")
    assert_allclose(b.mean, a.mean * units, rtol=1e-7)
    assert_allclose(b.cov, a.cov * np.outer(units, units), rtol=1e-6)


@pytest.mark.parametrize("sd", [1e-3, 0.1, 1.9, 2.1, 1e3])
def test_truncated_moments(sd):
    centres = np.linspace(-1.0, 1.0, 7)
    one = np.ones(1)
    mean, variance = truncated_moments(centres[None, :], sd * one, -one, one)
    for k, y in enumerate(centres):
        x, weights = legendre(max(-1.0, y - 9 * sd), min(1.0, y + 9 * sd), 6)
        p = weights * np.exp(-0.5 * np.square((x - y) / sd))
        p /= p.sum()
        assert_allclose(mean[0, k], p @ x, rtol=1e-12, atol=1e-14)
        # The closed form alone would be 1e-7 off for the longest sd.
        assert_allclose(variance[0, k], p @ np.square(x - p @ x), rtol=1e-11)
