"""The command line (extra ``cli``): ``wsabi run`` and its kin, ``demo``, ``problems``, ``reproduce``."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the ``wsabi`` command; without its extra it says what to install and ends with status 1."""
    try:
        from wsabi.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in {"typer", "rich", "threadpoolctl"}:
            raise
        sys.stderr.write(
            f"the wsabi command needs {error.name}, which is not installed: pip install 'wsabi[cli,plot]'\n"
        )
        raise SystemExit(1) from None
    app()
