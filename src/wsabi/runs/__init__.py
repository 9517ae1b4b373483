"""Runs on disk and on many workers.

data      priors, settings and events of the ledger as JSON, and back
lock      one process at a time
journal   the ledger in a file, written as it grows
saved     a result in a file
executors evaluation on other processes and machines
"""

__all__: list[str] = []
