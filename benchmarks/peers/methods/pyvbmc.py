"""PyVBMC: the call of its first example; the plausible box is the middle 68 % of the prior, as its pages advise."""

from __future__ import annotations

import logging

import numpy as np

from benchmarks.peers.task import Answer, Peer, Task

PEER = Peer(
    kind="surrogate", variants={"PyVBMC": {}}, requirements=("pyvbmc==1.5.0",), package="pyvbmc", imports=("pyvbmc",)
)


def run(task: Task) -> Answer:
    from pyvbmc import VBMC

    logging.disable(logging.INFO)
    space = task.space
    bounds = space.box if space.bounded else (np.full(task.dim, -np.inf), np.full(task.dim, np.inf))
    plausible = 0.68 if space.bounded else np.sqrt(np.diag(space.measure.cov))
    centre = np.zeros(task.dim) if space.bounded else space.measure.mean
    low, high = centre - plausible, centre + plausible
    x0 = np.random.default_rng(task.seed).uniform(low, high)
    vbmc = VBMC(
        lambda u: max(space.log_joint(u), -1e300),
        x0, bounds[0], bounds[1], low, high, seed=task.seed, options={"display": "off", "show_tips": False},
    )  # fmt: skip
    _, results = vbmc.optimize()
    history = vbmc.iteration_history
    for n, elbo, sd in zip(history["func_count"], history["elbo"], history["elbo_sd"], strict=True):
        task.note_afterwards(n, elbo, sd)
    return Answer(results["elbo"], results["elbo_sd"], bool(results["success_flag"]))
