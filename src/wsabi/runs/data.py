"""Priors, settings and events of the ledger as JSON data, and back. Nothing is ever pickled or executed.

Floats are kept exactly: Python writes the shortest decimal that reads back as the same number. Infinities and NaN are
written as the strings "inf", "-inf" and "nan".
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from numbers import Real
from typing import Any, cast

import numpy as np

from wsabi._core.types import Array, Streams
from wsabi.gp.kernel import SquaredExponential
from wsabi.ledger import (
    Asked,
    BatchBegun,
    BatchTold,
    Climbed,
    Climbing,
    Event,
    Failed,
    GivenUp,
    Planned,
    Postponed,
    Priced,
    Reseeded,
    Told,
)
from wsabi.priors import Gaussian, GaussianMixture, Independent, LogDensity, Polynomial, Transform, Uniform
from wsabi.settings import Settings

__all__ = [
    "difference",
    "event_data",
    "event_from",
    "is_complete",
    "prior_data",
    "prior_from",
    "settings_data",
    "settings_from",
    "text_of",
]

Data = Any  # what JSON can hold
KINDS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        Planned,
        Asked,
        Told,
        Failed,
        GivenUp,
        Postponed,
        Climbing,
        Climbed,
        Reseeded,
        BatchBegun,
        BatchTold,
        Priced,
    )
}
ARRAYS = {"X", "U", "x", "u", "log_l", "mean", "cov"}  # fields of events that hold arrays
NUMBERS = {"seconds", "tol", "own", "call", "bulk"}  # fields that hold one float, which may be nan or inf
OPAQUE = "functions"  # key of what stands for functions: names and values that tell others from them
PROBES = (0.1, 0.3, 0.5, 0.7, 0.9)  # quantiles at which the functions of a prior are called, to tell others from them
SAME_VALUE = 1e-6  # relative: two machines may compute a function with another last digit


def text_of(data: Data) -> str:
    """JSON in one line, always the same for the same data."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


# -- numbers ----------------------------------------------------------------------------------------------------------


def _number(value: float) -> float | str:
    return float(value) if math.isfinite(value) else str(float(value))


def _numbers(array: Array) -> Data:
    """An array as nested lists."""
    values = np.asarray(array, dtype=np.float64)
    if values.ndim == 0:
        return _number(float(values))
    if values.ndim == 1 and np.all(np.isfinite(values)):
        return values.tolist()
    return [_numbers(part) for part in values]


def _array(data: Data) -> Array:
    return np.array(_floats(data), dtype=np.float64)


def _floats(data: Data) -> Data:
    return [_floats(part) for part in data] if isinstance(data, list) else float(data)


# -- events -----------------------------------------------------------------------------------------------------------


def event_data(event: Event) -> tuple[str, Data]:
    """The kind of an event, and its fields."""
    out: dict[str, Data] = {}
    for each in fields(event):
        value = getattr(event, each.name)
        if isinstance(value, np.ndarray):
            # The shape of an array without rows is not in its nested lists.
            value = _numbers(value) if value.size else {"shape": list(value.shape)}
        elif isinstance(value, Streams):
            value = list(value.entropy)
        elif isinstance(value, tuple):
            value = list(value)
        elif isinstance(value, float | np.floating):
            value = _number(float(value))
        elif isinstance(value, np.integer):
            value = int(value)
        out[each.name] = value
    return type(event).__name__, out


def event_from(kind: str, data: Mapping[str, Data]) -> Event:
    """The event that :func:`event_data` described.

    Raises
    ------
    ValueError, KeyError, TypeError
        If it describes none.
    """
    values: dict[str, Any] = {}
    for each in fields(KINDS[kind]):
        value = data[each.name]
        if each.name in ARRAYS and value is not None:
            value = np.empty(value["shape"]) if isinstance(value, dict) else _array(value)
        elif each.name == "origin":
            value = Streams(tuple(value))
        elif each.name == "purposes":
            value = tuple(value)
        elif each.name in NUMBERS:
            value = float(value)
        values[each.name] = value
    return KINDS[kind](**values)


# -- settings ---------------------------------------------------------------------------------------------------------


def settings_data(settings: Settings) -> Data:
    """The fields of the settings."""
    data = {each.name: getattr(settings, each.name) for each in fields(settings)}
    kernel = settings.kernel
    if kernel is not None:
        data["kernel"] = {"scale": kernel.scale, "lengthscales": _numbers(kernel.lengthscales)}
    return data


