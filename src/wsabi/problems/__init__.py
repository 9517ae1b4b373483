"""Integrands with known Z, shared by tests, benchmarks and documentation.

Each problem is a :class:`Problem`: prior, likelihood (scalar and vectorised), and the truth with its standard error.

>>> from wsabi import problems
>>> problem = problems.get("gmm", seed=3)
>>> problem.dim, problem.log_z_std
(4, 0.0)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wsabi.problems._problem import Problem
from wsabi.problems.classics import (
    banana,
    constant,
    correlated_gaussian,
    eggbox,
    infeasible_half,
    narrow_gaussian,
    plateau,
    product_widths,
    ridge,
    shells,
    student_tails,
)
from wsabi.problems.gp_classification import citation, synthclass
from wsabi.problems.gp_regression import yacht
from wsabi.problems.mixtures import gmm, two_bumps

__all__ = [
    "Problem",
    "banana",
    "citation",
    "constant",
    "correlated_gaussian",
    "eggbox",
    "get",
    "gmm",
    "infeasible_half",
    "names",
    "narrow_gaussian",
    "plateau",
    "product_widths",
    "ridge",
    "shells",
    "student_tails",
    "synthclass",
    "two_bumps",
    "yacht",
]

# The paper's problems first, then the classics.
_MAKERS: tuple[Callable[..., Problem], ...] = (
    gmm, yacht, synthclass, citation, correlated_gaussian, narrow_gaussian, product_widths, banana, shells, eggbox,
    student_tails, ridge, two_bumps, plateau, constant, infeasible_half,
)  # fmt: skip


def names() -> list[str]:
    """Names of all problems, as :func:`get` takes them."""
    return [maker.__name__ for maker in _MAKERS]


def get(name: str, **settings: Any) -> Problem:
    """The problem of that name.

    Parameters
    ----------
    name : one of :func:`names`.
    settings : the arguments of the function of that name in this module.

    Raises
    ------
    ValueError
        If there is no such problem.
    """
    for maker in _MAKERS:
        if maker.__name__ == name:
            return maker(**settings)
    raise ValueError(f"name must be one of {', '.join(names())}; got {name!r}.")
