"""Simple Monte Carlo: the mean of ℓ over a million draws from the prior, in batches."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.peers.task import Answer, Peer, Task

DRAWS, BATCH = 1_000_000, 4096

PEER = Peer(kind="Monte Carlo", variants={"simple Monte Carlo": {}}, root_n=True)


def run(task: Task) -> Answer:
    rng, top, first, second, n, noted = task.rng, -math.inf, 0.0, 0.0, 0, 0
    log_z, std, draws = -math.inf, math.inf, 0.0
    while n < DRAWS:
        log_l = task.batch(task.draw(min(BATCH, DRAWS - n), rng))
        n += len(log_l)
        new_top = max(top, float(log_l.max()))
        if new_top == -math.inf:
            continue
        shrink = math.exp(top - new_top)  # sums are of ℓ over its largest value so far
        scaled = np.exp(log_l - new_top)
        first, second, top = first * shrink + scaled.sum(), second * shrink**2 + scaled @ scaled, new_top
        log_z, draws = top + math.log(first / n), first**2 / second
        std = math.sqrt(max(1.0 / draws - 1.0 / n, 0.0))
        if n >= 1.25 * noted:
            task.note(log_z, std)
            noted = n
    return Answer(log_z, std, None, draws)
