"""How often the interpreter looks for garbage in cycles. Called by the operator as it starts, and by its benchmarks.

A turn on a large cluster makes millions of values that live on to its end and hold no cycles. By default the collector
would walk through all of them every 700 new ones, and again and again through those that are older: a fifth of the time
of a plan of 200,000 partitions.
"""

from __future__ import annotations

import gc

YOUNG, MIDDLE, OLD = 100_000, 20, 20
"""New containers before the youngest are looked through; looks at these before the next older are, and the oldest."""


def collect_seldom() -> None:
    """Look for cycles less often, in this process from now on. Everything else is freed at once, as ever."""
    gc.set_threshold(YOUNG, MIDDLE, OLD)
