"""Output of ``bellwether doctor`` as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from bellwether.cli.diagnosis.cluster_examination import Examination
from bellwether.cli.text_table import printed
from bellwether.core.doctor.remediation import CommandOptions, remediation_plan
from bellwether.core.doctor.risks import RISK_DESCRIPTIONS, WORST_FIRST, Diagnosis

Document = dict[str, Any]


def print_report(found: Examination, shown: Sequence[Diagnosis], tools: CommandOptions) -> None:
    """Print the summary, and the partitions ``shown`` with their remedies."""
    cluster, risk_summary = found.cluster, found.risk_summary
    click.echo(
        f"Kafka cluster {cluster.cluster_id}: {len(cluster.live)} of {len(cluster.named)} brokers live, "
        f"{len(cluster.partitions)} partitions; "
        f"eligible leader replicas (KIP-966): {'on' if cluster.elr_enabled else 'off'}"
    )
    for broker, why in sorted(found.silent.items()):
        click.echo(f"broker {broker} does not answer, but metadata lists it as alive: {why}")
    for trouble in found.troubles:
        click.echo(trouble)
    click.echo()
    counts = Counter(d.risk for d in risk_summary.diagnoses)
    rows = [(str(risk), str(counts[risk]), RISK_DESCRIPTIONS[risk]) for risk in WORST_FIRST if counts[risk]]
    printed(("CLASS", "PARTITIONS", ""), rows)
    if designed := sum(d.designed for d in risk_summary.diagnoses):
        click.echo(
            f"\n{designed} of the partitions at min.insync.replicas have all replicas in sync: by their settings no "
            "replica may fail"
        )
    for one in shown:
        click.echo()
        _partition(one)
        print_remedies(one, tools, elr=cluster.elr_enabled)
    if (more := len(risk_summary.at_risk) - len(shown)) > 0:
        click.echo(f"\nand {more} more at risk, none worse than these; show them with --all or --topic")
    if not risk_summary.at_risk:
        click.echo("\nno partition is at risk")


def _partition(found: Diagnosis) -> None:
    p = found.partition
    led = "no leader" if p.leader is None else f"leader {p.leader}"
    elr = f", ELR {list(p.elr)}" if p.elr else ""
    last = f", last known leader {p.last_known_elr[0]}" if p.last_known_elr else ""
    floor = "unknown" if found.floor is None else found.floor
    click.echo(
        f"{p.name}: {found.risk}: {led}, replicas {list(p.replicas)}, ISR {list(p.isr)}{elr}{last}, "
        f"min.insync.replicas {floor}"
    )


def print_remedies(found: Diagnosis, tools: CommandOptions, *, elr: bool) -> None:
    """Print the remedies for one partition."""
    advice = remediation_plan(found, tools, elr=elr)
    click.echo(f"  clients: {advice.clients}")
    click.echo(f"  safe:    {advice.safe}")
    for number, way in enumerate(advice.remediations, 1):
        click.echo(f"  {number}. {way.do}")
        click.echo(f"     cost: {way.cost}")
        for command in way.commands:
            click.echo(f"     $ {command}")


def document(found: Examination, shown: Sequence[Diagnosis], tools: CommandOptions) -> Document:
    """The JSON document; ``partitions`` are those that are shown."""
    cluster, risk_summary = found.cluster, found.risk_summary
    counts = Counter(d.risk for d in risk_summary.diagnoses)
    return {
        "clusterId": cluster.cluster_id,
        "brokers": {
            "live": sorted(cluster.live),
            "unreachable": {str(b): why for b, why in sorted(found.silent.items())},
        },
        "eligibleLeaderReplicas": cluster.elr_enabled,
        "warnings": list(found.troubles),
        "classes": {str(risk): counts[risk] for risk in WORST_FIRST},
        "atRisk": len(risk_summary.at_risk),
        "atMinIsrBySettings": sum(d.designed for d in risk_summary.diagnoses),
        "partitions": [_document(one, tools, elr=cluster.elr_enabled) for one in shown],
    }


def _document(found: Diagnosis, tools: CommandOptions, *, elr: bool) -> Document:
    p, loss, advice = found.partition, found.loss, remediation_plan(found, tools, elr=elr)
    row: Document = {
        "topic": p.topic,
        "partition": p.index,
        "class": str(found.risk),
        "leader": p.leader,
        "replicas": list(p.replicas),
        "isr": list(p.isr),
        "elr": list(p.elr),
        "lastKnownElr": list(p.last_known_elr),
        "minInsyncReplicas": found.floor,
        "uncleanElectionEnabled": found.unclean,
        "awaited": list(found.awaited),
        "clients": advice.clients,
        "safe": advice.safe,
        "remedies": [
            {"action": way.do, "cost": way.cost, "commands": list(way.commands)} for way in advice.remediations
        ],
    }
    if loss is not None:
        row["loss"] = {
            "candidate": loss.candidate,
            "candidateEnd": loss.candidate_end,
            "sampledEnd": loss.sample.end if loss.sample else None,
            "sampledAt": loss.sample.at.isoformat() if loss.sample else None,
            "atLeast": loss.least,
        }
    return row
