"""What searches have found is kept, counted and pruned as it says, and so is what they say is hidden."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from driving import content
from found_by_hand import ELSEWHERE, HERE, MEASURE, THERE, a_record, an_explorer, hits_of, known_of
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.search.ground import ground_of, inflation, is_part, within_reach
from wsabi.adaptive.search.known_regions import KnownRegions
from wsabi.adaptive.search.matching import matched
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.symmetry.group import Symmetry
from wsabi.adaptive.tuning import TUNING

PLACES = {"A": HERE, "B": THERE, "C": ELSEWHERE}
ALONE, NEGLIGIBLE = TUNING.known.unseen_after_one, TUNING.known.negligible

# -- what was found ---------------------------------------------------------------------------------------------------


def test_nothing_found_yet() -> None:
    known = KnownRegions(MEASURE)
    assert known.log_total == -math.inf
    assert known.spent == 0
    assert known.unseen_share == ALONE
    assert known.index_of(an_explorer(HERE)) is None


def test_index_of_is_the_region_in_whose_bulk_q_has_arrived() -> None:
    """The bulk ends √D + 1 sds of the widened q from its centre, whatever the newcomer's own width."""
    known = known_of(("new region", an_explorer(HERE)), ("new region", an_explorer(THERE)))
    assert known.index_of(an_explorer(HERE)) == 0
    assert known.index_of(an_explorer(THERE + 0.05)) == 1
    assert known.index_of(an_explorer(ELSEWHERE)) is None
    edge = (math.sqrt(2.0) + 1.0) * 0.1 * math.sqrt(inflation(2))
    for direction in np.array([[1.0, 0.0], [0.0, -1.0], [0.6, 0.8]]):
        assert known.index_of(an_explorer(HERE + 0.99 * edge * direction)) == 0
        assert known.index_of(an_explorer(HERE + 1.01 * edge * direction)) is None


def test_new_regions_are_kept_and_summed() -> None:
    known = known_of(("new region", an_explorer(HERE, -1.0)), ("new region", an_explorer(THERE, -2.0)))
    assert [explorer.log_z for explorer in known.explorers] == [-1.0, -2.0]
    assert hits_of(known) == [1, 1]
    assert [search.outcome for search in known.searches] == ["new region", "new region"]
    assert_allclose(known.log_total, math.log(math.exp(-1.0) + math.exp(-2.0)), rtol=1e-12)


def test_a_known_region_is_a_hit_for_that_region_alone() -> None:
    first, second = an_explorer(HERE), an_explorer(THERE)
    known = known_of(("new region", first), ("new region", second), ("known region", an_explorer(THERE, 0.1)))
    assert hits_of(known) == [1, 2]
    assert known.explorers[0] is first
    assert known.explorers[1] is second


@pytest.mark.parametrize("outcome", ["negligible mass", "unfinished"])
def test_other_outcomes_are_noted_only(outcome: str) -> None:
    known = known_of(
        ("new region", an_explorer(HERE)), (outcome, an_explorer(THERE)), (outcome, an_explorer(HERE, 5.0))
    )
    assert len(known.explorers) == 1
    assert hits_of(known) == [1]
    assert known.explorers[0].log_z == 0.0
    assert len(known.searches) == 3


def test_a_search_that_came_back_replaces_nothing() -> None:
    """It ended on its way, with a surrogate of a few points, whatever mass that claims."""
    again = an_explorer(HERE + 0.02, 5.0, 0.1)
    known = known_of(("new region", an_explorer(HERE)), ("known region", again))
    assert known.explorers[0] is not again
    assert len(known.explorers) == 1
    assert hits_of(known) == [2]


def test_negligible_regions_are_dropped_with_their_hits() -> None:
    small, middle = an_explorer(HERE, -NEGLIGIBLE - 0.1), an_explorer(THERE, -NEGLIGIBLE + 1.0)
    known = known_of(("new region", small), ("known region", small), ("known region", small), ("new region", middle))
    assert hits_of(known) == [3, 1]
    large = an_explorer(ELSEWHERE, 0.0)
    known = known.recorded(a_record("new region"), large, 0.9)
    assert [id(explorer) for explorer in known.explorers] == [id(middle), id(large)]
    assert hits_of(known) == [1, 1]
    tiny = an_explorer(HERE, -NEGLIGIBLE - 1.0)
    known = known.recorded(a_record("new region"), tiny, 0.0)
    assert len(known.explorers) == 2
    assert len(known.searches) == 6  # the record of searches is not pruned


