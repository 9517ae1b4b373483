"""ImageTests: which images of known regions have been asked about, which answered, and which symmetries that proves.

An evaluation at the image of a region's best point answers where it exceeds what is known there. Where ℓ and π are the
same as at the original, the images of three more points of the region are evaluated; if these agree too, the symmetry
counts as proved: every image of a region is a region, with the same mass, and every evaluation is one at its images.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice

import numpy as np

from wsabi._core.types import Array, Indices, Mask
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.search.known_regions import KnownRegions
from wsabi.adaptive.symmetry.group import Symmetry, close_to, connecting, suggested_by, symmetries
from wsabi.adaptive.tuning import TUNING

__all__ = ["Image", "ImagePoint", "ImageTests"]

CHECKS = 3  # points beside the best: where ℓ hardly depends on an axis one may agree by chance, four apart do not
SAME = 1e-6  # nats: two values that are equal but for round-off
SAME_MASS = 0.5  # nats: surrogates of two images, each by its own data, hardly differ by more


@dataclass(frozen=True)
class Image:
    """The symmetry image x (D,) of a point of an explorer's region, and log ℓπ at the original; the region's family."""

    x: Array
    symmetry: Symmetry
    log_original: float
    explorer: Explorer
    family: int


@dataclass(frozen=True, eq=False)
class ImagePoint:
    """An evaluation at an image of a region's point."""

    image: Image
    label: str = "image"


