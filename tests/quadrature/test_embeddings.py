"""Closed forms against brute-force quadrature, exact rational arithmetic, and the symmetries they must have."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference
from wsabi._core.types import Array
from wsabi.gp.kernel import SquaredExponential
from wsabi.priors import Gaussian, GaussianMixture, Measure, Polynomial, Uniform
from wsabi.quadrature import embeddings

Problem = tuple[SquaredExponential, Measure, Array, Array]
KINDS = ("gaussian", "mixture", "box", "polynomial")
EPS = np.finfo(float).eps


def make_covariance(rng: np.random.Generator, dim: int, width: float = 1.0) -> Array:
    """A full covariance with unequal standard deviations and correlations well away from 0 and 1."""
    B = rng.standard_normal((dim, dim))
    C = B @ B.T + dim * np.eye(dim)
    sd = width * rng.uniform(0.6, 1.3, dim) / np.sqrt(np.diag(C))
    return C * np.outer(sd, sd)


def make_problem(kind: str, dim: int, seed: int = 0, n: int = 4, lengths: tuple[float, float] = (2.5, 5.0)) -> Problem:
    """Kernel with unequal length-scales, measure off the origin, points X (n, D) and Y (3, D) in and around it."""
    rng = np.random.default_rng(seed)
    kernel = SquaredExponential(rng.uniform(0.5, 2.0), rng.uniform(*lengths, dim))
    mean = rng.uniform(0.4, 1.2, dim) * np.where(np.arange(dim) % 2, -1.0, 1.0)
    measure: Measure
    if kind == "gaussian":
        measure = Gaussian(mean, make_covariance(rng, dim))
    elif kind == "mixture":
        covs = [make_covariance(rng, dim), make_covariance(rng, dim, 0.7)]
        measure = GaussianMixture([1.0, 2.0], mean + rng.standard_normal((2, dim)), covs)
    else:
        half = rng.uniform(0.7, 2.0, dim)
        measure = Uniform(mean - half, mean + half)
        if kind == "polynomial":
            measure = Polynomial(measure.low, measure.high, [reference.POLYNOMIALS[d % 3] for d in range(dim)])
    return kernel, measure, mean + 1.5 * rng.standard_normal((n, dim)), mean + 1.5 * rng.standard_normal((3, dim))


def all_forms(kernel: SquaredExponential, measure: Measure, X: Array, Y: Array) -> dict[str, Array | float]:
    """Every closed form at once, by name."""
    return {
        "kernel_mean": embeddings.kernel_mean(kernel, measure, X),
        "kernel_variance": embeddings.kernel_variance(kernel, measure),
        "squared_kernel_mean": embeddings.squared_kernel_mean(kernel, measure),
        "product_mean": embeddings.product_mean(kernel, measure, X, Y),
        "product_mean_symmetric": embeddings.product_mean(kernel, measure, X),
        "product_mean_diagonal": embeddings.product_mean_diagonal(kernel, measure, X),
        "chain_mean": embeddings.chain_mean(kernel, measure, X, Y),
        "chain_mean_symmetric": embeddings.chain_mean(kernel, measure, X),
        "chain_mean_diagonal": embeddings.chain_mean_diagonal(kernel, measure, X),
    }


def all_oracles(
    kernel: SquaredExponential, measure: Measure, X: Array, Y: Array, order: int
) -> dict[str, Array | float]:
    """The same by quadrature."""
    W = reference.product_mean(kernel, measure, X, np.concatenate([X, Y]), order)
    T = reference.chain_mean(kernel, measure, X, np.concatenate([X, Y]), order)
    return {
        "kernel_mean": reference.kernel_mean(kernel, measure, X, order),
        "kernel_variance": reference.kernel_variance(kernel, measure, order),
        "squared_kernel_mean": reference.kernel_variance(kernel, measure, order, power=2),
        "product_mean": W[:, len(X) :],
        "product_mean_symmetric": W[:, : len(X)],
        "product_mean_diagonal": np.diag(W),
        "chain_mean": T[:, len(X) :],
        "chain_mean_symmetric": T[:, : len(X)],
        "chain_mean_diagonal": np.diag(T),
    }


def assert_same(actual: dict[str, Array | float], expected: dict[str, Array | float], rtol: float) -> None:
    assert actual.keys() == expected.keys()
    for name in expected:
        assert_allclose(actual[name], expected[name], rtol=rtol, atol=0.0, err_msg=name)


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_closed_forms_match_quadrature(kind: str, dim: int) -> None:
    # Longer length-scales where the tensor rule has fewer nodes an axis: the oracle must reach 1e-10 in seconds.
    lengths, orders = {1: ((0.8, 1.6), (60, 70)), 2: ((2.0, 4.0), (24, 28)), 3: ((4.0, 8.0), (11, 13))}[dim]
    problem = make_problem(kind, dim, lengths=lengths)
    coarse, fine = (all_oracles(*problem, order) for order in orders)
    assert_same(coarse, fine, rtol=1e-10)  # the oracle has converged
    assert_same(all_forms(*problem), fine, rtol=1e-10)  # sees 1e-10 in any factor


@pytest.mark.parametrize("length", [0.05, 0.2, 1.0, 5.0, 50.0])
def test_box_forms_keep_relative_accuracy_inside_and_outside(length: float) -> None:
    # Half-width 1.5; points to 1.6 half-widths from the centre, where at length-scale 0.05 T goes down to 1e-281:
    # a difference of error functions, or of corners of a bivariate normal, has no correct digit there.
    box = Uniform(-1.0, 2.0)
    kernel = SquaredExponential(1.0, 1.5 * length)
    X = 0.5 + 1.5 * np.array([-1.6, -1.3, -1.05, -1.0, -0.98, -0.4, 0.0, 0.7, 1.0, 1.02, 1.2, 1.5])[:, None]
    coarse, fine = (all_oracles(kernel, box, X, X, order) for order in (240, 280))
    assert_same(coarse, fine, rtol=1e-10)
    assert_same(all_forms(kernel, box, X, X), fine, rtol=1e-10)


@pytest.mark.parametrize("ratio", [1e-3, 1e-1, 1.0, 1e2, 1e3])
@pytest.mark.parametrize("dim", [1, 2])
def test_gaussian_forms_match_rational_arithmetic_at_any_lengthscale(dim: int, ratio: float) -> None:
    gaussian = Gaussian([0.7, -1.1][:dim], np.array([[1.0, 1.1], [1.1, 1.6]])[:dim, :dim])
    kernel = SquaredExponential(1.3, ratio * np.array([1.0, 1.5])[:dim])
    # Neighbours a few length-scales apart (at most half a standard deviation), near the mean and far from it.
    step = min(ratio, 0.1)
    offsets = np.array([[0.0, 0.0], [step, -0.7 * step], [-2.0 * step, step], [1.5, 1.0], [1.5 + step, 1.0]])
    X = gaussian.mean + offsets[:, :dim]
    # Distances by |a|² + |b|² − 2ab have round-off ε|x/l|², an absolute error of the exponent: 1e-9 at l = 1e-3 sd.
    rtol = 1e-13 + 8 * EPS * np.square(offsets[:, :dim] / kernel.lengthscales).sum(axis=1).max()
    assert rtol < 1e-8
    pairs = [(i, j) for i in range(5) for j in range(5) if abs(offsets[i, 0] - offsets[j, 0]) < 4 * step]
    W, T = embeddings.product_mean(kernel, gaussian, X, X), embeddings.chain_mean(kernel, gaussian, X, X)
    exact_W = [reference.exact_product_mean(kernel, gaussian, X[i], X[j]) for i, j in pairs]
    exact_T = [reference.exact_chain_mean(kernel, gaussian, X[i], X[j]) for i, j in pairs]
    assert_allclose([W[i, j] for i, j in pairs], exact_W, rtol=rtol)
    assert_allclose([T[i, j] for i, j in pairs], exact_T, rtol=rtol)
    means = [reference.exact_kernel_mean(kernel, gaussian, x) for x in X]
    assert_allclose(embeddings.kernel_mean(kernel, gaussian, X), means, rtol=1e-13)


def test_gaussian_forms_with_lengthscales_six_decades_apart() -> None:
    # Axis 0 has Λ ≪ Σ and axis 1 Λ ≫ Σ, and they are correlated: S = Σ − Σ(Λ+Σ)⁻¹Σ loses six digits on axis 0.
    gaussian = Gaussian([0.3, -0.2], [[1.0, 0.95], [0.95, 1.0]])
    kernel = SquaredExponential(1.0, [1e-3, 1e3])
    x, y = np.array([0.301, 0.9]), np.array([0.3005, -0.4])
    W = embeddings.product_mean(kernel, gaussian, x[None], y[None])
    T = embeddings.chain_mean(kernel, gaussian, x[None], y[None])
    assert_allclose(W, [[reference.exact_product_mean(kernel, gaussian, x, y)]], rtol=1e-11)
    assert_allclose(T, [[reference.exact_chain_mean(kernel, gaussian, x, y)]], rtol=1e-11)


def test_wide_box_has_the_limits_of_the_whole_line() -> None:
    # r = 1000 length-scales: interior points see no edge, and a point on the edge sees half a line. There the chain
    # integral is the quadrant probability of correlation ½ about its corner, ¼ + asin(½)/2π = ⅓.
    r, kernel, box = 1000.0, SquaredExponential(1.0, 1.0), Uniform(-1000.0, 1000.0)
    X = np.array([[-300.0], [0.0], [0.5], [2.5], [700.0]])
    gaps = np.square(X - X.T)
    near = np.sqrt(gaps) < 5
    W, T = embeddings.product_mean(kernel, box, X), embeddings.chain_mean(kernel, box, X)
    plane = 2 * math.pi / math.sqrt(3) / (4 * r**2)
    assert_allclose(W[near], (np.exp(-gaps / 4) * math.sqrt(math.pi) / (2 * r))[near], rtol=1e-12)
    assert_allclose(T[near], (np.exp(-gaps / 6) * plane)[near], rtol=1e-12)
    assert np.all(W >= 0)
    assert np.all(T >= 0)
    edge = np.array([[r], [-r]])
    assert_allclose(embeddings.kernel_mean(kernel, box, edge), math.sqrt(math.pi / 2) / (2 * r), rtol=1e-12)
    assert_allclose(embeddings.chain_mean_diagonal(kernel, box, edge), plane / 3, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ratio", [1e-3, 1e-2, 1e2, 1e3])
@pytest.mark.parametrize("n", [1, 6])
def test_extreme_lengthscales_give_finite_nonnegative_values(kind: str, ratio: float, n: int) -> None:
    _, measure, X, Y = make_problem(kind, 2, seed=3, n=n)
    forms = all_forms(SquaredExponential(1.0, ratio), measure, X, Y)
    for name, values in forms.items():
        assert np.all(np.isfinite(values)), name
        assert np.all(np.asarray(values) >= 0.0), name
        assert np.all(np.asarray(values) <= 1.0 + 1e-12), name  # k ≤ 1 and π has mass one
    if ratio >= 1e2:  # k is nearly constant over the measure and the points
        for values in forms.values():
            assert_allclose(values, 1.0, atol=100 / ratio**2)


@pytest.mark.parametrize("kind", KINDS)
def test_forms_at_no_points_are_empty(kind: str) -> None:
    kernel, measure, X, Y = make_problem(kind, 2)
    assert embeddings.kernel_mean(kernel, measure, X[:0]).shape == (0,)
    assert embeddings.product_mean(kernel, measure, X[:0], Y).shape == (0, 3)
    assert embeddings.chain_mean(kernel, measure, X[:0], Y).shape == (0, 3)
    assert embeddings.chain_mean_diagonal(kernel, measure, X[:0]).shape == (0,)


@pytest.mark.parametrize("kind", ["gaussian", "box"])
def test_twenty_dimensions_are_the_product_of_twenty_axes(kind: str) -> None:
    rng = np.random.default_rng(5)
    lengths, sd, mean = np.geomspace(0.1, 1e3, 20), rng.uniform(0.5, 2.0, 20), rng.standard_normal(20)
    X, Y = mean + sd * rng.standard_normal((5, 20)) * 0.3, mean + sd * rng.standard_normal((3, 20)) * 0.3
    kernel, axes = SquaredExponential(1.0, lengths), [SquaredExponential(1.0, length) for length in lengths]
    whole: Measure = Gaussian(mean, sd**2) if kind == "gaussian" else Uniform(mean - sd, mean + sd)
    parts: list[Measure] = [
        Gaussian(m, s**2) if kind == "gaussian" else Uniform(m - s, m + s) for m, s in zip(mean, sd, strict=True)
    ]
    single = [all_forms(k, m, X[:, [d]], Y[:, [d]]) for d, (k, m) in enumerate(zip(axes, parts, strict=True))]
    expected = {name: np.prod([np.asarray(forms[name]) for forms in single], axis=0) for name in single[0]}
    assert_same(all_forms(kernel, whole, X, Y), expected, rtol=1e-11)  # exponents up to 1e3 of 20 axes: 1e3 ε each


def test_rotated_twenty_dimensions_stay_positive_definite() -> None:
    kernel, gaussian, X, _ = make_problem("gaussian", 20, seed=2, n=40, lengths=(3.0, 9.0))
    for A in (embeddings.product_mean(kernel, gaussian, X), embeddings.chain_mean(kernel, gaussian, X)):
        scaled = A / np.sqrt(np.outer(np.diag(A), np.diag(A)))
        assert np.linalg.eigvalsh(scaled).min() > -40 * EPS * 10  # round-off of N unit entries


problems = st.builds(make_problem, st.sampled_from(KINDS), st.integers(1, 4), st.integers(0, 10_000), st.integers(1, 7),
                     st.sampled_from([(0.2, 0.6), (0.5, 3.0), (5.0, 50.0)]))  # fmt: skip


@given(problems)
def test_square_forms_are_symmetric_and_agree_with_the_others(problem: Problem) -> None:
    kernel, measure, X, _ = problem
    forms = all_forms(kernel, measure, X, X)
    for name in ("product_mean", "chain_mean"):
        square = np.asarray(forms[f"{name}_symmetric"])
        assert_array_equal(square, square.T)
        assert_array_equal(np.diag(square), forms[f"{name}_diagonal"])
        # Exponents here are at most a few thousand, with round-off ε times that.
        assert_allclose(square, forms[name], rtol=1e-11, atol=1e-300)


@given(problems, st.randoms(use_true_random=False))
def test_reordering_points_reorders_values(problem: Problem, random: object) -> None:
    kernel, measure, X, Y = problem
    order = np.array(random.sample(range(len(X)), len(X)))  # type: ignore[attr-defined]
    before, after = all_forms(kernel, measure, X, Y), all_forms(kernel, measure, X[order], Y)
    for name in ("kernel_mean", "product_mean", "chain_mean", "product_mean_diagonal", "chain_mean_diagonal"):
        assert_allclose(after[name], np.asarray(before[name])[order], rtol=1e-11, atol=1e-300)
    for name in ("product_mean_symmetric", "chain_mean_symmetric"):
        assert_allclose(after[name], np.asarray(before[name])[np.ix_(order, order)], rtol=1e-11, atol=1e-300)


def moved(measure: Measure, scale: Array, shift: Array) -> Measure:
    """The measure of scale · x + shift."""
    if isinstance(measure, Gaussian):
        return Gaussian(scale * measure.mean + shift, measure.cov * np.outer(scale, scale))
    if isinstance(measure, GaussianMixture):
        parts = [moved(c, scale, shift) for c in measure.components]
        return GaussianMixture(measure.weights, np.stack([p.mean for p in parts]), [p.cov for p in parts])
    low, high = scale * measure.low + shift, scale * measure.high + shift
    return Uniform(low, high) if isinstance(measure, Uniform) else Polynomial.of_densities(low, high, measure.densities)


@given(problems, st.floats(-10.0, 10.0))
def test_shifting_points_with_the_measure_changes_nothing(problem: Problem, shift: float) -> None:
    kernel, measure, X, Y = problem
    ones = np.ones(measure.dim)
    before = all_forms(kernel, measure, X, Y)
    after = all_forms(kernel, moved(measure, ones, shift * ones), X + shift, Y + shift)
    for name in before:  # moving by 10 rounds x by 1e-15, and x/l enters exponents squared, up to (10/0.2)²
        assert_allclose(after[name], before[name], rtol=1e-9, atol=1e-300, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_measure_far_from_the_origin_loses_nothing(kind: str) -> None:
    # On a grid of 2⁻²⁰ a shift by 2²⁰ is exact, so any change is the code's own: uncentred distances err by 4e-3.
    _, measure, X, Y = make_problem(kind, 2, seed=1)
    kernel, ones = SquaredExponential(1.0, [0.5, 0.75]), np.ones(2)
    X, Y = np.round(X * 2**20) / 2**20, np.round(Y * 2**20) / 2**20
    if isinstance(measure, GaussianMixture):
        means = np.round(np.stack([c.mean for c in measure.components]) * 2**20) / 2**20
        measure = GaussianMixture(measure.weights, means, [c.cov for c in measure.components])
    elif isinstance(measure, Gaussian):
        measure = Gaussian(np.round(measure.mean * 2**20) / 2**20, measure.cov)
    else:
        low, high = np.round(measure.low * 2**20) / 2**20, np.round(measure.high * 2**20) / 2**20
        measure = moved(measure, (high - low) / (measure.high - measure.low), np.zeros(2))
        measure = moved(measure, ones, low - measure.low)
    far = all_forms(kernel, moved(measure, ones, 2.0**20 * ones), X + 2.0**20, Y + 2.0**20)
    assert_same(far, all_forms(kernel, measure, X, Y), rtol=1e-12)


@given(problems, st.integers(-6, 6))
def test_units_of_the_axes_do_not_matter(problem: Problem, decades: int) -> None:
    kernel, measure, X, Y = problem
    scale = 10.0 ** (decades * np.where(np.arange(measure.dim) % 2, -1.0, 1.0))
    rescaled = SquaredExponential(kernel.scale, kernel.lengthscales * scale)
    before = all_forms(kernel, measure, X, Y)
    after = all_forms(rescaled, moved(measure, scale, np.zeros(measure.dim)), X * scale, Y * scale)
    for name in before:
        assert_allclose(after[name], before[name], rtol=1e-10, atol=1e-300, err_msg=name)


@given(problems, st.floats(0.1, 10.0))
def test_each_form_has_its_own_power_of_the_scale(problem: Problem, factor: float) -> None:
    kernel, measure, X, Y = problem
    before = all_forms(kernel, measure, X, Y)
    after = all_forms(SquaredExponential(factor * kernel.scale, kernel.lengthscales), measure, X, Y)
    for name, values in before.items():
        power = 2 if name in ("kernel_mean", "kernel_variance") else 6 if name.startswith("chain") else 4
        assert_allclose(after[name], factor**power * np.asarray(values), rtol=1e-12, atol=1e-290, err_msg=name)


def test_mixture_of_equal_components_is_the_component() -> None:
    kernel, gaussian, X, Y = make_problem("gaussian", 3)
    mixture = GaussianMixture([0.2, 0.5, 0.3], np.tile(gaussian.mean, (3, 1)), [gaussian.cov] * 3)
    assert_same(all_forms(kernel, mixture, X, Y), all_forms(kernel, gaussian, X, Y), rtol=1e-13)


def test_one_lengthscale_serves_every_axis() -> None:
    for kind in KINDS:
        _, measure, X, Y = make_problem(kind, 3)
        one, each = SquaredExponential(1.2, 0.8), SquaredExponential(1.2, [0.8, 0.8, 0.8])
        assert_same(all_forms(one, measure, X, Y), all_forms(each, measure, X, Y), rtol=0.0)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_product_gaussian_matches_moments_by_quadrature(dim: int) -> None:
    kernel, gaussian, X, _ = make_problem("gaussian", dim)
    assert isinstance(gaussian, Gaussian)
    product = embeddings.product_gaussian(kernel, gaussian, X)
    nodes, weights = reference.quadrature(gaussian, 24)
    K = reference.kernel_matrix(kernel, X, nodes)
    for i, j in [(0, 0), (0, 1), (3, 2)]:
        density = weights * K[i] * K[j] / (weights * K[i] * K[j]).sum()
        mean = density @ nodes
        assert_allclose(product.halves[i] + product.halves[j], mean, rtol=1e-10)
        assert_allclose(product.slope @ (X[i] + X[j]) / 2 + product.offset, mean, rtol=1e-10)
        assert_allclose(product.cov, (nodes - mean).T @ (density[:, None] * (nodes - mean)), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("length", [1e-3, 1.0, 1e3])
def test_product_gaussian_covariance_does_not_cancel(length: float) -> None:
    # On one axis S = l²σ²/(l² + 2σ²): Σ − Σ(Λ/2+Σ)⁻¹Σ would keep ten digits at l = 1e-3, and its twin at 1e3.
    product = embeddings.product_gaussian(SquaredExponential(1.0, length), Gaussian(0.0, 0.49), np.zeros((1, 1)))
    assert_allclose(product.cov, length**2 * 0.49 / (length**2 + 2 * 0.49), rtol=1e-14)
    assert_allclose(product.slope, 2 * 0.49 / (length**2 + 2 * 0.49), rtol=1e-14)


def test_bad_input_is_named() -> None:
    kernel, gaussian, X, _ = make_problem("gaussian", 2)
    with pytest.raises(ValueError, match=re.escape("X must have shape (N, 2), one point per row; got (2,).")):
        embeddings.kernel_mean(kernel, gaussian, X[0])
    with pytest.raises(ValueError, match=re.escape("Y must have shape (N, 2), one point per row; got (4, 1).")):
        embeddings.chain_mean(kernel, gaussian, X, X[:, :1])
    with pytest.raises(ValueError, match=r"kernel\.lengthscales must be one or 2, as measure has dimensions; got 3"):
        embeddings.kernel_variance(SquaredExponential(1.0, [1.0, 2.0, 3.0]), gaussian)

    class Other:
        dim = 2

    with pytest.raises(TypeError, match="measure must be a Gaussian, GaussianMixture, Uniform or Polynomial; got"):
        embeddings.kernel_variance(kernel, Other())  # type: ignore[arg-type]
