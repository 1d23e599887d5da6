"""One turn: what we saw, what we think, what we will do, what we did, what we say.

Called by the operator's policy loop, by the command line and by simulations. Everything it needs comes through ports,
so a turn can be replayed in memory; everything it decides is decided in :mod:`bellwether.core`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from bellwether.core.audits import intent
from bellwether.core.baselines import UndoRecord
from bellwether.core.clusters import Cluster, PartitionKey
from bellwether.core.confinements import Confinement
from bellwether.core.demotions import Decide, decide
from bellwether.core.flapping import Flaps, count_flaps
from bellwether.core.guards import remember_refusals
from bellwether.core.imbalances import ASKED, AUTO, AutoRebalance, Balance, Rounds, look
from bellwether.core.plans import devise
from bellwether.core.policies import Policy
from bellwether.core.posing import problem_of
from bellwether.core.quarantine import quarantine, wanted
from bellwether.core.reassigners import MARKS, Reassigners, foreign, recognise, topics_of
from bellwether.core.rebalances import Agenda, take_up
from bellwether.core.recovery import doubtful, recover
from bellwether.core.risks import MIN_ISR, Floors, short_of_replicas
from bellwether.core.snapshots import Refused, Snapshot
from bellwether.core.statuses import Deeds, Report, report
from bellwether.core.transitions import Standing
from bellwether.core.verdicts import Verdict, judge
from bellwether.execution import carry_out
from bellwether.ports import Terminal, Transient, World, WrongCluster


@dataclass(frozen=True)
class Memory:
    """What one turn hands to the next: the undo record as it stands in the store, the last verdicts, flap counters."""

    record: UndoRecord
    verdicts: Mapping[int, Verdict] = field(default_factory=dict)
    grace_seconds: float = 15.0
    refused: Mapping[PartitionKey, Refused] = field(default_factory=dict)
    flaps: Mapping[int, Flaps] = field(default_factory=dict)
    confinements: Mapping[int, Confinement] = field(default_factory=dict)
    """Orders to pause a broker, as they stand in status."""
    rounds: Rounds | None = None
    """Of the periodic election."""
    floors: Floors = field(default_factory=Floors)
    """``min.insync.replicas``, as last read where replicas were missing."""
    distrusted: frozenset[int] = frozenset()
    """Brokers that a person distrusts: asked last from the first request on."""


NOTHING = Agenda()


def turn(
    world: World, policy: Policy, memory: Memory, decide: Decide = decide, agenda: Agenda = NOTHING
) -> tuple[Report, Memory]:
    """One turn, with the policy's way to decide or a person's, and with what is to be done for a rebalance.

    Raises what the ports raise; whoever calls knows when to try again.
    """
    # 1. Observe: gather all facts once. Nothing below this step reads the cluster to make up its mind.
    now = world.clock.now()
    world.clusters.avoid(_suspects(memory))
    cluster = same_cluster(world.clusters.read(), memory.record)
    if topics := doubtful(memory.record, cluster):
        cluster = cluster.including(world.clusters.partitions(topics))
    recovered = recover(memory.record, cluster, now, memory.grace_seconds, policy.placement)
    signals, overrides = world.signals.signals(), world.signals.overrides()
    flaps = {broker: one for broker, one in memory.flaps.items() if broker in cluster.named}
    snapshot = Snapshot(now, cluster, recovered.record, signals, overrides, memory.refused, flaps, world.strimzi)
    snapshot = replace(snapshot, pods=world.pods, reassigners=_reassigners(cluster, recovered.record, world))
    floors = _floors(cluster, world, memory.floors, now)
    snapshot = replace(snapshot, confinements=memory.confinements, floors=floors.values)
    snapshot = _with_margins(snapshot, world, policy)
    rounds = _asked(cluster, world, memory, policy, now)

    # 2. Judge every broker, then decide who may lead, and whose process is paused. "Unknown" is a verdict and moves
    # nothing.
    verdicts = judge(snapshot, policy, memory.verdicts)
    decisions = decide(snapshot, verdicts, policy)
    quarantines = quarantine(snapshot, policy, verdicts, decisions)

    # 3. Plan: the order every partition should have. What a guard refuses stays in the plan, with its reason. The next
    # wave of an approved load plan changes what is home; the rest follows from that.
    problem = problem_of(snapshot, decisions.demoted, verdicts, policy) if agenda.posing else None
    progress = take_up(agenda, snapshot, decisions, verdicts, policy)
    snapshot = replace(snapshot, record=progress.record)
    plan = devise(snapshot, decisions, verdicts, policy)
    election = look(rounds, snapshot, plan, decisions, verdicts, policy)
    plan = replace(plan, moves=(*plan.moves, *election.moves)) if election is not None else plan

    # 4. Elect: batch by batch, each checked once more against fresh facts. Observing or suspended, nothing is touched.
    deeds, record = Deeds(), memory.record
    if policy.acts:
        world.clusters.avoid(_suspects(replace(memory, verdicts=verdicts)) | set(decisions.demoted))
        entry = intent(snapshot, memory.record, verdicts, plan, progress, agenda.occasion, agenda.approved_by)
        execution = carry_out(plan, progress.record, policy, world, recovered.strays, entry)
        deeds, record = execution.deeds, execution.record

    # 5. Report. The same news makes the same bytes.
    rounds = election.done(deeds.elected, now) if election is not None else None
    window = policy.promotion.flap_window_seconds
    flaps = count_flaps(flaps, memory.record.demoted, record.demoted, now, window)
    snapshot = replace(snapshot, flaps=flaps)
    said = report(snapshot, policy, verdicts, plan, deeds, recovered.notes, progress, problem, quarantines)
    if election is not None and rounds is not None:
        balance = Balance(election.imbalance, rounds.auto, rounds.last, election.again_seconds)
        said = replace(said, election=balance)
    refused = remember_refusals(memory.refused, deeds.holds, plan.targets, now)
    kept = replace(memory, record=record, verdicts=verdicts, refused=refused, flaps=flaps)
    return said, replace(kept, rounds=rounds, confinements=quarantines.orders, floors=floors)


def _with_margins(snapshot: Snapshot, world: World, policy: Policy) -> Snapshot:
    """The snapshot with what the cluster could still lose, where somebody is paused, or is to be."""
    asked = wanted(snapshot.cluster, snapshot.record, snapshot.signals, snapshot.confinements, policy)
    if asked is None or world.margins is None:
        return snapshot
    return replace(snapshot, margins=world.margins.margins(asked.topics, asked.peers, asked.followed))


def _asked(cluster: Cluster, world: World, memory: Memory, policy: Policy, now: datetime) -> Rounds | None:
    """What is remembered of the periodic election, with what a few brokers say of Kafka's own, asked for rarely."""
    rounds = memory.rounds or Rounds(now)
    if not policy.election.interval_seconds or world.configs is None or not rounds.asks(now):
        return rounds
    told: Mapping[int, Mapping[str, str]] = {}
    with suppress(Transient, Terminal):
        told = world.configs.broker_configs(sorted(cluster.live - _suspects(memory))[:ASKED], [AUTO])
    return replace(rounds, auto=AutoRebalance.of(told.values()), asked_at=now)


