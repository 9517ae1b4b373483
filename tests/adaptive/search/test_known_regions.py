"""What looks have found is kept, counted and pruned as it says, and so is what they say is hidden."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from found_by_hand import ELSEWHERE, HERE, MEASURE, THERE, a_look, an_explorer, found_of, hits_of
from wsabi.adaptive.regions import inflation
from wsabi.adaptive.search.anneal import Explorer
from wsabi.adaptive.search.known_regions import ALONE, NEGLIGIBLE, KnownRegions, _within_reach
from wsabi.adaptive.surrogate.frame import Frame

# -- what was found ---------------------------------------------------------------------------------------------------


def test_nothing_found_yet() -> None:
    found = KnownRegions(MEASURE)
    assert found.log_total == -math.inf
    assert found.spent == 0
    assert found.unseen_share == ALONE
    assert found.index_of(an_explorer(HERE)) is None


def test_index_of_is_the_region_in_whose_bulk_q_has_arrived() -> None:
    """The bulk ends √D + 1 sds of the widened q from its centre, whatever the newcomer's own width."""
    found = found_of(("new region", an_explorer(HERE)), ("new region", an_explorer(THERE)))
    assert found.index_of(an_explorer(HERE)) == 0
    assert found.index_of(an_explorer(THERE + 0.05)) == 1
    assert found.index_of(an_explorer(ELSEWHERE)) is None
    edge = (math.sqrt(2.0) + 1.0) * 0.1 * math.sqrt(inflation(2))
    for direction in np.array([[1.0, 0.0], [0.0, -1.0], [0.6, 0.8]]):
        assert found.index_of(an_explorer(HERE + 0.99 * edge * direction)) == 0
        assert found.index_of(an_explorer(HERE + 1.01 * edge * direction)) is None


def test_new_regions_are_kept_and_summed() -> None:
    found = found_of(("new region", an_explorer(HERE, -1.0)), ("new region", an_explorer(THERE, -2.0)))
    assert [explorer.log_z for explorer in found.explorers] == [-1.0, -2.0]
    assert hits_of(found) == [1, 1]
    assert [look.outcome for look in found.searches] == ["new region", "new region"]
    assert_allclose(found.log_total, math.log(math.exp(-1.0) + math.exp(-2.0)), rtol=1e-12)


def test_a_known_region_is_a_hit_for_that_region_alone() -> None:
    first, second = an_explorer(HERE), an_explorer(THERE)
    found = found_of(("new region", first), ("new region", second), ("known region", an_explorer(THERE, 0.1)))
    assert hits_of(found) == [1, 2]
    assert found.explorers[0] is first
    assert found.explorers[1] is second


@pytest.mark.parametrize("outcome", ["negligible mass", "unfinished"])
def test_other_outcomes_are_noted_only(outcome: str) -> None:
    found = found_of(
        ("new region", an_explorer(HERE)), (outcome, an_explorer(THERE)), (outcome, an_explorer(HERE, 5.0))
    )
    assert len(found.explorers) == 1
    assert hits_of(found) == [1]
    assert found.explorers[0].log_z == 0.0
    assert len(found.searches) == 3


def test_a_look_that_came_back_replaces_nothing() -> None:
    """It ended on its way, with a surrogate of a few points, whatever mass that claims."""
    again = an_explorer(HERE + 0.02, 5.0, 0.1)
    found = found_of(("new region", an_explorer(HERE)), ("known region", again))
    assert found.explorers[0] is not again
    assert len(found.explorers) == 1
    assert hits_of(found) == [2]


def test_negligible_regions_are_dropped_with_their_hits() -> None:
    small, middle = an_explorer(HERE, -NEGLIGIBLE - 0.1), an_explorer(THERE, -NEGLIGIBLE + 1.0)
    found = found_of(("new region", small), ("known region", small), ("known region", small), ("new region", middle))
    assert hits_of(found) == [3, 1]
    large = an_explorer(ELSEWHERE, 0.0)
    found.record(a_look("new region"), large, 0.9)
    assert [id(explorer) for explorer in found.explorers] == [id(middle), id(large)]
    assert hits_of(found) == [1, 1]
    tiny = an_explorer(HERE, -NEGLIGIBLE - 1.0)
    found.record(a_look("new region"), tiny, 0.0)
    assert len(found.explorers) == 2
    assert len(found.searches) == 6  # the record of looks is not pruned


