"""Every choice is checked when it is made: a misspelt option is an error, not silence."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from wsabi.gp.kernel import SquaredExponential
from wsabi.settings import Settings


def test_defaults_and_choices() -> None:
    settings = Settings()
    assert (settings.method, settings.acquisition, settings.measure) == ("wsabi-l", "uncertainty", "adaptive")
    assert (settings.search, settings.refit, settings.alpha) == ("pool", "geometric", "auto")
    assert settings.kernel is None
    assert settings.certify is None
    assert settings.check_share == 0.2
    assert Settings(certify=0.1).check_share == 0.1
    assert Settings(measure="prior").check_share == 0.0
    kernel = SquaredExponential(1.0, 2.0)
    assert Settings(measure="prior", kernel=kernel, alpha=0.5, initial=1).kernel is kernel


@pytest.mark.parametrize("method", ["wsabi-l", "wsabi-m", "bq"])
def test_paper_is_the_paper_to_the_letter(method: Any) -> None:
    settings = Settings.paper(method=method)
    assert dataclasses.asdict(settings) == dataclasses.asdict(
        Settings(method=method, measure="prior", search="cma-es", refit="every", alpha=0.8)
    )


@pytest.mark.parametrize(
    ("name", "value", "choices"),
    [
        ("method", "wsabi", "'wsabi-l', 'wsabi-m', 'bq'"),
        ("acquisition", "entropy", "'uncertainty', 'expected-entropy'"),
        ("measure", "posterior", "'adaptive', 'prior'"),
        ("search", "cma", "'pool', 'cma-es'"),
        ("refit", "never", "'geometric', 'every'"),
    ],
)
def test_an_unknown_choice_is_named_with_the_known_ones(name: str, value: str, choices: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name} must be one of .*{choices}.*; got '{value}'\.$"):
        Settings(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("alpha", [-0.1, 1.0, float("nan"), "none", None])
def test_alpha_is_a_fraction(alpha: Any) -> None:
    with pytest.raises(ValueError, match=r"alpha must be 'auto' or a fraction of min ℓ in \[0, 1\); got"):
        Settings(alpha=alpha)


def test_other_refusals() -> None:
    with pytest.raises(TypeError, match="kernel must be a SquaredExponential or None; got float"):
        Settings(kernel=1.0)  # type: ignore[arg-type]
    for wrong in (0, 2.5, True):
        with pytest.raises(ValueError, match=f"initial must be a whole number, at least 1; got {wrong}"):
            Settings(measure="prior", initial=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a fixed kernel needs measure='prior'"):
        Settings(kernel=SquaredExponential(1.0, 2.0))
    with pytest.raises(ValueError, match="certify must be a share between 0 and"):
        Settings(certify=0.9)
    with pytest.raises(ValueError, match=r"certify=0\.1 needs measure='adaptive'"):
        Settings(measure="prior", certify=0.1)
    with pytest.raises(ValueError, match="initial needs measure='prior'"):
        Settings(initial=10)
    with pytest.raises(TypeError, match="methods"):
        Settings(methods="bq")  # type: ignore[call-arg]
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().method = "bq"  # type: ignore[misc]


def test_exchangeable_groups_become_tuples_of_names() -> None:
    assert Settings().exchangeable is None
    assert Settings(exchangeable=[["a1", "b1"], ("a2", "b2")]).exchangeable == (("a1", "b1"), ("a2", "b2"))
    assert Settings(exchangeable=["a", "b", "c"]).exchangeable == (("a",), ("b",), ("c",))


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("ab", TypeError, r"exchangeable must be a list of groups of names, such as .*; got 'ab'\."),
        (3, TypeError, "exchangeable must be a list of groups of names"),
        (
            [("a", 1), ("b", 2)],
            TypeError,
            r"exchangeable must hold groups of parameter names, as strings; got \('a', 1\)",
        ),
        ([0, 1], TypeError, "exchangeable must hold groups of parameter names, as strings; got 0"),
        ([], ValueError, "exchangeable must have two groups of names or more; got 0"),
        ([("a", "b")], ValueError, "exchangeable must have two groups of names or more; got 1"),
        (
            [("a", "b"), ("c",)],
            ValueError,
            r"exchangeable must have groups of equal length, at least 1; got lengths \[2, 1\]",
        ),
        ([(), ()], ValueError, "exchangeable must have groups of equal length, at least 1"),
        ([("a", "b"), ("c", "a")], ValueError, "exchangeable must have every name at most once; it has 'a' twice"),
    ],
)
def test_exchangeable_groups_are_checked(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Settings(exchangeable=value)


def test_exchangeable_needs_the_adaptive_measure() -> None:
    with pytest.raises(ValueError, match="exchangeable needs measure='adaptive'"):
        Settings(measure="prior", exchangeable=["a", "b"])
