"""Explorers that have arrived and searches that have ended, made by hand: what tests of known regions share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.search.known_regions import KnownRegions, Region
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.symmetry.group import Symmetry
from wsabi.priors import Gaussian
from wsabi.result import SearchRecord

MEASURE = Gaussian([0.0, 0.0])
HERE, THERE, ELSEWHERE = np.array([1.0, 1.0]), np.array([-1.0, 1.0]), np.array([-1.0, -1.0])


def an_explorer(
    centre: np.ndarray,
    log_z: float = 0.0,
    uncertainty: float = 0.1,
    *,
    frame: Frame | None = None,
    temperature: float = 1.0,
) -> Explorer:
    """One that has arrived at N(centre, 0.1² I), or ``frame``, with that mass; it has not if the temperature is not 1.

    It has no data and no surrogate.
    """
    return Explorer(
        Gaussian(np.zeros(len(centre))),
        Frame.of(centre, 0.01 * np.eye(len(centre))) if frame is None else frame,
        temperature=temperature,
        matched_temperature=temperature,
        log_z=log_z,
        uncertainty=uncertainty,
    )


def a_record(outcome: Any, n_evals: int = 20) -> SearchRecord:
    """What is noted of a search that has ended so."""
    return SearchRecord(n_evals, 0.0, outcome)


def known_of(*searches: tuple[str, Explorer]) -> KnownRegions:
    """What is known after searches that have ended so, with these explorers."""
    known = KnownRegions(MEASURE)
    for outcome, explorer in searches:
        known = known.recorded(a_record(outcome), explorer, 0.5)
    return known


def hits_of(known: KnownRegions) -> list[int]:
    """How many searches have ended in each region."""
    return [region.hits for region in known.regions]


a_look, found_of = a_record, known_of


def a_fitted_explorer(
    frame: Frame,
    X: np.ndarray,
    log_l: np.ndarray,
    log_z: float = 0.0,
    *,
    measure: Gaussian | None = None,
) -> Explorer:
    """One whose q is ``frame``, with X and log ℓ for its data and that mass; the prior is N(0, I) by default."""
    measure = Gaussian(np.zeros(len(frame.mean))) if measure is None else measure
    return replace(Explorer(measure, frame).fitted(X, log_l, learn=True), log_z=log_z)


def known_with(
    explorers: Sequence[Explorer],
    families: Sequence[int] | None = None,
    symmetries: Sequence[Symmetry | None] | None = None,
) -> KnownRegions:
    """Regions of these explorers, each of a family of its own by default."""
    families = range(len(explorers)) if families is None else families
    symmetries = [None] * len(explorers) if symmetries is None else symmetries
    regions = tuple(
        Region(explorer, 1, family, symmetry)
        for explorer, family, symmetry in zip(explorers, families, symmetries, strict=True)
    )
    return KnownRegions(explorers[0].measure, regions, n_families=1 + max(families))
