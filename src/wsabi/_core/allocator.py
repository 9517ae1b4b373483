"""Freed memory is kept by the process, so that arrays of a megabyte are not paged in anew each time."""

from __future__ import annotations

import functools

import numpy as np

__all__ = ["keep_freed_memory"]

# The largest block, in bytes, whose release teaches the allocator of glibc on 64 bits, less its header.
LARGEST = 2**25 - 2**16


@functools.cache
def keep_freed_memory() -> None:
    """Allocate and free one large block, once in a process.

    The allocator of glibc gives blocks beyond a threshold back to the system when they are freed, and the top of its
    heap beyond twice that. The threshold begins at 128 kB and rises to the largest block ever freed, at most 32 MB
    (``mallopt``, M_MMAP_THRESHOLD). Matrices of 350 points have a megabyte, and without this each temporary one may
    cost 240 page faults, as much time as what is computed with it. The block is never written to, so it takes no
    memory; up to 64 MB of what was in use stay with the process. Other allocators ignore it.
    """
    np.empty(LARGEST, dtype=np.uint8)
