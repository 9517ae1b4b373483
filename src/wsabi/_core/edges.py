"""What the core offers by way of an edge: pictures and pages, loaded when they are asked for."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["edge"]


def edge(module: str) -> Any:
    """A module of an edge, such as "plots.of_result".

    This is the one way from the core to an edge: ``result.plot`` and ``result.to_html`` are where people look for them,
    and nothing of them is loaded before.
    """
    return importlib.import_module(f"wsabi.{module}")
