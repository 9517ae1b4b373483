"""Regions and their symmetry images: cloned, counted as one family, moved and dropped together."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from found_by_hand import ELSEWHERE, HERE, MEASURE, THERE, a_record, an_explorer, hits_of, known_of
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.search.known_regions import KnownRegions, Region
from wsabi.adaptive.search.matching import matched
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.symmetry.group import Symmetry, reflected
from wsabi.adaptive.tuning import TUNING
from wsabi.priors import Gaussian

ALONE, NEGLIGIBLE, CAUTION = TUNING.known.unseen_after_one, TUNING.known.negligible, TUNING.search.caution
MOST_IMAGES = int(TUNING.symmetry.most_images)

pytestmark = pytest.mark.sensitive

# -- symmetry images ---------------------------------------------------------------------------------------------------

SWAP, REVERSAL = Symmetry((1, 0), (1, 1)), Symmetry((0, 1), (-1, -1))
ASIDE = np.array([2.0, 0.5])  # on none of their planes
CYCLE = Symmetry((1, 2, 0), (1, -1, 1))  # u' = (u₁, −u₂, u₀): the sixth power, and none before, is the identity
CORNER = np.array([2.0, 0.5, -1.0])


def centres_of(known: KnownRegions) -> np.ndarray:
    return np.array([explorer.frame.mean for explorer in known.explorers])


def cycled(X: np.ndarray) -> np.ndarray:
    """The image by CYCLE, written out."""
    return np.stack([X[..., 1], -X[..., 2], X[..., 0]], axis=-1)


def turned(x: np.ndarray, n: int) -> np.ndarray:
    """The image by CYCLE taken n times."""
    return x if n == 0 else turned(cycled(x), n - 1)


def cyclic(explorer: Explorer) -> KnownRegions:
    """That region and its five images, the nth of them CYCLE taken n times."""
    known = KnownRegions(Gaussian(np.zeros(3)))
    known = known.recorded(a_record("new region"), explorer, 1.0)
    known = known.with_symmetry(CYCLE, 0)
    assert_array_equal(centres_of(known), [turned(explorer.frame.mean, n) for n in range(6)])
    return known


def test_a_symmetry_clones_the_regions_that_are_not_known_at_their_images() -> None:
    tilted = an_explorer(ASIDE, -1.0, frame=Frame.of(ASIDE, np.array([[0.02, 0.008], [0.008, 0.01]])))
    known = known_of(("new region", tilted), ("new region", an_explorer(THERE)), ("new region", an_explorer(-THERE)))
    known = known.with_symmetry(SWAP, 0)
    for family in (1, 2):  # THERE and −THERE are images of each other
        known = known.with_answer(SWAP, family, holds=True)
    assert_array_equal(centres_of(known), [ASIDE, THERE, -THERE, ASIDE[::-1]])
    clone = known.regions[3]
    assert_allclose(clone.explorer.frame.cov, [[0.01, 0.008], [0.008, 0.02]], rtol=1e-12)
    assert clone.explorer.log_z == -1.0
    assert clone.symmetry == SWAP
    assert hits_of(known) == [1, 1, 1, 0]
    assert known.families == [0, 1, 2, 0]
    assert known.explorers[0] is tilted


def test_regions_found_or_taken_later_are_cloned_once_they_are_confirmed() -> None:
    known = known_of(("new region", an_explorer(ASIDE)))
    known = known.with_symmetry(SWAP, 0)
    assert known.symmetries == (SWAP,)
    known = known.recorded(a_record("new region"), an_explorer(2.0 * ASIDE), 0.5)
    known = known.taken(a_record("unfinished"), an_explorer(-ASIDE))
    centres = [ASIDE, ASIDE[::-1], 2.0 * ASIDE, -ASIDE]
    assert_array_equal(centres_of(known), centres)  # they may not have it
    for family, image in ((2, -ASIDE[::-1]), (1, 2.0 * ASIDE[::-1])):
        for _ in range(2):  # twice is no news
            known = known.with_answer(SWAP, family, holds=True)
        centres.append(image)
        assert_array_equal(centres_of(known), centres)
    assert known.families == [0, 0, 1, 2, 2, 1]
    assert [region.symmetry for region in known.regions] == [None, SWAP, None, None, SWAP, SWAP]


def test_a_family_is_cloned_only_when_it_has_confirmed_every_symmetry() -> None:
    known = known_of(("new region", an_explorer(ASIDE)), ("new region", an_explorer(2.0 * ASIDE)))
    known = known.with_symmetry(SWAP, 0)
    known = known.with_symmetry(REVERSAL, 0)
    assert known.families == [0, 1, 0, 0, 0]
    known = known.with_answer(REVERSAL, 1, holds=True)
    assert known.families == [0, 1, 0, 0, 0]
    known = known.with_answer(SWAP, 1, holds=True)
    assert known.families == [0, 1, 0, 0, 0, 1, 1, 1]
    assert_array_equal(centres_of(known)[5:], 2.0 * np.array([ASIDE[::-1], -ASIDE, -ASIDE[::-1]]))


def test_a_symmetry_that_one_family_has_not_is_none() -> None:
    """Images by it, or by a product with it, stay as regions of families of their own; those by others are images."""
    known = known_of(("new region", an_explorer(ASIDE)), ("new region", an_explorer(2.0 * ASIDE)))
    for symmetry in (SWAP, REVERSAL):
        known = known.with_symmetry(symmetry, 0)
    before, log_total = centres_of(known), known.log_total
    known = known.with_answer(REVERSAL, 1, holds=False)
    assert list(known.symmetries) == known.group == [SWAP]
    assert_array_equal(centres_of(known), before)
    assert_array_equal(before, [ASIDE, 2.0 * ASIDE, ASIDE[::-1], -ASIDE, -ASIDE[::-1]])
    assert known.families == [0, 1, 0, 2, 3]
    assert [region.symmetry for region in known.regions] == [None, None, SWAP, None, None]
    assert known.log_total == log_total
    # Each moves by itself from now on, and data have no image by the other any more.
    known = known.with_explorers(lambda old: an_explorer(old.frame.mean + np.array([0.1, 0.0]), old.log_z))
    expected = before + np.array([[0.1, 0.0], [0.1, 0.0], [0.0, 0.1], [0.1, 0.0], [0.1, 0.0]])
    assert_allclose(centres_of(known), expected, atol=1e-12)
    assert_array_equal(known.with_images(ASIDE[None, :], np.zeros(1))[0], [ASIDE, ASIDE[::-1]])
    # What is left can be confirmed by the others, and those that are images of each other stay two.
    for family in (1, 2, 3):
        known = known.with_answer(SWAP, family, holds=True)
    assert known.families == [0, 1, 0, 2, 3, 1]


def test_a_second_symmetry_brings_all_products() -> None:
    known = known_of(("new region", an_explorer(ASIDE)))
    known = known.with_symmetry(SWAP, 0)
    known = known.with_symmetry(REVERSAL, 0)
    assert_array_equal(centres_of(known), [ASIDE, ASIDE[::-1], -ASIDE, -ASIDE[::-1]])
    assert known.families == [0] * 4
    assert len(set(known.group)) == len(known.group) == 3
    known = known.with_symmetry(known.group[2], 0)  # no news
    assert len(known.regions) == 4
    assert known.symmetries == (SWAP, REVERSAL)
    assert known.beyond == ()
    assert known.beyond_share == 0.0


@pytest.mark.parametrize(("centre", "n_regions"), [((1.0, 1.0), 1), ((1.0, 1.28), 1), ((1.0, 1.32), 2)])
def test_a_region_that_maps_onto_itself_has_no_clone(centre: tuple[float, float], n_regions: int) -> None:
    """The bulk ends 0.42 from the centre: where the image is within it, 0.28 √2 away, it is the same region."""
    known = known_of(("new region", an_explorer(np.array(centre))))
    known = known.with_symmetry(SWAP, 0)
    assert len(known.regions) == n_regions


def test_data_count_at_their_images() -> None:
    X = np.random.default_rng(0).standard_normal((5, 2))
    log_l = np.array([0.0, -1.0, -2.0, -math.inf, -4.0])
    known = KnownRegions(MEASURE)
    for told, answer in zip((X, log_l), known.with_images(X, log_l), strict=True):
        assert_array_equal(answer, told)
    known = known.with_symmetry(SWAP, 0)
    known = known.with_symmetry(REVERSAL, 0)
    points, values = known.with_images(X, log_l)
    assert_array_equal(points, np.concatenate([X, X[:, ::-1], -X, -X[:, ::-1]]))
    assert_array_equal(values, np.concatenate([log_l] * 4))


def test_images_have_the_value_of_a_symmetric_function() -> None:
    """One that is symmetric in nothing but CYCLE: the mean over its powers of xy + x²y⁴."""

    def log_l(X: np.ndarray) -> np.ndarray:
        images = np.stack([turned(X, n) for n in range(6)])
        x, y = images[..., 0], images[..., 1]
        return np.asarray(np.mean(x * y + x**2 * y**4, axis=0))

    X = np.random.default_rng(0).standard_normal((4, 3))
    points, values = cyclic(an_explorer(CORNER)).with_images(X, log_l(X))
    assert_array_equal(points, np.concatenate([turned(X, n) for n in range(6)]))
    assert_allclose(values, log_l(points), atol=1e-12)


def test_images_move_with_their_originals() -> None:
    known = cyclic(an_explorer(CORNER))
    known = known.recorded(a_record("new region"), an_explorer(3.0 * CORNER), 0.5)
    known = known.with_answer(CYCLE, 1, holds=True)
    families, hits = known.families, hits_of(known)
    asked, shift = [], np.array([0.1, 0.0, -0.2])

    def moved(explorer: Explorer) -> Explorer:
        asked.append(explorer)
        return an_explorer(explorer.frame.mean + shift, explorer.log_z - 0.3)

    originals = [known.explorers[0], known.explorers[6]]
    known = known.with_explorers(moved)
    assert [id(explorer) for explorer in asked] == [id(explorer) for explorer in originals]  # and no image
    expected = [turned(scale * CORNER + shift, n) for scale in (1.0, 3.0) for n in range(6)]
    assert_allclose(centres_of(known), expected, atol=1e-12)
    assert [explorer.log_z for explorer in known.explorers] == [-0.3] * 12
    assert known.families == families
    assert hits_of(known) == hits


def test_a_search_that_came_back_to_an_image_is_a_hit_of_the_family() -> None:
    known = cyclic(an_explorer(CORNER))
    original = known.explorers[0]
    known = known.recorded(a_record("known region"), an_explorer(cycled(CORNER) + 0.02, 5.0), 0.0)
    assert hits_of(known) == [1, 1, 0, 0, 0, 0]
    assert known.families == [0] * 6
    assert known.explorers[0] is original
    assert known.unseen_share == ALONE / 2.0  # both searches ended in one place


@pytest.mark.parametrize("log_z", [-0.5, 0.5])
def test_more_mass_in_an_image_is_more_in_the_original(log_z: float) -> None:
    """By the inverse: CYCLE once more would be somewhere else."""
    known = cyclic(an_explorer(CORNER))
    original, shift = known.explorers[0], np.array([0.05, 0.02, 0.0])
    known = known.recorded(a_record("new region"), an_explorer(cycled(CORNER + shift), log_z), 0.5)
    assert hits_of(known) == [1, 1, 0, 0, 0, 0]
    assert known.families == [0] * 6
    if log_z < 0.0:
        assert known.explorers[0] is original
        return
    assert_allclose(centres_of(known), [turned(CORNER + shift, n) for n in range(6)], atol=1e-12)
    assert [explorer.log_z for explorer in known.explorers] == [0.5] * 6


def test_a_family_is_dropped_as_one_place() -> None:
    """Its four regions together hold a little less than what counts."""
    low = -NEGLIGIBLE - math.log(4.0) - 0.1
    known = known_of(("new region", an_explorer(ASIDE, low)), ("new region", an_explorer(THERE, -2.0)))
    for symmetry in (SWAP, REVERSAL):
        known = known.with_symmetry(symmetry, 0)
        known = known.with_answer(symmetry, 1, holds=True)
    assert known.families == [0, 1, 0, 1, 0, 0]
    assert known.n_negligible == 0
    known = known.recorded(a_record("new region"), an_explorer(np.zeros(2), 0.0), 0.5)
    assert_array_equal(centres_of(known), [THERE, -THERE, np.zeros(2)])
    assert known.n_negligible == 1


def test_a_family_is_one_kind_to_search_for() -> None:
    """Two regions met once each are two kinds; a region met once and its image met once are one, met twice."""

    def met(*regions: Region, n_negligible: int = 0) -> float:
        return KnownRegions(MEASURE, regions, (1.0, 0.0, 0.0), n_negligible).unseen_share

    here, image = an_explorer(ASIDE), an_explorer(ASIDE[::-1])
    # Two kinds met once: 1 + √14, held to three, of half the mass.
    assert_allclose(met(Region(here, 1, 0), Region(image, 1, 1)), 1.5, rtol=1e-12)
    assert met(Region(here, 1, 0), Region(image, 1, 0, SWAP)) == ALONE / 4.0  # two searches that found nothing
    # A family met once and a negligible place: as many, of half the mass of the family, which is all.
    assert_allclose(met(Region(here, 1, 0), Region(image, 0, 0, SWAP), n_negligible=1), 1.5, rtol=1e-12)
    # Two negligible places were met once, but have no mass.
    assert met(Region(here, 1, 0), Region(image, 1, 0, SWAP), n_negligible=2) == ALONE / 4.0
    # Beside another region met once, with a negligible place: ½ + √3.5 kinds of half the mass of the other, a third.
    other = Region(an_explorer(HERE), 1, 1)
    expected = (0.5 + math.sqrt(3.5)) / 6.0
    assert_allclose(met(Region(here, 1, 0), Region(image, 1, 0, SWAP), other, n_negligible=1), expected, rtol=1e-12)


def test_among_several_families_every_image_is_a_kind() -> None:
    """A family met in two of its regions is one kind met twice beside one other, and two met once beside two others."""

    def met(n_others: int) -> float:
        regions = [Region(an_explorer(ASIDE), 1, 0), Region(an_explorer(ASIDE[::-1]), 1, 0, SWAP)]
        regions += [Region(an_explorer(place), 5, 1 + k) for k, place in enumerate([HERE, ELSEWHERE][:n_others])]
        return KnownRegions(MEASURE, tuple(regions), (1.0, *([0.0] * 11))).unseen_share

    assert met(1) == ALONE / 2.0**11  # eleven searches that found nothing, and no kind met once
    assert_allclose(met(2), 0.25 * (1.0 + math.sqrt(14.0)), rtol=1e-12)  # 1 ± √14 kinds of a quarter


EXCHANGES = [Symmetry.of(5, (pair,)) for pair in combinations(range(5), 2)]  # all 120 orders of five are their products


def test_a_large_group_is_cut() -> None:
    """Four components have 24 orders, and more are not worth a model each."""
    assert MOST_IMAGES == 23
    confirmed = frozenset((symmetry, 0) for symmetry in EXCHANGES)
    known, x = KnownRegions(Gaussian(np.zeros(5)), symmetries=tuple(EXCHANGES), confirmed=confirmed), np.arange(5.0)
    assert len(known.group) == MOST_IMAGES
    known = known.recorded(a_record("new region"), an_explorer(x), 1.0)
    points, values = known.with_images(x[None, :], np.zeros(1))
    assert_array_equal(centres_of(known), points)
    assert points.shape == (24, 5)
    assert values.shape == (24,)
    assert len(np.unique(points, axis=0)) == 24
    assert_array_equal(np.sort(points, axis=1), np.tile(x, (24, 1)))


def test_a_group_that_grows_large_is_cut_for_known_regions_too() -> None:
    """However many symmetries come one by one, each region has MOST_IMAGES at most, all of them with images of data."""
    known = KnownRegions(Gaussian(np.zeros(5)))
    known = known.recorded(a_record("new region"), an_explorer(np.arange(5.0)), 1.0)
    for symmetry in EXCHANGES:
        known = known.with_symmetry(symmetry, 0)
        assert len(known.regions) <= 1 + MOST_IMAGES
        assert {region.symmetry for region in known.regions if region.symmetry is not None} <= set(known.group)


@pytest.mark.parametrize("order", [(1, 0, 2, 3, 4), (1, 2, 0, 3, 4), (1, 2, 3, 4, 0)])
def test_a_symmetry_beyond_what_can_be_followed_is_mass_not_found(order: tuple[int, ...]) -> None:
    """Five that can be exchanged have 120 orders, of which those that are followed are a share."""
    known = KnownRegions(Gaussian(np.zeros(5)))
    known = known.recorded(a_record("new region"), an_explorer(np.arange(5.0)), 1.0)
    known = known.with_symmetry(Symmetry(order, (1,) * 5), 0)
    for symmetry in EXCHANGES:
        before, known = known, known.with_symmetry(symmetry, 0)
        if len(known.beyond) > len(before.beyond):
            assert vars(known) == vars(replace(before, beyond=(*before.beyond, symmetry)))
        else:
            assert symmetry in known.group
    assert known.beyond
    assert_allclose(known.beyond_share, 120 / len(known.regions) - 1.0, rtol=1e-12)


def test_mass_beyond_is_counted_as_far_as_seven_components() -> None:
    neighbours = [Symmetry.of(8, ((d, d + 1),)) for d in range(7)]  # 40320 orders
    known = KnownRegions(Gaussian(np.zeros(8)), symmetries=tuple(neighbours[:3]), beyond=tuple(neighbours[3:]))
    assert_allclose(known.beyond_share, 5040 / 24 - 1.0, rtol=1e-12)


def round_off(explorer: Explorer, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What round-off may change in a surrogate's mean and variance of log ℓ at X (M, D), (M,) each, in nats and nats².

    To first order in errors δk of k = k(Y, x) and δK of K = LLᵀ, with w = K⁻¹ values, V = L⁻¹k and a = K⁻¹k,

        |δm| ≤ |δk|ᵀ|w| + |a|ᵀ|δK||w|,   |δv| ≤ δk(x, x) + 2|V|ᵀ|L⁻¹||δk| + |a|ᵀ|δK||a|

    and |δk| ≤ √N ε |k|, |δK| ≤ √N ε |L||Lᵀ|: N sums in another order differ by √N ε, with a probability that Higham and
    Mary (2019) bound; by N ε for certain. Seen were up to a twenty-fifth of this.
    """
    surrogate = explorer.fitted_surrogate
    Y, inverse, w = explorer.frame.whiten(X), np.linalg.inv(surrogate.L), np.abs(surrogate.weights)
    k = surrogate._kernel(Y).T
    V = inverse @ k
    a, K = np.abs(inverse.T @ V), np.abs(surrogate.L) @ np.abs(surrogate.L.T)
    mean = np.abs(k).T @ w + a.T @ (K @ w)
    variance = surrogate._prior_variance(Y) + 2.0 * np.sum(np.abs(V) * (np.abs(inverse) @ np.abs(k)), axis=0)
    variance += np.sum(a * (K @ a), axis=0)
    unit = math.sqrt(len(surrogate.Y)) * np.finfo(np.float64).eps
    return unit * mean, unit * variance


