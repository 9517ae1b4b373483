"""The problems: the public suite, those with several modes, and real models where their data are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks import held_out
from benchmarks.peers.task import Task
from benchmarks.study_models import FOLDER, load_models
from wsabi import problems
from wsabi._core.types import Array
from wsabi.problems import Problem

__all__ = ["CASES", "Case", "Loaded", "model_cases", "task_of"]


@dataclass(frozen=True)
class Loaded:
    """A problem as a peer meets it, whatever it was made of."""

    function: Callable[[Array], Array]
    prior: Any
    dim: int
    log_z: float
    log_z_std: float


@dataclass(frozen=True)
class Case:
    """A problem of the benchmark.

    Parameters
    ----------
    label : its name in tables.
    group : "suite", "modes" or "models".
    make : from a seed to the problem; only mixtures are drawn anew for each seed.
    """

    label: str
    group: str
    make: Callable[[int], Loaded] = field(repr=False)


def _loaded(problem: Problem) -> Loaded:
    return Loaded(problem.log_likelihood_vectorized, problem.prior, problem.dim, problem.log_z, problem.log_z_std)


def _suite(seed: int, *, name: str, settings: Mapping[str, Any], drawn: bool = False) -> Loaded:
    return _loaded(problems.get(name, **settings, **({"seed": seed} if drawn else {})))


def _held_out(_seed: int, *, maker: Callable[[], Problem]) -> Loaded:
    return _loaded(maker())


def _model(_seed: int, *, name: str) -> Loaded:
    model = load_models(FOLDER)[name]
    prior = list(model.prior.values()) if isinstance(model.prior, dict) else model.prior
    return Loaded(model.batch, prior, model.dim, float(model.log_z), float(model.log_z_se))


def _of(label: str, name: str, *, group: str = "suite", drawn: bool = False, **settings: Any) -> Case:
    return Case(label, group, partial(_suite, name=name, settings=settings, drawn=drawn))


def _extra(label: str, maker: Callable[[], Problem]) -> Case:
    return Case(label, "modes", partial(_held_out, maker=maker))


MODELS = ("kilpisjarvi", "gp_regr", "arma11", "eight_schools", "gauss_mix_free", "low_dim_gauss_mix", "sblrc",
          "mm_elim", "lotka_volterra")  # fmt: skip


def model_cases() -> list[Case]:
    """The real models; none where their folder is missing."""
    if not (FOLDER / "models.py").exists():
        return []
    return [Case(name, "models", partial(_model, name=name)) for name in MODELS]


# In the order in which they are run: the first few, of every kind, are worth having alone.
CASES: tuple[Case, ...] = (
    _of("gmm sd 4-D", "gmm", drawn=True, spread="sd"),
    _of("banana 2-D", "banana"),
    _of("correlated 6-D", "correlated_gaussian", dim=6),
    _of("two bumps 2-D", "two_bumps", group="modes"),
    *model_cases()[:1],
    _of("Student tails 2-D", "student_tails"),
    _of("shells 2-D", "shells", group="modes"),
    _of("synthclass 3-D", "synthclass"),
    _extra("three bumps 5-D", held_out.three),
    *model_cases()[1:4],
    _of("narrow 4-D", "narrow_gaussian", dim=4),
    _of("eggbox 2-D", "eggbox", group="modes"),
    _of("product of widths 4-D", "product_widths"),
    _of("ridge 3-D", "ridge"),
    _of("infeasible half 2-D", "infeasible_half"),
    _of("plateau 2-D", "plateau"),
    _of("gmm variance 4-D", "gmm", group="modes", drawn=True, spread="variance"),
    *model_cases()[4:],
    _extra("two bumps 8-D", held_out.two),
    _extra("period search 4-D", held_out.period),
    _of("correlated 2-D", "correlated_gaussian", dim=2),
    _of("correlated 10-D", "correlated_gaussian", dim=10),
    _of("constant 2-D", "constant"),
    _of("citation 6-D", "citation"),
    _of("yacht standardised 8-D", "yacht", standardized=True),
    _of("yacht raw 8-D", "yacht", standardized=False),
)  # fmt: skip


def task_of(case: Case, seed: int) -> tuple[Task, Loaded]:
    problem = case.make(seed)
    return Task(problem.function, problem.prior, problem.dim, seed), problem
