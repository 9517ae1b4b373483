"""A likelihood, the regions known of it and the images asked for so far: what tests of symmetry images share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wsabi.adaptive.search.anneal import Explorer
from wsabi.adaptive.search.known_regions import KnownRegions
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.symmetry.group import Symmetry
from wsabi.adaptive.symmetry.proof import ImageTests
from wsabi.priors import Gaussian, Measure
from wsabi.result import SearchRecord

Function = Callable[[np.ndarray], np.ndarray]  # log ℓ (N,) of (N, D)
HERE, WIDTH = np.array([1.5, -0.5, 0.8]), 0.2
THERE = np.array([-0.6, 0.9, -2.3])  # far from all images of HERE, and from its own
SWAP = Symmetry.of(3, ((0, 1),))
REVERSE = Symmetry.of(3, reversed_axes=[0, 1, 2])
SWAP_AND_REVERSE = Symmetry.of(3, ((0, 1),), [2])


def bump(centre: np.ndarray, height: float = 0.0) -> Function:
    """exp(height) at the centre, and a cubic term that makes it no image of itself."""

    def log_l(X: np.ndarray) -> np.ndarray:
        Y = (X - centre) / WIDTH
        return np.asarray(height - 0.5 * np.square(Y).sum(axis=1) + 0.02 * Y[:, 0] ** 3)

    return log_l


def seen_in(symmetry: Symmetry, log_l: Function) -> Function:
    """The function whose value at the image is the other's at the original."""
    return lambda X: log_l(symmetry.inverse.image(X))


def either(*parts: Function) -> Function:
    return lambda X: np.asarray(np.logaddexp.reduce([part(X) for part in parts]))


def symmetric_under(symmetry: Symmetry, centre: np.ndarray = HERE) -> Function:
    return either(bump(centre), seen_in(symmetry, bump(centre)))


class World:
    """A likelihood, a region known from thirty points for each centre, and the images asked for so far."""

    def __init__(self, log_l: Function, *centres: np.ndarray, measure: Measure | None = None) -> None:
        self.log_l = log_l
        self.found = KnownRegions(Gaussian(np.zeros(len(centres[0]))) if measure is None else measure)
        self.X = np.empty((0, len(centres[0])))
        self.images = ImageTests([0] * len(centres[0]))
        for centre in centres:
            self.know(centre)

    def know(self, centre: np.ndarray, log_z: float = 0.0) -> None:
        """A look has found the region at the centre, of that mass."""
        dim = len(centre)
        rng = np.random.default_rng(len(self.X))
        explorer = Explorer(self.found.measure, rng)
        explorer.frame = Frame.of(centre, WIDTH**2 * np.eye(dim))
        self.X = np.vstack([self.X, explorer.frame.colour(rng.standard_normal((30, dim)))])
        explorer.fit(self.X[-30:], self.log_l(self.X[-30:]), learn=True)
        explorer.log_z = log_z
        self.found.record(SearchRecord(30, 0.0, "new region"), explorer, 1.0)

    @property
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """X (N, D) and log ℓπ (N,)."""
        return self.X, self.log_l(self.X) + self.found.measure.log_pdf(self.X)

    @property
    def top(self) -> np.ndarray:
        """The best point (D,) of the first region."""
        X, log_joint = self.data
        return np.asarray(X[int(np.argmax(log_joint[:30]))])

    def prepare(self) -> None:
        self.images.prepare(self.found, *self.data)

    def handed_out(self) -> list[np.ndarray]:
        """All images in the queue."""
        points = []
        while (x := self.images.next_point()) is not None:
            points.append(x)
        return points

    def tell(self, points: list[np.ndarray]) -> None:
        for x in points:
            self.images.tell(x, float(self.log_l(x[None, :])[0]))
        self.X = np.vstack([self.X, *points])

    def conclude(self) -> None:
        self.images.conclude(self.found, *self.data)

    def ask(self) -> list[np.ndarray]:
        """Evaluate what is queued, draw conclusions, and give the points."""
        points = self.handed_out()
        self.tell(points)
        self.conclude()
        return points

    def reach(self, symmetry: Symmetry) -> list[np.ndarray]:
        """Prepare and ask until the first region's image by the symmetry is told; the points asked for with it."""
        for _ in range(20):
            self.prepare()
            points = self.ask()
            if is_in(symmetry.image(self.top), points):
                return points
        raise AssertionError(f"the image by {symmetry} was not asked for.")


def is_in(x: np.ndarray, points: Any) -> bool:
    return any(np.array_equal(x, other) for other in points)


def everything_asked(world: World) -> list[np.ndarray]:
    """What prepare asks for until it has nothing left; all of it is told, no conclusions drawn."""
    points: list[np.ndarray] = []
    for _ in range(20):  # twelve symmetries, four at a time
        world.prepare()
        queued = world.handed_out()
        for x in queued:
            world.images.tell(x, -100.0)
        points += queued
    return points


def everything_answered(world: World) -> list[np.ndarray]:
    """What is asked for until nothing is left; all of it is told, and conclusions drawn each time."""
    points: list[np.ndarray] = []
    for _ in range(10):
        world.prepare()
        while asked := world.ask():
            points += asked
    return points