@pytest.mark.parametrize("log_z", [math.nan, -math.inf])
def test_a_region_without_a_mass_is_none(log_z: float) -> None:
    assert found_of(("new region", an_explorer(HERE, log_z))).explorers == []


def test_spent_and_typical() -> None:
    """The first look has more to learn than others: half of it is one of those, as long as there are none."""
    found, typical = KnownRegions(MEASURE), []
    for n, outcome in ((40, "new region"), (10, "known region"), (14, "negligible mass"), (90, "unfinished")):
        found.record(a_look(outcome, n), an_explorer(HERE), 0.0)
        typical.append(found.typical)
    assert found.spent == 10 + 14 + 90
    assert typical == [20.0, 10.0, 12.0, 14.0]


def test_heat_is_that_of_the_hottest_search() -> None:
    """tD at temperature t; a search that has arrived has none, and neither have none at all."""
    assert KnownRegions(MEASURE).heat == 0.0
    hot, hotter, cold = an_explorer(HERE), an_explorer(THERE), an_explorer(ELSEWHERE)
    hot.temperature, hotter.temperature = 3.0, 40.0
    assert found_of(("new region", cold)).heat == 0.0
    assert found_of(("new region", cold), ("new region", hot)).heat == 2 * 3.0
    assert found_of(("new region", hotter), ("new region", hot), ("new region", cold)).heat == 2 * 40.0
    hot.temperature = math.nextafter(1.0, 2.0)
    assert_allclose(found_of(("new region", hot)).heat, 2.0, rtol=1e-12)


# -- new within known -------------------------------------------------------------------------------------------------


def test_a_narrower_region_inside_a_known_one_is_kept_beside_it() -> None:
    """Half the variance along the axes is much narrower: |Σ|^½ lower by 2^(−D/2)."""
    broad = an_explorer(HERE)
    for variance, beside in ((0.4, True), (0.6, False)):
        lump = an_explorer(HERE + 0.05, -1.0)
        lump.frame = broad.frame.scaled(variance)
        found = found_of(("new region", broad), ("new region", lump))
        assert [id(explorer) for explorer in found.explorers] == [id(broad), *([id(lump)] if beside else [])]
        assert hits_of(found) == ([1, 1] if beside else [2])


@pytest.mark.parametrize("log_z", [-0.5, 0.5])
def test_of_two_as_wide_in_one_place_the_larger_is_kept(log_z: float) -> None:
    first, second = an_explorer(HERE), an_explorer(HERE + 0.05, log_z)
    found = found_of(("new region", first), ("new region", second))
    assert hits_of(found) == [2]
    assert found.explorers[0] is (second if log_z > 0.0 else first)


def test_a_look_cut_short_is_taken_as_it_is() -> None:
    found, explorer = KnownRegions(MEASURE), an_explorer(HERE, -3.0)
    found.take(a_look("unfinished"), explorer)
    assert found.explorers == [explorer]
    assert hits_of(found) == [1]
    assert [look.outcome for look in found.searches] == ["unfinished"]
    assert found.log_total == -3.0
    assert found.unseen_share == ALONE


def round_bump(centre: np.ndarray, log_height: float = 0.0) -> Explorer:
    """An explorer that knows a bump of sd 0.2 at that place."""
    rng = np.random.default_rng(0)
    explorer = Explorer(MEASURE, rng)
    explorer.frame = Frame.of(centre, 0.04 * np.eye(2))
    X = centre + 0.25 * rng.standard_normal((40, 2))
    explorer.match(X, bump_at(centre, X) + log_height)
    assert explorer.temperature == 1.0
    assert explorer.uncertainty < 0.1
    return explorer


def bridge(log_height: float = 0.0) -> Explorer:
    """An explorer whose q lies over the two bumps, at HERE and THERE, that it knows, the latter of that height."""
    rng = np.random.default_rng(0)
    explorer = Explorer(MEASURE, rng)
    X = np.concatenate([centre + 0.25 * rng.standard_normal((60, 2)) for centre in (HERE, THERE)])
    explorer.match(X, np.logaddexp(bump_at(HERE, X), bump_at(THERE, X) + log_height))
    explorer.frame = Frame.of(0.5 * (HERE + THERE), np.diag([1.0, 0.04]))
    explorer.fit(X, np.logaddexp(bump_at(HERE, X), bump_at(THERE, X) + log_height), learn=True)
    return explorer


