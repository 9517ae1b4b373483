"""E[Z] and V[Z] against brute-force quadrature of the model's own m and C, and against the true χ² process."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

import reference
from wsabi._core.types import Array
from wsabi.errors import NumericalError
from wsabi.gp.exact import GP, condition
from wsabi.priors import Gaussian, Measure
from wsabi.quadrature import embeddings
from wsabi.quadrature.integral import _bq_variance, _clip, _matching_moments, moments
from wsabi.quadrature.warp import latent_values, likelihood_moments, offset
from wsabi.settings import Method

METHODS: tuple[Method, ...] = ("wsabi-l", "wsabi-m", "bq")
KINDS = ("gaussian", "mixture", "box", "polynomial")
# Quadrature orders, Q^D nodes and all pairs of them, and the length-scales for which they have converged.
ORDERS = {1: (50, 70), 2: (30, 36), 3: (11, 13)}
LENGTHS = {1: (1.0, 1.5), 2: (2.0, 3.0), 3: (4.0, 6.0)}


def make_gp(measure: Measure, lengths: tuple[float, float], n: int = 6, seed: int = 0) -> GP:
    """Values of no special shape at points about a length-scale apart."""
    rng = np.random.default_rng([seed, measure.dim])
    X = measure.mean + reference.spread_points(n, measure.dim, rng, width=2.5 * lengths[1])
    return condition(X, rng.uniform(0.2, 1.4, n), rng.uniform(*lengths, measure.dim), scale=1.3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_moments_match_brute_force(kind: str, dim: int, method: Method) -> None:
    measure = reference.make_measure(kind, dim)
    gp = make_gp(measure, LENGTHS[dim])
    coarse, fine = (reference.moments(gp, measure, 0.05, method, order) for order in ORDERS[dim])
    assert_allclose(coarse, fine, rtol=1e-9)  # the oracle has converged
    found = moments(gp, measure, 0.05, method)
    assert_allclose([found.mean, found.variance], fine, rtol=1e-8)  # sees 1e-8 in any factor
    assert not found.clipped


def test_pending_points_do_not_enter() -> None:
    measure = reference.make_measure("gaussian", 2)
    gp = make_gp(measure, (1.0, 2.0))
    before = {method: moments(gp, measure, 0.0, method) for method in METHODS}
    gp.append(measure.mean)
    assert {method: moments(gp, measure, 0.0, method) for method in METHODS} == before


def figure_3() -> tuple[GP, Gaussian, float]:
    """The paper's figure 3: ℓ = exp(−x²) at seven points on [−2, 2], α = 0.8 min ℓ."""
    X = np.linspace(-2.0, 2.0, 7)[:, None]
    likelihood = np.exp(-np.square(X[:, 0]))
    alpha = offset(likelihood, 0.8)
    # A length-scale of half the spacing of the points leaves C̃ of the order of m̃² between them: the χ² process is far
    # from Gaussian there.
    return condition(X, latent_values(likelihood, alpha, "wsabi-m"), np.array([0.35])), Gaussian([0.0], 1.0), alpha


def z_scores(samples: Array, mean: Array, variance: Array) -> Array:
    """Sample mean and sample second moment about ``mean``, each in its own standard errors."""
    centred = samples - mean
    found = np.concatenate([centred, centred**2 - variance], axis=1)
    return np.asarray(found.mean(axis=0) / (found.std(axis=0) / np.sqrt(len(samples))))


