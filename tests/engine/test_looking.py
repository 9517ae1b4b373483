"""What looks have found is kept, counted and pruned as it says; one look knows its design, its calm and its despair."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from wsabi.engine import looking
from wsabi.engine.explorer import Explorer, Frame
from wsabi.engine.looking import NEGLIGIBLE, Found, Search, look_limit
from wsabi.engine.regions import inflation
from wsabi.measures import Gaussian
from wsabi.problems import narrow_gaussian
from wsabi.result import Look

MEASURE = Gaussian([0.0, 0.0])
HERE, THERE, ELSEWHERE = np.array([1.0, 1.0]), np.array([-1.0, 1.0]), np.array([-1.0, -1.0])


def an_explorer(centre: np.ndarray, log_z: float = 0.0, doubt: float = 0.1) -> Explorer:
    """One that has arrived at N(centre, 0.1² I) with that mass."""
    explorer = Explorer(MEASURE, np.random.default_rng(0))
    explorer.frame = Frame.of(centre, 0.01 * np.eye(2))
    explorer.temperature, explorer.log_z, explorer.doubt = 1.0, log_z, doubt
    return explorer


def a_look(outcome: Any, n_evals: int = 20) -> Look:
    return Look(n_evals, 0.0, outcome)


def found_of(*looks: tuple[str, Explorer]) -> Found:
    found = Found(MEASURE)
    for outcome, explorer in looks:
        found.record(a_look(outcome), explorer, 0.5)
    return found


# -- what was found ---------------------------------------------------------------------------------------------------


def test_nothing_found_yet() -> None:
    found = Found(MEASURE)
    assert found.log_total == -math.inf
    assert found.spent == 0
    assert found.unseen_share == looking.ALONE
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
    assert found.hits == [1, 1]
    assert [look.outcome for look in found.looks] == ["new region", "new region"]
    assert_allclose(found.log_total, math.log(math.exp(-1.0) + math.exp(-2.0)), rtol=1e-12)


def test_a_known_region_is_a_hit_for_that_region_alone() -> None:
    first, second = an_explorer(HERE), an_explorer(THERE)
    found = found_of(("new region", first), ("new region", second), ("known region", an_explorer(THERE, 0.1)))
    assert found.hits == [1, 2]
    assert found.explorers[0] is first
    assert found.explorers[1] is second


@pytest.mark.parametrize("outcome", ["negligible mass", "unfinished"])
def test_other_outcomes_are_noted_only(outcome: str) -> None:
    found = found_of(
        ("new region", an_explorer(HERE)), (outcome, an_explorer(THERE)), (outcome, an_explorer(HERE, 5.0))
    )
    assert len(found.explorers) == 1
    assert found.hits == [1]
    assert found.explorers[0].log_z == 0.0
    assert len(found.looks) == 3


def test_a_look_that_came_back_replaces_nothing() -> None:
    """It ended on its way, with a surrogate of a few points, whatever mass that claims."""
    again = an_explorer(HERE + 0.02, 5.0, 0.1)
    found = found_of(("new region", an_explorer(HERE)), ("known region", again))
    assert found.explorers[0] is not again
    assert len(found.explorers) == 1
    assert found.hits == [2]


def test_negligible_regions_are_dropped_with_their_hits() -> None:
    small, middle = an_explorer(HERE, -NEGLIGIBLE - 0.1), an_explorer(THERE, -NEGLIGIBLE + 1.0)
    found = found_of(("new region", small), ("known region", small), ("known region", small), ("new region", middle))
    assert found.hits == [3, 1]
    large = an_explorer(ELSEWHERE, 0.0)
    found.record(a_look("new region"), large, 0.9)
    assert [id(explorer) for explorer in found.explorers] == [id(middle), id(large)]
    assert found.hits == [1, 1]
    tiny = an_explorer(HERE, -NEGLIGIBLE - 1.0)
    found.record(a_look("new region"), tiny, 0.0)
    assert len(found.explorers) == 2
    assert len(found.looks) == 6  # the record of looks is not pruned


@pytest.mark.parametrize("log_z", [math.nan, -math.inf])
def test_a_region_without_a_mass_is_none(log_z: float) -> None:
    assert found_of(("new region", an_explorer(HERE, log_z))).explorers == []


def test_spent_and_typical() -> None:
    found = Found(MEASURE)
    for n, outcome in ((40, "new region"), (10, "known region"), (14, "negligible mass"), (90, "unfinished")):
        found.record(a_look(outcome, n), an_explorer(HERE), 0.0)
    assert found.spent == 10 + 14 + 90
    assert found.typical == 0.5 * (14 + 40)


# -- new within known -------------------------------------------------------------------------------------------------


def test_a_narrower_region_inside_a_known_one_is_kept_beside_it() -> None:
    """Half the variance along the axes is much narrower: |Σ|^½ lower by 2^(−D/2)."""
    broad = an_explorer(HERE)
    for variance, beside in ((0.4, True), (0.6, False)):
        lump = an_explorer(HERE + 0.05, -1.0)
        lump.frame = broad.frame.scaled(variance)
        found = found_of(("new region", broad), ("new region", lump))
        assert [id(explorer) for explorer in found.explorers] == [id(broad), *([id(lump)] if beside else [])]
        assert len(found.hits) == len(found.explorers)


@pytest.mark.parametrize("log_z", [-0.5, 0.5])
def test_of_two_as_wide_in_one_place_the_larger_is_kept(log_z: float) -> None:
    first, second = an_explorer(HERE), an_explorer(HERE + 0.05, log_z)
    found = found_of(("new region", first), ("new region", second))
    assert len(found.explorers) == len(found.hits) == 1
    assert found.explorers[0] is (second if log_z > 0.0 else first)


def test_a_look_cut_short_is_taken_as_it_is() -> None:
    found, explorer = Found(MEASURE), an_explorer(HERE, -3.0)
    found.take(a_look("unfinished"), explorer)
    assert found.explorers == [explorer]
    assert found.hits == [1]
    assert [look.outcome for look in found.looks] == ["unfinished"]
    assert found.log_total == -3.0
    assert found.unseen_share == looking.ALONE


def round_bump(centre: np.ndarray, log_height: float = 0.0) -> Explorer:
    """An explorer that knows a bump of sd 0.2 at that place."""
    rng = np.random.default_rng(0)
    explorer = Explorer(MEASURE, rng)
    explorer.frame = Frame.of(centre, 0.04 * np.eye(2))
    X = centre + 0.25 * rng.standard_normal((40, 2))
    explorer.match(X, bump_at(centre, X) + log_height)
    assert explorer.temperature == 1.0
    assert explorer.doubt < 0.1
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
    assert Found(MEASURE).gain(here, rng) == 1.0  # nothing was known
    found = found_of(("new region", here))
    assert found.gain(here, rng) < 1e-6
    expected = math.exp(there.log_z) / (math.exp(here.log_z) + math.exp(there.log_z))
    assert_allclose(found.gain(there, rng), expected, rtol=1e-3)
    for log_height in (math.log(2.0), math.log(4.0)):
        higher = round_bump(HERE, log_height)
        new = math.exp(higher.log_z) * -math.expm1(-log_height)
        assert_allclose(found.gain(higher, rng), new / (new + math.exp(here.log_z)), atol=0.02)
    both = found_of(("new region", here), ("new region", there))
    assert both.gain(here, rng) < 1e-6
    assert both.gain(there, rng) < 1e-6


def test_gains_are_those_of_new_regions() -> None:
    found = Found(MEASURE)
    for outcome in ("new region", "known region", "negligible mass", "unfinished"):
        found.record(a_look(outcome), an_explorer(HERE), 0.7)
    assert found.gains == [0.7, 0.0, 0.0, 0.0]


# -- what was not -----------------------------------------------------------------------------------------------------


PLACES = {"A": HERE, "B": THERE, "C": ELSEWHERE}


def unseen(sequence: str, unit: float = 1.0, **masses: float) -> float:
    """unseen_share after looks that met A, B, C by turns; "-" is one of negligible mass, "?" one left unfinished."""
    found, met = Found(MEASURE), 0.0
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
        ("", {}, looking.ALONE),
        ("A", {"A": 1.0}, looking.ALONE),  # one look cannot tell
        ("A?", {"A": 1.0}, looking.ALONE),  # nor does one that was given up
        ("AB", {"A": 0.5, "B": 0.5}, 1.0),  # 1 + √14 kinds, held to two, of half the mass; the second half found half
        ("AB", {"A": 0.9, "B": 0.1}, 1.0),  # a tenth; but two kinds of the mean mass
        ("AA", {"A": 1.0}, 0.0),  # both came back
        ("AAA", {"A": 1.0}, 0.0),
        ("ABAB", {"A": 0.7, "B": 0.3}, 0.0),  # all came back, to two places
        ("ABBABA", {"A": 0.7, "B": 0.3}, 0.0),
        ("AAB", {"A": 0.6, "B": 0.4}, 0.4),  # the last of three is the second half
        ("ABA", {"A": 0.6, "B": 0.4}, 0.0),  # nothing late, and B alone was met once: 1·0/2
        ("AAAB--", {"A": 0.6, "B": 0.4}, 0.8),  # B and two trifles once: ten kinds, held to six, of 0.4/3
        ("AAB---", {"A": 0.6, "B": 0.4}, 0.6),  # B and three trifles once, A twice: held to six, of a tenth
        ("ABCAAA", {"A": 0.5, "B": 0.3, "C": 0.2}, 0.25 * (1.0 + math.sqrt(14.0))),  # two once: 1 ± √14 of a quarter
        ("ABCA--", {"A": 0.5, "B": 0.3, "C": 0.2}, 0.75),  # four once, one twice: 3 ± √28, held to six, of an eighth
        ("ABC---", {"A": 0.5, "B": 0.3, "C": 0.2}, 1.0),  # six once, 15 and more kinds: held to six, of a sixth
        ("AAB?", {"A": 0.6, "B": 0.4}, 0.4),  # a look given up does not count
    ],
)
def test_unseen_share_by_hand(sequence: str, masses: dict[str, float], expected: float) -> None:
    """The larger of what the second half of the looks gained and of Chao's bound; masses count as shares."""
    assert_allclose(unseen(sequence, **masses), expected, rtol=1e-12)
    assert_allclose(unseen(sequence, unit=1e-6, **masses), expected, rtol=1e-9)


