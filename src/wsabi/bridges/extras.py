"""Loading the package on the other side of a bridge, with an error that names the extra where it is missing."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

__all__ = ["needed"]


def needed(module: str, extra: str, user: str) -> Any:
    """The module, imported.

    Parameters
    ----------
    module : such as "arviz".
    extra : of wsabi, that installs it.
    user : what needs it, as the first word of the error: "result.to_arviz".

    Raises
    ------
    ImportError
        If it is not installed, with the command that installs it. Faults inside the package are raised as they are.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # news of the package, for those who import it themselves
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise ImportError(
            f"{user} needs {package}, which is not installed: pip install 'wsabi[{extra}]' (or pip install {package}).",
            name=package,
        ) from error
