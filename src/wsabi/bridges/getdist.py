"""A result for GetDist: ``result.to_getdist()``."""

from __future__ import annotations

from typing import Any

import numpy as np

from wsabi.bridges.draws import label
from wsabi.bridges.extras import needed
from wsabi.result import Result

__all__ = ["to_getdist"]


def to_getdist(result: Result, **options: Any) -> Any:
    """The weighted points of the posterior as ``getdist.MCSamples``, with the support of the prior as ranges.

    Parameters
    ----------
    result : whose posterior it is.
    **options : of ``getdist.MCSamples``, such as ``labels`` or ``settings``.
    """
    getdist = needed("getdist", "getdist", "result.to_getdist")
    posterior = result.posterior
    ends = zip(posterior.names, *posterior.support, strict=True)
    # GetDist reads None as no bound.
    ranges = {name: tuple(float(end) if np.isfinite(end) else None for end in both) for name, *both in ends}
    usual: dict[str, Any] = {
        "labels": [label(name) for name in posterior.names],
        "label": "wsabi",
        "ranges": ranges,
    }
    return getdist.MCSamples(
        samples=posterior.points,
        weights=posterior.weights,
        names=list(posterior.names),
        sampler="uncorrelated",
        **(usual | options),
    )