# -- one look ---------------------------------------------------------------------------------------------------------


def a_search(*, first: bool = True, around: np.ndarray | None = None, seed: int = 0) -> Search:
    return Search(MEASURE, np.random.default_rng(seed), first=first, around=around)


NONE = np.empty((0, 2))


def test_the_design_is_given_out_in_order_without_what_was_taken() -> None:
    search, rng = a_search(), np.random.default_rng(1)
    design = np.array(search.design)
    assert len(design) > MEASURE.dim
    taken = design[[0, 2]]
    given: list[np.ndarray] = []
    while search.design:
        given.append(search.next_point(np.concatenate([taken, *[x[None, :] for x in given]]), NONE, rng))
    assert_array_equal(given, np.delete(design, [0, 2], axis=0))


def test_a_design_that_was_taken_whole_gives_way_to_draws_of_the_prior() -> None:
    """Nothing finite is known yet: the explorer has no word."""
    search = a_search()
    design = np.array(search.design)
    x = search.next_point(design, NONE, np.random.default_rng(1))
    assert search.design == []
    assert_array_equal(x, MEASURE.sample(1, np.random.default_rng(1))[0])


def test_only_the_first_look_begins_at_the_prior_mean() -> None:
    assert_array_equal(a_search().design[0], MEASURE.mean)
    starts = [a_search(first=False, seed=seed).design[0] for seed in range(3)]
    assert all(np.linalg.norm(x) > 0.0 for x in starts)
    assert len(np.unique(starts, axis=0)) == 3


