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
    side, step = np.linspace(-10.0, 10.0, 801, retstep=True)
    for seed in (0, 5, 10):
        shape = Shape(seed)
        assert shape.dim == 2
        values = [[shape(np.array([a, b])) for a in side] for b in side]
        log_z = np.log(np.exp(values).sum() * step**2) - 2.0 * np.log(20.0)
        assert log_z == pytest.approx(shape.log_z, abs=1e-3)
