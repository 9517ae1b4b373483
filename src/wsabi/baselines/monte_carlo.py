"""Simple Monte Carlo: the mean of the likelihood over draws from the prior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wsabi._core.checks import whole_number
from wsabi._core.types import Seed, as_generator
from wsabi.baselines.log_moments import LogMoments
from wsabi.baselines.recording import Callback, Run, Summary
from wsabi.posterior.weighted import WeightedSamples
from wsabi.result import ModelBelief, Result

__all__ = ["simple_monte_carlo"]

# Below thirty effective draws the standard error is itself known to no better than some 15 %, and the likelihood may
# have a tail that no draw has met.
FEW = 30.0


def simple_monte_carlo(
    log_likelihood: Callable[..., Any],
    prior: Any,
    *,
    budget: int,
    rng: Seed = None,
    vectorized: bool = False,
    batch: int = 4096,
    max_seconds: float | None = None,
    callback: Callback | None = None,
) -> Result:
    """Ẑ = (1/N) Σ ℓ(x_n), x_n ~ π, with variance Σ (ℓ_n − Ẑ)²/(N(N − 1)), in log space.

    Parameters
    ----------
    log_likelihood, prior, rng, vectorized, max_seconds, callback : as for :func:`wsabi.integrate`.
    budget : number of draws.
    batch : most draws between two records of the history, and so in one call of a vectorised likelihood.

    Examples
    --------
    >>> import wsabi
    >>> from wsabi.baselines import simple_monte_carlo
    >>> result = simple_monte_carlo(lambda x: -0.5 * x @ x, wsabi.Gaussian([0.0, 0.0]), budget=2000, rng=0)
    >>> abs(result.log_z + 0.6931) < 4 * result.log_z_std
    True
    """
    run = Run(
        log_likelihood, prior, method="simple-monte-carlo", budget=budget, vectorized=vectorized,
        max_seconds=max_seconds, callback=callback,
    )  # fmt: skip
    return run.complete(_SimpleMonteCarlo(run, as_generator(rng), whole_number("batch", batch)))


class _SimpleMonteCarlo:
    def __init__(self, run: Run, rng: np.random.Generator, batch: int) -> None:
        self._run, self._rng, self._batch = run, rng, batch
        self._moments = LogMoments()

    def advance(self) -> bool:
        U = self._run.chart.measure.sample(self._run.chunk(self._batch), self._rng)
        self._moments.add(self._run.evaluate(U))
        return True

    def belief(self) -> ModelBelief | None:
        return self._moments.belief()

    def summary(self) -> Summary | None:
        run = self._run
        self._moments.add(run.log_f[self._moments.n :])  # a batch cut short: its draws count like any others
        belief = self._moments.belief()
        if belief is None:
            return None
        space = run.chart
        posterior = WeightedSamples.from_log_weights(
            run.points.copy(), run.log_f, space.names, keyed=space.keyed, groups=space.groups, support=space.support
        )
        size = self._moments.effective_size
        warnings = (
            f"the draws are worth only {size:.1f} effective ones: a few likelihoods make up the sum, the standard "
            "error is itself uncertain, and mass may have been missed.",
        )
        return Summary(belief, posterior, warnings if size < FEW else ())
