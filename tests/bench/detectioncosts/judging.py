"""How long the judge takes over the signals of many brokers: pure, so it is timed alone, apart from all IO.

In: sizes. Out: seconds of CPU for each of some calls, which other processes do not lengthen as they do wall time.
Called by ``__main__``. Every kind of signal that a broker can have is there, and a few brokers are ill in every way, so
that no branch is spared.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from bellwether.core.baselines import UndoRecord
from bellwether.core.clusters import Broker, Cluster, Partition
from bellwether.core.policies import Policy
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.core.snapshots import Snapshot
from bellwether.core.verdicts import judge

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


def timings(brokers: int, partitions: int, vantages: int, times: int = 20) -> list[float]:
    """CPU seconds of each call of the judge; from the second on it has former verdicts to carry on."""
    policy, facts = Policy(name="main"), snapshot(brokers, partitions, vantages)
    taken, verdicts = [], judge(facts, policy, {})
    for _ in range(times):
        began = time.process_time()
        verdicts = judge(facts, policy, verdicts)
        taken.append(time.process_time() - began)
    return taken


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
