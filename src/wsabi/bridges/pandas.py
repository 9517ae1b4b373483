"""A result for pandas: ``result.to_dataframe()``."""

from __future__ import annotations

from typing import Any

from wsabi._core.types import Seed
from wsabi.bridges.draws import facts
from wsabi.bridges.extras import needed
from wsabi.result import Result, Rows

__all__ = ["to_dataframe"]


def to_dataframe(result: Result, n: int = 4000, *, of: Rows = "draws", rng: Seed = 0) -> Any:
    """A ``pandas.DataFrame`` with a column for each parameter.

    Parameters
    ----------
    result : a result.
    n : number of draws.
    of : "draws" are draws from the posterior, all of the same weight; "weighted" are the posterior's points with a
        column ``weight``, of sum one; "evaluations" are all evaluations of the likelihood, with ``log_likelihood`` and,
        where there is a ledger, ``purpose``.

    Returns
    -------
    The frame; log Z, its error bar and the warnings are in its ``attrs``.
    """
    pd = needed("pandas", "pandas", "result.to_dataframe")
    posterior = result.posterior
    more: dict[str, Any] = {}
    if of == "draws":
        rows = posterior.sample(n, rng)
    elif of == "weighted":
        rows, more["weight"] = posterior.points, posterior.weights
    elif of == "evaluations":
        rows, more["log_likelihood"] = result.points, result.log_likelihoods
        if result.ledger is not None:
            purposes = {one.x.tobytes(): one.purpose for one in result.ledger.evaluations}
            more["purpose"] = [purposes[x.tobytes()] for x in result.points]
    else:
        raise ValueError(f"of must be 'draws', 'weighted' or 'evaluations'; got {of!r}.")
    frame = pd.DataFrame(rows, columns=list(result.names))
    frame.attrs.update(facts(result))
    return frame.assign(**more)
