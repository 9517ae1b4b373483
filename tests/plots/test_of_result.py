"""Pictures of a result: they show its numbers, on axes of one's own too, and say what they cannot draw."""

from __future__ import annotations

import builtins
import dataclasses
import io
import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose
from scipy import stats

import wsabi
from wsabi import plots
from wsabi.ledger import BatchTold
from wsabi.pages.charts import convergence_charts
from wsabi.plots.check import tail_line
from wsabi.plots.corner import draw_corner, highest_density_levels
from wsabi.plots.course import Course
from wsabi.plots.searches import search_paths
from wsabi.plots.style import less, offset_of
from wsabi.posterior.posterior import Posterior
from wsabi.posterior.weighted import WeightedSamples

METHODS = ("corner", "convergence", "searches", "slices", "check")


@pytest.fixture(scope="module")
def result() -> wsabi.Result:
    prior = {"a": stats.norm(0, 2), "tau": (0.0, 4.0)}
    return wsabi.integrate(lambda p: -2.0 * (p["a"] - 1.0) ** 2 - p["tau"], prior, budget=90, rng=0)


@pytest.fixture(scope="module")
def plain() -> wsabi.Result:
    settings = wsabi.Settings(measure="prior")
    return wsabi.integrate(lambda x: -0.5 * float(x @ x), wsabi.Gaussian([0.0]), budget=20, rng=0, settings=settings)


def many(dim: int) -> Posterior:
    points = np.random.default_rng(0).normal(size=(300, dim))
    return Posterior(WeightedSamples(points, np.full(300, 1 / 300), tuple(f"x{d}" for d in range(dim))))


def drawn(figure: Figure) -> bytes:
    """What is on it, as it would be shown."""
    target = io.BytesIO()
    figure.savefig(target, dpi=30)
    return target.getvalue()


@pytest.mark.parametrize("method", METHODS)
def test_every_picture_is_drawn(result: wsabi.Result, method: str) -> None:
    figure = getattr(result.plot, method)()
    assert isinstance(figure, Figure)
    assert drawn(figure)[:4] == b"\x89PNG"
    assert not hasattr(figure, "number")  # it belongs to no window


@pytest.mark.parametrize(("method", "count"), list(zip(METHODS, (4, 3, 3, 2, 3), strict=True)))
def test_axes_of_ones_own(result: wsabi.Result, method: str, count: int) -> None:
    figure = Figure()
    axes = figure.subplots(1, count)
    assert getattr(result.plot, method)(axes=axes) is figure
    assert all(axis.has_data() or not axis.get_visible() for axis in axes)
    with pytest.raises(ValueError, match=f"{method} needs {count} axes; got 1"):
        getattr(result.plot, method)(axes=axes[0])


def test_corner_shows_names_truth_and_the_support(result: wsabi.Result) -> None:
    figure = result.plot.corner(truth={"a": 1.0})
    grid = np.array(figure.axes).reshape(2, 2)
    assert not grid[0, 1].get_visible()
    assert grid[1, 0].get_xlabel() == "a"
    assert grid[1, 0].get_ylabel() == "tau"
    assert grid[1, 0].get_ylim()[0] >= 0.0
    assert 1.0 in {float(line.get_xdata()[0]) for line in grid[0, 0].lines}
    assert result.plot.corner(["tau"]).axes[0].get_xlabel() == "tau"
    assert len(result.plot.corner(truth=[1.0, 0.5]).axes) == 4
    with pytest.raises(ValueError, match="truth has 1 values; expected 2"):
        result.plot.corner(truth=[1.0])
    with pytest.raises(KeyError, match="'tua' is not one of the parameters a, tau"):
        result.plot.corner(["tua"])


@pytest.mark.parametrize("dim", [1, 12])
def test_corner_of_one_and_of_twelve(result: wsabi.Result, dim: int) -> None:
    figure = dataclasses.replace(result, posterior=many(dim)).plot.corner()
    assert len(figure.axes) == dim**2
    visible = [axis for axis in figure.axes if axis.get_visible()]
    assert len(visible) == dim * (dim + 1) // 2


def test_corner_of_thirteen_asks_for_names(result: wsabi.Result) -> None:
    wide = dataclasses.replace(result, posterior=many(13))
    with pytest.raises(ValueError, match=r"13 parameters cannot be read: name up to 12 of x0, x1"):
        wide.plot.corner()
    assert len(wide.plot.corner(["x3", 12]).axes) == 4


def test_levels_hold_their_share() -> None:
    """Of a standard normal in two dimensions a share s lies where the density exceeds (1 − s) of its top."""
    x = np.linspace(-6.0, 6.0, 241)
    density = np.exp(-0.5 * (x[:, None] ** 2 + x**2))
    assert_allclose(highest_density_levels(density, (0.95, 0.5)), [0.05, 0.5], rtol=0.02)


