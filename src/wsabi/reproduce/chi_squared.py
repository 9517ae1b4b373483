"""The paper's heat map: the true χ² process of ℓ = α + ½ℓ̃² and its two approximations by Gaussian processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wsabi._core.types import Array
from wsabi.plots import LABELS, Band, density_with_bands
from wsabi.reproduce.curves import Table
from wsabi.reproduce.experiment import Amount, Claim, Digest, Experiment, Plan, decide
from wsabi.reproduce.lines import NORMAL_95, LineModel, conditioned
from wsabi.settings import Method

__all__ = ["CHI_SQUARED"]

CHI_X = np.linspace(-5.0, 5.0, 301)
CHI_POINTS = np.linspace(-2.0, 2.0, 7)
CHI_BATCH = 1000
CHI_BATCHES = Amount(full=50, quick=5)  # 50,000 draws, as in the paper
CHI_METHODS: tuple[Method, ...] = ("wsabi-m", "wsabi-l")
CHI_LENGTHSCALE = 1.0  # the paper gives none; ℓ̃ = √2 exp(−x²/2) is exactly a bump of this width


@dataclass(frozen=True, eq=False)
class Draws:
    """Part of the draws of ℓ = α + ½ℓ̃², (S, M), and the GP that they are from."""

    likelihoods: Array
    models: dict[Method, LineModel]


def _chi_steps(plan: Plan) -> Iterator[Draws]:
    """50,000 joint draws of the posterior of ℓ̃ on the grid, squared."""
    rng = np.random.default_rng(plan.seed)
    log_l = -np.square(CHI_POINTS)
    models = {name: conditioned(name, CHI_POINTS, log_l, CHI_LENGTHSCALE) for name in CHI_METHODS}
    model = models["wsabi-l"]
    m_tilde, c_tilde = model.gp.covariance(CHI_X[:, None])
    values, vectors = np.linalg.eigh(c_tilde)  # C̃ is singular at the samples: no Cholesky factor
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    for _ in range(CHI_BATCHES.of(plan)):
        l_tilde = m_tilde + rng.standard_normal((CHI_BATCH, len(CHI_X))) @ root.T
        yield Draws(model.scale * (model.alpha + 0.5 * np.square(l_tilde)), models)


def _chi_digest(plan: Plan, parts: Sequence[Draws]) -> Digest:
    draws = np.concatenate([part.likelihoods for part in parts])
    models = parts[0].models
    truth = np.exp(-np.square(CHI_X))
    bands = [_chi_band(models[name]) for name in CHI_METHODS]
    edges = np.linspace(-0.4, 1.6, 201)
    density = np.stack([np.histogram(column, edges)[0] for column in draws.T], axis=1) / len(draws)
    figure = density_with_bands(
        CHI_X, edges, density / (edges[1] - edges[0]), truth, bands, CHI_POINTS, np.exp(-np.square(CHI_POINTS))
    )
    low, median, high = np.quantile(draws, [0.025, 0.5, 0.975], axis=0)
    mean = draws.mean(axis=0)
    by_name = {band.method: band for band in bands}
    columns: list[Array] = [CHI_X, truth, mean, low, median, high]
    for name in ("wsabi-l", "wsabi-m"):
        columns += [by_name[name].mean, by_name[name].low, by_name[name].high]
    names = ["x", "likelihood", "draws_mean", "draws_low95", "draws_median", "draws_high95"]
    names += [f"{model}_{curve}" for model in ("wsabi_l", "wsabi_m") for curve in ("mean", "low95", "high95")]
    table = Table(tuple(names), [tuple(map(float, row)) for row in zip(*columns, strict=True)])
    return Digest(
        {"curves": table},
        {"chi-squared": figure},
        _chi_summary(draws, by_name, truth),
        _chi_claims(draws, by_name, truth),
        remarks=(
            f"{len(draws):,} draws of ℓ̃ on {len(CHI_X)} points; seven observations evenly over [−2, 2]; α = 0.8 min ℓ. "
            "The paper gives no hyperparameters: length-scale 1 here, output scale by maximum likelihood.",
        ),
    )


def _chi_band(model: LineModel) -> Band:
    mean, sd = model.predict(CHI_X)
    return Band(model.method, CHI_X, mean, mean - NORMAL_95 * sd, mean + NORMAL_95 * sd)


INSIDE = np.abs(CHI_X) <= 2.0
FAR = np.abs(CHI_X) >= 4.0


def _coverage(draws: Array, band: Band, where: npt.NDArray[np.bool_]) -> float:
    """Share of the true process that lies in the band; a margin of 1e-9 forgives round-off at the samples."""
    inside = (draws[:, where] >= band.low[where] - 1e-9) & (draws[:, where] <= band.high[where] + 1e-9)
    return float(np.mean(inside))


def _chi_summary(draws: Array, bands: dict[str, Band], truth: Array) -> Table:
    rows = []
    for name, band in bands.items():
        error, gap = np.abs(band.mean - truth), np.abs(band.mean - draws.mean(axis=0))
        coverage = [f"{_coverage(draws, band, where):.1%}" for where in (INSIDE, FAR)]
        largest = [f"{value:.4f}" for value in (error[INSIDE].max(), error[FAR].max(), gap.max())]
        rows.append((LABELS[name], *largest, *coverage))
    return Table(
        ("model", "max |m − ℓ|, |x| ≤ 2", "max |m − ℓ|, |x| ≥ 4", "max |m − mean of draws|",
         "χ² draws in its 95 % band, |x| ≤ 2", "χ² draws in its 95 % band, |x| ≥ 4"),
        rows,
    )  # fmt: skip


def _chi_claims(draws: Array, bands: dict[str, Band], truth: Array) -> list[Claim]:
    linear, matched = bands["wsabi-l"], bands["wsabi-m"]
    far_l, far_m = (float(np.mean(band.mean[FAR])) for band in (linear, matched))
    width_l, width_m = (float(np.mean((band.high - band.low)[FAR])) for band in (linear, matched))
    gap = float(np.abs(linear.mean - matched.mean)[INSIDE].max())
    error = float(np.abs(linear.mean - truth).max())
    far_cover = _coverage(draws, linear, FAR)
    return [
        Claim(
            "Moment matching has a higher mean and variance far from observations.",
            f"at |x| ≥ 4 the mean of m is {far_m:.3f} (M) and {far_l:.3f} (L), the 95 % band {width_m:.2f} and "
            f"{width_l:.2f} wide",
            decide(far_m > far_l and width_m > width_l),
        ),
        Claim(
            "Otherwise the approximations agree with each other and with the true density.",
            f"for |x| ≤ 2 the means differ by at most {gap:.4f}; at |x| ≥ 4 the 95 % band of L holds {far_cover:.0%} "
            "of the true process",
            "holds in part" if gap < 0.01 and far_cover < 0.9 else decide(gap < 0.01),
        ),
        Claim(
            "The WSABI-L mean is nearly identical to the truth (caption of Fig. 2).",
            f"max |m − ℓ| = {error:.4f}",
            decide(error < 0.05),
        ),
    ]


CHI_SQUARED = Experiment(
    "chi-squared",
    "The χ² process and its two approximations",
    "Figure 2: 50,000 draws of the true process for ℓ = exp(−x²) and seven observations, with means and 95 % bands of "
    "WSABI-L and WSABI-M.",
    lambda plan: CHI_BATCHES.of(plan),
    _chi_steps,
    _chi_digest,
)
