"""For how long a partition was of no use, seen in two ways that do not share a mistake.

*By clients*: the union of the stretches from when a record was due to when it was acknowledged or given up, over the
records that took longer than a second. A partition gets a record only every few seconds, so this is a lower bound; one
that was broken and healed between two records counts as zero.

*By leadership*: for how long metadata named the broken broker as the partition's leader, from the fault on. It does not
depend on traffic, and its error is one poll of the watch (a quarter of a second).

Called by ``report``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from statistics import median

from demo.samples import SLOW_SECONDS, Kind, Sample

Name = tuple[str, int]
Stretch = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Outage:
    """Seconds without use over some partitions: how many had any, and the median and the worst of all of them."""

    partitions: int
    affected: int
    median_seconds: float
    max_seconds: float


def union_seconds(stretches: Iterable[Stretch]) -> float:
    """The length of the union of stretches; overlaps count once."""
    total, end = 0.0, float("-inf")
    for start, stop in sorted(stretches):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


def seen_by_clients(samples: Iterable[Sample], kind: Kind, start: float, end: float) -> dict[Name, float]:
    """Seconds by partition in which a record that was due in ``[start, end)`` was waited for, slow ones only."""
    stretches: dict[Name, list[Stretch]] = {}
    for sample in samples:
        if sample.kind is kind and start <= sample.due < end and (sample.error or sample.seconds > SLOW_SECONDS):
            stretches.setdefault((sample.topic, sample.partition), []).append((sample.due, sample.done))
    return {name: union_seconds(found) for name, found in stretches.items()}


def outage(seconds: dict[Name, float], partitions: Collection[Name]) -> Outage:
    """The summary over ``partitions``; one without an entry counts as zero seconds."""
    values = [seconds.get(name, 0.0) for name in partitions]
    return Outage(
        partitions=len(values),
        affected=sum(1 for value in values if value > 0),
        median_seconds=round(median(values), 2) if values else 0.0,
        max_seconds=round(max(values, default=0.0), 2),
    )
