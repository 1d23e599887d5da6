"""Gather all facts that one reconcile needs, once: metadata, signals, overrides, reassignments, fault tolerance.

In: the ports and the memory of the last reconcile. Out: a snapshot, with the undo record as recovered, and the memory
with what was read. Called by ``reconcile``; no later step reads the cluster to decide. Expensive reads are made only
when needed; a failed read leaves the value unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.doctor.risks import MIN_ISR, MinIsrCache, topics_short_of_replicas
from bellwether.core.execution.arrivals import (
    ARRIVAL_SECONDS,
    Checks,
    after_checks,
    brokers_to_check,
    drained_brokers,
)
from bellwether.core.execution.reassignments import (
    THROTTLE_CONFIGS,
    bulk_reassignment,
    foreign_reassignments,
    topics_to_query,
)
from bellwether.core.execution.recovery import (
    OverwrittenOrders,
    RecoveredRecord,
    recover,
    topics_to_reread,
    with_overwritten,
)
from bellwether.core.execution.reorder_checks import UnseenElection
from bellwether.core.model.broker_identity import ADVERTISED_LISTENERS, LISTENERS, KnownHosts
from bellwether.core.model.cluster import Cluster, PartitionKey
from bellwether.core.model.fault_tolerance import FaultToleranceQuery, fault_tolerance_query
from bellwether.core.model.history.flap_damping import FlapCounter
from bellwether.core.model.history.harm_history import HarmHistory
from bellwether.core.model.history.known_good import KnownGoods
from bellwether.core.model.history.move_cost import MoveCost
from bellwether.core.model.loads import Loads
from bellwether.core.model.log_dirs import LogDirCache
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.model.rack_ranking import RackRankings
from bellwether.core.model.refusals import Refusal
from bellwether.core.model.snapshot import RefusedOrder, Snapshot
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.planning.guards import remember_refusals
from bellwether.core.planning.preferred_election import (
    AUTO_REBALANCE_CONFIG,
    BROKERS_QUERIED,
    AutoRebalance,
    PreferredElectionState,
)
from bellwether.core.quarantine.hold_decision import QuarantineDecisions
from bellwether.core.reporting.report import Report
from bellwether.core.reporting.requeue import timer_delays
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import Signal
from bellwether.ports.errors import Terminal, Transient, WrongCluster
from bellwether.ports.world import World
from bellwether.steady_clock import ClockReading, SteadyClock


@dataclass(frozen=True)
class Memory:
    """State carried from one reconcile to the next: the undo record as stored, the last verdicts, flap counters."""

    record: UndoRecord
    verdicts: Mapping[int, Verdict] = field(default_factory=dict)
    grace_seconds: float = 15.0
    arrival_seconds: float = ARRIVAL_SECONDS
    checks: Checks = field(default_factory=dict)
    """Checks of brokers that may hold a reorder of ours."""
    refused: Mapping[PartitionKey, RefusedOrder] = field(default_factory=dict)
    flaps: Mapping[int, FlapCounter] = field(default_factory=dict)
    clock: ClockReading | None = None
    """The clocks at the start of the last reconcile."""
    known_good: KnownGoods = field(default_factory=dict)
    """How long what recovers is known to be good, as in the snapshot."""
    quarantine_orders: Mapping[int, QuarantineOrder] = field(default_factory=dict)
    """Quarantine orders, as they were last given to ``World.quarantine_orders``."""
    rounds: PreferredElectionState | None = None
    """State of the periodic election."""
    floors: MinIsrCache = field(default_factory=MinIsrCache)
    """``min.insync.replicas``, as last read where replicas were missing."""
    overwritten: OverwrittenOrders = field(default_factory=dict)
    """Orders that other tools set since the policy stopped acting."""
    elections: tuple[float, ...] = ()
    """How long past elections of many leaders took, in seconds: the cost of the next move."""
    unseen_elections: Mapping[PartitionKey, UnseenElection] = field(default_factory=dict)
    """Elections that metadata did not show in time."""
    harm_history: HarmHistory = field(default_factory=HarmHistory)
    """What past disturbances lost in all, by which the limit of harm is learned."""
    recovered: RecoveredRecord | None = None
    """The last recovery: not done again while record and cluster are the same."""
    rankings: RackRankings | None = None
    """The last rankings, for as long as the cluster is the same."""
    report: Report | None = None
    """The last report, with its plan: not made again while what it rests on is the same."""
    log_dirs: LogDirCache = field(default_factory=LogDirCache)
    """Where replicas lie on brokers with several log directories."""
    hosts: KnownHosts = field(default_factory=KnownHosts)
    """What brokers advertise."""
    distrusted: frozenset[int] = frozenset()
    """Brokers that a person distrusts: requests go to them last, from the first request on."""

    @property
    def last_recorded(self) -> datetime | None:
        """The last moment that the record or a verdict names."""
        demoted, waves = self.record.demoted.values(), self.record.returning.values()
        judged = [verdict.since for verdict in self.verdicts.values()]
        return max([*judged, *(one.since for one in demoted), *(one.waved_at for one in waves)], default=None)

    @property
    def suspects(self) -> set[int]:
        """Brokers to avoid while others answer: the demoted, and those that are not healthy."""
        doubtful_ones = (HealthState.SICK, HealthState.DOWN, HealthState.SUSPECT)
        return (
            set(self.distrusted)
            | set(self.record.demoted)
            | {b for b, v in self.verdicts.items() if v.state in doubtful_ones}
        )

    def timer_runs(self, policy: Policy) -> bool:
        """Whether the time to the next reconcile counts for something, so that no clock may run faster or slower."""
        held = any(order.active for order in self.quarantine_orders.values())
        return held or self.report is None or bool(timer_delays(self.report, policy))

    def after(self, report: Report, context: Context, quarantines: QuarantineDecisions) -> Memory:
        """The memory for the next reconcile, of one that gathered and executed what is in this one already."""
        decided, result = report.plan.decisions, report.result
        refused = result.refused_orders, result.refused_elections
        return replace(
            self,
            verdicts=context.verdicts,
            refused=remember_refusals(context.snapshot, *refused, report.plan.targets),
            flaps=context.snapshot.flaps,
            known_good={**decided.log_dirs.known_good, **decided.links.known_good, **quarantines.known_good},
            quarantine_orders=quarantines.orders,
            rounds=report.election.state if report.election is not None else None,
            harm_history=report.harm_history,
            rankings=context.rankings,
            report=report,
        )


def gather(
    world: World, policy: Policy, memory: Memory, loads: Loads | None = None
) -> tuple[Snapshot, RecoveredRecord, Memory]:
    """Gather all inputs at one moment; ``loads`` are known already. Returns the snapshot, the recovered record, and the
    memory with it and what is read rarely. Raises what the ports raise, and WrongCluster.
    """
    now = world.clock.now()
    world.clusters.avoid(memory.suspects)
    record, awaited = _without_ended_senders(memory.record, world)
    memory = replace(memory, record=record, checks={} if awaited else memory.checks)
    cluster = _without_canary(same_cluster(world.clusters.read(), memory.record), policy)
    known = with_overwritten(memory.record, memory.overwritten, cluster)
    last = memory.recovered
    steady = last is not None and last.repeats(known, cluster)
    if not steady and (topics := topics_to_reread(known, cluster)):
        cluster = cluster.including(world.clusters.partitions(topics))
        known = with_overwritten(memory.record, memory.overwritten, cluster)
    # By the checks of before, as only metadata that was read after a proof shows all that may have arrived until then.
    drained = drained_brokers(cluster, memory.checks, memory.arrival_seconds)
    # A proof of a broker begins when no former operator can send to it any more.
    checks = {} if awaited else _checked(cluster, world, memory)
    if last is not None and steady:
        recovered = replace(last, record=known)
    else:
        recovered = recover(known, cluster, now, memory.grace_seconds, policy.placement, drained)
    reading = world.clock.reading if isinstance(world.clock, SteadyClock) else None
    signals = world.signals.signals()
    log_dirs = _log_dirs(signals, cluster, world, memory.log_dirs)
    hosts = _hosts(cluster, world, memory, policy)
    snapshot = Snapshot(
        now,
        cluster,
        recovered.record,
        signals,
        world.signals.overrides(),
        memory.refused,
        {broker: one for broker, one in memory.flaps.items() if broker in cluster.named},
        world.strimzi,
        pods=world.pods(hosts.hosts) if world.pods is not None else None,
        hosts=hosts.hosts,
        bulk_reassignment=_bulk_reassignment(cluster, recovered.record, world),
        log_dirs=log_dirs.placements,
        quarantine_orders=memory.quarantine_orders,
        known_good=memory.known_good,
        wall=reading.wall if reading is not None else None,
        loads=loads,
        move_cost=MoveCost.measured(memory.elections),
        harm_history=memory.harm_history,
    )
    floors = _floors(snapshot, world, memory.floors, policy)
    snapshot = replace(snapshot, floors=floors.values)
    memory = replace(
        memory,
        clock=reading,
        recovered=recovered,
        rounds=_asked(cluster, world, memory, policy, now),
        floors=floors,
        checks=checks,
        log_dirs=log_dirs,
        hosts=hosts,
    )
    return _with_margins(snapshot, world, policy), recovered, memory


def _log_dirs(signals: Iterable[Signal], cluster: Cluster, world: World, known: LogDirCache) -> LogDirCache:
    """Where replicas lie on brokers with several log directories: of those that are due, by their own answers."""
    if world.log_dirs is None:
        return known
    for broker in known.due(signals, cluster.live, world.clock.monotonic()):
        known = known.after(broker, world.log_dirs.log_dirs(broker), world.clock.monotonic())
    return known


def _hosts(cluster: Cluster, world: World, memory: Memory, policy: Policy) -> KnownHosts:
    """What brokers advertise: metadata shows one listener, and a few brokers' settings all, where they are needed."""
    hosts, now = memory.hosts.seen(cluster), world.clock.monotonic()
    detection = policy.detection
    if world.configs is None or not (world.pods or detection.prometheus_rules):
        return hosts
    due = hosts.due(cluster.live - memory.suspects, now)
    settings: Mapping[int, Mapping[str, str]] = {}
    with suppress(Transient, Terminal):
        settings = world.configs.broker_configs(due, [ADVERTISED_LISTENERS, LISTENERS]) if due else {}
    return hosts.answered(due, settings, now).seen(cluster)


