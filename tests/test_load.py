"""Following a file that grows: the same results as reading it anew, and where a run stands from its file alone."""

from __future__ import annotations

import math
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import wsabi
from wsabi.course import Course
from wsabi.errors import NoMassFound
from wsabi.following import Follower
from wsabi.ledger import Event
from wsabi.replay import repeat
from wsabi.runs.journal import read
from wsabi.runs.lock import holder
from wsabi.runs.state import RunState

PRIOR = wsabi.Gaussian([0.0, 0.0], names=["a", "b"])


def two_modes(x: np.ndarray) -> float:
    return float(np.logaddexp(-2.0 * np.sum((x - 1.0) ** 2), -2.0 * np.sum((x + 1.0) ** 2)))


def advanced(integrator: wsabi.Integrator, n: int) -> None:
    for _ in range(n):
        X = integrator.ask()
        integrator.tell(X, [two_modes(x) for x in X])


def state(path: Path) -> RunState:
    return RunState.of(read(path), holder(path))


def test_a_file_that_grows_is_followed(tmp_path: Path) -> None:
    """Bit for bit what reading it from the beginning gives, although only what is new is replayed."""
    path = tmp_path / "run.db"
    with wsabi.Integrator(PRIOR, rng=1, journal=path) as integrator:
        follower = Follower(path)
        with pytest.raises(NoMassFound):
            follower.result()
        for n in (6, 12):
            advanced(integrator, n)
            assert follower.has_news()
            follower.read()
            assert not follower.has_news()
            found, anew = follower.result(), wsabi.load(path)
            assert found.n_evals == integrator.n_evals
            assert (found.log_z, found.log_z_std, found.warnings) == (anew.log_z, anew.log_z_std, anew.warnings)
            assert np.array_equal(found.posterior.points, anew.posterior.points)
            assert found.reason == "running"


def test_only_what_is_new_is_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, lengths = tmp_path / "run.db", []

    def counted(course: Course, events: tuple[Event, ...]) -> bool:
        lengths.append(len(events))
        return repeat(course, events)

    for module in ("wsabi.following", "wsabi.replay"):
        monkeypatch.setattr(sys.modules[module], "repeat", counted)
    with wsabi.Integrator(PRIOR, rng=1, journal=path) as integrator:
        advanced(integrator, 5)
        follower = Follower(path)
        follower.result()
        advanced(integrator, 2)
        follower.read()
        follower.result()
    assert lengths == [10, 4]  # each evaluation is asked for and told


def test_another_run_in_the_same_file_is_read_from_its_beginning(tmp_path: Path) -> None:
    path, other = tmp_path / "run.db", tmp_path / "other.db"
    for journal, seed, n in ((path, 1, 5), (other, 2, 7)):
        with wsabi.Integrator(PRIOR, rng=seed, journal=journal) as integrator:
            advanced(integrator, n)
    follower = Follower(path)
    follower.result()
    shutil.copy(other, path)
    follower.read()
    assert follower.result().log_z == wsabi.load(other).log_z


def test_where_a_run_stands(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    integrator = wsabi.Integrator(PRIOR, rng=1, journal=path)
    assert state(path).kind == "running"
    integrator.ask(2)
    assert (state(path).n_evals, state(path).n_pending, state(path).best) == (0, 2, -math.inf)
    X = integrator.pending
    integrator.tell(X, [-1.0, -math.inf])
    integrator.close()
    found = state(path)
    assert (found.kind, found.words) == ("stopped", "stopped without an end, as by a kill")
    assert (found.n_evals, found.n_zero, found.n_pending, found.best) == (2, 1, 0, -1.0)
    result = wsabi.integrate(two_modes, PRIOR, budget=8, rng=1, tol=0.0, journal=tmp_path / "done.db")
    assert state(tmp_path / "done.db").words == "ended: the budget of evaluations is spent"
    result.save(tmp_path / "done.json")
    assert RunState.of(Follower(tmp_path / "done.json").record, None).kind == "ended"


def test_a_likelihood_that_failed_is_told_from_a_kill(tmp_path: Path) -> None:
    def fails(x: np.ndarray) -> float:
        if x[0] > 0.5:
            raise ValueError("boom\nand more")
        return two_modes(x)

    path = tmp_path / "run.db"
    with pytest.raises(wsabi.LikelihoodError):
        wsabi.integrate(fails, PRIOR, rng=0, journal=path)
    found = state(path)
    assert found.kind == "failed"
    assert found.words.startswith("stopped by a likelihood that failed: log_likelihood raised")
    assert found.words.endswith("boom")
    assert (found.n_failed, len(found.failures)) == (1, 1)


def test_nothing_but_zero_likelihood(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with pytest.raises(NoMassFound):
        wsabi.integrate(lambda x: -math.inf, PRIOR, budget=7, rng=0, journal=path)
    assert state(path).words == "ended without an estimate: every evaluation found zero likelihood"
    with pytest.raises(NoMassFound):
        Follower(path).result()
