"""The coordinates of q are exact, as thin as q may be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.surrogate.interactions import AxisKernel
from wsabi.adaptive.surrogate.theta import Theta
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import NumericalError

THIN = TUNING.surrogate.thin_width
SLANTED = np.linalg.qr(np.array([[1.0, 0.4, -0.3], [0.2, 1.0, 0.5], [0.7, -0.6, 1.0]]))[0]
COV = np.array([[2.0, 0.3, -0.1], [0.3, 0.5, 0.2], [-0.1, 0.2, 1.0]])
DIMS = pytest.mark.parametrize("dim", [1, 2, 5])


def a_gaussian(dim: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A mean (D,) and a full covariance (D, D)."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((dim, dim))
    return rng.standard_normal(dim), A @ A.T + 0.1 * np.eye(dim)


def a_frame(dim: int, seed: int = 0) -> Frame:
    return Frame.of(*a_gaussian(dim, seed))


def jacobian(frame: Frame) -> np.ndarray:
    """∂u/∂y (D, D), by colouring the unit vectors."""
    return (frame.colour(np.eye(len(frame.mean))) - frame.mean).T


@pytest.mark.parametrize("thin", [1e-2, 2.0 * THIN, 0.5 * THIN, 1e-8, 1e-11])
def test_a_moved_frame_has_the_covariance_asked_for(thin: float) -> None:
    """In coordinates of the old frame, where no width is small. Its square would be lost below 1e-8."""
    frame = Frame(np.array([0.3, -0.2, 0.1]), SLANTED, np.array([thin, 0.5, 1.0]))
    shift = np.array([0.5, -1.0, 0.2])
    moved = frame.move(shift, COV)
    # The axes are right to ε, and so their component across the ridge to ε over its width.
    tolerance = 1e-12 + 100.0 * np.finfo(np.float64).eps / thin
    factor = (frame.axes.T @ (moved.axes * moved.widths)) / frame.widths[:, None]
    if thin > THIN:
        tolerance = 1e-12 + 100.0 * np.finfo(np.float64).eps / thin**2
    assert_allclose(factor @ factor.T, COV, atol=tolerance)
    assert_allclose(frame.whiten(moved.mean[None, :])[0], shift, atol=1e-12 + 4.0 * np.finfo(np.float64).eps / thin)
    assert np.all(np.diff(moved.widths) > 0.0)


@DIMS
def test_a_frame_is_that_of_its_covariance(dim: int) -> None:
    """FFᵀ = cov for F = ∂u/∂y, on orthonormal axes; whitening by it makes the covariance I, to round-off."""
    mean, cov = a_gaussian(dim)
    frame = Frame.of(mean, cov)
    F = jacobian(frame)
    assert_allclose(frame.cov, cov, atol=1e-10)
    assert_allclose(F @ F.T, cov, atol=1e-10)
    assert_allclose(frame.axes.T @ frame.axes, np.eye(dim), atol=1e-10)
    whiten = np.linalg.inv(F)
    assert_allclose(whiten @ cov @ whiten.T, np.eye(dim), atol=1e-10)
    assert_allclose(frame.log_det, 0.5 * np.linalg.slogdet(cov)[1], atol=1e-10)


@DIMS
def test_whiten_and_colour_are_dense_linear_algebra_and_undo_each_other(dim: int) -> None:
    frame, X = a_frame(dim), np.random.default_rng(1).standard_normal((7, dim))
    F = frame.axes @ np.diag(frame.widths)
    assert_allclose(frame.whiten(X), np.linalg.solve(F, (X - frame.mean).T).T, atol=1e-10)
    assert_allclose(frame.colour(X), frame.mean + X @ F.T, atol=1e-10)
    assert_allclose(frame.colour(frame.whiten(X)), X, atol=1e-10)
    assert_allclose(frame.whiten(frame.colour(X)), X, atol=1e-10)
    assert frame.whiten(np.empty((0, dim))).shape == (0, dim)


@DIMS
def test_log_density_is_that_of_the_gaussian(dim: int) -> None:
    mean, cov = a_gaussian(dim)
    X = 3.0 * np.random.default_rng(1).standard_normal((7, dim))
    expected = np.atleast_1d(stats.multivariate_normal(mean, cov).logpdf(X))
    assert_allclose(Frame.of(mean, cov).log_density(X), expected, rtol=1e-10, atol=1e-10)


@DIMS
def test_move_is_the_pushforward_of_the_inner_gaussian(dim: int) -> None:
    """y ~ N(s, S) has, in the outer coordinates, mean m + Fs and covariance FSFᵀ."""
    frame, (shift, cov) = a_frame(dim), a_gaussian(dim, seed=5)
    F = jacobian(frame)
    moved = frame.move(shift, cov)
    assert_allclose(moved.mean, frame.mean + F @ shift, atol=1e-10)
    assert_allclose(moved.cov, F @ cov @ F.T, atol=1e-10)
    assert_allclose(moved.log_det, frame.log_det + 0.5 * np.linalg.slogdet(cov)[1], atol=1e-10)
    same = frame.move(np.zeros(dim), np.eye(dim))
    assert_allclose(same.mean, frame.mean, atol=1e-10)
    assert_allclose(same.cov, frame.cov, atol=1e-10)


@DIMS
def test_scaled_keeps_the_centre_and_scales_variances(dim: int) -> None:
    frame = a_frame(dim)
    wider = frame.scaled(2.5)
    assert_array_equal(wider.mean, frame.mean)
    assert_allclose(wider.cov, 2.5 * frame.cov, rtol=1e-10, atol=1e-10)
    assert_allclose(wider.log_det, frame.log_det + 0.5 * dim * math.log(2.5), atol=1e-10)


@DIMS
def test_lengths_in_another_frame_are_the_diagonal_of_the_metric(dim: int) -> None:
    """G = J⁻ᵀ diag(l⁻²) J⁻¹ in base coordinates, J'ᵀGJ' in the other's: 1/l'² is its diagonal, one step at a time."""
    one, other = a_frame(dim), a_frame(dim, seed=3)
    log_lengths = np.random.default_rng(2).standard_normal(dim)
    found = one.lengths_in(other, log_lengths)
    for axis, log_length in enumerate(found):
        step = other.colour(np.eye(dim)[[axis]]) - other.mean  # one unit along y'
        in_one = one.whiten(one.mean + step)[0]
        assert_allclose(math.exp(-2.0 * log_length), np.square(in_one / np.exp(log_lengths)).sum(), rtol=1e-10)
    assert_allclose(one.lengths_in(one, log_lengths), log_lengths, atol=1e-10)
    # In coordinates twice as wide, a length is half as many units.
    assert_allclose(one.lengths_in(one.scaled(4.0), log_lengths), log_lengths - math.log(2.0), atol=1e-10)


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_interactions_are_the_same_in_another_frame(dim: int) -> None:
    """Of the parameters themselves: p(x, x') with θ carried over to another q is p(x, x'), to round-off."""
    one, other = a_frame(dim, 1), a_frame(dim, 2)
    rng = np.random.default_rng(3)
    sides = 0.4 * rng.standard_normal((2, 4, dim)) + np.array([[0.3], [0.0], [0.2], [0.9]])
    theta = Theta(np.zeros(dim), sides, np.zeros(4))
    X = one.colour(rng.standard_normal((9, dim)))
    kernels = [
        [AxisKernel.of(frame.whiten(X) @ frame.turn.T, sides).p for sides in carried.sides]
        for frame, carried in ((one, theta), (other, one.theta_in(other, theta)))
    ]
    assert_allclose(kernels[1], kernels[0], rtol=1e-8)


@pytest.mark.parametrize("cov", [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]], [[-1.0, 0.0], [0.0, 1.0]]])
def test_a_covariance_that_is_not_positive_definite_is_an_error(cov: list[list[float]]) -> None:
    with pytest.raises(NumericalError, match="cov must be positive definite; its least eigenvalue is"):
        Frame.of(np.zeros(2), np.array(cov))
