"""Bayes-Hermite quadrature (O'Hagan 1991): a Gaussian process on the likelihood over a design."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np

from wsabi._core.types import Array, Seed, as_generator
from wsabi.baselines.passive import PassiveQuadrature
from wsabi.baselines.recording import Callback, Run
from wsabi.quadrature.design import spread_design
from wsabi.quadrature.lookahead import Lookahead
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.result import Result
from wsabi.settings import Settings

__all__ = ["bayes_hermite"]

Design = Literal["spread", "variance"]

POOL = 512  # draws from the prior among which the next point of a "variance" design is sought


def bayes_hermite(
    log_likelihood: Callable[..., Any],
    prior: Any,
    *,
    budget: int,
    rng: Seed = None,
    vectorized: bool = False,
    design: Design = "spread",
    max_seconds: float | None = None,
    callback: Callback | None = None,
) -> Result:
    """GP with zero mean on ℓ over a design: E[Z] = wᵀK⁻¹ℓ, V[Z] = ∬kππ' − wᵀK⁻¹w, w_n = ∫k(x, x_n)π.

    Parameters
    ----------
    log_likelihood, prior, rng, vectorized, max_seconds, callback : as for :func:`wsabi.integrate`.
    budget : size of the design N; the cost is O(N³), and for "variance" 512 times O(N²) more at each point.
    design : "spread", the prior mean and a Latin hypercube through the prior (draws from it for a mixture); or
        "variance", one point after another where V[Z] falls most, which depends on the points and the length-scales but
        on no value.

    Notes
    -----
    Length-scales by the same MAP fit as elsewhere, as the data grow by a fifth; through them alone do the values touch
    the "variance" design.

    Examples
    --------
    >>> import wsabi
    >>> from wsabi.baselines import bayes_hermite
    >>> result = bayes_hermite(lambda x: -0.5 * x @ x, wsabi.Gaussian([0.0, 0.0]), budget=60, rng=0)
    >>> abs(result.log_z + 0.6931) < 1e-3
    True
    """
    if design not in get_args(Design):
        raise ValueError(f"design must be one of {', '.join(map(repr, get_args(Design)))}; got {design!r}.")
    run = Run(
        log_likelihood, prior, method="bayes-hermite", budget=budget, vectorized=vectorized, max_seconds=max_seconds,
        callback=callback,
    )  # fmt: skip
    generator = as_generator(rng)
    measure = run.chart.measure
    model = SequentialModel(measure, Settings(method="bq", measure="prior"), generator)
    size = run.budget if design == "spread" else min(run.budget, 2 * (measure.dim + 1))
    points = _Design(model, spread_design(measure, size, generator), generator)
    return run.complete(PassiveQuadrature(run, model, points.take))


class _Design:
    """Points of a spread design, then of least variance of Z."""

    def __init__(self, model: SequentialModel, spread: Array, rng: np.random.Generator) -> None:
        self._model, self._spread, self._rng, self._taken = model, spread, rng, 0

    def take(self, n: int) -> Array:
        """The next n points, (n, D)."""
        spread = self._spread[self._taken : self._taken + n]
        self._taken += n
        return np.concatenate([spread, *(self._next() for _ in range(n - len(spread)))])

    def _next(self) -> Array:
        """The draw from the prior at which V[Z] would fall most, (1, D), given data and points chosen since."""
        gp, measure = self._model.gp, self._model.measure
        draws = measure.sample(POOL, self._rng)
        if gp is None:  # every value so far is zero: no length-scale is known
            return draws[:1]
        best = int(np.argmin(Lookahead.prepare(gp, measure, "bq").variance_change(draws)))
        gp.append(draws[best])  # pending: `observe` replaces it by the datum
        return draws[best : best + 1]
