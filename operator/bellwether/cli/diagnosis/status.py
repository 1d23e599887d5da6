"""``bellwether status``: one screen on a policy, from its custom resources and Leases. It needs no access to Kafka.

In: the Kubernetes API. Out: text or a document. Every list is bounded: the brokers that are not well come first.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from bellwether import documentation
from bellwether.adapters.clocks import SystemClock
from bellwether.cli.diagnosis.explain import facts
from bellwether.cli.diagnosis.remedies import runbook, typed
from bellwether.cli.kubernetes_target import Target, connect_policy, policy_options
from bellwether.cli.leadership.broker_lookup import NamedPolicy, find_policy
from bellwether.cli.output import OUTPUT, age, ago, picked, print_document, rows_of, since
from bellwether.core.detection.health_states import HealthState
from bellwether.core.listing import NAMED, counted, few
from bellwether.core.reasons import Reason
from bellwether.core.signals import Reading
from bellwether.ports.errors import Transient

if TYPE_CHECKING:
    from bellwether.api.v1alpha1.broker_health import BrokerHealth
    from bellwether.cli.diagnosis.policy_view import PolicyView, Prober

WATCH_SECONDS = 2.0
BROKERS_SHOWN = 30
TOPICS_SHOWN = 5


@click.command()
@policy_options
@click.option("--watch", "-w", is_flag=True, help="Refresh every two seconds until interrupted.")
@OUTPUT
def status(target: Target, watch: bool, output: str) -> None:
    """Show what is wrong with a policy, and the remedy.

    Shows the brokers with verdict, reason, since when and leaders; what is blocked and why; partitions at risk; the
    operator and the probers with the age of their reports; the rebalance; and for each thing that is wrong what to do
    and the page of the runbook. It reads the Kubernetes API only. For one line on each policy: kubectl get lp -A.

    The exit status is 0 if the status could be read, whatever it says.
    """
    if watch and output != "table":
        raise click.UsageError("--watch is for a terminal: leave out --output")
    at = connect_policy(target)
    view = _look(at)
    if output != "table":
        print_document(document(view), output)
        return
    click.echo("\n".join(screen(view)))
    while watch:
        time.sleep(WATCH_SECONDS)
        try:
            text = "\n".join(screen(_look(at)))
        except Transient as error:
            text = f"retrying: {error}"
        click.clear()
        click.echo(text)


def _look(at: NamedPolicy) -> PolicyView:
    from bellwether.cli.diagnosis.policy_view import policy_view

    return policy_view(at.api, find_policy(*at), SystemClock().now())


def document(view: PolicyView) -> dict[str, Any]:
    """JSON document: the status of the policy and its brokers, the probers, and what to do."""
    from bellwether.cli.diagnosis.client_impact import impact

    metadata, used = view.policy.metadata, view.policy.rebalance
    return {
        "policy": f"{metadata.namespace}/{metadata.name}",
        "status": view.policy.status.body(),
        "rebalance": None if used is None else {"name": used.metadata.name, "status": used.status.body()},
        "brokers": [facts(health) for health in view.brokers],
        "leaseRenewedAt": view.renewed,
        "probers": [
            picked(p, "type source brokers", renewedAt=p.renewed, stale=p.stale(view.now)) for p in view.probers
        ],
        "clients": [*impact(view.brokers, view.policy)],
        "problems": [picked(p, "reason about remedy", runbook=runbook(p.reason)) for p in view.problems],
    }


def screen(view: PolicyView) -> Iterator[str]:
    """Text, line by line."""
    from bellwether.cli.diagnosis.client_impact import impact

    metadata, status, ready = view.policy.metadata, view.policy.status, view.ready
    name = f"Policy {metadata.namespace}/{metadata.name}"
    if ready is None:
        yield f"{name} was never reconciled: check that an operator is running and watches this namespace"
        return
    if view.unattended and view.renewed is not None:
        yield f"{name}: no operator is at work, {since(view.renewed, view.now)}; what follows is as old"
    held = view.reason_since
    yield f"{name}: {ready.reason}{f', {since(held, view.now)}' if held is not None else ''}"
    yield from (f"  {part}" for part in ready.message.split("; "))
    yield from (f"Clients: {line}." for line in impact(view.brokers, view.policy))
    moment = since(ready.last_transition_time, view.now)
    newer = "; the reason may be newer" if held is None and ready.reason != Reason.UP_TO_DATE else ""
    yield f"Mode: {status.mode or view.policy.spec.mode}{_idled_by(view)}. Ready: {ready.status}, {moment}{newer}."
    yield f"Kafka cluster: {status.cluster}."
    yield _operator(view)
    yield ""
    yield from _brokers(view)
    yield from _topics(view)
    yield from _partitions(view)
    yield from _probers(view)
    if (used := view.policy.rebalance) is not None:
        run = used.status
        yield f"LeaderRebalance {used.metadata.name}: {run.state} ({run.reason}): {run.message}"
    for unused, why in view.policy.rebalances.unused.items():
        yield f"LeaderRebalance {unused}: not used: {why[1]}"
    yield from _next(view)


def _idled_by(view: PolicyView) -> str:
    if view.idled_by is None:
        return ""
    manager, moment = view.idled_by
    return f" (set by {manager}, which last wrote {ago(moment, view.now)})"


def _operator(view: PolicyView) -> str:
    pod = view.policy.status.operator or "unknown"
    if view.renewed is None:
        return f"Operator: {pod}; the age of its Lease is unknown (permission to get Leases)."
    return f"Operator: {pod}; Lease renewed {ago(view.renewed, view.now)}."


def _brokers(view: PolicyView) -> Iterator[str]:
    first = sorted(view.brokers, key=lambda health: (_well(health), health.spec.broker_id))
    head = ("BROKER", "VERDICT", "REASON", "SINCE", "LEADERS", "DEMOTED")
    yield from rows_of(head, [_row(health, view) for health in first[:BROKERS_SHOWN]])
    if rest := first[BROKERS_SHOWN:]:
        unhealthy, where = sum(not _well(health) for health in rest), view.policy.metadata.namespace
        yield f"and {len(rest)} more brokers, {unhealthy} of them not Healthy: kubectl get bh -n {where}"


def _row(health: BrokerHealth, view: PolicyView) -> tuple[str, ...]:
    from bellwether.api.v1alpha1.status.status_conditions import condition

    verdict, demoted = health.status.verdict, condition(health.status.conditions, "Demoted")
    why = "" if demoted is None else {"True": "yes", "False": "no"}.get(str(demoted.status), "unknown")
    if demoted is not None and demoted.reason != "UpToDate":
        why += f" ({demoted.reason})"
    leaders = "" if health.status.leaders is None else str(health.status.leaders)
    if verdict is None:
        return (str(health.spec.broker_id), "none yet", "", "", leaders, why)
    seen, reason = age(verdict.since, view.now), verdict.reason
    failing = [e.source for e in verdict.evidence if e.reading is Reading.FAILING and not e.ignored_reason]
    if verdict.state is HealthState.UNKNOWN and failing:
        reason += f" (fails from {few(failing, NAMED)})"
    return (str(health.spec.broker_id), str(verdict.state), reason, seen, leaders, why)


def _well(health: BrokerHealth) -> bool:
    from bellwether.api.v1alpha1.status.status_conditions import true_condition

    verdict, demoted = health.status.verdict, true_condition(health.status.conditions, "Demoted")
    return verdict is not None and verdict.state is HealthState.HEALTHY and demoted is None


def _topics(view: PolicyView) -> Iterator[str]:
    affected = view.policy.status.affected_topics
    if affected is None:
        return
    head = ("TOPIC", "PARTITIONS", "OFFLINE", "UNHEALTHY LEADER", "UNDER MIN ISR", "AT MIN ISR")
    shown = affected.worst[:TOPICS_SHOWN]
    rows = [
        (t.topic, *map(str, (t.partitions, t.offline, t.unhealthy_leader, t.under_min_isr, t.at_min_isr)))
        for t in shown
    ]
    yield from ("", *rows_of(head, rows))
    if (more := affected.total - len(shown)) > 0:
        yield f"and {counted(more, 'more topic')}, none worse than these: -o json"
    yield ""


def _partitions(view: PolicyView) -> Iterator[str]:
    from bellwether.api.v1alpha1.status.policy_status import Mode
    from bellwether.api.v1alpha1.status.status_conditions import true_condition

    status = view.policy.status
    at_risk = status.partitions_at_risk
    for risk in at_risk.classes if at_risk is not None else ():
        yield f"At risk: {risk.count} partitions {risk.risk}: {risk.message}"
    for blocked in status.blocked_by_reason:
        yield f"Blocked: {blocked.count} partitions {blocked.reason}: {blocked.message}"
    held = true_condition(status.conditions, "DemotionBlocked")
    if held is not None:
        yield f"Blocked: {held.reason}: {held.message}"
    if moving := status.plan.moves if status.plan is not None else 0:
        acts = status.mode is None or status.mode is Mode.ENFORCE
        yield f"{'Moving' if acts else 'Would move'}: {moving} partitions."


def _probers(view: PolicyView) -> Iterator[str]:
    of_type: dict[str, list[Prober]] = {}
    for prober in view.probers:
        of_type.setdefault(prober.type, []).append(prober)
    if not of_type:
        yield "Probers: none has reported."
    for type_, probers in of_type.items():
        stale, unknown = [p for p in probers if p.stale(view.now)], [p for p in probers if p.renewed is None]
        known = [p.renewed for p in probers if p.renewed is not None]
        text = f"Probers: {type_} from {few([p.source for p in probers], NAMED)}"
        if known:
            text += f"; oldest report {ago(min(known), view.now)}"
        if stale:
            text += f"; stale: {few([p.source for p in stale], NAMED)}"
        if unknown:
            text += f"; age unknown: {few([p.source for p in unknown], NAMED)}"
        yield f"{text}."


def _next(view: PolicyView) -> Iterator[str]:
    problems = [p for p in view.problems if p.remedy]
    yield ""
    if not problems and not view.unattended:
        yield "Nothing to do."
        return
    yield "What to do:"
    if view.unattended:
        yield f"- no operator is at work: check the pod {view.policy.status.operator}, its logs and its events"
        yield f"  {documentation.page('alerts/BellwetherOperatorDown.md')}"
    metadata = view.policy.metadata
    for problem in problems:
        broker = problem.about[0].removeprefix("broker ") if len(problem.about) == 1 else ""
        text = typed(problem.remedy, metadata.namespace, metadata.name, broker)
        yield f"- {problem.reason} ({few(problem.about, NAMED)}): {text}"
        yield f"  {runbook(problem.reason)}"
