"""Explorers that have arrived and looks that have ended, made by hand: what tests of found regions share."""

from __future__ import annotations

from typing import Any

import numpy as np

from wsabi.adaptive.search.anneal import Explorer
from wsabi.adaptive.search.known_regions import KnownRegions
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.priors import Gaussian
from wsabi.result import SearchRecord

MEASURE = Gaussian([0.0, 0.0])
HERE, THERE, ELSEWHERE = np.array([1.0, 1.0]), np.array([-1.0, 1.0]), np.array([-1.0, -1.0])


def an_explorer(centre: np.ndarray, log_z: float = 0.0, uncertainty: float = 0.1) -> Explorer:
    """One that has arrived at N(centre, 0.1² I) with that mass."""
    explorer = Explorer(Gaussian(np.zeros(len(centre))), np.random.default_rng(0))
    explorer.frame = Frame.of(centre, 0.01 * np.eye(len(centre)))
    explorer.temperature, explorer.log_z, explorer.uncertainty = 1.0, log_z, uncertainty
    return explorer


def a_look(outcome: Any, n_evals: int = 20) -> SearchRecord:
    return SearchRecord(n_evals, 0.0, outcome)


def found_of(*looks: tuple[str, Explorer]) -> KnownRegions:
    found = KnownRegions(MEASURE)
    for outcome, explorer in looks:
        found.record(a_look(outcome), explorer, 0.5)
    return found


def hits_of(found: KnownRegions) -> list[int]:
    return [site.hits for site in found.sites]
