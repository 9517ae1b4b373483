"""Mixtures of Student densities: the density is scipy's, the draws are its own, and fits find what is there."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from wsabi.adaptive.surrogate.students import Students, fit_students, joined, shape_of
from wsabi.adaptive.tuning import TUNING, tuned

DEGREES = TUNING.surrogate.degrees

Function = Callable[[np.ndarray], np.ndarray]


def a_mixture(dim: int, components: int = 3) -> Students:
    """Unequal weights, means apart, full covariances."""
    rng = np.random.default_rng(dim)
    A = rng.standard_normal((components, dim, dim))
    covs = A @ np.swapaxes(A, 1, 2) + 0.2 * np.eye(dim)
    weights = np.arange(1.0, components + 1.0)
    return Students(weights / weights.sum(), 2.0 * rng.standard_normal((components, dim)), covs)


def efficiency(proposal: Students, log_target: Function, n: int = 4000, seed: int = 9) -> float:
    """Effective share of n importance draws, (Σw)²/(n Σw²)."""
    X = proposal.sample(n, np.random.default_rng(seed))
    log_w = log_target(X) - proposal.log_pdf(X)
    w = np.exp(log_w - np.max(log_w))
    return float(w.sum() ** 2 / (n * np.square(w).sum()))


# -- the density ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 3, 7])
def test_log_pdf_is_that_of_scipy(dim: int) -> None:
    mixture = a_mixture(dim)
    X = 3.0 * np.random.default_rng(0).standard_normal((40, dim))
    X[-1] = 1e6  # a Student density is still finite out there
    terms = [
        math.log(w) + stats.multivariate_t(mean, cov, df=DEGREES).logpdf(X)
        for w, mean, cov in zip(mixture.weights, mixture.means, mixture.covs, strict=True)
    ]
    assert_allclose(mixture.log_terms(X), terms, rtol=1e-10, atol=1e-10)
    assert_allclose(mixture.log_pdf(X), np.logaddexp.reduce(terms), rtol=1e-10, atol=1e-10)
    assert_allclose(mixture.log_terms(X, mixture.distances(X)), mixture.log_terms(X), rtol=1e-14)
    one = Students.single(mixture.means[1], mixture.covs[1])
    assert_allclose(one.log_pdf(X), np.asarray(terms[1]) - math.log(mixture.weights[1]), rtol=1e-10, atol=1e-10)


def test_distances_are_those_of_the_inverse_covariances() -> None:
    mixture = a_mixture(3)
    X = np.random.default_rng(0).standard_normal((5, 3))
    for row, mean, cov in zip(mixture.distances(X), mixture.means, mixture.covs, strict=True):
        assert_allclose(row, np.einsum("ni,ij,nj->n", X - mean, np.linalg.inv(cov), X - mean), rtol=1e-9)


@pytest.mark.parametrize("dim", [1, 2])
def test_density_integrates_to_one(dim: int) -> None:
    """On all of R^D by x = tan θ in each axis, which brings the tails into reach; the rule has converged at 400."""

    def total(n: int) -> float:
        nodes, weights = np.polynomial.legendre.leggauss(n)
        angle = 0.5 * np.pi * nodes
        weights = 0.5 * np.pi * weights / np.square(np.cos(angle))
        grid = np.stack([axis.ravel() for axis in np.meshgrid(*[np.tan(angle)] * dim)], axis=1)
        products = np.prod([axis.ravel() for axis in np.meshgrid(*[weights] * dim)], axis=0)
        return float(products @ np.exp(mixture.log_pdf(grid)))

    mixture = a_mixture(dim)
    assert_allclose(total(300), total(400), rtol=1e-7)
    assert_allclose(total(400), 1.0, rtol=1e-7)


@pytest.mark.parametrize("dim", [1, 3])
def test_draws_have_the_mixtures_moments(dim: int, n: int = 40_000, false_alarm: float = 1e-6) -> None:
    """Mean Σw_k μ_k and second moments Σw_k (ν/(ν − 2) Σ_k + μ_k μ_kᵀ), two-sided, Bonferroni over all of them.

    The fourth moments that the standard errors of the second need exist, and the sample's own are taken for them.
    """
    mixture = a_mixture(dim)
    X = mixture.sample(n, np.random.default_rng(2))
    second = DEGREES / (DEGREES - 2.0) * mixture.covs + mixture.means[:, :, None] * mixture.means[:, None, :]
    expected = np.append(mixture.weights @ mixture.means, np.einsum("k,kij->ij", mixture.weights, second))
    values = np.column_stack([X, (X[:, :, None] * X[:, None, :]).reshape(n, -1)])
    z = (values.mean(axis=0) - expected) / (values.std(axis=0) / math.sqrt(n))
    assert np.all(np.abs(z) < stats.norm.isf(false_alarm / (2 * z.size)))


def test_draws_of_one_dimension_pass_a_kolmogorov_smirnov_test() -> None:
    mixture = a_mixture(1)
    X = mixture.sample(10_000, np.random.default_rng(3))[:, 0]
    scales = np.sqrt(mixture.covs[:, 0, 0])

    def cdf(x: np.ndarray) -> np.ndarray:
        parts = [stats.t(DEGREES, m, s).cdf(x) for m, s in zip(mixture.means[:, 0], scales, strict=True)]
        return np.asarray(mixture.weights @ parts)

    assert stats.kstest(X, cdf).pvalue > 1e-6  # the false-alarm rate


def test_no_draws_are_no_error() -> None:
    assert a_mixture(2).sample(0, np.random.default_rng(0)).shape == (0, 2)


@pytest.mark.parametrize("length", [1.0, 2.0**-20, 2.0**20])  # powers of two: the same round-off in each
def test_a_covariance_that_is_singular_to_round_off(length: float) -> None:
    """A ridge 1e-9 of its length thin: drawn from as if it were some 1e-7 of it thin, with the density of that.

    The other component shares its repair, and is as it was. With the kurtosis 9 of five degrees of freedom 2 000 draws
    know an sd to 3 %; 20 % is six times that.
    """
    along, across = np.array([1.0, 1.0]) / math.sqrt(2.0), np.array([1.0, -1.0]) / math.sqrt(2.0)
    cov = length**2 * (np.outer(along, along) + 1e-18 * np.outer(across, across))
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(cov)
    X = Students.single(np.zeros(2), cov).sample(2000, np.random.default_rng(0)) / length
    sd = math.sqrt(DEGREES / (DEGREES - 2.0))
    assert_allclose(np.std(X @ along), sd, rtol=0.2)
    assert 0.0 < np.std(X @ across) < 1e-6
    both = Students(np.full(2, 0.5), np.zeros((2, 2)), np.stack([cov, length**2 * np.eye(2)]))
    assert np.all(np.isfinite(both.log_pdf(length * X)))
    plain = Students.single(np.zeros(2), length**2 * np.eye(2))
    assert_allclose(both.log_terms(length * X)[1], math.log(0.5) + plain.log_pdf(length * X), atol=1e-10)
    # The density is that of the factors drawn with: on the ridge it is high by how thin they make it.
    thin = Students.single(np.zeros(2), both.factors[0] @ both.factors[0].T)
    assert_allclose(both.log_terms(length * X)[0], math.log(0.5) + thin.log_pdf(length * X), atol=1e-3)


def test_widened_and_joined_mixtures() -> None:
    one, other = a_mixture(2), a_mixture(2, 2)
    X = np.random.default_rng(1).standard_normal((6, 2))
    both = joined([(0.3, one), (0.7, other)])
    assert_allclose(both.weights.sum(), 1.0, rtol=1e-14)
    shares = np.logaddexp(math.log(0.3) + one.log_pdf(X), math.log(0.7) + other.log_pdf(X))
    assert_allclose(both.log_pdf(X), shares, rtol=1e-12)
    wide = Students.single(one.means[0], one.covs[0]).widened(4.0)
    assert_allclose(wide.log_pdf(X), stats.multivariate_t(one.means[0], 4.0 * one.covs[0], DEGREES).logpdf(X))


# -- fits -------------------------------------------------------------------------------------------------------------


def test_fit_recovers_two_separated_clusters() -> None:
    """A third and two thirds of 40 000 points, the labels never in doubt; five standard errors, false alarm 1e-5.

    Those of the means are at most 0.01, of the covariances 0.02; the pull to the whole sample's covariance, which is 90
    along the first axis, adds 0.013.
    """
    rng = np.random.default_rng(0)
    true = Students(
        np.array([1.0, 2.0]) / 3.0,
        np.array([[-10.0, 0.0], [10.0, 3.0]]),
        np.array([[[1.0, 0.6], [0.6, 1.0]], [[0.25, 0.0], [0.0, 2.0]]]),
    )
    X = true.sample(40_000, rng)
    fitted = fit_students(X, np.full(len(X), 1 / len(X)), 2, rng)
    order = np.argsort(fitted.means[:, 0])
    in_first = np.mean(X[:, 0] < 0.0)
    assert_allclose(fitted.weights[order], [in_first, 1.0 - in_first], atol=1e-3)
    assert_allclose(fitted.means[order], true.means, atol=0.05)
    assert_allclose(fitted.covs[order], true.covs, atol=0.12)


def test_fit_counts_points_by_their_weights() -> None:
    """Weights ∝ target/proposal turn draws of a broad density into a fit of the narrow one.

    5 000 draws are worth about 1 500: the mean is known to 0.03 and the covariance, in sds, to 0.04; five of those.
    """
    rng = np.random.default_rng(1)
    broad = Students.single(np.zeros(2), 4.0 * np.eye(2))
    narrow = Students.single(np.array([0.5, -1.0]), np.array([[1.0, 0.5], [0.5, 0.8]]))
    X = broad.sample(5000, rng)
    w = np.exp(narrow.log_pdf(X) - broad.log_pdf(X))
    fitted = fit_students(X, w / w.sum(), 1, rng)
    assert_allclose(fitted.means[0], narrow.means[0], atol=0.15)
    assert_allclose(fitted.covs[0], narrow.covs[0], atol=0.25)


def test_components_without_points_are_dropped_and_the_rest_stay_wide() -> None:
    """Twelve components for thirty points in three dimensions: none may collapse on a few of them."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 3))
    fitted = fit_students(X, np.full(30, 1 / 30), 12, rng)
    assert 1 <= len(fitted.weights) <= 12
    assert_allclose(fitted.weights.sum(), 1.0, rtol=1e-12)
    assert np.min(np.linalg.eigvalsh(fitted.covs)) > 1e-2
    assert np.all(np.isfinite(fitted.log_pdf(X)))