@pytest.mark.parametrize("log_z", [math.nan, -math.inf])
def test_a_region_without_a_mass_is_none(log_z: float) -> None:
    assert known_of(("new region", an_explorer(HERE, log_z))).explorers == []


def test_spent_and_typical() -> None:
    """The first look has more to learn than others: half of it is one of those, as long as there are none."""
    known, typical = KnownRegions(MEASURE), []
    for n, outcome in ((40, "new region"), (10, "known region"), (14, "negligible mass"), (90, "unfinished")):
        known = known.recorded(a_record(outcome, n), an_explorer(HERE), 0.0)
        typical.append(known.typical)
    assert known.spent == 10 + 14 + 90
    assert typical == [20.0, 10.0, 12.0, 14.0]


def test_unfinished_nats_are_those_of_the_hottest_search() -> None:
    """tD at temperature t; a search that has arrived has none, and neither have none at all."""
    assert KnownRegions(MEASURE).unfinished_nats == 0.0
    hot, hotter = an_explorer(HERE, temperature=3.0), an_explorer(THERE, temperature=40.0)
    cold, hardly = an_explorer(ELSEWHERE), an_explorer(HERE, temperature=math.nextafter(1.0, 2.0))
    assert known_of(("new region", cold)).unfinished_nats == 0.0
    assert known_of(("new region", cold), ("new region", hot)).unfinished_nats == 2 * 3.0
    assert known_of(("new region", hotter), ("new region", hot), ("new region", cold)).unfinished_nats == 2 * 40.0
    assert_allclose(known_of(("new region", hardly)).unfinished_nats, 2.0, rtol=1e-12)


# -- new within known -------------------------------------------------------------------------------------------------


def test_a_narrower_region_inside_a_known_one_is_kept_beside_it() -> None:
    """Half the variance along the axes is much narrower: |Σ|^½ lower by 2^(−D/2)."""
    broad = an_explorer(HERE)
    for variance, beside in ((0.4, True), (0.6, False)):
        lump = an_explorer(HERE + 0.05, -1.0, frame=broad.frame.scaled(variance))
        assert is_part(broad, lump) == beside
        known = known_of(("new region", broad), ("new region", lump))
        assert [id(explorer) for explorer in known.explorers] == [id(broad), *([id(lump)] if beside else [])]
        assert hits_of(known) == ([1, 1] if beside else [2])


@pytest.mark.parametrize("log_z", [-0.5, 0.5])
def test_of_two_as_wide_in_one_place_the_larger_is_kept(log_z: float) -> None:
    first, second = an_explorer(HERE), an_explorer(HERE + 0.05, log_z)
    known = known_of(("new region", first), ("new region", second))
    assert hits_of(known) == [2]
    assert known.explorers[0] is (second if log_z > 0.0 else first)


def test_a_search_cut_short_is_taken_as_it_is() -> None:
    known, explorer = KnownRegions(MEASURE), an_explorer(HERE, -3.0)
    known = known.taken(a_record("unfinished"), explorer)
    assert known.explorers == [explorer]
    assert hits_of(known) == [1]
    assert [search.outcome for search in known.searches] == ["unfinished"]
    assert known.log_total == -3.0
    assert known.unseen_share == ALONE


@cache
def round_bump(where: str, log_height: float = 0.0) -> Explorer:
    """An explorer that knows a bump of sd 0.2 at that place."""
    rng, centre = np.random.default_rng(0), PLACES[where]
    X = centre + 0.25 * rng.standard_normal((40, 2))
    explorer = Explorer(MEASURE, Frame.of(centre, 0.04 * np.eye(2)))
    explorer = matched(explorer, X, bump_at(centre, X) + log_height, rng)
    assert explorer.temperature == 1.0
    assert explorer.uncertainty < 0.1
    return explorer