def bump_at(centre: np.ndarray, X: np.ndarray) -> np.ndarray:
    return np.asarray(-0.5 * np.square((X - centre) / 0.2).sum(axis=1))


def test_a_region_accounts_for_what_its_surrogate_knew() -> None:
    """A surrogate of a plain bump knows the bump; a lump on top of it, log 2 or more higher, is news."""
    found = found_of(("new region", round_bump(HERE)))
    P = HERE + 0.15 * np.random.default_rng(1).standard_normal((12, 2))
    log_l = bump_at(HERE, P)
    assert found.accounts_for(0, P, log_l)
    assert found.accounts_for(0, P, log_l + 0.9 * math.log(2.0))
    assert not found.accounts_for(0, P, log_l + 1.1 * math.log(2.0))
    assert found.accounts_for(0, P, log_l - 5.0)
    best = np.argsort(-(log_l + MEASURE.log_pdf(P)))
    worst = np.isin(np.arange(12), best[6:])
    assert found.accounts_for(0, P, np.where(worst, -np.inf, log_l))  # only the best of them count
    assert not found.accounts_for(0, P, log_l + np.where(worst, 0.0, 4.0))


def test_gain_is_the_share_of_mass_that_was_not_known() -> None:
    """Nothing of what is known already, all of what is elsewhere, half of what is known half as high.

    Where the surrogates know log ℓ to a hundredth of a nat, so is what the one exceeds the other by.
    """
    here, there = round_bump(HERE), round_bump(THERE, 1.0)
    rng = np.random.default_rng(2)

    def gain_of(known: KnownRegions, explorer: Explorer) -> float:
        return known.gain(explorer, known.novelty(explorer, rng))

    assert gain_of(KnownRegions(MEASURE), here) == 1.0  # nothing was known
    found = found_of(("new region", here))
    assert gain_of(found, here) < 1e-6
    expected = math.exp(there.log_z) / (math.exp(here.log_z) + math.exp(there.log_z))
    assert_allclose(gain_of(found, there), expected, rtol=1e-3)
    for log_height in (math.log(2.0), math.log(4.0)):
        higher = round_bump(HERE, log_height)
        new = math.exp(higher.log_z) * -math.expm1(-log_height)
        assert_allclose(gain_of(found, higher), new / (new + math.exp(here.log_z)), atol=0.02)
    both = found_of(("new region", here), ("new region", there))
    assert gain_of(both, here) < 1e-6
    assert gain_of(both, there) < 1e-6
    # What spans the two and knows no more than they do is not new, wherever its centre is.
    spanning = bridge(1.0)
    assert both.index_of(spanning) is None
    assert both.novelty(spanning, rng) < 0.05
    assert found.novelty(spanning, rng) > 0.5


