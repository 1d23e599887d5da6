"""Adds up one rolling restart. In: what was restarted when, samples of clients, what metadata showed. Out: figures.

Pure; called by ``__main__`` once for each way, so that both are measured by the same rules. A partition is of no use in
two ways that do not share a mistake: its records were waited for longer than a second (by clients), or metadata named
no leader for it, or one that was down at that moment (by leadership).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

from demo.latencies import summarise
from demo.observations import Name
from demo.outages import outage, seen_by_clients, union_seconds
from demo.samples import Kind, Sample

History = Mapping[Name, Sequence[tuple[float, int | None]]]
"""Each partition's leaders, one after another, from when on."""

MEASURED = (Kind.ACKS_1, Kind.ACKS_ALL)


@dataclass(frozen=True, slots=True)
class Restart:
    """One broker's: when it was asked to stop, when it was up again, when it was in every ISR."""

    broker: int
    began: float
    up: float
    in_sync: float


@dataclass(frozen=True, slots=True)
class Rolled:
    """Brokers restarted one after another, and when every leader was back; None if that was not within the patience."""

    quiet_from: float
    restarts: tuple[Restart, ...]
    balanced: float | None
    ended: float

    @property
    def began(self) -> float:
        """When the first broker was asked to stop."""
        return self.restarts[0].began

    @property
    def last_up(self) -> float:
        """When the last broker was in every ISR."""
        return self.restarts[-1].in_sync


def figures(rolled: Rolled, samples: Sequence[Sample], history: History, out_of_place: int) -> dict[str, Any]:
    """Everything about one rolling restart; ``out_of_place`` counts leaders that are not back at its end."""
    end = rolled.balanced if rolled.balanced is not None else rolled.ended
    partitions = sorted(history)
    gone = without_leader(history, rolled.restarts, rolled.began, end)
    unavailable: dict[str, Any] = {"by_leadership": _told(gone, partitions)}
    for kind in MEASURED:
        unavailable[kind.value] = _told(seen_by_clients(samples, kind, rolled.began, end), partitions)
    return {
        "seconds_of_restarts": round(rolled.last_up - rolled.began, 1),
        "seconds_a_broker_was_down": [round(r.up - r.began, 1) for r in rolled.restarts],
        "seconds_to_balance_after_the_last": None
        if rolled.balanced is None
        else round(max(0.0, rolled.balanced - rolled.last_up), 1),
        "leaders_out_of_place_at_the_end": out_of_place,
        "unavailable": unavailable,
        "latency": {
            kind.value: {
                "before": asdict(summarise(samples, kind, rolled.quiet_from, rolled.began)),
                "during": asdict(summarise(samples, kind, rolled.began, end)),
            }
            for kind in MEASURED
        },
        "leader_changes": sum(
            sum(1 for at, _ in changes[1:] if rolled.began <= at <= end) for changes in history.values()
        ),
    }


def without_leader(history: History, restarts: Iterable[Restart], start: float, end: float) -> dict[Name, float]:
    """Seconds in ``[start, end]`` in which a partition had no leader, or one that was down; only those with some."""
    down = [(r.broker, r.began, r.up) for r in restarts]
    found = {}
    for name, changes in history.items():
        stops = [at for at, _ in changes[1:]] + [end]
        stretches = []
        for (at, leader), stop in zip(changes, stops, strict=True):
            spans = [(at, stop)] if leader is None else [(max(at, a), min(stop, b)) for d, a, b in down if d == leader]
            stretches += [(max(a, start), min(b, end)) for a, b in spans if min(b, end) > max(a, start)]
        if seconds := union_seconds(stretches):
            found[name] = seconds
    return found


def _told(seconds: dict[Name, float], partitions: Sequence[Name]) -> dict[str, Any]:
    summed = [seconds.get(name, 0.0) for name in partitions]
    return {**asdict(outage(seconds, partitions)), "mean_seconds": round(mean(summed), 3) if summed else 0.0}
