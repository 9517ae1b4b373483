"""wsabi run, resume, show, export and init, as a person types them."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import wsabi
from wsabi.cli.app import app
from wsabi.runs.journal import read

ROOT = Path(__file__).resolve().parents[1]
MODEL = """
import os, time
from pathlib import Path
import wsabi

prior = wsabi.Gaussian([0.0, 0.0], names=["a", "b"])

def log_likelihood(x):
    with open("calls", "a") as file:
        file.write("x")
    time.sleep(float(os.environ.get("SLEEP", "0")))
    return -0.5 * float(x @ x)

def fails(x):
    if x[0] > 1:
        raise ValueError("boom")
    return -0.5 * float(x @ x)

model = wsabi.Model(log_likelihood, prior)
"""
PRIOR = 'a = { distribution = "norm", loc = 0, scale = 1 }\nb = [-3, 3]\n'


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200", "TERM": "dumb"})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "model", raising=False)
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "prior.toml").write_text(PRIOR, encoding="utf-8")
    return tmp_path


def n_calls(folder: Path) -> int:
    return len((folder / "calls").read_text(encoding="utf-8")) if (folder / "calls").exists() else 0


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "wsabi.cli", *arguments]


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1", **more}


def test_run_and_resume_and_show_and_export(folder: Path) -> None:
    first = run("run", "model.py:log_likelihood", "--budget", "30", "--tol", "0", "--seed", "3")
    assert first.exit_code == 0, first.output
    assert "log Z" in first.stdout
    assert "journal: model.db" in first.stderr
    assert n_calls(folder) == 30
    more = run("resume", "model.db", "--budget", "34")
    assert more.exit_code == 0, more.output
    assert "going on after 30 evaluations" in more.stderr
    assert n_calls(folder) == 34
    shown = run("show", "model.db", "--json")
    facts = json.loads(shown.stdout)
    assert (facts["n_evals"], facts["reason"], facts["ended"], facts["running"]) == (34, "budget", True, False)
    assert sorted(facts["posterior"]) == ["a", "b"]
    assert f"± {facts['log_z_std']:.2g}" in run("show", "model.db").stdout
    assert run("export", "model.db", "draws.csv", "-n", "7").exit_code == 0
    lines = (folder / "draws.csv").read_text(encoding="utf-8").splitlines()
    assert (lines[0], len(lines)) == ("a,b", 8)
    assert run("export", "model.db", "draws.npz", "-n", "5").exit_code == 0
    with np.load(folder / "draws.npz", allow_pickle=False) as file:
        assert file["draws"].shape == (5, 2)
    assert n_calls(folder) == 34  # showing and exporting evaluates nothing


def test_an_existing_journal_is_refused_unless_it_is_to_go_on(folder: Path) -> None:
    line = ("run", "model.py:log_likelihood", "--budget", "8", "--out", "run.db", "-q")
    assert run(*line).exit_code == 0
    again = run(*line)
    assert again.exit_code == 2
    assert "wsabi resume run.db" in again.stderr
    assert run(*line, "--resume").exit_code == 0
    assert n_calls(folder) == 8
    other = run(*line, "--resume", "--seed", "5")
    assert other.exit_code == 1
    assert "another seed" in other.stderr


def test_a_prior_in_toml_gives_the_likelihood_a_dict(folder: Path) -> None:
    (folder / "model.py").write_text("def log_likelihood(p):\n    return -0.5 * p['a'] ** 2\n", encoding="utf-8")
    done = run("run", "model.py:log_likelihood", "--prior", "prior.toml", "--budget", "25", "-q")
    assert done.exit_code == 0, done.output
    assert abs(wsabi.load("model.db").log_z + 0.5 * np.log(2.0)) < 0.1


@pytest.mark.parametrize("line", ["sh ./simulate {a} {b}", f"{sys.executable} simulate.py"])
def test_any_program_is_a_likelihood(folder: Path, line: str) -> None:
    (folder / "simulate").write_text(
        'awk -v a="$1" -v b="$2" \'BEGIN { print "working"; print -0.5 * a * a }\'\n', encoding="utf-8"
    )
    (folder / "simulate.py").write_text(
        "import json, sys\nprint(-0.5 * json.load(sys.stdin)['a'] ** 2)\n", encoding="utf-8"
    )
    done = run("run", "--command", line, "--prior", "prior.toml", "--budget", "12", "--out", "run.db", "-q")
    assert done.exit_code == 0, done.output
    assert wsabi.load("run.db").n_evals == 12
    assert run("resume", "run.db", "--budget", "14", "-q").exit_code == 0
    assert wsabi.load("run.db").n_evals == 14


def test_a_program_that_fails_is_quoted(folder: Path) -> None:
    (folder / "broken").write_text("echo no licence >&2; exit 4\n", encoding="utf-8")
    done = run("run", "--command", "sh broken {a}", "--prior", "prior.toml", "--out", "run.db", "-q")
    assert done.exit_code == 1
    assert "sh ended with status 4: no licence" in done.stderr
    (folder / "broken").write_text("echo done\n", encoding="utf-8")
    done = run("run", "--command", "sh broken {a}", "--prior", "prior.toml", "--out", "other.db", "-q")
    assert "printed 'done' as its last line; expected a number" in done.stderr


def test_evaluations_that_fail_are_excluded_by_an_option(folder: Path) -> None:
    failed = run("run", "model.py:fails", "--budget", "20", "--out", "run.db", "-q")
    assert failed.exit_code == 1
    assert "boom" in failed.stderr
    assert "wsabi resume run.db" in failed.stderr
    done = run("run", "model.py:fails", "--budget", "20", "--out", "new.db", "--on-error", "exclude", "-q")
    assert done.exit_code == 0, done.output
    assert json.loads(run("show", "new.db", "--json").stdout)["n_failed"] >= 1


def started(folder: Path, *arguments: str, sleep: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("run", "model.py:log_likelihood", "--budget", "40", "--tol", "0", "--out", "run.db", *arguments),
        env=environment(SLEEP=sleep), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
    )  # fmt: skip


def wait_for(folder: Path, calls: int) -> None:
    end = time.time() + 60
    while n_calls(folder) < calls and time.time() < end:
        time.sleep(0.02)


@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_a_killed_run_is_shown_and_goes_on(folder: Path, workers: tuple[str, ...]) -> None:
    process = started(folder, *workers, sleep="0.05")
    wait_for(folder, 12)
    live = run("show", "run.db", "--json")
    assert json.loads(live.stdout)["running"] is True
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    time.sleep(0.3)
    made, kept = n_calls(folder), len([1 for e in read("run.db").ledger.evaluations if e.log_l is not None])
    assert made - kept <= (2 if workers else 1)
    assert "stopped without an end" in run("show", "run.db").stdout
    done = run("resume", "run.db", "-q")
    assert done.exit_code == 0, done.output
    assert n_calls(folder) == made + 40 - kept
    assert read("run.db").course == 1  # it was replayed, in the order in which the workers had answered


def test_ctrl_c_once_finishes_what_is_under_way_and_twice_stops_at_once(folder: Path) -> None:
    process = started(folder, sleep="1.0")
    wait_for(folder, 6)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "finishing what is under way" in err
    assert "Go on: wsabi resume run.db" in err
    assert "interrupted" in out
    assert "run.db: ended: interrupted; go on: wsabi resume run.db" in run("show", "run.db").stdout
    evaluations = read("run.db").ledger.evaluations
    assert all(one.log_l is not None for one in evaluations)
    process = subprocess.Popen(
        command("resume", "run.db"), env=environment(SLEEP="30"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd=folder,
    )  # fmt: skip
    wait_for(folder, n_calls(folder) + 1)
    begun = time.time()
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.time() - begun < 20.0
    assert len([1 for e in read("run.db").ledger.evaluations if e.log_l is not None]) == len(evaluations)


def test_a_model_brings_its_prior(folder: Path) -> None:
    done = run("run", "model.py:model", "--budget", "10", "--out", "run.db", "-q")
    assert done.exit_code == 0, done.stderr
    assert run("resume", "run.db", "--budget", "15", "-q").exit_code == 0
    assert n_calls(folder) == 15
    assert run("show", "run.db", "--prior", "model.py:model").exit_code == 0


def test_a_journal_from_another_machine_runs_nothing_by_itself(folder: Path) -> None:
    line = f'{sys.executable} -c \'open("harm", "w")\''
    run("run", "--command", line, "--prior", "prior.toml", "--budget", "5", "--out", "run.db", "-q")
    (folder / "harm").unlink()
    with sqlite3.connect("run.db") as connection:
        connection.execute("UPDATE run SET value = '\"elsewhere\"' WHERE key = 'host'")
    connection.close()
    done = run("resume", "run.db")
    assert done.exit_code == 2
    assert "comes from another machine (elsewhere) and names what to run there" in done.stderr
    assert not (folder / "harm").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "model.py"], "must be like model.py:name"),
        (["run", "none.py:f", "--prior", "prior.toml"], "there is no file"),
        (["run", "model.py:none"], "model has no 'none'"),
        (["run", "model.py:prior"], "is not a function but Gaussian"),
        (["run", "model.py:model", "--prior", "prior.toml"], "leave out --prior"),
        (["run", "model.py:model", "--vectorized"], "leave out --vectorized"),
        (["run", "--command", "x"], "--command needs --prior"),
        (["run", "model.py:log_likelihood", "--command", "x"], "give either a likelihood"),
        (["run", "model.py:log_likelihood", "--prior", "none.toml"], "none.toml cannot be read"),
        (["run", "model.py:log_likelihood", "--timeout", "3"], "cannot be interrupted"),
        (["run", "model.py:log_likelihood", "--on-error", "ignore"], "on_error must be one of"),
        (["resume", "none.db"], "none.db cannot be read"),
        (["show", "model.py"], "neither a saved result nor a journal"),
        (["export", "run.db", "draws.txt"], "written to a .csv, .npz, .nc file"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.exit_code in (1, 2)
    assert message in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 3", r'a must be \[low, high\] or'),
        ('a = { distribution = "bootstrap" }', "'bootstrap' is not a continuous distribution"),
        ('a = { distribution = "norm", width = 2 }', "norm does not take these parameters"),
        ("a = [", "is not TOML"),
        ("", "has no parameters"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_prior_is_said(folder: Path, text: str, message: str) -> None:
    import re

    (folder / "prior.toml").write_text(text, encoding="utf-8")
    done = run("run", "model.py:log_likelihood", "--prior", "prior.toml")
    assert done.exit_code == 2
    assert re.search(message, done.stderr)


def test_init_writes_a_model_that_runs(folder: Path) -> None:
    done = run("init", "new")
    assert done.exit_code == 0
    os.chdir(folder / "new")
    (line,) = [line for line in done.stdout.splitlines() if "wsabi run" in line]
    os.chdir(folder)
    assert run(*line.split()[1:-1], "12", "-q").exit_code == 0, line
    again = run("init", "new")
    assert again.exit_code == 2
    assert "was left as it is" in again.stderr


def test_the_help_has_examples() -> None:
    for name in ("run", "resume", "show", "export", "init"):
        assert "Example" in run(name, "--help").stdout


def test_progress_in_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    settings: dict[str, Any] = {"budget": 12, "rng": 0, "settings": wsabi.Settings(measure="prior")}
    wsabi.integrate(lambda x: -float(x @ x), wsabi.Gaussian([0.0]), progress=True, **settings)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("refining")
    assert "12/12 evaluations" in lines[-1]
    assert "log Z" in lines[-1]
    wsabi.integrate(lambda x: -float(x @ x), wsabi.Gaussian([0.0]), progress=None, **settings)
    assert capsys.readouterr().err == ""  # no terminal
    with pytest.raises(TypeError, match="progress must be"):
        wsabi.integrate(lambda x: 0.0, wsabi.Gaussian([0.0]), progress="yes", **settings)  # type: ignore[arg-type]
