"""The held-out problems are what they say, and their stored truths are right as far as is quickly seen."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from benchmarks.held_out import CASES, EXACT, TRUTHS
from benchmarks.study_held_out import exact, from_base, lattice, tempered, to_base
from benchmarks.study_truths import Case, Round, Target, find_modes, importance_sample

MAKERS = {case.maker.__name__: case.maker for case in CASES}


@pytest.fixture(scope="module", params=CASES, ids=list(MAKERS))
def case(request):
    return request.param


def test_vectorised_agrees_with_scalar(case):
    problem = case.maker()
    X = from_base(problem, np.random.default_rng(1).standard_normal((20, problem.dim)))
    vectorised = problem.log_likelihood_vectorized(X)
    assert vectorised.shape == (20,)
    assert np.all(np.isfinite(vectorised))
    # Matrix products of one row and of twenty add up in another order: round-off, relative to the largest term.
    np.testing.assert_allclose([problem.log_likelihood(x) for x in X], vectorised, rtol=1e-9)


def test_problem_is_complete(case):
    problem = case.maker()
    assert problem.name == case.maker.__name__
    assert (problem.log_z, problem.log_z_std) == TRUTHS[problem.name]
    assert 0.0 < problem.log_z_std <= 0.01
    assert max(150, 50 * problem.dim) <= case.budget <= max(150, 100 * problem.dim)
    again = pickle.loads(pickle.dumps(problem))  # a worker gets it so
    centre = from_base(problem, np.zeros((1, problem.dim)))[0]  # mean of a Gaussian or a box, median of other axes
    assert math.isfinite(problem.log_likelihood(centre))
    assert again.log_likelihood(centre) == problem.log_likelihood(centre)


def test_base_coordinates_carry_the_prior(case):
    """x(u) has the prior's quantiles: the share of its draws below the median of axis d is one half."""
    problem = case.maker()
    n, centre = 4000, from_base(problem, np.zeros((1, problem.dim)))[0]
    below = (problem.prior.sample(n, np.random.default_rng(2)) < centre).mean(axis=0)
    assert np.all(np.abs(below - 0.5) < 5.0 * 0.5 / math.sqrt(n))  # five standard errors, a false alarm in 2e6 per axis


@pytest.mark.parametrize("name", sorted(EXACT))
def test_stored_truth_is_the_exact_one(name):
    problem = MAKERS[name]()
    assert abs(exact(problem) - problem.log_z) < problem.log_z_std  # the stored value is rounded to that


@pytest.mark.parametrize("name", ["beacons", "change", "on_off", "schools"])
def test_draws_from_the_prior_agree_with_the_truth(name):
    base = to_base(MAKERS[name]())
    simple = Round.of(base.log_likelihood_vectorized(np.random.default_rng(3).standard_normal((100_000, base.dim))))
    assert simple.effective > 100
    # Five standard errors: a false alarm in 2e6 if normal; the weights are skewed, and the seed is fixed.
    assert abs(simple.log_z - base.log_z) < 5.0 * math.hypot(simple.log_z_std, base.log_z_std)


@pytest.mark.parametrize("name", ["decay", "growth", "logistic", "poisson", "student"])
def test_importance_sampling_agrees_with_the_truth(name):
    rng, base = np.random.default_rng(4), to_base(MAKERS[name]())
    modes = find_modes(Target(base), 6, rng)
    effort = Case(name, rounds=1, adapt=4000, final=10_000, components=4)
    last = importance_sample(Target(base), effort, modes, rng)[-1]
    assert last.log_z_std < 0.05
    assert abs(last.log_z - base.log_z) < 5.0 * math.hypot(last.log_z_std, base.log_z_std)


def test_lattice_agrees_with_the_truth():
    base = to_base(MAKERS["on_off"]())
    assert abs(lattice(base, 61) - base.log_z) < base.log_z_std  # 61 and 121 nodes an axis differ by 5e-9


def test_tempered_population_agrees_with_the_truth():
    base = to_base(MAKERS["poisson"]())
    runs = [tempered(base, np.random.default_rng(seed), n=1000, sweeps=6) for seed in range(4)]
    assert abs(np.mean(runs) - base.log_z) < 0.2  # one run has a standard deviation of about 0.06
