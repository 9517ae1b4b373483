"""Every number of the engine is in the table, with its unit and evidence, and nowhere else."""

from __future__ import annotations

import ast
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import wsabi.adaptive
from wsabi.adaptive.search.explorer import Explorer, max_data
from wsabi.adaptive.tuning import TUNING, Evidence, Number, table, tuned
from wsabi.priors import Gaussian

ENGINE = Path(wsabi.adaptive.__file__).parent
PLAIN = {0.0, 0.5, 1.0, 2.0}  # halves and doubles are parts of formulas
LARGEST = 1e300  # and beyond: as large as a float can be


@pytest.mark.parametrize("number", table(), ids=lambda number: f"{number.section}.{number.name}")
def test_every_number_says_what_it_is(number: Number) -> None:
    for text in (number.unit, number.decides, number.because):
        assert text.strip() == text != ""
    assert number.evidence in get_args(Evidence)
    assert type(number.value) in (int, float)
    assert np.isfinite(number.value) or number.decides.endswith(": never")


def test_evidence_is_of_five_classes() -> None:
    assert set(get_args(Evidence)) == {"derived", "reference", "measured", "guard", "chosen"}


def test_the_table_lists_every_number_once_with_its_present_value() -> None:
    listed = {(number.section, number.name): number.value for number in table()}
    expected = {
        (section.name, one.name): getattr(getattr(TUNING, section.name), one.name)
        for section in fields(TUNING)
        for one in fields(getattr(TUNING, section.name))
    }
    assert listed == expected
    assert len(table()) == len(expected)
    with tuned("search", span=7.0):
        assert {number.name: number.value for number in table() if number.section == "search"}["span"] == 7.0


# -- other values for a while -----------------------------------------------------------------------------------------


def test_other_values_last_as_long_as_their_context() -> None:
    before = TUNING.search
    with tuned("search", max_data=60):
        assert TUNING.search.max_data == max_data(2) == 60
        assert TUNING.search.span == before.span
        with tuned("search", span=7.0), tuned("policy", returns=2):
            assert (TUNING.search.max_data, TUNING.search.span, TUNING.policy.returns) == (60, 7.0, 2)
        assert TUNING.search.span == before.span
    assert TUNING.search is before


def test_after_an_exception_the_old_values_are_back() -> None:
    before = TUNING.search

    def fail() -> None:
        assert TUNING.search.span == 7.0
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), tuned("search", span=7.0):
        fail()
    assert TUNING.search is before


def test_a_number_that_does_not_exist_is_an_error_and_changes_nothing() -> None:
    before = TUNING.search
    with pytest.raises(TypeError, match="spam"), tuned("search", spam=7.0):
        pass
    with pytest.raises(AttributeError, match="spam"), tuned("spam", span=7.0):
        pass
    assert TUNING.search is before


def test_a_number_is_changed_in_no_other_way() -> None:
    with pytest.raises(FrozenInstanceError):
        TUNING.search.span = 7.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        TUNING.search = TUNING.search  # type: ignore[misc]


def test_the_engine_follows_the_table() -> None:
    """A fit under another number is another fit: nothing has taken a copy of the numbers when it was imported."""
    X = np.random.default_rng(0).standard_normal((12, 1))
    explorer = Explorer.from_prior(Gaussian([0.0]))
    temperatures = []
    for span in (2.0, 4.0):
        with tuned("search", span=span):
            temperatures.append(explorer.fitted(X, -1e4 * np.square(X[:, 0]), learn=True).temperature)
    assert temperatures[0] == 2.0 * temperatures[1] > 2.0


# -- no others --------------------------------------------------------------------------------------------------------


def literals(source: str) -> list[tuple[int, float]]:
    """Line and value of the floats that are no plain ones."""
    constants = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return [
        (node.lineno, node.value)
        for node in constants
        if type(node.value) is float and node.value not in PLAIN and abs(node.value) < LARGEST
    ]


MODULES = sorted(path for path in ENGINE.rglob("*.py") if path != ENGINE / "tuning.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ENGINE)))
def test_no_number_stands_anywhere_else(path: Path) -> None:
    assert literals(path.read_text(encoding="utf-8")) == []


def test_all_parts_of_the_engine_are_read() -> None:
    folders = {path.relative_to(ENGINE).parent.as_posix() for path in MODULES}
    assert folders == {".", "bulk", "check", "search", "surrogate", "symmetry"}


def test_a_number_that_stands_elsewhere_would_be_found() -> None:
    assert literals("x = 0.3 * y\ny = -1e-8 + 0.5 - 1e300 + 3") == [(1, 0.3), (2, 1e-8)]
    assert len(literals((ENGINE / "tuning.py").read_text(encoding="utf-8"))) > 50


def test_every_number_is_used() -> None:
    """By name, somewhere in the package."""
    words = {
        node.attr
        for path in ENGINE.parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }
    assert {number.name for number in table()} <= words