def test_a_look_around_a_point_stays_there() -> None:
    """A tenth of the prior's width would be found here, or a half; the prior itself would not."""
    x = np.array([3.0, -3.0])
    search = a_search(first=False, around=x)
    assert_array_equal(search.explorer.frame.mean, x)
    design = np.array(search.design)
    assert len(design) > MEASURE.dim
    width = np.sqrt(np.diag(search.explorer.frame.cov))
    assert np.all((width >= 0.1) & (width <= 0.5))
    assert np.max(np.abs(design - x)) < 5.0 * width.max()  # ten normal draws: 6e-6


class Pretender(SimpleNamespace):
    """An explorer that learns nothing: the look sees what the test sets."""

    def match(self, X: np.ndarray, log_l: np.ndarray) -> None:
        """Nothing moves."""

    fit = match


def pretending(**attributes: Any) -> Search:
    search = a_search()
    frame = Frame.of(np.zeros(2), np.eye(2) / (2.0 * math.pi))  # of unit volume: potential is the best value's
    calm = {"is_cold": True, "drift": 0.0, "doubt": 0.0, "log_z": 0.0, "frame": frame}
    search.explorer = Pretender(**{**calm, **attributes})  # type: ignore[assignment]
    return search


def points_until_arrival(search: Search, log_z: Any = None, limit: int = 1000) -> int | None:
    """Evaluations after which the look has arrived; log_z(n) sets the mass after n of them."""
    for n in range(1, limit):
        if log_z is not None:
            search.explorer.log_z = log_z(n)
        search.learn(NONE, np.empty(0), n, 0.0)
        if search.has_arrived(n):
            return n
    return None


