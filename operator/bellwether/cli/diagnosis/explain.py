"""``bellwether explain``: explain a broker's verdict: evidence, since when, and what would change it.

In: BrokerHealth and LeadershipPolicy objects. Out: text or a document. It reads the Kubernetes API only, and shows the
verdict of the operator; it does not judge by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import Object
from bellwether.cli import completion
from bellwether.cli.diagnosis.remedies import remedy, runbook, typed
from bellwether.cli.kubernetes_target import Target, broker_id, connect_policy, policy_options
from bellwether.cli.leadership import broker_lookup
from bellwether.cli.output import OUTPUT, ago, clock, print_lines, rows_of, since
from bellwether.core.detection.health_states import HealthState
from bellwether.core.reasons import DESCRIPTIONS, reason_named

if TYPE_CHECKING:
    from bellwether.api.v1alpha1.broker_health import BrokerHealth, BrokerVerdict, EvidenceItem
    from bellwether.api.v1alpha1.status.signal_entries import SignalEntry

LOST_SECONDS = (
    "seconds lost: a second counts in full if every request failed or missed the objective, half if half"
    " of them did, less a tenth that is tolerated"
)


@click.command()
@click.argument("broker", type=broker_id, shell_complete=completion.brokers)
@policy_options
@OUTPUT
def explain(broker: int, target: Target, output: str) -> None:
    """Explain the verdict on BROKER.

    Shows each signal with its reading, its threshold and since when; which signals were ignored and why; what keeps
    the broker from leading; and what would change the verdict.
    """
    from bellwether.api.v1alpha1.broker_health import BrokerHealth
    from bellwether.cli.diagnosis.policy_view import prober_leases

    at = connect_policy(target)
    health = BrokerHealth.read(broker_lookup.find_health(*at, broker))
    found = broker_lookup.find_policy(*at)
    lines = explanation(health, SystemClock().now(), prober_leases(*at), _vantages(found))
    if (problem := broker_lookup.trouble(found)) is not None:
        lines = chain([f"warning: the status below may be outdated: {problem}\n"], lines)
    print_lines(lines, lambda: facts(health), output)


def _vantages(policy: Object) -> tuple[str, ...]:
    """Vantages that the policy names; none if it is invalid, which a warning says."""
    from bellwether.api.v1alpha1.base_model import InvalidObject
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
    from bellwether.cli.diagnosis.remedies import named_vantages

    try:
        return named_vantages(LeadershipPolicy.read(policy))
    except InvalidObject:
        return ()


def facts(health: BrokerHealth) -> dict[str, Any]:
    """JSON document: the status without raw signals, and the override."""
    body = health.status.body()
    body.pop("signals", None)
    override = health.spec.override
    return {
        "broker": health.spec.broker_id,
        "policy": f"{health.metadata.namespace}/{health.spec.policy_ref.name}",
        **({"override": override.body()} if override is not None else {}),
        **body,
    }


def explanation(
    health: BrokerHealth, now: datetime, leases: Mapping[str, Object], vantages: Collection[str] = ()
) -> Iterator[str]:
    """Text, line by line. ``leases`` are those of the policy's probers, by name, ``vantages`` those that it names."""
    from bellwether.cli.diagnosis.remedies import missing_sources, start_sources

    status, verdict = health.status, health.status.verdict
    name = f"Broker {health.spec.broker_id} of policy {health.metadata.namespace}/{health.spec.policy_ref.name}"
    if verdict is None:
        yield f"{name} has no verdict yet: check that an operator is running and that the policy is Ready"
        return
    yield f"{name} is {verdict.state}: {verdict.reason}, {since(verdict.since, now)}"
    yield f"  {verdict.message or DESCRIPTIONS[reason_named(verdict.reason)]}"
    if verdict.change:
        yield f"  what would change it: {verdict.change}"
    if " lost " in verdict.message:
        yield f"  {LOST_SECONDS}"
    what = start_sources(missing_sources(health, vantages)) or remedy(verdict.reason)
    if verdict.state is not HealthState.HEALTHY and what:
        text = typed(what, health.metadata.namespace, health.spec.policy_ref.name, str(health.spec.broker_id))
        yield f"  what to do: {text}"
        yield f"  {runbook(verdict.reason)}"
    yield ""
    for condition in status.conditions:
        if condition.type != "Healthy":
            state = {"True": "yes", "False": "no"}.get(str(condition.status), "unknown")
            yield f"{condition.type}: {state}, {since(condition.last_transition_time, now)}: {condition.reason}"
            yield f"  {condition.message}"
    if status.leaders is not None:
        rack = f"; rack {status.rack}" if status.rack else ""
        counts = f"leads {status.leaders} of its {status.replicas} partitions"
        yield f"It {counts} and is the preferred leader of {status.preferred_leaders}{rack}."
    for one in status.demoted_log_dirs:
        count = f"{one.partitions} partitions lie in it"
        yield f"Log directory {one.directory} is demoted, {since(one.since, now)}: {count}."
        yield f"  {one.message}"
    for link in status.broken_links:
        count = f"other brokers lead {link.partitions} partitions of both"
        yield f"It and broker {link.broker} do not reach each other, {since(link.since, now)}: {count}."
    if (way := status.restoration) is not None:
        text = f"wave {way.wave} of {way.waves}, {way.share_percent} % of its leaders (spec.promotion.waves.steps)"
        yield f"Restoration in waves {since(way.since, now)}: {text}, {way.pending_partitions} partitions pending."
        if way.blocked_by:
            yield f"  next wave blocked: {way.blocked_by}"
    yield from _history(health, verdict, now)
    yield ""
    yield from _evidence(health, verdict, now, leases)


