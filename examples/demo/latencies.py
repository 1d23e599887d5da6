"""Percentiles of a stretch of time. Samples in, a few numbers out; called by ``report`` and ``table``.

A failed or given-up record counts with the time that its client waited: to leave it out would make an outage look fast.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from demo.samples import SLOW_SECONDS, Kind, Sample


@dataclass(frozen=True, slots=True)
class Latency:
    """What one kind of request took in one window, in milliseconds; ``None`` where nothing was sent.

    ``late`` counts those that failed or took longer than a second.
    """

    count: int
    failed: int
    late: int
    p50_ms: float | None
    p99_ms: float | None


def percentile(ordered: Sequence[float], percent: float) -> float | None:
    """The nearest-rank percentile of values in ascending order; ``None`` of nothing."""
    if not ordered:
        return None
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def summarise(samples: Iterable[Sample], kind: Kind, start: float, end: float) -> Latency:
    """The latency of the records of one kind that were due in ``[start, end)``."""
    chosen = [s for s in samples if s.kind is kind and start <= s.due < end]
    ordered = sorted(s.seconds * 1000 for s in chosen)
    return Latency(
        count=len(chosen),
        failed=sum(1 for s in chosen if s.error),
        late=sum(1 for s in chosen if s.error or s.seconds > SLOW_SECONDS),
        p50_ms=_rounded(percentile(ordered, 50)),
        p99_ms=_rounded(percentile(ordered, 99)),
    )


def spoken(milliseconds: float | None) -> str:
    """A latency for a person: "4.1 ms", "189 ms", "15.7 s"; "-" where nothing was measured."""
    if milliseconds is None:
        return "-"
    if milliseconds < 1000:
        return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.1f} s"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
