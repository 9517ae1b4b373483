"""Warnings and errors that a user of the library may want to catch by name."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

__all__ = ["EvidenceWarning", "announce"]


class EvidenceWarning(UserWarning):
    """The estimate of log Z, its error bar or the posterior is doubtful; the message says why and what to do."""


def announce(messages: Iterable[str], stacklevel: int = 3) -> None:
    """Emit an :class:`EvidenceWarning` for each message, as if by the caller's caller."""
    for message in messages:
        warnings.warn(message, EvidenceWarning, stacklevel=stacklevel)