def _history(health: BrokerHealth, verdict: BrokerVerdict, now: datetime) -> Iterator[str]:
    flapping, override = health.status.flapping, health.spec.override
    if verdict.restarted_at is not None:
        yield f"Restarted {since(verdict.restarted_at, now)}; grace period for the load balancer."
    if flapping is not None:
        times = "once" if flapping.demotions == 1 else f"{flapping.demotions} times"
        yield (
            f"Recently demoted {times} by signals: it must stay healthy for {flapping.stabilization_seconds} s before "
            "promotion (spec.promotion.stabilizationSeconds, longer for a broker that flaps)."
        )
    if override is not None:
        until = f" until {clock(override.until)}" if override.until is not None else ""
        ended = override.until is not None and override.until <= now
        by = f" by {override.by}" if override.by else ""
        accepting = ", accepts unavailable writes" if override.accept_unavailable_writes else ""
        purpose = f" ({override.purpose}{accepting})" if override.purpose is not None else ""
        yield f"Override {override.state}{purpose}{by}{until}{', ended' if ended else ''}: {override.reason}"


def _evidence(
    health: BrokerHealth, verdict: BrokerVerdict, now: datetime, leases: Mapping[str, Object]
) -> Iterator[str]:
    """Signals as they were judged, with the age of the last report of each source."""
    from bellwether.api.v1alpha1.broker_health import EvidenceItem

    reported = {(e.type, e.source): e for e in health.status.signals}
    rows = [_row(item, reported.get((item.type, item.source)), now, leases) for item in verdict.evidence]
    if not rows and reported:
        yield "No signal was evaluated. The last report of each source:"
        judged = (
            EvidenceItem(type=e.type, source=e.source, reading=e.reading, since=e.since, message=e.message)
            for e in reported.values()
        )
        rows = [_row(item, reported[item.type, item.source], now, leases) for item in judged]
    if not rows:
        yield "No signal was evaluated."
        return
    yield from rows_of(("SIGNAL", "SOURCE", "READING", "SINCE", "REPORTED", "MESSAGE"), rows)


def _row(item: EvidenceItem, entry: SignalEntry | None, now: datetime, leases: Mapping[str, Object]) -> tuple[str, ...]:
    from bellwether.cli.diagnosis.policy_view import STALE_SECONDS, renewed

    at = renewed(entry, leases) if entry is not None else None
    reading = f"({item.reading})" if item.ignored_reason else f"{item.reading}"
    # Not judged, as of a broker that is down, or judged by an operator that is gone since.
    if at is not None and (now - at).total_seconds() > STALE_SECONDS:
        reading = f"stale ({item.reading} {ago(at, now)})"
    return (
        item.type,
        item.source,
        reading,
        ago(item.since, now) if item.since is not None else "",
        ago(at, now) if at is not None else "unknown",
        f"{item.message}; ignored: {item.ignored_reason}" if item.ignored_reason else item.message,
    )
