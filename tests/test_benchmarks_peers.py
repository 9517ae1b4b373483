"""The benchmark against other packages: how runs are counted, timed, ended and read, and that our part runs."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import wsabi
from benchmarks.peers import matrix
from benchmarks.peers.cases import CASES
from benchmarks.peers.derived import Reach, Window, middle, reach, time_to, window
from benchmarks.peers.page import filled
from benchmarks.peers.registry import ENTRANTS, files
from benchmarks.peers.store import Runs
from benchmarks.peers.task import Task, effective

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "PYTHONIOENCODING": "utf-8"}


def ran(entrant, *, error, std=None, n=100, own=2.0, trace=(), case="banana 2-D", seed=0, status="ended"):
    """A run as the file has it."""
    return {
        "entrant": entrant, "case": case, "seed": seed, "status": status, "error": error, "log_z_std": std,
        "n_evals": n, "own_seconds": own, "trace": [list(entry) for entry in trace],
    }  # fmt: skip


# -- what a peer is given -------------------------------------------------------------------------------------------


def task(prior, dim, function=lambda X: -0.5 * np.square(X).sum(axis=1)):
    return Task(function, prior, dim, seed=3)


def test_the_cube_is_mapped_to_the_prior():
    """A mean, a correlation or a support that was lost would show in the quantiles of the first or second axis."""
    cov = np.array([[4.0, 1.5], [1.5, 1.0]])
    C = np.random.default_rng(0).uniform(size=(4000, 2))
    X = task(wsabi.Gaussian([1.0, -2.0], cov), 2).from_cube(C)
    # The sample covariance of 4,000 draws has a relative error of 1/√2000 = 2.2 %: five of these.
    assert_allclose(np.cov(X.T), cov, rtol=0.11)
    assert_allclose(X.mean(axis=0), [1.0, -2.0], atol=5.0 * 2.0 / np.sqrt(4000))
    mixed = task([stats.halfcauchy(0, 2), (3.0, 5.0)], 2)
    assert_allclose(mixed.from_cube(np.array([0.5, 0.25])), [2.0, 3.5], rtol=1e-7)


@pytest.mark.parametrize("prior", [wsabi.Gaussian([0.3], 0.25), wsabi.Uniform([-1.0], [3.0])])
def test_the_integral_is_the_same_in_base_coordinates(prior):
    """∫ ℓπ over the box of `Space` equals that in user's coordinates: no Jacobian is missing."""
    space = task(prior, 1).space
    u, step = np.linspace(*(end[0] for end in space.box), 4001, retstep=True)
    joint = np.exp(space.log_likelihood(u[:, None]) + space.log_prior(u[:, None]))
    x = np.linspace(-1.0, 3.0, 4001)
    truth = np.trapezoid(np.exp(-0.5 * x**2 + prior.log_pdf(x[:, None])), x)
    # The box ends at five prior sds, and the grid of x at less: 6e-7 and 5e-4 of the mass at most.
    assert_allclose(np.trapezoid(joint, dx=step), truth, rtol=6e-3)
    assert_allclose(space.log_joint(u[2000:2001]), np.log(joint[2000]), rtol=1e-12)


def test_evaluations_are_counted_and_their_time_is_nobodys_own():
    def slow(X):
        for _ in range(200):
            np.linalg.inv(np.eye(60) + 0.1)
        return -np.square(X).sum(axis=1)

    given = task(wsabi.Gaussian([0.0, 0.0]), 2, slow)
    given.batch(np.zeros((5, 2)))
    given.note(-1.0, 0.1)
    given.log_likelihood(np.ones(2))
    given.note_afterwards(5, -2.0)
    assert given.n_evals == 6
    assert given.inside > 10.0 * given.own_seconds > 0.0
    assert [entry[0] for entry in given.trace] == [5, 5]
    assert given.trace[1][1] <= given.own_seconds
    assert effective(np.log([1.0, 1.0, 2.0])) == pytest.approx(16.0 / 6.0)


# -- what follows from runs -----------------------------------------------------------------------------------------


def test_an_accuracy_is_reached_for_good():
    trace = [(10, 0.1, 0.05, 0.1), (20, 0.2, -0.3, 0.1), (30, 0.3, 0.08, 0.1), (40, 0.4, -0.02, 0.1)]
    run = ran("wsabi", error=0.01, std=0.02, n=50, own=0.6, trace=trace)
    assert reach(run, 0.1) == Reach(30, 0.3)  # not 10: it left again
    assert reach(run, 0.015) == Reach(50, 0.6)
    assert reach(run, 0.001) == Reach()
    assert reach(run | {"status": "out of time"}, 0.1) == Reach()
    unknown = ran("wsabi", error=0.01, n=50, trace=[(10, 0.1, None, None)])
    assert reach(unknown, 0.1).n_evals == 50


def test_a_single_estimate_counts_by_its_claim_and_not_by_luck():
    lucky = ran("dynesty static", error=0.001, std=0.1, n=1000, own=2.0)
    assert reach(lucky, 0.1) == Reach(1000, 2.0)
    assert reach(lucky, 0.01) == Reach(pytest.approx(100_000), pytest.approx(200.0), extrapolated=True)
    wrong = ran("dynesty static", error=3.0, std=0.1, n=1000)
    assert reach(wrong, 0.1) == Reach()
    assert reach(ran("alabi", error=0.05, std=0.3), 0.1) == Reach(100, 2.0)
    assert reach(ran("alabi", error=0.2, std=0.3), 0.1) == Reach()