class ImageTests:
    """ImageTests to evaluate, a few before each look, and what follows from the answers.

    A symmetry is proved on one region. On every other it has to be confirmed by one image before that is a region too,
    and the first that has a different value refutes it.

    Parameters
    ----------
    kinds : (D,) parameters with the same number have the same prior.
    """

    def __init__(self, kinds: Sequence[int]) -> None:
        self.kinds = tuple(kinds)
        self._tried: set[tuple[int, Symmetry]] = set()  # family, and a symmetry tried on it
        self._queue: list[Image] = []  # to be evaluated
        self._awaited: dict[bytes, Image] = {}  # handed out, by their place
        self._answers: list[tuple[Image, float]] = []  # with log ℓ
        # How many checks have agreed, of a symmetry under which a family's best point has an equal image.
        self._checks: dict[tuple[int, Symmetry], int] = {}
        self._connecting: dict[Symmetry, None] = {}  # by which one known region may be the image of another, in order
        self._echoes: list[tuple[float, Image]] = []  # images that hold mass, with their log ℓ, not looked at yet

    def _copy(self) -> ImageTests:
        other = ImageTests(self.kinds)
        other._tried = set(self._tried)
        other._queue = list(self._queue)
        other._awaited = dict(self._awaited)
        other._answers = list(self._answers)
        other._checks = dict(self._checks)
        other._connecting = dict(self._connecting)
        other._echoes = list(self._echoes)
        return other

    def prepared(self, known: KnownRegions, X: Array, log_joint: Array) -> ImageTests:
        other = self._copy()
        other.prepare(known, X, log_joint)
        return other

    def forgotten(self) -> ImageTests:
        other = self._copy()
        other.forget()
        return other

    def handed_out(self) -> tuple[ImageTests, ImagePoint | None]:
        if not self._queue:
            return self, None
        other = self._copy()
        image = other._queue.pop(0)
        other._awaited[image.x.tobytes()] = image
        return other, ImagePoint(image)

    def told(self, point: ImagePoint, log_l: float) -> ImageTests:
        other = self._copy()
        other.tell(point.image.x, log_l)
        return other

    def concluded(self, known: KnownRegions, X: Array, log_joint: Array) -> tuple[ImageTests, KnownRegions]:
        other = self._copy()
        known = other.conclude(known, X, log_joint)
        return other, known

    def next_echo(self, known: KnownRegions) -> tuple[ImageTests, Image | None]:
        other = self._copy()
        image = other.echo(known)
        return other, image

    # -- asking -------------------------------------------------------------------------------------------------------

    def prepare(self, found: KnownRegions, X: Array, log_joint: Array) -> None:
        """Queue up to D + 1 images, half of a look's design; X (N, D) and log ℓπ (N,) are the training data.

        Symmetries that a region found since has not confirmed come first, then what may connect two regions.
        """
        self.forget()
        self._connecting.update(dict.fromkeys(self._connections(found)))
        unproved = [symmetry for symmetry in self._connecting if symmetry not in found.group]
        some = chain(list(found.symmetries), unproved, symmetries(self.kinds))
        self._enqueue(some, found, X, log_joint)

    def _connections(self, found: KnownRegions) -> Iterator[Symmetry]:
        """Mirrors by which one region may be the image of another, of about the same mass."""
        sites = [site for site in found.regions if site.symmetry is None]
        for one, other in combinations(sites, 2):
            if abs(one.explorer.log_z - other.explorer.log_z) < SAME_MASS:
                symmetry = connecting(one.explorer.frame, other.explorer.frame, self.kinds)
                if symmetry is not None and symmetry not in found.refuted and symmetry not in found.group:
                    yield symmetry

    def forget(self) -> None:
        """Give up the images that were not told; they may be asked for again."""
        for image in [*self._awaited.values(), *self._queue]:
            self._tried.discard((image.family, image.symmetry))
            self._checks.pop((image.family, image.symmetry), None)
        self._awaited.clear()
        self._queue.clear()

    def _enqueue(self, some: Iterable[Symmetry], found: KnownRegions, X: Array, log_joint: Array) -> None:
        alike = (
            symmetry for symmetry in some if all(self.kinds[d] == self.kinds[e] for d, e in enumerate(symmetry.order))
        )
        every = (image for symmetry in alike for image in self._made(symmetry, found, X, log_joint))
        for image in islice(every, len(self.kinds) + 1):
            self._ask(image, X, log_joint, found)

    def _ask(self, image: Image, X: Array, log_joint: Array, found: KnownRegions) -> None:
        """Queue an image; one that was evaluated before, in an earlier run, has answered already."""
        here = np.flatnonzero(np.all(np.abs(X - image.x) <= 1e-12 * (1.0 + np.abs(image.x)), axis=1))
        if len(here):
            self._answers.append((image, float(log_joint[here[0]] - found.measure.log_pdf(X[here[:1]])[0])))
        else:
            self._queue.append(image)

    def next_point(self) -> Array | None:
        """The next image to evaluate, (D,), or None."""
        if not self._queue:
            return None
        image = self._queue.pop(0)
        self._awaited[image.x.tobytes()] = image
        return image.x

    def purpose_of(self, x: Array) -> str | None:
        """What an image x (D,) that was handed out is for; None for other points."""
        return "image" if x.tobytes() in self._awaited else None

    @property
    def is_asking(self) -> bool:
        """Whether there are images to evaluate, or to be told."""
        return bool(self._queue or self._awaited)

    def _made(self, symmetry: Symmetry, found: KnownRegions, X: Array, log_joint: Array) -> Iterator[Image]:
        """Images by a symmetry that were not asked for before, one for each region that is not an image itself.

        Left out are those in the bulk of a known region, those of much less prior than the original has, and those
        beside which an evaluation has told already that there is next to nothing.
        """
        for site in found.regions:
            if site.symmetry is not None or (site.family, symmetry) in self._tried:
                continue
            inside = _best_inside(site.explorer, X, log_joint)
            if not len(inside):
                continue
            self._tried.add((site.family, symmetry))
            top = X[inside[0]]
            image = Image(symmetry.image(top), symmetry, float(log_joint[inside[0]]), site.explorer, site.family)
            log_prior = found.measure.log_pdf(np.stack([top, image.x]))
            low = X[log_joint < image.log_original - TUNING.known.negligible]
            # What a symmetry needs to be confirmed is asked, or looked up, wherever it lies.
            barren = (
                symmetry not in found.symmetries and _is_near(site.explorer, top, symmetry.inverse.image(low)).any()
            )
            queued = any(np.array_equal(image.x, other.x) for other in self._queue)
            elsewhere = found.index_at(image.x) is None or symmetry in self._connecting
            if log_prior[1] > log_prior[0] - TUNING.known.negligible and elsewhere and not (barren or queued):
                yield image

    # -- answers ------------------------------------------------------------------------------------------------------

    def tell(self, x: Array, log_l: float) -> None:
        """Take log ℓ at x (D,), if it is one of the images handed out."""
        image = self._awaited.pop(x.tobytes(), None)
        if image is not None:
            self._answers.append((image, log_l))

    @property
    def has_answers(self) -> bool:
        """Whether something was told from which no conclusions were drawn."""
        return bool(self._answers)

    def conclude(self, found: KnownRegions, X: Array, log_joint: Array) -> KnownRegions:
        """Draw conclusions once all images asked for are told; X (N, D) and log ℓπ (N,) are the training data.

        A symmetry that is proved is added to ``found``; one that a region does not have is taken from it. Images that
        the answers make worth asking about are queued, D + 1 at most.
        """
        while self._answers and not self.is_asking:
            answers = list(self._answers)
            likely: list[Symmetry] = []
            for image, log_l in answers:
                found, more = self._judge(image, log_l, found, X, log_joint)
                likely += more
            del self._answers[: len(answers)]
            self._enqueue(likely, found, X, log_joint)
        return found

    def _judge(
        self, image: Image, log_l: float, found: KnownRegions, X: Array, log_joint: Array
    ) -> tuple[KnownRegions, list[Symmetry]]:
        """Take note of one answer; symmetries that it makes likelier."""
        key = image.family, image.symmetry
        log_prior = found.measure.log_pdf(np.stack([image.x, image.symmetry.inverse.image(image.x)]))
        same = max(abs(log_prior[0] - log_prior[1]), abs(log_l + log_prior[0] - image.log_original)) <= SAME
        if image.symmetry in found.symmetries:
            found = found.with_answer(image.symmetry, image.family, holds=bool(same))
        elif not same:
            found = found.with_refuted(image.symmetry)
        elif key in self._checks:
            self._checks[key] += 1
            if self._checks[key] == CHECKS:
                found = found.with_symmetry(image.symmetry, image.family)
                # The other families are asked, or asked again: now they have to confirm it.
                self._tried -= {(family, image.symmetry) for family in found.families}
                return found, [image.symmetry, *suggested_by(image.symmetry)]
        if found.unexplained(image.x[None, :], np.array([log_l])) is not None:
            self._echoes.append((log_l, image))
        elif not (same and image.symmetry in self._connecting):
            return found, []
        if key in self._checks or image.symmetry in found.symmetries:
            return found, []
        if not same:
            return found, close_to(image.symmetry)
        checks = _checks(image, X, log_joint)
        if checks:
            self._checks[key] = 0
        for check in checks:
            self._ask(check, X, log_joint, found)
        return found, []

    @property
    def has_echo(self) -> bool:
        """Whether there are images that held mass and were not looked at, and all is told that might explain them."""
        return bool(self._echoes) and not self.is_asking

    def echo(self, found: KnownRegions) -> Image | None:
        """The image of most likelihood that is not explained by the regions found by now, given once."""
        self._echoes.sort(key=lambda echo: echo[0])
        while self._echoes:
            log_l, image = self._echoes.pop()
            if found.unexplained(image.x[None, :], np.array([log_l])) is not None:
                return image
        return None

    def echoing_shares(self, found: KnownRegions) -> list[float]:
        """Mass, relative to that found, that images not looked at yet may hold, one number for each symmetry.

        What the region of the original has, multiplied by the ratio of ℓπ at the image and at the original.
        """
        shares: dict[Symmetry, float] = {}
        for log_l, image in self._echoes:
            if found.unexplained(image.x[None, :], np.array([log_l])) is not None:
                height = log_l + found.measure.log_pdf(image.x[None, :])[0] - image.log_original
                share = math.exp(min(height, 0.0) + found.log_mass(image.family) - found.log_total)
                shares[image.symmetry] = max(share, shares.get(image.symmetry, 0.0))
        return list(shares.values())


