"""``bellwether why``: explain why a broker leads a partition, and what would change that.

In: a preview of the policy, and a partition. Out: text or a document. Whether a replica may lead is judged by the same
decisions and by the same plan as the operator's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from bellwether.cli.diagnosis.remedies import remedy
from bellwether.cli.kubernetes_target import Target, policy_options
from bellwether.cli.option_lists import topic_partition
from bellwether.cli.output import OUTPUT, picked, print_lines, rows_of, since
from bellwether.core.model.cluster import Partition, TopicPartition
from bellwether.core.model.undo_record import Cause
from bellwether.core.reasons import Reason
from bellwether.ports.errors import Terminal

if TYPE_CHECKING:
    from bellwether.cli.planning.policy_inputs import Preview

_OUT_OF_SCOPE = "spec.scope leaves this topic alone, so demotion, racks, elections and load plans do not move it"


@click.command()
@click.argument("partition", metavar="TOPIC-PARTITION", type=topic_partition)
@policy_options
@OUTPUT
def why(partition: TopicPartition, target: Target, output: str) -> None:
    """Explain why a broker leads TOPIC-PARTITION.

    Shows for each replica whether it may lead and why not, whether the order is the partition's own or was changed, and
    what the operator would do now. Plans as `bellwether plan` does, and moves nothing.
    """
    from bellwether.cli.planning.policy_inputs import policy_inputs

    with policy_inputs(target) as inputs:
        preview = inputs.preview()
        found = _partition(preview, partition)
        would_change = {
            health.spec.broker_id: health.status.verdict.change
            for health in inputs.healths
            if health.status.verdict is not None
        }
    explained = LeaderExplanation(preview, found, would_change)
    print_lines(explained.lines(), explained.document, output)


def _partition(preview: Preview, wanted: TopicPartition) -> Partition:
    cluster = preview.context.snapshot.cluster
    of_topic = {p.index: p for p in cluster.partitions if p.topic == wanted.topic}
    if not of_topic:
        raise Terminal(f"Kafka cluster {cluster.cluster_id} has no topic {wanted.topic}: check the name")
    if wanted.partition not in of_topic:
        raise Terminal(f"topic {wanted.topic} has no partition {wanted.partition}: it has 0 to {max(of_topic)}")
    return of_topic[wanted.partition]


@dataclass(frozen=True)
class ReplicaView:
    """One replica of the partition; ``obstacle``: what keeps it from leading, empty if nothing does."""

    broker: int
    rack: str
    in_sync: bool
    obstacle: str
    change: str
    """What would remove the obstacle."""


class LeaderExplanation:
    """Why a broker leads one partition. ``would_change`` has for each broker what would change its verdict."""

    def __init__(self, preview: Preview, partition: Partition, would_change: Mapping[int, str]) -> None:
        self._preview = preview
        self._partition = partition
        self._would_change = would_change
        entry = preview.context.snapshot.record.entries.get(partition.key)
        self._unhealthy = preview.context.sick_or_down
        self._baseline = partition.replicas if entry is None else entry.baseline
        self._replicas = tuple([self._replica(broker) for broker in partition.replicas])
        self._obstacles = {replica.broker: replica for replica in self._replicas if replica.obstacle}
        self._outside = partition.key not in preview.context.managed.by_key
        self._move = _of(preview.plan.moves, partition)
        self._hold = _of(preview.plan.holds, partition)

    def lines(self) -> Iterator[str]:
        """Text, line by line."""
        partition = self._partition
        leader = partition.leader_text
        yield f"{partition.topic}/{partition.index}: {leader}, replicas {list(partition.replicas)}"
        if self._baseline != partition.replicas:
            yield f"  its own order (the baseline) is {list(self._baseline)}"
        if self._outside:
            yield f"  out of scope: {_OUT_OF_SCOPE}"
        for note in self._preview.notes:
            yield f"  note: {note}"
        yield ""
        rows = [
            (str(one.broker), one.rack or "-", "yes" if one.in_sync else "no", one.obstacle or "may lead")
            for one in self._replicas
        ]
        yield from rows_of(("REPLICA", "RACK", "IN ISR", ""), rows)
        yield ""
        yield f"Why: {self.reason()}."
        yield "What would change it:"
        yield from (f"- {change}" for change in self.changes())

    def document(self) -> dict[str, Any]:
        """The same as a document."""
        partition, move, hold = self._partition, self._move, self._hold
        return {
            "policy": self._preview.name,
            **picked(partition, "topic", partition=partition.index, leader=partition.leader),
            "replicas": [
                {"broker": r.broker, "rack": r.rack or None, "inSync": r.in_sync, "obstacle": r.obstacle or None}
                for r in self._replicas
            ],
            "baseline": self._baseline,
            "inScope": not self._outside,
            "why": self.reason(),
            "changes": self.changes(),
            "move": None if move is None else {"replicas": move.order, "leader": move.leads_next},
            "blocked": None if hold is None else picked(hold, "reason message"),
        }

    def reason(self) -> str:
        """Why the leader leads."""
        leader = self._partition.leader
        held = None if leader is None else self._preview.decisions.hold_of(leader)
        if leader is None or leader in self._obstacles or leader not in self._unhealthy or held is None:
            return self._why_leading()
        state = self._preview.context.verdicts[leader].state
        return f"{self._why_leading()}; it is {state} and not demoted ({held.reason}: {held.message})"

    def _why_leading(self) -> str:
        partition, home = self._partition, self._baseline[0]
        leader, first = partition.leader, partition.replicas[0]
        if leader is None:
            return "no replica that is in sync is alive" if not self._hold else self._hold.message
        if leader in self._obstacles and self._hold is not None:
            return f"broker {leader} should not lead ({self._obstacles[leader].obstacle}), but {self._hold.message}"
        if leader != first:
            held = self._obstacles.get(first)
            behind = held.obstacle if held is not None else "no election has moved the leadership back"
            return f"broker {first} is first in the order, but {behind}"
        if leader == home:
            return f"broker {leader} is the first replica of its own order"
        if home in self._obstacles:
            return f"broker {home} is first in its own order, but {self._obstacles[home].obstacle}"
        ranking = self._preview.context.rankings
        ranked = ranking.of(partition.topic) if ranking is not None else None
        if ranked is not None and not ranked.may_return_home(home, leader):
            return f"its rack {ranked.racks.get(leader)} is preferred to rack {ranked.racks.get(home)} of broker {home}"
        return f"the order was changed for a demotion or a preferred rack, and broker {home} may lead again"

    def changes(self) -> Sequence[str]:
        """What would give it another leader, the likeliest first."""
        return tuple(self._changes()) or ("nothing at present: no other replica may lead it",)

    def _changes(self) -> Iterator[str]:
        partition, move, hold = self._partition, self._move, self._hold
        if move is not None:
            leader = f"broker {move.leads_next} leads" if move.elect else "the leader stays"
            yield f"{self._when}: order {list(move.order)}, {leader}"
        if hold is not None:
            yield f"it is blocked ({hold.reason}): {hold.message}" + (
                f"; {text}" if (text := remedy(hold.reason)) else ""
            )
        present = partition.leader
        for replica in self._hindered():
            yield f"broker {replica.broker} can lead: {replica.change}"
        if present is not None and present != partition.replicas[0] and partition.replicas[0] not in self._obstacles:
            yield f"an election of broker {partition.replicas[0]}: bellwether elect{self._options}"
        if self._outside:
            yield f"spec.scope: let it include topic {partition.topic}, or do not exclude it"
        elif present is not None and present not in self._obstacles and self._heirs():
            yield f"a demotion of broker {present}, by its signals or with bellwether demote {present}{self._options}"

    def _hindered(self) -> list[ReplicaView]:
        """Replicas that would lead but for an obstacle, healthy ones in the ISR first.

        A healthy leader is replaced only by one that is before it in the order.
        """
        present, found = self._partition.leader, []
        for broker in dict.fromkeys((*self._baseline, *self._partition.replicas)):
            if broker == present:
                if broker not in self._unhealthy:
                    break
            elif broker in self._obstacles and self._obstacles[broker].change:
                found.append(self._obstacles[broker])
        return sorted(found, key=lambda one: (one.broker in self._unhealthy, not one.in_sync))

    def _heirs(self) -> list[int]:
        """Replicas that would take over from the leader if it were demoted."""
        return [
            one.broker
            for one in self._replicas
            if one.in_sync
            and not one.obstacle
            and one.broker not in self._unhealthy
            and one.broker != self._partition.leader
        ]

    @property
    def _when(self) -> str:
        """When the operator moves it."""
        policy = self._preview.context.policy
        if policy.acts:
            return "the operator moves it now"
        if policy.suspend:
            return f"the policy is suspended; after bellwether resume{self._options} the operator would move it"
        return "the policy only observes; with spec.mode: Enforce the operator would move it"

    @property
    def _options(self) -> str:
        metadata = self._preview.policy.metadata
        return f" --policy {metadata.name} -n {metadata.namespace}"

    def _replica(self, broker: int) -> ReplicaView:
        context = self._preview.context
        known = context.snapshot.cluster.brokers.get(broker)
        obstacle, change = self._obstacle(broker)
        in_sync = broker in self._partition.isr
        return ReplicaView(broker, (known.rack if known is not None else None) or "", in_sync, obstacle, change)

    def _obstacle(self, broker: int) -> tuple[str, str]:
        """What keeps a replica from leading, and what would end that."""
        context, decisions, options = self._preview.context, self._preview.decisions, self._options
        snapshot, now = context.snapshot, context.snapshot.now
        demoted = decisions.demoted.get(broker)
        if broker in snapshot.cluster.unlisted:
            return "it lacks the listener of the bootstrap servers", "it has that listener"
        if broker not in snapshot.cluster.brokers:
            return "it is not registered", "it starts"
        if broker not in snapshot.cluster.live:
            return "it is fenced by the controller", "the controller unfences it: its heartbeats arrive"
        if demoted is not None:
            if demoted.cause is Cause.MAINTENANCE:
                return f"it is in maintenance {since(demoted.since, now)}", f"bellwether drain {broker} --end{options}"
            why = f"it is demoted ({demoted.reason}) {since(demoted.since, now)}"
            if broker not in snapshot.record.demoted:
                why = f"it would be demoted ({demoted.reason})"
            sick, recovery = broker in self._unhealthy, self._would_change.get(broker) or "it is Healthy again"
            if demoted.by_person and demoted.cause is Cause.OVERRIDE:
                ends = f"its override ({demoted.message}) ends: bellwether release {broker}{options}"
                return why, f"{recovery}, and {ends}" if sick else f"{ends}; it is {context.verdicts[broker].state}"
            joint = "; or" if not sick else ", and" if demoted.cause is Cause.COMMAND else ""
            return why, f"{recovery}{joint} bellwether promote {broker}{options}" if joint else recovery
        for link, keys in decisions.links.partitions.items():
            if broker in link and self._partition.key in keys:
                return f"{link} do not reach each other ({Reason.BROKEN_LINK}), and both have it", (
                    f"they reach each other for a while; or bellwether promote {broker}{options}"
                )
        if broker in decisions.log_dirs.replicas.get(self._partition.key, ()):
            return f"its replica lies in a demoted log directory ({Reason.LOG_DIR_SLOW})", (
                f"the directory is fast again; or bellwether promote {broker}{options}"
            )
        if broker not in self._partition.isr:
            return "it is not in the ISR", "it catches up and joins the ISR"
        wave = decisions.returning.get(broker)
        if wave is not None and wave.withholds(self._partition.key):
            waits = decisions.waits.get(broker)
            return "it gets its leaders back in waves, and this partition is in a later one", (
                f"the next wave, which waits: {waits.message}" if waits is not None else "the next wave"
            )
        return "", ""


def _of(found: tuple[Any, ...], partition: Partition) -> Any:
    """The move or the hold of a partition; None if there is none."""
    return next((one for one in found if one.key == partition.key), None)
