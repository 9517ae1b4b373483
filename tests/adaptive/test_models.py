"""Models of f on the mixture q: their integral is that of brute force, and of their integrand; data are sifted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, special, stats

from driving import content
from found_by_hand import a_fitted_explorer, known_with
from wsabi.adaptive.models import Models
from wsabi.adaptive.search.ground import inflation
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.symmetry.group import Symmetry, reflected
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import NumericalError
from wsabi.priors import Gaussian
from wsabi.settings import Settings

Function = Callable[[np.ndarray], np.ndarray]

CENTRES = {1: [np.array([-1.2]), np.array([1.0])], 2: [np.array([-1.0, 0.4]), np.array([1.1, -0.3])]}


def smooth(X: np.ndarray) -> np.ndarray:
    """log ℓ of two unequal bumps with a cubic on top: no model has it in its span."""
    first = -0.5 * np.square((X + 1.0) / 0.5).sum(axis=1)
    second = -0.5 * np.square((X - 1.0) / 0.6).sum(axis=1) - 0.7
    return np.asarray(np.logaddexp(first, second) + 0.05 * X[:, 0] ** 3 - 0.02 * X[:, 0] ** 4)


def at(centre: np.ndarray, sd: float) -> Frame:
    """N(centre, sd² I)."""
    return Frame.of(centre, sd**2 * np.eye(len(centre)))


def one_model(measure: Gaussian, centre: np.ndarray, sd: float, X: np.ndarray, log_l: Function = smooth) -> Models:
    """A single component N(centre, sd²), inflated, whose models have seen log ℓ at X."""
    known = known_with([a_fitted_explorer(at(centre, sd), X, log_l(X), measure=measure)])
    return Models.of(known, Settings(), X, log_l(X), np.random.default_rng(0))


@cache
def two_models(
    dim: int,
    n: int,
    log_l: Function = smooth,
    method: str = "wsabi-l",
    explored: Function = smooth,
    families: tuple[int, int] = (0, 1),
) -> Models:
    """Two overlapping components of weights 0.6 and 0.4, with n training points spread over both, as q has them.

    The models are told ``log_l``, the explorers before them ``explored``. The answers are shared: what a test changes
    it makes by :func:`fresh_two_models`.
    """
    cube = stats.qmc.Halton(dim, seed=3).random(n)
    X = np.repeat(np.stack(CENTRES[dim]), n // 2, axis=0) + 1.04 * special.ndtri(cube)
    explorers = [
        a_fitted_explorer(at(centre, 0.6), X, explored(X), math.log(weight) - 3.0)
        for centre, weight in zip(CENTRES[dim], (0.6, 0.4), strict=True)
    ]
    settings = Settings(method=method)  # type: ignore[arg-type]
    return Models.of(known_with(explorers, families), settings, X, log_l(X), np.random.default_rng(1))


fresh_two_models = two_models.__wrapped__


def quadrature(f: Function, dim: int, reach: float = 9.0, n: int = 400) -> float:
    """∫ f over [−reach, reach]^D by Gauss-Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    axes = np.meshgrid(*[reach * nodes] * dim, indexing="ij")
    grid = np.stack([axis.ravel() for axis in axes], axis=1)
    products = np.meshgrid(*[reach * weights] * dim, indexing="ij")
    return float(np.prod([p.ravel() for p in products], axis=0) @ f(grid))


# -- the measure ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2])
def test_q_is_the_inflated_mixture(dim: int) -> None:
    models = two_models(dim, 20)
    X = np.random.default_rng(4).standard_normal((9, dim))
    variance = inflation(dim) * 0.36
    terms = [
        math.log(w) + stats.multivariate_normal(c, variance * np.eye(dim)).logpdf(X)
        for c, w in zip(CENTRES[dim], (0.6, 0.4), strict=True)
    ]
    assert_allclose(models.weights, [0.6, 0.4], rtol=1e-12)
    assert_allclose(models.log_terms(X), terms, rtol=1e-10)
    assert_allclose(models.log_q(X), np.logaddexp(*terms), rtol=1e-10)
    prior = Gaussian(np.zeros(dim)).log_pdf(X)
    assert_allclose(models.log_f(X, smooth(X)), smooth(X) + prior - np.logaddexp(*terms), rtol=1e-10)
    part = models.parts[1]
    assert_allclose(part.radius(X), np.linalg.norm((X - CENTRES[dim][1]) / math.sqrt(variance), axis=1), rtol=1e-10)


