"""Group the partitions at risk by cause, and say what to do about each: a dead broker is one finding, not thousands.

In: a ``RiskSummary``, and which brokers are live and which answer. Out: ``RiskCause``s, the worst first, and the
``CauseAdvice`` of each, the cheapest remedy first. Each partition belongs to the cause whose remedy has to come first.
Pure; used by ``bellwether doctor``. Every text is bounded, however many partitions and brokers there are;
``remediation`` has what is left for a single partition: an unclean election.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from bellwether.core.doctor.remediation import (
    PROCESS_CHECK,
    CommandOptions,
    Remediation,
    broker_list,
    min_isr_command,
    quorum_status,
    reassignments,
    replace_removed,
)
from bellwether.core.doctor.risks import MIN_ISR, OFFLINE, WORST_FIRST, Diagnosis, Risk, RiskSummary
from bellwether.core.listing import counted


class CauseKind(StrEnum):
    """Cause of a risk, in the order of the tests that a partition goes through."""

    ELECTION_PENDING = "ElectionPending"
    NO_ELIGIBLE_LEADER = "NoEligibleLeader"
    BROKERS_REMOVED = "BrokersRemoved"
    BROKERS_DOWN = "BrokersDown"
    BROKERS_UNREACHABLE = "BrokersUnreachable"
    OUT_OF_ISR = "OutOfIsr"
    REASSIGNMENT = "Reassignment"


@dataclass(frozen=True)
class RiskCause:
    """One cause and its partitions, the worst first.

    ``brokers`` are sorted: those that are removed, down, unreachable, out of the ISR or being added; for
    ElectionPending the former leaders as far as metadata names them, for NoEligibleLeader the replicas that are down.
    """

    kind: CauseKind
    brokers: tuple[int, ...]
    diagnoses: tuple[Diagnosis, ...]

    @cached_property
    def by_risk(self) -> Mapping[Risk, tuple[Diagnosis, ...]]:
        """Partitions by class, the worst first; empty classes are omitted."""
        found = {risk: tuple(d for d in self.diagnoses if d.risk is risk) for risk in WORST_FIRST}
        return {risk: some for risk, some in found.items() if some}

    @cached_property
    def also_missing(self) -> tuple[int, ...]:
        """Other brokers that are missing from an ISR of these partitions, where they have a leader."""
        led = (d for d in self.diagnoses if d.risk not in OFFLINE)
        return tuple(sorted({b for d in led for b in d.missing}.difference(self.brokers)))

    @cached_property
    def awaited(self) -> Mapping[int, int]:
        """For each broker, how many offline partitions can lead there without loss; the most first."""
        able = Counter(b for d in self.diagnoses if d.risk in OFFLINE for b in d.awaited)
        return dict(sorted(able.items(), key=lambda item: (-item[1], item[0])))


def causes(risk_summary: RiskSummary, live: Collection[int], silent: Collection[int] = ()) -> tuple[RiskCause, ...]:
    """Group by cause; ``live`` by metadata, ``silent`` are those of them that do not answer."""
    grouped: dict[CauseKind, list[Diagnosis]] = {}
    blamed: dict[CauseKind, set[int]] = {}
    for found in risk_summary.at_risk:
        kind, brokers = _cause(found, live, silent)
        grouped.setdefault(kind, []).append(found)
        blamed.setdefault(kind, set()).update(brokers)
    made = [RiskCause(kind, tuple(sorted(blamed[kind])), tuple(some)) for kind, some in grouped.items()]
    order = tuple(CauseKind)
    return tuple(sorted(made, key=lambda c: (WORST_FIRST.index(c.diagnoses[0].risk), order.index(c.kind))))


def _cause(found: Diagnosis, live: Collection[int], silent: Collection[int]) -> tuple[CauseKind, Collection[int]]:
    p = found.partition
    if found.risk is Risk.LEADER_LOST:
        return CauseKind.ELECTION_PENDING, [p.leader] if p.leader is not None else ()
    if found.risk in OFFLINE and not found.awaited:
        return CauseKind.NO_ELIGIBLE_LEADER, [b for b in p.replicas if b not in live]
    if found.risk is Risk.REMOVED_BROKER:
        return CauseKind.BROKERS_REMOVED, found.removed
    needed = found.awaited if found.risk in OFFLINE else found.lacking
    if down := [b for b in needed if b not in live]:
        return CauseKind.BROKERS_DOWN, down
    if unreachable := [b for b in needed if b in silent]:
        return CauseKind.BROKERS_UNREACHABLE, unreachable
    if found.removed and found.risk not in OFFLINE:
        return CauseKind.BROKERS_REMOVED, found.removed
    if found.missing:
        return CauseKind.OUT_OF_ISR, found.missing
    return CauseKind.REASSIGNMENT, p.adding


SHOWN_BROKERS = 8
SHOWN_TOPICS = 3
_LOSSY = (Risk.LAST_ISR_MEMBER_LOST, Risk.ALL_REPLICAS_LOST)


@dataclass(frozen=True, slots=True)
class CauseAdvice:
    """Advice for one cause: what it is, what is safe meanwhile (empty if all is), and the remedies."""

    heading: str
    safe: str
    remediations: tuple[Remediation, ...]


def cause_advice(cause: RiskCause, tools: CommandOptions, *, elr: bool) -> CauseAdvice:
    """The advice; ``elr`` says whether eligible leader replicas are enabled (KIP-966)."""
    ways = {
        CauseKind.BROKERS_REMOVED: _removed,
        CauseKind.BROKERS_DOWN: _down,
        CauseKind.BROKERS_UNREACHABLE: _unreachable,
        CauseKind.OUT_OF_ISR: _out_of_isr,
        CauseKind.REASSIGNMENT: _reassignment,
        CauseKind.ELECTION_PENDING: _pending,
        CauseKind.NO_ELIGIBLE_LEADER: _no_eligible,
    }[cause.kind]
    return CauseAdvice(heading(cause), _safe(cause, elr=elr), (*ways(cause, tools), *_further(cause, tools, elr=elr)))


def heading(cause: RiskCause) -> str:
    """The cause in a few words."""
    who, are = few_brokers(cause.brokers), "is" if len(cause.brokers) == 1 else "are"
    match cause.kind:
        case CauseKind.BROKERS_REMOVED:
            return f"{who} {are} not registered any more, and replica lists name {'it' if are == 'is' else 'them'}"
        case CauseKind.BROKERS_DOWN:
            return f"{who} {are} down"
        case CauseKind.BROKERS_UNREACHABLE:
            return f"{who} {'does' if are == 'is' else 'do'} not answer"
        case CauseKind.OUT_OF_ISR:
            return f"{who} {'answers' if are == 'is' else 'answer'} but {are} out of the ISR"
        case CauseKind.REASSIGNMENT:
            return f"a reassignment adds {who}"
        case CauseKind.ELECTION_PENDING:
            silent = f"{who} {'does' if are == 'is' else 'do'} not answer, and " if who else ""
            return f"{silent}Kafka has not elected a new leader yet"
        case CauseKind.NO_ELIGIBLE_LEADER:
            return f"Kafka knows no replica that can lead without data loss{f'; {who} {are} down' if who else ''}"


def few_brokers(ids: Collection[int], last: str = " and ") -> str:
    """Some broker ids as text, and the number of the others; empty for none."""
    if len(ids) > SHOWN_BROKERS:
        return f"{len(ids)} brokers ({', '.join(str(b) for b in sorted(ids)[: SHOWN_BROKERS - 1])}, ...)"
    return broker_list(ids, last) if ids else ""


def _removed(cause: RiskCause, tools: CommandOptions) -> Iterator[Remediation]:
    yield replace_removed(cause.brokers, {d.partition.name: d.repaired for d in cause.diagnoses if d.repaired}, tools)
    yield Remediation(
        f"or start {few_brokers(cause.brokers)} with the same id again: it registers itself, and Kafka takes orders",
        "time to catch up",
    )


def _down(cause: RiskCause, tools: CommandOptions) -> Iterator[Remediation]:
    offline = _count(cause, OFFLINE)
    check = (tools.kafka("kafka-topics.sh", "--describe --under-replicated-partitions"),)
    if not offline:
        yield Remediation(f"start {few_brokers(cause.brokers)}; {PROCESS_CHECK}", "nothing", checks=check)
        return
    first, *others = cause.awaited.items()
    rest = [b for b in cause.brokers if b not in cause.awaited]
    start = f"start broker {first[0]}{' first' if others or rest else ''}"
    order = f"{start}: it can lead {_of(first[1], offline)} without data loss"
    if others:
        most = ", ".join(f"broker {b} ({n})" for b, n in others[:SHOWN_TOPICS])
        order += f"; then {most}{', ...' if len(others) > SHOWN_TOPICS else ''}"
    if rest:
        order += f"; then {few_brokers(rest)}"
    order += f"; {PROCESS_CHECK}"
    unavailable = (tools.kafka("kafka-topics.sh", "--describe --unavailable-partitions"), *check)
    cost = f"time without {counted(offline, 'partition')}"
    if any(d.partition.elr for d in cause.diagnoses if d.risk in OFFLINE):
        cost += "; a broker that was killed, not shut down, is no longer eligible when it is back"
    if any(d.partition.last_known_elr for d in cause.diagnoses if d.risk in OFFLINE):
        cost += "; where none is eligible any more, the last leader leads with what it had flushed to its disk"
    yield Remediation(order, cost, checks=unavailable)


def _unreachable(cause: RiskCause, tools: CommandOptions) -> Iterator[Remediation]:
    who = few_brokers(cause.brokers)
    yield Remediation(
        f"run this again after 10 s: if {who} died, metadata then says so (broker.session.timeout.ms, 9 s by default)",
        "nothing",
        checks=(tools.ours("doctor"),),
    )
    yield Remediation(
        f"if not, repair the network between {who} and this host, or the process hangs or is stopped: {PROCESS_CHECK}",
        "nothing",
    )


def _out_of_isr(cause: RiskCause, tools: CommandOptions) -> Iterator[Remediation]:
    explained = _through_operator("explain", cause, tools)
    yield Remediation(
        f"wait while {few_brokers(cause.brokers)} catches up after a start; else check its disk, its network and its "
        "log for fetch errors (replica.lag.time.max.ms, 30 s by default)",
        "nothing",
        checks=(*explained, tools.kafka("kafka-topics.sh", "--describe --under-replicated-partitions")),
    )


def _reassignment(_cause: RiskCause, tools: CommandOptions) -> Iterator[Remediation]:
    do = "wait for the reassignment, or find out why it does not end"
    yield Remediation(do, "nothing", checks=(reassignments(tools),))


def _pending(cause: RiskCause, tools: CommandOptions) -> Iterator[Remediation]:
    fenced = ", at most broker.session.timeout.ms (9 s by default)" if cause.brokers else ""
    yield Remediation(
        "wait: Kafka elects a replica that is in sync; if that does not end, check the controllers: without a quorum "
        "no leader is elected",
        f"time{fenced}",
        checks=(quorum_status(tools),),
    )
    if cause.brokers:
        yield Remediation(
            f"if {few_brokers(cause.brokers, ' or ')} still leads after 10 s, the controllers can reach it and "
            "this host cannot: repair the network, or demote the broker if clients cannot reach it either",
            "nothing: no data moves",
            _through_operator("demote", cause, tools),
        )


def _through_operator(verb: str, cause: RiskCause, tools: CommandOptions) -> tuple[str, ...]:
    """A command for each broker, where the policy is known."""
    brokers = cause.brokers[:SHOWN_TOPICS] if tools.policy else ()
    return tuple(f"bellwether {verb} {broker}{tools.policy}" for broker in brokers)


def _no_eligible(cause: RiskCause, tools: CommandOptions) -> Iterator[Remediation]:
    if cause.brokers:
        yield Remediation(
            f"start {few_brokers(cause.brokers)}, so that the longest log can be chosen; {PROCESS_CHECK}",
            f"time without {counted(len(cause.diagnoses), 'partition')}",
        )
    yield from _lossy(cause, tools, "elect a leader uncleanly")


def _further(cause: RiskCause, tools: CommandOptions, *, elr: bool) -> Iterator[Remediation]:
    """What helps where the cause cannot be removed."""
    if cause.kind is CauseKind.NO_ELIGIBLE_LEADER:
        return
    yield from _lower(cause, tools, elr=elr)
    if _count(cause, _LOSSY):
        yield from _lossy(cause, tools, f"if {few_brokers(tuple(cause.awaited), ' or ')} cannot be started")


def _lower(cause: RiskCause, tools: CommandOptions, *, elr: bool) -> Iterator[Remediation]:
    """Lower the setting; with ELR, not of a topic with an offline partition, which waits for an eligible replica."""
    offline = {d.partition.topic for d in cause.diagnoses if d.risk in OFFLINE} if elr else set()
    under = [d for d in cause.by_risk.get(Risk.UNDER_MIN_ISR, ()) if d.partition.topic not in offline]
    least, floors = dict[str, int](), dict[str, int]()
    for d in under:
        topic, in_sync = d.partition.topic, len(d.partition.isr)
        least[topic] = min(least.get(topic, in_sync), in_sync)
        floors[topic] = d.floor or in_sync
    if not least:
        return
    topics = list(least)[:SHOWN_TOPICS]
    of = ", ".join(f"{topic} (now {floors[topic]})" for topic in topics)
    more = f" and {len(least) - len(topics)} more topics" if len(least) > len(topics) else ""
    cost = "records acknowledged from then on have fewer copies: set it back afterwards"
    if any(d.partition.elr for d in under):
        cost += "; it clears the eligible leader replicas of these topics"
    yield Remediation(
        f"or lower {MIN_ISR} of {of}{more} to the number of replicas in sync: acks=all works again",
        cost,
        tuple(min_isr_command(topic, tools, least[topic]) for topic in topics),
    )


def _lossy(cause: RiskCause, tools: CommandOptions, when: str) -> Iterator[Remediation]:
    lossy = [d for d in cause.diagnoses if d.risk in _LOSSY]
    topics = list(dict.fromkeys(d.partition.topic for d in lossy))
    named = "".join(f" --topic {topic}" for topic in topics[:SHOWN_TOPICS])
    more = f" and {len(topics) - SHOWN_TOPICS} more topics" if len(topics) > SHOWN_TOPICS else ""
    yield Remediation(
        f"{when}: records are lost; first see how many for each partition of {', '.join(topics[:SHOWN_TOPICS])}{more}",
        "records",
        checks=(tools.ours(f"doctor{named}{tools.store}"),),
    )


def _safe(cause: RiskCause, *, elr: bool) -> str:
    said = []
    short = (*cause.by_risk.get(Risk.UNDER_MIN_ISR, ()), *cause.by_risk.get(Risk.AT_MIN_ISR, ()))
    if held := {broker for d in short for broker in d.partition.isr}:
        said.append(f"do not stop {few_brokers(held)}: stopping one stops acks=all writes or loses the last copy")
    if _count(cause, _LOSSY):
        disks = tuple(cause.awaited) or tuple({b for d in cause.diagnoses for b in d.partition.replicas})
        said.append(f"do not wipe the disks of {few_brokers(disks)}: they hold acknowledged records")
        if elr:
            said.append(f"do not change {MIN_ISR} of offline topics: that clears the eligible leader replicas")
    return "; ".join(said)


def _count(cause: RiskCause, risks: Collection[Risk]) -> int:
    return sum(len(some) for risk, some in cause.by_risk.items() if risk in risks)


def _of(some: int, every: int) -> str:
    if some == every:
        return "the offline partition" if every == 1 else f"all {every} offline partitions"
    return f"{some} of {every} offline partitions"