def bridge(log_height: float = 0.0) -> Explorer:
    """An explorer whose q lies over the two bumps, at HERE and THERE, that it knows, the latter of that height."""
    rng = np.random.default_rng(0)
    X = np.concatenate([centre + 0.25 * rng.standard_normal((60, 2)) for centre in (HERE, THERE)])
    log_l = np.logaddexp(bump_at(HERE, X), bump_at(THERE, X) + log_height)
    explorer = matched(Explorer.from_prior(MEASURE), X, log_l, rng)
    over_both = Frame.of(0.5 * (HERE + THERE), np.diag([1.0, 0.04]))
    return replace(explorer, frame=over_both).fitted(X, log_l, learn=True)


def bump_at(centre: np.ndarray, X: np.ndarray) -> np.ndarray:
    return np.asarray(-0.5 * np.square((X - centre) / 0.2).sum(axis=1))


def test_a_region_accounts_for_what_its_surrogate_knew() -> None:
    """A surrogate of a plain bump knows the bump; a lump on top of it, log 2 or more higher, is news."""
    known = known_of(("new region", round_bump("A")))
    P = HERE + 0.15 * np.random.default_rng(1).standard_normal((12, 2))
    log_l = bump_at(HERE, P)
    assert known.accounts_for(0, P, log_l)
    assert known.accounts_for(0, P, log_l + 0.9 * math.log(2.0))
    assert not known.accounts_for(0, P, log_l + 1.1 * math.log(2.0))
    assert known.accounts_for(0, P, log_l - 5.0)
    best = np.argsort(-(log_l + MEASURE.log_pdf(P)))
    worst = np.isin(np.arange(12), best[6:])
    assert known.accounts_for(0, P, np.where(worst, -np.inf, log_l))  # only the best of them count
    assert not known.accounts_for(0, P, log_l + np.where(worst, 0.0, 4.0))


def test_gain_is_the_share_of_mass_that_was_not_known() -> None:
    """Nothing of what is known already, all of what is elsewhere, half of what is known half as high.

    Where the surrogates know log ℓ to a hundredth of a nat, so is what the one exceeds the other by.
    """
    here, there = round_bump("A"), round_bump("B", 1.0)
    rng = np.random.default_rng(2)

    def gain_of(known: KnownRegions, explorer: Explorer) -> float:
        return known.gain(explorer, known.novelty(explorer, rng))

    assert gain_of(KnownRegions(MEASURE), here) == 1.0  # nothing was known
    known = known_of(("new region", here))
    assert gain_of(known, here) < 1e-6
    expected = math.exp(there.log_z) / (math.exp(here.log_z) + math.exp(there.log_z))
    assert_allclose(gain_of(known, there), expected, rtol=1e-3)
    for log_height in (math.log(2.0), math.log(4.0)):
        higher = round_bump("A", log_height)
        new = math.exp(higher.log_z) * -math.expm1(-log_height)
        assert_allclose(gain_of(known, higher), new / (new + math.exp(here.log_z)), atol=0.02)
    both = known_of(("new region", here), ("new region", there))
    assert gain_of(both, here) < 1e-6
    assert gain_of(both, there) < 1e-6
    # What spans the two and knows no more than they do is not new, wherever its centre is.
    spanning = bridge(1.0)
    assert both.index_of(spanning) is None
    assert both.novelty(spanning, rng) < 0.05
    assert known.novelty(spanning, rng) > 0.5


