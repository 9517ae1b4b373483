"""The loop: ask and tell in every order, runs that repeat and continue bit for bit."""

from __future__ import annotations

import itertools
import math
import pickle
import time
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wsabi
from wsabi.result import Result

PLAIN = wsabi.Settings(measure="prior")
PRIOR = wsabi.Gaussian([0.0, 0.0])
TRUTH = -math.log(2.0)  # exp(−½xᵀx) under N(0, I₂)


def log_l(x: np.ndarray) -> float:
    return -0.5 * float(x @ x)


def log_ls(X: np.ndarray) -> np.ndarray:
    return np.array([log_l(x) for x in X])  # the same rounding


class Counter:
    """The likelihood, with a record of its calls."""

    def __init__(self) -> None:
        self.points: list[tuple[float, ...]] = []

    def __call__(self, x: np.ndarray) -> float:
        self.points.append(tuple(x))
        return log_l(x)


def integrator(rng: int = 0, prior: Any = PRIOR, **choices: Any) -> wsabi.Integrator:
    return wsabi.Integrator(prior, settings=wsabi.Settings(measure="prior", **choices), rng=rng)


def run(budget: int = 20, **arguments: Any) -> Result:
    given = {"rng": 0, "settings": PLAIN, **arguments}
    return wsabi.integrate(given.pop("log_likelihood", log_l), given.pop("prior", PRIOR), budget=budget, **given)


def assert_same(a: Result, b: Result) -> None:
    """Bit for bit, but for the clock."""
    assert_array_equal(a.points, b.points)
    assert_array_equal(a.log_likelihoods, b.log_likelihoods)
    assert (a.log_z, a.log_z_std, a.model, a.fits, a.warnings) == (b.log_z, b.log_z_std, b.model, b.fits, b.warnings)
    numbers = [[(r.n_evals, r.log_z, r.log_z_std) for r in result.history] for result in (a, b)]
    assert numbers[0] == numbers[1]


# -- repeating and continuing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [{}, {"batch": 4}, {"prior": wsabi.Uniform([-3.0, -3.0], [3.0, 3.0])}, {"rng": 5}],
    ids=["plain", "batch", "uniform", "other seed"],
)
def test_a_seed_makes_a_run_repeat(arguments: dict[str, Any]) -> None:
    assert_same(run(**arguments), run(**arguments))
    other = run(**{**arguments, "rng": 99})
    assert not np.array_equal(run(**arguments).points, other.points)


def test_a_generator_does_as_a_seed_does() -> None:
    assert_same(run(), run(rng=np.random.default_rng(0)))


def test_no_global_random_state_is_used_or_touched() -> None:
    """A seed of the user's own must neither change a run nor be changed by one, whatever the search."""
    np.random.seed(1)  # noqa: NPY002 - the user's doing
    before = np.random.get_state()[1].copy()  # type: ignore[index] # noqa: NPY002
    first = run(9, settings=wsabi.Settings(measure="prior", search="cma-es"))
    assert_array_equal(np.random.get_state()[1], before)  # type: ignore[index] # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    assert_same(first, run(9, settings=wsabi.Settings(measure="prior", search="cma-es")))


@pytest.mark.parametrize("parts", [(50, 50), (3, 47, 50), (1, 99)])
def test_a_run_in_parts_equals_the_whole(parts: tuple[int, ...]) -> None:
    whole = run(100)
    piecewise = integrator()
    results = [piecewise.run(log_l, budget=part) for part in parts]
    assert [result.n_evals for result in results] == list(itertools.accumulate(parts))
    assert_same(whole, results[-1])


def test_looking_at_the_result_changes_nothing() -> None:
    looked_at = integrator()
    for _ in range(20):
        x = looked_at.ask()
        looked_at.tell(x, log_ls(x))
        assert looked_at.result().reason == "running"
    assert_same(run(), looked_at.result())


def test_a_pickled_integrator_goes_on_bit_for_bit() -> None:
    mine = integrator()
    mine.run(log_l, budget=15)
    asked = mine.ask(2)  # with points under way
    copy = pickle.loads(pickle.dumps(mine))
    assert_array_equal(copy.pending, asked)
    for each in (mine, copy):
        each.tell(asked, log_ls(asked))
    assert_same(mine.run(log_l, budget=15), copy.run(log_l, budget=15))


