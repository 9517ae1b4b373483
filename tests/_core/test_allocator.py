from __future__ import annotations

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys
import numpy as np
if sys.argv[1] == "keep":
    from wsabi._core.allocator import keep_freed_memory
    keep_freed_memory()
def work():
    rng = np.random.default_rng(0)
    for _ in range(20):
        held = [np.ones((360, 360)) + 1.0 for _ in range(6)]
        del held
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator of glibc gives memory back")
def test_matrices_are_not_paged_in_anew():
    """Twenty times six matrices of a megabyte are 30,000 pages of 4 kB; kept, none of them is touched first twice."""
    counts = {}
    for mode in ("give back", "keep"):
        done = subprocess.run([sys.executable, "-c", SCRIPT, mode], capture_output=True, text=True, check=True)
        counts[mode] = int(done.stdout)
    assert counts["keep"] < 300
    assert counts["give back"] > 10 * counts["keep"]
