"""Modes of ℓπ by hundreds of local ascents, where the prior is N(0, I); and whose basin a point is in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from benchmarks.stored_modes import Mode
from wsabi._core.types import Array
from wsabi.problems import Problem

STEP = 1e-5  # of central differences, prior sds
WIDEST = 7.0  # prior sds: 3e-12 of the prior lies beyond
BARRIER = 1.0  # nats: tops with a smaller drop between them, on the straight line, are one mode
LINE = np.linspace(0.0, 1.0, 41)[1:-1, None]  # where that drop is looked for


@dataclass(frozen=True)
class Surface:
    """log ℓπ of a problem whose prior is N(0, I)."""

    problem: Problem

    def __call__(self, U: Array) -> Array:
        """(N,) values at U (N, D)."""
        constant = 0.5 * self.problem.dim * math.log(2.0 * math.pi)
        return self.problem.log_likelihood_vectorized(U) - 0.5 * np.square(U).sum(axis=1) - constant

    def energy(self, u: Array) -> tuple[float, Array]:
        """−log ℓπ at u (D,) and its gradient (D,), by central differences."""
        steps = STEP * np.eye(len(u))
        values = -self(np.vstack([u, u + steps, u - steps]))
        ahead, behind = np.split(values[1:], 2)
        return float(values[0]), (ahead - behind) / (2.0 * STEP)

    def top(self, u: Array) -> tuple[Array, float]:
        """Where an ascent by L-BFGS from u (D,) ends, within WIDEST prior sds along each axis, and log ℓπ there."""
        bounds = [(-WIDEST, WIDEST)] * len(u)
        found = optimize.minimize(self.energy, u, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 1000})
        return np.asarray(found.x), -float(found.fun)

    def curvature(self, u: Array, step: float = 1e-3) -> Array:
        """(−∇∇ log ℓπ)⁻¹ at u (D,), by central differences; no wider than the prior in any direction."""
        dim = len(u)
        rows, columns = np.triu_indices(dim)
        E = step * np.eye(dim)
        corners = np.concatenate([u + s * E[rows] + t * E[columns] for s in (1, -1) for t in (1, -1)])
        values = np.array([1.0, -1.0, -1.0, 1.0]) @ self(corners).reshape(4, -1) / (4.0 * step**2)
        hessian = np.zeros((dim, dim))
        hessian[rows, columns] = hessian[columns, rows] = values
        curvatures, axes = np.linalg.eigh(-hessian)
        return np.asarray((axes / np.maximum(curvatures, 1.0)) @ axes.T)


class Tops:
    """Distinct tops of a surface, in the order in which they were met.

    An ascent may end below a top, where a ridge is nearly flat: it belongs to the nearest top from which the straight
    line to it does not drop by more than BARRIER below it.
    """

    def __init__(self, surface: Surface, known: Sequence[tuple[Array, float]] = ()) -> None:
        self.surface = surface
        self.places: list[Array] = [u for u, _ in known]
        self.heights: list[float] = [height for _, height in known]

    def find(self, u: Array, height: float) -> int | None:
        """The number of the top to which the end u (D,) of an ascent belongs, or None."""
        near = np.argsort([float(np.square(u - place).sum()) for place in self.places])
        for number in near[:12]:
            line = self.surface(u + LINE * (self.places[number] - u))
            if float(np.min(line)) > min(height, self.heights[number]) - BARRIER:
                return int(number)
        return None

    def add(self, u: Array, height: float) -> int:
        """The same, with a new top where there is none; the higher of two ends is the top."""
        number = self.find(u, height)
        if number is None:
            self.places.append(u)
            self.heights.append(height)
            return len(self.places) - 1
        if height > self.heights[number]:
            self.places[number], self.heights[number] = u, height
        return number

    def of(self, U: Array) -> list[int]:
        """The number of the top in whose basin each of U (N, D) lies; new ones are added."""
        return [self.add(*self.surface.top(u)) for u in U]


def top_of(surface: Surface, modes: Sequence[Mode], u: Array) -> int | None:
    """The number of the mode in whose basin u (D,) lies, by an ascent; None where it is none of them."""
    return Tops(surface, [(mode.u, mode.log_joint) for mode in modes]).find(*surface.top(u))