def _floors(cluster: Cluster, world: World, known: Floors, now: datetime) -> Floors:
    """How many replicas must be in sync, asked for where some are missing; what is not told is unknown."""
    topics = short_of_replicas(cluster.partitions)
    if world.configs is None or not known.stale(topics, now):
        return known
    found: Mapping[str, Mapping[str, str]] = {}
    with suppress(Transient, Terminal):
        found = world.configs.topic_configs(topics, [MIN_ISR])
    return Floors({topic: int(told[MIN_ISR]) for topic, told in found.items() if MIN_ISR in told}, topics, now)


def _reassigners(cluster: Cluster, record: UndoRecord, world: World) -> Reassigners | None:
    """Who else moves replicas. What marks them is asked for only while some move; untold, it is not there."""
    moving = foreign(cluster, record)
    settings: Mapping[str, Mapping[str, str]] = {}
    if moving and world.configs is not None:
        with suppress(Transient, Terminal):
            settings = world.configs.topic_configs(topics_of(moving), MARKS)
    return recognise(moving, cluster, settings)


def same_cluster(cluster: Cluster, record: UndoRecord) -> Cluster:
    """The cluster, if the undo record belongs to it. Raises WrongCluster."""
    if cluster.cluster_id != record.cluster_id:
        raise WrongCluster(
            f"the bootstrap servers lead to Kafka cluster {cluster.cluster_id}, and the undo record belongs to "
            f"{record.cluster_id}: correct the bootstrap servers, or make another policy for the other cluster"
        )
    return cluster


def _suspects(memory: Memory) -> set[int]:
    """Brokers that are not to be asked while others answer: the demoted, and whoever does not look well."""
    doubtful = (Standing.SICK, Standing.DOWN, Standing.SUSPECT)
    return (
        set(memory.distrusted)
        | set(memory.record.demoted)
        | {b for b, v in memory.verdicts.items() if v.standing in doubtful}
    )
