"""Densities against scipy.stats, gradients, moments of draws, and the text of every refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import reference
from wsabi._core.types import Array
from wsabi.priors import Gaussian, GaussianMixture, Measure, Polynomial, Uniform

KINDS = ("gaussian", "mixture", "box", "polynomial")


def scipy_log_pdf(measure: Measure, X: Array) -> Array:
    if isinstance(measure, Gaussian):
        return np.atleast_1d(stats.multivariate_normal(measure.mean, measure.cov).logpdf(X))
    if isinstance(measure, GaussianMixture):
        terms = [w * np.exp(scipy_log_pdf(c, X)) for w, c in zip(measure.weights, measure.components, strict=True)]
        return np.asarray(np.log(np.sum(terms, axis=0)))
    if isinstance(measure, Polynomial):
        columns = zip(((X - measure.low) / (measure.high - measure.low)).T, measure.coefficients, strict=True)
        values = np.prod([np.polyval(c[::-1], t) for t, c in columns], axis=0)
        return np.asarray(np.log(values / np.prod(measure.high - measure.low)))
    return np.asarray(stats.uniform(measure.low, measure.high - measure.low).logpdf(X).sum(axis=1))


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_density_and_gradient(kind: str, dim: int) -> None:
    measure = reference.make_measure(kind, dim)
    X = measure.sample(5, 0)
    assert measure.dim == dim
    assert_allclose(measure.log_pdf(X), scipy_log_pdf(measure, X), rtol=1e-12)
    for x in X:
        value, gradient = measure.log_pdf_and_gradient(x)
        assert_allclose(value, measure.log_pdf(x[None])[0], rtol=1e-13)
        assert_allclose(gradient, measure.grad_log_pdf(x[None])[0], rtol=1e-12, atol=1e-14)
        reference.assert_gradient(
            lambda y: float(measure.log_pdf(y[None])[0]), lambda y: measure.log_pdf_and_gradient(y)[1], x
        )


def test_density_far_out_is_finite_and_outside_the_box_minus_infinity() -> None:
    far = np.full((1, 2), 1e4)
    for kind in ("gaussian", "mixture"):
        measure = reference.make_measure(kind, 2)
        assert np.isfinite(measure.log_pdf(far)[0])
        assert measure.log_pdf(far)[0] < -1e6
        assert np.all(np.isfinite(measure.grad_log_pdf(far)))
    box = Uniform([0.0, 0.0], [1.0, 2.0])
    assert_array_equal(box.log_pdf(np.array([[0.5, 2.1], [-0.1, 1.0]])), [-np.inf, -np.inf])
    assert_array_equal(box.log_pdf(np.array([[0.0, 2.0], [1.0, 0.0]])), [-np.log(2.0)] * 2)  # the edge belongs to it


@pytest.mark.parametrize("kind", KINDS)
def test_stated_moments_are_those_of_the_density(kind: str) -> None:
    measure = reference.make_measure(kind, 2)
    nodes, weights = reference.quadrature(measure, 6)  # exact for polynomials of degree 11
    assert_allclose(weights @ nodes, measure.mean, rtol=1e-13)
    centred = nodes - measure.mean
    assert_allclose((weights * centred.T) @ centred, measure.cov, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_stated_moments(kind: str, n: int = 40_000, false_alarm: float = 1e-6) -> None:
    """Means and second moments, each within its own standard error; two-sided, Bonferroni over all of them."""
    measure = reference.make_measure(kind, 3)
    centred = measure.sample(n, 1) - measure.mean
    products = np.einsum("nd,ne->nde", centred, centred).reshape(n, -1)
    found = np.concatenate([centred, products - measure.cov.ravel()], axis=1)
    z = found.mean(axis=0) / (found.std(axis=0) / np.sqrt(n))
    assert np.all(np.abs(z) < stats.norm.isf(false_alarm / (2 * z.size)))
    assert np.all(np.isfinite(measure.log_pdf(measure.sample(100, 2))))


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_decides_the_draws(kind: str) -> None:
    measure = reference.make_measure(kind, 2)
    assert_array_equal(measure.sample(3, 7), measure.sample(3, np.random.default_rng(7)))
    assert np.any(measure.sample(3, 7) != measure.sample(3, 8))
    assert measure.sample(3).shape == (3, 2)
    with pytest.raises(TypeError, match="rng must be an int, a numpy Generator or None; got float"):
        measure.sample(1, 1.0)  # type: ignore[arg-type]


def test_covariance_as_scalar_vector_or_matrix() -> None:
    for cov in (2.0, [2.0, 2.0], np.diag([2.0, 2.0])):
        measure = Gaussian([0.0, 1.0], cov)
        assert_array_equal(measure.cov, np.diag([2.0, 2.0]))
        assert_allclose(measure.factor, np.sqrt(2.0) * np.eye(2), rtol=1e-15)
    assert_array_equal(Gaussian(3.0, [1.0, 4.0]).mean, [3.0, 3.0])  # a scalar mean takes its length from cov
    assert Gaussian(0.0).names == ("x0",)
    assert Gaussian([0, 0], names=["a", "b"]).names == ("a", "b")


def test_acceptance_does_not_depend_on_units() -> None:
    correlation = np.array([[1.0, 0.9], [0.9, 1.0]])
    units = np.array([1e-9, 1e9])
    measure = Gaussian([0.0, 0.0], correlation * np.outer(units, units))
    plain = Gaussian([0.0, 0.0], correlation)
    X = np.array([[0.3, -0.4]])
    assert_allclose(measure.log_pdf(X * units), plain.log_pdf(X), rtol=1e-12)


def test_mixture_takes_one_covariance_or_one_each() -> None:
    shared = GaussianMixture([1.0, 3.0], [0.0, 4.0], 0.25)
    assert_array_equal(shared.weights, [0.25, 0.75])
    assert shared.dim == 1
    assert_array_equal([c.cov[0, 0] for c in shared.components], [0.25, 0.25])
    each = GaussianMixture([1.0, 1.0], [[0.0, 0.0], [1.0, 1.0]], [2.0, [[1.0, 0.3], [0.3, 1.0]]], names=("a", "b"))  # type: ignore[arg-type]
    assert_array_equal(each.components[0].cov, 2.0 * np.eye(2))
    assert each.components[1].cov[0, 1] == 0.3
    assert each.names == ("a", "b")


def test_one_covariance_matrix_is_not_taken_for_vectors_of_variances() -> None:
    """As many components as dimensions: rows of one matrix could pass for variances; shared or refused, not misread."""
    cov = np.array([[1.0, 0.5], [0.5, 1.0]])
    try:
        mixture = GaussianMixture([1.0, 1.0], np.zeros((2, 2)), cov)
    except ValueError:
        return
    for component in mixture.components:
        assert_array_equal(component.cov, cov)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Gaussian([[0.0]]), r"mean must be a scalar or a vector; got shape \(1, 1\)"),
        (lambda: Gaussian([]), r"mean must be a scalar or a vector; got shape \(0,\)"),
        (lambda: Gaussian([np.nan]), "mean must be finite; got"),
        (lambda: Gaussian([0.0, 0.0], [1.0, 1.0, 1.0]), r"cov must be a scalar, \(2,\) .*\(2, 2\) .*got shape \(3,\)"),
        (lambda: Gaussian([0.0], np.inf), "cov must be finite"),
        (lambda: Gaussian([0.0, 0.0], [[1.0, 0.2], [0.3, 1.0]]), "cov must be symmetric"),
        (lambda: Gaussian([0.0, 0.0], [1.0, 0.0]), "cov must have a positive diagonal; got"),
        (lambda: Gaussian([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]), "cov must be positive definite"),
        (lambda: Gaussian([0.0, 0.0], names=["a"]), "names must be 2 different strings, one per parameter; got"),
        (lambda: Gaussian([0.0, 0.0], names=["a", "a"]), "names must be 2 different strings"),
        (lambda: GaussianMixture([1.0, 0.0], [0.0, 1.0]), "weights must be positive; got"),
        (lambda: GaussianMixture([1.0, 1.0], [0.0]), r"means must have shape \(2, D\) to match weights; got \(1, 1\)"),
        (
            lambda: GaussianMixture([1.0], [0.0], [1.0, 2.0]),
            r"covs must be a scalar, one \(1, 1\) matrix or 1 covariances; got 2",
        ),
        (lambda: GaussianMixture([1.0, 1.0], [0.0, 1.0], [[1.0, 2.0], [1.0, 2.0]]), r"cov.* got shape \(2,\)"),
        (lambda: Uniform([0.0, 0.0], [1.0, 1.0, 1.0]), r"low \(2,\) and high \(3,\) must have the same length"),
        (lambda: Uniform([0.0, 1.0], [1.0, 1.0]), r"low must be below high in every dimension; got"),
        (lambda: Uniform(-np.inf, 0.0), "low must be finite; got"),
        (lambda: Uniform(0.0, [[1.0]]), "high must be a scalar or a vector; got shape"),
    ],
)
def test_every_refusal_names_its_argument(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
