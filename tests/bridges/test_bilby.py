"""``wsabi.from_bilby`` and the sampler that bilby finds: log Z of bilby's likelihoods under bilby's priors."""

from __future__ import annotations

import importlib.metadata
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import wsabi
from bridging import ALL, imported, needs

pytestmark = [needs("bilby"), pytest.mark.filterwarnings("ignore")]
T = np.linspace(-1.0, 1.0, 10)
Y = 0.5 + T + 0.3 * np.cos(23.0 * T)
WIDTH = 20.0


def line(time: Any, a: float, b: float) -> Any:
    return a + b * time


@pytest.fixture(scope="module")
def bilby() -> Any:
    module = imported("bilby")
    module.core.utils.logger.setLevel("ERROR")
    return module


@pytest.fixture(scope="module")
def likelihood(bilby: Any) -> Any:
    return bilby.core.likelihood.GaussianLikelihood(T, Y, line, sigma=0.3)


@pytest.fixture(scope="module")
def exact() -> float:
    """Of a uniform prior of that width on a and on b: ∫ ℓ = √|2πΣ| ℓ(mode), the box being far away."""
    design = np.column_stack([np.ones(10), T]) / 0.3
    mode, residual = np.linalg.lstsq(design, Y / 0.3, rcond=None)[:2]
    assert np.all(np.abs(mode) < 0.2 * WIDTH)
    log_l = -0.5 * residual[0] - 10 * np.log(0.3 * np.sqrt(2 * np.pi))
    return float(log_l - 0.5 * np.linalg.slogdet(design.T @ design / (2 * np.pi))[1] - 2 * np.log(WIDTH))


def flat(bilby: Any) -> dict[str, Any]:
    return {key: bilby.core.prior.Uniform(-0.5 * WIDTH, 0.5 * WIDTH, key) for key in "ab"}


def test_log_z_and_fixed_parameters(bilby: Any, likelihood: Any, exact: float) -> None:
    model = wsabi.from_bilby(likelihood, flat(bilby))
    assert abs(wsabi.integrate(model, budget=60, rng=0).log_z - exact) < 0.01
    held = wsabi.from_bilby(likelihood, flat(bilby) | {"b": 1.0})
    assert held.names == ("a",)
    assert held.log_likelihood({"a": 0.3}) == pytest.approx(stats.norm(0.3 + T, 0.3).logpdf(Y).sum())
    ratio = wsabi.from_bilby(likelihood, flat(bilby), use_ratio=True)
    noise = model.log_likelihood({"a": 0.0, "b": 0.0})
    assert np.isnan(likelihood.noise_log_likelihood()) or ratio.log_likelihood({"a": 0.0, "b": 0.0}) == pytest.approx(
        noise - likelihood.noise_log_likelihood()
    )


def test_priors_have_the_density_and_the_draws_of_bilby(bilby: Any, likelihood: Any) -> None:
    module = bilby.core.prior
    given = {
        "uniform": module.Uniform(-1, 2),
        "log_uniform": module.LogUniform(0.1, 10),
        "gaussian": module.Gaussian(1.0, 2.0),
        "log_normal": module.LogNormal(0.3, 0.5),
        "sine": module.Sine(),
        "cosine": module.Cosine(),
        "power": module.PowerLaw(2.0, 1.0, 3.0),
        "truncated": module.TruncatedGaussian(0.0, 1.0, -1.0, 2.0),
        "half": module.HalfGaussian(2.0),
        "exponential": module.Exponential(2.0),
        "student": module.StudentT(4.0),
        "beta": module.Beta(2.0, 3.0),
        "gamma": module.Gamma(2.0, 3.0),
        "both_signs": module.SymmetricLogUniform(1.0, 10.0),
        "table": module.Interped(np.linspace(0.0, 1.0, 50), 1.0 + np.linspace(0.0, 1.0, 50)),
    }
    prior = wsabi.from_bilby(likelihood, given).prior
    assert type(prior).__name__ == "Independent"
    X = prior.sample(2000, 0)
    theirs = sum(given[key].ln_prob(x) for key, x in zip(prior.names, X.T, strict=True))
    assert_allclose(prior.log_pdf(X), theirs, rtol=1e-9, atol=1e-9)
    for key, x in zip(prior.names, X.T, strict=True):  # 15 tests: a false alarm once in 10⁵ versions of the seed
        assert stats.kstest(np.asarray(given[key].cdf(x)), "uniform").pvalue > 1e-6, key


