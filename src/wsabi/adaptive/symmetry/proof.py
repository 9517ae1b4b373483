"""ImageTests: which images of known regions to evaluate, what was answered, and which symmetries that proves.

The image of a region's best point is evaluated. Where ℓ and π are the same there as at the original, the images of
three more points of the region are evaluated. If these agree as well, the symmetry counts as proved. Then every image
of the region is a region with the same mass, and every evaluation holds at its images too. A single image that differs
refutes the symmetry. An image that differs and is higher than the known regions explain becomes the start of a search.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, product

import numpy as np

from wsabi._core.types import Array, Indices, Mask
from wsabi.adaptive.search.known_regions import KnownRegions
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.symmetry.candidates import Candidates
from wsabi.adaptive.symmetry.group import Symmetry, connecting
from wsabi.adaptive.tuning import TUNING
from wsabi.ledger import Action

__all__ = ["Image", "ImagePoint", "ImageTests"]

Key = tuple[int, Symmetry]  # a family of regions, and a symmetry that is tested on it


@dataclass(frozen=True)
class ImagePoint:
    """What an evaluation of an image is for: it names the image by its number."""

    number: int

    @property
    def label(self) -> str:
        """In a word, for the ledger."""
        return "image"


@dataclass(frozen=True, eq=False)
class Image:
    """The image of one point of a known region.

    Parameters
    ----------
    x : (D,) the image.
    symmetry : what makes x of the original.
    log_original : log ℓπ at the original.
    frame : q of the region of the original.
    family : number of the family of that region.
    number : of this image; none is given twice in a run.
    """

    x: Array
    symmetry: Symmetry
    log_original: float
    frame: Frame
    family: int
    number: int = -1

    @property
    def key(self) -> Key:
        """What the image tests."""
        return self.family, self.symmetry


@dataclass(frozen=True, eq=False)
class ImageTests:
    """Tests of symmetries: images to evaluate, a few before each search, and what follows from the answers.

    Every method that changes something returns a new object. A symmetry is proved on one region. Every other region has
    to confirm it by one image before its images count as regions, and the first image that differs refutes it.

    Parameters
    ----------
    candidates : the symmetries to test, beside those that connect two known regions.
    tried : what was tested, or is being tested.
    queue : images to evaluate.
    awaited : images handed out and not told yet.
    answers : images that were told, with log ℓπ there, from which no conclusions were drawn yet.
    n_agreed : how many further images have agreed, for symmetries under which the image of the best point agrees.
    matches : symmetries that connect two regions, in the order in which they were met.
    unsearched : images that the known regions do not explain, with log ℓ there.
    differences : by how many nats ℓπ was seen to differ, at most, under a symmetry that was refuted.
    n_asked : images queued so far, which is the number of the next.
    """

    candidates: Candidates
    tried: frozenset[Key] = frozenset()
    queue: tuple[Image, ...] = ()
    awaited: tuple[Image, ...] = ()
    answers: tuple[tuple[Image, float], ...] = ()
    n_agreed: Mapping[Key, int] = field(default_factory=dict)
    matches: tuple[Symmetry, ...] = ()
    unsearched: tuple[tuple[Image, float], ...] = ()
    differences: Mapping[Symmetry, float] = field(default_factory=dict)
    n_asked: int = 0

    # -- asking -------------------------------------------------------------------------------------------------------

    def prepared(self, known: KnownRegions, X: Array, log_joint: Array) -> ImageTests:
        """The tests with up to D + 1 images queued, half as many as a search begins with.

        First come symmetries that a newer region has not confirmed, then those that connect two regions, then those
        declared, then those that names suggest. What was refuted once is not asked again.

        Parameters
        ----------
        X, log_joint : (N, D) training data, (N,) log ℓπ there.
        """
        tests = self.forgotten()
        matches = tuple(dict.fromkeys([*tests.matches, *tests._connections(known)]))
        tests = replace(tests, matches=matches)
        new = [*matches, *tests.candidates.declared, *tests.candidates.named]
        settled = {*known.group, *known.refuted}
        some = chain(known.symmetries, (symmetry for symmetry in new if symmetry not in settled))
        return tests._enqueued(some, known, X, log_joint)

    def _connections(self, known: KnownRegions) -> Iterator[Symmetry]:
        """Symmetries under which one known region may be the image of another, of about the same mass."""
        regions = [region for region in known.regions if region.symmetry is None]
        for one, other in combinations(regions, 2):
            if abs(one.explorer.log_z - other.explorer.log_z) < TUNING.symmetry.same_mass:
                symmetry = connecting(one.explorer.frame, other.explorer.frame, self.candidates.kinds)
                if symmetry is not None and symmetry not in known.refuted and symmetry not in known.group:
                    yield symmetry

    def forgotten(self) -> ImageTests:
        """Without the images that were not told. They may be asked for again."""
        given_up = {image.key for image in self.awaited + self.queue}
        n_agreed = {key: n for key, n in self.n_agreed.items() if key not in given_up}
        return replace(self, tried=self.tried - given_up, n_agreed=n_agreed, awaited=(), queue=())

    def _enqueued(self, some: Iterable[Symmetry], known: KnownRegions, X: Array, log_joint: Array) -> ImageTests:
        """With images by some symmetries in the queue, D + 1 at most: one of each region that is no image itself."""
        tests, n_left = self, X.shape[1] + 1
        originals = [region for region in known.regions if region.symmetry is None]
        for symmetry, region in product(dict.fromkeys(some), originals):
            inside = _best_inside(region.explorer.frame, X, log_joint)
            if n_left == 0 or (region.family, symmetry) in tests.tried or not len(inside):
                continue
            top, height = X[inside[0]], float(log_joint[inside[0]])
            image = Image(symmetry.image(top), symmetry, height, region.explorer.frame, region.family)
            tests = replace(tests, tried=tests.tried | {image.key})
            if tests._is_worth_it(image, known, X, log_joint):
                tests = tests._asked(image, X, log_joint)
                n_left -= 1
        return tests

    def _is_worth_it(self, image: Image, known: KnownRegions, X: Array, log_joint: Array) -> bool:
        """Whether an image can tell something.

        It cannot where the prior is much lower than at the original, nor beside an evaluation that was low. The latter
        does not count for symmetries that were declared or proved: these are to be refuted by a value at the image. An
        image inside a known region counts only where the symmetry was not merely suggested by names.
        """
        original = image.symmetry.inverse.image(image.x)
        log_prior = known.measure.log_pdf(np.stack([original, image.x]))
        low = image.symmetry.inverse.image(X[log_joint < image.log_original - TUNING.known.negligible])
        needed = image.symmetry in [*known.symmetries, *self.candidates.declared]
        is_empty = not needed and bool(_is_near(image.frame, original, low).any())
        merely_named = not needed and image.symmetry not in self.matches
        is_inside = merely_named and known.index_at(image.x) is not None
        is_queued = any(np.array_equal(image.x, other.x) for other in self.queue)
        return bool(log_prior[1] > log_prior[0] - TUNING.known.negligible) and not (is_empty or is_inside or is_queued)

    def _asked(self, image: Image, X: Array, log_joint: Array) -> ImageTests:
        """With an image in the queue; or with its answer, where it was evaluated before."""
        tests, image = replace(self, n_asked=self.n_asked + 1), replace(image, number=self.n_asked)
        near = TUNING.symmetry.same_point * (1.0 + np.abs(image.x))
        here = np.flatnonzero(np.all(np.abs(X - image.x) <= near, axis=1))
        if len(here):
            return replace(tests, answers=(*tests.answers, (image, float(log_joint[here[0]]))))
        return replace(tests, queue=(*tests.queue, image))

    def handed_out(self) -> tuple[ImageTests, Action | None]:
        """The tests with one image handed out, and that image with its purpose; None where there is none left."""
        if not self.queue:
            return self, None
        image, *rest = self.queue
        handed_out = replace(self, queue=tuple(rest), awaited=(*self.awaited, image))
        return handed_out, Action(image.x, ImagePoint(image.number))

    @property
    def is_asking(self) -> bool:
        """Whether there are images to evaluate, or to be told."""
        return bool(self.queue or self.awaited)

    # -- answers ------------------------------------------------------------------------------------------------------

    def told(self, purpose: ImagePoint, log_joint: float) -> ImageTests:
        """With log ℓπ at an image that was handed out. One that was given up since is ignored."""
        told = tuple((image, log_joint) for image in self.awaited if image.number == purpose.number)
        awaited = tuple(image for image in self.awaited if image.number != purpose.number)
        return replace(self, awaited=awaited, answers=self.answers + told)

    @property
    def has_answers(self) -> bool:
        """Whether something was told from which no conclusions were drawn."""
        return bool(self.answers)

    def concluded(self, known: KnownRegions, X: Array, log_joint: Array) -> tuple[ImageTests, KnownRegions]:
        """The tests and the known regions after conclusions from all answers, once every image asked for is told.

        A symmetry that is proved is added to the known regions, and one that a region does not have is taken away. Up
        to D + 1 images that the answers call for are queued.

        Parameters
        ----------
        X, log_joint : (N, D) training data, (N,) log ℓπ there.
        """
        tests = self
        while tests.answers and not tests.is_asking:
            answers, tests = tests.answers, replace(tests, answers=())
            proved: list[Symmetry] = []
            for image, height in answers:
                tests, known, is_proof = tests._judged(image, height, known, X, log_joint)
                proved += [image.symmetry] if is_proof else []
            tests = tests._enqueued(proved, known, X, log_joint)
        return tests, known

    def _judged(
        self, image: Image, height: float, known: KnownRegions, X: Array, log_joint: Array
    ) -> tuple[ImageTests, KnownRegions, bool]:
        """The tests and the known regions after one answer, log ℓπ at an image; and whether it completes a proof."""
        tests, symmetry, key = self, image.symmetry, image.key
        log_prior = known.measure.log_pdf(np.stack([image.x, symmetry.inverse.image(image.x)]))
        off = float(max(abs(log_prior[0] - log_prior[1]), abs(height - image.log_original)))
        same, was_proved, is_proof = off <= TUNING.symmetry.same, symmetry in known.symmetries, False
        if not same:
            worst = max(off, tests.differences.get(symmetry, 0.0))
            tests = replace(tests, differences={**tests.differences, symmetry: worst})
        if was_proved:
            known = known.with_answer(symmetry, image.family, holds=same)
        elif not same:
            known = known.with_refuted(symmetry)
        elif key in tests.n_agreed:
            agreed = tests.n_agreed[key] + 1
            tests = replace(tests, n_agreed={**tests.n_agreed, key: agreed})
            is_proof = agreed == TUNING.symmetry.checks
        if is_proof:
            known = known.with_symmetry(symmetry, image.family)
            # The other families have to confirm it, also those that were tried before.
            tests = replace(tests, tried=tests.tried - {(family, symmetry) for family in known.families})
        log_l = height - float(log_prior[0])
        if not is_proof and known.unexplained(image.x[None, :], np.array([log_l])) is not None:
            tests = replace(tests, unsearched=(*tests.unsearched, (image, log_l)))
        if same and not was_proved and key not in tests.n_agreed:
            tests = tests._checked(image, X, log_joint)
        return tests, known, is_proof

    def _checked(self, image: Image, X: Array, log_joint: Array) -> ImageTests:
        """With the further images that are to prove a symmetry; unchanged where the region has too few points."""
        checks = _checks(image, X, log_joint)
        if not checks:
            return self
        tests = replace(self, n_agreed={**self.n_agreed, image.key: 0})
        for check in checks:
            tests = tests._asked(check, X, log_joint)
        return tests

    # -- images that hold mass and are no regions yet -----------------------------------------------------------------

    @property
    def has_unsearched(self) -> bool:
        """Whether images were not explained and not searched, and all is told that might explain them."""
        return bool(self.unsearched) and not self.is_asking

    def next_unsearched(self, known: KnownRegions) -> tuple[ImageTests, Image | None]:
        """The tests without the image of highest likelihood that the known regions do not explain, and that image."""
        left = sorted(self.unsearched, key=lambda one: one[1])
        while left:
            image, log_l = left.pop()
            if known.unexplained(image.x[None, :], np.array([log_l])) is not None:
                return replace(self, unsearched=tuple(left)), image
        return replace(self, unsearched=()), None

    def unsearched_shares(self, known: KnownRegions) -> list[float]:
        """Mass, relative to that known, which images not searched yet may hold: one number for each symmetry.

        It is the mass of the region of the original, times the ratio of ℓπ at the image and at the original.
        """
        shares: dict[Symmetry, float] = {}
        for image, log_l in self.unsearched:
            if known.unexplained(image.x[None, :], np.array([log_l])) is not None:
                height = log_l + known.measure.log_pdf(image.x[None, :])[0] - image.log_original
                share = math.exp(min(height, 0.0) + known.log_mass(image.family) - known.log_total)
                shares[image.symmetry] = max(share, shares.get(image.symmetry, 0.0))
        return list(shares.values())


def _best_inside(frame: Frame, X: Array, log_joint: Array) -> Indices:
    """Indices of X (N, D) in the bulk of a region's q where ℓ > 0, the highest ℓπ first."""
    near = np.linalg.norm(frame.whiten(X), axis=1) < math.sqrt(X.shape[1]) + 1.0
    inside = np.flatnonzero(near & np.isfinite(log_joint))
    return np.asarray(inside[np.argsort(-log_joint[inside])])


def _is_near(frame: Frame, x: Array, X: Array) -> Mask:
    """Which of X (N, D) lie within TUNING.search.away standard deviations of q of x (D,)."""
    return np.asarray(np.linalg.norm(frame.whiten(X) - frame.whiten(x[None, :]), axis=1) <= TUNING.search.away)


def _checks(image: Image, X: Array, log_joint: Array) -> list[Image]:
    """Images of further points of the same region, spread over its ranks in ℓπ; none where there are too few points.

    Points close to the best one are left out, since that has answered. So are points close to their own image, since
    they would prove nothing.
    """
    frame, n = image.frame, TUNING.symmetry.checks
    inside = _best_inside(frame, X, log_joint)
    inside = inside[~_is_near(frame, image.symmetry.inverse.image(image.x), X[inside])]
    moved = frame.whiten(image.symmetry.image(X[inside])) - frame.whiten(X[inside])
    inside = inside[np.linalg.norm(moved, axis=1) > TUNING.search.away]
    if len(inside) < n:
        return []
    chosen = inside[np.linspace(0, len(inside) - 1, n).astype(np.intp)]
    return [replace(image, x=image.symmetry.image(X[i]), log_original=float(log_joint[i])) for i in chosen]
