"""The surrogate of log ℓ is the textbook GP of its kernel, learns by a right gradient, and is exact on quadratics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from wsabi.adaptive.surrogate import model as log_surrogate
from wsabi.adaptive.surrogate.model import LogSurrogate, Theta, Trend, fit_log_surrogate
from wsabi.adaptive.tuning import TUNING, tuned
from wsabi.errors import NumericalError

TEMPERATURE = 3.0
OFFSET, SLOPE = TUNING.surrogate.offset_sd, TUNING.surrogate.slope_sd
without_jitter = tuned("surrogate", jitter=0.0)  # which follows the mean diagonal of what is factored at once


def a_theta(dim: int) -> Theta:
    """All different, so that no swapped pair passes; from three dimensions on with two interactions."""
    lengths, d = np.log(1.7 * 0.8 ** np.arange(dim)), np.arange(dim)
    sides = np.array([np.log(1.3 * 1.2**d), np.log(0.6 * 1.3**d), 0.4 - 0.3 * d, np.log(2.0 * 1.1**d)])
    both = np.stack([sides, 0.7 * sides + 0.1])[: 2 if dim >= 3 else 0]
    return Theta(lengths, both, np.log([2.5, 0.8, 1.9, 1.4][: 2 + len(both)]))


def a_turn(dim: int) -> np.ndarray | None:
    """A matrix that is neither symmetric nor orthogonal; None below three dimensions."""
    return np.eye(dim) + 0.3 * np.random.default_rng(77).standard_normal((dim, dim)) if dim >= 3 else None


def dense_interactions(u: np.ndarray, v: np.ndarray, sides: np.ndarray) -> float:
    """The product over parameters, each on its bent axis, written out."""
    h, a, s = np.exp(sides[[0, 1, 3]])
    p = 1.0
    for d in range(len(u)):
        there, here = (s[d] / h[d] * math.tanh((x[d] - sides[2, d]) / s[d]) for x in (u, v))
        p *= (1.0 + a[d] / (1.0 + (there - here) ** 2)) / (1.0 + a[d])
    return p


def dense_kernel(P: np.ndarray, Q: np.ndarray, theta: Theta, temperature: float) -> np.ndarray:
    """k(p, q) of the docstring, one pair at a time."""
    lengths, (scale, curvature, *sigmas) = np.exp(theta.lengths), np.exp(theta.scales)
    turn = a_turn(P.shape[1])
    k = np.empty((len(P), len(Q)))
    for i, p in enumerate(P):
        for j, q in enumerate(Q):
            gap, inner = p - q, float(p @ q)
            k[i, j] = (
                temperature**2 * (TUNING.surrogate.offset_sd**2 + TUNING.surrogate.slope_sd**2 * inner)
                + 0.25 * curvature**2 * inner**2
            )
            k[i, j] += scale**2 * math.exp(-0.5 * sum((gap[d] / lengths[d]) ** 2 for d in range(len(gap))))
            for sigma, sides in zip(sigmas, theta.sides, strict=True):
                k[i, j] += sigma**2 * dense_interactions(turn @ p, turn @ q, sides)  # type: ignore[operator]
    return k


def dense_covariance(Y: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Kernel matrix of the data, with noise and the relative jitter."""
    K = dense_kernel(Y, Y, a_theta(Y.shape[1]), TEMPERATURE)
    return K + np.diag(noise) + TUNING.surrogate.jitter * np.mean(np.diag(K)) * np.eye(len(Y))


