"""The hyperparameters θ of the surrogate's kernel, and the number of coefficients of its quadratic part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.surrogate.interactions import SIDES

__all__ = ["Side", "Theta", "n_coefficients"]

Side = tuple[float, float, float, float]  # log h, log a, c, log s of one parameter's axis


def n_coefficients(dim: int) -> int:
    """Number of coefficients of a quadratic in ``dim`` dimensions, (D + 1)(D + 2)/2."""
    return (dim + 1) * (dim + 2) // 2


@dataclass(frozen=True)
class Theta:
    """Hyperparameters of the kernel. All but the centres c_d are logarithms.

    Attributes
    ----------
    lengths : (D,) log l_d, along the axes of q.
    sides : (P, 4, D) log h_d, log a_d, c_d and log s_d of the parameters' own axes, for each of P interactions.
    scales : (2 + P,) log λ, log c, and log σ for each of the interactions.
    """

    lengths: Array
    sides: Array
    scales: Array

    @classmethod
    def each(cls, dim: int, length: float, sides: Sequence[Side], scale: float) -> Theta:
        """The same number for all l_d, the same four for all axes of an interaction, the same for all scales."""
        axes = np.repeat(np.reshape(sides, (len(sides), SIDES, 1)), dim, axis=2)
        return cls(np.full(dim, length), axes, np.full(2 + len(sides), scale))

    def like(self, vector: Array) -> Theta:
        """A θ with as many entries of each kind as this one, with the values of ``vector``."""
        dim, both = self.lengths.size, self.lengths.size + self.sides.size
        return Theta(vector[:dim], vector[dim:both].reshape(self.sides.shape), vector[both:])

    def with_parts_of(self, other: Theta) -> Theta:
        """The same with as many interactions as the other has: the last are left out, or taken from the other."""
        n = len(other.sides)
        sides = np.concatenate([self.sides, other.sides[len(self.sides) :]])[:n]
        scales = np.append(self.scales, other.scales[self.scales.size :])[: 2 + n]
        return Theta(self.lengths, sides, scales)

    @property
    def vector(self) -> Array:
        """All entries in one vector."""
        return np.concatenate([self.lengths, self.sides.ravel(), self.scales])

    def reflected(self, order: Sequence[int], signs: Sequence[int]) -> Theta:
        """The same for parameters u'_d = signs_d · u_order(d)."""
        sides = self.sides[:, :, list(order)]
        sides[:, 2] *= np.asarray(signs)  # the centres
        return Theta(self.lengths, sides, self.scales)

    def heated(self, ratio: float) -> Theta:
        """The same in units of a temperature ``ratio`` times as high."""
        return Theta(self.lengths, self.sides, self.scales + math.log(ratio))