def test_figure_3_against_samples_of_the_process(n: int = 200_000, false_alarm: float = 1e-6) -> None:
    """M's moments of ℓ(x) and of Z are those of α + ½ℓ̃² with ℓ̃ drawn from the GP; L's are not.

    Two-sided, Bonferroni over all moments. Z is a weighted sum over 300 Gauss-Legendre nodes on [−6, 6].
    """
    gp, measure, alpha = figure_3()
    nodes, weights = np.polynomial.legendre.leggauss(300)
    grid, pi = 6.0 * nodes[:, None], 6.0 * weights * stats.norm.pdf(6.0 * nodes)
    m_tilde, c_tilde = gp.covariance(grid)
    values, vectors = np.linalg.eigh(c_tilde)
    root = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, values > 1e-13 * values[-1]]
    shown = np.arange(90, 210, 8)  # fifteen of the nodes, over [−3.5, 3.5]
    rng, kept = np.random.default_rng(0), []
    for _ in range(n // 10_000):
        draws = alpha + 0.5 * np.square(m_tilde + rng.standard_normal((10_000, root.shape[1])) @ root.T)
        kept.append(np.column_stack([draws[:, shown], draws @ pi]))
    samples = np.concatenate(kept)
    scores = {}
    for method in ("wsabi-m", "wsabi-l"):
        m, c = likelihood_moments(method, alpha, m_tilde[shown], np.diag(c_tilde)[shown])
        z = moments(gp, measure, alpha, method)
        scores[method] = z_scores(samples, np.append(m, z.mean), np.append(c, z.variance))
    limit = stats.norm.isf(false_alarm / (2 * 2 * samples.shape[1]))
    assert np.all(np.abs(scores["wsabi-m"]) < limit)
    assert np.max(np.abs(scores["wsabi-l"])) > 2 * limit  # the test can tell the two apart


def test_figure_3_linearisation_lies_below_moment_matching() -> None:
    gp, measure, alpha = figure_3()
    grid = np.linspace(-5.0, 5.0, 101)[:, None]
    m_tilde, c_tilde = gp.predict(grid)
    mean_l, mean_m = (likelihood_moments(method, alpha, m_tilde, c_tilde)[0] for method in ("wsabi-l", "wsabi-m"))
    assert np.all(mean_l <= mean_m)
    linear, matched = moments(gp, measure, alpha, "wsabi-l"), moments(gp, measure, alpha, "wsabi-m")
    assert linear.mean < matched.mean
    assert linear.variance < matched.variance


@pytest.mark.parametrize("kind", KINDS)
def test_linear_model_is_exact_in_the_span_of_the_kernels(kind: str) -> None:
    """ℓ = α + ½(Σ_n c_n k(x, x_n))² is the model itself once the x_n are data: Z to round-off, whatever λ."""
    measure = reference.make_measure(kind, 2)
    gp = make_gp(measure, (1.5, 2.0))
    coefficients = np.random.default_rng(3).standard_normal(gp.n)
    gp.set_values((gp.unit_kernel.gram(gp.X) + gp.jitter * np.eye(gp.n)) @ coefficients)
    nodes, weights = reference.quadrature(measure, 40)
    exact = weights @ (0.3 + 0.5 * np.square(gp.unit_kernel(nodes, gp.X) @ coefficients))
    assert_allclose(moments(gp, measure, 0.3, "wsabi-l").mean, exact, rtol=1e-8)


@given(st.integers(0, 200), st.sampled_from(KINDS), st.integers(1, 3), st.floats(0.0, 0.9), st.floats(0.3, 5.0))
def test_the_mean_is_never_below_the_offset(seed: int, kind: str, dim: int, alpha: float, length: float) -> None:
    measure = reference.make_measure(kind, dim, seed)
    gp = make_gp(measure, (length, length), seed=seed)
    linear, matched = (moments(gp, measure, alpha, method) for method in ("wsabi-l", "wsabi-m"))
    assert alpha <= linear.mean <= matched.mean
    assert linear.variance > 0.0
    assert matched.variance >= linear.variance * (1 - 1e-6)


@given(st.integers(0, 200), st.sampled_from(METHODS), st.floats(-1e3, 1e3))
def test_order_and_origin_do_not_matter(seed: int, method: Method, shift: float) -> None:
    measure = reference.make_measure("gaussian", 2, seed)
    gp = make_gp(measure, (0.8, 1.6), seed=seed)
    values = gp.factor.lower() @ gp.whitened
    order = np.random.default_rng(seed).permutation(gp.n)
    other = condition(gp.X[order] + shift, values[order], gp.lengthscales, scale=gp.scale)
    moved = Gaussian(measure.mean + shift, measure.cov)
    before, after = moments(gp, measure, 0.1, method), moments(other, moved, 0.1, method)
    # A shift of 1e3 costs 1e-13 of x, times the condition of K.
    assert_allclose(after.mean, before.mean, rtol=1e-6)
    assert_allclose(after.variance, before.variance, rtol=1e-5)


@pytest.mark.parametrize(("method", "kind"), list(itertools.product(METHODS, KINDS)))
def test_units_do_not_matter(method: Method, kind: str) -> None:
    """x in other units per axis: Z is a number, not a density."""
    measure = reference.make_measure(kind, 1)
    gp = make_gp(measure, (0.8, 1.6))
    values = gp.factor.lower() @ gp.whitened
    before = moments(gp, measure, 0.1, method)
    for unit in (1e-6, 1e6):
        other = condition(gp.X * unit, values, gp.lengthscales * unit, scale=gp.scale)
        after = moments(other, scaled(measure, unit), 0.1, method)
        assert_allclose([after.mean, after.variance], [before.mean, before.variance], rtol=1e-9)


def scaled(measure: Measure, unit: float) -> Measure:
    """The same measure with x in units ``unit`` times smaller."""
    from wsabi.priors import GaussianMixture, Polynomial, Uniform

    if isinstance(measure, Uniform):
        return Uniform(measure.low * unit, measure.high * unit)
    if isinstance(measure, Polynomial):
        return Polynomial(measure.low * unit, measure.high * unit, measure.coefficients)
    if isinstance(measure, GaussianMixture):
        parts = measure.components
        return GaussianMixture(measure.weights, [c.mean * unit for c in parts], [c.cov * unit**2 for c in parts])
    return Gaussian(measure.mean * unit, measure.cov * unit**2)


@pytest.mark.parametrize("method", METHODS)
def test_one_datum(method: Method) -> None:
    """N = 1 at the mean of N(0, 1) with l = 1: every integral by hand."""
    gp = condition(np.zeros((1, 1)), np.array([2.0]), np.ones(1), scale=3.0)
    found = moments(gp, Gaussian([0.0], 1.0), 0.0, method)
    w, W, T = 1 / np.sqrt(2), 1 / np.sqrt(3), 1 / np.sqrt(8)  # ∫k = (1+1)^-½, ∫k² = (1+2)^-½, ∬kkk = ((2)(4))^-½
    k, u = 1 / np.sqrt(3), 1 / np.sqrt(5)  # ∬k = (1+2)^-½, ∬k² = (1+4)^-½
    expected = {
        "bq": (2 * w, 9 * (k - w**2)),
        "wsabi-l": (2 * W, 4 * 9 * (T - W**2)),
        "wsabi-m": (2 * W + 4.5 * (1 - W), 36 * (T - W**2) + 40.5 * (u - 2 * T + W**2)),
    }[method]
    assert_allclose([found.mean, found.variance], expected, rtol=1e-8)  # the jitter is 1e-10


def test_a_variance_lost_in_round_off_is_flagged_and_one_that_is_no_number_refused() -> None:
    assert _clip(0.5, 1e-9) == (0.5, False)
    assert _clip(1e-10, 1e-9) == (1e-9, True)
    assert _clip(-1.0, 1e-9) == (1e-9, True)
    for lost in (np.nan, np.inf):
        with pytest.raises(NumericalError, match=f"variance of Z is {lost}: the model's weights have overflowed"):
            _clip(lost, 1.0)


# Points on [−3, 3], their length-scale and how they lie: from a well-conditioned K to one of condition 1e11.
NEARLY_SINGULAR = [(6, 1.0, "grid"), (12, 1.5, "grid"), (16, 3.0, "grid"), (16, 20.0, "grid"), (16, 0.8, "clusters")]


def close_points(n: int, length: float, layout: str) -> GP:
    """A GP whose weights R⁻¹ℓ̃ are of the order of one, so that L's own round-off does not hide that of M."""
    rng = np.random.default_rng(n)
    X = np.linspace(-3.0, 3.0, n)[:, None]
    if layout == "clusters":
        X = np.repeat(np.linspace(-2.0, 2.0, n // 4), 4)[:, None] + 1e-4 * rng.standard_normal((n, 1))
    gp = condition(X, np.ones(n), np.array([length]), scale=1.0)
    R = gp.unit_kernel.gram(X) + gp.jitter * np.eye(n)
    gp.set_values(R @ rng.uniform(0.2, 1.0, n) / n, scale=1.0)
    return gp


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n", "length", "layout"), NEARLY_SINGULAR)
def test_a_variance_that_is_round_off_is_flagged(n: int, length: float, layout: str, method: Method) -> None:
    """Against sixty digits: what is not flagged is right to half of it, what is flagged no smaller than the truth."""
    gp = close_points(n, length, layout)
    values = gp.factor.lower() @ gp.whitened
    exact = float(reference.exact_variances(gp, values)[method])
    found = moments(gp, Gaussian([0.0], 1.0), 0.0, method)
    assert exact > 0.0
    if found.clipped:
        assert found.variance >= 0.9 * exact
    else:
        assert_allclose(found.variance, exact, rtol=0.5)
    assert found.variance < 1e-2  # the replacement is round-off, not a guess


@given(st.integers(4, 14), st.floats(0.2, 20.0), st.integers(0, 100))
def test_the_round_off_of_m_and_bq_bounds_the_error(n: int, length: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-3.0, 3.0, n))[:, None]
    values = rng.uniform(0.2, 1.0, n)
    gp, measure = condition(X, values, np.array([length]), scale=1.0), Gaussian([0.0], 1.0)
    exact = reference.exact_variances(gp, values)
    w = embeddings.kernel_mean(gp.unit_kernel, measure, X)
    variance, round_off = _bq_variance(gp, w, embeddings.kernel_variance(gp.unit_kernel, measure))
    assert abs(variance - float(exact["bq"])) <= round_off
    W, T = embeddings.product_mean(gp.unit_kernel, measure, X), embeddings.chain_mean(gp.unit_kernel, measure, X)
    _, spread, round_off = _matching_moments(gp, measure, W, T)
    assert abs(spread - float(exact["wsabi-m"] - exact["wsabi-l"])) <= round_off


@pytest.mark.parametrize("method", METHODS)
def test_round_off_is_flagged_and_covers_what_was_lost(method: Method) -> None:
    """Forty points of a smooth function in one dimension: V[Z] is far below the round-off of its terms."""
    X = np.linspace(-3.0, 3.0, 40)[:, None]
    gp = condition(X, np.exp(-0.25 * X[:, 0] ** 2), np.array([1.5]))
    found = moments(gp, Gaussian([0.0], 1.0), 0.0, method)
    truth = np.sqrt(2.0 / 3.0) if method == "bq" else 0.5 * np.sqrt(0.5)
    assert found.variance > 0.0
    assert abs(found.mean - truth) < 10.0 * np.sqrt(found.variance)
    assert found.variance < 1e-6
