"""UltraNest: the reactive sampler of its "Basic usage", with the likelihood vectorised."""

from __future__ import annotations

import logging

import numpy as np

from benchmarks.peers.task import Answer, Peer, Task

PEER = Peer(
    kind="nested sampling",
    variants={"UltraNest": {}},
    requirements=("ultranest==4.6.3", "scipy==1.17.1"),
    package="ultranest",
    imports=("ultranest",),
    root_n=True,
)


def run(task: Task) -> Answer:
    import ultranest

    logging.getLogger("ultranest").setLevel(logging.WARNING)
    np.random.seed(task.seed)  # noqa: NPY002, it draws from NumPy's global state
    names = [f"x{d}" for d in range(task.dim)]
    sampler = ultranest.ReactiveNestedSampler(names, task.floored, task.from_cube, vectorized=True)
    result = sampler.run(show_status=False, viz_callback=None)
    return Answer(
        result["logz"], result["logzerr"], bool(result["insertion_order_MWW_test"]["converged"]), result["ess"]
    )