def test_convergence_shows_history_purposes_truth_and_budget(result: wsabi.Result) -> None:
    course = Course.of(result)
    assert {"search", "check"} <= {one.purpose for one in course.stretches}
    assert course.low < result.log_z < course.high
    assert sum(one.last - one.first for one in course.stretches) == course.n_known == result.n_evals
    for one, following in itertools.pairwise(course.stretches):
        assert (one.last, one.ended) == (following.first, following.begun)
        assert one.purpose != following.purpose
        assert one.begun <= one.ended
    assert not course.is_logarithmic
    figure = result.plot.convergence(truth=result.log_z + 3.0)
    assert figure.axes[0].get_ylim()[1] > result.log_z + 3.0
    labels = [text.get_text() for half in figure.subfigs for legend in half.legends for text in legend.get_texts()]
    assert {"search", "check", "log Z", "truth"} <= set(labels)
    parts = result.error_budget.parts.values()
    assert len(figure.axes[2].patches) == sum(nats > 1e-3 * result.log_z_std for nats in parts)


def test_searches_end_at_their_best_evaluation(result: wsabi.Result) -> None:
    paths = search_paths(result)
    assert len(paths) >= len(result.searches) >= 1
    for path, record in zip(paths, result.searches, strict=False):
        assert path.outcome == record.outcome
        assert len(path.X) == len(path.log_l) == record.n_evals
        assert path.log_l[path.best] == path.log_l.max()


def test_the_tail_has_the_pareto_shape() -> None:
    """Chance ∝ (1 + k(w − u)/σ)^(−1/k): for k → 0 an exponential, and less far out for a smaller k."""
    weights = np.random.default_rng(0).exponential(size=400)
    light, limit, heavy = (tail_line(weights, k)[1] for k in (1e-9, 1e-5, 0.9))
    assert_allclose(light, limit, rtol=0.01)
    assert heavy[-1] > light[-1]
    assert np.all(np.diff(heavy) < 0.0)


def test_what_cannot_be_drawn_says_why(plain: wsabi.Result, result: wsabi.Result) -> None:
    assert isinstance(plain.plot.slices(), Figure)
    assert isinstance(plain.plot.convergence(), Figure)
    with pytest.raises(ValueError, match="there is no search to draw"):
        plain.plot.searches()
    with pytest.raises(ValueError, match="there are no check points"):
        plain.plot.check()
    other = result.with_prior({"a": stats.norm(0, 1), "tau": (0.0, 4.0)})
    assert isinstance(other.plot.corner(), Figure)
    with pytest.raises(ValueError, match="slices needs the models of a run"):
        other.plot.slices()
    with pytest.raises(ValueError, match="no history"):
        dataclasses.replace(plain, history=()).plot.convergence()


def test_without_matplotlib_the_message_says_what_to_install(
    result: wsabi.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name, *arguments, **keywords):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    for method in METHODS:
        with pytest.raises(plots.MissingMatplotlib, match=r"pip install 'wsabi\[plot\]'"):
            getattr(result.plot, method)()


def test_asking_for_pictures_does_not_load_matplotlib() -> None:
    code = "import sys, wsabi.plots.of_result; print('matplotlib' in sys.modules)"
    source = str(Path(wsabi.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "False\n"


def test_names_of_the_pictures_are_listed(result: wsabi.Result) -> None:
    assert all(method in repr(result.plot) for method in METHODS)


def test_an_offset_is_taken_off_ticks_that_would_all_look_alike() -> None:
    assert offset_of(99_997.0, 100_004.0) == 100_000.0
    assert offset_of(-2e-9 - 1.0, 2e-9 - 1.0) == -1.0
    assert offset_of(-4.0, 5.0) == offset_of(0.0, 1e-300) == offset_of(3.0, 3.0) == 0.0
    assert less("a", 0.0) == "a"
    assert less("a", -1.0) == "a + 1"
    points = np.random.default_rng(0).normal((0.0, 1e5), 1.0, size=(200, 2))
    figure = draw_corner(Posterior(WeightedSamples(points, np.full(200, 1 / 200), ("a", "b"))), None, None, None)
    figure.canvas.draw()
    last = figure.axes[-1]
    assert last.get_xlabel() == "b − 100000"
    assert {abs(float(text.get_text().replace("−", "-"))) <= 5.0 for text in last.get_xticklabels()} == {True}


def test_bulk_points_are_one_stretch_on_a_logarithmic_axis() -> None:
    prior, x = wsabi.Gaussian([0.0]), np.linspace(-1.0, 1.0, 10)
    run = wsabi.integrate(
        lambda x: -0.5 * float(x @ x), prior, budget=10, rng=0, settings=wsabi.Settings(measure="prior")
    )
    assert run.ledger is not None
    bulk = BatchTold(0, x[:, None], np.where(x > 0.0, 0.0, -np.inf), 9.0)
    failed = BatchTold(10, x[:, None], np.full(10, np.nan), 9.5)
    events = (*run.ledger.events, *(bulk,) * 5, failed)
    run = dataclasses.replace(run, ledger=dataclasses.replace(run.ledger, events=events))
    course = Course.of(run)
    assert course.stretches[-1][:3] == ("bulk", 10, 60)
    assert course.stretches[-1].ended == 9.5
    assert course.is_logarithmic
    by_evals = run.plot.convergence().axes[0]
    assert by_evals.get_xscale() == "log"
    assert "bulk" in by_evals.get_legend_handles_labels()[1]
    assert "evaluations 11 to 60: bulk" in convergence_charts(run)[0]