# -- the integral -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dim", "n", "tolerance"), [(1, 40, 1e-3), (2, 200, 5e-3)])
def test_the_weighted_sum_of_the_regions_is_the_integral(dim: int, n: int, tolerance: float) -> None:
    """Σ w_k E_k = ∫ ℓπ: a weight lost or a Jacobian left out would be tenths."""
    prior = Gaussian(np.zeros(dim))

    def f(X: np.ndarray) -> np.ndarray:
        return np.exp(smooth(X) + prior.log_pdf(X))

    coarse, fine = quadrature(f, dim, n=200), quadrature(f, dim, n=300)
    assert_allclose(coarse, fine, rtol=1e-9)  # the oracle has converged
    models = two_models(dim, n)
    log_mean, log_var = models.moments()
    assert abs(math.exp(log_mean) / fine - 1.0) < tolerance
    claimed = math.exp(0.5 * log_var - log_mean)
    assert abs(math.exp(log_mean) / fine - 1.0) < 5.0 * claimed + 1e-6
    assert claimed < 100.0 * tolerance


@pytest.mark.parametrize("method", ["wsabi-l", "wsabi-m", "bq"])
@pytest.mark.parametrize("dim", [1, 2])
def test_control_integrates_to_the_moments(dim: int, method: str) -> None:
    """The control variate's integral is known exactly only if control() is the very function that moments() integrates.

    Few data, so that model and truth differ by per cents and only the identity can hold to 1e-6.
    """
    models = two_models(dim, 14 * dim, method=method)
    reference = -2.0
    values = [quadrature(lambda X: models.control(X, np.full(len(X), reference)), dim, n=n) for n in (150, 200)]
    assert_allclose(values[0], values[1], rtol=1e-7)
    assert_allclose(values[1] * math.exp(reference), math.exp(models.moments()[0]), rtol=1e-6)


def test_variance_is_weighted_by_the_squares() -> None:
    """V[Z] = Σ w_k² V_k: independent models of the parts of one sum."""
    models = two_models(2, 30)
    beliefs = [part.model.belief() for part in models.parts]
    variances = [w**2 * math.exp(b.log_var) for w, b in zip((0.6, 0.4), beliefs, strict=True) if b is not None]
    assert_allclose(models.moments()[1], math.log(sum(variances)), rtol=1e-9)


@pytest.mark.parametrize(("families", "together"), [((3, 3), True), ((3, 5), False)])
def test_errors_of_one_family_add_up(families: tuple[int, int], together: bool) -> None:
    """V[Z] = (Σ w_k √V_k)² for symmetry images, wrong by the same, and Σ w_k² V_k for regions that are none.

    The sds are within a factor of ten of each other, so that the cross term is a sixth of the variance or more.
    """
    models = two_models(2, 30, families=families)
    beliefs = [part.model.belief() for part in models.parts]
    sds = [w * math.exp(0.5 * b.log_var) for w, b in zip((0.6, 0.4), beliefs, strict=True) if b is not None]
    assert 0.1 < sds[0] / sds[1] < 10.0
    variance = sum(sds) ** 2 if together else sum(sd**2 for sd in sds)
    log_mean, log_var = models.moments()
    assert_allclose(log_var, math.log(variance), rtol=1e-9)
    assert log_mean == two_models(2, 30).moments()[0]  # the mean knows no families


