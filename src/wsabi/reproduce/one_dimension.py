"""The paper's one-dimensional figures of models: GP on ℓ against square-root GP on a grid, and active sampling."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from wsabi._core.types import Array
from wsabi.plots import Band, LikelihoodPanel, likelihood_panels
from wsabi.plots.style import LABELS
from wsabi.reproduce.curves import Cell, Table
from wsabi.reproduce.experiment import Amount, Claim, Digest, Experiment, Plan, Verdict, decide
from wsabi.reproduce.lines import DOMAIN, NORMAL_95, PRIOR, SHOWN, Bumps, LineModel, active, grid_model, random_bumps
from wsabi.settings import Acquisition, Method

__all__ = ["ACTIVE_L", "ACTIVE_M", "GRID"]

X_PLOT = np.linspace(*DOMAIN, 601)


@dataclass(frozen=True, eq=False)
class Fit:
    """One model of one likelihood, the one ``shown`` in the figure or a "broad" or "narrow" random one."""

    likelihood: Bumps
    model: LineModel
    kind: str  # "grid", "active" (uncertainty sampling) or "look-ahead" (expected entropy)
    function: str
    index: int
    seconds: float = 0.0  # that the choice of the samples took

    @property
    def shown(self) -> bool:
        """Whether it is in the figure."""
        return self.function == "shown"

    def rms_error(self) -> float:
        """Root mean square of m(x) − ℓ(x) over the domain."""
        return float(np.sqrt(np.mean(np.square(self.model.predict(X_PLOT)[0] - self.likelihood(X_PLOT)))))

    def z_error(self) -> float:
        """|E[Z]/Z − 1|."""
        return abs(self.model.z()[0] / self.likelihood.z - 1.0)


# Two kinds of random function: with bumps wider than the spacing of the grid, 12/14 = 0.86, which a grid resolves, and
# narrower ones, which it does not.
N_FUNCTIONS = Amount(full=40, quick=6)
WIDTHS = {"broad": (0.4, 1.2), "narrow": (0.15, 0.6)}


def _functions(plan: Plan) -> list[tuple[str, Bumps]]:
    """The function in the figure, then random ones, broad and narrow in turn, on which statements are tested again."""
    rng = np.random.default_rng(plan.seed)
    kinds = list(WIDTHS)
    return [("shown", SHOWN)] + [
        (kinds[i % 2], random_bumps(rng, WIDTHS[kinds[i % 2]])) for i in range(N_FUNCTIONS.of(plan))
    ]


def _random_functions(plan: Plan) -> str:
    n = N_FUNCTIONS.of(plan) // 2
    kinds = " and ".join(f"{n} {kind} (widths {low} to {high})" for kind, (low, high) in WIDTHS.items())
    return f"Each statement is tested on random functions of two to five Gaussian bumps as well: {kinds}."


def _band(model: LineModel, sd_factor: Array | float = 1.0) -> Band:
    mean, sd = model.predict(X_PLOT)
    half = NORMAL_95 * sd * sd_factor
    return Band(model.method, X_PLOT, mean, mean - half, mean + half)


def _curves(fits: Sequence[Fit]) -> Table:
    rows: list[Sequence[Cell]] = []
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
        (
            fit.index,
            fit.function,
            fit.model.method,
            fit.kind,
            fit.rms_error(),
            fit.likelihood.z,
            *fit.model.z(),
            fit.z_error(),
        )
        for fit in fits
    ]
    names = ("index", "function", "model", "samples", "rms_error", "z_true", "z_mean", "z_sd", "z_fractional_error")
    return Table(names, rows)


def _pick(fits: Sequence[Fit], method: str, kind: str, *, shown: bool) -> list[Fit]:
    return [fit for fit in fits if fit.model.method == method and fit.kind == kind and fit.shown == shown]


# -- GP on ℓ against square-root GP ------------------------------------------------------------------------------------


GRID_METHODS: tuple[Method, ...] = ("bq", "wsabi-m", "wsabi-l")


def _grid_steps(plan: Plan) -> Iterator[Fit]:
    for index, (function, likelihood) in enumerate(_functions(plan)):
        for method in GRID_METHODS:
            yield Fit(likelihood, grid_model(method, likelihood), "grid", function, index)


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
            "The paper does not give its function: this one is three Gaussian bumps under the prior N(0, 2²), sampled "
            f"on a grid of 15 over [{DOMAIN[0]:g}, {DOMAIN[1]:g}]. Length-scales by MAP for each model.",
            _random_functions(plan),
        ),
    )


def _paired(fits: Sequence[Fit], first: tuple[str, str], second: tuple[str, str]) -> list[tuple[Fit, Fit]]:
    """Fits of the same random function by two (method, kind)."""
    others = {fit.index: fit for fit in _pick(fits, *second, shown=False)}
    return [(fit, others[fit.index]) for fit in _pick(fits, *first, shown=False) if fit.index in others]


def _tally(pairs: Sequence[tuple[Fit, Fit]], won: Sequence[bool]) -> str:
    """How many pairs were won, by the kind of function."""
    kinds = [first.function for first, _ in pairs]
    counts = {kind: [w for w, k in zip(won, kinds, strict=True) if k == kind] for kind in WIDTHS}
    return " and ".join(f"{sum(found)} of {len(found)} {kind}" for kind, found in counts.items()) + " functions"


def _by_share(won: Sequence[bool]) -> Verdict:
    """A statement about functions in general holds if it is true of nine in ten, in part if of more than half."""
    share = sum(won) / len(won)
    return "holds" if share > 0.9 else "holds in part" if share > 0.5 else "does not hold"


def _z_gap(first: Fit, second: Fit) -> float:
    """|E[Z] of one / E[Z] of the other − 1|."""
    return abs(first.model.z()[0] / second.model.z()[0] - 1.0)


def _grid_claims(fits: Sequence[Fit]) -> list[Claim]:
    pairs = _paired(fits, ("wsabi-m", "grid"), ("bq", "grid"))
    both = _paired(fits, ("wsabi-m", "grid"), ("wsabi-l", "grid"))
    if not pairs or not both:
        return []
    closer = [m.rms_error() < bq.rms_error() for m, bq in pairs]
    ratio = float(np.median([m.rms_error() / bq.rms_error() for m, bq in pairs]))
    negative = [float(np.mean([_mean_negative(fit.model) for fit in side])) for side in zip(*pairs, strict=True)]
    gap = max(_z_gap(m, linear) for m, linear in both)
    shown_gap = _z_gap(_pick(fits, "wsabi-m", "grid", shown=True)[0], _pick(fits, "wsabi-l", "grid", shown=True)[0])
    return [
        Claim(
            "On the same 15 samples the square-root GP fits ℓ more closely than the GP on ℓ (Fig. 1).",
            f"closer on {_tally(pairs, closer)}; median ratio of r.m.s. errors {ratio:.2f}",
            _by_share(closer),
        ),
        Claim(
            "It puts minimal probability on negative ℓ.",
            f"mean P(ℓ < 0): {negative[0]:.3f} for WSABI-M, {negative[1]:.3f} for the GP on ℓ",
            decide(negative[0] < 0.5 * negative[1]),
        ),
        Claim(
            "The linearised model performs identically (caption of Fig. 1).",
            f"E[Z] of L and M differ by {shown_gap:.2%} on the function shown, by at most {gap:.1%} on {len(both)} "
            "random ones",
            "holds in part" if shown_gap < 0.01 <= gap else decide(shown_gap < 0.01),
        ),
    ]


GRID = Experiment(
    "bayes-hermite-vs-sqrt",
    "A GP on ℓ against a square-root GP, on the same 15 points",
    "Figure 1: conditioned on a grid of 15 samples, the square-root model fits better, is less sure where ℓ is high, "
    "and puts hardly any probability below zero.",
    lambda plan: 3 * (1 + N_FUNCTIONS.of(plan)),
    _grid_steps,
    _grid_digest,
)


# -- active sampling ---------------------------------------------------------------------------------------------------


ACQUISITIONS: dict[str, Acquisition] = {"active": "uncertainty", "look-ahead": "expected-entropy"}
TITLES = {"active": "chosen actively", "look-ahead": "chosen by expected entropy", "grid": "on a grid"}


def _active_steps(method: Method, plan: Plan) -> Iterator[Fit]:
    rngs = {kind: np.random.default_rng(plan.seed + 1 + k) for k, kind in enumerate(ACQUISITIONS)}
    for index, (function, likelihood) in enumerate(_functions(plan)):
        for kind, acquisition in ACQUISITIONS.items():
            started = time.perf_counter()
            model = active(method, likelihood, rngs[kind], acquisition=acquisition)
            yield Fit(likelihood, model, kind, function, index, time.perf_counter() - started)
        yield Fit(likelihood, grid_model(method, likelihood), "grid", function, index)


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
            "As in the paper, the band is scaled by the prior and the mean is not. Settings.paper(), beginning with "
            "one sample at the prior mean; numbers give the order of the samples. The paper gives no function.",
            "Look-ahead is the same with acquisition='expected-entropy', eq. (13), which the paper does not run.",
            _random_functions(plan),
        ),
    )


def _active_panel(fit: Fit, prior: Array) -> LikelihoodPanel:
    label = LABELS[fit.model.method]
    return LikelihoodPanel(
        f"{label}, 15 samples {TITLES[fit.kind]}",
        SHOWN(X_PLOT), _band(fit.model, prior / prior.max()), fit.model.points, fit.model.values,
        remarks=(f"error of Z {fit.z_error():.2%}",), prior=prior, numbered=fit.kind != "grid",
    )  # fmt: skip


def _far_mean(fit: Fit) -> float:
    """m(x) halfway beyond the domain, as a share of the highest value seen."""
    far = np.array([2.0 * DOMAIN[0], 2.0 * DOMAIN[1]])
    return float(np.max(fit.model.predict(far)[0]) / fit.model.scale)


def _active_claims(method: Method, fits: Sequence[Fit]) -> list[Claim]:
    pairs = _paired(fits, (method, "active"), (method, "grid"))
    if not pairs:
        return []
    better = [a.z_error() < g.z_error() for a, g in pairs]
    errors = [float(np.median([fit.z_error() for fit in side])) for side in zip(*pairs, strict=True)]
    far = float(np.median([_far_mean(fit) for fit, _ in pairs]))
    ahead = _paired(fits, (method, "look-ahead"), (method, "active"))
    ahead_better = [a.z_error() < b.z_error() for a, b in ahead]
    ahead_error = float(np.median([a.z_error() for a, _ in ahead]))
    cost = float(np.median([a.seconds / b.seconds for a, b in ahead]))
    statement, holds = (
        ("The mean is zero away from samples (caption of the L figure).", far < 1e-2)
        if method == "wsabi-l"
        else ("The mean is not zero anywhere (caption of the M figure).", far > 1e-2)
    )
    return [
        Claim(
            "15 actively chosen samples tell more of Z than a grid.",
            f"smaller error of Z on {_tally(pairs, better)}; median error {errors[0]:.2%} active, {errors[1]:.2%} on "
            "the grid",
            _by_share(better),
        ),
        Claim(
            "Uncertainty sampling is considerably cheaper than expected entropy (section 4.2).",
            f"expected entropy takes {cost:.1f} times as long over 15 samples (median); its error of Z is smaller on "
            f"{_tally(ahead, ahead_better)}, median {ahead_error:.2%}",
            decide(cost > 2.0),
        ),
        Claim(statement, f"median m(x) far outside the domain: {far:.2g} of the highest ℓ seen", decide(holds)),
    ]


def _active_experiment(method: Method, title: str, paper: str) -> Experiment:
    return Experiment(
        f"active-{method[-1]}",
        title,
        paper,
        lambda plan: 3 * (1 + N_FUNCTIONS.of(plan)),
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