def test_each_step_of_expectation_maximisation_climbs() -> None:
    """With 20 000 points the pull to the whole sample's covariance is nothing, and the likelihood may not fall."""
    X = a_mixture(2).sample(20_000, np.random.default_rng(4))
    weights = np.full(len(X), 1.0 / len(X))
    climb = [
        float(np.mean(fit_students(X, weights, 3, np.random.default_rng(0), steps).log_pdf(X)))
        for steps in (0, 1, 2, 4, 8, 16)
    ]
    assert np.all(np.diff(climb) > -1e-5)
    assert climb[-1] > climb[0] + 0.05


# -- the shape of a target --------------------------------------------------------------------------------------------


def banana(X: np.ndarray) -> np.ndarray:
    """log N(x₀; 0, 1) N(x₁; x₀², 0.2²): a bend that no Gaussian follows; its mean is (0, 1)."""
    return np.asarray(-0.5 * np.square(X[:, 0]) - 0.5 * np.square((X[:, 1] - np.square(X[:, 0])) / 0.2))


def test_shape_follows_a_bend() -> None:
    """The banana's own mean and covariance are worth 0.1 of their draws, the shape several times that."""
    guess = Students.single(np.array([0.0, 1.0]), np.diag([1.0, 2.04]))  # the true moments
    before = efficiency(guess, banana)
    after = efficiency(shape_of(banana, guess, np.random.default_rng(0)), banana)
    assert before < 0.2
    assert after > 2.5 * before
    assert after > 0.35


