"""``result.to_arviz()``: with ArviZ 0.x and 1.x, its tables and pictures work on it and show the result's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import wsabi
from bridging import imported, needs
from wsabi.bridges.draws import variables

N = 4000  # draws by default: a mean is known to 1/60 of an sd


@pytest.fixture(scope="module")
def az() -> Any:
    pytest.importorskip("matplotlib").use("Agg")
    return imported("arviz")


@pytest.fixture(scope="module")
def data(az: Any, result: wsabi.Result) -> Any:
    return result.to_arviz()


@needs("arviz")
@pytest.mark.filterwarnings("ignore")
class TestWithArviz:
    def test_it_is_what_this_version_of_arviz_reads(self, az: Any, data: Any) -> None:
        assert type(data).__name__ == ("DataTree" if int(az.__version__.split(".")[0]) >= 1 else "InferenceData")

    def test_vectors_are_variables_with_a_dimension(self, data: Any) -> None:
        assert data["posterior"]["beta"].shape == (4, 1000, 2)
        assert data["posterior"]["log_tau"].shape == data["prior"]["log_tau"].shape == (4, 1000)

    def test_summary_has_the_posterior(self, az: Any, data: Any, result: wsabi.Result) -> None:
        table = az.summary(data)
        assert list(table.index) == ["beta[0]", "beta[1]", "log_tau"]
        # The table rounds to two digits.
        mean = table["mean"].astype(float).to_numpy()
        assert_allclose(mean, result.posterior.mean, atol=6 * float(np.max(result.posterior.std)) / np.sqrt(N) + 0.01)
        assert_allclose(table["sd"].astype(float).to_numpy(), result.posterior.std, rtol=0.1)

    def test_chains_are_independent_draws(self, az: Any, data: Any) -> None:
        assert float(np.max(az.rhat(data)["beta"])) < 1.01
        assert float(np.min(az.ess(data)["beta"])) > 0.8 * N  # sorted draws, or repeats in a row, would give tens

    def test_the_prior_group_has_the_prior(self, data: Any) -> None:
        draws = data["prior"]["beta"].values.ravel()
        assert stats.kstest(draws, stats.norm(0, 2).cdf).pvalue > 1e-6

    def test_pairs_are_drawn(self, az: Any, data: Any) -> None:
        assert az.plot_pair(data) is not None

    def test_log_z_and_warnings_travel_with_it_to_a_file(
        self, az: Any, data: Any, result: wsabi.Result, tmp_path: Any
    ) -> None:
        data.to_netcdf(tmp_path / "draws.nc")
        read = az.from_netcdf(tmp_path / "draws.nc")["posterior"]
        assert (read.attrs["log_z"], read.attrs["log_z_std"]) == (result.log_z, result.log_z_std)
        assert read.attrs["warnings"] == "\n".join(result.warnings)
        assert read.attrs["inference_library_version"] == wsabi.__version__
        assert_allclose(read["beta"].values, data["posterior"]["beta"].values)

    def test_what_from_dict_takes_can_be_given(self, result: wsabi.Result) -> None:
        data = result.to_arviz(draws=10, chains=2, prior=False, coords={"term": ["a", "b"]}, dims={"beta": ["term"]})
        assert list(data["posterior"]["beta"].dims) == ["chain", "draw", "term"]
        assert data["posterior"]["beta"].shape == (2, 10, 2)
        assert not hasattr(data, "prior")

    def test_a_prior_without_draws_has_no_group(self) -> None:
        density = wsabi.LogDensity(lambda x: -0.5 * float(x @ x) - 0.9189385, wsabi.Gaussian([0.0], 2.0))
        result = wsabi.integrate(lambda x: -0.5 * float(x @ x), density, budget=30, rng=0)
        assert not hasattr(result.to_arviz(draws=5), "prior")

    def test_a_wrong_number_is_named(self, result: wsabi.Result) -> None:
        with pytest.raises(ValueError, match="draws must be a whole number"):
            result.to_arviz(draws=0)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["a", "b"], {"a": ([0], ()), "b": ([1], ())}),
        (["w[0,0]", "w[0,1]", "s", "w[1,0]", "w[1,1]"], {"w": ([0, 1, 3, 4], (2, 2)), "s": ([2], ())}),
        (["w[1]", "w[0]"], {"w[1]": ([0], ()), "w[0]": ([1], ())}),
        (["w[0]", "w"], {"w[0]": ([0], ()), "w": ([1], ())}),
    ],
)
def test_names_of_elements_make_an_array_where_all_are_there(names: list[str], found: dict[str, Any]) -> None:
    assert variables(names) == found
