"""The paper's one-dimensional figures: GP on ℓ against square-root GP, the χ² process, and active sampling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from wsabi._types import Array
from wsabi.plots import Band, LikelihoodPanel, density_with_bands, likelihood_panels
from wsabi.plots.style import LABELS
from wsabi.reproduce.curves import Table
from wsabi.reproduce.experiment import Claim, Digest, Experiment, Plan, decide
from wsabi.reproduce.lines import DOMAIN, PRIOR, SHOWN, Bumps, LineModel, active, conditioned, grid_model, random_bumps
from wsabi.warp import Method

__all__ = ["ACTIVE_L", "ACTIVE_M", "CHI_SQUARED", "GRID"]

X_PLOT = np.linspace(*DOMAIN, 601)
NORMAL_95 = 1.959964


@dataclass(frozen=True, eq=False)
class Fit:
    """One model of one likelihood; ``shown`` if it is the one in the figure."""

    likelihood: Bumps
    model: LineModel
    kind: str  # "grid" or "active"
    shown: bool
    index: int

    def rms_error(self) -> float:
        """Root mean square of m(x) − ℓ(x) over the domain."""
        return float(np.sqrt(np.mean(np.square(self.model.predict(X_PLOT)[0] - self.likelihood(X_PLOT)))))

    def z_error(self) -> float:
        """|E[Z]/Z − 1|."""
        return abs(self.model.z()[0] / self.likelihood.z - 1.0)


def _n_functions(plan: Plan) -> int:
    return 10 if plan.quick else 50


def _functions(plan: Plan) -> list[Bumps]:
    """The function in the figure, then random ones on which the statement is tested again."""
    rng = np.random.default_rng(plan.seed)
    return [SHOWN, *(random_bumps(rng) for _ in range(_n_functions(plan)))]


def _band(model: LineModel, sd_factor: Array | float = 1.0) -> Band:
    mean, sd = model.predict(X_PLOT)
    half = NORMAL_95 * sd * sd_factor
    return Band(model.method, X_PLOT, mean, mean - half, mean + half)


def _curves(fits: Sequence[Fit]) -> Table:
    rows = []
    for fit in fits:
        mean, sd = fit.model.predict(X_PLOT)
        truth = fit.likelihood(X_PLOT)
        name = fit.model.method
        rows += [(name, fit.kind, *map(float, row)) for row in zip(X_PLOT, truth, mean, sd, strict=True)]
    return Table(("model", "samples", "x", "likelihood", "mean", "sd"), rows)


def _samples(fits: Sequence[Fit]) -> Table:
    rows = [
        (fit.model.method, fit.kind, n, float(x), float(value))
        for fit in fits
        for n, (x, value) in enumerate(zip(fit.model.points, fit.model.values, strict=True), start=1)
    ]
    return Table(("model", "samples", "order", "x", "likelihood"), rows)


def _functions_table(fits: Sequence[Fit]) -> Table:
    rows = [
        (fit.index, fit.model.method, fit.kind, fit.rms_error(), fit.likelihood.z, *fit.model.z(), fit.z_error())
        for fit in fits
    ]
    return Table(("function", "model", "samples", "rms_error", "z_true", "z_mean", "z_sd", "z_fractional_error"), rows)


def _pick(fits: Sequence[Fit], method: str, kind: str, *, shown: bool) -> list[Fit]:
    return [fit for fit in fits if fit.model.method == method and fit.kind == kind and fit.shown == shown]


# -- GP on ℓ against square-root GP ------------------------------------------------------------------------------------


def _grid_steps(plan: Plan) -> Iterator[Fit]:
    for index, likelihood in enumerate(_functions(plan)):
        for method in ("bq", "wsabi-m", "wsabi-l"):
            yield Fit(likelihood, grid_model(method, likelihood), "grid", index == 0, index)


def _mean_negative(model: LineModel) -> float:
    """P(ℓ(x) < 0), averaged over the domain."""
    return float(np.mean(model.probability_negative(X_PLOT)))


def _grid_digest(plan: Plan, fits: Sequence[Fit]) -> Digest:
    shown = [fit for fit in fits if fit.shown]
    titles = {"bq": "GP on ℓ (Bayes-Hermite)", "wsabi-m": "square-root GP (WSABI-M)"}
    panels = [
        LikelihoodPanel(
            titles[fit.model.method], SHOWN(X_PLOT), _band(fit.model), fit.model.points, fit.model.values,
            remarks=(f"r.m.s. error {fit.rms_error():.3f}", f"mean P(ℓ < 0) = {_mean_negative(fit.model):.3f}"),
        )
        for fit in shown if fit.model.method in titles
    ]  # fmt: skip
    summary = Table(
        ("model", "r.m.s. error of ℓ", "mean P(ℓ < 0)", "Z", "sd of Z", "error of Z"),
        [
            (LABELS[f.model.method], f"{f.rms_error():.4f}", f"{_mean_negative(f.model):.4f}",
             *(f"{value:.4f}" for value in f.model.z()), f"{f.z_error():.2%}")
            for f in shown
        ],
    )  # fmt: skip
    return Digest(
        {"curves": _curves(shown), "samples": _samples(shown), "functions": _functions_table(fits)},
        {"bayes-hermite-vs-sqrt": likelihood_panels(panels)},
        summary,
        _grid_claims(fits),
        remarks=(
            f"The paper does not give its function: this one is three Gaussian bumps under the prior N(0, 2²), sampled on "
            f"a grid of 15 over [{DOMAIN[0]:g}, {DOMAIN[1]:g}]. Each statement is tested on {_n_functions(plan)} random "
            "functions (two to five bumps) as well. Length-scales by MAP for each model.",
        ),
    )


def _paired(fits: Sequence[Fit], first: tuple[str, str], second: tuple[str, str]) -> list[tuple[Fit, Fit]]:
    """Fits of the same random function by two (method, kind)."""
    others = {fit.index: fit for fit in _pick(fits, *second, shown=False)}
    return [(fit, others[fit.index]) for fit in _pick(fits, *first, shown=False) if fit.index in others]


def _grid_claims(fits: Sequence[Fit]) -> list[Claim]:
    pairs = _paired(fits, ("wsabi-m", "grid"), ("bq", "grid"))
    both = _paired(fits, ("wsabi-m", "grid"), ("wsabi-l", "grid"))
    if not pairs or not both:
        return []
    closer = sum(m.rms_error() < bq.rms_error() for m, bq in pairs)
    ratio = float(np.median([m.rms_error() / bq.rms_error() for m, bq in pairs]))
    negative = [float(np.mean([_mean_negative(fit.model) for fit in side])) for side in zip(*pairs, strict=True)]
    gap = max(abs(m.model.z()[0] / l.model.z()[0] - 1.0) for m, l in both)
    share = closer / len(pairs)
    return [
        Claim(
            "On the same 15 samples the square-root GP fits ℓ more closely than the GP on ℓ (Fig. 1).",
            f"closer on {closer} of {len(pairs)} random functions; median ratio of r.m.s. errors {ratio:.2f}",
            "holds" if share > 0.9 else "holds in part" if share > 0.5 else "does not hold",
        ),
        Claim(
            "It puts minimal probability on negative ℓ.",
            f"mean P(ℓ < 0): {negative[0]:.3f} for WSABI-M, {negative[1]:.3f} for the GP on ℓ",
            decide(negative[0] < 0.5 * negative[1]),
        ),
        Claim(
            "The linearised model performs identically (caption of Fig. 1).",
            f"E[Z] of L and M differ by at most {gap:.1%} on {len(both)} random functions",
            decide(gap < 0.01),
        ),
    ]


GRID = Experiment(
    "bayes-hermite-vs-sqrt",
    "A GP on ℓ against a square-root GP, on the same 15 points",
    "Figure 1: conditioned on a grid of 15 samples, the square-root model fits better, is less sure where ℓ is high, "
    "and puts hardly any probability below zero.",
    lambda plan: 3 * (1 + _n_functions(plan)),
    _grid_steps,
    _grid_digest,
)


# -- active sampling ---------------------------------------------------------------------------------------------------


def _active_steps(method: Method, plan: Plan) -> Iterator[Fit]:
    rng = np.random.default_rng(plan.seed + 1)
    for index, likelihood in enumerate(_functions(plan)):
        yield Fit(likelihood, active(method, likelihood, rng), "active", index == 0, index)
        yield Fit(likelihood, grid_model(method, likelihood), "grid", index == 0, index)


def _active_digest(method: Method, plan: Plan, fits: Sequence[Fit]) -> Digest:
    shown = [fit for fit in fits if fit.shown]
    prior = np.exp(PRIOR.log_pdf(X_PLOT[:, None]))
    panels = [_active_panel(fit, prior) for fit in shown]
    summary = Table(
        ("samples", "Z", "sd of Z", "true Z", "error of Z"),
        [
            (fit.kind, *(f"{value:.5f}" for value in fit.model.z()), f"{fit.likelihood.z:.5f}", f"{fit.z_error():.3%}")
            for fit in shown
        ],
    )
    return Digest(
        {"curves": _curves(shown), "samples": _samples(shown), "functions": _functions_table(fits)},
        {f"active-{method[-1]}": likelihood_panels(panels, band_label="95 % band, its width scaled by π(x)/max π")},
        summary,
        _active_claims(method, fits),
        remarks=(
            "As in the paper, the band is scaled by the prior and the mean is not. Settings.paper(), beginning with one "
            "sample at the prior mean; numbers give the order of the samples. The paper does not give its function; "
            f"each statement is tested on {_n_functions(plan)} random functions as well.",
        ),
    )


def _active_panel(fit: Fit, prior: Array) -> LikelihoodPanel:
    label = LABELS[fit.model.method]
    return LikelihoodPanel(
        f"{label}, 15 samples chosen actively" if fit.kind == "active" else f"{label}, 15 samples on a grid",
        SHOWN(X_PLOT), _band(fit.model, prior / prior.max()), fit.model.points, fit.model.values,
        remarks=(f"error of Z {fit.z_error():.2%}",), prior=prior, numbered=fit.kind == "active",
    )  # fmt: skip


def _far_mean(fit: Fit) -> float:
    """m(x) halfway beyond the domain, as a share of the highest value seen."""
    far = np.array([2.0 * DOMAIN[0], 2.0 * DOMAIN[1]])
    return float(np.max(fit.model.predict(far)[0]) / fit.model.scale)


def _active_claims(method: Method, fits: Sequence[Fit]) -> list[Claim]:
    pairs = _paired(fits, (method, "active"), (method, "grid"))
    if not pairs:
        return []
    better = sum(a.z_error() < g.z_error() for a, g in pairs)
    errors = [float(np.median([fit.z_error() for fit in side])) for side in zip(*pairs, strict=True)]
    share = better / len(pairs)
    far = float(np.median([_far_mean(fit) for fit, _ in pairs]))
    statement, holds = (
        ("The mean is zero away from samples (caption of the L figure).", far < 1e-2)
        if method == "wsabi-l"
        else ("The mean is not zero anywhere (caption of the M figure).", far > 1e-2)
    )
    return [
        Claim(
            "15 actively chosen samples tell more of Z than a grid.",
            f"smaller error of Z on {better} of {len(pairs)} random functions; median error {errors[0]:.2%} active, "
            f"{errors[1]:.2%} on a grid",
            "holds" if share > 0.9 else "holds in part" if share > 0.5 else "does not hold",
        ),
        Claim(statement, f"median m(x) far outside the domain: {far:.2g} of the highest ℓ seen", decide(holds)),
    ]


def _active_experiment(method: Method, title: str, paper: str) -> Experiment:
    return Experiment(
        f"active-{method[-1]}",
        title,
        paper,
        lambda plan: 2 * (1 + _n_functions(plan)),
        lambda plan: _active_steps(method, plan),
        lambda plan, fits: _active_digest(method, plan, fits),
    )


ACTIVE_L = _active_experiment(
    "wsabi-l",
    "Active sampling under the linearised model",
    "Figure 4: 15 samples chosen one after another where ℓπ is most uncertain; the mean is zero away from samples.",
)
ACTIVE_M = _active_experiment(
    "wsabi-m",
    "Active sampling under the moment-matched model",
    "Figure 3: 15 samples chosen one after another where ℓπ is most uncertain; the mean is not zero anywhere.",
)


# -- the χ² process ----------------------------------------------------------------------------------------------------

CHI_X = np.linspace(-5.0, 5.0, 301)
CHI_POINTS = np.linspace(-2.0, 2.0, 7)
CHI_LENGTHSCALE = 1.0  # the paper gives none; ℓ̃ = √2 exp(−x²/2) is exactly a bump of this width


@dataclass(frozen=True, eq=False)
class Draws:
    """Part of the draws of ℓ = α + ½ℓ̃², (S, M), and the GP that they are from."""

    likelihoods: Array
    models: dict[str, LineModel]


def _chi_batches(plan: Plan) -> list[int]:
    return [1000] * (5 if plan.quick else 50)


def _chi_steps(plan: Plan) -> Iterator[Draws]:
    """50,000 joint draws of the posterior of ℓ̃ on the grid, squared."""
    rng = np.random.default_rng(plan.seed)
    log_l = -np.square(CHI_POINTS)
    models = {name: conditioned(name, CHI_POINTS, log_l, CHI_LENGTHSCALE) for name in ("wsabi-l", "wsabi-m")}
    model = models["wsabi-l"]
    m_tilde, c_tilde = model.gp.covariance(CHI_X[:, None])
    values, vectors = np.linalg.eigh(c_tilde)  # C̃ is singular at the samples: no Cholesky factor
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    for n in _chi_batches(plan):
        l_tilde = m_tilde + rng.standard_normal((n, len(CHI_X))) @ root.T
        yield Draws(model.scale * (model.alpha + 0.5 * np.square(l_tilde)), models)


def _chi_digest(plan: Plan, parts: Sequence[Draws]) -> Digest:
    draws = np.concatenate([part.likelihoods for part in parts])
    models = parts[0].models
    truth = np.exp(-np.square(CHI_X))
    bands = [_chi_band(models[name]) for name in ("wsabi-m", "wsabi-l")]
    edges = np.linspace(-0.4, 1.6, 201)
    density = np.stack([np.histogram(column, edges, density=False)[0] for column in draws.T], axis=1) / len(draws)
    figure = density_with_bands(
        CHI_X, edges, density / (edges[1] - edges[0]), truth, bands, CHI_POINTS, np.exp(-np.square(CHI_POINTS))
    )
    low, median, high = np.quantile(draws, [0.025, 0.5, 0.975], axis=0)
    mean = draws.mean(axis=0)
    by_name = {band.method: band for band in bands}
    columns: list[Array] = [CHI_X, truth, mean, low, median, high]
    for name in ("wsabi-l", "wsabi-m"):
        columns += [by_name[name].mean, by_name[name].low, by_name[name].high]
    names = "x likelihood draws_mean draws_low95 draws_median draws_high95 l_mean l_low95 l_high95 m_mean m_low95 m_high95"
    table = Table(tuple(names.split()), [tuple(map(float, row)) for row in zip(*columns, strict=True)])
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


def _coverage(draws: Array, band: Band, where: Array) -> float:
    """Share of the true process that lies in the band; a margin of 1e-9 forgives round-off at the samples."""
    inside = (draws[:, where] >= band.low[where] - 1e-9) & (draws[:, where] <= band.high[where] + 1e-9)
    return float(np.mean(inside))


def _chi_summary(draws: Array, bands: dict[str, Band], truth: Array) -> Table:
    rows = []
    for name, band in bands.items():
        error, gap = np.abs(band.mean - truth), np.abs(band.mean - draws.mean(axis=0))
        coverage = [f"{_coverage(draws, band, where):.1%}" for where in (INSIDE, FAR)]
        rows.append((LABELS[name], f"{error[INSIDE].max():.4f}", f"{error[FAR].max():.4f}", f"{gap.max():.4f}", *coverage))
    return Table(
        ("model", "max |m − ℓ|, |x| ≤ 2", "max |m − ℓ|, |x| ≥ 4", "max |m − mean of draws|",
         "χ² draws in its 95 % band, |x| ≤ 2", "χ² draws in its 95 % band, |x| ≥ 4"),
        rows,
    )  # fmt: skip


def _chi_claims(draws: Array, bands: dict[str, Band], truth: Array) -> list[Claim]:
    l, m = bands["wsabi-l"], bands["wsabi-m"]
    far_l, far_m = (float(np.mean(band.mean[FAR])) for band in (l, m))
    width_l, width_m = (float(np.mean((band.high - band.low)[FAR])) for band in (l, m))
    gap = float(np.abs(l.mean - m.mean)[INSIDE].max())
    error = float(np.abs(l.mean - truth).max())
    far_cover = _coverage(draws, l, FAR)
    return [
        Claim(
            "Moment matching has a higher mean and variance far from observations.",
            f"mean of m at |x| ≥ 4: {far_m:.3f} (M), {far_l:.2g} (L); width of the 95 % band: {width_m:.2f}, {width_l:.2f}",
            decide(far_m > far_l and width_m > width_l),
        ),
        Claim(
            "Otherwise the approximations agree with each other and with the true density.",
            f"for |x| ≤ 2 the means differ by at most {gap:.4f}; far out the 95 % band of L holds {far_cover:.0%} of the "
            "true process",
            "holds in part" if gap < 0.01 and far_cover < 0.9 else decide(gap < 0.01),
        ),
        Claim("The WSABI-L mean is nearly identical to the truth (Fig. 2).", f"max |m − ℓ| = {error:.4f}", decide(error < 0.05)),
    ]


CHI_SQUARED = Experiment(
    "chi-squared",
    "The χ² process and its two approximations",
    "Figure 2: 50,000 draws of the true process for ℓ = exp(−x²) and seven observations, with means and 95 % bands of "
    "WSABI-L and WSABI-M.",
    lambda plan: len(_chi_batches(plan)),
    _chi_steps,
    _chi_digest,
)