def test_shape_comes_in_pieces_where_the_target_does() -> None:
    """Two narrow bumps, both in the guess's reach: each gets its half of the draws and nothing much lies between."""

    def log_target(X: np.ndarray) -> np.ndarray:
        bumps = [-0.5 * np.square((X - side * np.array([2.0, 0.0])) / 0.3).sum(axis=1) for side in (-1.0, 1.0)]
        return np.asarray(np.logaddexp(*bumps))

    guess = Students.single(np.zeros(2), np.diag([4.0, 0.2]))
    shape = shape_of(log_target, guess, np.random.default_rng(1))
    X = shape.sample(4000, np.random.default_rng(2))
    assert abs(np.mean(X[:, 0] > 0.0) - 0.5) < 0.1
    assert np.mean(np.abs(X[:, 0]) < 0.5) < 0.1
    assert efficiency(shape, log_target) > max(0.4, 2.0 * efficiency(guess, log_target))


@pytest.mark.parametrize("dim", [1, 3, 6])
def test_a_gaussian_target_keeps_the_efficiency_of_one_component(dim: int) -> None:
    """Where the guess is right already nothing is fitted: at most a quarter of the single component's worth is lost."""
    A = np.random.default_rng(dim).standard_normal((dim, dim))
    mean, cov = np.arange(1.0, dim + 1.0), A @ A.T + 0.3 * np.eye(dim)
    target = stats.multivariate_normal(mean, cov).logpdf
    guess = Students.single(mean, cov)
    shape = shape_of(target, guess, np.random.default_rng(0))
    assert efficiency(shape, target) > 0.75 * efficiency(guess, target)
    assert len(shape.weights) <= 2 * TUNING.surrogate.components


