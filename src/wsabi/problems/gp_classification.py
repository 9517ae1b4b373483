"""Laplace evidence of Gaussian-process classification (probit): a synthetic set and a citation network."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import special
from scipy.linalg import blas, lapack

from wsabi._core.linalg import cholesky, log_det, lower_positions, pairwise_squares, solve_lower, solve_upper
from wsabi._core.types import Array, Indices
from wsabi.errors import NumericalError
from wsabi.priors import Gaussian
from wsabi.problems._problem import Problem
from wsabi.problems.gp_regression import LOG_LIMIT, correlations

__all__ = ["GPClassification", "citation", "synthclass"]

# Each step shrinks the error at least tenfold (see REUSE), so a last step of 1e-9 leaves f right to 1e-10, and log q
# to the 1e-9 that keeps it smooth under finite differences.
LAST_STEP = 1e-9
MAX_STEPS = 100
# While steps shrink tenfold or better the factor of the previous step serves again: O(Nr) instead of O(Nr²).
REUSE = 0.1

SYNTHCLASS_SEED = 10
SYNTHCLASS_LOG_Z, SYNTHCLASS_STD = -138.5700, 0.0006
SYNTHCLASS_REFERENCE = (
    "mean and range of three lattice sums over all points within 20 nats of the mode; importance sampling from a "
    "Student mixture gave -138.569 +- 0.003; see docs/ground-truths.md, made again by "
    "python -m benchmarks.study_truths synthclass"
)
CITATION_FILE = "citeseerx_nips_pca.csv"
CITATION_COLUMNS = "node,pc1,pc2,pc3,pc4,is_nips"
CITATION_LOG_Z, CITATION_STD = -252.011, 0.005
CITATION_REFERENCE = (
    "importance sampling, 12,000 and 60,000 independent draws from two Student mixtures, each fitted to the modes of "
    "12 searches and then to its own draws; see docs/ground-truths.md, made again by "
    "python -m benchmarks.study_truths citation"
)


@dataclass(frozen=True, eq=False)
class GPClassification:
    """Laplace approximation of log p(y | x) for labels y = ±1, p(y | f) = Φ(yf), f ~ GP(0, k).

    k(u, u') = exp(2a) exp(−½ Σ_d (u_d − u'_d)² exp(−2l_d)) + exp(2s) [u is u'],  x = (l_1 … l_D, a, s)

    log q(y) = −½ f̂ᵀK⁻¹f̂ + Σ log Φ(y f̂) − ½ log|B|,  B = I + W^½ K W^½,  W = −∇∇ Σ log Φ(y f̂)

    Parameters
    ----------
    squares : (D, P) squared distances per dimension, P = N(N−1)/2.
    positions : (P,) their flat positions in the kernel matrix.
    y : (N,) labels, −1.0 or +1.0.

    Notes
    -----
    Rasmussen & Williams (2006), algorithms 3.1 and 5.1, with three changes. The smooth part of K is factored once, with
    pivoting, as V Vᵀ of rank r (to round-off), and B is handled through r × r matrices (:class:`_Curvature`). A factor
    of B is used again while the iteration converges fast. And steps are halved until −½ fᵀK⁻¹f + Σ log Φ does not
    fall. The eigenvalues of B are at least one, so nothing here needs jitter. A coordinate beyond ±100 is read as ±100.
    """

    squares: Array
    positions: Indices
    y: Array

    @classmethod
    def from_data(cls, inputs: Array, y: Array) -> GPClassification:
        """From inputs (N, D) and labels ±1 (N,)."""
        return cls(pairwise_squares(inputs), lower_positions(len(y)), y)

    def __call__(self, X: Array) -> Array:
        """Approximate log evidence, (M,), for hyperparameters X (M, D + 2)."""
        return np.array([self.log_evidence(x) for x in X])

    def log_evidence(self, x: Array) -> float:
        """log q(y) for one x (D + 2,)."""
        x = np.clip(x, -LOG_LIMIT, LOG_LIMIT)
        jitter = float(np.exp(2.0 * x[-1]))
        V = self._smooth_factor(x[:-2], float(np.exp(2.0 * x[-2])))
        a, f = _posterior_mode(self.y, V, jitter)
        _, W = _probit_derivatives(self.y, f)
        return _objective(self.y, a, f) - 0.5 * _Curvature.at(W, V, jitter).log_det_b

    def _smooth_factor(self, log_lengthscales: Array, variance: float) -> Array:
        """V (N, r) with V Vᵀ = exp(2a) exp(−½ Σ_d (u_d − u'_d)² exp(−2l_d)), by pivoted Cholesky.

        Stopping at pivots of N·ε leaves a remainder of the size of round-off in the full matrix.
        """
        n = self.y.size
        S = np.zeros(n * n)
        S[self.positions] = correlations(self.squares, log_lengthscales)
        S[:: n + 1] = 1.0
        packed, pivots, rank, info = lapack.dpstrf(S.reshape((n, n), order="F"), lower=1, overwrite_a=1)
        if info < 0:
            raise NumericalError(f"pivoted Cholesky rejected argument {-info}.")
        V = np.empty((n, rank), order="F")
        V[pivots - 1] = np.tril(packed[:, :rank])
        V[np.abs(V) < 1e-18] = 0.0  # below round-off of the unit diagonal; see correlations()
        V *= math.sqrt(variance)
        return V


@dataclass(frozen=True, eq=False)
class _Curvature:
    """Solves with I + W K, K = V Vᵀ + s I, through M = I_r + Vᵀ diag(c) V, c = W/(1 + sW).

    (I + WK)⁻¹b = b' − c ∘ h,  h = V M⁻¹Vᵀb',  b' = b/(1 + sW);  |B| = |M| ∏(1 + sW_n)

    h = V Vᵀ(I + WK)⁻¹b as well, so K a is had without multiplying the ill-conditioned K by a.
    """

    W: Array
    V: Array
    jitter: float
    diagonal: Array
    L: Array

    @classmethod
    def at(cls, W: Array, V: Array, jitter: float) -> _Curvature:
        """Factor M for W (N,) and V (N, r); s is the jitter variance."""
        diagonal = 1.0 + jitter * W
        scaled = np.sqrt(W / diagonal)[:, None] * V
        M = blas.dsyrk(1.0, scaled, trans=1, lower=1)
        M[np.diag_indices_from(M)] += 1.0
        return cls(W, V, jitter, diagonal, cholesky(M))

    def solve(self, b: Array) -> tuple[Array, Array]:
        """a = (I + WK)⁻¹b and f = K a, both (N,)."""
        b = b / self.diagonal
        smooth = self.V @ solve_upper(self.L, solve_lower(self.L, self.V.T @ b))
        a = b - self.W / self.diagonal * smooth
        return a, smooth + self.jitter * a

    @property
    def log_det_b(self) -> float:
        """log|I + W^½ K W^½|."""
        return log_det(self.L) + float(np.log(self.diagonal).sum())


def _probit_derivatives(y: Array, f: Array) -> tuple[Array, Array]:
    """Gradient (N,) and negated curvature W (N,) of Σ log Φ(y f).

    ρ = φ(z)/Φ(z) with z = y f, by the scaled erfc: neither overflows nor cancels for |z| of any size.
    """
    z = y * f
    ratio = math.sqrt(2.0 / math.pi) / special.erfcx(-z / math.sqrt(2.0))
    return y * ratio, np.maximum(ratio * (ratio + z), 0.0)


def _objective(y: Array, a: Array, f: Array) -> float:
    """−½ fᵀK⁻¹f + Σ log Φ(y f), with a = K⁻¹f."""
    return float(-0.5 * (a @ f) + special.log_ndtr(y * f).sum())


def _posterior_mode(y: Array, V: Array, jitter: float) -> tuple[Array, Array]:
    """a = K⁻¹f̂ and f̂, (N,) each: the maximum of −½ fᵀK⁻¹f + Σ log Φ(y f) by Newton's method from f = 0."""
    a = f = np.zeros(y.size)
    objective, previous = _objective(y, a, f), 0.0
    curvature: _Curvature | None = None
    for _ in range(MAX_STEPS):
        gradient, W = _probit_derivatives(y, f)
        if curvature is None:
            curvature = _Curvature.at(W, V, jitter)
        a_full, f_full = curvature.solve(curvature.W * f + gradient)
        a_new, f_new, objective = _halved(y, objective, (a, f), (a_full, f_full))
        step = float(np.max(np.abs(f_new - f)))
        a, f = a_new, f_new
        if step <= LAST_STEP * max(1.0, float(np.max(np.abs(f)))):
            break
        if step > REUSE * previous:
            curvature = None
        previous = step
    return a, f


def _halved(
    y: Array, objective: float, old: tuple[Array, Array], new: tuple[Array, Array]
) -> tuple[Array, Array, float]:
    """The step from (a, f) to (a', f'), halved until the objective does not fall beyond round-off."""
    (a, f), (da, df) = old, (new[0] - old[0], new[1] - old[1])
    share = 1.0
    while share > 1e-6:
        candidate = a + share * da, f + share * df
        value = _objective(y, *candidate)
        if value >= objective - 1e-9 * max(1.0, abs(objective)):
            return *candidate, value
        share *= 0.5
    return a, f, objective


def synthclass(seed: int = 10) -> Problem:
    """Laplace evidence of a GP classifier of 500 points on a line, 3-D.

    x = (log length-scale, log output scale, log jitter sd), prior N(0, 2I).

    Parameters
    ----------
    seed : of the data, inputs 10·sort(U(0, 1)) and labels +1 with probability 1/(1 + exp(−5 sin u)). The truth is
        known for the default seed; for any other it is NaN, with an infinite standard error.
    """
    rng = np.random.default_rng(seed)
    inputs = 10.0 * np.sort(rng.uniform(size=500))
    p = 1.0 / (1.0 + np.exp(-5.0 * np.sin(inputs)))
    y = np.where(p > rng.uniform(size=500), 1.0, -1.0)
    known = seed == SYNTHCLASS_SEED
    return Problem(
        name="synthclass",
        prior=Gaussian(np.zeros(3), 2.0, names=("log_lengthscale", "log_output_scale", "log_jitter_sd")),
        function=GPClassification.from_data(inputs[:, None], y),
        log_z=SYNTHCLASS_LOG_Z if known else math.nan,
        log_z_std=SYNTHCLASS_STD if known else math.inf,
        description=f"GP classification (probit, Laplace) of 500 synthetic points on a line, seed {seed}",
        reference=SYNTHCLASS_REFERENCE if known else f"not known: only seed {SYNTHCLASS_SEED} has been integrated",
    )


def citation(path: str | Path | None = None) -> Problem:
    """Laplace evidence of a GP classifier of NIPS papers in a citation network, 6-D, with several modes.

    x = (four log length-scales, log output scale, log jitter sd), prior N(0, 2I); 500 papers, four graph principal
    components, each z-scored over the 500.

    Parameters
    ----------
    path : the data file, or the folder that holds it. None looks at the environment variable WSABI_CITATION_DATA,
        then at ``../shared/data`` beside the current directory and beside the source tree.

    Raises
    ------
    FileNotFoundError
        If the file is in none of these places; the data are not shipped with the package.
    """
    table = np.loadtxt(_citation_file(path), delimiter=",", skiprows=1)
    if table.shape != (500, 6):
        raise ValueError(f"{CITATION_FILE} must have 500 rows of 6 columns ({CITATION_COLUMNS}); got {table.shape}.")
    inputs = table[:, 1:5]
    inputs = (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)
    names = ("log_lengthscale_1", "log_lengthscale_2", "log_lengthscale_3", "log_lengthscale_4")
    return Problem(
        name="citation",
        prior=Gaussian(np.zeros(6), 2.0, names=(*names, "log_output_scale", "log_jitter_sd")),
        function=GPClassification.from_data(inputs, np.where(table[:, 5] == 1.0, 1.0, -1.0)),
        log_z=CITATION_LOG_Z,
        log_z_std=CITATION_STD,
        description="GP classification (probit, Laplace) of 500 papers of a citation network, NIPS or not",
        reference=CITATION_REFERENCE,
    )


def _citation_file(path: str | Path | None) -> Path:
    """The data file at the path given, or at the first default place that has it."""
    if path is not None:
        places = [Path(path)]
    else:
        given = os.environ.get("WSABI_CITATION_DATA")
        beside = Path("..", "shared", "data")
        places = [Path(given)] if given else [Path.cwd() / beside, Path(__file__).resolve().parents[3] / beside]
    for place in places:
        file = place / CITATION_FILE if place.is_dir() else place
        if file.is_file():
            return file
    raise FileNotFoundError(
        f"the citation problem needs {CITATION_FILE} (500 rows: {CITATION_COLUMNS}), which is not shipped because its "
        f"licence is unclear; looked at {', '.join(str(place) for place in places)}. Give path=, or set "
        "WSABI_CITATION_DATA, to the file or its folder. It is made from the CiteSeerX network in folder data/citeseer "
        "of the GitHub repository shalijiang/efficient_nonmyopic_active_search: of the largest connected component, "
        "take the eigenvectors u_k of the Laplacian D - A with the four smallest non-zero eigenvalues lambda_k as "
        "columns u_k / lambda_k (entry of largest magnitude positive), then draw 250 NIPS papers and 250 others "
        "without replacement (numpy default_rng(0)), sorted by node number."
    )
