"""The page of a run's file says where the run stands, whatever is in the file."""

from __future__ import annotations

import json
import math
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import wsabi
from wsabi.pages.document import Content, document
from wsabi.pages.of_file import RunFile
from wsabi.runs.data import text_of
from wsabi.runs.journal import SCHEMA

PRIOR = wsabi.Gaussian([0.0], names=["a"])


def bell(x: np.ndarray) -> float:
    return -0.5 * float(x @ x)


def content(path: Path) -> Content:
    return RunFile(path).content()


def told(path: Path, values: Callable[[np.ndarray], float], n: int) -> wsabi.Integrator:
    """A run with n values, whose process is still at it."""
    integrator = wsabi.Integrator(PRIOR, rng=0, journal=path)
    for _ in range(n):
        x = integrator.ask(1)
        integrator.tell(x, [values(x[0])])
    return integrator


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of a run of 30 evaluations, with a saved result beside it."""
    path = tmp_path_factory.mktemp("ended") / "run.db"
    wsabi.integrate(bell, PRIOR, budget=30, tol=0.0, rng=0, journal=path).save(path.with_suffix(".json"))
    return path


@pytest.mark.parametrize("suffix", [".db", ".json"])
def test_of_a_run_that_ended(ended: Path, suffix: str) -> None:
    path = ended.with_suffix(suffix)
    found = content(path)
    assert found.verdict.startswith(f"log Z = {repr(wsabi.load(path)).split('log Z = ')[1].split(',')[0]}")
    assert "Ended: the budget of evaluations is spent." in found.state
    assert "<progress" not in found.state
    assert [one.name for one in found.sections][-2:] == ["run", "settings"]
    assert "30 of at most 30 evaluations" in document(found)


def test_of_a_run_that_has_just_begun(tmp_path: Path) -> None:
    integrator = told(tmp_path / "run.db", bell, 0)
    found = content(tmp_path / "run.db")
    assert (found.verdict, found.mood) == ("There is no estimate of log Z yet: nothing has been evaluated.", "open")
    assert "Running, in this process." in found.state
    integrator.close()
    found = content(tmp_path / "run.db")
    assert found.verdict == "There is no estimate of log Z: nothing was evaluated."
    assert "Stopped without an end, as by a kill. It goes on with <code>wsabi resume" in found.state


def test_of_a_run_under_way(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    integrator = told(path, bell, 3)
    integrator.ask(2)
    found = content(path)
    assert "after 3 evaluations" in found.verdict
    assert found.mood == "doubtful"  # with three evaluations there are warnings
    assert "3 evaluations, 2 under way, best log ℓ" in found.state
    assert "more points can be asked for" not in document(found)  # the state is said above, and better
    integrator.close()


def test_a_run_with_a_budget_has_a_bar(tmp_path: Path) -> None:
    path = tmp_path / "run.db"

    def seen(x: np.ndarray) -> float:
        if len(states) == 2:
            states.append(RunFile(path).state_html())
        else:
            states.append("")
        return bell(x)

    states: list[str] = []
    wsabi.integrate(seen, PRIOR, budget=4, rng=0, journal=path)
    assert '<progress max="4" value="2"' in states[2]
    assert "2 of at most 4 evaluations, 1 under way" in states[2]


def test_of_a_run_whose_likelihood_failed(tmp_path: Path) -> None:
    def fails(x: np.ndarray) -> float:
        if x[0] > 0.3:
            raise ValueError("<no> convergence")
        return bell(x)

    path = tmp_path / "run.db"
    with pytest.raises(wsabi.LikelihoodError):
        wsabi.integrate(fails, PRIOR, rng=0, journal=path)
    page = document(content(path))
    assert "Stopped by a likelihood that failed" in page
    assert "ValueError: &lt;no&gt; convergence (once)" in page
    assert "Traceback" in page
    assert "<no>" not in page


def test_the_most_frequent_failure_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    integrator = told(path, bell, 4)
    for reason in ("at x = 1: a\nTypeError: a", "at x = 2: b\nKeyError: b", "at x = 3: b\nKeyError: b"):
        integrator.tell_failure(integrator.ask(1)[0], reason)
    integrator.close()
    section = next(one for one in content(path).sections if one.name == "failures")
    assert section.html.index("KeyError: b (2 times)") < section.html.index("TypeError: a (once)")
    assert "at x = 3" in section.html  # the last of them


@pytest.mark.parametrize("n", [2, 5])
def test_of_nothing_but_zero_likelihood(tmp_path: Path, n: int) -> None:
    told(tmp_path / "run.db", lambda x: -math.inf, n).close()
    found = content(tmp_path / "run.db")
    assert found.verdict == f"There is no estimate of log Z: all {n} evaluations found zero likelihood."
    assert f"{n} with zero likelihood" in found.state


def test_of_a_journal_of_another_version(ended: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    path.write_bytes(ended.read_bytes())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 7")
    run = RunFile(path)
    assert run.state is None
    assert run.content().verdict.startswith("This file cannot be read:")
    assert f"written by another version of wsabi (format 7; this version reads {SCHEMA})" in run.content().verdict
    assert document(run.content()).count("<h2") == 0


def test_of_a_run_with_settings_that_are_not_known_here(ended: Path, tmp_path: Path) -> None:
    """A version to come may have them. What the file says of the run is shown all the same."""
    whole = json.loads(ended.with_suffix(".json").read_text(encoding="utf-8"))
    whole["run"]["settings"]["telepathy"] = True
    whole["run"]["versions"]["wsabi"] = "9.0"
    whole["crc"] = zlib.crc32(text_of(whole["run"]).encode())
    path = tmp_path / "new.json"
    path.write_text(json.dumps(whole), encoding="utf-8")
    found = content(path)
    assert "settings that this version of wsabi cannot read" in found.verdict
    assert "Read it with wsabi 9.0." in found.verdict
    assert "wsabi 9.0, numpy" in document(found)
    with pytest.raises(wsabi.JournalError, match="telepathy"):
        wsabi.load(path)


def test_of_a_run_from_elsewhere_the_versions_of_both_are_given(ended: Path, tmp_path: Path) -> None:
    whole = json.loads(ended.with_suffix(".json").read_text(encoding="utf-8"))
    whole["run"]["versions"]["numpy"] = "1.0"
    whole["crc"] = zlib.crc32(text_of(whole["run"]).encode())
    path = tmp_path / "old.json"
    path.write_text(json.dumps(whole), encoding="utf-8")
    settings = content(path).sections[-1].html
    assert "numpy 1.0" in settings
    assert "page made with" in settings
    assert "page made with" not in content(ended).sections[-1].html


@pytest.mark.parametrize("text", ["", "hello", "SQLite format 3\x00 and no more"])
def test_of_what_is_no_run(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.db"
    path.write_text(text, encoding="utf-8")
    found = content(path)
    assert found.mood == "doubtful"
    assert found.verdict.startswith("This file cannot be read: ")
    assert str(path) in found.state


def test_a_prior_with_functions_is_asked_for(tmp_path: Path) -> None:
    prior = wsabi.LogDensity(lambda x: -abs(float(x[0])), wsabi.Gaussian([0.0]))
    path = tmp_path / "run.db"
    wsabi.integrate(bell, prior, budget=5, rng=0, journal=path)
    found = content(path)
    assert "prior contains functions" in found.verdict
    assert "5 of at most 5 evaluations" in found.state  # of what the file itself says
    assert RunFile(path, prior=prior).content().verdict.startswith("log Z = ")


def test_it_is_read_again_where_it_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    integrator = told(path, bell, 2)
    run = RunFile(path)
    assert not run.has_news()
    integrator.tell(integrator.ask(1), [-1.0])
    assert run.has_news()
    run.read()
    assert "after 3 evaluations" in run.content().verdict
    integrator.close()
    assert run.has_news()  # nobody writes to it any more
    run.read()
    assert "Stopped" in run.state_html()


def test_another_run_in_its_place_and_a_file_that_comes_back(ended: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    told(path, bell, 2).close()
    run = RunFile(path)
    path.write_bytes(b"")
    run.read()
    assert "is empty" in run.content().verdict
    assert run.has_news()  # it is looked at again until it can be read
    other = wsabi.integrate(
        lambda x: -float(x @ x), wsabi.Gaussian([0.0, 0.0]), budget=6, rng=0, journal=tmp_path / "b"
    )
    path.write_bytes((tmp_path / "b").read_bytes())
    run.read()
    assert f"after {other.n_evals} evaluations" in run.content().verdict
    path.write_bytes(ended.read_bytes())
    run.read()
    assert "after 30 evaluations" in run.content().verdict
