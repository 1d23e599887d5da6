"""Remediation for a partition at risk: impact on clients, safe actions, and each remedy with its cost and command.

In: a ``Diagnosis`` and how to connect to the cluster. Out: ``RemediationPlan``. Pure; used by ``bellwether doctor``.
The operator itself takes none of these actions. The commands are those of Kafka's own tools, and ours for an unclean
election.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bellwether.core.doctor.risks import MIN_ISR, Diagnosis, Risk
from bellwether.core.listing import counted
from bellwether.core.model.cluster import Partition, TopicPartition

SHOWN_ORDERS = 20
"""How many new replica lists a command has."""
GROUPS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"

PROCESS_CHECK = (
    "if the process runs, look at its state (ps) before a restart: T is stopped: kill -CONT PID, no restart; otherwise "
    "restart it"
)
"""What to do about a broker that gives no answer and may still run; the runbook and the alert pages say the same."""

_IN_USE: dict[str, str] = {
    GROUPS: "its consumer groups cannot commit or join",
    TRANSACTIONS: "its transactions cannot begin or end",
}


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """How the suggested commands connect to the cluster.

    ``config`` is a file of client settings, where the listener needs one; ``options`` are the options of our own
    command for the same, each with a leading space, and ``store`` is the option for the sample store. ``policy`` are
    the options that name the policy, where the connection is the policy's; commands that use the operator need no more.
    """

    bootstrap: str
    config: str = ""
    options: str = ""
    store: str = ""
    policy: str = ""

    def kafka(self, tool: str, arguments: str) -> str:
        """A command line of one of Kafka's own tools."""
        config = f" --command-config {self.config}" if self.config else ""
        return f"{tool} --bootstrap-server {shlex.quote(self.bootstrap)}{config} {arguments}"

    def ours(self, arguments: str) -> str:
        """A ``bellwether`` command line with the options of this connection."""
        where = self.policy or f" --bootstrap {shlex.quote(self.bootstrap)}"
        return f"bellwether {arguments}{where}{self.options}"


@dataclass(frozen=True, slots=True)
class Remediation:
    """One remedy: what to do, its cost, the commands that do it, and those that only show whether it is done."""

    action: str
    cost: str
    commands: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RemediationPlan:
    """Advice for one partition: impact on clients, what is safe meanwhile, and the remedies, the cheapest first."""

    clients: str
    safe: str
    remediations: tuple[Remediation, ...]


def remediation_plan(found: Diagnosis, tools: CommandOptions, *, elr: bool) -> RemediationPlan:
    """The advice for a partition; ``elr`` says whether eligible leader replicas are enabled (KIP-966)."""
    return RemediationPlan(client_impact(found), safe_actions(found, elr=elr), tuple(_remedies(found, tools, elr)))


def _remedies(found: Diagnosis, tools: CommandOptions, elr: bool) -> Iterable[Remediation]:
    match found.risk:
        case Risk.IN_SYNC:
            return ()
        case Risk.UNDER_REPLICATED | Risk.REMOVED_BROKER:
            return (_bring_back(found, tools, "--under-replicated-partitions"),)
        case Risk.AT_MIN_ISR:
            return _at_floor(found, tools)
        case Risk.UNDER_MIN_ISR:
            forgets = elr and bool(found.partition.elr)
            lower = _lower(found, tools, len(found.partition.isr), forgets=forgets)
            return (_bring_back(found, tools, "--under-min-isr-partitions"), lower)
        case Risk.LEADER_LOST:
            return _leader_lost(found, tools)
        case Risk.LAST_ISR_MEMBER_LOST:
            return _last_lost(found, tools, elr)
        case Risk.ALL_REPLICAS_LOST:
            no_effect = "nothing: a replica outside the ISR does not lead without an unclean election"
            return (_wait(found, elr), Remediation("or start any broker with a replica, and run this again", no_effect))


def client_impact(found: Diagnosis) -> str:
    """Impact on producers and consumers of the partition."""
    p = found.partition
    match found.risk:
        case Risk.IN_SYNC | Risk.AT_MIN_ISR | Risk.UNDER_REPLICATED | Risk.REMOVED_BROKER:
            return "reads and writes work, with any acks setting"
        case Risk.UNDER_MIN_ISR:
            said = (
                "acks=all is refused (NOT_ENOUGH_REPLICAS), also for idempotent and transactional producers; acks=1 is "
                "accepted, but the high watermark does not advance: consumers read only what is below it"
            )
            return f"{said}; {_IN_USE[p.topic]}" if p.topic in _IN_USE else said
        case _:
            said = "no reads, no writes: clients retry until they time out"
            return f"{said}; {_IN_USE[p.topic]}" if p.topic in _IN_USE else said