def settings_from(data: Mapping[str, Data]) -> Settings:
    """The settings that :func:`settings_data` described."""
    values = dict(data)
    if values.get("kernel") is not None:
        kernel = values["kernel"]
        values["kernel"] = SquaredExponential(kernel["scale"], _array(kernel["lengthscales"]))
    return Settings(**values)


# -- priors -----------------------------------------------------------------------------------------------------------


def prior_data(prior: object) -> Data:
    """A prior as data. Functions cannot be data: what stands for them are their values at a few points.

    Parameters
    ----------
    prior : as :func:`wsabi.priors.as_prior` returns it, or an entry of :class:`~wsabi.priors.Independent`.
    """
    name = type(prior).__name__
    if isinstance(prior, Gaussian):
        return {"type": name, "mean": _numbers(prior.mean), "cov": _numbers(prior.cov), "names": list(prior.names)}
    if isinstance(prior, GaussianMixture):
        parts = [{"mean": _numbers(part.mean), "cov": _numbers(part.cov)} for part in prior.components]
        return {"type": name, "weights": _numbers(prior.weights), "components": parts, "names": list(prior.names)}
    if isinstance(prior, Uniform):
        return {"type": name, "low": _numbers(prior.low), "high": _numbers(prior.high), "names": list(prior.names)}
    if isinstance(prior, Polynomial):
        densities = [asdict(density) for density in prior.densities]
        for density in densities:
            density.update(lower=_numbers(density["lower"]), upper=_numbers(density["upper"]))
        ends = {"low": _numbers(prior.low), "high": _numbers(prior.high)}
        return {"type": name, **ends, "densities": densities, "names": list(prior.names)}
    if isinstance(prior, Independent):
        entries = [[key, _entry_data(entry)] for (key, _), entry in zip(prior.groups, prior.distributions, strict=True)]
        return {"type": name, "keyed": prior.keyed, "entries": entries}
    if isinstance(prior, LogDensity):
        reference = prior_data(prior.reference)
        probes = prior.reference.sample(len(PROBES), 0)  # the same points for the same reference
        values = {"names": list(prior.names), "values": _numbers(prior.log_pdf(probes))}
        return {"type": name, "reference": reference, "vectorized": prior.vectorized, OPAQUE: values}
    if isinstance(prior, Transform):
        cube = np.outer(PROBES, np.ones(prior.dim))
        values = {"names": list(prior.names), "values": _numbers(prior.from_cube(cube))}
        return {"type": name, "dim": prior.dim, "vectorized": prior.vectorized, OPAQUE: values}
    raise TypeError(f"prior of type {name} is not known.")


def _entry_data(entry: object) -> Data:
    """One entry of a dict of distributions."""
    if isinstance(entry, np.ndarray):
        return _entry_data(entry.tolist())
    if isinstance(entry, Gaussian | GaussianMixture | Uniform):
        return prior_data(entry)
    if isinstance(entry, list | tuple):
        return [_number(float(e)) if isinstance(e, Real) else _entry_data(e) for e in entry]
    family, values = _family(entry)
    if family is not None:
        return {"distribution": family, **values}
    quantiles: Callable[[Array], Array] = getattr(entry, "ppf", None) or cast("Any", entry).icdf
    return {"type": type(entry).__name__, OPAQUE: {"values": _numbers(quantiles(np.array(PROBES)))}}


def _family(entry: Any) -> tuple[str | None, dict[str, Data]]:
    """The name in ``scipy.stats`` and the parameters of a distribution; None for one that is not SciPy's own."""
    from scipy import stats

    family = getattr(entry, "dist", None)
    if family is not None:
        name = str(getattr(family, "name", None))
        if type(getattr(stats, name, None)) is not type(family):
            return None, {}
        given = [float(value) for value in entry.args]
        return name, {"args": given, "kwds": {key: float(value) for key, value in entry.kwds.items()}}
    for name, parameters in (("Normal", ("mu", "sigma")), ("Uniform", ("a", "b"))):
        if type(entry) is getattr(stats, name, None):
            return name, {"kwds": {key: float(getattr(entry, key)) for key in parameters}}
    if type(entry).__name__ == "StandardNormal" and type(entry).__module__.startswith("scipy."):
        return "Normal", {"kwds": {"mu": 0.0, "sigma": 1.0}}
    return None, {}


def is_complete(data: Data) -> bool:
    """Whether the prior can be built again from this data: there are no functions in it."""
    if isinstance(data, dict):
        return OPAQUE not in data and all(is_complete(part) for part in data.values())
    return not isinstance(data, list) or all(is_complete(part) for part in data)


