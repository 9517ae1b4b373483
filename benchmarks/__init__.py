"""Benchmarks: ``python -m benchmarks.bench_<name>``, each with ``--brief``; ``make bench`` runs them all.

CPU times are of one thread. A BLAS reads its variable when NumPy loads it, which is after this file.
"""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
