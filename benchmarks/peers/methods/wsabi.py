"""wsabi itself: the call of the README, without a budget or any other choice, and variants of it.

One variant has a tolerance, one is plain WSABI-L under the prior, `Settings(measure="prior")`, with 200 evaluations.
"""

from __future__ import annotations

import warnings
from typing import Any

import wsabi
from benchmarks.peers.task import Answer, Peer, Task

PEER = Peer(
    kind="quadrature",
    variants={
        "wsabi": {},
        "wsabi tol=0.003": {"tol": 0.003},
        "wsabi plain, 200": {"settings": wsabi.Settings(measure="prior"), "budget": 200},
    },
    imports=("wsabi.integrator", "wsabi.run"),
)


def run(task: Task, **options: Any) -> Answer:
    def note(progress: wsabi.run.Progress) -> None:
        latest = (progress.log_z, progress.log_z_std)
        if not task.trace or task.trace[-1][2:] != latest:
            task.note(*latest)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wsabi.EvidenceWarning)
        result = wsabi.integrate(task.batch, task.prior, vectorized=True, rng=task.seed, callback=note, **options)
        return Answer(result.log_z, result.log_z_std, result.converged, result.posterior.effective_sample_size)
