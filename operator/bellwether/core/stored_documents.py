"""What stored documents have in common: the error that names what is wrong, the largest integer, times in seconds."""

from __future__ import annotations

from datetime import UTC, datetime

MAX_INT64 = 2**63 - 1
"""Integers in files fit Arrow's and the JVM's 64 bits."""


class InvalidDocument(ValueError):
    """A document has a missing, unknown or invalid field. The message names the field and what is expected."""


def format_timestamp(at: datetime) -> str:
    """A time in the format of the stored documents."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
