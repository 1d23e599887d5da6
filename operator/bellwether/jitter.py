"""Jitter: retries of many clients that failed together are spread, so that they do not come back together."""

from __future__ import annotations

import random

SHARE = 0.25
"""A wait is longer or shorter by up to this share of it."""


def jittered(seconds: float) -> float:
    """About that many seconds."""
    return seconds * random.uniform(1 - SHARE, 1 + SHARE)  # noqa: S311 - guards no secret
