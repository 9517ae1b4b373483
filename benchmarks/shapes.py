"""Random posteriors of exactly known evidence, to choose constants with: no study of accuracy or coverage uses them.

    f(x) = Π_d f_d(z_d),  x = c + R z',  z' = a shear of z of unit Jacobian

with densities f_d that are normal, skew, flat-topped, kinked or two-sided, a rotation R, and a flat prior on a box of
side 2 ``HALF``. Since f integrates to one, log Z is that of the box's density but for the mass outside.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import stats

from wsabi import Uniform
from wsabi._core.types import Array

__all__ = ["Shape"]

HALF = 10.0  # half the side of the box: the widest density below has less than 1e-6 of its mass beyond it
WIDTHS = (0.3, 0.9)  # sds of the axes, drawn evenly in the logarithm
DIMENSIONS = (2, 3, 4, 5, 6)
BENDING = 0.4  # of a shear, in sds: z₂ ← z₂ + b (z₁² − 1), b up to this

# log densities of mean near zero and unit width
AXES: tuple[Callable[[Array], Array], ...] = (
    stats.norm(0.0, 1.0).logpdf,
    stats.skewnorm(4.0, -1.2, 1.55).logpdf,
    stats.gennorm(6.0, 0.0, 1.7).logpdf,
    stats.laplace(0.0, 0.71).logpdf,
    stats.logistic(0.0, 0.55).logpdf,
    lambda z: np.where(z < 0.0, -0.5 * np.square(z / 0.6), -0.5 * np.square(z / 1.3)) - math.log(0.95 * 2.5066282746),
)


class Shape:
    """One of them, the same for the same seed.

    Attributes
    ----------
    prior : uniform on the box.
    log_z : exact.
    """

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.dim = DIMENSIONS[seed % len(DIMENSIONS)]
        self.axes = [AXES[k] for k in rng.integers(len(AXES), size=self.dim)]
        self.width = np.exp(rng.uniform(*np.log(WIDTHS), size=self.dim))
        self.rotation = np.linalg.qr(rng.standard_normal((self.dim, self.dim)))[0]
        self.centre = rng.uniform(-1.0, 1.0, size=self.dim)
        self.bend = rng.uniform(-BENDING, BENDING, size=self.dim - 1) * rng.integers(2, size=self.dim - 1)
        self.prior = Uniform(np.full(self.dim, -HALF), np.full(self.dim, HALF))
        self.log_z = -self.dim * math.log(2.0 * HALF)

    def __call__(self, x: Array) -> float:
        """log f at one point x (D,)."""
        z = ((x - self.centre) @ self.rotation) / self.width
        for d in range(self.dim - 2, -1, -1):
            z[d + 1] -= self.bend[d] * (z[d] ** 2 - 1.0)
        return float(sum(axis(value) for axis, value in zip(self.axes, z, strict=True)) - np.log(self.width).sum())