def test_moments_shift_with_log_l() -> None:
    def raised(X: np.ndarray) -> np.ndarray:
        return smooth(X) + 1e5

    one, other = two_models(1, 26), two_models(1, 26, raised, explored=raised)
    assert_allclose(other.moments()[0] - 1e5, one.moments()[0], atol=1e-5)  # log ℓ is rounded at 1e5
    assert_allclose(other.moments()[1] - 2e5, one.moments()[1], atol=0.1)  # 1e-6 of Z, where the fit decides its digits
    X = np.linspace(-2.0, 2.0, 5)[:, None]
    assert_allclose(other.control(X, np.full(5, 1e5)), one.control(X, np.zeros(5)), rtol=1e-4)


def test_one_component_against_scipy() -> None:
    """A region of its own under a prior three times as wide, whose f has no closed form."""
    measure = Gaussian([0.3], [4.0])
    X = np.linspace(-6.0, 8.0, 40)[:, None]

    def log_l(P: np.ndarray) -> np.ndarray:
        return -np.logaddexp(0.0, 2.0 * np.abs(P[:, 0] - 1.0) - 1.0)

    models = one_model(measure, np.array([1.0]), 0.9, X, log_l)
    truth, _ = integrate.quad(
        lambda x: math.exp(log_l(np.array([[x]]))[0]) * stats.norm.pdf(x, 0.3, 2.0), -15, 17, points=[1.0], epsabs=1e-12
    )
    assert abs(models.moments()[0] - math.log(truth)) < 5e-3  # ℓ has a kink at 1


def test_nothing_finite_is_an_error() -> None:
    models = two_models(1, 10, lambda X: np.full(len(X), -np.inf))
    with pytest.raises(NumericalError, match="no region holds a finite log-likelihood"):
        models.moments()
    assert_array_equal(models.control(np.zeros((2, 1)), np.zeros(2)), 0.0)


# -- data -------------------------------------------------------------------------------------------------------------


def test_far_points_and_twins_are_left_out() -> None:
    models = fresh_two_models(2, 30)
    left, right = models.parts
    before = (len(left.model.X), len(right.model.X))
    models.observe(np.array([50.0, 50.0]), -1.0)  # out of everyone's reach
    assert (len(left.model.X), len(right.model.X)) == before
    twin = left.frame.colour(left.model.X[[3]] + 0.1 * TUNING.models.twin)[0]
    models.observe(twin, -1.0)
    assert len(left.model.X) == before[0]
    new = left.frame.colour(np.array([[0.123, -0.456]]))[0]
    models.observe(new, float(smooth(new[None, :])[0]))
    assert len(left.model.X) == before[0] + 1
    assert_allclose(left.frame.colour(left.model.X[-1:])[0], new, atol=1e-12)


def test_the_first_data_are_sifted_the_same_way() -> None:
    measure = Gaussian([0.0, 0.0])
    X = np.random.default_rng(0).standard_normal((12, 2))
    X = np.vstack([X, X[:5] + 1e-7, [[90.0, 0.0]]])  # five twins and one far away
    models = one_model(measure, np.zeros(2), 1.0, X)
    (part,) = models.parts
    kept = part.frame.colour(part.model.X)
    assert len(kept) == 12  # of each pair one, whichever is nearer the centre
    assert all(np.min(np.abs(kept - x).max(axis=1)) < 1e-6 for x in X[:12])
    assert part.model.max_jitter <= 1e-10


def test_an_observed_point_equals_one_given_from_the_start() -> None:
    """Appending and filling give the same model at the same length-scales."""
    measure = Gaussian([0.0])
    X = np.linspace(-2.0, 2.0, 9)[:, None]
    grown, whole = (one_model(measure, np.zeros(1), 0.8, X[:n]) for n in (8, 9))
    grown.observe(X[8], float(smooth(X[8:])[0]))
    data = [np.sort(models.parts[0].frame.colour(models.parts[0].model.X), axis=0) for models in (grown, whole)]
    assert_allclose(*data, atol=1e-12)
    assert abs(grown.moments()[0] - whole.moments()[0]) < 5e-3  # the length-scales were learnt from eight and from nine


