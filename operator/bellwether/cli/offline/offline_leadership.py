"""Demote and promote offline, without a Kubernetes API: reconciles with a manual decision.

Called by the commands ``demote`` and ``promote`` with ``--record FILE``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.files.undo_record_file import FileLeadership, FileRecords
from bellwether.adapters.kafka.connection.broker_pool import BY_HAND, BrokerPool
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.demotion.decisions import DecisionFunction
from bellwether.core.model.cluster import Cluster
from bellwether.core.model.undo_record import EntryState, UndoRecord
from bellwether.core.planning.plan import Plan
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Mode, Policy
from bellwether.core.signals import Override, Signal
from bellwether.gather import Memory
from bellwether.kafka_connection import Connection
from bellwether.ports.kafka import ClusterReader
from bellwether.ports.world import World
from bellwether.reconcile import reconcile

MAX_RECONCILES = 20
MAX_ABORTS = 3
"""Aborted reconciles in a row after which the run ends."""

PAUSE_SECONDS = 1.0


class DryRunRecords(FileRecords):
    """A record file that is read and never written."""

    def save(self, record: UndoRecord) -> None:
        """Nothing."""


class NoSignals:
    """``ports.kubernetes.SignalSource`` without probers."""

    def signals(self) -> tuple[Signal, ...]:
        """None."""
        return ()

    def overrides(self) -> tuple[Override, ...]:
        """None."""
        return ()


class SharedRead:
    """A reader whose first snapshot was read a moment ago, so that it is not read twice before anything moves."""

    def __init__(self, reader: ClusterReader, known: Cluster) -> None:
        self._known: Cluster | None = known
        self._reader = reader
        self.partitions, self.avoid = reader.partitions, reader.avoid

    def read(self) -> Cluster:
        """The known snapshot once, then fresh ones."""
        known, self._known = self._known, None
        return known if known is not None else self._reader.read()


@dataclass(frozen=True)
class Run:
    """Result of an offline run; ``before`` are the brokers that were demoted in the record at the start."""

    before: frozenset[int]
    report: Report
    record: UndoRecord
    reordered: int
    elected: int


def run_offline(
    connection: Connection,
    record: Path,
    decide: DecisionFunction,
    brokers: Sequence[int],
    *,
    dry_run: bool,
    say: Callable[[str], None],
) -> Run:
    """Reconcile until nothing is left to do, or all that is left is blocked.

    Raises Terminal, Transient or Fenced; the record is kept then, and the same command continues.
    """
    nodes = BrokerPool(connection, BY_HAND)
    nodes.avoid(brokers)
    reader, mover, leadership, clock = KafkaReader(nodes), KafkaMover(nodes), FileLeadership(record), SystemClock()
    if not dry_run:  # a dry run writes nothing, not even a lock
        leadership.acquire()
    try:
        records = (DryRunRecords if dry_run else FileRecords)(record, leadership)
        cluster = reader.read()
        say(f"Kafka cluster {cluster.cluster_id}: {len(cluster.brokers)} brokers, {len(cluster.partitions)} partitions")
        found = records.look(cluster.cluster_id)
        unknown = [b for b in brokers if b not in cluster.named and b not in found.demoted]
        if unknown:
            known = ", ".join(str(b) for b in sorted(cluster.named))
            raise UnknownBroker(f"Kafka cluster {cluster.cluster_id} has no broker {unknown[0]}; it has: {known}")
        if not dry_run:
            found = records.take_over(cluster.cluster_id)
        if away := _displaced_without_cause(found, cluster, brokers):
            say(
                f"{away} replica orders were changed without a demoted broker, probably for preferred racks"
                " (spec.placement): they are restored, because this command reads no policy"
            )
        world = World(SharedRead(reader, cluster), mover, records, leadership, NoSignals(), clock)
        policy = Policy(name="command", mode=Mode.OBSERVE if dry_run else Mode.ENFORCE)
        memory = Memory(found, grace_seconds=mover.request_timeout_seconds, distrusted=frozenset(brokers))
        reordered = elected = stops = 0
        for _ in range(MAX_RECONCILES):
            done = reconcile(world, policy, memory, decide)
            report, after = done.report, done.memory
            reordered += report.result.reordered
            elected += report.result.elected
            if report.result.changed:
                say(f"{report.result.reordered} partitions reordered, {report.result.elected} leaders elected")
            if report.result.stopped is not None:
                say(f"aborted: {report.result.stopped.message}")
            stops = stops + 1 if report.result.stopped is not None else 0
            # With an empty plan, every partition has its order and leader, and only the record's own notes changed.
            quiet = not report.result.changed and (after.record == memory.record or _complete(report.plan))
            memory = after
            if dry_run or (quiet and not 0 < stops < MAX_ABORTS):
                break
            if not report.result.changed:
                clock.sleep(PAUSE_SECONDS)
        return Run(frozenset(found.demoted), report, memory.record, reordered, elected)
    finally:
        leadership.release()


def _complete(plan: Plan) -> bool:
    return plan.empty and not plan.holds and not plan.withheld


def _displaced_without_cause(record: UndoRecord, cluster: Cluster, brokers: Collection[int]) -> int:
    """Number of displaced partitions without a demoted broker: usually displaced for preferred racks."""
    explained = {*record.demoted, *record.returning, *brokers}
    return sum(
        entry.state is EntryState.DISPLACED
        and entry.baseline != partition.replicas
        and explained.isdisjoint(partition.replicas)
        for key, entry in record.entries.items()
        if (partition := cluster.by_key.get(key)) is not None
    )


class UnknownBroker(ValueError):
    """A broker id that the cluster does not have."""
