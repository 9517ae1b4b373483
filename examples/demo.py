"""Estimate the evidence of a Gaussian-process classifier, live, and compare it with its known value: `wsabi demo`."""

from __future__ import annotations

import argparse

from wsabi.cli.demo import run_demo

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=200, help="evaluations of the likelihood (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the run (default: %(default)s)")
    arguments = parser.parse_args()
    run_demo(arguments.budget, arguments.seed)
