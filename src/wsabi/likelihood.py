"""Calling the user's log-likelihood: scalar or vectorised, array or dict, with every fault named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from wsabi._core.types import Array
from wsabi.errors import LikelihoodError
from wsabi.priors.chart import Chart
from wsabi.priors.names import Named, groups_of, keys_of, named_arguments

__all__ = [
    "Keyed",
    "bad_values",
    "checked_slope",
    "evaluator",
    "gradient_evaluator",
    "likelihood_hint",
    "likelihood_name",
]

NOISE = 1e-6  # of log ℓ: what single precision leaves of a sum
CHECK_RISE = 1e-3  # nats by which log ℓ should change where its gradient is checked, besides ten times the noise,
CHECK_STEP = 1e-2  # and the length, in prior sds, of the step to get there: where it would be longer, none is taken
RESOLUTION = 1e-6  # of x: a shorter step single precision cannot tell either
WEIGHT_STEP = 1e-5  # for differences of the weight of a LogDensity: its cost is not that of the likelihood


def bad_values(log_l: Array) -> list[int]:
    """Indices of NaN and +inf; −inf is a legal value (zero likelihood)."""
    return [int(i) for i in np.flatnonzero(np.isnan(log_l) | (log_l == np.inf))]


def likelihood_hint(log_l: Array, least: int = 8) -> str | None:
    """A sentence where the values look like ℓ instead of log ℓ; None where they do not.

    They do if all finite values lie between 0 and 1 and are not all the same. Log-likelihoods seldom do: a constant one
    is left alone, and any other has to stay within one nat above 0 over the whole prior.

    Parameters
    ----------
    log_l : (N,) values that the likelihood returned, −inf allowed.
    least : number of finite values below which nothing is said; 2D + 2 is sensible.

    Examples
    --------
    >>> likelihood_hint(np.linspace(0.0, 0.9, 10))
    'all 10 values of log_likelihood lie between 0 and 1: ...'
    >>> likelihood_hint(np.linspace(-5.0, 0.9, 10)) is None
    True
    """
    finite = log_l[np.isfinite(log_l)]
    if finite.size < max(least, 2) or finite.min() < 0.0 or finite.max() > 1.0 or finite.min() == finite.max():
        return None
    return (
        f"all {finite.size} values of log_likelihood lie between 0 and 1: it must return log ℓ, not ℓ. If these are "
        "likelihoods, log Z is wrong: return their logarithm (such as logpdf instead of pdf)."
    )


def likelihood_name(log_likelihood: Callable[..., Any]) -> str:
    """The name by which a journal knows a likelihood: of the function, or of the class of a callable object."""
    inner = getattr(log_likelihood, "func", log_likelihood)  # of functools.partial
    return str(getattr(inner, "__qualname__", type(inner).__qualname__))


class Keyed(Named, Protocol):
    """Names of the parameters, and whether functions of them take a dict: a chart, or as much of it as that takes."""

    @property
    def keyed(self) -> bool:
        """Whether a function receives a dict of the names."""


def evaluator(log_likelihood: Callable[..., Any], chart: Keyed, *, vectorized: bool) -> Callable[..., Array]:
    """A function from points X (N, D) to checked log-likelihoods (N,).

    It writes them into ``out`` (N,), if that is given, as they come: what was evaluated before a fault or an interrupt
    is in the caller's hands.
    """
    if not callable(log_likelihood):
        raise TypeError(f"log_likelihood must be callable; got {type(log_likelihood).__name__}.")

    def arguments(x: Array) -> Any:
        # A copy: a likelihood may work in place.
        return named_arguments(chart, x) if chart.keyed else x.copy()

    # Once a call has returned, the argument is of the kind that the likelihood expects: a later exception has another
    # cause, and a hint about the argument would mislead.
    returned_once = False

    def call(x: Array) -> Any:
        nonlocal returned_once
        argument = arguments(x)
        try:
            returned = log_likelihood(argument)
        except Exception as error:
            where = f"at x = {_describe(x)}" if x.ndim == 1 else f"for {len(x)} points"
            hint = "" if returned_once else _argument_hint(error, chart, x.shape)
            message = f"log_likelihood raised {type(error).__name__} {where}: {error}{hint}"
            raise LikelihoodError(message, x.copy() if x.ndim == 1 else x[0].copy()) from error
        returned_once = True
        return returned

    def one_by_one(X: Array, out: Array | None = None) -> Array:
        values = np.empty(len(X)) if out is None else out
        for i, x in enumerate(X):
            values[i] = _single_value(call(x), x)
        return values

    def together(X: Array, out: Array | None = None) -> Array:
        values = np.empty(len(X)) if out is None else out
        values[:] = _value_per_row(call(X), X)
        _check(values, X)
        return values

    return together if vectorized else one_by_one


def gradient_evaluator(grad: Callable[..., Any], chart: Chart, *, vectorized: bool) -> Callable[[Array], Array]:
    """A function from u (D,) to ∇_u log ℓ(x(u)), (D,), in base coordinates, the weight of a ``LogDensity`` included.

    (∇_u)_d = ∂log ℓ/∂x_d · dx_d/du_d

    Raises
    ------
    TypeError
        If ``grad`` is no function, or the prior's map mixes the coordinates (:class:`~wsabi.priors.Transform`).
    """
    if not callable(grad):
        raise TypeError(f"grad must be callable; got {type(grad).__name__}.")
    if not chart.separable:
        raise TypeError("grad needs a prior that gives each parameter by itself; a Transform mixes them.")

    def in_base(u: Array) -> Array:
        U = u[None, :]
        x = chart.to_user(U)[0]
        scales = np.exp(chart.log_jacobian_diag(U)[0])
        gradient = _call_gradient(grad, x, chart, vectorized=vectorized) * scales
        return gradient if chart.target is None else np.asarray(gradient + _weight_gradient(chart, u))

    return in_base


def checked_slope(
    value: Callable[[Array], float], gradient: Callable[[Array], Array], chart: Chart, *, checked: bool = False
) -> Callable[[Array], tuple[float, Array]]:
    """A function from u (D,) to log ℓ and its gradient (D,), zero where ℓ = 0, in base coordinates.

    The first gradient g that is steep enough is checked along itself, n = g/|g|, which takes one evaluation more:

    log ℓ(u + hn) − log ℓ(u) = ½h (g + g')·n + O(h³), with g' the gradient at u + hn.

    Raises
    ------
    LikelihoodError
        If the two sides differ by more than a quarter.

    Parameters
    ----------
    checked : whether that has been done before.
    """

    def slope(u: Array) -> tuple[float, Array]:
        nonlocal checked
        log_l = value(u)
        if log_l == -np.inf:
            return log_l, np.zeros_like(u)
        g = gradient(u)
        if not checked:
            checked = fits(u, log_l, g)
        return log_l, g

    def shortest(u: Array, direction: Array) -> float:
        x, there = chart.to_user(np.stack([u, u + CHECK_STEP * direction]))
        return CHECK_STEP * RESOLUTION * float(np.max(np.abs(x))) / max(float(np.max(np.abs(there - x))), 1e-300)

    def fits(u: Array, log_l: float, g: Array) -> bool:
        noise, steepness = NOISE * abs(log_l), float(np.linalg.norm(g))
        wanted = CHECK_RISE + 10.0 * noise
        if wanted > CHECK_STEP * steepness:
            return False
        step = max(wanted / steepness, shortest(u, g / steepness))
        if step > CHECK_STEP:
            return False
        there = u + step * g / steepness
        rise = value(there) - log_l
        if rise == -np.inf:
            return False
        ends = np.array([steepness, gradient(there) @ g / steepness])
        expected = 0.5 * step * float(ends.sum())
        # Near a mode the two ends may cancel; what is left of them then says little.
        allowed = 0.25 * max(abs(rise), abs(expected)) + 0.02 * step * float(np.max(np.abs(ends))) + noise
        if abs(rise - expected) > allowed:
            x = chart.to_user(u[None, :])[0]
            raise LikelihoodError(
                f"grad is not the gradient of log_likelihood at x = {_describe(x)}: on a short step along it, "
                f"log_likelihood changes by {rise:.3g} where grad says {expected:.3g}.",
                x,
            )
        return True

    return slope


def _weight_gradient(chart: Chart, u: Array) -> Array:
    """∇ log w (D,) at u (D,), by central differences, or one-sided ones at the edge of the support."""
    steps = WEIGHT_STEP * np.eye(len(u))
    here = chart.log_weight(u[None, :])
    ahead, behind = chart.log_weight(u + steps), chart.log_weight(u - steps)
    n_steps = np.isfinite(ahead).astype(np.float64) + np.isfinite(behind)
    rise = np.where(np.isfinite(ahead), ahead, here) - np.where(np.isfinite(behind), behind, here)
    return np.asarray(rise / (WEIGHT_STEP * np.maximum(n_steps, 1.0)))


def _call_gradient(grad: Callable[..., Any], x: Array, chart: Chart, *, vectorized: bool) -> Array:
    """∇ log ℓ (D,) at x (D,), from an array or, where the prior is a dict, from a dict of the same names."""
    point = x[None, :] if vectorized else x
    try:
        returned = grad(named_arguments(chart, point) if chart.keyed else point.copy())
        if isinstance(returned, dict):
            returned = _in_columns(returned, chart, point)
    except LikelihoodError:
        raise
    except Exception as error:
        message = f"grad raised {type(error).__name__} at x = {_describe(x)}: {error}"
        raise LikelihoodError(message, x.copy()) from error
    gradient = _as_floats(returned, x, "grad")
    if gradient.shape != point.shape or not np.all(np.isfinite(gradient)):
        what = f"shape {gradient.shape}" if gradient.shape != point.shape else _describe(gradient)
        raise LikelihoodError(
            f"grad returned {what} at x = {_describe(x)}; expected finite numbers of shape {point.shape}.", x.copy()
        )
    return gradient.reshape(x.shape)


def _in_columns(returned: dict[str, Any], chart: Chart, point: Array) -> Array:
    """A gradient given as a dict, as an array of the shape of the point, (D,) or (1, D)."""
    columns = []
    for name, where in groups_of(chart):
        part = np.asarray(returned[name])
        wanted = point[..., where].shape
        if part.shape != wanted:
            x = point.reshape(-1)
            raise LikelihoodError(
                f"grad returned shape {part.shape} for {name!r} at x = {_describe(x)}; expected {wanted}.", x.copy()
            )
        columns.append(part if isinstance(where, slice) else part[..., None])
    return np.concatenate(columns, axis=-1)


def _describe(x: Array) -> str:
    return np.array2string(x, precision=6, threshold=20)


def _argument_hint(error: Exception, chart: Keyed, shape: tuple[int, ...]) -> str:
    """What to write where the exception suggests that the likelihood expects another kind of argument; "" otherwise.

    Parameters
    ----------
    error : what the likelihood raised at its first call.
    shape : of the array of points, (D,) or (N, D).
    """
    text = str(error)
    # The exception came from the call itself, not from inside the likelihood: it takes another number of arguments.
    frames = error.__traceback__
    if isinstance(error, TypeError) and "argument" in text and frames is not None and frames.tb_next is None:
        stars = "lambda p: f(**p)" if chart.keyed else "lambda x: f(*x)"
        return (
            f"\nlog_likelihood is called with one argument, {_received(chart, shape)}; for a function f with one "
            f"argument per parameter write {stars}."
        )
    if chart.keyed:
        if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
            known = error.args[0] in keys_of(chart)
            return "" if known else f"\nlog_likelihood received {_received(chart, shape)}."
        # A dict that is unpacked, a, b = p, gives its keys: the arithmetic then fails on str.
        signs = ("dict", "'str'", "dtype('<U", "unhashable", "not supported for the input types")
        if isinstance(error, KeyError) or (
            isinstance(error, TypeError | AttributeError) and any(sign in text for sign in signs)
        ):
            return (
                f"\nlog_likelihood received {_received(chart, shape)}, because the prior is a dict. To get an array "
                "instead, give the prior as wsabi.Independent(**prior), or as a list."
            )
        return ""
    if (
        (isinstance(error, IndexError) and "only integers, slices" in text)  # x["amp"]
        or (isinstance(error, AttributeError) and "'numpy.ndarray' object" in text)  # x.amp, x.items()
        or (isinstance(error, TypeError) and "must be a mapping" in text)  # f(**x)
    ):
        return (
            f"\nlog_likelihood received {_received(chart, shape)}. To get a dict instead, give the prior as a dict "
            'from name to distribution, such as {"amp": stats.norm(0, 2), "tau": (0.1, 10.0)}.'
        )
    return ""


def _received(chart: Keyed, shape: tuple[int, ...]) -> str:
    """What a likelihood is given, in words."""
    return f"a dict with keys {', '.join(map(repr, keys_of(chart)))}" if chart.keyed else f"an array of shape {shape}"


def _single_value(returned: Any, x: Array) -> float:
    """log ℓ at one point x (D,)."""
    value = _as_floats(returned, x)
    if value.size != 1:
        raise LikelihoodError(
            f"log_likelihood returned shape {value.shape} for one point; expected a float "
            "(pass vectorized=True if it takes (N, D) arrays).",
            x.copy(),
        )
    _check(value.reshape(1), x[None, :])
    return float(value.item())


def _value_per_row(returned: Any, X: Array) -> Array:
    """log ℓ (N,) at the rows of X (N, D)."""
    values = _as_floats(returned, X[0])
    if values.shape != (len(X),):
        raise LikelihoodError(
            f"log_likelihood returned shape {values.shape} for {len(X)} points; expected ({len(X)},): "
            "one value per row of X.",
            X[0].copy(),
        )
    return values


def _as_floats(returned: Any, x: Array, name: str = "log_likelihood") -> Array:
    """What a function of the user's returned, as float64; None, text and complex numbers are refused, not converted."""
    try:
        array = np.asarray(returned)
        if array.dtype.kind in "biuf" or (array.dtype == object and array.size and None not in array.ravel().tolist()):
            return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        pass  # ragged lists and objects that are no numbers
    what = "None (is a return missing?)" if returned is None else f"{type(returned).__name__} {returned!r}"
    raise LikelihoodError(f"{name} returned {what} at x = {_describe(x)}; expected real numbers.", x.copy())


def _check(values: Array, X: Array) -> None:
    bad = bad_values(values)
    if bad:
        raise LikelihoodError(
            f"log_likelihood returned {values[bad[0]]} at x = {_describe(X[bad[0]])}; expected a number or −inf. "
            "Return -math.inf where the model does not exist (zero likelihood). The attribute result of this error "
            "holds what was evaluated before, if anything was.",
            X[bad[0]].copy(),
        )
