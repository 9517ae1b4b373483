"""wsabi side by side with other packages that compute the evidence: the same problems, one machine, one thread each.

    make bench-peers                                    make the environments, run what is missing, write the page
    python -m benchmarks.peers run --peers wsabi --again    our runs anew, such as after a change of the engine
    python -m benchmarks.peers --help                   the single steps

A peer is one file in `methods/` with one function; docs/benchmarks.md describes what is measured.
"""
