"""dynesty: the two samplers of its "Getting started", with nothing set."""

from __future__ import annotations

from benchmarks.peers.task import Answer, Peer, Task, effective

PEER = Peer(
    kind="nested sampling",
    variants={"dynesty static": {"dynamic": False}, "dynesty dynamic": {"dynamic": True}},
    requirements=("dynesty==3.1.0",),
    package="dynesty",
    imports=("dynesty",),
    root_n=True,
)


def run(task: Task, dynamic: bool) -> Answer:
    import dynesty

    sampler_class = dynesty.DynamicNestedSampler if dynamic else dynesty.NestedSampler
    sampler = sampler_class(task.log_likelihood, task.from_cube, task.dim, rstate=task.rng)
    sampler.run_nested(print_progress=False)
    results = sampler.results
    return Answer(results.logz[-1], results.logzerr[-1], True, effective(results.logwt))
