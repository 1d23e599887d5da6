"""What records came to in a stretch of time: percentiles, and for how long partitions were of no use. Pure.

In: records and the bounds of a phase. Out: a row for the report. A record that failed, or took more than a second, made
its partition unavailable from when it was due until it was done; what waits longest counts as well as what is quick.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from demo.latencies import percentile
from demo.outages import union_seconds
from quarantines.traffic import Sent

SLOW_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Phase:
    """One stretch of a play, in monotonic seconds."""

    name: str
    begin: float
    end: float


def row(phase: Phase, sent: Iterable[Sent], partitions: int) -> dict[str, Any]:
    """One phase's figures: of the records that were due in it."""
    chosen = [s for s in sent if phase.begin <= s.due < phase.end]
    ordered = sorted(s.seconds * 1000 for s in chosen)
    slow = unavailable(chosen, partitions)
    return {
        "phase": phase.name,
        "seconds": round(phase.end - phase.begin, 1),
        "records": len(chosen),
        "failed": sum(1 for s in chosen if s.error),
        "p50_ms": _rounded(percentile(ordered, 50)),
        "p99_ms": _rounded(percentile(ordered, 99)),
        "unavailable_seconds_mean": round(sum(slow) / partitions, 2) if partitions else 0.0,
        "unavailable_seconds_max": round(max(slow, default=0.0), 2),
    }


def unavailable(sent: Iterable[Sent], partitions: int) -> Sequence[float]:
    """Seconds without use of each partition."""
    stretches: dict[int, list[tuple[float, float]]] = {}
    for one in sent:
        if one.error or one.seconds > SLOW_SECONDS:
            stretches.setdefault(one.partition, []).append((one.due, one.done))
    return [union_seconds(stretches.get(p, [])) for p in range(partitions)]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
