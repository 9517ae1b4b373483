"""alabi: the call of its documentation with its defaults, 100 first and 100 chosen points, then dynesty on the model.

A prior that is not flat goes into ℓ; dynesty then runs under the flat prior on the box.
"""

from __future__ import annotations

import math
import tempfile

import numpy as np

from benchmarks.peers.task import Answer, Peer, Task, effective

PEER = Peer(
    kind="surrogate",
    variants={"alabi": {}},
    requirements=("alabi==0.1.1", "multiprocess"),  # it imports multiprocess and does not ask for it
    package="alabi",
    imports=("alabi",),
)


def run(task: Task) -> Answer:
    from alabi import SurrogateModel

    space = task.space
    low, high = space.box
    np.random.seed(task.seed)  # noqa: NPY002, parts of it draw from NumPy's global state
    with tempfile.TemporaryDirectory() as folder:
        model = SurrogateModel(
            lambda u: max(space.log_joint(u), -1e10), np.stack([low, high], axis=1),
            savedir=folder, cache=False, verbose=False, random_state=task.seed,
        )  # fmt: skip
        model.init_samples(ntrain=100)
        model.init_gp()
        model.active_train(niter=100, show_progress=False)
        model.run_dynesty()
    log_volume = float(np.log(high - low).sum())
    std, draws = float(model.dynesty_logz_err), effective(model.dynesty_results.logwt)
    return Answer(model.dynesty_logz + log_volume, std if math.isfinite(std) else None, None, draws)
