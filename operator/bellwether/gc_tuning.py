"""Garbage collector settings: how often the interpreter scans for cycles.

Called by every command, and by benchmarks.

A reconcile of a large cluster creates millions of values that live until its end and hold no cycles. By default the
collector would scan all of them at every 700 new ones, and the older ones repeatedly: a fifth of the time of a plan of
200,000 partitions.
"""

from __future__ import annotations

import gc

YOUNG, MIDDLE, OLD = 100_000, 20, 20
"""New containers before the youngest are looked through; looks at these before the next older are, and the oldest."""


def collect_seldom() -> None:
    """Look for cycles less often, in this process from now on. Everything else is freed at once, as ever."""
    gc.set_threshold(YOUNG, MIDDLE, OLD)
