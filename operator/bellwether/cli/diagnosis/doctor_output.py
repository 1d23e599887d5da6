"""Output of ``bellwether doctor`` as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from bellwether import documentation
from bellwether.cli.diagnosis.cluster_examination import Examination
from bellwether.cli.output import picked, printed
from bellwether.core.detection.storage import milliseconds
from bellwether.core.doctor.cause_remediation import SHOWN_BROKERS, RiskCause, cause_advice, causes, few_brokers
from bellwether.core.doctor.remediation import CommandOptions, Remediation, client_impact, unclean_election
from bellwether.core.doctor.risks import RISK_DESCRIPTIONS, WORST_FIRST, Diagnosis
from bellwether.core.doctor.unhealthy_leaders import (
    ACKS_ALL_FIGURES,
    FETCHERS,
    QuarantineCheck,
    SlowBroker,
    SlowDiskForecast,
    UnhealthyBroker,
)
from bellwether.core.listing import counted, few
from bellwether.core.model.cluster import TopicPartition

Document = dict[str, Any]
SHOWN = 10
"""Number of partitions at risk that are shown one by one without ``--all``."""

SHOWN_NAMES = 4
"""Number of partitions that are named for each class of a cause, and of topics for an unhealthy leader."""

USUAL_DELAY_SECONDS = 0.2
"""A volume that has used up its burst credits takes about so long."""
MOST_FETCHERS = 16

_WAITING = "each acks=all write to these partitions waits for it; reads and acks=1 writes do not"


def print_report(found: Examination, single: Sequence[Diagnosis], tools: CommandOptions) -> None:
    """Print the summary, the causes with their remedies, and the partitions ``single`` one by one."""
    cluster, risk_summary = found.cluster, found.risk_summary
    click.echo(
        f"Kafka cluster {cluster.cluster_id}: {len(cluster.live)} of {len(cluster.named)} brokers live, "
        f"{len(cluster.partitions)} partitions; "
        f"eligible leader replicas (KIP-966): {'on' if cluster.elr_enabled else 'off'}"
    )
    silent = sorted(found.silent.items())
    for broker, why in silent[:SHOWN_BROKERS]:
        click.echo(f"broker {broker} does not answer, but metadata lists it as alive: {why}")
    if len(silent) > SHOWN_BROKERS:
        click.echo(f"and {len(silent) - SHOWN_BROKERS} more brokers that metadata lists as alive do not answer")
    for trouble in (*cluster.incomplete, *found.troubles):
        click.echo(trouble)
    click.echo()
    rows = [(str(risk), str(count), RISK_DESCRIPTIONS[risk]) for risk, count in risk_summary.classes.items()]
    printed(("CLASS", "PARTITIONS", ""), rows)
    if designed := sum(d.designed for d in risk_summary.diagnoses):
        click.echo(
            f"\n{designed} of the partitions at min.insync.replicas have all replicas in sync: by their settings no "
            "replica may fail"
        )
    for leader in found.unhealthy or ():
        click.echo()
        _unhealthy(leader)
    for follower in found.slow:
        click.echo()
        _slow(follower)
    if found.slow_disk is not None:
        click.echo(f"\n{_one_slow_disk(found.slow_disk)}")
    if found.quarantine is not None:
        click.echo(f"\n{_quarantine(found.quarantine)}")
    if found.listeners is not None and (said := tuple(found.listeners.sentences())):
        click.echo("\n" + "\n".join(said))
    if not risk_summary.at_risk:
        click.echo(f"\n{_nothing(found)}")
        return
    print_causes(found, tools)
    for one in single:
        click.echo()
        _partition(one, tools)
    if single and (more := len(risk_summary.at_risk) - len(single)) > 0:
        click.echo(f"\nand {more} more at risk, none worse than these; show them with --all")
    elif not single:
        click.echo("\nfor single partitions: --topic TOPIC, --all or --output json")
    if tools.config:
        click.echo(f"{tools.config} in the commands is a file with the client settings of this listener")


def _one_slow_disk(one: SlowDiskForecast) -> str:
    """Before any fault: from when on acks=all would wait for a slow disk, and what prevents that."""
    limit = one.keeps_up_seconds()
    text = (
        f"one slow disk: broker {one.broker} follows {one.appends_per_second:.0f} appends a second of {one.sources}"
        f" other brokers with {FETCHERS}={one.fetchers}. It keeps up while an append takes less than"
        f" {milliseconds(limit)}; above that acks=all waits for it on every partition that it follows, and demotion"
        " does not help"
    )
    more = 2 * one.fetchers
    while more < MOST_FETCHERS and one.keeps_up_seconds(more) < USUAL_DELAY_SECONDS:
        more *= 2
    if limit < USUAL_DELAY_SECONDS and more <= MOST_FETCHERS:
        allowed = milliseconds(one.keeps_up_seconds(more))
        text += (
            f"\n  prevent: {FETCHERS}={more} in its server.properties allows {allowed}; once the disk is slow Kafka"
            " refuses to raise it"
        )
    return f"{text}\n  cure:    quarantine ({documentation.page('placement/quarantine.md')}), at any delay"


def _quarantine(check: QuarantineCheck) -> str:
    """What a broker whose disk becomes slow could not be held for."""
    if not check.missing:
        return "quarantine: nothing is missing; each broker has an agent that can hold it"
    return "\n  - ".join(("quarantine could not cure a slow disk; missing:", *check.missing))


def _nothing(found: Examination) -> str:
    """What is so while no partition is at risk."""
    if found.unhealthy or found.slow:
        lost = ["lose what the unhealthy leaders above do not serve"] if found.unhealthy else []
        slow = ["wait for the slow brokers above with acks=all"] if found.slow else []
        return f"every partition has a leader and its replicas; clients {', and '.join(lost + slow)}"
    if found.unhealthy is None:
        return (
            "no partition is at risk by its replicas; whether clients reach the leaders, and which are slow, only the "
            "verdicts of a policy show (--policy)"
        )
    return "no partition is at risk, and no broker that is known to be unhealthy leads one"


def _unhealthy(broker: UnhealthyBroker) -> None:
    topics, count = broker.topics, counted(len(broker.partitions), "partition")
    click.echo(f"broker {broker.broker} is {broker.state} ({broker.reason}) and leads {count}")
    shown = ", ".join(f"{topic} {led}" for topic, led in list(topics.items())[:SHOWN_NAMES])
    others = len(topics) - SHOWN_NAMES
    more = f" and {counted(others, 'more topic')}" if others > 0 else ""
    click.echo(f"  topics:  {shown}{more}")
    click.echo(f"  clients: {broker.clients}")
    if broker.kept:
        click.echo(f"  it still leads: {broker.kept}")
    _numbered(broker.remediations)


def _slow(broker: SlowBroker) -> None:
    count = counted(broker.partitions, "partition")
    click.echo(f"broker {broker.broker} is slow ({broker.reason}) and in the ISR of {count} that other brokers lead")
    click.echo(f"  clients: {_WAITING}: {ACKS_ALL_FIGURES}")
    click.echo(f"  it is not held: {broker.not_held}")
    _numbered(broker.remediations)


def print_causes(found: Examination, tools: CommandOptions, only: TopicPartition | None = None) -> None:
    """Print each cause with its remedies, or that of one partition."""
    for cause in _causes(found):
        if only is None or any(d.partition.name == only for d in cause.diagnoses):
            click.echo()
            _cause(cause, tools, elr=found.cluster.elr_enabled)


def _causes(found: Examination) -> tuple[RiskCause, ...]:
    return causes(found.risk_summary, found.cluster.live | found.cluster.unlisted, found.silent)


def _cause(cause: RiskCause, tools: CommandOptions, *, elr: bool) -> None:
    advice = cause_advice(cause, tools, elr=elr)
    click.echo(f"{advice.heading}: {counted(len(cause.diagnoses), 'partition')} at risk")
    for risk, some in cause.by_risk.items():
        click.echo(f"  {risk:<17}  {len(some)}: {few([d.partition.name for d in some], SHOWN_NAMES)}")
    if cause.also_missing:
        click.echo(f"  also out of the ISR of some of them: {few_brokers(cause.also_missing)}")
    worst = cause.diagnoses[0]
    click.echo(f"  clients: {'' if worst.risk is cause.diagnoses[-1].risk else 'at worst, '}{client_impact(worst)}")
    if advice.safe:
        click.echo(f"  safe:    {advice.safe}")
    _numbered(advice.remediations)


def _partition(found: Diagnosis, tools: CommandOptions) -> None:
    """One partition; what helps is said of its cause, but for what is lost with an unclean election."""
    p = found.partition
    elr = f", ELR {list(p.elr)}" if p.elr else ""
    last = f", last known leader {p.last_known_elr[0]}" if p.last_known_elr else ""
    floor = "unknown" if found.floor is None else found.floor
    click.echo(
        f"{p.name}: {found.risk}: {p.leader_text}, replicas {list(p.replicas)}, ISR {list(p.isr)}{elr}{last}, "
        f"min.insync.replicas {floor}"
    )
    click.echo(f"  clients: {client_impact(found)}")
    _numbered(tuple(unclean_election(found, tools)))


def _numbered(remediations: Sequence[Remediation]) -> None:
    for number, way in enumerate(remediations, 1):
        click.echo(f"  {number}. {way.action}")
        click.echo(f"     cost: {way.cost}")
        for command in way.commands:
            click.echo(f"     $ {command}")
        for command in way.checks:
            click.echo(f"     check: {command}")


def document(found: Examination, tools: CommandOptions) -> Document:
    """The JSON document, with all partitions at risk."""
    cluster, risk_summary, grouped = found.cluster, found.risk_summary, _causes(found)
    cause_of = {d.partition.name: str(cause.kind) for cause in grouped for d in cause.diagnoses}
    judged = found.unhealthy is not None
    return {
        "clusterId": cluster.cluster_id,
        "brokers": {"live": sorted(cluster.live), "unreachable": dict(sorted(found.silent.items()))},
        "eligibleLeaderReplicas": cluster.elr_enabled,
        "warnings": [*cluster.incomplete, *found.troubles],
        "classes": {str(risk): risk_summary.classes.get(risk, 0) for risk in WORST_FIRST},
        "atRisk": len(risk_summary.at_risk),
        "atMinIsrBySettings": sum(d.designed for d in risk_summary.diagnoses),
        "unhealthyLeaders": [_leader(one) for one in found.unhealthy or ()] if judged else None,
        "slowDisk": found.slow_disk and _slow_disk(found.slow_disk),
        "quarantine": found.quarantine,
        "listeners": found.listeners
        and {
            "unwatched": found.listeners.unwatched,
            "notAdvertised": found.listeners.absent,
            "notRead": found.listeners.unread,
        },
        "reassignment": _reassignment(risk_summary.diagnoses),
        "slowFollowers": [_follower(one) for one in found.slow] if judged else None,
        "causes": [_advised(cause, tools, elr=cluster.elr_enabled) for cause in grouped],
        "partitions": [{"cause": cause_of[one.partition.name], **_at_risk(one, tools)} for one in risk_summary.at_risk],
    }


def _reassignment(diagnoses: Sequence[Diagnosis]) -> Document | None:
    """Replica lists without removed brokers, as kafka-reassign-partitions.sh reads them; None where none is named."""
    named = ((d.partition, d.repaired) for d in diagnoses if d.repaired)
    rows = [{"topic": p.topic, "partition": p.index, "replicas": replicas} for p, replicas in named]
    return {"version": 1, "partitions": rows} if rows else None


def _slow_disk(one: SlowDiskForecast) -> Document:
    seconds, keeps_up = round(one.appends_per_second, 1), round(one.keeps_up_seconds() * 1000)
    limits = {"replicaFetchers": one.fetchers, "keepsUpMilliseconds": keeps_up}
    return {"broker": one.broker, "appendsPerSecond": seconds, "sources": one.sources, **limits}


def _advised(cause: RiskCause, tools: CommandOptions, *, elr: bool) -> Document:
    advice, classes = cause_advice(cause, tools, elr=elr), {risk: len(some) for risk, some in cause.by_risk.items()}
    about = {"cause": cause.kind, "message": advice.heading, "brokers": cause.brokers, "classes": classes}
    return {**about, "safe": advice.safe, "remedies": advice.remediations}


def _leader(broker: UnhealthyBroker) -> Document:
    found = picked(broker, "broker state reason", partitions=len(broker.partitions))
    return found | picked(broker, "topics clients", notDemoted=broker.kept, remedies=broker.remediations)


def _follower(broker: SlowBroker) -> Document:
    found = picked(broker, "broker reason partitions", clients=f"{_WAITING}: {ACKS_ALL_FIGURES}")
    return found | picked(broker, "not_held", remedies=broker.remediations)


def _at_risk(found: Diagnosis, tools: CommandOptions) -> Document:
    p, loss = found.partition, found.loss
    row = picked(p, "topic", partition=p.index, **{"class": found.risk})
    row |= picked(p, "leader replicas isr elr last_known_elr", minInsyncReplicas=found.floor)
    row |= {"uncleanElectionEnabled": found.unclean, "awaited": found.awaited, "clients": client_impact(found)}
    row["remedies"] = tuple(unclean_election(found, tools))
    if loss is not None:
        sampled = {"sampledEnd": loss.sample and loss.sample.end, "sampledAt": loss.sample and loss.sample.at}
        row["loss"] = picked(loss, "candidate candidate_end", **sampled, atLeast=loss.least)
    return row
