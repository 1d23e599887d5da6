"""How long something takes, on a machine that others use as well.

In: a call, and the limit that it is to keep. Out: its shortest time of a few. A machine that stands still for a moment
makes a call longer and never shorter, so the shortest is the honest measure.
"""

from __future__ import annotations

import time
from collections.abc import Callable

TRIES = 4


def at_best(act: Callable[[], object], limit_seconds: float, *, spoilt: type[Exception] | None = None) -> float:
    """The seconds that ``act`` takes; done again, a few times at most, while that is not below the limit.

    A try that ends in the exception ``spoilt`` does not count; the last one's is raised.
    """
    shortest = float("inf")
    for last in (*[False] * (TRIES - 1), True):
        began = time.monotonic()
        try:
            act()
        except Exception as error:
            if last or spoilt is None or not isinstance(error, spoilt):
                raise
            continue
        shortest = min(shortest, time.monotonic() - began)
        if shortest < limit_seconds:
            break
    return shortest


def never(amiss: Callable[[], object], seconds: float, bound_seconds: float) -> object:
    """What ``amiss`` finds within some seconds in which it is asked again and again; something falsy if nothing.

    It finds what has been silent for ``bound_seconds``. Where nobody could ask for a good part of that, all others may
    have stood still as long: then they get time to go on first.
    """
    end = asked = time.monotonic()
    end += seconds
    while (now := time.monotonic()) < end:
        if now - asked > bound_seconds / 4:
            time.sleep(bound_seconds / 2)
        elif found := amiss():
            return found
        asked = time.monotonic()
        time.sleep(0.02)
    return None
