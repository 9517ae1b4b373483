"""Likelihoods and priors as the command line names them: model.py:log_likelihood, prior.toml, any program."""

from __future__ import annotations

import importlib
import importlib.util
import json
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wsabi.model import Model
from wsabi.priors import as_prior

__all__ = ["Command", "ProblemError", "model_of", "prior_of"]


class ProblemError(ValueError):
    """What was typed does not name a likelihood or a prior; the message says why."""


def loaded(target: str, what: str) -> Any:
    """The object that ``path/model.py:name`` or ``package.module:name`` names."""
    place, colon, name = target.rpartition(":")
    if not place or not colon or not name.isidentifier():
        raise ProblemError(f"{what} must be like model.py:name or package.module:name; got {target!r}.")
    if place.endswith(".py"):
        path = Path(place).resolve()
        if not path.is_file():
            raise ProblemError(f"{what}: there is no file {place}.")
        # By its own name and with its folder on the path: worker processes import it by that name.
        sys.path.insert(0, str(path.parent))
        place = path.stem
    try:
        module = importlib.import_module(place)
    except ImportError as error:
        raise ProblemError(f"{what}: {place} cannot be imported: {error}.") from error
    if not hasattr(module, name):
        raise ProblemError(f"{what}: {place} has no {name!r}.")
    return getattr(module, name)


def prior_of(spec: str) -> Any:
    """The prior in a .toml file, or an object of a module, which may be a model with its prior."""
    if not spec.endswith(".toml"):
        found = loaded(spec, "--prior")
        return found.prior if isinstance(found, Model) else found
    try:
        with open(spec, "rb") as file:
            entries = tomllib.load(file)
    except OSError as error:
        raise ProblemError(f"--prior: {spec} cannot be read: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
        raise ProblemError(f"--prior: {spec} is not TOML: {error}.") from error
    if not entries:
        raise ProblemError(f"--prior: {spec} has no parameters.")
    return {name: _entry(entry, f"{spec}: {name}") for name, entry in entries.items()}


def _entry(entry: Any, where: str) -> Any:
    """One parameter: [low, high], or a table with the name and the parameters of a distribution; or a list of such."""
    if isinstance(entry, list):
        if len(entry) == 2 and all(isinstance(end, int | float) for end in entry):
            return (float(entry[0]), float(entry[1]))
        return [_entry(each, where) for each in entry]
    if not isinstance(entry, dict) or not isinstance(entry.get("distribution"), str):
        raise ProblemError(f'{where} must be [low, high] or {{distribution = "norm", loc = 0, scale = 1}}.')
    from scipy import stats

    name = entry["distribution"]
    family = getattr(stats, name, None)
    if not isinstance(family, stats.rv_continuous):
        raise ProblemError(f"{where}: {name!r} is not a continuous distribution of scipy.stats.")
    try:
        return family(**{key: float(value) for key, value in entry.items() if key != "distribution"})
    except (TypeError, ValueError) as error:
        raise ProblemError(f"{where}: {name} does not take these parameters: {error}.") from error


@dataclass(frozen=True)
class Command:
    """A program as log-likelihood: it is given the parameters and prints log ℓ as the last line of its output.

    Parameters
    ----------
    words : of the command line. {name} stands for a parameter; without any, the program reads one JSON object from its
        standard input. No shell is involved.
    names : of the parameters.
    """

    words: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, line: str, names: Sequence[str]) -> Command:
        """For a command line as it was typed."""
        words = tuple(shlex.split(line))
        if not words:
            raise ProblemError("--command is empty.")
        return cls(words, tuple(names))

    def __call__(self, p: Any) -> float:
        """Log ℓ at one point, a dict of the names or an array."""
        row = np.concatenate([np.atleast_1d(value) for value in p.values()]) if isinstance(p, dict) else p
        values = dict(zip(self.names, map(float, row), strict=True))
        words = list(self.words)
        for name, value in values.items():
            words = [word.replace(f"{{{name}}}", repr(value)) for word in words]
        given = json.dumps(values) if words == list(self.words) else None
        # A session of its own: Ctrl-C in the terminal is for the run to handle, not for the program.
        done = subprocess.run(
            words, input=given, stdin=None if given is not None else subprocess.DEVNULL, capture_output=True, text=True,
            check=False, start_new_session=True,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"{words[0]} ended with status {done.returncode}: {done.stderr.strip()[-500:]}")
        lines = done.stdout.split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        try:
            return float(last)
        except ValueError:
            raise RuntimeError(f"{words[0]} printed {last!r} as its last line; expected a number, log ℓ.") from None


def model_of(target: str | None, command: str | None, prior: str | None, *, vectorized: bool = False) -> Model:
    """The model that was named: a :class:`~wsabi.Model`, or a likelihood or a program beside a prior.

    Parameters
    ----------
    prior : None is the object called ``prior`` in the place of a likelihood.
    """
    if (target is None) == (command is None):
        raise ProblemError("give either a likelihood, such as model.py:log_likelihood, or --command.")
    if command is not None:
        if prior is None:
            raise ProblemError("--command needs --prior prior.toml or --prior model.py:prior.")
        given = as_prior(prior_of(prior))
        return Model(Command.of(command, given.names), given)
    found = loaded(str(target), "the likelihood")
    if isinstance(found, Model):
        if prior is not None or vectorized:
            what = "--prior" if prior is not None else "--vectorized"
            raise ProblemError(f"{target} is a wsabi.Model, which says that itself: leave out {what}.")
        return found
    if not callable(found):
        raise ProblemError(f"{target} is not a function but {type(found).__name__}.")
    given = prior_of(f"{str(target).rpartition(':')[0]}:prior" if prior is None else prior)
    return Model(found, given, vectorized=vectorized)