def test_the_least_certain_region_is_sampled_next() -> None:
    """All data on the left: the right has nothing, and the next point is there."""
    X = np.concatenate([np.linspace(-4.2, -1.8, 20), [2.7, 3.3]])[:, None]

    def log_l(P: np.ndarray) -> np.ndarray:
        return np.logaddexp(-0.5 * ((P[:, 0] + 3.0) / 0.3) ** 2, -0.5 * ((P[:, 0] - 3.0) / 0.3) ** 2)

    known = known_with([a_fitted_explorer(at(np.array([c]), 0.3), X, log_l(X)) for c in (-3.0, 3.0)])
    models = Models.of(known, Settings(), X, log_l(X), np.random.default_rng(0))
    assert models.propose(np.empty((0, 1)), np.random.default_rng(1))[0] > 0.0
    pending = np.array([[2.4], [3.6]])
    assert np.min(np.abs(models.propose(pending, np.random.default_rng(1)) - pending)) > 1e-3  # points under way count


def test_models_can_be_built_again() -> None:
    """They follow from the regions, the data and the random stream, to the last digit; the regions stay as they are."""
    X = np.random.default_rng(0).standard_normal((30, 2))
    known = known_with([a_fitted_explorer(at(centre, 0.6), X, smooth(X)) for centre in CENTRES[2]])
    before = content(known)
    one, other = (Models.of(known, Settings(), X, smooth(X), np.random.default_rng(2)) for _ in range(2))
    for models in (one, other):
        models.observe(np.array([0.3, 0.1]), -1.0)
    assert content(one) == content(other)
    assert content(known) == before


def test_log_mass_is_the_sum_of_the_explorers() -> None:
    assert_allclose(two_models(1, 20).log_mass, -3.0, rtol=1e-12)  # log 0.6 − 3 and log 0.4 − 3


# -- the surrogate ----------------------------------------------------------------------------------------------------


def test_surrogate_is_silent_far_from_every_region() -> None:
    """Near the data it is right and knows it; far from them it gives no mass to speak of, and says that it guesses."""
    measure = Gaussian([0.0, 0.0])
    X = np.random.default_rng(0).standard_normal((30, 2))
    models = one_model(measure, np.zeros(2), 0.5, X)
    places = np.array([[0.1, 0.2], [60.0, 0.0]])
    log_joint, sd = models.surrogate(places)
    truth = smooth(places[:1]) + measure.log_pdf(places[:1])
    assert abs(log_joint[0] - truth[0]) < 0.3
    assert 0.0 < sd[0] < 0.3
    assert log_joint[1] < log_joint[0] - 1000.0  # the prior alone takes off 1800
    assert sd[1] > 10.0


def test_each_place_is_spoken_for_by_its_nearest_region() -> None:
    """The explorers disagree by five nats: the larger w_k q_k has the word, and the prior is added once."""
    models = two_models(1, 40)
    X = np.linspace(-2.5, 2.5, 21)[:, None]
    raised = models.parts[1].explorer
    models = models.with_explorer(1, replace(raised, top=raised.top + 5.0))
    by_part = [part.explorer.log_likelihood(X) for part in models.parts]
    left, right = models.log_terms(X)
    assert 5 < np.sum(left > right) < 16
    log_joint, sd = models.surrogate(X)
    prior = stats.norm.logpdf(X[:, 0])
    assert_allclose(log_joint, np.where(left > right, by_part[0][0], by_part[1][0]) + prior, atol=1e-8)
    assert_allclose(sd, np.where(left > right, by_part[0][1], by_part[1][1]), atol=1e-6)  # a root of a difference


