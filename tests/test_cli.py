"""The command line, as a user types it."""

from __future__ import annotations

import builtins
import math
import os
import sys

import pytest
from typer.testing import CliRunner

import wsabi
from wsabi import cli, problems, reproduce
from wsabi.cli.app import app
from wsabi.reproduce import chi_squared, one_dimension
from wsabi.reproduce.experiment import Amount


def run(*arguments):
    environment = {"COLUMNS": "200", "TERM": "dumb"}
    return CliRunner().invoke(app, list(arguments), env=environment)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Every command runs in a folder of its own, with no data lying about."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WSABI_CITATION_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr(chi_squared, "CHI_BATCHES", Amount(2, 2))
    monkeypatch.setattr(one_dimension, "N_FUNCTIONS", Amount(2, 2))
    return tmp_path


def test_version():
    result = run("--version")
    assert result.exit_code == 0
    assert result.output.strip() == f"wsabi {wsabi.__version__}"


def test_without_a_command_the_help_names_them_all():
    result = run()
    assert all(command in result.output for command in ("demo", "problems", "reproduce"))


def test_problems_lists_every_problem_even_without_its_data():
    result = run("problems")
    assert result.exit_code == 0
    assert all(name in result.output for name in problems.names())
    assert f"{problems.get('yacht').log_z:.3f}" in result.output
    assert "needs a data file" in result.output


def test_demo_ends_near_the_known_value():
    result = run("demo", "--budget", "60", "--seed", "1")
    assert result.exit_code == 0, result.output
    assert "known value" in result.output
    difference = next(line for line in result.output.splitlines() if "difference" in line)
    value = next(word for word in difference.replace("│", " ").split() if word[0] in "+-")
    assert abs(float(value)) < 0.5  # 60 evaluations; a wrong unit of the prior costs more


def test_reproduce_writes_to_its_own_folder(elsewhere):
    result = run("reproduce", "chi-squared", "--quick")
    assert result.exit_code == 0, result.output
    folder = elsewhere / "reproduction" / "chi-squared"
    assert {path.name for path in folder.iterdir()} == {
        "curves.csv", "chi-squared.png", "chi-squared.svg", "report.md",
    }  # fmt: skip
    assert "complete" in result.output
    assert "WSABI-L" in result.output


def test_reproduce_writes_where_it_is_told_and_takes_a_seed(elsewhere):
    for name, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        assert run("reproduce", "chi-squared", "--quick", "--out", name, "--seed", seed).exit_code == 0
    curves = {name: (elsewhere / name / "curves.csv").read_bytes() for name in "abc"}
    assert curves["a"] == curves["b"]
    assert curves["a"] != curves["c"]


def test_all_goes_on_without_the_data_it_lacks(elsewhere, monkeypatch):
    chosen = tuple(reproduce.get(name) for name in ("bayes-hermite-vs-sqrt", "citation", "chi-squared"))
    monkeypatch.setattr(reproduce, "EXPERIMENTS", chosen)
    result = run("reproduce", "all", "--quick", "--out", "everything")
    assert result.exit_code == 0, result.output
    assert {path.name for path in (elsewhere / "everything").iterdir()} == {"bayes-hermite-vs-sqrt", "chi-squared"}
    assert "citation: left out" in result.output


def test_an_unknown_name_lists_the_known_ones():
    result = run("reproduce", "figure-7")
    assert result.exit_code == 2
    assert "figure-7" in result.output
    assert all(name in result.output for name in reproduce.names())


def test_missing_citation_data_say_where_to_get_them():
    result = run("reproduce", "citation", "--quick")
    assert result.exit_code == 1
    assert "--data PATH" in result.output
    assert "GitHub repository" in result.output


def test_ctrl_c_is_an_exit_with_the_status_of_shells_and_a_partial_report(elsewhere, monkeypatch):
    real = chi_squared.CHI_SQUARED

    def one_then_interrupt(plan):
        yield next(real.steps(plan))
        raise KeyboardInterrupt

    cut = reproduce.Experiment(real.name, real.title, real.paper, real.size, one_then_interrupt, real.digest)
    monkeypatch.setattr(reproduce, "EXPERIMENTS", (cut,))
    result = run("reproduce", "chi-squared", "--quick")
    assert result.exit_code == 130
    assert "interrupted after 1 of 2 steps" in result.output
    assert "**Partial:**" in (elsewhere / "reproduction" / "chi-squared" / "report.md").read_text(encoding="utf-8")


def test_ctrl_c_at_once_says_that_nothing_was_written(elsewhere, monkeypatch):
    def interrupt(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "run", interrupt)
    result = run("reproduce", "chi-squared")
    assert result.exit_code == 130
    assert "nothing written" in result.output
    assert not (elsewhere / "reproduction").exists()


def without(monkeypatch, package, importer=None):
    """Make imports of a package, or of a module that needs it, fail as if the package were not installed."""
    real = builtins.__import__

    def imported(name, *arguments, **keywords):
        if name == importer or name.split(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", imported)


def test_without_typer_the_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "wsabi.cli.app")
    without(monkeypatch, "typer")
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 1
    assert "pip install 'wsabi[cli,plot]'" in capsys.readouterr().err


def test_a_missing_package_of_the_core_is_not_blamed_on_the_extra(monkeypatch):
    without(monkeypatch, "scipy", importer="wsabi.cli.app")
    with pytest.raises(ModuleNotFoundError, match="scipy"):
        cli.main()


def test_without_matplotlib_nothing_is_computed(elsewhere, monkeypatch):
    without(monkeypatch, "matplotlib")
    result = run("reproduce", "chi-squared")
    assert result.exit_code == 1
    assert "wsabi[plot]" in result.output
    assert os.listdir(elsewhere) == []


def test_main_runs_the_app(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["wsabi", "--version"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    assert wsabi.__version__ in capsys.readouterr().out


def test_the_live_table_says_that_there_is_no_estimate_yet() -> None:
    from wsabi.cli.demo import LiveTable
    from wsabi.run import Progress

    table = LiveTable(20, -1.0, every=1)
    table(Progress(1, 20, 0.1, math.nan, math.nan))
    table(Progress(2, 20, 0.2, -1.5, 0.25))
    assert table.seen == [("1", "0.1", "searching", "", ""), ("2", "0.2", "-1.500", "0.250", "-0.500")]
