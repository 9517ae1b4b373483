"""Draws of a posterior or prior in the form that other packages take: by variable, and in chains."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

import wsabi
from wsabi._core.types import Array
from wsabi.result import Result

__all__ = ["Variables", "facts", "in_chains", "label", "variables"]

Variables = dict[str, tuple[list[int], tuple[int, ...]]]  # name -> its columns and its shape, () for a number

_ELEMENT = re.compile(r"(?P<base>.+)\[(?P<index>\d+(?:,\d+)*)\]")


def variables(names: Sequence[str]) -> Variables:
    """The variables that D names stand for: beta[0], beta[1] are one vector, w[0,0], ..., w[1,2] one (2, 3) array.

    Names stand for an array only where they list all of its elements, the last index first; others are numbers.

    Examples
    --------
    >>> variables(["beta[0]", "beta[1]", "tau", "odd[1]"])
    {'beta': ([0, 1], (2,)), 'tau': ([2], ()), 'odd[1]': ([3], ())}
    """
    found: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
    for column, name in enumerate(names):
        match = _ELEMENT.fullmatch(name)
        index = tuple(map(int, match["index"].split(","))) if match else ()
        found.setdefault(match["base"] if match else name, []).append((column, index))
    out: Variables = {}
    for name, elements in found.items():
        columns, indices = [column for column, _ in elements], [index for _, index in elements]
        shape = tuple(end + 1 for end in indices[-1])
        if indices == list(np.ndindex(*shape)):
            out[name] = (columns, shape)
        else:
            out |= {names[column]: ([column], ()) for column in columns}
    return out


def in_chains(draws: Array, chains: int, found: Variables) -> dict[str, Array]:
    """Variable -> (chains, draws, *shape), from draws (chains·draws, D)."""
    together = draws.reshape(chains, -1, draws.shape[1])
    return {
        name: together[:, :, columns].reshape(*together.shape[:2], *shape) for name, (columns, shape) in found.items()
    }


def facts(result: Result) -> dict[str, float | int | str]:
    """What should travel with the draws: log Z, its error bar, warnings, versions; numbers and text only."""
    return {
        "log_z": result.log_z,
        "log_z_std": result.log_z_std,
        "n_evals": result.n_evals,
        "effective_sample_size": float(result.posterior.effective_sample_size),
        "method": result.method,
        "warnings": "\n".join(result.warnings),
        "notes": "\n".join(result.notes),
        "inference_library": "wsabi",
        "inference_library_version": wsabi.__version__,
    }


def label(name: str) -> str:
    r"""A name as LaTeX without dollar signs: log_tau as \mathrm{log\_tau}."""
    return rf"\mathrm{{{name.replace('_', chr(92) + '_')}}}"
