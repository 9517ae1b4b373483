"""What dynesty and UltraNest take, as a model: ``wsabi.from_prior_transform``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wsabi.model import Model
from wsabi.priors import Transform

__all__ = ["from_prior_transform"]


def from_prior_transform(
    loglike: Callable[..., Any],
    prior_transform: Callable[..., Any],
    ndim: int,
    *,
    names: Sequence[str] | None = None,
    vectorized: bool = False,
) -> Model:
    """The model of a nested sampler: log ℓ(x), and x = T(c) with c uniform on the unit cube.

    Parameters
    ----------
    loglike : log ℓ, from (D,) parameters to a float. −inf, and a floor such as −1e300, are zero likelihood.
    prior_transform : T, from one (D,) point of the unit cube to the (D,) parameters.
    ndim : D.
    names : of the parameters; UltraNest calls them ``param_names``.
    vectorized : whether both take (N, D), as with ``ReactiveNestedSampler(..., vectorized=True)``.

    Notes
    -----
    T gives draws of the prior and no density, so ``posterior.logpdf``, ``with_prior`` and ``grad=`` are not available.
    Write the prior as a dict of distributions to have them.

    Examples
    --------
    >>> import wsabi
    >>> model = wsabi.from_prior_transform(lambda x: -0.5 * x @ x, lambda c: 20.0 * c - 10.0, 2)
    >>> abs(wsabi.integrate(model, budget=60, rng=0).log_z + 4.1536) < 0.01
    True
    """
    return Model(loglike, Transform(prior_transform, ndim, names=names, vectorized=vectorized), vectorized=vectorized)
