"""A picture of a run of the adaptive engine: where it looked, the measure it settled on, its model and certificate.

Usage: python adaptive_run.py [picture.png]
"""

import math
import sys
from pathlib import Path

import numpy as np

import wsabi
from wsabi.adaptive.check.controls import FINAL
from wsabi.adaptive.engine import AdaptiveModel
from wsabi.plots.style import TRUTH, new_figure

BUDGET = 200
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"


def log_likelihood(X: np.ndarray) -> np.ndarray:
    """A tilted, slightly bent ridge and a round bump apart from it: log ℓ (N,) at X (N, 2)."""
    along, across = X[:, 0] + X[:, 1] - 2.2, X[:, 0] - X[:, 1]
    ridge = -0.5 * (np.square(along / 0.6) + np.square((across - 0.3 * np.square(along)) / 0.2))
    bump = -0.5 * (np.square((X[:, 0] + 1.6) / 0.3) + np.square((X[:, 1] + 1.4) / 0.3))
    return np.logaddexp(ridge, bump)


def run(prior: wsabi.Gaussian) -> tuple[AdaptiveModel, list[tuple[int, float, float]], np.ndarray]:
    """The engine itself, driven by hand: the model after BUDGET evaluations, (n, log Z, sd) on the way, who looked."""
    model = AdaptiveModel(prior, wsabi.Settings(), np.random.default_rng(1), BUDGET)
    history, looking = [], []
    for n in range(1, BUDGET + 1):
        x = model.propose(1, np.empty((0, 2)))
        looking.append(model.lookout.is_asking)
        model.observe(x, log_likelihood(x))
        estimate = model.estimate()
        if estimate is not None:
            history.append((n, estimate.log_z, estimate.log_z_std))
    return model, history, np.array(looking)


def draw(
    model: AdaptiveModel, history: list[tuple[int, float, float]], looking: np.ndarray, exact: float, path: Path
) -> None:
    """Three panels: the points over ℓπ, the regions over the model of it, and the error of log Z as it went."""
    axis = np.linspace(-2.9, 2.9, 200)
    grid = np.stack([part.ravel() for part in np.meshgrid(axis, axis)], axis=1)
    density = np.exp(log_likelihood(grid) + model.measure.log_pdf(grid))
    modelled = np.exp(model.regions.surrogate(grid)[0] + model.offset)
    levels = density.max() * np.array([0.003, 0.03, 0.1, 0.3, 0.6, 0.9])
    fresh = ~model.data.is_training
    stages = [
        ("looking", looking, BLUE, "o"),
        ("integrating", ~looking & ~fresh, RED, "^"),
        ("fresh, for the certificate", fresh, GREEN, "D"),
    ]
    with new_figure(10.5, 3.7) as figure:
        left, middle, right = figure.subplots(1, 3)
        left.contour(axis, axis, density.reshape(200, 200), levels=levels, colors="0.6", linewidths=0.7)
        for label, chosen, colour, marker in stages:
            where = model.X[chosen]
            left.scatter(*where.T, s=13, c=colour, marker=marker, label=f"{label}, {len(where)}", lw=0)
        left.set_title("evaluations by stage, over the true ℓπ")

        middle.contourf(
            axis, axis, modelled.reshape(200, 200), levels=[*levels, levels[-1] * 2], cmap="Greys", extend="max"
        )
        angle = np.linspace(0.0, 2.0 * math.pi, 100)
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        for part in model.regions.parts:
            for radius, style in ((1.0, "-"), (2.0, "--")):
                label = f"q: {radius:.0f} sd" if part is model.regions.parts[0] else None
                middle.plot(*part.frame.colour(radius * circle).T, color=ORANGE, ls=style, lw=1.2, label=label)
        middle.set_title("the measure q, over the model of ℓπ")
        for panel in (left, middle):
            panel.set(xlim=(-2.9, 2.9), ylim=(-2.9, 2.9), aspect="equal", xlabel="x₁", ylabel="x₂")
            panel.legend(loc="upper left")

        n, log_z, sd = np.array(history).T
        right.fill_between(
            np.arange(1, BUDGET + 1), 0, 1, where=looking, transform=right.get_xaxis_transform(), color=BLUE,
            alpha=0.1, lw=0, step="post", label="looking",
        )  # fmt: skip
        right.semilogy(n, np.abs(log_z - exact), color=TRUTH, lw=1.0, label="error of log Z")
        right.semilogy(n, sd, color=RED, label="standard deviation claimed")
        right.set(xlim=(0, BUDGET), ylim=(1e-5, 0.1), xlabel="evaluations", ylabel="nats")
        right.set_title("the error and what is claimed of it")
        right.legend(loc="lower left")
        figure.savefig(path, dpi=130, metadata={"Software": None})


prior = wsabi.Gaussian([0.0, 0.0])
model, history, looking = run(prior)
certificate = model.estimate(FINAL)

# Both parts are smooth and vanish well inside the square, so a plain sum over a fine grid is exact to round-off.
axis = np.linspace(-8.0, 8.0, 1601)
grid = np.stack([part.ravel() for part in np.meshgrid(axis, axis)], axis=1)
exact = math.log(np.exp(log_likelihood(grid) + prior.log_pdf(grid)).sum() * (axis[1] - axis[0]) ** 2)

draw(model, history, looking, exact, Path(sys.argv[1] if len(sys.argv) > 1 else "adaptive-run.png"))
for look in model.found.searches:
    print(f"look: {look.n_evals} evaluations, {look.outcome}, log mass {look.log_z:.3f}")
print(f"model    {certificate.model_log_z:.4f} ± {certificate.model_log_z_std:.4f}")
print(f"fresh    {certificate.check_log_z:.4f} ± {certificate.check_log_z_std:.4f} from {certificate.n_points} points")
print(f"estimate {certificate.log_z:.4f} ± {certificate.log_z_std:.4f}")
print(f"exact    {exact:.4f}")
