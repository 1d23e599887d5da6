"""What a partition at risk means to clients, the remedies of one alone, and what all remedies are made of.

In: a ``Diagnosis`` and how to connect to the cluster. Out: ``Remediation``s with their cost and commands. Pure; used by
``bellwether doctor``: ``cause_remediation`` has what helps all partitions of a cause. The operator itself takes none of
these actions. The commands are those of Kafka's own tools, and ours for an unclean election.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bellwether.core.doctor.risks import MIN_ISR, Diagnosis, Risk
from bellwether.core.listing import counted
from bellwether.core.model.cluster import TopicPartition

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


def unclean_election(found: Diagnosis, tools: CommandOptions) -> Iterator[Remediation]:
    """How to elect a leader of this partition at the price of records; nothing where none is needed or possible."""
    p = found.partition
    if found.loss is None or p.leader is not None:  # it would be refused, and clients may still reach the leader
        return
    if found.unclean:
        yield Remediation(
            "wait: unclean.leader.election.enable is set for this topic, so Kafka elects any live replica",
            f"records: {found.loss}",
        )
    if found.further is not None:
        broker, end = found.further
        order = [broker, *(r for r in p.replicas if r != broker)]
        yield Remediation(
            f"before an unclean election, put broker {broker} first in the order, {order}: its log is "
            f"longer, up to offset {end}",
            "nothing: the replicas stay the same",
            reassign({p.name: order}, f"{p.name}.json", tools),
        )
    yield Remediation(
        f"elect broker {found.loss.candidate} uncleanly",
        f"records: {found.loss}. Later records of the lost log are truncated when its broker returns",
        (tools.ours(f"doctor --unclean-election {p.name} --accept-loss{tools.store}"),),
    )
    if found.floor is not None and found.floor > 1:
        yield Remediation(
            f"then, for writes with acks=all before {found.floor} replicas are in sync, lower {MIN_ISR}",
            "acknowledged records have only one copy",
            (min_isr_command(p.topic, tools, 1),),
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


def min_isr_command(topic: str, tools: CommandOptions, least: int) -> str:
    """Command that sets ``min.insync.replicas`` of a topic."""
    change = f"--alter --entity-type topics --entity-name {topic} --add-config {MIN_ISR}={least}"
    return tools.kafka("kafka-configs.sh", change)


def reassign(orders: Mapping[TopicPartition, Sequence[int]], file: str, tools: CommandOptions) -> tuple[str, str]:
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


def broker_list(ids: Collection[int], last: str = " and ") -> str:
    """Ids as text, such as ``brokers 1, 2 and 3``."""
    if not ids:
        return "no broker"
    *most, end = (str(i) for i in ids)
    return f"{'brokers' if most else 'broker'} {', '.join(most)}{last if most else ''}{end}"