def _without_ended_senders(record: UndoRecord, world: World) -> tuple[UndoRecord, bool]:
    """The record without the former senders that have ended, and whether others may still send what is outstanding."""
    if world.senders is None:
        return record, False
    running = world.senders.running(record.senders[:-1] if record.has_outstanding else ())
    senders = (*running, *record.senders[-1:])
    return record if senders == record.senders else replace(record, senders=senders), bool(running)


def _checked(cluster: Cluster, world: World, memory: Memory) -> Checks:
    """Checks of the brokers that may hold a reorder of ours, with those that are due now."""
    moment = world.clock.monotonic()
    due = brokers_to_check(memory.record, cluster, memory.checks, moment, memory.arrival_seconds)
    answers = {broker: world.leaders.forwards(broker) for broker in sorted(due)}
    return after_checks(memory.record, cluster, memory.checks, answers, moment)


def _with_margins(snapshot: Snapshot, world: World, policy: Policy) -> Snapshot:
    """The snapshot with the cluster's fault tolerance, where a disk is slow, or a broker is held or may be stopped."""
    asked = fault_tolerance_query(snapshot.cluster, snapshot.signals, snapshot.quarantine_orders, policy)
    if asked is None and policy.acts and snapshot.idle_in_maintenance:
        asked = FaultToleranceQuery(frozenset(), frozenset())  # the quorum alone
    if asked is None or world.margins is None:
        return snapshot
    return replace(snapshot, fault_tolerance=world.margins.margins(asked.topics, asked.peers, asked.followed))


