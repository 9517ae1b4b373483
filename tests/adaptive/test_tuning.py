"""The numbers of the engine: each has its unit and its evidence, and no other number stands in the code."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

import wsabi
from wsabi.adaptive.tuning import TUNING, Evidence, Number, table, tuned

ADAPTIVE = Path(wsabi.__file__).parent / "adaptive"
FORMULAS = {0.0, 0.5, 1.0, 2.0}  # parts of formulas; 1e300 and more stand for infinity
FILES = [path for folder in ("surrogate", "check") for path in sorted((ADAPTIVE / folder).glob("*.py"))]


def numbers_in(source: str) -> list[float]:
    constants = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    floats = [value for value in constants if isinstance(value, float)]
    return [value for value in floats if value not in FORMULAS and abs(value) < 1e300]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ADAPTIVE)))
def test_no_number_stands_outside_of_the_table(path: Path) -> None:
    assert numbers_in(path.read_text(encoding="utf-8")) == []


def test_a_number_in_the_code_is_seen() -> None:
    assert set(numbers_in("x = 0.3 * y + 1e-8 + 0.5 - 1e300")) == {0.3, 1e-8}


@pytest.mark.parametrize("number", table(), ids=lambda number: f"{number.section}.{number.name}")
def test_every_number_has_a_unit_and_a_reason(number: Number) -> None:
    assert number.unit
    assert number.decides
    assert number.because
    assert number.evidence in get_args(Evidence)


def test_tuned_numbers_last_as_long_as_the_context() -> None:
    before = TUNING.surrogate.jitter

    def fail() -> None:
        assert TUNING.surrogate.jitter == 0.25
        raise RuntimeError

    with pytest.raises(RuntimeError), tuned("surrogate", jitter=0.25):
        fail()
    assert TUNING.surrogate.jitter == before


def test_a_number_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="shininess"), tuned("surrogate", shininess=1.0):
        pass