def test_failures_count_as_infinite_in_medians():
    reaches = [Reach(), Reach(30, 1.0), Reach(20, 2.0)]
    assert middle(reaches).n_evals == 30
    assert middle([*reaches, Reach(), Reach()]).n_evals == math.inf
    runs = [ran("wsabi", error=0.0, std=0.1, n=10, own=1.0), ran("wsabi", error=9.0, std=0.1, seed=1)]
    assert time_to(runs[:1], 0.1, 10.0) == 101.0
    assert time_to([*runs, ran("wsabi", error=9.0, seed=2)], 0.1, 0.0) == math.inf


def test_ours_is_the_fastest_between_the_crossings():
    ours = ran("wsabi", error=0.0, std=0.01, n=100, own=1.0)
    cheap = ran("dynesty static", error=0.0, std=0.1, n=10_100, own=0.5)
    dear = ran("nautilus", error=0.0, std=0.01, n=20_000, own=30.0)
    fewer = ran("PyVBMC", error=0.0, std=0.01, n=60, own=21.0)
    case = "banana 2-D"
    assert window([ours, dear], case, 0.1) == Window(0.0, math.inf)
    assert window([ours, cheap, dear], case, 0.1) == Window(pytest.approx(5e-5), math.inf, "dynesty static")
    both = window([ours, cheap, dear, fewer], case, 0.1)
    assert both == Window(pytest.approx(5e-5), pytest.approx(0.5), "dynesty static", "PyVBMC")
    for cost, fastest in ((4e-5, "dynesty static"), (0.1, "wsabi"), (0.6, "PyVBMC")):
        times = {run["entrant"]: time_to([run], 0.1, cost) for run in (ours, cheap, dear, fewer)}
        assert min(times, key=times.get) == fastest
    assert window([cheap, dear], case, 0.1).is_empty
    assert window([ours, fewer | {"own_seconds": 0.1}], case, 0.1).is_empty


# -- runs -----------------------------------------------------------------------------------------------------------


def test_an_interrupted_matrix_goes_on_where_it_was(tmp_path, monkeypatch):
    made = []

    def one(entrant, case, seed, seconds):
        made.append((entrant.name, case.label, seed))
        if len(made) == 3:
            raise KeyboardInterrupt
        return ran(entrant.name, error=0.0, std=0.1, case=case.label, seed=seed)

    monkeypatch.setattr(matrix, "run_one", one)
    path, choice = tmp_path / "results.json", (["wsabi", "simple Monte Carlo"], CASES[:2], range(1))
    with pytest.raises(KeyboardInterrupt):
        matrix.run_all(Runs(path), *choice, seconds=1.0, minutes=1.0)
    matrix.run_all(Runs(path), *choice, seconds=1.0, minutes=1.0)
    assert len(made) == 5
    assert made[2] == made[3]  # the one that was interrupted, and none of those before it
    assert len(Runs(path).runs) == 4
    matrix.run_all(Runs(path), *choice, seconds=1.0, minutes=1.0, again=True)
    assert len(made) == 9


def test_every_peer_has_an_entry_and_a_run_without_its_package():
    assert {"wsabi", "dynesty static", "simple Monte Carlo"} <= set(ENTRANTS)
    for name, module in files().items():
        assert all("==" in module.PEER.requirements[0] for _ in module.PEER.requirements[:1]), name
        assert callable(module.run)
    assert len({case.label for case in CASES}) == len(CASES)


def test_a_run_that_does_not_end_is_out_of_time(tmp_path):
    script = (
        "import sys\nfrom benchmarks.peers import child\nfrom benchmarks.peers.registry import ENTRANTS\n"
        "def run(task, **_):\n    while True: task.log_likelihood([0.0, 0.0])\n"
        "ENTRANTS['simple Monte Carlo'].module.run = run\nchild.main(sys.argv[1:])"
    )
    path = tmp_path / "record.json"
    arguments = ["simple Monte Carlo", "banana 2-D", "0", "0.3", str(path)]
    subprocess.run([sys.executable, "-c", script, *arguments], env=ENVIRONMENT, check=True, timeout=120)
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["status"] == "out of time"
    assert record["n_evals"] > 100
    assert record["error"] is None


def test_a_peer_without_its_environment_is_said_to_be_missing(monkeypatch, tmp_path):
    monkeypatch.setattr("benchmarks.peers.environments.FOLDER", ROOT / "nowhere")
    run = matrix.run_one(ENTRANTS["UltraNest"], CASES[1], 0, 1.0)
    assert run["status"] == "not installed"


def test_text_around_the_generated_parts_stays():
    text = "before\n<!-- one: generated -->\nold\n<!-- end -->\nafter\n"
    made = filled(text, {"one": lambda: r"new \1", "two": lambda: "more"})
    assert made.startswith("before\n<!-- one: generated -->\n\nnew \\1\n\n<!-- end -->\nafter\n")
    assert "old" not in made
    assert "<!-- two: generated -->\n\nmore" in made
    assert filled(made, {"one": lambda: r"new \1", "two": lambda: "more"}) == made


def test_our_part_runs():
    """One problem from the call to the page and its figures."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "benchmarks.peers", "--quick"],
        cwd=ROOT, env=ENVIRONMENT, capture_output=True, encoding="utf-8", timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "4/4 banana 2-D, simple Monte Carlo, seed 0:" in done.stdout
    assert "| wsabi | 1 | 1 | 0 | 1/1 |" in done.stdout