def test_joint_and_conditional_priors_are_maps_from_the_cube(bilby: Any, likelihood: Any) -> None:
    module = bilby.core.prior
    pair = module.MultivariateGaussianDist(["a", "b"], nmodes=1, mus=[[1.0, 2.0]], covs=[[[1.0, 0.9], [0.9, 2.0]]])
    joint = {
        "a": module.MultivariateGaussian(pair, "a"),
        "c": module.Uniform(0, 1),
        "b": module.MultivariateGaussian(pair, "b"),
    }
    prior = wsabi.from_bilby(likelihood, joint).prior
    draws = prior.sample(4000, 0)
    assert prior.names == ("a", "c", "b")
    assert_allclose(np.cov(draws[:, [0, 2]].T), [[1.0, 0.9], [0.9, 2.0]], atol=0.2)

    def condition(reference: dict[str, float], a: float) -> dict[str, float]:
        return {"minimum": 0.0, "maximum": a}

    nested = module.ConditionalPriorDict(
        {"b": module.ConditionalUniform(condition, minimum=0, maximum=1), "a": module.Uniform(1, 2)}
    )
    draws = wsabi.from_bilby(likelihood, nested).prior.sample(500, 0)
    b, a = draws.T
    assert stats.kstest(b / a, "uniform").pvalue > 1e-6
    assert stats.kstest(a - 1.0, "uniform").pvalue > 1e-6


def test_a_constraint_is_zero_likelihood_where_it_is_violated(bilby: Any, likelihood: Any, exact: float) -> None:
    def convert(parameters: dict[str, Any]) -> dict[str, Any]:
        return parameters | {"difference": parameters["a"] - parameters["b"]}

    priors = bilby.core.prior.PriorDict(flat(bilby), conversion_function=convert)
    priors["difference"] = bilby.core.prior.Constraint(-100, 0)
    model = wsabi.from_bilby(likelihood, priors)
    assert model.names == ("a", "b")
    assert model.log_likelihood({"a": 1.0, "b": 0.5}) == -np.inf
    assert model.log_likelihood({"a": 0.5, "b": 1.0}) == pytest.approx(stats.norm(0.5 + T, 0.3).logpdf(Y).sum())


def test_zero_likelihood_and_nan(bilby: Any, likelihood: Any) -> None:
    class Odd(bilby.Likelihood):  # type: ignore[misc,name-defined]
        def log_likelihood(self, parameters: dict[str, float]) -> float:
            return float(np.nan_to_num(-np.inf)) if parameters["a"] > 0 else np.nan

        def log_likelihood_ratio(self, parameters: dict[str, float]) -> float:
            return self.log_likelihood(parameters)

    model = wsabi.from_bilby(Odd(), {"a": bilby.core.prior.Uniform(-1, 1)})
    assert model.log_likelihood({"a": 0.5}) == -np.inf
    with pytest.raises(wsabi.LikelihoodError, match="nan"):
        wsabi.integrate(model, budget=10, rng=0)


def test_the_way_of_older_versions(bilby: Any) -> None:
    class Old(bilby.Likelihood):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__(parameters={"a": 0.0})

        def log_likelihood(self) -> float:
            return float(-(self.parameters["a"] ** 2))

    model = wsabi.from_bilby(Old(), {"a": bilby.core.prior.Uniform(-1, 1)})
    assert model.log_likelihood({"a": 0.5}) == -0.25


