"""Evidence of Gaussian-process regression on the yacht data, over eight hyperparameters."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

import numpy as np

from wsabi._core.linalg import cholesky, jittered_cholesky, log_det, lower_positions, pairwise_squares, solve_lower
from wsabi._core.types import Array, Indices
from wsabi.errors import NumericalError
from wsabi.priors import Gaussian
from wsabi.problems._problem import LOG_2PI, Problem

__all__ = ["GPRegression", "yacht"]

RAW_LOG_Z, RAW_STD = -268.695, 0.004
STANDARDIZED_LOG_Z, STANDARDIZED_STD = 562.667, 0.003
REFERENCE = (
    "importance sampling, 60,000 independent draws from a Student mixture fitted to the modes of 40 searches and then "
    "to its own draws; see docs/ground-truths.md, made again by python -m benchmarks.study_truths "
)

# exp(±2·100) is far beyond any scale of the data yet inside float64: hyperparameters further out are read as this.
LOG_LIMIT = 100.0


def correlations(squares: Array, log_lengthscales: Array) -> Array:
    """exp(−½ Σ_d squares_d exp(−2l_d)), (P,), for squares (D, P) and l (D,).

    Below 1e-18, under round-off of the diagonal's one, it is zero: chains of tiny numbers end as denormals, on which
    a factorisation can take thirty times as long.
    """
    pairs = (-0.5 * np.exp(-2.0 * log_lengthscales)) @ squares
    np.exp(pairs, out=pairs)
    pairs[pairs < 1e-18] = 0.0
    return np.asarray(pairs)


@dataclass(frozen=True, eq=False)
class GPRegression:
    """log N(y; 0, K + σ²I), with K the squared-exponential ARD kernel matrix of the inputs.

    k(u, u') = exp(2x₀) exp(−½ Σ_d (u_d − u'_d)² exp(−2x_d)),  σ² = exp(x_{D+1})

    Parameters
    ----------
    squares : (D, P) squared distances per dimension, P = N(N−1)/2.
    positions : (P,) their flat positions in the kernel matrix.
    y : (N,) outputs.

    Notes
    -----
    x₀ is the log of the kernel's amplitude, a standard deviation; x_{D+1} the log of a variance. Where σ² is below
    round-off of the amplitude (σ² < 1e-13 exp(2x₀), ten prior sds out) the factorisation may fail; then, and only
    then, the smallest relative jitter of :func:`wsabi._core.linalg.jittered_cholesky` stands in for the noise. A
    coordinate beyond ±100 is read as ±100.
    """

    squares: Array
    positions: Indices
    y: Array

    @classmethod
    def from_data(cls, inputs: Array, y: Array) -> GPRegression:
        """From inputs (N, D) and outputs (N,)."""
        return cls(pairwise_squares(inputs), lower_positions(len(y)), y)

    def __call__(self, X: Array) -> Array:
        """Log evidence, (M,), for hyperparameters X (M, D + 2)."""
        return np.array([self.log_evidence(x) for x in X])

    def log_evidence(self, x: Array) -> float:
        """−½ yᵀ(K + σ²I)⁻¹y − ½ log|K + σ²I| − ½ N log 2π for one x (D + 2,)."""
        x = np.clip(x, -LOG_LIMIT, LOG_LIMIT)
        n = self.y.size
        variance = np.exp(2.0 * x[0])
        K = np.zeros(n * n)
        K[self.positions] = variance * correlations(self.squares, x[1:-1])
        K[:: n + 1] = variance + np.exp(x[-1])
        L = _factor(K.reshape((n, n), order="F"))  # only the lower triangle is filled, and read
        residual = solve_lower(L, self.y)
        return float(-0.5 * (residual @ residual + log_det(L) + n * LOG_2PI))


def _factor(K: Array) -> Array:
    """Lower factor of K; with the smallest jitter that will do where K is singular to round-off."""
    try:
        return cholesky(K)
    except NumericalError:
        return jittered_cholesky(K)[0]


def yacht_data() -> tuple[Array, Array]:
    """Inputs (308, 6) and output (308,) of the yacht hydrodynamics data, as published."""
    text = resources.files("wsabi.problems").joinpath("data", "yacht_hydrodynamics.csv").read_text(encoding="ascii")
    table = np.loadtxt(text.splitlines(), delimiter=",", skiprows=1)
    return table[:, :-1], table[:, -1]


def yacht(standardized: bool = False) -> Problem:
    """Evidence of GP regression on the yacht hydrodynamics data, 8-D, with many modes.

    x = (log output scale, six log length-scales, log noise variance), prior N(0, 4I), zero mean function.

    Parameters
    ----------
    standardized : z-score every column (mean 0, population sd 1), inputs and output; otherwise as published.
    """
    inputs, y = yacht_data()
    if standardized:
        inputs = (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)
        y = (y - y.mean()) / y.std()
    lengthscales = ("lcb", "prismatic", "length_displacement", "beam_draught", "length_beam", "froude")
    names = ("log_output_scale", *(f"log_lengthscale_{name}" for name in lengthscales), "log_noise_variance")
    return Problem(
        name="yacht",
        prior=Gaussian(np.zeros(8), 4.0, names=names),
        function=GPRegression.from_data(inputs, y),
        log_z=STANDARDIZED_LOG_Z if standardized else RAW_LOG_Z,
        log_z_std=STANDARDIZED_STD if standardized else RAW_STD,
        description=f"GP regression on 308 yacht hulls, {'standardized' if standardized else 'raw'} columns",
        reference=REFERENCE + ("yacht-standardized" if standardized else "yacht"),
    )
