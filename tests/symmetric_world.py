"""A likelihood, the regions known of it and the images asked for so far: what tests of symmetry images share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from found_by_hand import a_fitted_explorer
from wsabi.adaptive.search.known_regions import KnownRegions
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.symmetry.candidates import Candidates
from wsabi.adaptive.symmetry.group import Symmetry
from wsabi.adaptive.symmetry.proof import Image, ImagePoint, ImageTests
from wsabi.ledger import Action
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
    """A likelihood, a region known from thirty points for each centre, and the images asked for so far.

    The symmetries ``named`` and ``declared`` are to be tested, in the order in which they are given.
    """

    def __init__(
        self,
        log_l: Function,
        *centres: np.ndarray,
        named: Sequence[Symmetry] = (),
        declared: Sequence[Symmetry] = (),
        kinds: Sequence[int] | None = None,
        measure: Measure | None = None,
    ) -> None:
        dim = len(centres[0])
        self.log_l = log_l
        self.known = KnownRegions(Gaussian(np.zeros(dim)) if measure is None else measure)
        self.X = np.empty((0, dim))
        kinds = (0,) * dim if kinds is None else tuple(kinds)
        self.images = ImageTests(Candidates(kinds, tuple(declared), tuple(named)))
        for centre in centres:
            self.know(centre)

    def know(self, centre: np.ndarray, log_z: float = 0.0) -> None:
        """A search has found the region at the centre, of that mass."""
        dim = len(centre)
        rng = np.random.default_rng(len(self.X))
        frame = Frame.of(centre, WIDTH**2 * np.eye(dim))
        X = frame.colour(rng.standard_normal((30, dim)))
        self.X = np.vstack([self.X, X])
        explorer = a_fitted_explorer(frame, X, self.log_l(X), log_z, measure=self.known.measure)
        self.known = self.known.recorded(SearchRecord(30, 0.0, "new region"), explorer, 1.0)

    @property
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """X (N, D) and log ℓπ (N,)."""
        return self.X, self.log_joint(self.X)

    def log_joint(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.log_l(X) + self.known.measure.log_pdf(X))

    @property
    def top(self) -> np.ndarray:
        """The best point (D,) of the first region."""
        return self.top_of(0)

    def top_of(self, number: int) -> np.ndarray:
        """The best point (D,) of the search of that number."""
        X = self.X[30 * number : 30 * number + 30]
        return np.asarray(X[int(np.argmax(self.log_joint(X)))])

    def prepare(self) -> None:
        self.images = self.images.prepared(self.known, *self.data)

    def next_point(self) -> Action | None:
        self.images, action = self.images.handed_out()
        return action

    def handed_out(self) -> list[Action]:
        """All images in the queue."""
        actions = []
        while (action := self.next_point()) is not None:
            actions.append(action)
        return actions

    def tell(self, actions: Sequence[Action], off: float = 0.0) -> None:
        """Tell log ℓπ at images, each higher by ``off``; without it they become data."""
        for action in actions:
            assert isinstance(action.purpose, ImagePoint)
            self.images = self.images.told(action.purpose, float(self.log_joint(action.u[None, :])[0]) + off)
        if off == 0.0:
            self.X = np.vstack([self.X, *points_of(actions)])

    def conclude(self) -> None:
        self.images, self.known = self.images.concluded(self.known, *self.data)

    def ask(self) -> list[np.ndarray]:
        """Evaluate what is queued, draw conclusions, and give the points."""
        actions = self.handed_out()
        self.tell(actions)
        self.conclude()
        return points_of(actions)

    def unsearched(self) -> Image | None:
        self.images, image = self.images.next_unsearched(self.known)
        return image

    @property
    def shares(self) -> list[float]:
        return self.images.unsearched_shares(self.known)


def points_of(actions: Sequence[Action]) -> list[np.ndarray]:
    return [action.u for action in actions]


def is_in(x: np.ndarray, points: Any) -> bool:
    return any(np.array_equal(x, other) for other in points)


def everything_answered(world: World) -> list[np.ndarray]:
    """What is asked for until nothing is left; all of it is told, and conclusions drawn each time."""
    points: list[np.ndarray] = []
    for _ in range(5):
        world.prepare()
        while world.images.is_asking or world.images.has_answers:
            points += world.ask()
    return points
