"""Many a test has too small a budget and is warned of it; those about warnings ask for them.

The filter stands here and not in pyproject.toml, where pytest would import wsabi before coverage has begun.
"""

from __future__ import annotations

import os

import pytest

# Before numpy is loaded: tests call inner functions too, which do not hold the linear algebra to one thread themselves.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore::wsabi.errors.EvidenceWarning")