def safe_actions(found: Diagnosis, *, elr: bool) -> str:
    """Which broker restarts and changes are safe meanwhile, and which are not."""
    p = found.partition
    match found.risk:
        case Risk.IN_SYNC:
            return _spare(found)
        case Risk.UNDER_REPLICATED | Risk.REMOVED_BROKER:
            return f"{_spare(found)}; do not stop {broker_list(p.isr)} at once"
        case Risk.AT_MIN_ISR if len(p.isr) == 1:
            return f"broker {p.isr[0]} has the only replica in sync: do not stop it, and protect its disk"
        case Risk.AT_MIN_ISR:
            return f"stopping any of {broker_list(p.isr)} stops acks=all; records are safe while one of them is live"
        case Risk.UNDER_MIN_ISR:
            kept = f"do not stop {broker_list(p.isr)}: only they have the acknowledged records"
            if p.elr:
                kept = (
                    f"records acknowledged to acks=all are also on {broker_list((*p.isr, *p.elr))}; records that "
                    f"acks=1 writes now are only on {broker_list(p.isr)} and are lost with it"
                )
            return kept
        case Risk.LEADER_LOST:
            return f"{broker_list(found.awaited)} can lead without losing records acknowledged to acks=all"
        case _:
            careful = f"; do not change {MIN_ISR} now: changing it clears the eligible leader replicas" if elr else ""
            where = found.awaited or p.replicas
            return f"the records are on the disks of {broker_list(where)}: do not wipe them{careful}"


def _at_floor(found: Diagnosis, tools: CommandOptions) -> Iterator[Remediation]:
    p = found.partition
    if not found.designed:
        yield _bring_back(found, tools, "--at-min-isr-partitions")
        return
    if len(p.replicas) == 1:
        do, cost = "increase the replication factor", "disk and network for each copy"
    else:
        do, cost = "increase the replication factor by one", "disk and network for one copy"
    yield Remediation(f"{do}: add a broker, N, to its replicas", cost, _reassign_to(p, [*p.replicas, "N"], tools))
    if len(p.replicas) == 1:
        return
    yield _lower(found, tools, len(p.replicas) - 1)


def _leader_lost(found: Diagnosis, tools: CommandOptions) -> Iterator[Remediation]:
    fencing = found.partition.leader is not None
    yield Remediation(
        f"wait: Kafka elects {broker_list(found.awaited, ' or ')} by itself",
        f"time{', at most broker.session.timeout.ms (9 s)' if fencing else ''}",
    )
    yield Remediation(
        "if it does not end, check the controllers: without a quorum no leader is elected",
        "nothing",
        checks=(quorum_status(tools),),
    )


def _last_lost(found: Diagnosis, tools: CommandOptions, elr: bool) -> Iterator[Remediation]:
    p = found.partition
    yield _wait(found, elr)
    if p.leader is not None:
        # The leader does not answer us. An unclean election would be refused, and clients may still reach it.
        yield Remediation(
            f"or run it again: the controller keeps broker {p.leader} as leader until its session ends "
            "(broker.session.timeout.ms, 9 s by default); if that does not end, only this host cannot reach it",
            "nothing",
            checks=(tools.ours(f"doctor --topic {p.topic}"),),
        )
        return
    if found.unclean:
        yield Remediation(
            "or wait: unclean.leader.election.enable is set for this topic, so Kafka elects any live replica",
            f"records: {found.loss}",
        )
    if found.further is not None:
        broker, end = found.further
        order = [broker, *(r for r in p.replicas if r != broker)]
        yield Remediation(
            f"or, before an unclean election, put broker {broker} first in the order, {order}: its log is "
            f"longer, up to offset {end}",
            "nothing: the replicas stay the same",
            _reassign_to(p, order, tools),
        )
    yield Remediation(
        f"or elect broker {found.loss.candidate if found.loss else '?'} uncleanly",
        f"records: {found.loss}. Later records of the lost log are truncated when its broker returns",
        (tools.ours(f"doctor --unclean-election {p.name} --accept-loss{tools.store}"),),
    )
    if found.floor is not None and found.floor > 1:
        yield Remediation(
            f"then, for writes with acks=all before {found.floor} replicas are in sync, lower {MIN_ISR}",
            "acknowledged records have only one copy",
            (min_isr_command(p.topic, tools, 1),),
        )


def _wait(found: Diagnosis, elr: bool) -> Remediation:
    p, awaited = found.partition, found.awaited
    if not awaited:
        everyone = broker_list(p.replicas)
        return Remediation(
            f"start {everyone}, so that the longest log can be chosen: Kafka knows no replica that can lead "
            "without data loss",
            "time without the partition",
        )
    cost = "time without the partition; no record acknowledged to acks=all is lost"
    if elr and not p.isr and not p.elr:
        cost = "time, and records that the broker had not flushed to disk when it was killed"
    elif elr:
        cost += "; a broker that was killed, not shut down, is no longer eligible when it is back"
        if p.last_known_elr:
            last = p.last_known_elr[0]
            cost += f"; if no broker is eligible, broker {last}, the last leader, leads with what it has on disk"
    return Remediation(f"start {broker_list(awaited, ' or ')}: Kafka elects it when it is back; {PROCESS_CHECK}", cost)