def test_a_surrogate_says_nothing_of_what_is_far_from_its_region(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even one that claims as much as there can be everywhere: √D + 4 sds of the widened q are its reach."""
    known = an_explorer(THERE)
    monkeypatch.setattr(known, "log_likelihood", lambda X: (np.full(len(X), 100.0), np.zeros(len(X))))
    found = found_of(("new region", known))
    rng = np.random.default_rng(0)
    assert found.novelty(round_bump(HERE), rng) > 0.99
    assert found.novelty(round_bump(THERE), rng) < 0.01
    reach = (math.sqrt(2.0) + 4.0) * 0.1 * math.sqrt(inflation(2))
    X = THERE + np.outer([0.99 * reach, 1.01 * reach], [0.6, 0.8])
    assert_array_equal(_within_reach(known, X), [100.0, -np.inf])


def test_gains_are_those_of_new_regions() -> None:
    found = KnownRegions(MEASURE)
    for outcome in ("new region", "known region", "negligible mass", "unfinished"):
        found.record(a_look(outcome), an_explorer(HERE), 0.7)
    assert found.gains == [0.7, 0.0, 0.0, None]


# -- what was not -----------------------------------------------------------------------------------------------------


PLACES = {"A": HERE, "B": THERE, "C": ELSEWHERE}


def unseen(sequence: str, unit: float = 1.0, **masses: float) -> float:
    """unseen_share after looks that met A, B, C by turns; "-" is one of negligible mass, "?" one left unfinished."""
    found, met = KnownRegions(MEASURE), 0.0
    for i, letter in enumerate(sequence):
        if letter in "-?":
            found.record(a_look("negligible mass" if letter == "-" else "unfinished"), an_explorer(np.zeros(2)), 0.0)
            continue
        explorer = an_explorer(PLACES[letter], math.log(unit * masses[letter]))
        new = letter not in sequence[:i]
        met += masses[letter] if new else 0.0
        found.record(a_look("new region" if new else "known region"), explorer, masses[letter] / met)
    return found.unseen_share


@pytest.mark.parametrize(
    ("sequence", "masses", "expected"),
    [
        ("", {}, ALONE),
        ("A", {"A": 1.0}, ALONE),  # one look cannot tell
        ("A?", {"A": 1.0}, ALONE),  # nor does one that was given up
        ("AB", {"A": 0.5, "B": 0.5}, 1.0),  # 1 + √14 kinds, held to two, of half the mass; the second half found half
        ("AB", {"A": 0.9, "B": 0.1}, 1.0),  # a tenth; but two kinds of the mean mass
        ("AA", {"A": 1.0}, ALONE / 2.0),  # the second came back, and would have missed another place in half the cases
        ("AAA", {"A": 1.0}, ALONE / 4.0),
        ("AA?A", {"A": 1.0}, ALONE / 4.0),  # a look given up says nothing, nor does it undo what others have said
        ("ABAB", {"A": 0.7, "B": 0.3}, ALONE / 4.0),  # two came back since B was found
        ("ABBABA", {"A": 0.7, "B": 0.3}, ALONE / 16.0),
        ("AAAAABAAAAA", {"A": 0.99, "B": 0.01}, ALONE / 32.0),  # those before B was found do not count
        ("AAB", {"A": 0.6, "B": 0.4}, 0.4),  # the last of three is the second half
        ("ABA", {"A": 0.6, "B": 0.4}, ALONE / 2.0),  # nothing late, and B alone was met once: 1·0/2
        ("AAAB--", {"A": 0.6, "B": 0.4}, 0.8),  # B and two trifles once: ten kinds, held to six, of 0.4/3
        ("AAB---", {"A": 0.6, "B": 0.4}, 0.6),  # B and three trifles once, A twice: held to six, of a tenth
        ("ABCAAA", {"A": 0.5, "B": 0.3, "C": 0.2}, 0.25 * (1.0 + math.sqrt(14.0))),  # two once: 1 ± √14 of a quarter
        ("ABCA--", {"A": 0.5, "B": 0.3, "C": 0.2}, 0.75),  # four once, one twice: 3 ± √28, held to six, of an eighth
        ("ABC---", {"A": 0.5, "B": 0.3, "C": 0.2}, 1.0),  # six once, 15 and more kinds: held to six, of a sixth
        ("AAB?", {"A": 0.6, "B": 0.4}, 0.4),  # a look given up does not count
    ],
)
def test_unseen_share_by_hand(sequence: str, masses: dict[str, float], expected: float) -> None:
    """The largest of three, with masses as shares: what the second half of the looks gained; Chao's bound; a tenth.

    The last is halved by every look since the last that found something.
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
    explorer = Explorer(MEASURE, rng)
    explorer.frame = Frame.of(X.mean(axis=0), np.cov(X.T))
    explorer.match(X, bumps(*centres)(X))
    assert explorer.is_cold
    return explorer


def test_two_regions_with_one_mode_in_common_are_both_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a mode that the other has not; one that has found the same is not apart."""
    first, second = an_explorer_of(RIGHT, MIDDLE), an_explorer_of(MIDDLE, LEFT)
    found = KnownRegions(MEASURE)
    found.record(a_look("new region"), first, 1.0)
    monkeypatch.setattr(KnownRegions, "index_of", lambda *_: 0)  # as if q of the second had its centre nearer
    assert found.is_apart(second, np.random.default_rng(0))
    assert not found.is_apart(an_explorer_of(RIGHT, MIDDLE), np.random.default_rng(0))
    found.record(a_look("new region"), an_explorer(first.frame.mean), 0.3, apart=True)
    assert len(found.sites) == 2
