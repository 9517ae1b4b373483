"""pocoMC: the call of its "Getting started", with the likelihood vectorised."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.task import Answer, Peer, Task, effective
from wsabi._core.types import Array

PEER = Peer(
    kind="sequential Monte Carlo",
    variants={"pocoMC": {}},
    requirements=("pocomc==1.2.6",),
    package="pocomc",
    imports=("pocomc", "torch"),
    root_n=True,
)


class _Prior:
    """The prior in base coordinates with the four members that pocoMC asks for."""

    def __init__(self, task: Task) -> None:
        self._space, self._rng, self.dim = task.space, task.rng, task.dim
        everywhere = np.full(task.dim, np.inf)
        low, high = self._space.box if self._space.bounded else (-everywhere, everywhere)
        self.bounds = np.stack([low, high], axis=1)

    def logpdf(self, U: Array) -> Array:
        return self._space.log_prior(U)

    def rvs(self, size: Any = 1) -> Array:
        return np.asarray(self._space.measure.sample(int(size), self._rng))


def run(task: Task) -> Answer:
    import pocomc
    import torch

    torch.set_num_threads(1)
    space = task.space
    sampler = pocomc.Sampler(
        prior=_Prior(task), likelihood=space.log_likelihood, vectorize=True, random_state=task.seed
    )
    sampler.run(progress=False)
    log_z, std = sampler.evidence()
    weights = sampler.posterior()[1]
    return Answer(
        float(log_z), None if std is None else float(std), True, effective(np.log(np.maximum(weights, 1e-300)))
    )
