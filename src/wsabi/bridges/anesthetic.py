"""A result for anesthetic: ``result.to_anesthetic()``."""

from __future__ import annotations

from typing import Any

from wsabi.bridges.draws import facts, label
from wsabi.bridges.extras import needed
from wsabi.result import Result

__all__ = ["to_anesthetic"]


def to_anesthetic(result: Result) -> Any:
    """The weighted points of the posterior as ``anesthetic.MCMCSamples``.

    They are no run of a nested sampler, so anesthetic has no log Z of its own to compute from them; that of the result
    is in ``attrs``, with its error bar and the warnings.
    """
    anesthetic = needed("anesthetic", "anesthetic", "result.to_anesthetic")
    posterior = result.posterior
    samples = anesthetic.MCMCSamples(
        data=posterior.points,
        weights=posterior.weights,
        columns=list(posterior.names),
        labels=[f"${label(name)}$" for name in posterior.names],
        label="wsabi",
    )
    samples.attrs.update(facts(result))
    return samples
