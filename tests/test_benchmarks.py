"""Every benchmark runs, briefly: none can rot. How fast anything is, is for `make bench` to say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gmm_runs import WrongAnswer, WsabiRun, monte_carlo_errors, run_wsabi
from benchmarks.measuring import Reference, Row
from benchmarks.shapes import Shape
from benchmarks.study_models import Run as ModelRun
from benchmarks.study_models import moments_of, reference_quantiles

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = sorted(path.stem for path in (ROOT / "benchmarks").glob("bench_*.py"))


@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmark_runs_briefly(name, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", f"benchmarks.{name}", "--brief", "--output", str(tmp_path)],
        cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (written,) = tmp_path.glob("*-brief.json")
    content = json.loads(written.read_text(encoding="utf-8"))
    assert content["versions"].keys() >= {"python", "numpy", "scipy", "wsabi"}
    assert content["machine"]["cores"] >= 1
    for row in content["targets"]:
        assert row["what"] in done.stdout


def test_a_wrong_answer_is_not_timed(monkeypatch):
    """An evidence that is off by a factor of two stops the benchmark, whatever the clock says."""
    right = run_wsabi(0, "wsabi-l", 60, Reference(20), go_on=False)
    assert abs(right.error) < 0.02
    monkeypatch.setattr(
        "benchmarks.gmm_runs.relative_error", lambda log_z, truth: np.expm1(log_z - truth + np.log(2.0))
    )
    with pytest.raises(WrongAnswer, match=r"wsabi-l, seed 0: relative error (1|0\.9)"):
        run_wsabi(0, "wsabi-l", 60, Reference(20), go_on=False)


def test_monte_carlo_error_shrinks_as_it_should():
    errors, n = monte_carlo_errors(0, (0.01, 0.05))
    # sd[ℓ]/Z is 0.72 for this seed; five standard errors, a false alarm in 2e6 (and the seed is fixed).
    assert errors[-1] < 5.0 * 0.75 / np.sqrt(n)
    assert n % 4096 == 0


def test_cost_and_errors_of_a_run_are_read_off_its_history():
    run = WsabiRun(0, "wsabi-l", 2, seconds=3.0, unit=0.5, clock=[1.0, 3.0, 6.0, 10.0])
    run.history = [(1, 1.0, -0.5), (3, 6.0, 0.25)]
    assert run.units == 6.0
    assert (run.cost(1, 2), run.cost(3, 4)) == (3.0, 7.0)
    assert [run.error_at_time(t) for t in (0.5, 5.9, 6.0)] == [np.inf, 0.5, 0.25]
    assert [run.error_at_size(n) for n in (2, 4)] == [0.5, 0.25]


def test_rows_compare_with_their_bound():
    assert Row.at_most("a", 2.0, 2.0).met
    assert not Row.at_most("a", 2.1, 2.0).met
    assert not Row.at_least("a", 14, 15, "{:d}").met
    assert Row.at_least("a", 15, 15, "{:d}", note=" of 16") == Row("a", "15 of 16", "≥ 15", True)


def test_reference_is_measured_afresh():
    reference = Reference(50)
    assert reference.measure(3) == np.median(reference.seconds)
    reference.measure(2)
    assert len(reference.seconds) == 5


def test_random_shapes_have_the_evidence_that_they_claim():
    """By the trapezoid rule in two dimensions; the kinks of some densities limit it to some 1e-4."""
    side, step = np.linspace(-10.0, 10.0, 241, retstep=True)
    for seed in (0, 5, 10):
        shape = Shape(seed)
        assert shape.dim == 2
        values = [[shape(np.array([a, b])) for a in side] for b in side]
        log_z = np.log(np.exp(values).sum() * step**2) - 2.0 * np.log(20.0)
        assert log_z == pytest.approx(shape.log_z, abs=1e-3)


def test_a_posterior_is_out_of_bounds_by_its_mean_its_sd_or_a_quantile():
    fine = {"mean_error": 0.09, "sd_ratio": 0.91, "quantile_error": 0.24}
    worse = {"mean_error": 0.11, "sd_ratio": 1.12, "quantile_error": 0.26}
    rest = dict.fromkeys(("error", "log_z_std", "log_z_se", "n_evals", "seconds"), 0.0)
    known = {"model": "m", "seed": 0, "warnings": (), **rest}
    assert not ModelRun(**known, **fine).is_out_of_bounds
    for name, value in worse.items():
        assert ModelRun(**known, **{**fine, name: value}).is_out_of_bounds
    assert not ModelRun(**known, **{**fine, "quantile_error": np.nan}).is_out_of_bounds  # where none is known


def test_moments_of_weighted_points():
    """A uniform density by points that are three times as dense, and weigh a third, on its lower half."""
    x = np.concatenate([(np.arange(3000) + 0.5) / 6000, 0.5 + (np.arange(1000) + 0.5) / 2000])
    weights = np.concatenate([np.full(3000, 1 / 6000), np.full(1000, 1 / 2000)])
    mean, sd, quantiles = moments_of(np.column_stack([x, 2.0 * x]), weights)
    np.testing.assert_allclose(mean, [0.5, 1.0], atol=1e-9)
    np.testing.assert_allclose(sd, np.sqrt([1 / 12, 4 / 12]), atol=1e-6)
    np.testing.assert_allclose(quantiles, [[0.01, 0.02], [0.99, 1.98]], atol=1e-3)


def test_every_model_that_is_sampled_has_its_quantiles_in_order():
    entries = reference_quantiles()
    assert len(entries) == 9
    for quantiles in entries.values():
        assert np.all(quantiles[0] < quantiles[1])
