"""A result in a file comes back whole, without the likelihood."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

import wsabi
from wsabi.baselines import simple_monte_carlo

PRIOR = {"a": stats.norm(0, 1), "b": (-2.0, 2.0)}


def log_l(p: dict[str, float]) -> float:
    return -0.5 * ((p["a"] - 0.3) ** 2 + p["b"] ** 2) / 0.3**2


@pytest.fixture(scope="module")
def result() -> wsabi.Result:
    return wsabi.integrate(log_l, PRIOR, budget=70, tol=0, rng=0)


def assert_same(one: wsabi.Result, other: wsabi.Result) -> None:
    for each in fields(one):
        if each.name in ("prior", "posterior", "reweigh", "ledger", "history"):
            continue
        a, b = getattr(one, each.name), getattr(other, each.name)
        if isinstance(a, np.ndarray):
            assert_array_equal(a, b)
        else:
            assert a == b or repr(a) == repr(b), each.name
    assert_array_equal(one.posterior.mean, other.posterior.mean)
    assert_array_equal(one.posterior.sample(10, rng=0), other.posterior.sample(10, rng=0))
    assert [(r.n_evals, r.log_z) for r in one.history] == [(r.n_evals, r.log_z) for r in other.history]


@pytest.mark.parametrize("name", ["x.json", "x.npz"])
def test_a_saved_result_comes_back_bit_for_bit(result: wsabi.Result, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    result.save(path)
    again = wsabi.load(path)
    assert_same(again, result)
    other = {"a": stats.norm(0.1, 1), "b": (-2.0, 2.0)}
    assert again.with_prior(other).log_z == result.with_prior(other).log_z
    assert [each.name for each in tmp_path.iterdir()] == [name]
    again.save(path)
    assert_same(wsabi.load(path), result)


def test_a_loaded_result_goes_on(result: wsabi.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "x.json")
    more, other = (
        wsabi.integrate(log_l, PRIOR, budget=5, tol=0, start=start)
        for start in (result, wsabi.load(tmp_path / "x.json"))
    )
    assert_same_numbers(more, other)


def assert_same_numbers(one: wsabi.Result, other: wsabi.Result) -> None:
    assert_array_equal(one.points, other.points)
    assert (one.log_z, one.log_z_std) == (other.log_z, other.log_z_std)


def test_an_npz_file_is_of_use_to_others(result: wsabi.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz", allow_pickle=False) as file:
        assert_array_equal(file["points"], result.points)
        assert_array_equal(file["log_likelihoods"], result.log_likelihoods)
        assert file["names"].tolist() == ["a", "b"]


def test_a_journal_loads_with_the_reason_of_its_end_and_while_it_goes_on(tmp_path: Path) -> None:
    path, seen = tmp_path / "run.db", []
    result = wsabi.integrate(log_l, PRIOR, budget=30, tol=0, rng=0, journal=path)
    assert_same(wsabi.load(path), result)

    def looks(p: dict[str, float]) -> float:
        seen.append(wsabi.load(path))
        return log_l(p)

    looks.__qualname__ = "log_l"
    wsabi.integrate(looks, PRIOR, budget=31, tol=0, rng=0, journal=path)
    assert (seen[0].n_evals, seen[0].reason) == (30, "running")


def test_functions_are_given_again(tmp_path: Path) -> None:
    def prior(scale: float = 1.0) -> wsabi.Transform:
        return wsabi.Transform(lambda c: scale * stats.norm.ppf(c), 2)

    result = wsabi.integrate(lambda x: -float(x @ x), prior(), budget=20, rng=0)
    path = tmp_path / "x.json"
    result.save(path)
    with pytest.raises(wsabi.JournalError, match=r"prior contains functions \(Transform\).*prior=\.\.\."):
        wsabi.load(path)
    with pytest.raises(wsabi.JournalError, match="a Transform, has another function"):
        wsabi.load(path, prior=prior(2.0))
    assert_same_numbers(wsabi.load(path, prior=prior()), result)


def edited(path: Path, change: Any) -> None:
    """Change the content of a saved file, with the checksum that belongs to it."""
    import zlib

    from wsabi.runs.data import text_of

    whole = json.loads(path.read_text(encoding="utf-8"))
    change(whole["run"])
    whole["crc"] = zlib.crc32(text_of(whole["run"]).encode())
    path.write_text(json.dumps(whole), encoding="utf-8")


def test_another_course_and_other_numbers_are_said(result: wsabi.Result, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    result.save(path)
    edited(path, lambda run: run["end"].update(log_z=-1.0))
    loaded = wsabi.load(path)
    assert loaded.log_z == result.log_z
    assert any("The file says log Z = -1 " in note for note in loaded.notes)
    edited(path, lambda run: run.update(entropy=[1, 2, 3, 4]))
    told = wsabi.load(path)
    assert any("could not be replayed here" in note and "taken as told" in note for note in told.notes)
    assert_array_equal(told.points, result.points)
    assert abs(told.log_z - result.log_z) < 5 * np.hypot(told.log_z_std, result.log_z_std)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}", "neither a saved result nor a journal"),
        (b"PK\x03\x04 no zip", "or it is damaged"),
        (b"\xff\xfe", "or it is damaged"),
        (b'{"format": "wsabi result", "schema": 7}', r"another version of wsabi \(format 7"),
        (b'{"format": "wsabi result", "schema": 1, "crc": 1, "run": {}}', "not as it was written"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(wsabi.JournalError, match=message):
        wsabi.load(path)


def test_what_cannot_be_saved_says_why(result: wsabi.Result, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in \.json or \.npz; got 'x\.pkl'"):
        result.save("x.pkl")
    with pytest.raises(TypeError, match="has no ledger"):
        result.with_prior({"a": stats.norm(0.1, 1), "b": (-2.0, 2.0)}).save(tmp_path / "x.json")
    other = simple_monte_carlo(lambda x: 0.0, wsabi.Gaussian([0.0]), budget=10, rng=0)
    with pytest.raises(TypeError, match="has no ledger"):
        other.save(tmp_path / "x.json")
    with pytest.raises(wsabi.JournalError, match="cannot be read: No such file"):
        wsabi.load(tmp_path / "none.json")
