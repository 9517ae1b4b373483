"""Warnings and errors that a user of the library may want to catch by name."""

from __future__ import annotations

__all__ = ["EvidenceWarning"]


class EvidenceWarning(UserWarning):
    """The estimate of log Z, its error bar or the posterior is doubtful; the message says why and what to do."""
