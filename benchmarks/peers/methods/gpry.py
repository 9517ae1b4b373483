"""GPry: the call of its README, and UltraNest on its surrogate, which needs h5py; a non-flat prior goes into ℓ."""

from __future__ import annotations

import numpy as np

from benchmarks.peers.task import Answer, Peer, Task, effective

PEER = Peer(
    kind="surrogate", variants={"GPry": {}}, requirements=("gpry==4.1", "h5py"), package="gpry", imports=("gpry",)
)


def run(task: Task) -> Answer:
    from gpry import Runner

    space = task.space
    low, high = space.box
    log_volume = float(np.log(high - low).sum())
    runner = Runner(space.log_joint, np.stack([low, high], axis=1).tolist(), seed=task.seed, plots=False, verbose=1)
    runner.run()
    samples = runner.generate_mc_sample()
    log_z, std = runner.last_mc_logZ()  # under a flat prior on the box
    return Answer(
        log_z + log_volume, std, bool(runner.has_converged), effective(np.log(np.maximum(samples["w"], 1e-300)))
    )
