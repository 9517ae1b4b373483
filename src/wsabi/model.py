"""A model: a likelihood with its prior, as one object. The bridges of :mod:`wsabi.bridges` make them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wsabi.priors import as_prior

__all__ = ["Model", "as_model"]


@dataclass(frozen=True, eq=False)
class Model:
    """ℓ and π of one model, for ``integrate(model)``, ``Integrator(model)`` and ``wsabi run model.py:model``.

    Parameters
    ----------
    log_likelihood : from one (D,) point to a float, or with ``vectorized`` from (N, D) to (N,); a dict of the names
        takes the place of the array where the prior is a dict.
    prior : prior object, or a dict or list of distributions; see :func:`wsabi.integrate`.
    grad : the gradient of ``log_likelihood``, (D,), or None.
    vectorized : whether ``log_likelihood`` and ``grad`` take many points at once.

    Examples
    --------
    >>> import wsabi
    >>> model = Model(lambda x: -0.5 * x @ x, wsabi.Gaussian([0.0, 0.0]))
    >>> abs(wsabi.integrate(model, budget=40, rng=0).log_z + 0.6931) < 1e-2
    True
    """

    log_likelihood: Callable[..., Any]
    prior: Any
    grad: Callable[..., Any] | None = None
    vectorized: bool = False

    def __post_init__(self) -> None:
        if not callable(self.log_likelihood):
            raise TypeError(f"log_likelihood must be callable; got {type(self.log_likelihood).__name__}.")
        if self.grad is not None and not callable(self.grad):
            raise TypeError(f"grad must be callable; got {type(self.grad).__name__}.")
        object.__setattr__(self, "prior", as_prior(self.prior))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, (D,), those of the prior."""
        return tuple(self.prior.names)

    def __repr__(self) -> str:
        gradient = "no gradient" if self.grad is None else "with a gradient"
        return f"Model({', '.join(self.names)}; {type(self.prior).__name__} prior, {gradient})"


def as_model(
    log_likelihood: Any, prior: Any, *, grad: Callable[..., Any] | None = None, vectorized: bool = False
) -> Model:
    """The model that the first arguments of :func:`wsabi.integrate` stand for.

    Parameters
    ----------
    log_likelihood : a function, or a :class:`Model`, beside which neither ``prior`` nor ``vectorized`` is given.
    grad : None leaves a model its own.

    Raises
    ------
    TypeError
        If there is no prior, or one too many.
    """
    if not isinstance(log_likelihood, Model):
        if prior is None:
            raise TypeError("prior is missing: give it beside log_likelihood, or give a wsabi.Model, which has both.")
        return Model(log_likelihood, prior, grad, vectorized)
    if prior is not None:
        raise TypeError(
            "prior: a Model has a prior of its own. Leave it out, or write "
            "integrate(dataclasses.replace(model, prior=...))."
        )
    if vectorized:
        raise TypeError("vectorized is a field of the Model: leave it out.")
    own = log_likelihood
    return own if grad is None else Model(own.log_likelihood, own.prior, grad, own.vectorized)