class Boaster(Explorer):
    """One that claims as much as there can be everywhere."""

    def log_likelihood(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(len(X), 100.0), np.zeros(len(X))


def test_a_surrogate_says_nothing_of_what_is_far_from_its_region() -> None:
    """√D + 4 sds of the widened q are its reach."""
    there = an_explorer(THERE)
    boaster = Boaster(MEASURE, there.frame, temperature=1.0, matched_temperature=1.0, log_z=0.0)
    known = known_of(("new region", boaster))
    rng = np.random.default_rng(0)
    assert known.novelty(round_bump("A"), rng) > 0.99
    assert known.novelty(round_bump("B"), rng) < 0.01
    edge = (math.sqrt(2.0) + 4.0) * 0.1 * math.sqrt(inflation(2))
    X = THERE + np.outer([0.99 * edge, 1.01 * edge], [0.6, 0.8])
    assert_array_equal(within_reach(boaster, X), [100.0, -np.inf])


def test_gains_are_those_of_new_regions() -> None:
    known = KnownRegions(MEASURE)
    for outcome in ("new region", "known region", "negligible mass", "unfinished"):
        known = known.recorded(a_record(outcome), an_explorer(HERE), 0.7)
    assert known.gains == (0.7, 0.0, 0.0, None)


# -- what was not -----------------------------------------------------------------------------------------------------


def unseen(sequence: str, unit: float = 1.0, **masses: float) -> float:
    """unseen_share after searches that met A, B, C by turns; "-" is one of negligible mass, "?" one left unfinished."""
    known, met = KnownRegions(MEASURE), 0.0
    for i, letter in enumerate(sequence):
        if letter in "-?":
            known = known.recorded(
                a_record("negligible mass" if letter == "-" else "unfinished"), an_explorer(np.zeros(2)), 0.0
            )
            continue
        explorer = an_explorer(PLACES[letter], math.log(unit * masses[letter]))
        new = letter not in sequence[:i]
        met += masses[letter] if new else 0.0
        known = known.recorded(a_record("new region" if new else "known region"), explorer, masses[letter] / met)
    return known.unseen_share


@pytest.mark.parametrize(
    ("sequence", "masses", "expected"),
    [
        ("", {}, ALONE),
        ("A", {"A": 1.0}, ALONE),  # one search cannot tell
        ("A?", {"A": 1.0}, ALONE),  # nor does one that was given up
        ("AB", {"A": 0.5, "B": 0.5}, 1.0),  # 1 + √14 kinds, held to two, of half the mass; the second half found half
        ("AB", {"A": 0.9, "B": 0.1}, 1.0),  # a tenth; but two kinds of the mean mass
        ("AA", {"A": 1.0}, ALONE / 2.0),  # the second came back, and would have missed another place in half the cases
        ("AAA", {"A": 1.0}, ALONE / 4.0),
        ("AA?A", {"A": 1.0}, ALONE / 4.0),  # a search given up says nothing, nor does it undo what others have said
        ("ABAB", {"A": 0.7, "B": 0.3}, ALONE / 4.0),  # two came back since B was found
        ("ABBABA", {"A": 0.7, "B": 0.3}, ALONE / 16.0),
        ("AAAAABAAAAA", {"A": 0.99, "B": 0.01}, ALONE / 32.0),  # those before B was found do not count
        ("AAB", {"A": 0.6, "B": 0.4}, 0.4),  # the last of three is the second half
        ("ABA", {"A": 0.6, "B": 0.4}, ALONE / 2.0),  # nothing late, and B alone was met once: 1·0/2
        ("AAAB--", {"A": 0.6, "B": 0.4}, 0.8),  # B and two negligible places once: ten kinds, held to six, of 0.4/3
        ("AAB---", {"A": 0.6, "B": 0.4}, 0.6),  # B and three negligible ones once, A twice: held to six, of a tenth
        ("ABCAAA", {"A": 0.5, "B": 0.3, "C": 0.2}, 0.25 * (1.0 + math.sqrt(14.0))),  # two once: 1 ± √14 of a quarter
        ("ABCA--", {"A": 0.5, "B": 0.3, "C": 0.2}, 0.75),  # four once, one twice: 3 ± √28, held to six, of an eighth
        ("ABC---", {"A": 0.5, "B": 0.3, "C": 0.2}, 1.0),  # six once, 15 and more kinds: held to six, of a sixth
        ("AAB?", {"A": 0.6, "B": 0.4}, 0.4),  # a search given up does not count
    ],
)
def test_unseen_share_by_hand(sequence: str, masses: dict[str, float], expected: float) -> None:
    """The largest of three, with masses as shares: what the second half of the searches gained; Chao's bound; a tenth.

    The last is halved by every search since the last that found something.
    """
    assert_allclose(unseen(sequence, **masses), expected, rtol=1e-12)
    assert_allclose(unseen(sequence, unit=1e-6, **masses), expected, rtol=1e-9)


# -- what is kept side by side -----------------------------------------------------------------------------------------

LEFT, MIDDLE, RIGHT = np.array([-1.2, 0.5]), np.array([0.4, 1.3]), np.array([1.2, -0.5])


def bumps(*centres: np.ndarray, sd: float = 0.15) -> Callable[[np.ndarray], np.ndarray]:
    """log ℓ of Gaussian bumps of equal height."""
    return lambda X: np.logaddexp.reduce([-0.5 * np.square((X - c) / sd).sum(axis=1) for c in centres])


def an_explorer_of(*centres: np.ndarray) -> Explorer:
    """One that has learnt sixty points about these bumps, all of height one; its q has their mean and covariance."""
    rng = np.random.default_rng(0)
    X = np.concatenate([c + 0.2 * rng.standard_normal((60 // len(centres), 2)) for c in centres])
    explorer = Explorer(MEASURE, Frame.of(X.mean(axis=0), np.cov(X.T)))
    explorer = matched(explorer, X, bumps(*centres)(X), rng)
    assert explorer.is_cold
    return explorer


def test_two_regions_with_one_mode_in_common_are_both_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a mode that the other has not; one that has found the same is not apart."""
    first, second = an_explorer_of(RIGHT, MIDDLE), an_explorer_of(MIDDLE, LEFT)
    known = KnownRegions(MEASURE).recorded(a_record("new region"), first, 1.0)
    monkeypatch.setattr(KnownRegions, "index_of", lambda *_: 0)  # as if q of the second had its centre nearer
    assert known.is_apart(second, np.random.default_rng(0))
    assert not known.is_apart(an_explorer_of(RIGHT, MIDDLE), np.random.default_rng(0))
    known = known.recorded(a_record("new region"), an_explorer(first.frame.mean), 0.3, apart=True)
    assert len(known.regions) == 2


# -- a step leaves what it began with as it was -----------------------------------------------------------------------


def test_what_was_known_before_a_search_stays_as_it_was() -> None:
    """Whatever comes after: recorded, taken, other explorers, a symmetry that holds, or one that does not."""
    before = known_of(("new region", an_explorer(HERE, -1.0)), ("new region", an_explorer(THERE, -2.0)))
    noted = content(before)
    swap = Symmetry((1, 0), (1, 1))
    record = a_record("new region")
    after = [
        before.recorded(record, an_explorer(ELSEWHERE, 9.0), 0.9),  # the others are negligible beside it
        before.recorded(a_record("known region"), an_explorer(HERE), 0.0),
        before.recorded(record, an_explorer(HERE, 3.0), 0.5),  # more mass where one is known
        before.taken(record, an_explorer(ELSEWHERE)),
        before.with_explorers(lambda known: replace(known, log_z=0.0)),
        before.with_explorer(1, an_explorer(THERE)),
        before.with_symmetry(swap, 1),
        before.with_symmetry(swap, 1).with_answer(swap, 0, holds=False),
        before.with_refuted(swap),
    ]
    assert all(content(other) != noted for other in after)
    assert content(before) == noted


# -- where a region ends ----------------------------------------------------------------------------------------------


def test_inflation_falls_with_dimension_and_stays_above_one() -> None:
    """Below one q would be narrower than the posterior, and ℓπ/q would grow without bound in its tails."""
    by_dim = [inflation(dim) for dim in range(1, 31)]
    assert by_dim == sorted(by_dim, reverse=True)
    assert by_dim[-1] > 1.0
    assert by_dim[0] <= 4.0


def test_the_data_of_a_hill_are_not_those_of_the_spike_on_it() -> None:
    def explorer(mean: np.ndarray, sd: float) -> Explorer:
        return an_explorer(mean, frame=Frame.of(mean, sd**2 * np.eye(2)))

    hill, spike = explorer(np.zeros(2), 1.0), explorer(np.array([0.5, 0.5]), 0.01)
    around = np.array([[0.0, 0.0], [1.0, -1.0], [-1.0, 0.3], [0.2, -0.8], [-0.4, -0.4], [0.9, 0.1]])
    X = np.concatenate([[[0.5, 0.5], [0.51, 0.5]], around])
    values = np.zeros(len(X))
    assert ground_of(hill, [hill, spike], X, values).tolist() == [False, False] + 6 * [True]
    assert ground_of(spike, [hill, spike], X, values).all()
    without_one = np.where(np.arange(8) == 3, -math.inf, 0.0)
    assert ground_of(hill, [hill, spike], X, without_one).all()  # five are too few
    assert ground_of(hill, [hill, spike], X, without_one, least=5).tolist() == [False, False] + 6 * [True]
    elsewhere = explorer(np.array([50.0, 0.0]), 0.01)  # no part of the hill
    assert ground_of(hill, [hill, elsewhere], np.array([[50.0, 0.0]]), np.zeros(1)).all()
