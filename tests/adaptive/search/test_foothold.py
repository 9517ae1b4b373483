"""Where nearly all of the prior is infeasible: the first feasible points are held on to, and a guess says so."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

import wsabi
from wsabi.adaptive.search.search import Search
from wsabi.priors import Gaussian

LOW, HIGH = 0.6, 0.9  # of both coordinates: 0.8 % of the prior


def boxed(x: np.ndarray) -> float:
    """Constant in a small box, zero outside: log Z is twice the log of one interval's prior mass."""
    return 0.0 if np.all((x > LOW) & (x < HIGH)) else -math.inf


def a_search() -> Search:
    """A search whose design has been handed out, with nothing to fit a surrogate to."""
    measure = Gaussian(np.zeros(2))
    return Search.over_prior(measure, 0, np.random.default_rng(0), first=True).without_design()


def draws(search: Search, n: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.array([search.next_point(np.empty((0, 2)), rng) for _ in range(n)])


def test_the_foothold_is_the_best_feasible_point_and_the_nearest_infeasible_one_is_its_reach() -> None:
    X = np.array([[2.0, 0.0], [0.5, 0.0], [0.5, 0.3], [-2.0, 0.0]])
    search = a_search().with_foothold(X, np.array([-1.0, 0.0, -math.inf, -math.inf]))
    assert search.foothold is not None
    assert np.array_equal(search.foothold[0], X[1])
    assert search.foothold[1] == pytest.approx(0.3)


@pytest.mark.parametrize("log_l", [[-math.inf] * 3, [0.0, -1.0, -2.0]])
def test_there_is_no_foothold_where_all_points_are_of_one_kind(log_l: list[float]) -> None:
    assert a_search().with_foothold(np.zeros((3, 2)), np.array(log_l)).foothold is None


def test_every_other_point_is_drawn_round_the_foothold() -> None:
    """At 0.05 from it lie half of 400 draws; the prior puts one in a thousand there. Fewer than 150: 3e-7."""
    search = replace(a_search(), foothold=(np.array([1.0, 1.0]), 0.01))
    near = np.linalg.norm(draws(search, 400) - 1.0, axis=1) < 0.05
    assert 150 < np.sum(near) < 250
    search = replace(search, foothold=None)
    assert np.sum(np.linalg.norm(draws(search, 400) - 1.0, axis=1) < 0.05) < 10


@pytest.mark.sensitive
def test_a_prior_of_which_a_hundredth_is_feasible() -> None:
    """Before there was a foothold, 400 evaluations met three feasible points, and one of three runs was 19 nats off.

    What seed and round-off leave open: 26 runs under four kernels met 50 to 146 feasible points and were off by less
    than half an error bar. A flat box is what neither surrogate can have, so that the error bar was 0.4 to 1.0; it was
    above one in one of 32 runs, the six of an earlier engine among them, which makes two of three a chance of 3e-3.
    """
    truth = 2.0 * math.log(ndtr(HIGH) - ndtr(LOW))
    prior = wsabi.Gaussian([0.0, 0.0])
    results = [wsabi.integrate(boxed, prior, budget=400, rng=seed, tol=0) for seed in range(3)]
    assert all(result.certificate is not None for result in results)
    assert all(abs(result.log_z - truth) < 3.0 * result.log_z_std for result in results)
    assert np.median([np.isfinite(result.log_likelihoods).sum() for result in results]) > 50
    assert np.median([result.log_z_std for result in results]) < 1.0


def test_a_few_feasible_points_are_no_ground_for_a_small_claim() -> None:
    """Plain WSABI from two finite values claims what its kernel says; the user is told no less than 1/√2."""
    integrator = wsabi.Integrator(wsabi.Gaussian([0.0, 0.0]), rng=0)
    X = np.random.default_rng(0).standard_normal((40, 2))
    integrator.tell(X, np.append([0.0, -0.1], np.full(38, -math.inf)))
    result = integrator.result()
    assert result.certificate is None
    assert result.log_z_std >= math.sqrt(0.5)
    assert any("too few to search for modes" in text for text in result.warnings)
