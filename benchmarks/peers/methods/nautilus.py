"""nautilus: the call of its "Crash course", with the likelihood vectorised."""

from __future__ import annotations

import numpy as np

from benchmarks.peers.task import Answer, Peer, Task

PEER = Peer(
    kind="nested sampling",
    variants={"nautilus": {}},
    requirements=("nautilus-sampler==1.0.6",),
    package="nautilus-sampler",
    imports=("nautilus",),
    root_n=True,
)


def run(task: Task) -> Answer:
    from nautilus import Sampler

    sampler = Sampler(task.from_cube, task.floored, n_dim=task.dim, vectorized=True, seed=task.seed)
    success = sampler.run()
    # It gives no error of log Z; its paper has 1/sqrt(n_eff) as the scale of it.
    return Answer(sampler.log_z, float(1.0 / np.sqrt(sampler.n_eff)), bool(success), float(sampler.n_eff))