def test_shape_is_found_from_a_guess_that_is_off() -> None:
    """Two sds away and a third as wide: three rounds bring it home."""
    target = stats.multivariate_normal([2.0, -1.0], [[1.0, 0.5], [0.5, 1.0]]).logpdf
    guess = Students.single(np.zeros(2), 0.1 * np.eye(2))
    shape = shape_of(target, guess, np.random.default_rng(3))
    assert efficiency(guess, target) < 0.05
    assert efficiency(shape, target) > 0.4


def test_the_reaching_part_is_the_shape_of_the_square_root() -> None:
    """The square root of a Gaussian has twice its covariance, and with nearly all the draws in one part it shows.

    Thousands of effective draws know each covariance to a tenth or so; without the root the ratio would be one.
    """
    target = stats.multivariate_normal([2.0, -1.0], [[1.0, 0.5], [0.5, 1.0]]).logpdf
    guess = Students.single(np.zeros(2), 0.5 * np.eye(2))
    spreads = []
    for share in (0.001, 0.999):
        with tuned("surrogate", reaching_share=share, even_share=1.0):  # never even enough to stop: both are fitted
            X = shape_of(target, guess, np.random.default_rng(0)).sample(20_000, np.random.default_rng(1))
        spreads.append(float(np.trace(np.cov(X.T))))
    assert 1.5 < spreads[1] / spreads[0] < 2.7


def test_a_target_that_is_zero_wherever_it_was_looked_at_leaves_the_guess() -> None:
    guess = Students.single(np.zeros(2), np.eye(2))
    shape = shape_of(lambda X: np.full(len(X), -np.inf), guess, np.random.default_rng(0))
    X = np.random.default_rng(1).standard_normal((20, 2))
    assert np.all(shape.log_pdf(X) > guess.log_pdf(X) - 1.0)
    assert_allclose(shape.weights.sum(), 1.0, rtol=1e-12)


def test_a_constant_target_widens_the_shape() -> None:
    """It has no shape, and every round finds that the mass goes on."""
    guess = Students.single(np.zeros(2), np.eye(2))
    shape = shape_of(lambda X: np.zeros(len(X)), guess, np.random.default_rng(0))
    far = np.array([[6.0, 6.0], [-8.0, 0.0]])
    assert np.all(shape.log_pdf(far) > guess.log_pdf(far))
    assert_allclose(shape.weights.sum(), 1.0, rtol=1e-12)


@pytest.mark.parametrize(
    "log_target",
    [
        lambda X: np.where(X[:, 0] > 6.0, -np.square(X).sum(axis=1), -np.inf),
        lambda X: -0.5 * np.square((X - 1.0) / 3e-3).sum(axis=1),
    ],
    ids=["beyond an edge", "a needle"],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_target_that_few_draws_meet_does_not_fail(log_target: Function, seed: int) -> None:
    """Fewer draws than components have any weight: feasible parts may be that small, and surrogates that sharp."""
    shape = shape_of(log_target, Students.single(np.zeros(2), np.eye(2)), np.random.default_rng(seed))
    assert np.all(np.isfinite(shape.log_pdf(np.zeros((1, 2)))))
    assert_allclose(shape.weights.sum(), 1.0, rtol=1e-12)


def test_shape_of_a_target_does_not_see_a_constant() -> None:
    guess = Students.single(np.array([0.0, 1.0]), np.diag([1.0, 2.0]))
    one = shape_of(banana, guess, np.random.default_rng(5))
    other = shape_of(lambda X: banana(X) + 1024.0, guess, np.random.default_rng(5))
    X = np.random.default_rng(0).standard_normal((30, 2))
    assert_allclose(other.log_pdf(X), one.log_pdf(X), atol=1e-6)
