"""The engine driven by hand, one evaluation at a time: what tests of its state share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

import wsabi
from wsabi._core.linalg import GrowingFactor
from wsabi._core.threads import single_threaded
from wsabi._core.types import Streams
from wsabi.adaptive.state import State
from wsabi.ledger import Action, Observation
from wsabi.priors.chart import chart
from wsabi.quadrature.maximise import CandidatePool
from wsabi.strategies.adaptive import AdaptiveStrategy

FOR_POINTS = 10  # number of the streams that points are drawn from


def an_engine(measure: Any, budget: int, seed: int = 0, **choices: Any) -> AdaptiveStrategy:
    """An engine that nothing was told yet; ``choices`` are settings."""
    return AdaptiveStrategy(chart(measure, gaussian=True), wsabi.Settings(**choices), Streams.of(seed), budget)


def stream(state: State) -> np.random.Generator:
    """What the next point of a run is drawn from."""
    return state.problem.streams.stream(FOR_POINTS, state.n)


def told(action: Action, log_l: Callable[[np.ndarray], Any]) -> Observation:
    """An evaluation made: log ℓ (N,) of X (N, D) in base coordinates."""
    return Observation(action.u, float(log_l(action.u[None, :])[0]), action.purpose)


@single_threaded
def advance(
    engine: AdaptiveStrategy, log_l: Callable[[np.ndarray], Any], n: int = 1, pending: Sequence[Action] = ()
) -> State:
    """The state after n more evaluations."""
    for _ in range(n):
        engine.tell([told(engine.ask(pending, stream(engine.state)), log_l)])
    return engine.state


def run_engine(
    measure: Any, log_l: Callable[[np.ndarray], Any], n: int, seed: int = 0, budget: int | None = None, **choices: Any
) -> State:
    """The state after n evaluations, of a budget of as many unless given."""
    return advance(an_engine(measure, n if budget is None else budget, seed, **choices), log_l, n)


def content(value: Any, leave_out: type | tuple[type, ...] = ()) -> Any:
    """All that a value consists of, as plain tuples that can be compared; what is of a type left out is not entered.

    Fields of dataclasses count, and not what they remember besides; of arrays with room to grow, what is in use.
    """
    if isinstance(value, leave_out):
        return type(value).__name__
    if isinstance(value, GrowingFactor):
        return content(value.lower())
    if isinstance(value, CandidatePool):
        value = replace(value, V=value.V[: value.n])
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if isinstance(value, float):
        return value.hex()  # NaN and −0.0 too
    if isinstance(value, Mapping):
        return tuple((content(key, leave_out), content(one, leave_out)) for key, one in value.items())
    if isinstance(value, set | frozenset):
        return frozenset(content(one, leave_out) for one in value)
    if isinstance(value, tuple | list):
        return tuple(content(one, leave_out) for one in value)
    if value is None or isinstance(value, str | bytes | int | Enum | np.generic | type):
        return value
    names = [one.name for one in fields(value)] if is_dataclass(value) else sorted(vars(value))
    return type(value).__name__, *((name, content(getattr(value, name), leave_out)) for name in names)
