"""A model behind a UM-Bridge server, in any language, as a likelihood: ``wsabi.from_umbridge``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wsabi._core.types import Array
from wsabi.bridges.extras import needed
from wsabi.bridges.points import model_with, row_of
from wsabi.model import Model
from wsabi.priors import as_prior

__all__ = ["ServerLikelihood", "from_umbridge"]

_USER = "wsabi.from_umbridge"
Outputs = list[Array]


@dataclass(frozen=True)
class ServerLikelihood:
    """log ℓ of a UM-Bridge model, one request for a point.

    Parameters
    ----------
    url : of the server.
    model : the ``umbridge.HTTPModel``.
    sizes : of the model's input vectors; together they are a point (D,).
    config : sent with every request.
    of_outputs, sensitivity : see :func:`from_umbridge`.
    """

    url: str
    model: Any = field(repr=False)
    sizes: tuple[int, ...]
    config: dict[str, Any]
    of_outputs: Callable[[Outputs], float] | None = None
    sensitivity: Callable[[Outputs], Sequence[Any]] | None = None

    def __call__(self, p: Any) -> float:
        """log ℓ at a point (D,), or at a dict of the names."""
        outputs = self._outputs(row_of(p))
        return float(outputs[0][0] if self.of_outputs is None else self.of_outputs(outputs))

    def gradient(self, p: Any) -> Array:
        """∇ log ℓ, (D,): Σ_i (∂log ℓ/∂y_i) ∂y_i/∂x over the output vectors y_i, by the model's own gradient."""
        x = row_of(p)
        weights = [[1.0]] if self.sensitivity is None else self.sensitivity(self._outputs(x))
        total = np.zeros(len(x))
        for i, weight in enumerate(weights):
            sens = np.asarray(weight, dtype=np.float64).tolist()
            parts = [self._asked("gradient", i, k, self._inputs(x), sens) for k in range(len(self.sizes))]
            total += np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])
        return total

    def _inputs(self, x: Array) -> list[list[float]]:
        return [part.tolist() for part in np.split(x, np.cumsum(self.sizes)[:-1])]

    def _outputs(self, x: Array) -> Outputs:
        return [np.asarray(one, dtype=np.float64) for one in self._asked("__call__", self._inputs(x))]

    def _asked(self, method: str, *arguments: Any) -> Any:
        """What the server answers; a server that does not is an error of which the run takes care."""
        requests = needed("requests", "umbridge", _USER)
        try:
            return getattr(self.model, method)(*arguments, self.config)
        except requests.exceptions.ConnectionError as error:
            raise ConnectionError(f"the UM-Bridge server at {self.url} does not answer ({_cause(error)}).") from error
        except requests.exceptions.JSONDecodeError as error:  # an exception in the model ends in a page in HTML
            raise RuntimeError(
                f"the model {self.model.name!r} of the UM-Bridge server at {self.url} failed; the output of the server "
                "says why."
            ) from error


def from_umbridge(
    url: str,
    name: str,
    prior: Any,
    *,
    log_likelihood: Callable[[Outputs], float] | None = None,
    sensitivity: Callable[[Outputs], Sequence[Any]] | None = None,
    config: dict[str, Any] | None = None,
) -> Model:
    """The model of a UM-Bridge server: log ℓ itself, or a forward model y(x) whose outputs you compare with data.

    Parameters
    ----------
    url : of the server, such as "http://localhost:4242".
    name : of the model on it.
    prior : as :func:`wsabi.integrate` takes it; its parameters, in order, are the model's input vectors, in order.
    log_likelihood : from the model's output vectors, a list of arrays, to log ℓ. None where the only output is log ℓ.
    sensitivity : from the output vectors to ∂log ℓ/∂y, a list of arrays of the same lengths. With it the gradient of a
        forward model is used, if the server offers it. Without ``log_likelihood`` the gradient needs nothing.
    config : sent with every request.

    Raises
    ------
    ConnectionError
        If no server answers. One that goes away during a run is a failed evaluation like any other: ``on_error=`` and
        ``retries=`` of :func:`wsabi.integrate` say what becomes of it, and with ``journal=`` nothing is lost.
    ValueError
        If the server has no such model, or its sizes do not fit.

    Notes
    -----
    A server that evaluates in parallel is kept busy by ``executor=ThreadPoolExecutor(n)``.

    Examples
    --------
        model = wsabi.from_umbridge("http://localhost:4242", "posterior", [(-5.0, 5.0), (0.0, 1.0)])
        result = wsabi.integrate(model, journal="run.db")
    """
    umbridge = needed("umbridge", "umbridge", _USER)
    prior, config = as_prior(prior), dict(config or {})
    known = _reached(lambda: umbridge.supported_models(url), url)
    if name not in known:
        raise ValueError(f"the UM-Bridge server at {url} has no model {name!r}; it has {', '.join(map(repr, known))}.")
    model = _reached(lambda: umbridge.HTTPModel(url, name), url)
    sizes = [int(size) for size in _reached(lambda: model.get_input_sizes(config), url)]
    outputs = [int(size) for size in _reached(lambda: model.get_output_sizes(config), url)]
    if sum(sizes) != len(prior.names):
        raise ValueError(f"prior has {len(prior.names)} parameters; the model {name!r} has inputs of sizes {sizes}.")
    if log_likelihood is None and math.prod(outputs) * len(outputs) != 1:
        raise ValueError(
            f"the model {name!r} has outputs of sizes {outputs}, which is not one number, log ℓ. Say how they "
            "give log ℓ, such as log_likelihood=lambda y: -0.5 * numpy.sum((y[0] - data) ** 2) / sd**2 - len(data) * "
            "numpy.log(sd * numpy.sqrt(2 * numpy.pi))."
        )
    if sensitivity is not None and log_likelihood is None:
        raise ValueError("sensitivity belongs to log_likelihood: give both or neither.")
    likelihood = ServerLikelihood(url, model, tuple(sizes), config, log_likelihood, sensitivity)
    has_gradient = model.supports_gradient() and (log_likelihood is None or sensitivity is not None)
    return model_with(likelihood, prior, likelihood.gradient if has_gradient else None)


def _reached(ask: Callable[[], Any], url: str) -> Any:
    """The answer of a server, or an error that names it."""
    requests = needed("requests", "umbridge", _USER)
    try:
        return ask()
    except requests.exceptions.RequestException as error:
        raise ConnectionError(f"no UM-Bridge server answers at {url} ({_cause(error)}).") from error


def _cause(error: BaseException) -> str:
    """What is at the bottom of an error of requests, in a few words."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return str(error) or type(error).__name__
