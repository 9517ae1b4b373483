"""wsabi plot, report, watch and compare, as a person types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
import webbrowser
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import wsabi
from wsabi.cli.app import app
from wsabi.cli.comparing import model_names
from wsabi.cli.viewing import open_page

ROOT = Path(__file__).resolve().parents[1]
PNG = b"\x89PNG"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200", "TERM": "dumb"})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of journals: two runs without a warning, and one with, which has searches and check points."""
    folder = tmp_path_factory.mktemp("runs")
    plain = wsabi.Settings(measure="prior")
    for name, width, budget, settings in (
        ("narrow", 1.0, 20, plain), ("wide", 30.0, 20, plain), ("searched", 1.0, 40, None),
    ):  # fmt: skip
        prior = wsabi.Gaussian([0.0], width**2, names=["tau"])
        path = folder / f"{name}.db"
        result = wsabi.integrate(bell, prior, budget=budget, tol=0.0, rng=0, journal=path, settings=settings)
        assert bool(result.warnings) == (name == "searched")
        result.save(path.with_suffix(".json"))
        result.save(path.with_suffix(".npz"))
    return folder


def bell(x: np.ndarray) -> float:
    return -0.5 * float(x @ x)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- plot -------------------------------------------------------------------------------------------------------------


def test_plot_draws_what_is_asked_for(made: Path, elsewhere: Path) -> None:
    done = run("plot", f"{made}/narrow.db")
    assert (done.exit_code, done.stdout) == (0, "narrow-corner.png\n")
    assert (elsewhere / "narrow-corner.png").read_bytes().startswith(PNG)
    done = run("plot", f"{made}/searched.npz", "--what", "check", "-o", "sub/check.svg", "--parameters", "tau")
    assert done.exit_code == 0, done.output
    assert "<svg" in (elsewhere / "sub" / "check.svg").read_text(encoding="utf-8")


def test_plot_draws_everything_into_a_folder(made: Path) -> None:
    pictures = ("corner", "convergence", "searches", "slices", "check")
    done = run("plot", f"{made}/searched.json", "--what", "all", "-o", "figures")
    assert done.exit_code == 0, done.output
    assert sorted(os.listdir("figures")) == sorted(f"searched-{what}.png" for what in pictures)


def test_plot_leaves_out_what_is_not_there(made: Path) -> None:
    done = run("plot", f"{made}/narrow.db", "--what", "all", "-o", "all.svg")
    assert done.exit_code == 0
    assert done.stdout.split() == ["all-corner.svg", "all-convergence.svg", "all-slices.svg"]
    assert "searches: there is no search to draw" in done.stderr
    assert "check: there are no check points" in done.stderr
    assert run("plot", f"{made}/narrow.db", "--what", "check").exit_code == 1


def test_plot_without_matplotlib_names_the_extra(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = run("plot", f"{made}/narrow.db")
    assert done.exit_code == 1
    assert "pip install 'wsabi[plot]'" in done.stderr


# -- report and watch -------------------------------------------------------------------------------------------------


def test_report_writes_one_page(made: Path, elsewhere: Path) -> None:
    done = run("report", f"{made}/narrow.db", "-o", "report.html")
    assert (done.exit_code, done.stdout) == (0, "report.html\n")
    page = (elsewhere / "report.html").read_text(encoding="utf-8")
    assert "Ended: " in page
    assert "<script" not in page


def test_report_of_what_cannot_be_read_says_so_on_the_page_too(elsewhere: Path) -> None:
    (elsewhere / "empty.db").touch()
    done = run("report", "empty.db")
    assert done.exit_code == 1
    assert done.stderr == "empty.db is empty: no run has written to it.\n"
    assert "This file cannot be read: empty.db is empty" in (elsewhere / "empty.html").read_text(encoding="utf-8")


def test_watch_serves_the_page_until_ctrl_c(made: Path) -> None:
    command = [sys.executable, "-m", "wsabi.cli", "watch", "narrow.db", "--no-browser"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, env=environment, cwd=made, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            page = answer.read().decode()
        port = address.split(":")[2].split("/")[0]
        taken = run("watch", f"{made}/narrow.db", "--no-browser", "--port", port)
        assert taken.exit_code == 1
        assert f"port {port} of this machine cannot be used" in taken.stderr
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert "Ended: " in page
    assert process.returncode == 0
    assert errors == "Watching narrow.db. Ctrl-C ends this; the run is not touched.\n\nNo longer watching.\n"


@pytest.mark.parametrize(("kind", "opens"), [("BackgroundBrowser", True), ("GenericBrowser", False)])
def test_watch_opens_no_browser_in_the_terminal(monkeypatch: pytest.MonkeyPatch, kind: str, opens: bool) -> None:
    """A browser without a window, such as lynx, would take the terminal over."""
    found = getattr(webbrowser, kind)("browser")
    opened = []
    monkeypatch.setattr(found, "open", opened.append)
    monkeypatch.setattr(webbrowser, "get", lambda: found)
    open_page("http://127.0.0.1:1/")
    assert opened == ["http://127.0.0.1:1/"] * opens


# -- compare ----------------------------------------------------------------------------------------------------------


def test_compare_names_the_models_after_their_files(made: Path) -> None:
    done = run("compare", f"{made}/wide.db", f"{made}/narrow.npz")
    assert done.exit_code == 0, done.stderr
    expected = wsabi.compare({name: wsabi.load(made / f"{name}.db") for name in ("wide", "narrow")})
    assert done.stdout == f"{expected}\n"
    assert "for narrow" in done.stdout


def test_compare_takes_prior_odds_and_gives_data(made: Path, elsewhere: Path) -> None:
    files = (f"{made}/wide.db", f"{made}/narrow.json")
    done = run("compare", *files, "--prior-odds", "3,1", "--json", "--plot", "odds.png")
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["best"] == "narrow"
    assert facts["models"]["wide"]["prior"] == 0.75
    # Exact: Z is 1/√2 under the narrow prior and 1/√901 under the wide one, which is three times as likely beforehand.
    assert facts["models"]["narrow"]["probability"] == pytest.approx(1.0 / (1.0 + 3.0 * (2.0 / 901.0) ** 0.5), abs=0.01)
    assert (elsewhere / "odds.png").read_bytes().startswith(PNG)


def test_compare_refuses_doubtful_results(made: Path) -> None:
    done = run("compare", f"{made}/narrow.db", f"{made}/searched.db")
    assert done.exit_code == 1
    assert done.stderr.startswith("searched: doubtful, and so is any comparison with it.\n  searched: ")
    assert "--doubtful" in done.stderr
    done = run("compare", f"{made}/narrow.db", f"{made}/searched.db", "--doubtful")
    assert done.exit_code == 0
    assert "note: searched is doubtful" in done.stdout


def test_compare_says_that_a_run_had_not_ended(made: Path, elsewhere: Path) -> None:
    with wsabi.Integrator(wsabi.Gaussian([0.0], names=["tau"]), rng=0, journal="live.db") as integrator:
        for _ in range(3):
            x = integrator.ask(1)
            integrator.tell(x, [-0.5 * float(x[0] @ x[0])])
        done = run("compare", f"{made}/narrow.db", "live.db", "--doubtful")
    assert "live: running, in this process; compared as far as it went" in done.stderr


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["a.db", "b.json"], ["a", "b"]),
        (["one/run.db", "two/run.db"], ["one/run", "two/run"]),
        (["x/one/run.db", "y/one/run.db", "run.db"], None),
    ],
)
def test_names_tell_the_files_apart(files: list[str], names: list[str] | None) -> None:
    found = model_names(list(map(Path, files)))
    assert len(set(found)) == len(files)
    if names is not None:
        assert found == names


