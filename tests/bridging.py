"""Whether the package on the other side of a bridge is there; a test of a bridge that is not there says so."""

from __future__ import annotations

import importlib
import importlib.util
import os
import warnings
from typing import Any

import pytest

ALL = os.environ.get("WSABI_BRIDGES") == "all"  # set by `make test-bridges`: there, what is missing is a failure

__all__ = ["ALL", "has", "imported", "needs"]


def has(package: str) -> bool:
    """Whether it is installed, without importing it."""
    return importlib.util.find_spec(package) is not None


def needs(*packages: str) -> pytest.MarkDecorator:
    """A mark for tests that need the real packages."""
    missing = [package for package in packages if not has(package)]
    reason = f"the bridge is NOT tested: {', '.join(missing)} not installed; make test-bridges installs all"
    return pytest.mark.skipif(bool(missing) and not ALL, reason=reason)


def imported(package: str) -> Any:
    """The package; what it warns of while it is imported is its own affair."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(package)
