"""What clients lost in a stretch of time, by kind and by whether the sick broker led their partition. Pure.

In: requests with when they were due and done. Out: rows for the report. A request is lost that failed or took longer
than a second; a second of which half the requests are lost counts half.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cures.clients import Kind
from cures.traffic import Sent
from demo.latencies import percentile

LOST_SECONDS = 1.0


def rows(
    sent: Mapping[Kind, Sequence[Sent]], led: Mapping[Kind, frozenset[int]], begin: float, end: float
) -> list[dict[str, Any]]:
    """One row for each class of clients from ``begin`` to ``end`` (monotonic seconds); ``led`` is of its topic."""
    found = []
    for kind, requests in sent.items():
        due = [one for one in requests if begin <= one.due < end]
        here = [one for one in due if one.partition in led[kind]]
        away = [one for one in due if one.partition not in led[kind]]
        found.append({"clients": f"{kind}, broker led", **figures(here, begin, end)})
        if kind not in (Kind.COLD, Kind.NEW):
            found.append({"clients": f"{kind}, others", **figures(away, begin, end)})
    return found


def figures(due: Iterable[Sent], begin: float, end: float) -> dict[str, Any]:
    """Lost seconds, requests, failures and latencies of the requests that were due in that time."""
    seconds: dict[int, list[bool]] = {}
    took = list[float]()
    failed = 0
    for one in due:
        lost = bool(one.error) or one.seconds > LOST_SECONDS
        seconds.setdefault(int(one.due - begin), []).append(lost)
        failed += bool(one.error) or math.isinf(one.seconds)
        took += [] if one.error else [one.seconds * 1000]
    ordered = sorted(took)
    return {
        "lost_seconds": round(sum(sum(lost) / len(lost) for lost in seconds.values()), 1),
        "of_seconds": round(end - begin),
        "requests": sum(map(len, seconds.values())),
        "failed": failed,
        "p50_ms": _milliseconds(percentile(ordered, 50)),
        "p99_ms": _milliseconds(percentile(ordered, 99)),
    }


def _milliseconds(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else round(value, 1)