def test_a_journal_and_its_saved_result_are_two_files() -> None:
    a, b = model_names([Path("a.db"), Path("a.json")])
    assert a.endswith("a.db")
    assert b.endswith("a.json")


# -- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("plot {0}/narrow.db -o x.gif", 2, "written to a .png, .svg, .pdf file; got x.gif"),
        ("plot {0}/narrow.db --parameters tau,nu", 1, "corner: 'nu' is not one of the parameters tau"),
        ("plot none.db", 1, "none.db cannot be read"),
        ("report none.db", 1, "there is no file none.db"),
        ("report {0}/narrow.db -o no/where.html", 1, "cannot be written"),
        ("report {0}/narrow.db --prior none.toml", 2, "none.toml cannot be read"),
        ("watch none.db --no-browser", 1, "none.db cannot be read"),
        ("compare {0}/narrow.db", 2, "give two files or more"),
        ("compare {0}/narrow.db {0}/../{1}/narrow.db", 2, "the same file is given twice"),
        ("compare {0}/narrow.db {0}/wide.db --prior-odds 1,2,3", 2, "a positive number for each of narrow, wide"),
        ("compare {0}/narrow.db {0}/wide.db --prior-odds a", 2, "must be numbers such as 2,1"),
        ("compare {0}/narrow.db none.db", 1, "none.db cannot be read"),
        ("compare {0}/narrow.db {0}/wide.db --plot x.gift", 2, "written to a .png, .svg, .pdf file; got x.gift"),
        ("export {0}/narrow.db draws.txt", 2, "written to a .csv, .npz, .nc file"),
    ],
)
def test_what_is_wrong_is_said(made: Path, line: str, code: int, message: str) -> None:
    done = run(*line.format(made, made.name).split())
    assert done.exit_code == code, done.output
    assert message in done.stderr


def test_the_help_has_examples() -> None:
    for name in ("plot", "report", "watch", "compare"):
        assert "Example" in run(name, "--help").stdout


# -- draws ------------------------------------------------------------------------------------------------------------


def test_export_to_netcdf_goes_by_arviz(made: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What result.to_arviz() gives is written as it is, in four chains where the number of draws allows it."""
    calls = []

    class Data:
        def to_netcdf(self, path: str) -> None:
            Path(path).write_text("netCDF", encoding="utf-8")

    def to_arviz(result: wsabi.Result, draws: int, *, chains: int, rng: int) -> Data:
        calls.append((draws, chains, rng))
        return Data()

    monkeypatch.setattr(wsabi.Result, "to_arviz", to_arviz, raising=False)
    assert run("export", f"{made}/narrow.db", "draws.nc", "-n", "8", "--seed", "3").exit_code == 0
    assert run("export", f"{made}/narrow.db", "draws.nc", "-n", "7").exit_code == 0
    assert calls == [(2, 4, 3), (7, 1, 0)]
    assert (elsewhere / "draws.nc").read_text(encoding="utf-8") == "netCDF"


def test_export_to_netcdf_without_arviz_names_the_extra(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arviz", None)
    done = run("export", f"{made}/narrow.db", "draws.nc")
    assert done.exit_code == 1
    assert "pip install 'wsabi[arviz]'" in done.stderr