def prior_from(data: Mapping[str, Data]) -> Any:
    """The prior that :func:`prior_data` described, the same to the last bit; see :func:`is_complete`."""
    kind, names = data["type"], data.get("names")
    if kind == "Gaussian":
        return Gaussian(_array(data["mean"]), _array(data["cov"]), names=names)
    if kind == "Uniform":
        return Uniform(_array(data["low"]), _array(data["high"]), names=names)
    if kind == "GaussianMixture":
        parts, weights = data["components"], _array(data["weights"])
        means = np.stack([_array(part["mean"]) for part in parts])
        mixture = GaussianMixture(weights, means, [_array(part["cov"]) for part in parts], names=names)
        object.__setattr__(mixture, "weights", weights)  # they were normalised once, which a second time could change
        return mixture
    if kind == "Polynomial":
        prior = Polynomial(_array(data["low"]), _array(data["high"]), [1.0], names=names)
        for density, given in zip(prior.densities, data["densities"], strict=True):
            for key, value in given.items():
                object.__setattr__(density, key, _array(value) if isinstance(value, list) else float(value))
        return prior
    if kind == "Independent":
        entries = {key: _entry_from(entry) for key, entry in data["entries"]}
        return Independent(entries) if data["keyed"] else Independent(**entries)
    raise ValueError(f"a prior of type {kind} cannot be built from data.")


def _entry_from(data: Data) -> object:
    if isinstance(data, list):
        entries = [_entry_from(part) if isinstance(part, list | dict) else float(part) for part in data]
        return tuple(entries) if all(isinstance(part, float) for part in entries) else entries
    if "distribution" not in data:
        return prior_from(data)
    from scipy import stats

    family = getattr(stats, data["distribution"], None)
    known = isinstance(family, stats.rv_continuous) or data["distribution"] in ("Normal", "Uniform")
    if not known or family is None:
        raise ValueError(f"{data['distribution']!r} is not a continuous distribution of scipy.stats.")
    return family(*data.get("args", ()), **data["kwds"])


# -- differences ------------------------------------------------------------------------------------------------------


def difference(stored: Data, given: Data, name: str) -> str | None:
    """The first difference of two pieces of data in words, such as "prior.cov[0][0] is 1.0 there and 2.0 here"."""
    if isinstance(stored, dict) and isinstance(given, dict):
        if OPAQUE in stored and OPAQUE in given:
            return _other_functions(stored, given, name)
        for key in {**stored, **given}:
            if key not in stored or key not in given:
                return f"{name}.{key} is given in one and not in the other"
            found = difference(stored[key], given[key], name if key == "entries" else f"{name}.{key}")
            if found is not None:
                return found
        return None
    if isinstance(stored, list) and isinstance(given, list):
        if len(stored) != len(given):
            return f"{name} has {len(stored)} entries there and {len(given)} here"
        for i, (one, other) in enumerate(zip(stored, given, strict=True)):
            found = difference(one, other, f"{name}[{_place(one, other, i)}]")
            if found is not None:
                return found
        return None
    same = stored == given and isinstance(stored, str) == isinstance(given, str)
    return None if same else f"{name} is {_shown(stored)} there and {_shown(given)} here"


def _place(one: Data, other: Data, number: int) -> str:
    """The number of an item, or its name where it is a pair (name, entry) in both."""
    pair = isinstance(one, list) and isinstance(other, list) and len(one) == 2 and one[:1] == other[:1]
    return repr(one[0]) if pair and isinstance(one[0], str) else str(number)


def _other_functions(stored: Mapping[str, Data], given: Mapping[str, Data], name: str) -> str | None:
    rest = [{key: value for key, value in data.items() if key != OPAQUE} for data in (stored, given)]
    found = difference(rest[0], rest[1], name)
    if found is not None:
        return found
    one, other = stored[OPAQUE], given[OPAQUE]
    found = difference(one.get("names"), other.get("names"), f"{name}.names")
    if found is not None:
        return found
    a, b = _array(one["values"]), _array(other["values"])
    if a.shape == b.shape and np.allclose(a, b, rtol=SAME_VALUE, atol=0.0, equal_nan=True):
        return None
    return f"{name}, a {stored['type']}, has another function: it gives other values"


def _shown(data: Data) -> str:
    text = repr(data) if not isinstance(data, dict | list) else text_of(data)
    return text if len(text) <= 60 else f"{text[:57]}..."
