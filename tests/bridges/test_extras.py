"""A bridge whose package is not installed names the extra; nothing of a bridge is loaded before it is used."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wsabi
from wsabi.bridges.extras import needed

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
CALLS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "arviz": ("result.to_arviz", lambda result: result.to_arviz()),
    "pandas": ("result.to_dataframe", lambda result: result.to_dataframe()),
    "anesthetic": ("result.to_anesthetic", lambda result: result.to_anesthetic()),
    "getdist": ("result.to_getdist", lambda result: result.to_getdist()),
    "bilby": ("wsabi.from_bilby", lambda _: wsabi.from_bilby(None, {})),
    "umbridge": ("wsabi.from_umbridge", lambda _: wsabi.from_umbridge("http://localhost:1", "m", [(0.0, 1.0)])),
    "stan": ("wsabi.from_stan", lambda _: wsabi.from_stan("line.stan")),
    "pymc": ("wsabi.from_pymc", lambda _: wsabi.from_pymc(None)),
    "jax": ("wsabi.from_jax", lambda _: wsabi.from_jax(lambda x: x, [(0.0, 1.0)])),
    "sklearn": ("wsabi.from_sklearn_gp", lambda _: wsabi.from_sklearn_gp(None)),
}


@pytest.mark.parametrize("extra", CALLS)
def test_a_missing_package_is_named_with_its_extra(
    extra: str, result: wsabi.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, call = CALLS[extra]
    package = {"stan": "bridgestan"}.get(extra, extra)
    for module in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not there
    with pytest.raises(ImportError, match=rf"{user} needs {package}, .*: pip install 'wsabi\[{extra}\]'"):
        call(result)


def test_every_extra_that_is_named_exists() -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "src/wsabi/bridges").glob("*.py")]
    named = {extra for text in sources for extra in re.findall(r'needed\("[\w.]+", "(\w+)",', text)}
    assert named == set(CALLS)
    assert named <= EXTRAS.keys()


def test_a_fault_inside_the_package_is_not_taken_for_a_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_package.py").write_text("import no_such_module_of_anyone")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_module_of_anyone"):
        needed("broken_package", "arviz", "result.to_arviz")
