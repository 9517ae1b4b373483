"""One posterior whatever it is made of: the same surface, the user's coordinates, names, and numbers that agree."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import trapezoid

import wsabi
from wsabi.posterior.posterior import Posterior
from wsabi.posterior.weighted import WeightedSamples

ADAPTIVE = wsabi.Settings()
PLAIN = wsabi.Settings(measure="prior")
PRIOR = {"beta": [stats.norm(0, 2), stats.norm(0, 2)], "tau": (0.0, 4.0)}
MEAN = np.array([1.0, 1.0])


def log_l(p: dict[str, object]) -> float:
    """Bivariate normal in beta, with correlation ½; exponential in tau, cut at 4."""
    d = np.asarray(p["beta"]) - MEAN
    return -0.5 * float(d @ np.array([[4.0, -2.0], [-2.0, 4.0]]) @ d) / 0.75 - float(p["tau"])  # type: ignore[arg-type]


COV = np.linalg.inv(np.array([[4.0, -2.0], [-2.0, 4.0]]) / 0.75 + np.eye(2) / 4.0)
BETA = COV @ (np.array([[4.0, -2.0], [-2.0, 4.0]]) / 0.75 @ MEAN)
TAU = stats.truncexpon(b=4.0)


@pytest.fixture(scope="module", params=["adaptive", "plain"])
def result(request: pytest.FixtureRequest) -> wsabi.Result:
    settings = ADAPTIVE if request.param == "adaptive" else PLAIN
    return wsabi.integrate(log_l, PRIOR, budget=90, rng=0, settings=settings)


@pytest.fixture
def posterior(result: wsabi.Result) -> Posterior:
    return result.posterior


def test_it_is_one_class(posterior: Posterior) -> None:
    assert type(posterior) is Posterior is wsabi.Posterior
    assert posterior.names == ("beta[0]", "beta[1]", "tau")
    assert posterior.dim == 3
    assert repr(posterior).startswith("Posterior(beta[0], beta[1], tau; ")
    assert posterior.points.shape == (len(posterior.weights), 3)
    assert posterior.weights.sum() == pytest.approx(1.0)
    assert 100 < posterior.effective_sample_size <= len(posterior.weights)
    assert posterior.support[0][2] == 0.0


def test_moments_by_name(posterior: Posterior) -> None:
    """A tenth of an sd: 4,000 points worth 1,000 know a mean to 0.03 sds."""
    sd = np.sqrt(np.diag(COV))
    assert_allclose(posterior.mean["beta"], BETA, atol=0.1 * sd[0])
    assert_allclose(posterior.std["beta"], sd, rtol=0.1)
    assert posterior.mean["tau"] == pytest.approx(TAU.mean(), abs=0.1 * TAU.std())
    assert posterior["tau"].std == pytest.approx(TAU.std(), rel=0.1)
    assert_array_equal(posterior["beta"].mean, posterior.mean["beta"])
    assert posterior["beta[1]"].mean == posterior.mean[1] == posterior[1].mean
    correlation = posterior.cov[0, 1] / math.sqrt(posterior.cov[0, 0] * posterior.cov[1, 1])
    assert correlation == pytest.approx(COV[0, 1] / COV[0, 0], abs=0.1)


def test_quantiles_and_intervals(posterior: Posterior) -> None:
    levels = [0.025, 0.5, 0.975]
    found = posterior.quantile(levels)
    assert found.shape == (3, 3)
    assert_allclose(found[:, 2], TAU.ppf(levels), atol=0.15 * TAU.std())
    assert_array_equal(posterior.quantile(0.5), found[1])
    assert posterior.quantile(0.5)["tau"] == posterior["tau"].quantile(0.5) == found[1, 2]
    assert_array_equal(posterior["tau"].quantile(levels), found[:, 2])
    assert_array_equal(posterior["beta"].quantile(levels), found[:, :2])
    low, high = posterior.interval(0.95)
    assert_allclose([low["tau"], high["tau"]], found[[0, 2], 2], rtol=1e-9)
    shortest = posterior["tau"].interval(0.95, kind="highest-density")
    assert shortest.low < low["tau"]  # the density is highest at zero
    assert_allclose(shortest, [0.0, TAU.ppf(0.95)], atol=0.15)
    assert posterior["beta"].interval(0.5).low.shape == (2,)
    assert_array_equal(posterior.interval(0.5, kind="highest-density").low[:2],
                       posterior["beta"].interval(0.5, kind="highest-density").low)  # fmt: skip


def test_bad_levels_and_kinds(posterior: Posterior) -> None:
    for wrong in (1.2, -0.1, math.nan, [], [[0.5]]):
        with pytest.raises(ValueError, match="q must be one probability or a list"):
            posterior.quantile(wrong)
    with pytest.raises(ValueError, match="probability must lie between 0 and 1; got 95"):
        posterior.interval(95)
    with pytest.raises(ValueError, match="kind must be 'central' or 'highest-density'; got 'hdi'"):
        posterior.interval(0.95, kind="hdi")  # type: ignore[arg-type]


def test_unknown_names_list_the_known_ones(posterior: Posterior) -> None:
    for use in (lambda: posterior["tua"], lambda: posterior.mean["tua"]):
        with pytest.raises(KeyError, match="'tua' is not one of the parameters beta, tau"):
            use()
    with pytest.raises(ValueError, match="'tua' is not one of the parameters beta, tau"):
        posterior.marginal("tua")
    with pytest.raises(ValueError, match=r"beta is a vector: name one of beta\[0\], beta\[1\]"):
        posterior.marginal("beta")
    with pytest.raises(ValueError, match="the same parameter"):
        posterior.marginal2("tau", 2)


def test_expectations_and_their_errors(posterior: Posterior) -> None:
    value, error = posterior.expect_with_error(lambda p: p["tau"])
    assert value == posterior.expect(lambda p: p["tau"])
    assert error == pytest.approx(TAU.std() / math.sqrt(posterior.effective_sample_size), rel=1.0)
    assert abs(value - posterior.mean["tau"]) < 6.0 * error + 0.02
    both = posterior.expect_with_error(lambda p: p["beta"], vectorized=True)
    assert np.shape(both.value) == np.shape(both.error) == (2,)
    assert posterior.expect_with_error(lambda p: 1.0) == pytest.approx((1.0, 0.0), abs=1e-12)
    assert posterior.expect(lambda p: p["tau"], n=300) == pytest.approx(TAU.mean(), abs=0.3)


def test_draws_and_predictions(posterior: Posterior) -> None:
    assert_array_equal(posterior.sample(50, rng=1), posterior.sample(50, rng=1))
    assert posterior["tau"].sample(50, rng=1).shape == (50,)
    assert_array_equal(posterior["beta"].sample(50, rng=1), posterior.sample(50, rng=1)[:, :2])
    assert posterior["beta"].points.shape == (len(posterior["tau"].weights), 2)
    plain = posterior.predict(lambda p: p["beta"][0] + p["tau"], 400, rng=2)
    assert plain.shape == (400,)
    assert plain.mean() == pytest.approx(posterior.mean["beta"][0] + posterior.mean["tau"], abs=0.3)
    noisy = [posterior.predict(lambda p, rng: rng.normal(p["tau"], 0.1, size=3), 20, rng=2) for _ in range(2)]
    assert noisy[0].shape == (20, 3)
    assert_array_equal(*noisy)


def test_marginals_stay_inside_the_support(posterior: Posterior) -> None:
    grid, density = posterior.marginal("tau")
    assert grid.min() >= 0.0
    assert grid.max() <= 4.0
    assert trapezoid(density, grid) == pytest.approx(1.0, abs=0.03)
    assert_array_equal(posterior["tau"].marginal().density, density)
    a, b, joint = posterior.marginal2("tau", "beta[0]")
    assert joint.shape == (len(a), len(b))
    assert a.min() >= 0.0
    assert np.all(joint >= 0.0)
    assert trapezoid(trapezoid(joint, b, axis=1), a) == pytest.approx(1.0, abs=0.06)
    exact = TAU.pdf(a)[:, None] * stats.norm(BETA[0], math.sqrt(COV[0, 0])).pdf(b)
    # At the very bound the closed form, a GP in the normal variable behind tau, falls to zero.
    assert_allclose(joint[2:], exact[2:], atol=0.25 * exact.max())


def test_the_joint_density_has_the_correlation(posterior: Posterior) -> None:
    a, b, joint = posterior.marginal2("beta[0]", "beta[1]")
    exact = stats.multivariate_normal(BETA, COV).pdf(np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1))
    assert_allclose(joint, exact, atol=0.15 * exact.max())


def test_the_density_is_normalised_by_z(posterior: Posterior) -> None:
    """0.1 nats within two sds of the mean: the likelihood is a Gaussian, which the models fit."""
    X = np.array([[1.0, 1.0, 0.5], [0.8, 1.2, 2.0], [1.4, 1.3, 0.1]])
    exact = stats.multivariate_normal(BETA, COV).logpdf(X[:, :2]) + TAU.logpdf(X[:, 2])
    assert_allclose(posterior.logpdf(X), exact, atol=0.1)
    assert posterior.logpdf(X[0]) == pytest.approx(posterior.logpdf(X)[0])
    assert posterior.logpdf([1.0, 1.0, 5.0]) == -math.inf
    with pytest.raises(ValueError, match=r"x must have shape \(3,\) or \(M, 3\)"):
        posterior.logpdf([1.0])


def test_summary(posterior: Posterior) -> None:
    summary = posterior.summary()
    lines = str(summary).splitlines()
    assert lines[0].split() == ["mean", "sd", "2.5", "%", "25", "%", "50", "%", "75", "%", "97.5", "%"]
    assert [line.split()[0] for line in lines[1:4]] == ["beta[0]", "beta[1]", "tau"]
    assert lines[4] == f"effective sample size {posterior.effective_sample_size:.0f}"
    assert float(lines[3].split()[1]) == pytest.approx(posterior.mean["tau"], rel=0.01)
    assert summary.mean["tau"] == posterior.mean["tau"]
    assert summary.to_dict()["tau"]["97.5 %"] == posterior["tau"].quantile(0.975)
    assert summary.table.shape == (3, 7)
    assert posterior.summary([0.1]).columns == ("mean", "sd", "10 %")


def test_what_pictures_need(result: wsabi.Result) -> None:
    diagnostics = result.diagnostics
    assert diagnostics is not None
    assert_allclose(diagnostics.mode[:2], BETA, atol=1.0)
    assert len(diagnostics.slices) == 3
    one = diagnostics.slices[2]
    assert one.grid.min() >= 0.0
    assert one.grid.max() <= 4.0
    at = diagnostics.mode.copy()
    near = np.argmin(np.abs(one.grid - at[2]))
    at[2] = one.grid[near]
    assert one.mean[near] == pytest.approx(log_l({"beta": at[:2], "tau": at[2]}), abs=0.3)
    assert np.all(one.std >= 0.0)
    if result.method == "adaptive":
        check = diagnostics.check
        assert check is not None
        assert check.weights.sum() == pytest.approx(1.0)
        told = {tuple(x): value for x, value in zip(result.points, result.log_likelihoods, strict=True)}
        assert [told[tuple(x)] for x in check.points] == pytest.approx(check.log_likelihoods.tolist())
        heavy = check.weights > 0.02
        assert_allclose(check.predicted[heavy], check.log_likelihoods[heavy], atol=0.5)


def test_pickling(posterior: Posterior) -> None:
    X = posterior.sample(5, rng=0)
    before = posterior.logpdf(X)
    text = pickle.dumps(posterior)
    assert len(text) < 2**20
    copy = pickle.loads(text)
    assert_array_equal(copy.logpdf(X), before)
    assert_array_equal(copy.quantile([0.1, 0.9]), posterior.quantile([0.1, 0.9]))


def test_under_another_prior(result: wsabi.Result) -> None:
    other = result.with_prior({"tau": stats.truncexpon(b=4.0), "beta": PRIOR["beta"]}).posterior
    assert type(other) is Posterior
    narrower = stats.truncexpon(b=8.0, scale=0.5)
    assert other["tau"].mean == pytest.approx(narrower.mean(), abs=0.1 * narrower.std())
    x = np.array([1.0, 1.0, 0.5])
    exact = stats.multivariate_normal(BETA, COV).logpdf(x[:2]) + narrower.logpdf(x[2])
    assert other.logpdf(x) == pytest.approx(exact, abs=0.15)
    assert other.diagnostics is None


# -- what only some have ----------------------------------------------------------------------------------------------


def test_under_a_transform_there_is_no_density_but_all_else() -> None:
    def spread(cube: np.ndarray) -> np.ndarray:
        return stats.norm.ppf(cube) * np.array([1.0, 2.0])

    for settings in (ADAPTIVE, PLAIN):
        prior = wsabi.Transform(spread, 2)
        posterior = wsabi.integrate(lambda x: -0.5 * float(x @ x), prior, budget=40, rng=0, settings=settings).posterior
        assert posterior["x1"].std == pytest.approx(math.sqrt(0.8), rel=0.15)
        assert_allclose(posterior.interval(0.95).high, 1.96 * np.sqrt([0.5, 0.8]), rtol=0.2)
        grid, density = posterior.marginal("x0")
        assert trapezoid(density, grid) == pytest.approx(1.0, abs=0.03)
        assert posterior.marginal2(0, 1).density.shape == (60, 60)
        with pytest.raises(TypeError, match="Transform"):
            posterior.logpdf([0.0, 0.0])


def test_weighted_points_without_a_model_estimate_their_density() -> None:
    """Bandwidth 4000^(−1/6) = 0.25 sds widens the normal to √1.06: 0.06 nats low at the top."""
    points = np.random.default_rng(0).normal(size=(4000, 2))
    bounds = (np.full(2, -5.0), np.full(2, 5.0))
    posterior = Posterior(WeightedSamples(points, np.full(4000, 1 / 4000), ("a", "b"), support=bounds))
    X = np.array([[0.0, 0.0], [1.0, -1.0]])
    assert_allclose(posterior.logpdf(X), stats.multivariate_normal(np.zeros(2)).logpdf(X), atol=0.2)
    assert posterior.logpdf([6.0, 0.0]) == -math.inf
    assert posterior.diagnostics is None


def test_two_narrow_modes_are_not_blurred() -> None:
    """±1 with sd 0.05: a bandwidth from the overall sd would be 0.2."""
    rng = np.random.default_rng(1)
    x = np.where(rng.random(4000) < 0.5, -1.0, 1.0) + 0.05 * rng.normal(size=4000)
    points = np.column_stack([x, x + 0.05 * rng.normal(size=4000)])
    posterior = Posterior(WeightedSamples(points, np.full(4000, 1 / 4000), ("a", "b")))
    top = 0.5 * stats.norm.pdf(0.0, scale=0.05)
    assert posterior.marginal("a", [1.0]).density[0] == pytest.approx(top, rel=0.25)
    joint = posterior.marginal2("a", "b", ([0.0, 1.0], [0.0, 1.0])).density
    assert joint[1, 1] > 1e3 * max(joint[0, 0], joint[0, 1])
