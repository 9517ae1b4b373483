"""The adaptive model's state: looks taken up again, points under way or forgotten, interrupts, earlier evaluations."""

from __future__ import annotations

import collections
import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import wsabi
from wsabi.adaptive import engine as adaptive
from wsabi.adaptive import searches as lookout
from wsabi.adaptive.engine import AdaptiveModel
from wsabi.adaptive.search import leads
from wsabi.adaptive.search.anneal import Explorer
from wsabi.problems import narrow_gaussian

DIM = 2
NONE = np.empty((0, DIM))
PRIOR = wsabi.Gaussian(np.zeros(DIM))
CENTRE, WIDTH = np.array([0.5, -0.3]), np.array([0.3, 0.2])


def bump(X: np.ndarray) -> np.ndarray:
    return np.asarray(-0.5 * np.square((X - CENTRE) / WIDTH).sum(axis=1))


TRUTH = float(
    (stats.norm(0.0, np.sqrt(1.0 + np.square(WIDTH))).logpdf(CENTRE) + np.log(WIDTH * math.sqrt(2.0 * math.pi))).sum()
)


def a_model(budget: int, seed: int = 0) -> AdaptiveModel:
    return AdaptiveModel(PRIOR, wsabi.Settings(), np.random.default_rng(seed), budget)


def step_model(model: AdaptiveModel, log_l: Any = bump) -> None:
    X = model.propose(1, NONE)
    model.observe(X, log_l(X))


def grown(n: int) -> AdaptiveModel:
    model = a_model(n)
    for _ in range(n):
        step_model(model)
    return model


# -- looking again ----------------------------------------------------------------------------------------------------


def far_bumps(X: np.ndarray) -> np.ndarray:
    """Two bumps ninety sds apart: no region spans both, and each is what half of all looks find."""
    return np.asarray(np.logaddexp(*(-0.5 * np.square((X - c) / 0.03).sum(axis=1) for c in FAR_BUMPS)))


FAR_BUMPS = np.array([[1.0, 1.0], [-1.1, -0.9]])  # no symmetry images of each other
FAR_BUMPS_TRUTH = math.log(2.0 * math.pi * 0.0009) + float(
    np.logaddexp(*stats.norm(0.0, math.sqrt(1.0009)).logpdf(FAR_BUMPS).sum(axis=1))
)


@pytest.fixture
def one_look_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Integration begins after a single look; a claim below a twentieth is settled; no evaluation starts a look."""
    monkeypatch.setattr(lookout, "BARREN_SHARE", 0.0)
    monkeypatch.setattr(lookout.Lookout, "unseen_share", 0.0)
    monkeypatch.setattr(adaptive, "SETTLED", 0.05)
    monkeypatch.setattr(leads, "RATIO", math.inf)


def known_bumps(model: AdaptiveModel) -> list[bool]:
    """Which of the two bumps, whose log ℓ is zero at the top, a region's surrogate knows of."""
    assert model.regions is not None
    tops = FAR_BUMPS
    log_l = np.max([part.explorer.log_likelihood(tops)[0] for part in model.regions.parts], axis=0) + model.offset
    return [bool(value > -1.0) for value in log_l]


@pytest.mark.usefixtures("one_look_first")
def test_a_bump_that_the_first_look_missed_is_found_once_the_claim_is_settled() -> None:
    """Without another look the estimate stays log 2 low with a claim of a hundredth."""
    model, began = a_model(250, seed=2), False
    while len(model.X) < 250:
        step_model(model, far_bumps)
        if not began and model.regions is not None and model.lookout.search is not None:
            began = True
            assert sum(known_bumps(model)) == 1
            certificate = model.estimate()
            assert certificate is not None
            assert abs(certificate.log_z - (FAR_BUMPS_TRUTH - math.log(2.0))) < 0.1  # sure of what it had found
        if model.regions is not None and all(known_bumps(model)):
            break
    assert began
    assert len(model.found.searches) > 1
    assert known_bumps(model) == [True, True]
    for _ in range(20):
        step_model(model, far_bumps)
    certificate = model.estimate()
    assert certificate is not None
    assert abs(certificate.log_z - FAR_BUMPS_TRUTH) < 0.1


