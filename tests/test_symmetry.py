"""Likelihoods that do not tell some parameters apart: every mode counts, and a likelihood without symmetry has none."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, stats

import wsabi
from wsabi.adaptive.symmetry.group import Symmetry, group_of

pytestmark = pytest.mark.sensitive

Function = Callable[[np.ndarray], np.ndarray]
NAMED = wsabi.Gaussian(np.zeros(3), names=("mu1", "mu2", "log_sd"))
SWAP = Symmetry.of(3, ((0, 1),))
RENUMBER = Symmetry.of(5, ((0, 1), (2, 3)), [4])  # means, log sds, and the share of the first
_rng = np.random.default_rng(5)
DATA = np.concatenate([_rng.normal(-1.5, 0.35, 10), _rng.normal(1.2, 0.35, 15)])
MANY = np.concatenate([_rng.normal(-1.5, 0.35, 14), _rng.normal(1.2, 0.5, 22)])


def log_normal(y: np.ndarray, mean: np.ndarray, log_sd: np.ndarray) -> np.ndarray:
    """log N(y_i; mean_n, sd_n²), (N, n)."""
    r = (y - mean[:, None]) * np.exp(-log_sd[:, None])
    return np.asarray(-0.5 * np.square(r) - log_sd[:, None] - 0.5 * math.log(2.0 * math.pi))


def two_means(X: np.ndarray) -> np.ndarray:
    """Log likelihood (N,) of half and half N(X₀, sd²) and N(X₁, sd²), log sd = X₂."""
    parts = [log_normal(DATA, X[:, k], X[:, 2]) for k in (0, 1)]
    return np.asarray((np.logaddexp(*parts) - math.log(2.0)).sum(axis=1))


def two_components(X: np.ndarray) -> np.ndarray:
    """Log likelihood (N,) with means X₀, X₁, log sds X₂, X₃ and the share X₄ of the first."""
    with np.errstate(divide="ignore"):
        shares = np.log(X[:, 4]), np.log1p(-X[:, 4])
    parts = [shares[k][:, None] + log_normal(MANY, X[:, k], X[:, 2 + k]) for k in (0, 1)]
    return np.asarray(np.logaddexp(*parts).sum(axis=1))


def bumps(centres: np.ndarray, log_heights: np.ndarray, sd: float) -> tuple[Function, float]:
    """log ℓ of Gaussian bumps, heights at their centres (K, D), and log Z under N(0, I)."""

    def log_l(X: np.ndarray) -> np.ndarray:
        squares = np.square(X[:, None, :] - centres).sum(axis=2)
        return np.asarray(np.logaddexp.reduce(log_heights - 0.5 * squares / sd**2, axis=1))

    dim, wide = centres.shape[1], 1.0 + sd**2
    masses = log_heights + dim * math.log(sd) - 0.5 * dim * math.log(wide) - 0.5 * np.square(centres).sum(axis=1) / wide
    return log_l, float(np.logaddexp.reduce(masses))


def grid_sum(n: int) -> float:
    """log ∫ ℓπ of ``two_means`` under N(0, I), by the rule of equal weights; outside its box is less than 1e-6."""
    means, log_sds = np.linspace(-3.0, 3.0, 2 * n), np.linspace(-2.0, 0.6, n)
    X = np.stack([axis.ravel() for axis in np.meshgrid(means, means, log_sds)], axis=1)
    log_joint = two_means(X) + stats.norm.logpdf(X).sum(axis=1)
    cell = 2.0 * math.log(means[1] - means[0]) + math.log(log_sds[1] - log_sds[0])
    return float(np.logaddexp.reduce(log_joint)) + cell


def symmetries(integrator: wsabi.Integrator) -> list[Symmetry]:
    return list(integrator.strategy.state.known.symmetries)  # type: ignore[attr-defined]


def step(integrator: wsabi.Integrator, log_l: Function, n: int = 1) -> np.ndarray:
    X = integrator.ask(n)
    integrator.tell(X, log_l(X))
    return X


def is_at_images(integrator: wsabi.Integrator) -> bool:
    """Whether images are queued, some of them told."""
    images: Any = integrator.strategy.state.images  # type: ignore[attr-defined]
    return bool(images.queue and images.answers)


@pytest.fixture(scope="module")
def truth() -> float:
    coarse, fine = grid_sum(33), grid_sum(41)
    assert_allclose(coarse, fine, atol=1e-4)  # the oracle has converged
    return fine


# -- both modes are found ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("is_declared", [False, True])
def test_a_mixture_with_exchangeable_means(truth: float, seed: int, is_declared: bool) -> None:
    """Declared, or suggested by the names mu1 and mu2. One mode alone is log 2 too little."""
    names, settings = ("mu1", "mu2", "log_sd"), wsabi.Settings()
    if is_declared:
        names, settings = ("low", "high", "log_sd"), wsabi.Settings(exchangeable=["low", "high"])
    integrator = wsabi.Integrator(wsabi.Gaussian(np.zeros(3), names=names), rng=seed, settings=settings)
    result = integrator.run(two_means, budget=140, vectorized=True)
    assert abs(result.log_z - truth) < min(0.05, 3.0 * result.log_z_std)
    assert symmetries(integrator) == [SWAP]
    assert not any("exchangeable" in warning for warning in result.warnings)


def test_parameters_without_names_are_exchanged_one_by_one(truth: float) -> None:
    """They are called x0, x1, x2: the first exchange is the symmetry, the second is refuted."""
    result = wsabi.integrate(two_means, wsabi.Gaussian(np.zeros(3)), budget=140, rng=0, vectorized=True)
    assert abs(result.log_z - truth) < min(0.05, 3.0 * result.log_z_std)
    assert result.symmetries == ("x0 <-> x1",)


# -- what is declared and does not hold --------------------------------------------------------------------------------


def test_a_declaration_that_the_likelihood_refutes_is_not_used_and_a_warning_says_so() -> None:
    """One slanting bump off the diagonal: its image under the exchange holds nothing."""
    log_l, log_z = bumps(np.array([[1.2, -0.5]]), np.zeros(1), 0.2)
    settings = wsabi.Settings(exchangeable=["a", "b"])
    integrator = wsabi.Integrator(wsabi.Gaussian(np.zeros(2), names=("a", "b")), rng=0, settings=settings)
    result = integrator.run(log_l, budget=80, vectorized=True)
    assert abs(result.log_z - log_z) < min(0.05, 3.0 * result.log_z_std)
    assert result.symmetries == ()
    (warning,) = result.warnings
    assert "Settings(exchangeable=) declares that a <-> b changes nothing" in warning
    assert "was seen to change by" in warning
    assert "It is not used" in warning


def test_a_declaration_that_no_evaluation_has_tested_yet_is_named_too() -> None:
    """The budget ends within the first search."""
    settings = wsabi.Settings(exchangeable=["mu1", "mu2"])
    prior = wsabi.Gaussian(np.zeros(3), names=("mu1", "mu2", "log_sd"))
    result = wsabi.integrate(two_means, prior, budget=16, rng=0, vectorized=True, settings=settings)
    assert any("ended before that was proved. It is not used" in warning for warning in result.warnings)


def test_a_declared_exchange_of_vectors_is_of_all_their_entries() -> None:
    """Two units (w, v) of a network: the declaration names each as a whole."""
    normal = stats.norm(0.0, 1.0)
    mode = np.array([1.3, 0.9, -0.5, 0.7])
    log_l, log_z = bumps(np.array([mode, mode[[2, 3, 0, 1]]]), np.zeros(2), 0.25)
    prior = {"left": [normal, normal], "right": [normal, normal]}
    result = wsabi.integrate(
        lambda x: log_l(np.concatenate([x["left"], x["right"]])[None, :])[0],
        prior,
        budget=120,
        rng=0,
        settings=wsabi.Settings(exchangeable=["left", "right"]),
    )
    assert abs(result.log_z - log_z) < min(0.05, 3.0 * result.log_z_std)
    assert result.symmetries == ("left[0] <-> right[0], left[1] <-> right[1]",)


# -- modes that nothing declares ---------------------------------------------------------------------------------------


def importance_sum(n: int, rng: np.random.Generator) -> tuple[float, float]:
    """log Z of ``two_components`` and its standard error, by n draws: Student densities at both modes, and the prior.

    In u ~ N(0, I), with means 2u, log sds u and the share Φ(u).
    """

    def log_joint(U: np.ndarray) -> np.ndarray:
        X = np.column_stack([2.0 * U[:, :2], U[:, 2:4], stats.norm.cdf(U[:, 4])])
        return np.asarray(two_components(X) + stats.norm.logpdf(U).sum(axis=1))

    mode = optimize.minimize(lambda u: -log_joint(u[None])[0], np.array([-0.75, 0.6, -1.0, -0.7, -0.3]), method="BFGS")
    student = stats.multivariate_t(mode.x, 1.5 * mode.hess_inv, df=5)
    U = student.rvs(n, random_state=rng)
    U = np.where(rng.random((n, 1)) < 0.5, U, RENUMBER.image(U))
    U = np.where(rng.random((n, 1)) < 0.8, U, rng.standard_normal((n, 5)))
    parts = [math.log(0.4) + student.logpdf(U), math.log(0.4) + student.logpdf(RENUMBER.image(U))]
    log_q = np.logaddexp.reduce([*parts, math.log(0.2) + stats.norm.logpdf(U).sum(axis=1)])
    log_w = log_joint(U) - log_q
    w = np.exp(log_w - np.max(log_w))
    return math.log(w.mean()) + float(np.max(log_w)), float(w.std() / w.mean()) / math.sqrt(n)


def test_a_mixture_of_parameters_of_three_kinds() -> None:
    """Renumbering exchanges means and log sds and turns the share into one less it: reversed, where it is normal.

    Neither names nor a declaration can say so: two regions that match do. Of 20 runs 13 were right and 12 proved the
    symmetry, and four were off by more than three sds; with annealed searches alone 5 of 12 were off by as much. At
    these rates none of four is right in 1.5 % of sets of seeds, and none proves it in 2.6 %.
    """
    log_z, std = importance_sum(100_000, np.random.default_rng(1))
    assert std < 0.005
    normal, unit = stats.norm(0.0, 2.0), stats.norm(0.0, 1.0)
    n_right = n_proved = 0
    for seed in range(4):
        integrator = wsabi.Integrator(wsabi.Independent([normal, normal, unit, unit, (0.0, 1.0)]), rng=seed)
        result = integrator.run(two_components, budget=500, vectorized=True)
        off, sd = abs(result.log_z - log_z), math.hypot(result.log_z_std, std)
        n_right += off < min(0.1, 3.0 * sd)
        n_proved += RENUMBER in symmetries(integrator)
    assert n_right >= 1
    assert n_proved >= 1


def test_two_hidden_units_are_exchanged_and_their_signs_are_found_by_searches() -> None:
    """v₁ tanh(w₁·) + v₂ tanh(w₂·) has eight images of one mode: one alone is log 8 low, two are log 4 low.

    The names suggest the exchange. The signs come only from regions that match, and a search may take two modes into
    one region, which matches none. One run in six misses two of the modes and does not say so: more than one of three
    do in 7 % of sets of seeds.
    """
    unit, exchanged = Symmetry.of(4, reversed_axes=[0, 2]), Symmetry.of(4, ((0, 1), (2, 3)))
    group = {Symmetry.of(4), *group_of([unit, exchanged], 23)}
    assert len(group) == 8
    mode = np.array([1.3, -0.5, 0.9, 0.7])
    log_l, log_z = bumps(np.array([symmetry.image(mode) for symmetry in group]), np.zeros(8), 0.2)
    held = 0
    for seed in range(3):
        integrator = wsabi.Integrator(wsabi.Gaussian(np.zeros(4), names=("w1", "w2", "v1", "v2")), rng=seed)
        result = integrator.run(log_l, budget=200, vectorized=True)
        held += abs(result.log_z - log_z) < 3.0 * result.log_z_std
        assert abs(result.log_z - log_z) < math.log(4.0)
        assert "w1 <-> w2, v1 <-> v2" in result.symmetries
        assert set(integrator.strategy.state.known.group) <= group  # type: ignore[attr-defined]
    assert held >= 2


FACTORED = _rng.standard_normal((30, 1)) * np.array([1.2, -0.8, 0.9]) + 0.5 * _rng.standard_normal((30, 3))


def one_factor(X: np.ndarray) -> np.ndarray:
    """Log likelihood (N,) of y ~ N(0, λλᵀ + s²I) with loadings λ = X and s = ½, by the rank-one inverse."""
    squares = np.square(X).sum(axis=1)
    log_det = np.log1p(squares / 0.25) + 3.0 * math.log(0.25) + 3.0 * math.log(2.0 * math.pi)
    explained = np.square(X @ FACTORED.T).sum(axis=1) / (0.25 + squares)
    return np.asarray(-0.5 * (len(FACTORED) * log_det + (np.square(FACTORED).sum() - explained) / 0.25))


def test_the_loadings_of_a_factor_are_reversed_together() -> None:
    """Searches end in both modes, and the regions match. The sum over a grid has converged to 1e-4."""

    def summed(n: int) -> float:
        axis = np.linspace(-2.5, 2.5, n)
        X = np.stack([a.ravel() for a in np.meshgrid(axis, axis, axis)], axis=1)
        log_joint = one_factor(X) + stats.norm.logpdf(X).sum(axis=1)
        return float(np.logaddexp.reduce(log_joint)) + 3.0 * math.log(axis[1] - axis[0])

    truth = summed(71)
    assert_allclose(summed(60), truth, atol=1e-4)
    result = wsabi.integrate(one_factor, wsabi.Gaussian(np.zeros(3)), rng=0, vectorized=True)
    assert result.reason == "tolerance"
    assert abs(result.log_z - truth) < min(0.05, 3.0 * result.log_z_std)  # one of the two modes alone is log 2 low
    assert set(result.symmetries) <= {"x0 reversed, x1 reversed, x2 reversed"}


def test_without_a_symmetry_there_are_no_images() -> None:
    """One slanting Gaussian off the centre, in closed form: N(c; 0, I + S)|2πS|^½."""
    centre = np.array([0.8, -0.3, 0.4])
    cov = np.array([[0.04, 0.02, 0.0], [0.02, 0.09, -0.03], [0.0, -0.03, 0.06]])
    precision = np.linalg.inv(cov)
    integrator = wsabi.Integrator(wsabi.Gaussian(np.zeros(3), names=("a1", "a2", "b")), rng=0)
    result = integrator.run(lambda x: -0.5 * (x - centre) @ precision @ (x - centre), budget=150)
    expected = stats.multivariate_normal(np.zeros(3), np.eye(3) + cov).logpdf(centre)
    expected += 0.5 * np.linalg.slogdet(2.0 * np.pi * cov)[1]
    assert abs(result.log_z - expected) < min(0.05, 3.0 * result.log_z_std)
    assert symmetries(integrator) == []
    assert [region.symmetry for region in integrator.strategy.state.known.regions] == [None]  # type: ignore[attr-defined]
    assert integrator.strategy.state.images.tried  # type: ignore[attr-defined]


# -- however the values come ------------------------------------------------------------------------------------------


def test_an_integrator_pickled_among_images_goes_on_as_if_it_had_not_been() -> None:
    integrator = wsabi.Integrator(NAMED, rng=0)
    while not is_at_images(integrator):
        step(integrator, two_means)
    copy = pickle.loads(pickle.dumps(integrator))
    ahead = [step(integrator, two_means) for _ in range(25)]
    assert_array_equal([step(copy, two_means) for _ in range(25)], ahead)
    assert symmetries(copy) == symmetries(integrator) == [SWAP]


def test_batches_told_in_another_order_find_the_symmetry() -> None:
    """Eight at a time, told one by one in any order, across the borders of batches too."""
    rng = np.random.default_rng(3)
    integrator = wsabi.Integrator(NAMED, rng=0)
    under_way = integrator.ask(4)
    while not symmetries(integrator) and integrator.n_evals < 150:
        under_way = rng.permutation(np.concatenate([under_way, integrator.ask(8)]))
        for x in under_way[:8]:
            integrator.tell(x[None, :], two_means(x[None, :]))
        under_way = under_way[8:]
    assert symmetries(integrator) == [SWAP]


def test_a_constant_in_log_l_changes_no_symmetry() -> None:
    found = []
    for constant in (0.0, 1e4):
        integrator = wsabi.Integrator(NAMED, rng=0)
        for _ in range(90):
            step(integrator, lambda X, c=constant: two_means(X) + c)  # type: ignore[misc]
        found.append(symmetries(integrator))
    assert found == [[SWAP], [SWAP]]


# -- ridges and heights beyond round-off ------------------------------------------------------------------------------


def test_a_ridge_as_thin_as_round_off() -> None:
    """−½((x₀ − x₁)/ε)² under N(0, I): x₀ − x₁ ~ N(0, 2), hence Z = ε/√2 to ε² for ε = 1e-8.

    Of 48 runs that moved q by the eigenvalues of its covariance four were off by more than three of their sds, up to 15
    nats; of 24 by singular values none is. At one failure in ten, two of three fail in 3 % of sets of seeds.
    """
    expected = math.log(1e-8) - 0.5 * math.log(2.0)
    prior = wsabi.Gaussian([0.0, 0.0])
    runs = [
        wsabi.integrate(lambda x: -0.5 * ((x[0] - x[1]) / 1e-8) ** 2, prior, budget=130, rng=seed) for seed in range(3)
    ]
    assert sum(abs(run.log_z - expected) < min(0.01, 3.0 * run.log_z_std) for run in runs) >= 2


def test_values_beyond_any_square_give_a_result_with_warnings() -> None:
    result = wsabi.integrate(lambda x: -1e200 * (x @ x), wsabi.Gaussian([0.0, 0.0]), budget=80, rng=0)
    assert result.n_evals == 80
    assert any("hardly explored" in warning for warning in result.warnings)


# -- what the user is told --------------------------------------------------------------------------------------------


def test_the_result_names_the_symmetry_and_can_be_reweighed() -> None:
    """Under a prior that favours one of the two modes, whichever it is, the evidence is the same."""
    prior = NAMED
    result = wsabi.integrate(two_means, prior, budget=200, rng=1, vectorized=True)
    assert result.symmetries == ("mu1 <-> mu2",)
    assert "symmetry        mu1 <-> mu2" in str(result)
    here, there = (result.with_prior(wsabi.Gaussian([sign * 1.3, -sign * 1.3, 0.0])) for sign in (1.0, -1.0))
    assert here.log_z > result.log_z
    assert max(here.log_z_std, there.log_z_std) < 0.1
    assert abs(here.log_z - there.log_z) < 3.0 * math.hypot(here.log_z_std, there.log_z_std)
    assert here.warnings == there.warnings == ()


# -- what must not go wrong -------------------------------------------------------------------------------------------


def test_a_run_that_goes_on_from_another_knows_both_modes_from_its_evaluations(truth: float) -> None:
    """The images were evaluated by the first run, and answer without being asked again.

    Often the search that begins with both modes takes both into one region, which has no image elsewhere: then there is
    nothing to ask. A mode that is missed would cost log 2; the error bar is less than half of it in five of six runs.
    At that rate it is larger in all of three in 0.5 % of sets of seeds.
    """
    first = wsabi.integrate(two_means, NAMED, budget=80, rng=4, vectorized=True)
    assert first.symmetries == ("mu1 <-> mu2",)
    runs = [wsabi.integrate(two_means, NAMED, budget=90, rng=s, vectorized=True, start=first) for s in range(3)]
    assert all(abs(run.log_z - truth) < min(0.05, 3.0 * run.log_z_std) for run in runs)
    assert sum(run.log_z_std < 0.5 * math.log(2.0) for run in runs) >= 1


def test_a_symmetry_of_two_modes_is_not_laid_upon_a_third() -> None:
    """Two bumps are images of each other, the highest has none: an image of it would add half of Z and more.

    Up to one run in twenty misses a bump and does not say so: more than one of four do in 1.4 % of sets of seeds. A
    symmetry laid upon the third would be in most of them.
    """
    log_l, log_z = bumps(np.array([[1.2, -0.5], [-1.2, 0.5], [0.4, 1.3]]), np.array([0.0, 0.0, 2.0]), 0.15)
    prior = wsabi.Gaussian(np.zeros(2))
    runs = [wsabi.integrate(log_l, prior, budget=200, rng=seed, vectorized=True) for seed in range(4)]
    assert sum(abs(run.log_z - log_z) < 3.0 * run.log_z_std for run in runs) >= 3
    assert sum(run.log_z < log_z + 0.1 for run in runs) >= 3


UNHEARD = pytest.mark.xfail(strict=True, reason="a check point 149 nats above its prediction is no lead: ℓπ/(Zp) is 5")


@pytest.mark.parametrize("budget", [*range(11, 21), pytest.param(21, marks=UNHEARD), 22])
def test_a_budget_that_ends_early_leaves_an_honest_error_bar(budget: int) -> None:
    """What was told of a second mode by then is in the estimate, or in its error bar."""
    log_l, log_z = bumps(np.array([[2.0], [-2.0]]), np.zeros(2), 0.3)
    result = wsabi.integrate(log_l, wsabi.Gaussian([0.0]), budget=budget, rng=budget, vectorized=True, tol=0)
    told_of_both = all(np.any(np.abs(result.points - c) < 0.3) for c in (2.0, -2.0))
    assert not told_of_both or abs(result.log_z - log_z) < 2.0 * result.log_z_std
