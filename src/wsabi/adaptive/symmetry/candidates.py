"""Candidates: the symmetries that a run tests, as the user declares them and as the names of parameters suggest them.

Neither is believed: a symmetry is used once a few evaluations have proved it (:mod:`wsabi.adaptive.symmetry.proof`).
Symmetries that connect two known regions are tested too, and are not among these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.symmetry.group import Symmetry
from wsabi.adaptive.tuning import TUNING
from wsabi.priors.chart import Chart
from wsabi.priors.names import groups_of

__all__ = ["Candidates", "declared_exchanges", "named_exchanges"]

Columns = tuple[int, ...]
Table = dict[int, dict[str, Columns]]  # index -> stem of the name -> columns: {1: {"mu": (0,), "sigma": (2,)}, 2: ...}

NUMBERED = re.compile(r"(.*?)(\d+)")  # "mu12": stem "mu", index 12
ENTRY = re.compile(r"(.+)\[(\d+)\]")  # "beta[3]": stem "beta", index 3


@dataclass(frozen=True)
class Candidates:
    """Symmetries to be tested, as generators of their groups.

    Parameters
    ----------
    kinds : (D,) parameters with the same number have the same prior.
    declared : what ``Settings(exchangeable=)`` says.
    named : what the names of the parameters suggest.
    """

    kinds: tuple[int, ...]
    declared: tuple[Symmetry, ...] = ()
    named: tuple[Symmetry, ...] = ()

    @classmethod
    def of(cls, chart: Chart, exchangeable: Sequence[Sequence[str]] | None) -> Candidates:
        """The candidates of a prior and the groups of names that the user declares exchangeable, or None.

        Raises
        ------
        ValueError
            If the groups do not fit the prior (:func:`declared_exchanges`).
        """
        declared = () if exchangeable is None else tuple(declared_exchanges(chart, exchangeable))
        return cls(chart.kinds, declared, tuple(s for s in named_exchanges(chart) if s not in declared))


def declared_exchanges(chart: Chart, exchangeable: Sequence[Sequence[str]]) -> list[Symmetry]:
    """The exchanges of neighbouring groups, which generate all permutations of the groups.

    Parameters
    ----------
    exchangeable : two groups of names or more, of equal length. The name of a vector stands for all of its entries.

    Raises
    ------
    ValueError
        If a name is unknown, if vectors of different lengths are to be exchanged, if a parameter occurs twice, or if
        an exchange changes the prior.
    """
    columns = _columns_of(chart)
    for group in exchangeable:
        for name in group:
            if name not in columns:
                known = ", ".join(name for name, _ in groups_of(chart))
                raise ValueError(f"exchangeable names {name!r}, which the prior does not have; it has {known}.")
    for first, second in pairwise(exchangeable):
        for a, b in zip(first, second, strict=True):
            if len(columns[a]) != len(columns[b]):
                raise ValueError(
                    f"exchangeable pairs {a!r}, which has {len(columns[a])} parameters, with {b!r}, which has "
                    f"{len(columns[b])}; they must be of equal length."
                )
    axes = [[d for name in group for d in columns[name]] for group in exchangeable]
    flat = [d for group in axes for d in group]
    twice = next((d for n, d in enumerate(flat) if d in flat[:n]), None)
    if twice is not None:
        raise ValueError(f"exchangeable must have every parameter at most once; it has {chart.names[twice]!r} twice.")
    return [_declared(chart, a, b) for a, b in pairwise(axes)]


def _declared(chart: Chart, first: Sequence[int], second: Sequence[int]) -> Symmetry:
    """The exchange of two groups of axes, if it leaves the prior unchanged."""
    for a, b in zip(first, second, strict=True):
        if chart.kinds[a] != chart.kinds[b]:
            raise ValueError(
                f"exchangeable pairs {chart.names[a]!r} with {chart.names[b]!r}, whose priors differ: exchanging them "
                "changes the posterior. Give both the same prior, or leave them out."
            )
    symmetry = Symmetry.of(chart.dim, tuple(zip(first, second, strict=True)))
    U = _probes(chart.dim)
    weights = chart.log_weight(np.concatenate([U, symmetry.image(U)]))
    if not (_keeps_prior(chart, symmetry) and _is_close(*np.split(weights, 2))):
        raise ValueError(
            f"exchangeable: the prior changes under {symmetry.described(chart.names)}, though each parameter by itself "
            "has the same prior. The cause may be a correlation, a mixture or a constraint. Make the prior symmetric, "
            "or leave them out."
        )
    return symmetry


def named_exchanges(chart: Chart) -> list[Symmetry]:
    """Exchanges of neighbouring indices that the names of the parameters suggest and that leave the prior unchanged.

    Names that end in a number have a stem and an index. Indices with the same stems and the same priors are exchanged,
    all stems together: mu1 with mu2, and sigma1 with sigma2. So are the entries of all vectors of one length: a[0] with
    a[1], and b[0] with b[1]. Parameters without names are called x0, x1, ..., and so are exchanged one by one.

    Where there are two of them only, a parameter without an index may be the share of the first: an exchange turns the
    share w into 1 − w, so it is also proposed with each such parameter reversed about the centre of its prior.
    """
    tables = list(_tables(chart))
    indexed = {d for table in tables for stems in table.values() for where in stems.values() for d in where}
    alone = [d for d in range(chart.dim) if d not in indexed]
    symmetries: dict[Symmetry, None] = {}
    for table in tables:
        for swap in _neighbours(table, chart.kinds):
            exchange = Symmetry.of(chart.dim, tuple(swap))
            if _keeps_prior(chart, exchange):
                shares = alone if len(table) == 2 else []
                symmetries |= dict.fromkeys([exchange, *(Symmetry.of(chart.dim, tuple(swap), [d]) for d in shares)])
    return list(symmetries)


def _columns_of(chart: Chart) -> dict[str, Columns]:
    """Names with their columns: those of vectors, and those of single parameters."""
    entries = {name: _as_columns(where) for name, where in groups_of(chart)}
    return {name: (d,) for d, name in enumerate(chart.names)} | entries


def _as_columns(where: int | slice) -> Columns:
    return (where,) if isinstance(where, int) else tuple(range(where.start, where.stop))


def _tables(chart: Chart) -> Iterator[Table]:
    """The parameters by index and stem: names that end in a number, then the vectors, length by length."""
    yield _by_index(NUMBERED, {name: _as_columns(where) for name, where in groups_of(chart)})
    entries = _by_index(ENTRY, {name: (d,) for d, name in enumerate(chart.names)})
    indices: dict[str, tuple[int, ...]] = {}
    for i, stems in entries.items():
        for stem in stems:
            indices[stem] = (*indices.get(stem, ()), i)
    for same in dict.fromkeys(indices.values()):
        yield {i: {stem: where for stem, where in entries[i].items() if indices[stem] == same} for i in same}


def _by_index(pattern: re.Pattern[str], columns: Mapping[str, Columns]) -> Table:
    """The table of the names that have the pattern, a stem and an index."""
    table: Table = {}
    for name, where in columns.items():
        parts = pattern.fullmatch(name)
        if parts is not None:
            table.setdefault(int(parts[2]), {})[parts[1]] = where
    return table


def _neighbours(table: Table, kinds: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """The pairs of columns to swap, for each two neighbouring indices among those with the same stems and priors."""
    alike: dict[frozenset[tuple[str, Columns]], list[int]] = {}
    for i in sorted(table):
        priors = frozenset((stem, tuple(kinds[d] for d in where)) for stem, where in table[i].items())
        alike.setdefault(priors, []).append(i)
    for indices in alike.values():
        for i, j in pairwise(indices):
            yield [pair for stem, where in table[i].items() for pair in zip(where, table[j][stem], strict=True)]


def _probes(dim: int) -> Array:
    """Five points (5, D) within one of the centre, all coordinates different, on which priors are compared."""
    return np.sin(np.arange(1, 5 * dim + 1)).reshape(5, dim)


def _keeps_prior(chart: Chart, symmetry: Symmetry) -> bool:
    """Whether the base measure and the map to the user's coordinates are the same after the exchange.

    The density of a :class:`~wsabi.priors.LogDensity` is left out: the evaluations of the proof contain it.
    """
    U = _probes(chart.dim)
    image = symmetry.image(U)
    same_measure = _is_close(chart.measure.log_pdf(U), chart.measure.log_pdf(image))
    return same_measure and _is_close(symmetry.image(chart.to_user(U)), chart.to_user(image))


def _is_close(first: Array, second: Array) -> bool:
    return bool(np.allclose(first, second, rtol=TUNING.symmetry.same_prior, atol=TUNING.symmetry.same_prior**2))
