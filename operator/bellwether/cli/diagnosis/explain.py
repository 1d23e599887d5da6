"""``bellwether explain``: why a broker is judged as it is, from what, since when, and what would change it.

In: BrokerHealth and LeadershipPolicy objects. Out: text for a person, or JSON. Reads Kubernetes only: it says what the
operator has judged, and judges nothing itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import POLICIES, KubernetesClient, connect
from bellwether.api.v1alpha1.broker_health import BrokerHealth, BrokerVerdict, EvidenceItem
from bellwether.cli.leadership import broker_lookup
from bellwether.core.reasons import DESCRIPTIONS, reason_named
from bellwether.ports.errors import BellwetherError, Terminal


def explain(broker: int, policy: str | None, namespace: str, output: str) -> None:
    """Say why a broker is judged as it is, and what would change that."""
    try:
        api = connect()
        name = policy or only_policy(api, namespace)
        health = BrokerHealth.read(broker_lookup.find_health(api, namespace, name, broker))
        amiss = broker_lookup.trouble(broker_lookup.find_policy(api, namespace, name))
    except BellwetherError as error:
        raise click.ClickException(str(error)) from error
    if output == "json":
        click.echo(json.dumps(facts(health), indent=2))
        return
    if amiss is not None:
        click.echo(f"What follows is what was last known, for {amiss}\n")
    for line in told(health, SystemClock().now()):
        click.echo(line)


def only_policy(api: KubernetesClient, namespace: str) -> str:
    """The namespace's only policy. Terminal when there is none, or several."""
    found = sorted(str(p["metadata"]["name"]) for p in api.list(POLICIES, namespace))
    if not found:
        raise Terminal(f"there is no LeadershipPolicy in namespace {namespace}: name its namespace with --namespace")
    if len(found) > 1:
        raise Terminal(f"namespace {namespace} has the policies {', '.join(found)}: name one with --policy")
    return found[0]


def facts(health: BrokerHealth) -> dict[str, Any]:
    """What is known, for programs: the status without the probers' raw entries, and the override."""
    body = health.status.body()
    body.pop("signals", None)
    override = health.spec.override
    return {
        "broker": health.spec.broker_id,
        "policy": f"{health.metadata.namespace}/{health.spec.policy_ref.name}",
        **({"override": override.body()} if override is not None else {}),
        **body,
    }


def told(health: BrokerHealth, now: datetime) -> Iterator[str]:
    """What is known, line by line, for a person."""
    status, verdict = health.status, health.status.verdict
    name = f"Broker {health.spec.broker_id} of policy {health.metadata.namespace}/{health.spec.policy_ref.name}"
    if verdict is None:
        yield f"{name} has not been judged yet: is an operator running, and does the policy say Ready?"
        return
    yield f"{name} is {verdict.state}: {verdict.reason}, {_since(verdict.since, now)}"
    yield f"  {verdict.message or DESCRIPTIONS[reason_named(verdict.reason)]}"
    if verdict.change:
        yield f"  what would change it: {verdict.change}"
    yield ""
    for condition in status.conditions:
        if condition.type != "Healthy":
            state = {"True": "yes", "False": "no"}.get(str(condition.status), "unknown")
            since = _since(condition.last_transition_time, now)
            yield f"{condition.type}: {state} ({condition.reason}), {since}"
            yield f"  {condition.message}"
    if status.leaders is not None:
        rack = f", in rack {status.rack}" if status.rack else ""
        counts = f"leads {status.leaders} of the {status.replicas} partitions that it holds"
        yield f"It {counts}, first in the replica order of {status.preferred_leaders}{rack}."
    if (way := status.restoration) is not None:
        text = f"wave {way.wave} of {way.waves}, {way.share_percent} % of its leaders"
        yield f"Its leaders return in waves {_since(way.since, now)}: {text}, {way.pending_partitions} partitions still wait."
        if way.blocked_by:
            yield f"  the next wave waits: {way.blocked_by}"
    yield from _history(health, verdict, now)
    yield ""
    yield from _evidence(verdict.evidence, now)


def _history(health: BrokerHealth, verdict: BrokerVerdict, now: datetime) -> Iterator[str]:
    flapping, override = health.status.flapping, health.spec.override
    if verdict.restarted_at is not None:
        yield f"It has come up {_since(verdict.restarted_at, now)}, and the load balancer is given time to find it."
    if flapping is not None:
        times = "once" if flapping.demotions == 1 else f"{flapping.demotions} times in short succession"
        yield f"Signals demoted it {times}: it must stay well for {flapping.stabilization_seconds} s to be promoted."
    if override is not None:
        until = f" until {_clock(override.until)}" if override.until is not None else ""
        ended = override.until is not None and override.until <= now
        by = f" by {override.by}" if override.by else ""
        said = "asked for" if not ended else "asked for, and has ended"
        purpose = f" for {override.purpose}" if override.purpose is not None else ""
        yield f"Override {override.state}{purpose}{by}{until}: {said}: {override.reason}"


def _evidence(items: tuple[EvidenceItem, ...], now: datetime) -> Iterator[str]:
    if not items:
        yield "No signal was judged."
        return
    head = ("SIGNAL", "SOURCE", "SAYS", "SINCE", "SEEN")
    rows = [
        (
            item.type,
            item.source,
            f"{item.reading}" if not item.ignored_reason else f"({item.reading})",
            _ago(item.since, now) if item.since is not None else "",
            f"{item.message}; not counted: {item.ignored_reason}" if item.ignored_reason else item.message,
        )
        for item in items
    ]
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _since(moment: datetime, now: datetime) -> str:
    return f"since {_clock(moment)} ({_ago(moment, now)})"


def _clock(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


def _ago(moment: datetime, now: datetime) -> str:
    spent = max(timedelta(0), now - moment)
    minutes, seconds = divmod(int(spent.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")]
    said = [f"{n} {unit}" for n, unit in parts if n][:2]
    return f"{' '.join(said) or '0 s'} ago"
