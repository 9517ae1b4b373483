"""Calling the likelihood: what it is given, what it may return, and how each fault is reported."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

import wsabi
from wsabi.errors import LikelihoodError
from wsabi.likelihood import bad_values, evaluator, likelihood_hint
from wsabi.priors.chart import chart

X = np.array([[0.5, 1.0], [-2.0, 3.0], [0.25, -1.0]])
ARRAYS = chart(wsabi.Gaussian([0.0, 0.0]))
NAMED = chart({"amp": stats.norm(0, 2), "tau": (-5.0, 5.0)})


def test_a_scalar_likelihood_gets_one_point_at_a_time() -> None:
    seen: list[tuple[Any, ...]] = []

    def log_l(x: np.ndarray) -> float:
        seen.append((type(x), x.shape, x.dtype))
        return float(x[0] - x[1])

    assert_array_equal(evaluator(log_l, ARRAYS, vectorized=False)(X), X[:, 0] - X[:, 1])
    assert seen == [(np.ndarray, (2,), np.float64)] * 3


def test_a_vectorised_likelihood_gets_all_points_at_once() -> None:
    calls = []

    def log_l(points: np.ndarray) -> Any:
        calls.append(points.shape)
        return points[:, 0] - points[:, 1]

    assert_array_equal(evaluator(log_l, ARRAYS, vectorized=True)(X), X[:, 0] - X[:, 1])
    assert calls == [(3, 2)]


def test_with_a_dict_prior_it_gets_a_dict() -> None:
    seen: list[dict[str, Any]] = []

    def one(p: dict[str, float]) -> float:
        seen.append({name: type(value) for name, value in p.items()})
        return p["amp"] - p["tau"]

    def several(p: dict[str, np.ndarray]) -> Any:
        seen.append({name: value.shape for name, value in p.items()})
        return p["amp"] - p["tau"]

    assert_array_equal(evaluator(one, NAMED, vectorized=False)(X), X[:, 0] - X[:, 1])
    assert_array_equal(evaluator(several, NAMED, vectorized=True)(X), X[:, 0] - X[:, 1])
    assert seen == [{"amp": float, "tau": float}] * 3 + [{"amp": (3,), "tau": (3,)}]


@pytest.mark.parametrize(
    "value", [-1, -1.0, np.float32(-1.0), np.array(-1.0), np.array([-1.0]), [-1.0]], ids=lambda v: type(v).__name__
)
def test_any_single_number_will_do(value: Any) -> None:
    values = evaluator(lambda x: value, ARRAYS, vectorized=False)(X)
    assert_array_equal(values, [-1.0, -1.0, -1.0])
    assert values.dtype == np.float64


def test_minus_infinity_is_a_value() -> None:
    assert_array_equal(evaluator(lambda x: -math.inf, ARRAYS, vectorized=False)(X), [-np.inf] * 3)
    assert bad_values(np.array([0.0, -np.inf, np.nan, np.inf])) == [2, 3]


# -- faults -----------------------------------------------------------------------------------------------------------


def fault(log_l: Callable[..., Any], *, vectorized: bool = False) -> LikelihoodError:
    with pytest.raises(LikelihoodError) as caught:
        evaluator(log_l, ARRAYS, vectorized=vectorized)(X)
    assert caught.value.result is None  # the loop adds it
    return caught.value


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_and_plus_infinity_name_the_point(value: float) -> None:
    error = fault(lambda x: value if x[0] < 0 else 0.0)
    assert_array_equal(error.point, X[1])
    assert f"returned {value} at x = [-2.  3.]" in str(error)
    error = fault(lambda x: np.where(x[:, 0] < 0, value, 0.0), vectorized=True)
    assert_array_equal(error.point, X[1])
    assert f"returned {value} at x = [-2.  3.]" in str(error)


def test_nan_says_what_to_do() -> None:
    message = str(fault(lambda x: math.nan))
    assert "expected a number or −inf. Return -math.inf where the model does not exist" in message
    assert "result of this error holds what was evaluated before" in message


def test_an_exception_is_carried_with_its_point() -> None:
    def log_l(x: np.ndarray) -> float:
        return 1.0 / (0 if x[0] < 0 else 1)

    error = fault(log_l)
    assert_array_equal(error.point, X[1])
    assert "raised ZeroDivisionError at x = [-2.  3.]: float division" in str(error)
    assert isinstance(error.__cause__, ZeroDivisionError)

    def log_ls(points: np.ndarray) -> np.ndarray:
        raise KeyError("tau")

    error = fault(log_ls, vectorized=True)
    assert "raised KeyError for 3 points: 'tau'" in str(error)
    assert isinstance(error.__cause__, KeyError)


def test_wrong_shapes_say_what_was_wanted() -> None:
    assert "returned shape (2,) for one point; expected a float (pass vectorized=True" in str(fault(lambda x: x))
    assert "returned shape (0,) for one point" in str(fault(lambda x: []))
    error = fault(lambda x: x, vectorized=True)
    assert "returned shape (3, 2) for 3 points; expected (3,): one value per row of X." in str(error)
    assert "returned shape () for 3 points" in str(fault(lambda x: 0.0, vectorized=True))


def test_a_forgotten_return_is_named_as_such() -> None:
    """None is not NaN: the message must send the reader to the missing return, not to the arithmetic."""
    assert "returned None" in str(fault(lambda x: None))


@pytest.mark.parametrize("value", [1 + 2j, np.complex128(1 + 2j), "much"])
def test_what_is_not_a_real_number_is_refused_and_not_blamed_on_an_exception(value: Any) -> None:
    """The likelihood did not raise, so the message must not say so; and an imaginary part must not be dropped."""
    message = str(fault(lambda x: value))
    assert "returned" in message
    assert type(value).__name__ in message
    assert "raised" not in message


def test_interrupts_pass_through() -> None:
    """Ctrl-C and sys.exit are no fault of the likelihood."""
    for kind in (KeyboardInterrupt, SystemExit):

        def log_l(x: np.ndarray, kind: type[BaseException] = kind) -> float:
            raise kind

        with pytest.raises(kind):
            evaluator(log_l, ARRAYS, vectorized=False)(X)


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize("space", [ARRAYS, NAMED], ids=["array", "dict"])
def test_a_likelihood_that_works_in_place_harms_nothing(space: Any, vectorized: bool) -> None:
    def log_l(p: Any) -> Any:
        if isinstance(p, dict):
            total = p["amp"] + p["tau"]
            for name in p:
                p[name] *= 0.0
            return total
        total = p.sum(axis=-1)
        p *= 0.0
        return total

    points = X.copy()
    assert_array_equal(evaluator(log_l, space, vectorized=vectorized)(points), X.sum(axis=1))
    assert_array_equal(points, X)


def test_the_error_survives_the_way_home_from_a_worker_process() -> None:
    error = pickle.loads(pickle.dumps(LikelihoodError("no luck", X[1])))
    assert str(error) == "no luck"
    assert_array_equal(error.point, X[1])
    assert error.result is None


def test_what_cannot_be_called_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="log_likelihood must be callable; got float"):
        evaluator(3.0, ARRAYS, vectorized=False)  # type: ignore[arg-type]


# -- hints ------------------------------------------------------------------------------------------------------------


def total(a: Any, b: Any) -> Any:
    return a + b


def raised(log_l: Callable[..., Any], space: Any, *, vectorized: bool) -> str:
    with pytest.raises(LikelihoodError) as caught:
        evaluator(log_l, space, vectorized=vectorized)(X)
    return str(caught.value)


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize(
    "log_l",
    [
        lambda x: x[0],
        lambda x: x[:, 0],
        lambda x: -0.5 * np.sum((x - 1.0) ** 2),
        lambda x: x @ x,
        lambda x: np.exp(x),
        lambda x: np.asarray(x, dtype=float),
        lambda x: x.sum(),
        lambda x: math.fsum(v * v for v in x),
        lambda x: (lambda a, b: a - b)(*x),
        lambda x: (lambda a, b: np.square(a) - b)(*x),
    ],
)  # fmt: skip
def test_a_dict_taken_for_an_array_is_told(log_l: Any, vectorized: bool) -> None:
    message = raised(log_l, NAMED, vectorized=vectorized)
    assert "log_likelihood received a dict with keys 'amp', 'tau', because the prior is a dict" in message
    assert "wsabi.Independent(**prior), or as a list" in message


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize("log_l", [lambda p: p["amp"], lambda p: p.amp, lambda p: dict(**p), lambda p: p.items()])
def test_an_array_taken_for_a_dict_is_told(log_l: Any, vectorized: bool) -> None:
    message = raised(log_l, ARRAYS, vectorized=vectorized)
    assert f"log_likelihood received an array of shape {'(3, 2)' if vectorized else '(2,)'}. To get a dict" in message


def test_a_wrong_key_is_answered_with_the_keys() -> None:
    message = raised(lambda p: p["Amp"], NAMED, vectorized=False)
    assert message.endswith("log_likelihood received a dict with keys 'amp', 'tau'.")


def test_a_function_of_several_arguments_is_told_how_to_be_wrapped() -> None:
    assert "write lambda x: f(*x)." in raised(total, ARRAYS, vectorized=False)
    assert "write lambda p: f(**p)." in raised(total, NAMED, vectorized=False)


@pytest.mark.parametrize("space", [ARRAYS, NAMED], ids=["array", "dict"])
@pytest.mark.parametrize(
    "error", [ValueError("dict"), KeyError("amp"), IndexError("index 5 is out of bounds"), TypeError("no number")]
)
def test_other_faults_get_no_hint(space: Any, error: Exception) -> None:
    def log_l(p: Any) -> float:
        raise error

    assert "received" not in raised(log_l, space, vectorized=False)


def test_there_is_no_hint_once_a_call_has_returned() -> None:
    """The argument is then of the right kind, and the KeyError has another cause."""

    def log_l(p: dict[str, float]) -> float:
        return {0.5: 1.0}[p["amp"]]

    message = raised(log_l, NAMED, vectorized=False)
    assert "raised KeyError at x = [-2.  3.]: -2.0" in message
    assert "received" not in message


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(20), np.full(20, 0.5), np.linspace(-0.01, 1.0, 20), np.linspace(0.0, 1.01, 20),
        np.linspace(0.1, 0.9, 7), np.full(20, -np.inf), np.empty(0), np.concatenate([np.full(20, -np.inf), [0.2, 0.4]]),
    ],
)  # fmt: skip
def test_log_likelihoods_are_not_taken_for_likelihoods(values: np.ndarray) -> None:
    assert likelihood_hint(values) is None


def test_likelihoods_are_recognised() -> None:
    values = stats.norm.pdf(np.linspace(-4.0, 4.0, 12))
    text = likelihood_hint(np.append(values, -np.inf))
    assert text is not None
    assert text.startswith("all 12 values of log_likelihood lie between 0 and 1: it must return log ℓ, not ℓ.")
    assert likelihood_hint(values, least=13) is None
