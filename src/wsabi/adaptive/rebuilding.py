"""Models in the state: when they are built again, and the points that refine them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wsabi._core.types import Array
from wsabi.adaptive.check.proposal import Proposal
from wsabi.adaptive.models import Models
from wsabi.adaptive.purposes import Refinement
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.search.ground import ground_of
from wsabi.adaptive.search.matching import rematched
from wsabi.adaptive.search.proposing import proposed
from wsabi.adaptive.state import Phase, State
from wsabi.errors import NumericalError
from wsabi.ledger import Action

__all__ = ["concluded_from_images", "rebuilt", "refinement"]


def rebuilt(state: State, rng: np.random.Generator) -> State:
    """The state with q of every region matched to all training data, and a new model for each."""
    X, log_l = state.training_data()
    every = state.known.explorers
    known = state.known.with_explorers(lambda one: rematched(one, *_ground(one, every, X, log_l), rng))
    warm = [
        None if state.models is None else state.models.lengthscales_for(old, new)
        for old, new in zip(every, known.explorers, strict=True)
    ]
    models = Models.of(known, state.problem.settings, X, log_l, rng, warm)
    return replace(
        state,
        known=known,
        models=models,
        proposals=(*state.proposals, Proposal(state.measure, models)),
        matched_n=state.data.n_training,
        phase=Phase.INTEGRATING if state.search is None else Phase.SEARCHING,
    )


def concluded_from_images(state: State, rng: np.random.Generator) -> State:
    """The state after conclusions from images; where they prove a symmetry, the images are regions too."""
    images, known = state.images.concluded(state.known, *state.data.training_joint())
    state = replace(state, images=images, known=known)
    return rebuilt(state, rng) if state.models is not None and state.is_outdated else state


def refinement(state: State, under_way: Array, rng: np.random.Generator) -> tuple[State, Action]:
    """A point that the models need.

    Every other point goes where a surrogate of log ℓ is most uncertain: the square root is blind to what lies beyond
    its data, where its mean is zero, and would never let q grow.
    """
    models = state.models
    if models is None:
        raise NumericalError("there are no models to refine yet.")
    try:
        if state.n_refined % 2:
            return state, Action(models.propose(under_way, rng), Refinement())
        k = int(rng.choice(len(models.parts), p=models.weights))
        part = models.parts[k]
        explorer = part.explorer.fitted(*_ground(part.explorer, models.explorers, *state.training_data()))
        state = replace(state, models=models.with_explorer(k, explorer), known=state.known.with_explorer(k, explorer))
        return state, Action(proposed(explorer, under_way, rng, part.uncertainty), Refinement())
    except NumericalError:
        return state, Action(state.proposals[-1].sample(1, rng)[0], Refinement())


def _ground(explorer: Explorer, explorers: Sequence[Explorer], X: Array, log_l: Array) -> tuple[Array, Array]:
    """Those of X (N, D), log ℓ (N,) that are data of an explorer's surrogate."""
    mine = ground_of(explorer, explorers, X, log_l)
    return X[mine], log_l[mine]
