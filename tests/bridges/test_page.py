"""The blocks of docs/bridges.md run, each part by itself after the data of the examples."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bridging import ALL, imported, needs

pytestmark = pytest.mark.skipif(not ALL, reason="the blocks of docs/bridges.md are run by make test-bridges")
ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "bridges.md").read_text("utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PARTS = {
    title: "\n".join(BLOCK.findall(body))
    for title, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    if BLOCK.search(body)
}
DATA = PARTS.pop("Data of the examples")
NEEDS = {
    "PyMC": ["pymc"],
    "Stan": ["bridgestan"],
    "bilby": ["bilby"],
    "dynesty": [],
    "UltraNest": [],
    "JAX": ["jax"],
    "scikit-learn": ["sklearn"],
    "emcee": [],
    "Looking at a result": ["arviz"],
}


@pytest.mark.parametrize("title", [pytest.param(title, marks=needs(*names)) for title, names in NEEDS.items()])
def test_the_lines_for_each_kind_of_user_run(title: str, tmp_path: Path) -> None:
    if title == "Stan":
        bridgestan = imported("bridgestan")
        try:
            bridgestan.compile.get_bridgestan_path()
        except Exception as error:
            pytest.skip(f"the lines for Stan are NOT run: BridgeStan has no sources to compile with ({error})")
    script = tmp_path / "part.py"
    script.write_text(f"{DATA}\n{PARTS[title]}", encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-W", "ignore", str(script)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr


def test_every_part_is_run() -> None:
    assert PARTS.keys() == NEEDS.keys()