def assert_same(answer: np.ndarray, expected: np.ndarray, tolerance: np.ndarray) -> None:
    finite = np.isfinite(expected)
    assert_array_equal(np.isfinite(answer), finite)
    assert np.all(np.abs(answer[finite] - expected[finite]) <= tolerance[finite])


SLOPES = np.array([[2.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.5, -0.7, 3.0]])
TILTED = np.array([0.8, -0.3, 0.2])


@pytest.fixture(scope="module")
def slanting() -> tuple[Explorer, np.ndarray]:
    """An explorer of a tilted bump with a cubic and an infeasible corner, symmetric in nothing, and its points."""
    rng = np.random.default_rng(0)
    P = TILTED + 0.6 * rng.standard_normal((60, 3))
    log_l = -0.5 * np.square((P - TILTED) @ SLOPES).sum(axis=1) + 0.2 * P[:, 0] ** 3
    prior = Explorer.from_prior(Gaussian(np.zeros(3)))
    return matched(prior, P, np.where(P[:, 0] > 1.0, -np.inf, log_l), rng), P


@pytest.mark.parametrize("symmetry", [Symmetry.of(3, ((0, 2),)), Symmetry.of(3, (), [0, 1]), CYCLE, CYCLE.inverse])
def test_a_reflected_explorer_says_of_the_image_what_the_explorer_says_of_the_original(
    symmetry: Symmetry, slanting: tuple[Explorer, np.ndarray]
) -> None:
    """To round-off, by the condition of the kernel matrix: at most 1e-7 nats here, and other places differ by nats."""
    explorer, P = slanting
    X = TILTED + 0.8 * np.random.default_rng(5).standard_normal((40, 3))
    image = reflected(explorer, symmetry)
    of_mean, of_variance = round_off(explorer, X)
    log_m, sd = explorer.log_likelihood(X)
    of_sd = of_variance / (2.0 * np.sqrt(explorer.fitted_surrogate.predict(explorer.frame.whiten(X))[1]))
    assert max(np.max(of_mean), np.max(of_sd)) < 1e-6  # sees any real error
    answers = image.log_likelihood(symmetry.image(X))
    assert_same(answers[0], log_m, of_mean + 0.5 * of_variance)  # m + ½v
    assert_same(answers[1], sd, of_sd)
    assert_same(image.log_posterior(symmetry.image(X)), explorer.log_posterior(X), of_mean + CAUTION * of_sd)
    possible = np.isfinite(explorer.log_likelihood(X)[0])
    assert 5 < possible.sum() < 40
    elsewhere = explorer.log_likelihood(symmetry.image(X[possible]))[0] - explorer.log_likelihood(X[possible])[0]
    assert np.sqrt(np.mean(np.square(elsewhere))) > 1.0
    # And still does when both are told the same anew, with the length-scales they have.
    assert np.all(np.ptp(explorer.fitted_surrogate.theta.sides, axis=2) > 0.02)  # of parameters that are not alike
    more = -0.5 * np.square((X - TILTED) @ SLOPES).sum(axis=1)
    explorer, image = explorer.fitted(X, more), image.fitted(symmetry.image(X), more)
    of_mean, of_variance = round_off(explorer, P)
    of_sd = of_variance / (2.0 * np.sqrt(explorer.fitted_surrogate.predict(explorer.frame.whiten(P))[1]))
    assert max(np.max(of_mean), np.max(of_sd)) < 1e-6
    assert_same(image.log_posterior(symmetry.image(P)), explorer.log_posterior(P), of_mean + CAUTION * of_sd)


def test_a_refuted_symmetry_does_not_come_back() -> None:
    known = known_of(("new region", an_explorer(ASIDE)), ("new region", an_explorer(THERE)))
    known = known.with_symmetry(SWAP, 0)
    assert known.symmetries == (SWAP,)
    known = known.with_answer(SWAP, 1, holds=False)
    known = known.with_symmetry(SWAP, 0)
    assert known.symmetries == ()


def test_numbers_of_families_are_not_given_again() -> None:
    """A region that comes after one was dropped must not inherit what that one had confirmed."""
    known = known_of(("new region", an_explorer(ASIDE, 0.0)), ("new region", an_explorer(THERE, -6.0)))
    known = known.recorded(a_record("new region"), an_explorer(np.zeros(2), 5.0), 0.5)
    assert known.families == [0, 2]
    known = known.recorded(a_record("new region"), an_explorer(-THERE, 5.0), 0.5)
    assert known.families == [0, 2, 3]