def test_a_calm_look_arrives_and_a_rough_one_later() -> None:
    calm = points_until_arrival(pretending())
    assert calm is not None
    assert calm > 2 * MEASURE.dim  # enough for a diagonal quadratic
    for rough in ({"doubt": 5.0}, {"drift": 5.0 * MEASURE.dim}):
        late = points_until_arrival(pretending(**rough))
        assert late is not None
        assert late > 2 * calm


def test_a_hot_look_never_arrives() -> None:
    assert points_until_arrival(pretending(is_cold=False)) is None


def test_the_calm_begins_after_an_unrest_that_left_the_mass_alone() -> None:
    search = pretending(drift=5.0)
    search.learn(NONE, np.empty(0), 1, 0.0)
    search.explorer.drift = 0.0
    assert points_until_arrival(search) == points_until_arrival(pretending())


def test_a_batch_counts_by_its_points() -> None:
    """Ten values at a time: a rough look is given up after as many evaluations, and hope is lost as soon."""
    single, batched = pretending(doubt=5.0), pretending(doubt=5.0, log_z=-math.inf)
    late = points_until_arrival(single)
    assert late is not None
    n = 1
    while not batched.has_arrived(n):
        batched.learn(NONE, np.empty(0), n, -100.0)
        n += 10
    assert n <= late + 20
    assert batched.is_hopeless(0.0)


def test_a_mass_that_grows_breaks_the_calm() -> None:
    """The calm is counted from where the growth ended; a hundredth of a nat in all is none."""
    calm = points_until_arrival(pretending())
    assert calm is not None
    assert points_until_arrival(pretending(), lambda n: 0.01 * min(n, 5) / 5) == calm
    late = points_until_arrival(pretending(), lambda n: float(min(n, 5)))
    assert late is not None
    assert late == calm + 4  # calm from the fifth point on, where it was from the first


def test_the_explorer_is_told_of_points_under_way() -> None:
    pending = np.array([[0.0, 0.0], [1.0, 1.0]])
    search = pretending(surrogate=object(), propose=lambda points: points.sum(axis=0))
    search.design = []
    assert_array_equal(search.next_point(pending, pending, np.random.default_rng(0)), [1.0, 1.0])


def a_climb(rate: float, n: int, end: float, *, log_z: float = -math.inf, is_cold: bool = True) -> Search:
    """A look whose best value grew by ``rate`` at each of n evaluations, up to ``end``."""
    search = pretending(log_z=log_z, is_cold=is_cold)
    for i in range(n):
        search.learn(NONE, np.empty(0), i + 1, end - rate * (n - 1 - i))
    return search


def test_hopeless_is_a_gap_that_the_climb_cannot_close() -> None:
    total, low = 0.0, -NEGLIGIBLE - 50.0
    enough = 50.0 / look_limit(MEASURE.dim)
    assert a_climb(0.0, 30, low).is_hopeless(total)
    assert a_climb(0.9 * enough, 30, low).is_hopeless(total)
    assert not a_climb(1.1 * enough, 30, low).is_hopeless(total)
    assert not a_climb(0.0, 30, low, is_cold=False).is_hopeless(total)  # still annealing
    assert not a_climb(0.0, 3, low).is_hopeless(total)  # too early to tell
    assert not a_climb(0.0, 30, -NEGLIGIBLE + 0.1).is_hopeless(total)  # near enough already
    assert not a_climb(0.0, 30, low, log_z=-NEGLIGIBLE + 0.1).is_hopeless(total)  # so says the surrogate
    assert not a_climb(0.0, 30, low).is_hopeless(-math.inf)  # nothing to compare with


def test_the_limit_of_a_look_grows_with_the_dimension() -> None:
    assert 0 < look_limit(1) < look_limit(2) < look_limit(10)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_look_walks_from_its_design_to_the_mass(seed: int) -> None:
    """A bump of a thirtieth of the prior's width is reached within the limit, with its mass to a tenth of a nat."""
    problem = narrow_gaussian(2)
    rng = np.random.default_rng(seed)
    search = Search(MEASURE, rng, first=False)
    X, log_l = NONE, np.empty(0)
    while not search.has_arrived(len(X)):
        x = search.next_point(X, NONE, rng)[None, :]
        X, log_l = np.concatenate([X, x]), np.append(log_l, problem.log_likelihood_vectorized(x))
        if not search.design:
            search.learn(X, log_l, len(X), float(log_l.max()))
        assert len(X) < look_limit(2)
    assert search.explorer.temperature == 1.0
    assert abs(search.explorer.log_z - problem.log_z) < 0.1
    assert not search.is_hopeless(problem.log_z)
    assert np.max(np.abs(search.explorer.frame.mean - 900.0 / 901.0)) < 0.5 / 30.0
