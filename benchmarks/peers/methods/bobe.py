"""BOBE: the call of its README; a prior that is not flat goes into ℓ."""

from __future__ import annotations

import tempfile

import numpy as np

from benchmarks.peers.task import Answer, Peer, Task, effective

PEER = Peer(kind="surrogate", variants={"BOBE": {}}, requirements=("BOBE==0.1.0",), package="BOBE", imports=("BOBE",))


def run(task: Task) -> Answer:
    from BOBE import BOBE

    space = task.space
    bounds = np.stack(space.box)
    with tempfile.TemporaryDirectory() as folder:
        sampler = BOBE(
            loglikelihood=lambda u: max(space.log_joint(np.asarray(u)), -1e10),
            param_list=[f"x{d}" for d in range(task.dim)],
            param_bounds=bounds,
            save_dir=folder,
            seed=task.seed,
            verbosity="ERROR",
        )
        results = sampler.run(logz_threshold=0.1, do_final_ns=True)  # else no log Z where the threshold is not met
    log_z = results["logz"]
    log_volume = float(np.log(bounds[1] - bounds[0]).sum())
    std = 0.5 * float(log_z["upper"] - log_z["lower"])  # what its threshold is compared with
    draws = effective(np.log(np.maximum(results["samples"]["weights"], 1e-300)))
    return Answer(float(log_z["mean"]) + log_volume, std, bool(sampler.converged), draws)
