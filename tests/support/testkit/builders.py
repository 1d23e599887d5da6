"""Values with defaults, so that a test names only what it is about. Clusters are three healthy brokers unless told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from bellwether.adapters.memory.clusters import MemoryCluster
from bellwether.adapters.memory.worlds import START, MemorySite
from bellwether.core.baselines import Cause, Demoted, Entry, EntryState, UndoRecord
from bellwether.core.clusters import Broker, Cluster, Partition, PartitionKey, TopicPartition
from bellwether.core.signals import Reading, Signal, SignalType

CLUSTER_ID = "memory-cluster"


def name(topic: str = "orders", index: int = 0) -> TopicPartition:
    return TopicPartition(topic, index)


def partition(
    topic: str = "orders",
    index: int = 0,
    replicas: Sequence[int] = (1, 2, 3),
    *,
    isr: Sequence[int] | None = None,
    leader: int | str | None = "first",
    topic_id: str = "",
    elr: Sequence[int] = (),
    adding: Sequence[int] = (),
    removing: Sequence[int] = (),
    internal: bool = False,
) -> Partition:
    """In sync everywhere and led by the first ISR member of its order, unless told."""
    members = tuple(replicas if isr is None else isr)
    first = next((b for b in replicas if b in members), None)
    return Partition(
        topic=topic,
        topic_id=topic_id or f"id-of-{topic}",
        index=index,
        replicas=tuple(replicas),
        isr=members,
        leader=first if isinstance(leader, str) else leader,
        leader_epoch=0,
        elr=tuple(elr),
        adding=tuple(adding),
        removing=tuple(removing),
        internal=internal,
    )


def cluster(
    *partitions: Partition,
    brokers: int | Sequence[int] = 3,
    fenced: Sequence[int] = (),
    racks: Mapping[int, str] | None = None,
    cluster_id: str = CLUSTER_ID,
) -> Cluster:
    """Brokers 1..n, or those named."""
    ids = range(1, brokers + 1) if isinstance(brokers, int) else brokers
    return Cluster(
        cluster_id=cluster_id,
        brokers={b: Broker(b, (racks or {}).get(b), f"broker-{b}", 9092, b in fenced) for b in ids},
        partitions=tuple(partitions),
    )


def signal(
    broker: int = 1,
    reading: Reading = Reading.FAILING,
    *,
    kind: SignalType = SignalType.EXTERNAL_REACHABILITY,
    source: str = "vantage-a",
    since: datetime = START,
    age_seconds: float | None = 0.0,
    control: Reading = Reading.PASSING,
    latency_seconds: float | None = None,
) -> Signal:
    """A fresh external failure with a good internal control."""
    return Signal(broker, kind, source, reading, since, age_seconds, control, latency_seconds)


def entry(
    topic: str = "orders",
    baseline: Sequence[int] = (1, 2, 3),
    written: Sequence[int] = (2, 3, 1),
    *,
    earlier: Sequence[Sequence[int]] = (),
    state: EntryState = EntryState.DISPLACED,
    finished_at: datetime | None = None,
) -> Entry:
    """Broker 1 put last."""
    sent = tuple(tuple(o) for o in earlier)
    return Entry(topic, tuple(baseline), tuple(written), sent, state, finished_at)


def demoted(broker: int = 1, cause: Cause = Cause.SIGNALS, since: datetime = START) -> Demoted:
    return Demoted(broker, cause, "ExternallyUnreachable", f"broker {broker} cannot be reached from outside", since)


def record(
    entries: Mapping[PartitionKey, Entry] | None = None,
    *brokers: Demoted,
    epoch: int = 1,
    cluster_id: str = CLUSTER_ID,
) -> UndoRecord:
    return UndoRecord(cluster_id, epoch, {d.broker: d for d in brokers}, dict(entries or {}))


def site(brokers: int = 3, topics: Mapping[str, int] | None = None, rf: int = 3) -> MemorySite:
    """A simulated cluster with some topics (name to number of partitions) and a process's surroundings."""
    made = MemoryCluster(brokers, cluster_id=CLUSTER_ID)
    for topic, partitions in ({"orders": 6} if topics is None else topics).items():
        made.create_topic(topic, partitions, rf, internal=topic.startswith("__"))
    return MemorySite(made)
