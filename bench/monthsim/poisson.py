"""Exact bounds on a rate from a count: pure, and checked against published tables by its tests."""

from __future__ import annotations

import math


def at_most(count: int, mean: float) -> float:
    """The chance of ``count`` events or fewer when ``mean`` are expected."""
    if mean <= 0:
        return 1.0
    return math.fsum(math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) for n in range(count + 1))


def upper_bound(count: int, confidence: float = 0.95) -> float:
    """The largest mean under which so few events would still be seen with a chance of ``1 - confidence``.

    One-sided and exact: for no event at all it is 2.996 at 95 %.
    """
    low, high = 0.0, count + 20.0 + 10.0 * math.sqrt(count + 1.0)
    for _ in range(100):
        middle = (low + high) / 2
        if at_most(count, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high