def data(dim: int, n: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(dim)
    Y = rng.standard_normal((n, dim))
    return Y, np.sin(Y.sum(axis=1)) - np.square(Y).sum(axis=1), rng.uniform(0.05, 0.5, n)


def fitted(dim: int) -> tuple[LogSurrogate, np.ndarray, np.ndarray, np.ndarray]:
    Y, values, noise = data(dim)
    surrogate = fit_log_surrogate(
        Y, values, noise, temperature=TEMPERATURE, turn=a_turn(dim), n_interactions=2, theta=a_theta(dim), learn=False
    )
    return surrogate, Y, values, noise


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_prediction_is_that_of_the_textbook_gp(dim: int) -> None:
    """m = kᵀK⁻¹y and v = k(p, p) − kᵀK⁻¹k by dense inverses; 1e-8 is the conditioning (1e4) times ε, with room."""
    surrogate, Y, values, noise = fitted(dim)
    P = 1.5 * np.random.default_rng(9).standard_normal((20, dim))
    inverse = np.linalg.inv(dense_covariance(Y, noise))
    k = dense_kernel(P, Y, a_theta(dim), TEMPERATURE)
    mean, variance = surrogate.predict(P)
    assert_allclose(mean, k @ inverse @ values, rtol=1e-8, atol=1e-8)
    prior = np.diag(dense_kernel(P, P, a_theta(dim), TEMPERATURE))
    assert_allclose(variance, prior - np.einsum("mn,nk,mk->m", k, inverse, k), rtol=1e-7, atol=1e-7)
    assert_array_equal(surrogate.mean(P), mean)


@pytest.mark.parametrize("dim", [1, 4])
def test_the_kernel_is_the_same_in_blocks(dim: int) -> None:
    surrogate, Y, _, _ = fitted(dim)
    P = np.random.default_rng(3).standard_normal((23, dim))
    whole = surrogate.predict(P)
    with tuned("surrogate", block=2 * len(Y) + 1):  # two rows at a time, and one left over
        assert_allclose(surrogate.predict(P), whole, rtol=1e-12, atol=1e-12)


# -- more data, and without some of them ------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 4])
@without_jitter
def test_more_data_are_as_good_as_all_at_once(dim: int) -> None:
    surrogate, Y, values, noise = fitted(dim)
    P = np.random.default_rng(3).standard_normal((15, dim))
    first = fit_log_surrogate(
        Y[:7],
        values[:7],
        noise[:7],
        temperature=TEMPERATURE,
        turn=a_turn(dim),
        n_interactions=2,
        theta=a_theta(dim),
        learn=False,
    )
    longer = first.extended(Y[7:9], values[7:9], noise[7:9]).extended(Y[9:], values[9:], noise[9:])
    assert_allclose(longer.L, surrogate.L, rtol=1e-9, atol=1e-9)
    assert_allclose(longer.weights, surrogate.weights, rtol=1e-8, atol=1e-8)
    assert_allclose(longer.predict(P), surrogate.predict(P), rtol=1e-8, atol=1e-8)
    assert_allclose(first.predict(P)[0], first.mean(P), rtol=1e-12)  # and the first is as it was


@pytest.mark.parametrize("dim", [1, 4])
@without_jitter
def test_covariances_say_what_one_more_datum_leaves_of_the_variances(dim: int) -> None:
    """C(s, s) − C(p, s)²/(C(p, p) + noise) is the variance of a surrogate that has been told, whatever the value is."""
    surrogate, *_ = fitted(dim)
    P = np.random.default_rng(3).standard_normal((9, dim))
    mean, variance, covariances = surrogate.covariances(P, 4)
    assert_allclose((mean, variance), surrogate.predict(P), rtol=1e-12)
    assert_allclose(np.diagonal(covariances[5:]), variance[5:], rtol=1e-9, atol=1e-9)
    for p, v, row in zip(P, variance, covariances, strict=True):
        told = surrogate.extended(p[None], np.array([7.0]), np.array([0.2]))
        assert_allclose(variance[5:] - np.square(row) / (v + 0.2), told.predict(P[5:])[1], rtol=1e-8, atol=1e-8)


@without_jitter
def test_a_datum_given_twice_without_noise_is_a_numerical_error() -> None:
    surrogate, Y, values, _ = fitted(3)
    with pytest.raises(NumericalError):
        surrogate.extended(np.repeat(Y[:1] + 0.1, 2, axis=0), np.repeat(values[:1], 2), np.full(2, -1e-9))


@pytest.mark.parametrize("dim", [1, 2, 4])
@without_jitter
def test_predictions_without_some_data_are_those_of_a_fit_without_them(dim: int) -> None:
    """Each group of the last eight rows, of one, two, three and no rows, at points elsewhere and at the data."""
    surrogate, Y, values, noise = fitted(dim)
    P = np.concatenate([np.random.default_rng(3).standard_normal((9, dim)), Y])
    groups = [np.array(rows, dtype=np.intp) for rows in ([2], [7, 0], [1, 5, 6], [])]
    means, variances = surrogate.predict_without(P, groups, 8)
    for rows, mean, variance in zip(groups, means, variances, strict=True):
        kept = np.setdiff1d(np.arange(len(Y)), len(Y) - 8 + rows)
        without = fit_log_surrogate(
            Y[kept],
            values[kept],
            noise[kept],
            temperature=TEMPERATURE,
            turn=a_turn(dim),
            n_interactions=2,
            theta=a_theta(dim),
            learn=False,
        )
        assert_allclose((mean, variance), without.predict(P), rtol=1e-8, atol=1e-8)


def test_without_any_last_data_there_is_nothing_to_leave_out() -> None:
    surrogate, Y, _, _ = fitted(2)
    none = np.empty(0, dtype=np.intp)
    means, variances = surrogate.predict_without(Y + 0.3, [none, none], 0)
    assert_array_equal(means, np.stack(2 * [surrogate.predict(Y + 0.3)[0]]))
    assert_array_equal(variances, np.stack(2 * [surrogate.predict(Y + 0.3)[1]]))


@pytest.mark.parametrize("dim", [1, 3])
def test_objective_is_the_log_evidence_and_the_prior(dim: int) -> None:
    """−log N(y; 0, K) − log p(θ), up to constants that θ does not enter."""
    _, Y, values, noise = fitted(dim)
    bundle = _bundle(Y, values, noise)
    evidence = stats.multivariate_normal(np.zeros(len(Y)), dense_covariance(Y, noise)).logpdf(values)
    sds = log_surrogate._prior_sds(bundle)
    theta = a_theta(dim).vector
    prior = stats.norm(bundle.theta_mean.vector, sds).logpdf(theta).sum()
    constants = 0.5 * (len(Y) + len(theta)) * math.log(2 * math.pi) + np.log(sds).sum()
    assert_allclose(log_surrogate._objective(bundle, theta)[0], -(evidence + prior + constants), rtol=1e-9)


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("shift", [0.0, 1.0, -1.5])
@without_jitter
def test_gradient_of_the_objective(dim: int, shift: float) -> None:
    """Central differences: h² + ε·|f|/h at h = 1e-5 leaves 1e-8; a lost factor of two or a missing term is far more.

    Without jitter, which follows the mean diagonal and so θ: its slope, some 1e-5, is left out of the gradient.
    """
    Y, values, noise = data(dim)
    bundle, theta = _bundle(Y, values, noise), a_theta(dim).vector + shift
    h = 1e-5
    finite = [
        (log_surrogate._objective(bundle, theta + h * e)[0] - log_surrogate._objective(bundle, theta - h * e)[0])
        / (2 * h)
        for e in np.eye(len(theta))
    ]
    assert_allclose(log_surrogate._objective(bundle, theta)[1], finite, rtol=1e-6, atol=1e-7 * np.max(np.abs(finite)))


def _bundle(
    Y: np.ndarray, values: np.ndarray, noise: np.ndarray, temperature: float = TEMPERATURE
) -> log_surrogate._Data:
    return log_surrogate._Data.of(Y, values, noise, temperature, a_turn(Y.shape[1]), 2)


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_a_quadratic_is_recovered_far_from_its_data(dim: int) -> None:
    """With (D + 1)(D + 2)/2 + 3 points a full quadratic is known everywhere, to the 1e-3 of its noise.

    Without the quadratic part of the kernel the prediction at |y| = 6 would be back near zero: off by tens of nats.
    """
    rng = np.random.default_rng(dim)
    A = rng.standard_normal((dim, dim))
    b = rng.standard_normal(dim)

    def f(Y: np.ndarray) -> np.ndarray:
        return np.asarray(-0.5 * np.square(Y @ A).sum(axis=1) + Y @ b)

    Y = rng.standard_normal(((dim + 1) * (dim + 2) // 2 + 3, dim))
    noise = np.full(len(Y), 1e-6)
    surrogate = fit_log_surrogate(Y, f(Y), noise, temperature=1.0)
    P = rng.standard_normal((50, dim))
    P *= 6.0 / np.linalg.norm(P, axis=1, keepdims=True)
    mean, variance = surrogate.predict(P)
    assert np.max(np.abs(mean - f(P))) < 0.05 * np.max(np.abs(f(P)))
    z = np.abs(mean - f(P)) / np.sqrt(variance)
    assert np.max(z) < 6.0  # and what is left of the error is in the variance


def test_learning_does_not_lower_the_objective_it_started_from() -> None:
    Y, values, noise = data(3, n=40)
    bundle = _bundle(Y, values, noise)

    def learnt_from(theta: Theta | None) -> np.ndarray:
        options = {"turn": a_turn(3), "n_interactions": 2, "theta": theta}
        return fit_log_surrogate(Y, values, noise, temperature=TEMPERATURE, **options).theta.vector

    def objective(vector: np.ndarray) -> float:
        return log_surrogate._objective(bundle, vector)[0]

    centre = bundle.theta_mean
    learnt = learnt_from(None)
    assert objective(learnt) < objective(centre.vector)
    assert objective(learnt_from(centre.like(learnt))) - objective(learnt) <= 1e-9
    reach = log_surrogate._reaches(bundle)
    wild = learnt_from(centre.like(centre.vector + 50.0))
    assert np.all(np.abs(wild - centre.vector) <= reach)


def test_a_common_unit_of_values_and_temperature_scales_out() -> None:
    """10 × the values at 10 × the temperature is the same surrogate in another unit, and as likely a θ."""
    Y, values, noise = data(2)
    unit = np.log([1.0, 1.0, 10.0, 10.0])
    theta = a_theta(2)
    vector = theta.vector
    ones = _bundle(Y, values, noise, 1.0)
    tens = _bundle(Y, 10.0 * values, 100.0 * noise, 10.0)
    (value, slope), (value_10, slope_10) = (
        log_surrogate._objective(bundle, vector + shift) for bundle, shift in ((ones, 0.0 * unit), (tens, unit))
    )
    assert_allclose(value_10 - value, len(Y) * math.log(10.0), rtol=1e-9)
    assert_allclose(slope_10, slope, rtol=1e-7, atol=1e-8)
    one = fit_log_surrogate(Y, values, noise, temperature=1.0, theta=theta, learn=False)
    ten = fit_log_surrogate(Y, 10.0 * values, 100.0 * noise, temperature=10.0, theta=theta.heated(10.0), learn=False)
    P = np.random.default_rng(0).standard_normal((5, 2))
    assert_allclose(ten.predict(P)[0], 10.0 * one.predict(P)[0], rtol=1e-8)
    assert_allclose(ten.predict(P)[1], 100.0 * one.predict(P)[1], rtol=1e-8)
    # Learnt, they differ by where the search stops, at 1e-5 of an objective that is another number in another unit.
    one = fit_log_surrogate(Y, values, noise, temperature=1.0)
    ten = fit_log_surrogate(Y, 10.0 * values, 100.0 * noise, temperature=10.0)
    assert_allclose(ten.theta.vector - one.theta.vector, unit, atol=0.02)
    assert_allclose(ten.predict(P)[0], 10.0 * one.predict(P)[0], rtol=1e-2)


@pytest.mark.parametrize("relevant", [0, 1])
def test_an_axis_that_does_not_matter_has_a_long_length_scale(relevant: int) -> None:
    """sin 3y of one coordinate: its length-scale falls below the prior's centre, the other's rises, over a factor e."""
    rng = np.random.default_rng(5)
    Y = rng.standard_normal((40, 2))
    values = 3.0 * np.sin(3.0 * Y[:, relevant])
    surrogate = fit_log_surrogate(Y, values, np.full(40, 1e-6), temperature=1.0)
    centre = _bundle(Y, values, np.full(40, 1e-6), 1.0).theta_mean.lengths
    lengths = surrogate.theta.lengths
    assert lengths[relevant] < centre[relevant]
    assert lengths[1 - relevant] > centre[1 - relevant]
    assert lengths[1 - relevant] - lengths[relevant] > 1.0
    # And that is what makes it right off the data: along the idle axis nothing changes.
    P = np.repeat(rng.uniform(-1.0, 1.0, (20, 1)), 2, axis=1)
    P[:, 1 - relevant] = 2.0
    mean, _ = surrogate.predict(P)
    assert np.sqrt(np.mean(np.square(mean - 3.0 * np.sin(3.0 * P[:, relevant])))) < 0.3  # of values with an sd of two


def test_variance_is_never_below_its_floor_and_shrinks_at_data() -> None:
    surrogate, Y, _, noise = fitted(2)
    _, at_data = surrogate.predict(Y)
    _, away = surrogate.predict(Y + 10.0)
    assert np.all(at_data >= 1e-8)
    assert np.all(at_data < noise)  # the posterior of a function seen with noise s² is surer than s²
    assert np.all(away > 10.0)


def test_values_that_are_not_numbers_are_a_numerical_error() -> None:
    Y, values, noise = data(2)
    Y[3, 0] = math.nan
    with pytest.raises(NumericalError, match="not positive definite"):
        fit_log_surrogate(Y, values, noise, temperature=1.0, theta=a_theta(2), learn=False)


def test_a_sum_of_functions_of_pairs_is_learnt_from_few_points() -> None:
    """Five parameters, steps of single ones and products of two: 120 points, judged at 500 others.

    The squared exponential alone has to learn each corner by itself; with the interactions less than half of its mean
    square error is left, and the variance knows: the standardised errors are of size one.
    """
    rng = np.random.default_rng(3)

    def f(Y: np.ndarray) -> np.ndarray:
        step = np.tanh(2.0 * Y)
        return np.asarray(2.0 * step[:, 0] + step[:, 1] * np.cos(Y[:, 2]) - np.cos(2.0 * Y[:, 3]))

    Y, P = rng.standard_normal((120, 5)), rng.standard_normal((500, 5))
    noise = np.full(len(Y), 1e-6)
    plain = fit_log_surrogate(Y, f(Y), noise, temperature=1.0)
    paired = fit_log_surrogate(Y, f(Y), noise, temperature=1.0, turn=np.eye(5))
    error = {name: s.predict(P)[0] - f(P) for name, s in (("plain", plain), ("paired", paired))}
    assert np.mean(np.square(error["paired"])) < 0.5 * np.mean(np.square(error["plain"]))
    assert 0.5 < np.sqrt(np.mean(np.square(error["paired"]) / paired.predict(P)[1])) < 1.5


def test_a_second_interaction_learns_what_changes_faster() -> None:
    """Steps with ripples on them, along the same parameters: half the mean square error, in the middle of four sets."""

    def f(Y: np.ndarray) -> np.ndarray:
        steps = 3.0 * np.tanh(Y[:, 0]) + 2.0 * np.tanh(Y[:, 1] - 0.5) * np.tanh(Y[:, 2])
        return np.asarray(steps + np.cos(5.0 * Y[:, 0]) + 0.7 * np.sin(5.0 * Y[:, 1]))

    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        Y, P = rng.standard_normal((150, 4)), rng.standard_normal((500, 4))
        options = {"temperature": 1.0, "turn": np.eye(4), "steps": 60}
        one, two = (
            fit_log_surrogate(Y, f(Y), np.full(len(Y), 1e-6), n_interactions=n, **options).mean(P) - f(P)
            for n in (1, 2)
        )
        ratios.append(np.mean(np.square(two)) / np.mean(np.square(one)))
    assert np.median(ratios) < 0.5


def test_theta_is_carried_over_when_interactions_come_and_go() -> None:
    """The part that both kernels have is kept; what is new starts at the centre of its prior."""
    Y, values, noise = data(3)
    with_all, centre = a_theta(3), _bundle(Y, values, noise).theta_mean
    without = fit_log_surrogate(Y, values, noise, temperature=TEMPERATURE, theta=with_all, learn=False).theta
    assert_array_equal(without.vector, np.append(with_all.lengths, with_all.scales[:2]))
    for n in (1, 2):
        options = {"turn": a_turn(3), "n_interactions": n, "learn": False}
        again = fit_log_surrogate(Y, values, noise, temperature=TEMPERATURE, theta=without, **options).theta
        expected = [with_all.lengths, centre.sides[:n].ravel(), with_all.scales[:2], centre.scales[2 : 2 + n]]
        assert_array_equal(again.vector, np.concatenate(expected))
        fewer = fit_log_surrogate(Y, values, noise, temperature=TEMPERATURE, theta=with_all, **options).theta
        expected = [with_all.lengths, with_all.sides[:n].ravel(), with_all.scales[: 2 + n]]
        assert_array_equal(fewer.vector, np.concatenate(expected))


def test_a_trend_is_the_prior_mean() -> None:
    """The same as a surrogate of the values less the trend, with the trend added; also with data that join later."""
    dim = 3
    Y, values, noise = data(dim)
    rng = np.random.default_rng(9)
    curvature = rng.standard_normal((dim, dim))
    trend = Trend(0.7, rng.standard_normal(dim), curvature @ curvature.T)
    arguments = {"temperature": TEMPERATURE, "turn": a_turn(dim), "n_interactions": 2, "theta": a_theta(dim)}
    P = rng.standard_normal((5, dim))
    expected = [0.7 + p @ trend.slope - 0.5 * p @ trend.curvature @ p for p in P]
    assert_allclose(trend(P), expected)
    first = fit_log_surrogate(Y[:8], values[:8], noise[:8], learn=False, trend=trend, **arguments)
    with_trend = first.extended(Y[8:], values[8:], noise[8:])
    rest = fit_log_surrogate(Y[:8], values[:8] - trend(Y[:8]), noise[:8], learn=False, **arguments)
    without = rest.extended(Y[8:], values[8:] - trend(Y[8:]), noise[8:])
    mean, variance = with_trend.predict(P)
    assert_allclose(mean, without.predict(P)[0] + expected)
    assert_allclose(with_trend.mean(P), mean)
    assert_array_equal(variance, without.predict(P)[1])
    groups = [np.array([0]), np.array([1, 3])]
    means, _ = with_trend.predict_without(P, groups, 4)
    assert_allclose(means, without.predict_without(P, groups, 4)[0] + expected)