@pytest.mark.usefixtures("one_look_first")
def test_looks_go_on_only_once_the_claim_is_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look leaves the estimate in place; where the claim can never be small enough there is no other."""
    model = a_model(120)
    began = None
    for _ in range(120):
        step_model(model)
        if began is None and model.regions is not None and model.lookout.search is not None:
            began = len(model.X)
            assert model.n_certificate >= 0.5 * 0.2 * 120  # half of those planned
            certificate = model.estimate()
            assert certificate is not None
            assert certificate.log_z_std < 2.0 * adaptive.SETTLED  # asked one point before
    assert began is not None
    assert len(model.found.searches) > 1
    assert abs(model.estimate().log_z - TRUTH) < 5e-3  # type: ignore[union-attr]
    monkeypatch.setattr(adaptive, "SETTLED", 0.0)
    assert len(grown(120).found.searches) == 1


@pytest.mark.usefixtures("one_look_first")
@pytest.mark.parametrize("reason", ["as good as none", "good enough", "less than what may be hidden"])
def test_what_makes_another_look_worth_more(monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    """An error below a hundredth, or below the tolerance, or below what was not found; each is enough by itself."""
    monkeypatch.setattr(adaptive, "SETTLED", 0.05 if reason == "as good as none" else 0.0)
    if reason == "less than what may be hidden":
        monkeypatch.setattr(lookout.Lookout, "unseen_share", math.expm1(0.05))
    model = a_model(120)
    model.plan(120, tol=0.05 if reason == "good enough" else 0.0)
    while len(model.X) < 120 and len(model.found.searches) < 2:
        step_model(model)
    assert len(model.found.searches) == 2


def test_an_interrupted_observation_can_be_recovered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever line it fell in, lengths agree afterwards and the run goes on to the right answer."""
    model = grown(60)
    assert model.regions is not None

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    X = model.propose(1, NONE)
    with monkeypatch.context() as patch:
        patch.setattr(type(model.regions), "observe", interrupt)
        patch.setattr(AdaptiveModel, "_scan", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.observe(X, bump(X))
    model.data.log_l = np.append(model.log_l, 0.0)  # as an interrupt between two lines of `observe` would leave it
    model.recover()
    assert len(model.X) == len(model.log_l) == len(model.data.drawn_from) == 61
    for _ in range(15):
        step_model(model)
    assert abs(model.estimate().log_z - TRUTH) < 5e-3  # type: ignore[union-attr]


# -- points under way, interrupts, earlier evaluations ----------------------------------------------------------------


def test_fresh_points_never_enter_a_model() -> None:
    model = grown(100)
    assert model.n_certificate >= 10
    assert model.regions is not None
    fresh = model.X[model.data.drawn_from >= 0]
    assert len({x.tobytes() for x in fresh}) == model.n_certificate
    assert model.data.drawn_from.max() < len(model._proposals)
    for part in model.regions.parts:
        modelled = part.frame.colour(part.model.X)
        assert np.square(modelled[:, None, :] - fresh[None]).sum(axis=-1).min() > 1e-12
        assert part.explorer.surrogate is not None
        seen = part.explorer.frame.colour(part.explorer.surrogate.Y)
        assert np.square(seen[:, None, :] - fresh[None]).sum(axis=-1).min() > 1e-12


def test_looks_judge_by_their_own_points_while_others_are_under_way() -> None:
    """Eight points are always under way: a look ends only after its own design was told, none of it check points."""
    model, queue = a_model(200), collections.deque[np.ndarray]()
    for _ in range(200):
        while len(queue) < 8:
            queue.append(model.propose(1, np.array(list(queue)).reshape(-1, DIM))[0])
        x = queue.popleft()[None, :]
        model.observe(x, bump(x))
    assert len(model.found.searches) > 2
    for number, look in enumerate(model.found.searches):
        own = model.data.asked_by == number
        assert look.n_evals >= 2 * DIM + 1  # the design of a follow-up, the smaller one
        assert own.sum() >= look.n_evals  # those under way when it ended came later
        assert np.all(model.data.drawn_from[own] == -1)


def test_fresh_points_never_told_are_drawn_again() -> None:
    model = a_model(300)
    drawn = 0
    while len(model.X) < 120:
        x = model.propose(1, NONE)
        if model.data.n_drawn(x):
            drawn += 1
            if drawn < 50:  # forgotten
                continue
        model.observe(x, bump(x))
    assert drawn >= 50
    assert model.n_certificate > 0


def test_an_interrupt_in_the_first_build_can_be_recovered(monkeypatch: pytest.MonkeyPatch) -> None:
    model, interrupted = a_model(100), False
    build = adaptive.Regions

    def once(*arguments: Any, **keywords: Any) -> Any:
        nonlocal interrupted
        if not interrupted:
            interrupted = True
            raise KeyboardInterrupt
        return build(*arguments, **keywords)

    monkeypatch.setattr(adaptive, "Regions", once)
    while len(model.X) < 100:
        try:
            x = model.propose(1, NONE)
        except KeyboardInterrupt:
            model.recover()
            continue
        model.observe(x, bump(x))
    assert interrupted
    estimate = model.estimate()
    assert estimate is not None
    assert abs(estimate.log_z - TRUTH) < 0.02


def test_the_first_look_counts_what_it_asked_for_not_what_was_given() -> None:
    earlier = wsabi.integrate(bump, PRIOR, budget=100, rng=0, vectorized=True, tol=0.0)
    told = dataclasses.replace(earlier, ledger=None)  # without its events, its evaluations are taken as told
    again = wsabi.integrate(bump, PRIOR, budget=100, rng=1, vectorized=True, tol=0.0, start=told)
    assert again.n_evals == 200
    assert sum(look.n_evals for look in again.searches) <= 100
    assert len(again.searches) > 1


def test_a_cold_q_takes_the_place_of_a_hot_one() -> None:
    """The mass of ℓ^(1/t)π is larger than that of ℓπ, and is no reason to refuse."""
    problem = narrow_gaussian(DIM)
    rng = np.random.default_rng(0)
    explorer = Explorer(PRIOR, rng)
    X = rng.standard_normal((12, DIM))
    explorer.match(X, problem.log_likelihood_vectorized(X))
    assert not explorer.is_cold
    explorer.log_z = 1000.0
    near = np.concatenate([X, 900.0 / 901.0 + rng.standard_normal((30, DIM)) / 30.0])
    log_l = problem.log_likelihood_vectorized(near)
    moved = explorer
    for _ in range(12):
        moved = moved.rematched(near, log_l)
    assert moved.is_cold
    assert abs(moved.log_z - problem.log_z) < 0.5
