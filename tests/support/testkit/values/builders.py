"""Values with defaults, so that a test names only what it is about. Clusters are three healthy brokers by default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from bellwether.core.demotion.decisions import Decisions
from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.execution.reorder_checks import ExecutionResult
from bellwether.core.model.cluster import Broker, Cluster, Partition, PartitionKey, TopicPartition
from bellwether.core.model.refusals import BrokerHold
from bellwether.core.model.restoration_waves import ReturningBroker
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import Cause, DemotedBroker, EntryState, SentOrder, UndoEntry, UndoRecord
from bellwether.core.planning.plan import Move, MoveKind, Plan
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import Report, report
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import Override, OverrideState, Purpose, Reading, Signal, SignalType
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_world import START
from testkit.simulation.memory_site import MemorySite

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
    leader_unknown: bool = False,
    offline: Sequence[int] = (),
) -> Partition:
    """In sync everywhere and led by the first ISR member of its order by default."""
    members = tuple(replicas if isr is None else isr)
    first = next((b for b in replicas if b in members), None)
    return Partition(
        topic=topic,
        topic_id=topic_id or f"id-of-{topic}",
        index=index,
        replicas=tuple(replicas),
        isr=members,
        leader=None if leader_unknown else first if isinstance(leader, str) else leader,
        leader_epoch=0,
        elr=tuple(elr),
        adding=tuple(adding),
        removing=tuple(removing),
        internal=internal,
        leader_unknown=leader_unknown,
        offline=tuple(offline),
    )


def cluster(
    *partitions: Partition,
    brokers: int | Sequence[int] = 3,
    fenced: Sequence[int] = (),
    racks: Mapping[int, str] | None = None,
    cluster_id: str = CLUSTER_ID,
    removed: Sequence[int] = (),
) -> Cluster:
    """Brokers 1..n, or those named."""
    ids = range(1, brokers + 1) if isinstance(brokers, int) else brokers
    return Cluster(
        cluster_id=cluster_id,
        brokers={b: Broker(b, (racks or {}).get(b), f"broker-{b}", 9092, b in fenced) for b in ids},
        partitions=tuple(partitions),
        removed=frozenset(removed),
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
    replaced: Sequence[int] | None = None,
    outstanding: Sequence[tuple[Sequence[int], int | None]] = (),
    state: EntryState = EntryState.DISPLACED,
    finished_at: datetime | None = None,
) -> UndoEntry:
    """Broker 1 put last."""
    sent = tuple(SentOrder(tuple(order), broker) for order, broker in outstanding)
    before = tuple(replaced) if replaced is not None else None
    return UndoEntry(topic, tuple(baseline), tuple(written), before, sent, state, finished_at)


def demoted(broker: int = 1, cause: Cause = Cause.SIGNALS, since: datetime = START) -> DemotedBroker:
    return DemotedBroker(
        broker, cause, "ExternallyUnreachable", f"broker {broker} cannot be reached from outside", since
    )


def record(
    entries: Mapping[PartitionKey, UndoEntry] | None = None,
    *brokers: DemotedBroker,
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


def after(seconds: float) -> datetime:
    """That long after the start of every test."""
    return START + timedelta(seconds=seconds)


def override(
    broker: int = 1, state: OverrideState = OverrideState.DEMOTED, reason: str = "", until: datetime | None = None
) -> Override:
    return Override(broker, state, reason, until)


def drain(broker: int = 1, reason: str = "new disk", until: datetime | None = None) -> Override:
    """A person's request that a broker goes into maintenance."""
    return Override(broker, OverrideState.DEMOTED, reason, until, purpose=Purpose.MAINTENANCE)


def snapshot(
    seen: Cluster | None = None,
    *signals: Signal,
    now: datetime = START,
    undo: UndoRecord | None = None,
    overrides: Sequence[Override] = (),
) -> Snapshot:
    """Three healthy brokers and one partition, and nothing displaced, by default."""
    return Snapshot(now, seen or cluster(partition()), undo or record(), tuple(signals), tuple(overrides))


_USUAL = {
    HealthState.HEALTHY: Reason.SIGNALS_PASSING,
    HealthState.SUSPECT: Reason.VANTAGES_DISAGREE,
    HealthState.SICK: Reason.EXTERNALLY_UNREACHABLE,
    HealthState.DOWN: Reason.BROKER_DOWN,
    HealthState.RECOVERING: Reason.STABILIZING,
    HealthState.UNKNOWN: Reason.NO_EVIDENCE,
}


def verdict(
    broker: int = 1,
    state: HealthState = HealthState.SICK,
    reason: Reason | None = None,
    *,
    since: datetime = START,
    severity: int = 0,
    message: str = "so it seems",
) -> Verdict:
    """With the usual reason of its state."""
    return Verdict(broker, state, reason or _USUAL[state], message, since, severity)


def verdicts(seen: Cluster, **states: Sequence[int]) -> dict[int, Verdict]:
    """Healthy, but for the brokers named by state: ``verdicts(seen, sick=[1], down=[4])``."""
    named = {b: HealthState(word.capitalize()) for word, brokers in states.items() for b in brokers}
    return {b: verdict(b, named.get(b, HealthState.HEALTHY)) for b in sorted(seen.named)}


def context(
    seen: Snapshot | None = None, judged: Mapping[int, Verdict] | None = None, policy: Policy | None = None
) -> Context:
    """Every broker Healthy and a policy with its defaults, unless given."""
    facts = seen or snapshot()
    return Context(facts, judged if judged is not None else verdicts(facts.cluster), policy or Policy(name="main"))


def returning(broker: int = 1, share: int = 10, since: datetime = START) -> ReturningBroker:
    """In its first wave."""
    return ReturningBroker(broker, share, since, since)


def decisions(
    *brokers: int,
    promoted: Sequence[int] = (),
    held: Sequence[BrokerHold] = (),
    back: Sequence[ReturningBroker] = (),
) -> Decisions:
    """These are demoted, those are on their way back."""
    coming = {one.broker: one for one in back}
    return Decisions({b: demoted(b) for b in brokers}, tuple(promoted), tuple(held), returning=coming)


def move(
    seen: Partition | None = None,
    order: Sequence[int] = (2, 3, 1),
    *,
    kind: MoveKind = MoveKind.DISPLACE,
    baseline: Sequence[int] | None = None,
    elect: bool = True,
) -> Move:
    """Broker 1 put last and its leader moved on."""
    of = seen or partition()
    return Move(
        key=of.key,
        topic=of.topic,
        kind=kind,
        seen=of.replicas,
        order=tuple(order),
        baseline=tuple(baseline if baseline is not None else of.replicas),
        leader=of.leader,
        elect=elect,
        internal=of.internal,
    )


def said(
    seen: Snapshot | None = None,
    policy: Policy | None = None,
    judged: Mapping[int, Verdict] | None = None,
    plan: Plan | None = None,
    result: ExecutionResult | None = None,
    **more: Any,
) -> Report:
    """The report of a turn in which every broker is healthy and nothing was to do, by default."""
    return report(context(seen, judged, policy), plan or Plan(), result or ExecutionResult(), **more)
