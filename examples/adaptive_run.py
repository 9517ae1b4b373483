"""A picture of a run of the adaptive engine: its evaluations and what each was for, its models, and its error bar.

Usage: python adaptive_run.py [picture.png]
"""

import math
import sys
from pathlib import Path

import numpy as np

import wsabi
from wsabi.adaptive.state import State
from wsabi.plots.style import TRUTH, new_figure
from wsabi.strategies.adaptive import AdaptiveStrategy

BUDGET = 200
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"


def log_likelihood(X: np.ndarray) -> np.ndarray:
    """A tilted, slightly bent ridge and a round bump apart from it: log ℓ (N,) at X (N, 2)."""
    along, across = X[:, 0] + X[:, 1] - 2.2, X[:, 0] - X[:, 1]
    ridge = -0.5 * (np.square(along / 0.6) + np.square((across - 0.3 * np.square(along)) / 0.2))
    bump = -0.5 * (np.square((X[:, 0] + 1.6) / 0.3) + np.square((X[:, 1] + 1.4) / 0.3))
    return np.logaddexp(ridge, bump)


def draw(state: State, result: wsabi.Result, exact: float, path: Path) -> None:
    """Three panels: the points over ℓπ, the regions over the model of it, and the error of log Z as it went."""
    models = state.models
    assert models is not None
    assert result.ledger is not None
    axis = np.linspace(-2.9, 2.9, 200)
    grid = np.stack([part.ravel() for part in np.meshgrid(axis, axis)], axis=1)
    density = np.exp(log_likelihood(grid) + state.measure.log_pdf(grid))
    modelled = np.exp(models.surrogate(grid)[0] + state.data.offset)
    levels = density.max() * np.array([0.003, 0.03, 0.1, 0.3, 0.6, 0.9])
    purposes = np.array([evaluation.purpose.split()[0] for evaluation in result.ledger.evaluations])
    searching = np.isin(purposes, ["search", "image"])
    stages = [
        ("search", searching, BLUE, "o"),
        ("refinement", purposes == "refine", RED, "^"),
        ("check", purposes == "check", GREEN, "D"),
    ]
    with new_figure(10.5, 3.7) as figure:
        left, middle, right = figure.subplots(1, 3)
        left.contour(axis, axis, density.reshape(200, 200), levels=levels, colors="0.6", linewidths=0.7)
        for label, chosen, colour, marker in stages:
            where = result.points[chosen]
            left.scatter(*where.T, s=13, c=colour, marker=marker, label=f"{label}, {len(where)}", lw=0)
        left.set_title("evaluations by purpose, over the true ℓπ")

        middle.contourf(
            axis, axis, modelled.reshape(200, 200), levels=[*levels, levels[-1] * 2], cmap="Greys", extend="max"
        )
        angle = np.linspace(0.0, 2.0 * math.pi, 100)
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        for part in models.parts:
            for radius, style in ((1.0, "-"), (2.0, "--")):
                name = f"q: {radius:.0f} sd" if part is models.parts[0] else None
                middle.plot(*part.frame.colour(radius * circle).T, color=ORANGE, ls=style, lw=1.2, label=name)
        middle.set_title("the measure q, over the model of ℓπ")
        for panel in (left, middle):
            panel.set(xlim=(-2.9, 2.9), ylim=(-2.9, 2.9), aspect="equal", xlabel="x₁", ylabel="x₂")
            panel.legend(loc="upper left")

        n, log_z, sd = np.array([(record.n_evals, record.log_z, record.log_z_std) for record in result.history]).T
        right.fill_between(
            np.arange(1, BUDGET + 1), 0, 1, where=searching, transform=right.get_xaxis_transform(), color=BLUE,
            alpha=0.1, lw=0, step="post", label="searching",
        )  # fmt: skip
        right.semilogy(n, np.abs(log_z - exact), color=TRUTH, lw=1.0, label="error of log Z")
        right.semilogy(n, sd, color=RED, label="error bar")
        right.set(xlim=(0, BUDGET), ylim=(1e-5, 0.1), xlabel="evaluations", ylabel="nats")
        right.set_title("the error and the error bar")
        right.legend(loc="lower left")
        figure.savefig(path, dpi=130, metadata={"Software": None})


prior = wsabi.Gaussian([0.0, 0.0])
integrator = wsabi.Integrator(prior, rng=1)
result = integrator.run(log_likelihood, budget=BUDGET, tol=0.0, vectorized=True)

# Both parts are smooth and vanish well inside the square, so a plain sum over a fine grid is exact to round-off.
axis = np.linspace(-8.0, 8.0, 1601)
grid = np.stack([part.ravel() for part in np.meshgrid(axis, axis)], axis=1)
exact = math.log(np.exp(log_likelihood(grid) + prior.log_pdf(grid)).sum() * (axis[1] - axis[0]) ** 2)

strategy = integrator.strategy
assert isinstance(strategy, AdaptiveStrategy)
draw(strategy.state, result, exact, Path(sys.argv[1] if len(sys.argv) > 1 else "adaptive-run.png"))
for search in result.searches:
    print(f"search: {search.n_evals} evaluations, {search.outcome}, log mass {search.log_z:.3f}")
check = result.certificate
assert check is not None
print(f"models   {check.model_log_z:.4f} ± {check.model_log_z_std:.4f}")
print(f"check    {check.check_log_z:.4f} ± {check.check_log_z_std:.4f} from {check.n_points} points")
print(f"estimate {result.log_z:.4f} ± {result.log_z_std:.4f}")
print(f"exact    {exact:.4f}")
