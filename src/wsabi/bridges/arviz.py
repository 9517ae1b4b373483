"""A result for ArviZ: ``result.to_arviz()``."""

from __future__ import annotations

from typing import Any

from wsabi._core.checks import whole_number
from wsabi._core.types import Array, Seed, as_generator
from wsabi.bridges.draws import facts, in_chains, variables
from wsabi.bridges.extras import needed
from wsabi.result import Result

__all__ = ["to_arviz"]


def to_arviz(
    result: Result, draws: int = 1000, *, chains: int = 4, rng: Seed = 0, prior: bool = True, **options: Any
) -> Any:
    """Draws of the posterior as ``arviz.InferenceData``, or as ``xarray.DataTree`` from ArviZ 1.0 on.

    Parameters
    ----------
    result : whose posterior is drawn from.
    draws, chains : number of draws in each chain, and of chains. The draws are independent: chains are there because
        ArviZ compares them.
    prior : whether to add a group of as many draws of the prior, where the prior can be drawn from.
    **options : ``coords``, ``dims`` and whatever else ``arviz.from_dict`` takes.

    Returns
    -------
    The groups ``posterior`` and ``prior``, with a variable for each parameter or vector, (chain, draw, ...). log Z, its
    error bar, the warnings and the version are attributes of the group ``posterior``.
    """
    az = needed("arviz", "arviz", "result.to_arviz")
    draws, chains = whole_number("draws", draws), whole_number("chains", chains)
    generator = as_generator(rng)
    found = variables(result.posterior.names)
    groups = {"posterior": in_chains(result.posterior.sample(draws * chains, generator), chains, found)}
    before = _prior_draws(result, draws * chains, generator) if prior else None
    if before is not None:
        groups["prior"] = in_chains(before, chains, found)
    one_argument = int(az.__version__.partition(".")[0]) >= 1  # from_dict has taken a dict of groups since then
    data = az.from_dict(groups, **options) if one_argument else az.from_dict(**groups, **options)
    data["posterior"].attrs.update(facts(result))
    return data


def _prior_draws(result: Result, n: int, rng: Any) -> Array | None:
    """Draws (n, D) of the prior; None for a prior that has none: LogDensity, or none at all."""
    try:
        return None if result.prior is None else result.prior.sample(n, rng)
    except TypeError:
        return None
