"""``result.to_dataframe()``, ``to_anesthetic()`` and ``to_getdist()`` show the result's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wsabi
from bridging import imported, needs

NAMES = ["beta[0]", "beta[1]", "log_tau"]


@needs("pandas")
class TestPandas:
    def test_draws(self, result: wsabi.Result) -> None:
        frame = result.to_dataframe(n=2000)
        assert list(frame.columns) == NAMES
        assert len(frame) == 2000
        error = 6 * result.posterior.std / np.sqrt(2000)
        assert np.all(np.abs(frame.mean().to_numpy() - result.posterior.mean) < error)
        assert frame.attrs["log_z"] == result.log_z

    def test_weighted_points(self, result: wsabi.Result) -> None:
        frame = result.to_dataframe(of="weighted")
        assert_allclose(frame[NAMES].to_numpy().T @ frame["weight"].to_numpy(), result.posterior.mean)

    def test_evaluations(self, result: wsabi.Result) -> None:
        frame = result.to_dataframe(of="evaluations")
        assert_allclose(frame["log_likelihood"], result.log_likelihoods)
        assert_allclose(frame[NAMES], result.points)
        assert set(frame["purpose"]) >= {"search 0", "check"}

    def test_a_baseline_has_no_purposes(self) -> None:
        from wsabi.baselines import simple_monte_carlo

        bare = simple_monte_carlo(lambda x: -0.5 * float(x @ x), wsabi.Gaussian([0.0]), budget=50, rng=0)
        assert list(bare.to_dataframe(of="evaluations").columns) == ["x0", "log_likelihood"]

    def test_a_wrong_word_is_named(self, result: wsabi.Result) -> None:
        with pytest.raises(ValueError, match="of must be 'draws', 'weighted' or 'evaluations'; got 'points'"):
            result.to_dataframe(of="points")  # type: ignore[arg-type]


@needs("anesthetic")
@pytest.mark.filterwarnings("ignore")
def test_anesthetic(result: wsabi.Result) -> None:
    samples = result.to_anesthetic()
    assert_allclose(samples.mean().to_numpy(), result.posterior.mean)
    assert_allclose(samples.cov().to_numpy(), result.posterior.cov, rtol=0.01)  # theirs is unbiased for few points
    assert [name for name, _ in samples.columns] == NAMES
    assert samples.attrs["log_z"] == result.log_z
    pytest.importorskip("matplotlib").use("Agg")
    assert samples.plot_2d(NAMES) is not None


@needs("getdist")
@pytest.mark.filterwarnings("ignore")
def test_getdist(result: wsabi.Result, tmp_path: Any) -> None:
    samples = result.to_getdist(label="line")
    assert samples.label == "line"
    assert_allclose(samples.getMeans(), result.posterior.mean)
    # The density at the bound is half of what it should be unless the ranges are known.
    ends = samples.get1DDensity("log_tau").Prob(np.array([0.01, 2.0]))
    assert_allclose(ends[0] / ends[1], np.exp(1.99), rtol=0.2)
    pytest.importorskip("matplotlib").use("Agg")
    plotter = imported("getdist.plots").get_subplot_plotter()
    plotter.triangle_plot([samples], filled=True)
    plotter.export(str(tmp_path / "triangle.png"))
    assert (tmp_path / "triangle.png").stat().st_size > 10_000