def _bring_back(found: Diagnosis, tools: CommandOptions, which: str) -> Remediation:
    if found.removed and (found.risk is Risk.REMOVED_BROKER or not found.lacking):
        return replace_removed(found.removed, {found.partition.name: found.repaired} if found.repaired else {}, tools)
    if not found.missing:
        return Remediation(
            f"wait for the reassignment that adds {broker_list(found.partition.adding)}, or find out why it does not "
            "end",
            "nothing",
            checks=(reassignments(tools),),
        )
    return Remediation(
        f"bring {broker_list(found.lacking)} back into the ISR: start it, or find out why it cannot follow",
        "nothing",
        checks=(tools.kafka("kafka-topics.sh", f"--describe --topic {found.partition.topic} {which}"),),
    )


def replace_removed(
    brokers: Collection[int], orders: Mapping[TopicPartition, Sequence[int]], tools: CommandOptions
) -> Remediation:
    """Remedy for replica lists that name removed brokers: one reassignment, with the first of the new lists."""
    shown = dict(list(orders.items())[:SHOWN_ORDERS])
    more = f"; below are {len(shown)}, --output json has all under reassignment" if len(shown) < len(orders) else ""
    lists = counted(len(orders), "replica list")
    return Remediation(
        f"replace {broker_list(brokers)} in {lists}: until then Kafka refuses each new order of these partitions, and "
        f"their brokers cannot be evacuated{more}",
        "disk and network for one copy of each; with no broker free, one copy less",
        reassign(shown, "reassignment.json", tools) if shown else (),
        (reassignments(tools),),
    )


def _lower(found: Diagnosis, tools: CommandOptions, least: int, *, forgets: bool = False) -> Remediation:
    p = found.partition
    copies = "one copy" if least == 1 else f"{least} copies"
    cost = f"records acknowledged from then on have only {copies}: set it back to {found.floor} afterwards"
    if forgets:
        cost += f"; it clears the eligible leader replicas ({broker_list(p.elr)})"
    return Remediation(
        f"or lower {MIN_ISR} of {p.topic} to {least}: acks=all works again",
        cost,
        (min_isr_command(p.topic, tools, least),),
    )


def min_isr_command(topic: str, tools: CommandOptions, least: int) -> str:
    """Command that sets ``min.insync.replicas`` of a topic."""
    change = f"--alter --entity-type topics --entity-name {topic} --add-config {MIN_ISR}={least}"
    return tools.kafka("kafka-configs.sh", change)


def _reassign_to(p: Partition, order: Sequence[int | str], tools: CommandOptions) -> tuple[str, str]:
    return reassign({p.name: order}, f"{p.name}.json", tools)


def reassign(orders: Mapping[TopicPartition, Sequence[int | str]], file: str, tools: CommandOptions) -> tuple[str, str]:
    """Commands that write a reassignment's file, and execute it."""
    rows = ",".join(
        f'{{"topic":"{name.topic}","partition":{name.partition},"replicas":[{",".join(map(str, order))}]}}'
        for name, order in orders.items()
    )
    content = f'{{"version":1,"partitions":[{rows}]}}'
    execute = tools.kafka("kafka-reassign-partitions.sh", f"--reassignment-json-file {file} --execute")
    return f"echo '{content}' > {file}", execute


def quorum_status(tools: CommandOptions) -> str:
    """Command that shows the state of the controllers."""
    return tools.kafka("kafka-metadata-quorum.sh", "describe --status")


def reassignments(tools: CommandOptions) -> str:
    """Command that lists the current reassignments."""
    return tools.kafka("kafka-reassign-partitions.sh", "--list")


def _spare(found: Diagnosis) -> str:
    if found.floor is None:
        return (
            f"{MIN_ISR} is not known (grant the ACL DescribeConfigs on Topic *), so the tolerated losses are not known"
        )
    losses = len(found.partition.isr) - found.floor
    return f"{losses} more {'broker' if losses == 1 else 'brokers'} can be lost before acks=all is refused"


def broker_list(ids: Collection[int], last: str = " and ") -> str:
    """Ids as text, such as ``brokers 1, 2 and 3``."""
    if not ids:
        return "no broker"
    *most, end = (str(i) for i in ids)
    return f"{'brokers' if most else 'broker'} {', '.join(most)}{last if most else ''}{end}"
