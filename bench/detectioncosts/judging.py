"""How long the judge takes over the signals of many brokers: pure, so it is timed alone, apart from all IO.

In: sizes. Out: seconds of CPU for each of some calls, which other processes do not lengthen as they do wall time, both
for a turn in which nothing is new and for one in which every broker is judged in full. Called by ``__main__``. Every
kind of signal that a broker can have is there, and a few brokers are ill in every way, so that no branch is spared.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from bellwether.core.detection.verdicts import Verdict, judge
from bellwether.core.model.cluster import Broker, Cluster, Partition
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import Reading, Signal, SignalType

START = datetime(2026, 1, 1, tzinfo=UTC)
_ILL_EVERY = 50
_KINDS = (
    SignalType.EXTERNAL_REACHABILITY,
    SignalType.SELF_REACHABILITY,
    SignalType.STORAGE_LATENCY,
    SignalType.REPLICATION_LAG,
)


def snapshot(brokers: int, partitions: int, vantages: int) -> Snapshot:
    """A turn's facts: each broker with a signal of each kind, and one from every vantage."""
    members = range(1, brokers + 1)
    return Snapshot(
        now=START,
        cluster=Cluster(
            "detection-costs",
            {b: Broker(b, f"rack-{b % 3}", f"broker-{b}", 9092) for b in members},
            tuple(_partition(n, brokers) for n in range(partitions)),
        ),
        record=UndoRecord("detection-costs"),
        signals=tuple(signal for broker in members for signal in _signals(broker, vantages)),
    )


@dataclass(frozen=True)
class Timings:
    """CPU seconds of each call: ``at_rest`` on signals that say nothing new, ``anew`` on every broker in full."""

    at_rest: list[float]
    anew: list[float]


def timings(brokers: int, partitions: int, vantages: int, times: int = 20) -> Timings:
    """What the judge takes, turn by turn, each with the former's verdicts and with signals read once more."""
    policy, found = Policy(name="main"), Timings([], [])
    verdicts = judge(snapshot(brokers, partitions, vantages), policy, {})
    for _ in range(times):
        facts = snapshot(brokers, partitions, vantages)
        _ = facts.cluster.named  # of the metadata and not of the judge
        found.at_rest.append(_taken(facts, policy, verdicts))
        groundless = {b: replace(v, inputs=None) for b, v in verdicts.items()}
        found.anew.append(_taken(facts, policy, groundless))
    return found


def _taken(facts: Snapshot, policy: Policy, verdicts: Mapping[int, Verdict]) -> float:
    began = time.process_time()
    judge(facts, policy, verdicts)
    return time.process_time() - began


def _signals(broker: int, vantages: int) -> list[Signal]:
    ill = _KINDS[broker // _ILL_EVERY % len(_KINDS)] if broker % _ILL_EVERY == 0 else None
    since = START - timedelta(minutes=5)
    found = []
    for kind in _KINDS:
        reading = Reading.FAILING if kind is ill else Reading.PASSING
        external = kind is SignalType.EXTERNAL_REACHABILITY
        sources = [f"vantage-{n}" for n in range(vantages)] if external else [f"broker-{broker}"]
        found += [
            Signal(
                broker=broker,
                type=kind,
                source=source,
                reading=reading,
                since=since,
                age_seconds=1.0,
                control=Reading.PASSING if external else Reading.UNKNOWN,
                latency_seconds=0.2 if reading is Reading.FAILING else 0.002,
            )
            for source in sources
        ]
    return found


def _partition(number: int, brokers: int) -> Partition:
    replicas = tuple((number + step) % brokers + 1 for step in range(min(3, brokers)))
    return Partition(f"topic-{number}", f"id-{number}", 0, replicas, replicas, replicas[0])