def test_it_is_pickled_for_workers(bilby: Any, likelihood: Any) -> None:
    model = wsabi.from_bilby(likelihood, flat(bilby))
    again = pickle.loads(pickle.dumps(model.log_likelihood))
    assert again({"a": 0.3, "b": 0.2}) == model.log_likelihood({"a": 0.3, "b": 0.2})


def test_what_is_wrong_is_said(bilby: Any, likelihood: Any) -> None:
    with pytest.raises(TypeError, match=r"likelihood must be a bilby.Likelihood; got int"):
        wsabi.from_bilby(3, flat(bilby))
    with pytest.raises(ValueError, match="priors have no free parameter"):
        wsabi.from_bilby(likelihood, {"a": 1.0, "b": 2.0})
    with pytest.raises(ValueError, match=r"n is discrete \(Categorical\): make one model for each of its values"):
        wsabi.from_bilby(likelihood, {"n": bilby.core.prior.Categorical(3)})


def is_found() -> bool:
    return any(one.name == "wsabi" for one in importlib.metadata.entry_points(group="bilby.samplers"))


@pytest.mark.skipif(not is_found() and not ALL, reason="the sampler of bilby is NOT tested: wsabi is not installed")
class TestSampler:
    @pytest.fixture(autouse=True)
    def _no_list_of_packages(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """For its list bilby imports pip, after which setuptools cannot be imported, which other tests need."""
        monkeypatch.setattr("bilby.core.sampler.env_package_list", lambda **_: None)

    def run(self, bilby: Any, likelihood: Any, folder: Path, **options: Any) -> Any:
        return bilby.run_sampler(
            likelihood, flat(bilby), sampler="wsabi", outdir=str(folder), label="line", seed=0, **options
        )

    def test_log_evidence_posterior_and_file(self, bilby: Any, likelihood: Any, exact: float, tmp_path: Path) -> None:
        result = self.run(bilby, likelihood, tmp_path, budget=60, settings=wsabi.Settings(modes="one"))
        assert abs(result.log_evidence - exact) < 0.01
        assert result.log_evidence_err == result.sampler_output.log_z_std < 0.05
        assert result.num_likelihood_evaluations == result.sampler_output.n_evals
        assert_allclose(result.posterior[["a", "b"]].mean(), result.sampler_output.posterior.mean, atol=0.02)
        assert len(result.posterior) == 5000
        read = bilby.read_in_result(str(tmp_path / "line_result.json"))
        assert read.log_evidence == result.log_evidence
        assert read.meta_data["wsabi"]["version"] == wsabi.__version__

    def test_a_run_goes_on_from_its_journal(self, bilby: Any, likelihood: Any, tmp_path: Path) -> None:
        short = self.run(bilby, likelihood, tmp_path, budget=20, save=False, tol=0.0)
        longer = self.run(bilby, likelihood, tmp_path, budget=30, save=False, tol=0.0)
        assert (short.num_likelihood_evaluations, longer.num_likelihood_evaluations) == (20, 30)
        assert_allclose(longer.sampler_output.points[:20], short.sampler_output.points)
        anew = self.run(bilby, likelihood, tmp_path, budget=20, save=False, tol=0.0, resume=False)
        assert anew.num_likelihood_evaluations == 20
        assert not (tmp_path / "line_wsabi.db").exists()

    def test_few_evaluations_are_made_beside_the_run(self, bilby: Any, tmp_path: Path) -> None:
        calls = []

        class Counting(bilby.Likelihood):  # type: ignore[misc,name-defined]
            def log_likelihood(self, parameters: dict[str, float]) -> float:
                calls.append(parameters["a"])
                return -0.5 * parameters["a"] ** 2

            def log_likelihood_ratio(self, parameters: dict[str, float]) -> float:
                return self.log_likelihood(parameters)

        priors = {"a": bilby.core.prior.Uniform(-9, 9)}
        result = bilby.run_sampler(Counting(), priors, sampler="wsabi", outdir=str(tmp_path), save=False, budget=25)
        assert len(calls) <= result.num_likelihood_evaluations + 4  # bilby takes over a hundred
