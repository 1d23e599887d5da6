"""Demote and promote offline, without a Kubernetes API: reconciles with a manual decision.

Called by the commands ``demote`` and ``promote`` with ``--record FILE``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.files.undo_record_file import FileLeadership, FileRecords
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.core.demotion.decisions import DecisionFunction
from bellwether.core.model.cluster import Cluster
from bellwether.core.model.undo_record import EntryState, UndoRecord
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Mode, Policy
from bellwether.gather import Memory
from bellwether.ports.errors import Terminal
from bellwether.ports.kafka import ClusterReader
from bellwether.ports.kubernetes import UnchangingSignals
from bellwether.ports.world import World
from bellwether.reconcile import reconcile

MAX_RECONCILES = 20
MAX_ABORTS = 3
"""Reconciles in a row that were aborted, or whose effect no read shows, after which the run ends."""

PAUSE_SECONDS = 1.0


class DryRunRecords(FileRecords):
    """A record file that is read and never written."""

    def save(self, record: UndoRecord) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Run:
    """Result of an offline run; ``before`` are the brokers that were demoted in the record at the start."""

    brokers: tuple[int, ...]
    before: frozenset[int]
    report: Report
    record: UndoRecord


def run_offline(
    reader: ClusterReader,
    nodes: BrokerPool,
    first: Callable[[], Cluster],
    record: Path,
    decide_for: Callable[[Collection[int]], DecisionFunction],
    brokers: Sequence[int],
    racks: Collection[str] = (),
    *,
    dry_run: bool,
    say: Callable[[str], None],
) -> Run:
    """Reconcile until nothing is left to do, or all that is left is blocked. ``racks`` means all of their brokers,
    ``first`` is what ``reader`` reads first.

    Raises Terminal, Transient or Fenced; the record is kept then, and the same command continues.
    """
    mover, leadership, clock = KafkaMover(nodes), FileLeadership(record), SystemClock()
    if not dry_run:  # a dry run writes nothing, not even a lock
        leadership.acquire()
    try:
        records = (DryRunRecords if dry_run else FileRecords)(record, leadership)
        cluster = first()
        say(f"Kafka cluster {cluster.cluster_id}: {len(cluster.brokers)} brokers, {len(cluster.partitions)} partitions")
        found = (records.look if dry_run else records.take_over)(cluster.cluster_id)
        brokers = list(dict.fromkeys((*brokers, *_in_racks(cluster, racks))))
        unknown = [b for b in brokers if b not in cluster.named and b not in found.demoted]
        if unknown:
            known = ", ".join(str(b) for b in sorted(cluster.named))
            raise Terminal(f"Kafka cluster {cluster.cluster_id} has no broker {unknown[0]}; it has: {known}")
        if away := _displaced_without_cause(found, cluster, brokers):
            say(
                f"{away} replica orders were changed without a demoted broker, probably for preferred racks"
                " (spec.placement): they are restored, because this command reads no policy"
            )
        world = World(reader, mover, records, leadership, UnchangingSignals(), clock)
        policy = Policy(name="command", mode=Mode.OBSERVE if dry_run else Mode.ENFORCE)
        memory = Memory(found, grace_seconds=mover.request_timeout_seconds, distrusted=frozenset(brokers))
        stops = 0
        for _ in range(MAX_RECONCILES):
            done = reconcile(world, policy, memory, decide_for(brokers))
            report, after = done.report, done.memory
            if report.result.changed:
                say(f"{report.result.reordered} partitions reordered, {report.result.elected} leaders elected")
            if report.result.stopped is not None:
                say(f"aborted: {report.result.stopped.message}")
            stopped = report.result.stopped
            seen = bool(report.result.reordered or report.result.elected)
            stops = 0 if seen or (stopped is None and not report.result.changed) else stops + 1
            # With an empty plan, every partition has its order and leader, and only the record's own notes changed.
            complete = report.plan.empty and not report.plan.holds and not report.plan.withheld
            quiet = not seen and (after.record == memory.record or complete)
            memory = after
            refused = stopped is not None and stopped.reason is Reason.REQUEST_REFUSED  # no repetition helps
            if dry_run or refused or (quiet and not 0 < stops < MAX_ABORTS):
                break
            if not report.result.changed:
                clock.sleep(PAUSE_SECONDS)
        return Run(tuple(brokers), frozenset(found.demoted), report, memory.record)
    finally:
        leadership.release()


def _in_racks(cluster: Cluster, racks: Collection[str]) -> list[int]:
    """The brokers of these racks. Raises Terminal for a rack without brokers."""
    found: list[int] = []
    for rack in racks:
        inside = sorted(broker.id for broker in cluster.brokers.values() if broker.rack == rack)
        if not inside:
            known = ", ".join(sorted({broker.rack for broker in cluster.brokers.values() if broker.rack})) or "none"
            raise Terminal(f"Kafka cluster {cluster.cluster_id} has no broker in rack {rack}; its racks: {known}")
        found += inside
    return found


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