def _asked(
    cluster: Cluster, world: World, memory: Memory, policy: Policy, now: datetime
) -> PreferredElectionState | None:
    """State of the periodic election, with Kafka's own setting as a few brokers report it, read rarely."""
    rounds = memory.rounds or PreferredElectionState(now)
    if not policy.election.interval_seconds or world.configs is None or not rounds.asks(now):
        return rounds
    settings: Mapping[int, Mapping[str, str]] = {}
    with suppress(Transient, Terminal):
        settings = world.configs.broker_configs(
            sorted(cluster.live - memory.suspects)[:BROKERS_QUERIED], [AUTO_REBALANCE_CONFIG]
        )
    return replace(rounds, auto=AutoRebalance.of(settings.values()), asked_at=now)


def _floors(snapshot: Snapshot, world: World, known: MinIsrCache, policy: Policy) -> MinIsrCache:
    """``min.insync.replicas`` of topics with missing replicas, and of all on brokers that are drained; a failed read
    leaves it unknown. Read in each reconcile that may call a broker safe to stop.
    """
    now, topics = snapshot.now, topics_short_of_replicas(snapshot.cluster.without_full_isr)
    if policy.acts and snapshot.maintenance:
        drained = snapshot.maintenance.keys()
        topics |= {p.topic for p in snapshot.cluster.partitions if not drained.isdisjoint(p.replicas)}
    if world.configs is None or not (known.stale(topics, now) or (policy.acts and snapshot.idle_in_maintenance)):
        return known
    found: Mapping[str, Mapping[str, str]] = {}
    with suppress(Transient, Terminal):
        found = world.configs.topic_configs(topics, [MIN_ISR])
    return MinIsrCache(
        {topic: int(values[MIN_ISR]) for topic, values in found.items() if MIN_ISR in values}, topics, now
    )


def _bulk_reassignment(cluster: Cluster, record: UndoRecord, world: World) -> Refusal | None:
    """Whether other tools move replicas in bulk. Throttles are read only meanwhile; a failed read counts as none."""
    moving = foreign_reassignments(cluster, record)
    settings: Mapping[str, Mapping[str, str]] = {}
    if moving and world.configs is not None:
        with suppress(Transient, Terminal):
            settings = world.configs.topic_configs(topics_to_query(moving), THROTTLE_CONFIGS)
    return bulk_reassignment(moving, cluster, settings)


def _without_canary(cluster: Cluster, policy: Policy) -> Cluster:
    """The cluster without the partitions of the canary: they cannot move, and no client depends on them."""
    canary = policy.detection.canary
    return cluster.without_pinned(canary.topic) if canary.enabled else cluster


def same_cluster(cluster: Cluster, record: UndoRecord) -> Cluster:
    """The cluster, if the undo record belongs to it. Raises WrongCluster."""
    if cluster.cluster_id != record.cluster_id:
        raise WrongCluster(
            f"the bootstrap servers lead to Kafka cluster {cluster.cluster_id}, and the undo record belongs to "
            f"{record.cluster_id}: correct the bootstrap servers, or create another policy for the other cluster"
        )
    return cluster
