"""Everyday models whose likelihood hides modes: fourteen problems with known log Z and known modes, in two halves.

The first half, DEVELOPMENT, may be looked at while the engine is changed. The second, UNSEEN, is for one look at the
end. The halves were named before the engine was run on any of the problems. Data are synthetic; a likelihood takes well
below a millisecond.

`benchmarks/hidden_modes.json` has log Z, made in two ways, and the modes of ℓπ in coordinates where the prior is
N(0, I): position, log ℓπ, covariance, share of Z, and the share of single-draw local ascents that end there. It is made
by `python -m benchmarks.study_hidden_truths --write`. What the engine does is shown by
`python -m benchmarks.study_hidden_modes`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
from scipy import stats

from benchmarks.held_out import _normal
from benchmarks.stored_modes import stored
from wsabi import Independent
from wsabi._core.types import Array
from wsabi.priors import Measure
from wsabi.problems import Problem


def _problem(name: str, prior: Independent, log_l: Callable[..., Array], text: str, **data: Any) -> Problem:
    """The problem ``name`` with its stored truth, NaN where there is none yet."""
    truth = stored().get(name, {})
    log_z, std = truth.get("log_z", math.nan), truth.get("log_z_std", math.nan)
    reference = f"python -m benchmarks.study_hidden_truths {name}"
    return Problem(name, cast("Measure", prior), partial(log_l, **data), log_z, std, text, reference)


# ---- for development


def orbit_signal(period: Array, t: Array) -> tuple[Array, Array]:
    """sin and cos of 2πt/P, (N, n) each, for periods (N,)."""
    phase = 2.0 * np.pi * t / period[:, None]
    return np.sin(phase), np.cos(phase)


def _velocities(X: Array, *, t: Array, y: Array, sd: float) -> Array:
    period, amplitude, phase, offset = X.T[:, :, None]
    return _normal(y - offset - amplitude * np.sin(2.0 * np.pi * t / period + phase), sd)


def velocities() -> Problem:
    """A circular orbit in 13 nightly radial velocities: other periods, aliases of the day, fit nearly as well."""
    rng = np.random.default_rng(201)
    t = np.sort(rng.choice(40, 13, replace=False)) + 0.12 * rng.standard_normal(13)
    y = 1.0 + 4.5 * np.sin(2.0 * np.pi * t / 5.3 + 0.7) + 2.0 * rng.standard_normal(13)
    prior = Independent(
        period=stats.loguniform(1.15, 40.0), amplitude=stats.rayleigh(scale=4.0), phase=(0.0, 2.0 * np.pi),
        offset=stats.norm(0.0, 5.0),
    )  # fmt: skip
    return _problem("velocities", prior, _velocities, "period of an orbit", t=t, y=y, sd=2.0)


def intermediate(first: Array, second: Array, t: Array) -> Array:
    """k₁(e^(−k₁t) − e^(−k₂t))/(k₂ − k₁), (N, n): the amount of B in A → B → C, for rates (N,)."""
    k1, k2 = first[:, None], second[:, None]
    d = np.maximum(np.abs(k2 - k1) * t, 1e-9)  # of equal rates: (1 − e^−d)/d is 1 there
    return np.asarray(k1 * t * np.exp(-np.minimum(k1, k2) * t) * -np.expm1(-d) / d)


def _kinetics(X: Array, *, t: Array, y: Array) -> Array:
    return _normal(y - X[:, 2:3] * intermediate(X[:, 0], X[:, 1], t), X[:, 3:])


def kinetics() -> Problem:
    """A → B → C with only B observed: the rates can be exchanged if the yield makes up for it."""
    rng = np.random.default_rng(202)
    t = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.5, 8.0, 10.0, 13.0, 16.0])
    y = 1.1 * intermediate(np.array([0.7]), np.array([0.25]), t)[0] + 0.02 * rng.standard_normal(12)
    prior = Independent(
        formation=stats.lognorm(s=1.0, scale=0.5), decay=stats.lognorm(s=1.0, scale=0.3),
        amount=stats.norm(1.5, 0.8), noise=stats.lognorm(s=0.7, scale=0.04),
    )  # fmt: skip
    return _problem("kinetics", prior, _kinetics, "two consecutive reactions", t=t, y=y)


def _two_states(X: Array, *, y: Array) -> Array:
    """The forward algorithm; densities are scaled as it goes, so that nothing underflows."""
    low, high, sd_low, sd_high, stay_low, stay_high = X.T
    log_low = -0.5 * np.square((y[:, None] - low) / sd_low) - np.log(sd_low)  # (T, N)
    log_high = -0.5 * np.square((y[:, None] - high) / sd_high) - np.log(sd_high)
    top = np.maximum(log_low, log_high)
    e_low, e_high = np.exp(log_low - top), np.exp(log_high - top)
    a, b = 0.5 * e_low[0], 0.5 * e_high[0]
    log_l = top.sum(axis=0) - 0.5 * len(y) * math.log(2.0 * math.pi)
    for k in range(1, len(y)):
        a, b = (a * stay_low + b * (1.0 - stay_high)) * e_low[k], (a * (1.0 - stay_low) + b * stay_high) * e_high[k]
        if k % 8 == 0 or k == len(y) - 1:
            total = np.maximum(a + b, 1e-300)
            a, b, log_l = a / total, b / total, log_l + np.log(total)
    return np.asarray(log_l)


def two_states() -> Problem:
    """A hidden Markov model of two states on a record that has three levels: which two of them are one state?"""
    rng = np.random.default_rng(202)
    path = np.repeat([0, 1, 2, 1, 0, 2, 0, 1, 2], [6, 4, 5, 4, 5, 6, 5, 4, 5])
    y = np.array([-1.4, 0.4, 2.2])[path] + np.array([0.3, 0.4, 0.3])[path] * rng.standard_normal(len(path))
    sd, stay = stats.lognorm(s=0.6, scale=0.6), stats.beta(5.0, 2.0)
    prior = Independent(
        low=stats.norm(-0.5, 1.5), high=stats.norm(1.0, 1.5), sd_low=sd, sd_high=sd, stay_low=stay, stay_high=stay
    )
    return _problem("two_states", prior, _two_states, "hidden Markov model of two states", y=y)


def _network(X: Array, *, x: Array, y: Array, sd: float) -> Array:
    w1, b1, v1, w2, b2, v2, c = X.T[:, :, None]
    return _normal(y - c - v1 * np.tanh(w1 * x + b1) - v2 * np.tanh(w2 * x + b2), sd)


def network() -> Problem:
    """A neural network with two hidden units: units can be exchanged, and each reversed, which makes eight images."""
    rng = np.random.default_rng(204)
    x = np.linspace(-2.0, 2.0, 18)
    y = 0.2 + 1.3 * np.tanh(2.5 * x + 1.5) - 1.0 * np.tanh(1.8 * x - 2.0) + 0.2 * rng.standard_normal(18)
    units = {f"{name}{k}": stats.norm(0.0, sd) for k in (1, 2) for name, sd in (("w", 2.0), ("b", 2.0), ("v", 1.5))}
    prior = Independent(**units, c=stats.norm(0.0, 1.0))
    return _problem("network", prior, _network, "neural network with two hidden units", x=x, y=y, sd=0.2)


def log_distances(places: Array, sensors: Array) -> Array:
    """log₁₀ of the distances of (N, 2) places from (n, 2) sensors, (N, n); a tenth of a unit is the least."""
    squares = np.square(places[:, None, :] - sensors).sum(axis=2)
    return np.asarray(0.5 * np.log10(np.maximum(squares, 0.01)))


def _source(X: Array, *, sensors: Array, y: Array, sd: float) -> Array:
    return _normal(y - X[:, 2:3] + 10.0 * X[:, 3:] * log_distances(X[:, :2], sensors), sd)


def source() -> Problem:
    """A transmitter placed by its strength at eight sensors along a road: on this side of the road, or on the other?"""
    rng = np.random.default_rng(205)
    sensors = np.column_stack([np.linspace(-7.0, 7.0, 8), 0.25 * rng.standard_normal(8)])
    distances = log_distances(np.array([[1.5, 3.5]]), sensors)[0]
    y = 40.0 - 25.0 * distances + 1.5 * rng.standard_normal(8)
    prior = Independent(
        east=(-10.0, 10.0), north=(-10.0, 10.0), level=stats.norm(35.0, 10.0), exponent=stats.norm(2.5, 0.4)
    )
    return _problem("source", prior, _source, "place of a transmitter", sensors=sensors, y=y, sd=1.5)


def _length_scales(X: Array, *, squares: Array, y: Array) -> Array:
    """log N(y; 0, K) with K = s² exp(−½Σ_d Δ_d²/h_d²) + σ²I for X (N, 4) = (h₁, h₂, s, σ)."""
    kernel = np.exp(-0.5 * np.einsum("nd,dij->nij", 1.0 / np.square(X[:, :2]), squares))
    K = np.square(X[:, 2])[:, None, None] * kernel + np.square(X[:, 3])[:, None, None] * np.eye(len(y))
    L = np.linalg.cholesky(K)
    white = np.linalg.solve(L, np.broadcast_to(y[:, None], (len(X), len(y), 1)))[:, :, 0]
    log_det = np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
    return np.asarray(-0.5 * np.square(white).sum(axis=1) - log_det - 0.5 * len(y) * math.log(2.0 * math.pi))


def length_scales() -> Problem:
    """A Gaussian process of two inputs: is y rough in the first, rough in the second, or mostly noise?"""
    rng = np.random.default_rng(205)
    P = rng.uniform(0.0, 4.0, (12, 2))
    y = np.sin(2.0 * P[:, 0]) + np.sin(2.0 * P[:, 1]) + 0.2 * rng.standard_normal(12)
    squares = np.square(P.T[:, :, None] - P.T[:, None, :])
    length = stats.lognorm(s=1.3, scale=1.5)
    prior = Independent(
        length1=length, length2=length, amplitude=stats.lognorm(s=0.7, scale=1.0),
        noise=stats.lognorm(s=1.2, scale=0.2),
    )  # fmt: skip
    return _problem("length_scales", prior, _length_scales, "length-scales of a Gaussian process", squares=squares, y=y)


def _outliers(X: Array, *, x: Array, y: Array) -> Array:
    level, slope, scale = X.T[:, :, None]
    z = (y - level - slope * x) / scale
    return np.asarray((-np.log(np.pi * scale) - np.log1p(np.square(z))).sum(axis=1))


def outliers() -> Problem:
    """A line with Cauchy noise through three groups of points: any may be the line, and the others outliers."""
    rng = np.random.default_rng(204)
    x = rng.uniform(-1.0, 1.0, 26)
    group = np.repeat([0, 1, 2], [10, 9, 7])
    y = np.array([0.5, 3.0, -2.0])[group] + np.array([1.5, -1.0, 0.3])[group] * x + 0.1 * rng.standard_normal(26)
    prior = Independent(level=stats.norm(1.0, 3.0), slope=stats.norm(0.0, 2.0), scale=stats.lognorm(s=0.4, scale=0.1))
    return _problem("outliers", prior, _outliers, "line with Cauchy noise", x=x, y=y)


# ---- for one look at the end


def steering(directions: Array, antennas: Array) -> tuple[Array, Array]:
    """cos and sin of the phases 2π r·n, (N, n) each, of (N, 2) directions at (n, 2) antennas, in wavelengths."""
    phase = 2.0 * np.pi * directions @ antennas.T
    return np.cos(phase), np.sin(phase)


def _antennas(X: Array, *, antennas: Array, y: Array, sd: float) -> Array:
    cos, sin = steering(X[:, :2], antennas)
    re, im = X[:, 2:3], X[:, 3:]
    return _normal(y - np.hstack([re * cos - im * sin, re * sin + im * cos]), sd)


def antennas() -> Problem:
    """The direction of a signal at six antennas that are wavelengths apart: side lobes are as high as the main one."""
    rng = np.random.default_rng(208)
    places = np.array([[0.0, 0.0], [1.1, 0.2], [0.3, 1.4], [-1.2, 0.9], [0.4, -1.0], [1.5, 1.6]])
    cos, sin = steering(np.array([[0.35, -0.2]]), places)
    clean = np.hstack([0.9 * cos + 0.4 * sin, 0.9 * sin - 0.4 * cos])[0]
    y = clean + 0.45 * rng.standard_normal(12)
    part = stats.norm(0.0, 1.0)
    prior = Independent(east=(-1.0, 1.0), north=(-1.0, 1.0), real=part, imaginary=part)
    return _problem("antennas", prior, _antennas, "direction of a signal", antennas=places, y=y, sd=0.45)


def _lifetimes(X: Array, *, times: Array, censored: float, limit: float) -> Array:
    share, first, second = X.T[:, :, None]
    log_a, log_b = np.log(share) - times / first, np.log1p(-share) - times / second
    seen = np.logaddexp(log_a - np.log(first), log_b - np.log(second)).sum(axis=1)
    beyond = np.logaddexp(np.log(share) - limit / first, np.log1p(-share) - limit / second)[:, 0]
    return np.asarray(seen + censored * beyond)


def lifetimes() -> Problem:
    """Lifetimes from a mixture of two exponentials, censored: which component is the short-lived one?"""
    rng = np.random.default_rng(209)
    short = rng.random(45) < 0.4
    times = np.where(short, rng.exponential(0.5, 45), rng.exponential(4.0, 45))
    seen = times[times < 9.0]
    prior = Independent(
        share=stats.beta(2.0, 3.0), first=stats.lognorm(s=1.1, scale=1.0), second=stats.lognorm(s=1.1, scale=1.8)
    )
    return _problem(
        "lifetimes", prior, _lifetimes, "mixture of two exponentials",
        times=seen, censored=float(45 - len(seen)), limit=9.0,
    )  # fmt: skip


def hinges(knots: Array, t: Array) -> Array:
    """max(t − τ, 0), (N, n, K), of knots (N, K)."""
    return np.asarray(np.maximum(t[:, None] - knots[:, None, :], 0.0))


def _kinks(X: Array, *, t: Array, y: Array, sd: float) -> Array:
    trend = X[:, :1] + X[:, 1:2] * t + (hinges(X[:, 2:4], t) * X[:, None, 4:]).sum(axis=2)
    return _normal(y - trend, sd)


def kinks() -> Problem:
    """A trend with two kinks through a record that has three: where are they?"""
    rng = np.random.default_rng(217)
    t = np.linspace(0.0, 10.0, 31)
    y = 1.0 + 0.4 * t + hinges(np.array([[2.5, 5.0, 7.5]]), t)[0] @ np.array([-1.2, 1.2, -1.2])
    y = y + 0.6 * rng.standard_normal(31)
    prior = Independent(
        level=stats.norm(0.0, 2.0), slope=stats.norm(0.0, 1.0), knot1=(0.0, 10.0), knot2=(0.0, 10.0),
        change1=stats.norm(0.0, 1.5), change2=stats.norm(0.0, 0.8),
    )  # fmt: skip
    return _problem("kinks", prior, _kinks, "trend with two kinks", t=t, y=y, sd=0.6)


STEP, EVERY, N_SEEN = 0.5, 2, 24  # years; steps between two censuses; censuses
HIGHEST, LOWEST = 10.0, -50.0  # log of a population


def populations(X: Array) -> Array:
    """Logs of prey and predators at each census, (2, n, N), for X (N, 6) = (α, β, γ, δ, prey at 0, predators at 0).

    p' = αp − βpq and q' = δpq − γq in logs, by leapfrog steps, which conserve the cycles. An exponent is at most
    HIGHEST and a log that is seen at least LOWEST, so that a hopeless draw has a finite log-likelihood.
    """
    birth, hunt, death, growth, prey, predators = (X * [STEP, STEP, STEP, STEP, 1.0, 1.0]).T
    p, q = np.log(prey), np.log(predators)
    out = np.empty((2, N_SEEN, len(X)))
    for k in range(N_SEEN):
        p = p + 0.5 * (birth - hunt * np.exp(np.minimum(q, HIGHEST)))
        for last in (False,) * (EVERY - 1) + (True,):
            q = q + growth * np.exp(np.minimum(p, HIGHEST)) - death
            p = p + (0.5 if last else 1.0) * (birth - hunt * np.exp(np.minimum(q, HIGHEST)))
        out[0, k], out[1, k] = p, q
    return np.maximum(out, LOWEST)


def _hares(X: Array, *, y: Array, sd: float) -> Array:
    return _normal((y - populations(X)).reshape(-1, len(X)).T, sd)


def hares() -> Problem:
    """Predators and prey, counted yearly for 24 years: cycles of another length, or none, fit a part of the record."""
    rng = np.random.default_rng(213)
    y = populations(np.array([[0.8, 0.4, 0.9, 0.3, 6.0, 1.0]]))
    y = y + 0.4 * rng.standard_normal(y.shape)
    rate, size = stats.lognorm(s=0.9, scale=0.6), stats.lognorm(s=1.0, scale=3.0)
    prior = Independent(birth=rate, hunt=rate, death=rate, growth=rate, prey=size, predators=size)
    return _problem("hares", prior, _hares, "predators and prey", y=y, sd=0.4)


def _cancelling(X: Array, *, y: Array) -> Array:
    """ARMA(1, 1), e_t = y_t − φy_{t−1} − θe_{t−1}, given that all before the first is zero."""
    phi, theta, sd = X.T
    e, total = np.zeros(len(X)), np.zeros(len(X))
    before = 0.0
    for value in y:
        e = value - phi * before - theta * e
        total += np.square(e)
        before = value
    return np.asarray(-0.5 * total / np.square(sd) - len(y) * (np.log(sd) + 0.5 * math.log(2.0 * math.pi)))


def cancelling() -> Problem:
    """ARMA(1, 1) on nearly white noise: the roots nearly cancel, near +1 or near −1."""
    rng = np.random.default_rng(211)
    e = rng.standard_normal(61)
    y = np.empty(60)
    before = 0.0
    for k in range(60):
        y[k] = before = 0.75 * before + e[k + 1] - 0.6 * e[k]
    prior = Independent(phi=(-1.0, 1.0), theta=(-1.0, 1.0), sd=stats.lognorm(s=0.7, scale=1.0))
    return _problem("cancelling", prior, _cancelling, "ARMA(1, 1) with nearly cancelling roots", y=y)


def line_shapes(X: Array, channels: Array) -> tuple[Array, Array]:
    """Two Gaussian lines of height one, (N, n) each, for X (N, 3) = (place, place, width)."""
    z = (channels - X[:, :2, None]) / X[:, 2, None, None]
    shapes = np.exp(-0.5 * np.square(z))
    return shapes[:, 0], shapes[:, 1]


def _spectrum(X: Array, *, channels: Array, y: Array, sd: float) -> Array:
    first, second = line_shapes(X[:, :3], channels)
    return _normal(y - X[:, 3:4] * first - X[:, 4:5] * second - X[:, 5:], sd)


def spectrum() -> Problem:
    """Two lines are fitted to a spectrum that has three: which two?"""
    rng = np.random.default_rng(218)
    channels = np.linspace(0.0, 10.0, 41)
    peaks = np.exp(-0.5 * np.square((channels - np.array([[2.2], [4.9], [7.4]])) / 0.5))
    y = 0.5 + np.array([1.0, 1.1, 1.0]) @ peaks + 0.45 * rng.standard_normal(41)
    prior = Independent(
        place1=(0.0, 10.0), place2=(0.0, 10.0), width=stats.lognorm(s=0.4, scale=0.5), height1=stats.norm(1.5, 0.7),
        height2=stats.norm(1.0, 0.5), background=stats.norm(0.5, 0.5),
    )  # fmt: skip
    return _problem("spectrum", prior, _spectrum, "two lines in a spectrum of three", channels=channels, y=y, sd=0.45)


def _responders(X: Array, *, dose: Array, y: Array) -> Array:
    a1, b1, a2, b2, share, sd = X.T[:, :, None]
    first, second = ((y - a - b * dose) / sd for a, b in ((a1, b1), (a2, b2)))
    both = np.logaddexp(np.log(share) - 0.5 * np.square(first), np.log1p(-share) - 0.5 * np.square(second))
    return np.asarray((both - np.log(sd) - 0.5 * math.log(2.0 * math.pi)).sum(axis=1))


def responders() -> Problem:
    """Two dose-response lines, and nobody knows who responds: a mixture of two regressions."""
    rng = np.random.default_rng(214)
    dose = rng.uniform(0.0, 2.0, 26)
    responds = rng.random(26) < 0.45
    y = np.where(responds, 0.5 + 1.6 * dose, 1.2 - 0.1 * dose) + 0.3 * rng.standard_normal(26)
    prior = Independent(
        level1=stats.norm(0.5, 1.0), slope1=stats.norm(0.5, 1.0), level2=stats.norm(0.5, 1.0),
        slope2=stats.norm(0.0, 1.0), share=stats.beta(2.0, 2.0), sd=stats.lognorm(s=0.5, scale=0.4),
    )  # fmt: skip
    return _problem("responders", prior, _responders, "mixture of two regressions", dose=dose, y=y)


Maker = Callable[[], Problem]
DEVELOPMENT: tuple[Maker, ...] = (velocities, kinetics, two_states, network, source, length_scales, outliers)
UNSEEN: tuple[Maker, ...] = (antennas, lifetimes, kinks, hares, cancelling, spectrum, responders)
MAKERS: dict[str, Maker] = {maker.__name__: maker for maker in DEVELOPMENT + UNSEEN}