def _best_inside(explorer: Explorer, X: Array, log_joint: Array) -> Indices:
    """Indices of X (N, D) in the bulk of an explorer's q where ℓ > 0, those of most ℓπ first."""
    near = np.linalg.norm(explorer.frame.whiten(X), axis=1) < math.sqrt(X.shape[1]) + 1.0
    inside = np.flatnonzero(near & np.isfinite(log_joint))
    return np.asarray(inside[np.argsort(-log_joint[inside])])


def _is_near(explorer: Explorer, x: Array, X: Array) -> Mask:
    """Which of X (N, D) lie within half an sd of q of x (D,)."""
    frame = explorer.frame
    return np.asarray(np.linalg.norm(frame.whiten(X) - frame.whiten(x[None, :]), axis=1) <= TUNING.search.away)


def _checks(image: Image, X: Array, log_joint: Array) -> list[Image]:
    """Images of CHECKS points of the same region, or nothing where there are not so many.

    None is close to its best point, which has answered, nor to its own image, which would prove nothing.
    """
    inside = _best_inside(image.explorer, X, log_joint)
    inside = inside[~_is_near(image.explorer, image.symmetry.inverse.image(image.x), X[inside])]
    moved = image.explorer.frame.whiten(image.symmetry.image(X[inside])) - image.explorer.frame.whiten(X[inside])
    inside = inside[np.linalg.norm(moved, axis=1) > TUNING.search.away]
    if len(inside) < CHECKS:
        return []
    chosen = inside[np.linspace(0, len(inside) - 1, CHECKS).astype(np.intp)]
    return [dataclasses.replace(image, x=image.symmetry.image(X[i]), log_original=float(log_joint[i])) for i in chosen]
