"""One turn: what we saw, what we think, what we will do, what we did, what we say.

Called by the operator's policy loop, by the command line and by simulations. Everything it needs comes through ports,
so a turn can be replayed in memory; everything it decides is decided in :mod:`bellwether.core`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bellwether.core.audits import intent
from bellwether.core.baselines import UndoRecord
from bellwether.core.clusters import Cluster, PartitionKey
from bellwether.core.demotions import Decide, decide
from bellwether.core.flapping import Flaps, count_flaps
from bellwether.core.guards import remember_refusals
from bellwether.core.plans import devise
from bellwether.core.policies import Policy
from bellwether.core.posing import problem_of
from bellwether.core.rebalances import Agenda, take_up
from bellwether.core.recovery import doubtful, recover
from bellwether.core.snapshots import Refused, Snapshot
from bellwether.core.statuses import Deeds, Report, report
from bellwether.core.transitions import Standing
from bellwether.core.verdicts import Verdict, judge
from bellwether.execution import carry_out
from bellwether.ports import World, WrongCluster


@dataclass(frozen=True)
class Memory:
    """What one turn hands to the next: the undo record as it stands in the store, the last verdicts, flap counters."""

    record: UndoRecord
    verdicts: Mapping[int, Verdict] = field(default_factory=dict)
    grace_seconds: float = 15.0
    refused: Mapping[PartitionKey, Refused] = field(default_factory=dict)
    flaps: Mapping[int, Flaps] = field(default_factory=dict)
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
    recovered = recover(memory.record, cluster, now, memory.grace_seconds)
    signals, overrides = world.signals.signals(), world.signals.overrides()
    snapshot = Snapshot(now, cluster, recovered.record, signals, overrides, memory.refused, memory.flaps, world.strimzi)

    # 2. Judge every broker, then decide who may lead. "Unknown" is a verdict and moves nothing.
    verdicts = judge(snapshot, policy, memory.verdicts)
    decisions = decide(snapshot, verdicts, policy)

    # 3. Plan: the order every partition should have. What a guard refuses stays in the plan, with its reason. The next
    # wave of an approved load plan changes what is home; the rest follows from that.
    problem = problem_of(snapshot, decisions.demoted, verdicts, policy) if agenda.posing else None
    progress = take_up(agenda, snapshot, decisions, verdicts, policy)
    snapshot = replace(snapshot, record=progress.record)
    plan = devise(snapshot, decisions, verdicts)

    # 4. Elect: batch by batch, each checked once more against fresh facts. Observing or suspended, nothing is touched.
    deeds, record = Deeds(), memory.record
    if policy.acts:
        world.clusters.avoid(_suspects(replace(memory, verdicts=verdicts)) | set(decisions.demoted))
        entry = intent(snapshot, memory.record, verdicts, plan, progress, agenda.occasion, agenda.approved_by)
        execution = carry_out(plan, progress.record, policy, world, recovered.strays, entry)
        deeds, record = execution.deeds, execution.record

    # 5. Report. The same news makes the same bytes.
    window = policy.promotion.flap_window_seconds
    flaps = count_flaps(memory.flaps, memory.record.demoted, record.demoted, now, window)
    said = report(replace(snapshot, flaps=flaps), policy, verdicts, plan, deeds, recovered.notes, progress, problem)
    refused = remember_refusals(memory.refused, deeds.holds, plan.targets, now)
    return said, replace(memory, record=record, verdicts=verdicts, refused=refused, flaps=flaps)


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
