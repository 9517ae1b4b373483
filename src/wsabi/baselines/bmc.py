"""Bayesian Monte Carlo (Rasmussen & Ghahramani 2003): draws from the prior, a Gaussian process on the likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from wsabi._core.types import Seed, as_generator
from wsabi.baselines.passive import PassiveQuadrature
from wsabi.baselines.recording import Callback, Run
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.result import Result
from wsabi.settings import Method, Settings

__all__ = ["bayesian_monte_carlo"]


def bayesian_monte_carlo(
    log_likelihood: Callable[..., Any],
    prior: Any,
    *,
    budget: int,
    rng: Seed = None,
    vectorized: bool = False,
    method: Method = "bq",
    alpha: float | Literal["auto"] = "auto",
    max_seconds: float | None = None,
    callback: Callback | None = None,
) -> Result:
    """x_n ~ π, GP with zero mean on ℓ: E[Z] = wᵀK⁻¹ℓ, V[Z] = ∬kππ' − wᵀK⁻¹w, w_n = ∫k(x, x_n)π.

    Parameters
    ----------
    log_likelihood, prior, rng, vectorized, max_seconds, callback : as for :func:`wsabi.integrate`.
    budget : number of draws N; the cost is O(N³).
    method : "bq", the GP on ℓ itself; "wsabi-l" or "wsabi-m" put it on √(2(ℓ − α)) instead, which is WSABI without
        active sampling.
    alpha : offset of the square root, as a fraction of min ℓ; "auto" is zero. Not used by "bq".

    Returns
    -------
    Result with method "bayesian-monte-carlo", or "passive-wsabi-l" or "passive-wsabi-m".

    Notes
    -----
    Length-scales by the same MAP fit as elsewhere, as the data grow by a fifth.

    Examples
    --------
    >>> import wsabi
    >>> from wsabi.baselines import bayesian_monte_carlo
    >>> result = bayesian_monte_carlo(lambda x: -0.5 * x @ x, wsabi.Gaussian([0.0, 0.0]), budget=60, rng=0)
    >>> abs(result.log_z + 0.6931) < 1e-3
    True
    """
    settings = Settings(method=method, alpha=alpha, measure="prior")
    run = Run(
        log_likelihood, prior, method="bayesian-monte-carlo" if method == "bq" else f"passive-{method}", budget=budget,
        vectorized=vectorized, max_seconds=max_seconds, callback=callback,
    )  # fmt: skip
    generator = as_generator(rng)
    measure = run.chart.measure
    model = SequentialModel(measure, settings, generator)
    return run.complete(PassiveQuadrature(run, model, lambda n: measure.sample(n, generator)))
