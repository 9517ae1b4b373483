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
from wsabi.charts import chart
from wsabi.evaluate import LikelihoodError, bad_values, evaluator

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
