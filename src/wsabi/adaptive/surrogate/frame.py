"""Coordinates of a Gaussian q: y, whitened along its principal axes, and the parameters in units of their sds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wsabi._core.linalg import cholesky
from wsabi._core.types import Array
from wsabi.adaptive.surrogate.theta import Theta
from wsabi.adaptive.tuning import TUNING
from wsabi.errors import NumericalError

__all__ = ["Frame"]


@dataclass(frozen=True)
class Frame:
    """Coordinates u = mean + axes·(widths ∘ y) in which q is standard normal, along q's principal axes.

    Along a long axis of q, ℓ often no longer depends on some parameter, and changes more slowly than across. So the
    axes along which the length-scales differ are those of q.
    """

    mean: Array
    axes: Array
    widths: Array

    @classmethod
    def of(cls, mean: Array, cov: Array) -> Frame:
        """The frame of N(mean, cov).

        Raises
        ------
        NumericalError
            If cov is not positive definite.
        """
        values, axes = np.linalg.eigh(cov)
        if not values[0] > 0.0:
            raise NumericalError(f"cov must be positive definite; its least eigenvalue is {values[0]:g}.")
        return cls(mean, axes, np.sqrt(values))

    @property
    def cov(self) -> Array:
        """Covariance of q, (D, D)."""
        return np.asarray((self.axes * np.square(self.widths)) @ self.axes.T)

    @property
    def log_det(self) -> float:
        """log|∂u/∂y|."""
        return float(np.log(self.widths).sum())

    def log_density(self, X: Array) -> Array:
        """log q, (N,)."""
        constant = 0.5 * X.shape[1] * math.log(2.0 * math.pi) + self.log_det
        return np.asarray(-0.5 * np.square(self.whiten(X)).sum(axis=1) - constant)

    def whiten(self, X: Array) -> Array:
        """y (N, D) of u (N, D)."""
        return np.asarray((X - self.mean) @ self.axes / self.widths)

    def colour(self, Y: Array) -> Array:
        """u (N, D) of y (N, D)."""
        return np.asarray(self.mean + (Y * self.widths) @ self.axes.T)

    def move(self, shift: Array, cov: Array) -> Frame:
        """The frame whose standard normal is N(shift, cov) in this one's coordinates.

        With cov = LLᵀ and F = axes·widths, the new widths are the singular values of FL, or the square roots of the
        eigenvalues of FLLᵀFᵀ. The error of an eigenvalue is ε of the largest, so a width below √ε of the largest would
        be round-off. The error of a singular value is ε of the largest singular value, so thin widths keep their
        digits.
        """
        factor = self.axes * self.widths
        mean = self.mean + factor @ shift
        if np.min(self.widths) > TUNING.surrogate.thin_width * np.max(self.widths):
            return Frame.of(mean, factor @ cov @ factor.T)
        axes, widths, _ = np.linalg.svd(factor @ cholesky(cov))
        return Frame(mean, axes[:, ::-1], widths[::-1])

    def scaled(self, variance: float) -> Frame:
        """The same with all variances multiplied."""
        return Frame(self.mean, self.axes, math.sqrt(variance) * self.widths)

    def seen_from(self, other: Frame) -> tuple[Array, Array]:
        """b (D,) and B (D, D) with y' = b + By, y' the other frame's coordinates of the point y."""
        return other.whiten(self.mean[None, :])[0], (other.axes / other.widths).T @ (self.axes * self.widths)

    @property
    def sds(self) -> Array:
        """Standard deviation of each parameter under q, (D,)."""
        return np.asarray(np.sqrt(np.square(self.axes * self.widths).sum(axis=1)))

    @property
    def turn(self) -> Array:
        """∂u_d/∂y in units of the sds, (D, D)."""
        return np.asarray(self.axes * self.widths / self.sds[:, None])

    def lengths_in(self, other: Frame, log_lengths: Array) -> Array:
        """Log length-scales (D,) along the other frame's axes of a metric that is diagonal in this one's."""
        mixed = (self.axes / self.widths).T @ (other.axes * other.widths)  # ∂y/∂y'
        return np.asarray(-0.5 * np.log(np.square(mixed / np.exp(log_lengths)[:, None]).sum(axis=0)))

    def theta_in(self, other: Frame, theta: Theta) -> Theta:
        """A surrogate's θ in units of the other frame."""
        log_h, log_a, centre, log_s = np.moveaxis(theta.sides, 1, 0)
        longer = np.log(self.sds / other.sds)
        centre = (self.mean + centre * self.sds - other.mean) / other.sds
        sides = np.stack([log_h + longer, log_a, centre, log_s + longer], axis=1)
        return Theta(self.lengths_in(other, theta.lengths), sides, theta.scales)