def test_the_clock_of_an_integrator_goes_on_after_unpickling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process has another zero of perf_counter: time already spent is what must be kept."""
    mine = integrator()
    mine.run(log_l, budget=3)
    spent, frozen = mine.seconds, pickle.dumps(mine)
    monkeypatch.setattr(time, "perf_counter", lambda: -1e6)
    assert spent <= pickle.loads(frozen).seconds < spent + 10.0


@pytest.mark.parametrize("seed", [0, 1])
def test_start_continues_without_evaluating_anything_again(seed: int) -> None:
    """With the same seed too, whose first design would be the same points."""
    likelihood = Counter()
    first = run(15, log_likelihood=likelihood)
    second = run(10, log_likelihood=likelihood, start=first, rng=seed)
    assert second.n_evals == 25
    assert len(likelihood.points) == 25
    assert len(set(likelihood.points)) == 25
    assert_array_equal(second.points[:15], first.points)
    assert abs(second.log_z - TRUTH) < 5e-3
    assert [record.n_evals for record in second.history] == sorted({record.n_evals for record in second.history})


def test_start_needs_the_same_parameters() -> None:
    with pytest.raises(ValueError, match=r"start has parameters \('x0', 'x1'\); the prior has \('a', 'b'\)"):
        run(start=run(3), prior=wsabi.Gaussian([0.0, 0.0], names=["a", "b"]))


def test_start_from_another_prior_is_not_silently_wrong() -> None:
    """The evaluations are good, their base coordinates are not: either they are mapped anew or refused."""
    wide = run(30, prior=wsabi.Gaussian([0.0, 0.0], 9.0))
    try:
        result = run(10, start=wide)
    except ValueError as error:
        assert "prior" in str(error)  # noqa: PT017
    else:
        assert abs(result.log_z - TRUTH) < 2e-2


# -- ask and tell -----------------------------------------------------------------------------------------------------


def test_asking_gives_different_points_and_remembers_them() -> None:
    mine = integrator()
    mine.run(log_l, budget=8)
    first, second = mine.ask(3), mine.ask()
    assert first.shape == (3, 2)
    assert second.shape == (1, 2)
    assert_array_equal(mine.pending, np.vstack([first, second]))
    assert len(np.unique(mine.pending, axis=0)) == 4
    mine.tell(first[1], log_l(first[1]))  # one point, one number
    assert_array_equal(mine.pending, np.vstack([first[[0, 2]], second]))
    mine.forget(first[0])
    assert_array_equal(mine.pending, np.vstack([first[2:], second]))
    mine.forget()
    assert mine.pending.shape == (0, 2)


@pytest.mark.parametrize("batch", [2, 7, 16])
def test_batches_get_the_same_answer(batch: int) -> None:
    result = run(36, batch=batch)
    assert result.n_evals == 36
    assert abs(result.log_z - TRUTH) < 5e-3
    assert len(np.unique(result.points, axis=0)) == 36


def test_the_order_of_telling_does_not_matter() -> None:
    results = []
    for order in (slice(None), slice(None, None, -1)):
        mine = integrator()
        X = mine.ask(12)[order]
        for x in X:
            mine.tell(x, log_l(x))
        results.append(mine.result())
    assert_allclose(results[0].log_z, results[1].log_z, atol=1e-5)  # the fit stops at 1e-7 of the log evidence
    assert_array_equal(results[0].points, results[1].points[::-1])


def test_points_never_told_do_no_harm() -> None:
    mine = integrator()
    for step in range(40):
        x = mine.ask()
        if step % 4:
            mine.tell(x, log_ls(x))
    assert len(mine.pending) == 10
    result = mine.result()
    assert result.n_evals == 30
    assert abs(result.log_z - TRUTH) < 1e-2
    assert len(np.unique(np.vstack([result.points, mine.pending]), axis=0)) == 40


def test_foreign_points_are_welcome() -> None:
    """Thirty evaluations from elsewhere: an answer without asking for one."""
    X = np.random.default_rng(0).standard_normal((30, 2))
    mine = integrator()
    mine.tell(X, log_ls(X))
    assert mine.n_evals == 30
    assert abs(mine.result().log_z - TRUTH) < 2e-2
    further = mine.run(log_l, budget=10)
    assert abs(further.log_z - TRUTH) < 5e-3
    assert len(np.unique(further.points, axis=0)) == 40


def test_a_transform_has_no_place_for_foreign_points_but_takes_its_own() -> None:
    mine = integrator(prior=wsabi.Transform(lambda c: 6.0 * c - 3.0, 2))
    x = mine.ask(2)
    mine.tell(x[::-1], log_ls(x[::-1]))
    with pytest.raises(TypeError, match="no known inverse"):
        mine.tell([[0.1, 0.2]], [0.0])
    assert mine.n_evals == 2


PRIORS: dict[str, Any] = {
    "gaussian": wsabi.Gaussian([0.3, -7.1], [2.3, 0.7]),
    "uniform": wsabi.Uniform([0.1, 0.2], [1.3, 2.9]),
    "polynomial": wsabi.Polynomial([0.1, 0.2], [1.3, 2.9], [0.0, 1.0, -1.0]),
    "list": [(0.1, 1.3), (0.2, 2.9)],
    "transform": wsabi.Transform(lambda c: 2.0 * c - 1.0, 2),
}


@pytest.mark.parametrize("kind", PRIORS)
def test_duplicates_are_recognised_under_every_prior(kind: str) -> None:
    """The second time a point is foreign, and its base coordinates go through two maps: still the same point."""
    mine = integrator(prior=PRIORS[kind])
    X = mine.ask(10)
    mine.tell(X, log_ls(X))
    once = mine.result()
    mine.tell(X[::-1], log_ls(X[::-1]))
    twice = mine.result()
    assert twice.n_evals == 20
    assert (twice.log_z, twice.log_z_std) == (once.log_z, once.log_z_std)
    assert not any("two values" in text for text in twice.warnings)
    mine.tell(X[3], log_l(X[3]) + 0.25)
    noisy = mine.result()
    assert (noisy.log_z, noisy.log_z_std) == (once.log_z, once.log_z_std)  # the first value was kept
    assert any("gave two values 0.25 nats apart" in text for text in noisy.warnings)


def test_a_point_twice_in_one_call() -> None:
    mine = integrator()
    X = np.array([[0.5, 0.5], [0.5, 0.5], [-1.0, 0.0], [0.0, -0.0], [-0.0, 0.0]])
    mine.tell(X, log_ls(X))
    assert mine.n_evals == 5
    result = mine.result()
    assert result.jitter == 1e-10  # no singular K: zero and minus zero are one point too
    assert math.isfinite(result.log_z)


@pytest.mark.parametrize(
    ("X", "values", "message"),
    [
        ([0.0, 0.0, 0.0], [1.0], r"X has shape \(3,\); expected \(N, 2\), one row per point"),
        ([[0.0]], [1.0], r"X has shape \(1, 1\); expected \(N, 2\)"),
        (np.empty((0, 2)), [], r"X has shape \(0, 2\)"),
        ([[0.0, 0.0]], [1.0, 2.0], r"log_l has shape \(2,\) for 1 points; expected \(1,\)"),
        ([[0.0, 0.0], [1.0, 1.0]], [[1.0], [2.0]], r"log_l has shape \(2, 1\) for 2 points"),
        ([[0.0, math.nan]], [1.0], "X must be finite"),
        ([[0.0, 0.0], [1.0, 1.0]], [1.0, math.nan], r"log_l\[1\] is nan; expected a number or −inf"),
        ([[0.0, 0.0]], [math.inf], r"log_l\[0\] is inf"),
    ],
)
def test_bad_tells_are_refused_whole(X: Any, values: Any, message: str) -> None:
    mine = integrator()
    mine.run(log_l, budget=4)
    mine.ask()
    with pytest.raises(ValueError, match=message):
        mine.tell(X, values)
    assert mine.n_evals == 4
    assert len(mine.pending) == 1


def test_points_outside_the_support_are_refused() -> None:
    mine = integrator(prior=wsabi.Uniform([0.0, 0.0], [1.0, 1.0]))
    with pytest.raises(ValueError, match=r"point 0 has x1 = 1\.5, outside"):
        mine.tell([[0.5, 1.5]], [0.0])
    assert mine.n_evals == 0


@pytest.mark.parametrize("n", [0, -1, 1.5, "two"])
def test_the_number_asked_for_is_checked(n: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="n must be"):
        integrator().ask(n)


def test_running_leaves_the_users_own_points_under_way() -> None:
    mine = integrator()
    asked = mine.ask(2)
    mine.run(log_l, budget=5)
    assert_array_equal(mine.pending, asked)