def a_region_and_its_image(symmetry: Symmetry, *, image_first: bool) -> tuple[Models, np.ndarray, np.ndarray]:
    """A region that slants, its image, and the data of both."""
    dim = len(symmetry.order)
    centre = np.array([1.5, 0.4, -0.8])[:dim]
    slant = np.array([[0.5, 0.3, 0.1], [0.0, 0.2, 0.0], [0.2, 0.0, 0.6]])[:dim, :dim]
    X = centre + np.random.default_rng(0).standard_normal((40, dim)) @ slant
    explorer = a_fitted_explorer(at(centre, 0.4), X, smooth(X))
    both = [(reflected(explorer, symmetry), symmetry), (explorer, None)]
    if not image_first:
        both.reverse()
    explorers, symmetries = [one for one, _ in both], [each for _, each in both]
    X, log_l = np.concatenate([X, symmetry.image(X)]), np.tile(smooth(X), 2)
    known = known_with(explorers, [0, 0], symmetries)
    models = Models.of(known, Settings(), X, log_l, np.random.default_rng(1))
    return models, X, log_l


@pytest.mark.parametrize("image_first", [False, True])
def test_the_shape_of_an_image_is_the_image_of_the_shape(image_first: bool) -> None:
    """By a symmetry that is not its own inverse, of a region that slants: the same densities at the images, exactly."""
    turn = Symmetry((1, 0), (1, -1))
    models, _, _ = a_region_and_its_image(turn, image_first=image_first)
    image, original = models.parts if image_first else models.parts[::-1]
    places = original.shape.sample(50, np.random.default_rng(2))
    for mirrored, shape in ((image.shape, original.shape), (image.uncertainty, original.uncertainty)):
        assert_allclose(mirrored.log_pdf(turn.image(places)), shape.log_pdf(places), rtol=1e-9, atol=1e-9)
        assert np.max(np.abs(mirrored.log_pdf(turn.inverse.image(places)) - shape.log_pdf(places))) > 1.0


@pytest.mark.parametrize("image_first", [False, True])
@pytest.mark.parametrize("turn", [Symmetry((1, 0), (1, -1)), Symmetry((2, 0, 1), (1, -1, 1))])
def test_surrogates_that_learn_once_more_do_so_for_a_region_and_its_image(turn: Symmetry, image_first: bool) -> None:
    """With another θ than they had been fitted with, the same for both, while the regions given stay as they are."""
    models, X, log_l = a_region_and_its_image(turn, image_first=image_first)
    before = models.explorers
    log_l = log_l + np.tile(0.3 * np.sin(5.0 * X[: len(X) // 2, 0]), 2)  # something to learn
    last = models.relearnt(X, log_l, np.random.default_rng(0))
    assert all(one is other for one, other in zip(models.explorers, before, strict=True))
    image, original = last.explorers if image_first else last.explorers[::-1]
    old = next(part.explorer for part in models.parts if part.symmetry is None)
    assert original.surrogate is not None
    assert old.surrogate is not None
    theta = old.surrogate.theta
    assert np.max(np.abs(original.surrogate.theta.with_parts_of(theta).vector - theta.vector)) > 0.1
    assert_allclose(image.log_likelihood(turn.image(X))[0], original.log_likelihood(X)[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dim", [1, 2])
def test_shapes_follow_the_surrogates_posterior_and_its_uncertainty(dim: int) -> None:
    """Draws of a region's shape carry the weights of ℓπ, and draws of its uncertainty those of its sd, evenly enough.

    The surrogate is the target, so nothing but the shape is to blame. Two bumps in one region: their shape is worth
    0.8 and more of its draws, the Student density it starts from at most 0.2.
    """
    models = two_models(dim, 60 * dim)
    rng = np.random.default_rng(0)
    for part in models.parts:
        for shape, log_target in (
            (part.shape, part.explorer.log_posterior),
            (part.uncertainty, part.explorer.log_uncertainty),
        ):
            X = shape.sample(2000, rng)
            log_w = log_target(X) - shape.log_pdf(X)
            w = np.exp(log_w - log_w.max())
            assert w.sum() ** 2 / np.square(w).sum() > 0.6 * len(X)
